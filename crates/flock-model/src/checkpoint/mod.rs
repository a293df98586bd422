//! Model weights on disk: a safetensors file whose header also says what the model is.
//!
//! The tensors keep the names of the published `state_dict`; [`expected_tensors`] lists them with their shapes, in a fixed
//! order. The metadata is one JSON object under the key `flock-kg`. A file without it (weights exported from elsewhere)
//! is read too: its sizes are inferred from its shapes and the rest are the published defaults. Whatever is read has been
//! checked in full: names, shapes, element types, and no NaN or infinity. The same holds for whatever is written, so no
//! file is written that could not be read back, and the same weights always make the same bytes, hence the same hash.
//!
//! The header also has a checksum, `sha256`: that of the whole file with the checksum's own digits as zeros. A file that has
//! one and does not match it is refused, whatever bit is wrong. Files written before there was one are read without.
//!
//! Shapes: `D` width, `H` heads, `L` walk length; the feed-forward is `3D` wide and the scoring head `2D`.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write as _};
use std::io;
use std::ops::Range;
use std::path::Path;

use flock_kernels::attention;
use flock_walk::WalkOptions;
use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, TensorInfo};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::base_walks::base_walks;
use crate::files::{hex, read_limited, sha256_hex, write_atomically};

/// The version of the format this crate writes, and the only one it reads.
pub const FORMAT_VERSION: &str = "1";
/// The longest header of a safetensors file, as in the format's own library.
const MAX_HEADER_BYTES: u64 = 100_000_000;
/// The most parameters a model may have (a gigabyte of `f32`).
pub const MAX_PARAMETERS: u64 = 1 << 28;

const METADATA_KEY: &str = "flock-kg";
const VERSION_KEY: &str = "format_version";
const CHECKSUM_KEY: &str = "sha256";
/// What stands for the checksum while it is computed.
const BLANK_CHECKSUM: [u8; 64] = [b'0'; 64];

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

/// What reads a walk (section 11 of the specification has the choice).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Processor {
    /// A bidirectional GRU, then a feed-forward: the published model.
    #[default]
    Gru,
    /// Attention with learnt positions, then the same feed-forward; about as many parameters.
    Transformer,
}

/// How what the walks say of a node or a type is averaged.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Averaging {
    /// Weighted by a softmax of learnt logits: the published model.
    #[default]
    Softmax,
    /// Equal weights. The logits' tensors are kept and have no part in it.
    Mean,
}

/// Whether a switch is as in the published models, whose files do not name it.
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

