//! Walks of the published implementation. Each of their moves is possible here, and recording them
//! gives the same names, directions and flags. Reads the parity fixtures beside the project, and
//! skips the tests if they are missing.

use flock_graph::{Topology, Triple};
use flock_walk::{Recorder, Records, WalkQuery};
use safetensors::SafeTensors;
use std::path::PathBuf;

struct Fixture {
    entity: bool,
    graph: Topology,
    shape: [usize; 4], // T updates, B queries, S walks, L positions
    heads: Vec<u32>,
    seconds: Vec<u32>, // query type (entity) or query tail (relation)
    walks: Vec<u32>,
    types: Vec<u32>,
    directions: Vec<u32>,
    named_walks: Vec<u32>,
    named_types: Vec<u32>,
}

/// Reads all cases of one graph, or returns `None` if the fixtures are missing.
fn fixtures(graph: &str) -> Option<Vec<(String, Fixture)>> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/parity"));
    if !folder.is_dir() {
        eprintln!("skipped: ../shared not found");
        return None;
    }
    let models = ["entity_L8_T2", "entity_L16_T6", "entity_L128_T6", "relation_L16_T2"];
    Some(
        models
            .map(|model| {
                let bytes = std::fs::read(folder.join(format!("{model}.{graph}.safetensors"))).unwrap();
                (format!("{model}.{graph}"), read(model.starts_with("entity"), &bytes))
            })
            .into(),
    )
}

fn read(entity: bool, bytes: &[u8]) -> Fixture {
    let file = SafeTensors::deserialize(bytes).unwrap();
    let array = |name: &str| -> Vec<u32> {
        let tensor = file.tensor(name).unwrap();
        let width = tensor.dtype().bitsize() / 8; // int32 or int64, little-endian, never negative
        assert!(width == 4 || width == 8, "{name}");
        tensor.data().chunks_exact(width).map(|x| u32::from_le_bytes([x[0], x[1], x[2], x[3]])).collect()
    };
    let (index, relation) = (array("edge_index"), array("edge_type"));
    let (relations, edges) = (array("num_relations")[0] / 2, relation.len());
    // The second half of the edges are the inverses of the first.
    let triples: Vec<Triple> =
        (0..edges / 2).map(|e| Triple { head: index[e], relation: relation[e], tail: index[edges + e] }).collect();
    for (e, triple) in triples.iter().enumerate() {
        let inverse = edges / 2 + e;
        assert_eq!((index[inverse], relation[inverse]), (triple.tail, triple.relation + relations));
    }
    let shape = file.tensor("walks").unwrap().shape().try_into().unwrap();
    Fixture {
        entity,
        graph: Topology::build(array("num_nodes")[0], relations, triples).unwrap(),
        shape,
        heads: array("head_index"),
        seconds: array(if entity { "type_index" } else { "tail_index" }),
        walks: array("walks"),
        types: array("types"),
        directions: array("directions"),
        named_walks: array("named_walks"),
        named_types: array("named_types"),
    }
}

/// Lists all labels of a move v -> w, straight from section 1.
fn is_label(g: &Topology, v: u32, w: u32, ty: u32, dir: u32, first_of_balanced: bool) -> bool {
    match dir {
        0 => g.contains(v, ty, w) && (v != w || first_of_balanced),
        1 => g.contains(w, ty, v) && !first_of_balanced,
        _ => false,
    }
}

