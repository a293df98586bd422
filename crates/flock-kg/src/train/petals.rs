//! Training on Petals under the published protocol (section 10 of the specification).
//!
//! One instance a step, in an order of its own each epoch; binary cross-entropy on its two targets; nothing hidden. The test asks
//! every instance again with `P` passes: it is solved if the true target's logit is above the false one's by more than
//! [`MARGIN`]. Graphs have no inverses unless the config says otherwise.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;

use flock_graph::Topology;
use flock_walk::{Key, WalkOptions};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::config::{PetalsConfig, ScheduleName};
use super::learner::{Learner, StepFailure};
use super::metrics::{Metrics, Record};
use super::run::{Event, Meter, Pending, RunDir, Session, TrainError, io_error, useful_macs};
use super::settings::to_json;
use super::{Example, Published, StepInput, state};
use crate::checkpoint::{Metadata, Task};
use crate::data::Order;
use crate::datasets::DatasetError;
use crate::ensemble::{Ask, Asker};
use crate::init::initial_weights;
use crate::model::{Model, View};
use crate::parameters::Parameters;
use crate::petals::{PetalsInstance, instances};

/// How far the true target's logit must be above the false one's.
pub const MARGIN: f64 = 0.1;

/// Keys that may change when a run is resumed.
const FREE: [&str; 5] = ["threads", "until_solved", "output.dir", "output.log_every", "output.save_seconds"];
const KIND: &str = "petals";
/// Sets the test's walks apart from those of training.
const TEST: u64 = 0x7465_7374;

/// What came of a run.
#[derive(Clone, Debug, Serialize)]
pub struct PetalsReport {
    /// Seed of everything.
    pub seed: u64,
    /// Epochs done.
    pub epochs: u64,
    /// Instances solved.
    pub solved: usize,
    /// Of so many.
    pub instances: usize,
    /// Share of instances whose true target has a positive logit.
    pub accuracy_true: f64,
    /// Share of instances whose false target has a negative logit.
    pub accuracy_false: f64,
    /// Minutes, over all sittings, the test included.
    pub minutes: f64,
    /// Mean loss of each epoch.
    pub losses: Vec<f64>,
    /// Base walk count.
    pub walks: u32,
    /// Walk length.
    pub length: usize,
    /// Ensemble passes of the test.
    pub passes: u32,
    /// The weights.
    pub model: String,
}

/// What the test of all instances found.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Verdict {
    solved: usize,
    positive: usize,
    negative: usize,
}

/// How a test ended.
enum Outcome {
    Done(Verdict),
    Unsolved,
    Stopped,
}

#[derive(Serialize, Deserialize)]
struct Header {
    kind: String,
    config: Value,
    step: u64,
    pending: Pending,
    losses: Vec<f64>,
    verdict: Option<Verdict>, // of the weights as they are
    tested: u64,
    lines: usize,
    seconds: f64,
    meta: Metadata,
}

/// Trains and tests; `None` if told to stop before the end.
pub fn petals(config: &PetalsConfig, dir: &Path, session: Session<'_>) -> Result<Option<PetalsReport>, TrainError> {
    let dir = RunDir::open(dir, session.resume)?;
    let all = instances(config.seed);
    let topologies: Vec<Topology> =
        all.iter().map(PetalsInstance::topology).collect::<Result<_, _>>().map_err(DatasetError::from)?;
    let mut run = Run::start(config, dir, &all, &topologies, session)?;
    run.about();
    if !run.epochs()? {
        run.save()?;
        return Ok(None);
    }
    run.report()
}

struct Run<'a, 's> {
    config: &'a PetalsConfig,
    dir: RunDir,
    instances: &'a [PetalsInstance],
    topologies: &'a [Topology],
    session: Session<'s>,
    resumed_at: Option<u64>,
    learner: Learner,
    pending: Pending,
    losses: Vec<f64>, // (epochs done)
    verdict: Option<Verdict>,
    tested: u64, // the step of the last test between epochs
    metrics: Metrics,
    meter: Meter,
    saved: Instant,
}

