//! Every one of the 220 instances: its shape, its symmetry, and why its two links are alike to some and different to others.

use flock_graph::Triple;
use flock_kernels::{Engine, Level, Precision};
use flock_model::checkpoint::{Checkpoint, Metadata, Task};
use flock_model::init::initial_weights;
use flock_model::model::Model;
use flock_train::petals::{INDEX, PetalsInstance, PetalsRecord, export, instances, svg};
use flock_train::{Event, PetalsConfig, PlainGradient, RunContext, TrainError, petals, test_petals};
use flock_walk::WalkQuery;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn t(head: u32, relation: u32, tail: u32) -> Triple {
    Triple { head, relation, tail }
}

#[test]
fn counts_and_dense_ids() {
    let all = instances(1);
    assert_eq!(all.len(), 11 * 4 * 5);
    // Petals and relations (the stem's included) of each assignment, counted from the specification's lists.
    let petals = [2, 3, 4, 5, 6, 7, 6, 12, 8, 4, 6];
    let relations = [3, 4, 5, 6, 7, 8, 4, 5, 5, 5, 7];
    let mut seen = BTreeSet::new();
    for x in &all {
        let (c, l) = (petals[x.assignment as usize - 1], x.petal_length);
        assert!((1..=4).contains(&x.stem) && (1..=5).contains(&l));
        assert!(seen.insert((x.assignment, x.stem, l)));
        assert_eq!((x.petals.len() as u32, x.num_relations), (c, relations[x.assignment as usize - 1]));
        assert_eq!(x.petals.iter().collect::<HashSet<_>>().len() as u32, c, "petals have different pairs");
        assert_eq!(x.num_nodes, x.stem + 1 + c * (2 * l + 1));
        // A petal has two edges from b0, two for each further distance, and two into the tip.
        assert_eq!(x.triples.len() as u32, x.stem + c * (2 * l + 2));
        let nodes: BTreeSet<u32> = x.triples.iter().flat_map(|t| [t.head, t.tail]).collect();
        assert_eq!(nodes, (0..x.num_nodes).collect());
        let used: BTreeSet<u32> = x.triples.iter().map(|t| t.relation).collect();
        assert_eq!(used, (0..x.num_relations).collect());
        let graph = x.topology().unwrap();
        assert_eq!(graph.num_triples(), x.triples.len(), "no triple twice");

        assert_eq!(x.relation, 0);
        assert!(x.head < x.stem, "the head is one of b0 … b(t-1)");
        assert!(x.petal < c && (1..=l).contains(&x.distance));
        assert_eq!(x.target_true, x.petal_node(x.petal, 2 * x.distance - 1));
        assert_eq!(x.target_false, x.petal_node(x.petal, 2 * x.distance));
        assert_eq!(x.query(), WalkQuery::Entity { head: x.head, relation: 0 });
    }
}

/// The specification's lists, written out.
#[test]
fn assignments() {
    let of = |a: u32| instances(0).into_iter().find(|x| x.assignment == a).unwrap().petals;
    assert_eq!(of(1), [(1, 2), (2, 1)]);
    assert_eq!(of(2), [(1, 2), (2, 3), (3, 1)]);
    assert_eq!(of(6), [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 1)]);
    assert_eq!(of(7), [(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)]);
    let eight = [(1, 2), (1, 3), (1, 4), (2, 1), (2, 3), (2, 4), (3, 1), (3, 2), (3, 4), (4, 1), (4, 2), (4, 3)];
    assert_eq!(of(8), eight);
    assert_eq!(of(9), [(1, 2), (1, 3), (2, 3), (2, 4), (3, 4), (3, 1), (4, 1), (4, 2)]);
    assert_eq!(of(10), [(1, 3), (3, 1), (2, 4), (4, 2)]);
    assert_eq!(of(11), [(1, 3), (3, 1), (2, 4), (4, 2), (5, 6), (6, 5)]);
}

/// The figure of the paper's appendix: c = 4, l = 2, t = 3. Its edges read off, petal by petal; b0…b3 are 0…3, petal i starts at 4 + 5i.
#[test]
fn the_papers_example() {
    let x = instances(3).into_iter().find(|x| (x.assignment, x.stem, x.petal_length) == (3, 3, 2)).unwrap();
    let mut expected = vec![t(0, 0, 1), t(1, 0, 2), t(2, 0, 3)];
    for (first, p, q) in [(4, 1, 2), (9, 2, 3), (14, 3, 4), (19, 4, 1)] {
        expected.extend([t(0, p, first), t(0, q, first + 1)]);
        expected.extend([t(first, p, first + 2), t(first + 1, p, first + 3)]);
        expected.extend([t(first + 2, p, first + 4), t(first + 3, p, first + 4)]);
    }
    assert_eq!(x.triples, expected);
    assert_eq!(x.permutation, [0, 2, 3, 4, 1]);
    assert_eq!(x.node_map[..6], [0, 1, 2, 3, 9, 10]);
}

