//! The table of a model's tensors: name, shape, initialiser and offset of each.
//!
//! This is the only place that knows them; a sequence processor adds its own rows
//! ([`processor`](crate::processor)). All weights of a model are one flat buffer in the order of the
//! table, and so are all gradients. The table cuts such a buffer into typed views: slices, one per
//! tensor, in a tree that follows the layers (`tensors/views.rs`). The order is that of the published `state_dict`, and a place in the buffer means the
//! same in every run: training states on disk and seeded initial weights depend on it.
//!
//! Shapes: `D` width, `H` heads, `L` walk length; the feed-forward is `3D` wide, the scoring head `2D`.

mod check;
mod views;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use crate::base_walks::{MAX_BASE_WALKS, MIN_BASE_WALKS};
pub use crate::initialiser::Initialiser;
use crate::metadata::{Metadata, Task};
use crate::processor::{Place, ProcessorKind, ProcessorTensor, Sizes};
pub use check::TensorError;
pub(crate) use check::{check_finite, check_shapes};
pub(crate) use views::{FeedForwardTensors, HeadTensors, LayerTensors, LinearTensors, ModelTensors, UpdateTensors};

/// The most layers a sequence processor may have.
pub const MAX_LAYERS: usize = 16;

/// The most parameters a model may have (a gigabyte of `f32`).
pub const MAX_PARAMETERS: u64 = 1 << 28;

/// The tensors from whose shapes the sizes of a model are read.
const NODE_INIT: &str = "node_init";
const NODE_NAMES: &str = "emb_anon_node";
const NODE_LOGIT: &str = "node_logit";
const FROM_NODE: &str = "from_node";
/// The tables of the two query flags.
const ENTITY_FLAGS: [&str; 2] = ["emb_node_is_query", "emb_type_is_query"];
const RELATION_FLAGS: [&str; 2] = ["emb_head_is_query", "emb_tail_is_query"];

/// Tensor names and shapes, of a file for example.
pub(crate) type Shapes = BTreeMap<String, Vec<usize>>;

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Its name in the published `state_dict`.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// How its first values are drawn.
    pub initialiser: Initialiser,
    /// Where it begins in a flat buffer.
    pub offset: usize,
}

impl TensorInfo {
    /// Returns the place of its values in a flat buffer.
    pub fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.shape.iter().product::<usize>()
    }
}

/// Every tensor of a model, in the order of the published `state_dict`.
#[derive(Clone, Debug)]
pub struct TensorTable {
    tensors: Vec<TensorInfo>,
    places: ModelTensors<usize>, // rows of `tensors`, by layer
    by_name: Vec<usize>,         // rows of `tensors`, by ascending name
}

impl TensorTable {
    /// Lists the tensors of a model.
    ///
    /// Sizes are taken as they are: where they come from outside, [`Metadata::check`] comes first.
    pub fn new(meta: &Metadata) -> TensorTable {
        let mut rows = Rows { tensors: Vec::new(), width: meta.width, updates: meta.updates };
        let places = rows.model(meta);
        let tensors = rows.tensors;
        let mut by_name: Vec<usize> = (0..tensors.len()).collect();
        by_name.sort_by(|a, b| tensors[*a].name.cmp(&tensors[*b].name));
        TensorTable { tensors, places, by_name }
    }

    /// Returns every row, in order.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// Returns every row by ascending name, which is the order in files.
    pub fn by_name(&self) -> impl Iterator<Item = &TensorInfo> {
        self.by_name.iter().map(|&row| &self.tensors[row])
    }

    /// Finds a tensor.
    pub fn get(&self, name: &str) -> Option<&TensorInfo> {
        let found = self.by_name.binary_search_by(|&row| self.tensors[row].name.as_str().cmp(name));
        found.ok().map(|i| &self.tensors[self.by_name[i]])
    }

    /// Returns the number of values of all tensors together.
    pub fn num_values(&self) -> usize {
        self.tensors.last().map_or(0, |tensor| tensor.range().end)
    }

