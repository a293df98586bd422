//! One update with what its way back needs kept, and the way back. One thread: a step has as many queries as threads.

use flock_kernels::embed::{self, Positions};
use flock_kernels::{gru, linear, swiglu};

use super::*;
use crate::plain_gradient::{Gradients, add, lend, linear_backward, marks_backward};

/// What an update keeps for the way back, `P` rows time-major in blocks.
#[derive(Default)]
pub struct Kept {
    records: Records,
    known: [usize; 2],     // nodes and types met before these walks
    states: [Vec<f32>; 2], // their states before the update, (known, D)
    groups: [Groups; 2],
    embedded: Aligned<f32>,   // (P, D), the GRU's input
    gates: [Aligned<f32>; 2], // (P, gru::CACHED)
    sequenced: Aligned<f32>,  // (P, D), the feed-forward's input
    factors: Aligned<f32>,    // (P, 2F), the feed-forward's factors
    processed: Aligned<f32>,  // (P, D), the consensus' input
    logits: Aligned<f32>,     // (P, LOGITS)
}

impl Update {
    /// As [`Update::run`], keeping what the way back needs. The records are taken over.
    pub(crate) fn run_kept(
        &self,
        records: &mut Records, // (W, L)
        met: [usize; 2],
        states: &mut States,
        work: &mut Workspace,
        kept: &mut Kept,
    ) {
        let known = [states.nodes.len() / D, states.types.len() / D];
        kept.known = known;
        for (s, state) in [&states.nodes, &states.types].into_iter().enumerate() {
            kept.states[s].clear();
            kept.states[s].extend_from_slice(state);
            let ids = if s == 0 { &records.node } else { &records.ty };
            work.groups[s].build(met[s], ids, self.length);
            let (projected, rows, list) = (&mut work.projected[s], &mut work.rows, &mut work.list);
            self.sides[s].project(state, met[s], &work.groups[s], projected, rows, list, Team::Solo);
        }
        self.process_kept(records, work, kept);
        for s in 0..2 {
            let state = if s == 0 { &mut states.nodes } else { &mut states.types };
            self.pool(s, met[s], &Wanted::All, state, work, Team::Solo);
        }
        std::mem::swap(&mut kept.records, records);
        std::mem::swap(&mut kept.groups, &mut work.groups);
        std::mem::swap(&mut kept.processed, &mut work.x);
        std::mem::swap(&mut kept.logits, &mut work.logits);
    }

    /// The sequence processor, keeping what each layer was given.
    fn process_kept(&self, records: &Records, work: &mut Workspace, kept: &mut Kept) {
        let rows = records.node.len();
        let positions = positions(records);
        work.x.resize(rows * D);
        work.logits.resize(rows * LOGITS);
        kept.embedded.resize(rows * D);
        kept.sequenced.resize(rows * D);
        kept.factors.resize(rows * 2 * F);
        for gates in &mut kept.gates {
            gates.resize(rows * gru::CACHED);
        }
        let step = BLOCK * self.length;
        SCRATCH.with_borrow_mut(|scratch| {
            for (b, x) in work.x.chunks_mut(step * D).enumerate() {
                let (from, count) = (b * step, x.len() / D);
                let here = from..from + count;
                let walks = count / self.length;
                let (nodes, types) = (&work.projected[0], &work.projected[1]);
                self.embed.forward(positions.slice(here.start, here.end), nodes, types, walks, x);
                kept.embedded[here.start * D..here.end * D].copy_from_slice(x);
                let [a, b] = &mut kept.gates;
                let of = here.start * gru::CACHED..here.end * gru::CACHED;
                self.gru.forward_cached(x, walks, [&mut a[of.clone()], &mut b[of]], &mut scratch.gru);
                kept.sequenced[here.start * D..here.end * D].copy_from_slice(x);
                let factors = &mut kept.factors[here.start * 2 * F..here.end * 2 * F];
                self.feed_forward.forward_cached(x, factors, &mut scratch.feed_forward);
            }
        });
        self.consensus.logits(&work.x, &mut work.logits);
    }
}

fn positions(records: &Records) -> Positions<'_> {
    Positions {
        node_name: &records.node_name,
        type_name: &records.type_name,
        mark: &records.mark,
        node: &records.node,
        ty: &records.ty,
    }
}

/// The transposed layers of one update.
pub(crate) struct UpdateBackward {
    i: usize,
    length: usize,
    from: [linear::Backward; 2],
    gru: gru::Backward,
    feed_forward: swiglu::Backward,
    consensus: consensus::Backward,
}

/// Buffers of the way back, kept from query to query.
#[derive(Default)]
pub(crate) struct BackwardBuffers {
    d_x: Aligned<f32>,          // (P, D)
    d_projected: [Vec<f32>; 2], // (met, D)
    gru: gru::BackwardScratch,
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
            gru: gru::Backward::new(engine, w.gru()),
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
        let i = self.i;
        let BackwardBuffers { d_x, d_projected, gru, feed_forward, consensus } = buffers;
        d_x.resize(kept.processed.len());
        d_x.fill(0.0);

