//! Compares the plain backward of every layer with finite differences of its plain forward.
//!
//! The loss is `Σ d_out · out` with fixed random `d_out`, summed in double precision. Its slope is
//! measured by the five-point rule `(8 (f(h) − f(−h)) − (f(2h) − f(−2h))) / 12h`, whose error is of
//! order h⁴. It is measured in single entries (one of them has the largest gradient) and in random
//! directions, which cover all entries at once. What remains is the rounding of the forward divided
//! by `h`. A tolerance is about five times the largest error seen. Errors are relative to the
//! largest gradient of the tensor (entries) or to the root mean square of its gradient
//! (directions).

use flock_kernels::simd::{Engine, Level, Precision};
use flock_kernels::{attention, consensus, embed, gru, head, linear, loss, rmsnorm, swiglu};

/// The published sizes. The plain versions are the same code at every width.
const D: usize = 64;
const H: usize = 4;
const F: usize = 3 * D;

/// Returns `n` reproducible values, uniform in ±√3·`rms`.
fn noise(seed: u64, n: usize, rms: f32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f32 / (1u64 << 23) as f32 - 1.0) * 1.732 * rms
    };
    (0..n).map(|_| next()).collect()
}

type Tensors = Vec<Vec<f32>>;
type Forward<'a> = &'a dyn Fn(&[Vec<f32>]) -> Vec<f32>;
type Backward<'a> = &'a dyn Fn(&[Vec<f32>], &[f32], &mut [Vec<f32>]);

/// A layer as a function of named tensors. `backward` adds to the gradients it is given.
struct Layer<'a> {
    name: &'a str,
    tensors: Vec<(&'a str, Vec<f32>)>,
    forward: Forward<'a>,
    backward: Backward<'a>,
    h: f32,
    tolerance: f64,
}

impl Layer<'_> {
    fn check(self) {
        let tensors: Tensors = self.tensors.iter().map(|(_, t)| t.clone()).collect();
        let d_out = noise(99, (self.forward)(&tensors).len(), 1.0);
        // Gradients start at one, not zero, because the backward must add to what is there.
        let mut gradients: Tensors = tensors.iter().map(|t| vec![1.0; t.len()]).collect();
        (self.backward)(&tensors, &d_out, &mut gradients);
        gradients.iter_mut().flatten().for_each(|d| *d -= 1.0);

        let loss = |t: &[Vec<f32>]| -> f64 {
            (self.forward)(t).iter().zip(&d_out).map(|(o, d)| f64::from(*o) * f64::from(*d)).sum()
        };
        for (i, (name, _)) in self.tensors.iter().enumerate() {
            let slope = |direction: &dyn Fn(usize) -> f32| -> f64 {
                let at = |steps: f32| {
                    let mut moved = tensors.clone();
                    moved[i].iter_mut().enumerate().for_each(|(j, v)| *v += steps * self.h * direction(j));
                    loss(&moved)
                };
                (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * f64::from(self.h))
            };
            let d = &gradients[i];
            let n = d.len();
            let largest = (0..n).max_by(|a, b| d[*a].abs().total_cmp(&d[*b].abs())).unwrap();
            let scale = f64::from(d[largest].abs());
            assert!(scale > 1e-3, "{}: the gradient of {name} vanishes: nothing is tested", self.name);
            let mut worst = 0f64;
            for entry in (0..12).map(|k| (k * 7919 + 5) % n).chain([largest]) {
                let want = slope(&|j| if j == entry { 1.0 } else { 0.0 });
                worst = worst.max((f64::from(d[entry]) - want).abs() / scale);
            }
            let rms = (d.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / n as f64).sqrt();
            for k in 0..4 {
                // The direction has length four, because many small steps change the loss less than
                // one large step.
                let along: Vec<f32> =
                    noise(1000 + k, n, 1.0).iter().map(|v| 4.0 * v.signum() / (n as f32).sqrt()).collect();
                let want = slope(&|j| along[j]);
                let got: f64 = d.iter().zip(&along).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                worst = worst.max((got - want).abs() / (4.0 * rms));
            }
            println!("{} {name}: {worst:.1e}", self.name);
            assert!(worst < self.tolerance, "{}: {name} is off by {worst} of its scale", self.name);
        }
    }
}

