//! The sizes that kernels are compiled for, and the register tiles of each.
//!
//! A kernel has its width `D` as a constant, so that the distance between rows and the length of
//! every loop are known to the compiler. A packed layer has its width as a value, and picks the
//! compilation once per call: [`Engine::run_at`], or [`Engine::run_heads`] for the consensus, whose
//! heads `H` are a constant too. These two functions are the only place that lists sizes.
//!
//! Kernels of the published sizes have their register tiles inline. Those of other sizes share
//! them ([`Shared`]): four times the code would take four times as long to compile, and a call for
//! each tile is estimated to cost a few percent.

use crate::simd::{Engine, Kernel, Mac, Shared, Vector};

/// Model widths `D` that kernels are compiled for. Every published Flock model has width 64.
pub const WIDTHS: [usize; 4] = [32, 64, 96, 128];
/// Widths of one consensus head's slice that kernels are compiled for: `D / H`.
pub const HEAD_WIDTHS: [usize; 2] = [16, 32];

/// Tells whether kernels are compiled for a width.
pub fn has_width(width: usize) -> bool {
    WIDTHS.contains(&width)
}

/// Tells whether kernels are compiled for a number of consensus heads at a width.
pub fn has_heads(width: usize, heads: usize) -> bool {
    has_width(width) && HEAD_WIDTHS.iter().any(|slice| heads * slice == width)
}

/// Returns the number of vectors in a row of a register tile that covers `columns` columns in whole
/// tiles. Sixteen lanes come with 32 registers: up to four vectors for each of six rows. Eight
/// lanes come with 16 registers: two vectors.
pub(crate) const fn tile_vectors(lanes: usize, columns: usize) -> usize {
    match (lanes, columns) {
        (16, n) if n.is_multiple_of(64) => 4,
        (16, n) if n.is_multiple_of(48) => 3,
        _ => 2,
    }
}

/// Work that is compiled for each width. `C` is the number of vectors in a row of its tiles.
pub(crate) trait WidthKernel {
    type Out;
    /// # Safety
    /// Only [`Engine::run_at`] may call this, because it enables the instructions of `M`.
    unsafe fn run<M: Mac, const D: usize, const C: usize>(self) -> Self::Out;
}

/// Work that is compiled for each width and number of heads. `S` is `H` rounded up to a power of
/// two: see [`consensus`](crate::consensus).
pub(crate) trait HeadsKernel {
    type Out;
    /// # Safety
    /// Only [`Engine::run_heads`] may call this, because it enables the instructions of `M`.
    unsafe fn run<M: Mac, const D: usize, const C: usize, const H: usize, const S: usize>(self) -> Self::Out;
}

/// A kernel at one width. `WIDE` is the number of vectors in a row of its tiles on sixteen lanes.
struct AtWidth<K, const D: usize, const WIDE: usize>(K);

impl<K: WidthKernel, const D: usize, const WIDE: usize> Kernel for AtWidth<K, D, WIDE> {
    type Out = K::Out;
    #[inline(always)]
    unsafe fn run<M: Mac>(self) -> K::Out {
        // SAFETY: the caller's promise.
        unsafe {
            match (M::V::LANES, D) {
                (16, 64) => self.0.run::<M, D, WIDE>(),
                (16, _) => self.0.run::<Shared<M>, D, WIDE>(),
                (_, 64) => self.0.run::<M, D, 2>(),
                (_, _) => self.0.run::<Shared<M>, D, 2>(),
            }
        }
    }
}

/// A kernel at one width and number of heads.
struct AtHeads<K, const D: usize, const WIDE: usize, const H: usize, const S: usize>(K);

impl<K: HeadsKernel, const D: usize, const WIDE: usize, const H: usize, const S: usize> Kernel
    for AtHeads<K, D, WIDE, H, S>
{
    type Out = K::Out;
    #[inline(always)]
    unsafe fn run<M: Mac>(self) -> K::Out {
        // SAFETY: the caller's promise.
        unsafe {
            match (M::V::LANES, D, H) {
                (16, 64, 4) => self.0.run::<M, D, WIDE, H, S>(),
                (16, _, _) => self.0.run::<Shared<M>, D, WIDE, H, S>(),
                (_, 64, 4) => self.0.run::<M, D, 2, H, S>(),
                (_, _, _) => self.0.run::<Shared<M>, D, 2, H, S>(),
            }
        }
    }
}

