//! Consensus: what all positions that visit a node (or show a type) say of it, pooled back onto it.
//!
//! For each group `g` (a node or a type) and head `k`, over the positions `p` of the group:
//! ```text
//! w_p = softmax_p(logit_k(x_p))        state[g][k] += Σ_p w_p · (W x_p + b)[k]
//! ```
//! where `[k]` is the k-th slice of 16. The published softmax adds 1e-8 to the denominator.
//!
//! Fast version: the projection is linear, so `Σ w_p x_p` is pooled first, per head over the full width, and projected
//! once per group instead of once per position. The denominator is at least one (the largest term is e⁰), so 1e-8 is
//! below its rounding and is left out. A group of one position, the most common size, skips the pooling. Positions are
//! visited in order within a group, in chunks of fixed size: the sums are the same bits however the groups are shared
//! among threads.

mod train;
pub use train::{Backward, BackwardScratch};

use crate::embed::{block_width, row_of};
use crate::linear::{pack_panel, tile};
use crate::simd::{Engine, Kernel, Mac, Vector, prefetch, prefetch_row};
use crate::{Aligned, D, DH, H, SOFTMAX_EPS};

/// Parameters of one side, nodes or types.
#[derive(Clone, Copy)]
pub struct Weights<'a> {
    /// `to_*`, (D, D)
    pub value: &'a [f32],
    /// (D)
    pub value_bias: &'a [f32],
    /// `*_logit`, (H, D)
    pub logit: &'a [f32],
    /// (H)
    pub logit_bias: &'a [f32],
}

impl Weights<'_> {
    /// Kernels read without looking.
    fn check(&self) {
        assert!(self.value.len() == D * D && self.value_bias.len() == D);
        assert!(self.logit.len() == H * D && self.logit_bias.len() == H);
    }
}

/// The definition: `states[g] +=` the pooled, projected rows of group `g`. Groups without a row keep their state.
pub fn plain(
    x: &[f32],          // (P, D)
    group: &[u32],      // (P)
    states: &mut [f32], // (G, D)
    w: Weights<'_>,
) {
    let rows = group.len();
    let groups = states.len() / D;
    let (mut value, mut logit) = (vec![0.0; rows * D], vec![0.0; rows * H]);
    crate::linear::plain(x, w.value, w.value_bias, &mut value, D);
    crate::linear::plain(x, w.logit, w.logit_bias, &mut logit, D);
    let mut max = vec![f32::NEG_INFINITY; groups * H];
    for p in 0..rows {
        for k in 0..H {
            let m = &mut max[group[p] as usize * H + k];
            *m = m.max(logit[p * H + k]);
        }
    }
    let (mut sum, mut total) = (vec![0.0; groups * D], vec![0.0; groups * H]);
    for p in 0..rows {
        let g = group[p] as usize;
        for k in 0..H {
            let e = (logit[p * H + k] - max[g * H + k]).exp();
            total[g * H + k] += e;
            for c in k * DH..(k + 1) * DH {
                sum[g * D + c] += e * value[p * D + c];
            }
        }
    }
    for g in 0..groups {
        for c in 0..D {
            states[g * D + c] += sum[g * D + c] / (total[g * H + c / DH] + SOFTMAX_EPS);
        }
    }
}

/// Gradients of one side's parameters, shaped like [`Weights`].
pub struct Gradients<'a> {
    /// (D, D)
    pub d_value: &'a mut [f32],
    /// (D)
    pub d_value_bias: &'a mut [f32],
    /// (H, D)
    pub d_logit: &'a mut [f32],
    /// (H)
    pub d_logit_bias: &'a mut [f32],
}

/// The weight of each row in its group's average, per head.
fn plain_softmax(
    logit: &[f32], // (P, H)
    group: &[u32], // (P)
    groups: usize,
) -> Vec<f32> {
    let at = |i: usize| group[i / H] as usize * H + i % H;
    let (mut max, mut total) = (vec![f32::NEG_INFINITY; groups * H], vec![0.0; groups * H]);
    for i in 0..logit.len() {
        max[at(i)] = max[at(i)].max(logit[i]);
    }
    let e: Vec<f32> = (0..logit.len()).map(|i| (logit[i] - max[at(i)]).exp()).collect();
    for i in 0..logit.len() {
        total[at(i)] += e[i];
    }
    (0..logit.len()).map(|i| e[i] / (total[at(i)] + SOFTMAX_EPS)).collect()
}