fn check_moves(name: &str, f: &Fixture) {
    let g = &f.graph;
    let [_, _, walks, length] = f.shape;
    let groups = if f.entity { 3 } else { 4 };
    for (index, walk) in f.walks.chunks(length).enumerate() {
        let group = index % walks / (walks / groups);
        let balanced = group + 1 == groups;
        let query = index / walks % f.heads.len();
        if group == 0 {
            assert_eq!(walk[0], f.heads[query], "{name}");
        } else if group == 1 && !f.entity {
            assert_eq!(walk[0], f.seconds[query], "{name}");
        }
        for k in 1..length {
            let (ty, dir) = (f.types[index * length + k], f.directions[index * length + k]);
            let (v, w) = (walk[k - 1], walk[k]);
            let what = format!("{name} walk {index} position {k}: {v} -> {w} type {ty} direction {dir}");
            let has_loop = !g.relations_between(v, v).is_empty();
            if v == w && !has_loop {
                assert!(g.degree(v) == 0 && ty == g.no_type() && dir == 3, "{what}");
                continue;
            }
            assert!(is_label(g, v, w, ty, dir, balanced && k == 1), "{what}");
            // Self-loops are candidates for balanced walks, and at nodes without another candidate.
            assert!(v != w || balanced || g.degree(v) == 0, "{what}");
            let ways = g.degree(v) + u32::from(has_loop && (balanced || g.degree(v) == 0));
            assert!(k < 2 || walk[k - 2] != w || ways == 1, "{what}: straight back");
            assert!(v == w || g.neighbours(v).any(|x| x == w), "{what}");
        }
    }
}

fn check_records(name: &str, f: &Fixture) {
    let [updates, queries, walks, length] = f.shape;
    let (mut recorder, mut records) = (Recorder::new(), Records::default());
    for b in 0..queries {
        let (head, second) = (f.heads[b], f.seconds[b]);
        let query = if f.entity {
            WalkQuery::Entity { head, relation: second }
        } else {
            WalkQuery::Relation { head, tail: second }
        };
        recorder.begin(&query, f.graph.no_type());
        assert!(recorder.nodes().is_empty() && recorder.local_node(head).is_none());
        for update in 0..updates {
            let start = (update * queries + b) * walks * length;
            let part = |array: &[u32]| array[start..start + walks * length].to_vec();
            let (nodes, types) = (part(&f.walks), part(&f.types));
            let directions = part(&f.directions);
            let dirs: Vec<u8> = directions.iter().map(|&d| d as u8).collect();
            recorder.record(length, &nodes, &types, &dirs, &mut records);

            let names = |rows: &[u16]| rows.iter().map(|&row| u32::from(row) + 1).collect::<Vec<_>>();
            assert_eq!(names(&records.node_name), part(&f.named_walks), "{name} node names");
            assert_eq!(names(&records.type_name), part(&f.named_types), "{name} type names");
            let globals = |locals: &[u32], table: &[u32]| locals.iter().map(|&x| table[x as usize]).collect::<Vec<_>>();
            assert_eq!(globals(&records.node, recorder.nodes()), nodes);
            assert_eq!(globals(&records.ty, recorder.types()), types);
            // The flags as the checker of the fixtures computes them.
            for i in 0..nodes.len() {
                let a = u32::from(nodes[i] == head);
                let b = u32::from(if f.entity { types[i] == second } else { nodes[i] == second });
                assert_eq!(u32::from(records.mark[i]), directions[i] | a << 2 | b << 3, "{name} mark {i}");
            }
        }
        for (local, &v) in recorder.nodes().iter().enumerate() {
            assert_eq!(recorder.local_node(v), Some(local as u32));
        }
        for (local, &ty) in recorder.types().iter().enumerate() {
            assert_eq!(recorder.local_type(ty), Some(local as u32));
        }
    }
}

#[test]
fn petals() {
    for (name, fixture) in fixtures("petals").into_iter().flatten() {
        check_moves(&name, &fixture);
        check_records(&name, &fixture);
    }
}

#[test]
fn random_graph() {
    for (name, fixture) in fixtures("randkg").into_iter().flatten() {
        check_moves(&name, &fixture);
        check_records(&name, &fixture);
        // The graph matches the description of the fixtures.
        let g = &fixture.graph;
        assert_eq!([46, 47, 48, 49].map(|v| g.degree(v)), [1, 0, 0, 0]);
        assert_eq!([3, 17, 48].map(|v| g.relations_between(v, v).len()), [1, 1, 1]);
    }
}
