//! The forward pass against the published implementation: every state after every update, and the logits.
//!
//! Each fixture holds a model's weights, the walks it drew on a small graph, and what it computed from them. We record
//! those walks ourselves, run the plain and the fast model on them, and compare. `entity_L8_T2` and `relation_L16_T2`
//! travel with the project; the larger ones are read from `../shared/parity` where it is there.

use std::path::{Path, PathBuf};

use flock_kernels::embed::Positions;
use flock_kernels::{Engine, Precision};
use flock_model::checkpoint::{Checkpoint, Task};
use flock_model::model::{Model, PassBuffers};
use flock_model::plain;
use flock_model::update::{Parallelism, Refresh, Stages, States, Workspace};
use flock_walk::{Recorder, Records, WalkQuery};
use safetensors::{Dtype, SafeTensors};

/// The published width.
const D: usize = 64;

/// A fixture's arrays, as numbers of one kind.
struct Arrays(Vec<u8>);

impl Arrays {
    fn read(path: &Path) -> Arrays {
        Arrays(std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
    }
    fn shape(&self, name: &str) -> Vec<usize> {
        SafeTensors::deserialize(&self.0).unwrap().tensor(name).unwrap().shape().to_vec()
    }
    fn ints(&self, name: &str) -> Vec<u32> {
        let file = SafeTensors::deserialize(&self.0).unwrap();
        let t = file.tensor(name).unwrap();
        match t.dtype() {
            Dtype::I64 => t.data().chunks(8).map(|b| i64::from_le_bytes(b.try_into().unwrap()) as u32).collect(),
            Dtype::I32 => t.data().chunks(4).map(|b| i32::from_le_bytes(b.try_into().unwrap()) as u32).collect(),
            Dtype::U8 => t.data().iter().map(|b| u32::from(*b)).collect(),
            other => panic!("{name}: {other:?}"),
        }
    }
    fn floats(&self, name: &str) -> Vec<f32> {
        let file = SafeTensors::deserialize(&self.0).unwrap();
        let t = file.tensor(name).unwrap();
        assert_eq!(t.dtype(), Dtype::F32, "{name}");
        t.data().chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
    }
}

struct Case {
    name: String,
    checkpoint: Checkpoint,
    arrays: Arrays,
}

/// The cases at hand: those of the project, and those of `../shared` if it is there.
fn cases() -> Vec<Case> {
    let here = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures"));
    let shared = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/parity"));
    let mut found = Vec::new();
    for (dir, models) in [(here, ["entity_L8_T2", "relation_L16_T2"]), (shared, ["entity_L16_T6", "entity_L128_T6"])] {
        if !dir.is_dir() {
            eprintln!("skipped: ../shared not found, the larger parity cases did not run");
            continue;
        }
        for model in models {
            let checkpoint = Checkpoint::read(dir.join(format!("{model}.weights.safetensors"))).unwrap();
            for graph in ["petals", "randkg"] {
                let arrays = Arrays::read(&dir.join(format!("{model}.{graph}.safetensors")));
                found.push(Case { name: format!("{model}.{graph}"), checkpoint: checkpoint.clone(), arrays });
            }
        }
    }
    found
}

/// Largest difference, and where.
fn largest(got: &[f32], want: &[f32]) -> f32 {
    assert_eq!(got.len(), want.len());
    got.iter().zip(want).map(|(g, w)| (g - w).abs()).fold(0.0, |m, d| if d > m || d.is_nan() { d } else { m })
}

/// Runs all queries of a case through `run(query, candidates, per-update walks)`, which returns the states after each
/// update and the logits, and compares them with the fixture's.
#[allow(clippy::type_complexity)]
fn compare(
    case: &Case,
    run: &mut dyn FnMut(&WalkQuery, &[u32], &[[Vec<u32>; 3]]) -> (Vec<(Vec<f32>, Vec<f32>)>, Vec<f32>),
) -> (f32, f32) {
    let a = &case.arrays;
    let [updates, queries, walks, length] = a.shape("walks").try_into().unwrap();
    let (nodes, types) = (a.ints("num_nodes")[0] as usize, a.ints("num_relations")[0] as usize);
    let (heads, tails, relations) = (a.ints("head_index"), a.ints("tail_index"), a.ints("type_index"));
    let (node_states, type_states, logits) = (a.floats("node_states"), a.floats("type_states"), a.floats("logits"));
    let candidates = logits.len() / queries;
    let raw = ["walks", "types", "directions"].map(|n| a.ints(n));
    let per = walks * length;
    let (mut worst_state, mut worst_logit) = (0f32, 0f32);
    for b in 0..queries {
        let (query, listed) = match case.checkpoint.meta().task {
            Task::Entity => {
                (WalkQuery::Entity { head: heads[b], relation: relations[b] }, &tails[b * candidates..][..candidates])
            }
            Task::Relation => {
                (WalkQuery::Relation { head: heads[b], tail: tails[b] }, &relations[b * candidates..][..candidates])
            }
        };
        let steps: Vec<[Vec<u32>; 3]> = (0..updates)
            .map(|t| raw.each_ref().map(|array| array[(t * queries + b) * per..][..per].to_vec()))
            .collect();
        let (states, got) = run(&query, listed, &steps);
        for (t, (n, ty)) in states.iter().enumerate() {
            let want = &node_states[((t + 1) * queries + b) * nodes * D..][..nodes * D];
            worst_state = worse(worst_state, largest(n, want));
            let want = &type_states[((t + 1) * queries + b) * (types + 1) * D..][..(types + 1) * D];
            worst_state = worse(worst_state, largest(ty, want));
        }
        worst_logit = worse(worst_logit, largest(&got, &logits[b * candidates..][..candidates]));
    }
    (worst_state, worst_logit)
}

/// The larger, and what is no number if one of them is none, which `max` would drop.
fn worse(a: f32, b: f32) -> f32 {
    if b > a || b.is_nan() { b } else { a }
}

/// Records a fixture's raw walks.
fn record(recorder: &mut Recorder, records: &mut Records, length: usize, step: &[Vec<u32>; 3]) {
    let dirs: Vec<u8> = step[2].iter().map(|d| *d as u8).collect();
    recorder.record(length, &step[0], &step[1], &dirs, records);
}

#[test]
fn plain_model_reproduces_the_fixtures() {
    for case in cases() {
        let (nodes, types) = (case.arrays.ints("num_nodes")[0], case.arrays.ints("num_relations")[0]);
        let length = case.checkpoint.meta().length;
        let (state, logit) = compare(&case, &mut |query, candidates, steps| {
            let mut states = plain::initial_states(&case.checkpoint.weights, nodes as usize, types as usize);
            let (mut recorder, mut records) = (Recorder::new(), Records::default());
            recorder.begin(query, types);
            let mut all = Vec::new();
            for (i, step) in steps.iter().enumerate() {
                record(&mut recorder, &mut records, length, step);
                let r = Positions {
                    node: &step[0],
                    ty: &step[1],
                    node_name: &records.node_name,
                    type_name: &records.type_name,
                    mark: &records.mark,
                };
                plain::update(&case.checkpoint.weights, i, r, &mut states);
                all.push((states.nodes.clone(), states.types.clone()));
            }
            (all, plain::scores(&case.checkpoint.weights, query, &states, candidates))
        });
        println!("{}: plain: states within {state:.1e}, logits within {logit:.1e}", case.name);
        assert!(state < 1e-4 && logit < 1e-4, "{}: states {state}, logits {logit}", case.name);
    }
}

#[test]
fn fast_model_reproduces_the_fixtures_at_every_level() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    for case in cases() {
        let (nodes, types) = (case.arrays.ints("num_nodes")[0] as usize, case.arrays.ints("num_relations")[0]);
        let meta = case.checkpoint.meta().clone();
        let initial = ["node_init", "type_init"].map(|n| case.checkpoint.tensor(n).unwrap().to_vec());
        for engine in Engine::all() {
            let model = Model::new(&case.checkpoint, engine).unwrap();
            let mut bits: Vec<Vec<f32>> = Vec::new();
            for parallelism in [Parallelism::OneThread, Parallelism::Pool] {
                let mut outputs = Vec::new();
                let (state, logit) = compare(&case, &mut |query, candidates, steps| {
                    pool.install(|| {
                        let (mut recorder, mut records) = (Recorder::new(), Records::default());
                        recorder.begin(query, types);
                        // The states that count for the logits leave out what a pass leaves out.
                        let (mut states, mut spared, mut work) =
                            (States::default(), States::default(), Workspace::default());
                        let mut all = Vec::new();
                        for (i, step) in steps.iter().enumerate() {
                            record(&mut recorder, &mut records, meta.length, step);
                            let met = [recorder.nodes().len(), recorder.types().len()];
                            let update = &model.updates()[i];
                            for (states, refresh) in [
                                (&mut states, [Refresh::All, Refresh::All]),
                                (&mut spared, model.refresh(i, query, &recorder)),
                            ] {
                                update.run(
                                    &records,
                                    met,
                                    &refresh,
                                    states,
                                    &mut work,
                                    parallelism,
                                    &mut Stages::default(),
                                    None,
                                );
                            }
                            // Spread the rows of what was met over the whole graph, the initial state elsewhere.
                            let mut n = initial[0].repeat(nodes);
                            for (row, v) in recorder.nodes().iter().enumerate() {
                                n[*v as usize * D..][..D].copy_from_slice(&states.nodes[row * D..][..D]);
                            }
                            let mut ty = initial[1].repeat(types as usize + 1);
                            for (row, t) in recorder.types().iter().enumerate() {
                                ty[*t as usize * D..][..D].copy_from_slice(&states.types[row * D..][..D]);
                            }
                            all.push((n, ty));
                        }
                        let mut buffers = PassBuffers::with_states(recorder, spared);
                        let scores = model.score(types / 2, query, &mut buffers, parallelism);
                        let of = |c: &u32| {
                            scores.ids.iter().position(|id| id == c).map_or(scores.unreached, |i| scores.logits[i])
                        };
                        outputs.push(candidates.iter().map(of).collect::<Vec<f32>>());
                        (all, candidates.iter().map(of).collect())
                    })
                });
                bits.push(outputs.concat());
                if engine.precision() == Precision::F32 {
                    assert!(state < 1e-4 && logit < 1e-4, "{} {engine:?}: states {state}, logits {logit}", case.name);
                } else {
                    // Random weights: rounding operands to 8 bits moves logits of order 0.1 by a few thousandths.
                    assert!(logit < 2e-2, "{} {engine:?}: logits {logit}", case.name);
                }
                println!(
                    "{}: {engine:?} {parallelism:?}: states within {state:.1e}, logits within {logit:.1e}",
                    case.name
                );
            }
            assert_eq!(bits[0], bits[1], "{} {engine:?}: one thread and two must give the same bits", case.name);
        }
    }
}