/// Backward of [`plain`]; values and weights are computed anew. The states' own gradient passes unchanged: they are
/// added to. With `a` the weights, `∂a_p/∂logit_q = a_p (δ_pq − a_q)` within a group, ε or not; that the subtracted
/// maximum moves too changes `a` by less than ε and is left out.
pub fn plain_backward(
    x: &[f32],     // (P, D)
    group: &[u32], // (P)
    w: Weights<'_>,
    d_states: &[f32], // (G, D)
    d_x: &mut [f32],  // (P, D)
    d_w: &mut Gradients<'_>,
) {
    let rows = group.len();
    let groups = d_states.len() / D;
    let (mut value, mut logit) = (vec![0.0; rows * D], vec![0.0; rows * H]);
    crate::linear::plain(x, w.value, w.value_bias, &mut value, D);
    crate::linear::plain(x, w.logit, w.logit_bias, &mut logit, D);
    let a = plain_softmax(&logit, group, groups);

    let (mut d_value, mut d_a) = (vec![0.0; rows * D], vec![0.0; rows * H]);
    let mut mean_d_a = vec![0.0; groups * H]; // Σ a · d_a over the group
    for p in 0..rows {
        let g = group[p] as usize;
        for k in 0..H {
            for c in k * DH..(k + 1) * DH {
                d_value[p * D + c] = a[p * H + k] * d_states[g * D + c];
                d_a[p * H + k] += value[p * D + c] * d_states[g * D + c];
            }
            mean_d_a[g * H + k] += a[p * H + k] * d_a[p * H + k];
        }
    }
    let mut d_logit = vec![0.0; rows * H];
    for p in 0..rows {
        let g = group[p] as usize;
        for k in 0..H {
            d_logit[p * H + k] = a[p * H + k] * (d_a[p * H + k] - mean_d_a[g * H + k]);
        }
    }
    crate::linear::plain_backward(x, w.value, &d_value, d_x, d_w.d_value, d_w.d_value_bias, D);
    crate::linear::plain_backward(x, w.logit, &d_logit, d_x, d_w.d_logit, d_w.d_logit_bias, D);
}

/// The ablation of section 11: [`plain`] with equal weights. The logits' parameters have no part in it.
pub fn plain_mean(
    x: &[f32],          // (P, D)
    group: &[u32],      // (P)
    states: &mut [f32], // (G, D)
    w: Weights<'_>,
) {
    let mut value = vec![0.0; group.len() * D];
    crate::linear::plain(x, w.value, w.value_bias, &mut value, D);
    let share = equal_shares(group, states.len() / D);
    for (p, &g) in group.iter().enumerate() {
        for c in 0..D {
            states[g as usize * D + c] += share[g as usize] * value[p * D + c];
        }
    }
}

/// Backward of [`plain_mean`]; the gradients of the logits' parameters stay as they are.
pub fn plain_mean_backward(
    x: &[f32],     // (P, D)
    group: &[u32], // (P)
    w: Weights<'_>,
    d_states: &[f32], // (G, D)
    d_x: &mut [f32],  // (P, D)
    d_w: &mut Gradients<'_>,
) {
    let mut d_value = vec![0.0; group.len() * D];
    let share = equal_shares(group, d_states.len() / D);
    for (p, &g) in group.iter().enumerate() {
        for c in 0..D {
            d_value[p * D + c] = share[g as usize] * d_states[g as usize * D + c];
        }
    }
    crate::linear::plain_backward(x, w.value, &d_value, d_x, d_w.d_value, d_w.d_value_bias, D);
}

/// One over each group's number of rows; infinite, and never read, for a group without.
fn equal_shares(group: &[u32], groups: usize) -> Vec<f32> {
    let mut count = vec![0.0; groups];
    for &g in group {
        count[g as usize] += 1.0;
    }
    count.into_iter().map(|n: f32| 1.0 / n).collect()
}

/// Rows sorted by group.
#[derive(Default)]
pub struct Groups {
    /// Groups that have a row, ascending.
    ids: Vec<u32>,
    /// Where the rows of `ids[i]` begin in `rows`; one more at the end.
    starts: Vec<u32>,
    rows: Vec<u32>,
    counts: Vec<u32>,
}

