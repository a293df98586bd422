//! `flock-kg predict`: one question, or a batch of them.

use std::cell::Cell;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use flock_kg::explain::MAX_HOPS;
use flock_kg::{Answers, Blank, Candidates, Inquiry, StopReason, Task};
use indicatif::ProgressBar;
use serde::Serialize;

use crate::shared::batch::{self, Row};
use crate::shared::calibrations;
use crate::shared::failure::{Failure, error, json, message};
use crate::shared::load::{self, GraphArgs};
use crate::shared::models::ModelArgs;
use crate::shared::parse;
use crate::shared::progress::batch_bar;
use crate::shared::table::{self, Align, grouped, printable, probability};

/// Arguments of `predict`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "flock-kg predict [OPTIONS] <GRAPH> <HEAD> <RELATION> <TAIL>      (one of the three is '?')\n       \
                      flock-kg predict [OPTIONS] <GRAPH> --queries <FILE>",
    after_help = "\
Examples:
  flock-kg predict data/countries.tsv Portugal borders '?'
  flock-kg predict data/countries.tsv '?' capital Lisbon --novel --top 3
  flock-kg predict data/countries.tsv Portugal '?' Spain --passes 8
  flock-kg predict data/countries.tsv Portugal continent '?' --budget 2s --explain
  printf 'Portugal\\tborders\\t?\\nFrance\\t?\\tSpain\\n' |
    flock-kg predict data/countries.tsv --queries - --json

Quote the '?': it is always the blank, even if something in the graph is called ?. A name that starts with - goes \
after --.

Rank = 1 + the number of candidates with a strictly higher score; candidates that no walk reached share one score.

With --json each query is one line: query, answers (rank, name, logit, probability, spread, visits, known), unreached, \
candidates, coverage, seed, walks, passes, model, probability_from (score: the sigmoid of the logit, not calibrated; default: \
calibrated on other graphs; graph: calibrated on this one); with --explain answers have a reason, with --budget there is \
stopped, after calibrate there is calibration, or calibration_unused with the reason. A query of a batch that fails is reported on standard error (with \
--json also as a line with \"error\"), the others go on, and the exit status is 1.

The same query, seed and options give the same answer, alone or in a batch, on any number of threads; with --budget \
the clock decides how many passes there are."
)]
pub struct PredictArgs {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Head entity, or '?'
    #[arg(required_unless_present = "queries")]
    pub head: Option<String>,
    /// Relation, or '?'
    #[arg(required_unless_present = "queries")]
    pub relation: Option<String>,
    /// Tail entity, or '?'
    #[arg(required_unless_present = "queries")]
    pub tail: Option<String>,
    /// Ask every row of a file: head, relation and tail separated by tabs (by commas if it is a .csv file), one
    /// of them ?; - for standard input. Answers come as they are ready, in the order of the rows
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["head", "relation", "tail"])]
    pub queries: Option<PathBuf>,
    /// Answers to list; 0 for all that a walk reached
    #[arg(long, short = 'k', value_name = "K", default_value_t = 10)]
    pub top: usize,
    /// Leave out answers that the graph already has
    #[arg(long, alias = "only-new")]
    pub novel: bool,
    /// Candidates: only the names in this file, one per line; all of them are ranked
    #[arg(long, value_name = "FILE")]
    pub among: Option<PathBuf>,
    /// Base walk count n: 3n walks for an entity, 4n for a relation [default: by the size of the graph]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub walks: Option<u32>,
    /// Passes with fresh walks, whose logits are averaged; more are steadier and take longer [default: 1]
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub passes: Option<u32>,
    /// Add passes until so much time is up for each query (300ms, 2s) or the listed answers stop changing places;
    /// --passes is then the most
    #[arg(long, value_name = "TIME", value_parser = parse::duration)]
    pub budget: Option<Duration>,
    /// One line of reason for each answer: the path from the query that weighed most
    #[arg(long, alias = "reasons")]
    pub explain: bool,
    /// The most hops of a path in --explain; if all are longer, the shortest is shown
    #[arg(long, value_name = "N", default_value_t = MAX_HOPS, value_parser = parse::positive, requires = "explain")]
    pub max_hops: usize,
    /// Calibrations to use [default: GRAPH.calibration.json, if there is one]
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
    /// Seed of the walks
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// One JSON object per query
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub model: ModelArgs,
}

