//! Sequence processors: what reads a walk, before the feed-forward that all of them share
//! (`docs/reference/model.md`, sections 5 and 11).
//!
//! A processor maps (W, L, D) to (W, L, D) in place. Each has one file: the tensors it needs, its
//! plain forward and backward (the definition), its packed fast forward with what it keeps for the
//! way back, and its packed backward. To add one, write such a file and add a row to the table
//! below. Everything else (the tensor table, checkpoints, initial weights, both passes) follows.

mod gru;
mod transformer;

use std::fmt;

use flock_kernels::Engine;
use serde::{Deserialize, Serialize};

use crate::initialiser::Initialiser;

/// Defines [`ProcessorKind`] and its [`Processor`]s from one row each.
macro_rules! processors {
    ($($(#[$doc:meta])* $kind:ident = $name:literal => $processor:expr;)*) => {
        /// Which sequence processor a model has.
        #[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub enum ProcessorKind {
            $($(#[$doc])* #[serde(rename = $name)] $kind,)*
        }

        impl ProcessorKind {
            /// Every processor.
            pub const ALL: &[ProcessorKind] = &[$(ProcessorKind::$kind,)*];

            /// Returns the name in files and configurations.
            pub fn name(self) -> &'static str {
                match self {
                    $(ProcessorKind::$kind => $name,)*
                }
            }

            /// Returns the processor itself.
            pub(crate) fn processor(self) -> &'static dyn Processor {
                match self {
                    $(ProcessorKind::$kind => &$processor,)*
                }
            }
        }
    };
}

processors! {
    /// A bidirectional GRU: the published model.
    #[default]
    Gru = "gru" => gru::GruProcessor;
    /// Attention with learnt positions; about as many parameters.
    Transformer = "transformer" => transformer::TransformerProcessor;
}

impl fmt::Display for ProcessorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The sizes of a model that shapes may depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Hidden width `D`.
    pub width: usize,
    /// Walk length `L`.
    pub length: usize,
}

/// Where a tensor stands among an update's others, and how its name begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// With the embedding tables: `name.update.weight`.
    Table,
    /// Before the feed-forward's norm: `net.update.name`.
    BeforeNorm,
    /// After the feed-forward's norm: `net.update.name`.
    AfterNorm,
}

/// A tensor that a processor needs in each update.
pub(crate) struct ProcessorTensor {
    pub place: Place,
    pub name: String,
    pub shape: Vec<usize>,
    pub initialiser: Initialiser,
}

impl ProcessorTensor {
    fn new(place: Place, name: impl Into<String>, shape: &[usize], initialiser: Initialiser) -> ProcessorTensor {
        ProcessorTensor { place, name: name.into(), shape: shape.to_vec(), initialiser }
    }
}

/// A sequence processor. Weights and gradients come as one slice per tensor, in the order of
/// [`Processor::tensors`].
pub(crate) trait Processor: Sync {
    /// Lists the tensors of one update.
    fn tensors(&self, sizes: Sizes) -> Vec<ProcessorTensor>;

    /// Runs the definition, in place.
    fn plain(
        &self,
        x: &mut [f32], // (W, L, D)
        length: usize,
        weights: &[&[f32]],
    );

    /// Runs the definition of the way back: `d_x` comes in as the gradient of the output and leaves
    /// as that of the input; the weights' gradients are added to.
    fn plain_backward(
        &self,
        x: &[f32], // (W, L, D), before the processor
        length: usize,
        weights: &[&[f32]],
        d_x: &mut [f32], // (W, L, D)
        gradients: &mut [&mut [f32]],
    );

    /// Packs the weights for the fast forward pass.
    fn pack(&self, engine: Engine, weights: &[&[f32]]) -> Box<dyn PackedForward>;

    /// Packs the weights for the fast way back.
    fn pack_backward(&self, engine: Engine, weights: &[&[f32]]) -> Box<dyn PackedBackward>;
}

/// A processor packed for the forward pass. Working memory belongs to the thread.
pub(crate) trait PackedForward: Send + Sync {
    /// Values kept per row for the way back, besides the input.
    fn cache_width(&self) -> usize;

    /// Runs the processor in place on a block of walks, rows time-major. With a cache, it keeps what
    /// [`PackedBackward::run`] needs.
    fn run(
        &self,
        x: &mut [f32], // (L, walks, D)
        walks: usize,
        cache: Option<&mut [f32]>, // (L · walks · cache_width)
    );
}

/// A processor packed for the way back. Working memory belongs to the thread.
pub(crate) trait PackedBackward: Send + Sync {
    /// Goes back through a block of walks: `d_x` comes in as the gradient of the output and leaves as
    /// that of the input; the weights' gradients are added to.
    fn run(
        &self,
        x: &[f32], // (L, walks, D), before the processor
        walks: usize,
        cache: &[f32],   // as the forward left it
        d_x: &mut [f32], // (L, walks, D)
        gradients: &mut [&mut [f32]],
    );
}
