//! Record batches in memory, as data frames hand them over: every type of column, nulls, slices, and
//! what is wrong with other batches. Expected triples and rows are written out by hand beside the
//! columns that they come from.
#![cfg(feature = "parquet")]

use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int8Array, Int32Array, Int64Array, LargeStringArray, ListArray,
    NullArray, RecordBatch, RecordBatchIterator, RecordBatchReader, StringArray, StringViewArray, UInt64Array,
};
use arrow_schema::ArrowError;
use flock_graph::{
    Format, Graph, HeaderReason, LoadError, LoadOptions, LoadReport, Remedy, for_each_row, load_batches,
};
use std::sync::Arc;

fn text(names: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(names.to_vec()))
}

fn some(names: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(names.to_vec()))
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    // All columns may have nulls, so that batches of one reader have one schema.
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true))).unwrap()
}

fn reader(batches: Vec<RecordBatch>) -> impl RecordBatchReader {
    let schema = batches[0].schema();
    RecordBatchIterator::new(batches.into_iter().map(Ok), schema)
}

fn load_with(batches: Vec<RecordBatch>, options: &LoadOptions) -> Result<(Graph, LoadReport), LoadError> {
    load_batches("the frame", reader(batches), options)
}

fn load(columns: Vec<(&str, ArrayRef)>) -> Result<(Graph, LoadReport), LoadError> {
    load_with(vec![batch(columns)], &LoadOptions::default())
}

/// Lists the rows, as `head relation tail`, with `-` for a null.
fn rows_with(batches: Vec<RecordBatch>, options: &LoadOptions) -> Result<Vec<String>, LoadError> {
    let mut rows = Vec::new();
    let count = for_each_row("the frame", reader(batches), options, |row| {
        rows.push(row.map(|cell| cell.unwrap_or("-").to_owned()).join(" "));
    })?;
    assert_eq!(count, rows.len() as u64);
    Ok(rows)
}

fn rows(columns: Vec<(&str, ArrayRef)>) -> Result<Vec<String>, LoadError> {
    rows_with(vec![batch(columns)], &LoadOptions::default())
}

fn columns(chosen: &str) -> LoadOptions {
    LoadOptions { columns: Some(chosen.parse().unwrap()), ..LoadOptions::default() }
}

/// Lists the triples in the order of names.
fn triples(graph: &Graph) -> Vec<String> {
    let (e, r) = (graph.entities(), graph.relations());
    let spelled = graph.topology().triples().map(|t| [e.get(t.head), r.get(t.relation), e.get(t.tail)].join(" "));
    let mut all: Vec<String> = spelled.collect();
    all.sort();
    all
}

fn said(error: LoadError) -> String {
    let remedy = error.remedy().map_or_else(String::new, |remedy| format!("; hint: {remedy}"));
    format!("{error}{remedy}")
}

#[test]
fn every_type_of_names() {
    let texts = ["7", "8", "7"];
    let tails: Vec<ArrayRef> = vec![
        text(&texts),
        Arc::new(LargeStringArray::from(texts.to_vec())),
        Arc::new(StringViewArray::from(texts.to_vec())),
        Arc::new(texts.into_iter().collect::<DictionaryArray<Int32Type>>()),
        Arc::new(DictionaryArray::<Int8Type>::new(
            Int8Array::from(vec![1, 0, 1]),
            Arc::new(LargeStringArray::from(vec!["8", "7"])),
        )),
        Arc::new(DictionaryArray::<Int8Type>::new(
            Int8Array::from(vec![1, 0, 1]),
            Arc::new(StringViewArray::from(vec!["8", "7"])),
        )),
        Arc::new(Int32Array::from(vec![7, 8, 7])),
        Arc::new(Int64Array::from(vec![7, 8, 7])),
        Arc::new(UInt64Array::from(vec![7, 8, 7])),
    ];
    for tail in tails {
        let what = tail.data_type().to_string();
        let table = vec![
            ("weight", Arc::new(Float64Array::from(vec![0.5, 0.25, 1.0])) as ArrayRef),
            ("object", tail),
            ("predicate", text(&["r", "r", "q"])),
            ("subject", text(&["a", "b", "a"])),
        ];
        assert_eq!(rows(table.clone()).unwrap(), ["a r 7", "b r 8", "a q 7"], "{what}");
        let (graph, report) = load(table).unwrap();
        assert_eq!(triples(&graph), ["a q 7", "a r 7", "b r 8"], "{what}");
        // Ids follow the rows.
        assert_eq!(graph.entities().iter().collect::<Vec<_>>(), ["a", "7", "b", "8"]);
        assert_eq!((report.format, report.rows, report.triples, report.header), (Format::Arrow, 3, 3, false));
        assert_eq!(report.files[0].table.as_ref().unwrap().header, Some(HeaderReason::Schema));
        let note = "the frame: head = subject, relation = predicate, tail = object; not used: weight";
        assert_eq!(report.notes(), [note]);
    }
}

