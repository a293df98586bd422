//! `flock-kg eval --holdout`: how good a model is on one's own graph.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flock_kg::eval::evaluate::{Choice, EvalProgress};
use flock_kg::eval::holdout::{HoldoutReport, HoldoutSettings, evaluate_holdout};
use flock_kg::eval::partial::PartialRun;
use flock_kg::eval::results::write_text;
use flock_kg::eval::{EvalError, TieMetrics};
use flock_kg::graph::Graph;
use flock_kg::records::{Cell, Column, OutputFormat};

use crate::commands::eval::{EvalArgs, METRICS, metric_cells, stopped};
use crate::shared::failure::{Failure, error, json, message};
use crate::shared::interrupt::on_interrupt;
use crate::shared::load::{self, GraphArgs, LabelArgs};
use crate::shared::output::{OutputArgs, Records, style};
use crate::shared::progress::EvalBar;
use crate::shared::table::{self, Align, grouped, printable};

/// So many of the hidden triples are asked for if nothing was said.
const LIMIT: usize = 1000;

/// Evaluates on graph files.
pub fn run(args: EvalArgs, share: f64) -> Result<(), Failure> {
    for path in &args.datasets {
        if Path::new(path).is_dir() {
            let hint = "leave --holdout out to ask for its own test triples, or name its train file";
            return Err(Failure::Error(format!("{path}: is a directory, expected a graph file; hint: {hint}")));
        }
    }
    let predictor = args.model.predictor()?;
    let tasks = args.tasks(&predictor)?;
    let partial = args.partial()?;
    let mut record = partial.as_deref().map(|path| PartialRun::open(path, args.fresh)).transpose().map_err(error)?;
    let stop = on_interrupt("stopping after these queries")?;
    let settings = HoldoutSettings {
        share,
        walks: if let Choice::Given(n) = args.protocol.walks { Some(n) } else { None },
        // As predict has it: the numbers are about the answers that one gets.
        passes: if let Choice::Given(passes) = args.protocol.passes { passes } else { 1 },
        seed: args.protocol.seed,
        limit: Some(args.protocol.limit.map_or(LIMIT, |n| n as usize)),
    };
    // With a file to write there is work to do even if nobody reads the table any more.
    let heard = |said: Result<(), Failure>| match said {
        Err(Failure::PipeClosed) if args.out.is_some() => Ok(()),
        said => said,
    };
    let mut reports: Vec<HoldoutReport> = Vec::new();
    let mut records = match args.json || args.output == OutputFormat::Table {
        true => None,
        false => Some(OutputArgs { output: Some(args.output), out: None }.records(columns())?),
    };
    let mut input =
        GraphArgs { graph: PathBuf::new(), with: Vec::new(), reading: args.reading, labels: LabelArgs::default() };
    for path in &args.datasets {
        input.graph = PathBuf::from(path);
        let (graph, _) = load::graph(&input)?;
        for &task in &tasks {
            let named = predictor.model(task).map_err(error)?;
            let progress = EvalBar::new(path.clone());
            let mut watch = |p: EvalProgress| progress.tell(p, &stop);
            let result = evaluate_holdout(
                path,
                graph.clone(),
                &named.model,
                &named.name,
                &settings,
                predictor.pool(),
                record.as_mut(),
                None,
                &mut watch,
            );
            progress.end();
            let report = match result {
                Err(EvalError::Stopped) => stopped(partial.as_deref()),
                result => result.map_err(|e| Failure::Error(format!("{path}: {}", message(&e))))?,
            };
            if args.protocol.limit.is_none() && report.asked < report.hidden {
                let [asked, hidden] = [report.asked, report.hidden].map(|n| grouped(n as u64));
                say!(
                    "note: {path}: asked for a sample of {asked} of {hidden} hidden triples; hint: --limit N for more"
                );
            }
            reports.push(report);
            if let Some(out) = &args.out {
                write_text(out, &(json(&reports)? + "\n")).map_err(error)?;
            }
            let (report, is_first) = (&reports[reports.len() - 1], reports.len() == 1);
            match &mut records {
                Some(records) => heard(write_records(records, &graph, report))?,
                None if !args.json => heard(write_report(&mut io::stdout().lock(), &graph, report, is_first))?,
                None => {}
            }
        }
    }
    if args.json {
        let mut out = io::stdout().lock();
        writeln!(out, "{}", json(&reports)?)?;
        out.flush()?;
    }
    if let Some(records) = records {
        records.finish()?;
    }
    match record {
        Some(record) => record.remove().map_err(error),
        None => Ok(()),
    }
}

