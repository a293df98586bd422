//! The config of a run on Petals: one struct, whose defaults are the published protocol.

use serde::{Deserialize, Serialize};

use crate::config::{OptimiserSection, OutputSection};
use crate::settings::{ConfigError, Settings};

/// How an instance of Petals is asked, in training and in the test.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PetalsProtocol {
    /// Each of the two targets is scored on its own walks. Instances come in order, the loss is the
    /// sum of both, and the epoch with the best accuracy is kept.
    #[default]
    Published,
    /// Both targets are scored on the walks of one query, which is easier. Instances come in a new
    /// order each epoch, the loss is the mean of both, and the last epoch is kept.
    SharedWalks,
}

/// The config of a run on Petals (`docs/reference/model.md`, section 10).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PetalsConfig {
    /// How instances are asked.
    pub protocol: PetalsProtocol,
    /// Seed of instances, weights, order and walks.
    pub seed: u64,
    /// Number of epochs. Each sees all instances once.
    pub epochs: u64,
    /// Whether the run ends after the first epoch that solves all instances.
    pub until_solved: bool,
    /// Number of threads; all if not set. It changes the speed, never the result.
    pub threads: Option<usize>,
    /// Base walk count.
    pub walks: u32,
    /// Walk length.
    pub length: usize,
    /// Updates of the model.
    pub updates: usize,
    /// Ensemble passes of the test.
    pub passes: u32,
    /// Ensemble passes of the accuracy by which the published protocol chooses an epoch.
    pub epoch_passes: u32,
    /// Whether the graphs have inverse types. The published protocol has none.
    pub inverses: bool,
    /// Optimiser settings.
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
    /// Lays settings over the published protocol and checks the result.
    pub fn resolve(settings: &Settings) -> Result<PetalsConfig, ConfigError> {
        let config: PetalsConfig = settings.over(&PetalsConfig::default())?;
        config.check().map_err(|(key, rule)| settings.wrong_value(key, rule))?;
        Ok(config)
    }

    /// Checks all values. The error is the first wrong key and its rule.
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
