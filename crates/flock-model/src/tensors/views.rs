//! A model's tensors by layer: a tree with one `T` per tensor. `T` is a row of the table, a slice of
//! weights, or a slice of gradients; the last two turn into what the kernels take.

use flock_kernels::{consensus, head, linear, swiglu};

use crate::metadata::Averaging;

/// All tensors of a model.
#[derive(Clone, Debug)]
pub(crate) struct ModelTensors<T> {
    /// Initial states: node, type. (D) each.
    pub initial: [T; 2],
    pub updates: Vec<UpdateTensors<T>>,
    pub head: HeadTensors<T>,
    /// What a relation model makes of the query's head and tail.
    pub endpoints: Option<[LinearTensors<T>; 2]>,
}

/// The tensors of one update. Pairs are nodes, types.
#[derive(Clone, Debug)]
pub(crate) struct UpdateTensors<T> {
    /// Tables of names: (L, D) and (L + 1, D).
    pub names: [T; 2],
    /// Two tables of which only row 0 is read; published weights carry them along. (2, D)
    pub restart: T,
    pub neighbour: T,
    /// (4, D)
    pub direction: T,
    /// Tables of the two query flags, (2, D).
    pub flags: [T; 2],
    /// From states to the processor's input.
    pub from: [LinearTensors<T>; 2],
    /// The sequence processor, layer by layer.
    pub layers: Vec<LayerTensors<T>>,
    /// From the processor's output to what the consensus averages.
    pub to: [LinearTensors<T>; 2],
    /// Weights of that average, before the softmax.
    pub logit: [LinearTensors<T>; 2],
}

/// A layer of the sequence processor.
#[derive(Clone, Debug)]
pub(crate) struct LayerTensors<T> {
    /// In the order of [`Processor::tensors`](crate::processor::Processor::tensors).
    pub processor: Vec<T>,
    pub feed_forward: FeedForwardTensors<T>,
}

/// A linear layer: (N, K) and (N).
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinearTensors<T> {
    pub weight: T,
    pub bias: T,
}

/// The feed-forward of a layer.
#[derive(Clone, Debug)]
pub(crate) struct FeedForwardTensors<T> {
    pub norm: T,
    pub w1: T,
    pub w2: T,
    pub w3: T,
}

/// The scoring head.
#[derive(Clone, Debug)]
pub(crate) struct HeadTensors<T> {
    pub first: LinearTensors<T>,
    pub second: LinearTensors<T>,
    pub last: LinearTensors<T>,
}

impl<T> ModelTensors<T> {
    /// Makes a tree of the same form.
    pub fn map<U>(&self, f: &mut impl FnMut(&T) -> U) -> ModelTensors<U> {
        let HeadTensors { first, second, last } = &self.head;
        ModelTensors {
            initial: pair(&self.initial, f),
            updates: self.updates.iter().map(|update| update.map(f)).collect(),
            head: HeadTensors { first: first.map(f), second: second.map(f), last: last.map(f) },
            endpoints: self.endpoints.as_ref().map(|[head, tail]| [head.map(f), tail.map(f)]),
        }
    }
}

fn pair<T, U>([a, b]: &[T; 2], f: &mut impl FnMut(&T) -> U) -> [U; 2] {
    [f(a), f(b)]
}

fn linears<T, U>([a, b]: &[LinearTensors<T>; 2], f: &mut impl FnMut(&T) -> U) -> [LinearTensors<U>; 2] {
    [a.map(f), b.map(f)]
}

impl<T> UpdateTensors<T> {
    fn map<U>(&self, f: &mut impl FnMut(&T) -> U) -> UpdateTensors<U> {
        UpdateTensors {
            names: pair(&self.names, f),
            restart: f(&self.restart),
            neighbour: f(&self.neighbour),
            direction: f(&self.direction),
            flags: pair(&self.flags, f),
            from: linears(&self.from, f),
            layers: self.layers.iter().map(|layer| layer.map(f)).collect(),
            to: linears(&self.to, f),
            logit: linears(&self.logit, f),
        }
    }
}

impl<T> LayerTensors<T> {
    fn map<U>(&self, f: &mut impl FnMut(&T) -> U) -> LayerTensors<U> {
        let FeedForwardTensors { norm, w1, w2, w3 } = &self.feed_forward;
        LayerTensors {
            processor: self.processor.iter().map(&mut *f).collect(),
            feed_forward: FeedForwardTensors { norm: f(norm), w1: f(w1), w2: f(w2), w3: f(w3) },
        }
    }
}

impl<T> LinearTensors<T> {
    fn map<U>(&self, f: &mut impl FnMut(&T) -> U) -> LinearTensors<U> {
        LinearTensors { weight: f(&self.weight), bias: f(&self.bias) }
    }
}

