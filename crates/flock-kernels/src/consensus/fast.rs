//! The SIMD forward of the consensus, beside [`plain`](super::plain).
//!
//! The projection is linear. So `Σ w_p x_p` is pooled first, per head over the full width, and
//! projected once per group instead of once per position. The denominator is at least one, because
//! the largest term is e⁰. An epsilon of 1e-8 is below its rounding and is left out. A group of one
//! position, the most common size, needs no pooling.
//!
//! Positions are read once, in order within a group, in chunks of fixed size. When the maximum
//! rises from one chunk to the next, the sums so far are scaled down to it. The sums have the same
//! bits however the groups are shared among threads.

use super::{Groups, Side, Weights, logit_columns, logit_slots};
use crate::AlignedVec;
use crate::linear::{pack_panel, tile};
use crate::simd::{Engine, Mac, Vector, prefetch, prefetch_row};
use crate::width::HeadsKernel;

/// The parameters for nodes and types, packed for an engine.
pub struct Consensus {
    engine: Engine,
    width: usize,
    heads: usize,
    values: [AlignedVec<u32>; 2],       // ([node, type]), each (D / PANEL, D / per, PANEL)
    value_biases: [AlignedVec<f32>; 2], // (D)
    logits: AlignedVec<f32>,            // (D, columns), or (D / 2, columns, 2) if lanes are twice as many: always f32
    logit_biases: AlignedVec<f32>,      // (columns, or lanes if more); the second of two neighbours 0
}

/// Working memory of one thread.
#[derive(Default)]
pub struct Scratch {
    e: AlignedVec<f32>,       // (CHUNK_ROWS, S)
    pooled: AlignedVec<f32>,  // (H, D)
    single: ProjectionBatch,  // groups of one row: one staged row each
    several: ProjectionBatch, // larger groups: H staged rows each
}

/// Groups that wait to be projected together.
#[derive(Default)]
struct ProjectionBatch {
    staged: AlignedVec<u32>, // (BATCH, 1 or H, D / per)
    into: Vec<usize>,        // rows of the states
}

/// Columns of a panel of `to_*`: the narrowest slice of a head.
const PANEL: usize = 16;
/// Positions of a group that are pooled together. Their rows stay in L1 while several loops read
/// them.
const CHUNK_ROWS: usize = if cfg!(miri) { 4 } else { 64 }; // small under Miri, to reach the second chunk quickly
/// Distance, in rows, between the row that is read and the row that is prefetched. The rows of a
/// group are scattered in memory.
pub(super) const AHEAD: usize = 12;
/// Groups projected at a time.
pub(super) const BATCH: usize = 12;

impl Consensus {
    /// Packs the parameters for nodes and types.
    pub fn new(engine: Engine, node: Weights<'_>, ty: Weights<'_>) -> Consensus {
        let (width, heads) = node.check();
        assert_eq!(ty.check(), (width, heads));
        let pack = |w: Weights<'_>| {
            let mut units = Vec::with_capacity(width * width);
            for n0 in (0..width).step_by(PANEL) {
                pack_panel(engine, &mut units, width, PANEL, |n, c| w.value[(n0 + n) * width + c]);
            }
            AlignedVec::from_slice(&units)
        };
        // With twice as many lanes as logits, two columns of a row are taken at once, in
        // neighbouring lanes.
        let columns = logit_columns(heads);
        let at_once = (engine.lanes() / columns).max(1);
        let mut logits = AlignedVec::<f32>::zeros(columns * width);
        let mut logit_biases = AlignedVec::<f32>::zeros(columns * at_once);
        for (side, w) in [node, ty].into_iter().enumerate() {
            for k in 0..heads {
                let j = side * logit_slots(heads) + k;
                logit_biases[j * at_once] = w.logit_bias[k];
                for c in 0..width {
                    logits[(c / at_once * columns + j) * at_once + c % at_once] = w.logit[k * width + c];
                }
            }
        }
        Consensus {
            engine,
            width,
            heads,
            values: [pack(node), pack(ty)],
            value_biases: [AlignedVec::from_slice(node.value_bias), AlignedVec::from_slice(ty.value_bias)],
            logits,
            logit_biases,
        }
    }

    /// Returns the number of columns of a row of logits.
    pub fn logit_columns(&self) -> usize {
        logit_columns(self.heads)
    }

    /// Computes the logits of all heads, for nodes and types, for every row.
    pub fn logits(
        &self,
        x: &[f32],       // (P, D)
        out: &mut [f32], // (P, columns)
    ) {
        assert!(x.len().is_multiple_of(self.width) && out.len() == x.len() / self.width * self.logit_columns());
        self.engine.run_heads(self.width, self.heads, LogitsKernel { layer: self, x, out });
    }

    /// Pools the rows of each group and adds the result to its state, for the groups `range` of
    /// `groups`. `states` begins with the state of the first of these groups.
    pub fn pool(
        &self,
        side: Side,
        x: &[f32],      // (P, D)
        logits: &[f32], // (P, columns)
        groups: &Groups,
        range: std::ops::Range<usize>,
        states: &mut [f32], // (from the first group's id to the last one's, D)
        scratch: &mut Scratch,
    ) {
        let rows = x.len() / self.width;
        assert!(logits.len() == rows * self.logit_columns() && groups.rows.len() == rows);
        if let [first, .., last] | [first @ last] = groups.ids[range.clone()] {
            assert!(states.len() >= (last - first + 1) as usize * self.width);
        }
        let kernel = PoolKernel { layer: self, side, x, logits, groups, range, states, scratch };
        self.engine.run_heads(self.width, self.heads, kernel);
    }
}