/// What a checkpoint says about itself: the sizes of the model, and where its weights come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// What the model predicts.
    pub task: Task,
    /// Hidden width `D`.
    pub width: usize,
    /// Consensus heads `H`; divides the width.
    pub heads: usize,
    /// Updates `I`, each with its own weights.
    pub updates: usize,
    /// Walk length `L`.
    pub length: usize,
    /// The sequence processor; the published one if a file does not say.
    #[serde(default, skip_serializing_if = "is_published")]
    pub processor: Processor,
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
    /// Whether walked graphs have their inverse types; they do if a file does not say.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub inverses: bool,
    /// Chance, in parts of 1024, that a walk begins anew instead of making a move; 0 if a file does not say.
    #[serde(default, skip_serializing_if = "is_published")]
    pub restart: u32,
    /// Which walks may begin anew: every one (1), every second one (2), …; 1 if a file does not say.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub restart_period: u32,
    /// Base walk count the model was trained with.
    pub n_train: u32,
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
    /// The published model of a task: its sizes, and its three pretraining graphs.
    pub fn published(task: Task) -> Metadata {
        Metadata {
            task,
            width: 64,
            heads: 4,
            updates: 6,
            length: 128,
            processor: Processor::Gru,
            consensus: Averaging::Softmax,
            balanced_on_query_relation: false,
            backtrack: false,
            all_at_query: false,
            inverses: true,
            restart: 0,
            restart_period: 1,
            n_train: 128,
            // FB15k237, WN18RR, CoDExMedium: nodes and train triples of the paper's statistics table.
            mean_nodes: f64::from(14_541 + 40_943 + 17_050) / 3.0,
            mean_triples: f64::from(272_115 + 86_835 + 185_584) / 3.0,
            graphs: ["FB15k237", "WN18RR", "CoDExMedium"].map(String::from).to_vec(),
            steps: 0,
            licence: "unknown".to_string(),
            note: None,
        }
    }

    /// Width of the feed-forward layer, `3D`.
    pub fn feed_forward_width(&self) -> usize {
        3 * self.width
    }

    /// Width of all heads of a transformer's attention, `3D`.
    pub fn attention_width(&self) -> usize {
        attention::HEADS * self.width
    }

    /// How walks are drawn for this model: its length, and every switch it was trained with.
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
        }
    }

    /// The switches that are not as published, as words to go on with after a comma.
    pub fn switches(&self) -> String {
        let switches = [
            (self.processor == Processor::Transformer, ", transformer"),
            (self.consensus == Averaging::Mean, ", mean consensus"),
            (self.balanced_on_query_relation, ", balanced starts on the query's relation"),
            (self.backtrack, ", walks may step back"),
            (self.all_at_query, ", all walks start at the query"),
            (!self.inverses, ", no inverse types"),
        ];
        let mut words: String = switches.into_iter().filter(|(on, _)| *on).map(|(_, words)| words).collect();
        if self.restart > 0 {
            let which = match self.restart_period {
                1 => "walks".to_string(),
                period => format!("one walk in {period}"),
            };
            let _ = write!(words, ", restarts of {which} ({:.3})", f64::from(self.restart) / 1024.0);
        }
        words
    }

    /// The tables of the two query flags.
    pub(crate) fn flag_tables(&self) -> [&'static str; 2] {
        match self.task {
            Task::Entity => ["emb_node_is_query", "emb_type_is_query"],
            Task::Relation => ["emb_head_is_query", "emb_tail_is_query"],
        }
    }

    /// Width of the scoring head's hidden layers, `2D`.
    pub fn head_width(&self) -> usize {
        2 * self.width
    }

    /// Number of parameters of a model of these sizes.
    pub fn num_parameters(&self) -> u64 {
        let count = |(_, shape): (String, Vec<usize>)| shape.iter().map(|&n| n as u64).product::<u64>();
        expected_tensors(self).into_iter().map(count).sum()
    }

    /// The base walk count for a walked graph, by the rule of [`base_walks`].
    pub fn base_walks(&self, num_nodes: u32, num_triples: usize) -> u32 {
        base_walks(self.n_train, self.mean_nodes, self.mean_triples, num_nodes, num_triples)
    }

    /// Refuses sizes that no model can have, before anything is allocated for them.
    pub fn check(&self) -> Result<(), TensorError> {
        let bad = |field, value: &dyn fmt::Display, rule| {
            Err(TensorError::Metadata { field, value: value.to_string(), rule })
        };
        if !(1..=1024).contains(&self.width) {
            return bad("width", &self.width, "must be between 1 and 1024");
        }
        if self.heads == 0 || !self.width.is_multiple_of(self.heads) {
            return bad("heads", &self.heads, "must divide the width");
        }
        if !(1..=64).contains(&self.updates) {
            return bad("updates", &self.updates, "must be between 1 and 64");
        }
        if !(2..=16_384).contains(&self.length) {
            return bad("length", &self.length, "must be between 2 and 16384");
        }
        if self.restart > 1024 {
            return bad("restart", &self.restart, "must be at most 1024");
        }
        if self.restart_period == 0 {
            return bad("restart_period", &self.restart_period, "must be positive");
        }
        if self.n_train == 0 {
            return bad("n_train", &self.n_train, "must be positive");
        }
        for (field, mean) in [("mean_nodes", self.mean_nodes), ("mean_triples", self.mean_triples)] {
            if !(mean.is_finite() && mean > 0.0) {
                return bad(field, &mean, "must be positive");
            }
        }
        let parameters = self.num_parameters();
        if parameters > MAX_PARAMETERS {
            return bad("number of parameters", &parameters, "is more than this program loads");
        }
        Ok(())
    }

    /// The sizes a set of tensors speaks of; published values for what it leaves open. Not yet checked.
    pub(crate) fn infer(shapes: &Shapes) -> Metadata {
        let dim = |name: &str, axis: usize| shapes.get(name).and_then(|s| s.get(axis)).copied();
        let relation = shapes.contains_key("emb_head_is_query.0.weight");
        let mut meta = Metadata::published(if relation { Task::Relation } else { Task::Entity });
        let updates = (0..).take_while(|i| shapes.contains_key(&format!("from_node.{i}.weight"))).count();
        if updates > 0 {
            meta.updates = updates;
        }
        meta.width = dim("node_init", 0).unwrap_or(meta.width);
        meta.heads = dim("node_logit.0.weight", 0).unwrap_or(meta.heads);
        meta.length = dim("emb_anon_node.0.weight", 0).unwrap_or(meta.length);
        if shapes.contains_key("net.0.attention.q.weight") {
            meta.processor = Processor::Transformer;
        }
        meta
    }
}

