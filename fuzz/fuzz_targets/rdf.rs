//! N-Triples, Turtle and RDF/XML: no panic, the counts add up, and every name that is shown can be typed.
#![no_main]

use flock_graph::{Format, LoadOptions, load_reader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&flags, content)) = data.split_first() else { return };
    let format = [Format::NTriples, Format::Turtle, Format::RdfXml][(flags % 3) as usize];
    let options = LoadOptions { format: Some(format), lenient: flags & 128 != 0, ..LoadOptions::default() };
    if let Ok((graph, report)) = load_reader("fuzz", content, &options) {
        let parts = report.triples + report.duplicates + report.literals + report.skipped;
        assert_eq!(report.rows, parts);
        for (id, name) in graph.entities().iter().enumerate() {
            assert_eq!(graph.parse_entity(&graph.display(name)).ok(), Some(id as u32));
        }
    }
});
