//! The config of a training run: one struct, whose defaults are those of the published run. It is
//! checked once, on entry.
//!
//! Every field is a key of the config file. `configs/` has commented examples. Relative paths start
//! at the current directory.

use std::path::PathBuf;

use flock_graph::{Column, Columns, Format, LoadOptions};
use flock_kernels::{Precision, WIDTHS, has_heads, has_width};
use serde::{Deserialize, Serialize};

use crate::data::{DataConfig, Hide, Negatives, Shares, Sizes, Weighting};
use crate::optimise::Schedule;
use crate::settings::{ConfigError, Settings};
use flock_model::checkpoint::{Averaging, Metadata, ProcessorKind, Task};
use flock_model::step::{BaseLoss, Loss};
use flock_model::tensors::MAX_LAYERS;

/// The greatest number of steps. Steps take the place of the pass in the walks' keys, whose last value
/// belongs to the data.
pub const MOST_STEPS: u64 = u32::MAX as u64 - 1;

/// The config of a pretraining or fine-tuning run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainConfig {
    /// What the model learns to predict.
    pub task: Task,
    /// Seed of weights, data and walks.
    pub seed: u64,
    /// Steps of the optimiser. If the settings have `minutes` and no `steps`, they are
    /// [`MOST_STEPS`].
    pub steps: u64,
    /// Minutes after which the run ends, at the end of a step; time before a resumption counts. At
    /// least one step is taken. If not set, the run ends with its steps.
    pub minutes: Option<f64>,
    /// Number of threads; all if not set. It changes the speed, never the result.
    pub threads: Option<usize>,
    /// Where the weights come from.
    pub model: ModelSection,
    /// Graphs, batches and negatives.
    pub data: DataSection,
    /// How walks are sampled.
    pub walks: WalkSection,
    /// The loss.
    pub loss: LossSection,
    /// Optimiser settings.
    pub optimiser: OptimiserSection,
    /// Validation during the run.
    pub validation: ValidationSection,
    /// What is written, and how often.
    pub output: OutputSection,
}

/// Where the weights come from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSection {
    /// A checkpoint to start from, or `bundled` ([`BUNDLED`](crate::BUNDLED)). Seeded initial
    /// weights if not set.
    pub from: Option<PathBuf>,
    /// Updates of a new model; 6 if not set.
    pub updates: Option<usize>,
    /// Width of a new model, one of [`WIDTHS`]; 64 if not set.
    pub width: Option<usize>,
    /// Consensus heads of a new model, slices of 16 or 32; a sixteenth of the width if not set.
    pub heads: Option<usize>,
    /// Layers of a new model's sequence processor; 1 if not set.
    pub layers: Option<usize>,
    /// Walk length of a new model; 128 if not set.
    pub length: Option<usize>,
    /// The sequence processor of a new model; `gru` if not set.
    pub processor: Option<ProcessorKind>,
    /// The consensus of a new model; `softmax` if not set.
    pub consensus: Option<Averaging>,
    /// A note for the checkpoint's metadata.
    pub note: Option<String>,
}

/// A column of a graph file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ColumnSetting {
    /// Its number, from 1.
    Number(usize),
    /// Its name in the header.
    Name(String),
}

/// Graphs, batches and negatives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DataSection {
    /// Training graphs: dataset directories or graph files. A step draws one of them by
    /// `weighting`.
    pub graphs: Vec<PathBuf>,
    /// Format of the graph files. If not set, it is detected from their names or first lines.
    pub format: Option<String>,
    /// Columns of head, relation and tail in graph files of columns: numbers from 1, or names.
    pub columns: Option<[ColumnSetting; 3]>,
    /// Whether the first row of such a file names the columns. If not set, it is detected.
    pub header: Option<bool>,
    /// Whether malformed rows of graph files are skipped.
    pub lenient: bool,
    /// Share of a graph file's triples held out for validation. Dataset directories have their own.
    pub holdout: f64,
    /// Triples in a batch.
    pub batch: usize,
    /// Negatives of each entity question.
    pub negatives: Negatives,
    /// What is hidden from the walks.
    pub hide: Hide,
    /// If set, each step runs on a connected piece with this many entities: least and greatest.
    pub subgraph: Option<[u32; 2]>,
    /// If set, the walks of a step see this percentage of its piece's triples: least and greatest.
    pub keep: Option<[u32; 2]>,
    /// If set, relations of a piece that a step does not ask about are hidden from its walks, each
    /// with a chance of this many percent: least and greatest.
    pub drop: Option<[u32; 2]>,
    /// How often a step draws from each graph: `triples`, `root` (the square root of its triples)
    /// or `even`.
    pub weighting: Weighting,
    /// Percentage of the steps that run on a synthetic world.
    pub worlds: u32,
}

