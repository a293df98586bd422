//! The way back through the consensus, beside [`plain_backward`](super::plain_backward).
//!
//! With `a` a row's weight in its group, `x̄ = Σ a x` the pooled row and `e = Wᵀ d` what the group's gradient `d` asks of it,
//! per head:
//! ```text
//! d_x = a e + d_logit · w_logit      d_logit = a (x · e − x̄ · e)      d_W = d ⊗ x̄
//! ```
//! A group of one row has `a = 1` and no gradient for its logits.

use super::{CHUNK_ROWS, Gradients, Groups, LOGITS, Side, Weights};
use crate::linear::outer::{SEGMENT, outer};
use crate::simd::{Engine, F32, Kernel, Mac, Vector};
use crate::{Aligned, D, DH, H};

/// Both sides' parameters as the way back reads them.
pub struct Backward {
    engine: Engine,
    values: [Aligned<f32>; 2], // (D, D)
    logits: Aligned<f32>,      // (LOGITS, D)
}

/// Working memory of one thread.
#[derive(Default)]
pub struct BackwardScratch {
    asked: Aligned<f32>,    // (H, D): e
    pooled: Aligned<f32>,   // (H, D): x̄
    weights: Vec<f32>,      // (rows of the group, H)
    d_logits: Aligned<f32>, // (P, LOGITS)
    d_table: Aligned<f32>,  // (LOGITS, D)
}

impl Backward {
    /// Takes both sides' parameters.
    pub fn new(engine: Engine, node: Weights<'_>, ty: Weights<'_>) -> Backward {
        node.check();
        ty.check();
        Backward {
            engine,
            values: [Aligned::from_slice(node.value), Aligned::from_slice(ty.value)],
            logits: Aligned::from_slice(&[node.logit, ty.logit].concat()),
        }
    }

