//! What a training run is: one struct, whose defaults are the published run's, checked once at the door.
//!
//! Every field is a key of the config file; `configs/` has commented examples. Relative paths are seen from the directory the
//! program runs in.

use std::path::PathBuf;

use flock_graph::{Format, LoadOptions};
use flock_kernels::Precision;
use serde::{Deserialize, Serialize};

use super::settings::{ConfigError, Settings};
use super::{BaseLoss, Loss};
use crate::data::{DataConfig, Hide, Negatives, Shares, Sizes, Weighting};
use crate::optimise::Schedule;
use flock_model::checkpoint::{Averaging, Metadata, ProcessorKind, Task};

/// A run of pretraining or fine-tuning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainConfig {
    /// What the model learns to predict.
    pub task: Task,
    /// Seed of weights, data and walks.
    pub seed: u64,
    /// Steps of the optimiser.
    pub steps: u64,
    /// Threads; all if not given. They change the speed, never the result.
    pub threads: Option<usize>,
    /// Where the weights come from.
    pub model: ModelSection,
    /// What is asked.
    pub data: DataSection,
    /// How walks are drawn.
    pub walks: WalkSection,
    /// What is minimised.
    pub loss: LossSection,
    /// How.
    pub optimiser: OptimiserSection,
    /// How progress is judged.
    pub validation: ValidationSection,
    /// What is written, and how often.
    pub output: OutputSection,
}

/// Where the weights come from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSection {
    /// A checkpoint to start from, or `bundled` ([`BUNDLED`](crate::BUNDLED)); seeded initial weights if not given.
    pub from: Option<PathBuf>,
    /// Updates of a new model; 6 if not given.
    pub updates: Option<usize>,
    /// Walk length of a new model; 128 if not given.
    pub length: Option<usize>,
    /// The sequence processor of a new model; `gru` if not given.
    pub processor: Option<ProcessorKind>,
    /// The consensus of a new model; `softmax` if not given.
    pub consensus: Option<Averaging>,
    /// A note for the checkpoint's metadata.
    pub note: Option<String>,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DataSection {
    /// Training graphs: dataset directories or graph files. A step draws one of them by `weighting`.
    pub graphs: Vec<PathBuf>,
    /// Format of the graph files; else by their names or first lines.
    pub format: Option<String>,
    /// Columns of head, relation and tail in graph files of columns, from 1.
    pub columns: Option<[usize; 3]>,
    /// Whether the first row of such a file names the columns; else if it looks so.
    pub header: Option<bool>,
    /// Whether malformed rows of graph files are skipped.
    pub lenient: bool,
    /// Share of a graph file's triples kept for validation; dataset directories have their own.
    pub holdout: f64,
    /// Triples in a batch.
    pub batch: usize,
    /// Negatives of each entity question.
    pub negatives: Negatives,
    /// What the entity task hides from the walks.
    pub hide: Hide,
    /// If given, each step runs on a connected piece of so many entities: least and greatest.
    pub subgraph: Option<[u32; 2]>,
    /// If given, the walks of a step see so many percent of its piece's triples: least and greatest.
    pub keep: Option<[u32; 2]>,
    /// If given, relations of a piece that a step does not ask about are hidden from its walks, each with a chance of so many percent:
    /// least and greatest.
    pub drop: Option<[u32; 2]>,
    /// How often a step draws from each graph: `triples`, `root` (the square root of its triples) or `even`.
    pub weighting: Weighting,
    /// So many percent of the steps run on a synthetic world.
    pub worlds: u32,
}

/// A base walk count: a number, or `"rule"` for the rule that goes by the graph's size.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number or \"rule\"")]
pub enum WalkCount {
    /// The same on every graph.
    Fixed(u32),
    /// By [`Metadata::base_walks`].
    Rule(Rule),
}

/// The word that stands for the rule.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// By the size of the graph.
    Rule,
}

impl WalkCount {
    /// By the size of the graph.
    pub const RULE: WalkCount = WalkCount::Rule(Rule::Rule);

    /// The count on a graph of these sizes.
    pub fn on(self, meta: &Metadata, num_nodes: u32, num_triples: usize) -> u32 {
        match self {
            WalkCount::Fixed(n) => n,
            WalkCount::Rule(_) => meta.base_walks(num_nodes, num_triples),
        }
    }
}

