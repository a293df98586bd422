//! Measures the share of the multiply-add peak that each layer reaches on one thread: `cargo run
//! --release -p flock-kernels --example layers`. The first argument is the width; 64 if absent.
use flock_kernels::*;
use std::time::{Duration, Instant};

fn main() {
    let level = Level::detect().unwrap();
    let d: usize = std::env::args().nth(1).map_or(64, |width| width.parse().expect("a width"));
    assert!(has_width(d), "expected one of {WIDTHS:?}");
    let noise =
        |n: usize, s: f32| -> Vec<f32> { (0..n).map(|i| (((i * 7919) % 1000) as f32 / 500.0 - 1.0) * s).collect() };
    let (length, walks) = (128, BLOCK);
    let rows = length * walks;
    let w: Vec<Vec<f32>> = vec![
        noise(3 * d * d, 0.1),
        noise(3 * d * d, 0.1),
        noise(3 * d, 0.1),
        noise(3 * d, 0.1),
        noise(d, 1.0),
        noise(2 * d * d, 0.1),
    ];
    let direction = gru::Direction { w_ih: &w[0], w_hh: &w[1], b_ih: &w[2], b_hh: &w[3] };
    for precision in [Precision::F32, Precision::Bf16] {
        let engine = Engine::new(level, precision).unwrap();
        let g = gru::Gru::new(engine, gru::Weights { norm: &w[4], directions: [direction, direction], out: &w[5] });
        let s = swiglu::SwiGlu::new(engine, swiglu::Weights { norm: &w[4], w1: &w[0], w3: &w[1], w2: &w[0] });
        let lin = linear::Linear::new(engine, &w[5], &w[3][..2 * d], d);
        let mut x = noise(rows * d, 1.0);
        let mut y = vec![0.0; rows * 2 * d];
        let (mut gs, mut ss) = (gru::Scratch::default(), swiglu::Scratch::default());
        let x0 = x.clone();
        let mut time = |name: &str, macs: usize, f: &mut dyn FnMut(&mut Vec<f32>)| {
            let mut best = f64::MAX;
            let mut peak = 0.0f64;
            for _ in 0..40 {
                x.copy_from_slice(&x0);
                let t = Instant::now();
                f(&mut x);
                best = best.min(t.elapsed().as_secs_f64());
                peak = peak.max(peak::gflops(level, 1, Duration::from_millis(5)));
            }
            let gf = 2.0 * (rows * macs) as f64 / best / 1e9;
            println!("{precision} {name:8} {:8.1} µs {gf:7.1} GFLOP/s {:.3} of peak {peak:.1}", best * 1e6, gf / peak);
        };
        time("gru+out", 14 * d * d, &mut |x| g.forward(x, walks, &mut gs));
        time("swiglu", 9 * d * d, &mut |x| s.forward(x, &mut ss));
        time("linear", 2 * d * d, &mut |x| lin.forward(x, None, &mut y, linear::Activation::None));
    }
}