    /// Adds to `d_x` and to both sides' gradients. The states' own gradients pass unchanged: they are added to.
    pub fn run(
        &self,
        x: &[f32],      // (P, D)
        logits: &[f32], // (P, LOGITS)
        groups: [&Groups; 2],
        d_states: [&[f32]; 2], // (groups, D) of nodes and types
        d_x: &mut [f32],       // (P, D)
        d_w: [&mut Gradients<'_>; 2],
        scratch: &mut BackwardScratch,
    ) {
        let rows = x.len() / D;
        assert!(logits.len() == rows * LOGITS && d_x.len() == x.len());
        for side in 0..2 {
            let last = groups[side].ids.last().map_or(0, |g| *g as usize + 1);
            assert!(groups[side].rows.len() == rows && d_states[side].len() >= last * D);
            assert!(d_w[side].d_value.len() == D * D && d_w[side].d_value_bias.len() == D);
            assert!(d_w[side].d_logit.len() == H * D && d_w[side].d_logit_bias.len() == H);
        }
        self.engine.run(Run { layer: self, x, logits, groups, d_states, d_x, d_w, scratch });
    }
}

struct Run<'a, 'w> {
    layer: &'a Backward,
    x: &'a [f32],
    logits: &'a [f32],
    groups: [&'a Groups; 2],
    d_states: [&'a [f32]; 2],
    d_x: &'a mut [f32],
    d_w: [&'a mut Gradients<'w>; 2],
    scratch: &'a mut BackwardScratch,
}

impl Kernel for Run<'_, '_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<M: Mac>(self) {
        let Run { layer, x, logits, groups, d_states, d_x, d_w, scratch: s } = self;
        let rows = x.len() / D;
        s.asked.resize(H * D);
        s.pooled.resize(H * D);
        s.d_logits.resize(rows * LOGITS);
        s.d_table.resize(LOGITS * D);
        s.d_table.fill(0.0);
        let [d_node, d_type] = d_w;
        for (side, d_w) in [(Side::Node, &mut *d_node), (Side::Type, &mut *d_type)] {
            let groups = groups[side as usize];
            for (i, &g) in groups.ids.iter().enumerate() {
                let d = &d_states[side as usize][g as usize * D..][..D];
                // SAFETY: `groups` lists rows of `x` (checked at the door); the scratch is sized above.
                unsafe { group::<M::V>(layer, side, x, logits, groups.rows(i), d, d_x, d_w, s) };
            }
        }
        // SAFETY: `d_logits` and `x` have `rows` rows; the table has LOGITS of width D. A segment fits `outer`.
        unsafe {
            for p in 0..rows {
                let d = s.d_logits.as_ptr().add(p * LOGITS);
                for c in (0..D).step_by(M::V::LANES) {
                    let to = d_x.as_mut_ptr().add(p * D + c);
                    let mut sum = M::V::load(to);
                    for k in 0..LOGITS {
                        sum = M::V::splat(*d.add(k)).mul_add(M::V::load(layer.logits.as_ptr().add(k * D + c)), sum);
                    }
                    sum.store(to);
                }
            }
            for p in (0..rows).step_by(SEGMENT) {
                let count = SEGMENT.min(rows - p);
                let d = (s.d_logits.as_ptr().add(p * LOGITS).cast(), LOGITS);
                let x = (x.as_ptr().add(p * D).cast(), D);
                if M::V::LANES == 16 {
                    outer::<F32<M::V>, 4>(count, d, LOGITS, x, D, s.d_table.as_mut_ptr(), D);
                } else {
                    outer::<F32<M::V>, 2>(count, d, LOGITS, x, D, s.d_table.as_mut_ptr(), D);
                }
            }
        }
        let mut sums = [0.0; LOGITS];
        for d in s.d_logits.chunks_exact(LOGITS) {
            sums.iter_mut().zip(d).for_each(|(s, d)| *s += d);
        }
        for (side, d_w) in [d_node, d_type].into_iter().enumerate() {
            d_w.d_logit.iter_mut().zip(&s.d_table[side * H * D..]).for_each(|(d, t)| *d += t);
            d_w.d_logit_bias.iter_mut().zip(&sums[side * H..]).for_each(|(d, t)| *d += t);
        }
    }
}

/// One group.
#[inline(always)]
unsafe fn group<V: Vector>(
    layer: &Backward,
    side: Side,
    x: &[f32],
    logits: &[f32],
    rows: &[u32],
    d: &[f32], // (D), of the group's state
    d_x: &mut [f32],
    d_w: &mut Gradients<'_>,
    s: &mut BackwardScratch,
) {
    let own = side as usize * H;
    let w = layer.values[side as usize].as_ptr();
    let (asked, pooled) = (s.asked.as_mut_ptr(), s.pooled.as_mut_ptr());
    d_w.d_value_bias.iter_mut().zip(d).for_each(|(b, d)| *b += d);
    // SAFETY: rows are below `x`'s count; `asked` and `pooled` hold (H, D).
    unsafe {
        for k in 0..H {
            for c in (0..D).step_by(V::LANES) {
                let mut sum = V::zero();
                for j in k * DH..(k + 1) * DH {
                    sum = V::splat(d[j]).mul_add(V::load(w.add(j * D + c)), sum);
                }
                sum.store(asked.add(k * D + c));
            }
        }
        let weights = &mut s.weights;
        weights.clear();
        if rows.len() == 1 {
            weights.resize(H, 1.0);
        } else {
            softmax::<V>(logits, own, rows, weights);
        }
        for k in 0..H {
            for c in (0..D).step_by(V::LANES) {
                let mut sum = V::zero();
                for (i, &p) in rows.iter().enumerate() {
                    sum = V::splat(weights[i * H + k]).mul_add(V::load(x.as_ptr().add(p as usize * D + c)), sum);
                }
                sum.store(pooled.add(k * D + c));
            }
        }
        let mut mean = [0.0f32; H];
        for k in 0..H {
            mean[k] = dot::<V>(asked.add(k * D), pooled.add(k * D));
            for j in k * DH..(k + 1) * DH {
                let g = V::splat(d[j]);
                for c in (0..D).step_by(V::LANES) {
                    let to = d_w.d_value.as_mut_ptr().add(j * D + c);
                    g.mul_add(V::load(pooled.add(k * D + c)), V::load(to)).store(to);
                }
            }
        }
        for (i, &p) in rows.iter().enumerate() {
            let at = p as usize * D;
            let d_logits = &mut s.d_logits[p as usize * LOGITS + own..][..H];
            for k in 0..H {
                let a = weights[i * H + k];
                d_logits[k] = match rows.len() {
                    1 => 0.0,
                    _ => a * (dot::<V>(x.as_ptr().add(at), asked.add(k * D)) - mean[k]),
                };
            }
            for c in (0..D).step_by(V::LANES) {
                let to = d_x.as_mut_ptr().add(at + c);
                let mut sum = V::load(to);
                for k in 0..H {
                    sum = V::splat(weights[i * H + k]).mul_add(V::load(asked.add(k * D + c)), sum);
                }
                sum.store(to);
            }
        }
    }
}

/// The weights of the rows, (rows, H).
#[inline(always)]
unsafe fn softmax<V: Vector>(logits: &[f32], own: usize, rows: &[u32], weights: &mut Vec<f32>) {
    let mut max = [f32::NEG_INFINITY; H];
    for &p in rows {
        let a = &logits[p as usize * LOGITS + own..][..H];
        max.iter_mut().zip(a).for_each(|(m, a)| *m = if *a > *m { *a } else { *m });
        weights.extend_from_slice(a);
    }
    for (i, w) in weights.iter_mut().enumerate() {
        *w -= max[i % H];
    }
    // Whole vectors: what lies past the last row is cut off again.
    let count = weights.len();
    weights.resize(count.next_multiple_of(CHUNK_ROWS), 0.0);
    // SAFETY: the length is a whole number of vectors.
    unsafe {
        let log2e = V::splat(std::f32::consts::LOG2_E);
        for i in (0..weights.len()).step_by(V::LANES) {
            let at = weights.as_mut_ptr().add(i);
            V::load(at).mul(log2e).clamp(-126.0, 0.0).exp2().store(at);
        }
    }
    weights.truncate(count);
    let mut total = [0.0; H];
    for w in weights.chunks_exact(H) {
        total.iter_mut().zip(w).for_each(|(t, w)| *t += w);
    }
    for (i, w) in weights.iter_mut().enumerate() {
        *w /= total[i % H];
    }
}

#[inline(always)]
unsafe fn dot<V: Vector>(a: *const f32, b: *const f32) -> f32 {
    // SAFETY: both are rows of D values.
    unsafe {
        let mut sum = V::zero();
        for c in (0..D).step_by(V::LANES) {
            sum = V::load(a.add(c)).mul_add(V::load(b.add(c)), sum);
        }
        sum.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Consensus, plain_backward};
    use super::*;
    use crate::testing::{assert_close, noise};

    #[test]
    fn fast_gradients_equal_plain_ones() {
        // 200 rows; nodes: some groups of one row, one of 100; types: seven groups.
        let rows = 200;
        let node: Vec<u32> = (0..rows as u32).map(|i| if i % 2 == 0 { 3 } else { 4 + i / 3 }).collect();
        let ty: Vec<u32> = (0..rows as u32).map(|i| i * i % 7).collect();
        let x = noise(2, rows * D, 1.0);
        let sizes = [D * D, D, H * D, H];
        let parts: Vec<Vec<f32>> =
            (0..8).map(|i| noise(20 + i as u64, sizes[i % 4], [0.15, 0.5, 0.4, 0.5][i % 4])).collect();
        let weights = |s: usize| Weights {
            value: &parts[4 * s],
            value_bias: &parts[4 * s + 1],
            logit: &parts[4 * s + 2],
            logit_bias: &parts[4 * s + 3],
        };
        let d_states = [noise(3, 80 * D, 1.0), noise(4, 7 * D, 1.0)];
        let zeros = || sizes.map(|n| vec![0.0; n]);
        fn gradients(parts: &mut [Vec<f32>; 4]) -> Gradients<'_> {
            let [d_value, d_value_bias, d_logit, d_logit_bias] = parts;
            Gradients { d_value, d_value_bias, d_logit, d_logit_bias }
        }
        let d_out = noise(5, rows * D, 1.0);
        let (mut want_x, mut want) = (d_out.clone(), [zeros(), zeros()]);
        for (s, ids) in [&node, &ty].into_iter().enumerate() {
            plain_backward(&x, ids, weights(s), &d_states[s], &mut want_x, &mut gradients(&mut want[s]));
        }
        for engine in Engine::all() {
            let mut logits = vec![0.0; rows * LOGITS];
            Consensus::new(engine, weights(0), weights(1)).logits(&x, &mut logits);
            let mut groups = [Groups::default(), Groups::default()];
            groups[0].build(80, &node, 1);
            groups[1].build(7, &ty, 1);
            let (mut got_x, mut got) = (d_out.clone(), [zeros(), zeros()]);
            let [a, b] = &mut got;
            Backward::new(engine, weights(0), weights(1)).run(
                &x,
                &logits,
                [&groups[0], &groups[1]],
                [&d_states[0], &d_states[1]],
                &mut got_x,
                [&mut gradients(a), &mut gradients(b)],
                &mut BackwardScratch::default(),
            );
            assert_close(&got_x, &want_x, 3e-5, &format!("{engine:?}: d_x"));
            for (g, w) in got.iter().flatten().zip(want.iter().flatten()) {
                let largest = w.iter().fold(0f32, |m, v| m.max(v.abs()));
                // The logits' bias has no gradient (a softmax ignores it): only rounding is left of it.
                assert_close(g, w, 2e-5 * largest.max(1.0), &format!("{engine:?}"));
            }
        }
    }
}