fn add(to: &mut [f32], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(t, f)| *t += f);
}

/// Splits the tensors into the buffers of a gradient struct.
fn parts<const N: usize>(d: &mut [Vec<f32>]) -> [&mut [f32]; N] {
    let mut parts = d.iter_mut().map(|v| &mut v[..]);
    std::array::from_fn(|_| parts.next().unwrap())
}

#[test]
fn linear_with_and_without_bias() {
    let (p, k, n) = (3, 7, 5);
    let (x, w, b) = (noise(1, p * k, 1.0), noise(2, n * k, 0.5), noise(3, n, 0.5));
    let forward = |t: &[Vec<f32>]| {
        let mut y = vec![0.0; p * n];
        linear::plain(&t[0], &t[1], t.get(2).map_or(&[], |b| b), &mut y, k);
        y
    };
    let backward = |t: &[Vec<f32>], d_y: &[f32], d: &mut [Vec<f32>]| {
        let (d_x, rest) = d.split_at_mut(1);
        let (d_w, d_b) = rest.split_at_mut(1);
        let d_b = d_b.first_mut().map_or(&mut [][..], |b| b);
        linear::plain_backward(&t[0], &t[1], d_y, &mut d_x[0], &mut d_w[0], d_b, k);
    };
    let all = vec![("x", x), ("w", w), ("b", b)];
    let (forward, backward) = (&forward, &backward);
    Layer { name: "linear", tensors: all[..2].to_vec(), forward, backward, h: 0.1, tolerance: 1e-5 }.check();
    Layer { name: "linear + b", tensors: all, forward, backward, h: 0.1, tolerance: 1e-5 }.check();
}

#[test]
fn rmsnorm_where_epsilon_counts_and_where_it_does_not() {
    // Rows of rms 0.003 have a mean square of about 10⁻⁵, which is ε. They are written as 0.003 · x, to step in x.
    for rms in [1.0, 0.003] {
        let scaled = |x: &[f32]| x.iter().map(|v| rms * v).collect::<Vec<f32>>();
        let forward = |t: &[Vec<f32>]| {
            let mut y = vec![0.0; t[0].len()];
            rmsnorm::plain(&scaled(&t[0]), &t[1], &mut y);
            y
        };
        let backward = |t: &[Vec<f32>], d_y: &[f32], d: &mut [Vec<f32>]| {
            let [d_x, d_g] = parts(d);
            d_x.iter_mut().for_each(|d| *d /= rms);
            rmsnorm::plain_backward(&scaled(&t[0]), &t[1], d_y, d_x, d_g);
            d_x.iter_mut().for_each(|d| *d *= rms);
        };
        let tensors = vec![("x", noise(1, 3 * D, 1.0)), ("g", noise(2, D, 1.0))];
        Layer { name: "rmsnorm", tensors, forward: &forward, backward: &backward, h: 0.05, tolerance: 1e-4 }.check();
    }
}

fn gru_weights(t: &[Vec<f32>]) -> gru::Weights<'_> {
    let direction = |i: usize| gru::Direction { w_ih: &t[i], w_hh: &t[i + 1], b_ih: &t[i + 2], b_hh: &t[i + 3] };
    gru::Weights { norm: &t[1], directions: [direction(2), direction(6)], out: &t[10] }
}

