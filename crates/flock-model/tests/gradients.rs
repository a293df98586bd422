//! The plain backward pass against the published implementation: the loss, its gradient in every logit, and the gradient
//! of every parameter.
//!
//! The fixtures hold a batch of queries with the walks drawn for them. `entity_L8_T2` and `relation_L16_T2` travel with
//! the project; `entity_L16_T6` is read from `../shared/parity` where it is there.

use std::path::{Path, PathBuf};

use flock_kernels::embed::Positions;
use flock_kernels::loss;
use flock_model::checkpoint::{Checkpoint, Task};
use flock_model::plain;
use flock_walk::{Recorder, Records, WalkQuery};
use safetensors::{Dtype, SafeTensors};

/// A fixture's arrays.
struct Arrays(Vec<u8>);

impl Arrays {
    fn read(path: &Path) -> Arrays {
        Arrays(std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
    }
    fn words(&self, name: &str, dtype: Dtype) -> (Vec<usize>, Vec<[u8; 4]>) {
        let file = SafeTensors::deserialize(&self.0).unwrap();
        let t = file.tensor(name).unwrap();
        assert_eq!(t.dtype(), dtype, "{name}");
        (t.shape().to_vec(), t.data().chunks(4).map(|b| b.try_into().unwrap()).collect())
    }
    fn ints(&self, name: &str) -> Vec<u32> {
        self.words(name, Dtype::I32).1.into_iter().map(u32::from_le_bytes).collect()
    }
    fn floats(&self, name: &str) -> Vec<f32> {
        self.words(name, Dtype::F32).1.into_iter().map(f32::from_le_bytes).collect()
    }
}

struct Case {
    name: &'static str,
    checkpoint: Checkpoint,
    arrays: Arrays,
    gradients: Arrays,
}

/// One query of a case, with the walks of all its updates: ids, and what recording made of them.
struct Query {
    query: WalkQuery,
    candidates: Vec<u32>,
    walks: Vec<([Vec<u32>; 2], Records)>,
}

fn positions<'a>([node, ty]: &'a [Vec<u32>; 2], r: &'a Records) -> Positions<'a> {
    Positions { node, ty, node_name: &r.node_name, type_name: &r.type_name, mark: &r.mark }
}

impl Query {
    fn records(&self) -> Vec<Positions<'_>> {
        self.walks.iter().map(|(ids, records)| positions(ids, records)).collect()
    }
}

impl Case {
    fn read(dir: &Path, name: &'static str) -> Case {
        let read = |suffix: &str| Arrays::read(&dir.join(format!("{name}.{suffix}safetensors")));
        let checkpoint = Checkpoint::read(dir.join(format!("{name}.weights.safetensors"))).unwrap();
        Case { name, checkpoint, arrays: read("randkg."), gradients: read("randkg.grads.") }
    }

    /// Nodes and types of the graph.
    fn sizes(&self) -> (usize, usize) {
        (self.arrays.ints("num_nodes")[0] as usize, self.arrays.ints("num_relations")[0] as usize)
    }

    fn queries(&self) -> Vec<Query> {
        let a = &self.arrays;
        let [updates, queries, walks, length] = a.words("walks", Dtype::I32).0.try_into().unwrap();
        let (heads, tails, relations) = (a.ints("head_index"), a.ints("tail_index"), a.ints("type_index"));
        let raw = ["walks", "types", "directions"].map(|n| a.ints(n));
        let (_, types) = self.sizes();
        let query = |b: usize| {
            let row = |all: &[u32]| all[b * all.len() / queries..][..all.len() / queries].to_vec();
            let (query, candidates) = match self.checkpoint.meta().task {
                Task::Entity => (WalkQuery::Entity { head: heads[b], relation: relations[b] }, row(&tails)),
                Task::Relation => (WalkQuery::Relation { head: heads[b], tail: tails[b] }, row(&relations)),
            };
            let mut recorder = Recorder::new();
            recorder.begin(&query, types as u32);
            let mut update = |t: usize| {
                let at = (t * queries + b) * walks * length;
                let [node, ty, direction] = raw.each_ref().map(|array| array[at..][..walks * length].to_vec());
                let direction: Vec<u8> = direction.into_iter().map(|d| d as u8).collect();
                let mut records = Records::default();
                recorder.record(length, &node, &ty, &direction, &mut records);
                ([node, ty], records)
            };
            Query { query, candidates, walks: (0..updates).map(&mut update).collect() }
        };
        (0..queries).map(query).collect()
    }

