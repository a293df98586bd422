//! One vector trait for three instruction sets, and one multiply-accumulate trait for three ways to
//! multiply.
//!
//! A kernel implements `Kernel` once, generic over [`Mac`]. `Engine::run` compiles it inside
//! functions that have an instruction set enabled, and picks one of them at run time.
//! `FLOCK_SIMD=avx512|avx2|portable` forces a level.
//!
//! Operands are *staged*: copied into `u32` *units* in the order in which a kernel reads them. A
//! unit holds the bits of one `f32`, or of two neighbouring `bf16` (AVX512-BF16 multiplies pairs).
//! Without that instruction set bf16 is emulated: operands are rounded to bf16 but stay `f32`
//! units. The products are then the same, and only the order of additions differs.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "the blocks are the bodies of trait methods; the contracts of `Vector` and `Mac` justify them"
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
#[cfg(test)]
use engine::Storage;
pub use engine::{Engine, Kernel, Level, Precision};
pub use portable::Lanes;

/// A vector of `f32` for one instruction set.
///
/// # Safety
/// Call methods only where the instruction set is present. Kernels run only through `Engine::run`,
/// which guarantees this. Pointers must be valid for `LANES` elements and need no alignment.
#[allow(missing_docs, clippy::missing_safety_doc)]
pub trait Vector: Copy {
    const LANES: usize;
    /// Whether kernels share their register tiles; see [`Mac::SHARED`].
    const SHARED: bool = false;
    unsafe fn splat(x: f32) -> Self;
    unsafe fn load(p: *const f32) -> Self;
    unsafe fn store(self, p: *mut f32);
    unsafe fn add(self, b: Self) -> Self;
    unsafe fn sub(self, b: Self) -> Self;
    unsafe fn mul(self, b: Self) -> Self;
    /// Computes `self · b + c`.
    unsafe fn mul_add(self, b: Self, c: Self) -> Self;
    unsafe fn max(self, b: Self) -> Self;
    unsafe fn min(self, b: Self) -> Self;
    /// Rounds to the nearest whole number.
    unsafe fn round(self) -> Self;
    /// Computes `self · 2^n` for whole `n` in −126..=127.
    unsafe fn scale(self, n: Self) -> Self;
    /// Computes `1 / self` within two units in the last place, for normal numbers whose inverse is
    /// normal.
    unsafe fn recip(self) -> Self;
    /// Rounds to the nearest bf16, ties to even, as an `f32`.
    unsafe fn round_bf16(self) -> Self;
    unsafe fn sum(self) -> f32;
    /// Fills the lanes with two neighbouring elements in turn. `p` is valid for two elements.
    unsafe fn splat_pair(p: *const f32) -> Self;
    /// Writes the sums of neighbouring lanes: `LANES / 2` elements.
    unsafe fn store_pair_sums(self, p: *mut f32);
    /// Runs a kernel as a function of its own, with the instruction set enabled.
    unsafe fn call<M: Mac<V = Self>, K: Kernel>(kernel: K) -> K::Out;

    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { Self::splat(0.0) }
    }

    /// Computes `2^self` with a relative error below 2e-7. The caller keeps `self` in −126..=126.
    ///
    /// The polynomial is the degree-5 relative minimax of 2^f on [−½, ½] (Remez exchange, error
    /// 7.5e-8 before rounding).
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

/// Prefetches the cache line at `p`. This is a hint, so any address is allowed.
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

/// Prefetches a whole row of width `D`.
#[inline(always)]
pub(crate) fn prefetch_row<const D: usize>(p: *const f32) {
    for line in 0..D / 16 {
        prefetch(p.wrapping_add(16 * line));
    }
}

/// Rounds `x` to the nearest bf16, ties to even, as an `f32`.
#[inline(always)]
pub fn round_bf16(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits(bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) & 0xffff_0000)
}

