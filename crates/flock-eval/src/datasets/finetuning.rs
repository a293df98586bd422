//! How the published models were fine-tuned and then asked: the tables `hyperparameter-finetune-1`
//! (entities) and `-2` (relations) of the paper.
//!
//! The registry has a row per collection and task, and what differs on a graph.

use serde::{Deserialize, Serialize};

use flock_model::checkpoint::Task;

/// Batches in an epoch.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BatchesInFile", into = "BatchesInFile")]
pub enum EpochBatches {
    /// As many as it takes to see every training triple once.
    Full,
    /// This many, whatever the size of the graph.
    Count(u64),
}

/// The same in the file: a number, or `"full"`.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number or \"full\"")]
enum BatchesInFile {
    Count(u64),
    Word(FullWord),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FullWord {
    Full,
}

impl From<BatchesInFile> for EpochBatches {
    fn from(batches: BatchesInFile) -> EpochBatches {
        match batches {
            BatchesInFile::Count(count) => EpochBatches::Count(count),
            BatchesInFile::Word(FullWord::Full) => EpochBatches::Full,
        }
    }
}

impl From<EpochBatches> for BatchesInFile {
    fn from(batches: EpochBatches) -> BatchesInFile {
        match batches {
            EpochBatches::Count(count) => BatchesInFile::Count(count),
            EpochBatches::Full => BatchesInFile::Word(FullWord::Full),
        }
    }
}

/// The published fine-tuning of a model on a graph, and how the fine-tuned model is asked.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PublishedFinetuning {
    /// Number of epochs.
    pub epochs: u64,
    /// Batches in each of them.
    pub batches: EpochBatches,
    /// Triples in a batch.
    pub batch: usize,
    /// Base walk count of the fine-tuned model when it is asked. Training walks have the count of
    /// the graph, [`RegistryEntry::n`](super::RegistryEntry::n).
    pub n: u32,
    /// Ensemble passes of the fine-tuned model.
    pub passes: u32,
}

impl PublishedFinetuning {
    /// Returns the steps of an epoch on a training graph with so many triples.
    pub fn epoch_steps(&self, num_triples: usize) -> u64 {
        match self.batches {
            EpochBatches::Full => num_triples.div_ceil(self.batch) as u64,
            EpochBatches::Count(count) => count,
        }
    }

    /// Returns the steps of all epochs.
    pub fn steps(&self, num_triples: usize) -> u64 {
        self.epochs * self.epoch_steps(num_triples)
    }
}

/// One value for each task.
#[derive(Copy, Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ByTask<T> {
    entity: T,
    relation: T,
}

impl<T> ByTask<T> {
    pub(super) fn of(&self, task: Task) -> &T {
        match task {
            Task::Entity => &self.entity,
            Task::Relation => &self.relation,
        }
    }
}

/// Settings in the file. A graph states only what differs from its collection. `n` and `passes`
/// are stated where the fine-tuned model is not asked as the zero-shot one is.
#[derive(Copy, Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FinetuneRow {
    epochs: Option<u64>,
    batches: Option<EpochBatches>,
    batch: Option<usize>,
    n: Option<u32>,
    passes: Option<u32>,
}

