//! `flock-kg calibrate`: probabilities that fit one's own graph.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flock_kg::calibrate::{CalibrationError, svg};
use flock_kg::eval::results::write_text;
use flock_kg::{CalibrateOptions, Calibrations, Task};

use crate::shared::failure::{Failure, error, json, message};
use crate::shared::load::{self, GraphArgs};
use crate::shared::models::ModelArgs;
use crate::shared::parse;
use crate::shared::progress::CountBar;

/// Arguments of `calibrate`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Triples of the graph are hidden and asked for; how often listed answers of a given logit are among them makes the \
probability. The result is kept in GRAPH.calibration.json, where predict, explain and serve find it. They use it for \
questions asked with the same model, --walks and --passes, and say so if it is not used.

Examples:
  flock-kg calibrate data/countries.tsv --queries 60 --svg reliability.svg
  flock-kg calibrate data/countries.tsv --passes 4 --out countries-4.json")]
pub struct CalibrateArgs {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Task to calibrate [default: those of --model, else entity]
    #[arg(long, value_parser = ["entity", "relation"])]
    pub task: Option<String>,
    /// Triples to hold out; at most a tenth of the graph
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub queries: usize,
    /// Candidates of each question that count
    #[arg(long, short = 'k', value_name = "K", default_value_t = 10, value_parser = parse::positive)]
    pub top: usize,
    /// Keep the result here instead; predict, explain and serve find it with --calibration
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Draw the reliability diagram into this file (with the task before its ending if there are two)
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Base walk count n [default: by the size of the graph]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub walks: Option<u32>,
    /// Passes with fresh walks; use what predict will use
    #[arg(long, value_name = "P", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub passes: u32,
    /// Seed of the walks and of what is held out
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// One JSON object for each task
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub model: ModelArgs,
}

/// Calibrates the models on the graph.
pub fn run(args: CalibrateArgs) -> Result<(), Failure> {
    if args.graph.graph == Path::new("-") && args.out.is_none() {
        let message = "found - for the graph, expected a file: the result is kept beside it; hint: --out FILE";
        return Err(Failure::Error(message.to_string()));
    }
    let path = args.out.clone().unwrap_or_else(|| Calibrations::path(&args.graph.graph));
    let predictor = args.model.predictor()?;
    let mut kept = match Calibrations::read_file(&path) {
        // It is made anew here.
        Err(e @ CalibrationError::Format { .. }) => {
            say!("warning: {}", message(&e));
            Calibrations::default()
        }
        Err(CalibrationError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Calibrations::default(),
        read => read.map_err(error)?,
    };
    let (graph, _) = load::graph(&args.graph)?;
    let mut inquiry = predictor.on(&graph).passes(args.passes).seed(args.seed);
    if let Some(walks) = args.walks {
        inquiry = inquiry.walks(walks);
    }
    let options = CalibrateOptions { queries: args.queries, top: args.top };
    let tasks: Vec<Task> = match args.task.as_deref() {
        Some("relation") => vec![Task::Relation],
        Some(_) => vec![Task::Entity],
        None => predictor.default_tasks(),
    };
    let mut made = Vec::new();
    for &task in &tasks {
        let bar = CountBar::new("held-out questions", Some(0));
        let mut progress = |done: usize, of: usize| {
            bar.set(done as u64, of as u64);
            true
        };
        let result = inquiry.calibrate(task, &options, &mut progress);
        bar.end();
        let result = result.map_err(error)?;
        let Some(result) = result else { continue };
        let c = &result.calibration;
        if c.error_after >= c.error_before {
            say!("warning: {task}: calibrated probabilities fit no better than those before; hint: more --queries");
        }
        kept.set(task, result.calibration.clone());
        made.push((task, result));
    }
    // Kept first, drawn and told after: who reads only the first line still has it.
    let mut out = io::stdout().lock();
    if let Err(e) = kept.write(&path) {
        // It took minutes to make: where it cannot be kept, whoever called may keep it.
        out.write_all(kept.to_text().as_bytes())?;
        out.flush()?;
        let hint = "hint: keep that, or use --out FILE, and give it to predict with --calibration FILE";
        return Err(Failure::Error(format!("{e}; the result is on standard output instead; {hint}")));
    }
    for (task, result) in &made {
        if let Some(path) = &args.svg {
            let path = if tasks.len() > 1 { with_task(path, *task) } else { path.clone() };
            let title = format!("{task} probabilities on {}", args.graph.graph.display());
            write_text(&path, &svg(&title, &result.before, &result.after)).map_err(error)?;
        }
        let c = &result.calibration;
        if args.json {
            writeln!(out, "{}", json(c)?)?;
        } else {
            writeln!(
                out,
                "{task}: expected calibration error {:.4} before, {:.4} after ({} held-out questions, {} candidates, {} true)",
                c.error_before, c.error_after, c.queries, c.samples, c.positives
            )?;
        }
    }
    if !args.json {
        let path = path.display();
        match args.out {
            Some(_) => writeln!(out, "kept in {path}; predict uses it with --calibration {path}")?,
            None => writeln!(out, "kept in {path}; predict uses it from now on")?,
        }
    }
    Ok(out.flush()?)
}

fn with_task(path: &Path, task: Task) -> PathBuf {
    path.with_extension(format!("{task}.svg"))
}
