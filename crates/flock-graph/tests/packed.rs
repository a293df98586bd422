//! Graphs as bytes: everything comes back, with the same ids, and other bytes are refused.

use flock_graph::{Graph, GraphBuilder, NameKind, NamedEdit, PackedError, Topology, TopologyError, Triple};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::path::Path;

/// Lists everything that a graph is.
fn parts(graph: &Graph) -> impl PartialEq + std::fmt::Debug + use<> {
    let owned = |text: &str| text.to_owned();
    let labels = [NameKind::Entity, NameKind::Relation].map(|kind| {
        let labels = graph.labels().of(kind);
        labels.iter().map(|(id, label)| (id, owned(label))).collect::<Vec<_>>()
    });
    (
        graph.entities().iter().map(owned).collect::<Vec<_>>(),
        graph.relations().iter().map(owned).collect::<Vec<_>>(),
        graph.topology().triples().collect::<Vec<Triple>>(),
        (graph.topology().num_nodes(), graph.topology().num_relations()),
        labels,
        graph.prefixes().clone(),
    )
}

/// Checks that a graph comes back from its bytes as it was. Returns what came back.
fn there_and_back(graph: &Graph) -> Graph {
    let bytes = graph.to_bytes();
    let back = Graph::from_bytes(&bytes).unwrap();
    assert_eq!(parts(graph), parts(&back));
    for (id, name) in graph.entities().iter().enumerate() {
        assert_eq!(back.entities().id(name), Some(id as u32));
    }
    // The arrays that walks use are those of the graph without its edits.
    let flat = graph.flattened().unwrap();
    let arrays = |topology: &Topology| {
        let arrays = topology.arrays().unwrap();
        (arrays.records.to_vec(), arrays.slots.to_vec(), arrays.parallel.to_vec())
    };
    assert_eq!(arrays(flat.topology()), arrays(back.topology()));
    assert!(back.to_bytes() == bytes && flat.to_bytes() == bytes);
    back
}

/// A graph with labels, prefixes, names of all kinds, loops, parallel triples, and names without
/// triples.
fn example() -> Graph {
    let mut builder = GraphBuilder::new();
    builder.entity("before");
    for [head, relation, tail] in [
        ["http://ex.org/Zürich", "liegt in", "Schweiz 🇨🇭"],
        ["Schweiz 🇨🇭", "grenzt an", "Österreich"],
        ["Österreich", "grenzt an", "Schweiz 🇨🇭"],
        ["Schweiz 🇨🇭", "kennt", "Österreich"],
        ["a\tb\nc\0", "grenzt an", "a\tb\nc\0"],
        ["", "", "日本"],
    ] {
        builder.add(head, relation, tail);
    }
    builder.relation("unused");
    builder.entity("after");
    builder.label("http://ex.org/Zürich", "Zürich", 0);
    builder.label("after", "Nachher", 0);
    builder.label("kennt", "knows", 0);
    builder.label("unused", "\u{1f937}", 0);
    for (prefix, namespace) in [("ex", "http://ex.org/"), ("", "http://default.org/"), ("long", "http://ex.org/a/b#")] {
        builder.prefixes().insert(prefix, namespace);
    }
    builder.finish().unwrap()
}

#[test]
fn everything_comes_back() {
    let back = there_and_back(&example());
    assert_eq!(back.entities().get(0), "before");
    assert_eq!(back.relations().iter().collect::<Vec<_>>(), ["liegt in", "grenzt an", "kennt", "", "unused"]);
    assert_eq!(back.display("http://ex.org/Zürich"), "ex:Zürich");
    // Look-ups that need indexes.
    assert_eq!(back.parse_entity("NACHHER").unwrap(), back.entities().id("after").unwrap());
    assert_eq!(back.parse_relation("knows").unwrap(), 2);
}

/// Bytes of version 1 stay readable. The seed was written by `example().to_bytes()` when version 1
/// was made.
#[test]
fn bytes_of_version_1_are_read() {
    let seed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/packed/version-1");
    let graph = Graph::from_bytes(&std::fs::read(seed).unwrap()).unwrap();
    assert_eq!(parts(&graph), parts(&example()));
}

#[test]
fn graphs_of_this_repository_come_back() {
    for file in ["countries.tsv", "medicines.tsv"] {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data")).join(file);
        let graph = Graph::open(&path).unwrap();
        there_and_back(&graph);
        // Packing is of use: ids are shorter than names.
        let text = std::fs::metadata(&path).unwrap().len() as usize;
        assert!(graph.to_bytes().len() < text / 4, "{file}: {text} bytes, packed {}", graph.to_bytes().len());
    }
}