/// Tensor names and shapes.
pub(crate) type Shapes = BTreeMap<String, Vec<usize>>;

/// Every tensor of a model with its shape, in a fixed order (that of the published `state_dict`).
///
/// The sizes are taken as they are: [`Metadata::check`] comes first where they come from outside.
pub fn expected_tensors(meta: &Metadata) -> Vec<(String, Vec<usize>)> {
    let (d, h, l) = (meta.width, meta.heads, meta.length);
    let (ffn, head) = (meta.feed_forward_width(), meta.head_width());
    let mut all: Vec<(String, Vec<usize>)> = Vec::new();
    let mut add = |name: String, shape: &[usize]| all.push((name, shape.to_vec()));

    add("node_init".into(), &[d]);
    add("type_init".into(), &[d]);
    let flags = meta.flag_tables();
    let tables = [
        ("emb_anon_node", l),
        ("emb_anon_type", l + 1),
        ("emb_restart", 2),
        ("emb_neighbor", 2),
        ("emb_direction", 4),
        (flags[0], 2),
        (flags[1], 2),
    ];
    let positions = (meta.processor == Processor::Transformer).then_some(("emb_position", l));
    for (table, rows) in tables.into_iter().chain(positions) {
        for i in 0..meta.updates {
            add(format!("{table}.{i}.weight"), &[rows, d]);
        }
    }
    for layer in ["from_node", "from_type"] {
        for i in 0..meta.updates {
            add(format!("{layer}.{i}.weight"), &[d, d]);
            add(format!("{layer}.{i}.bias"), &[d]);
        }
    }
    for i in 0..meta.updates {
        match meta.processor {
            Processor::Gru => {
                add(format!("net.{i}.gru_norm.weight"), &[d]);
                add(format!("net.{i}.ffn_norm.weight"), &[d]);
                for way in ["", "_reverse"] {
                    add(format!("net.{i}.gru.weight_ih_l0{way}"), &[3 * d, d]);
                    add(format!("net.{i}.gru.weight_hh_l0{way}"), &[3 * d, d]);
                    add(format!("net.{i}.gru.bias_ih_l0{way}"), &[3 * d]);
                    add(format!("net.{i}.gru.bias_hh_l0{way}"), &[3 * d]);
                }
                add(format!("net.{i}.gru_out.weight"), &[d, 2 * d]);
            }
            Processor::Transformer => {
                add(format!("net.{i}.attention_norm.weight"), &[d]);
                add(format!("net.{i}.ffn_norm.weight"), &[d]);
                for part in ["q", "k", "v"] {
                    add(format!("net.{i}.attention.{part}.weight"), &[meta.attention_width(), d]);
                }
                add(format!("net.{i}.attention.out.weight"), &[d, meta.attention_width()]);
            }
        }
        add(format!("net.{i}.feed_forward.w1.weight"), &[ffn, d]);
        add(format!("net.{i}.feed_forward.w2.weight"), &[d, ffn]);
        add(format!("net.{i}.feed_forward.w3.weight"), &[ffn, d]);
    }
    for (layer, rows) in [("to_node", d), ("to_type", d), ("node_logit", h), ("type_logit", h)] {
        for i in 0..meta.updates {
            add(format!("{layer}.{i}.weight"), &[rows, d]);
            add(format!("{layer}.{i}.bias"), &[rows]);
        }
    }
    for (layer, rows, columns) in [(0, head, d), (2, head, head), (4, 1, head)] {
        add(format!("head.{layer}.weight"), &[rows, columns]);
        add(format!("head.{layer}.bias"), &[rows]);
    }
    if meta.task == Task::Relation {
        for layer in ["head_to_query", "tail_to_query"] {
            add(format!("{layer}.weight"), &[d, d]);
            add(format!("{layer}.bias"), &[d]);
        }
    }
    all
}

