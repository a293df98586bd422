//! Vectors of sixteen lanes: AVX-512. Also pairs of bf16 products: AVX512-BF16.

use super::{F32, Kernel, Mac, Vector};
use std::arch::x86_64::*;

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
    unsafe fn call<M: Mac<V = Self>, K: Kernel>(kernel: K) -> K::Out {
        #[inline(never)]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
        unsafe fn outlined<M: Mac, K: Kernel>(kernel: K) -> K::Out {
            unsafe { kernel.run::<M>() }
        }
        unsafe { outlined::<M, K>(kernel) }
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
    type Full = F32<Avx512>;
    const K_PER: usize = 2;
    #[inline(always)]
    unsafe fn call<K: Kernel>(kernel: K) -> K::Out {
        #[inline(never)]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
        unsafe fn outlined<K: Kernel>(kernel: K) -> K::Out {
            unsafe { kernel.run::<Bf16>() }
        }
        unsafe { outlined(kernel) }
    }
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
            // A rounded bf16 is the upper half of its `f32`. The even row goes to the lower half of
            // the unit.
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
