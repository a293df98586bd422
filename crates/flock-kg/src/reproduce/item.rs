//! The tables and figures of the paper: what each is called here, where it stands there, and what it needs.

use std::fmt;

use flock_eval::datasets::DatasetGroup;
use flock_eval::datasets::registry::{self, RegistryEntry};
use flock_graph::Names;
use flock_model::checkpoint::Task;

/// A table or figure of the paper.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// Zero-shot entity prediction, per graph and by group.
    EntityZeroShot,
    /// Zero-shot relation prediction, per graph and by group.
    RelationZeroShot,
    /// Entity prediction after fine-tuning on each graph.
    EntityFineTuned,
    /// Relation prediction after fine-tuning on each graph.
    RelationFineTuned,
    /// The rule for the base walk count against a fixed count.
    AdaptiveWalks,
    /// MRR against ensembled passes.
    Ensemble,
    /// Variants of the model, each retrained.
    Ablations,
    /// MRR against the number of pretraining graphs.
    PretrainingMix,
    /// Parameters, time and memory of a training step.
    TrainingSpeed,
    /// Time and memory of a batch of questions.
    InferenceSpeed,
    /// Accuracy on Petals.
    Petals,
    /// Relation embeddings of Metafam.
    CaseStudy,
    /// Gain over ULTRA against the density of graphs.
    Density,
    /// Sizes of the datasets.
    Statistics,
    /// Settings of training, fine-tuning and inference.
    Hyperparameters,
    /// Another model with noise, which this engine does not run.
    NoiseInjection,
}

/// The graphs that the paper pretrains on, in the order in which its mixes grow.
pub const PRETRAINING_MIX: [&str; 8] =
    ["FB15k237", "WN18RR", "CoDExMedium", "NELL995", "YAGO310", "ConceptNet100k", "DBpedia100k", "AristoV4"];

/// The transductive graphs of the ablation table.
const ABLATION_TRANSDUCTIVE: [&str; 5] = ["NELL995", "NELL23k", "WDsinger", "ConceptNet100k", "YAGO310"];

impl Item {
    /// All items, in the order of the paper's text.
    pub const ALL: [Item; 16] = [
        Item::Petals,
        Item::EntityZeroShot,
        Item::EntityFineTuned,
        Item::RelationZeroShot,
        Item::RelationFineTuned,
        Item::PretrainingMix,
        Item::Ensemble,
        Item::AdaptiveWalks,
        Item::Ablations,
        Item::TrainingSpeed,
        Item::InferenceSpeed,
        Item::NoiseInjection,
        Item::CaseStudy,
        Item::Density,
        Item::Statistics,
        Item::Hyperparameters,
    ];