/// One weight tensor, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its values: as many as the product of the shape.
    pub data: Vec<f32>,
}

/// The weights of a model and what is known about them.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// What the model is.
    pub meta: Metadata,
    /// Its tensors by name: exactly those of [`expected_tensors`].
    pub tensors: BTreeMap<String, Tensor>,
    /// SHA-256 of the file's bytes, in hex; of the bytes [`Checkpoint::write`] would write if it was not read from a file.
    pub hash: String,
}

impl Checkpoint {
    /// A checkpoint of tensors at hand, checked.
    pub fn new(meta: Metadata, tensors: BTreeMap<String, Tensor>) -> Result<Checkpoint, TensorError> {
        let mut checkpoint = Checkpoint { meta, tensors, hash: String::new() };
        checkpoint.hash = sha256_hex(&checkpoint.to_bytes()?);
        Ok(checkpoint)
    }

    /// Reads a file. Tensors the model does not have are an error.
    pub fn read(path: impl AsRef<Path>) -> Result<Checkpoint, CheckpointError> {
        read_file(path.as_ref(), false)
    }

    /// Reads a file, leaving out tensors the model does not have.
    pub fn read_lenient(path: impl AsRef<Path>) -> Result<Checkpoint, CheckpointError> {
        read_file(path.as_ref(), true)
    }

    /// Reads the bytes of a file; `name` is what errors call it.
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Checkpoint, CheckpointError> {
        parse(bytes, false).map_err(|problem| problem.in_file(name))
    }

    /// The bytes of the file: the same for the same weights and metadata. Refuses what reading would refuse.
    pub fn to_bytes(&self) -> Result<Vec<u8>, TensorError> {
        self.meta.check()?;
        let shapes = self.tensors.iter().map(|(name, t)| (name.clone(), t.shape.clone())).collect();
        check_shapes(&self.meta, &shapes, false)?;
        for (name, tensor) in &self.tensors {
            if tensor.data.len() != tensor.shape.iter().product::<usize>() {
                let (shape, len) = (tensor.shape.clone(), tensor.data.len());
                return Err(TensorError::Length { tensor: name.clone(), shape, len });
            }
            check_finite(name, &tensor.data)?;
        }
        Ok(serialize(&self.meta, &self.tensors))
    }

    /// Writes the file and returns the hash of its bytes. The file appears whole or not at all: it is written under a
    /// temporary name in the same directory, flushed to disk and renamed.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<String, CheckpointError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let bytes = self.to_bytes().map_err(|e| CheckpointProblem::Tensors(e).in_file(&name))?;
        write_atomically(path, &bytes).map_err(|e| CheckpointProblem::Io(e).in_file(&name))?;
        Ok(sha256_hex(&bytes))
    }
}