    /// Cuts a flat buffer into one slice per tensor.
    ///
    /// # Panics
    /// If the buffer does not have [`TensorTable::num_values`] values.
    pub(crate) fn views<'a>(&self, values: &'a [f32]) -> ModelTensors<&'a [f32]> {
        assert_eq!(values.len(), self.num_values(), "a buffer of another model");
        self.places.map(&mut |&row| &values[self.tensors[row].range()])
    }

    /// As [`TensorTable::views`], to be written to.
    pub(crate) fn views_mut<'a>(&self, mut values: &'a mut [f32]) -> ModelTensors<&'a mut [f32]> {
        assert_eq!(values.len(), self.num_values(), "a buffer of another model");
        let mut parts = Vec::with_capacity(self.tensors.len());
        for tensor in &self.tensors {
            let (part, rest) = values.split_at_mut(tensor.range().len());
            parts.push(Some(part));
            values = rest;
        }
        self.places.map(&mut |&row| parts[row].take().expect("a tensor has one place among the layers"))
    }

    /// Returns the tables of names, by update: nodes, types.
    pub(crate) fn name_tables(&self) -> impl Iterator<Item = [&TensorInfo; 2]> {
        self.places.updates.iter().map(|update| update.names.map(|row| &self.tensors[row]))
    }

    pub(crate) fn shapes(&self) -> Shapes {
        self.tensors.iter().map(|tensor| (tensor.name.clone(), tensor.shape.clone())).collect()
    }
}

/// The table while it is written.
struct Rows {
    tensors: Vec<TensorInfo>,
    width: usize,
    updates: usize,
}

impl Rows {
    fn add(&mut self, name: impl Into<String>, shape: &[usize], initialiser: Initialiser) -> usize {
        let offset = self.tensors.last().map_or(0, |tensor| tensor.range().end);
        self.tensors.push(TensorInfo { name: name.into(), shape: shape.to_vec(), initialiser, offset });
        self.tensors.len() - 1
    }

    /// An embedding table of each update.
    fn tables(&mut self, name: &str, rows: usize) -> Vec<usize> {
        let shape = [rows, self.width];
        (0..self.updates).map(|i| self.add(format!("{name}.{i}.weight"), &shape, Initialiser::Normal)).collect()
    }

    fn linear(&mut self, name: &str, outputs: usize, inputs: usize) -> LinearTensors<usize> {
        let initialiser = Initialiser::Uniform { fan_in: inputs };
        LinearTensors {
            weight: self.add(format!("{name}.weight"), &[outputs, inputs], initialiser),
            bias: self.add(format!("{name}.bias"), &[outputs], initialiser),
        }
    }

    /// A linear layer of each update.
    fn linears(&mut self, name: &str, outputs: usize) -> Vec<LinearTensors<usize>> {
        (0..self.updates).map(|i| self.linear(&format!("{name}.{i}"), outputs, self.width)).collect()
    }

    fn model(&mut self, meta: &Metadata) -> ModelTensors<usize> {
        let (d, h, l) = (meta.width, meta.heads, meta.length);
        let initial = [NODE_INIT, "type_init"].map(|name| self.add(name, &[d], Initialiser::Normal));
        let flags = if meta.task == Task::Entity { ENTITY_FLAGS } else { RELATION_FLAGS };
        let names = [self.tables(NODE_NAMES, l), self.tables("emb_anon_type", l + 1)];
        let [restart, neighbour] = ["emb_restart", "emb_neighbor"].map(|name| self.tables(name, 2));
        let direction = self.tables("emb_direction", 4);
        let flags = flags.map(|name| self.tables(name, 2));

        let needed = meta.processor.processor().tensors(meta.sizes());
        // The rows of the first layer's processor, by update, in the order it listed them.
        let mut first = vec![vec![0; needed.len()]; meta.updates];
        for (k, tensor) in needed.iter().enumerate().filter(|(_, t)| t.place == Place::Table) {
            for (i, rows) in first.iter_mut().enumerate() {
                rows[k] = self.add(name_of(tensor, i, 0), &tensor.shape, tensor.initialiser);
            }
        }
        let from = [FROM_NODE, "from_type"].map(|name| self.linears(name, d));
        let mut networks = Vec::with_capacity(meta.updates);
        for (i, rows) in first.into_iter().enumerate() {
            let mut layers = vec![self.layer(meta, i, 0, &needed, rows)];
            for layer in 1..meta.layers {
                let mut rows = vec![0; needed.len()];
                for (k, tensor) in needed.iter().enumerate().filter(|(_, t)| t.place == Place::Table) {
                    rows[k] = self.add(name_of(tensor, i, layer), &tensor.shape, tensor.initialiser);
                }
                layers.push(self.layer(meta, i, layer, &needed, rows));
            }
            networks.push(layers);
        }
        let to = ["to_node", "to_type"].map(|name| self.linears(name, d));
        let logit = [NODE_LOGIT, "type_logit"].map(|name| self.linears(name, h));
        let hidden = meta.head_width();
        let [first, second, last] = [("head.0", hidden, d), ("head.2", hidden, hidden), ("head.4", 1, hidden)]
            .map(|(name, outputs, inputs)| self.linear(name, outputs, inputs));
        let endpoints = (meta.task == Task::Relation)
            .then(|| ["head_to_query", "tail_to_query"].map(|name| self.linear(name, d, d)));
        let update = |(i, layers): (usize, Vec<LayerTensors<usize>>)| UpdateTensors {
            names: [names[0][i], names[1][i]],
            restart: restart[i],
            neighbour: neighbour[i],
            direction: direction[i],
            flags: [flags[0][i], flags[1][i]],
            from: [from[0][i], from[1][i]],
            layers,
            to: [to[0][i], to[1][i]],
            logit: [logit[0][i], logit[1][i]],
        };
        let updates = networks.into_iter().enumerate().map(update).collect();
        ModelTensors { initial, updates, head: HeadTensors { first, second, last }, endpoints }
    }