/// How walks are drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WalkSection {
    /// Base walk count of a step. The rule goes by the graph, or by the piece of it, that the step runs on.
    pub n: WalkCount,
    /// What the rule gives on a graph of the training graphs' mean size; kept in the checkpoint. Of a checkpoint to start
    /// from, its own holds.
    pub n_train: u32,
    /// Whether a walk may step straight back although another neighbour exists. This switch and the next two are kept in the
    /// checkpoint; one that a checkpoint to start from has on stays on.
    pub backtrack: bool,
    /// All walks start at the query's nodes.
    pub all_at_query: bool,
    /// Balanced walks start on edges of the query's own type only.
    pub balanced_on_query_relation: bool,
    /// Chance that a walk begins anew instead of making a move, from 0 to 1; kept in the checkpoint in parts of 1024. Of a checkpoint
    /// to start from, its own holds unless this is given.
    pub restart: Option<f64>,
    /// Which walks may begin anew: every one (1), every second one (2), …
    pub restart_period: Option<u32>,
}

impl WalkSection {
    /// Takes over what is given about restarts.
    pub(crate) fn set_restarts(&self, meta: &mut Metadata) {
        if let Some(chance) = self.restart {
            meta.restart = (1024.0 * chance).round() as u32;
        }
        if let Some(period) = self.restart_period {
            meta.restart_period = period;
        }
    }
}

/// What is minimised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LossSection {
    /// The loss of true and false answers.
    pub base: BaseLossName,
    /// Of the softmax that weighs the false answers of `self_adversarial`.
    pub temperature: f64,
    /// Share of the softmax's cross-entropy, from 0 (the base loss alone) to 1.
    pub softmax: f64,
}

/// The loss of true and false answers, which `loss.softmax` is mixed with.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BaseLossName {
    /// False answers weigh more the more the model believes in them: the published loss of both tasks.
    #[default]
    SelfAdversarial,
    /// All candidates weigh the same.
    MeanBce,
}

/// How the learning rate goes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleName {
    /// The same rate throughout.
    #[default]
    Constant,
    /// Up in a straight line, then down half a cosine.
    Cosine,
}

/// The precision of a step's multiplications. Sums, weights and their moments are `f32` in both.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PrecisionName {
    /// 32-bit operands.
    #[default]
    F32,
    /// Operands rounded to bf16: faster where the processor has it.
    Bf16,
}

impl From<PrecisionName> for Precision {
    fn from(name: PrecisionName) -> Precision {
        match name {
            PrecisionName::F32 => Precision::F32,
            PrecisionName::Bf16 => Precision::Bf16,
        }
    }
}

/// AdamW, its schedule, and the average of weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimiserSection {
    /// Learning rate.
    pub rate: f64,
    /// Weight decay, decoupled.
    pub decay: f64,
    /// β₁, of the mean.
    pub beta1: f64,
    /// β₂, of the mean square.
    pub beta2: f64,
    /// ε, added to the root of the mean square.
    pub epsilon: f64,
    /// How the rate goes over the run.
    pub schedule: ScheduleName,
    /// Steps on the way up (cosine only).
    pub warmup: u64,
    /// The factor on the rate at the end (cosine only).
    pub floor: f64,
    /// Greatest norm of a step's gradient, if it is clipped.
    pub clip: Option<f64>,
    /// Decay of the moving average of weights, if one is kept. It is then what is validated and shipped.
    pub ema: Option<f64>,
    /// Of the gradient's multiplications, for whoever makes the [`Gradient`](super::Gradient). Validation and tests run in `f32`.
    pub precision: PrecisionName,
}

/// How progress is judged: filtered, pessimistic MRR of a sample of validation triples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ValidationSection {
    /// Steps from one validation to the next; 0 for none. The end of the run is validated too.
    pub every: u64,
    /// Validation triples of each graph.
    pub triples: usize,
    /// Base walk count.
    pub n: WalkCount,
    /// Ensemble passes.
    pub passes: u32,
    /// Seed of the sample and its walks.
    pub seed: u64,
    /// Dataset directories whose validation triples count besides those of the training graphs.
    pub extra: Vec<PathBuf>,
}

/// What is written, and how often. None of this changes the weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutputSection {
    /// The run's directory. If it has a training state the run goes on from there.
    pub dir: Option<PathBuf>,
    /// Steps from one line of `metrics.jsonl` to the next.
    pub log_every: u64,
    /// Seconds from one training state to the next.
    pub save_seconds: f64,
}

impl Default for TrainConfig {
    fn default() -> TrainConfig {
        TrainConfig::pretraining(Task::Entity)
    }
}

