//! All weights of a model as one flat vector: what the optimiser, the average of weights and the training state work on.
//!
//! The order is that of [`expected_tensors`], so a place in the vector means the same in every run of a model of these sizes.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use crate::checkpoint::{Checkpoint, Metadata, Tensor, TensorError, expected_tensors};

/// The weights of a model, flat.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// What the model is.
    pub meta: Metadata,
    /// Every tensor, one after the other, each row-major.
    pub values: Vec<f32>,
    tensors: Vec<(String, Range<usize>)>, // in the order of `values`
    places: HashMap<String, usize>,       // name -> index in `tensors`
}

impl Parameters {
    /// The weights of a checkpoint.
    pub fn from_checkpoint(checkpoint: &Checkpoint) -> Parameters {
        let mut parameters = Parameters::zeros(checkpoint.meta.clone());
        for (name, range) in &parameters.tensors {
            parameters.values[range.clone()].copy_from_slice(&checkpoint.tensors[name].data);
        }
        parameters
    }

    /// Zeros for every tensor of a model of these sizes, which [`Metadata::check`] has accepted.
    pub fn zeros(meta: Metadata) -> Parameters {
        let (mut tensors, mut places, mut end) = (Vec::new(), HashMap::new(), 0);
        for (name, shape) in expected_tensors(&meta) {
            let start = end;
            end += shape.iter().product::<usize>();
            places.insert(name.clone(), tensors.len());
            tensors.push((name, start..end));
        }
        Parameters { meta, values: vec![0.0; end], tensors, places }
    }

    /// Other weights of the same model.
    pub fn with_values(&self, values: Vec<f32>) -> Parameters {
        debug_assert_eq!(values.len(), self.values.len());
        Parameters { values, ..self.clone() }
    }

    /// A checkpoint of these weights.
    ///
    /// # Errors
    /// A weight that is not finite, or sizes that no model has.
    pub fn to_checkpoint(&self) -> Result<Checkpoint, TensorError> {
        Checkpoint::new(self.meta.clone(), self.tensors())
    }

    /// The weights by tensor, unchecked.
    pub fn tensors(&self) -> BTreeMap<String, Tensor> {
        let tensor = |(name, shape): (String, Vec<usize>)| {
            let data = self.range(&name).map_or(Vec::new(), |range| self.values[range].to_vec());
            (name, Tensor { shape, data })
        };
        expected_tensors(&self.meta).into_iter().map(tensor).collect()
    }

    /// Where a tensor stands in [`Parameters::values`].
    pub fn range(&self, name: &str) -> Option<Range<usize>> {
        self.places.get(name).map(|&i| self.tensors[i].1.clone())
    }

    /// Every tensor's name and place, in order.
    pub fn names(&self) -> impl Iterator<Item = (&str, Range<usize>)> {
        self.tensors.iter().map(|(name, range)| (name.as_str(), range.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::Task;
    use crate::init::initial_weights;

    #[test]
    fn a_checkpoint_comes_back_from_the_flat_vector() {
        for task in [Task::Entity, Task::Relation] {
            let meta = Metadata { updates: 2, length: 8, ..Metadata::published(task) };
            let checkpoint = initial_weights(meta, 5).unwrap();
            let mut parameters = Parameters::from_checkpoint(&checkpoint);
            assert_eq!(parameters.values.len() as u64, checkpoint.meta.num_parameters());
            assert_eq!(parameters.to_checkpoint().unwrap(), checkpoint);
            // The ranges follow each other without gaps and hold the tensors they name.
            let mut end = 0;
            for (name, range) in parameters.names() {
                assert_eq!((range.start, parameters.range(name)), (end, Some(range.clone())));
                assert_eq!(parameters.values[range.clone()], checkpoint.tensors[name].data, "{name}");
                end = range.end;
            }
            assert_eq!((end, parameters.range("nothing")), (parameters.values.len(), None));
            parameters.values[3] = f32::NAN;
            assert!(parameters.to_checkpoint().is_err());
        }
    }
}
