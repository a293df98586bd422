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

use std::fmt;
use std::str::FromStr;

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

/// Vectors of `N` lanes without intrinsics. `N = 8` is the portable level; the tests also run `N = 16`, which has the
/// tile shapes of AVX-512.
#[derive(Clone, Copy)]
pub struct Lanes<const N: usize>([f32; N]);

impl<const N: usize> Lanes<N> {
    #[inline(always)]
    fn map(self, f: impl Fn(f32) -> f32) -> Self {
        Self(std::array::from_fn(|i| f(self.0[i])))
    }
    #[inline(always)]
    fn zip(self, b: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        Self(std::array::from_fn(|i| f(self.0[i], b.0[i])))
    }
}

impl<const N: usize> Vector for Lanes<N> {
    const LANES: usize = N;
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        Self([x; N])
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        Self(unsafe { p.cast::<[f32; N]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        unsafe { p.cast::<[f32; N]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn add(self, b: Self) -> Self {
        self.zip(b, |x, y| x + y)
    }
    #[inline(always)]
    unsafe fn sub(self, b: Self) -> Self {
        self.zip(b, |x, y| x - y)
    }
    #[inline(always)]
    unsafe fn mul(self, b: Self) -> Self {
        self.zip(b, |x, y| x * y)
    }
    #[inline(always)]
    unsafe fn mul_add(self, b: Self, c: Self) -> Self {
        // Two roundings: a fused one would be a library call where the hardware has none.
        Self(std::array::from_fn(|i| self.0[i] * b.0[i] + c.0[i]))
    }
    #[inline(always)]
    unsafe fn max(self, b: Self) -> Self {
        self.zip(b, |x, y| if x > y { x } else { y })
    }
    #[inline(always)]
    unsafe fn min(self, b: Self) -> Self {
        self.zip(b, |x, y| if x < y { x } else { y })
    }
    #[inline(always)]
    unsafe fn round(self) -> Self {
        // Adding 1.5·2²³ leaves no room for a fraction: rounds to nearest without a library call.
        const MAGIC: f32 = 12_582_912.0;
        self.map(|x| (x + MAGIC) - MAGIC)
    }
    #[inline(always)]
    unsafe fn scale(self, n: Self) -> Self {
        self.zip(n, |x, n| x * f32::from_bits(((n as i32 + 127) as u32) << 23))
    }
    #[inline(always)]
    unsafe fn recip(self) -> Self {
        self.map(|x| 1.0 / x)
    }
    #[inline(always)]
    unsafe fn round_bf16(self) -> Self {
        self.map(round_bf16)
    }
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        let mut half = self.0;
        let mut n = N;
        while n > 1 {
            n /= 2;
            for i in 0..n {
                half[i] += half[i + n];
            }
        }
        half[0]
    }
    #[inline(always)]
    unsafe fn splat_pair(p: *const f32) -> Self {
        let pair = unsafe { p.cast::<[f32; 2]>().read() };
        Self(std::array::from_fn(|i| pair[i % 2]))
    }
    #[inline(always)]
    unsafe fn store_pair_sums(self, p: *mut f32) {
        for i in 0..N / 2 {
            unsafe { *p.add(i) = self.0[2 * i] + self.0[2 * i + 1] }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Mac, Vector};
    use std::arch::x86_64::*;

    /// AVX2 + FMA: eight lanes.
    #[derive(Clone, Copy)]
    pub struct Avx2(__m256);

    impl Vector for Avx2 {
        const LANES: usize = 8;
        #[inline(always)]
        unsafe fn splat(x: f32) -> Self {
            unsafe { Self(_mm256_set1_ps(x)) }
        }
        #[inline(always)]
        unsafe fn load(p: *const f32) -> Self {
            unsafe { Self(_mm256_loadu_ps(p)) }
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut f32) {
            unsafe { _mm256_storeu_ps(p, self.0) }
        }
        #[inline(always)]
        unsafe fn add(self, b: Self) -> Self {
            unsafe { Self(_mm256_add_ps(self.0, b.0)) }
        }
        #[inline(always)]
        unsafe fn sub(self, b: Self) -> Self {
            unsafe { Self(_mm256_sub_ps(self.0, b.0)) }
        }
        #[inline(always)]
        unsafe fn mul(self, b: Self) -> Self {
            unsafe { Self(_mm256_mul_ps(self.0, b.0)) }
        }
        #[inline(always)]
        unsafe fn mul_add(self, b: Self, c: Self) -> Self {
            unsafe { Self(_mm256_fmadd_ps(self.0, b.0, c.0)) }
        }
        #[inline(always)]
        unsafe fn max(self, b: Self) -> Self {
            unsafe { Self(_mm256_max_ps(self.0, b.0)) }
        }
        #[inline(always)]
        unsafe fn min(self, b: Self) -> Self {
            unsafe { Self(_mm256_min_ps(self.0, b.0)) }
        }
        #[inline(always)]
        unsafe fn round(self) -> Self {
            unsafe { Self(_mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0)) }
        }
        #[inline(always)]
        unsafe fn scale(self, n: Self) -> Self {
            unsafe {
                let e = _mm256_add_epi32(_mm256_cvtps_epi32(n.0), _mm256_set1_epi32(127));
                Self(_mm256_mul_ps(self.0, _mm256_castsi256_ps(_mm256_slli_epi32::<23>(e))))
            }
        }
        #[inline(always)]
        unsafe fn recip(self) -> Self {
            // 12 bits, then one Newton step: y(2 − xy).
            unsafe {
                let y = _mm256_rcp_ps(self.0);
                let e = _mm256_fnmadd_ps(self.0, y, _mm256_set1_ps(2.0));
                Self(_mm256_mul_ps(y, e))
            }
        }
        #[inline(always)]
        unsafe fn round_bf16(self) -> Self {
            unsafe {
                let bits = _mm256_castps_si256(self.0);
                let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
                let up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
                Self(_mm256_castsi256_ps(_mm256_and_si256(up, _mm256_set1_epi32(0xffff_0000u32 as i32))))
            }
        }
        #[inline(always)]
        unsafe fn sum(self) -> f32 {
            unsafe {
                let q = _mm_add_ps(_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
                let d = _mm_add_ps(q, _mm_movehl_ps(q, q));
                _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)))
            }
        }
        #[inline(always)]
        unsafe fn splat_pair(p: *const f32) -> Self {
            unsafe { Self(_mm256_castpd_ps(_mm256_set1_pd(p.cast::<f64>().read_unaligned()))) }
        }
        #[inline(always)]
        unsafe fn store_pair_sums(self, p: *mut f32) {
            unsafe {
                let (low, high) = (_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
                _mm_storeu_ps(p, _mm_hadd_ps(low, high));
            }
        }
    }

    /// AVX-512: sixteen lanes.
    #[derive(Clone, Copy)]
    pub struct Avx512(__m512);

    impl Vector for Avx512 {
        const LANES: usize = 16;
        #[inline(always)]
        unsafe fn splat(x: f32) -> Self {
            unsafe { Self(_mm512_set1_ps(x)) }
        }
        #[inline(always)]
        unsafe fn load(p: *const f32) -> Self {
            unsafe { Self(_mm512_loadu_ps(p)) }
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut f32) {
            unsafe { _mm512_storeu_ps(p, self.0) }
        }
        #[inline(always)]
        unsafe fn add(self, b: Self) -> Self {
            unsafe { Self(_mm512_add_ps(self.0, b.0)) }
        }
        #[inline(always)]
        unsafe fn sub(self, b: Self) -> Self {
            unsafe { Self(_mm512_sub_ps(self.0, b.0)) }
        }
        #[inline(always)]
        unsafe fn mul(self, b: Self) -> Self {
            unsafe { Self(_mm512_mul_ps(self.0, b.0)) }
        }
        #[inline(always)]
        unsafe fn mul_add(self, b: Self, c: Self) -> Self {
            unsafe { Self(_mm512_fmadd_ps(self.0, b.0, c.0)) }
        }
        #[inline(always)]
        unsafe fn max(self, b: Self) -> Self {
            unsafe { Self(_mm512_max_ps(self.0, b.0)) }
        }
        #[inline(always)]
        unsafe fn min(self, b: Self) -> Self {
            unsafe { Self(_mm512_min_ps(self.0, b.0)) }
        }
        #[inline(always)]
        unsafe fn round(self) -> Self {
            unsafe { Self(_mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0)) }
        }
        #[inline(always)]
        unsafe fn scale(self, n: Self) -> Self {
            unsafe { Self(_mm512_scalef_ps(self.0, n.0)) }
        }
        #[inline(always)]
        unsafe fn recip(self) -> Self {
            unsafe {
                let y = _mm512_rcp14_ps(self.0);
                let e = _mm512_fnmadd_ps(self.0, y, _mm512_set1_ps(2.0));
                Self(_mm512_mul_ps(y, e))
            }
        }
        #[inline(always)]
        unsafe fn round_bf16(self) -> Self {
            unsafe {
                let bits = _mm512_castps_si512(self.0);
                let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
                let up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
                Self(_mm512_castsi512_ps(_mm512_and_si512(up, _mm512_set1_epi32(0xffff_0000u32 as i32))))
            }
        }
        #[inline(always)]
        unsafe fn sum(self) -> f32 {
            unsafe { _mm512_reduce_add_ps(self.0) }
        }
        #[inline(always)]
        unsafe fn splat_pair(p: *const f32) -> Self {
            unsafe { Self(_mm512_castpd_ps(_mm512_set1_pd(p.cast::<f64>().read_unaligned()))) }
        }
        #[inline(always)]
        unsafe fn store_pair_sums(self, p: *mut f32) {
            unsafe {
                let sums = _mm512_add_ps(self.0, _mm512_permute_ps::<0b10_11_00_01>(self.0));
                _mm256_storeu_ps(p, _mm512_castps512_ps256(_mm512_maskz_compress_ps(0x5555, sums)));
            }
        }
    }

