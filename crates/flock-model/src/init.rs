//! Seeded initial weights: what training starts from. The table of tensors says how each is drawn.

use flock_walk::Key;

use crate::checkpoint::Checkpoint;
use crate::metadata::Metadata;
use crate::tensors::TensorError;
use crate::weights::Weights;

/// Draws the weights of an untrained model, the same for the same seed.
pub fn initial_weights(mut meta: Metadata, seed: u64) -> Result<Checkpoint, TensorError> {
    meta.check()?;
    meta.note.get_or_insert_with(|| format!("untrained: initial weights of seed {seed}"));
    let mut weights = Weights::zeros(meta);
    let table = weights.table().clone();
    for (i, tensor) in table.tensors().iter().enumerate() {
        // A stream of its own for each tensor: its values depend on its place in the table alone.
        let mut stream = Key { seed, pass: 0, update: 0, query: i as u64 }.stream(0);
        tensor.initialiser.fill(&mut stream, &mut weights.values[tensor.range()]);
    }
    Checkpoint::new(weights)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Task;

    #[test]
    fn follows_the_stated_distributions() {
        let a = initial_weights(Metadata::published(Task::Entity), 1).unwrap();
        let moments = |name: &str| {
            let d = a.tensor(name).unwrap();
            let mean = d.iter().sum::<f32>() / d.len() as f32;
            (
                mean,
                (d.iter().map(|v| v * v).sum::<f32>() / d.len() as f32).sqrt(),
                d.iter().fold(0f32, |m, v| m.max(v.abs())),
            )
        };
        // 8,192 values: the standard error of mean and deviation is about 0.011.
        let (mean, deviation, max) = moments("emb_anon_node.3.weight");
        assert!(mean.abs() < 0.05 && (deviation - 1.0).abs() < 0.05 && max > 3.0);
        // ±1/√64 and ±1/√128: bounds 0.125 and 0.0884, deviation bound/√3.
        let (mean, deviation, max) = moments("net.2.gru.weight_hh_l0");
        assert!(mean.abs() < 0.005 && (deviation - 0.0722).abs() < 0.002 && max <= 0.125 && max > 0.124);
        let (_, _, max) = moments("net.0.gru_out.weight");
        assert!(max <= 0.0884 && max > 0.088);
        assert!(a.tensor("net.0.ffn_norm.weight").unwrap().iter().all(|v| *v == 1.0));
        let b = initial_weights(Metadata::published(Task::Entity), 1).unwrap();
        assert_eq!(a.hash, b.hash);
        assert_ne!(a.hash, initial_weights(Metadata::published(Task::Entity), 2).unwrap().hash);
    }
}