#[test]
fn gru_through_time_in_both_directions() {
    let (walks, length) = (2, 3);
    let mut tensors = vec![("x", noise(1, walks * length * D, 1.0)), ("norm", noise(2, D, 1.0))];
    let names = [["→w_ih", "→w_hh", "→b_ih", "→b_hh"], ["←w_ih", "←w_hh", "←b_ih", "←b_hh"]];
    for (side, names) in names.into_iter().enumerate() {
        for (i, name) in names.into_iter().enumerate() {
            let n = if i < 2 { 3 * D * D } else { 3 * D };
            // A recurrence strong enough for the states of earlier steps to matter.
            tensors.push((name, noise((10 * side + i + 3) as u64, n, if i == 1 { 0.3 } else { 0.15 })));
        }
    }
    tensors.push(("out", noise(30, 2 * D * D, 0.1)));
    let forward = |t: &[Vec<f32>]| {
        let mut x = t[0].clone();
        gru::plain(&mut x, length, gru_weights(t));
        x
    };
    let backward = |t: &[Vec<f32>], d_out: &[f32], d: &mut [Vec<f32>]| {
        let [d_x, d_norm, a, b, c, e, f, g, h, i, d_w_out] = parts(d);
        let d_directions = [
            gru::DirectionGradients { d_w_ih: a, d_w_hh: b, d_b_ih: c, d_b_hh: e },
            gru::DirectionGradients { d_w_ih: f, d_w_hh: g, d_b_ih: h, d_b_hh: i },
        ];
        let mut through = d_out.to_vec();
        let mut d_w = gru::Gradients { d_norm, d_directions, d_out: d_w_out };
        gru::plain_backward(&t[0], length, gru_weights(t), &mut through, &mut d_w);
        add(d_x, &through);
    };
    Layer { name: "gru", tensors, forward: &forward, backward: &backward, h: 0.03, tolerance: 6e-4 }.check();
}

#[test]
fn swiglu_with_its_norm() {
    let tensors = vec![
        ("x", noise(1, 3 * D, 1.0)),
        ("norm", noise(2, D, 1.0)),
        ("w1", noise(3, F * D, 0.2)),
        ("w3", noise(4, F * D, 0.2)),
        ("w2", noise(5, D * F, 0.1)),
    ];
    fn weights(t: &[Vec<f32>]) -> swiglu::Weights<'_> {
        swiglu::Weights { norm: &t[1], w1: &t[2], w3: &t[3], w2: &t[4] }
    }
    let forward = |t: &[Vec<f32>]| {
        let mut x = t[0].clone();
        swiglu::plain(&mut x, weights(t));
        x
    };
    let backward = |t: &[Vec<f32>], d_out: &[f32], d: &mut [Vec<f32>]| {
        let [d_x, d_norm, d_w1, d_w3, d_w2] = parts(d);
        let mut through = d_out.to_vec();
        swiglu::plain_backward(&t[0], weights(t), &mut through, &mut swiglu::Gradients { d_norm, d_w1, d_w3, d_w2 });
        add(d_x, &through);
    };
    Layer { name: "swiglu", tensors, forward: &forward, backward: &backward, h: 0.03, tolerance: 3e-4 }.check();
}

#[test]
fn attention_with_positions_and_norm() {
    let (walks, length, a) = (2, 4, attention::HEADS * D);
    let tensors = vec![
        ("x", noise(1, walks * length * D, 1.0)),
        ("position", noise(2, length * D, 1.0)),
        ("norm", noise(3, D, 1.0)),
        ("q", noise(4, a * D, 0.15)),
        ("k", noise(5, a * D, 0.15)),
        ("v", noise(6, a * D, 0.15)),
        ("out", noise(7, D * a, 0.1)),
    ];
    fn weights(t: &[Vec<f32>]) -> attention::Weights<'_> {
        attention::Weights { position: &t[1], norm: &t[2], q: &t[3], k: &t[4], v: &t[5], out: &t[6] }
    }
    let forward = |t: &[Vec<f32>]| {
        let mut x = t[0].clone();
        attention::plain(&mut x, length, weights(t));
        x
    };
    let backward = |t: &[Vec<f32>], d_out: &[f32], d: &mut [Vec<f32>]| {
        let [d_x, d_position, d_norm, d_q, d_k, d_v, d_w_out] = parts(d);
        let mut through = d_out.to_vec();
        let mut d_w = attention::Gradients { d_position, d_norm, d_q, d_k, d_v, d_out: d_w_out };
        attention::plain_backward(&t[0], length, weights(t), &mut through, &mut d_w);
        add(d_x, &through);
    };
    Layer { name: "attention", tensors, forward: &forward, backward: &backward, h: 0.03, tolerance: 1e-3 }.check();
}