#[test]
fn the_seed_decides_what_is_asked_and_nothing_else() {
    let (a, b) = (instances(1), instances(2));
    assert_eq!(a, instances(1));
    let asked = |x: &PetalsInstance| (x.head, x.petal, x.distance);
    assert!(a.iter().zip(&b).any(|(x, y)| asked(x) != asked(y)));
    assert!(a.iter().zip(&b).all(|(x, y)| x.triples == y.triples && x.node_map == y.node_map));
    // Over many seeds, assignment 8 with t = 4 and l = 5 asks for each of 4 heads, 12 petals and 5 distances about equally often.
    // 2400 seeds: a petal is due 200 times; 4.9 standard deviations (p < 1e-6 each) are 66. Heads: 600 ± 104; distances: 480 ± 96.
    let mut counts: [BTreeMap<u32, i64>; 3] = Default::default();
    for seed in 0..2400 {
        let x = &instances(seed)[7 * 20 + 19];
        assert_eq!((x.assignment, x.stem, x.petal_length), (8, 4, 5));
        for (count, v) in counts.iter_mut().zip([x.head, x.petal, x.distance]) {
            *count.entry(v).or_default() += 1;
        }
    }
    for (count, (kinds, due, most)) in counts.iter().zip([(4, 600, 104), (12, 200, 66), (5, 480, 96)]) {
        assert_eq!(count.len(), kinds);
        assert!(count.values().all(|c| (c - due).abs() <= most), "{count:?}");
    }
}

/// The stated renaming is an automorphism: it sends triples to triples, petals to petals, and moves neither stem nor query.
#[test]
fn the_permutation_is_an_automorphism() {
    for x in instances(1) {
        let triples: HashSet<Triple> = x.triples.iter().copied().collect();
        let image: HashSet<Triple> = x
            .triples
            .iter()
            .map(|t| Triple {
                head: x.node_map[t.head as usize],
                relation: x.permutation[t.relation as usize],
                tail: x.node_map[t.tail as usize],
            })
            .collect();
        assert_eq!(image, triples);
        assert_eq!(x.node_map.iter().collect::<HashSet<_>>().len() as u32, x.num_nodes);
        assert!((0..=x.stem).all(|b| x.node_map[b as usize] == b));
        assert_eq!(x.permutation[0], 0);
        for petal in 0..x.petals.len() as u32 {
            let whole = 2 * x.petal_length + 1;
            let image = (x.node_map[x.petal_node(petal, 1) as usize] - x.stem - 1) / whole;
            assert_ne!(image, petal, "no petal stays");
            assert!((1..=whole).all(|k| x.node_map[x.petal_node(petal, k) as usize] == x.petal_node(image, k)));
        }
        // One cycle through all petal relations: a relation invariant, even one told head and query relation, equates them all.
        let (mut orbit, mut r) = (BTreeSet::new(), 1);
        while orbit.insert(r) {
            r = x.permutation[r as usize];
        }
        assert_eq!(orbit, (1..x.num_relations).collect());
    }
}

/// Colours of nodes and of relations, refined together until stable, from the query's marks. `merged`: relations are known by
/// their colour only, as in an encoder with deterministic relation invariants; otherwise each is known by itself.
fn refine(x: &PetalsInstance, merged: bool) -> (Vec<usize>, Vec<usize>) {
    fn rank<K: Ord + Clone>(keys: Vec<K>) -> Vec<usize> {
        let sorted: BTreeSet<K> = keys.iter().cloned().collect();
        let index: BTreeMap<K, usize> = sorted.into_iter().enumerate().map(|(i, k)| (k, i)).collect();
        keys.iter().map(|k| index[k]).collect()
    }
    let mut nodes: Vec<usize> = (0..x.num_nodes).map(|v| usize::from(v == x.head)).collect();
    let mut relations: Vec<usize> =
        (0..x.num_relations).map(|r| if merged { usize::from(r == x.relation) } else { r as usize }).collect();
    loop {
        let mut node_keys: Vec<_> = nodes.iter().map(|&c| (c, Vec::new())).collect();
        let mut relation_keys: Vec<_> = relations.iter().map(|&c| (c, Vec::new())).collect();
        for t in &x.triples {
            let (h, r, l) = (t.head as usize, t.relation as usize, t.tail as usize);
            node_keys[h].1.push((0, relations[r], nodes[l]));
            node_keys[l].1.push((1, relations[r], nodes[h]));
            relation_keys[r].1.push((nodes[h], nodes[l]));
        }
        node_keys.iter_mut().for_each(|k| k.1.sort_unstable());
        relation_keys.iter_mut().for_each(|k| k.1.sort_unstable());
        let (new_nodes, new_relations) = (rank(node_keys), rank(relation_keys));
        let count = |colours: &[usize]| colours.iter().collect::<BTreeSet<_>>().len();
        let stable = count(&new_nodes) == count(&nodes) && count(&new_relations) == count(&relations);
        (nodes, relations) = (new_nodes, new_relations);
        if stable {
            return (nodes, relations);
        }
    }
}