impl<'a> UpdateTensors<&'a [f32]> {
    /// Adds up the rows that depend on a position's mark alone: direction, both query flags, and the
    /// rows 0 of the two tables that published weights carry along.
    pub fn marks(&self) -> Vec<f32> {
        let width = self.width();
        let mut marks = Vec::with_capacity(16 * width);
        for mark in 0..16 {
            let rows = [(self.direction, mark & 3), (self.flags[0], mark >> 2 & 1), (self.flags[1], mark >> 3)];
            for c in 0..width {
                let sum: f32 = rows.iter().map(|(t, row)| t[row * width + c]).sum();
                marks.push(sum + self.restart[c] + self.neighbour[c]);
            }
        }
        marks
    }

    /// Returns the width `D`.
    pub fn width(&self) -> usize {
        self.from[0].bias.len()
    }

    /// Returns the consensus of nodes and of types. Equal weights are the softmax of equal logits: a mean has
    /// zeros for their parameters.
    pub fn consensus(&self, averaging: Averaging) -> [consensus::Weights<'a>; 2] {
        static EQUAL: [f32; 1 << 20] = [0.0; 1 << 20]; // as many as the widest logits of a model
        [0, 1].map(|side| {
            let (to, logit) = (&self.to[side], &self.logit[side]);
            let (logit, logit_bias) = match averaging {
                Averaging::Softmax => (logit.weight, logit.bias),
                Averaging::Mean => (&EQUAL[..logit.weight.len()], &EQUAL[..logit.bias.len()]),
            };
            consensus::Weights { value: to.weight, value_bias: to.bias, logit, logit_bias }
        })
    }
}

impl UpdateTensors<&mut [f32]> {
    /// Adds the gradients of marks to those of the rows they are summed from.
    pub fn add_marks(
        &mut self,
        d_mark: &[f32], // (16, D)
    ) {
        let width = d_mark.len() / 16;
        let [first_flag, second_flag] = &mut self.flags;
        for (mark, d_mark) in d_mark.chunks_exact(width).enumerate() {
            let rows = [
                (&mut self.direction, mark & 3),
                (&mut *first_flag, mark >> 2 & 1),
                (&mut *second_flag, mark >> 3),
                (&mut self.restart, 0),
                (&mut self.neighbour, 0),
            ];
            for (table, row) in rows {
                table[row * width..][..width].iter_mut().zip(d_mark).for_each(|(t, d)| *t += d);
            }
        }
    }

    /// Returns the consensus of nodes and of types.
    pub fn consensus(&mut self) -> [consensus::Gradients<'_>; 2] {
        let ([to_node, to_type], [logit_node, logit_type]) = (&mut self.to, &mut self.logit);
        [consensus_gradients(to_node, logit_node), consensus_gradients(to_type, logit_type)]
    }
}

impl<'a> FeedForwardTensors<&'a [f32]> {
    pub fn weights(&self) -> swiglu::Weights<'a> {
        let FeedForwardTensors { norm, w1, w2, w3 } = *self;
        swiglu::Weights { norm, w1, w3, w2 }
    }
}

impl FeedForwardTensors<&mut [f32]> {
    pub fn gradients(&mut self) -> swiglu::Gradients<'_> {
        let FeedForwardTensors { norm, w1, w2, w3 } = self;
        swiglu::Gradients { d_norm: norm, d_w1: w1, d_w3: w3, d_w2: w2 }
    }
}

fn consensus_gradients<'a>(
    to: &'a mut LinearTensors<&mut [f32]>,
    logit: &'a mut LinearTensors<&mut [f32]>,
) -> consensus::Gradients<'a> {
    consensus::Gradients { d_value: to.weight, d_value_bias: to.bias, d_logit: logit.weight, d_logit_bias: logit.bias }
}

impl<'a> HeadTensors<&'a [f32]> {
    pub fn weights(&self) -> head::Weights<'a> {
        let HeadTensors { first, second, last } = self;
        head::Weights {
            w0: first.weight,
            b0: first.bias,
            w2: second.weight,
            b2: second.bias,
            w4: last.weight,
            b4: last.bias,
        }
    }
}

impl HeadTensors<&mut [f32]> {
    pub fn gradients(&mut self) -> head::Gradients<'_> {
        let HeadTensors { first, second, last } = self;
        head::Gradients {
            d_w0: first.weight,
            d_b0: first.bias,
            d_w2: second.weight,
            d_b2: second.bias,
            d_w4: last.weight,
            d_b4: last.bias,
        }
    }
}

impl LinearTensors<&[f32]> {
    fn inputs(&self) -> usize {
        self.weight.len() / self.bias.len()
    }

    /// Runs the definition.
    pub fn plain(&self, x: &[f32], y: &mut [f32]) {
        linear::plain(x, self.weight, self.bias, y, self.inputs());
    }

    /// Goes back through [`LinearTensors::plain`]: adds to `d_x` and to the layer's gradients.
    pub fn plain_backward(
        &self,
        x: &[f32],       // (P, K)
        d_y: &[f32],     // (P, N)
        d_x: &mut [f32], // (P, K)
        d: &mut LinearTensors<&mut [f32]>,
    ) {
        linear::plain_backward(x, self.weight, d_y, d_x, d.weight, d.bias, self.inputs());
    }
}
