//! The SIMD backward of the consensus, beside [`plain_backward`](super::plain_backward).
//!
//! With `a` the weight of a row in its group, `x̄ = Σ a x` the pooled row, `d` the gradient of the
//! group and `e = Wᵀ d` the gradient of the pooled row, per head:
//! ```text
//! d_x = a e + d_logit · w_logit      d_logit = a (x · e − x̄ · e)      d_W = d ⊗ x̄
//! ```
//! A group of one row has `a = 1` and no gradient for its logits. Groups go through twelve at a
//! time, so that `e` and `d_W` are matrix products. The rows of the groups are read in between.

use super::fast::{AHEAD, BATCH, GroupRows, add_rows, prefetch_next};
use super::{Gradients, Groups, Side, Weights, logit_columns, logit_slots};
use crate::AlignedVec;
use crate::linear::outer::{SEGMENT, outer};
use crate::linear::{panel_columns, tile};
use crate::simd::{Engine, Mac, Vector};
use crate::width::HeadsKernel;

/// The parameters for nodes and types, as the backward reads them.
pub struct Backward {
    engine: Engine,
    width: usize,
    heads: usize,
    values: [AlignedVec<f32>; 2], // (H, D / panel, D / H, panel)
    logits: AlignedVec<f32>,      // (2S, D)
}

/// Working memory of one thread.
#[derive(Default)]
pub struct BackwardScratch {
    d: AlignedVec<f32>,        // (BATCH, D), of the groups' states
    d_pooled: AlignedVec<f32>, // (H, BATCH, D): e
    pooled: AlignedVec<f32>,   // (H, BATCH, D): x̄
    weights: Vec<f32>,         // (rows of the group, S)
    d_logits: AlignedVec<f32>, // (P, 2S)
    d_table: AlignedVec<f32>,  // (2S, D)
}

impl Backward {
    /// Copies the parameters for nodes and types.
    pub fn new(engine: Engine, node: Weights<'_>, ty: Weights<'_>) -> Backward {
        let (width, heads) = node.check();
        assert_eq!(ty.check(), (width, heads));
        let panel = panel_columns(engine, width);
        let pack = |w: Weights<'_>| {
            let mut values = Vec::with_capacity(width * width);
            for rows in w.value.chunks_exact(width / heads * width) {
                for n0 in (0..width).step_by(panel) {
                    rows.chunks_exact(width).for_each(|row| values.extend_from_slice(&row[n0..][..panel]));
                }
            }
            AlignedVec::from_slice(&values)
        };
        let slots = logit_slots(heads);
        let mut logits = AlignedVec::zeros(2 * slots * width);
        for (side, w) in [node, ty].into_iter().enumerate() {
            logits[side * slots * width..][..heads * width].copy_from_slice(w.logit);
        }
        Backward { engine, width, heads, values: [pack(node), pack(ty)], logits }
    }

    /// Adds to `d_x` and to the gradients for nodes and types. The gradients of the states
    /// themselves pass unchanged, because the forward adds to the states.
    pub fn run(
        &self,
        x: &[f32],      // (P, D)
        logits: &[f32], // (P, columns), from `Consensus::logits`
        groups: [&Groups; 2],
        d_states: [&[f32]; 2], // (groups, D) of nodes and types
        d_x: &mut [f32],       // (P, D)
        d_w: [&mut Gradients<'_>; 2],
        scratch: &mut BackwardScratch,
    ) {
        let (d, h) = (self.width, self.heads);
        let rows = x.len() / d;
        assert!(logits.len() == rows * logit_columns(h) && d_x.len() == x.len());
        for side in 0..2 {
            let last = groups[side].ids.last().map_or(0, |g| *g as usize + 1);
            assert!(groups[side].rows.len() == rows && d_states[side].len() >= last * d);
            assert!(d_w[side].d_value.len() == d * d && d_w[side].d_value_bias.len() == d);
            assert!(d_w[side].d_logit.len() == h * d && d_w[side].d_logit_bias.len() == h);
        }
        self.engine.run_heads(d, h, BackwardKernel { layer: self, x, logits, groups, d_states, d_x, d_w, scratch });
    }
}