#[test]
fn several_batches_and_slices_of_batches() {
    let names: Vec<String> = (0..10).map(|i| i.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let heads: Vec<ArrayRef> = vec![
        text(&names),
        Arc::new(StringViewArray::from(names.clone())),
        Arc::new(names.iter().copied().collect::<DictionaryArray<Int32Type>>()),
        Arc::new(Int64Array::from((0..10).collect::<Vec<i64>>())),
    ];
    for head in heads {
        let all = batch(vec![("head", head), ("relation", text(&["r"; 10])), ("tail", text(&["b"; 10]))]);
        // Rows 2, 3 and 7, and a batch without rows between them.
        let parts = vec![all.slice(2, 2), all.slice(5, 0), all.slice(7, 1)];
        assert_eq!(rows_with(parts.clone(), &LoadOptions::default()).unwrap(), ["2 r b", "3 r b", "7 r b"]);
        let (graph, report) = load_with(parts, &LoadOptions::default()).unwrap();
        assert_eq!((triples(&graph), report.rows), (["2 r b", "3 r b", "7 r b"].map(String::from).to_vec(), 3));
    }
    // The number of a row in a message counts the rows of all batches.
    let good = batch(vec![("h", text(&["a"; 3])), ("r", text(&["r"; 3])), ("t", text(&["b"; 3]))]);
    let bad = batch(vec![("h", text(&["a"; 3])), ("r", text(&["r", "", "r"])), ("t", text(&["b"; 3]))]);
    let error = load_with(vec![good, bad.slice(1, 2)], &LoadOptions::default()).unwrap_err();
    assert_eq!(
        said(error),
        "the frame:4: field 2 is empty, expected the name of a relation; hint: fill it in, or leave malformed rows out"
    );
}

#[test]
fn nulls() {
    let table = || {
        vec![
            ("head", some(&[Some("a"), None, Some(""), Some("d")])),
            (
                "relation",
                Arc::new([Some("r"), Some("r"), None, Some("q")].into_iter().collect::<StringViewArray>()) as ArrayRef,
            ),
            ("tail", Arc::new(Int64Array::from(vec![None, Some(2), Some(3), Some(4)]))),
        ]
    };
    // A null is None, and an empty text is not.
    assert_eq!(rows(table()).unwrap(), ["a r -", "- r 2", " - 3", "d q 4"]);
    // In a dictionary a null may be a key or a value.
    let keys = Int8Array::from(vec![Some(0), None, Some(1), Some(2)]);
    let values = StringArray::from(vec![Some("x"), None, Some("")]);
    let dictionary: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(keys, Arc::new(values)));
    let mut with_dictionary = table();
    with_dictionary[2].1 = dictionary;
    assert_eq!(rows(with_dictionary).unwrap(), ["a r x", "- r -", " - -", "d q "]);

    // For a graph a row with a null is malformed.
    let error = load(table()).unwrap_err();
    assert_eq!(error.to_string(), "the frame:1: field 3 is empty, expected the name of a tail entity");
    let lenient = LoadOptions { lenient: true, ..LoadOptions::default() };
    let (graph, report) = load_with(vec![batch(table())], &lenient).unwrap();
    assert_eq!((triples(&graph), report.rows, report.skipped), (vec!["d q 4".to_owned()], 4, 3));
    assert!(report.adds_up());
    let first = report.first_skipped.unwrap();
    assert_eq!((first.file.as_str(), first.line), ("the frame", 1));
}

