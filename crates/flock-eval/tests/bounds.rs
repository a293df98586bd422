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
    // One line of 64 MB, and triples of 300 MB, in archives of a few MB. FB15k237 has 272,115 triples
    // for training, AristoV4 fewer: 1 KiB for each and 1 MiB more is 280 MB.
    let line = || vec![b'x'; 64 << 20];
    let triples = || b"head\trelation\ttail\n".repeat(300_000_000 / 19);
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
