//! The registry of benchmark graphs: `registry.toml`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use flock_graph::Names;
use serde::{Deserialize, Serialize};

use super::finetuning::{ByTask, FinetuneRow, PublishedFinetuning};
use super::layout::{Part, Protocol, Split, SplitKind};
use super::remedy::DatasetRemedy;
use flock_model::checkpoint::Task;

/// A family of graphs with the same source and layout.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collection {
    /// Name of the family.
    pub name: String,
    /// What the test graph has that the training graph lacks.
    pub split: SplitKind,
    /// The graph walked for validation.
    pub valid_graph: Part,
    finetune: ByTask<FinetuneRow>,
    /// Where the files come from, as text.
    pub source: String,
    /// Address that the paths of `files` are relative to.
    pub url: String,
    /// Licence of the files, if it is stated.
    pub licence: String,
    /// Columns of head, relation and tail in the upstream files.
    #[serde(default = "in_order")]
    pub columns: [usize; 3],
    /// Upstream files of each file of the layout. `{}` stands for the graph's `at`.
    pub files: BTreeMap<Part, Vec<String>>,
    graphs: Vec<RegistryRow>,
}

fn in_order() -> [usize; 3] {
    [0, 1, 2]
}

/// A graph in the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RegistryRow {
    name: String,
    at: String,
    counts: Option<[u64; 5]>,
    train: Option<[u64; 3]>,
    valid: Option<[u64; 4]>,
    test: Option<[u64; 4]>,
    n: u32,
    passes: u32,
    relation_passes: Option<u32>,
    #[serde(default)]
    tails_only: bool,
    #[serde(default)]
    pretraining: bool,
    #[serde(default)]
    finetune: ByTask<FinetuneRow>,
}

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RegistryFile {
    collection: Vec<Collection>,
    sha256: BTreeMap<String, BTreeMap<Part, String>>,
}

/// Sizes of a walked graph and of the triples predicted on it, from the paper's tables. 0 means
/// "not stated".
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Entities: the candidates of entity prediction.
    pub entities: u64,
    /// Relations: the candidates of relation prediction.
    pub relations: u64,
    /// Triples walked.
    pub triples: u64,
    /// Triples to predict.
    pub predicted: u64,
}

/// Groups of datasets whose averages the paper reports, in its order.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DatasetGroup {
    /// New entities and new relations.
    InductiveEr,
    /// New entities.
    InductiveE,
    /// No new entities or relations.
    Transductive,
    /// The graphs that models are pretrained on.
    Pretraining,
    /// Not in the registry.
    Other,
}

impl DatasetGroup {
    /// All groups, in the paper's order.
    pub const ALL: [DatasetGroup; 5] = [
        DatasetGroup::InductiveEr,
        DatasetGroup::InductiveE,
        DatasetGroup::Transductive,
        DatasetGroup::Pretraining,
        DatasetGroup::Other,
    ];
}

impl fmt::Display for DatasetGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DatasetGroup::InductiveEr => "inductive_er",
            DatasetGroup::InductiveE => "inductive_e",
            DatasetGroup::Transductive => "transductive",
            DatasetGroup::Pretraining => "pretraining",
            DatasetGroup::Other => "other",
        })
    }
}

/// A graph in the registry.
#[derive(Debug)]
pub struct RegistryEntry {
    /// Name of the graph and of its directory.
    pub name: &'static str,
    /// What stands for `{}` in upstream paths.
    pub at: &'static str,
    /// The family it belongs to.
    pub collection: &'static Collection,
    /// The group in which it is averaged.
    pub group: DatasetGroup,
    /// How it is evaluated.
    pub protocol: Protocol,
    /// Entities, relations and triples of `train.txt`. 0 means "not stated".
    pub train: [u64; 3],
    /// Sizes at validation.
    pub valid: Counts,
    /// Sizes at test.
    pub test: Counts,
    /// Published base walk count.
    pub n: u32,
    passes: [u32; 2],
    finetuning: [PublishedFinetuning; 2],
    /// SHA-256 of the files of the layout, where known.
    pub sha256: Option<&'static BTreeMap<Part, String>>,
}

impl RegistryEntry {
    /// Returns the published number of ensemble passes.
    pub fn passes(&self, task: Task) -> u32 {
        self.passes[task as usize]
    }

    /// Returns the published fine-tuning of a task, and how the fine-tuned model is asked.
    pub fn finetuning(&self, task: Task) -> PublishedFinetuning {
        self.finetuning[task as usize]
    }

    /// Returns the sizes for a split.
    pub fn counts(&self, split: Split) -> Counts {
        match split {
            Split::Valid => self.valid,
            Split::Test => self.test,
        }
    }

    /// Returns the density |E| / (|V| (|V| − 1)) of the test graph.
    pub fn density(&self) -> f64 {
        let v = self.test.entities as f64;
        self.test.triples as f64 / (v * (v - 1.0))
    }