#[test]
fn columns_of_nothing_but_nulls() {
    let nothing = || Arc::new(NullArray::new(2)) as ArrayRef;
    let open = |head, relation, tail| rows(vec![("head", head), ("relation", relation), ("tail", tail)]);
    let names = || text(&["a", "b"]);
    assert_eq!(open(names(), names(), nothing()).unwrap(), ["a a -", "b b -"]);
    assert_eq!(open(nothing(), names(), nothing()).unwrap(), ["- a -", "- b -"]);
    assert_eq!(open(nothing(), nothing(), nothing()).unwrap(), ["- - -", "- - -"]);
    // Categories without a category.
    let no_keys = Int8Array::from(vec![None, None]);
    let empty: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(no_keys.clone(), Arc::new(NullArray::new(0))));
    assert_eq!(open(names(), names(), empty).unwrap(), ["a a -", "b b -"]);
    let empty: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(no_keys, text(&[])));
    assert_eq!(open(empty, names(), names()).unwrap(), ["- a a", "- b b"]);
    // The same by place, and with names that say nothing.
    let table = || vec![("0", names()), ("1", names()), ("2", nothing())];
    assert_eq!(rows(table()).unwrap(), ["a a -", "b b -"]);
    assert_eq!(rows_with(vec![batch(table())], &columns("3,2,1")).unwrap(), ["- a a", "- b b"]);

    // In a graph such a column may hold labels, but no names.
    let (graph, _) = load(vec![
        ("subject_id", names()),
        ("subject_label", nothing()),
        ("predicate_id", names()),
        ("object_id", names()),
        ("object_label", text(&["", "Beta"])),
    ])
    .unwrap();
    assert_eq!(graph.labels().of(flock_graph::NameKind::Entity).iter().collect::<Vec<_>>(), [(1, "Beta")]);
    let error = load(vec![("head", names()), ("relation", names()), ("tail", nothing())]).unwrap_err();
    assert_eq!(error.to_string(), "the frame:1: field 3 is empty, expected the name of a tail entity");
}

#[test]
fn columns_are_found_by_names_numbers_and_order() {
    let table = || {
        batch(vec![
            ("what", text(&["b"])),
            ("Who", text(&["a"])),
            ("n", Arc::new(Float64Array::from(vec![1.0])) as ArrayRef),
            ("does", text(&["r"])),
        ])
    };
    for chosen in ["Who,does,what", "who,DOES,what", "2,4,1", "2,does,1"] {
        assert_eq!(rows_with(vec![table()], &columns(chosen)).unwrap(), ["a r b"], "{chosen}");
        assert_eq!(triples(&load_with(vec![table()], &columns(chosen)).unwrap().0), ["a r b"], "{chosen}");
    }
    // Three columns in order, and the index that pandas writes beside them.
    let three = || vec![("0", text(&["a"])), ("1", text(&["r"])), ("2", text(&["b"]))];
    assert_eq!(rows(three()).unwrap(), ["a r b"]);
    for at in [0, 3] {
        let mut four = three();
        four.insert(at, ("__index_level_0__", Arc::new(Int64Array::from(vec![17]))));
        assert_eq!(triples(&load(four.clone()).unwrap().0), ["a r b"]);
        assert_eq!(rows(four).unwrap(), ["a r b"]);
    }

    // Both say the same about what is wrong.
    let both = |table: RecordBatch, options: &LoadOptions| {
        let asked = said(rows_with(vec![table.clone()], options).unwrap_err());
        assert_eq!(asked, said(load_with(vec![table], options).unwrap_err()));
        asked
    };
    let unknown = rows_with(vec![table()], &LoadOptions::default()).unwrap_err();
    let Some(Remedy::Columns { columns: suggested, .. }) = unknown.remedy() else { panic!("{unknown}") };
    assert_eq!(suggested, [0, 1, 3]);
    assert_eq!(
        both(table(), &LoadOptions::default()).split(';').next().unwrap(),
        "the frame: has columns what, Who, n, does, expected head, relation and tail among them"
    );
    assert_eq!(
        both(table(), &columns("whom,does,what")),
        "the frame: has no column \"whom\", expected one of what, Who, n, does"
    );
    assert_eq!(both(table(), &columns("1,2,9")), "the frame: has no column \"9\", expected one of what, Who, n, does");
    assert_eq!(
        both(table(), &columns("who,does,n")),
        "the frame: column \"n\" has values of type Float64, expected text or whole numbers; \
         hint: choose columns that the file has"
    );
    assert_eq!(
        both(table(), &columns("who,WHO,n")),
        "the frame: columns who,WHO,n are not different, expected three different ones; \
         hint: choose columns that the file has"
    );
    let two = batch(vec![("source", text(&["a"])), ("target", text(&["b"]))]);
    assert_eq!(
        both(two, &LoadOptions::default()),
        "the frame: has columns source, target, expected one for the relation beside source and target; \
         hint: add a column called relation that says how the two are linked, or choose the columns"
    );
    let none = RecordBatch::new_empty(Arc::new(arrow_schema::Schema::empty()));
    assert!(both(none, &LoadOptions::default()).starts_with("the frame: has columns , expected head"));
}

