//! Attention in the place of the GRU: learnt positions, then heads that see the whole walk.
//! The layer is [`flock_kernels::attention`].

use std::cell::RefCell;

use flock_kernels::Engine;
use flock_kernels::attention::{self, Attention, Backward, BackwardScratch, HEADS, Scratch};

use super::{PackedBackward, PackedForward, Place, Processor, ProcessorTensor, Sizes};
use crate::initialiser::Initialiser;

thread_local! {
    static FORWARD: RefCell<Scratch> = RefCell::default();
    static BACKWARD: RefCell<BackwardScratch> = RefCell::default();
}

pub(super) struct TransformerProcessor;

fn weights<'a>(tensors: &[&'a [f32]]) -> attention::Weights<'a> {
    let &[position, norm, q, k, v, out] = tensors else { panic!("a transformer has six tensors") };
    attention::Weights { position, norm, q, k, v, out }
}

fn gradients<'a>(tensors: &'a mut [&mut [f32]]) -> attention::Gradients<'a> {
    let [position, norm, q, k, v, out] = tensors else { panic!("a transformer has six tensors") };
    attention::Gradients { d_position: position, d_norm: norm, d_q: q, d_k: k, d_v: v, d_out: out }
}

impl Processor for TransformerProcessor {
    fn tensors(&self, Sizes { width: d, length }: Sizes) -> Vec<ProcessorTensor> {
        let all_heads = HEADS * d;
        let layer = |name: &str, shape: [usize; 2]| {
            let initialiser = Initialiser::Uniform { fan_in: shape[1] };
            ProcessorTensor::new(Place::AfterNorm, name, &shape, initialiser)
        };
        vec![
            ProcessorTensor::new(Place::Table, "emb_position", &[length, d], Initialiser::Normal),
            ProcessorTensor::new(Place::BeforeNorm, "attention_norm.weight", &[d], Initialiser::Ones),
            layer("attention.q.weight", [all_heads, d]),
            layer("attention.k.weight", [all_heads, d]),
            layer("attention.v.weight", [all_heads, d]),
            layer("attention.out.weight", [d, all_heads]),
        ]
    }

    fn plain(&self, x: &mut [f32], length: usize, w: &[&[f32]]) {
        attention::plain(x, length, weights(w));
    }

    fn plain_backward(&self, x: &[f32], length: usize, w: &[&[f32]], d_x: &mut [f32], d_w: &mut [&mut [f32]]) {
        attention::plain_backward(x, length, weights(w), d_x, &mut gradients(d_w));
    }

    fn pack(&self, engine: Engine, w: &[&[f32]]) -> Box<dyn PackedForward> {
        Box::new(Attention::new(engine, weights(w)))
    }

    fn pack_backward(&self, engine: Engine, w: &[&[f32]]) -> Box<dyn PackedBackward> {
        Box::new(Backward::new(engine, weights(w)))
    }
}

impl PackedForward for Attention {
    /// Nothing: the way back computes from the input.
    fn cache_width(&self) -> usize {
        0
    }

    fn run(&self, x: &mut [f32], walks: usize, _: Option<&mut [f32]>) {
        FORWARD.with_borrow_mut(|scratch| self.forward(x, walks, scratch));
    }
}

impl PackedBackward for Backward {
    fn run(&self, x: &[f32], walks: usize, _: &[f32], d_x: &mut [f32], d_w: &mut [&mut [f32]]) {
        BACKWARD.with_borrow_mut(|scratch| Backward::run(self, x, walks, d_x, &mut gradients(d_w), scratch));
    }
}