#[test]
fn embedding_rows_gather_their_positions() {
    // Three walks of four positions over four nodes and three types: rows are shared within a walk and between walks.
    let walks = 3;
    let node_name: [u16; 12] = [0, 1, 0, 2, 0, 1, 2, 3, 0, 0, 0, 1];
    let type_name: [u16; 12] = [4, 0, 1, 0, 4, 0, 0, 1, 4, 0, 1, 2];
    let mark: [u8; 12] = [3, 0, 5, 1, 7, 13, 0, 9, 3, 1, 1, 4];
    let node: [u32; 12] = [0, 3, 0, 2, 1, 3, 2, 0, 2, 2, 2, 1];
    let ty: [u32; 12] = [2, 0, 1, 0, 2, 1, 1, 0, 2, 0, 1, 0];
    let positions =
        embed::Positions { node_name: &node_name, type_name: &type_name, mark: &mark, node: &node, ty: &ty };
    let engine = Engine::new(Level::Portable, Precision::F32).unwrap();
    let tensors = [("node names", 4), ("type names", 5), ("marks", 16), ("nodes", 4), ("types", 3)];
    let tensors = tensors.map(|(name, rows)| (name, noise(rows as u64, rows * D, 1.0))).to_vec();
    let forward = |t: &[Vec<f32>]| {
        let mut x = vec![0.0; node.len() * D];
        embed::Embed::new(engine, &t[0], &t[1], &t[2]).plain(positions, &t[3], &t[4], walks, &mut x);
        x
    };
    let backward = |_: &[Vec<f32>], d_x: &[f32], d: &mut [Vec<f32>]| {
        let [d_node_name, d_type_name, d_mark, d_nodes, d_types] = parts(d);
        let mut d = embed::Gradients { d_node_name, d_type_name, d_mark, d_nodes, d_types };
        embed::plain_backward(positions, walks, d_x, &mut d);
    };
    Layer { name: "embed", tensors, forward: &forward, backward: &backward, h: 0.25, tolerance: 1e-5 }.check();
}

/// Nine rows in five groups: four, one, two and two rows, and an empty group.
const GROUP: [u32; 9] = [0, 4, 0, 1, 2, 0, 4, 2, 0];

fn consensus_tensors() -> Vec<(&'static str, Vec<f32>)> {
    vec![
        ("x", noise(1, GROUP.len() * D, 1.0)),
        ("value", noise(2, D * D, 0.15)),
        ("value bias", noise(3, D, 0.5)),
        ("logit", noise(4, H * D, 0.2)),
        ("logit bias", noise(5, H, 0.5)),
    ]
}

fn consensus_weights(t: &[Vec<f32>]) -> consensus::Weights<'_> {
    // The mean has no logits.
    let [logit, logit_bias] = [3, 4].map(|i| t.get(i).map_or(&[][..], |v| v));
    consensus::Weights { value: &t[1], value_bias: &t[2], logit, logit_bias }
}

