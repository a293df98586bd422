//! Measures the f32 multiply-add peak of this machine. All reported speeds are relative to it.

use crate::simd::{Engine, Kernel, Level, Mac, Precision, Vector};
use std::time::{Duration, Instant};

struct MultiplyAddKernel(usize);

impl Kernel for MultiplyAddKernel {
    type Out = f32;
    #[inline(always)]
    unsafe fn run<M: Mac>(self) -> f32 {
        // Ten independent chains keep two fused multiply-adds per cycle busy at a latency of five
        // cycles. Twelve leave a margin.
        const CHAINS: usize = 12;
        // SAFETY: registers only; see `Vector`.
        unsafe {
            // Hides the values from the optimiser, which could otherwise merge the chains or
            // compute their limit.
            let seed = std::hint::black_box([0.999_9f32, 2e-4]);
            let (a, b) = (M::V::splat(seed[0]), M::V::splat(seed[1]));
            let mut acc = [M::V::zero(); CHAINS];
            for (i, v) in acc.iter_mut().enumerate() {
                *v = M::V::splat(seed[0] + i as f32);
            }
            for _ in 0..self.0 {
                for v in &mut acc {
                    *v = v.mul_add(a, b);
                }
            }
            acc.iter().fold(M::V::zero(), |s, v| s.add(*v)).sum()
        }
    }
}

/// Returns the best of several runs, in GFLOP/s summed over `threads` threads that run at the same
/// time. A multiply-add counts as two operations. Returns 0 for a level that this machine does not
/// have.
pub fn gflops(level: Level, threads: usize, time: Duration) -> f64 {
    let Some(engine) = Engine::new(level, Precision::F32) else { return 0.0 };
    const ROUNDS: usize = 200_000;
    let flops = (ROUNDS * 12 * 2 * engine.lanes()) as f64;
    let best_of = || {
        let end = Instant::now() + time;
        let mut best = 0.0f64;
        while Instant::now() < end {
            let start = Instant::now();
            std::hint::black_box(engine.run(MultiplyAddKernel(std::hint::black_box(ROUNDS))));
            best = best.max(flops / start.elapsed().as_secs_f64() / 1e9);
        }
        best
    };
    std::thread::scope(|s| {
        let others: Vec<_> = (1..threads.max(1)).map(|_| s.spawn(best_of)).collect();
        let mine = best_of();
        mine + others.into_iter().map(|t| t.join().unwrap_or(0.0)).sum::<f64>()
    })
}
