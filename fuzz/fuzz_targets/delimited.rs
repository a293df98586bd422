//! TSV and CSV, plain or packed, with and without chosen columns: no panic, and the counts of the report add up.
#![no_main]

use flock_graph::{Format, LoadOptions, load_reader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&flags, content)) = data.split_first() else { return };
    let format = match flags & 3 {
        0 => Some(Format::Tsv),
        1 => Some(Format::Csv),
        _ => None,
    };
    let options = LoadOptions {
        format,
        lenient: flags & 4 != 0,
        header: [None, Some(true), Some(false), None][(flags >> 3 & 3) as usize],
        columns: (flags & 32 != 0).then_some([2, 0, 1]),
    };
    if let Ok((graph, report)) = load_reader("fuzz", content, &options) {
        let parts = report.triples + report.duplicates + report.literals + report.skipped;
        assert_eq!(report.rows, parts);
        assert_eq!(report.triples, graph.topology().num_triples() as u64);
        assert!(options.lenient || report.skipped == 0);
    }
});
