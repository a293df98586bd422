//! Trains and tests on Petals under the published protocol (`docs/reference/model.md`, section 10).
//!
//! Each step takes one instance, in order. Its two targets are two examples with the same query, so
//! each is scored on its own walks. The loss is the sum of their binary cross-entropies. Nothing is
//! hidden. After each epoch all instances are asked, and the weights of the epoch with the best
//! accuracy are kept. The test asks every instance again with `P` passes. An instance is solved if
//! the logit of its true target exceeds that of the false one by more than [`MARGIN`]. Graphs have
//! no inverse types unless the config says so.
//!
//! [`PetalsProtocol::SharedWalks`] is an easier variant: both targets are scored on the walks of
//! one query.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;

use flock_graph::Topology;
use flock_walk::Key;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::ScheduleName;
use crate::data::Order;
use crate::learner::{Learner, StepFailure};
use crate::metrics::{LogLine, MetricsLog};
use crate::petals::test::{TestOutcome, TestSettings, Verdict, ask_all};
use crate::petals::{PetalsConfig, PetalsInstance, PetalsProtocol, instances};
use crate::run::{Event, Meter, RunContext, RunDir, RunningLoss, TrainError, io_error, useful_macs};
use crate::settings::to_json;
use crate::state;
use flock_eval::datasets::DatasetError;
use flock_model::checkpoint::{Checkpoint, Metadata, Task};
use flock_model::init::initial_weights;
use flock_model::model::{Model, View};
use flock_model::step::{BaseLoss, Example, StepInput};

/// By how much the logit of the true target must exceed that of the false one.
pub const MARGIN: f64 = 0.1;

/// Keys that may change when a run is resumed.
const FREE: [&str; 5] = ["threads", "until_solved", "output.dir", "output.log_every", "output.save_seconds"];
const KIND: &str = "petals";

/// The result of a run.
#[derive(Clone, Debug, Serialize)]
pub struct PetalsReport {
    /// Seed of everything.
    pub seed: u64,
    /// Epochs done.
    pub epochs: u64,
    /// Instances solved.
    pub solved: usize,
    /// All instances.
    pub instances: usize,
    /// Share of instances whose true target has a positive logit.
    pub accuracy_true: f64,
    /// Share of instances whose false target has a negative logit.
    pub accuracy_false: f64,
    /// Minutes in total, the test included.
    pub minutes: f64,
    /// How instances were asked.
    pub protocol: PetalsProtocol,
    /// The epoch whose weights were kept and tested.
    pub kept_epoch: u64,
    /// Mean loss of each epoch.
    pub losses: Vec<f64>,
    /// Accuracy after each epoch, by which the published protocol chooses.
    pub accuracies: Vec<f64>,
    /// Base walk count.
    pub walks: u32,
    /// Walk length.
    pub length: usize,
    /// Ensemble passes of the test.
    pub passes: u32,
    /// Path of the weights.
    pub model: String,
}

/// The epoch that is kept, with its weights.
#[derive(Clone, Debug)]
struct ChosenEpoch {
    epoch: u64,
    accuracy: f64,
    weights: Vec<f32>,
}

/// The part of the training state that is not arrays.
#[derive(Serialize, Deserialize)]
struct PetalsHeader {
    kind: String,
    config: Value,
    step: u64,
    pending: RunningLoss,
    losses: Vec<f64>,
    #[serde(default)]
    accuracies: Vec<f64>,
    #[serde(default)]
    kept: Option<(u64, f64)>, // epoch and accuracy of the last array
    verdict: Option<Verdict>, // of the weights that are kept
    tested: u64,
    lines: usize,
    seconds: f64,
    meta: Metadata,
}

/// Trains and tests. Returns `None` if the run was stopped before the end.
pub fn petals(config: &PetalsConfig, dir: &Path, context: RunContext<'_>) -> Result<Option<PetalsReport>, TrainError> {
    let dir = RunDir::open(dir, context.resume)?;
    let all = instances(config.seed);
    let topologies: Vec<Topology> =
        all.iter().map(PetalsInstance::topology).collect::<Result<_, _>>().map_err(DatasetError::from)?;
    let mut run = PetalsRun::start(config, dir, &all, &topologies, context)?;
    run.about();
    if !run.epochs()? {
        run.save()?;
        return Ok(None);
    }
    run.report()
}

