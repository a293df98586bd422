//! Which questions of benchmark datasets are asked, and how: what `eval` and `analyse` share.

use std::path::Path;

use clap::ValueEnum;
use flock_kg::eval::EvalSettings;
use flock_kg::eval::datasets::{Dataset, Split, select};
use flock_kg::eval::evaluate::Choice;

use crate::shared::failure::{Failure, error};

/// Which triples are predicted, and how they are asked for.
#[derive(clap::Args, Debug)]
pub struct ProtocolArgs {
    /// Triples to predict
    #[arg(long, value_enum, default_value = "test")]
    pub split: SplitArg,
    /// Base walk count n: a number, rule (the checkpoint's, by the size of the graph) or published
    #[arg(long, value_name = "N", default_value = "rule", value_parser = walks)]
    pub walks: Choice,
    /// Passes whose logits are averaged: a number, or published (16 for most graphs)
    #[arg(long, value_name = "P", default_value = "published", value_parser = passes)]
    pub passes: Choice,
    /// Predict a seeded sample of so many triples, and say how sure that is
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Seed of walks and sample
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

impl ProtocolArgs {
    /// The same for the library.
    pub fn settings(&self) -> EvalSettings {
        EvalSettings {
            split: if self.split == SplitArg::Valid { Split::Valid } else { Split::Test },
            walks: self.walks,
            passes: self.passes,
            seed: self.seed,
            limit: self.limit.map(|n| n as usize),
        }
    }
}

/// Which triples are predicted.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum SplitArg {
    /// test.txt
    Test,
    /// valid.txt
    Valid,
}

fn walks(text: &str) -> Result<Choice, String> {
    match (text, text.parse()) {
        ("rule", _) => Ok(Choice::Rule),
        ("published", _) => Ok(Choice::Published),
        (_, Ok(n @ 1..=16384)) => Ok(Choice::Given(n)),
        _ => Err("expected a number from 1 to 16384, rule or published".to_string()),
    }
}

fn passes(text: &str) -> Result<Choice, String> {
    match (text, text.parse()) {
        ("published", _) => Ok(Choice::Published),
        (_, Ok(passes @ 1..=4096)) => Ok(Choice::Given(passes)),
        _ => Err("expected a number from 1 to 4096, or published".to_string()),
    }
}

/// The dataset called so: a name in `data`, or a directory by path.
pub fn find_dataset(data: Option<&Path>, name: &str) -> Result<Dataset, Failure> {
    match data {
        Some(data) if data.join(name).is_dir() => Dataset::find(data, name).map_err(error),
        _ if Path::new(name).is_dir() => Dataset::open(Path::new(name)).map_err(error),
        Some(data) => Dataset::find(data, name).map_err(error),
        None => {
            let hint = "--data DIR has datasets by name; a dataset of your own is named by its path";
            Err(Failure::Error(format!("{name}: no such directory; hint: {hint}")))
        }
    }
}

/// The datasets called so, without repetition: directories by path, names and groups in `data`.
pub fn find_datasets(data: Option<&Path>, names: &[String]) -> Result<Vec<Dataset>, Failure> {
    let mut found: Vec<Dataset> = Vec::new();
    for name in names {
        let group = select::members(name);
        let opened = match (data, &group) {
            (Some(data), Some(group)) => {
                let here = group.iter().filter(|e| data.join(e.name).is_dir());
                let members =
                    here.map(|e| Dataset::find(data, e.name)).collect::<Result<Vec<Dataset>, _>>().map_err(error)?;
                if members.is_empty() {
                    return Err(Failure::Error(format!("{}: no dataset of {name} there", data.display())));
                }
                members
            }
            _ if Path::new(name).is_file() && !data.is_some_and(|data| data.join(name).is_dir()) => {
                let hint = "--holdout 0.1 hides a tenth of its triples and asks for them";
                return Err(Failure::Error(format!("{name}: is a file, expected a dataset; hint: {hint}")));
            }
            _ => vec![find_dataset(data, name)?],
        };
        for dataset in opened {
            if found.iter().all(|d| d.dir != dataset.dir) {
                found.push(dataset);
            }
        }
    }
    Ok(found)
}