/// To an encoder that knows relations by deterministic invariants only, the two targets are the same.
///
/// By symmetry: with all petal relations made one, swapping the sides of the petal asked about is an automorphism that leaves the
/// head alone. And by running such an encoder, in its strongest form: colour refinement of nodes and relations together.
#[test]
fn relation_invariants_equate_the_targets() {
    for x in instances(1) {
        let merge = |t: &Triple| Triple { relation: t.relation.min(1), ..*t };
        let merged: BTreeSet<Triple> = x.triples.iter().map(merge).collect();
        let mut swap: Vec<u32> = (0..x.num_nodes).collect();
        for j in 1..=x.petal_length {
            swap.swap(x.petal_node(x.petal, 2 * j - 1) as usize, x.petal_node(x.petal, 2 * j) as usize);
        }
        let swapped: BTreeSet<Triple> =
            merged.iter().map(|t| Triple { head: swap[t.head as usize], tail: swap[t.tail as usize], ..*t }).collect();
        assert_eq!(swapped, merged);
        assert_eq!(swap[x.head as usize], x.head);
        assert_eq!(swap[x.target_true as usize], x.target_false);

        let (nodes, relations) = refine(&x, true);
        assert_eq!(nodes[x.target_true as usize], nodes[x.target_false as usize]);
        assert!(relations[2..].iter().all(|&c| c == relations[1]));
        assert_ne!(relations[0], relations[1]);
    }
}

/// With relations fixed, refinement gives the two targets different colours, and automorphisms keep colours: the links are not
/// isomorphic.
#[test]
fn no_automorphism_with_fixed_relations_joins_the_links() {
    for x in instances(1) {
        let (nodes, _) = refine(&x, false);
        assert_ne!(nodes[x.target_true as usize], nodes[x.target_false as usize]);
    }
}

/// A search for an automorphism (nodes, relations) with `from ↦ to`: assigns the image of one triple after the other, along a
/// path through the graph, and goes back where it fails. Complete: `None` proves that there is none.
struct Search<'a> {
    x: &'a PetalsInstance,
    triples: HashSet<Triple>,
    order: Vec<Triple>, // each shares a node with `from` or an earlier one
    nodes: Vec<Option<u32>>,
    relations: Vec<Option<u32>>,
}

impl Search<'_> {
    fn run(x: &PetalsInstance, from: u32, to: u32) -> Option<(Vec<u32>, Vec<u32>)> {
        let (mut order, mut met) = (Vec::new(), HashSet::from([from]));
        let mut rest = x.triples.clone();
        while let Some(i) = rest.iter().position(|t| met.contains(&t.head) || met.contains(&t.tail)) {
            let t = rest.remove(i);
            met.extend([t.head, t.tail]);
            order.push(t);
        }
        assert!(rest.is_empty(), "connected");
        let (nodes, relations) = (vec![None; x.num_nodes as usize], vec![None; x.num_relations as usize]);
        let mut search = Search { x, triples: x.triples.iter().copied().collect(), order, nodes, relations };
        search.nodes[from as usize] = Some(to);
        search.extend(0).then(|| {
            let all = |v: &[Option<u32>]| v.iter().map(|y| y.unwrap()).collect();
            (all(&search.nodes), all(&search.relations))
        })
    }

    fn extend(&mut self, depth: usize) -> bool {
        let Some(&t) = self.order.get(depth) else { return true };
        let known = |slot: Option<u32>, value: u32| slot.is_none_or(|v| v == value);
        for &image in &self.x.triples {
            let slots = (self.nodes[t.head as usize], self.relations[t.relation as usize], self.nodes[t.tail as usize]);
            let fits = known(slots.0, image.head) && known(slots.1, image.relation) && known(slots.2, image.tail);
            if !fits || !self.triples.contains(&image) {
                continue;
            }
            // One to one: an image must not be taken by another.
            let free = |all: &[Option<u32>], slot: Option<u32>, value| slot.is_some() || !all.contains(&Some(value));
            if !(free(&self.nodes, slots.0, image.head)
                && free(&self.relations, slots.1, image.relation)
                && free(&self.nodes, slots.2, image.tail))
            {
                continue;
            }
            self.nodes[t.head as usize] = Some(image.head);
            self.relations[t.relation as usize] = Some(image.relation);
            self.nodes[t.tail as usize] = Some(image.tail);
            if self.extend(depth + 1) {
                return true;
            }
            self.nodes[t.head as usize] = slots.0;
            self.relations[t.relation as usize] = slots.1;
            self.nodes[t.tail as usize] = slots.2;
        }
        false
    }
}

