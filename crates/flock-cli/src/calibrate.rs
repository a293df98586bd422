//! `flock-kg calibrate`: probabilities that fit one's own graph.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use flock_kg::calibrate::{CalibrateOptions, CalibrationError, Calibrations, calibrate, svg};
use flock_kg::checkpoint::Task;
use flock_kg::ensemble::Ask;
use flock_kg::eval::results::write_text;
use indicatif::ProgressBar;

use crate::args;
use crate::failure::{Failure, error, json};
use crate::load;
use crate::models::{self, Models};

/// The calibrations beside a graph file; none for standard input.
pub fn beside(graph: &Path) -> Result<Calibrations, Failure> {
    if graph == Path::new("-") { Ok(Calibrations::default()) } else { Calibrations::read(graph).map_err(error) }
}

/// Calibrates the models on the graph.
pub fn run(args: args::Calibrate) -> Result<(), Failure> {
    if args.graph.graph == Path::new("-") {
        return Err(Failure::Error("found - for the graph, expected a file: the result is kept beside it".to_string()));
    }
    let models = Models::open(&args.model.model, models::engine(args.model.precision)?)?;
    let mut kept = match Calibrations::read(&args.graph.graph) {
        // It is made anew here.
        Err(e @ CalibrationError::Format { .. }) => {
            say!("warning: {e}");
            Calibrations::default()
        }
        read => read.map_err(error)?,
    };
    let pool = models::pool(args.model.threads)?;
    let (graph, _) = load::graph(&args.graph)?;
    let topology = graph.topology();
    let tasks: Vec<Task> = match args.task.as_deref() {
        Some("relation") => vec![Task::Relation],
        Some(_) => vec![Task::Entity],
        None if args.model.model.is_empty() => vec![Task::Entity],
        None => [Task::Entity, Task::Relation].into_iter().filter(|task| models.get(*task).is_ok()).collect(),
    };
    let mut made = Vec::new();
    for &task in &tasks {
        let loaded = models.get(task)?;
        let model = &loaded.model;
        let rule = || model.meta().base_walks(topology.num_nodes(), topology.num_triples());
        let walks = args.walks.unwrap_or_else(rule);
        let ask = Ask { walks, passes: args.passes, seed: args.seed, options: model.walk_options() };
        let options = CalibrateOptions { queries: args.queries, top: args.top, ask };
        let bar = if io::stderr().is_terminal() { ProgressBar::new(0) } else { ProgressBar::hidden() };
        let mut progress = |done: usize, of: usize| {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
            true
        };
        let result = calibrate(model, topology, &pool, &options, &mut progress).map_err(error)?;
        bar.finish_and_clear();
        let Some(result) = result else { continue };
        if let Some(path) = &args.svg {
            let path = if tasks.len() > 1 { with_task(path, task) } else { path.clone() };
            let title = format!("{task} probabilities on {}", args.graph.graph.display());
            write_text(&path, &svg(&title, &result.before, &result.after)).map_err(error)?;
        }
        let c = &result.calibration;
        if c.error_after >= c.error_before {
            say!("warning: {task}: calibrated probabilities fit no better than those before; hint: more --queries");
        }
        kept.set(task, result.calibration.clone());
        made.push((task, result.calibration));
    }
    // Kept first, told after: who reads only the first line still has it.
    let path = kept.write(&args.graph.graph).map_err(error)?;
    let mut out = io::stdout().lock();
    for (task, c) in &made {
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
        writeln!(out, "kept in {}; predict uses it from now on", path.display())?;
    }
    Ok(out.flush()?)
}

fn with_task(path: &Path, task: Task) -> PathBuf {
    path.with_extension(format!("{task}.svg"))
}