    /// Loss, gradient of the logits, and gradients of the parameters, of the whole batch.
    fn run(&self) -> (f32, Vec<f32>, Vec<f32>) {
        let (nodes, types) = self.sizes();
        let queries = self.queries();
        let (mut total, mut all, mut gradients) = (0.0, Vec::new(), vec![0.0; self.checkpoint.weights.values.len()]);
        for q in &queries {
            let records = q.records();
            let cache = plain::forward(&self.checkpoint.weights, &records, nodes, types);
            let logits = plain::scores(&self.checkpoint.weights, &q.query, &cache.states, &q.candidates);
            let (candidates, batch) = (logits.len(), queries.len());
            let mut d_logits = vec![0.0; candidates];
            total += match self.checkpoint.meta().task {
                Task::Entity => loss::self_adversarial(&logits, candidates, batch, 1.0, &mut d_logits),
                Task::Relation => loss::mean_bce(&logits, candidates, batch, &mut d_logits),
            };
            let (c, d) = (&q.candidates, &d_logits);
            plain::backward(&self.checkpoint.weights, &q.query, &records, &cache, c, d, &mut gradients);
            all.extend(d_logits);
        }
        (total, all, gradients)
    }
}

fn cases() -> Vec<Case> {
    let here = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures"));
    let mut cases: Vec<Case> = ["entity_L8_T2", "relation_L16_T2"].map(|name| Case::read(&here, name)).into();
    let shared = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/parity"));
    if shared.is_dir() {
        cases.push(Case::read(&shared, "entity_L16_T6"));
    } else {
        eprintln!("skipped: ../shared not found, the gradients of six updates were not compared");
    }
    cases
}

fn largest(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |m, v| if v.abs() > m || v.is_nan() { v.abs() } else { m })
}

/// The largest difference, over the largest expected value.
fn relative(got: &[f32], want: &[f32], scale: f32) -> f32 {
    assert_eq!(got.len(), want.len());
    let difference = largest(&got.iter().zip(want).map(|(g, w)| g - w).collect::<Vec<_>>());
    if difference == 0.0 { 0.0 } else { difference / scale }
}

#[test]
fn every_gradient_is_the_published_one() {
    for case in cases() {
        let (loss, d_logits, gradients) = case.run();
        let want = case.arrays.floats("loss")[0];
        assert!((loss - want).abs() < 1e-6, "{}: loss {loss}, expected {want}", case.name);
        let want = case.arrays.floats("logits_grad");
        let in_logits = relative(&d_logits, &want, largest(&want));
        assert!(in_logits < 1e-4, "{}: logits_grad {in_logits}", case.name);

        let mut errors: Vec<(f32, &str)> = Vec::new();
        for tensor in case.checkpoint.weights.table().tensors() {
            let (name, got) = (&tensor.name, &gradients[tensor.range()]);
            let want = case.gradients.floats(name);
            // A softmax does not change when all its logits move together, so this gradient is zero but for rounding,
            // ours as theirs: it is held to be small beside the one of the layer's weight.
            let scale = match name.contains("_logit.") && name.ends_with(".bias") {
                true => largest(&case.gradients.floats(&name.replace(".bias", ".weight"))),
                false => largest(&want),
            };
            errors.push((relative(got, &want, scale), name));
        }
        errors.sort_by(|a, b| b.0.total_cmp(&a.0));
        let (worst, name) = errors[0];
        println!(
            "{}: loss {loss}, logits_grad within {in_logits:.1e}, {} gradients within {worst:.1e} ({name}) of their largest entry",
            case.name,
            errors.len()
        );
        let wrong: Vec<_> = errors.iter().filter(|(e, _)| e.is_nan() || *e >= 1e-5).collect();
        assert!(wrong.is_empty(), "{}: {wrong:?}", case.name);
    }
}

#[test]
fn the_forward_pass_with_a_cache_is_the_plain_one() {
    for case in cases() {
        let (nodes, types) = case.sizes();
        for q in case.queries() {
            let mut states = plain::initial_states(&case.checkpoint.weights, nodes, types);
            for (i, records) in q.records().iter().enumerate() {
                plain::update(&case.checkpoint.weights, i, *records, &mut states);
            }
            let cache = plain::forward(&case.checkpoint.weights, &q.records(), nodes, types);
            assert!(cache.states.nodes == states.nodes && cache.states.types == states.types, "{}", case.name);
        }
    }
}

#[test]
fn gradients_are_added_to_what_is_there() {
    let case = Case::read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures")), "relation_L16_T2");
    let (nodes, types) = case.sizes();
    let q = &case.queries()[0];
    let cache = plain::forward(&case.checkpoint.weights, &q.records(), nodes, types);
    let d_logits = vec![0.25; q.candidates.len()];
    let run = |gradients: &mut [f32]| {
        plain::backward(&case.checkpoint.weights, &q.query, &q.records(), &cache, &q.candidates, &d_logits, gradients)
    };
    let (mut once, mut twice) =
        (vec![0.0; case.checkpoint.weights.values.len()], vec![0.0; case.checkpoint.weights.values.len()]);
    run(&mut once);
    run(&mut twice);
    run(&mut twice);
    for tensor in case.checkpoint.weights.table().tensors() {
        let (name, range) = (&tensor.name, tensor.range());
        let doubled: Vec<f32> = once[range.clone()].iter().map(|d| 2.0 * d).collect();
        let error = relative(&twice[range], &doubled, largest(&doubled));
        assert!(error < 1e-4 || name.contains("_logit."), "{name}: {error}");
    }
}
