//! What is refused when a dataset is fetched, in which words, and what is left behind.
#![cfg(feature = "fetch")]

mod common;

use std::collections::HashMap;
use std::path::Path;

use common::{Rows, quiet, serve_files, source, synthetic, tar_gz, upstream, upstream_as, write_all, zip};
use flock_eval::datasets::fetch::{FetchError, Suspicion, fetch};
use flock_eval::datasets::{DatasetRemedy, Part, registry};

type Files = HashMap<String, Vec<u8>>;

/// Fetches from a directory with these files. Returns the error; nothing may be left behind.
fn refused(name: &str, files: &Files) -> FetchError {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_all(from.path(), files);
    let error = fetch(registry::get(name).unwrap(), from.path().to_str(), to.path(), false, &mut quiet).unwrap_err();
    assert_eq!(std::fs::read_dir(to.path()).unwrap().count(), 0, "{error}");
    error
}

fn differences(name: &str, rows: &Rows) -> Vec<String> {
    match refused(name, &upstream(name, rows)) {
        FetchError::Differs { differences, suspicions, kept, .. } => {
            assert_eq!((suspicions, kept), (Vec::new(), None));
            differences
        }
        other => panic!("{other}"),
    }
}

/// A small graph with the registry's counts: 3,103 entities, 14 relations, 4,687 triples, 414 for
/// validation; the test graph 225 entities, 833 triples, 201 to predict.
const SMALL: &str = "NELLInductive_v1";

fn small() -> Rows {
    synthetic(registry::get(SMALL).unwrap())
}

#[test]
fn each_count_that_differs_is_named() {
    let mut rows = small();
    rows.get_mut(&Part::Test).unwrap().pop();
    assert_eq!(differences(SMALL, &rows), ["test.txt: triples 200, expected 201"]);

    let mut rows = small();
    rows.get_mut(&Part::Test).unwrap()[7][0] = "one too many".replace(' ', "_");
    assert_eq!(differences(SMALL, &rows), ["test candidates: entities 226, expected 225"]);

    let mut rows = small();
    rows.get_mut(&Part::Train).unwrap()[7][1] = "another".to_string();
    rows.get_mut(&Part::Inference).unwrap().pop();
    assert_eq!(
        differences(SMALL, &rows),
        [
            "train.txt: relations 15, expected 14",
            "valid candidates: relations 15, expected 14",
            "test candidates: relations 15, expected 14",
            "inference.txt: triples 832, expected 833"
        ]
    );

    // An empty file, and validation triples that are all unknown to the training graph (MTDEA).
    let mut files = upstream(SMALL, &small());
    files.insert("data/nell_v1/valid.txt".to_string(), Vec::new());
    let error = refused(SMALL, &files).to_string();
    assert!(error.contains("valid.txt: triples 0, expected 414"), "{error}");
    let mut rows = synthetic(registry::get("FBNELL").unwrap());
    rows.get_mut(&Part::Valid).unwrap().iter_mut().for_each(|row| row[0] = "unknown".to_string());
    rows.get_mut(&Part::Valid).unwrap().pop();
    assert_eq!(differences("FBNELL", &rows), ["valid.txt: triples 0, expected 1055"]);

    // The whole message.
    let mut rows = small();
    rows.get_mut(&Part::Valid).unwrap().pop();
    let error = refused(SMALL, &upstream(SMALL, &rows));
    assert_eq!(error.to_string(), "NELLInductive_v1 is not as published:\n  valid.txt: triples 413, expected 414");
    assert_eq!(error.remedy(), Some(DatasetRemedy::Accept { kept: None }));
}

#[test]
fn swapped_columns_are_suspected() {
    // Head, tail, relation where head, relation, tail is expected, and the other way round (DacKGR).
    for (name, columns, words) in [
        (SMALL, [0, 2, 1], "as head, tail, relation instead of head, relation, tail"),
        (SMALL, [1, 0, 2], "as relation, head, tail instead of head, relation, tail"),
        ("NELL23k", [0, 1, 2], "as head, relation, tail instead of head, tail, relation"),
    ] {
        let rows = synthetic(registry::get(name).unwrap());
        let error = refused(name, &upstream_as(name, &rows, columns, source(name).1));
        let FetchError::Differs { differences, suspicions, .. } = &error else { panic!("{error}") };
        assert!(differences.len() >= 2, "{differences:?}");
        assert!(matches!(suspicions[..], [Suspicion::Columns { .. }]), "{suspicions:?}");
        let last = error.to_string().lines().last().unwrap().to_string();
        assert_eq!(last, format!("  the columns may be swapped: {words} the counts are as published"));
    }
}

