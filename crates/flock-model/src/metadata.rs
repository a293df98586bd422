//! What a model is: its task, its sizes, its switches, and where its weights come from.
//!
//! A checkpoint stores this as JSON. A switch that is as in the published models is left out, so
//! that old files and new ones have the same bytes.

use std::fmt::{self, Write as _};

use flock_kernels::{head, swiglu};
use flock_walk::WalkOptions;
use serde::{Deserialize, Serialize};

use crate::base_walks::{MIN_BASE_WALKS, base_walks, dense_walks};
pub use crate::processor::ProcessorKind;
use crate::processor::Sizes;

/// What a model predicts.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Task {
    /// Entities: (h, r, ?).
    Entity,
    /// Relations: (h, ?, t).
    Relation,
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Task::Entity => "entity",
            Task::Relation => "relation",
        })
    }
}

/// How the consensus averages what the walks say of a node or a type.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Averaging {
    /// Weighted by a softmax of learnt logits: the published model.
    #[default]
    Softmax,
    /// Equal weights. The logits' tensors are kept and have no part in it.
    Mean,
}

/// Tells whether a switch is as in the published models, whose files do not name it.
fn is_published<T: Default + PartialEq>(switch: &T) -> bool {
    *switch == T::default()
}

fn yes() -> bool {
    true
}

fn is_yes(switch: &bool) -> bool {
    *switch
}

fn one() -> u32 {
    1
}

fn is_one(period: &u32) -> bool {
    *period == 1
}

fn published_least() -> u32 {
    MIN_BASE_WALKS
}

fn is_published_least(least: &u32) -> bool {
    *least == MIN_BASE_WALKS
}

fn one_layer() -> usize {
    1
}

fn is_one_layer(layers: &usize) -> bool {
    *layers == 1
}