    /// A layer of update `i`: the sequence processor, whose tables have their `rows` already, and
    /// the feed-forward.
    fn layer(
        &mut self,
        meta: &Metadata,
        i: usize,
        layer: usize,
        needed: &[ProcessorTensor],
        mut rows: Vec<usize>,
    ) -> LayerTensors<usize> {
        let (d, f) = (meta.width, meta.feed_forward_width());
        let mut add_those = |table: &mut Rows, place: Place| {
            for (k, tensor) in needed.iter().enumerate().filter(|(_, t)| t.place == place) {
                rows[k] = table.add(name_of(tensor, i, layer), &tensor.shape, tensor.initialiser);
            }
        };
        add_those(self, Place::BeforeNorm);
        let network = network_name(i, layer);
        let norm = self.add(format!("{network}.ffn_norm.weight"), &[d], Initialiser::Ones);
        add_those(self, Place::AfterNorm);
        let mut linear = |name: &str, outputs: usize, inputs: usize| {
            let initialiser = Initialiser::Uniform { fan_in: inputs };
            self.add(format!("{network}.feed_forward.{name}.weight"), &[outputs, inputs], initialiser)
        };
        let feed_forward =
            FeedForwardTensors { norm, w1: linear("w1", f, d), w2: linear("w2", d, f), w3: linear("w3", f, d) };
        LayerTensors { processor: rows, feed_forward }
    }
}

/// How the names of a layer begin, counted from 0. The first layer has the published names.
fn network_name(i: usize, layer: usize) -> String {
    match layer {
        0 => format!("net.{i}"),
        _ => format!("net.{i}.layer{}", layer + 1),
    }
}

/// The name of a processor's tensor in a layer of update `i`.
fn name_of(tensor: &ProcessorTensor, i: usize, layer: usize) -> String {
    match tensor.place {
        Place::Table if layer == 0 => format!("{}.{i}.weight", tensor.name),
        Place::Table => format!("{}.{}.weight", network_name(i, layer), tensor.name),
        Place::BeforeNorm | Place::AfterNorm => format!("{}.{}", network_name(i, layer), tensor.name),
    }
}

