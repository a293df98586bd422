//! `flock-kg score`: how likely given triples are, or which triples of a graph are the least likely.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use flock_kg::graph::{LoadOptions, Triple, for_each_triple};
use flock_kg::records::OutputFormat;
use flock_kg::score::{
    JournalError, ScoreError, ScoreRun, existing, find_triple, find_triple_exactly, least_likely, sample,
    score_columns, write_scores,
};
use flock_kg::{Graph, Inquiry};

use crate::shared::calibrations;
use crate::shared::failure::{Failure, error, json, message};
use crate::shared::interrupt::on_interrupt;
use crate::shared::load::{self, GraphArgs};
use crate::shared::models::ModelArgs;
use crate::shared::output::{OutputArgs, beside};
use crate::shared::parse;
use crate::shared::progress::CountBar;

/// Names near unknown ones are looked up for so many triples.
const NEAR_LOOKUPS: usize = 16;

/// Arguments of `score`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "flock-kg score [OPTIONS] <GRAPH> <TRIPLES>\n       flock-kg score [OPTIONS] <GRAPH> --existing",
    after_help = "\
Examples:
  flock-kg score data/medicines.tsv data/medicines-withheld.tsv
  printf 'Portugal\\tborders\\tSpain\\n' | flock-kg score data/countries.tsv - --no-header
  flock-kg score data/countries.tsv --existing --top 20
  flock-kg score big.tsv --existing --relation treats --sample 5000 --out doubtful.csv

Each triple is asked for as the tail of (head, relation, ?) and as the head of (?, relation, tail), and hidden from the walks if \
the graph has it. Its score is that of the mean of the two logits. tail_rank and head_rank are its ranks among its alternatives: all \
entities but the other answers that the graph has. tail_percentile and head_percentile say how many percent of them score lower.

--existing asks about the triples of the graph itself and lists the least likely ones first: wrong ones are often among them, and \
so are true ones that nothing else in the graph speaks for.

With --out the scores are written down as they come; after a kill, the same command goes on where it was."
)]
pub struct ScoreArgs {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// File of triples, in any format of a graph; - for standard input
    #[arg(required_unless_present = "existing")]
    pub triples: Option<PathBuf>,
    /// Ask about the triples of the graph, and list the least likely ones
    #[arg(long, conflicts_with = "triples")]
    pub existing: bool,
    /// Only triples of this relation
    #[arg(long, short, value_name = "NAME")]
    pub relation: Option<String>,
    /// Only so many of the triples, drawn at random by the seed
    #[arg(long, value_name = "N", value_parser = parse::positive)]
    pub sample: Option<usize>,
    /// Triples to list [default: all, 100 with --existing]
    #[arg(long, short = 'k', value_name = "K", value_parser = parse::positive)]
    pub top: Option<usize>,
    /// Base walk count n: 3n walks for each question [default: by the size of the graph]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub walks: Option<u32>,
    /// Passes with fresh walks, whose logits are averaged
    #[arg(long, value_name = "P", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub passes: u32,
    /// Seed of the walks
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Calibrations to use [default: GRAPH.calibration.json, if there is one]
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
    /// Show ids instead of labels
    #[arg(long)]
    pub ids: bool,
    /// The whole list as one JSON object
    #[arg(long, conflicts_with = "output")]
    pub json: bool,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub model: ModelArgs,
}

