//! GraphML: no panic, the counts add up, every name that is shown can be typed, and what is said about a
//! file can be shown.

use flock_graph::{Format, LoadOptions, load_reader};

/// The first byte has the options, the rest is the file.
pub fn run(data: &[u8]) {
    let Some((&flags, content)) = data.split_first() else { return };
    let format = Format::GraphMl;
    let options = LoadOptions {
        format: Some(format),
        lenient: flags & 128 != 0,
        max_bytes: Some(4 << 20),
        ..LoadOptions::default()
    };
    match load_reader("fuzz", content, &options) {
        Ok((graph, report)) => {
            assert!(report.adds_up(), "{report:?}");
            for (id, name) in graph.entities().iter().enumerate() {
                assert_eq!(graph.parse_entity(&graph.display(name)).ok(), Some(id as u32));
            }
        }
        Err(error) => {
            let said = error.to_string();
            assert!(said.len() < 4096 && !said.contains(char::is_control), "{said:?}");
        }
    }
}
