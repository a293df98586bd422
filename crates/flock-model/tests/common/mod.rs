//! Weights that every test can work out from a name and a position.

use std::collections::BTreeMap;

use flock_model::checkpoint::{Checkpoint, Metadata, Task, Tensor, Weights};
use flock_model::tensors::{TensorError, TensorInfo, TensorTable};

/// A multiple of 1/64 between -2 and 2: exact in every floating-point type that is read.
pub fn value(name: &str, position: usize) -> f32 {
    let seed: usize = name.bytes().map(usize::from).sum();
    ((31 * seed + 7 * position) % 257) as f32 / 64.0 - 2.0
}

pub fn values(name: &str, shape: &[usize]) -> Vec<f32> {
    (0..shape.iter().product()).map(|k| value(name, k)).collect()
}

/// The smallest model worth testing.
pub fn small(task: Task) -> Metadata {
    Metadata { width: 8, heads: 2, updates: 2, length: 4, ..Metadata::published(task) }
}

pub fn tensors(meta: &Metadata) -> BTreeMap<String, Tensor> {
    let tensor = |(name, shape): (String, Vec<usize>)| {
        let data = values(&name, &shape);
        (name, Tensor { shape, data })
    };
    expected_tensors(meta).into_iter().map(tensor).collect()
}

/// Names and shapes of a model's tensors, in the order of the table.
pub fn expected_tensors(meta: &Metadata) -> Vec<(String, Vec<usize>)> {
    let row = |tensor: &TensorInfo| (tensor.name.clone(), tensor.shape.clone());
    TensorTable::new(meta).tensors().iter().map(row).collect()
}

pub fn checkpoint_of(meta: Metadata, tensors: &BTreeMap<String, Tensor>) -> Result<Checkpoint, TensorError> {
    Checkpoint::new(Weights::from_tensors(meta, tensors)?)
}