    /// Returns the name by which it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Item::EntityZeroShot => "entity-zero-shot",
            Item::RelationZeroShot => "relation-zero-shot",
            Item::EntityFineTuned => "entity-fine-tuned",
            Item::RelationFineTuned => "relation-fine-tuned",
            Item::AdaptiveWalks => "adaptive-walks",
            Item::Ensemble => "ensemble",
            Item::Ablations => "ablations",
            Item::PretrainingMix => "pretraining-mix",
            Item::TrainingSpeed => "training-speed",
            Item::InferenceSpeed => "inference-speed",
            Item::Petals => "petals",
            Item::CaseStudy => "case-study",
            Item::Density => "density",
            Item::Statistics => "statistics",
            Item::Hyperparameters => "hyperparameters",
            Item::NoiseInjection => "noise-injection",
        }
    }

    /// Returns the labels that the paper's source gives it.
    pub fn labels(self) -> &'static str {
        match self {
            Item::EntityZeroShot => "tab:main-entity-result, tab:zeroshot-entity",
            Item::RelationZeroShot => "tab:main_relation_prediction, tab:zeroshot-relation",
            Item::EntityFineTuned => "tab:main-entity-result, tab:finetuned-entity",
            Item::RelationFineTuned => "tab:main_relation_prediction, tab:finetuned-relation",
            Item::AdaptiveWalks => "tab:flock-adaptive",
            Item::Ensemble => "fig:ensemble_scaling",
            Item::Ablations => "tab:ablation",
            Item::PretrainingMix => "fig:pretrain_scaling, tab:pretrain-mix-table",
            Item::TrainingSpeed => "tab:train-scalability",
            Item::InferenceSpeed => "tab:test-scalability",
            Item::Petals => "tab:synthetic-exp-results, fig:synthetic-example",
            Item::CaseStudy => "fig:case_study",
            Item::Density => "fig:density",
            Item::Statistics => "tab:inductive-e-r-statistics, tab:inductive-e-statistics, tab:transductive-statistics",
            Item::Hyperparameters => "tab:hyperparameter, tab:hyperparameter-finetune-1, tab:hyperparameter-finetune-2",
            Item::NoiseInjection => {
                "tab:noise-injection-entity, tab:noise-injection-relation, tab:noise-injection-petals"
            }
        }
    }

    /// Returns its title.
    pub fn title(self) -> &'static str {
        match self {
            Item::EntityZeroShot => "Zero-shot entity prediction",
            Item::RelationZeroShot => "Zero-shot relation prediction",
            Item::EntityFineTuned => "Entity prediction after fine-tuning on each graph",
            Item::RelationFineTuned => "Relation prediction after fine-tuning on each graph",
            Item::AdaptiveWalks => "Base walks by the rule against 128 everywhere",
            Item::Ensemble => "MRR against the number of ensembled passes",
            Item::Ablations => "Ablations, each retrained",
            Item::PretrainingMix => "MRR against the number of pretraining graphs",
            Item::TrainingSpeed => "Parameters, time and memory of a training step",
            Item::InferenceSpeed => "Time and memory of a batch of questions",
            Item::Petals => "Accuracy on Petals",
            Item::CaseStudy => "Relation embeddings of Metafam",
            Item::Density => "Gain over ULTRA against the density of the graph",
            Item::Statistics => "Sizes of the datasets",
            Item::Hyperparameters => "Settings of training, fine-tuning and inference",
            Item::NoiseInjection => "TRIX with noise",
        }
    }

    /// Returns whether a graph is one of those that its numbers are for.
    pub fn asks(self, entry: &RegistryEntry) -> bool {
        let inductive = matches!(entry.group, DatasetGroup::InductiveEr | DatasetGroup::InductiveE);
        match self {
            Item::EntityZeroShot | Item::RelationZeroShot | Item::AdaptiveWalks => {
                entry.group != DatasetGroup::Pretraining
            }
            Item::EntityFineTuned | Item::RelationFineTuned | Item::Statistics => true,
            Item::Ensemble | Item::PretrainingMix => inductive,
            Item::Ablations => inductive || ABLATION_TRANSDUCTIVE.contains(&entry.name),
            Item::CaseStudy => entry.name == "Metafam",
            Item::Density => entry.group != DatasetGroup::Pretraining && entry.name != "Metafam",
            Item::TrainingSpeed
            | Item::InferenceSpeed
            | Item::Petals
            | Item::Hyperparameters
            | Item::NoiseInjection => false,
        }
    }

    /// Says which graphs its numbers are for.
    pub fn graphs(self) -> &'static str {
        match self {
            Item::EntityZeroShot | Item::RelationZeroShot | Item::AdaptiveWalks => "all but the pretraining graphs",
            Item::EntityFineTuned | Item::RelationFineTuned | Item::Statistics => "all",
            Item::Ensemble | Item::PretrainingMix => "inductive_er and inductive_e",
            Item::Ablations => "inductive_er, inductive_e, and five that are transductive",
            Item::CaseStudy => "Metafam",
            Item::Density => "all but Metafam and the pretraining graphs",
            _ => "none",
        }
    }

    /// Returns the graphs that it trains on, in order, if that is not the graph that is asked.
    pub fn pretrains_on(self) -> &'static [&'static str] {
        match self {
            Item::Ablations => &PRETRAINING_MIX[..3],
            Item::PretrainingMix => &PRETRAINING_MIX,
            _ => &[],
        }
    }

    /// Returns the task that it is about.
    pub fn task(self) -> Task {
        match self {
            Item::RelationZeroShot | Item::RelationFineTuned => Task::Relation,
            _ => Task::Entity,
        }
    }

    /// Says in a few words what it does, for lists.
    pub fn work(self) -> &'static str {
        match self {
            Item::EntityZeroShot | Item::RelationZeroShot => "evaluates",
            Item::EntityFineTuned | Item::RelationFineTuned => "fine-tunes a model on each graph, evaluates",
            Item::AdaptiveWalks => "evaluates twice",
            Item::Ensemble => "evaluates with several seeds",
            Item::Ablations => "pretrains seven models, evaluates each",
            Item::PretrainingMix => "pretrains a model on each mix, evaluates each",
            Item::TrainingSpeed | Item::InferenceSpeed => "measures this machine",
            Item::Petals => "trains on Petals",
            Item::CaseStudy => "asks for every relation",
            Item::Density => "evaluates, or reads what entity-zero-shot left",
            Item::Statistics => "counts",
            Item::Hyperparameters => "lists",
            Item::NoiseInjection => "not possible: it needs TRIX, which this engine does not run",
        }
    }

    /// Finds an item by name.
    ///
    /// # Errors
    /// There is none of that name; the error has near ones.
    pub fn parse(name: &str) -> Result<Item, UnknownItem> {
        Item::ALL.into_iter().find(|item| item.name() == name).ok_or_else(|| {
            let mut names = Names::new();
            Item::ALL.iter().for_each(|item| _ = names.intern(item.name()));
            UnknownItem { name: name.to_string(), near: names.suggest(name, 3) }
        })
    }

    /// Counts the graphs of the registry that its numbers are for.
    pub fn num_graphs(self) -> usize {
        registry::entries().iter().filter(|e| self.asks(e)).count()
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no table or figure of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no table or figure is called {name:?}{}", if near.is_empty() { String::new() } else { format!("; near names: {}", near.join(", ")) })]
pub struct UnknownItem {
    /// The name as it was given.
    pub name: String,
    /// Similar names, the nearest first.
    pub near: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_have_the_papers_graphs() {
        // The captions: 54 graphs; 57 with the pretraining graphs; 41 inductive; 46 in the ablations (23 + 18 + 5); 53 in
        // the figure of densities.
        let counts = [
            (Item::EntityZeroShot, 54),
            (Item::RelationFineTuned, 57),
            (Item::Ensemble, 41),
            (Item::PretrainingMix, 41),
            (Item::Ablations, 46),
            (Item::Density, 53),
            (Item::CaseStudy, 1),
            (Item::Petals, 0),
        ];
        for (item, count) in counts {
            assert_eq!(item.num_graphs(), count, "{item}");
        }
        assert!(PRETRAINING_MIX.iter().all(|name| registry::find(name).is_some()));
    }

    #[test]
    fn names_are_found_and_near_ones_suggested() {
        for item in Item::ALL {
            assert_eq!(Item::parse(item.name()), Ok(item));
        }
        let error = Item::parse("entity-zeroshot").unwrap_err().to_string();
        assert!(error.contains("near names: entity-zero-shot"), "{error}");
    }
}