impl FinetuneRow {
    /// Fills in from the collection's row, then from how the graph is asked zero-shot. `None` if
    /// neither row states a setting.
    pub(super) fn over(&self, collection: &FinetuneRow, n: u32, passes: u32) -> Option<PublishedFinetuning> {
        Some(PublishedFinetuning {
            epochs: self.epochs.or(collection.epochs)?,
            batches: self.batches.or(collection.batches)?,
            batch: self.batch.or(collection.batch)?,
            n: self.n.or(collection.n).unwrap_or(n),
            passes: self.passes.or(collection.passes).unwrap_or(passes),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::registry::entries;
    use super::*;

    /// `tab:hyperparameter-finetune-1`, row by row: dataset, epochs, batches per epoch (0: full),
    /// batch size, P, n. The caption adds that Hetionet was fine-tuned with (P, n) = (1, 1024).
    const ENTITY: [(&str, u64, u64, usize, u32, u32); 38] = [
        ("FB15k-237", 1, 0, 8, 16, 128),
        ("WN18RR", 1, 0, 8, 16, 128),
        ("CoDEx Small", 1, 0, 32, 16, 16),
        ("CoDEx Medium", 1, 0, 8, 16, 128),
        ("CoDEx Large", 1, 2000, 4, 2, 512),
        ("NELL-995", 1, 0, 8, 16, 128),
        ("YAGO310", 1, 2000, 4, 8, 512),
        ("WDsinger", 1, 0, 8, 16, 16),
        ("NELL23k", 3, 0, 8, 16, 32),
        ("FB15k-237(10)", 1, 0, 8, 16, 32),
        ("FB15k-237(20)", 1, 0, 8, 16, 64),
        ("FB15k-237(50)", 1, 0, 8, 16, 64),
        ("Hetionet", 1, 4000, 8, 1, 1024),
        ("DBpedia100k", 1, 1000, 4, 2, 512),
        ("AristoV4", 1, 0, 8, 4, 256),
        ("ConceptNet100k", 1, 0, 8, 16, 128),
        ("FB v1--v4", 1, 0, 8, 16, 16),
        ("WN v1--v4", 1, 0, 8, 16, 16),
        ("NL v1--v4", 3, 0, 8, 16, 16),
        ("ILPC Small", 1, 0, 8, 16, 16),
        ("ILPC Large", 1, 0, 8, 16, 64),
        ("FB 25--100", 3, 0, 8, 16, 16),
        ("WK 25--100", 3, 0, 8, 16, 16),
        ("NL 0--100", 3, 0, 8, 16, 16),
        ("Wiki MT1 tax", 3, 0, 8, 16, 16),
        ("Wiki MT1 health", 3, 0, 8, 16, 16),
        ("Wiki MT2 org", 3, 0, 16, 16, 32),
        ("Wiki MT2 sci", 3, 0, 8, 16, 16),
        ("Wiki MT3 art", 3, 0, 16, 16, 32),
        ("Wiki MT3 infra", 3, 0, 16, 16, 32),
        ("Wiki MT4 sci", 3, 0, 8, 16, 16),
        ("Wiki MT4 health", 3, 0, 8, 16, 16),
        ("Metafam", 3, 0, 8, 16, 16),
        ("FBNELL", 3, 0, 8, 16, 16),
        ("HM 1k", 1, 0, 8, 16, 16),
        ("HM 3k", 1, 0, 16, 16, 32),
        ("HM 5k", 1, 0, 8, 16, 64),
        ("HM Indigo", 1, 0, 8, 16, 128),
    ];

    /// `tab:hyperparameter-finetune-2`, in the same way.
    const RELATION: [(&str, u64, u64, usize, u32, u32); 38] = [
        ("FB15k-237", 1, 1000, 8, 16, 128),
        ("WN18RR", 1, 1000, 8, 16, 128),
        ("CoDEx Small", 1, 1000, 8, 16, 16),
        ("CoDEx Medium", 1, 1000, 8, 16, 128),
        ("CoDEx Large", 1, 1000, 4, 2, 512),
        ("NELL-995", 1, 1000, 8, 16, 128),
        ("YAGO310", 1, 1000, 8, 4, 512),
        ("WDsinger", 1, 1000, 8, 16, 16),
        ("NELL23k", 1, 1000, 8, 16, 32),
        ("FB15k-237(10)", 1, 1000, 8, 16, 32),
        ("FB15k-237(20)", 1, 1000, 8, 16, 64),
        ("FB15k-237(50)", 1, 1000, 8, 16, 64),
        ("Hetionet", 1, 1000, 4, 2, 512),
        ("DBpedia100k", 1, 1000, 4, 2, 512),
        ("AristoV4", 1, 1000, 8, 4, 256),
        ("ConceptNet100k", 1, 1000, 8, 16, 128),
        ("FB v1--v4", 1, 1000, 8, 16, 16),
        ("WN v1--v4", 1, 1000, 8, 16, 16),
        ("NL v1--v4", 1, 1000, 8, 16, 16),
        ("ILPC Small", 1, 1000, 8, 16, 16),
        ("ILPC Large", 1, 1000, 8, 16, 64),
        ("FB 25--100", 1, 1000, 8, 16, 16),
        ("WK 25--100", 1, 1000, 8, 16, 16),
        ("NL 0--100", 1, 1000, 8, 16, 16),
        ("Wiki MT1 tax", 1, 1000, 8, 16, 16),
        ("Wiki MT1 health", 1, 1000, 8, 16, 16),
        ("Wiki MT2 org", 1, 1000, 8, 16, 32),
        ("Wiki MT2 sci", 1, 1000, 8, 16, 16),
        ("Wiki MT3 art", 1, 1000, 8, 16, 32),
        ("Wiki MT3 infra", 1, 1000, 8, 16, 32),
        ("Wiki MT4 sci", 1, 1000, 8, 16, 16),
        ("Wiki MT4 health", 1, 1000, 8, 16, 16),
        ("Metafam", 1, 1000, 8, 16, 16),
        ("FBNELL", 1, 1000, 8, 16, 16),
        ("HM 1k", 1, 1000, 8, 16, 16),
        ("HM 3k", 1, 1000, 8, 16, 32),
        ("HM 5k", 1, 1000, 8, 16, 64),
        ("HM Indigo", 1, 1000, 8, 16, 128),
    ];

    /// The graphs of a row of the paper, by their names here.
    fn graphs(row: &str) -> Vec<String> {
        let range = |name: &str, ends: &[&str]| ends.iter().map(|end| format!("{name}_{end}")).collect();
        let (versions, shares) = (["v1", "v2", "v3", "v4"], ["25", "50", "75", "100"]);
        match row {
            "FB v1--v4" => range("FB15k237Inductive", &versions),
            "WN v1--v4" => range("WN18RRInductive", &versions),
            "NL v1--v4" => range("NELLInductive", &versions),
            "FB 25--100" => range("FBIngram", &shares),
            "WK 25--100" => range("WKIngram", &shares),
            "NL 0--100" => range("NLIngram", &["0", "25", "50", "75", "100"]),
            "FB15k-237" => vec!["FB15k237".to_string()],
            "NELL-995" => vec!["NELL995".to_string()],
            "HM Indigo" => vec!["HM_indigo".to_string()],
            "ILPC Small" => vec!["ILPC2022_small".to_string()],
            "ILPC Large" => vec!["ILPC2022_large".to_string()],
            _ if row.starts_with("FB15k-237(") => {
                vec![row.replace("FB15k-237(", "FB15k237_").replace(')', "")]
            }
            _ if row.starts_with("Wiki ") => vec![row.replacen("Wiki ", "WikiTopics", 1).replace(' ', "_")],
            _ if row.starts_with("HM ") => vec![row.replace(' ', "_")],
            _ => vec![row.replace(' ', "")],
        }
    }

    #[test]
    fn the_registry_has_the_papers_tables() {
        for (task, table) in [(Task::Entity, &ENTITY), (Task::Relation, &RELATION)] {
            let mut expected = BTreeMap::new();
            for &(row, epochs, batches, batch, passes, n) in table {
                let batches = if batches == 0 { EpochBatches::Full } else { EpochBatches::Count(batches) };
                let settings = PublishedFinetuning { epochs, batches, batch, n, passes };
                for name in graphs(row) {
                    assert!(expected.insert(name, settings).is_none(), "{row} twice");
                }
            }
            let found: BTreeMap<String, _> =
                entries().iter().map(|e| (e.name.to_string(), e.finetuning(task))).collect();
            assert_eq!(found.len(), 57);
            assert_eq!(found, expected, "{task}");
            for e in entries().iter().filter(|e| (e.name, task) != ("Hetionet", Task::Entity)) {
                let settings = e.finetuning(task);
                assert_eq!((settings.n, settings.passes), (e.n, e.passes(task)), "{} is asked as zero-shot", e.name);
            }
        }
    }

    #[test]
    fn steps_by_hand() {
        // 13,821 triples in batches of 8 are 1,727.6…: 1,728 batches, and 3 epochs of them.
        let full = PublishedFinetuning { epochs: 3, batches: EpochBatches::Full, batch: 8, n: 16, passes: 16 };
        assert_eq!((full.epoch_steps(13_821), full.steps(13_821)), (1_728, 5_184));
        assert_eq!((full.epoch_steps(16), full.epoch_steps(17)), (2, 3));
        assert_eq!(serde_json::to_value(full).unwrap()["batches"], "full");
        let counted = PublishedFinetuning { epochs: 2, batches: EpochBatches::Count(1_000), ..full };
        assert_eq!((counted.epoch_steps(13_821), counted.steps(40)), (1_000, 2_000));
    }
}