impl Metadata {
    /// Returns the number of parameters of a model of these sizes.
    pub fn num_parameters(&self) -> u64 {
        TensorTable::new(self).num_values() as u64
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
        if !(1..=MAX_LAYERS).contains(&self.layers) {
            return bad("layers", &self.layers, "must be between 1 and 16");
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
        if !(MIN_BASE_WALKS..=MAX_BASE_WALKS).contains(&self.n_least) {
            return bad("n_least", &self.n_least, "must be from 16 to 512");
        }
        if !(0.0..=64.0).contains(&self.n_per_degree) {
            return bad("n_per_degree", &self.n_per_degree, "must be from 0 to 64");
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

    /// Reads the sizes off a set of tensors; published values for what it leaves open. Not yet checked.
    pub(crate) fn infer(shapes: &Shapes) -> Metadata {
        let first = |table: &str| format!("{table}.0.weight");
        let rows = |name: &str| shapes.get(name).and_then(|shape| shape.first()).copied();
        let relation = shapes.contains_key(&first(RELATION_FLAGS[0]));
        let mut meta = Metadata::published(if relation { Task::Relation } else { Task::Entity });
        let updates = (0..).take_while(|i| shapes.contains_key(&format!("{FROM_NODE}.{i}.weight"))).count();
        if updates > 0 {
            meta.updates = updates;
        }
        meta.width = rows(NODE_INIT).unwrap_or(meta.width);
        meta.heads = rows(&first(NODE_LOGIT)).unwrap_or(meta.heads);
        meta.length = rows(&first(NODE_NAMES)).unwrap_or(meta.length);
        let has_layer = |layer: &usize| {
            let start = format!("{}.", network_name(0, *layer));
            shapes.range(start.clone()..).next().is_some_and(|(name, _)| name.starts_with(&start))
        };
        meta.layers += (1..MAX_LAYERS).take_while(has_layer).count();
        // A processor is known by its first layer.
        let known = |kind: &&ProcessorKind| {
            let tensors = kind.processor().tensors(Sizes { width: 1, length: 1 });
            tensors.iter().find(|t| t.place == Place::AfterNorm).is_some_and(|t| shapes.contains_key(&name_of(t, 0, 0)))
        };
        let others = ProcessorKind::ALL.iter().filter(|kind| **kind != ProcessorKind::default());
        meta.processor = others.into_iter().find(known).copied().unwrap_or_default();
        meta
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use safetensors::SafeTensors;

    use super::*;

    /// Every task with every processor and several layers, and another width; small.
    fn models() -> Vec<Metadata> {
        let sizes = |task| Metadata { updates: 3, length: 8, ..Metadata::published(task) };
        let kinds = |task| {
            let all = ProcessorKind::ALL.iter().flat_map(|&processor| [1, 3].map(|layers| (processor, layers)));
            all.map(move |(processor, layers)| Metadata { processor, layers, ..sizes(task) })
        };
        let wide = Metadata { width: 96, heads: 3, ..sizes(Task::Entity) };
        [Task::Entity, Task::Relation].into_iter().flat_map(kinds).chain([wide]).collect()
    }

    #[test]
    fn tensors_follow_each_other_without_gaps() {
        for meta in models() {
            let table = TensorTable::new(&meta);
            let mut end = 0;
            for tensor in table.tensors() {
                assert_eq!(tensor.offset, end, "{}", tensor.name);
                end = tensor.range().end;
                assert_eq!(table.get(&tensor.name), Some(tensor));
            }
            assert_eq!((end, end as u64), (table.num_values(), meta.num_parameters()));
            assert_eq!(table.get("nothing"), None);
            let names: Vec<&str> = table.by_name().map(|tensor| tensor.name.as_str()).collect();
            assert!(names.len() == table.tensors().len() && names.is_sorted());
        }
    }

    #[test]
    fn names_and_shapes_are_the_published_ones() {
        // The weights of these files were written by the published implementation.
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        for (file, task, length) in [("entity_L8_T2", Task::Entity, 8), ("relation_L16_T2", Task::Relation, 16)] {
            let bytes = std::fs::read(fixtures.join(format!("{file}.weights.safetensors"))).unwrap();
            let weights = SafeTensors::deserialize(&bytes).unwrap();
            let published: Shapes = weights.iter().map(|(name, t)| (name.to_string(), t.shape().to_vec())).collect();
            let meta = Metadata { updates: 2, length, ..Metadata::published(task) };
            assert_eq!(TensorTable::new(&meta).shapes(), published, "{file}");
            assert_eq!(Metadata::infer(&published), meta);
        }
        for meta in models() {
            assert_eq!(Metadata::infer(&TensorTable::new(&meta).shapes()), meta);
        }
    }

    #[test]
    fn views_cover_every_value_once() {
        for meta in models() {
            let table = TensorTable::new(&meta);
            let mut values: Vec<f32> = (0..table.num_values()).map(|i| i as f32).collect();
            // A slice begins with its own offset, and all of them together fill the buffer.
            let mut seen: Vec<(usize, usize)> = Vec::new();
            table.views(&values).map(&mut |slice| seen.push((slice[0] as usize, slice.len())));
            let mut written: Vec<(usize, usize)> = Vec::new();
            table.views_mut(&mut values).map(&mut |slice| written.push((slice[0] as usize, slice.len())));
            assert_eq!(seen, written);
            seen.sort_unstable();
            let rows: Vec<(usize, usize)> = table.tensors().iter().map(|t| (t.offset, t.range().len())).collect();
            assert_eq!(seen, rows);
        }
    }

    #[test]
    fn views_are_the_tensors_they_say() {
        for meta in models() {
            let table = TensorTable::new(&meta);
            let values: Vec<f32> = (0..table.num_values()).map(|i| i as f32).collect();
            let views = table.views(&values);
            let tensor = |name: &str| &values[table.get(name).unwrap_or_else(|| panic!("{name}")).range()];
            let linear = |layer: &LinearTensors<&[f32]>, name: &str| {
                assert_eq!(layer.weight, tensor(&format!("{name}.weight")));
                assert_eq!(layer.bias, tensor(&format!("{name}.bias")));
            };
            assert_eq!(views.initial, ["node_init", "type_init"].map(tensor));
            linear(&views.head.first, "head.0");
            linear(&views.head.second, "head.2");
            linear(&views.head.last, "head.4");
            let flags = match meta.task {
                Task::Entity => ["emb_node_is_query", "emb_type_is_query"],
                Task::Relation => ["emb_head_is_query", "emb_tail_is_query"],
            };
            assert_eq!(views.endpoints.is_some(), meta.task == Task::Relation);
            for (layer, name) in views.endpoints.iter().flatten().zip(["head_to_query", "tail_to_query"]) {
                linear(layer, name);
            }
            for (i, update) in views.updates.iter().enumerate() {
                let table = |name: &str| tensor(&format!("{name}.{i}.weight"));
                assert_eq!(update.names, ["emb_anon_node", "emb_anon_type"].map(table));
                assert_eq!(update.flags, flags.map(table));
                assert_eq!((update.restart, update.neighbour), (table("emb_restart"), table("emb_neighbor")));
                assert_eq!(update.direction, table("emb_direction"));
                for (layers, names) in [
                    (&update.from, ["from_node", "from_type"]),
                    (&update.to, ["to_node", "to_type"]),
                    (&update.logit, ["node_logit", "type_logit"]),
                ] {
                    layers.iter().zip(names).for_each(|(layer, name)| linear(layer, &format!("{name}.{i}")));
                }
                assert_eq!(update.layers.len(), meta.layers);
                for (layer, found) in update.layers.iter().enumerate() {
                    let net = |name: &str| match layer {
                        0 => tensor(&format!("net.{i}.{name}")),
                        _ => tensor(&format!("net.{i}.layer{}.{name}", layer + 1)),
                    };
                    let FeedForwardTensors { norm, w1, w2, w3 } = found.feed_forward;
                    let ffn = ["ffn_norm", "feed_forward.w1", "feed_forward.w2", "feed_forward.w3"];
                    assert_eq!([norm, w1, w2, w3], ffn.map(|name| net(&format!("{name}.weight"))));
                    let position = || if layer == 0 { table("emb_position") } else { net("emb_position.weight") };
                    let mut processor = match meta.processor {
                        ProcessorKind::Gru => vec![net("gru_norm.weight")],
                        ProcessorKind::Transformer => vec![position(), net("attention_norm.weight")],
                    };
                    processor.extend(match meta.processor {
                        ProcessorKind::Gru => ["", "_reverse"]
                            .into_iter()
                            .flat_map(|way| ["weight_ih", "weight_hh", "bias_ih", "bias_hh"].map(|part| (part, way)))
                            .map(|(part, way)| net(&format!("gru.{part}_l0{way}")))
                            .chain([net("gru_out.weight")])
                            .collect::<Vec<_>>(),
                        ProcessorKind::Transformer => {
                            ["q", "k", "v", "out"].map(|part| net(&format!("attention.{part}.weight"))).to_vec()
                        }
                    });
                    assert_eq!(found.processor, processor);
                }
            }
        }
    }
}
