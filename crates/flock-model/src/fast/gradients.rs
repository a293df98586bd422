//! The gradients of one update, lent out under the names of its layers; beside [`UpdateWeights`](crate::fast::update::UpdateWeights).

use flock_kernels::{D, attention, consensus, gru, swiglu};

use crate::checkpoint::Metadata;
use crate::plain::backward::{Gradients, add, lend};

/// The gradients of update `i`.
pub(crate) struct UpdateGradients<'a> {
    pub gradients: &'a mut Gradients,
    pub i: usize,
}

impl UpdateGradients<'_> {
    fn lend<const N: usize>(&mut self, names: [String; N], work: impl FnOnce([&mut [f32]; N])) {
        lend(self.gradients, names.each_ref().map(|n| &n[..]), work);
    }

    /// Tensor `layer.i.part` for both parts of a linear layer.
    pub fn linear(&mut self, layer: &str, work: impl FnOnce(&mut [f32], &mut [f32])) {
        let names = ["weight", "bias"].map(|part| format!("{layer}.{}.{part}", self.i));
        self.lend(names, |[d_w, d_b]| work(d_w, d_b));
    }

    /// The tables of names: of nodes, and of types.
    pub fn names(&mut self, work: impl FnOnce(&mut [f32], &mut [f32])) {
        let names = ["emb_anon_node", "emb_anon_type"].map(|table| format!("{table}.{}.weight", self.i));
        self.lend(names, |[d_node, d_type]| work(d_node, d_type));
    }

    /// A mark is a direction, two flags, and the rows 0 of the two tables that published weights carry along.
    pub fn add_marks(
        &mut self,
        meta: &Metadata,
        d_mark: &[f32], // (16, D)
    ) {
        let flags = meta.flag_tables();
        for (mark, d_mark) in d_mark.chunks_exact(D).enumerate() {
            let rows = [
                ("emb_direction", mark & 3),
                (flags[0], mark >> 2 & 1),
                (flags[1], mark >> 3),
                ("emb_restart", 0),
                ("emb_neighbor", 0),
            ];
            for (table, row) in rows {
                self.lend([format!("{table}.{}.weight", self.i)], |[d]| add(&mut d[row * D..][..D], d_mark));
            }
        }
    }

    pub fn gru(&mut self, work: impl FnOnce(&mut gru::Gradients<'_>)) {
        let net = |part: &str| format!("net.{}.{part}", self.i);
        let parts = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"];
        let [a, b, c, d] = parts.map(|n| net(&format!("gru.{n}")));
        let [e, f, g, h] = parts.map(|n| net(&format!("gru.{n}_reverse")));
        let names = [net("gru_norm.weight"), a, b, c, d, e, f, g, h, net("gru_out.weight")];
        self.lend(names, |[d_norm, a, b, c, d, e, f, g, h, d_out]| {
            let d_directions = [
                gru::DirectionGradients { d_w_ih: a, d_w_hh: b, d_b_ih: c, d_b_hh: d },
                gru::DirectionGradients { d_w_ih: e, d_w_hh: f, d_b_ih: g, d_b_hh: h },
            ];
            work(&mut gru::Gradients { d_norm, d_directions, d_out });
        });
    }

    pub fn attention(&mut self, work: impl FnOnce(&mut attention::Gradients<'_>)) {
        let net = |part: &str| format!("net.{}.{part}.weight", self.i);
        let position = format!("emb_position.{}.weight", self.i);
        let [norm, q, k, v, out] =
            ["attention_norm", "attention.q", "attention.k", "attention.v", "attention.out"].map(net);
        self.lend([position, norm, q, k, v, out], |[d_position, d_norm, d_q, d_k, d_v, d_out]| {
            work(&mut attention::Gradients { d_position, d_norm, d_q, d_k, d_v, d_out });
        });
    }

    pub fn feed_forward(&mut self, work: impl FnOnce(&mut swiglu::Gradients<'_>)) {
        let parts = ["ffn_norm", "feed_forward.w1", "feed_forward.w3", "feed_forward.w2"];
        self.lend(parts.map(|part| format!("net.{}.{part}.weight", self.i)), |[d_norm, d_w1, d_w3, d_w2]| {
            work(&mut swiglu::Gradients { d_norm, d_w1, d_w3, d_w2 });
        });
    }

    /// Of nodes, and of types.
    pub fn consensus(&mut self, work: impl FnOnce(&mut [consensus::Gradients<'_>; 2])) {
        let tensor = |layer: &str, part: &str| format!("{layer}.{}.{part}", self.i);
        let side = |to: &str, logit: &str| {
            [tensor(to, "weight"), tensor(to, "bias"), tensor(logit, "weight"), tensor(logit, "bias")]
        };
        let ([a, b, c, d], [e, f, g, h]) = (side("to_node", "node_logit"), side("to_type", "type_logit"));
        self.lend([a, b, c, d, e, f, g, h], |[a, b, c, d, e, f, g, h]| {
            work(&mut [
                consensus::Gradients { d_value: a, d_value_bias: b, d_logit: c, d_logit_bias: d },
                consensus::Gradients { d_value: e, d_value_bias: f, d_logit: g, d_logit_bias: h },
            ]);
        });
    }
}
