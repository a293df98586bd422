//! The input of the sequence processor: each position is a sum of embedding rows,
//! `x = E_node[name] + E_type[name] + E_mark[mark] + N[node] + T[type]`.
//!
//! `mark` packs the direction and both query flags: 16 combinations. Their rows, and the constant
//! rows of published weights, are added up once per model. `N` and `T` are the projected states
//! `from_node(v)` and `from_type(r)`, with one row per node and per type of the query.

use crate::simd::{Engine, Mac, Vector, prefetch_row};
use crate::width::WidthKernel;
use crate::{AlignedVec, BLOCK, has_width};

/// The positions of recorded walks, as row numbers of the embedding tables and of the states.
///
/// All five slices have one entry per position, in the order (W, L): all positions of the first
/// walk, then those of the second, and so on. This is a borrowed view and cheap to copy. Whoever
/// records walks owns the vectors.
///
/// ```
/// use flock_kernels::embed::Positions;
///
/// // Two walks of three positions.
/// let positions = Positions {
///     node_name: &[0, 1, 0, 0, 1, 2],
///     type_name: &[3, 0, 0, 3, 0, 1],
///     mark: &[7, 0, 5, 3, 1, 0],
///     node: &[0, 4, 0, 2, 4, 1],
///     ty: &[0, 1, 1, 0, 1, 2],
/// };
/// let second = positions.slice(3, 6);
/// assert_eq!((positions.len(), second.len()), (6, 3));
/// assert_eq!((second.node, second.mark), (&[2, 4, 1][..], &[3, 1, 0][..]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Positions<'a> {
    /// Row of `E_node`: the node's name, counted in the order of first visit in the walk.
    pub node_name: &'a [u16],
    /// Row of `E_type`: the type's name, counted in the order of first appearance in the walk. `L`
    /// means "no type".
    pub type_name: &'a [u16],
    /// Row of `E_mark`: the direction (0 to 3), plus 4 for the first query flag and 8 for the
    /// second.
    pub mark: &'a [u8],
    /// Row of `N`: the id of the node. The fast model numbers nodes within a query (local ids), the
    /// plain model uses the ids of the graph.
    pub node: &'a [u32],
    /// Row of `T`: the id of the type, numbered in the same way.
    pub ty: &'a [u32],
}

impl<'a> Positions<'a> {
    /// Returns the number of positions, W · L.
    pub fn len(&self) -> usize {
        self.node.len()
    }

    /// Tells whether there are no positions.
    pub fn is_empty(&self) -> bool {
        self.node.is_empty()
    }

    /// Returns the positions `from..to`.
    ///
    /// # Panics
    /// If some slice is shorter than `to`.
    pub fn slice(&self, from: usize, to: usize) -> Positions<'a> {
        Positions {
            node_name: &self.node_name[from..to],
            type_name: &self.type_name[from..to],
            mark: &self.mark[from..to],
            node: &self.node[from..to],
            ty: &self.ty[from..to],
        }
    }
}

/// Counts the walks in the block of walk `w`, among `walks` in all. The last block may be short.
pub fn block_width(w: usize, walks: usize) -> usize {
    BLOCK.min(walks - w / BLOCK * BLOCK)
}

/// Returns the row of position `t` of walk `w`, among `walks` walks of `length` positions. Walks
/// come in blocks of [`BLOCK`]. Within a block rows are time-major: first position 0 of all its
/// walks, then position 1, and so on.
pub fn row_of(w: usize, t: usize, walks: usize, length: usize) -> usize {
    let first = w / BLOCK * BLOCK;
    first * length + t * block_width(w, walks) + (w - first)
}

/// Rows of the table of marks.
const MARKS: usize = 16;

/// The embedding tables of one update.
pub struct Embed {
    engine: Engine,
    width: usize,
    node_name: AlignedVec<f32>, // (L, D)
    type_name: AlignedVec<f32>, // (L + 1, D)
    mark: AlignedVec<f32>,      // (16, D)
}