impl TrainConfig {
    /// The published pretraining, on graphs that are still to be named.
    pub fn pretraining(task: Task) -> TrainConfig {
        TrainConfig {
            task,
            seed: 0,
            steps: if task == Task::Entity { 400_000 } else { 40_000 },
            threads: None,
            model: ModelSection::default(),
            data: DataSection::default(),
            walks: WalkSection::default(),
            loss: LossSection::default(),
            optimiser: OptimiserSection::published(task),
            validation: ValidationSection::default(),
            output: OutputSection::default(),
        }
    }

    /// The published fine-tuning. Its length depends on the graph there; here it is 1,000 steps unless told.
    pub fn finetuning(task: Task) -> TrainConfig {
        let mut config = TrainConfig::pretraining(task);
        config.steps = 1_000;
        config.data.negatives = Negatives::Drawn(256);
        config.data.holdout = 0.05;
        config.validation.every = 100;
        config
    }

    /// The config that settings describe, over the published defaults of their task.
    pub fn resolve(settings: &Settings, defaults: fn(Task) -> TrainConfig) -> Result<TrainConfig, ConfigError> {
        let task = settings.get("task").and_then(|v| serde_json::from_value(v.clone()).ok()).unwrap_or(Task::Entity);
        let config: TrainConfig = settings.over(&defaults(task))?;
        config.check().map_err(|(key, rule)| settings.wrong_value(key, rule))?;
        Ok(config)
    }

    /// The first key with a value that makes no sense, and what it should be.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let rule = |ok: bool, key, rule: &str| if ok { Ok(()) } else { Err((key, rule.to_string())) };
        // Steps take the place of the pass in the walks' keys, whose last value belongs to the data.
        rule((1..u64::from(u32::MAX)).contains(&self.steps), "steps", "expected 1 to 4294967294")?;
        rule(self.threads.is_none_or(|t| (1..=1024).contains(&t)), "threads", "expected 1 to 1024")?;
        let sizes = [("model.updates", self.model.updates, 64), ("model.length", self.model.length, 16_384)];
        for (key, size, most) in sizes {
            let least = if key == "model.length" { 2 } else { 1 };
            rule(size.is_none_or(|s| (least..=most).contains(&s)), key, &format!("expected {least} to {most}"))?;
        }
        rule(!self.data.graphs.is_empty(), "data.graphs", "expected at least one dataset directory or graph file")?;
        let format = self.data.format.as_deref().map(str::parse::<Format>);
        rule(!matches!(format, Some(Err(_))), "data.format", "expected tsv, csv, nt, ttl or rdfxml")?;
        let distinct = |[h, r, t]: [usize; 3]| h.min(r).min(t) > 0 && h != r && r != t && h != t;
        rule(
            self.data.columns.is_none_or(distinct),
            "data.columns",
            "expected three different column numbers counted from 1",
        )?;
        rule((0.0..1.0).contains(&self.data.holdout), "data.holdout", "expected at least 0 and less than 1")?;
        rule((1..=65_536).contains(&self.data.batch), "data.batch", "expected 1 to 65536")?;
        let many = matches!(self.data.negatives, Negatives::Drawn(count) if count > 1 << 20);
        rule(!many, "data.negatives", "expected at most 1048576, or \"all\"")?;
        let ordered = |s: [u32; 2]| 2 <= s[0] && s[0] <= s[1];
        rule(
            self.data.subgraph.is_none_or(ordered),
            "data.subgraph",
            "expected [least, greatest] entities, 2 or more",
        )?;
        let percent = |s: [u32; 2]| 1 <= s[0] && s[0] <= s[1] && s[1] <= 100;
        for (key, share) in [("data.keep", self.data.keep), ("data.drop", self.data.drop)] {
            rule(share.is_none_or(percent), key, "expected [least, greatest] percent, 1 to 100")?;
            rule(share.is_none() || self.data.subgraph.is_some(), key, "needs data.subgraph")?;
        }
        rule(self.data.worlds <= 100, "data.worlds", "expected a percentage, 0 to 100")?;
        for (key, n) in [("walks.n", self.walks.n), ("validation.n", self.validation.n)] {
            let fits = |n: u32| (1..=16_384).contains(&n);
            rule(!matches!(n, WalkCount::Fixed(n) if !fits(n)), key, "expected 1 to 16384, or \"rule\"")?;
        }
        rule((1..=16_384).contains(&self.walks.n_train), "walks.n_train", "expected 1 to 16384")?;
        let chance = self.walks.restart;
        rule(chance.is_none_or(|c| (0.0..=1.0).contains(&c)), "walks.restart", "expected 0 to 1")?;
        let period = self.walks.restart_period;
        rule(period.is_none_or(|p| (1..=16_384).contains(&p)), "walks.restart_period", "expected 1 to 16384")?;
        let temperature = self.loss.temperature;
        rule(temperature > 0.0 && temperature.is_finite(), "loss.temperature", "expected more than 0")?;
        rule((0.0..=1.0).contains(&self.loss.softmax), "loss.softmax", "expected 0 to 1")?;
        self.optimiser.check()?;
        rule((1..=4096).contains(&self.validation.passes), "validation.passes", "expected 1 to 4096")?;
        rule(self.validation.triples > 0, "validation.triples", "expected at least 1; hint: validation.every = 0")?;
        self.output.check()
    }

    pub(crate) fn loss(&self) -> Loss {
        let base = match self.loss.base {
            BaseLossName::SelfAdversarial => BaseLoss::SelfAdversarial { temperature: self.loss.temperature as f32 },
            BaseLossName::MeanBce => BaseLoss::MeanBce,
        };
        Loss { base, softmax: self.loss.softmax as f32 }
    }

    pub(crate) fn data(&self) -> DataConfig {
        DataConfig {
            task: self.task,
            batch: self.data.batch,
            negatives: self.data.negatives,
            hide: self.data.hide,
            subgraph: self.data.subgraph.map(|[low, high]| Sizes { low, high }),
            keep: self.data.keep.map(|[low, high]| Shares { low, high }),
            drop: self.data.drop.map(|[low, high]| Shares { low, high }),
            weighting: self.data.weighting,
            worlds: self.data.worlds,
        }
    }

    /// How graph files are read.
    pub(crate) fn load_options(&self) -> LoadOptions {
        LoadOptions {
            format: self.data.format.as_deref().and_then(|text| text.parse().ok()),
            columns: self.data.columns.map(|columns| columns.map(|c| c - 1)),
            header: self.data.header,
            lenient: self.data.lenient,
            max_bytes: None,
        }
    }
}