        let names = ["to_node", "node_logit", "to_type", "type_logit"]
            .map(|layer| ["weight", "bias"].map(|part| format!("{layer}.{i}.{part}")))
            .concat();
        lend(gradients, std::array::from_fn::<_, 8, _>(|n| &names[n][..]), |[a, b, c, d, e, f, g, h]| {
            let mut node = consensus::Gradients { d_value: a, d_value_bias: b, d_logit: c, d_logit_bias: d };
            let mut ty = consensus::Gradients { d_value: e, d_value_bias: f, d_logit: g, d_logit_bias: h };
            self.consensus.run(
                &kept.processed,
                &kept.logits,
                [&kept.groups[0], &kept.groups[1]],
                [&d_states[0], &d_states[1]],
                d_x,
                [&mut node, &mut ty],
                consensus,
            );
        });
        self.process_back(kept, d_x, gradients, gru, feed_forward);
        self.embed_back(checkpoint, kept, d_x, d_projected, [d_states[0].len(), d_states[1].len()], gradients);

        for (s, name) in ["node", "type"].into_iter().enumerate() {
            self.project_back(checkpoint, s, name, kept, &d_projected[s], &mut d_states[s], gradients);
        }
    }

    /// Through the feed-forward and the GRU.
    fn process_back(
        &self,
        kept: &Kept,
        d_x: &mut [f32],
        gradients: &mut Gradients,
        gru_scratch: &mut gru::BackwardScratch,
        feed_forward_scratch: &mut swiglu::BackwardScratch,
    ) {
        let net = |part: &str| format!("net.{}.{part}", self.i);
        let names = ["ffn_norm", "feed_forward.w1", "feed_forward.w3", "feed_forward.w2"].map(|n| net(n) + ".weight");
        lend(gradients, names.each_ref().map(|n| &n[..]), |[d_norm, d_w1, d_w3, d_w2]| {
            let mut d_w = swiglu::Gradients { d_norm, d_w1, d_w3, d_w2 };
            self.feed_forward.run(&kept.sequenced, &kept.factors, d_x, &mut d_w, feed_forward_scratch);
        });
        let parts = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"];
        let [a, b, c, d] = parts.map(|n| net(&format!("gru.{n}")));
        let [e, f, g, h] = parts.map(|n| net(&format!("gru.{n}_reverse")));
        let names = [net("gru_norm.weight"), a, b, c, d, e, f, g, h, net("gru_out.weight")];
        lend(gradients, names.each_ref().map(|n| &n[..]), |[d_norm, a, b, c, d, e, f, g, h, d_out]| {
            let d_directions = [
                gru::DirectionGradients { d_w_ih: a, d_w_hh: b, d_b_ih: c, d_b_hh: d },
                gru::DirectionGradients { d_w_ih: e, d_w_hh: f, d_b_ih: g, d_b_hh: h },
            ];
            let mut d_w = gru::Gradients { d_norm, d_directions, d_out };
            let step = BLOCK * self.length;
            for (b, d_x) in d_x.chunks_mut(step * D).enumerate() {
                let (from, to) = (b * step, b * step + d_x.len() / D);
                let walks = (to - from) / self.length;
                let x = &kept.embedded[from * D..to * D];
                let gates = kept.gates.each_ref().map(|g| &g[from * gru::CACHED..to * gru::CACHED]);
                self.gru.run(x, walks, gates, d_x, &mut d_w, gru_scratch);
            }
        });
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
        let tables = ["emb_anon_node", "emb_anon_type"].map(|n| format!("{n}.{}.weight", self.i));
        lend(gradients, tables.each_ref().map(|n| &n[..]), |[d_node_name, d_type_name]| {
            let mut d = embed::Gradients { d_node_name, d_type_name, d_mark: &mut d_mark, d_nodes, d_types };
            let step = BLOCK * self.length;
            for (b, d_x) in d_x.chunks(step * D).enumerate() {
                let count = d_x.len() / D;
                let here = positions(&kept.records).slice(b * step, b * step + count);
                embed::plain_backward(here, count / self.length, d_x, &mut d);
            }
        });
        marks_backward(checkpoint, self.i, &d_mark, gradients);
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
        let layer = format!("from_{name}.{}", self.i);
        let names = ["weight", "bias"].map(|part| format!("{layer}.{part}"));
        lend(gradients, names.each_ref().map(|n| &n[..]), |[d_w, d_b]| self.from[s].run(&x, &d_y, &mut d_x, d_w, d_b));
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
        linear_backward(checkpoint, &layer, initial, &d_first, &mut d_initial, gradients);
        lend(gradients, [&init], |[d]| add(d, &d_initial));
    }
}