#[test]
fn softmax_consensus() {
    let mut tensors = consensus_tensors();
    // Adding a constant to all logits of a head does not change a softmax. So the gradient of their
    // bias is zero, and is checked separately.
    let (_, logit_bias) = tensors.pop().unwrap();
    let with_bias = |t: &[Vec<f32>]| [t, std::slice::from_ref(&logit_bias)].concat();
    let forward = |t: &[Vec<f32>]| {
        let mut states = noise(7, 5 * D, 1.0);
        consensus::plain(&t[0], &GROUP, &mut states, consensus_weights(&with_bias(t)));
        states
    };
    let backward = |t: &[Vec<f32>], d_states: &[f32], d: &mut [Vec<f32>]| {
        let [d_x, d_value, d_value_bias, d_logit] = parts(d);
        let mut d_logit_bias = [0.0; H];
        let mut d_w = consensus::Gradients { d_value, d_value_bias, d_logit, d_logit_bias: &mut d_logit_bias };
        consensus::plain_backward(&t[0], &GROUP, consensus_weights(&with_bias(t)), d_states, d_x, &mut d_w);
        assert!(d_logit_bias.iter().all(|d| d.abs() < 1e-5), "{d_logit_bias:?}");
    };
    Layer { name: "consensus", tensors, forward: &forward, backward: &backward, h: 0.03, tolerance: 2e-4 }.check();
}

#[test]
fn mean_consensus() {
    let forward = |t: &[Vec<f32>]| {
        let mut states = noise(7, 5 * D, 1.0);
        consensus::plain_mean(&t[0], &GROUP, &mut states, consensus_weights(t));
        states
    };
    let backward = |t: &[Vec<f32>], d_states: &[f32], d: &mut [Vec<f32>]| {
        let [d_x, d_value, d_value_bias] = parts(d);
        let mut d_w = consensus::Gradients { d_value, d_value_bias, d_logit: &mut [], d_logit_bias: &mut [] };
        consensus::plain_mean_backward(&t[0], &GROUP, consensus_weights(t), d_states, d_x, &mut d_w);
    };
    let tensors = consensus_tensors()[..3].to_vec();
    Layer { name: "mean consensus", tensors, forward: &forward, backward: &backward, h: 0.1, tolerance: 1e-4 }.check();
}

#[test]
fn mean_consensus_is_softmax_consensus_of_equal_logits() {
    let t = consensus_tensors();
    let (logit, logit_bias) = (vec![0.0; H * D], vec![0.3; H]);
    let w = consensus::Weights { value: &t[1].1, value_bias: &t[2].1, logit: &logit, logit_bias: &logit_bias };
    let initial = noise(7, 5 * D, 1.0);
    let (mut softmax, mut mean) = (initial.clone(), initial.clone());
    consensus::plain(&t[0].1, &GROUP, &mut softmax, w);
    consensus::plain_mean(&t[0].1, &GROUP, &mut mean, w);
    assert!(softmax.iter().zip(&mean).all(|(a, b)| (a - b).abs() < 1e-6));
    assert_eq!(mean[3 * D..4 * D], initial[3 * D..4 * D], "a group without rows keeps its state");
    assert_ne!(mean[..D], initial[..D]);
}

#[test]
fn head_on_both_sides_of_its_kinks() {
    const HIDDEN: usize = 2 * D;
    // Biases of ±4 and ±8 keep every unit away from zero, half of them off: between kinks the head is smooth.
    let signs = |seed, size: f32| noise(seed, HIDDEN, 1.0).iter().map(|v| size * v.signum()).collect::<Vec<f32>>();
    let tensors = vec![
        ("q", noise(1, 5 * D, 1.0)),
        ("w0", noise(2, HIDDEN * D, 0.05)),
        ("b0", signs(3, 4.0)),
        ("w2", noise(4, HIDDEN * HIDDEN, 0.05)),
        ("b2", signs(5, 8.0)),
        ("w4", noise(6, HIDDEN, 0.5)),
        ("b4", noise(7, 1, 1.0)),
    ];
    fn weights(t: &[Vec<f32>]) -> head::Weights<'_> {
        head::Weights { w0: &t[1], b0: &t[2], w2: &t[3], b2: &t[4], w4: &t[5], b4: &t[6] }
    }
    let forward = |t: &[Vec<f32>]| {
        let mut logits = vec![0.0; 5];
        head::plain(&t[0], &mut logits, weights(t));
        logits
    };
    let backward = |t: &[Vec<f32>], d_logits: &[f32], d: &mut [Vec<f32>]| {
        let [d_q, d_w0, d_b0, d_w2, d_b2, d_w4, d_b4] = parts(d);
        let mut d_w = head::Gradients { d_w0, d_b0, d_w2, d_b2, d_w4, d_b4 };
        head::plain_backward(&t[0], weights(t), d_logits, d_q, &mut d_w);
    };
    Layer { name: "head", tensors, forward: &forward, backward: &backward, h: 0.3, tolerance: 1e-3 }.check();
}

