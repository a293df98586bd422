//! `flock-kg predict`: one question, or a batch of them.

use std::cell::Cell;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use flock_kg::explain::MAX_HOPS;
use flock_kg::graph::Triple;
use flock_kg::records::{OutputFormat, TableStyle, answer_columns, write_answers};
use flock_kg::score::{ScoredTriple, Standing, find_triple, write_score_row};
use flock_kg::{Answers, AskError, BLANK, Blank, Candidates, Graph, Inquiry, StopReason, Task};
use serde::Serialize;

use crate::shared::batch::{self, Row};
use crate::shared::calibrations;
use crate::shared::failure::{Failure, error, json, message};
use crate::shared::load::{self, GraphArgs};
use crate::shared::models::ModelArgs;
use crate::shared::output::{Output, OutputArgs, Records, style};
use crate::shared::parse;
use crate::shared::progress::{CountBar, batch_bar, patiently};
use crate::shared::table::{self, Align, grouped, printable, probability};

const CANDIDATES: &str = "Candidates";

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
  flock-kg predict data/countries.tsv Portugal borders '?' --among-type continent=Europe
  flock-kg predict data/countries.tsv --queries questions.tsv --out answers.parquet
  printf 'Portugal\\tborders\\t?\\nFrance\\t?\\tSpain\\n' |
    flock-kg predict data/countries.tsv --queries - --json
  flock-kg predict drugs.tsv aspirin treats '?' --labels drug-names.tsv

Quote the '?': it is always the blank, even if something in the graph is called ?. A name that starts with - goes \
after --.

A name is written as in the graph, as <IRI> or prefix:local, or by its label. Case, space around it and the prefix do \
not matter if only one name fits; if several fit they are listed.

Rank = 1 + the number of candidates with a strictly higher score; candidates that no walk reached share one score.

A candidate must fit all conditions of --among, --among-type, --among-range and --among-domain that are given.

With --output (csv, tsv, jsonl, md or parquet) each answer is a row: head, relation and tail of the query with ? for the \
blank, rank, answer, label, probability, probability_from, logit, spread, visits, known; with --explain also reason.