/// A base walk count: a number, or `"rule"` for the rule that goes by the graph's size.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number or \"rule\"")]
pub enum WalkCount {
    /// The same on every graph.
    Fixed(u32),
    /// Given by [`Metadata::base_walks`].
    Rule(RuleWord),
}

/// The word `rule` in a config file.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleWord {
    /// The count depends on the size of the graph.
    Rule,
}

impl WalkCount {
    /// A count that depends on the size of the graph.
    pub const RULE: WalkCount = WalkCount::Rule(RuleWord::Rule);

    /// Returns the count on a graph of this size.
    pub fn on(self, meta: &Metadata, num_nodes: u32, num_triples: usize) -> u32 {
        match self {
            WalkCount::Fixed(n) => n,
            WalkCount::Rule(_) => meta.base_walks(num_nodes, num_triples),
        }
    }
}

/// How walks are sampled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WalkSection {
    /// Base walk count of a step. The rule uses the size of the graph, or of the piece, that the
    /// step runs on.
    pub n: WalkCount,
    /// The value of the rule on a graph of the training graphs' mean size. It is kept in the
    /// checkpoint. A run that starts from a checkpoint uses the checkpoint's value.
    pub n_train: u32,
    /// Whether a walk may step straight back although another neighbour exists. This switch and the
    /// next two are kept in the checkpoint. A switch that is on in the checkpoint that a run starts
    /// from stays on.
    pub backtrack: bool,
    /// Whether all walks start at the query's nodes.
    pub all_at_query: bool,
    /// Whether balanced walks start only on edges of the query's own type.
    pub balanced_on_query_relation: bool,
    /// Whether walks use both types of a relation. Without them a move has one name for its relation
    /// whichever way it goes, so twice as many positions speak for it: the relation, or its inverse
    /// where the question is about a head. Kept in the checkpoint. A model that was trained without
    /// stays without.
    pub inverses: bool,
    /// Chance that a walk restarts instead of making a move, from 0 to 1. It is kept in the
    /// checkpoint in parts of 1024. If not set, a run that starts from a checkpoint uses the
    /// checkpoint's value.
    pub restart: Option<f64>,
    /// Which walks may restart: every one (1), every second one (2), …
    pub restart_period: Option<u32>,
    /// Which random starts are at the query's nodes instead: every one (1), every second one (2), …,
    /// or none (0). Kept in the checkpoint. If not set, a run that starts from a checkpoint uses the
    /// checkpoint's value.
    pub query_start_period: Option<u32>,
}

impl WalkSection {
    /// Copies the settings of restarts and random starts that are set.
    pub(crate) fn set_starts(&self, meta: &mut Metadata) {
        if let Some(chance) = self.restart {
            meta.restart = (1024.0 * chance).round() as u32;
        }
        if let Some(period) = self.restart_period {
            meta.restart_period = period;
        }
        if let Some(period) = self.query_start_period {
            meta.query_start_period = period;
        }
    }
}

/// The loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LossSection {
    /// The loss of true and false answers.
    pub base: BaseLossName,
    /// Temperature of the softmax that weights the false answers in `self_adversarial`.
    pub temperature: f64,
    /// Share of the softmax cross-entropy, from 0 (the base loss alone) to 1.
    pub softmax: f64,
}

/// Names of the base losses, which `loss.softmax` is mixed with.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BaseLossName {
    /// A false answer weighs more the more likely the model thinks it is. The published loss of
    /// both tasks.
    #[default]
    SelfAdversarial,
    /// All candidates weigh the same.
    MeanBce,
}

/// Names of the learning rate schedules.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleName {
    /// The same rate throughout.
    #[default]
    Constant,
    /// Linear warm-up, then half a cosine down.
    Cosine,
}