fn columns() -> Vec<Column> {
    let mut columns = vec![Column::text("graph"), Column::text("task"), Column::text("part"), Column::text("relation")];
    columns.push(Column::integer("questions"));
    columns.extend(METRICS.map(Column::number));
    columns.push(Column::number("coverage"));
    columns
}

/// A row for all questions, and one for each relation.
fn write_records(records: &mut Records, graph: &Graph, report: &HoldoutReport) -> Result<(), Failure> {
    let task = report.task.to_string();
    let mut write = |part: &str, relation: Option<&str>, metrics: &TieMetrics, coverage: f64| {
        let name = relation.map(|name| graph.display(name));
        let mut row = vec![Cell::from(report.graph.as_str()), Cell::from(task.as_str()), Cell::from(part)];
        row.extend([name.into(), metrics.queries.into()]);
        row.extend(metric_cells(&metrics.pessimistic));
        row.push(coverage.into());
        records.row(&row)
    };
    write("all", None, &report.summary.all, report.summary.coverage)?;
    for r in &report.summary.relations {
        write("relation", Some(&r.relation), &r.metrics, r.coverage)?;
    }
    records.flush()
}

fn write_report(out: &mut dyn Write, graph: &Graph, report: &HoldoutReport, is_first: bool) -> Result<(), Failure> {
    let show = |name: &str| printable(&graph.display(name)).into_owned();
    if !is_first {
        writeln!(out)?;
    }
    writeln!(out, "{}", report.sentence(|name| format!("`{}`", show(name))))?;
    let questions = report.summary.all.queries;
    writeln!(
        out,
        "{}: {} of {} triples hidden, {} questions about {} of them, n = {}, P = {}, seed {}, {} model, {:.1} s",
        printable(&report.graph),
        grouped(report.hidden as u64),
        grouped(report.triples as u64),
        grouped(questions as u64),
        grouped(report.asked as u64),
        report.n,
        report.passes,
        report.seed,
        report.model.origin,
        report.seconds
    )?;
    let titles = ["relation", "questions", "MRR", "Hits@1", "Hits@3", "Hits@10", "coverage"];
    let mut rows = vec![titles.map(String::from).to_vec()];
    let mut add = |name: String, metrics: &TieMetrics, coverage: f64| {
        let m = &metrics.pessimistic;
        let mut row = vec![name, grouped(metrics.queries as u64)];
        row.extend([m.mrr, m.hits1, m.hits3, m.hits10, coverage].map(|x| format!("{x:.4}")));
        rows.push(row);
    };
    add("all".to_string(), &report.summary.all, report.summary.coverage);
    for r in &report.summary.relations {
        add(show(&r.relation), &r.metrics, r.coverage);
    }
    let mut aligns = [Align::Right; 7];
    aligns[0] = Align::Left;
    table::write_titled(out, &aligns, &rows, style())?;
    if let Some(interval) = &report.summary.interval {
        writeln!(
            out,
            "a sample of {} of {} hidden triples: MRR ± {:.4}, Hits@10 ± {:.4} (95 %)",
            grouped(interval.triples as u64),
            grouped(interval.of as u64),
            interval.mrr,
            interval.hits10
        )?;
    }
    Ok(out.flush()?)
}