#[test]
fn edited_graphs_come_back() {
    let edit = |triple, present| NamedEdit { triple, present };
    let graph = example();
    let edited = graph
        .edited(&[
            edit(["Österreich", "grenzt an", "Liechtenstein"], true),
            edit(["Liechtenstein", "neu", "before"], true),
            edit(["Schweiz 🇨🇭", "grenzt an", "Österreich"], false),
            edit(["Schweiz 🇨🇭", "kennt", "Österreich"], false),
        ])
        .unwrap();
    let back = there_and_back(&edited);
    // 6 triples, 2 more, 2 fewer. `kennt` has none left, and stays.
    assert_eq!((back.topology().num_triples(), back.relations().len()), (6, 6));
    let twice = edited.edited(&[edit(["before", "neu", "Vaduz"], true)]).unwrap();
    there_and_back(&twice.with_labels([("Vaduz", "the capital"), ("neu", "new"), ("after", "")]));
    there_and_back(&twice.with_names(["x", "y"].into_iter(), ["z"].into_iter()).unwrap());
    // What comes back can be edited as well.
    let again = back.edited(&[edit(["before", "neu", "Vaduz"], true)]).unwrap();
    assert_eq!(again.to_bytes(), twice.to_bytes());

    // Without any triple.
    let all: Vec<[String; 3]> = graph
        .topology()
        .triples()
        .map(|t| [graph.entities().get(t.head), graph.relations().get(t.relation), graph.entities().get(t.tail)])
        .map(|names| names.map(str::to_owned))
        .collect();
    let none: Vec<_> = all.iter().map(|triple| edit(triple.each_ref().map(String::as_str), false)).collect();
    let back = there_and_back(&graph.edited(&none).unwrap());
    assert_eq!((back.topology().num_triples(), back.entities().len()), (0, graph.entities().len()));
}

/// Puts a body behind a sound header. `unpacked` is its length by the header.
fn sealed(body: &[u8], unpacked: u64) -> Vec<u8> {
    let mut checked = Vec::new();
    checked.extend(unpacked.to_le_bytes());
    checked.extend((body.len() as u64).to_le_bytes());
    checked.extend(body);
    let mut crc = flate2::Crc::new();
    crc.update(&checked);
    [b"FLOCKGRF\x01\0\0\0", &crc.sum().to_le_bytes()[..], &checked].concat()
}

fn plain(body: &[u8]) -> Vec<u8> {
    sealed(body, body.len() as u64)
}

/// Entities a, b; relation r; triple (a, r, b); no labels; no prefixes.
const BODY: &[u8] = b"\x02\x01\x01ab\x01\x01r\x01\x00\x01\x00\x00\x00\x00\x00";

#[test]
fn the_format_is_as_documented() {
    let mut builder = GraphBuilder::new();
    builder.add("a", "r", "b");
    let graph = builder.finish().unwrap();
    // Written by hand after the table in src/packed.rs. Python gives the checksum:
    // rest = struct.pack("<QQ", 16, 16) + body; hex(zlib.crc32(rest)) == "0x388f265e"
    let header = b"FLOCKGRF\x01\0\0\0\x5e\x26\x8f\x38\x10\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0";
    assert_eq!(graph.to_bytes(), [header, BODY].concat());
    assert_eq!(plain(BODY), graph.to_bytes());
}

#[test]
fn packed_only_as_far_as_it_may_be_unpacked() {
    // All pairs of 600 and 600: two bytes for most triples, all of them alike.
    let mut builder = GraphBuilder::new();
    for head in 0..600 {
        for tail in 0..600 {
            builder.add(&format!("h{head}"), "r", &format!("t{tail}"));
        }
    }
    let graph = builder.finish().unwrap();
    there_and_back(&graph);
    let bytes = graph.to_bytes();
    assert!(bytes.len() > 720_000, "{}", bytes.len());
    // zstd would make less than a fiftieth of it.
    let packed = zstd::bulk::compress(&bytes[32..], 1).unwrap();
    assert!(packed.len() * 50 < bytes.len(), "{}", packed.len());
    let unpacked = bytes.len() as u64 - 32;
    let error = Graph::from_bytes(&sealed(&packed, unpacked)).unwrap_err();
    assert_eq!(error, PackedError::Swollen { packed: packed.len() as u64, unpacked });
}