impl Default for DataSection {
    fn default() -> DataSection {
        let published = DataConfig::published(Task::Entity);
        DataSection {
            graphs: Vec::new(),
            format: None,
            columns: None,
            header: None,
            lenient: false,
            holdout: 0.0,
            batch: published.batch,
            negatives: published.negatives,
            hide: published.hide,
            subgraph: None,
            keep: None,
            drop: None,
            weighting: published.weighting,
            worlds: published.worlds,
        }
    }
}

impl Default for WalkSection {
    fn default() -> WalkSection {
        WalkSection {
            n: WalkCount::RULE,
            n_train: 128,
            backtrack: false,
            all_at_query: false,
            balanced_on_query_relation: false,
            restart: None,
            restart_period: None,
        }
    }
}

impl Default for LossSection {
    fn default() -> LossSection {
        LossSection { base: BaseLossName::SelfAdversarial, temperature: 1.0, softmax: 0.0 }
    }
}

impl Default for OptimiserSection {
    fn default() -> OptimiserSection {
        OptimiserSection::published(Task::Entity)
    }
}

impl OptimiserSection {
    /// The published run's: AdamW at a constant rate, and nothing else.
    pub fn published(task: Task) -> OptimiserSection {
        OptimiserSection {
            rate: 5e-4,
            decay: if task == Task::Entity { 0.01 } else { 0.0 },
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            schedule: ScheduleName::Constant,
            warmup: 0,
            floor: 0.0,
            clip: None,
            ema: None,
            precision: PrecisionName::F32,
        }
    }

    pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
        let rule = |ok: bool, key, rule: &str| if ok { Ok(()) } else { Err((key, rule.to_string())) };
        let below_one = |x: f64| (0.0..1.0).contains(&x);
        rule(self.rate > 0.0 && self.rate.is_finite(), "optimiser.rate", "expected more than 0")?;
        rule(self.decay >= 0.0 && self.decay.is_finite(), "optimiser.decay", "expected at least 0")?;
        rule(below_one(self.beta1), "optimiser.beta1", "expected at least 0 and less than 1")?;
        rule(below_one(self.beta2), "optimiser.beta2", "expected at least 0 and less than 1")?;
        rule(self.epsilon > 0.0 && self.epsilon.is_finite(), "optimiser.epsilon", "expected more than 0")?;
        let cosine = self.schedule == ScheduleName::Cosine;
        rule(cosine || self.warmup == 0, "optimiser.warmup", "needs optimiser.schedule = \"cosine\"")?;
        rule((0.0..=1.0).contains(&self.floor), "optimiser.floor", "expected 0 to 1")?;
        rule(self.clip.is_none_or(|c| c > 0.0), "optimiser.clip", "expected more than 0, or \"off\"")?;
        rule(self.ema.is_none_or(below_one), "optimiser.ema", "expected at least 0 and less than 1, or \"off\"")
    }

    pub(crate) fn schedule(&self, total: u64) -> Schedule {
        match self.schedule {
            ScheduleName::Constant => Schedule::Constant,
            ScheduleName::Cosine => Schedule::WarmupCosine { warmup: self.warmup, total, floor: self.floor },
        }
    }
}