/// Scores the triples.
pub fn run(args: ScoreArgs) -> Result<(), Failure> {
    args.output.check()?;
    if args.triples.as_deref() == Some(Path::new("-")) && args.graph.graph == Path::new("-") {
        let message = "only one of GRAPH and TRIPLES can be standard input (-)".to_string();
        return Err(Failure::Misuse("score", message));
    }
    let predictor = args.model.predictor()?;
    let calibrations = calibrations::find(args.calibration.as_deref(), &args.graph.graph)?;
    let (graph, _) = load::graph(&args.graph)?;
    let stop = on_interrupt("stopping after this step")?;
    let mut inquiry =
        predictor.on(&graph).seed(args.seed).passes(args.passes).calibrations(&calibrations).show_ids(args.ids);
    if let Some(walks) = args.walks {
        inquiry = inquiry.walks(walks);
    }
    let (triples, failed) = triples(&args, &graph)?;
    let path = args.output.out.as_deref().map(|out| beside(out, ".state"));
    let ScoreRun { scored, journal, interrupted } = score(&inquiry, &triples, path.as_deref(), &stop)?;
    let scored = match args.existing {
        true => least_likely(scored, args.top.unwrap_or(100)),
        false => scored.into_iter().take(args.top.unwrap_or(usize::MAX)).collect(),
    };
    let list = inquiry.named_scores(&scored).map_err(error)?;
    if let Some(why) = &list.calibration_unused {
        calibrations::warn_unused(args.calibration.as_deref(), &args.graph.graph, why);
    }
    if args.json {
        let mut out = args.output.text()?;
        writeln!(out, "{}", json(&list)?)?;
        out.finish()?;
    } else {
        let people = matches!(args.output.format(), OutputFormat::Table | OutputFormat::Md);
        let mut records = args.output.records(score_columns(people, list.is_calibrated()))?;
        write_scores(records.writer(), &list, people)?;
        records.finish()?;
    }
    // What was scored is kept until the list is written.
    if let (Some(journal), false) = (journal, interrupted) {
        journal.remove().map_err(error)?;
    }
    if failed > 0 {
        say!("error: {failed} triples could not be scored");
    }
    if interrupted || failed > 0 { Err(Failure::Reported) } else { Ok(()) }
}

/// The triples to score, and how many cannot be.
fn triples(args: &ScoreArgs, graph: &Graph) -> Result<(Vec<Triple>, usize), Failure> {
    let relation = args.relation.as_deref().map(|name| graph.parse_relation(name)).transpose().map_err(error)?;
    let (mut triples, mut failed) = (Vec::new(), 0);
    match &args.triples {
        Some(path) => {
            let load::ReadingArgs { lenient, no_header, .. } = args.graph.reading;
            let options = LoadOptions { lenient, header: no_header.then_some(false), ..LoadOptions::default() };
            let sink = |head: &str, relation: &str, tail: &str| {
                let found = match failed < NEAR_LOOKUPS {
                    true => find_triple(graph, [head, relation, tail]),
                    false => find_triple_exactly(graph, [head, relation, tail], NEAR_LOOKUPS),
                };
                match found {
                    Ok(triple) => triples.push(triple),
                    Err(e) => {
                        failed += 1;
                        if failed <= NEAR_LOOKUPS {
                            say!("error: {}: {head}, {relation}, {tail}: {}", path.display(), message(&e));
                        }
                    }
                };
            };
            let report = for_each_triple(path, &options, sink).map_err(error)?;
            load::tell(&report, &path.display().to_string());
        }
        None => triples = existing(graph, None).map_err(error)?,
    }
    triples.retain(|t| relation.is_none_or(|r| t.relation == r));
    if let Some(count) = args.sample {
        triples = sample(&triples, count, args.seed);
    }
    Ok((triples, failed))
}

/// Scores the triples and says how it went.
fn score(
    inquiry: &Inquiry<'_>,
    triples: &[Triple],
    journal: Option<&Path>,
    stop: &AtomicBool,
) -> Result<ScoreRun, Failure> {
    let bar = CountBar::new("triples", None);
    let run = inquiry.score_all(triples, journal, stop, &mut |before, done| {
        if done > before {
            bar.set(done as u64, triples.len() as u64);
        } else if let (Some(path), true) = (journal, before > 0) {
            bar.suspend(|| say!("note: {}: going on after {before} triples", path.display()));
        }
    });
    bar.end();
    let run = run.map_err(|e| match e {
        ScoreError::Journal(e @ JournalError::Other { .. }) => {
            Failure::Error(format!("{e}; hint: remove it to begin anew, or give the options it was made with"))
        }
        e => error(e),
    })?;
    if run.interrupted {
        match &run.journal {
            Some(_) => say!("note: stopped early: the same command goes on"),
            None => say!("note: stopped early; hint: with --out FILE the same command would go on"),
        }
    }
    Ok(run)
}
