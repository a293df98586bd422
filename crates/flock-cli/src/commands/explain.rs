//! `flock-kg explain`: the reasons for one answer.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use flock_kg::calibrate::ProbabilitySource;
use flock_kg::eval::results::write_text;
use flock_kg::explain::{MAX_HOPS, svg};
use flock_kg::records::{Column, OutputFormat};
use flock_kg::{Blank, ExplainOptions, Explanation};

use crate::shared::calibrations;
use crate::shared::failure::{Failure, error, json};
use crate::shared::load::{self, GraphArgs};
use crate::shared::models::ModelArgs;
use crate::shared::output::OutputArgs;
use crate::shared::parse;
use crate::shared::progress::patiently;
use crate::shared::table::{self, Align, grouped, printable, probability};

/// Arguments of `explain`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Each reason is a path from the query to the answer that walks took, with its share of the answer's consensus. Paths \
with the same relations are one reason, with an example. Reasons come by share × brevity (one over the number of hops). Weights \
alone prove nothing: the edges of the best reasons are then hidden and the question asked again, beside as many \
random edges around the same entities. A triple that the graph has is hidden from the start.

Examples:
  flock-kg explain data/countries.tsv Portugal borders Spain
  flock-kg explain data/countries.tsv Portugal continent Europe --svg reasons.svg
  flock-kg explain data/countries.tsv Spain borders Portugal --blank head --json")]
pub struct ExplainArgs {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Head entity
    pub head: String,
    /// Relation
    pub relation: String,
    /// Tail entity
    pub tail: String,
    /// Which of the three is taken as the answer
    #[arg(long, default_value = "tail", value_parser = PossibleValuesParser::new(["head", "relation", "tail"])
        .try_map(|s| s.parse::<Blank>()))]
    pub blank: Blank,
    /// Reasons to list
    #[arg(long, short = 'k', value_name = "K", default_value_t = 5, value_parser = parse::positive)]
    pub top: usize,
    /// The most hops of a listed path; if all are longer, the shortest are listed
    #[arg(long, value_name = "N", default_value_t = MAX_HOPS, value_parser = parse::positive)]
    pub max_hops: usize,
    /// How many of the model's last updates to look at
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = parse::positive)]
    pub updates: usize,
    /// How many of the best reasons to hide in the check
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = parse::positive)]
    pub hide: usize,
    /// How often to hide random edges instead
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub draws: u32,
    /// Leave the check by deletion out
    #[arg(long)]
    pub no_check: bool,
    /// Draw the reasons into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Base walk count n [default: by the size of the graph]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub walks: Option<u32>,
    /// Passes with fresh walks [default: 4]
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub passes: Option<u32>,
    /// Calibrations to use [default: GRAPH.calibration.json, if there is one]
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
    /// Seed of the walks
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Show ids instead of labels
    #[arg(long)]
    pub ids: bool,
    /// One JSON object
    #[arg(long, conflicts_with = "output")]
    pub json: bool,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub model: ModelArgs,
}

/// Explains one answer.
pub fn run(args: ExplainArgs) -> Result<(), Failure> {
    args.output.check()?;
    let predictor = args.model.predictor()?;
    let calibrations = calibrations::find(args.calibration.as_deref(), &args.graph.graph)?;
    let (graph, _) = load::graph(&args.graph)?;
    let mut inquiry = predictor.on(&graph).seed(args.seed).calibrations(&calibrations).show_ids(args.ids);
    if let Some(passes) = args.passes {
        inquiry = inquiry.passes(passes);
    }
    if let Some(walks) = args.walks {
        inquiry = inquiry.walks(walks);
    }
    let options = ExplainOptions {
        top: args.top,
        check: !args.no_check,
        updates: args.updates,
        hide: args.hide,
        draws: args.draws,
        max_hops: args.max_hops,
    };
    let triple = [&args.head, &args.relation, &args.tail];
    let explanation = patiently("explaining", || inquiry.explain(triple, args.blank, &options)).map_err(error)?;
    if let Some(why) = &explanation.calibration_unused {
        calibrations::warn_unused(args.calibration.as_deref(), &args.graph.graph, why);
    }
    let show = |name: &str| printable(explanation.show(name)).into_owned();
    if let Some(path) = &args.svg {
        write_text(path, &svg(&explanation, show)).map_err(error)?;
    }
    if !args.json && args.output.format() != OutputFormat::Table {
        return write_records(&args.output, &explanation);
    }
    let mut out = args.output.text()?;
    if args.json {
        writeln!(out, "{}", json(&explanation)?)?;
    } else {
        write(&mut out, &explanation, show)?;
    }
    out.finish()
}

