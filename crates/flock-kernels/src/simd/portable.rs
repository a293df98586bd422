//! Vectors without intrinsics: arrays of lanes, which the compiler maps to the instructions of the
//! target.

use super::{Kernel, Mac, Vector, round_bf16};

/// A vector of `N` lanes without intrinsics. `N = 8` is the portable level. The tests also run `N =
/// 16`, which has the tile shapes of AVX-512.
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
    const SHARED: bool = true;
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
        // Rounds twice. A fused operation would be a library call where the hardware has none.
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
        // A sum of at least 2²³ has no room for a fraction. So this rounds to nearest without a
        // library call.
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
    #[inline(never)]
    unsafe fn call<M: Mac<V = Self>, K: Kernel>(kernel: K) -> K::Out {
        unsafe { kernel.run::<M>() }
    }
    #[inline(always)]
    unsafe fn store_pair_sums(self, p: *mut f32) {
        for i in 0..N / 2 {
            unsafe { *p.add(i) = self.0[2 * i] + self.0[2 * i + 1] }
        }
    }
}