struct LogitsKernel<'a> {
    layer: &'a Consensus,
    x: &'a [f32],
    out: &'a mut [f32],
}

impl HeadsKernel for LogitsKernel<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<M: Mac, const D: usize, const C: usize, const H: usize, const S: usize>(self) {
        // SAFETY: the caller's promise; `J` vectors make up the columns of a row, or half of one does.
        unsafe {
            if logit_columns(H) > M::V::LANES {
                logit_tiles::<M::V, D, H, 2, 5>(self);
            } else {
                logit_tiles::<M::V, D, H, 1, 10>(self);
            }
        }
    }
}

/// Computes the logits of all rows, `R` at a time. A row has `J` vectors of logits.
#[inline(always)]
unsafe fn logit_tiles<V: Vector, const D: usize, const H: usize, const J: usize, const R: usize>(
    job: LogitsKernel<'_>,
) {
    let LogitsKernel { layer, x, out } = job;
    let rows = x.len() / D;
    // SAFETY: a tile starts at most at row `rows - R`; fewer rows than R go one at a time.
    unsafe {
        let mut p = 0;
        while p < rows {
            let (from, to) = (x.as_ptr().add(p * D), out.as_mut_ptr().add(p * logit_columns(H)));
            if p + R <= rows {
                logit_rows::<V, D, H, J, R>(layer, from, to);
                p += R;
            } else {
                logit_rows::<V, D, H, J, 1>(layer, from, to);
                p += 1;
            }
        }
    }
}

/// Computes the logits of `R` rows.
#[inline(always)]
unsafe fn logit_rows<V: Vector, const D: usize, const H: usize, const J: usize, const R: usize>(
    layer: &Consensus,
    x: *const f32,
    out: *mut f32,
) {
    let columns = logit_columns(H);
    let (w, pairs) = (layer.logits.as_ptr(), V::LANES == 2 * columns);
    // SAFETY: `x` and `out` reach `R` rows; the weights hold D columns, one or two to `J` vectors.
    unsafe {
        let mut start = [V::zero(); J];
        for j in 0..J {
            start[j] = V::load(layer.logit_biases.as_ptr().add(j * V::LANES));
        }
        let mut acc = [start; R];
        for c in (0..D).step_by(if pairs { 2 } else { 1 }) {
            for j in 0..J {
                let w = V::load(w.add(c * columns + j * V::LANES));
                for r in 0..R {
                    let x = x.add(r * D + c);
                    acc[r][j] = w.mul_add(if pairs { V::splat_pair(x) } else { V::splat(*x) }, acc[r][j]);
                }
            }
        }
        for r in 0..R {
            for j in 0..J {
                if pairs {
                    acc[r][j].store_pair_sums(out.add(r * columns));
                } else {
                    acc[r][j].store(out.add(r * columns + j * V::LANES));
                }
            }
        }
    }
}

struct PoolKernel<'a> {
    layer: &'a Consensus,
    side: Side,
    x: &'a [f32],
    logits: &'a [f32],
    groups: &'a Groups,
    range: std::ops::Range<usize>,
    states: &'a mut [f32],
    scratch: &'a mut Scratch,
}

