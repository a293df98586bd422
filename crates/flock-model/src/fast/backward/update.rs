//! One update with what its way back needs kept, and the way back. One thread: a step has as many queries as threads.

use flock_kernels::{Aligned, BLOCK, D, Engine, attention, consensus, embed, gru, linear, swiglu};

use crate::checkpoint::{Averaging, Checkpoint, Processor};
use crate::fast::gradients::UpdateGradients;
use crate::fast::update::{Kept, UpdateWeights, positions};
use crate::plain::backward::{Gradients, add, lend, linear_backward};

/// The transposed layers of one update.
pub(crate) struct UpdateBackward {
    i: usize,
    length: usize,
    from: [linear::Backward; 2],
    sequence: SequenceBackward,
    feed_forward: swiglu::Backward,
    consensus: consensus::Backward,
}

/// The transposed first half of the sequence processor.
enum SequenceBackward {
    Gru(gru::Backward),
    Attention(attention::Backward),
}

/// Buffers of the way back, kept from query to query.
#[derive(Default)]
pub(crate) struct BackwardBuffers {
    d_x: Aligned<f32>,          // (P, D)
    d_projected: [Vec<f32>; 2], // (met, D)
    gru: gru::BackwardScratch,
    attention: attention::BackwardScratch,
    feed_forward: swiglu::BackwardScratch,
    consensus: consensus::BackwardScratch,
}

impl UpdateBackward {
    /// Packs update `i`.
    pub(crate) fn new(engine: Engine, checkpoint: &Checkpoint, i: usize) -> UpdateBackward {
        let w = UpdateWeights { checkpoint, i };
        UpdateBackward {
            i,
            length: checkpoint.meta.length,
            from: ["from_node", "from_type"].map(|layer| linear::Backward::new(engine, w.at(layer, "weight"), D)),
            sequence: match checkpoint.meta.processor {
                Processor::Gru => SequenceBackward::Gru(gru::Backward::new(engine, w.gru())),
                Processor::Transformer => SequenceBackward::Attention(attention::Backward::new(engine, w.attention())),
            },
            feed_forward: swiglu::Backward::new(engine, w.feed_forward()),
            consensus: consensus::Backward::new(engine, w.consensus("node"), w.consensus("type")),
        }
    }

    /// `d_states` comes in as the gradient of the states after the update, and leaves as that of the states before: of
    /// what these walks met first it holds nothing more, that is in the gradients of the initial states.
    pub(crate) fn run(
        &self,
        checkpoint: &Checkpoint,
        kept: &Kept,
        d_states: &mut [Vec<f32>; 2], // (met, D)
        gradients: &mut Gradients,
        buffers: &mut BackwardBuffers,
    ) {
        let d_x = &mut buffers.d_x;
        d_x.resize(kept.processed.len());
        d_x.fill(0.0);
        UpdateGradients { gradients, i: self.i }.consensus(|[node, ty]| {
            self.consensus.run(
                &kept.processed,
                &kept.logits,
                [&kept.groups[0], &kept.groups[1]],
                [&d_states[0], &d_states[1]],
                d_x,
                [node, ty],
                &mut buffers.consensus,
            );
            if checkpoint.meta.consensus == Averaging::Mean {
                // The logits that stood in for equal weights are nobody's.
                for d in [node, ty] {
                    d.d_logit.fill(0.0);
                    d.d_logit_bias.fill(0.0);
                }
            }
        });
        self.process_back(kept, gradients, buffers);
        let BackwardBuffers { d_x, d_projected, .. } = buffers;
        self.embed_back(checkpoint, kept, d_x, d_projected, [d_states[0].len(), d_states[1].len()], gradients);

        for (s, name) in ["node", "type"].into_iter().enumerate() {
            self.project_back(checkpoint, s, name, kept, &d_projected[s], &mut d_states[s], gradients);
        }
    }

