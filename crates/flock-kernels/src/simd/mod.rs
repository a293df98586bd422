//! One vector trait, three instruction sets; one multiply-accumulate trait, three ways to multiply.
//!
//! A kernel implements `Kernel` once, generic over [`Mac`]; `Engine::run` compiles it inside a function that has
//! the instruction set enabled and picks among those at run time. `FLOCK_SIMD=avx512|avx2|portable` forces a level.
//!
//! Staged operands are `u32` *units*: the bits of one `f32`, or of two neighbouring `bf16` (AVX512-BF16 multiplies
//! pairs). bf16 without that instruction set is emulated: operands are rounded to bf16 but stay `f32` units, so the
//! products are the same and only the order of additions differs.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "the blocks are the bodies of trait methods: their argument is the contract on `Vector` and `Mac`"
)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod engine;
mod portable;

#[cfg(target_arch = "x86_64")]
pub use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub use avx512::{Avx512, Bf16};
pub(crate) use engine::Kernel;
#[cfg(test)]
use engine::Storage;
pub use engine::{Engine, Level, Precision, has_native_bf16};
pub use portable::Lanes;

/// An `f32` vector of some instruction set.
///
/// # Safety
/// Every method may be called only where the instruction set is present: they are, through `Engine::run` alone.
/// Pointers must be valid for `LANES` elements; no alignment is needed.
#[allow(missing_docs, clippy::missing_safety_doc)]
pub trait Vector: Copy {
    const LANES: usize;
    unsafe fn splat(x: f32) -> Self;
    unsafe fn load(p: *const f32) -> Self;
    unsafe fn store(self, p: *mut f32);
    unsafe fn add(self, b: Self) -> Self;
    unsafe fn sub(self, b: Self) -> Self;
    unsafe fn mul(self, b: Self) -> Self;
    /// `self · b + c`
    unsafe fn mul_add(self, b: Self, c: Self) -> Self;
    unsafe fn max(self, b: Self) -> Self;
    unsafe fn min(self, b: Self) -> Self;
    /// To the nearest whole number.
    unsafe fn round(self) -> Self;
    /// `self · 2^n` for whole `n` in −126..=127.
    unsafe fn scale(self, n: Self) -> Self;
    /// `1 / self` within two units in the last place, for normal numbers whose inverse is normal.
    unsafe fn recip(self) -> Self;
    /// To the nearest bf16, ties to even, as an `f32`.
    unsafe fn round_bf16(self) -> Self;
    unsafe fn sum(self) -> f32;
    /// Two neighbours over and over. `p` is valid for two elements.
    unsafe fn splat_pair(p: *const f32) -> Self;
    /// Writes the sums of neighbouring lanes: `LANES / 2` elements.
    unsafe fn store_pair_sums(self, p: *mut f32);

    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { Self::splat(0.0) }
    }

    /// `2^self`, relative error below 2e-7. The caller keeps `self` in −126..=126.
    ///
    /// Degree-5 relative minimax polynomial of 2^f on [−½, ½] (Remez exchange, error 7.5e-8 before rounding).
    #[inline(always)]
    unsafe fn exp2(self) -> Self {
        const C: [f32; 6] = [1.000_000_1, 0.693_146_97, 0.240_221_2, 0.055_507_133, 0.009_675_541, 0.001_327_646_9];
        unsafe {
            let n = self.round();
            let f = self.sub(n);
            let mut p = Self::splat(C[5]);
            p = p.mul_add(f, Self::splat(C[4]));
            p = p.mul_add(f, Self::splat(C[3]));
            p = p.mul_add(f, Self::splat(C[2]));
            p = p.mul_add(f, Self::splat(C[1]));
            p = p.mul_add(f, Self::splat(C[0]));
            p.scale(n)
        }
    }

    #[inline(always)]
    unsafe fn clamp(self, low: f32, high: f32) -> Self {
        unsafe { self.max(Self::splat(low)).min(Self::splat(high)) }
    }
}

