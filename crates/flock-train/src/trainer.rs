//! Pretraining and fine-tuning: the loop, and what makes it survive a kill at any moment.
//!
//! A step is a pure function of the weights, the optimiser's moments, the config and the data
//! state. These together are the training state. When a state is written does not change the
//! weights, so a run that was killed and resumed ends in the same bits as one that was not.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::{BaseLossName, ScheduleName, TrainConfig};
use crate::data::{DataState, Feed, Origin};
use crate::learner::{Learner, StepFailure, StepStats};
use crate::metrics::{self, LogLine, MetricsLog};
use crate::run::{Event, Meter, RunContext, RunDir, RunningLoss, TrainError, io_error, useful_macs};
use crate::settings::to_json;
use crate::start::{config_hash, first_weights, started_from};
use crate::{curve, state, validate};
use flock_eval::datasets::{self, Fingerprint, NamedGraph, TestSet, TrainingGraph};
use flock_model::checkpoint::{Checkpoint, Metadata, Task};
use flock_model::files::write_atomically;
use flock_model::model::{Model, View};
use flock_model::step::{Example, StepInput};
use flock_model::weights::Weights;

/// Keys that may change when a run is resumed, because they do not change the weights. Graphs are
/// compared by content.
const FREE: [&str; 6] = ["threads", "minutes", "data.graphs", "output.dir", "output.log_every", "output.save_seconds"];

/// The result of a run.
#[derive(Clone, Debug, Serialize)]
pub struct TrainSummary {
    /// The task.
    pub task: Task,
    /// The training graphs.
    pub graphs: Vec<String>,
    /// Steps done in total.
    pub steps: u64,
    /// Whether the run has ended: all steps are done, or its minutes are used up. If not, it was
    /// stopped and can be resumed.
    pub finished: bool,
    /// Steps that were done already when the run was resumed.
    pub resumed_at: Option<u64>,
    /// Minutes in total.
    pub minutes: f64,
    /// Mean loss of the last logged interval.
    pub loss: Option<f64>,
    /// Validation MRR of the checkpoint that the run started from.
    pub before: Option<f64>,
    /// The best validation. The weights that the run started from are a candidate.
    pub best: Option<BestValidation>,
    /// Validation MRR of the best weights minus that of the start.
    pub gain: Option<f64>,
    /// Directory of the run.
    pub dir: String,
    /// The checkpoint to use: the best one, or the last one if there is no validation.
    pub model: String,
    /// The chart of loss and MRR.
    pub curve: String,
}

/// The best validation of a run so far.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BestValidation {
    /// Steps done at that time.
    pub step: u64,
    /// Its MRR, mean over graphs.
    pub mrr: f64,
}

/// The part of the training state that is not arrays.
#[derive(Serialize, Deserialize)]
struct TrainHeader {
    kind: String,
    config: Value,
    config_hash: String,
    step: u64,
    data: DataState,
    validated: Option<u64>, // older states have 0 for none
    lines: usize,
    #[serde(default)]
    before: Option<f64>,
    best: Option<BestValidation>,
    pending: RunningLoss,
    seconds: f64,
    graphs: Vec<Fingerprint>,
    meta: Metadata,
    simd: String,
}

const KIND: &str = "train";

/// Trains on the files of `data.graphs` until the steps or the minutes of the config are over, or
/// until it is stopped. `dir` is the directory of the run.
pub fn train(config: &TrainConfig, dir: &Path, context: RunContext<'_>) -> Result<TrainSummary, TrainError> {
    config.check_files()?;
    let dir = RunDir::open(dir, context.resume)?;
    let mut graphs = Vec::new();
    for path in &config.data.graphs {
        let graph = datasets::training(path, &config.load_options(), config.data.holdout, config.seed)?;
        if let Some(note) = &graph.left_out {
            (context.watch)(Event::Note(note));
        }
        graphs.push(graph);
    }
    train_in(config, graphs, dir, context)
}

/// As [`train()`], on graphs in memory, which [`datasets::training_graph`] makes. `data.graphs`,
/// `data.holdout` and the settings for reading files are not used. A run is resumed with the same
/// graphs under the same names, in the same order.
pub fn train_on(
    config: &TrainConfig,
    graphs: Vec<TrainingGraph>,
    dir: &Path,
    context: RunContext<'_>,
) -> Result<TrainSummary, TrainError> {
    config.check()?;
    let dir = RunDir::open(dir, context.resume)?;
    train_in(config, graphs, dir, context)
}