/// What a checkpoint says about itself: the sizes of the model, and where its weights come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metadata {
    /// What the model predicts.
    pub task: Task,
    /// Hidden width `D`.
    pub width: usize,
    /// Consensus heads `H`; divides the width.
    pub heads: usize,
    /// Layers of an update's sequence processor, each with its feed-forward; one if a file does not say.
    #[serde(default = "one_layer", skip_serializing_if = "is_one_layer")]
    pub layers: usize,
    /// Updates `I`, each with its own weights.
    pub updates: usize,
    /// Walk length `L`.
    pub length: usize,
    /// The sequence processor; the published one if a file does not say.
    #[serde(default, skip_serializing_if = "is_published")]
    pub processor: ProcessorKind,
    /// The consensus; the published one if a file does not say.
    #[serde(default, skip_serializing_if = "is_published")]
    pub consensus: Averaging,
    /// Whether balanced walks start on edges of the query's own type only; not so if a file does not say.
    #[serde(default, skip_serializing_if = "is_published")]
    pub balanced_on_query_relation: bool,
    /// Whether walks may step straight back; not so if a file does not say.
    #[serde(default, skip_serializing_if = "is_published")]
    pub backtrack: bool,
    /// Whether all walks start at the query's nodes; not so if a file does not say.
    #[serde(default, skip_serializing_if = "is_published")]
    pub all_at_query: bool,
    /// Whether walks use both types of a relation; they do if a file does not say.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub inverses: bool,
    /// Chance, in parts of 1024, that a walk begins anew instead of making a move; 0 if a file does not say.
    #[serde(default, skip_serializing_if = "is_published")]
    pub restart: u32,
    /// Which walks may begin anew: every one (1), every second one (2), …; 1 if a file does not say.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub restart_period: u32,
    /// Which random starts are at the query's nodes: every one (1), every second one (2), …; none (0) if a file does not say.
    #[serde(default, skip_serializing_if = "is_published")]
    pub query_start_period: u32,
    /// Base walk count the model was trained with.
    pub n_train: u32,
    /// The least base walk count that the rule gives; 16 if a file does not say.
    #[serde(default = "published_least", skip_serializing_if = "is_published_least")]
    pub n_least: u32,
    /// The rule gives at least this many walks for each unit of the graph's mean degree, up to 128; 0 if a file does not say.
    #[serde(default, skip_serializing_if = "is_published")]
    pub n_per_degree: f64,
    /// Mean number of nodes of the training graphs, V̄.
    pub mean_nodes: f64,
    /// Mean number of raw triples of the training graphs, Ē.
    pub mean_triples: f64,
    /// Names of the training graphs.
    pub graphs: Vec<String>,
    /// Training steps; 0 when unknown.
    pub steps: u64,
    /// Licence of the weights, as an SPDX expression, or `unknown`.
    pub licence: String,
    /// Anything else worth knowing, such as the file the weights were imported from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Metadata {
    /// Describes the published model of a task: its sizes, and its three pretraining graphs.
    pub fn published(task: Task) -> Metadata {
        Metadata {
            task,
            width: 64,
            heads: 4,
            layers: 1,
            updates: 6,
            length: 128,
            processor: ProcessorKind::Gru,
            consensus: Averaging::Softmax,
            balanced_on_query_relation: false,
            backtrack: false,
            all_at_query: false,
            inverses: true,
            restart: 0,
            restart_period: 1,
            query_start_period: 0,
            n_train: 128,
            n_least: MIN_BASE_WALKS,
            n_per_degree: 0.0,
            // FB15k237, WN18RR, CoDExMedium: nodes and train triples of the paper's statistics table.
            mean_nodes: f64::from(14_541 + 40_943 + 17_050) / 3.0,
            mean_triples: f64::from(272_115 + 86_835 + 185_584) / 3.0,
            graphs: ["FB15k237", "WN18RR", "CoDExMedium"].map(String::from).to_vec(),
            steps: 0,
            licence: "unknown".to_string(),
            note: None,
        }
    }

    /// Returns the consensus heads of a model of this width, if nothing else is said: slices of 16.
    pub fn default_heads(width: usize) -> usize {
        (width / 16).max(1)
    }

    /// Returns the width of the feed-forward layer, `3D`.
    pub fn feed_forward_width(&self) -> usize {
        swiglu::FACTOR * self.width
    }

    /// Returns the multiply-adds per walk position and update, by the definition: per layer the GRU
    /// 12D², its output layer 2D² and the feed-forward 9D²; then `from_*` 2D², `to_*` 2D² and the
    /// logits 2DH. A transformer counts as the GRU it stands for.
    pub fn macs_per_position(&self) -> u64 {
        let (d, h, layers) = (self.width as u64, self.heads as u64, self.layers as u64);
        layers * 23 * d * d + 4 * d * d + 2 * d * h
    }

    /// Describes the sizes in words: updates and walk length, and what differs from the published
    /// width, heads and layers.
    pub fn sizes_in_words(&self) -> String {
        let mut words = format!("{} updates, walk length {}", self.updates, self.length);
        if self.width != 64 {
            let _ = write!(words, ", width {}", self.width);
        }
        if self.heads != Metadata::default_heads(self.width) {
            let _ = write!(words, ", {} heads", self.heads);
        }
        if self.layers != 1 {
            let _ = write!(words, ", {} layers", self.layers);
        }
        words
    }

    /// Returns how walks are drawn for this model: its length, and every switch it was trained with.
    pub fn walk_options(&self) -> WalkOptions {
        WalkOptions {
            length: self.length,
            updates: self.updates as u32,
            backtrack: self.backtrack,
            all_at_query: self.all_at_query,
            balanced_on_query_relation: self.balanced_on_query_relation,
            inverses: self.inverses,
            restart: self.restart,
            restart_period: self.restart_period,
            query_start_period: self.query_start_period,
        }
    }

    /// Lists the switches that are not as published, in words, each after a comma.
    pub fn switches(&self) -> String {
        let switches = [
            (self.consensus == Averaging::Mean, ", mean consensus"),
            (self.balanced_on_query_relation, ", balanced starts on the query's relation"),
            (self.backtrack, ", walks may step back"),
            (self.all_at_query, ", all walks start at the query"),
            (!self.inverses, ", one name for each relation"),
        ];
        let mut words = String::new();
        if !is_published(&self.processor) {
            let _ = write!(words, ", {}", self.processor);
        }
        words.extend(switches.into_iter().filter(|(on, _)| *on).map(|(_, words)| words));
        if self.restart > 0 {
            let which = match self.restart_period {
                1 => "walks".to_string(),
                period => format!("one walk in {period}"),
            };
            let _ = write!(words, ", restarts of {which} ({:.3})", f64::from(self.restart) / 1024.0);
        }
        match self.query_start_period {
            0 => {}
            1 => words.push_str(", random starts at the query"),
            period => {
                let _ = write!(words, ", one random start in {period} at the query");
            }
        }
        words
    }

    /// Returns the width of the scoring head's hidden layers, `2D`.
    pub fn head_width(&self) -> usize {
        head::hidden_width(self.width)
    }

    /// Returns the base walk count for a walked graph, by the rules of [`base_walks`](crate::base_walks).
    pub fn base_walks(&self, num_nodes: u32, num_triples: usize) -> u32 {
        base_walks(self.n_train, self.mean_nodes, self.mean_triples, num_nodes, num_triples)
            .max(dense_walks(self.n_per_degree, num_nodes, num_triples))
            .max(self.n_least)
    }

    /// Describes the model in words: task, sizes and switches.
    pub fn described(&self) -> String {
        format!("{} model, {}{}", self.task, self.sizes_in_words(), self.switches())
    }

    /// Returns what two models must share for their weights to mean the same: everything but how they were made, and with how
    /// many walks they are asked.
    pub(crate) fn shape(&self) -> Metadata {
        let Metadata { n_train, n_least, n_per_degree, mean_nodes, mean_triples, .. } = Metadata::published(self.task);
        let (graphs, steps, licence, note) = (Vec::new(), 0, String::new(), None);
        Metadata {
            n_train,
            n_least,
            n_per_degree,
            mean_nodes,
            mean_triples,
            graphs,
            steps,
            licence,
            note,
            ..self.clone()
        }
    }

    /// Returns the sizes a sequence processor's tensors depend on.
    pub(crate) fn sizes(&self) -> Sizes {
        Sizes { width: self.width, length: self.length }
    }
}