/// Why a file is not a checkpoint, or could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct CheckpointError {
    /// The file.
    pub file: String,
    /// What is wrong with it.
    pub problem: CheckpointProblem,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointProblem {
    /// The file cannot be read or written.
    #[error("{0}")]
    Io(io::Error),
    /// Not the layout of a safetensors file.
    #[error("not a safetensors file: {reason}{}", hint(.bytes))]
    Format {
        /// What is wrong.
        reason: String,
        /// The file's first bytes, to say what it may be instead.
        bytes: Vec<u8>,
    },
    /// A header that promises more bytes than the file has.
    #[error("truncated: tensor `{tensor}` ends at byte {end} but the file has {len}; hint: copy or download it again")]
    Truncated {
        /// The tensor.
        tensor: String,
        /// Where it should end.
        end: u64,
        /// Where the file ends.
        len: u64,
    },
    /// A checksum that is not that of the file.
    #[error(
        "damaged: the checksum in its header is not that of its bytes; hint: copy or download it again (if a program \
         changed the tensors on purpose, have it leave `sha256` out of the metadata)"
    )]
    Checksum,
    /// Metadata of ours that cannot be understood.
    #[error("metadata `flock-kg` in the header: {0}")]
    Metadata(String),
    /// Metadata of another version.
    #[error(
        "checkpoint format version {found}, but this program reads version {FORMAT_VERSION}; hint: update flock-kg"
    )]
    Version {
        /// The version the file states.
        found: String,
    },
    /// A tensor of integers, or of another type that is not widened.
    #[error("tensor `{tensor}` has element type {dtype}; expected F32, F16 or BF16")]
    Dtype {
        /// The tensor.
        tensor: String,
        /// Its element type.
        dtype: String,
    },
    /// The tensors are not those of the model.
    #[error("{0}")]
    Tensors(TensorError),
}

impl CheckpointProblem {
    fn in_file(self, file: &str) -> CheckpointError {
        CheckpointError { file: file.to_string(), problem: self }
    }
}

/// Why a set of tensors is not a model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorError {
    /// A size or mean that no model has.
    #[error("{field} is {value}; it {rule}")]
    Metadata {
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
        /// What it should be.
        rule: &'static str,
    },
    /// A tensor of the model is not there.
    #[error("tensor `{tensor}` of shape {expected:?} is missing; this seems to be {looks_like}")]
    Missing {
        /// The tensor.
        tensor: String,
        /// Its shape.
        expected: Vec<usize>,
        /// What the tensors seem to be.
        looks_like: String,
    },
    /// A tensor has another shape than the model's.
    #[error("tensor `{tensor}` has shape {found:?}, expected {expected:?}; this seems to be {looks_like}")]
    Shape {
        /// The tensor.
        tensor: String,
        /// The shape it has.
        found: Vec<usize>,
        /// The shape it should have.
        expected: Vec<usize>,
        /// What the tensors seem to be.
        looks_like: String,
    },
    /// Tensors the model does not have.
    #[error("tensors a Flock model does not have: {}", list(.tensors))]
    Extra {
        /// Their names.
        tensors: Vec<String>,
    },
    /// A tensor has more or fewer values than its shape says.
    #[error("tensor `{tensor}` has {len} values, which do not fill its shape {shape:?}")]
    Length {
        /// The tensor.
        tensor: String,
        /// Its shape.
        shape: Vec<usize>,
        /// How many values it has.
        len: usize,
    },
    /// A weight that is NaN or infinite.
    #[error("tensor `{tensor}` has {value} at position {index}; weights must be finite")]
    NotFinite {
        /// The tensor.
        tensor: String,
        /// The position in row-major order.
        index: usize,
        /// The value.
        value: f32,
    },
}