impl Groups {
    /// Sorts positions (walk-major) by group, as time-major rows in blocks: a counting sort over `groups` groups.
    /// Within a group the order is that of the positions.
    pub fn build(
        &mut self,
        groups: usize,
        group: &[u32], // (W, L), each < groups
        length: usize,
    ) {
        // A rest would keep the rows of an earlier build.
        assert!(group.len().is_multiple_of(length));
        self.counts.clear();
        self.counts.resize(groups, 0);
        for &g in group {
            self.counts[g as usize] += 1;
        }
        self.ids.clear();
        self.starts.clear();
        let mut start = 0;
        for (g, count) in self.counts.iter_mut().enumerate() {
            let n = std::mem::replace(count, start);
            if n > 0 {
                self.ids.push(g as u32);
                self.starts.push(start);
                start += n;
            }
        }
        self.starts.push(start);
        self.rows.resize(group.len(), 0);
        let walks = group.len() / length;
        for (w, group) in group.chunks_exact(length).enumerate() {
            let width = block_width(w, walks);
            let mut row = row_of(w, 0, walks, length);
            for &g in group {
                let next = &mut self.counts[g as usize];
                self.rows[*next as usize] = row as u32;
                *next += 1;
                row += width;
            }
        }
    }

    /// Groups that have a row, ascending.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// The rows of the `i`-th of [`Self::ids`].
    pub fn rows(&self, i: usize) -> &[u32] {
        &self.rows[self.starts[i] as usize..self.starts[i + 1] as usize]
    }

    /// Cuts `ids` into at most `parts` ranges of about equal row counts.
    pub fn split(&self, parts: usize) -> Vec<std::ops::Range<usize>> {
        let mut ranges = Vec::with_capacity(parts);
        let mut from = 0;
        for part in 1..=parts {
            let until = (self.rows.len() * part / parts) as u32;
            let to = if part == parts { self.ids.len() } else { self.starts.partition_point(|s| *s < until) };
            let to = to.clamp(from, self.ids.len());
            if to > from {
                ranges.push(from..to);
            }
            from = to;
        }
        ranges
    }
}

/// Columns of a row of logits: `H` for nodes, then `H` for types.
pub const LOGITS: usize = 2 * H;

/// Both sides' parameters packed for an engine.
pub struct Consensus {
    engine: Engine,
    values: [Aligned<u32>; 2],       // ([node, type]), each (H, D / per, DH)
    value_biases: [Aligned<f32>; 2], // (D)
    logits: Aligned<u32>,            // (D, lanes): full precision always, the first LOGITS columns used
    logit_biases: Aligned<f32>,      // (lanes)
}

/// Which states are updated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Node states.
    Node = 0,
    /// Type states.
    Type = 1,
}

/// Working memory of one thread.
#[derive(Default)]
pub struct Scratch {
    e: Aligned<f32>,         // (CHUNK_ROWS, H)
    pooled: Aligned<f32>,    // (H, D)
    single: Batch,           // a row each
    several: Batch,          // H rows each
    projected: Aligned<f32>, // (BATCH, D)
}

/// Groups waiting to be projected together.
#[derive(Default)]
struct Batch {
    staged: Aligned<u32>, // (BATCH, 1 or H, D / per)
    into: Vec<usize>,     // rows of the result
}

/// Positions pooled at a time within a group: their rows stay in L1 for the passes over them.
const CHUNK_ROWS: usize = 64;
/// Groups between the one that is pooled and the one whose rows are asked for.
const AHEAD: usize = 4;
/// Groups projected at a time.
const BATCH: usize = 12;

