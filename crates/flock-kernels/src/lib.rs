//! Numbers in, numbers out: the layers of the Flock model, each as a plain loop and as a fast kernel.
//!
//! This crate knows no graph. Its inputs are embedding rows, walk positions and group ids; its outputs are states
//! and logits. Every layer file holds the plain version (the definition, a readable loop) and beside it the fast one,
//! which the tests hold equal to the plain one within rounding, on odd shapes, at every SIMD level.
//!
//! # Shapes
//! | letter | meaning |
//! |---|---|
//! | `W` | walks |
//! | `L` | positions of a walk |
//! | `D` | width, 64 |
//! | `H` | heads, 4, each over a slice of `D / H` = 16 |
//! | `F` | hidden width of the feed-forward, 192 |
//! | `P` | rows, one per walk position: `W · L` |
//!
//! # From the definition to the machine
//! [`simd`] has a vector type per instruction set behind one trait, and a multiply-accumulate flavour per precision
//! behind another; a kernel is written once against the two and compiled for each pair. [`Engine`] picks the pair at
//! run time.

pub mod adamw;
pub mod aligned;
pub mod attention;
pub mod consensus;
pub mod embed;
pub mod gru;
pub mod head;
pub mod linear;
pub mod loss;
pub mod peak;
pub mod rmsnorm;
pub mod simd;
pub mod swiglu;
#[cfg(test)]
mod testing;

pub use aligned::Aligned;
pub use simd::{Engine, Level, Precision};

/// Model width `D`. The kernels are compiled for it: 64 is the width of every published Flock model.
pub const D: usize = 64;
/// Consensus heads `H`.
pub const H: usize = 4;
/// Width of one head's slice.
pub const DH: usize = D / H;
/// Hidden width `F` of the feed-forward.
pub const F: usize = 192;
/// Walks that go through the sequence network together: two tiles of six rows. More of them overflow L1 (24: 5 % slower).
pub const BLOCK: usize = 12;
/// Epsilon of both RMS norms.
pub const RMS_EPS: f32 = 1e-5;
/// What the published consensus adds to a softmax denominator.
pub const SOFTMAX_EPS: f32 = 1e-8;

// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
