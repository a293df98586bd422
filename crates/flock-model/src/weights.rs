//! All weights of a model as one flat buffer: what the optimiser, the average of weights, the
//! training state and both passes work on. [`TensorTable`] says which value is which.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::half::{f16_to_f32, f32_to_f16};
use crate::metadata::Metadata;
use crate::tensors::{ModelTensors, TensorError, TensorInfo, TensorTable, check_finite, check_shapes};

/// One tensor by itself, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its values: as many as the product of the shape.
    pub data: Vec<f32>,
}

/// The weights of a model, flat.
#[derive(Clone, Debug)]
pub struct Weights {
    /// What the model is. Its sizes stay those that the table was made for.
    pub meta: Metadata,
    /// Every tensor, one after the other, each row-major, in the order of the table.
    pub values: Vec<f32>,
    table: Arc<TensorTable>,
}

impl PartialEq for Weights {
    fn eq(&self, other: &Weights) -> bool {
        self.meta == other.meta && self.values == other.values
    }
}

impl Weights {
    /// Makes zeros for every tensor of a model of these sizes, which [`Metadata::check`] has accepted.
    pub fn zeros(meta: Metadata) -> Weights {
        let table = TensorTable::new(&meta);
        Weights { meta, values: vec![0.0; table.num_values()], table: Arc::new(table) }
    }

    /// Collects weights from tensors by name.
    ///
    /// # Errors
    /// Sizes that no model has, or tensors that are not exactly those of the model.
    pub fn from_tensors(meta: Metadata, tensors: &BTreeMap<String, Tensor>) -> Result<Weights, TensorError> {
        meta.check()?;
        let shapes = tensors.iter().map(|(name, tensor)| (name.clone(), tensor.shape.clone())).collect();
        check_shapes(&meta, &shapes, false)?;
        let mut weights = Weights::zeros(meta);
        for (name, Tensor { shape, data }) in tensors {
            match weights.tensor_mut(name) {
                Some(values) if values.len() == data.len() => values.copy_from_slice(data),
                _ => return Err(TensorError::Length { tensor: name.clone(), shape: shape.clone(), len: data.len() }),
            }
        }
        Ok(weights)
    }

    /// Returns other weights of the same model.
    pub fn with_values(&self, values: Vec<f32>) -> Weights {
        debug_assert_eq!(values.len(), self.values.len());
        Weights { meta: self.meta.clone(), values, table: self.table.clone() }
    }

    /// Returns the same model for shorter walks. Names beyond the length cannot occur, so their rows
    /// go; "no type" stays the last row.
    ///
    /// # Errors
    /// A length that no model has, or a processor with tensors that depend on the length.
    pub fn shortened(&self, length: usize) -> Result<Weights, TensorError> {
        let (old, width) = (self.meta.length, self.meta.width);
        let meta = Metadata { length: length.min(old), ..self.meta.clone() };
        meta.check()?;
        let mut short = Weights::zeros(meta);
        let length = short.meta.length;
        let mut shapes = self.table.shapes();
        for tables in self.table.name_tables() {
            for (TensorInfo { name, .. }, last) in tables.into_iter().zip([0, 1]) {
                shapes.insert(name.clone(), vec![length + last, width]);
            }
        }
        check_shapes(&short.meta, &shapes, false)?;
        let table = short.table.clone();
        for (from, to) in self.table.tensors().iter().zip(table.tensors()) {
            let (from, to) = (&self.values[from.range()], &mut short.values[to.range()]);
            let kept = from.len().min(to.len());
            to[..kept].copy_from_slice(&from[..kept]);
        }
        for (from, to) in self.table.name_tables().zip(table.name_tables()) {
            let (from, to) = (&self.values[from[1].range()], &mut short.values[to[1].range()]);
            to[length * width..].copy_from_slice(&from[old * width..]);
        }
        Ok(short)
    }

    /// Returns the mean of several models' weights. The metadata is that of the first one.
    ///
    /// # Errors
    /// No model, or models that differ in sizes, task or switches.
    pub fn average(models: &[&Weights]) -> Result<Weights, TensorError> {
        let bad = |field, value: String, rule| Err(TensorError::Metadata { field, value, rule });
        let Some((first, others)) = models.split_first() else {
            return bad("models", "none".to_string(), "must be at least one to average");
        };
        for other in others {
            if other.meta.shape() != first.meta.shape() {
                return bad("model", other.meta.described(), "must be as the first one's, to be averaged with it");
            }
        }
        let mut mean = (*first).clone();
        for (i, value) in mean.values.iter_mut().enumerate() {
            let sum: f64 = models.iter().map(|m| f64::from(m.values[i])).sum();
            *value = (sum / models.len() as f64) as f32;
        }
        Ok(mean)
    }