impl Consensus {
    /// Packs both sides.
    pub fn new(engine: Engine, node: Weights<'_>, ty: Weights<'_>) -> Consensus {
        node.check();
        ty.check();
        let pack = |w: Weights<'_>| {
            let mut units = Vec::with_capacity(D * D);
            for k in 0..H {
                pack_panel(engine, &mut units, D, DH, |n, c| w.value[(k * DH + n) * D + c]);
            }
            Aligned::from_slice(&units)
        };
        let lanes = engine.lanes();
        let mut logits = Aligned::<u32>::zeros(D * lanes);
        let mut logit_biases = Aligned::<f32>::zeros(lanes);
        for (side, w) in [node, ty].into_iter().enumerate() {
            for k in 0..H {
                logit_biases[side * H + k] = w.logit_bias[k];
                for c in 0..D {
                    logits[c * lanes + side * H + k] = w.logit[k * D + c].to_bits();
                }
            }
        }
        Consensus {
            engine,
            values: [pack(node), pack(ty)],
            value_biases: [Aligned::from_slice(node.value_bias), Aligned::from_slice(ty.value_bias)],
            logits,
            logit_biases,
        }
    }

    /// The logits of all heads of both sides, for every row.
    pub fn logits(
        &self,
        x: &[f32],       // (P, D)
        out: &mut [f32], // (P, LOGITS)
    ) {
        assert!(x.len().is_multiple_of(D) && out.len() == x.len() / D * LOGITS);
        self.engine.run(LogitsKernel { layer: self, x, out });
    }

    /// What the groups `range` of `groups` are to add to their states, a row for each.
    pub fn pool(
        &self,
        side: Side,
        x: &[f32],      // (P, D)
        logits: &[f32], // (P, LOGITS)
        groups: &Groups,
        range: std::ops::Range<usize>,
        out: &mut [f32], // (range, D)
        scratch: &mut Scratch,
    ) {
        let rows = x.len() / D;
        assert!(logits.len() == rows * LOGITS && groups.rows.len() == rows && out.len() == range.len() * D);
        self.engine.run(Pool { layer: self, side, x, logits, groups, range, out, scratch });
    }
}

struct LogitsKernel<'a> {
    layer: &'a Consensus,
    x: &'a [f32],
    out: &'a mut [f32],
}

impl Kernel for LogitsKernel<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<M: Mac>(self) {
        const R: usize = 10;
        let rows = self.x.len() / D;
        // SAFETY: a tile starts at most at row `rows - R`; fewer rows than R go one at a time.
        unsafe {
            let bias = M::V::load(self.layer.logit_biases.as_ptr());
            let mut p = 0;
            while p < rows {
                let from = self.x.as_ptr().add(p * D).cast();
                let to = self.out.as_mut_ptr().add(p * LOGITS);
                let w = self.layer.logits.as_ptr();
                if p + R <= rows {
                    let mut acc = [[bias]; R];
                    tile::<crate::simd::F32<M::V>, R, 1>(&mut acc, D, from, D, w);
                    store_logits(&acc, to);
                    p += R;
                } else {
                    let mut acc = [[bias]; 1];
                    tile::<crate::simd::F32<M::V>, 1, 1>(&mut acc, D, from, D, w);
                    store_logits(&acc, to);
                    p += 1;
                }
            }
        }
    }
}

/// Writes the first [`LOGITS`] lanes of each row.
#[inline(always)]
unsafe fn store_logits<V: Vector>(acc: &[[V; 1]], to: *mut f32) {
    let mut lanes = [0.0f32; 16];
    // SAFETY: `to` has room for LOGITS values per row of `acc`; a vector has at most 16 lanes.
    unsafe {
        for (i, [v]) in acc.iter().enumerate() {
            v.store(lanes.as_mut_ptr());
            std::ptr::copy_nonoverlapping(lanes.as_ptr(), to.add(i * LOGITS), LOGITS);
        }
    }
}

struct Pool<'a> {
    layer: &'a Consensus,
    side: Side,
    x: &'a [f32],
    logits: &'a [f32],
    groups: &'a Groups,
    range: std::ops::Range<usize>,
    out: &'a mut [f32],
    scratch: &'a mut Scratch,
}

