//! The weights in training. Each step: gradient, clipping, AdamW, moving average.

use flock_kernels::adamw::AdamW;

use crate::config::OptimiserSection;
use crate::optimise::{Schedule, average, clip};
use flock_model::model::ModelError;
use flock_model::step::{Gradient, StepInput};
use flock_model::weights::Weights;

/// The weights and the optimiser's moments.
pub(crate) struct Learner {
    pub parameters: Weights,
    /// Moving average of the weights, if the config has one.
    pub average: Option<Vec<f32>>,
    /// Steps taken.
    pub step: u64,
    first: Vec<f32>,  // AdamW's mean
    second: Vec<f32>, // AdamW's mean square
    gradient: Vec<f32>,
    optimiser: OptimiserSection,
    schedule: Schedule,
}

/// Loss, gradient norm and learning rate of a step.
pub(crate) struct StepStats {
    pub loss: f64,
    /// Norm of the gradient before clipping.
    pub norm: f64,
    /// Learning rate.
    pub rate: f64,
}

/// Why a step failed.
pub(crate) enum StepFailure {
    Model(ModelError),
    /// The loss or gradient of an example is not finite.
    NotFinite {
        example: usize,
        what: &'static str,
    },
}

impl From<ModelError> for StepFailure {
    fn from(e: ModelError) -> StepFailure {
        StepFailure::Model(e)
    }
}

impl Learner {
    pub fn new(parameters: Weights, optimiser: &OptimiserSection, steps: u64) -> Learner {
        let zeros = vec![0.0; parameters.values.len()];
        Learner {
            average: optimiser.ema.map(|_| parameters.values.clone()),
            step: 0,
            first: zeros.clone(),
            second: zeros.clone(),
            gradient: zeros,
            optimiser: optimiser.clone(),
            schedule: optimiser.schedule(steps),
            parameters,
        }
    }

    /// Returns everything that a state must keep besides the number of steps.
    pub fn arrays(&self) -> Vec<&[f32]> {
        let mut arrays = vec![&self.parameters.values[..], &self.first, &self.second];
        arrays.extend(self.average.as_deref());
        arrays
    }

    /// Restores what [`Learner::arrays`] returned. Returns false if it belongs to another model or
    /// optimiser.
    #[must_use]
    pub fn restore(&mut self, step: u64, arrays: Vec<Vec<f32>>) -> bool {
        let places = [&mut self.parameters.values, &mut self.first, &mut self.second].into_iter();
        let places: Vec<&mut Vec<f32>> = places.chain(self.average.as_mut()).collect();
        let fits = places.len() == arrays.len() && places.iter().zip(&arrays).all(|(p, a)| p.len() == a.len());
        if fits {
            places.into_iter().zip(arrays).for_each(|(place, array)| *place = array);
            self.step = step;
        }
        fits
    }

    /// Returns the weights to validate and ship: the average, if there is one.
    pub fn shipped(&self) -> Weights {
        let mut shipped = self.parameters.clone();
        if let Some(average) = &self.average {
            shipped.values.clone_from(average);
        }
        shipped
    }

    /// Takes one step on a batch. On failure nothing has changed.
    pub fn learn(&mut self, engine: &mut dyn Gradient, input: &StepInput<'_>) -> Result<StepStats, StepFailure> {
        let output = engine.gradient(&self.parameters, input, &mut self.gradient)?;
        if let Some(example) = output.losses.iter().position(|l| !l.is_finite()) {
            return Err(StepFailure::NotFinite { example, what: "loss" });
        }
        let norm = clip(&mut [&mut self.gradient], self.optimiser.clip.unwrap_or(f64::INFINITY));
        if !norm.is_finite() {
            return Err(self.culprit(engine, input)?);
        }
        let o = &self.optimiser;
        let rate = o.rate * self.schedule.factor(self.step + 1);
        let (beta1, beta2, epsilon, decay) = (o.beta1 as f32, o.beta2 as f32, o.epsilon as f32, o.decay as f32);
        let adamw = AdamW { beta1, beta2, epsilon, decay };
        let weights = &mut self.parameters.values;
        adamw.step(rate as f32, self.step + 1, weights, &self.gradient, &mut self.first, &mut self.second);
        if let (Some(a), Some(decay)) = (&mut self.average, o.ema) {
            average(a, weights, decay as f32);
        }
        self.step += 1;
        Ok(StepStats { loss: output.loss, norm, rate })
    }

    /// Finds the example whose own gradient is not finite, or names the first if only their sum is
    /// not.
    fn culprit(&mut self, engine: &mut dyn Gradient, input: &StepInput<'_>) -> Result<StepFailure, ModelError> {
        for (example, alone) in input.examples.chunks(1).enumerate() {
            let input = StepInput { examples: alone, ..*input };
            engine.gradient(&self.parameters, &input, &mut self.gradient)?;
            if !self.gradient.iter().all(|d| d.is_finite()) {
                return Ok(StepFailure::NotFinite { example, what: "gradient" });
            }
        }
        Ok(StepFailure::NotFinite { example: 0, what: "gradient" })
    }
}
