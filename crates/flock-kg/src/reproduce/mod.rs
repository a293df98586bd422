//! Makes the tables and figures of the paper anew, with the published numbers beside ours.
//!
//! [`Item`] lists them. [`reproduce`] makes one in a directory: a [`Report`], which is written as
//! Markdown, CSV and SVG. All work is kept below the directory (`work`), so that the same call goes on
//! after a kill, and items share what they have in common.
//!
#![cfg_attr(feature = "bundled", doc = "```no_run")]
#![cfg_attr(not(feature = "bundled"), doc = "```ignore")]
//! use std::path::Path;
//! use std::sync::atomic::AtomicBool;
//! use flock_kg::reproduce::{Item, ReproduceOptions, reproduce};
//!
//! let options = ReproduceOptions { data: Some("DATA".into()), limit: Some(100), ..ReproduceOptions::default() };
//! let out = Path::new("runs/paper");
//! let report = reproduce(Item::EntityZeroShot, &options, out, &AtomicBool::new(false), &mut |_| {})?;
//! report.write(out, "")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod analyses;
mod cost;
mod error;
mod fine_tuned;
mod item;
mod paper;
mod report;
mod retrained;
mod scores;
mod settings;
mod speed;
mod statistics;
mod walks;
mod work;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use flock_eval::EvalSettings;
use flock_eval::datasets::Split;
use flock_eval::evaluate::{Choice, EvalProgress};
use flock_kernels::Precision;
use flock_train::{Event, Settings};

pub use cost::{ItemCost, cost};
pub use error::{ReproduceError, ReproduceRemedy};
pub use item::{Item, PRETRAINING_MIX, UnknownItem};
pub use report::{Picture, Report, Section};
pub use retrained::AblationRow;

use work::Work;

/// How a table or figure is made. The defaults are the published settings.
#[derive(Clone, Debug)]
pub struct ReproduceOptions {
    /// Directory with a directory per dataset.
    pub data: Option<PathBuf>,
    /// Graphs or groups of graphs; all of the item's that are at hand if empty.
    pub graphs: Vec<String>,
    /// Checkpoints to ask; the bundled models if empty.
    pub models: Vec<PathBuf>,
    /// Precision of evaluations; the faster one of this machine if not set.
    pub precision: Option<Precision>,
    /// Threads; all if not set.
    pub threads: Option<usize>,
    /// The triples to predict.
    pub split: Split,
    /// Base walk count.
    pub walks: Choice,
    /// Ensemble passes.
    pub passes: Choice,
    /// If set, at most this many triples of each graph are predicted: a seeded sample.
    pub limit: Option<usize>,
    /// Seed of walks, samples and trainings.
    pub seed: u64,
    /// Seeds that error bars are over.
    pub seeds: u32,
    /// Steps of each training; the published number if neither they nor minutes are set.
    pub steps: Option<u64>,
    /// Minutes of each training.
    pub minutes: Option<f64>,
    /// Further settings of trainings.
    pub training: Settings,
    /// Graphs to pretrain on, in order; those of the paper that are at hand if empty.
    pub train_on: Vec<String>,
    /// Rows of the ablation table; the paper's if empty.
    pub rows: Vec<AblationRow>,
    /// Seconds for each row of a measurement of speed, about.
    pub seconds: f64,
}

impl Default for ReproduceOptions {
    fn default() -> ReproduceOptions {
        ReproduceOptions {
            data: None,
            graphs: Vec::new(),
            models: Vec::new(),
            precision: None,
            threads: None,
            split: Split::Test,
            walks: Choice::Published,
            passes: Choice::Published,
            limit: None,
            seed: 0,
            seeds: 5,
            steps: None,
            minutes: None,
            training: Settings::new(),
            train_on: Vec::new(),
            rows: Vec::new(),
            seconds: 2.0,
        }
    }
}

impl ReproduceOptions {
    fn eval(&self) -> EvalSettings {
        EvalSettings { split: self.split, walks: self.walks, passes: self.passes, seed: self.seed, limit: self.limit }
    }

    /// Says what is asked and how.
    fn describe(&self) -> String {
        let count = |name: &str, choice: Choice| match choice {
            Choice::Given(count) => format!("{name} = {count}"),
            Choice::Published => format!("{name} as published"),
            Choice::Rule => format!("{name} by the checkpoint's rule"),
        };
        let triples = match self.limit {
            Some(limit) => format!("a sample of at most {limit} {} triples of each graph", self.split),
            None => format!("all {} triples", self.split),
        };
        format!("{triples}, {}, {}, seed {}", count("n", self.walks), count("P", self.passes), self.seed)
    }
}

/// Something that happens while a table or figure is made.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReproduceEvent<'a> {
    /// A part of the work begins.
    Began {
        /// What it is.
        stage: &'a str,
        /// Its number among parts of its kind, from 1.
        number: usize,
        /// How many there are of its kind.
        of: usize,
    },
    /// Questions of an evaluation were answered.
    Asked(EvalProgress),
    /// Something happened in a training run.
    Training(Event<'a>),
    /// Something that a user should know.
    Note(&'a str),
}

/// Makes a table or figure in the directory `out`. Once `stop` is set, the work ends soon; the same call goes on with it.
///
/// # Errors
/// Graphs or settings that do not do, a failed evaluation or training, or [`ReproduceError::Stopped`].
pub fn reproduce(
    item: Item,
    options: &ReproduceOptions,
    out: &Path,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(ReproduceEvent<'_>),
) -> Result<Report, ReproduceError> {
    if item == Item::NoiseInjection {
        return Err(ReproduceError::Impossible { item });
    }
    let work = Work::new(options, out, stop, watch)?;
    match item {
        Item::EntityZeroShot | Item::RelationZeroShot => scores::zero_shot(item, &work),
        Item::EntityFineTuned | Item::RelationFineTuned => fine_tuned::fine_tuned(item, &work),
        Item::AdaptiveWalks => walks::adaptive(&work),
        Item::Ensemble => walks::ensemble(&work),
        Item::Ablations => retrained::ablations(&work),
        Item::PretrainingMix => retrained::mix(&work),
        Item::TrainingSpeed => speed::training(&work),
        Item::InferenceSpeed => speed::inference(&work),
        Item::Petals => analyses::petals(&work),
        Item::CaseStudy => analyses::case_study(&work),
        Item::Density => analyses::density(&work),
        Item::Statistics => statistics::statistics(&work),
        Item::Hyperparameters => settings::hyperparameters(&work),
        Item::NoiseInjection => Err(ReproduceError::Impossible { item }),
    }
}
