//! The way back through one update. One thread: a step has as many queries as threads.

use flock_kernels::{AlignedVec, BLOCK, Engine, consensus, embed, linear, swiglu};

use crate::fast::update::{LayerCache, UpdateCache, positions};
use crate::metadata::{Averaging, Metadata};
use crate::plain::add;
use crate::processor::PackedBackward;
use crate::tensors::{LayerTensors, LinearTensors, UpdateTensors};

/// The transposed layers of one update.
pub(super) struct UpdateBackward {
    length: usize,
    width: usize,
    averaging: Averaging,
    from: [linear::Backward; 2],
    layers: Vec<LayerBackward>,
    consensus: consensus::Backward,
}

/// A layer of the sequence processor.
struct LayerBackward {
    processor: Box<dyn PackedBackward>,
    feed_forward: swiglu::Backward,
}

/// Buffers of the way back, kept from query to query.
#[derive(Default)]
pub(super) struct BackwardBuffers {
    d_x: AlignedVec<f32>,       // (P, D)
    d_projected: [Vec<f32>; 2], // (met, D)
    feed_forward: swiglu::BackwardScratch,
    consensus: consensus::BackwardScratch,
}

impl UpdateBackward {
    /// Packs an update.
    pub(super) fn new(engine: Engine, meta: &Metadata, w: &UpdateTensors<&[f32]>) -> UpdateBackward {
        let [node, ty] = w.consensus(meta.consensus);
        let layer = |w: &LayerTensors<&[f32]>| LayerBackward {
            processor: meta.processor.processor().pack_backward(engine, &w.processor),
            feed_forward: swiglu::Backward::new(engine, w.feed_forward.weights()),
        };
        UpdateBackward {
            length: meta.length,
            width: meta.width,
            averaging: meta.consensus,
            from: w.from.map(|layer| linear::Backward::new(engine, layer.weight, meta.width)),
            layers: w.layers.iter().map(layer).collect(),
            consensus: consensus::Backward::new(engine, node, ty),
        }
    }

    /// Goes back through the update. `d_states` comes in as the gradient of the states after it, and
    /// leaves as that of the states before: of what these walks met first it holds nothing more, that is
    /// in the gradients of the initial states.
    pub(super) fn run(
        &self,
        w: &UpdateTensors<&[f32]>,
        initial: &[&[f32]; 2],
        cache: &UpdateCache,
        d_states: &mut [Vec<f32>; 2], // (met, D)
        d: &mut UpdateTensors<&mut [f32]>,
        d_initial: &mut [&mut [f32]; 2],
        buffers: &mut BackwardBuffers,
    ) {
        let BackwardBuffers { d_x, d_projected, feed_forward, consensus } = buffers;
        d_x.resize(cache.processed.len());
        d_x.fill(0.0);
        self.pool_back(cache, d_states, d_x, d, consensus);
        for ((layer, d), cache) in self.layers.iter().zip(&mut d.layers).zip(&cache.layers).rev() {
            let d_feed_forward = &mut d.feed_forward.gradients();
            layer.feed_forward.run(&cache.sequenced, &cache.factors, d_x, d_feed_forward, feed_forward);
            self.process_back(layer, cache, d_x, &mut d.processor);
        }
        self.embed_back(cache, d_x, d_projected, [d_states[0].len(), d_states[1].len()], d);
        for s in 0..2 {
            let side =
                FromLayer { layer: &w.from[s], d_layer: &mut d.from[s], initial: initial[s], d_initial: d_initial[s] };
            self.project_back(s, side, cache, &d_projected[s], &mut d_states[s]);
        }
    }

    /// Through the consensus.
    fn pool_back(
        &self,
        cache: &UpdateCache,
        d_states: &[Vec<f32>; 2],
        d_x: &mut [f32],
        d: &mut UpdateTensors<&mut [f32]>,
        scratch: &mut consensus::BackwardScratch,
    ) {
        let [mut node, mut ty] = d.consensus();
        self.consensus.run(
            &cache.processed,
            &cache.logits,
            [&cache.groups[0], &cache.groups[1]],
            [&d_states[0], &d_states[1]],
            d_x,
            [&mut node, &mut ty],
            scratch,
        );
        if self.averaging == Averaging::Mean {
            // The logits that stood in for equal weights are nobody's.
            for d in [node, ty] {
                d.d_logit.fill(0.0);
                d.d_logit_bias.fill(0.0);
            }
        }
    }

