//! `flock-kg calibrate`: probabilities that fit one's own graph.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use flock_kg::calibrate::{CalibrateOptions, Calibrations, calibrate, svg};
use flock_kg::checkpoint::Task;
use flock_kg::ensemble::Ask;
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
    let mut kept = beside(&args.graph.graph)?;
    let pool = models::pool(args.model.threads)?;
    let (graph, _) = load::graph(&args.graph)?;
    let topology = graph.topology();
    let tasks: Vec<Task> = match args.task.as_deref() {
        Some("relation") => vec![Task::Relation],
        Some(_) => vec![Task::Entity],
        None if args.model.model.is_empty() => vec![Task::Entity],
        None => [Task::Entity, Task::Relation].into_iter().filter(|task| models.get(*task).is_ok()).collect(),
    };
    let mut out = io::stdout().lock();
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
            let temporary = path.with_extension("svg.tmp");
            let written = fs::write(&temporary, svg(&title, &result.before, &result.after));
            let written = written.and_then(|()| fs::rename(&temporary, &path));
            written.map_err(|e| format!("{}: cannot write: {e}", path.display()))?;
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
        kept.set(task, result.calibration);
    }
    let path = kept.write(&args.graph.graph).map_err(error)?;
    if !args.json {
        writeln!(out, "kept in {}; predict uses it from now on", path.display())?;
    }
    Ok(out.flush()?)
}

fn with_task(path: &Path, task: Task) -> PathBuf {
    path.with_extension(format!("{task}.svg"))
}