    /// Through the feed-forward and what comes before it.
    fn process_back(&self, kept: &Kept, gradients: &mut Gradients, buffers: &mut BackwardBuffers) {
        let BackwardBuffers { d_x, gru: gru_scratch, attention: attention_scratch, feed_forward, .. } = buffers;
        let mut gradients = UpdateGradients { gradients, i: self.i };
        gradients.feed_forward(|d_w| self.feed_forward.run(&kept.sequenced, &kept.factors, d_x, d_w, feed_forward));
        let step = BLOCK * self.length;
        let blocks = d_x.chunks_mut(step * D).enumerate().map(|(b, d_x)| {
            let (from, to) = (b * step, b * step + d_x.len() / D);
            (from..to, (to - from) / self.length, d_x)
        });
        match &self.sequence {
            SequenceBackward::Gru(gru) => gradients.gru(|d_w| {
                for (rows, walks, d_x) in blocks {
                    let x = &kept.embedded[rows.start * D..rows.end * D];
                    let gates = kept.gates.each_ref().map(|g| &g[rows.start * gru::CACHED..rows.end * gru::CACHED]);
                    gru.run(x, walks, gates, d_x, d_w, gru_scratch);
                }
            }),
            SequenceBackward::Attention(attention) => gradients.attention(|d_w| {
                for (rows, walks, d_x) in blocks {
                    let x = &kept.embedded[rows.start * D..rows.end * D];
                    attention.run(x, walks, d_x, d_w, attention_scratch);
                }
            }),
        }
    }

    /// Into the embedding tables and the projected states.
    fn embed_back(
        &self,
        checkpoint: &Checkpoint,
        kept: &Kept,
        d_x: &[f32],
        d_projected: &mut [Vec<f32>; 2],
        met: [usize; 2], // values, not rows
        gradients: &mut Gradients,
    ) {
        let mut d_mark = vec![0.0; 16 * D];
        for (d, len) in d_projected.iter_mut().zip(met) {
            d.clear();
            d.resize(len, 0.0);
        }
        let [d_nodes, d_types] = d_projected;
        let mut update = UpdateGradients { gradients, i: self.i };
        update.names(|d_node_name, d_type_name| {
            let mut d = embed::Gradients { d_node_name, d_type_name, d_mark: &mut d_mark, d_nodes, d_types };
            let step = BLOCK * self.length;
            for (b, d_x) in d_x.chunks(step * D).enumerate() {
                let count = d_x.len() / D;
                let here = positions(&kept.records).slice(b * step, b * step + count);
                embed::plain_backward(here, count / self.length, d_x, &mut d);
            }
        });
        update.add_marks(&checkpoint.meta, &d_mark);
    }

    /// Through `from_node` or `from_type` into the states before the update.
    fn project_back(
        &self,
        checkpoint: &Checkpoint,
        s: usize,
        name: &str,
        kept: &Kept,
        d_projected: &[f32],
        d_states: &mut Vec<f32>,
        gradients: &mut Gradients,
    ) {
        let known = kept.known[s];
        let ids = kept.groups[s].ids();
        let occurs = ids.partition_point(|g| (*g as usize) < known);
        let gather = |from: &[f32]| -> Vec<f32> {
            ids[..occurs].iter().flat_map(|g| from[*g as usize * D..][..D].iter().copied()).collect()
        };
        let (x, d_y) = (gather(&kept.states[s]), gather(d_projected));
        let mut d_x = vec![0.0; x.len()];
        UpdateGradients { gradients, i: self.i }
            .linear(&format!("from_{name}"), |d_w, d_b| self.from[s].run(&x, &d_y, &mut d_x, d_w, d_b));
        for (g, d_x) in ids[..occurs].iter().zip(d_x.chunks_exact(D)) {
            add(&mut d_states[*g as usize * D..][..D], d_x);
        }
        // What was met for the first time had the initial state, and its projection: their gradients go there.
        let (mut d_initial, mut d_first) = (vec![0.0; D], vec![0.0; D]);
        d_projected[known * D..].chunks_exact(D).for_each(|d| add(&mut d_first, d));
        d_states[known * D..].chunks_exact(D).for_each(|d| add(&mut d_initial, d));
        d_states.truncate(known * D);
        let init = format!("{name}_init");
        let initial = &checkpoint.tensors[&init].data;
        let layer = format!("from_{name}.{}", self.i);
        linear_backward(checkpoint, &layer, initial, &d_first, &mut d_initial, gradients);
        lend(gradients, [&init], |[d]| add(d, &d_initial));
    }
}