/// A run in progress.
struct PetalsRun<'a, 's> {
    config: &'a PetalsConfig,
    dir: RunDir,
    instances: &'a [PetalsInstance],
    topologies: &'a [Topology],
    context: RunContext<'s>,
    resumed_at: Option<u64>,
    learner: Learner,
    pending: RunningLoss,
    losses: Vec<f64>,     // (epochs done)
    accuracies: Vec<f64>, // (epochs judged), published protocol only
    kept: Option<ChosenEpoch>,
    verdict: Option<Verdict>, // of the weights that are kept
    tested: u64,              // the step of the last test between epochs
    metrics: MetricsLog,
    meter: Meter,
    saved: Instant,
}

impl<'a, 's> PetalsRun<'a, 's> {
    fn start(
        config: &'a PetalsConfig,
        dir: RunDir,
        instances: &'a [PetalsInstance],
        topologies: &'a [Topology],
        context: RunContext<'s>,
    ) -> Result<PetalsRun<'a, 's>, TrainError> {
        let steps = config.epochs * instances.len() as u64;
        let old = match dir.has_state() {
            true => Some(state::read::<PetalsHeader>(&dir.state())?),
            false => None,
        };
        if let Some((header, _)) = &old {
            let mut free = FREE.to_vec();
            if config.optimiser.schedule == ScheduleName::Constant && steps >= header.step {
                free.push("epochs");
            }
            let mut before = header.config.clone();
            // Older runs had no choice of protocol.
            if before.get("protocol").is_none() {
                before["protocol"] = to_json(&PetalsProtocol::SharedWalks);
            }
            dir.check_config(&before, config, &free)?;
        }
        let count = instances.len().max(1) as f64;
        let published = Metadata::published(Task::Entity);
        let meta = Metadata {
            updates: config.updates,
            length: config.length,
            inverses: config.inverses,
            n_train: config.walks,
            mean_nodes: instances.iter().map(|i| f64::from(i.num_nodes)).sum::<f64>() / count,
            mean_triples: instances.iter().map(|i| i.triples.len() as f64).sum::<f64>() / count,
            graphs: vec!["Petals".to_string()],
            licence: "MIT OR Apache-2.0".to_string(),
            note: Some(format!("trained on Petals by flock-kg {}, seed {}", env!("CARGO_PKG_VERSION"), config.seed)),
            ..published
        };
        let parameters = initial_weights(meta, config.seed)?.weights;
        let (lines, seconds) = old.as_ref().map_or((0, 0.0), |(h, _)| (h.lines, h.seconds));
        let metrics_path = dir.file("metrics.jsonl");
        let mut run = PetalsRun {
            learner: Learner::new(parameters, &config.optimiser, steps),
            resumed_at: old.as_ref().map(|(h, _)| h.step),
            pending: RunningLoss::default(),
            losses: Vec::new(),
            accuracies: Vec::new(),
            kept: None,
            verdict: None,
            tested: 0,
            metrics: MetricsLog::resume(&metrics_path, lines).map_err(io_error(&metrics_path))?,
            meter: Meter::new(seconds, None, context.peak_gflops),
            saved: Instant::now(),
            config,
            dir,
            instances,
            topologies,
            context,
        };
        match old {
            Some((header, mut arrays)) => {
                run.kept = match header.kept {
                    Some((epoch, accuracy)) => arrays.pop().map(|weights| ChosenEpoch { epoch, accuracy, weights }),
                    None => None,
                };
                let size = run.learner.parameters.values.len();
                let fits = run.kept.as_ref().is_none_or(|kept| kept.weights.len() == size);
                if !fits || !run.learner.restore(header.step, arrays) {
                    let (file, reason) = (run.dir.state().display().to_string(), "its arrays do not fit the model");
                    return Err(state::StateError::Content { file, reason: reason.to_string() }.into());
                }
                (run.pending, run.losses) = (header.pending, header.losses);
                run.accuracies = header.accuracies;
                (run.verdict, run.tested) = (header.verdict, header.tested);
            }
            None => run.save()?,
        }
        Ok(run)
    }

    fn about(&mut self) {
        let c = self.config;
        let line = format!(
            "{} instances of Petals, {} epochs, n = {}, walk length {}, seed {}",
            self.instances.len(),
            c.epochs,
            c.walks,
            c.length,
            c.seed
        );
        (self.context.watch)(Event::Started { about: &[line], resumed: self.resumed_at });
    }