With --json each query is one line: query, answers (rank, name, label if there is one, logit, probability, spread, visits, known), unreached, \
candidates, coverage, seed, walks, passes, model, probability_from (score: the sigmoid of the logit, not calibrated; default: \
calibrated on other graphs; graph: calibrated on this one); with --explain answers have a reason, with --budget there is \
stopped, after calibrate there is calibration, or calibration_unused with the reason; unknown_candidates are names of --among that \
the graph does not have. A query of a batch that fails is reported on standard error (with \
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
    /// of them ? (a row without ? is a triple to score); - for standard input. Answers come as they are ready, in the order of the rows
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["head", "relation", "tail"])]
    pub queries: Option<PathBuf>,
    /// Answers to list; 0 for all that a walk reached
    #[arg(long, short = 'k', value_name = "K", default_value_t = 10)]
    pub top: usize,
    /// Leave out answers that the graph already has
    #[arg(long, alias = "only-new")]
    pub novel: bool,
    /// Only the names in this file, one per line; all that the graph has are ranked, others are skipped and counted
    #[arg(long, value_name = "FILE", help_heading = CANDIDATES)]
    pub among: Option<PathBuf>,
    /// Only entities x with (x, REL, VALUE) in the graph; may be given again
    #[arg(long, value_name = "REL=VALUE", help_heading = CANDIDATES)]
    pub among_type: Vec<String>,
    /// Only entities that the graph has as a tail (an object) of R; may be given again
    #[arg(long, value_name = "R", help_heading = CANDIDATES)]
    pub among_range: Vec<String>,
    /// Only entities that the graph has as a head (a subject) of R; may be given again
    #[arg(long, value_name = "R", help_heading = CANDIDATES)]
    pub among_domain: Vec<String>,
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
    /// Show ids instead of labels
    #[arg(long)]
    pub ids: bool,
    /// One JSON object per query, with everything that is known about it
    #[arg(long, conflicts_with = "output")]
    pub json: bool,
    #[command(flatten)]
    pub output: OutputArgs,
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
    args.output.check()?;
    let predictor = args.model.predictor()?;
    let among = args.among.as_deref().map(candidates).transpose()?;
    let rows = args.queries.as_deref().map(batch::read).transpose()?;
    let calibrations = calibrations::find(args.calibration.as_deref(), &args.graph.graph)?;
    let (graph, _) = load::graph(&args.graph)?;
    let mut inquiry = predictor.on(&graph).seed(args.seed).top(args.top).only_new(args.novel).reasons(args.explain);
    inquiry = inquiry.max_hops(args.max_hops);
    inquiry = inquiry.calibrations(&calibrations).show_ids(args.ids);
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
    for text in &args.among_type {
        inquiry = inquiry.among_candidates(Candidates::parse_type(&graph, text).map_err(error)?);
    }
    for relation in &args.among_range {
        inquiry = inquiry.among_range(relation);
    }
    for relation in &args.among_domain {
        inquiry = inquiry.among_domain(relation);
    }
    let command = Predict { args: &args, graph: &graph, inquiry, warned: Cell::new(false), skipped: Cell::new(false) };

    match (texts, rows, &args.queries) {
        (Some(texts), ..) => {
            let answers = patiently("asking", || command.inquiry.ask(texts)).map_err(error)?;
            let mut sink = command.sink()?;
            command.write(&mut sink, &answers)?;
            sink.finish()
        }
        (None, Some(rows), Some(path)) => {
            let mut sink = command.sink()?;
            let bar = batch_bar(path);
            let counts = command.batch(rows, &bar, &mut sink);
            bar.end();
            let counts = counts?;
            sink.finish()?;
            match counts {
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
fn candidates(path: &Path) -> Result<Candidates, Failure> {
    let read = match path == Path::new("-") {
        true => Candidates::read("<stdin>", io::stdin()),
        false => Candidates::open(path),
    };
    read.map_err(error)
}

/// The command, ready to ask.
struct Predict<'a> {
    args: &'a PredictArgs,
    graph: &'a Graph,
    inquiry: Inquiry<'a>,
    warned: Cell<bool>,  // that calibrations are not used
    skipped: Cell<bool>, // candidates, and said so
}

/// Where answers go: as tables or JSON objects, or as records.
enum Sink {
    Text { out: Output, text: Vec<u8> }, // collected, and passed on in one piece
    Records(Records),
}

impl Sink {
    /// Lets the reader have what there is.
    fn flush(&mut self) -> Result<(), Failure> {
        match self {
            Sink::Text { out, text } => {
                out.write_all(text)?;
                text.clear();
                Ok(out.flush()?)
            }
            Sink::Records(records) => records.flush(),
        }
    }

    fn finish(mut self) -> Result<(), Failure> {
        self.flush()?;
        match self {
            Sink::Text { out, .. } => out.finish(),
            Sink::Records(records) => records.finish(),
        }
    }
}

/// A query of a batch that has no answer.
#[derive(Serialize)]
struct FailedRow<'a> {
    query: &'a [String],
    line: u64,
    error: &'a str,
}

/// The answer to a row of a batch.
enum Reply<'a> {
    Answers(Box<Answers<'a>>),
    Score(&'a ScoredTriple),
}

impl Predict<'_> {
    fn sink(&self) -> Result<Sink, Failure> {
        if self.args.json || self.args.output.format() == OutputFormat::Table {
            return Ok(Sink::Text { out: self.args.output.text()?, text: Vec::new() });
        }
        Ok(Sink::Records(self.args.output.records(answer_columns(self.args.explain))?))
    }

    fn write(&self, sink: &mut Sink, answers: &Answers<'_>) -> Result<(), Failure> {
        if let Some(why) = &answers.calibration_unused
            && !self.warned.replace(true)
        {
            calibrations::warn_unused(self.args.calibration.as_deref(), &self.args.graph.graph, why);
        }
        if let (Some(unknown), Some(file)) = (&answers.unknown_candidates, &self.args.among)
            && !self.skipped.replace(true)
        {
            let first: Vec<String> = unknown.first.iter().map(|name| format!("{name:?}")).collect();
            let more = if unknown.count > unknown.first.len() { ", …" } else { "" };
            let count = grouped(unknown.count as u64);
            say!(
                "warning: {}: the graph lacks {count} of the names, skipped: {}{more}",
                file.display(),
                first.join(", ")
            );
        }
        match sink {
            Sink::Text { text, .. } if self.args.json => writeln!(text, "{}", json(answers)?)?,
            Sink::Text { text, .. } => self.write_table(text, answers)?,
            Sink::Records(records) => write_answers(records.writer(), self.graph, answers, self.args.explain)?,
        }
        Ok(())
    }

    /// A row that names all three parts: where its triple stands, from both ends.
    fn write_score(&self, sink: &mut Sink, scored: &ScoredTriple) -> Result<(), Failure> {
        let list = self.inquiry.named_scores(std::slice::from_ref(scored)).map_err(error)?;
        let Some(score) = list.scores.first() else { return Ok(()) };
        match sink {
            Sink::Text { text, .. } if self.args.json => writeln!(text, "{}", json(&list)?)?,
            Sink::Text { text, .. } => {
                let show = |name: &str| printable(list.shown.get(name).map_or(name, String::as_str)).into_owned();
                writeln!(text, "{}", [score.head, score.relation, score.tail].map(show).join("  "))?;
                let rank =
                    |side: &Standing| format!("{} of {}", grouped(side.rank.into()), grouped(side.candidates.into()));
                writeln!(
                    text,
                    "{} {}, as tail rank {}, as head rank {}{}",
                    list.probability_from.title(),
                    probability(score.probability),
                    rank(&score.as_tail),
                    rank(&score.as_head),
                    if score.known { "; known, and hidden from the walks" } else { "" }
                )?;
            }
            Sink::Records(records) => write_score_row(records.writer(), &list, self.args.explain)?,
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
        let style = if self.args.output.out.is_some() { TableStyle::default() } else { style() };
        table::write_titled(out, &aligns, &rows, style)?;
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
    fn batch(
        &self,
        rows: Receiver<Result<Row, String>>,
        bar: &CountBar,
        sink: &mut Sink,
    ) -> Result<(u64, u64), Failure> {
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
            let rows_of = |is_triple: bool| {
                group.iter().filter_map(|row| row.question()).filter(move |texts| texts.contains(&BLANK) != is_triple)
            };
            let questions: Vec<[&str; 3]> = rows_of(false).collect();
            let mut replies = self.inquiry.ask_many(&questions).into_iter();
            let found: Vec<Result<Triple, AskError>> =
                rows_of(true).map(|texts| find_triple(self.graph, texts)).collect();
            let triples: Vec<Triple> = found.iter().filter_map(|triple| triple.as_ref().ok().copied()).collect();
            // Without a model of entities each triple fails, and the questions go on.
            let (scored, unscored) = match self.inquiry.score_triples(&triples) {
                Ok(scored) => (scored, None),
                Err(e) => (Vec::new(), Some(message(&e))),
            };
            let (mut found, mut scored) = (found.into_iter(), scored.iter());
            for row in &group {
                let problem = || row.problem.clone().unwrap_or_else(|| "expected 3 fields".to_string());
                let reply = match row.question() {
                    Some(texts) if texts.contains(&BLANK) => {
                        let reply = replies.next().ok_or_else(problem);
                        reply.and_then(|reply| {
                            reply.map(|answers| Reply::Answers(Box::new(answers))).map_err(|e| message(&e))
                        })
                    }
                    Some(_) => {
                        let triple = found.next().ok_or_else(problem);
                        let triple = triple.and_then(|triple| triple.map_err(|e| message(&e)));
                        let why = || unscored.clone().unwrap_or_else(problem);
                        triple.and_then(|_| scored.next().ok_or_else(why)).map(Reply::Score)
                    }
                    None => Err(problem()),
                };
                match &reply {
                    Ok(reply) => {
                        if let Sink::Text { text, .. } = sink
                            && !self.args.json
                            && asked > failed
                        {
                            writeln!(text)?;
                        }
                        bar.suspend(|| match reply {
                            Reply::Answers(answers) => self.write(sink, answers),
                            Reply::Score(scored) => self.write_score(sink, scored),
                        })?;
                    }
                    Err(problem) => {
                        failed += 1;
                        bar.suspend(|| say!("error: {}: {problem}", row.place));
                        if let Sink::Text { text, .. } = sink
                            && self.args.json
                        {
                            let failed = FailedRow { query: &row.fields, line: row.line, error: problem };
                            writeln!(text, "{}", json(&failed)?)?;
                        }
                    }
                }
                asked += 1;
            }
            bar.suspend(|| sink.flush())?;
            bar.inc(group.len() as u64);
            // What was read before the file broke off has been answered.
            if let Some(problem) = broken {
                return Err(Failure::Error(problem));
            }
        }
        Ok((asked, failed))
    }
}
