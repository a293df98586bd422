//! Vectors of eight lanes: AVX2 with FMA.

use super::{Kernel, Mac, Vector};
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
        // The estimate has 12 bits. One Newton step, y(2 − xy), doubles them.
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
    unsafe fn call<M: Mac<V = Self>, K: Kernel>(kernel: K) -> K::Out {
        #[inline(never)]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn outlined<M: Mac, K: Kernel>(kernel: K) -> K::Out {
            unsafe { kernel.run::<M>() }
        }
        unsafe { outlined::<M, K>(kernel) }
    }
    #[inline(always)]
    unsafe fn store_pair_sums(self, p: *mut f32) {
        unsafe {
            let (low, high) = (_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
            _mm_storeu_ps(p, _mm_hadd_ps(low, high));
        }
    }
}