impl Kernel for Pool<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<M: Mac>(self) {
        let Pool { layer, side, x, logits, groups, range, out, scratch } = self;
        let units = D / M::K_PER;
        let Scratch { e, pooled, single, several, projected } = scratch;
        e.resize(CHUNK_ROWS * H);
        pooled.resize(H * D);
        projected.resize(BATCH * D);
        single.staged.resize(BATCH * units);
        several.staged.resize(BATCH * H * units);
        single.into.clear();
        several.into.clear();
        let (first, count) = (range.start, range.len());
        for i in 0..count {
            // Rows of a group lie anywhere in `x`: ask for those of a group a little ahead.
            for &p in groups.rows((first + i + AHEAD).min(groups.ids.len() - 1)).iter().take(CHUNK_ROWS) {
                prefetch(logits.as_ptr().wrapping_add(p as usize * LOGITS));
                prefetch_row(x.as_ptr().wrapping_add(p as usize * D));
            }
            let rows = groups.rows(first + i);
            // SAFETY: `groups` lists the numbers below its row count, which is `x`'s (checked at the door); a batch
            // has room for BATCH groups and is emptied when it is full.
            unsafe {
                if let [p] = rows {
                    let to = single.staged.as_mut_ptr().add(single.into.len() * units);
                    for c in (0..D).step_by(M::V::LANES) {
                        M::stage(M::V::load(x.as_ptr().add(*p as usize * D + c)), to, c);
                    }
                    single.into.push(i);
                } else {
                    let to = several.staged.as_mut_ptr().add(several.into.len() * H * units);
                    if M::V::LANES == 16 {
                        pool_group::<M, 4>(x, logits, side, rows, e, pooled, to);
                    } else {
                        pool_group::<M, 2>(x, logits, side, rows, e, pooled, to);
                    }
                    several.into.push(i);
                }
                let last = i + 1 == count;
                for (batch, per_head) in [(&mut *single, 0), (&mut *several, units)] {
                    if batch.into.len() == BATCH || last && !batch.into.is_empty() {
                        if M::V::LANES == 16 {
                            project::<M, 12, 1>(layer, side, &batch.staged, per_head, projected);
                        } else {
                            project::<M, 6, 2>(layer, side, &batch.staged, per_head, projected);
                        }
                        for (row, &i) in projected.chunks_exact(D).zip(&batch.into) {
                            out[i * D..][..D].copy_from_slice(row);
                        }
                        batch.into.clear();
                    }
                }
            }
        }
    }
}

/// Softmax-weighted means of the rows of one group, per head over the full width: stages `to` (H, D / per).
#[inline(always)]
unsafe fn pool_group<M: Mac, const C: usize>(
    x: &[f32],
    logits: &[f32],
    side: Side,
    rows: &[u32],
    e: &mut [f32],      // (CHUNK_ROWS, H)
    pooled: &mut [f32], // (H, D)
    to: *mut u32,
) {
    let lanes = M::V::LANES;
    let pooled = pooled.as_mut_ptr();
    let logit = |p: u32| &logits[p as usize * LOGITS + side as usize * H..][..H];
    // SAFETY: rows are below `x`'s row count, `pooled` and `to` hold (H, D); what is left of `e` after the last row is spare.
    unsafe {
        let mut max = [f32::NEG_INFINITY; H];
        for &p in rows {
            for (m, a) in max.iter_mut().zip(logit(p)) {
                *m = if *a > *m { *a } else { *m };
            }
        }
        for c in (0..H * D).step_by(lanes) {
            M::V::zero().store(pooled.add(c));
        }
        let mut total = [0.0f32; H];
        let log2e = M::V::splat(std::f32::consts::LOG2_E);
        for (start, chunk) in (0..).step_by(CHUNK_ROWS).zip(rows.chunks(CHUNK_ROWS)) {
            for &p in rows.iter().skip(start + CHUNK_ROWS).take(CHUNK_ROWS) {
                prefetch_row(x.as_ptr().wrapping_add(p as usize * D));
            }
            for (e, &p) in e.chunks_exact_mut(H).zip(chunk) {
                for ((e, a), m) in e.iter_mut().zip(logit(p)).zip(max) {
                    *e = a - m;
                }
            }
            for i in (0..chunk.len() * H).step_by(lanes) {
                let at = e.as_mut_ptr().add(i);
                M::V::load(at).mul(log2e).clamp(-126.0, 0.0).exp2().store(at);
            }
            for e in e.chunks_exact(H).take(chunk.len()) {
                for (t, e) in total.iter_mut().zip(e) {
                    *t += e;
                }
            }
            for c0 in (0..D).step_by(C * lanes) {
                let mut acc = [[M::V::zero(); C]; H];
                for k in 0..H {
                    for c in 0..C {
                        acc[k][c] = M::V::load(pooled.add(k * D + c0 + c * lanes));
                    }
                }
                for (i, &p) in chunk.iter().enumerate() {
                    let from = x.as_ptr().add(p as usize * D + c0);
                    let mut v = [M::V::zero(); C];
                    for c in 0..C {
                        v[c] = M::V::load(from.add(c * lanes));
                    }
                    for k in 0..H {
                        let w = M::V::splat(*e.get_unchecked(i * H + k));
                        for c in 0..C {
                            acc[k][c] = w.mul_add(v[c], acc[k][c]);
                        }
                    }
                }
                for k in 0..H {
                    for c in 0..C {
                        acc[k][c].store(pooled.add(k * D + c0 + c * lanes));
                    }
                }
            }
        }
        for k in 0..H {
            let share = M::V::splat(1.0 / total[k]);
            for c in (k * D..(k + 1) * D).step_by(lanes) {
                M::stage(M::V::load(pooled.add(c)).mul(share), to, c);
            }
        }
    }
}