/// Asks for the cache line at `p` to be brought near. A hint: any address will do.
#[inline(always)]
pub(crate) fn prefetch(p: *const f32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing and cannot fault, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(p.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

/// Asks for a whole row of width `D`.
#[inline(always)]
pub(crate) fn prefetch_row(p: *const f32) {
    for line in 0..crate::D / 16 {
        prefetch(p.wrapping_add(16 * line));
    }
}

/// The nearest bf16 of `x`, ties to even, as an `f32`.
#[inline(always)]
pub fn round_bf16(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits(bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) & 0xffff_0000)
}

/// How operands are stored and multiplied.
///
/// # Safety
/// As for [`Vector`].
#[allow(missing_docs, clippy::missing_safety_doc)]
pub trait Mac {
    type V: Vector;
    type Operand: Copy;
    /// Inner-dimension elements per unit.
    const K_PER: usize;
    /// Whether a row of `f32` is its own staged row.
    const DIRECT: bool = false;
    /// `LANES` weight units, one per output column.
    unsafe fn weights(p: *const u32) -> Self::Operand;
    /// One activation unit in every lane.
    unsafe fn splat(p: *const u32) -> Self::Operand;
    unsafe fn mac(acc: Self::V, w: Self::Operand, a: Self::Operand) -> Self::V;
    /// Writes `LANES` columns of one row, or of the pair (`even`, `odd`) of rows that one unit takes.
    unsafe fn stage_rows(even: Self::V, odd: Self::V, to: *mut u32);
    /// Writes `LANES` activations, elements `col..` of the row whose units start at `row`.
    unsafe fn stage(v: Self::V, row: *mut u32, col: usize);
}

/// Full precision on any vector.
pub struct F32<V>(std::marker::PhantomData<V>);
/// bf16 operands held as rounded `f32`, on any vector.
pub struct Bf16Emulated<V>(std::marker::PhantomData<V>);

impl<V: Vector> Mac for F32<V> {
    type V = V;
    type Operand = V;
    const K_PER: usize = 1;
    const DIRECT: bool = true;
    #[inline(always)]
    unsafe fn weights(p: *const u32) -> V {
        unsafe { V::load(p.cast()) }
    }
    #[inline(always)]
    unsafe fn splat(p: *const u32) -> V {
        unsafe { V::splat(*p.cast::<f32>()) }
    }
    #[inline(always)]
    unsafe fn mac(acc: V, w: V, a: V) -> V {
        unsafe { w.mul_add(a, acc) }
    }
    #[inline(always)]
    unsafe fn stage_rows(even: V, _: V, to: *mut u32) {
        unsafe { even.store(to.cast()) }
    }
    #[inline(always)]
    unsafe fn stage(v: V, row: *mut u32, col: usize) {
        unsafe { v.store(row.add(col).cast()) }
    }
}

impl<V: Vector> Mac for Bf16Emulated<V> {
    type V = V;
    type Operand = V;
    const K_PER: usize = 1;
    #[inline(always)]
    unsafe fn weights(p: *const u32) -> V {
        unsafe { V::load(p.cast()) }
    }
    #[inline(always)]
    unsafe fn splat(p: *const u32) -> V {
        unsafe { V::splat(*p.cast::<f32>()) }
    }
    #[inline(always)]
    unsafe fn mac(acc: V, w: V, a: V) -> V {
        unsafe { w.mul_add(a, acc) }
    }
    #[inline(always)]
    unsafe fn stage_rows(even: V, _: V, to: *mut u32) {
        unsafe { even.round_bf16().store(to.cast()) }
    }
    #[inline(always)]
    unsafe fn stage(v: V, row: *mut u32, col: usize) {
        unsafe { v.round_bf16().store(row.add(col).cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Elementwise<'a>(&'a [f32], &'a mut [f32], &'a mut [f32], &'a mut [f32]);
    impl Kernel for Elementwise<'_> {
        type Out = f32;
        #[inline(always)]
        unsafe fn run<M: Mac>(self) -> f32 {
            let n = M::V::LANES;
            let mut sum = 0.0;
            unsafe {
                for i in (0..self.0.len()).step_by(n) {
                    let x = M::V::load(self.0.as_ptr().add(i));
                    x.exp2().store(self.1.as_mut_ptr().add(i));
                    x.exp2().recip().store(self.2.as_mut_ptr().add(i));
                    x.round_bf16().store(self.3.as_mut_ptr().add(i));
                    sum += x.sum();
                }
            }
            sum
        }
    }

    #[test]
    fn elementary_functions_are_right_at_every_level() {
        // 16·200 points (two vectors of sixteen under Miri) over the whole range the kernels use.
        let n = if cfg!(miri) { 32 } else { 3200 };
        let x: Vec<f32> = (0..n).map(|i| -60.0 + 120.0 * i as f32 / (n - 1) as f32).collect();
        for engine in Engine::all() {
            let (mut e, mut r, mut b) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
            let sum = engine.run(Elementwise(&x, &mut e, &mut r, &mut b));
            assert!(sum.abs() < 0.05, "{engine:?}: {sum}");
            for i in 0..n {
                let want = (x[i] as f64).exp2();
                assert!(((e[i] as f64) / want - 1.0).abs() < 3e-7, "{engine:?}: 2^{} = {} not {want}", x[i], e[i]);
                assert!(((r[i] as f64) * want - 1.0).abs() < 6e-7, "{engine:?}: 1/2^{} = {}", x[i], r[i]);
                assert_eq!(b[i], round_bf16(x[i]), "{engine:?}");
            }
        }
    }

    #[test]
    fn bf16_rounds_to_nearest_even() {
        // bf16 keeps 8 significant bits: between 1 and 2 its spacing is 2^-7.
        let ulp = 1.0 / 128.0;
        assert_eq!(round_bf16(1.0 + 0.49 * ulp), 1.0);
        assert_eq!(round_bf16(1.0 + 0.5 * ulp), 1.0); // tie: 1.0 is even
        assert_eq!(round_bf16(1.0 + 1.5 * ulp), 1.0 + 2.0 * ulp); // tie: up to even
        assert_eq!(round_bf16(-(1.0 + 0.51 * ulp)), -(1.0 + ulp));
        assert_eq!(Storage::Pairs.unit(1.0, -2.0), 0xc000_3f80);
    }
}
