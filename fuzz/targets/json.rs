//! JSON lines, and TSV with the headers of KGTK, KGX and Neo4j: no panic, the counts of the report add up, and what is
//! said about a file can be shown.

use flock_graph::{Format, LoadOptions, load_reader};

/// Headers of tables that are read in a way of their own.
const HEADERS: [&str; 5] = [
    "node1\tlabel\tnode2\tid\tnode1;label\n",
    "subject_id\tsubject_label\tpredicate_id\tobject_id\n",
    "id\tname\tcategory\n",
    "_id\t_labels\tname\t_start\t_end\t_type\n",
    ":START_ID(A)\t:TYPE\t:END_ID(B)\n",
];

/// The first byte has the options, the rest is the file.
pub fn run(data: &[u8]) {
    let Some((&flags, content)) = data.split_first() else { return };
    let header = HEADERS.get((flags & 7) as usize);
    let columns = (flags & 32 != 0).then(|| ["a,b,c", "3,1,2"][(flags >> 6 & 1) as usize].parse().ok()).flatten();
    let options = LoadOptions {
        format: Some(if header.is_some() { Format::Tsv } else { Format::JsonLines }),
        lenient: flags & 8 != 0,
        columns: columns.filter(|_| header.is_none()),
        max_bytes: Some(4 << 20),
        ..LoadOptions::default()
    };
    let content = [header.map_or("", |header| header).as_bytes(), content].concat();
    match load_reader("fuzz", &content[..], &options) {
        Ok((graph, report)) => {
            let parts = report.triples + report.duplicates + report.literals + report.labels + report.skipped;
            assert_eq!(report.rows, parts);
            assert_eq!(report.triples, graph.topology().num_triples() as u64);
            assert!(options.lenient || report.skipped == 0);
            assert!(!graph.entities().iter().chain(graph.relations().iter()).any(str::is_empty));
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