#[test]
fn cut_and_changed_bytes_are_refused() {
    let small = plain(BODY);
    let large = example().to_bytes();
    // One body is as it is, the other is packed.
    assert!(small.ends_with(BODY) && large[32..].starts_with(&[0x28, 0xb5, 0x2f, 0xfd]));
    for bytes in [small, large] {
        for len in 0..bytes.len() {
            let error = Graph::from_bytes(&bytes[..len]).unwrap_err();
            let is_expected = match len {
                0..8 => matches!(error, PackedError::NotPacked),
                _ => matches!(error, PackedError::Length { .. }),
            };
            assert!(is_expected, "{len}: {error}");
        }
        let longer = [&bytes[..], b"\0"].concat();
        assert!(matches!(Graph::from_bytes(&longer), Err(PackedError::Length { .. })));
        for bit in 0..8 * bytes.len() {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let error = Graph::from_bytes(&changed).unwrap_err();
            let is_expected = match bit / 8 {
                0..8 => matches!(error, PackedError::NotPacked),
                8..12 => matches!(error, PackedError::Version { .. }),
                24..32 => matches!(error, PackedError::Length { .. }),
                _ => matches!(error, PackedError::Checksum { .. }),
            };
            assert!(is_expected, "bit {bit}: {error}");
        }
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let said = |bytes: &[u8]| {
        let error = Graph::from_bytes(bytes).unwrap_err();
        format!("{error}; hint: {}", error.remedy().unwrap())
    };
    let sound = plain(BODY);
    assert_eq!(
        said(b"a\tr\tb\n"),
        "the bytes are no packed graph, expected them to begin with FLOCKGRF; \
         hint: pass the bytes that a graph was packed into"
    );
    let mut other = sound.clone();
    other[8] = 7;
    assert_eq!(
        said(&other),
        "the graph was packed in version 7 of the format, expected version 1; \
         hint: load the graph from its files and pack it again"
    );
    assert_eq!(
        said(&sound[..40]),
        "the packed graph has 40 bytes, expected 48; \
         hint: copy the bytes again, or load the graph from its files and pack it again"
    );
    let mut changed = sound.clone();
    *changed.last_mut().unwrap() = 1;
    assert!(said(&changed).starts_with("the packed graph is damaged: its checksum is "), "{}", said(&changed));
}

/// Bodies with the right checksum that no graph has.
#[test]
fn forged_bodies_are_refused() {
    let content = |body: &[u8]| match Graph::from_bytes(&plain(body)) {
        Err(PackedError::Content { what }) => what,
        other => panic!("{other:?} for {body:?}"),
    };
    // Each is the body above with a change in it.
    let names = b"\x02\x01\x01ab\x01\x01r";
    let after = |rest: &[u8]| content(&[&names[..], rest].concat());
    for len in 0..BODY.len() {
        let what = content(&BODY[..len]);
        assert!(["its body ends early", "longer than what is left"].iter().any(|end| what.ends_with(end)), "{what}");
    }
    assert_eq!(content(&[BODY, b"\0"].concat()), "something follows its end");
    // A number of ten groups may have 64 bits, and no more.
    assert_eq!(content(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "a list is longer than what is left");
    assert_eq!(content(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), "it has a number of more than 64 bits");
    assert_eq!(content(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "it has a number of more than 64 bits");
    assert_eq!(content(b"\x00\x00\x00\x00\x00\x00"), "it has no names, or more than there are ids");
    assert_eq!(content(b"\x02\x01\x7fab"), "texts are longer than what is left");
    let most = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    assert_eq!(content(&[b"\x02", &most[..], most].concat()), "texts are longer than what is left");
    assert_eq!(content(b"\x01\x01\xff"), "a text is not UTF-8");
    // Each name has half of é.
    assert_eq!(content(b"\x02\x01\x01\xc3\xa9\x01\x01r\x00"), "a text is not UTF-8");
    assert_eq!(content(b"\x02\x01\x01aa\x01\x01r\x00"), "a name occurs twice");
    assert_eq!(after(b"\x7f\x00\x01"), "a list is longer than what is left");
    assert_eq!(after(b"\x01\x00\xff\xff\xff\xff\x7f\0\0\0\0\0"), "an id is out of range");
    assert_eq!(after(b"\x00\x01\x02\x01\x01x\0\0\0\0"), "a label belongs to no name");
    assert_eq!(after(b"\x00\x02\x01\x00\x02\x01\x01xy\0\0\0"), "a label belongs to no name");
    assert_eq!(after(b"\x00\x01\x00\x00\0\0\0\0\0"), "it has more labels than ids of labels, or fewer");
    assert_eq!(after(b"\x00\x01\x00\x01\x00\0\0\0"), "a label is empty");
    let prefixes = |texts: &[u8]| after(&[b"\x00\0\0\0\0", texts].concat());
    for texts in [
        &b"\x01\x01p"[..],            // no namespace
        b"\x02\x01\x00p",             // an empty one
        b"\x04\x01\x01\x01\x02panbc", // a longer one after a shorter one
        b"\x04\x01\x01\x01\x01papb",  // a prefix twice
        b"\x04\x01\x01\x01\x01paqa",  // a namespace twice
    ] {
        assert_eq!(prefixes(texts), "its prefixes are not different, or not in order");
    }
    let far = Graph::from_bytes(&plain(&[&names[..], b"\x01\x00\x02\0\0\0\0\0"].concat()));
    assert!(matches!(far, Err(PackedError::Topology(TopologyError::NodeOutOfRange { num_nodes: 2, .. }))), "{far:?}");

    // Packed bodies, with a wrong length.
    let body = [&b"\x02\x01\x83\x01"[..], &b"a".repeat(132), &BODY[5..]].concat();
    let packed = zstd::bulk::compress(&body, 1).unwrap();
    let len = body.len() as u64;
    assert!(packed.len() < body.len() && Graph::from_bytes(&sealed(&packed, len)).is_ok());
    for unpacked in [0, len - 1, len + 1] {
        let error = Graph::from_bytes(&sealed(&packed, unpacked)).unwrap_err();
        assert_eq!(error, PackedError::Content { what: "its body cannot be unpacked" });
    }
    for unpacked in [1 << 20, u64::MAX] {
        assert!(matches!(Graph::from_bytes(&sealed(&packed, unpacked)), Err(PackedError::Swollen { .. })));
    }
}

/// The same cases in every run.
fn config() -> ProptestConfig {
    ProptestConfig { cases: 500, rng_seed: RngSeed::Fixed(20), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_graph_comes_back(
        triples in prop::collection::vec(("[a-eé]{0,2}", "[rs]{0,2}", "[a-eé]{0,2}"), 1..60),
        alone in prop::collection::vec(".{0,8}", 0..5),
        labels in prop::collection::vec(("[a-ers]{1,2}", ".{0,8}"), 0..10),
        prefixes in prop::collection::vec((".{0,3}", ".{0,9}"), 0..5),
        edits in prop::collection::vec(("[a-g]{0,2}", "[rst]{0,2}", "[a-g]{0,2}", any::<bool>()), 0..30),
    ) {
        let mut builder = GraphBuilder::new();
        for (at, (head, relation, tail)) in triples.iter().enumerate() {
            if let Some(name) = alone.get(at) {
                builder.entity(name);
                builder.relation(name);
            }
            builder.add(head, relation, tail);
        }
        labels.iter().for_each(|(name, label)| builder.label(name, label, 0));
        prefixes.iter().for_each(|(prefix, namespace)| builder.prefixes().insert(prefix, namespace));
        let graph = builder.finish().unwrap();
        there_and_back(&graph);
        let edits: Vec<_> =
            edits.iter().map(|(h, r, t, present)| NamedEdit { triple: [h, r, t], present: *present }).collect();
        there_and_back(&graph.edited(&edits).unwrap());
    }

    /// Whatever stands behind a sound header gives a graph that comes back, or an error.
    #[test]
    fn any_body(
        body in prop::collection::vec(any::<u8>(), 0..60),
        small in prop::collection::vec(prop::sample::select(vec![0u8, 1, 2, 3, b'a', b'b', b'c', 0xff]), 0..40),
        change in (0..BODY.len(), any::<u8>()),
    ) {
        let mut changed = BODY.to_vec();
        changed[change.0] = change.1;
        for body in [&body, &small, &[&BODY[..BODY.len() - 5], &small].concat(), &changed] {
            for bytes in [plain(body), sealed(body, 2 * body.len() as u64), [b"FLOCKGRF", &body[..]].concat()] {
                if let Ok(graph) = Graph::from_bytes(&bytes) {
                    there_and_back(&graph);
                }
            }
        }
    }
}
