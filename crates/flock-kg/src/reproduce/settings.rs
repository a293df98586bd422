//! The paper's tables of settings, beside what this program does unless it is told otherwise.

use flock_eval::datasets::registry;
use flock_eval::evaluate::DEFAULT_PASSES;
use flock_eval::sheet::Sheet;
use flock_model::checkpoint::{Metadata, Task};
use flock_train::TrainConfig;
use serde_json::Value;

use super::paper::HYPERPARAMETERS;
use super::report::Section;
use super::work::Work;
use super::{Item, Report, ReproduceError};

/// tab:hyperparameter and the tables of fine-tuning settings.
pub(super) fn hyperparameters(_: &Work<'_>) -> Result<Report, ReproduceError> {
    let mut report = Report::new(Item::Hyperparameters);
    report.say("ours: the defaults of this program; every one of them is a setting");
    let ours = [Task::Entity, Task::Relation].map(defaults);
    let row = |(i, (what, entity, relation)): (usize, &(&str, &str, &str))| {
        vec![what.to_string(), entity.to_string(), ours[0][i].clone(), relation.to_string(), ours[1][i].clone()]
    };
    let header = ["setting", "entity, published", "entity, ours", "relation, published", "relation, ours"];
    let rows = HYPERPARAMETERS.iter().enumerate().map(row).collect();
    report.sections.push(Section::new("", "Settings", Sheet { header: header.map(String::from).to_vec(), rows }));
    report.sections.push(super::fine_tuned::settings_section());
    Ok(report)
}

/// Our defaults, in the order of [`HYPERPARAMETERS`].
fn defaults(task: Task) -> [String; 18] {
    let (meta, pretraining, finetuning) =
        (Metadata::published(task), TrainConfig::pretraining(task), TrainConfig::finetuning(task));
    // Numbers as configs write them.
    let text = |value: Value| value.to_string();
    let number = |x: f64| format!("{x}");
    let of = |f: fn(&registry::RegistryEntry) -> u32| {
        let values = registry::entries().iter().map(f);
        let (least, most) = values.fold((u32::MAX, 0), |(a, b), n| (a.min(n), b.max(n)));
        format!("{least} to {most}")
    };
    [
        meta.length.to_string(),
        pretraining.walks.n_train.to_string(),
        of(|e| e.n),
        meta.layers.to_string(),
        meta.width.to_string(),
        meta.heads.to_string(),
        (meta.width / meta.heads).to_string(),
        meta.updates.to_string(),
        DEFAULT_PASSES.to_string(),
        "AdamW".to_string(),
        number(pretraining.optimiser.rate),
        pretraining.steps.to_string(),
        number(pretraining.loss.temperature),
        text(serde_json::to_value(pretraining.data.negatives).unwrap_or_default()),
        pretraining.data.batch.to_string(),
        number(pretraining.optimiser.decay),
        text(serde_json::to_value(finetuning.data.negatives).unwrap_or_default()),
        super::fine_tuned::batch_sizes(task),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_defaults_are_the_published_ones() {
        for task in [Task::Entity, Task::Relation] {
            for ((what, entity, relation), ours) in HYPERPARAMETERS.iter().zip(defaults(task)) {
                let published = if task == Task::Entity { entity } else { relation };
                assert_eq!(ours, *published, "{task}: {what}");
            }
        }
    }
}
