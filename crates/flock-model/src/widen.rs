//! A wider model that answers as the narrow one does, to be trained further.
//!
//! The first `D` values of a wide state or position are those of the narrow model. The others are zero after each update, and
//! answers stay the same but for rounding, because
//!
//! - whatever adds to states and positions adds zero to their new values;
//! - new hidden units read at random, and what reads them has zeros for them;
//! - an RMSNorm divides by the mean over more values, and its weights make up for that.
//!
//! What reads the new values is random, as in a new model. So the gradient reaches the zeros, and the first step of training
//! changes them. New consensus heads have slices as wide as the old ones.

use crate::init::initial_weights;
use crate::metadata::{Metadata, ProcessorKind};
use crate::tensors::{FeedForwardTensors, LinearTensors, TensorError};
use crate::weights::Weights;

/// How an axis of a tensor grows: each of its blocks from `old` to `new` places.
#[derive(Copy, Clone)]
struct Axis {
    old: usize,
    new: usize,
    blocks: usize,
}

impl Axis {
    /// An axis that stays as it is.
    fn same(places: usize) -> Axis {
        Axis { old: places, new: places, blocks: 1 }
    }

    /// So many blocks, one after the other.
    fn blocks(self, blocks: usize) -> Axis {
        Axis { blocks, ..self }
    }

    /// Returns where a place of the wide tensor is in the narrow one, if it is there.
    fn before(self, place: usize) -> Option<usize> {
        let (block, within) = (place / self.new, place % self.new);
        (within < self.old).then_some(block * self.old + within)
    }
}

/// What the new entries of a tensor are. Rows are outputs, columns inputs.
#[derive(Copy, Clone)]
enum Fresh {
    /// Drawn as in a new model.
    Drawn,
    /// Zero.
    Zero,
    /// Zero in new rows, which add to new values of states or positions.
    ZeroOutputs,
    /// Zero in old rows, whose new columns read new hidden units.
    ZeroInputs,
}

/// Copies a tensor into a wider one, which has the entries of a new model.
fn grow(from: &[f32], to: &mut [f32], rows: Axis, columns: Axis, fresh: Fresh) {
    let (old, new) = (columns.old * columns.blocks, columns.new * columns.blocks);
    for (i, row) in to.chunks_exact_mut(new).enumerate() {
        let before = rows.before(i);
        let zero = match fresh {
            Fresh::Drawn => false,
            Fresh::Zero => true,
            Fresh::ZeroOutputs => before.is_none(),
            Fresh::ZeroInputs => before.is_some(),
        };
        for (j, value) in row.iter_mut().enumerate() {
            match (before, columns.before(j)) {
                (Some(i), Some(j)) => *value = from[i * old + j],
                _ if zero => *value = 0.0,
                _ => {}
            }
        }
    }
}

fn grow_linear(
    from: &LinearTensors<&[f32]>,
    to: &mut LinearTensors<&mut [f32]>,
    outputs: Axis,
    inputs: Axis,
    fresh: Fresh,
) {
    grow(from.weight, to.weight, outputs, inputs, fresh);
    grow(from.bias, to.bias, outputs, Axis::same(1), fresh);
}

/// Copies the weights of a norm over `width` values.
fn grow_norm(from: &[f32], to: &mut [f32], width: Axis) {
    grow(from, to, width, Axis::same(1), Fresh::Drawn);
    let scale = (width.old as f32 / width.new as f32).sqrt();
    to.iter_mut().for_each(|g| *g *= scale);
}

