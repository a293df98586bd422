//! Fetching datasets from a web server on this machine that breaks off, ignores ranges, changes files and lacks some.
#![cfg(feature = "fetch")]

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use flock_eval::datasets::fetch::{FetchError, fetch};
use flock_eval::datasets::{Dataset, DatasetRemedy, Part, registry};

mod common;
use common::{SHARED, State, quiet, serve};

/// Upstream files of a tiny dataset in NLIngram_0's place: 6 triples a file.
fn upstream() -> HashMap<String, Vec<u8>> {
    let file =
        |name: &str| -> Vec<u8> { (0..6).flat_map(|i| format!("a{i}\tr{name}\tb{}\n", i + 1).into_bytes()).collect() };
    ["train", "msg", "valid", "test"].map(|f| (format!("data/NL-0/{f}.txt"), file(f))).into()
}

#[test]
fn a_broken_download_goes_on_where_it_broke() {
    let state = Arc::new(Mutex::new(State { files: upstream(), cut: Some(30), ..State::default() }));
    let url = serve(state.clone());
    let dir = tempfile::tempdir().unwrap();
    let entry = registry::get("NLIngram_0").unwrap();
    let length = state.lock().unwrap().files["data/NL-0/train.txt"].len();
    // 6 lines of "a0\trtrain\tb1\n", 13 bytes each: three connections of 30 bytes bring the first file.
    assert_eq!(length, 78);
    let differences = fetch(entry, Some(&url), dir.path(), true, &mut quiet).unwrap();
    assert!(differences.iter().any(|d| d == "train.txt: triples 6, expected 7796"), "{differences:?}");
    assert!(differences.iter().any(|d| d.starts_with("train.txt: SHA-256")));
    let seen = state.lock().unwrap().seen.clone();
    let train: Vec<_> = seen.iter().filter(|s| s.0.ends_with("train.txt")).map(|s| (s.1, s.2)).collect();
    assert_eq!(train, [(0, 30), (30, 30), (60, 18)], "no byte was sent twice");
    let made = dir.path().join("NLIngram_0");
    assert_eq!(std::fs::read(made.join("inference.txt")).unwrap(), upstream()["data/NL-0/msg.txt"]);
    assert!(!dir.path().join(".fetch").exists());
    // The description it wrote is read back to the registry's protocol, and its checksums hold.
    let dataset = Dataset::open(&made).unwrap();
    assert_eq!((dataset.name.as_str(), &dataset.protocol), ("NLIngram_0", &entry.protocol));
    assert!(matches!(fetch(entry, Some(&url), dir.path(), true, &mut quiet), Err(FetchError::Exists { .. })));
}

#[test]
fn a_second_call_takes_up_what_the_first_left() {
    let state = Arc::new(Mutex::new(State { files: upstream(), cut: Some(5), ..State::default() }));
    let url = serve(state.clone());
    let dir = tempfile::tempdir().unwrap();
    let entry = registry::get("NLIngram_0").unwrap();
    let error = fetch(entry, Some(&url), dir.path(), true, &mut quiet).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("broke off after 25") && text.ends_with("; what has come is kept"), "{text}");
    assert_eq!(error.remedy(), Some(DatasetRemedy::Resume));
    assert!(!dir.path().join("NLIngram_0").exists());
    // A directory that lacks the files is no reason to throw away what has come.
    let empty = tempfile::tempdir().unwrap();
    fetch(entry, Some(empty.path().to_str().unwrap()), dir.path(), true, &mut quiet).unwrap_err();
    state.lock().unwrap().cut = None;
    fetch(entry, Some(&url), dir.path(), true, &mut quiet).unwrap();
    assert!(state.lock().unwrap().seen.contains(&("data/NL-0/train.txt".to_string(), 25, 53)));
    assert_eq!(std::fs::read(dir.path().join("NLIngram_0/train.txt")).unwrap(), upstream()["data/NL-0/train.txt"]);
}

#[test]
fn a_file_that_changed_or_a_server_without_ranges_starts_anew() {
    for changes in [true, false] {
        let state = Arc::new(Mutex::new(State { files: upstream(), cut: Some(5), ..State::default() }));
        let url = serve(state.clone());
        let dir = tempfile::tempdir().unwrap();
        let entry = registry::get("NLIngram_0").unwrap();
        fetch(entry, Some(&url), dir.path(), true, &mut quiet).unwrap_err();
        let mut changed = state.lock().unwrap();
        (changed.cut, changed.ignores_ranges) = (None, !changes);
        if changes {
            changed.files.insert("data/NL-0/train.txt".to_string(), b"x\ty\tz\n".repeat(9));
        }
        let want = changed.files["data/NL-0/train.txt"].clone();
        drop(changed);
        fetch(entry, Some(&url), dir.path(), true, &mut quiet).unwrap();
        assert_eq!(std::fs::read(dir.path().join("NLIngram_0/train.txt")).unwrap(), want);
    }
}