    fn new(
        collection: &'static Collection,
        row: &'static RegistryRow,
        sha256: Option<&'static BTreeMap<Part, String>>,
    ) -> RegistryEntry {
        let counts =
            |[entities, relations, triples, predicted]: [u64; 4]| Counts { entities, relations, triples, predicted };
        let (train, valid, test) = match row.counts {
            Some([v, r, train, valid, test]) => ([0, 0, train], [v, r, train, valid], [v, r, train, test]),
            None => (row.train.unwrap_or_default(), row.valid.unwrap_or_default(), row.test.unwrap_or_default()),
        };
        let group = match collection.split {
            _ if row.pretraining => DatasetGroup::Pretraining,
            SplitKind::InductiveEr => DatasetGroup::InductiveEr,
            SplitKind::InductiveE => DatasetGroup::InductiveE,
            SplitKind::Transductive => DatasetGroup::Transductive,
        };
        let passes = [row.passes, row.relation_passes.unwrap_or(row.passes)];
        let finetuning = [Task::Entity, Task::Relation].map(|task| {
            let settings = row.finetune.of(task).over(collection.finetune.of(task), row.n, passes[task as usize]);
            settings.expect("the tests read it")
        });
        RegistryEntry {
            name: &row.name,
            at: &row.at,
            collection,
            group,
            protocol: Protocol::published(collection.split, collection.valid_graph, !row.tails_only),
            train,
            valid: counts(valid),
            test: counts(test),
            n: row.n,
            passes,
            finetuning,
            sha256,
        }
    }
}

/// The registry does not have this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown dataset {name:?}{}", near_text(near))]
pub struct UnknownDataset {
    /// The name as it was given.
    pub name: String,
    /// Similar names, the nearest first.
    pub near: Vec<String>,
}

impl UnknownDataset {
    /// Returns what to do about it.
    pub fn remedy(&self) -> DatasetRemedy {
        DatasetRemedy::ListNames
    }
}

fn near_text(near: &[String]) -> String {
    match near {
        [] => String::new(),
        near => format!("; near names: {}", near.join(", ")),
    }
}

/// Returns all graphs, in the order of the file.
pub fn entries() -> &'static [RegistryEntry] {
    static ENTRIES: OnceLock<Vec<RegistryEntry>> = OnceLock::new();
    ENTRIES.get_or_init(|| {
        static FILE: OnceLock<RegistryFile> = OnceLock::new();
        let file = FILE.get_or_init(|| toml::from_str(include_str!("registry.toml")).expect("the tests read it"));
        let rows = file.collection.iter().flat_map(|c| c.graphs.iter().map(move |row| (c, row)));
        rows.map(|(c, row)| RegistryEntry::new(c, row, file.sha256.get(&row.name))).collect()
    })
}

/// Returns the graph with this name.
pub fn find(name: &str) -> Option<&'static RegistryEntry> {
    entries().iter().find(|e| e.name == name)
}

/// Returns the graph with this name, or an error that lists similar names.
pub fn get(name: &str) -> Result<&'static RegistryEntry, UnknownDataset> {
    find(name).ok_or_else(|| {
        let mut names = Names::new();
        entries().iter().for_each(|e| _ = names.intern(e.name));
        UnknownDataset { name: name.to_string(), near: names.suggest(name, 4) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flock_model::checkpoint::Metadata;

    #[test]
    fn has_the_papers_graphs() {
        let count = |group| entries().iter().filter(|e| e.group == group).count();
        // The paper: 23, 18 and 13 graphs to evaluate on, 3 to pretrain on.
        assert_eq!(DatasetGroup::ALL.map(count), [23, 18, 13, 3, 0]);
        let all = |f: fn(&RegistryEntry) -> bool| entries().iter().filter(|e| f(e)).map(|e| e.name).collect::<Vec<_>>();
        assert_eq!(all(|e| !e.protocol.heads), ["FB15k237_10", "FB15k237_20", "FB15k237_50"]);
        assert_eq!(all(|e| e.passes(Task::Entity) != e.passes(Task::Relation)), ["YAGO310"]);
        // Means over the groups as tab:flock-adaptive prints them: |E|, and n, which that table has
        // in the wrong rows of the first two.
        let means = |group| {
            let of: Vec<&RegistryEntry> = entries().iter().filter(|e| e.group == group).collect();
            let mean = |f: &dyn Fn(&RegistryEntry) -> f64| of.iter().map(|e| f(e)).sum::<f64>() / of.len() as f64;
            (mean(&|e| e.test.triples as f64) as u64, (mean(&|e| f64::from(e.n)) * 100.0) as u64)
        };
        let groups = [DatasetGroup::InductiveEr, DatasetGroup::InductiveE, DatasetGroup::Transductive];
        assert_eq!(groups.map(means), [(10_838, 1808), (29_090, 2844), (387_491, 21_415)]);
    }

    #[test]
    fn the_rule_gives_the_published_n() {
        // The rule is by the walked graph: at test time that is the test graph.
        let meta = Metadata::published(Task::Entity);
        let rule = |e: &RegistryEntry| meta.base_walks(e.test.entities as u32, e.test.triples as usize);
        let other: Vec<_> = entries().iter().filter(|e| rule(e) != e.n).map(|e| (e.name, e.n, rule(e))).collect();
        assert!(other.is_empty(), "{other:?}");
    }

    #[test]
    fn unknown_names_get_near_ones() {
        let error = |name| get(name).unwrap_err().to_string();
        assert_eq!(
            error("FB15k237Inductiv_v1"),
            "unknown dataset \"FB15k237Inductiv_v1\"; near names: FB15k237Inductive_v1, FB15k237Inductive_v2, \
             FB15k237Inductive_v3, FB15k237Inductive_v4"
        );
        assert!(error("metafam").contains("near names: Metafam"));
        assert_eq!(error("∅"), "unknown dataset \"∅\"");
    }
}