impl Weights {
    /// Returns a wider model whose answers are the same but for rounding. `seed` draws its new weights.
    ///
    /// # Errors
    /// A width below the model's or that is no multiple of its heads' slices, or a sequence processor that is not a GRU.
    pub fn widened(&self, width: usize, seed: u64) -> Result<Weights, TensorError> {
        let old = &self.meta;
        let bad = |field, value: String, rule| Err(TensorError::Metadata { field, value, rule });
        let slice = old.width / old.heads;
        if width < old.width || !width.is_multiple_of(slice) {
            let rule = "must be at least the model's and a multiple of the slice of one head";
            return bad("width", width.to_string(), rule);
        }
        if old.processor != ProcessorKind::Gru {
            return bad("processor", old.processor.to_string(), "must be gru for a model to be widened");
        }
        let meta = Metadata { width, heads: width / slice, ..old.clone() };
        let mut wide = initial_weights(meta, seed)?.weights;
        wide.meta.note.clone_from(&old.note);
        let d = Axis { old: old.width, new: width, blocks: 1 };
        let heads = Axis { old: old.heads, new: wide.meta.heads, blocks: 1 };
        let feed_forward = Axis { old: old.feed_forward_width(), new: wide.meta.feed_forward_width(), blocks: 1 };
        let hidden = Axis { old: old.head_width(), new: wide.meta.head_width(), blocks: 1 };

        let (from, table) = (self.views(), wide.table().clone());
        let mut to = table.views_mut(&mut wide.values);
        let rows_of = |table: &[f32]| Axis::same(table.len() / old.width);
        for (from, to) in from.initial.iter().zip(&mut to.initial) {
            grow(from, to, d, Axis::same(1), Fresh::Zero);
        }
        for (from, to) in from.updates.iter().zip(&mut to.updates) {
            let tables = from.names.iter().chain([&from.restart, &from.neighbour, &from.direction]).chain(&from.flags);
            let wide = to.names.iter_mut().chain([&mut to.restart, &mut to.neighbour, &mut to.direction]);
            for (from, to) in tables.zip(wide.chain(&mut to.flags)) {
                grow(from, to, rows_of(from), d, Fresh::Zero);
            }
            for side in 0..2 {
                grow_linear(&from.from[side], &mut to.from[side], d, d, Fresh::ZeroOutputs);
                grow_linear(&from.to[side], &mut to.to[side], d, d, Fresh::ZeroOutputs);
                grow_linear(&from.logit[side], &mut to.logit[side], heads, d, Fresh::Drawn);
            }
            for (from, to) in from.layers.iter().zip(&mut to.layers) {
                grow_gru(&from.processor, &mut to.processor, d);
                let FeedForwardTensors { norm, w1, w2, w3 } = &from.feed_forward;
                grow_norm(norm, to.feed_forward.norm, d);
                grow(w1, to.feed_forward.w1, feed_forward, d, Fresh::Drawn);
                grow(w3, to.feed_forward.w3, feed_forward, d, Fresh::Drawn);
                grow(w2, to.feed_forward.w2, d, feed_forward, Fresh::Zero);
            }
        }
        grow_linear(&from.head.first, &mut to.head.first, hidden, d, Fresh::Drawn);
        grow_linear(&from.head.second, &mut to.head.second, hidden, hidden, Fresh::ZeroInputs);
        grow_linear(&from.head.last, &mut to.head.last, Axis::same(1), hidden, Fresh::ZeroInputs);
        for (from, to) in from.endpoints.iter().flatten().zip(to.endpoints.iter_mut().flatten()) {
            grow_linear(from, to, d, d, Fresh::ZeroOutputs);
        }
        Ok(wide)
    }
}

/// Copies a GRU in both directions and its output layer. Its hidden units are as many as the width.
fn grow_gru(from: &[&[f32]], to: &mut [&mut [f32]], d: Axis) {
    let [norm, directions @ .., out] = from else { panic!("a GRU has a norm and an output layer") };
    let [to_norm, to_directions @ .., to_out] = to else { panic!("a GRU has a norm and an output layer") };
    grow_norm(norm, to_norm, d);
    let gates = d.blocks(3);
    for (from, to) in directions.chunks_exact(4).zip(to_directions.chunks_exact_mut(4)) {
        grow(from[0], to[0], gates, d, Fresh::Drawn);
        grow(from[1], to[1], gates, d, Fresh::ZeroInputs);
        grow(from[2], to[2], gates, Axis::same(1), Fresh::Drawn);
        grow(from[3], to[3], gates, Axis::same(1), Fresh::Drawn);
    }
    grow(out, to_out, d, d.blocks(2), Fresh::Zero);
}