#[test]
fn a_header_is_suspected() {
    let mut rows = small();
    rows.values_mut().for_each(|rows| rows.insert(0, ["head", "relation", "tail"].map(String::from)));
    let error = refused(SMALL, &upstream(SMALL, &rows));
    let FetchError::Differs { differences, .. } = &error else { panic!("{error}") };
    assert!(differences.contains(&"train.txt: triples 4688, expected 4687".to_string()), "{differences:?}");
    assert!(differences.contains(&"train.txt: entities 3105, expected 3103".to_string()), "{differences:?}");
    let text = error.to_string();
    assert!(text.ends_with("\n  there may be a header: every file begins with \"head relation tail\""), "{text}");
    // A line with a count is no triple.
    let mut files = upstream(SMALL, &small());
    let train = files.get_mut("data/nell_v1/train.txt").unwrap();
    train.splice(0..0, *b"4687\n");
    assert_eq!(refused(SMALL, &files).to_string(), "data/nell_v1/train.txt:1: expected 3 fields, found 1");
}

#[test]
fn line_ends_and_blank_lines_do_not_matter() {
    let mut files = upstream(SMALL, &small());
    for bytes in files.values_mut() {
        let text = String::from_utf8(std::mem::take(bytes)).unwrap();
        *bytes = (text.replace('\n', "\r\n") + "\r\n \r\n").into_bytes();
    }
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_all(from.path(), &files);
    fetch(registry::get(SMALL).unwrap(), from.path().to_str(), to.path(), false, &mut quiet).unwrap();
    assert!(!std::fs::read_to_string(to.path().join(SMALL).join("train.txt")).unwrap().contains('\r'));
}

#[test]
fn files_of_another_kind_are_told_by_what_they_are() {
    let page = b"\n<!DOCTYPE html>\n<html><body>Sign in to continue</body></html>".to_vec();
    let change = |path: &str, bytes: &[u8]| {
        let mut files = upstream(SMALL, &small());
        assert!(files.insert(path.to_string(), bytes.to_vec()).is_some());
        refused(SMALL, &files)
    };
    let error = change("data/nell_v1_ind/train.txt", &page);
    assert_eq!(error.to_string(), "data/nell_v1_ind/train.txt: looks like a web page (HTML), expected triples");
    assert_eq!(error.remedy(), Some(DatasetRemedy::OtherSource));
    let error = change("data/nell_v1/valid.txt", b"a\tr\tb\ncaf\xe9\tr\tb\n");
    assert_eq!(error.to_string(), "data/nell_v1/valid.txt:2: invalid UTF-8 at byte 4 of the line, expected UTF-8 text");
    let error = change("data/nell_v1/valid.txt", b"a\tr\tb\na\tr\tb\t0.5\n");
    assert_eq!(error.to_string(), "data/nell_v1/valid.txt:2: expected 3 fields, found 4");
    // The same in place of an archive.
    let error = refused("AristoV4", &Files::from([("aristo-v4.zip".to_string(), page)])).to_string();
    assert!(error.ends_with("aristo-v4.zip: looks like a web page (HTML), expected an archive"), "{error}");
}

#[test]
fn archives_that_are_damaged_or_lack_a_file() {
    let rows = |part: &str| (0..50).flat_map(|i| format!("{part}{i}\tr\t{part}\n").into_bytes()).collect::<Vec<u8>>();
    let inside = |names: &[&str]| names.iter().map(|n| (n.to_string(), rows(n))).collect::<Vec<_>>();
    let with = |archive: &str, bytes: Vec<u8>| {
        let name = if archive.ends_with("zip") { "AristoV4" } else { "FB15k237" };
        refused(name, &Files::from([(archive.to_string(), bytes)])).to_string()
    };
    let names = ["train.txt", "valid.txt", "test.txt"];
    for (archive, make) in [
        ("aristo-v4.zip", zip as fn(&[(String, Vec<u8>)]) -> Vec<u8>),
        ("FB15k-237.tar.gz", tar_gz as fn(&[(String, Vec<u8>)]) -> Vec<u8>),
    ] {
        let own = |name: &str| if archive.ends_with("zip") { name.replace(".txt", "") } else { name.to_string() };
        let names = names.map(own);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let error = with(archive, make(&inside(&names[..2])));
        assert!(error.ends_with(&format!("no {} in it; it has {}, {}", names[2], names[0], names[1])), "{error}");
        let whole = make(&inside(&names));
        let error = with(archive, whole[..whole.len() / 2].to_vec());
        assert!(error.contains("the archive is damaged: "), "{error}");
        // One byte of the first file's data.
        let mut bytes = whole;
        bytes[60] ^= 0x55;
        let error = with(archive, bytes);
        assert!(error.contains("the archive is damaged: "), "{error}");
        let error = with(archive, b"not an archive at all".to_vec());
        assert!(error.contains("the archive is damaged: "), "{error}");
    }
}