/// A row for each reason, the best first.
fn write_records(output: &OutputArgs, e: &Explanation<'_>) -> Result<(), Failure> {
    let columns = vec![
        Column::integer("rank"),
        Column::number("share").digits(3),
        Column::integer("count"),
        Column::integer("steps"),
        Column::text("reason"),
    ];
    let mut records = output.records(columns)?;
    for (rank, r) in (1u32..).zip(&e.reasons) {
        let line = r.line(|name| e.show(name).to_string());
        records.row(&[rank.into(), r.share.into(), r.count.into(), r.steps.len().into(), line.into()])?;
    }
    records.finish()
}

fn write(out: &mut dyn Write, e: &Explanation<'_>, show: impl Fn(&str) -> String + Copy) -> io::Result<()> {
    writeln!(out, "{}  →  {}", e.query.map(show).join("  "), show(e.answer))?;
    let source = match e.probability_from {
        ProbabilitySource::Graph => " (calibrated on this graph)",
        ProbabilitySource::Default => " (calibrated on other graphs)",
        _ => "",
    };
    let (title, stated) = (e.probability_from.title(), probability(e.probability));
    writeln!(
        out,
        "logit {:+.3}, {title} {stated}{source}, {} passes, n = {}, seed {}",
        e.logit, e.passes, e.walks, e.seed
    )?;
    if e.known {
        writeln!(out, "the graph has this triple; it is hidden here, so that the reasons are others")?;
    }
    if e.reasons.is_empty() {
        writeln!(out, "no walk joins the query to this answer ({} positions at it)", grouped(e.positions.into()))?;
        return Ok(());
    }
    let mut rows = vec![["share", "count", "reason"].map(str::to_string).to_vec()];
    for r in &e.reasons {
        let reason = match r.paths {
            1 => r.line(show),
            paths => format!("{} paths: {}", grouped(paths as u64), r.pattern(show)),
        };
        rows.push(vec![format!("{:.3}", r.share), grouped(r.count.into()), reason]);
        if r.paths > 1 {
            rows.push(vec![String::new(), String::new(), format!("  {}", r.line(show))]);
        }
    }
    table::write(out, &[Align::Right, Align::Right, Align::Left], &rows)?;
    writeln!(
        out,
        "{:.3} of the weight of {} positions lies on walks that met the query, along {} different paths",
        e.joined,
        grouped(e.positions.into()),
        grouped(e.distinct as u64)
    )?;
    if e.longer > 0 {
        let paths = if e.longer == 1 { "path has" } else { "paths have" };
        writeln!(
            out,
            "{} {paths} more hops than are listed (share {:.3}); hint: --max-hops {}",
            grouped(e.longer as u64),
            e.longer_share,
            2 * e.max_hops
        )?;
    }
    if let Some(d) = &e.deletion {
        let edges = if d.edges.len() == 1 { "edge" } else { "edges" };
        write!(out, "without the {} {edges} of the best reasons the logit falls by {:.3}", d.edges.len(), d.fall)?;
        if let Some(mean) = d.random_mean {
            let each: Vec<String> = d.random.iter().map(|fall| format!("{fall:.3}")).collect();
            write!(out, "; without as many random ones around them by {mean:.3} ({})", each.join(", "))?;
        }
        writeln!(out)?;
    }
    Ok(())
}