/// Compares names and shapes with the model's. `lenient` lets further tensors pass.
pub(crate) fn check_shapes(meta: &Metadata, shapes: &Shapes, lenient: bool) -> Result<(), TensorError> {
    let expected: BTreeMap<_, _> = expected_tensors(meta).into_iter().collect();
    // In the fixed order, so that the first complaint about a foreign file is always the same.
    for (tensor, expected) in expected_tensors(meta) {
        match shapes.get(&tensor) {
            None => return Err(TensorError::Missing { tensor, expected, looks_like: looks_like(shapes) }),
            Some(found) if *found != expected => {
                let (found, looks_like) = (found.clone(), looks_like(shapes));
                return Err(TensorError::Shape { tensor, found, expected, looks_like });
            }
            Some(_) => {}
        }
    }
    let extra: Vec<String> = shapes.keys().filter(|name| !expected.contains_key(*name)).cloned().collect();
    if !lenient && !extra.is_empty() {
        return Err(TensorError::Extra { tensors: extra });
    }
    Ok(())
}

/// Refuses NaN and infinities.
pub(crate) fn check_finite(tensor: &str, data: &[f32]) -> Result<(), TensorError> {
    match data.iter().position(|x| !x.is_finite()) {
        None => Ok(()),
        Some(index) => Err(TensorError::NotFinite { tensor: tensor.to_string(), index, value: data[index] }),
    }
}

/// A guess, for an error message, at what a set of tensors belongs to.
fn looks_like(shapes: &Shapes) -> String {
    let any = |prefix: &str| shapes.keys().any(|name| name.starts_with(prefix));
    let Some((first, shape)) = shapes.iter().next() else {
        return "an empty file".to_string();
    };
    if any("from_node.0.") {
        let meta = Metadata::infer(shapes);
        let Metadata { task, updates, length, width, .. } = meta;
        format!("a Flock {task} model with {updates} updates, walk length {length} and width {width}")
    } else if any("module.from_node.") || any("model.from_node.") {
        "a Flock model whose names carry a prefix; hint: remove it from every name".to_string()
    } else if any("named_walks") {
        "a record of walks and states, not weights".to_string()
    } else if any("entity_model.") && any("relation_model.") {
        "an ULTRA or TRIX model".to_string()
    } else if any("model.layers.") || any("transformer.h.") || any("encoder.layer.") {
        "a language model".to_string()
    } else {
        format!("something else: {} tensors, first `{first}` of shape {shape:?}", shapes.len())
    }
}

/// The first few of a list of names.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut text = names.iter().take(SHOWN).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        let _ = write!(text, " and {} more", names.len() - SHOWN);
    }
    text
}

/// What to do with a file of another format, by its first bytes.
fn hint(bytes: &[u8]) -> &'static str {
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"\x80\x02") {
        "; hint: this looks like a PyTorch file, which can be imported"
    } else if bytes.starts_with(b"version https://git-lfs") {
        "; hint: this is a Git LFS pointer, not the file itself"
    } else {
        ""
    }
}

fn read_file(path: &Path, lenient: bool) -> Result<Checkpoint, CheckpointError> {
    let name = path.display().to_string();
    read_limited(path)
        .map_err(CheckpointProblem::Io)
        .and_then(|bytes| parse(&bytes, lenient))
        .map_err(|problem| problem.in_file(&name))
}