impl HeadsKernel for PoolKernel<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<M: Mac, const D: usize, const C: usize, const H: usize, const S: usize>(self) {
        let PoolKernel { layer, side, x, logits, groups, range, states, scratch } = self;
        let units = D / M::K_PER;
        let Scratch { e, pooled, single, several } = scratch;
        e.resize(CHUNK_ROWS * S);
        pooled.resize(H * D);
        single.staged.resize(BATCH * units);
        several.staged.resize(BATCH * H * units);
        single.into.clear();
        several.into.clear();
        let ids = &groups.ids[range.clone()];
        for (i, &id) in range.clone().zip(ids) {
            let rows = groups.rows(i);
            let next = &groups.rows[(groups.starts[i] as usize + AHEAD).min(groups.rows.len())..];
            let into = (id - ids[0]) as usize;
            prefetch_row::<D>(states.as_ptr().wrapping_add(into * D));
            // SAFETY: `groups` lists the numbers below its row count, which is `x`'s, and `states` reaches from the first id
            // to the last (checked in `Consensus::pool`); a batch has room for BATCH groups and is emptied when it is full.
            unsafe {
                if let [p] = rows {
                    prefetch_next::<D, H>(x, logits, next, 0);
                    let to = single.staged.as_mut_ptr().add(single.into.len() * units);
                    for c in (0..D).step_by(M::V::LANES) {
                        M::stage(M::V::load(x.as_ptr().add(*p as usize * D + c)), to, c);
                    }
                    single.into.push(into);
                } else {
                    let to = several.staged.as_mut_ptr().add(several.into.len() * H * units);
                    let group = GroupRows { x, logits, side, rows, next };
                    // Eight heads have a sum for each in registers: half as many columns.
                    match (M::V::LANES, H) {
                        (16, 8) => pool_group::<M, D, 2, H, S>(group, e, pooled, to),
                        (_, 8) => pool_group::<M, D, 1, H, S>(group, e, pooled, to),
                        _ => pool_group::<M, D, C, H, S>(group, e, pooled, to),
                    }
                    several.into.push(into);
                }
                let last = i + 1 == range.end;
                for (batch, per_head) in [(&mut *single, 0), (&mut *several, units)] {
                    if batch.into.len() == BATCH || last && !batch.into.is_empty() {
                        if M::V::LANES == 16 {
                            project::<M, D, H, 12, 1>(layer, side, batch, per_head, states);
                        } else {
                            project::<M, D, H, 6, 2>(layer, side, batch, per_head, states);
                        }
                        batch.into.clear();
                    }
                }
            }
        }
    }
}

/// Prefetches the `i`-th of the next rows.
#[inline(always)]
pub(super) fn prefetch_next<const D: usize, const H: usize>(x: &[f32], logits: &[f32], next: &[u32], i: usize) {
    if let Some(&p) = next.get(i) {
        prefetch(logits.as_ptr().wrapping_add(p as usize * logit_columns(H)));
        prefetch_row::<D>(x.as_ptr().wrapping_add(p as usize * D));
    }
}

/// The rows of one group, and what is needed to pool them.
#[derive(Clone, Copy)]
pub(super) struct GroupRows<'a> {
    pub(super) x: &'a [f32],
    pub(super) logits: &'a [f32],
    pub(super) side: Side,
    pub(super) rows: &'a [u32],
    pub(super) next: &'a [u32], // the next rows to prefetch, of this group and of those after it
}

/// Repeats `S` values.
#[inline(always)]
fn repeated<const S: usize>(v: [f32; S]) -> [f32; 16] {
    std::array::from_fn(|i| v[i % S])
}

