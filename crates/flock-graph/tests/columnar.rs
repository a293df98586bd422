//! Parquet and Arrow IPC: every type of column that holds names, labels beside them, what is wrong
//! with other files, and damaged bytes.
#![cfg(feature = "parquet")]

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int64Array, LargeStringArray, RecordBatch, StringArray,
    StringViewArray, UInt16Array,
};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use flock_graph::{Format, Graph, LoadError, LoadOptions, LoadReport, Remedy, load, load_reader};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use std::sync::Arc;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

fn parquet(batch: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let groups = WriterProperties::builder().set_max_row_group_row_count(Some(100)).build();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(groups)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

fn arrow_file(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

fn arrow_stream(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

fn default(name: &str, content: &[u8]) -> Result<(Graph, LoadReport), LoadError> {
    load_reader(name, content, &LoadOptions::default())
}

fn triples(graph: &Graph) -> Vec<String> {
    let (e, r) = (graph.entities(), graph.relations());
    let spelled = graph.topology().triples().map(|t| [e.get(t.head), r.get(t.relation), e.get(t.tail)].join(" "));
    let mut all: Vec<String> = spelled.collect();
    all.sort();
    all
}

fn text(names: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(names.to_vec()))
}

#[test]
fn every_type_of_names() {
    let names = ["a", "b", "a"];
    let heads: [ArrayRef; 4] = [
        text(&names),
        Arc::new(LargeStringArray::from(names.to_vec())),
        Arc::new(StringViewArray::from(names.to_vec())),
        Arc::new(names.into_iter().collect::<DictionaryArray<Int32Type>>()),
    ];
    let directory = tempfile::tempdir().unwrap();
    for head in heads {
        let what = head.data_type().to_string();
        let table = batch(vec![
            ("weight", Arc::new(Float64Array::from(vec![0.5, 0.25, 1.0]))),
            ("predicate", text(&["r", "r", "q"])),
            ("object", Arc::new(Int64Array::from(vec![1, 2, -3]))),
            ("subject", head),
        ]);
        for (name, format, content) in [
            ("g.parquet", Format::Parquet, parquet(&table)),
            ("g.arrow", Format::Arrow, arrow_file(&table)),
            ("g.feather", Format::Arrow, arrow_file(&table)),
            ("g.arrows", Format::Arrow, arrow_stream(&table)),
        ] {
            // From a file, from memory, and by content alone.
            let path = directory.path().join(name);
            std::fs::write(&path, &content).unwrap();
            let from_file = load(&path, &LoadOptions::default()).unwrap();
            for (graph, report) in [from_file, default(name, &content).unwrap(), default("g", &content).unwrap()] {
                assert_eq!(triples(&graph), ["a q -3", "a r 1", "b r 2"], "{what} {name}");
                assert_eq!((report.format, report.rows, report.header), (format, 3, false));
                let note = "head = subject, relation = predicate, tail = object; not used: weight";
                assert!(report.notes()[0].ends_with(note), "{:?}", report.notes());
            }
        }
    }
}

#[test]
fn nodes_labels_and_many_row_groups() {
    let count = 5000;
    let ids =
        |step: i64| -> ArrayRef { Arc::new(Int64Array::from((0..count).map(|i| i * step % 4999).collect::<Vec<_>>())) };
    let table = batch(vec![
        ("head", ids(1)),
        ("relation", Arc::new(UInt16Array::from((0..count).map(|i| (i % 7) as u16).collect::<Vec<_>>()))),
        ("tail", ids(3)),
    ]);
    for content in [parquet(&table), arrow_file(&table)] {
        let (graph, report) = default("g", &content).unwrap();
        assert_eq!((report.rows, graph.relations().len()), (5000, 7));
    }
    let nodes = batch(vec![
        ("id", text(&["a", "b"])),
        ("name", Arc::new(StringArray::from(vec![Some("Alpha"), None]))),
        ("category", text(&["x|y", "x"])),
    ]);
    let (graph, report) = default("g", &parquet(&nodes)).unwrap();
    assert_eq!(triples(&graph), ["a biolink:category x", "a biolink:category y", "b biolink:category x"]);
    assert_eq!((graph.labels().entity(graph.parse_entity("a").unwrap()), report.nodes), (Some("Alpha"), 2));
}

#[test]
fn what_is_wrong_is_said() {
    let said = |error: LoadError| {
        let remedy = error.remedy().map_or_else(String::new, |remedy| format!("; hint: {remedy}"));
        format!("{error}{remedy}")
    };
    // Three columns without telling names are read in order, others must be chosen.
    let three = batch(vec![("0", text(&["a"])), ("1", text(&["r"])), ("2", text(&["b"]))]);
    assert_eq!(triples(&default("g", &parquet(&three)).unwrap().0), ["a r b"]);
    let four = batch(vec![
        ("n", Arc::new(Float64Array::from(vec![1.0]))),
        ("who", text(&["a"])),
        ("does", text(&["r"])),
        ("what", text(&["b"])),
    ]);
    let error = default("g.parquet", &parquet(&four)).unwrap_err();
    let Some(Remedy::Columns { columns, names, .. }) = error.remedy() else { panic!("{error}") };
    assert_eq!(Remedy::chosen(columns, &names).to_string(), "who,does,what");
    assert!(said(error).starts_with("g.parquet: has columns n, who, does, what, expected head, relation and tail"));
    let columns = |text: &str| LoadOptions { columns: Some(text.parse().unwrap()), ..LoadOptions::default() };
    for chosen in ["who,does,what", "2,3,4"] {
        let (graph, _) = load_reader("g", &parquet(&four)[..], &columns(chosen)).unwrap();
        assert_eq!(triples(&graph), ["a r b"]);
    }
    let error = load_reader("g.parquet", &parquet(&four)[..], &columns("n,does,what")).unwrap_err();
    assert!(
        said(error).starts_with("g.parquet: column \"n\" has values of type Float64, expected text or whole numbers")
    );
    let error = load_reader("g.parquet", &parquet(&four)[..], &columns("2,3,9")).unwrap_err();
    assert!(matches!(error, LoadError::NoSuchColumn { .. }), "{error}");

    // A null is a missing name.
    let null: ArrayRef = Arc::new(StringArray::from(vec![Some("b"), None]));
    let table = batch(vec![("head", text(&["a", "a"])), ("relation", text(&["r", "r"])), ("tail", null)]);
    let error = default("g.arrow", &arrow_file(&table)).unwrap_err();
    assert_eq!(error.to_string(), "g.arrow:2: field 3 is empty, expected the name of a tail entity");
    let lenient = LoadOptions { lenient: true, ..LoadOptions::default() };
    let (_, report) = load_reader("g.arrow", &arrow_file(&table)[..], &lenient).unwrap();
    assert_eq!((report.rows, report.triples, report.skipped), (2, 1, 1));

    // The length of the names counts, not that of the file.
    let same =
        batch(vec![("head", text(&["aaaa"; 3000])), ("relation", text(&["r"; 3000])), ("tail", text(&["b"; 3000]))]);
    let little = LoadOptions { max_bytes: Some(20_000), ..LoadOptions::default() };
    let content = parquet(&same);
    let error = load_reader("g", &content[..], &little).unwrap_err();
    assert!(content.len() < 20_000 && matches!(error, LoadError::TooMuch { .. }), "{error}");
    // By name only.
    assert_eq!(
        said(default("g.parquet", b"a\tb\tc\n").unwrap_err()).split(';').next(),
        Some("g.parquet: is no Parquet file, expected a graph file")
    );
}

/// Whatever is cut or changed gives an error or a graph, and no panic.
#[test]
fn damaged_files() {
    let names: Vec<String> = (0..40).map(|i| format!("name {}", i % 13)).collect();
    let column = || -> ArrayRef { Arc::new(StringArray::from(names.clone())) };
    let table = batch(vec![("head", column()), ("relation", column()), ("tail", column())]);
    for content in [parquet(&table), arrow_file(&table), arrow_stream(&table)] {
        for cut in (0..content.len()).step_by(7) {
            let _ = default("g", &content[..cut]);
        }
        // Changes one byte at a time, by a value that differs from place to place.
        let mut state = 1u32;
        for at in (0..content.len()).step_by(3) {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let mut changed = content.clone();
            changed[at] ^= (state >> 24) as u8 | 1;
            if let Err(error) = default("g", &changed) {
                assert!(!error.to_string().contains(char::is_control));
            }
        }
    }
}
