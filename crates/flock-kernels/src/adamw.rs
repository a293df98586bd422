//! AdamW: Adam with decoupled weight decay, one element at a time.
//!
//! ```text
//! w ← w (1 − rate · decay)        m ← β₁ m + (1 − β₁) d        v ← β₂ v + (1 − β₂) d²
//! w ← w − rate · m̂ / (√v̂ + ε),    m̂ = m / (1 − β₁ᵗ),    v̂ = v / (1 − β₂ᵗ)
//! ```
//! "Decoupled" means that the decay multiplies the weights and does not enter the moments. The loop
//! is plain on purpose: it is limited by memory bandwidth, not by arithmetic.

/// The optimiser's constants. The default values are those of the published entity run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AdamW {
    /// β₁, the decay rate of the running mean.
    pub beta1: f32,
    /// β₂, the decay rate of the running mean square.
    pub beta2: f32,
    /// ε, added to the root of the mean square.
    pub epsilon: f32,
    /// Weight decay.
    pub decay: f32,
}

impl Default for AdamW {
    fn default() -> AdamW {
        AdamW { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, decay: 0.01 }
    }
}

impl AdamW {
    /// Takes step `t`, counted from 1, of one tensor.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn step(
        &self,
        rate: f32,
        t: u64,
        w: &mut [f32],
        d_w: &[f32],
        m: &mut [f32], // like w; zeros before the first step
        v: &mut [f32], // like w; zeros before the first step
    ) {
        assert!(w.len() == d_w.len() && w.len() == m.len() && w.len() == v.len());
        // At the first steps 1 − βᵗ is small. Single precision would lose four digits here.
        let correction = |beta: f32| 1.0 - f64::from(beta).powf(t as f64);
        let step = (f64::from(rate) / correction(self.beta1)) as f32;
        let root = (1.0 / correction(self.beta2).sqrt()) as f32;
        let keep = 1.0 - rate * self.decay;
        for i in 0..w.len() {
            m[i] = self.beta1 * m[i] + (1.0 - self.beta1) * d_w[i];
            v[i] = self.beta2 * v[i] + (1.0 - self.beta2) * d_w[i] * d_w[i];
            w[i] = keep * w[i] - step * m[i] / (v[i].sqrt() * root + self.epsilon);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_close;

    #[test]
    fn two_steps_by_hand() {
        // β₁ = 1/2, β₂ = 3/4, rate 0.1, decay 0.1 (a factor 0.99), ε too small to see.
        // Step 1, d = 2:  m = 1, v = 1; m̂ = 1 / 0.5 = 2, v̂ = 1 / 0.25 = 4;
        //                 w = 0.99 · 1 − 0.1 · 2 / 2 = 0.89
        // Step 2, d = −4: m = 0.5 − 2 = −1.5, v = 0.75 + 4 = 4.75; m̂ = −1.5 / 0.75 = −2, v̂ = 4.75 / 0.4375 = 10.857143;
        //                 w = 0.99 · 0.89 + 0.1 · 2 / 3.2950179 = 0.8811 + 0.0606977 = 0.9417977
        // Second element, d = 0 throughout: nothing but decay, 0.99 · −2 and 0.9801 · −2.
        let optimiser = AdamW { beta1: 0.5, beta2: 0.75, epsilon: 1e-8, decay: 0.1 };
        let (mut w, mut m, mut v) = ([1.0, -2.0], [0.0; 2], [0.0; 2]);
        optimiser.step(0.1, 1, &mut w, &[2.0, 0.0], &mut m, &mut v);
        assert_close(&w, &[0.89, -1.98], 1e-6, "weights");
        assert_close(&[m[0], v[0]], &[1.0, 1.0], 1e-6, "moments");
        optimiser.step(0.1, 2, &mut w, &[-4.0, 0.0], &mut m, &mut v);
        assert_close(&w, &[0.941_797_7, -1.960_2], 1e-6, "weights");
        assert_close(&[m[0], v[0]], &[-1.5, 4.75], 1e-6, "moments");
    }

    #[test]
    fn epsilon_stands_outside_the_root() {
        // First step, d = 2: m̂ = 2, √v̂ = 2; with ε = 2 and no decay w = 1 − 0.1 · 2 / (2 + 2) = 0.95.
        let optimiser = AdamW { epsilon: 2.0, decay: 0.0, ..AdamW::default() };
        let mut w = [1.0];
        optimiser.step(0.1, 1, &mut w, &[2.0], &mut [0.0], &mut [0.0]);
        assert_close(&w, &[0.95], 1e-6, "weights");
    }
}