#[test]
fn names_in_an_archive_lead_nowhere() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let row = |name: &str| (name.to_string(), b"a\tr\tb\n".to_vec());
    let names = ["../../evil/train.txt", "/tmp/evil/valid.txt", "..//test.txt", "../../evil/other.txt"].map(row);
    let files = Files::from([("FB15k-237.tar.gz".to_string(), tar_gz(&names))]);
    write_all(from.path(), &files);
    let data = to.path().join("a/b");
    fetch(registry::get("FB15k237").unwrap(), from.path().to_str(), &data, true, &mut quiet).unwrap();
    let inside = |dir: &Path| -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!((inside(to.path()), inside(&to.path().join("a"))), (vec!["a".to_string()], vec!["b".to_string()]));
    assert_eq!(inside(&data), ["FB15k237"]);
    assert_eq!(inside(&data.join("FB15k237")), ["meta.json", "test.txt", "train.txt", "valid.txt"]);
    assert!(!Path::new("/tmp/evil").exists());
}

#[test]
fn what_is_missing_is_listed_as_it_was_tried() {
    let url = serve_files(Files::new());
    let dir = tempfile::tempdir().unwrap();
    let error = fetch(registry::get("HM_3k").unwrap(), Some(&url), dir.path(), false, &mut quiet).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{url}/data/Hamaguchi-BM_both-3000/train/train.txt: not found; also tried {url}/HM_3k/train.txt, {url}/train.txt"
        )
    );
    assert!(matches!(error.remedy(), Some(DatasetRemedy::NameSource { part: Part::Train, .. })));
}

#[test]
fn downloads_are_kept_if_they_may_be_of_use() {
    let entry = registry::get(SMALL).unwrap();
    let mut rows = small();
    rows.get_mut(&Part::Test).unwrap().pop();
    let state = std::sync::Arc::new(std::sync::Mutex::new(common::State {
        files: upstream(SMALL, &rows),
        ..common::State::default()
    }));
    let url = common::serve(state.clone());
    let asked = || std::mem::take(&mut state.lock().unwrap().seen).len();
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join(".fetch").join(SMALL);
    // A difference in counts: five files are kept, and accepted without another download.
    let error = fetch(entry, Some(&url), dir.path(), false, &mut quiet).unwrap_err();
    let Some(DatasetRemedy::Accept { kept: Some(named) }) = error.remedy() else { panic!("{error}") };
    assert_eq!(Path::new(&named), kept);
    assert_eq!((asked(), dir.path().join(SMALL).exists(), kept.join("made").exists()), (5, false, false));
    fetch(entry, Some(&url), dir.path(), true, &mut quiet).unwrap();
    assert_eq!((asked(), kept.exists()), (0, false));
    // A web page in the place of a file: only this file comes again.
    let dir = tempfile::tempdir().unwrap();
    let path = "data/nell_v1_ind/test.txt".to_string();
    let right = upstream(SMALL, &small());
    state.lock().unwrap().files = right.clone();
    state.lock().unwrap().files.insert(path.clone(), b"<html>busy</html>".to_vec());
    fetch(entry, Some(&url), dir.path(), false, &mut quiet).unwrap_err();
    assert_eq!(asked(), 5);
    state.lock().unwrap().files = right.clone();
    fetch(entry, Some(&url), dir.path(), false, &mut quiet).unwrap();
    assert_eq!(state.lock().unwrap().seen.iter().map(|s| &s.0).collect::<Vec<_>>(), [&path]);
    // What was kept from one source is not mixed with another's.
    let dir = tempfile::tempdir().unwrap();
    state.lock().unwrap().files = upstream(SMALL, &rows);
    fetch(entry, Some(&url), dir.path(), false, &mut quiet).unwrap_err();
    fetch(entry, Some(&serve_files(right)), dir.path(), false, &mut quiet).unwrap();
}
