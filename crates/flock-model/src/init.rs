//! Seeded initial weights: what training starts from.
//!
//! Embeddings and initial states are N(0, 1); linear layers and GRUs uniform in ±1/√fan_in; norms one.

use std::collections::BTreeMap;

use flock_walk::{Key, Stream};

use crate::checkpoint::{Checkpoint, Metadata, Tensor, TensorError, expected_tensors};

/// Weights of an untrained model, the same for the same seed.
pub fn initial_weights(mut meta: Metadata, seed: u64) -> Result<Checkpoint, TensorError> {
    meta.check()?;
    meta.note.get_or_insert_with(|| format!("untrained: initial weights of seed {seed}"));
    let mut tensors = BTreeMap::new();
    for (i, (name, shape)) in expected_tensors(&meta).into_iter().enumerate() {
        let mut stream = Key { seed, pass: 0, update: 0, query: i as u64 }.stream(0);
        let n: usize = shape.iter().product();
        let data = if name.contains("norm") {
            vec![1.0; n]
        } else if name.starts_with("emb_") || name.ends_with("_init") {
            (0..n).map(|_| normal(&mut stream)).collect()
        } else {
            let bound = 1.0 / (fan_in(&name, &shape, &meta) as f32).sqrt();
            (0..n).map(|_| (2.0 * unit(&mut stream) - 1.0) * bound).collect()
        };
        tensors.insert(name, Tensor { shape, data });
    }
    Checkpoint::new(meta, tensors)
}

/// Inputs of the layer a tensor belongs to: a bias has those of its weight.
fn fan_in(name: &str, shape: &[usize], meta: &Metadata) -> usize {
    match shape {
        [_, inputs] if !name.contains(".gru.") => *inputs,
        _ if name.starts_with("head.2") || name.starts_with("head.4") => meta.head_width(),
        _ => meta.width,
    }
}

/// Uniform in [0, 1), 24 bits.
fn unit(stream: &mut Stream) -> f32 {
    (stream.draw() >> 40) as f32 / (1 << 24) as f32
}

/// N(0, 1), by Box and Muller.
fn normal(stream: &mut Stream) -> f32 {
    let radius = (-2.0 * f64::from(1.0 - unit(stream)).ln()).sqrt();
    (radius * (std::f64::consts::TAU * f64::from(unit(stream))).cos()) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::Task;

    #[test]
    fn follows_the_stated_distributions() {
        let a = initial_weights(Metadata::published(Task::Entity), 1).unwrap();
        let moments = |name: &str| {
            let d = &a.tensors[name].data;
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
        assert!(a.tensors["net.0.ffn_norm.weight"].data.iter().all(|v| *v == 1.0));
        let b = initial_weights(Metadata::published(Task::Entity), 1).unwrap();
        assert_eq!(a.hash, b.hash);
        assert_ne!(a.hash, initial_weights(Metadata::published(Task::Entity), 2).unwrap().hash);
    }
}