fn parse(bytes: &[u8], lenient: bool) -> Result<Checkpoint, CheckpointProblem> {
    check_extent(bytes)?;
    let format = |e: SafeTensorError| format_error(bytes, e);
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(format)?;
    let file = SafeTensors::deserialize(bytes).map_err(format)?;
    let shapes: Shapes = file.iter().map(|(name, view)| (name.to_string(), view.shape().to_vec())).collect();

    let about = header.metadata().as_ref();
    let json = about.and_then(|map| map.get(METADATA_KEY));
    let version = about.and_then(|map| map.get(VERSION_KEY)).map_or("(none)", String::as_str);
    if json.is_some() && version != FORMAT_VERSION {
        return Err(CheckpointProblem::Version { found: version.to_string() });
    }
    // Before anything is said about the content: a damaged file may look like a model that has gone wrong.
    if !about.is_none_or(|about| checksum_holds(bytes, about)) {
        return Err(CheckpointProblem::Checksum);
    }
    let meta = match json {
        Some(json) => serde_json::from_str(json).map_err(|e| CheckpointProblem::Metadata(e.to_string()))?,
        None => {
            let note = "the file had no metadata: sizes inferred from its tensors, the rest are the published defaults";
            Metadata { note: Some(note.to_string()), ..Metadata::infer(&shapes) }
        }
    };
    meta.check().map_err(CheckpointProblem::Tensors)?;
    check_shapes(&meta, &shapes, lenient).map_err(CheckpointProblem::Tensors)?;

    let mut tensors = BTreeMap::new();
    for (name, shape) in expected_tensors(&meta) {
        let view = file.tensor(&name).map_err(format)?;
        let data = widen(view.dtype(), view.data())
            .ok_or_else(|| CheckpointProblem::Dtype { tensor: name.clone(), dtype: view.dtype().to_string() })?;
        check_finite(&name, &data).map_err(CheckpointProblem::Tensors)?;
        tensors.insert(name, Tensor { shape, data });
    }
    Ok(Checkpoint { meta, tensors, hash: sha256_hex(bytes) })
}

/// Whether a file is what its checksum says, if it has one.
fn checksum_holds(bytes: &[u8], about: &HashMap<String, String>) -> bool {
    let Some(stated) = about.get(CHECKSUM_KEY) else {
        // Either the file is from before there was a checksum, or the checksum's name is what the damage has hit.
        let ours = about.contains_key(METADATA_KEY) || about.contains_key(VERSION_KEY);
        let digits = |text: &String| text.len() == BLANK_CHECKSUM.len();
        return !(ours && about.iter().any(|(key, text)| key != METADATA_KEY && digits(text)));
    };
    checksum_place(bytes).is_some_and(|place| checksum(bytes, place) == *stated)
}

/// Where the digits of the checksum are in a file. Quotes inside a JSON string are escaped, so nothing else looks like it.
fn checksum_place(bytes: &[u8]) -> Option<Range<usize>> {
    let (size, rest) = bytes.split_first_chunk::<8>()?;
    let header = rest.get(..usize::try_from(u64::from_le_bytes(*size)).ok()?)?;
    let before = format!("\"{CHECKSUM_KEY}\":\"");
    let start = 8 + header.windows(before.len()).position(|w| w == before.as_bytes())? + before.len();
    let end = start + BLANK_CHECKSUM.len();
    (end <= bytes.len()).then_some(start..end)
}

/// The checksum of a file whose own digits are at `place`.
fn checksum(bytes: &[u8], place: Range<usize>) -> String {
    let hash = Sha256::new().chain_update(&bytes[..place.start]).chain_update(BLANK_CHECKSUM);
    hex(&hash.chain_update(&bytes[place.end..]).finalize())
}

/// Refuses a header that reaches past the end of the file, naming the tensor. (The safetensors crate only says that the
/// file is "not fully covered", and adds such offsets up without a check.)
fn check_extent(bytes: &[u8]) -> Result<(), CheckpointProblem> {
    let Some((size, rest)) = bytes.split_first_chunk::<8>() else { return Ok(()) };
    let header_len = u64::from_le_bytes(*size);
    // The crate's own limit, before a tree twenty times the size is built from it.
    if header_len > MAX_HEADER_BYTES {
        return Err(format_error(
            bytes,
            format!("a header of {header_len} bytes, expected at most {MAX_HEADER_BYTES}"),
        ));
    }
    let Some(header) = usize::try_from(header_len).ok().and_then(|n| rest.get(..n)) else { return Ok(()) };
    let header: BTreeMap<String, serde_json::Value> =
        serde_json::from_slice(header).map_err(|e| format_error(bytes, e))?;
    let len = bytes.len() as u64;
    for (tensor, entry) in header {
        let end = entry.pointer("/data_offsets/1").and_then(serde_json::Value::as_u64).unwrap_or(0);
        let end = end.saturating_add(8 + header_len);
        if end > len {
            return Err(CheckpointProblem::Truncated { tensor, end, len });
        }
    }
    Ok(())
}

