//! Numbers in, numbers out: the layers of the Flock model, each as a plain loop and as a fast kernel.
//!
//! This crate knows no graph. Its inputs are embedding rows, walk positions and group ids. Its
//! outputs are states and logits. Small layers are single files. Each large layer is a directory:
//!
//! - `mod` holds the definition (a plain, readable loop, forward and backward), the weights and the
//!   shapes;
//! - `fast` holds the SIMD forward;
//! - `backward` holds the SIMD backward.
//!
//! Tests compare the fast versions with the plain ones, within rounding, on odd shapes and at every
//! SIMD level.
//!
//! # Shapes
//! | letter | meaning |
//! |---|---|
//! | `W` | walks |
//! | `L` | positions of a walk |
//! | `D` | width: 32, 64, 96 or 128 |
//! | `H` | heads, each over a slice of `D / H` = 16 or 32 |
//! | `F` | hidden width of the feed-forward, `3D` |
//! | `P` | rows, one per walk position: `W · L` |
//!
//! # From the definition to the machine
//! [`simd`] has one trait for vectors, with a type for each instruction set, and one trait for
//! multiply-accumulate, with a type for each precision. A kernel is written once against these two
//! traits and compiled for each pair. [`Engine`] picks the pair at run time. Kernels are also
//! compiled for each width ([`WIDTHS`]). The plain versions run at any width.

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
mod width;

pub use aligned::AlignedVec;
pub use simd::{Engine, Level, Precision};
pub use width::{HEAD_WIDTHS, WIDTHS, has_heads, has_width};

/// Walks that go through the sequence network together: two tiles of six rows. A block of 24 walks
/// is 5 % slower, because it no longer fits in L1.
pub const BLOCK: usize = 12;
/// Epsilon of both RMS norms.
pub const RMS_EPS: f32 = 1e-5;
/// Epsilon that the published consensus adds to each softmax denominator.
pub const SOFTMAX_EPS: f32 = 1e-8;

// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
