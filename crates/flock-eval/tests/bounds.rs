//! Upstream files that swell or have no end: each gives a typed error and takes little memory.
#![cfg(feature = "fetch")]

mod common;

use std::collections::HashMap;

use common::{quiet, tar_gz, write_all, zip};
use flock_eval::datasets::fetch::{FetchError, fetch};
use flock_eval::datasets::registry;
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// This is one test, because memory is counted for all threads together.
#[test]
fn little_memory_for_archives_that_swell() {
    // 400 MB each, in an archive of about 1 MB: one line without an end, and triples without an end.
    // FB15k237 has 272,115 triples for training: 1 KiB for each and 1 MiB more is 280 MB.
    let line = || vec![b'x'; 400 << 20];
    let triples = || b"head\trelation\ttail\n".repeat((400 << 20) / 19);
    let cases: [(&str, &str, Vec<u8>); 4] = [
        ("FB15k237", "FB15k-237.tar.gz", tar_gz(&[("train.txt".to_string(), line())])),
        ("FB15k237", "FB15k-237.tar.gz", tar_gz(&[("train.txt".to_string(), triples())])),
        ("AristoV4", "aristo-v4.zip", zip(&[("train".to_string(), line())])),
        ("AristoV4", "aristo-v4.zip", zip(&[("train".to_string(), triples())])),
    ];
    for (k, (name, archive, bytes)) in cases.into_iter().enumerate() {
        assert!(bytes.len() < 8 << 20, "{}", bytes.len());
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write_all(from.path(), &HashMap::from([(archive.to_string(), bytes)]));
        MEMORY.reset_peak_usage();
        let before = MEMORY.current_usage();
        let error = fetch(registry::get(name).unwrap(), from.path().to_str(), to.path(), true, &mut quiet).unwrap_err();
        let peak = (MEMORY.peak_usage() - before) >> 20;
        match k % 2 {
            0 => assert!(matches!(error, FetchError::LongRow { line: 1, .. }), "{error}"),
            _ => assert!(matches!(error, FetchError::TooLarge { .. }), "{error}"),
        }
        assert!(peak < 4, "{name}: {peak} MiB");
        assert_eq!(std::fs::read_dir(to.path()).unwrap().count(), 0);
    }
}
