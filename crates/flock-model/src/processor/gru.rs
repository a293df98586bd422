//! The published processor: `x += W_out [→h; ←h]`, a GRU over each walk in both directions.
//! The layer is [`flock_kernels::gru`].

use std::cell::RefCell;

use flock_kernels::Engine;
use flock_kernels::gru::{self, Backward, BackwardScratch, CACHED, Direction, DirectionGradients, Gru, Scratch};

use super::{PackedBackward, PackedForward, Place, Processor, ProcessorTensor, Sizes};
use crate::initialiser::Initialiser;

thread_local! {
    static FORWARD: RefCell<Scratch> = RefCell::default();
    static BACKWARD: RefCell<BackwardScratch> = RefCell::default();
}

pub(super) struct GruProcessor;

fn weights<'a>(tensors: &[&'a [f32]]) -> gru::Weights<'a> {
    let &[norm, a, b, c, d, e, f, g, h, out] = tensors else { panic!("a GRU has ten tensors") };
    let directions =
        [Direction { w_ih: a, w_hh: b, b_ih: c, b_hh: d }, Direction { w_ih: e, w_hh: f, b_ih: g, b_hh: h }];
    gru::Weights { norm, directions, out }
}

fn gradients<'a>(tensors: &'a mut [&mut [f32]]) -> gru::Gradients<'a> {
    let [norm, a, b, c, d, e, f, g, h, out] = tensors else { panic!("a GRU has ten tensors") };
    let d_directions = [
        DirectionGradients { d_w_ih: a, d_w_hh: b, d_b_ih: c, d_b_hh: d },
        DirectionGradients { d_w_ih: e, d_w_hh: f, d_b_ih: g, d_b_hh: h },
    ];
    gru::Gradients { d_norm: norm, d_directions, d_out: out }
}

impl Processor for GruProcessor {
    fn tensors(&self, Sizes { width: d, .. }: Sizes) -> Vec<ProcessorTensor> {
        let uniform = |fan_in| Initialiser::Uniform { fan_in };
        let mut all = vec![ProcessorTensor::new(Place::BeforeNorm, "gru_norm.weight", &[d], Initialiser::Ones)];
        for way in ["", "_reverse"] {
            for (part, shape) in [
                ("weight_ih", &[3 * d, d][..]),
                ("weight_hh", &[3 * d, d]),
                ("bias_ih", &[3 * d]),
                ("bias_hh", &[3 * d]),
            ] {
                all.push(ProcessorTensor::new(Place::AfterNorm, format!("gru.{part}_l0{way}"), shape, uniform(d)));
            }
        }
        all.push(ProcessorTensor::new(Place::AfterNorm, "gru_out.weight", &[d, 2 * d], uniform(2 * d)));
        all
    }

    fn plain(&self, x: &mut [f32], length: usize, w: &[&[f32]]) {
        gru::plain(x, length, weights(w));
    }

    fn plain_backward(&self, x: &[f32], length: usize, w: &[&[f32]], d_x: &mut [f32], d_w: &mut [&mut [f32]]) {
        gru::plain_backward(x, length, weights(w), d_x, &mut gradients(d_w));
    }

    fn pack(&self, engine: Engine, w: &[&[f32]]) -> Box<dyn PackedForward> {
        Box::new(Gru::new(engine, weights(w)))
    }

    fn pack_backward(&self, engine: Engine, w: &[&[f32]]) -> Box<dyn PackedBackward> {
        Box::new(Backward::new(engine, weights(w)))
    }
}

impl PackedForward for Gru {
    /// The gates of both directions.
    fn cache_width(&self) -> usize {
        2 * CACHED * self.width()
    }

    fn run(&self, x: &mut [f32], walks: usize, cache: Option<&mut [f32]>) {
        FORWARD.with_borrow_mut(|scratch| match cache {
            None => self.forward(x, walks, scratch),
            Some(cache) => {
                let (there, back) = cache.split_at_mut(cache.len() / 2);
                self.forward_cached(x, walks, [there, back], scratch);
            }
        });
    }
}

impl PackedBackward for Backward {
    fn run(&self, x: &[f32], walks: usize, cache: &[f32], d_x: &mut [f32], d_w: &mut [&mut [f32]]) {
        let (there, back) = cache.split_at(cache.len() / 2);
        BACKWARD.with_borrow_mut(|scratch| {
            Backward::run(self, x, walks, [there, back], d_x, &mut gradients(d_w), scratch);
        });
    }
}
