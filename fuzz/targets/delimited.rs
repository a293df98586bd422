//! TSV and CSV, plain or packed, with and without chosen columns: no panic, the counts of the report add up, and what is said
//! about a file can be shown.

use flock_graph::{Format, LoadOptions, load_reader};

/// The first byte has the options, the rest is the file.
pub fn run(data: &[u8]) {
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
        columns: (flags & 32 != 0).then(|| [2, 0, 1].into()),
        // A packed file is a fair question, a file of many megabytes is not: the fuzzer has to go on.
        max_bytes: Some(4 << 20),
        ..LoadOptions::default()
    };
    match load_reader("fuzz", content, &options) {
        Ok((graph, report)) => {
            assert!(report.adds_up(), "{report:?}");
            assert_eq!(report.triples, graph.topology().num_triples() as u64);
            assert!(options.lenient || report.skipped == 0);
            let notes = report.notes().into_iter().chain(report.left_out());
            for said in report.warnings().iter().map(ToString::to_string).chain(notes) {
                assert!(!said.contains(char::is_control), "{said:?}");
            }
        }
        Err(error) => {
            let said = error.to_string();
            assert!(said.len() < 4096 && !said.contains(char::is_control), "{said:?}");
        }
    }
}