fn train_in(
    config: &TrainConfig,
    training: Vec<TrainingGraph>,
    dir: RunDir,
    context: RunContext<'_>,
) -> Result<TrainSummary, TrainError> {
    let config = &started_from(config, context.start);
    let (mut graphs, mut sets) = (Vec::new(), Vec::new());
    for TrainingGraph { graph, validation, .. } in training {
        graphs.push(graph);
        sets.extend(validation);
    }
    for path in &config.validation.extra {
        sets.push(datasets::validation(path)?);
    }
    if config.validation.every == 0 {
        sets.clear();
    }
    sets.iter_mut().for_each(|set| set.sample(config.validation.triples, config.validation.seed));

    let topologies: Vec<_> = graphs.iter().map(|g| g.topology()).collect();
    let feed = Feed::new(&topologies, config.data(), config.seed)?;
    let mut run = TrainRun::start(config, dir, &graphs, &sets, &feed, context)?;
    run.about();
    let finished = run.steps()?;
    run.finish(finished)
}

/// A run in progress.
struct TrainRun<'a, 's> {
    config: &'a TrainConfig,
    dir: RunDir,
    graphs: &'a [Arc<NamedGraph>],
    sets: &'a [TestSet],
    feed: &'a Feed<'a>,
    context: RunContext<'s>,
    fingerprints: Vec<Fingerprint>,
    start_steps: u64, // of the checkpoint that the run started from
    resumed_at: Option<u64>,
    learner: Learner,
    data: DataState,
    validated: Option<u64>, // the step of the last validation
    before: Option<f64>,    // its MRR at step 0
    best: Option<BestValidation>,
    pending: RunningLoss,
    last_step: Option<StepStats>, // of this sitting
    metrics: MetricsLog,
    meter: Meter,
    saved: Instant,
}

impl<'a, 's> TrainRun<'a, 's> {
    /// Starts from the state in the directory, or from the beginning.
    fn start(
        config: &'a TrainConfig,
        dir: RunDir,
        graphs: &'a [Arc<NamedGraph>],
        sets: &'a [TestSet],
        feed: &'a Feed<'a>,
        context: RunContext<'s>,
    ) -> Result<TrainRun<'a, 's>, TrainError> {
        let fingerprints: Vec<Fingerprint> = graphs.iter().map(|g| g.fingerprint()).collect();
        let old = match dir.has_state() {
            true => Some(state::read::<TrainHeader>(&dir.state())?),
            false => None,
        };
        let parameters = match &old {
            Some((header, _)) => {
                check_state(config, &dir, header, &fingerprints)?;
                header.meta.check()?;
                Weights::zeros(header.meta.clone())
            }
            None => first_weights(config, &fingerprints, &context)?.weights,
        };
        // Refused now rather than at the first validation.
        Model::new(&Checkpoint::new(parameters.clone())?, context.engine)?;
        let metrics_path = dir.file("metrics.jsonl");
        let (lines, seconds) = old.as_ref().map_or((0, 0.0), |(h, _)| (h.lines, h.seconds));
        let mut run = TrainRun {
            start_steps: parameters.meta.steps,
            learner: Learner::new(parameters, &config.optimiser, config.steps),
            data: feed.start(),
            validated: None,
            before: None,
            best: None,
            pending: RunningLoss::default(),
            last_step: None,
            resumed_at: None,
            metrics: MetricsLog::resume(&metrics_path, lines).map_err(io_error(&metrics_path))?,
            meter: Meter::new(seconds, config.minutes.map(|minutes| 60.0 * minutes), context.peak_gflops),
            saved: Instant::now(),
            config,
            dir,
            graphs,
            sets,
            feed,
            context,
            fingerprints,
        };
        match old {
            Some((header, arrays)) => run.restore(header, arrays)?,
            // From now on the directory belongs to this run, and another config is refused.
            None => run.save()?,
        }
        Ok(run)
    }