    /// Returns the weights that a file in half precision holds. They are infinite where half precision ends.
    pub fn in_half_precision(&self) -> Weights {
        let mut rounded = self.clone();
        rounded.values.iter_mut().for_each(|v| *v = f16_to_f32(f32_to_f16(*v)));
        rounded
    }

    /// Returns the table of the tensors.
    pub fn table(&self) -> &TensorTable {
        &self.table
    }

    /// Returns the values of a tensor.
    pub fn tensor(&self, name: &str) -> Option<&[f32]> {
        self.table.get(name).map(|tensor| &self.values[tensor.range()])
    }

    /// Returns the values of a tensor, to be changed.
    pub fn tensor_mut(&mut self, name: &str) -> Option<&mut [f32]> {
        self.table.get(name).map(|tensor| &mut self.values[tensor.range()])
    }

    /// Returns copies of all tensors by name.
    pub fn to_tensors(&self) -> BTreeMap<String, Tensor> {
        let copy =
            |tensor: &TensorInfo| Tensor { shape: tensor.shape.clone(), data: self.values[tensor.range()].to_vec() };
        self.table.tensors().iter().map(|tensor| (tensor.name.clone(), copy(tensor))).collect()
    }

    /// Returns the weights by layer.
    pub(crate) fn views(&self) -> ModelTensors<&[f32]> {
        self.table.views(&self.values)
    }

    /// Refuses what no file may hold: sizes that no model has, values that are not finite.
    pub(crate) fn check(&self) -> Result<(), TensorError> {
        self.meta.check()?;
        check_shapes(&self.meta, &self.table.shapes(), false)?;
        let (expected, len) = (self.table.num_values(), self.values.len());
        if len != expected {
            return Err(TensorError::Length { tensor: "(all)".to_string(), shape: vec![expected], len });
        }
        for tensor in self.table.by_name() {
            check_finite(&tensor.name, &self.values[tensor.range()])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{ProcessorKind, Task};

    /// Every value is its own place in the buffer.
    fn numbered(meta: Metadata) -> Weights {
        let mut weights = Weights::zeros(meta);
        weights.values.iter_mut().enumerate().for_each(|(i, v)| *v = i as f32);
        weights
    }

    #[test]
    fn tensors_come_back_from_the_flat_buffer() {
        for task in [Task::Entity, Task::Relation] {
            let weights = numbered(Metadata { updates: 2, length: 8, ..Metadata::published(task) });
            assert_eq!(weights.values.len() as u64, weights.meta.num_parameters());
            assert_eq!(Weights::from_tensors(weights.meta.clone(), &weights.to_tensors()).unwrap(), weights);
            for tensor in weights.table().tensors() {
                assert_eq!(weights.tensor(&tensor.name), Some(&weights.values[tensor.range()]));
            }
            assert_eq!(weights.tensor("nothing"), None);
            weights.check().unwrap();
            let mut broken = weights.clone();
            broken.values[3] = f32::NAN;
            let error = broken.check().unwrap_err().to_string();
            assert_eq!(error, "tensor `node_init` has NaN at position 3; weights must be finite");
            let mut grown = weights.clone();
            grown.values.push(0.0);
            assert!(grown.check().is_err());
            let mut other = weights;
            other.meta.length = 9;
            assert!(other.check().is_err(), "sizes are those of the table");
        }
    }

    #[test]
    fn shorter_walks_keep_the_last_row_of_types() {
        let meta = Metadata { updates: 2, length: 6, ..Metadata::published(Task::Entity) };
        let (long, d) = (numbered(meta.clone()), meta.width);
        let short = long.shortened(4).unwrap();
        let (old, new) =
            (long.tensor("emb_anon_type.1.weight").unwrap(), short.tensor("emb_anon_type.1.weight").unwrap());
        assert_eq!((&new[..4 * d], &new[4 * d..]), (&old[..4 * d], &old[6 * d..]));
        assert_eq!(short.tensor("emb_anon_node.0.weight"), long.tensor("emb_anon_node.0.weight").map(|t| &t[..4 * d]));
        assert_eq!(short.tensor("head.4.bias"), long.tensor("head.4.bias"));
        assert!(long.shortened(1).is_err());
        let positions = numbered(Metadata { processor: ProcessorKind::Transformer, ..meta });
        let error = positions.shortened(4).unwrap_err().to_string();
        assert!(error.starts_with("tensor `emb_position.0.weight` has shape [6, 64], expected [4, 64]"), "{error}");
    }
}
