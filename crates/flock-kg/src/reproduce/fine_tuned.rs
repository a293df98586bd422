//! The tables of scores after fine-tuning on each graph with the published settings.

use flock_eval::datasets::registry;
use flock_eval::datasets::{EpochBatches, PublishedFinetuning};
use flock_eval::evaluate::Choice;
use flock_eval::published::PublishedSetting;
use flock_eval::sheet::Sheet;
use flock_eval::{EvalSettings, Evaluation};
use flock_model::checkpoint::Task;
use flock_train::PublishedRun;

use super::report::Section;
use super::retrained::{add_budget, departures_line, given_settings};
use super::scores::add_scores;
use super::work::{TrainedModel, Work};
use super::{Item, Report, ReproduceError};

/// The model is trained further on each graph, and asked there.
pub(super) fn fine_tuned(item: Item, work: &Work<'_>) -> Result<Report, ReproduceError> {
    let (graphs, task) = (work.graphs(item)?, item.task());
    let start = work.predictor.checkpoint(task)?;
    let mut settings = given_settings(work, item)?;
    settings.put("the item", "task", task.to_string());
    add_budget(work, &mut settings);
    // All configs are made before the first training: a setting that is wrong is found now.
    let runs: Vec<PublishedRun> = graphs
        .datasets
        .iter()
        .map(|d| PublishedRun::resolve(d, &settings).map_err(crate::finetune::TrainingError::from))
        .collect::<Result<_, _>>()?;
    let mut done: Vec<(TrainedModel, Evaluation)> = Vec::new();
    for (i, (dataset, run)) in graphs.datasets.iter().zip(&runs).enumerate() {
        work.begin(&format!("fine-tuning on {}", dataset.name), i, runs.len());
        let trained = work.train(&format!("{item}-{}", dataset.name), &run.config, Some(&start))?;
        let named = work.open(&trained)?;
        work.begin(&dataset.name, i, runs.len());
        let published = registry::find(&dataset.name).map(|e| e.finetuning(task));
        let result = work.evaluate(&named, dataset, &asked(work.options.eval(), published))?;
        done.push((trained, result));
    }

    let mut report = Report::new(item);
    report.say(format!("fine-tuned from: {}", work.model(task)?.name));
    report.say(work.options.describe());
    report.say(graphs.describe());
    report.say("each graph: the published epochs, batches and batch size; 256 negatives, AdamW 5e-4; the best epoch by validation MRR");
    departures_line(runs.iter().flat_map(|run| &run.departures)).into_iter().for_each(|line| report.say(line));
    let (trained, results): (Vec<TrainedModel>, Vec<Evaluation>) = done.into_iter().unzip();
    let rows = trained
        .iter()
        .zip(&results)
        .map(|(t, e)| {
            let best = t.validation.map_or("–".to_string(), |mrr| format!("{mrr:.3}"));
            vec![e.dataset.clone(), t.steps.to_string(), format!("{:.1}", t.minutes), best]
        })
        .collect();
    add_scores(&mut report, results, PublishedSetting::FineTuned);
    let header = ["dataset", "steps", "minutes", "validation MRR"].map(String::from).to_vec();
    report.sections.push(Section::new("runs", "Training runs", Sheet { header, rows }));
    Ok(report)
}

/// How a fine-tuned model is asked: where the published way is wanted, as the tables of fine-tuning say, which differ from those
/// of zero-shot inference on one graph.
fn asked(settings: EvalSettings, published: Option<PublishedFinetuning>) -> EvalSettings {
    let or = |choice: Choice, count: Option<u32>| match (choice, count) {
        (Choice::Published, Some(count)) => Choice::Given(count),
        (choice, _) => choice,
    };
    EvalSettings {
        walks: or(settings.walks, published.map(|p| p.n)),
        passes: or(settings.passes, published.map(|p| p.passes)),
        ..settings
    }
}

/// Lists the published fine-tuning settings of every graph.
pub(super) fn settings_section() -> Section {
    let mut header = vec!["dataset".to_string()];
    for task in [Task::Entity, Task::Relation] {
        header.extend(["epochs", "batches / epoch", "batch", "P", "n"].map(|what| format!("{task} {what}")));
    }
    let row = |e: &registry::RegistryEntry| {
        let mut row = vec![e.name.to_string()];
        for task in [Task::Entity, Task::Relation] {
            let f = e.finetuning(task);
            let batches = match f.batches {
                EpochBatches::Full => "full".to_string(),
                EpochBatches::Count(count) => count.to_string(),
            };
            row.extend([f.epochs.to_string(), batches, f.batch.to_string(), f.passes.to_string(), f.n.to_string()]);
        }
        row
    };
    let rows = registry::entries().iter().map(row).collect();
    Section::new("fine-tuning", "Fine-tuning and inference of each graph", Sheet { header, rows })
        .note("`flock-kg finetune DATASET --published` uses these.")
}

/// Says which batch sizes the published fine-tunings have.
pub(super) fn batch_sizes(task: Task) -> String {
    let sizes = registry::entries().iter().map(|e| e.finetuning(task).batch);
    let (least, most) = sizes.fold((usize::MAX, 0), |(a, b), n| (a.min(n), b.max(n)));
    format!("{least} to {most}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hetionet_is_asked_otherwise_after_fine_tuning() {
        let settings = crate::reproduce::ReproduceOptions::default().eval();
        let of = |task| registry::find("Hetionet").map(|e| e.finetuning(task));
        // The caption of tab:hyperparameter-finetune-1: (P, n) = (1, 1024) instead of (2, 512).
        let entity = asked(settings, of(Task::Entity));
        assert_eq!((entity.passes, entity.walks), (Choice::Given(1), Choice::Given(1024)));
        let relation = asked(settings, of(Task::Relation));
        assert_eq!((relation.passes, relation.walks), (Choice::Given(2), Choice::Given(512)));
        let given = EvalSettings { passes: Choice::Given(4), walks: Choice::Rule, ..settings };
        assert_eq!(asked(given, of(Task::Entity)).passes, Choice::Given(4));
        assert_eq!(asked(given, of(Task::Entity)).walks, Choice::Rule);
    }
}