/// `out[i][k] = W[k] row + b[k]` for BATCH staged groups, whose rows per head are `per_head` units apart (0: shared).
#[inline(always)]
unsafe fn project<M: Mac, const R: usize, const C: usize>(
    layer: &Consensus,
    side: Side,
    staged: &[u32],
    per_head: usize,
    out: &mut [f32], // (BATCH, D)
) {
    let stride = staged.len() / BATCH;
    let out = out.as_mut_ptr();
    let (units, lanes) = (D / M::K_PER, M::V::LANES);
    // SAFETY: `staged` holds BATCH groups and `out` BATCH rows.
    unsafe {
        for k in 0..H {
            let w = layer.values[side as usize].as_ptr().add(k * units * DH);
            let mut start = [M::V::zero(); C];
            for c in 0..C {
                start[c] = M::V::load(layer.value_biases[side as usize].as_ptr().add(k * DH + c * lanes));
            }
            for i in (0..BATCH).step_by(R) {
                let mut acc = [start; R];
                let from = staged.as_ptr().add(i * stride + k * per_head);
                tile::<M, R, C>(&mut acc, units, from, stride, w);
                for r in 0..R {
                    for c in 0..C {
                        acc[r][c].store(out.add((i + r) * D + k * DH + c * lanes));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Precision;
    use crate::testing::{assert_close, noise};

    #[test]
    fn fast_equals_plain_on_uneven_groups() {
        // 333 rows in 40 groups: some empty, some of one row, one of more than two chunks.
        let rows = 333;
        let group: Vec<u32> = noise(1, rows, 1.0)
            .iter()
            .enumerate()
            .map(|(i, v)| if i % 2 == 0 { 7 } else { ((v.abs() * 1e5) as u32 % 20) * 2 })
            .collect();
        let x = noise(2, rows * D, 1.0);
        let parts: Vec<Vec<f32>> = (0..2u64)
            .flat_map(|s| {
                [(D * D, 0.15), (D, 0.5), (H * D, 0.4), (H, 0.5)].map(|(n, rms)| noise(20 + s + n as u64, n, rms))
            })
            .collect();
        let weights = |s: usize| Weights {
            value: &parts[4 * s],
            value_bias: &parts[4 * s + 1],
            logit: &parts[4 * s + 2],
            logit_bias: &parts[4 * s + 3],
        };
        let initial = noise(3, 40 * D, 1.0);
        for engine in Engine::all() {
            let layer = Consensus::new(engine, weights(0), weights(1));
            let mut logits = vec![0.0; rows * LOGITS];
            layer.logits(&x, &mut logits);
            let mut groups = Groups::default();
            groups.build(40, &group, 1); // walks of one position: rows are positions
            assert!(
                !groups.ids().contains(&1)
                    && groups.rows(groups.ids().iter().position(|g| *g == 7).unwrap()).len() > 128
            );
            for side in [Side::Node, Side::Type] {
                let mut want = initial.clone();
                plain(&x, &group, &mut want, weights(side as usize));
                for parts in [1, 3, 100] {
                    let mut got = initial.clone();
                    for range in groups.split(parts) {
                        let mut out = vec![0.0; range.len() * D];
                        layer.pool(side, &x, &logits, &groups, range.clone(), &mut out, &mut Scratch::default());
                        for (i, update) in range.zip(out.chunks_exact(D)) {
                            let state = &mut got[groups.ids()[i] as usize * D..][..D];
                            state.iter_mut().zip(update).for_each(|(s, u)| *s += u);
                        }
                    }
                    let tolerance = if engine.precision() == Precision::F32 { 2e-5 } else { 3e-2 };
                    assert_close(&got, &want, tolerance, &format!("{engine:?} {side:?} {parts}"));
                }
            }
        }
    }
}