fn format_error(bytes: &[u8], reason: impl fmt::Display) -> CheckpointProblem {
    let bytes = bytes[..bytes.len().min(32)].to_vec();
    CheckpointProblem::Format { reason: reason.to_string(), bytes }
}

/// Little-endian bytes as `f32`; `None` for element types that are not widened.
fn widen(dtype: Dtype, bytes: &[u8]) -> Option<Vec<f32>> {
    let pairs = || bytes.as_chunks::<2>().0.iter().map(|b| u16::from_le_bytes(*b));
    Some(match dtype {
        Dtype::F32 => bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
        Dtype::F16 => pairs().map(f16_to_f32).collect(),
        Dtype::BF16 => pairs().map(bf16_to_f32).collect(),
        _ => return None,
    })
}

/// IEEE half precision, exactly.
pub(crate) fn f16_to_f32(bits: u16) -> f32 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    sign * match exponent {
        0 => fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + fraction) * 2f32.powi(exponent - 25),
    }
}

/// bfloat16, exactly: the upper half of an `f32`.
pub(crate) fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// The file, written here rather than by the safetensors crate, whose header lists the metadata in a random order: the
/// bytes, and so the hash, would differ from one write to the next.
fn serialize(meta: &Metadata, tensors: &BTreeMap<String, Tensor>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Header<'a> {
        #[serde(rename = "__metadata__")]
        about: BTreeMap<&'a str, String>,
        #[serde(flatten)]
        tensors: BTreeMap<&'a str, TensorInfo>,
    }
    let mut end = 0;
    let mut info = |tensor: &Tensor| {
        let start = end;
        end += 4 * tensor.data.len();
        TensorInfo { dtype: Dtype::F32, shape: tensor.shape.clone(), data_offsets: (start, end) }
    };
    let header = Header {
        tensors: tensors.iter().map(|(name, t)| (name.as_str(), info(t))).collect(),
        about: BTreeMap::from([
            (METADATA_KEY, to_json(meta)),
            (VERSION_KEY, FORMAT_VERSION.to_string()),
            (CHECKSUM_KEY, String::from_utf8_lossy(&BLANK_CHECKSUM).into_owned()),
        ]),
    };
    let mut header = to_json(&header);
    // The data starts at a multiple of eight, as the format asks.
    header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(8) - header.len()));

    let mut bytes = Vec::with_capacity(8 + header.len() + end);
    bytes.extend((header.len() as u64).to_le_bytes());
    bytes.extend(header.as_bytes());
    for tensor in tensors.values() {
        bytes.extend(tensor.data.iter().flat_map(|x| x.to_le_bytes()));
    }
    let place = checksum_place(&bytes).expect("the header has one");
    let digits = checksum(&bytes, place.clone());
    bytes[place].copy_from_slice(digits.as_bytes());
    bytes
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("string keys and plain values are always JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_widen_exactly() {
        // IEEE 754 binary16: 1, -2, largest, smallest normal, smallest subnormal, infinity
        let cases = [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0400, 2f32.powi(-14)),
            (0x0001, 2f32.powi(-24)),
            (0x7c00, f32::INFINITY),
        ];
        for (bits, value) in cases {
            assert_eq!(f16_to_f32(bits), value, "{bits:#06x}");
        }
        assert!(f16_to_f32(0x8000).is_sign_negative() && f16_to_f32(0x7e00).is_nan());
        assert_eq!((bf16_to_f32(0x3f80), bf16_to_f32(0xc040)), (1.0, -3.0));
    }
}