/// Nor does any automorphism that may rename relations too. The search can succeed: from the true target to its image.
#[test]
fn no_automorphism_at_all_joins_the_links() {
    for x in instances(1) {
        assert_eq!(Search::run(&x, x.target_true, x.target_false), None);
        let image = x.node_map[x.target_true as usize];
        let (nodes, relations) = Search::run(&x, x.target_true, image).expect("the stated automorphism, or another");
        for t in &x.triples {
            let moved = Triple {
                head: nodes[t.head as usize],
                relation: relations[t.relation as usize],
                tail: nodes[t.tail as usize],
            };
            assert!(x.triples.contains(&moved));
        }
    }
}

/// What a model can tell them apart by: the only path from b0 to the true target has one relation, the other has two.
#[test]
fn paths_tell_the_targets_apart() {
    for x in instances(1) {
        let path = |target: u32| {
            let (mut at, mut labels) = (target, Vec::new());
            while at != 0 {
                let into: Vec<&Triple> = x.triples.iter().filter(|t| t.tail == at).collect();
                assert_eq!(into.len(), 1, "the only way back");
                labels.push(into[0].relation);
                at = into[0].head;
            }
            labels.reverse();
            labels
        };
        let (p, q) = x.petals[x.petal as usize];
        let (yes, no) = (path(x.target_true), path(x.target_false));
        assert_eq!(yes.len() as u32, x.distance);
        assert_eq!(no.len() as u32, x.distance);
        assert!(yes.iter().all(|&r| r == p));
        assert!(no[0] == q && no[1..].iter().all(|&r| r == p) && p != q);
        // At distance 1 the path has one edge, and the edge that leaves the target tells: it has relation p on both sides.
        for target in [x.target_true, x.target_false] {
            assert!(x.triples.iter().filter(|t| t.head == target).all(|t| t.relation == p));
        }
    }
}

