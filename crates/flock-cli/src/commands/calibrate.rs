//! `flock-kg calibrate`: probabilities that fit one's own graph.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::builder::ArgPredicate;
use flock_kg::calibrate::{CalibrationError, DefaultCalibration, DefaultCalibrations, svg};
use flock_kg::eval::results::write_text;
use flock_kg::graph::{Format, Graph};
use flock_kg::{CalibrateOptions, Calibrations, Predictor, Task, graph};

use crate::shared::failure::{Failure, error, json, message};
use crate::shared::load::{self, GraphArgs};
use crate::shared::models::ModelArgs;
use crate::shared::parse;
use crate::shared::progress::CountBar;
use crate::shared::table::{self, Align, grouped, printable};

/// Arguments of `calibrate`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "flock-kg calibrate [OPTIONS] <GRAPH>\n       \
                      flock-kg calibrate [OPTIONS] --default-from <GRAPH>...",
    mut_arg("graph", |graph| graph
        .required(false)
        .required_unless_present("default_from")
        .conflicts_with("default_from")
        .default_value_if("default_from", ArgPredicate::IsPresent, "-")),
    after_help = "\
Triples of the graph are hidden and asked for; how often listed answers of a given logit are among them makes the \
probability. The result is kept in GRAPH.calibration.json, where predict, explain and serve find it. They use it for \
questions asked with the same model, --walks and --passes. For others they say that it is not used, and fall back on \
the default calibration of the model, or on the bare score.

With --default-from the result is a default calibration: one map for several graphs, each with the same weight, kept \
in MODEL.calibration.json beside the model of --model. Models are then calibrated on graphs that have no calibration \
of their own. Give graphs that the model was not trained on. What to expect on a new graph is measured by leaving \
each one out in turn.

Examples:
  flock-kg calibrate data/countries.tsv --queries 60 --svg reliability.svg
  flock-kg calibrate data/countries.tsv --passes 4 --out countries-4.json
  flock-kg calibrate --default-from a.tsv b.tsv c.tsv --model my.safetensors"
)]
pub struct CalibrateArgs {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Fit a default calibration of the model to these graphs instead: files, or directories with a train.txt
    #[arg(long, value_name = "GRAPH", num_args = 1.., conflicts_with_all = ["svg", "walks"])]
    pub default_from: Vec<PathBuf>,
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
    if !args.default_from.is_empty() {
        return run_default(&args);
    }
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
    let tasks = tasks(&args, &predictor);
    let mut made = Vec::new();
    for &task in &tasks {
        let bar = CountBar::new("held-out questions", Some(0));
        let result = inquiry.calibrate(task, &options, &mut |done, of| show(&bar, done, of));
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

fn tasks(args: &CalibrateArgs, predictor: &Predictor) -> Vec<Task> {
    match args.task.as_deref() {
        Some("relation") => vec![Task::Relation],
        Some(_) => vec![Task::Entity],
        None => predictor.default_tasks(),
    }
}

fn show(bar: &CountBar, done: usize, of: usize) -> bool {
    bar.set(done as u64, of as u64);
    true
}

/// Fits a default calibration of each model.
fn run_default(args: &CalibrateArgs) -> Result<(), Failure> {
    let predictor = args.model.predictor()?;
    let tasks = tasks(args, &predictor);
    let options = CalibrateOptions { queries: args.queries, top: args.top };
    // Where each is kept, and what is there already: refused before the work, not after.
    let mut kept = Vec::new();
    for &task in &tasks {
        let model = predictor.model(task).map_err(error)?;
        let path = match &args.out {
            Some(path) if tasks.len() > 1 => path.with_extension(format!("{task}.json")),
            Some(path) => path.clone(),
            None if predictor.has_given_models() => DefaultCalibrations::path(Path::new(&model.name.origin)),
            None => {
                let message = "the built-in model has no file to keep its default calibration beside; hint: --out FILE";
                return Err(Failure::Error(message.to_string()));
            }
        };
        let none = || DefaultCalibrations::new(model.name.sha256.clone());
        let before = match DefaultCalibrations::read_file(&path) {
            Ok(before) if before.model == model.name.sha256 => before,
            Ok(_) => none(),
            Err(CalibrationError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => none(),
            // It is made anew here.
            Err(e @ CalibrationError::Format { .. }) => {
                say!("warning: {}", message(&e));
                none()
            }
            Err(e) => return Err(error(e)),
        };
        kept.push((task, path, before, Vec::new()));
    }
    for path in &args.default_from {
        let (name, graph) = default_graph(args, path)?;
        for (task, _, _, held) in &mut kept {
            let inquiry = predictor.on(&graph).passes(args.passes).seed(args.seed);
            let bar = CountBar::new("held-out questions", Some(0));
            let asked = inquiry.hold_out(*task, &options, &mut |done, of| show(&bar, done, of));
            bar.end();
            match asked {
                Ok(asked) => held.extend(asked.map(|asked| (name.clone(), asked))),
                Err(e) => return Err(Failure::Error(format!("{}: {}", path.display(), message(&e)))),
            }
        }
    }
    let mut out = io::stdout().lock();
    for (task, path, mut kept, held) in kept {
        let made = DefaultCalibration::fit(&held).map_err(error)?;
        kept.set(made.clone());
        if let Err(e) = kept.write(&path) {
            out.write_all(kept.to_text().as_bytes())?;
            out.flush()?;
            return Err(Failure::Error(format!("{e}; the result is on standard output instead; hint: --out FILE")));
        }
        if args.json {
            writeln!(out, "{}", json(&made)?)?;
            continue;
        }
        writeln!(
            out,
            "{task}, {} passes: expected calibration error on a graph that was left out {:.4}, {:.4} without (mean of {})",
            made.passes,
            made.error_after,
            made.error_before,
            made.graphs.len()
        )?;
        let mut rows = vec![["graph", "n", "questions", "true", "without", "with"].map(str::to_string).to_vec()];
        for g in &made.graphs {
            let errors = [g.error_before, g.error_after].map(|e| format!("{e:.4}"));
            let [before, after] = errors;
            let counts = [u64::from(g.walks), g.queries as u64, g.positives as u64].map(grouped);
            rows.push([vec![printable(&g.name).into_owned()], counts.to_vec(), vec![before, after]].concat());
        }
        let mut aligns = vec![Align::Right; rows[0].len()];
        aligns[0] = Align::Left;
        table::write(&mut out, &aligns, &rows)?;
        writeln!(out, "kept in {}", path.display())?;
    }
    Ok(out.flush()?)
}

/// A graph of `--default-from` and its name: a file, or the training triples of a dataset directory.
fn default_graph(args: &CalibrateArgs, path: &Path) -> Result<(String, Graph), Failure> {
    let mut options = args.graph.reading.options();
    let mut file = path.to_path_buf();
    if path.is_dir() {
        file = path.join("train.txt");
        options.format = options.format.or(Some(Format::Tsv));
        options.header = options.header.or(Some(false));
    }
    let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
    let name = name.map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    let (graph, _) = graph::load(&file, &options).map_err(error)?;
    Ok((name, graph))
}

fn with_task(path: &Path, task: Task) -> PathBuf {
    path.with_extension(format!("{task}.svg"))
}