impl Default for ValidationSection {
    fn default() -> ValidationSection {
        ValidationSection { every: 1_000, triples: 100, n: WalkCount::RULE, passes: 1, seed: 1, extra: Vec::new() }
    }
}

impl Default for OutputSection {
    fn default() -> OutputSection {
        OutputSection { dir: None, log_every: 50, save_seconds: 60.0 }
    }
}

impl OutputSection {
    pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
        let rule = |ok: bool, key, rule: &str| if ok { Ok(()) } else { Err((key, rule.to_string())) };
        rule(self.log_every > 0, "output.log_every", "expected at least 1")?;
        rule(self.save_seconds >= 0.0, "output.save_seconds", "expected at least 0")
    }
}

/// How an instance of Petals is asked about in training and in the test.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PetalsProtocol {
    /// Each of the two targets is scored on walks of its own; instances in their order; the sum of the two losses; the epoch
    /// with the best accuracy is kept.
    #[default]
    Published,
    /// Both targets are scored on the walks of one query, which is easier; instances in a new order each epoch; the mean of the
    /// two losses; the last epoch is kept.
    SharedWalks,
}

/// A run on Petals (section 10 of the specification).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PetalsConfig {
    /// How instances are asked about.
    pub protocol: PetalsProtocol,
    /// Seed of instances, weights, order and walks.
    pub seed: u64,
    /// Times that all instances are seen.
    pub epochs: u64,
    /// Ends after the first epoch that leaves no instance unsolved.
    pub until_solved: bool,
    /// Threads; all if not given. They change the speed, never the result.
    pub threads: Option<usize>,
    /// Base walk count.
    pub walks: u32,
    /// Walk length.
    pub length: usize,
    /// Updates of the model.
    pub updates: usize,
    /// Ensemble passes of the test.
    pub passes: u32,
    /// Ensemble passes of the accuracy by which the published protocol chooses the epoch that is kept.
    pub epoch_passes: u32,
    /// Whether the graphs have their inverse types. The published protocol has none.
    pub inverses: bool,
    /// How the loss is minimised.
    pub optimiser: OptimiserSection,
    /// What is written, and how often.
    pub output: OutputSection,
}

impl Default for PetalsConfig {
    fn default() -> PetalsConfig {
        PetalsConfig {
            protocol: PetalsProtocol::Published,
            seed: 0,
            epochs: 5,
            until_solved: false,
            threads: None,
            walks: 16,
            length: 128,
            updates: 6,
            passes: 16,
            epoch_passes: 1,
            inverses: false,
            optimiser: OptimiserSection::default(),
            output: OutputSection::default(),
        }
    }
}

impl PetalsConfig {
    /// The config that settings describe, over the published protocol.
    pub fn resolve(settings: &Settings) -> Result<PetalsConfig, ConfigError> {
        let config: PetalsConfig = settings.over(&PetalsConfig::default())?;
        config.check().map_err(|(key, rule)| settings.wrong_value(key, rule))?;
        Ok(config)
    }

    /// The first key with a value that makes no sense, and what it should be.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let rule = |ok: bool, key, rule: &str| if ok { Ok(()) } else { Err((key, rule.to_string())) };
        rule((1..=1_000_000).contains(&self.epochs), "epochs", "expected 1 to 1000000")?;
        rule(self.threads.is_none_or(|t| (1..=1024).contains(&t)), "threads", "expected 1 to 1024")?;
        rule((1..=16_384).contains(&self.walks), "walks", "expected 1 to 16384")?;
        rule((2..=16_384).contains(&self.length), "length", "expected 2 to 16384")?;
        rule((1..=64).contains(&self.updates), "updates", "expected 1 to 64")?;
        rule((1..=4096).contains(&self.passes), "passes", "expected 1 to 4096")?;
        rule((1..=4096).contains(&self.epoch_passes), "epoch_passes", "expected 1 to 4096")?;
        self.optimiser.check()?;
        self.output.check()
    }
}