/// A way to store and multiply operands.
///
/// # Safety
/// The same rules as for [`Vector`].
#[allow(missing_docs, clippy::missing_safety_doc)]
pub trait Mac {
    type V: Vector;
    type Operand: Copy;
    /// The same in full precision, for what is never rounded.
    type Full: Mac<V = Self::V>;
    /// Number of inner-dimension elements in a unit.
    const K_PER: usize;
    /// Whether a row of `f32` can be used as it is, without staging.
    const DIRECT: bool = false;
    /// Whether kernels share their register tiles as functions, instead of a copy at each place
    /// that uses one. This saves most of the compiled code and costs a call for each tile. Vectors
    /// without intrinsics have long tiles and always share.
    const SHARED: bool = <Self::V as Vector>::SHARED;
    /// Runs a kernel that multiplies staged operands as a function of its own, with the instruction
    /// set enabled.
    unsafe fn call<K: Kernel>(kernel: K) -> K::Out;
    /// Loads `LANES` weight units, one per output column.
    unsafe fn weights(p: *const u32) -> Self::Operand;
    /// Loads one activation unit into every lane.
    unsafe fn splat(p: *const u32) -> Self::Operand;
    unsafe fn mac(acc: Self::V, w: Self::Operand, a: Self::Operand) -> Self::V;
    /// Writes `LANES` columns of one row. Where a unit holds two rows, writes those of the rows
    /// `even` and `odd`.
    unsafe fn stage_rows(even: Self::V, odd: Self::V, to: *mut u32);
    /// Writes `LANES` activations: the elements from `col` on of the row whose units start at
    /// `row`.
    unsafe fn stage(v: Self::V, row: *mut u32, col: usize);
}

/// Multiplies in full precision, on any vector.
pub struct F32<V>(std::marker::PhantomData<V>);
/// Multiplies bf16 operands that are held as rounded `f32`, on any vector.
pub struct Bf16Emulated<V>(std::marker::PhantomData<V>);
/// Multiplies as `M` does, with shared register tiles.
pub struct Shared<M>(std::marker::PhantomData<M>);

impl<M: Mac> Mac for Shared<M> {
    type V = M::V;
    type Operand = M::Operand;
    type Full = Shared<F32<M::V>>;
    const K_PER: usize = M::K_PER;
    const DIRECT: bool = M::DIRECT;
    const SHARED: bool = true;
    #[inline(always)]
    unsafe fn call<K: Kernel>(kernel: K) -> K::Out {
        unsafe { M::call(kernel) }
    }
    #[inline(always)]
    unsafe fn weights(p: *const u32) -> M::Operand {
        unsafe { M::weights(p) }
    }
    #[inline(always)]
    unsafe fn splat(p: *const u32) -> M::Operand {
        unsafe { M::splat(p) }
    }
    #[inline(always)]
    unsafe fn mac(acc: M::V, w: M::Operand, a: M::Operand) -> M::V {
        unsafe { M::mac(acc, w, a) }
    }
    #[inline(always)]
    unsafe fn stage_rows(even: M::V, odd: M::V, to: *mut u32) {
        unsafe { M::stage_rows(even, odd, to) }
    }
    #[inline(always)]
    unsafe fn stage(v: M::V, row: *mut u32, col: usize) {
        unsafe { M::stage(v, row, col) }
    }
}

impl<V: Vector> Mac for F32<V> {
    type V = V;
    type Operand = V;
    type Full = F32<V>;
    const K_PER: usize = 1;
    const DIRECT: bool = true;
    #[inline(always)]
    unsafe fn call<K: Kernel>(kernel: K) -> K::Out {
        unsafe { V::call::<Self, K>(kernel) }
    }
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
    type Full = F32<V>;
    const K_PER: usize = 1;
    #[inline(always)]
    unsafe fn call<K: Kernel>(kernel: K) -> K::Out {
        // A tile reads operands that are rounded already: it is the same as in full precision.
        unsafe { V::call::<F32<V>, K>(kernel) }
    }
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
    fn the_fastest_precision_is_never_emulated() {
        for level in Level::available() {
            let fastest = Engine::new(level, Precision::fastest(level)).unwrap();
            assert!(!fastest.is_emulated(), "{level}");
            let bf16 = Engine::new(level, Precision::Bf16).unwrap();
            assert_eq!(fastest.precision() == Precision::Bf16, !bf16.is_emulated(), "{level}");
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