#[test]
fn labels_and_nodes() {
    let edges = vec![
        ("subject", text(&["Q1", "Q2"])),
        ("subject_label", some(&[Some("One"), None])),
        ("predicate", text(&["P1", "P1"])),
        ("object", text(&["Q2", "Q1"])),
    ];
    // Questions take no notice of labels.
    assert_eq!(rows(edges.clone()).unwrap(), ["Q1 P1 Q2", "Q2 P1 Q1"]);
    let (graph, _) = load(edges).unwrap();
    assert_eq!((graph.labels().len(), graph.labels().entity(0)), (1, Some("One")));

    let mut kinds =
        ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(9)]), Some(vec![Some(1), Some(2)]), None]);
    // The list of the first row is cut off.
    kinds = kinds.slice(1, 2);
    let nodes =
        vec![("id", text(&["a", "b"])), ("name", text(&["Alpha", ""])), ("category", Arc::new(kinds) as ArrayRef)];
    let (graph, report) = load(nodes.clone()).unwrap();
    assert_eq!(triples(&graph), ["a biolink:category 1", "a biolink:category 2"]);
    assert_eq!((graph.labels().entity(0), report.nodes), (Some("Alpha"), 2));
    // Nodes are no questions.
    let error = rows(nodes).unwrap_err();
    assert!(matches!(error, LoadError::UnknownColumns { .. }), "{error}");
}

#[test]
fn empty_batches_and_readers_that_fail() {
    let empty =
        batch(vec![("head", text(&[])), ("relation", Arc::new(NullArray::new(0)) as ArrayRef), ("tail", text(&[]))]);
    assert_eq!(rows_with(vec![empty.clone()], &LoadOptions::default()).unwrap(), Vec::<String>::new());
    let error = load_with(vec![empty.clone()], &LoadOptions::default()).unwrap_err();
    assert!(error.to_string().starts_with("the frame: no triples, expected at least one: 0 rows read"), "{error}");

    let good = batch(vec![("head", text(&["a"])), ("relation", text(&["r"])), ("tail", text(&["b"]))]);
    let failing = || {
        let broken = Err(ArrowError::ComputeError("the\nquery was stopped".to_owned()));
        RecordBatchIterator::new([Ok(good.clone()), broken], good.schema())
    };
    // The words of the reader, without control characters.
    let want = "the frame: cannot read the batches: Compute error: the\\nquery was stopped";
    assert_eq!(said(load_batches("the frame", failing(), &LoadOptions::default()).unwrap_err()), want);
    let mut passed = 0;
    let error = for_each_row("the frame", failing(), &LoadOptions::default(), |_| passed += 1).unwrap_err();
    assert_eq!((said(error).as_str(), passed), (want, 1));

    // Batches that are not what the schema says.
    let narrow = batch(vec![("head", text(&["a"]))]);
    let floats = Arc::new(Float64Array::from(vec![1.0])) as ArrayRef;
    let other = batch(vec![("head", floats.clone()), ("relation", floats.clone()), ("tail", floats)]);
    for odd in [narrow, other] {
        let batches = RecordBatchIterator::new([Ok(odd)], good.schema());
        let error = load_batches("the frame", batches, &LoadOptions::default()).unwrap_err();
        assert!(matches!(error, LoadError::Batches { .. }), "{error}");
    }
}

#[test]
fn max_bytes_counts_the_text() {
    // 100 rows of 4 + 1 + 1 letters; each cell counts one byte more: 900 bytes.
    let table = || batch(vec![("h", text(&["aaaa"; 100])), ("r", text(&["r"; 100])), ("t", text(&["b"; 100]))]);
    for (most, fits) in [(900, true), (899, false)] {
        let options = LoadOptions { max_bytes: Some(most), ..LoadOptions::default() };
        let (loaded, asked) = (load_with(vec![table()], &options), rows_with(vec![table()], &options));
        assert_eq!((loaded.is_ok(), asked.is_ok()), (fits, fits));
        if let Err(error) = loaded {
            assert!(matches!(error, LoadError::TooMuch { limit: 899, .. }), "{error}");
        }
    }
}
