//! How the first values of a tensor are drawn, before any training.

use flock_walk::Stream;

/// The distribution of a tensor's initial values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initialiser {
    /// All ones: norms.
    Ones,
    /// N(0, 1): embeddings and initial states.
    Normal,
    /// Uniform in ±1/√fan_in: linear layers and GRUs. A bias has the fan-in of its weight.
    Uniform {
        /// Inputs of the layer.
        fan_in: usize,
    },
}

impl Initialiser {
    /// Overwrites `values` with draws from the distribution, in order.
    pub(crate) fn fill(self, stream: &mut Stream, values: &mut [f32]) {
        match self {
            Initialiser::Ones => values.fill(1.0),
            Initialiser::Normal => values.iter_mut().for_each(|v| *v = normal(stream)),
            Initialiser::Uniform { fan_in } => {
                let bound = 1.0 / (fan_in as f32).sqrt();
                values.iter_mut().for_each(|v| *v = (2.0 * unit(stream) - 1.0) * bound);
            }
        }
    }
}

/// Draws from the uniform distribution on [0, 1), 24 bits.
fn unit(stream: &mut Stream) -> f32 {
    (stream.draw() >> 40) as f32 / (1 << 24) as f32
}

/// Draws from N(0, 1), by the method of Box and Muller.
fn normal(stream: &mut Stream) -> f32 {
    let radius = (-2.0 * f64::from(1.0 - unit(stream)).ln()).sqrt();
    (radius * (std::f64::consts::TAU * f64::from(unit(stream))).cos()) as f32
}
