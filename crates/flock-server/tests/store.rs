//! The file of edits against everything that can happen to a file: flipped bits, cut ends, kills, other graphs, other servers,
//! other versions. Whatever happens, a store gives back exactly what was acknowledged, or says why it cannot.

use std::fs;
use std::path::Path;

use flock_kg::calibrate::Calibrations;
use flock_kg::graph::{Graph, GraphBuilder, NamedEdit};
use flock_server::live::{EditsFile, Live, LiveError};
use flock_server::store::{GraphId, OpenedStore, Store, StoreContent, StoreError, StoreRemedy};

fn graph(triples: &[[&str; 3]]) -> Graph {
    let mut builder = GraphBuilder::new();
    triples.iter().for_each(|[h, r, t]| builder.add(h, r, t));
    builder.finish().unwrap()
}

fn world() -> Graph {
    graph(&[["Portugal", "borders", "Spain"], ["Spain", "borders", "France"]])
}

fn id() -> GraphId {
    GraphId::of(&world())
}

fn edit<'a>(triple: [&'a str; 3], present: bool) -> NamedEdit<'a> {
    NamedEdit { triple, present }
}

/// Four commits, with names that JSON must escape; and what they come to.
fn fill(path: &Path) -> StoreContent {
    let mut store = Store::open(path, id(), false).unwrap().store;
    store.commit(&[edit(["Portugal", "in", "Europe"], true)], [vec!["Europe"], vec!["in"]], &[]).unwrap();
    store.commit(&[edit(["Portugal", "borders", "Spain"], false)], [vec![], vec![]], &[]).unwrap();
    let odd = "\"new\nline\"\u{0}\u{202e}é";
    store
        .commit(&[edit(["Spain", "in", odd], true), edit(["Spain", "in", "Europe"], true)], [vec![odd], vec![]], &[])
        .unwrap();
    store.commit(&[edit(["Spain", "in", "Europe"], false)], [vec![], vec![]], &[]).unwrap();
    let edits = [
        (["Portugal", "borders", "Spain"], false),
        (["Portugal", "in", "Europe"], true),
        (["Spain", "in", odd], true),
        (["Spain", "in", "Europe"], false),
    ];
    let mut edits: Vec<_> = edits.into_iter().map(|(t, p)| (t.map(str::to_string), p)).collect();
    edits.sort();
    StoreContent { names: [vec!["Europe".into(), odd.into()], vec!["in".into()]], edits, labels: vec![] }
}

/// What a file of these bytes gives; `None` if it is refused.
fn reopened(dir: &Path, bytes: &[u8]) -> Option<(StoreContent, Vec<String>)> {
    let path = dir.join("again");
    fs::write(&path, bytes).unwrap();
    let opened = Store::open(&path, id(), false);
    opened.ok().map(|OpenedStore { stored, notices, .. }| (stored, notices))
}

/// SplitMix64: a fixed row of numbers.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[test]
fn every_flipped_bit_is_found_or_harmless() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("edits");
    let want = fill(&path);
    let bytes = fs::read(&path).unwrap();
    assert_eq!(reopened(dir.path(), &bytes), Some((want.clone(), vec![])));
    let mut state = 1;
    let (mut refused, mut mended) = (0, 0);
    for trial in 0..600 {
        let mut damaged = bytes.clone();
        // One bit, then up to four, all over the file.
        for _ in 0..1 + trial / 150 {
            let at = random(&mut state) as usize % (8 * bytes.len());
            damaged[at / 8] ^= 1 << (at % 8);
        }
        match reopened(dir.path(), &damaged) {
            None => refused += 1,
            Some((stored, notices)) => {
                assert!(stored == want && (damaged == bytes || !notices.is_empty()), "trial {trial}");
                mended += 1;
            }
        }
    }
    // One of the two marks may go. They are a quarter of this small file.
    assert!(refused > 400 && mended > 20, "{refused} refused, {mended} mended");
}

#[test]
fn a_file_cut_short_anywhere_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("edits");
    fill(&path);
    let bytes = fs::read(&path).unwrap();
    for len in 0..bytes.len() {
        assert_eq!(reopened(dir.path(), &bytes[..len]), None, "{len} of {} bytes", bytes.len());
    }
    let error = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        Store::open(&path, id(), false).err().unwrap().to_string()
    };
    assert!(error(&bytes[..bytes.len() - 1]).contains("damaged at byte"));
    assert!(error(b"").ends_with("edits: is empty, expected a file of edits"));
    assert!(error(b"a\tb\tc\n").ends_with("edits: is something else, expected a file of edits"));
}