/// Names of the precisions of a step's multiplications. Sums, weights and moments are always `f32`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PrecisionName {
    /// 32-bit operands.
    #[default]
    F32,
    /// Operands rounded to bf16, which is faster where the processor supports it.
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

/// Settings of AdamW, its schedule, and the moving average of the weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimiserSection {
    /// Learning rate.
    pub rate: f64,
    /// Decoupled weight decay.
    pub decay: f64,
    /// β₁, the decay of the mean.
    pub beta1: f64,
    /// β₂, the decay of the mean square.
    pub beta2: f64,
    /// ε, added to the root of the mean square.
    pub epsilon: f64,
    /// Schedule of the rate.
    pub schedule: ScheduleName,
    /// Steps of the warm-up (cosine only).
    pub warmup: u64,
    /// Factor on the rate at the end (cosine only).
    pub floor: f64,
    /// Greatest norm of a step's gradient. Not clipped if not set.
    pub clip: Option<f64>,
    /// Decay of the moving average of the weights. If set, the average is what is validated and
    /// shipped.
    pub ema: Option<f64>,
    /// Precision of the gradient's multiplications. The caller makes the
    /// [`Gradient`](crate::Gradient) with it. Validation and tests run in `f32`.
    pub precision: PrecisionName,
}

/// Settings of validation: filtered, pessimistic MRR of a sample of validation triples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ValidationSection {
    /// Steps between validations; 0 for none. The end of the run is validated too.
    pub every: u64,
    /// Number of validation triples per graph.
    pub triples: usize,
    /// Base walk count.
    pub n: WalkCount,
    /// Ensemble passes.
    pub passes: u32,
    /// Seed of the sample and its walks.
    pub seed: u64,
    /// Further dataset directories whose validation triples are used.
    pub extra: Vec<PathBuf>,
}

/// What is written, and how often. None of this changes the weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutputSection {
    /// Directory of the run. If it has a training state, the run resumes from it.
    pub dir: Option<PathBuf>,
    /// Steps between lines of `metrics.jsonl`.
    pub log_every: u64,
    /// Seconds between training states.
    pub save_seconds: f64,
}

impl Default for TrainConfig {
    fn default() -> TrainConfig {
        TrainConfig::pretraining(Task::Entity)
    }
}