    /// AVX512-BF16: pairs of bf16 products, accumulated in f32.
    pub struct Bf16;

    impl Mac for Bf16 {
        type V = Avx512;
        type Operand = __m512i;
        const K_PER: usize = 2;
        #[inline(always)]
        unsafe fn weights(p: *const u32) -> __m512i {
            unsafe { _mm512_loadu_si512(p.cast()) }
        }
        #[inline(always)]
        unsafe fn splat(p: *const u32) -> __m512i {
            unsafe { _mm512_set1_epi32(*p as i32) }
        }
        #[inline(always)]
        unsafe fn mac(acc: Avx512, w: __m512i, a: __m512i) -> Avx512 {
            // SAFETY (transmutes): __m512i and __m512bh are both 64 bytes of plain bits.
            unsafe {
                let (w, a) = (std::mem::transmute::<__m512i, __m512bh>(w), std::mem::transmute::<__m512i, __m512bh>(a));
                Avx512(_mm512_dpbf16_ps(acc.0, w, a))
            }
        }
        #[inline(always)]
        unsafe fn stage_rows(even: Avx512, odd: Avx512, to: *mut u32) {
            unsafe {
                // Rounded, a bf16 is the upper half of its `f32`: the even row goes to the lower half of the unit.
                let low = _mm512_srli_epi32::<16>(_mm512_castps_si512(even.round_bf16().0));
                let high = _mm512_castps_si512(odd.round_bf16().0);
                _mm512_storeu_si512(to.cast(), _mm512_or_si512(low, high));
            }
        }
        #[inline(always)]
        unsafe fn stage(v: Avx512, row: *mut u32, col: usize) {
            // SAFETY (transmute): __m256bh and __m256i are both 32 bytes of plain bits.
            unsafe {
                let bits = std::mem::transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(v.0));
                _mm256_storeu_si256(row.add(col / 2).cast(), bits);
            }
        }
    }
}
#[cfg(target_arch = "x86_64")]
pub use x86::{Avx2, Avx512, Bf16};