    /// Through the sequence processor, block by block.
    fn process_back(&self, layer: &LayerBackward, cache: &LayerCache, d_x: &mut [f32], d_processor: &mut [&mut [f32]]) {
        let (step, width) = (BLOCK * self.length, self.width);
        for (b, d_x) in d_x.chunks_mut(step * width).enumerate() {
            let (from, to) = (b * step, b * step + d_x.len() / width);
            let x = &cache.embedded[from * width..to * width];
            let kept = &cache.processor[from * cache.kept..to * cache.kept];
            layer.processor.run(x, (to - from) / self.length, kept, d_x, d_processor);
        }
    }

    /// Into the embedding tables and the projected states.
    fn embed_back(
        &self,
        cache: &UpdateCache,
        d_x: &[f32],
        d_projected: &mut [Vec<f32>; 2],
        met: [usize; 2], // values, not rows
        d: &mut UpdateTensors<&mut [f32]>,
    ) {
        let width = self.width;
        let mut d_mark = vec![0.0; 16 * width];
        for (d, len) in d_projected.iter_mut().zip(met) {
            d.clear();
            d.resize(len, 0.0);
        }
        let ([d_nodes, d_types], [d_node_name, d_type_name]) = (d_projected, &mut d.names);
        let mut tables = embed::Gradients { d_node_name, d_type_name, d_mark: &mut d_mark, d_nodes, d_types };
        let step = BLOCK * self.length;
        for (b, d_x) in d_x.chunks(step * width).enumerate() {
            let count = d_x.len() / width;
            let here = positions(&cache.records).slice(b * step, b * step + count);
            embed::plain_backward(here, count / self.length, d_x, &mut tables);
        }
        d.add_marks(&d_mark);
    }

    /// Through `from` into the states before the update.
    fn project_back(
        &self,
        s: usize,
        side: FromLayer<'_, '_>,
        cache: &UpdateCache,
        d_projected: &[f32],
        d_states: &mut Vec<f32>,
    ) {
        let FromLayer { layer, d_layer, initial, d_initial } = side;
        let (known, width) = (cache.known[s], self.width);
        let ids = cache.groups[s].ids();
        let occurs = ids.partition_point(|g| (*g as usize) < known);
        let gather = |from: &[f32]| {
            let mut rows = Vec::with_capacity(occurs * width);
            ids[..occurs].iter().for_each(|g| rows.extend_from_slice(&from[*g as usize * width..][..width]));
            rows
        };
        let (x, d_y) = (gather(&cache.states[s]), gather(d_projected));
        let mut d_x = vec![0.0; x.len()];
        self.from[s].run(&x, &d_y, &mut d_x, d_layer.weight, d_layer.bias);
        for (g, d_x) in ids[..occurs].iter().zip(d_x.chunks_exact(width)) {
            add(&mut d_states[*g as usize * width..][..width], d_x);
        }
        // What was met for the first time had the initial state, and its projection: their gradients go there.
        let (mut d_met, mut d_first) = (vec![0.0; width], vec![0.0; width]);
        d_projected[known * width..].chunks_exact(width).for_each(|d| add(&mut d_first, d));
        d_states[known * width..].chunks_exact(width).for_each(|d| add(&mut d_met, d));
        d_states.truncate(known * width);
        layer.plain_backward(initial, &d_first, &mut d_met, d_layer);
        add(d_initial, &d_met);
    }
}

/// The layer from states to the processor's input, and the initial state: of nodes or of types.
struct FromLayer<'a, 'g> {
    layer: &'a LinearTensors<&'a [f32]>,
    d_layer: &'a mut LinearTensors<&'g mut [f32]>,
    initial: &'a [f32],
    d_initial: &'a mut [f32],
}