struct BackwardKernel<'a, 'w> {
    layer: &'a Backward,
    x: &'a [f32],
    logits: &'a [f32],
    groups: [&'a Groups; 2],
    d_states: [&'a [f32]; 2],
    d_x: &'a mut [f32],
    d_w: [&'a mut Gradients<'w>; 2],
    scratch: &'a mut BackwardScratch,
}

impl HeadsKernel for BackwardKernel<'_, '_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<M: Mac, const D: usize, const C: usize, const H: usize, const S: usize>(self) {
        let BackwardKernel { layer, x, logits, groups, d_states, d_x, d_w, scratch: s } = self;
        let rows = x.len() / D;
        let (slice, slots) = (D / H, 2 * S);
        s.d.resize(BATCH * D);
        s.d_pooled.resize(H * BATCH * D);
        s.pooled.resize(H * BATCH * D);
        s.d_logits.resize(rows * slots);
        s.d_table.resize(slots * D);
        s.d_table.fill(0.0);
        let [d_node, d_type] = d_w;
        for (side, d_w) in [(Side::Node, &mut *d_node), (Side::Type, &mut *d_type)] {
            let groups = groups[side as usize];
            for first in (0..groups.ids.len()).step_by(BATCH) {
                let count = BATCH.min(groups.ids.len() - first);
                for (i, d) in s.d.chunks_exact_mut(D).take(count).enumerate() {
                    let g = groups.ids[first + i] as usize;
                    d.copy_from_slice(&d_states[side as usize][g * D..][..D]);
                    d_w.d_value_bias.iter_mut().zip(d).for_each(|(b, d)| *b += *d);
                }
                // SAFETY: the scratch is sized above; `groups` lists rows of `x` and `d_x` (checked in `Backward::run`).
                unsafe {
                    d_pooled::<M::Full, D, C, H>(layer, side, s);
                    for i in 0..count {
                        let rows = groups.rows(first + i);
                        let next = &groups.rows[(groups.starts[first + i] as usize + AHEAD).min(groups.rows.len())..];
                        group::<M::V, D, C, H, S>(GroupRows { x, logits, side, rows, next }, i, d_x, s);
                    }
                    for k in 0..H {
                        let d = (s.d.as_ptr().add(k * slice).cast(), D);
                        let pooled = (s.pooled.as_ptr().add(k * BATCH * D).cast(), D);
                        let to = d_w.d_value.as_mut_ptr().add(k * slice * D);
                        outer::<M::Full, C>(count, d, slice, pooled, D, to, D);
                    }
                }
            }
        }
        // SAFETY: `d_logits` and `x` have `rows` rows; the table has `slots` of width D. A segment fits `outer`.
        unsafe {
            for p in 0..rows {
                let d = s.d_logits.as_ptr().add(p * slots);
                for c in (0..D).step_by(M::V::LANES) {
                    let to = d_x.as_mut_ptr().add(p * D + c);
                    let mut sum = M::V::load(to);
                    for k in 0..slots {
                        sum = M::V::splat(*d.add(k)).mul_add(M::V::load(layer.logits.as_ptr().add(k * D + c)), sum);
                    }
                    sum.store(to);
                }
            }
            for p in (0..rows).step_by(SEGMENT) {
                let count = SEGMENT.min(rows - p);
                let d = (s.d_logits.as_ptr().add(p * slots).cast(), slots);
                let x = (x.as_ptr().add(p * D).cast(), D);
                outer::<M::Full, C>(count, d, slots, x, D, s.d_table.as_mut_ptr(), D);
            }
        }
        let mut sums = [0.0; MOST_SLOTS];
        for d in s.d_logits.chunks_exact(slots) {
            sums.iter_mut().zip(d).for_each(|(s, d)| *s += d);
        }
        for (side, d_w) in [d_node, d_type].into_iter().enumerate() {
            d_w.d_logit.iter_mut().zip(&s.d_table[side * S * D..]).for_each(|(d, t)| *d += t);
            d_w.d_logit_bias.iter_mut().zip(&sums[side * S..]).for_each(|(d, t)| *d += t);
        }
    }
}

/// The most slots of a row of logits: both sides of eight heads.
const MOST_SLOTS: usize = 16;

/// Computes `e[k] = W[k]ᵀ d[k]` of a batch of groups. Rows of `d` past the last group give rows
/// that nothing reads.
#[inline(always)]
unsafe fn d_pooled<M: Mac, const D: usize, const C: usize, const H: usize>(
    layer: &Backward,
    side: Side,
    s: &mut BackwardScratch,
) {
    const R: usize = 6;
    let slice = D / H;
    // SAFETY: `d` and `d_pooled` hold BATCH rows, two tiles; a panel of W has `slice` rows of `C` vectors.
    unsafe {
        for k in 0..H {
            let w = layer.values[side as usize].as_ptr().add(k * slice * D);
            let (d, to) = (s.d.as_ptr().add(k * slice), s.d_pooled.as_mut_ptr().add(k * BATCH * D));
            for n0 in (0..D).step_by(C * M::V::LANES) {
                for i in (0..BATCH).step_by(R) {
                    let mut acc = [[M::V::zero(); C]; R];
                    tile::<M, R, C>(&mut acc, slice, d.add(i * D).cast(), D, w.add(n0 * slice).cast());
                    for r in 0..R {
                        for c in 0..C {
                            acc[r][c].store(to.add((i + r) * D + n0 + c * M::V::LANES));
                        }
                    }
                }
            }
        }
    }
}

/// Adds the gradients of the rows of one group, the `i`-th of its batch.
#[inline(always)]
unsafe fn group<V: Vector, const D: usize, const C: usize, const H: usize, const S: usize>(
    group: GroupRows<'_>,
    i: usize,
    d_x: &mut [f32],
    s: &mut BackwardScratch,
) {
    let GroupRows { x, logits, side, rows, next } = group;
    let (own, slots) = (side as usize * S, 2 * S);
    // SAFETY: rows are below `x`'s count; `d_pooled` and `pooled` hold (H, BATCH, D).
    unsafe {
        let d_pooled = |k: usize| s.d_pooled.as_ptr().add((k * BATCH + i) * D);
        let pooled = s.pooled.as_mut_ptr();
        let weights = &mut s.weights;
        weights.clear();
        if let [p] = *rows {
            prefetch_next::<D, H>(x, logits, next, 0);
            let d_logits = &mut s.d_logits[p as usize * slots + own..][..S];
            d_logits.fill(0.0);
            for c in (0..D).step_by(V::LANES) {
                let to = d_x.as_mut_ptr().add(p as usize * D + c);
                let (mut sum, row) = (V::load(to), V::load(x.as_ptr().add(p as usize * D + c)));
                for k in 0..H {
                    row.store(pooled.add((k * BATCH + i) * D + c));
                    sum = sum.add(V::load(d_pooled(k).add(c)));
                }
                sum.store(to);
            }
            return;
        }
        softmax::<V, H, S>(logits, own, rows, weights);
        // Eight heads have a sum for each in registers: half as many columns.
        match (V::LANES, H) {
            (16, 8) => pool_rows::<V, D, 2, H, S>(group, weights, i, pooled),
            (_, 8) => pool_rows::<V, D, 1, H, S>(group, weights, i, pooled),
            _ => pool_rows::<V, D, C, H, S>(group, weights, i, pooled),
        }
        let mean: [f32; H] = std::array::from_fn(|k| dot::<V, D>(d_pooled(k), pooled.add((k * BATCH + i) * D)));
        for (&p, a) in rows.iter().zip(weights.chunks_exact(S)) {
            let at = p as usize * D;
            let mut dots = [V::zero(); H];
            for c in (0..D).step_by(V::LANES) {
                let (row, to) = (V::load(x.as_ptr().add(at + c)), d_x.as_mut_ptr().add(at + c));
                let mut sum = V::load(to);
                for k in 0..H {
                    let e = V::load(d_pooled(k).add(c));
                    dots[k] = row.mul_add(e, dots[k]);
                    sum = V::splat(a[k]).mul_add(e, sum);
                }
                sum.store(to);
            }
            for (k, d) in s.d_logits[p as usize * slots + own..][..S].iter_mut().enumerate() {
                *d = if k < H { a[k] * (dots[k].sum() - mean[k]) } else { 0.0 };
            }
        }
    }
}

/// Computes `x̄` of a group, the `i`-th of its batch.
#[inline(always)]
unsafe fn pool_rows<V: Vector, const D: usize, const C: usize, const H: usize, const S: usize>(
    group: GroupRows<'_>,
    weights: &[f32],
    i: usize,
    pooled: *mut f32,
) {
    // SAFETY: `weights` has a row of S for each row of the group, `pooled` holds (H, BATCH, D).
    unsafe {
        for c0 in (0..D).step_by(C * V::LANES) {
            let mut acc = [[V::zero(); C]; H];
            add_rows::<V, D, C, H, S>(group, weights, c0, &mut acc);
            for k in 0..H {
                for c in 0..C {
                    acc[k][c].store(pooled.add((k * BATCH + i) * D + c0 + c * V::LANES));
                }
            }
        }
    }
}

/// Computes the weights of the rows, (rows, S).
#[inline(always)]
unsafe fn softmax<V: Vector, const H: usize, const S: usize>(
    logits: &[f32],
    own: usize,
    rows: &[u32],
    weights: &mut Vec<f32>,
) {
    let mut max = [f32::NEG_INFINITY; S];
    for &p in rows {
        let a = &logits[p as usize * logit_columns(H) + own..][..S];
        max.iter_mut().zip(a).for_each(|(m, a)| *m = if *a > *m { *a } else { *m });
        weights.extend_from_slice(a);
    }
    for (i, w) in weights.iter_mut().enumerate() {
        *w -= max[i % S];
    }
    // Works on whole vectors. What lies past the last row is cut off again.
    let count = weights.len();
    weights.resize(count.next_multiple_of(V::LANES), 0.0);
    // SAFETY: the length is a whole number of vectors.
    unsafe {
        let log2e = V::splat(std::f32::consts::LOG2_E);
        for i in (0..weights.len()).step_by(V::LANES) {
            let at = weights.as_mut_ptr().add(i);
            V::load(at).mul(log2e).clamp(-126.0, 0.0).exp2().store(at);
        }
    }
    weights.truncate(count);
    let mut total = [0.0; S];
    for w in weights.chunks_exact(S) {
        total.iter_mut().zip(w).for_each(|(t, w)| *t += w);
    }
    for (i, w) in weights.iter_mut().enumerate() {
        *w /= total[i % S];
    }
}

#[inline(always)]
unsafe fn dot<V: Vector, const D: usize>(a: *const f32, b: *const f32) -> f32 {
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
    use crate::testing::{assert_close, engines, noise, scale, widths_and_heads};

    #[test]
    fn fast_gradients_equal_plain_ones() {
        // 200 rows (18 under Miri); nodes: some groups of one row, one of half of all; types: seven groups.
        let rows = if cfg!(miri) { 18 } else { 200 };
        let node: Vec<u32> = (0..rows as u32).map(|i| if i % 2 == 0 { 3 } else { 4 + i / 3 }).collect();
        let ty: Vec<u32> = (0..rows as u32).map(|i| i * i % 7).collect();
        for (d, h) in widths_and_heads() {
            let x = noise(2, rows * d, 1.0);
            let sizes = [d * d, d, h * d, h];
            let rms = [0.15 * scale(d), 0.5, 0.4 * scale(d), 0.5];
            let parts: Vec<Vec<f32>> = (0..8).map(|i| noise(20 + i as u64, sizes[i % 4], rms[i % 4])).collect();
            let weights = |s: usize| Weights {
                value: &parts[4 * s],
                value_bias: &parts[4 * s + 1],
                logit: &parts[4 * s + 2],
                logit_bias: &parts[4 * s + 3],
            };
            let d_states = [noise(3, 80 * d, 1.0), noise(4, 7 * d, 1.0)];
            let zeros = || sizes.map(|n| vec![0.0; n]);
            fn gradients(parts: &mut [Vec<f32>; 4]) -> Gradients<'_> {
                let [d_value, d_value_bias, d_logit, d_logit_bias] = parts;
                Gradients { d_value, d_value_bias, d_logit, d_logit_bias }
            }
            let d_out = noise(5, rows * d, 1.0);
            let (mut want_x, mut want) = (d_out.clone(), [zeros(), zeros()]);
            for (s, ids) in [&node, &ty].into_iter().enumerate() {
                plain_backward(&x, ids, weights(s), &d_states[s], &mut want_x, &mut gradients(&mut want[s]));
            }
            for engine in engines() {
                let mut logits = vec![0.0; rows * logit_columns(h)];
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
                assert_close(&got_x, &want_x, 3e-5, &format!("{engine:?} {d} wide {h} heads: d_x"));
                for (g, w) in got.iter().flatten().zip(want.iter().flatten()) {
                    let largest = w.iter().fold(0f32, |m, v| m.max(v.abs()));
                    // The bias of the logits has no gradient, because a softmax ignores it. Only
                    // rounding is left.
                    assert_close(g, w, 2e-5 * largest.max(1.0), &format!("{engine:?} {d} wide {h} heads"));
                }
            }
        }
    }
}