/// Gradients of the tables and states that [`Embed::plain`] reads.
pub struct Gradients<'a> {
    /// (L, D)
    pub d_node_name: &'a mut [f32],
    /// (L + 1, D)
    pub d_type_name: &'a mut [f32],
    /// (16, D)
    pub d_mark: &'a mut [f32],
    /// Gradient of the projected node states, (N, D).
    pub d_nodes: &'a mut [f32],
    /// Gradient of the projected type states, (T, D).
    pub d_types: &'a mut [f32],
}

/// Adds the gradients of [`Embed::plain`]. Each row of a table gets the gradients of the positions
/// that read it, in the order of the positions.
pub fn plain_backward(
    positions: Positions<'_>, // (walks, L)
    walks: usize,
    d_x: &[f32], // (L, walks, D)
    d: &mut Gradients<'_>,
) {
    let length = positions.node.len() / walks;
    let width = d.d_mark.len() / MARKS;
    for p in 0..walks * length {
        let row = p % length * walks + p / length;
        let d_x = &d_x[row * width..][..width];
        let rows = [
            (&mut *d.d_node_name, positions.node_name[p] as usize),
            (&mut *d.d_type_name, positions.type_name[p] as usize),
            (&mut *d.d_mark, positions.mark[p] as usize),
            (&mut *d.d_nodes, positions.node[p] as usize),
            (&mut *d.d_types, positions.ty[p] as usize),
        ];
        for (table, at) in rows {
            add_row(&mut table[at * width..][..width], d_x);
        }
    }
}

/// Adds a row to a row, in pieces of constant length: training spends a few percent of its time here.
fn add_row(to: &mut [f32], from: &[f32]) {
    let ((to, to_end), (from, from_end)) = (to.as_chunks_mut::<16>(), from.as_chunks::<16>());
    for (to, from) in to.iter_mut().zip(from) {
        for c in 0..16 {
            to[c] += from[c];
        }
    }
    to_end.iter_mut().zip(from_end).for_each(|(t, f)| *t += f);
}

impl Embed {
    /// Copies the tables. Their width is one of [`WIDTHS`](crate::WIDTHS).
    pub fn new(engine: Engine, node_name: &[f32], type_name: &[f32], mark: &[f32]) -> Embed {
        let width = mark.len() / MARKS;
        assert!(has_width(width) && mark.len() == MARKS * width);
        Embed {
            engine,
            width,
            node_name: AlignedVec::from_slice(node_name),
            type_name: AlignedVec::from_slice(type_name),
            mark: AlignedVec::from_slice(mark),
        }
    }

    /// Checks all lengths and row numbers once, because [`Embed::forward`] reads without bounds checks. Returns `L`.
    fn check(&self, positions: Positions<'_>, nodes: &[f32], types: &[f32], walks: usize, x: &[f32]) -> usize {
        let (p, width) = (positions.node.len(), self.width);
        assert!(walks > 0 && p.is_multiple_of(walks) && x.len() == p * width);
        let Positions { node_name, type_name, mark, ty, node } = positions;
        assert!([node_name.len(), type_name.len(), mark.len(), ty.len()] == [p; 4]);
        let below = |rows: &[u16], table: &[f32]| rows.iter().all(|&r| (r as usize) < table.len() / width);
        assert!(below(node_name, &self.node_name) && below(type_name, &self.type_name));
        let below = |rows: &[u32], table: &[f32]| rows.iter().all(|&r| (r as usize) < table.len() / width);
        assert!(below(node, nodes) && below(ty, types) && mark.iter().all(|m| (*m as usize) < MARKS));
        p / walks
    }

    /// Embeds one block. Positions come in walk-major and rows go out time-major. This loop is the
    /// definition.
    pub fn plain(&self, positions: Positions<'_>, nodes: &[f32], types: &[f32], walks: usize, x: &mut [f32]) {
        let length = self.check(positions, nodes, types, walks, x);
        let d = self.width;
        for p in 0..walks * length {
            let row = p % length * walks + p / length;
            for c in 0..d {
                x[row * d + c] = self.node_name[positions.node_name[p] as usize * d + c]
                    + self.type_name[positions.type_name[p] as usize * d + c]
                    + self.mark[positions.mark[p] as usize * d + c]
                    + nodes[positions.node[p] as usize * d + c]
                    + types[positions.ty[p] as usize * d + c];
            }
        }
    }

