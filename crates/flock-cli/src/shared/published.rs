//! The published numbers that a command puts beside ours: a built-in table, or a file.

use std::path::PathBuf;

use flock_kg::Task;
use flock_kg::eval::published::{PublishedNumbers, PublishedSetting};

use crate::shared::failure::{Failure, error};

/// Published numbers: a built-in table, or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// The built-in table.
    BuiltIn(PublishedSetting),
    /// A CSV file.
    File(PathBuf),
}

impl Numbers {
    /// Parses the value of a flag. A file that is called like a built-in table can be given as ./published.
    pub fn parse(text: &str) -> Result<Numbers, String> {
        Ok(match text {
            "published" => Numbers::BuiltIn(PublishedSetting::ZeroShot),
            "published-finetuned" => Numbers::BuiltIn(PublishedSetting::FineTuned),
            "" => return Err("expected published, published-finetuned or a file".to_string()),
            file => Numbers::File(PathBuf::from(file)),
        })
    }

    /// What tables and errors call them.
    pub fn name(&self) -> String {
        match self {
            Numbers::BuiltIn(PublishedSetting::ZeroShot) => "published zero-shot numbers".to_string(),
            Numbers::BuiltIn(PublishedSetting::FineTuned) => "published fine-tuned numbers".to_string(),
            Numbers::File(path) => path.display().to_string(),
        }
    }

    /// The numbers for each task that they are for. A file that is named after a task is for that task, another for both.
    pub fn load(&self) -> Result<Vec<(Option<Task>, PublishedNumbers)>, Failure> {
        Ok(match self {
            Numbers::BuiltIn(setting) => {
                let of = |task| (Some(task), PublishedNumbers::built_in(task, *setting));
                [Task::Entity, Task::Relation].map(of).into()
            }
            Numbers::File(path) => {
                let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().to_lowercase());
                let words = || name.split(|c: char| !c.is_alphanumeric());
                let task = [Task::Entity, Task::Relation].into_iter().find(|t| words().any(|w| w == t.to_string()));
                vec![(task, PublishedNumbers::read(path).map_err(error)?)]
            }
        })
    }
}