/// Computes the softmax-weighted means of the rows of one group, per head over the full width, and
/// stages them in `to` (H, D / per).
#[inline(always)]
unsafe fn pool_group<M: Mac, const D: usize, const C: usize, const H: usize, const S: usize>(
    group: GroupRows<'_>,
    e: &mut [f32],      // (CHUNK_ROWS, S)
    pooled: &mut [f32], // (H, D)
    to: *mut u32,
) {
    let lanes = M::V::LANES;
    let mut max = [f32::NEG_INFINITY; S];
    // SAFETY: rows are below `x`'s row count, `pooled` and `to` hold (H, D), `e` a chunk.
    unsafe {
        if group.rows.len() <= CHUNK_ROWS {
            let total = weigh::<M::V, H, S>(group, &mut max, e);
            let share = repeated(total.map(|t| 1.0 / t));
            let share = M::V::load(share.as_ptr());
            for i in (0..group.rows.len() * S).step_by(lanes) {
                let at = e.as_mut_ptr().add(i);
                M::V::load(at).mul(share).store(at);
            }
            for c0 in (0..D).step_by(C * lanes) {
                let mut acc = [[M::V::zero(); C]; H];
                add_rows::<M::V, D, C, H, S>(group, e, c0, &mut acc);
                for k in 0..H {
                    for c in 0..C {
                        M::stage(acc[k][c], to, k * D + c0 + c * lanes);
                    }
                }
            }
            return;
        }
        let pooled = pooled.as_mut_ptr();
        for c in (0..H * D).step_by(lanes) {
            M::V::zero().store(pooled.add(c));
        }
        let mut total = [0.0f32; S];
        for (chunk, next) in group.rows.chunks(CHUNK_ROWS).zip((0..).step_by(CHUNK_ROWS)) {
            let part = GroupRows { rows: chunk, next: &group.next[next.min(group.next.len())..], ..group };
            let before = max;
            let sum = weigh::<M::V, H, S>(part, &mut max, e);
            // The sums so far belong to a smaller maximum. Scale them down to the new one.
            let shrink: [f32; S] =
                std::array::from_fn(|k| if before[k] == max[k] { 1.0 } else { (before[k] - max[k]).exp() });
            for k in 0..S {
                total[k] = total[k] * shrink[k] + sum[k];
            }
            for c0 in (0..D).step_by(C * lanes) {
                let mut acc = [[M::V::zero(); C]; H];
                for k in 0..H {
                    for c in 0..C {
                        acc[k][c] = M::V::load(pooled.add(k * D + c0 + c * lanes)).mul(M::V::splat(shrink[k]));
                    }
                }
                add_rows::<M::V, D, C, H, S>(part, e, c0, &mut acc);
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

/// Computes `e = exp(logit − max)` of at most CHUNK_ROWS rows, per head, and returns the sums.
/// First raises `max` to the maximum of these rows.
#[inline(always)]
unsafe fn weigh<V: Vector, const H: usize, const S: usize>(
    group: GroupRows<'_>,
    max: &mut [f32; S],
    e: &mut [f32],
) -> [f32; S] {
    let GroupRows { logits, side, rows, .. } = group;
    let count = rows.len() * S;
    let own = side as usize * S;
    // SAFETY: rows are below the number of rows of `logits`; `e` holds a chunk, a whole number of vectors.
    unsafe {
        let mut top = *max;
        for (e, &p) in e.chunks_exact_mut(S).zip(rows) {
            let a = logits.as_ptr().add(p as usize * logit_columns(H) + own).cast::<[f32; S]>().read();
            e.copy_from_slice(&a);
            top = std::array::from_fn(|k| if a[k] > top[k] { a[k] } else { top[k] });
        }
        *max = top;
        // The unused end of the last vector weighs nothing: 2⁻¹²⁶ beside a sum of at least one.
        e[count..count.next_multiple_of(V::LANES)].fill(f32::MIN);
        let (max, log2e) = (V::load(repeated(top).as_ptr()), V::splat(std::f32::consts::LOG2_E));
        let mut sums = V::zero();
        for i in (0..count).step_by(V::LANES) {
            let at = e.as_mut_ptr().add(i);
            let v = V::load(at).sub(max).mul(log2e).clamp(-126.0, 0.0).exp2();
            v.store(at);
            sums = sums.add(v);
        }
        let mut parts = [0.0f32; 16];
        sums.store(parts.as_mut_ptr());
        let mut total = [0.0; S];
        for (i, part) in parts.iter().enumerate() {
            total[i % S] += part;
        }
        total
    }
}

/// Computes `acc[k] += Σ e[i][k] · x[rows[i]]` over `C` vectors of columns from `c0` on. Prefetches
/// the next rows when `c0` is 0.
#[inline(always)]
pub(super) unsafe fn add_rows<V: Vector, const D: usize, const C: usize, const H: usize, const S: usize>(
    group: GroupRows<'_>,
    e: &[f32],
    c0: usize,
    acc: &mut [[V; C]; H],
) {
    let GroupRows { x, logits, rows, next, .. } = group;
    // SAFETY: rows are below `x`'s row count, and `e` has a row of S for each.
    unsafe {
        for (i, &p) in rows.iter().enumerate() {
            if c0 == 0 {
                prefetch_next::<D, H>(x, logits, next, i);
            }
            let from = x.as_ptr().add(p as usize * D + c0);
            let mut v = [V::zero(); C];
            for c in 0..C {
                v[c] = V::load(from.add(c * V::LANES));
            }
            for k in 0..H {
                let w = V::splat(*e.get_unchecked(i * S + k));
                for c in 0..C {
                    acc[k][c] = w.mul_add(v[c], acc[k][c]);
                }
            }
        }
    }
}

/// Computes `states[into[i]][k] += W[k] row + b[k]` for a batch of staged groups, in tiles of `R`
/// groups and `C` vectors, which are a panel. The rows of a
/// group for different heads are `per_head` units apart; 0 means that all heads share one row.
#[inline(always)]
unsafe fn project<M: Mac, const D: usize, const H: usize, const R: usize, const C: usize>(
    layer: &Consensus,
    side: Side,
    batch: &ProjectionBatch,
    per_head: usize,
    states: &mut [f32],
) {
    let ProjectionBatch { staged, into } = batch;
    let stride = staged.len() / BATCH;
    let states = states.as_mut_ptr();
    let (units, lanes) = (D / M::K_PER, M::V::LANES);
    // SAFETY: `staged` holds BATCH groups, of which the first are those of `into`: rows of `states`.
    unsafe {
        for n0 in (0..D).step_by(PANEL) {
            let k = n0 / (D / H);
            let w = layer.values[side as usize].as_ptr().add(n0 * units);
            let mut start = [M::V::zero(); C];
            for c in 0..C {
                start[c] = M::V::load(layer.value_biases[side as usize].as_ptr().add(n0 + c * lanes));
            }
            for i in (0..BATCH).step_by(R) {
                let mut acc = [start; R];
                let from = staged.as_ptr().add(i * stride + k * per_head);
                tile::<M, R, C>(&mut acc, units, from, stride, w);
                for (acc, &row) in acc.iter().zip(into.iter().skip(i)) {
                    for c in 0..C {
                        let to = states.add(row * D + n0 + c * lanes);
                        M::V::load(to).add(acc[c]).store(to);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plain;
    use super::*;
    use crate::simd::Precision;
    use crate::testing::{assert_close, engines, noise, scale, shapes, widths_and_heads};

    #[test]
    fn fast_equals_plain_on_uneven_groups() {
        // 333 rows (18 under Miri) in 40 groups: some empty, some of one row, one of more than two chunks.
        let rows = if cfg!(miri) { 18 } else { 333 };
        let group: Vec<u32> = noise(1, rows, 1.0)
            .iter()
            .enumerate()
            .map(|(i, v)| if i % 2 == 0 { 7 } else { ((v.abs() * 1e5) as u32 % 20) * 2 })
            .collect();
        let cases = widths_and_heads().into_iter().flat_map(|sizes| engines().into_iter().map(move |e| (sizes, e)));
        for ((d, h), engine) in cases {
            let x = noise(2, rows * d, 1.0);
            let parts: Vec<Vec<f32>> = (0..2u64)
                .flat_map(|s| {
                    [(d * d, 0.15 * scale(d)), (d, 0.5), (h * d, 0.4 * scale(d)), (h, 0.5)]
                        .map(|(n, rms)| noise(20 + s + n as u64, n, rms))
                })
                .collect();
            let weights = |s: usize| Weights {
                value: &parts[4 * s],
                value_bias: &parts[4 * s + 1],
                logit: &parts[4 * s + 2],
                logit_bias: &parts[4 * s + 3],
            };
            let initial = noise(3, 40 * d, 1.0);
            let layer = Consensus::new(engine, weights(0), weights(1));
            let mut logits = vec![0.0; rows * layer.logit_columns()];
            layer.logits(&x, &mut logits);
            let mut groups = Groups::default();
            groups.build(40, &group, 1); // walks of one position: rows are positions
            assert!(
                !groups.ids().contains(&1)
                    && groups.rows(groups.ids().iter().position(|g| *g == 7).unwrap()).len() > 2 * CHUNK_ROWS
            );
            for side in [Side::Node, Side::Type] {
                let mut want = initial.clone();
                plain(&x, &group, &mut want, weights(side as usize));
                for parts in shapes(&[1, 3, 100], &[3]) {
                    let mut got = initial.clone();
                    for range in groups.split(parts) {
                        let states = &mut got[groups.ids()[range.start] as usize * d..];
                        layer.pool(side, &x, &logits, &groups, range, states, &mut Scratch::default());
                    }
                    let tolerance = if engine.precision() == Precision::F32 { 2e-5 } else { 3e-2 };
                    assert_close(&got, &want, tolerance, &format!("{engine:?} {d} wide {h} heads {side:?} {parts}"));
                }
            }
        }
    }
}
