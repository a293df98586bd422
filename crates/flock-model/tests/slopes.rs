//! The plain gradient of a whole step against finite differences of its loss, for what the fixtures do not reach: hidden edges,
//! the mean consensus, the transformer, other widths, heads and layers.
//!
//! The slope along a unit direction is measured by the five-point rule `(8 (f(h) − f(−h)) − (f(2h) − f(−2h))) / 12h`. Along a
//! tensor's own gradient it is that gradient's norm; along a random direction through all weights, their scalar product.
//! What is left is the loss's rounding in f32 over `h`; a tolerance is some three times the largest error seen.

use flock_graph::{Mask, Triple};
use flock_model::bench::synthetic_graph;
use flock_model::checkpoint::{Averaging, Metadata, ProcessorKind, Task};
use flock_model::init::initial_weights;
use flock_model::model::View;
use flock_model::plain::PlainGradient;
use flock_model::step::{BaseLoss, Example, Gradient, Loss, StepInput};
use flock_walk::{Key, WalkOptions, WalkQuery};

const H: f64 = 0.01;

fn check(task: Task, processor: ProcessorKind, consensus: Averaging) {
    check_model(Metadata { processor, consensus, ..Metadata::published(task) });
}

fn check_model(meta: Metadata) {
    let meta = Metadata { length: 5, updates: 2, ..meta };
    let Metadata { task, processor, consensus, width, heads, layers, .. } = meta;
    let what = format!("{task} {processor:?} {consensus:?} width {width} heads {heads} layers {layers}");
    let mut weights = initial_weights(meta, 8).unwrap().weights;
    // Biases that keep every unit of the head away from zero, half of them off: between its kinks the loss is smooth.
    for (layer, size) in [("head.0.bias", 6.0), ("head.2.bias", 12.0)] {
        let biases = weights.tensor_mut(layer).unwrap();
        biases.iter_mut().enumerate().for_each(|(j, b)| *b = if j % 2 == 0 { size } else { -size });
    }
    weights.tensor_mut("head.4.weight").unwrap().iter_mut().for_each(|w| *w *= 0.3);
    let graph = synthetic_graph(20, 3, 60, 4);
    let hidden: Vec<Triple> = graph.triples().step_by(3).collect();
    let mask = Mask::new(&graph, &hidden);
    let (query, candidates) = match task {
        Task::Entity => (WalkQuery::Entity { head: 0, relation: 1 }, vec![7, 0, 3, 19]),
        Task::Relation => (WalkQuery::Relation { head: 0, tail: 7 }, vec![1, 0, 2]),
    };
    let examples = [Example::new(query, candidates)];
    let input = StepInput {
        view: View { topology: &graph, mask: Some(&mask) },
        examples: &examples,
        walks: 2,
        seed: 3,
        step: 5,
        options: WalkOptions::default(),
        // The weights of the self-adversarial loss are not differentiated.
        loss: Loss { base: BaseLoss::MeanBce, softmax: 0.3 },
    };
    let mut engine = PlainGradient::new(1).unwrap();
    let mut gradient = vec![0.0; weights.values.len()];
    engine.gradient(&weights, &input, &mut gradient).unwrap();
    let mut slope = |h: f64, direction: &dyn Fn(usize) -> f64| -> f64 {
        let mut at = |steps: f64| {
            let mut moved = weights.clone();
            let values = moved.values.iter_mut().enumerate();
            values.for_each(|(j, v)| *v = (f64::from(*v) + steps * h * direction(j)) as f32);
            engine.gradient(&moved, &input, &mut vec![0.0; weights.values.len()]).unwrap().loss
        };
        (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * h)
    };
    let whole = gradient.iter().map(|d| f64::from(*d).powi(2)).sum::<f64>().sqrt();
    let mut worst = (0f64, "");
    let mut tested = 0;
    for tensor in weights.table().tensors() {
        let (name, range) = (tensor.name.as_str(), tensor.range());
        let norm = gradient[range.clone()].iter().map(|d| f64::from(*d).powi(2)).sum::<f64>().sqrt();
        let unused = consensus == Averaging::Mean && name.contains("_logit.");
        assert!(!unused || norm == 0.0, "{what}: {name} has no part in a mean");
        // In what is smaller rounding would count: biases that a softmax ignores, rows that a few positions read.
        if norm < 4e-3 {
            continue;
        }
        tested += 1;
        let along = |j: usize| if range.contains(&j) { f64::from(gradient[j]) / norm } else { 0.0 };
        // A step that moves the loss little, however steep it is.
        let off = (slope(H / norm.max(1.0), &along) - norm).abs() / norm;
        if off > worst.0 {
            worst = (off, name);
        }
    }
    println!("{what}: {tested} tensors, worst {:.1e} of its norm in {}", worst.0, worst.1);
    assert!(tested > 40, "{what}: only {tested} tensors have a gradient");
    assert!(worst.0 < 1e-2, "{what}: {} is off by {} of its norm", worst.1, worst.0);
    for k in 0..4 {
        let mut stream = Key { seed: k, pass: 0, update: 0, query: 0 }.stream(0);
        let n = gradient.len();
        let mut sign = || 1.0 - 2.0 * (stream.draw() >> 63) as f64;
        let signs: Vec<f64> = (0..n).map(|_| sign() / (n as f64).sqrt()).collect();
        let want = slope(H, &|j| signs[j]);
        let got: f64 = gradient.iter().zip(&signs).map(|(d, s)| f64::from(*d) * s).sum();
        // A random direction sees ‖gradient‖ / √n of the gradient: the measure of its error.
        let off = (got - want).abs() / (whole / (n as f64).sqrt());
        println!("{what}: random direction {k}: {got:.2e}, off by {off:.1e} of the expected size");
        assert!(off < 1e-3, "{what}: random direction {k}: {got}, measured {want}");
    }
}

#[test]
fn of_the_published_model_with_hidden_edges() {
    check(Task::Entity, ProcessorKind::Gru, Averaging::Softmax);
    check(Task::Relation, ProcessorKind::Gru, Averaging::Softmax);
}

#[test]
fn of_other_widths_heads_and_layers() {
    let published = || Metadata::published(Task::Entity);
    check_model(Metadata { width: 32, heads: 2, layers: 2, ..published() });
    check_model(Metadata { width: 96, heads: 3, ..published() });
    check_model(Metadata { width: 128, heads: 8, ..published() });
}

#[test]
fn of_two_layers_of_attention() {
    let processor = ProcessorKind::Transformer;
    check_model(Metadata { width: 32, heads: 1, layers: 2, processor, ..Metadata::published(Task::Relation) });
}

#[test]
fn of_the_mean_consensus() {
    check(Task::Entity, ProcessorKind::Gru, Averaging::Mean);
}

#[test]
fn of_the_transformer() {
    check(Task::Entity, ProcessorKind::Transformer, Averaging::Softmax);
    check(Task::Relation, ProcessorKind::Transformer, Averaging::Softmax);
}