/// Answers what was asked.
pub fn run(args: PredictArgs) -> Result<(), Failure> {
    let texts = match (&args.head, &args.relation, &args.tail) {
        (Some(head), Some(relation), Some(tail)) => Some([head.as_str(), relation, tail]),
        _ => None,
    };
    // Whatever can be refused without the graph is refused before it is loaded.
    if let Some(texts) = texts {
        Blank::find(texts).map_err(|e| Failure::Misuse("predict", message(&e)))?;
    }
    let standard = [Some(&args.graph.graph), args.queries.as_ref(), args.among.as_ref()];
    if standard.into_iter().flatten().filter(|path| *path == Path::new("-")).count() > 1 {
        return Err(Failure::Misuse(
            "predict",
            "only one of GRAPH, --queries and --among can be standard input (-)".to_string(),
        ));
    }
    let predictor = args.model.predictor()?;
    let among = args.among.as_deref().map(candidates).transpose()?;
    let rows = args.queries.as_deref().map(batch::read).transpose()?;
    let calibrations = calibrations::find(args.calibration.as_deref(), &args.graph.graph)?;
    let (graph, _) = load::graph(&args.graph)?;
    let mut inquiry = predictor.on(&graph).seed(args.seed).top(args.top).only_new(args.novel).reasons(args.explain);
    inquiry = inquiry.max_hops(args.max_hops);
    inquiry = inquiry.calibrations(&calibrations);
    if let Some(walks) = args.walks {
        inquiry = inquiry.walks(walks);
    }
    if let Some(passes) = args.passes {
        inquiry = inquiry.passes(passes);
    }
    if let Some(time) = args.budget {
        inquiry = inquiry.budget(time);
    }
    if let Some(among) = among {
        inquiry = inquiry.among_candidates(among);
    }
    let command = Predict { args: &args, inquiry, warned: Cell::new(false) };

    match (texts, rows, &args.queries) {
        (Some(texts), ..) => {
            let answers = command.inquiry.ask(texts).map_err(error)?;
            let mut out = io::stdout().lock();
            command.write(&mut out, &answers)?;
            Ok(out.flush()?)
        }
        (None, Some(rows), Some(path)) => {
            let bar = batch_bar(path);
            let counts = command.batch(rows, &bar);
            bar.finish_and_clear();
            match counts? {
                (0, _) => say!("warning: {}: no queries", path.display()),
                (_, 0) => {}
                (asked, failed) => {
                    say!("error: {failed} of {asked} queries failed");
                    return Err(Failure::Reported);
                }
            }
            Ok(())
        }
        _ => Err(Failure::Misuse("predict", "expected HEAD RELATION TAIL, or --queries FILE".to_string())),
    }
}

/// The names of `--among`.
fn candidates(path: &Path) -> Result<Arc<Candidates>, Failure> {
    let read = match path == Path::new("-") {
        true => Candidates::read("<stdin>", io::stdin()),
        false => Candidates::open(path),
    };
    Ok(Arc::new(read.map_err(error)?))
}

/// The command, ready to ask.
struct Predict<'a> {
    args: &'a PredictArgs,
    inquiry: Inquiry<'a>,
    warned: Cell<bool>, // that calibrations are not used
}

/// A query of a batch that has no answer.
#[derive(Serialize)]
struct FailedRow<'a> {
    query: &'a [String],
    line: u64,
    error: &'a str,
}