/// A kill in the middle of a commit leaves some of its line; the mark still says what was acknowledged.
#[test]
fn a_torn_end_is_reported_and_nothing_else_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("edits");
    let want = fill(&path);
    let before = fs::read(&path).unwrap();
    let mut store = Store::open(&path, id(), false).unwrap().store;
    store.commit(&[edit(["a", "b", "c"], true)], [vec!["a", "c"], vec!["b"]], &[]).unwrap();
    drop(store);
    let after = fs::read(&path).unwrap();
    let line = &after[before.len()..];
    for len in 1..line.len() {
        let torn = [&before[..], &line[..len]].concat();
        let (stored, notices) = reopened(dir.path(), &torn).unwrap();
        assert_eq!(stored, want);
        assert!(
            notices.len() == 1 && notices[0].contains(&format!("{len} bytes of an edit that was cut off")),
            "{notices:?}"
        );
        // It has been cut off: the next opening has nothing to say, and the next edit goes on.
        let path = dir.path().join("again");
        let OpenedStore { mut store, notices, .. } = Store::open(&path, id(), false).unwrap();
        assert!(notices.is_empty());
        store.commit(&[edit(["a", "b", "c"], true)], [vec!["a", "c"], vec!["b"]], &[]).unwrap();
        assert_eq!(store.commits(), 5);
    }
    // The line is whole and the kill came before the mark: it counts.
    let (stored, notices) = reopened(dir.path(), &[&before[..], line].concat()).unwrap();
    assert!(stored.edits.contains(&(["a", "b", "c"].map(str::to_string), true)) && notices.is_empty());
    // After a power cut the system may have grown the file without writing into it.
    let (stored, notices) = reopened(dir.path(), &[&before[..], &[0; 4096]].concat()).unwrap();
    assert!(stored == want && notices.len() == 1);
}

/// While the file is made it has another name, so a kill leaves one of three states, and each of them opens.
#[test]
fn a_kill_while_the_file_is_made_leaves_no_ruin() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("edits");
    let temporary = dir.path().join("edits.new");
    fill(&path);
    let whole = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    for len in [0, 1, 40, whole.len() / 2, whole.len()] {
        // Some of the temporary file, and no other.
        fs::write(&temporary, &whole[..len]).unwrap();
        let OpenedStore { mut store, stored, notices } = Store::open(&path, id(), false).unwrap();
        assert_eq!((stored, notices.len()), (StoreContent::default(), 0));
        store.commit(&[edit(["a", "b", "c"], true)], [vec!["a", "c"], vec!["b"]], &[]).unwrap();
        drop(store);
        assert_eq!(Store::open(&path, id(), false).unwrap().stored.edits.len(), 1);
        assert!(!temporary.exists());
        fs::remove_file(&path).unwrap();
    }
    // Made, and the first edit not written.
    let mut store = Store::open(&path, id(), false).unwrap().store;
    store.commit(&[edit(["a", "b", "c"], true)], [vec![], vec![]], &[]).unwrap();
    drop(store);
    let bytes = fs::read(&path).unwrap();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
    let words = String::from_utf8(lines[1].to_vec()).unwrap();
    let made = [lines[0], lines[1], lines[1]].concat();
    // The first of the two marks is still the one from the making: nothing kept.
    assert!(words.starts_with("kept 00000000000000000000 "), "{words}");
    assert_eq!(reopened(dir.path(), &made), Some((StoreContent::default(), vec![])));
}

#[test]
fn other_graphs_and_newer_versions_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("edits");
    let want = fill(&path);
    // The same names and sizes, one triple turned round.
    let other = || graph(&[["Portugal", "borders", "Spain"], ["France", "borders", "Spain"]]);
    let error = Store::open(&path, GraphId::of(&other()), false).err().unwrap();
    assert!(matches!(error, StoreError::OtherGraph { .. }) && error.remedy() == StoreRemedy::Adopt);
    assert!(
        error.to_string().contains("made on another graph (3 entities, 1 relations, 2 triples, SHA-256 "),
        "{error}"
    );
    // On purpose it works, and from then on they are edits of the other graph.
    let OpenedStore { store, stored, notices } = Store::open(&path, GraphId::of(&other()), true).unwrap();
    assert_eq!((&stored, notices.len()), (&want, 1));
    drop(store);
    assert_eq!(Store::open(&path, GraphId::of(&other()), false).unwrap().stored, want);
    assert!(matches!(Store::open(&path, id(), false), Err(StoreError::OtherGraph { .. })));

    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("edits 1 ", "edits 3 ", 1)).unwrap();
    let error = Store::open(&path, id(), false).err().unwrap();
    assert!(error.to_string().contains("format version 3, this program reads versions up to 2"), "{error}");
    assert_eq!(error.remedy(), StoreRemedy::Upgrade);
}

/// Opens a graph again. Whoever had it open may still be sorting names on another thread.
fn reopen(path: &Path) -> std::sync::Arc<Live> {
    for _ in 0..1000 {
        match live(path) {
            Err(LiveError::Store(StoreError::InUse { .. })) => std::thread::sleep(std::time::Duration::from_millis(10)),
            opened => return opened.unwrap(),
        }
    }
    panic!("{} stays in use", path.display())
}