    fn restore(&mut self, header: TrainHeader, arrays: Vec<Vec<f32>>) -> Result<(), TrainError> {
        let simd = self.context.engine.level().to_string();
        if header.simd != simd {
            let note =
                format!("the run so far used {}, this machine uses {simd}: the last bits may differ", header.simd);
            (self.context.watch)(Event::Note(&note));
        }
        if !self.learner.restore(header.step, arrays) {
            let reason = "its arrays do not fit the model".to_string();
            return Err(state::StateError::Content { file: self.dir.state().display().to_string(), reason }.into());
        }
        self.resumed_at = Some(header.step);
        (self.data, self.validated) = (header.data, header.validated);
        (self.before, self.best, self.pending) = (header.before, header.best, header.pending);
        Ok(())
    }

    fn about(&mut self) {
        let graph = |f: &Fingerprint| {
            format!("{}: {} entities, {} relations, {} triples", f.name, f.entities, f.relations, f.triples)
        };
        let mut lines: Vec<String> = self.fingerprints.iter().map(graph).collect();
        let meta = &self.learner.parameters.meta;
        lines.push(format!(
            "{} model, {}, {} parameters{}",
            meta.task,
            meta.sizes_in_words(),
            meta.num_parameters(),
            meta.switches()
        ));
        let names: Vec<String> = self.sets.iter().map(|s| format!("{} of {}", s.triples.len(), s.on.name)).collect();
        lines.push(match names.is_empty() {
            true => "no validation".to_string(),
            false => format!("validation triples: {}", names.join(", ")),
        });
        (self.context.watch)(Event::Started { about: &lines, resumed: self.resumed_at });
    }

    /// Returns whether the run ends here: all steps are done, or its time is used up. That takes one
    /// step at least.
    fn is_over(&self) -> bool {
        self.learner.step >= self.config.steps || self.learner.step > 0 && self.meter.is_over()
    }