impl Predict<'_> {
    fn write(&self, out: &mut dyn Write, answers: &Answers<'_>) -> Result<(), Failure> {
        if let Some(why) = &answers.calibration_unused
            && !self.warned.replace(true)
        {
            calibrations::warn_unused(self.args.calibration.as_deref(), &self.args.graph.graph, why);
        }
        if self.args.json {
            writeln!(out, "{}", json(answers)?)?;
        } else {
            self.write_table(out, answers)?;
        }
        Ok(())
    }

    fn write_table(&self, out: &mut dyn Write, reply: &Answers<'_>) -> io::Result<()> {
        let show = |name: &str| printable(reply.show(name)).into_owned();
        writeln!(out, "{}", reply.query.map(show).join("  "))?;
        let entity = reply.model.task == Task::Entity;
        let title = reply.probability_from.title();
        let mut header = vec!["rank", if entity { "entity" } else { "relation" }, title, "logit", "spread"];
        let mut aligns = vec![Align::Right, Align::Left, Align::Right, Align::Right, Align::Right];
        if entity {
            header.push("visits");
            aligns.push(Align::Right);
        }
        header.push("");
        aligns.push(Align::Left);
        if self.args.explain {
            header.push("reason");
            aligns.push(Align::Left);
        }
        let mut rows = vec![header.into_iter().map(str::to_string).collect::<Vec<_>>()];
        for a in &reply.answers {
            let spread = a.spread.map_or_else(|| "–".to_string(), |spread| format!("{spread:.3}"));
            let mut row = vec![
                grouped(a.rank.into()),
                show(a.name),
                probability(a.probability),
                format!("{:+.3}", a.logit),
                spread,
            ];
            row.extend(a.visits.map(|v| grouped(v.into())));
            row.push(if a.known { "known" } else { "" }.to_string());
            if self.args.explain {
                row.push(a.reason.as_ref().map_or_else(|| "–".to_string(), |reason| reason.brief(show)));
            }
            rows.push(row);
        }
        table::write(out, &aligns, &rows)?;
        if let Some(why) = reply.stopped {
            let why = match why {
                StopReason::Time => "time was up",
                StopReason::Steady => "these answers had stopped changing places",
                _ => "no more were allowed",
            };
            writeln!(out, "{} passes: {why}", grouped(reply.passes.into()))?;
        }
        if let Some(c) = &reply.calibration {
            writeln!(
                out,
                "probabilities are calibrated on this graph: expected error {:.3}, {:.3} without ({} held-out questions)",
                c.error_after,
                c.error_before,
                grouped(c.queries as u64)
            )?;
        }
        if let Some(c) = &reply.default_calibration {
            writeln!(
                out,
                "probabilities are calibrated on {} other graphs: expect an error of {:.3} on a new one ({:.3} for bare scores)",
                c.graphs, c.error_after, c.error_before
            )?;
        }
        let (u, what) = (&reply.unreached, if entity { "entities" } else { "relations" });
        if u.count > 0 {
            writeln!(
                out,
                "{} of {} {what} were not reached by any walk; they share {title} {} (rank {})",
                grouped(u.count.into()),
                grouped(reply.candidates.into()),
                probability(u.probability),
                grouped(u.rank.into())
            )?;
        }
        Ok(())
    }

    /// Answers rows as they come, in their order, a group at a time: as many as keep all threads busy, fewer if no more
    /// are there yet, so that a program that asks one by one gets its answer at once. Counts the rows, and those that failed.
    fn batch(&self, rows: Receiver<Result<Row, String>>, bar: &ProgressBar) -> Result<(u64, u64), Failure> {
        let size = self.inquiry.group_size();
        let (mut asked, mut failed) = (0u64, 0u64);
        while let Ok(first) = rows.recv() {
            let mut group = vec![first?];
            let mut broken = None;
            while group.len() < size
                && broken.is_none()
                && let Ok(next) = rows.try_recv()
            {
                match next {
                    Ok(row) => group.push(row),
                    Err(problem) => broken = Some(problem),
                }
            }
            let questions: Vec<[&str; 3]> = group.iter().filter_map(|row| row.question()).collect();
            let mut replies = self.inquiry.ask_many(&questions).into_iter();
            // Into memory first, then out in one piece, around the progress bar.
            let mut text = Vec::new();
            for row in &group {
                let problem = || row.problem.clone().unwrap_or_else(|| "expected 3 fields".to_string());
                let reply = match row.question() {
                    Some(_) => replies.next().ok_or_else(problem).and_then(|reply| reply.map_err(|e| message(&e))),
                    None => Err(problem()),
                };
                match &reply {
                    Ok(answers) => {
                        if !self.args.json && asked > failed {
                            writeln!(text)?;
                        }
                        self.write(&mut text, answers)?;
                    }
                    Err(problem) => {
                        failed += 1;
                        bar.suspend(|| say!("error: {}: {problem}", row.place));
                        if self.args.json {
                            writeln!(
                                text,
                                "{}",
                                json(&FailedRow { query: &row.fields, line: row.line, error: problem })?
                            )?;
                        }
                    }
                }
                asked += 1;
            }
            bar.suspend(|| {
                let mut out = io::stdout().lock();
                out.write_all(&text).and_then(|()| out.flush())
            })?;
            bar.inc(group.len() as u64);
            // What was read before the file broke off has been answered.
            if let Some(problem) = broken {
                return Err(Failure::Error(problem));
            }
        }
        Ok((asked, failed))
    }
}