    /// Runs all epochs that are left. Returns false if the run was stopped before the end.
    fn epochs(&mut self) -> Result<bool, TrainError> {
        let per_epoch = self.instances.len() as u64;
        let steps = self.config.epochs * per_epoch;
        loop {
            let step = self.learner.step;
            // A test that was cut off is repeated when the run resumes.
            if step > 0 && step.is_multiple_of(per_epoch) && self.tested < step {
                if !self.judge()? {
                    return Ok(false);
                }
                self.tested = step;
                self.save()?;
            }
            let solved = self.verdict.is_some_and(|v| v.solved == self.instances.len());
            if step >= steps || self.config.until_solved && solved {
                return Ok(true);
            }
            if self.context.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            self.step(steps)?;
            let ended = self.learner.step.is_multiple_of(per_epoch);
            if ended {
                self.end_epoch()?;
            }
            if ended || self.saved.elapsed().as_secs_f64() >= self.config.output.save_seconds {
                self.save()?;
            }
        }
    }

    /// Keeps the weights of the epoch that has just ended if they are better, and tests them if the
    /// run may end with them. Returns false if the run was stopped meanwhile; nothing has changed
    /// then.
    fn judge(&mut self) -> Result<bool, TrainError> {
        let epoch = self.losses.len() as u64;
        let weights = self.learner.shipped().values;
        let accuracy = match self.config.protocol {
            PetalsProtocol::SharedWalks => None,
            PetalsProtocol::Published => {
                let TestOutcome::Done(verdict) = self.test(&weights, self.config.epoch_passes, false)? else {
                    return Ok(false);
                };
                Some(verdict.accuracy(self.instances.len()))
            }
        };
        let better = match (&self.kept, accuracy) {
            (Some(kept), Some(accuracy)) => accuracy > kept.accuracy,
            _ => true,
        };
        let mut verdict = if better { None } else { self.verdict };
        if better && self.config.until_solved {
            match self.test(&weights, self.config.passes, true)? {
                TestOutcome::Stopped => return Ok(false),
                TestOutcome::Unsolved => {}
                TestOutcome::Done(done) => verdict = Some(done),
            }
        }
        if let Some(accuracy) = accuracy {
            self.accuracies.push(accuracy);
            let kept = if better { ", kept" } else { "" };
            let note = format!("epoch {epoch}: accuracy {:.1} %{kept}", 100.0 * accuracy);
            (self.context.watch)(Event::Note(&note));
        }
        if better {
            self.kept = Some(ChosenEpoch { epoch, accuracy: accuracy.unwrap_or(0.0), weights });
        }
        self.verdict = verdict;
        Ok(true)
    }

    /// Returns the training examples of an instance.
    fn examples(&self, instance: &PetalsInstance) -> Vec<Example> {
        let (query, targets) = (instance.query(), [instance.target_true, instance.target_false]);
        match self.config.protocol {
            PetalsProtocol::SharedWalks => vec![Example::new(query, targets.to_vec())],
            PetalsProtocol::Published => {
                let row = |(row, target)| Example { query, candidates: vec![target], truth: row == 0, row };
                (0..).zip(targets).map(row).collect()
            }
        }
    }

    fn step(&mut self, steps: u64) -> Result<(), TrainError> {
        let clock = Instant::now();
        let (config, step) = (self.config, self.learner.step);
        let per_epoch = self.instances.len() as u64;
        let (which, loss) = match config.protocol {
            PetalsProtocol::Published => (step % per_epoch, BaseLoss::SummedBce),
            PetalsProtocol::SharedWalks => {
                let key = Key { seed: config.seed, pass: u32::MAX, update: u32::MAX - 2, query: step / per_epoch };
                (Order::new(key, per_epoch).get(step % per_epoch), BaseLoss::MeanBce)
            }
        };
        let which = which as usize;
        let instance = &self.instances[which];
        let examples = self.examples(instance);
        let input = StepInput {
            view: View { topology: &self.topologies[which], mask: None },
            examples: &examples,
            walks: config.walks,
            seed: config.seed,
            step: step as u32,
            options: self.learner.parameters.meta.walk_options(),
            loss: loss.into(),
        };
        let stats = self.learner.learn(&mut *self.context.gradient, &input).map_err(|failure| match failure {
            StepFailure::Model(e) => e.into(),
            StepFailure::NotFinite { what, .. } => TrainError::NotFinite {
                step: step + 1,
                what,
                graph: format!("Petals instance {which}"),
                query: format!("(b{}, r0, ?)", instance.head),
            },
        })?;
        self.pending.add(stats.loss);
        let walks = examples.iter().map(|e| e.query.num_walks(config.walks)).sum();
        self.meter.step(clock.elapsed(), useful_macs(&self.learner.parameters.meta, walks));
        let progress = self.meter.progress(self.learner.step, steps, self.pending.mean());
        (self.context.watch)(Event::Step(progress));
        Ok(())
    }

