//! One training step seen from outside: a batch of examples and a loss go in, a gradient comes out.
//!
//! Whoever implements [`Gradient`] can train: the fast model's `FastGradient`, and `PlainGradient`, which
//! defines it.

use flock_kernels::loss;
use flock_walk::{WalkOptions, WalkQuery};

use crate::input::{ModelError, View};
use crate::weights::Weights;

/// One query of a training batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// What is asked.
    pub query: WalkQuery,
    /// The candidates: column 0 is the true one, unless there is none. Nodes, or raw relations.
    pub candidates: Vec<u32>, // (C)
    /// Whether column 0 is a true answer. Only [`BaseLoss::SummedBce`] has a use for examples without one.
    pub truth: bool,
    /// Sets the walks of this example apart from those of others with the same query.
    pub row: u32,
}

impl Example {
    /// Makes an example of a query whose first candidate is the true answer.
    pub fn new(query: WalkQuery, candidates: Vec<u32>) -> Example {
        Example { query, candidates, truth: true, row: 0 }
    }
}

/// What is minimised: `(1 − softmax)` parts of a base loss and `softmax` parts of
/// [`cross_entropy`](flock_kernels::loss::cross_entropy).
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Loss {
    /// The loss that the softmax is mixed with.
    pub base: BaseLoss,
    /// From 0, the base loss alone, to 1.
    pub softmax: f32,
}

impl Loss {
    /// Computes an example's share of the loss of its batch. Its gradient goes to `d_logits`, which is zero before.
    pub fn run(self, example: &Example, logits: &[f32], batch: usize, d_logits: &mut [f32]) -> f32 {
        let candidates = logits.len();
        let mut loss = match self.base {
            BaseLoss::SelfAdversarial { temperature } => {
                loss::self_adversarial(logits, candidates, batch, temperature, d_logits)
            }
            BaseLoss::MeanBce => loss::mean_bce(logits, candidates, batch, d_logits),
            BaseLoss::SummedBce => loss::summed_bce(logits, example.truth, d_logits),
        };
        if self.softmax > 0.0 {
            let rest = 1.0 - self.softmax;
            d_logits.iter_mut().for_each(|d| *d *= rest);
            loss = rest * loss + loss::cross_entropy(logits, candidates, batch, self.softmax, d_logits);
        }
        loss
    }

    /// Returns what an example's share of the batch's loss is to be multiplied by to get its own loss.
    pub fn divisor(self, batch: usize) -> f64 {
        match self.base {
            BaseLoss::SummedBce => 1.0,
            BaseLoss::SelfAdversarial { .. } | BaseLoss::MeanBce => batch.max(1) as f64,
        }
    }
}

impl From<BaseLoss> for Loss {
    fn from(base: BaseLoss) -> Loss {
        Loss { base, softmax: 0.0 }
    }
}

/// A loss of true and false answers.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum BaseLoss {
    /// Mean over the examples of [`self_adversarial`](flock_kernels::loss::self_adversarial): the published loss of both tasks.
    SelfAdversarial {
        /// Of the softmax that weighs the false answers.
        temperature: f32,
    },
    /// Mean of [`mean_bce`](flock_kernels::loss::mean_bce) over all entries of all examples.
    MeanBce,
    /// Sum of [`summed_bce`](flock_kernels::loss::summed_bce) over all examples: the published loss of Petals.
    SummedBce,
}

/// All that a step's gradient depends on besides the weights.
#[derive(Clone, Copy)]
pub struct StepInput<'a> {
    /// The graph to walk on, and what is hidden of it.
    pub view: View<'a>,
    /// The batch.
    pub examples: &'a [Example],
    /// Base walk count `n`.
    pub walks: u32,
    /// Seed of the walks.
    pub seed: u64,
    /// The step, which has the place of the pass in the walks' [`Key`](flock_walk::Key).
    pub step: u32,
    /// Switches; the length is the model's.
    pub options: WalkOptions,
    /// What is minimised.
    pub loss: Loss,
}

impl StepInput<'_> {
    /// Returns the seed of an example's walks.
    pub fn seed_of(&self, example: &Example) -> u64 {
        self.seed ^ u64::from(example.row).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

/// What a step found.
#[derive(Clone, Debug, PartialEq)]
pub struct StepOutput {
    /// The loss of each example.
    pub losses: Vec<f64>,
    /// The loss of the batch.
    pub loss: f64,
}

/// The gradient of a batch's loss in every weight.
pub trait Gradient {
    /// Overwrites `gradient`, which is laid out like [`Weights::values`], with the gradient of the batch's loss.
    /// The same input gives the same bits, on any number of threads.
    ///
    /// # Errors
    /// A model or a query that does not fit the engine or the graph. A loss that is not finite is no error here.
    fn gradient(
        &mut self,
        weights: &Weights,
        input: &StepInput<'_>,
        gradient: &mut [f32],
    ) -> Result<StepOutput, ModelError>;
}