/// An instruction set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Eight-lane arrays, left to the compiler.
    Portable,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
}

/// The precision of multiplications. Accumulators and states are `f32` in both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Precision {
    /// 32-bit operands.
    F32,
    /// Operands rounded to bf16.
    Bf16,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Portable => "portable",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        })
    }
}

impl FromStr for Level {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        [Level::Portable, Level::Avx2, Level::Avx512]
            .into_iter()
            .find(|l| l.to_string() == s)
            .ok_or_else(|| format!("unknown SIMD level {s:?}; expected avx512, avx2 or portable"))
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Precision::F32 => "f32",
            Precision::Bf16 => "bf16",
        })
    }
}

impl FromStr for Precision {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "f32" => Ok(Precision::F32),
            "bf16" => Ok(Precision::Bf16),
            _ => Err(format!("unknown precision {s:?}; expected f32 or bf16")),
        }
    }
}

impl Level {
    /// Whether this machine has it.
    pub fn is_available(self) -> bool {
        match self {
            Level::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// All levels of this machine, slowest first.
    pub fn available() -> impl Iterator<Item = Level> {
        [Level::Portable, Level::Avx2, Level::Avx512].into_iter().filter(|l| l.is_available())
    }

    /// The level `FLOCK_SIMD` names, or else the best of this machine.
    pub fn detect() -> Result<Level, String> {
        match std::env::var("FLOCK_SIMD") {
            Ok(name) if !name.is_empty() => {
                let level: Level = name.parse().map_err(|e| format!("FLOCK_SIMD: {e}"))?;
                if !level.is_available() {
                    return Err(format!("FLOCK_SIMD: this machine has no {level}; unset it to use the best level"));
                }
                Ok(level)
            }
            _ => Ok(Level::available().last().unwrap_or(Level::Portable)),
        }
    }
}

/// Whether bf16 products run on AVX512-BF16 rather than by emulation.
pub fn has_native_bf16() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512bf16");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// How an engine stores operands; packed weights must have been made for the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Storage {
    /// One `f32` per unit.
    F32,
    /// One `f32`, rounded to bf16, per unit.
    Rounded,
    /// Two bf16 per unit.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    Pairs,
}

impl Storage {
    /// The unit of the neighbouring inner-dimension elements `w0`, `w1` (`w1` only for pairs).
    pub(crate) fn unit(self, w0: f32, w1: f32) -> u32 {
        match self {
            Storage::F32 => w0.to_bits(),
            Storage::Rounded => round_bf16(w0).to_bits(),
            Storage::Pairs => round_bf16(w0).to_bits() >> 16 | round_bf16(w1).to_bits() & 0xffff_0000,
        }
    }
}

/// An instruction set and a precision: how kernels run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Engine {
    level: Level,
    storage: Storage,
    /// Sixteen-lane portable vectors: the tile shapes of AVX-512 for tests on machines without it.
    wide_portable: bool,
}

