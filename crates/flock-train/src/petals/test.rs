//! The test of a model on Petals, for a training run and for any checkpoint: every instance is
//! asked, and what counts is the difference between the logits of its two targets.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use flock_graph::Topology;
use serde::{Deserialize, Serialize};

use crate::petals::{MARGIN, PetalsConfig, PetalsInstance, PetalsProtocol, instances};
use crate::run::{Event, TrainError};
use flock_eval::datasets::DatasetError;
use flock_model::checkpoint::Task;
use flock_model::ensemble::{Ask, Asker};
use flock_model::model::{Model, View};

/// Gives the test other walks than training.
const TEST: u64 = 0x7465_7374;

/// Result of the test of all instances.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Verdict {
    pub solved: usize,
    pub positive: usize,
    pub negative: usize,
}

impl Verdict {
    /// Returns the share of targets on the right side of zero.
    pub fn accuracy(&self, instances: usize) -> f64 {
        (self.positive + self.negative) as f64 / (2 * instances.max(1)) as f64
    }
}

/// How a test ended.
pub(super) enum TestOutcome {
    Done(Verdict),
    Unsolved,
    Stopped,
}

/// How instances are asked in a test.
#[derive(Copy, Clone, Debug)]
pub(super) struct TestSettings {
    pub protocol: PetalsProtocol,
    pub walks: u32,
    pub passes: u32,
    pub seed: u64,
    /// Whether an instance that is not solved ends the test.
    pub all_or_nothing: bool,
}

/// Asks every instance, with the walks that the model was trained with.
pub(super) fn ask_all(
    model: &Model,
    (instances, topologies): (&[PetalsInstance], &[Topology]),
    settings: TestSettings,
    pool: &rayon::ThreadPool,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(Event<'_>),
) -> Result<TestOutcome, TrainError> {
    let TestSettings { protocol, walks, passes, seed, all_or_nothing } = settings;
    // Published: two rows with their own walks, as in training. Else both targets are read from
    // one row.
    let rows = if protocol == PetalsProtocol::Published { 2 } else { 1 };
    let mut verdict = Verdict { solved: 0, positive: 0, negative: 0 };
    for (i, (instance, topology)) in instances.iter().zip(topologies).enumerate() {
        let asker = Asker::new(model, View { topology, mask: None }, pool);
        let mut scores = Vec::new();
        for row in 0..rows {
            let ask = Ask { walks, passes, seed: seed ^ (TEST + row), options: model.walk_options() };
            scores.extend(asker.ask(&[instance.query()], ask)?);
        }
        let (first, last) = (&scores[0], &scores[scores.len() - 1]);
        let (yes, no) = (first.of(instance.target_true).logit, last.of(instance.target_false).logit);
        verdict.solved += usize::from(yes - no > MARGIN);
        verdict.positive += usize::from(yes > 0.0);
        verdict.negative += usize::from(no < 0.0);
        watch(Event::Testing { done: i + 1, total: instances.len() });
        if all_or_nothing && verdict.solved <= i {
            return Ok(TestOutcome::Unsolved);
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(TestOutcome::Stopped);
        }
    }
    Ok(TestOutcome::Done(verdict))
}

/// The result of a test of a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PetalsTest {
    /// Name of the model.
    pub model: String,
    /// Seed of instances and walks.
    pub seed: u64,
    /// Instances solved.
    pub solved: usize,
    /// All instances.
    pub instances: usize,
    /// Share of instances whose true target has a positive logit.
    pub accuracy_true: f64,
    /// Share of instances whose false target has a negative logit.
    pub accuracy_false: f64,
    /// Share of targets on the right side of zero: the mean of the two.
    pub accuracy: f64,
    /// How instances were asked.
    pub protocol: PetalsProtocol,
    /// Whether the graphs had inverse types: as when the model was trained. The published protocol
    /// has none.
    pub inverses: bool,
    /// Base walk count.
    pub walks: u32,
    /// Walk length.
    pub length: usize,
    /// Ensemble passes.
    pub passes: u32,
    /// Minutes that it took.
    pub minutes: f64,
}

/// Tests a model on the 220 instances, without training. Protocol, seed, base walks and passes are
/// those of the config; walk length and inverse types are the model's. Returns `None` if `stop` was
/// set before the end.
///
/// # Errors
/// A model of relations, whose `name` the error has, or a pass that failed.
pub fn test_petals(
    model: &Model,
    name: &str,
    config: &PetalsConfig,
    pool: &rayon::ThreadPool,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(Event<'_>),
) -> Result<Option<PetalsTest>, TrainError> {
    if model.meta().task != Task::Entity {
        let reason = "predicts relations, and Petals asks for entities; expected an entity model";
        return Err(TrainError::Start { file: name.to_string(), reason: reason.to_string() });
    }
    let clock = Instant::now();
    let all = instances(config.seed);
    let topologies: Vec<Topology> =
        all.iter().map(PetalsInstance::topology).collect::<Result<_, _>>().map_err(DatasetError::from)?;
    let PetalsConfig { protocol, walks, passes, seed, .. } = *config;
    let settings = TestSettings { protocol, walks, passes, seed, all_or_nothing: false };
    let TestOutcome::Done(verdict) = ask_all(model, (&all, &topologies), settings, pool, stop, watch)? else {
        return Ok(None);
    };
    let share = |count: usize| count as f64 / all.len() as f64;
    Ok(Some(PetalsTest {
        model: name.to_string(),
        seed,
        solved: verdict.solved,
        instances: all.len(),
        accuracy_true: share(verdict.positive),
        accuracy_false: share(verdict.negative),
        accuracy: verdict.accuracy(all.len()),
        protocol,
        inverses: model.walk_options().inverses,
        walks,
        length: model.walk_options().length,
        passes,
        minutes: clock.elapsed().as_secs_f64() / 60.0,
    }))
}