    /// Runs all steps that are left. Returns false if the run was stopped before the end.
    fn steps(&mut self) -> Result<bool, TrainError> {
        let (config, stop) = (self.config, self.context.stop);
        loop {
            let (step, last) = (self.learner.step, self.is_over());
            if last && self.pending.count > 0 {
                self.log()?;
            }
            // The weights that a run starts from are a candidate for the best. Random weights are
            // not worth the time.
            let worth = step > 0 || config.model.from.is_some();
            let due = !self.sets.is_empty() && worth && (step.is_multiple_of(config.validation.every) || last);
            // A validation that was cut off is repeated when the run resumes.
            if due && self.validated.is_none_or(|validated| validated < step) {
                if !self.validate()? {
                    return Ok(false);
                }
                self.save()?;
            }
            if last {
                return Ok(true);
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            // The validation may have used up the time.
            if self.is_over() {
                continue;
            }
            self.last_step = Some(self.step()?);
            if self.learner.step.is_multiple_of(config.output.log_every) || self.is_over() {
                self.log()?;
            }
            if self.saved.elapsed().as_secs_f64() >= config.output.save_seconds {
                self.save()?;
            }
        }
    }

    fn step(&mut self) -> Result<StepStats, TrainError> {
        let clock = Instant::now();
        let batch = self.feed.batch(&self.data)?;
        let graphs = self.graphs;
        // A world's batch brings its own graph; the first one only stands in.
        let graph = match batch.origin {
            Origin::Graph(graph) => &graphs[graph],
            Origin::World => &graphs[0],
        };
        let topology = batch.topology(graph.topology());
        let pairs = batch.queries.iter().zip(&batch.candidates);
        let examples: Vec<Example> =
            pairs.map(|(query, candidates)| Example::new(*query, candidates.clone())).collect();
        let meta = &self.learner.parameters.meta;
        let walks = self.config.walks.n.on(meta, topology.num_nodes(), topology.num_triples());
        let input = StepInput {
            view: View { topology, mask: Some(&batch.mask) },
            examples: &examples,
            walks,
            seed: self.config.seed,
            // The config keeps steps below the last pass.
            step: self.learner.step as u32,
            options: meta.walk_options(),
            loss: self.config.loss(),
        };
        let stats = self.learner.learn(&mut *self.context.gradient, &input).map_err(|failure| match failure {
            StepFailure::Model(e) => e.into(),
            StepFailure::NotFinite { example, what } => {
                let (step, query) = (self.data.step + 1, &examples[example].query);
                let (graph, query) = match batch.origin {
                    Origin::Graph(_) => (graph.name.clone(), graph.describe(query, batch.subgraph.as_ref())),
                    Origin::World => ("a synthetic world".to_string(), format!("{query:?}")),
                };
                TrainError::NotFinite { step, what, graph, query }
            }
        })?;
        self.feed.advance(&mut self.data)?;
        self.pending.add(stats.loss);
        let walks = examples.iter().map(|e| e.query.num_walks(walks)).sum();
        self.meter.step(clock.elapsed(), useful_macs(&self.learner.parameters.meta, walks));
        let progress = self.meter.progress(self.learner.step, self.config.steps, self.pending.mean());
        (self.context.watch)(Event::Step(progress));
        Ok(stats)
    }

    fn log(&mut self) -> Result<(), TrainError> {
        let (steps_per_s, ratio) = self.meter.speed();
        let stats = self.last_step.as_ref();
        let pending = std::mem::take(&mut self.pending);
        self.record(LogLine {
            loss: Some(pending.mean()),
            rate: stats.map(|s| s.rate),
            norm: stats.map(|s| s.norm),
            steps_per_s,
            ratio,
            ..LogLine::default()
        })
    }

    fn record(&mut self, record: LogLine) -> Result<(), TrainError> {
        let record = LogLine { step: self.learner.step, seconds: self.meter.seconds(), ..record };
        self.metrics.append(&record).map_err(io_error(&self.dir.file("metrics.jsonl")))?;
        (self.context.watch)(Event::Logged(&record));
        Ok(())
    }

    /// Validates. Returns false if the run was stopped meanwhile; nothing has changed then.
    fn validate(&mut self) -> Result<bool, TrainError> {
        let checkpoint = self.shipped()?;
        let model = Model::new(&checkpoint, self.context.engine)?;
        let (watch, stop) = (&mut *self.context.watch, self.context.stop);
        let mut progress = |done, total| {
            watch(Event::Testing { done, total });
            !stop.load(Ordering::Relaxed)
        };
        let scores = validate::mrr(&model, self.sets, self.config, self.context.pool, &mut progress)?;
        let Some(scores) = scores else { return Ok(false) };
        let mrr = scores.iter().map(|(_, mrr)| mrr).sum::<f64>() / scores.len() as f64;
        if self.best.is_none_or(|best| mrr > best.mrr) {
            self.best = Some(BestValidation { step: self.learner.step, mrr });
            checkpoint.write(self.dir.file("best.safetensors"))?;
        }
        self.validated = Some(self.learner.step);
        if self.learner.step == 0 {
            self.before = Some(mrr);
        }
        self.write_last()?;
        self.record(LogLine { mrr: Some(mrr), graphs: scores.into_iter().collect(), ..LogLine::default() })?;
        Ok(true)
    }

    /// Makes a checkpoint of some weights at the current step.
    fn checkpoint(&self, parameters: &Weights, note: &str) -> Result<Checkpoint, TrainError> {
        let mut parameters = parameters.clone();
        let meta = &mut parameters.meta;
        meta.steps = self.start_steps + self.learner.step;
        meta.note = meta.note.take().map(|n| n + note);
        Ok(Checkpoint::new(parameters)?)
    }

    /// Makes the checkpoint to validate and ship: the average, if there is one.
    fn shipped(&self) -> Result<Checkpoint, TrainError> {
        let note = self.config.optimiser.ema.map_or(String::new(), |d| format!("; moving average of decay {d}"));
        self.checkpoint(&self.learner.shipped(), &note)
    }

    fn write_last(&self) -> Result<(), TrainError> {
        self.checkpoint(&self.learner.parameters, "")?.write(self.dir.file("last.safetensors"))?;
        if self.learner.average.is_some() {
            self.shipped()?.write(self.dir.file("ema.safetensors"))?;
        }
        Ok(())
    }

    fn save(&mut self) -> Result<(), TrainError> {
        self.metrics.sync().map_err(io_error(&self.dir.file("metrics.jsonl")))?;
        let config = to_json(self.config);
        let header = TrainHeader {
            kind: KIND.to_string(),
            config_hash: config_hash(self.config),
            config,
            step: self.learner.step,
            data: self.data.clone(),
            validated: self.validated,
            lines: self.metrics.lines,
            before: self.before,
            best: self.best,
            pending: self.pending,
            seconds: self.meter.seconds(),
            graphs: self.fingerprints.clone(),
            meta: self.learner.parameters.meta.clone(),
            simd: self.context.engine.level().to_string(),
        };
        state::write(&self.dir.state(), &header, &self.learner.arrays())?;
        self.saved = Instant::now();
        Ok(())
    }

    /// Writes state, checkpoints and chart, and returns the summary. Also for a run that had ended
    /// before, whose files may be missing.
    fn finish(mut self, finished: bool) -> Result<TrainSummary, TrainError> {
        self.save()?;
        self.write_last()?;
        let metrics_path = self.dir.file("metrics.jsonl");
        let records = metrics::read(&metrics_path).map_err(io_error(&metrics_path))?;
        let curve_path = self.dir.file("curve.svg");
        let title = format!("{} · {} steps", self.learner.parameters.meta.graphs.join(", "), self.learner.step);
        write_atomically(&curve_path, curve::svg(&title, &records).as_bytes()).map_err(io_error(&curve_path))?;
        let model = match (self.best, &self.learner.average) {
            (Some(_), _) => "best.safetensors",
            (None, Some(_)) => "ema.safetensors",
            (None, None) => "last.safetensors",
        };
        Ok(TrainSummary {
            task: self.config.task,
            graphs: self.graphs.iter().map(|g| g.name.clone()).collect(),
            steps: self.learner.step,
            finished,
            resumed_at: self.resumed_at,
            minutes: self.meter.seconds() / 60.0,
            loss: records.iter().rev().find_map(|r| r.loss),
            before: self.before,
            best: self.best,
            gain: self.best.zip(self.before).map(|(best, before)| best.mrr - before),
            model: self.dir.file(model).display().to_string(),
            curve: curve_path.display().to_string(),
            dir: self.dir.name(),
        })
    }
}

/// Refuses the state of another run.
fn check_state(
    config: &TrainConfig,
    dir: &RunDir,
    header: &TrainHeader,
    graphs: &[Fingerprint],
) -> Result<(), TrainError> {
    let mut free = FREE.to_vec();
    // Where no schedule depends on it, a run may be made longer.
    if config.optimiser.schedule == ScheduleName::Constant && config.steps >= header.step {
        free.push("steps");
    }
    dir.check_config(&with_older_defaults(&header.config), config, &free)?;
    if header.graphs != graphs {
        let list = |graphs: &[Fingerprint]| {
            let one =
                |f: &Fingerprint| format!("{} ({} triples, {})", f.name, f.triples, &f.sha256[..f.sha256.len().min(8)]);
            graphs.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        return Err(TrainError::OtherGraph { dir: dir.name(), old: list(&header.graphs), new: list(graphs) });
    }
    Ok(())
}

/// Fills in what older configs did not state: relations were trained with the mean.
fn with_older_defaults(config: &Value) -> Value {
    let mut config = config.clone();
    let relation = config["task"] == to_json(&Task::Relation);
    if let Some(loss) = config.get_mut("loss").and_then(Value::as_object_mut)
        && relation
    {
        loss.entry("base").or_insert(to_json(&BaseLossName::MeanBce));
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_run_on_relations_had_the_mean() {
        let place = tempfile::tempdir().unwrap();
        let dir = RunDir::open(place.path(), false).unwrap();
        for (task, base) in [(Task::Relation, BaseLossName::MeanBce), (Task::Entity, BaseLossName::SelfAdversarial)] {
            let mut config = TrainConfig::pretraining(task);
            let mut old = to_json(&config);
            old["loss"].as_object_mut().unwrap().remove("base");
            config.loss.base = base;
            dir.check_config(&with_older_defaults(&old), &config, &[]).unwrap();
            config.loss.base = match base {
                BaseLossName::MeanBce => BaseLossName::SelfAdversarial,
                BaseLossName::SelfAdversarial => BaseLossName::MeanBce,
            };
            let error = dir.check_config(&with_older_defaults(&old), &config, &[]).unwrap_err().to_string();
            assert!(error.contains("loss.base"), "{error}");
        }
    }
}