#[test]
fn cross_entropy() {
    let (queries, candidates, weight) = (3, 5, 0.7);
    let logits = noise(1, queries * candidates, 1.5);
    let definition = |logits: &[f64]| -> f64 {
        let of_one = |x: &[f64]| x.iter().map(|x| x.exp()).sum::<f64>().ln() - x[0];
        weight * logits.chunks(candidates).map(of_one).sum::<f64>() / queries as f64
    };
    let mut d = vec![0.0; logits.len()];
    let got = loss::cross_entropy(&logits, candidates, queries, weight as f32, &mut d);
    let at: Vec<f64> = logits.iter().map(|l| f64::from(*l)).collect();
    assert!((f64::from(got) - definition(&at)).abs() < 1e-6, "{got}, expected {}", definition(&at));
    for i in 0..logits.len() {
        let moved = |h: f64| {
            let mut at = at.clone();
            at[i] += h;
            definition(&at)
        };
        let want = (moved(1e-5) - moved(-1e-5)) / 2e-5;
        assert!((f64::from(d[i]) - want).abs() < 1e-7, "slope {} of logit {i}, expected {want}", d[i]);
    }
}

#[test]
fn losses() {
    // In double precision, from the definition; the weights of the false answers are those of the unmoved logits.
    let (queries, candidates, temperature) = (3, 5, 0.7);
    let logits = noise(1, queries * candidates, 1.5);
    let entropy =
        |i: usize, x: f64| if i.is_multiple_of(candidates) { (1.0 + (-x).exp()).ln() } else { (1.0 + x.exp()).ln() };
    let e = |i: usize| (f64::from(logits[i]) / temperature).exp();
    let weight = |i: usize| {
        let first = i / candidates * candidates;
        if i == first { 1.0 } else { e(i) / (first + 1..first + candidates).map(e).sum::<f64>() }
    };
    let definitions: [(&str, &dyn Fn(usize) -> f64); 2] = [
        ("self-adversarial", &|i| weight(i) / 2.0 / queries as f64),
        ("mean", &|_| 1.0 / (queries * candidates) as f64),
    ];
    for (name, share) in definitions {
        let mut d = vec![0.0; logits.len()];
        let got = match name {
            "mean" => loss::mean_bce(&logits, candidates, queries, &mut d),
            _ => loss::self_adversarial(&logits, candidates, queries, temperature as f32, &mut d),
        };
        let want: f64 = (0..logits.len()).map(|i| share(i) * entropy(i, f64::from(logits[i]))).sum();
        assert!((f64::from(got) - want).abs() < 1e-6, "{name}: {got}, expected {want}");
        for i in 0..logits.len() {
            let (x, h) = (f64::from(logits[i]), 1e-5);
            let want = share(i) * (entropy(i, x + h) - entropy(i, x - h)) / (2.0 * h);
            assert!((f64::from(d[i]) - want).abs() < 1e-7, "{name}: slope {} of logit {i}, expected {want}", d[i]);
        }
    }
}