    /// Does the same as [`Embed::plain`] with SIMD.
    pub fn forward(
        &self,
        positions: Positions<'_>, // (walks, L)
        nodes: &[f32],            // (nodes, D)
        types: &[f32],            // (types, D)
        walks: usize,
        x: &mut [f32], // (L, walks, D)
    ) {
        let length = self.check(positions, nodes, types, walks, x);
        self.engine.run_at(self.width, ForwardKernel { tables: self, positions, nodes, types, walks, length, x });
    }
}

struct ForwardKernel<'a> {
    tables: &'a Embed,
    positions: Positions<'a>,
    nodes: &'a [f32],
    types: &'a [f32],
    walks: usize,
    length: usize,
    x: &'a mut [f32],
}

impl WidthKernel for ForwardKernel<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<M: Mac, const D: usize, const C: usize>(self) {
        let ForwardKernel { tables, positions, nodes, types, walks, length, x } = self;
        for p in 0..walks * length {
            let row = p % length * walks + p / length;
            // The projected states of a large query do not fit in the near caches, so ask for a row
            // a few positions ahead.
            if let Some(&node) = positions.node.get(p + 8) {
                prefetch_row::<D>(nodes.as_ptr().wrapping_add(node as usize * D));
            }
            // SAFETY: `check` has compared every row number with its table and `x` with the positions.
            unsafe {
                let at = |table: &[f32], r: usize| table.as_ptr().add(r * D);
                let rows = [
                    at(&tables.node_name, *positions.node_name.get_unchecked(p) as usize),
                    at(&tables.type_name, *positions.type_name.get_unchecked(p) as usize),
                    at(&tables.mark, *positions.mark.get_unchecked(p) as usize),
                    at(nodes, *positions.node.get_unchecked(p) as usize),
                    at(types, *positions.ty.get_unchecked(p) as usize),
                ];
                for c in (0..D).step_by(M::V::LANES) {
                    let mut sum = M::V::load(rows[0].add(c));
                    for r in &rows[1..] {
                        sum = sum.add(M::V::load(r.add(c)));
                    }
                    sum.store(x.as_mut_ptr().add(row * D + c));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, engines, noise, widths};

    #[test]
    fn fast_equals_plain_and_rows_are_a_permutation() {
        let (walks, length) = (7, 5);
        let ids = |seed: u64, m: u32| -> Vec<u32> {
            noise(seed, walks * length, 1.0).iter().map(|v| (v.abs() * 1e4) as u32 % m).collect()
        };
        let small = |v: Vec<u32>| -> Vec<u16> { v.into_iter().map(|x| x as u16).collect() };
        let (nn, tn, node, ty) = (small(ids(1, 5)), small(ids(2, 6)), ids(3, 20), ids(4, 9));
        let mark: Vec<u8> = ids(5, 16).into_iter().map(|x| x as u8).collect();
        let positions = Positions { node_name: &nn, type_name: &tn, mark: &mark, node: &node, ty: &ty };
        for (d, engine) in widths().into_iter().flat_map(|d| engines().into_iter().map(move |e| (d, e))) {
            let (nodes, types) = (noise(6, 20 * d, 1.0), noise(7, 9 * d, 1.0));
            let embed = Embed::new(engine, &noise(8, 5 * d, 1.0), &noise(9, 6 * d, 1.0), &noise(10, 16 * d, 1.0));
            let (mut want, mut got) = (vec![0.0; walks * length * d], vec![0.0; walks * length * d]);
            embed.plain(positions, &nodes, &types, walks, &mut want);
            embed.forward(positions, &nodes, &types, walks, &mut got);
            assert_close(&got, &want, 1e-6, &format!("{engine:?} width {d}"));
        }
        let mut seen: Vec<usize> = (0..31).flat_map(|w| (0..4).map(move |t| row_of(w, t, 31, 4))).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..124).collect::<Vec<_>>());
    }
}