    fn end_epoch(&mut self) -> Result<(), TrainError> {
        let loss = std::mem::take(&mut self.pending).mean();
        self.losses.push(loss);
        let (steps_per_s, ratio) = self.meter.speed();
        let (step, seconds) = (self.learner.step, self.meter.seconds());
        let record = LogLine { step, seconds, loss: Some(loss), steps_per_s, ratio, ..LogLine::default() };
        self.metrics.append(&record).map_err(io_error(&self.dir.file("metrics.jsonl")))?;
        (self.context.watch)(Event::Logged(&record));
        let note = format!("epoch {} of {}: loss {loss:.4}", self.losses.len(), self.config.epochs);
        (self.context.watch)(Event::Note(&note));
        Ok(())
    }

    /// Asks every instance. With `all_or_nothing`, stops at the first that is not solved.
    fn test(&mut self, weights: &[f32], passes: u32, all_or_nothing: bool) -> Result<TestOutcome, TrainError> {
        let tested = self.learner.parameters.with_values(weights.to_vec());
        let model = Model::new(&Checkpoint::new(tested)?, self.context.engine)?;
        let PetalsConfig { protocol, walks, seed, .. } = *self.config;
        let settings = TestSettings { protocol, walks, passes, seed, all_or_nothing };
        let all = (self.instances, self.topologies);
        ask_all(&model, all, settings, self.context.pool, self.context.stop, &mut *self.context.watch)
    }

    fn save(&mut self) -> Result<(), TrainError> {
        self.metrics.sync().map_err(io_error(&self.dir.file("metrics.jsonl")))?;
        let header = PetalsHeader {
            kind: KIND.to_string(),
            config: to_json(self.config),
            step: self.learner.step,
            pending: self.pending,
            losses: self.losses.clone(),
            accuracies: self.accuracies.clone(),
            kept: self.kept.as_ref().map(|kept| (kept.epoch, kept.accuracy)),
            verdict: self.verdict,
            tested: self.tested,
            lines: self.metrics.lines,
            seconds: self.meter.seconds(),
            meta: self.learner.parameters.meta.clone(),
        };
        let mut arrays = self.learner.arrays();
        arrays.extend(self.kept.as_ref().map(|kept| &kept.weights[..]));
        state::write(&self.dir.state(), &header, &arrays)?;
        self.saved = Instant::now();
        Ok(())
    }

    /// Tests, unless that has been done. Returns `None` if the run was stopped meanwhile.
    fn report(mut self) -> Result<Option<PetalsReport>, TrainError> {
        let (kept_epoch, weights) = match &self.kept {
            Some(kept) => (kept.epoch, kept.weights.clone()),
            None => (self.losses.len() as u64, self.learner.shipped().values),
        };
        let verdict = match self.verdict {
            Some(verdict) => verdict,
            None => {
                let TestOutcome::Done(verdict) = self.test(&weights, self.config.passes, false)? else {
                    return Ok(None);
                };
                self.verdict = Some(verdict);
                self.save()?;
                verdict
            }
        };
        let mut shipped = self.learner.parameters.with_values(weights);
        shipped.meta.steps = kept_epoch * self.instances.len() as u64;
        let path = self.dir.file("last.safetensors");
        Checkpoint::new(shipped)?.write(&path)?;
        let share = |count: usize| count as f64 / self.instances.len() as f64;
        Ok(Some(PetalsReport {
            seed: self.config.seed,
            epochs: self.losses.len() as u64,
            solved: verdict.solved,
            instances: self.instances.len(),
            accuracy_true: share(verdict.positive),
            accuracy_false: share(verdict.negative),
            minutes: self.meter.seconds() / 60.0,
            protocol: self.config.protocol,
            kept_epoch,
            losses: self.losses,
            accuracies: self.accuracies,
            walks: self.config.walks,
            length: self.config.length,
            passes: self.config.passes,
            model: path.display().to_string(),
        }))
    }
}