/// Every drawing has each node, each edge, the two candidate links and the marks, and closes what it opens.
#[test]
fn drawings_are_complete() {
    for x in instances(1) {
        let text = svg(&x);
        let count = |part: &str| text.matches(part).count();
        assert_eq!(count(r#"class="node""#), x.num_nodes as usize);
        // Head and two targets, in the picture and in the legend.
        assert_eq!((count(r#"class="ring""#), count(r#"class="badge""#)), (6, 6));
        assert_eq!(count("stroke-dasharray"), 2);
        assert_eq!(count(r#"stroke-width="2.2""#), x.triples.len());
        assert_eq!((count("<svg "), count("</svg>"), count("NaN")), (1, 1, 0));
        assert_eq!(count("<text "), count("</text>"));
    }
}

/// The files have the instances: the same triples, by names that say which node and relation it is.
#[test]
fn exported_files_have_the_instances() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("sub/petals");
    let all = instances(4);
    assert_eq!(export(&to, 4).unwrap().len(), 220);
    let text = std::fs::read_to_string(to.join(INDEX)).unwrap();
    let records: Vec<PetalsRecord> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((records.len(), std::fs::read_dir(&to).unwrap().count()), (220, 221));
    for (x, record) in all.iter().zip(&records) {
        let (graph, _) = flock_graph::load(&to.join(&record.graph), &flock_graph::LoadOptions::default()).unwrap();
        let counts = (record.entities, record.relations, record.triples);
        assert_eq!(counts, (x.num_nodes, x.num_relations, x.triples.len()));
        // A loader numbers names as they come. Nodes come in order; relations of assignments 10 and 11 do not, but their
        // names say which they are.
        let node = |v: u32| graph.entities().id(&x.entity_name(v)).unwrap();
        assert!((0..x.num_nodes).all(|v| node(v) == v), "instance {}", record.instance);
        let relation = |r: u32| graph.relations().id(&PetalsInstance::relation_name(r)).unwrap();
        assert_eq!((0..x.num_relations).map(relation).collect::<BTreeSet<_>>().len() as u32, x.num_relations);
        let expected: BTreeSet<_> = x.triples.iter().map(|t| (t.head, relation(t.relation), t.tail)).collect();
        let found: BTreeSet<_> = graph.topology().triples().map(|t| (t.head, t.relation, t.tail)).collect();
        assert_eq!(found, expected, "instance {}", record.instance);
        let asked = (record.assignment, record.stem, record.petal_length, record.distance);
        assert_eq!(asked, (x.assignment, x.stem, x.petal_length, x.distance));
        let ids = [&record.head, &record.true_target, &record.false_target].map(|n| graph.entities().id(n).unwrap());
        assert_eq!((ids, &record.relation[..]), ([x.head, x.target_true, x.target_false], "r0"));
    }
    // The paper's example, c = 4, l = 2, t = 3: a4 of the third petal.
    let x = all.iter().find(|x| (x.assignment, x.stem, x.petal_length) == (3, 3, 2)).unwrap();
    assert_eq!((x.entity_name(3), x.entity_name(4), x.entity_name(17)), ("b3".into(), "p1_a1".into(), "p3_a4".into()));

    // The same once more is no change; anything else there is refused and stays.
    assert_eq!(export(&to, 4).unwrap(), records);
    let error = export(&to, 5).unwrap_err();
    assert!(error.to_string().ends_with("expected a directory that is new or empty"), "{error}");
    assert!(matches!(error, TrainError::Occupied { .. }) && error.remedy().is_some());
    let other = dir.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("notes.txt"), "mine").unwrap();
    let error = export(&other, 4).unwrap_err();
    assert!(error.to_string().contains("other: has notes.txt"), "{error}");
    assert_eq!(std::fs::read_dir(&other).unwrap().count(), 1);
    std::fs::remove_file(other.join("notes.txt")).unwrap();
    assert_eq!(export(&other, 4).unwrap(), records);
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "nothing temporary stays: {left:?}");
}

/// The test of a checkpoint is the test of the run that made it.
#[test]
fn a_checkpoint_is_tested_as_its_run_tests_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = PetalsConfig { epochs: 1, walks: 1, length: 8, updates: 1, passes: 1, ..PetalsConfig::default() };
    config.optimiser.rate = 1e-2;
    let engine = Engine::new(Level::Portable, Precision::F32).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let stop = AtomicBool::new(false);
    let report = petals(
        &config,
        &dir.path().join("run"),
        RunContext {
            gradient: &mut PlainGradient::new(1).unwrap(),
            engine,
            pool: &pool,
            peak_gflops: None,
            resume: false,
            bundled: None,
            start: None,
            stop: &stop,
            watch: &mut |_| {},
        },
    );
    let report = report.unwrap().unwrap();
    let checkpoint = Checkpoint::read(Path::new(&report.model)).unwrap();
    let model = Model::new(&checkpoint, engine).unwrap();
    let mut seen = 0;
    let tested = test_petals(&model, "m", &config, &pool, &stop, &mut |event| {
        seen += usize::from(matches!(event, Event::Testing { total: 220, .. }));
    });
    let tested = tested.unwrap().unwrap();
    assert_eq!(
        (tested.solved, tested.accuracy_true, tested.accuracy_false, tested.instances),
        (report.solved, report.accuracy_true, report.accuracy_false, 220)
    );
    assert!((tested.accuracy - (tested.accuracy_true + tested.accuracy_false) / 2.0).abs() < 1e-12);
    assert_eq!((seen, tested.inverses, tested.length, tested.walks), (220, false, 8, 1));
    // Set before the end, it ends; a relation model is refused by name.
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(test_petals(&model, "m", &config, &pool, &stop, &mut |_| {}).unwrap(), None);
    let meta = Metadata { updates: 1, length: 8, ..Metadata::published(Task::Relation) };
    let relations = Model::new(&initial_weights(meta, 1).unwrap(), engine).unwrap();
    let error = test_petals(&relations, "r.safetensors", &config, &pool, &stop, &mut |_| {}).unwrap_err();
    assert_eq!(
        error.to_string(),
        "r.safetensors: predicts relations, and Petals asks for entities; expected an entity model"
    );
}