/// A graph and its labels are the same after a restart; a store of an older version has none.
#[test]
fn labels_are_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("edits");
    let first = live(&path).unwrap();
    first.edit(&[edit(["Portugal", "in", "Europe"], true)]).unwrap();
    assert!(fs::read_to_string(&path).unwrap().starts_with("flock-kg edits 1 "));
    drop(first);
    let second = reopen(&path);
    second.edit_labelled(&[edit(["Spain", "in", "Q46"], true)], &[("Q46", "Europa"), ("in", "is in")]).unwrap();
    assert!(fs::read_to_string(&path).unwrap().starts_with("flock-kg edits 2 "));
    drop(second);
    let third = reopen(&path).graph();
    assert_eq!(["Q46", "in", "Europe"].map(|name| third.label(name)), [Some("Europa"), Some("is in"), None]);
    assert_eq!((third.find_entity("europa"), third.find_relation("Is In")), (third.entities().id("Q46"), Some(1)));
    assert_eq!(third.topology().num_triples(), 4);
}

fn live(path: &Path) -> Result<std::sync::Arc<Live>, LiveError> {
    Live::open("world".into(), world(), Some(EditsFile { path, adopt: false }), Calibrations::default())
}

/// Two servers that both started before there was a file.
#[test]
fn a_second_server_is_refused_and_later_takes_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("edits");
    let (first, second) = (live(&path).unwrap(), live(&path).unwrap());
    first.edit(&[edit(["Lisbon", "in", "Portugal"], true)]).unwrap();
    let refused = |e: LiveError| matches!(e, LiveError::Store(StoreError::InUse { .. }));
    assert!(refused(second.edit(&[edit(["Madrid", "in", "Spain"], true)]).unwrap_err()));
    assert!(refused(live(&path).err().unwrap()));
    drop(first);
    // The threads that sort names hold a server for a moment.
    let begin = std::time::Instant::now();
    while second.edit(&[edit(["Madrid", "in", "Spain"], true)]).is_err() {
        assert!(begin.elapsed() < std::time::Duration::from_secs(20));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // What the first kept is there, under the ids it had, and then the second's own.
    let graph = second.graph();
    let names: Vec<&str> = graph.entities().iter().collect();
    assert_eq!(names, ["Portugal", "Spain", "France", "Lisbon", "Madrid"]);
    assert_eq!(graph.topology().num_triples(), 4);
}

/// The store of older versions, made as they made it.
fn old_store(path: &Path) -> StoreContent {
    use redb::{Database, TableDefinition};
    const EDITS: TableDefinition<'static, (&str, &str, &str), bool> = TableDefinition::new("edits-1");
    const ENTITIES: TableDefinition<'static, u64, &str> = TableDefinition::new("entities-1");
    const RELATIONS: TableDefinition<'static, u64, &str> = TableDefinition::new("relations-1");
    let database = Database::create(path).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let mut edits = transaction.open_table(EDITS).unwrap();
        edits.insert(("Portugal", "in", "Europe"), true).unwrap();
        edits.insert(("Portugal", "borders", "Spain"), false).unwrap();
        transaction.open_table(ENTITIES).unwrap().insert(0, "Europe").unwrap();
        transaction.open_table(RELATIONS).unwrap().insert(0, "in").unwrap();
    }
    transaction.commit().unwrap();
    let edits = [(["Portugal", "borders", "Spain"], false), (["Portugal", "in", "Europe"], true)];
    StoreContent {
        names: [vec!["Europe".into()], vec!["in".into()]],
        edits: edits.map(|(t, p)| (t.map(str::to_string), p)).to_vec(),
        labels: vec![],
    }
}

#[test]
fn stores_of_older_versions_are_converted() {
    let dir = tempfile::tempdir().unwrap();
    let (path, old) = (dir.path().join("graph.tsv.edits"), dir.path().join("graph.tsv.edits.redb"));
    let want = old_store(&old);
    let bytes = fs::read(&old).unwrap();
    let OpenedStore { store, stored, notices } = Store::open(&path, id(), false).unwrap();
    assert_eq!(stored, want);
    assert!(notices.len() == 1 && notices[0].contains("converted to"), "{notices:?}");
    drop(store);
    assert!(!old.exists() && dir.path().join("graph.tsv.edits.redb.old").exists());
    assert_eq!(Store::open(&path, id(), false).unwrap().stored, want);
    // One that is named outright is converted in its place, with a copy kept.
    fs::write(&old, &bytes).unwrap();
    for _ in 0..2 {
        assert_eq!(Store::open(&old, id(), false).unwrap().stored, want);
    }
    assert!(fs::read(&old).unwrap().starts_with(b"flock-kg edits 1 "));
    // A damaged one is refused or whole, never a panic or something else.
    let mut state = 7;
    for trial in 0..60 {
        let mut damaged = bytes.clone();
        let at = random(&mut state) as usize % (8 * bytes.len());
        damaged[at / 8] ^= 1 << (at % 8);
        fs::write(&old, &damaged).unwrap();
        if let Ok(opened) = Store::open(&old, id(), false) {
            assert_eq!(opened.stored, want, "trial {trial}, bit {at}");
        }
    }
}