impl Engine {
    /// Runs a kernel at one of [`WIDTHS`].
    ///
    /// # Panics
    /// If the kernel is not compiled for the width.
    #[inline]
    pub(crate) fn run_at<K: WidthKernel>(self, width: usize, kernel: K) -> K::Out {
        match width {
            32 => self.run(AtWidth::<K, 32, { tile_vectors(16, 32) }>(kernel)),
            64 => self.run(AtWidth::<K, 64, { tile_vectors(16, 64) }>(kernel)),
            96 => self.run(AtWidth::<K, 96, { tile_vectors(16, 96) }>(kernel)),
            128 => self.run(AtWidth::<K, 128, { tile_vectors(16, 128) }>(kernel)),
            _ => panic!("no kernel is compiled for width {width}"),
        }
    }

    /// Runs a kernel at one of [`WIDTHS`] with heads of one of [`HEAD_WIDTHS`].
    ///
    /// # Panics
    /// If the kernel is not compiled for these sizes.
    #[inline]
    pub(crate) fn run_heads<K: HeadsKernel>(self, width: usize, heads: usize, kernel: K) -> K::Out {
        match (width, heads) {
            (32, 1) => self.run(AtHeads::<K, 32, { tile_vectors(16, 32) }, 1, 1>(kernel)),
            (32, 2) => self.run(AtHeads::<K, 32, { tile_vectors(16, 32) }, 2, 2>(kernel)),
            (64, 2) => self.run(AtHeads::<K, 64, { tile_vectors(16, 64) }, 2, 2>(kernel)),
            (64, 4) => self.run(AtHeads::<K, 64, { tile_vectors(16, 64) }, 4, 4>(kernel)),
            (96, 3) => self.run(AtHeads::<K, 96, { tile_vectors(16, 96) }, 3, 4>(kernel)),
            (96, 6) => self.run(AtHeads::<K, 96, { tile_vectors(16, 96) }, 6, 8>(kernel)),
            (128, 4) => self.run(AtHeads::<K, 128, { tile_vectors(16, 128) }, 4, 4>(kernel)),
            (128, 8) => self.run(AtHeads::<K, 128, { tile_vectors(16, 128) }, 8, 8>(kernel)),
            _ => panic!("no kernel is compiled for width {width} with {heads} heads"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sizes;
    impl WidthKernel for Sizes {
        type Out = [usize; 3];
        #[inline(always)]
        unsafe fn run<M: Mac, const D: usize, const C: usize>(self) -> [usize; 3] {
            [M::V::LANES, D, C]
        }
    }
    impl HeadsKernel for Sizes {
        type Out = [usize; 5];
        #[inline(always)]
        unsafe fn run<M: Mac, const D: usize, const C: usize, const H: usize, const S: usize>(self) -> [usize; 5] {
            [M::V::LANES, D, C, H, S]
        }
    }

    #[test]
    fn every_listed_size_is_compiled_with_tiles_that_divide_it() {
        for engine in Engine::all() {
            for width in WIDTHS {
                let [lanes, d, c] = engine.run_at(width, Sizes);
                assert_eq!((d, c), (width, tile_vectors(lanes, width)), "{engine:?}");
                assert!(width.is_multiple_of(c * lanes) && (2 * width).is_multiple_of(2 * lanes));
                for slice in HEAD_WIDTHS {
                    let heads = width / slice;
                    assert!(has_heads(width, heads));
                    let found = engine.run_heads(width, heads, Sizes);
                    assert_eq!(found, [lanes, width, c, heads, heads.next_power_of_two()], "{engine:?}");
                }
            }
        }
        assert!(!has_width(48) && !has_heads(64, 1) && !has_heads(64, 8) && !has_heads(64, 3) && !has_heads(48, 3));
    }
}