impl<'a, 's> Run<'a, 's> {
    fn start(
        config: &'a PetalsConfig,
        dir: RunDir,
        instances: &'a [PetalsInstance],
        topologies: &'a [Topology],
        session: Session<'s>,
    ) -> Result<Run<'a, 's>, TrainError> {
        let steps = config.epochs * instances.len() as u64;
        let old = match dir.has_state() {
            true => Some(state::read::<Header>(&dir.state())?),
            false => None,
        };
        if let Some((header, _)) = &old {
            let mut free = FREE.to_vec();
            if config.optimiser.schedule == ScheduleName::Constant && steps >= header.step {
                free.push("epochs");
            }
            dir.check_config(&header.config, config, &free)?;
        }
        let count = instances.len().max(1) as f64;
        let published = Metadata::published(Task::Entity);
        let meta = Metadata {
            updates: config.updates,
            length: config.length,
            n_train: config.walks,
            mean_nodes: instances.iter().map(|i| f64::from(i.num_nodes)).sum::<f64>() / count,
            mean_triples: instances.iter().map(|i| i.triples.len() as f64).sum::<f64>() / count,
            graphs: vec!["Petals".to_string()],
            licence: "MIT OR Apache-2.0".to_string(),
            note: Some(format!("trained on Petals by flock-kg {}, seed {}", env!("CARGO_PKG_VERSION"), config.seed)),
            ..published
        };
        let parameters = Parameters::from_checkpoint(&initial_weights(meta, config.seed)?);
        let (lines, seconds) = old.as_ref().map_or((0, 0.0), |(h, _)| (h.lines, h.seconds));
        let metrics_path = dir.file("metrics.jsonl");
        let mut run = Run {
            learner: Learner::new(parameters, &config.optimiser, steps),
            resumed_at: old.as_ref().map(|(h, _)| h.step),
            pending: Pending::default(),
            losses: Vec::new(),
            verdict: None,
            tested: 0,
            metrics: Metrics::resume(&metrics_path, lines).map_err(io_error(&metrics_path))?,
            meter: Meter::new(seconds, session.peak_gflops),
            saved: Instant::now(),
            config,
            dir,
            instances,
            topologies,
            session,
        };
        match old {
            Some((header, arrays)) => {
                if !run.learner.restore(header.step, arrays) {
                    let (file, reason) = (run.dir.state().display().to_string(), "its arrays do not fit the model");
                    return Err(state::StateError::Content { file, reason: reason.to_string() }.into());
                }
                (run.pending, run.losses) = (header.pending, header.losses);
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
        (self.session.watch)(Event::Started { about: &[line], resumed: self.resumed_at });
    }

    /// All epochs that are left; false if told to stop before the end.
    fn epochs(&mut self) -> Result<bool, TrainError> {
        let per_epoch = self.instances.len() as u64;
        let steps = self.config.epochs * per_epoch;
        loop {
            let step = self.learner.step;
            // Due until done: a test that was cut off is made up for when the run goes on.
            if self.config.until_solved && step > 0 && step.is_multiple_of(per_epoch) && self.tested < step {
                match self.test(true)? {
                    Outcome::Stopped => return Ok(false),
                    Outcome::Unsolved => {}
                    Outcome::Done(verdict) => self.verdict = Some(verdict),
                }
                self.tested = step;
                self.save()?;
            }
            let solved = self.verdict.is_some_and(|v| v.solved == self.instances.len());
            if step >= steps || self.config.until_solved && solved {
                return Ok(true);
            }
            if self.session.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            self.verdict = None;
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

    fn step(&mut self, steps: u64) -> Result<(), TrainError> {
        let clock = Instant::now();
        let (config, step) = (self.config, self.learner.step);
        let per_epoch = self.instances.len() as u64;
        let key = Key { seed: config.seed, pass: u32::MAX, update: u32::MAX - 2, query: step / per_epoch };
        let which = Order::new(key, per_epoch).get(step % per_epoch) as usize;
        let instance = &self.instances[which];
        let candidates = vec![instance.target_true, instance.target_false];
        let examples = [Example { query: instance.query(), candidates }];
        let input = StepInput {
            view: View { topology: &self.topologies[which], mask: None },
            examples: &examples,
            walks: config.walks,
            seed: config.seed,
            step: step as u32,
            options: WalkOptions { inverses: config.inverses, ..WalkOptions::default() },
            loss: Published::MeanBce.into(),
        };
        let learnt = self.learner.learn(&mut *self.session.gradient, &input).map_err(|failure| match failure {
            StepFailure::Model(e) => e.into(),
            StepFailure::NotFinite { what, .. } => TrainError::NotFinite {
                step: step + 1,
                what,
                graph: format!("Petals instance {which}"),
                query: format!("(b{}, r0, ?)", instance.head),
            },
        })?;
        self.pending.add(learnt.loss);
        let macs = useful_macs(examples[0].query.num_walks(config.walks), config.length, config.updates);
        self.meter.step(clock.elapsed(), macs);
        let progress = self.meter.progress(self.learner.step, steps, self.pending.mean());
        (self.session.watch)(Event::Step(progress));
        Ok(())
    }

    fn end_epoch(&mut self) -> Result<(), TrainError> {
        let loss = std::mem::take(&mut self.pending).mean();
        self.losses.push(loss);
        let (steps_per_s, ratio) = self.meter.speed();
        let (step, seconds) = (self.learner.step, self.meter.seconds());
        let record = Record { step, seconds, loss: Some(loss), steps_per_s, ratio, ..Record::default() };
        self.metrics.append(&record).map_err(io_error(&self.dir.file("metrics.jsonl")))?;
        (self.session.watch)(Event::Logged(&record));
        let note = format!("epoch {} of {}: loss {loss:.4}", self.losses.len(), self.config.epochs);
        (self.session.watch)(Event::Note(&note));
        Ok(())
    }

    /// Asks every instance; with `all_or_nothing` gives up at the first that is not solved.
    fn test(&mut self, all_or_nothing: bool) -> Result<Outcome, TrainError> {
        let model = Model::new(&self.learner.shipped().to_checkpoint()?, self.session.engine)?;
        let c = self.config;
        let options = WalkOptions { inverses: c.inverses, ..model.walk_options() };
        let ask = Ask { walks: c.walks, passes: c.passes, seed: c.seed ^ TEST, options };
        let mut verdict = Verdict { solved: 0, positive: 0, negative: 0 };
        for (i, (instance, topology)) in self.instances.iter().zip(self.topologies).enumerate() {
            let asker = Asker::new(&model, View { topology, mask: None }, self.session.pool);
            for scores in asker.ask(&[instance.query()], ask)? {
                let [yes, no] = [instance.target_true, instance.target_false].map(|target| scores.of(target).logit);
                verdict.solved += usize::from(yes - no > MARGIN);
                verdict.positive += usize::from(yes > 0.0);
                verdict.negative += usize::from(no < 0.0);
            }
            (self.session.watch)(Event::Testing { done: i + 1, total: self.instances.len() });
            if all_or_nothing && verdict.solved <= i {
                return Ok(Outcome::Unsolved);
            }
            if self.session.stop.load(Ordering::Relaxed) {
                return Ok(Outcome::Stopped);
            }
        }
        Ok(Outcome::Done(verdict))
    }

    fn save(&mut self) -> Result<(), TrainError> {
        self.metrics.sync().map_err(io_error(&self.dir.file("metrics.jsonl")))?;
        let header = Header {
            kind: KIND.to_string(),
            config: to_json(self.config),
            step: self.learner.step,
            pending: self.pending,
            losses: self.losses.clone(),
            verdict: self.verdict,
            tested: self.tested,
            lines: self.metrics.lines,
            seconds: self.meter.seconds(),
            meta: self.learner.parameters.meta.clone(),
        };
        state::write(&self.dir.state(), &header, &self.learner.arrays())?;
        self.saved = Instant::now();
        Ok(())
    }

    /// Tests, unless that has been done; `None` if told to stop meanwhile.
    fn report(mut self) -> Result<Option<PetalsReport>, TrainError> {
        let verdict = match self.verdict {
            Some(verdict) => verdict,
            None => {
                let Outcome::Done(verdict) = self.test(false)? else { return Ok(None) };
                self.verdict = Some(verdict);
                self.save()?;
                verdict
            }
        };
        let mut shipped = self.learner.shipped();
        shipped.meta.steps = self.learner.step;
        let path = self.dir.file("last.safetensors");
        shipped.to_checkpoint()?.write(&path)?;
        let share = |count: usize| count as f64 / self.instances.len() as f64;
        Ok(Some(PetalsReport {
            seed: self.config.seed,
            epochs: self.losses.len() as u64,
            solved: verdict.solved,
            instances: self.instances.len(),
            accuracy_true: share(verdict.positive),
            accuracy_false: share(verdict.negative),
            minutes: self.meter.seconds() / 60.0,
            losses: self.losses,
            walks: self.config.walks,
            length: self.config.length,
            passes: self.config.passes,
            model: path.display().to_string(),
        }))
    }
}