#[test]
fn what_is_not_as_published_is_refused() {
    let state = Arc::new(Mutex::new(State { files: upstream(), ..State::default() }));
    let url = serve(state.clone());
    let dir = tempfile::tempdir().unwrap();
    let entry = registry::get("NLIngram_0").unwrap();
    let error = fetch(entry, Some(&url), dir.path(), false, &mut quiet).unwrap_err();
    assert!(matches!(&error, FetchError::Differs { differences, .. } if differences.len() > 4), "{error}");
    assert!(!dir.path().join("NLIngram_0").exists());
    state.lock().unwrap().files.insert("data/NL-0/valid.txt".to_string(), b"a\tb\n".to_vec());
    let fresh = tempfile::tempdir().unwrap();
    let error = fetch(entry, Some(&url), fresh.path(), true, &mut quiet).unwrap_err().to_string();
    assert_eq!(error, "data/NL-0/valid.txt:1: expected 3 fields, found 2");
    state.lock().unwrap().files.remove("data/NL-0/test.txt");
    state.lock().unwrap().files.insert("data/NL-0/valid.txt".to_string(), b"a\tb\tc\n".to_vec());
    let fresh = tempfile::tempdir().unwrap();
    let error = fetch(entry, Some(&url), fresh.path(), true, &mut quiet).unwrap_err();
    assert!(matches!(error, FetchError::NotFound { part: Part::Test, .. }), "{error}");
}

#[test]
fn directories_columns_merges_and_archives() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let write = |path: &str, text: &[u8]| {
        let path = from.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let source = from.path().to_str().unwrap().to_string();
    let get = |name: &str| fetch(registry::get(name).unwrap(), Some(&source), to.path(), true, &mut quiet);
    let read = |path: &str| std::fs::read_to_string(to.path().join(path)).unwrap();
    // DacKGR's files have head, tail, relation; GraIL's test is valid and test, one after the other.
    for part in ["train", "dev", "test"] {
        write(&format!("data/WD-singer/{part}.triples"), b"h1 t1 r1\nh2\tt2\tr2\r\n");
    }
    get("WDsinger").unwrap();
    assert_eq!(read("WDsinger/valid.txt"), "h1\tr1\tt1\nh2\tr2\tt2\n");
    for part in ["fb237_v1/train", "fb237_v1/valid", "fb237_v1_ind/train", "fb237_v1_ind/valid", "fb237_v1_ind/test"] {
        write(&format!("data/{part}.txt"), format!("a\t{}\tb\n", part.replace('/', "-")).as_bytes());
    }
    get("FB15k237Inductive_v1").unwrap();
    assert_eq!(read("FB15k237Inductive_v1/test.txt"), "a\tfb237_v1_ind-valid\tb\na\tfb237_v1_ind-test\tb\n");
    // A tar.gz and a zip.
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for part in ["train", "valid", "test"] {
        let text = format!("a\t{part}\tb\n");
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        tar.append_data(&mut header, format!("{part}.txt"), text.as_bytes()).unwrap();
        zip.start_file(format!("aristo/{part}"), zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    write("FB15k-237.tar.gz", &tar.into_inner().unwrap().finish().unwrap());
    write("aristo-v4.zip", &zip.finish().unwrap().into_inner());
    get("FB15k237").unwrap();
    get("AristoV4").unwrap();
    assert_eq!(
        (read("FB15k237/valid.txt"), read("AristoV4/test.txt")),
        ("a\tvalid\tb\n".into(), "a\ttest\tb\n".into())
    );
}

#[test]
fn a_mirror_in_the_layout_gives_the_published_files() {
    if !Path::new(SHARED).join("kg/Metafam").is_dir() {
        eprintln!("skipped: ../shared not found");
        return;
    }
    let mut files = HashMap::new();
    for part in ["train", "inference", "valid", "test"] {
        let path = format!("Metafam/{part}.txt");
        files.insert(path.clone(), std::fs::read(format!("{SHARED}/kg/{path}")).unwrap());
    }
    let url = serve(Arc::new(Mutex::new(State { files, cut: Some(100_000), ..State::default() })));
    let dir = tempfile::tempdir().unwrap();
    let entry = registry::get("Metafam").unwrap();
    // Not accepting anything that differs: checksums and counts hold.
    assert_eq!(fetch(entry, Some(&url), dir.path(), false, &mut quiet).unwrap(), Vec::<String>::new());
    let dir = tempfile::tempdir().unwrap();
    fetch(entry, Some(&format!("{SHARED}/kg")), dir.path(), false, &mut quiet).unwrap();
}