/// Work that can run on any engine.
pub(crate) trait Kernel {
    type Out;
    /// # Safety
    /// Called by [`Engine::run`] alone, where `M`'s instructions are enabled.
    unsafe fn run<M: Mac>(self) -> Self::Out;
}

impl Engine {
    /// The engine for a level this machine has. `None` if it has not.
    pub fn new(level: Level, precision: Precision) -> Option<Engine> {
        let storage = match precision {
            Precision::F32 => Storage::F32,
            #[cfg(target_arch = "x86_64")]
            Precision::Bf16 if level == Level::Avx512 && has_native_bf16() => Storage::Pairs,
            Precision::Bf16 => Storage::Rounded,
        };
        level.is_available().then_some(Engine { level, storage, wide_portable: false })
    }

    /// Every engine that can run here, for tests: all levels, both precisions, and the portable sixteen-lane one.
    pub fn all() -> Vec<Engine> {
        let mut engines: Vec<Engine> = Level::available()
            .flat_map(|l| [Precision::F32, Precision::Bf16].into_iter().filter_map(move |p| Engine::new(l, p)))
            .collect();
        for storage in [Storage::F32, Storage::Rounded] {
            engines.push(Engine { level: Level::Portable, storage, wide_portable: true });
            // AVX-512 without BF16 rounds instead of pairing: a machine that has both must test both.
            if has_native_bf16() && Level::Avx512.is_available() && storage == Storage::Rounded {
                engines.push(Engine { level: Level::Avx512, storage, wide_portable: false });
            }
        }
        engines
    }

    /// The instruction set.
    pub fn level(self) -> Level {
        self.level
    }

    /// The precision of multiplications.
    pub fn precision(self) -> Precision {
        match self.storage {
            Storage::F32 => Precision::F32,
            _ => Precision::Bf16,
        }
    }

    /// Whether bf16 is emulated here.
    pub fn is_emulated(self) -> bool {
        self.storage == Storage::Rounded
    }

    pub(crate) fn storage(self) -> Storage {
        self.storage
    }

    pub(crate) fn lanes(self) -> usize {
        if self.level == Level::Avx512 || self.wide_portable { 16 } else { 8 }
    }

    /// Inner-dimension elements per unit.
    pub(crate) fn k_per(self) -> usize {
        if self.storage == Storage::Pairs { 2 } else { 1 }
    }

    #[inline]
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Out {
        // SAFETY: `Engine::new` makes an engine only for an available level, and pairs only where AVX512-BF16 is.
        unsafe {
            match (self.level, self.storage) {
                #[cfg(target_arch = "x86_64")]
                (Level::Avx2, Storage::F32) => run_avx2::<K, F32<Avx2>>(kernel),
                #[cfg(target_arch = "x86_64")]
                (Level::Avx2, _) => run_avx2::<K, Bf16Emulated<Avx2>>(kernel),
                #[cfg(target_arch = "x86_64")]
                (Level::Avx512, Storage::F32) => run_avx512::<K, F32<Avx512>>(kernel),
                #[cfg(target_arch = "x86_64")]
                (Level::Avx512, Storage::Rounded) => run_avx512::<K, Bf16Emulated<Avx512>>(kernel),
                #[cfg(target_arch = "x86_64")]
                (Level::Avx512, Storage::Pairs) => run_avx512_bf16(kernel),
                (_, Storage::F32) if self.wide_portable => kernel.run::<F32<Lanes<16>>>(),
                (_, _) if self.wide_portable => kernel.run::<Bf16Emulated<Lanes<16>>>(),
                (_, Storage::F32) => kernel.run::<F32<Lanes<8>>>(),
                (_, _) => kernel.run::<Bf16Emulated<Lanes<8>>>(),
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn run_avx2<K: Kernel, M: Mac>(kernel: K) -> K::Out {
    unsafe { kernel.run::<M>() }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
unsafe fn run_avx512<K: Kernel, M: Mac>(kernel: K) -> K::Out {
    unsafe { kernel.run::<M>() }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
unsafe fn run_avx512_bf16<K: Kernel>(kernel: K) -> K::Out {
    unsafe { kernel.run::<Bf16>() }
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