impl TrainConfig {
    /// Returns the config of the published pretraining, without graphs.
    pub fn pretraining(task: Task) -> TrainConfig {
        TrainConfig {
            task,
            seed: 0,
            steps: if task == Task::Entity { 400_000 } else { 40_000 },
            minutes: None,
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

    /// Returns the config of fine-tuning, without graphs. It is the published one but for two
    /// things. There the number of steps depends on the graph; the default here is 1,000. And the
    /// relation task hides only what is asked ([`Hide::Asked`]), as in the bundled model's training.
    pub fn finetuning(task: Task) -> TrainConfig {
        let mut config = TrainConfig::pretraining(task);
        config.steps = 1_000;
        config.data.negatives = Negatives::Drawn(256);
        if task == Task::Relation {
            config.data.hide = Hide::Asked;
        }
        config.data.holdout = 0.05;
        config.validation.every = 100;
        config
    }

    /// Lays settings over the defaults of their task and checks the result. The config is one of a
    /// run on files, of which `data.graphs` names at least one.
    pub fn resolve(
        settings: &Settings,
        defaults: impl FnOnce(Task) -> TrainConfig,
    ) -> Result<TrainConfig, ConfigError> {
        let config = TrainConfig::resolve_in_memory(settings, defaults)?;
        config.check_named(settings)?;
        Ok(config)
    }

    /// As [`TrainConfig::resolve`], for a run on graphs in memory: `data.graphs` may be empty.
    pub fn resolve_in_memory(
        settings: &Settings,
        defaults: impl FnOnce(Task) -> TrainConfig,
    ) -> Result<TrainConfig, ConfigError> {
        let task = settings.get("task").and_then(|v| serde_json::from_value(v.clone()).ok()).unwrap_or(Task::Entity);
        let mut config: TrainConfig = settings.over(&defaults(task))?;
        // The default number of steps is no one's wish where a time is given.
        if config.minutes.is_some() && settings.get("steps").is_none() {
            config.steps = MOST_STEPS;
        }
        config.check_as(settings)?;
        Ok(config)
    }

    /// Checks all values. Whether graphs are named is not checked: they may be in memory.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_as(&Settings::new())
    }

    /// Checks all values of a run on files.
    pub(crate) fn check_files(&self) -> Result<(), ConfigError> {
        self.check()?;
        self.check_named(&Settings::new())
    }

    /// Checks all values, which came from `settings`.
    fn check_as(&self, settings: &Settings) -> Result<(), ConfigError> {
        self.check_rules().map_err(|(key, rule)| settings.wrong_value(key, rule))?;
        let cosine = self.optimiser.schedule == ScheduleName::Cosine;
        if cosine && self.minutes.is_some() && self.steps == MOST_STEPS {
            return Err(ConfigError::CosineWithoutSteps { origin: settings.origin("minutes") });
        }
        Ok(())
    }

    /// Checks that a file is named.
    fn check_named(&self, settings: &Settings) -> Result<(), ConfigError> {
        let rule = "expected at least one dataset directory or graph file";
        match self.data.graphs.is_empty() {
            true => Err(settings.wrong_value("data.graphs", rule.to_string())),
            false => Ok(()),
        }
    }

    /// Checks each value by its rule. The error is the first wrong key and its rule.
    fn check_rules(&self) -> Result<(), (&'static str, String)> {
        let rule = |ok: bool, key, rule: &str| if ok { Ok(()) } else { Err((key, rule.to_string())) };
        rule((1..=MOST_STEPS).contains(&self.steps), "steps", &format!("expected 1 to {MOST_STEPS}"))?;
        let minutes = self.minutes;
        rule(minutes.is_none_or(|m| m > 0.0 && m.is_finite()), "minutes", "expected more than 0, or \"off\"")?;
        rule(self.threads.is_none_or(|t| (1..=1024).contains(&t)), "threads", "expected 1 to 1024")?;
        let sizes = [
            ("model.updates", self.model.updates, 64),
            ("model.layers", self.model.layers, MAX_LAYERS),
            ("model.length", self.model.length, 16_384),
        ];
        for (key, size, most) in sizes {
            let least = if key == "model.length" { 2 } else { 1 };
            rule(size.is_none_or(|s| (least..=most).contains(&s)), key, &format!("expected {least} to {most}"))?;
        }
        let width = self.model.width;
        rule(width.is_none_or(has_width), "model.width", "expected 32, 64, 96 or 128")?;
        // Without a width of its own, a config that trains further means the checkpoint's.
        let possible = |heads: usize| match (width, &self.model.from) {
            (None, Some(_)) => WIDTHS.iter().any(|width| has_heads(*width, heads)),
            _ => has_heads(width.unwrap_or(Metadata::published(self.task).width), heads),
        };
        rule(self.model.heads.is_none_or(possible), "model.heads", "expected the width divided by 16 or by 32")?;
        let format = self.data.format.as_deref().map(str::parse::<Format>);
        rule(!matches!(format, Some(Err(_))), "data.format", &format!("expected {}", Format::words()))?;
        let distinct = |[h, r, t]: &[ColumnSetting; 3]| {
            let named = |c: &ColumnSetting| *c != ColumnSetting::Number(0) && *c != ColumnSetting::Name(String::new());
            named(h) && named(r) && named(t) && h != r && r != t && h != t
        };
        rule(
            self.data.columns.as_ref().is_none_or(distinct),
            "data.columns",
            "expected three different columns, by number counted from 1 or by name",
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
        let period = self.walks.query_start_period;
        rule(period.is_none_or(|p| p <= 16_384), "walks.query_start_period", "expected 0 to 16384")?;
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

    /// Returns how graph files are read.
    pub(crate) fn load_options(&self) -> LoadOptions {
        LoadOptions {
            format: self.data.format.as_deref().and_then(|text| text.parse().ok()),
            columns: self.data.columns.clone().map(|columns| {
                let [head, relation, tail] = columns.map(|column| match column {
                    ColumnSetting::Number(number) => Column::Number(number.saturating_sub(1)),
                    ColumnSetting::Name(name) => Column::Name(name),
                });
                Columns { head, relation, tail }
            }),
            header: self.data.header,
            lenient: self.data.lenient,
            ..LoadOptions::default()
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
            inverses: true,
            restart: None,
            restart_period: None,
            query_start_period: None,
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
    /// Returns the settings of the published run: AdamW at a constant rate.
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
