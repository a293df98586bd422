//! Tables as they come: headers of many tools, columns by name, JSON lines, KGTK, KGX and Neo4j,
//! several files as one graph, and files that are no graphs.

use flock_graph::{
    Columns, Format, Graph, HeaderReason, LoadError, LoadOptions, LoadReport, Remedy, load, load_many, load_reader,
};
use std::io::Write;
use std::path::PathBuf;

fn default(name: &str, content: impl AsRef<[u8]>) -> (Graph, LoadReport) {
    load_reader(name, content.as_ref(), &LoadOptions::default()).unwrap()
}

fn with_columns(name: &str, content: &str, columns: &str) -> Result<(Graph, LoadReport), LoadError> {
    let columns = Some(columns.parse::<Columns>().unwrap());
    load_reader(name, content.as_bytes(), &LoadOptions { columns, ..LoadOptions::default() })
}

/// Returns the text of an error and its remedy.
fn said(error: &LoadError) -> String {
    let remedy = error.remedy().map_or_else(String::new, |remedy| format!("; hint: {remedy}"));
    format!("{error}{remedy}")
}

fn failed(name: &str, content: impl AsRef<[u8]>) -> String {
    said(&load_reader(name, content.as_ref(), &LoadOptions::default()).unwrap_err())
}

/// Lists all triples by name, sorted.
fn triples(graph: &Graph) -> Vec<String> {
    let (e, r) = (graph.entities(), graph.relations());
    let spelled = graph.topology().triples().map(|t| [e.get(t.head), r.get(t.relation), e.get(t.tail)].join(" "));
    let mut all: Vec<String> = spelled.collect();
    all.sort();
    all
}

fn label<'g>(graph: &'g Graph, entity: &str) -> Option<&'g str> {
    graph.labels().entity(graph.entities().id(entity)?)
}

#[test]
fn headers_of_many_tools_name_the_columns() {
    let want = ["a knows b", "b likes c", "c knows a"];
    // The header, and where head, relation and tail are in a row.
    let cases = [
        ("id,subject,predicate,object,weight", [1, 2, 3]),
        ("source,target,type", [0, 2, 1]),
        ("x_id,x_name,y_id,y_name,display_relation", [1, 4, 3]),
        ("node1,label,node2,id", [0, 1, 2]),
        ("from,to,since,kind", [0, 3, 1]),
        ("Head Entity,Relation Type,Tail Entity", [0, 1, 2]),
        ("object,predicate,subject", [2, 1, 0]),
    ];
    for (header, places) in cases {
        let width = header.split(',').count();
        let mut csv = format!("{header}\n");
        for triple in want {
            let mut row = vec!["x"; width];
            triple.split(' ').zip(places).for_each(|(name, at)| row[at] = name);
            csv += &(row.join(",") + "\n");
        }
        for (name, content) in [("g.csv", csv.clone()), ("g.tsv", csv.replace(',', "\t"))] {
            let (graph, report) = default(name, content);
            assert_eq!(triples(&graph), want, "{header}");
            assert_eq!((report.header, report.rows), (true, 3), "{header}");
            let table = report.files[0].table.as_ref().unwrap();
            assert_eq!(table.columns(), Some(places), "{header}");
            assert_eq!(table.header, Some(HeaderReason::Words));
        }
    }
    // A header in order among more columns.
    let (_, report) = default("g.csv", "head,relation,tail,weight\na,r,b,1\n");
    assert_eq!(
        report.notes(),
        ["g.csv: the first row is a header; head = head, relation = relation, tail = tail; not used: weight"]
    );
}

#[test]
fn a_table_without_relations_is_not_read_as_triples() {
    let edges = "source,target,weight\na,b,0.5\nb,c,0.1\n";
    assert_eq!(
        failed("g.csv", edges),
        "g.csv: has columns source, target, weight, expected one for the relation beside source and target; \
         hint: add a column called relation that says how the two are linked, or choose the columns"
    );
    // Who says that there is no header gets what he asks for.
    let keep = LoadOptions { header: Some(false), ..LoadOptions::default() };
    assert_eq!(load_reader("g.csv", edges.as_bytes(), &keep).unwrap().1.triples, 3);
}

#[test]
fn headers_are_told_by_evidence_and_kept_if_a_name_comes_again() {
    let rows = "aspirin,inhibits,COX1\naspirin,inhibits,COX2\nibuprofen,inhibits,COX1\n";
    let (graph, report) = default("g.csv", format!("Compound,Interaction,Entity B\n{rows}"));
    assert_eq!((graph.topology().num_triples(), report.header), (3, true));
    assert_eq!(
        report.notes(),
        ["g.csv: the first row was taken for a header, since none of its names comes again; \
          head = Compound, relation = Interaction, tail = Entity B"]
    );
    assert!(report.warnings().is_empty());
    // The name comes again far behind the rows that were looked at first: nothing is lost.
    let many: String = (0..20_000).map(|i| format!("drug {i},inhibits,protein {}\n", i % 97)).collect();
    let late = format!("Compound,Interaction,Entity B\n{many}aspirin,inhibits,Entity B\n");
    let (graph, report) = default("g.csv", late);
    assert_eq!((graph.topology().num_triples(), report.header), (20_002, false));
    assert!(graph.entities().id("Compound").is_some() && report.notes().is_empty());
    // The caller decides.
    let keep = LoadOptions { header: Some(false), ..LoadOptions::default() };
    let csv = format!("Compound,Interaction,Entity B\n{rows}");
    assert_eq!(load_reader("g.csv", csv.as_bytes(), &keep).unwrap().1.triples, 4);
    // Words of a header that are names of the graph.
    let states = "start,label,end\nend,label,start\nstart,goes to,middle\n";
    assert_eq!(default("g.csv", states).1.triples, 3);
}

#[test]
fn columns_are_chosen_by_name_or_number() {
    let csv = "id,who,does,what\n1,a,knows,b\n2,b,likes,c\n";
    for columns in ["who,does,what", "2,3,4", "WHO,3,What"] {
        let header =
            LoadOptions { columns: Some(columns.parse().unwrap()), header: Some(true), ..LoadOptions::default() };
        let (graph, report) = load_reader("g.csv", csv.as_bytes(), &header).unwrap();
        assert_eq!(triples(&graph), ["a knows b", "b likes c"], "{columns}");
        assert_eq!(
            report.notes(),
            ["g.csv: the first row is a header; head = who, relation = does, tail = what; not used: id"]
        );
    }
    // A name announces a header.
    assert_eq!(with_columns("g.csv", csv, "who,does,what").unwrap().1.triples, 2);
    let unknown = with_columns("g.csv", csv, "whom,does,what").unwrap_err();
    assert_eq!(said(&unknown), "g.csv: has no column \"whom\", expected one of id, who, does, what");
    let spo = "id,subject,predicate,object\n1,a,r,b\n";
    assert_eq!(
        said(&with_columns("g.csv", spo, "s,predicate,object").unwrap_err()),
        "g.csv: has no column \"s\", expected one of id, subject, predicate, object; \
         hint: this file has columns id, subject, predicate, object: choose the columns of head, relation and tail, \
         such as subject, predicate and object"
    );
    let same = with_columns("g.csv", csv, "who,2,what").unwrap_err();
    assert!(said(&same).starts_with("g.csv: columns who,2,what are not different"), "{same}");
    let options =
        LoadOptions { columns: Some("who,does,what".parse().unwrap()), header: Some(false), ..LoadOptions::default() };
    let none = load_reader("g.csv", csv.as_bytes(), &options).unwrap_err();
    assert!(matches!(none, LoadError::NamesWithoutHeader { .. }), "{none}");
}

#[test]
fn hints_name_the_columns_of_this_file() {
    let csv = "row,drug,how,protein,score\n1,aspirin,inhibits,COX1,0.5\n2,aspirin,inhibits,COX2,0.4\n\
               3,ibuprofen,binds,COX1,0.1\n4,codeine,binds,OPRM1,0.3\n";
    let error = load_reader("g.csv", csv.as_bytes(), &LoadOptions::default()).unwrap_err();
    let Some(Remedy::Columns { columns, names, .. }) = error.remedy() else { panic!("{error}") };
    assert_eq!(Remedy::chosen(columns, &names).to_string(), "drug,how,protein");
    assert!(said(&error).contains("this file has columns row, drug, how, protein, score: "), "{}", said(&error));
    // Without names the columns are counted.
    let unnamed = csv.split_once('\n').unwrap().1;
    let error = load_reader("g.csv", unnamed.as_bytes(), &LoadOptions::default()).unwrap_err();
    let Some(Remedy::Columns { columns, names, .. }) = error.remedy() else { panic!("{error}") };
    assert_eq!(Remedy::chosen(columns, &names).to_string(), "2,3,4");
}

#[test]
fn kgtk() {
    let tsv = "node1\tlabel\tnode2\tid\n\
               Q45\tP36\tQ597\te1\n\
               Q45\tlabel\t'Portugal'@pt\te2\n\
               Q45\tlabel\t'Portugal (en)'@en\te3\n\
               Q597\tlabel\t\"Lisbon\"\te4\n\
               Q45\tP1082\t10347892\te5\n\
               Q45\tP1082\t+10.3Q11573\te6\n\
               Q45\tP571\t^1143-10-05T00:00:00Z/11\te7\n\
               Q45\tP625\t@38.7/-9.18\te8\n\
               Q45\tP47\tQ29|Q1028\te9\n\
               P36\tlabel\t'capital'@en\te10\n";
    let (graph, report) = default("g.tsv", tsv);
    assert_eq!(triples(&graph), ["Q45 P36 Q597", "Q45 P47 Q1028", "Q45 P47 Q29"]);
    assert_eq!(label(&graph, "Q45"), Some("Portugal (en)"));
    assert_eq!(label(&graph, "Q597"), Some("Lisbon"));
    assert_eq!(graph.labels().relation(graph.parse_relation("P36").unwrap()), Some("capital"));
    assert_eq!((report.rows, report.triples, report.literals, report.labels), (11, 3, 4, 4));
    let counts = [("P1082", 2), ("P571", 1), ("P625", 1)].map(|(name, count)| (name.to_owned(), count));
    assert_eq!(report.literals_by_predicate, counts);
    assert_eq!(report.left_out().unwrap(), "header row, 4 literals (P1082 2, P571 1, P625 1)");
    // Numbers may be the names of nodes.
    let (graph, _) = default("g.tsv", "node1\tlabel\tnode2\n1\tknows\t2\n2\tknows\t3\n");
    assert_eq!(triples(&graph), ["1 knows 2", "2 knows 3"]);
}

#[test]
fn kgx_nodes_and_edges_make_one_graph() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let nodes = "id\tname\tcategory\nG:1\tCOX1\tbiolink:Gene|biolink:NamedThing\nD:1\taspirin\tbiolink:Drug\nX:1\t\t\n";
    let edges = "id\tsubject\tpredicate\tobject\tprimary_knowledge_source\ne1\tD:1\tbiolink:affects\tG:1\tinfores:x\n";
    std::fs::write(path("kg_nodes.tsv"), nodes).unwrap();
    std::fs::write(path("kg_edges.tsv"), edges).unwrap();
    std::fs::write(path("README.md"), "a, b, c, d\n").unwrap();
    std::fs::write(path(".hidden.tsv"), "a\tb\n").unwrap();
    std::fs::create_dir(path("more")).unwrap();
    let options = LoadOptions::default();
    let want = [
        "D:1 biolink:affects G:1",
        "D:1 biolink:category biolink:Drug",
        "G:1 biolink:category biolink:Gene",
        "G:1 biolink:category biolink:NamedThing",
    ];
    let both = load_many(&[path("kg_edges.tsv"), path("kg_nodes.tsv")], &options).unwrap();
    let whole = load(directory.path(), &options).unwrap();
    for (graph, report) in [both, whole] {
        assert_eq!(triples(&graph), want);
        assert_eq!((label(&graph, "G:1"), label(&graph, "D:1")), (Some("COX1"), Some("aspirin")));
        assert_eq!((report.rows, report.triples, report.nodes), (4, 4, 3));
    }
    let (_, report) = load(directory.path(), &options).unwrap();
    let here = directory.path().display();
    assert_eq!(
        report.notes(),
        [
            format!("{here}: read kg_edges.tsv, kg_nodes.tsv; passed over README.md, more"),
            format!(
                "{}: the first row is a header; head = subject, relation = predicate, tail = object; \
                 not used: id, primary_knowledge_source",
                path("kg_edges.tsv").display()
            ),
            format!(
                "{}: the first row is a header; node = id, label of the node = name, kind of the node = category",
                path("kg_nodes.tsv").display()
            ),
        ]
    );
    // Nodes alone are no graph, and the error says what is missing.
    let alone = failed("nodes.csv", "id,name\na,A\nb,B\n");
    assert_eq!(
        alone,
        "nodes.csv: no triples, expected at least one: 0 rows read, 0 literals and 0 bad rows left out; \
         2 nodes described; hint: load it together with a file of edges"
    );
}

#[test]
fn directories() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path().display();
    let options = LoadOptions::default();
    std::fs::write(directory.path().join("notes.md"), "nothing").unwrap();
    let none = load(directory.path(), &options).unwrap_err();
    assert_eq!(said(&none), format!("{here}: is a directory, expected a graph file"));
    std::fs::write(directory.path().join("b.txt"), "a\tr\tb\n").unwrap();
    std::fs::write(directory.path().join("a.csv"), "b,r,c\n").unwrap();
    std::fs::write(directory.path().join("words.txt"), "no tabs here\n").unwrap();
    let (graph, report) = load(directory.path(), &options).unwrap();
    assert_eq!(graph.entities().iter().collect::<Vec<_>>(), ["b", "c", "a"]);
    assert_eq!(report.notes(), [format!("{here}: read a.csv, b.txt; passed over notes.md, words.txt")]);
    assert_eq!((report.directories[0].is_dataset, report.files.len()), (false, 2));
    // A dataset: only what is known is read.
    for name in ["train.tsv", "test.tsv"] {
        std::fs::write(directory.path().join(name), format!("x\tr\t{name}\n")).unwrap();
    }
    let (graph, report) = load(directory.path(), &options).unwrap();
    assert_eq!(triples(&graph), ["x r train.tsv"]);
    assert!(report.directories[0].is_dataset);
    let missing = load_many(&[directory.path().into(), PathBuf::from("nowhere.tsv")], &options).unwrap_err();
    assert!(matches!(missing, LoadError::NotFound { .. }));
}

#[test]
fn neo4j_exports() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    // The same number in two groups is two nodes.
    let people = write("people.csv", "personId:ID(Person),name,:LABEL\n1,Keanu,Person;Actor\n2,Carrie,Person\n");
    let films = write("films.csv", "movieId:ID(Movie),title:string,year:int,:LABEL\n1,The Matrix,1999,Movie\n");
    let roles =
        write("roles.csv", ":START_ID(Person),role,:END_ID(Movie),:TYPE\n1,Neo,1,ACTED_IN\n2,Trinity,1,ACTED_IN\n");
    let (graph, _) = load_many(&[people, films, roles], &LoadOptions::default()).unwrap();
    assert_eq!(
        triples(&graph),
        [
            "Movie:1 :LABEL Movie",
            "Person:1 :LABEL Actor",
            "Person:1 :LABEL Person",
            "Person:1 ACTED_IN Movie:1",
            "Person:2 :LABEL Person",
            "Person:2 ACTED_IN Movie:1",
        ]
    );
    assert_eq!((label(&graph, "Person:1"), label(&graph, "Movie:1")), (Some("Keanu"), Some("The Matrix")));

    // Nodes and relationships in one file, as apoc.export.csv writes them.
    let apoc = "\"_id\",\"_labels\",\"name\",\"_start\",\"_end\",\"_type\",\"since\"\n\
                \"10\",\":Person:Actor\",\"Keanu\",,,,\n\"11\",\":Person\",\"Carrie\",,,,\n,,,\"10\",\"11\",\"KNOWS\",\"1998\"\n";
    let (graph, report) = default("all.csv", apoc);
    let want = ["10 :LABEL Actor", "10 :LABEL Person", "10 KNOWS 11", "11 :LABEL Person"];
    assert_eq!(triples(&graph), want);
    assert_eq!((label(&graph, "10"), report.nodes, report.rows), (Some("Keanu"), 2, 4));

    // The same as apoc.export.json writes it.
    let json = r#"{"type":"node","id":"10","labels":["Person","Actor"],"properties":{"name":"Keanu"}}
{"type":"node","id":"11","labels":["Person"],"properties":{}}
{"id":"5","type":"relationship","label":"KNOWS","properties":{"since":1998},"start":{"id":"10","labels":["Person"],"properties":{"name":"Keanu"}},"end":{"id":"11","labels":["Person"]}}
"#;
    let (graph, report) = default("all.json", json);
    assert_eq!(triples(&graph), want);
    assert_eq!((label(&graph, "10"), report.format, report.nodes), (Some("Keanu"), Format::JsonLines, 2));
}

#[test]
fn json_lines() {
    let objects = r#"{"subject": "D:1", "predicate": "affects", "object": "G:1", "score": 0.5}

{"object": {"id": "G:2", "name": "COX2"}, "predicate": "affects", "subject": {"id": "D:1", "name": "aspirin"}}
{"subject": "D:1", "predicate": "mass", "object": 180.2}
{"subject": "D:1", "predicate": "approved", "object": true}
{"subject": "D:1", "predicate": "formula", "object": {"type": "literal", "value": "C9H8O4"}}
{"subject": "D:1", "predicate": "treats", "object": ["pain", "fever"]}
{"id": "G:1", "name": "COX1", "category": ["biolink:Gene"]}
"#;
    for name in ["g.jsonl", "g.ndjson", "g"] {
        let (graph, report) = default(name, objects);
        let want = [
            "D:1 affects G:1",
            "D:1 affects G:2",
            "D:1 treats fever",
            "D:1 treats pain",
            "G:1 biolink:category biolink:Gene",
        ];
        assert_eq!(triples(&graph), want);
        assert_eq!((report.rows, report.triples, report.literals, report.nodes), (8, 5, 3, 1));
        assert_eq!(label(&graph, "D:1"), Some("aspirin"));
        assert_eq!((label(&graph, "G:1"), label(&graph, "G:2")), (Some("COX1"), Some("COX2")));
        assert_eq!(
            report.notes(),
            [format!(
                "{name}: head = subject, relation = predicate, tail = object, node = id, label of the node = name, \
                 kind of the node = category; not used: score"
            )]
        );
    }
    // Arrays, numbers as names, initials.
    assert_eq!(triples(&default("g", "[\"a\", \"r\", \"b\"]\n[\"b\", \"r\", \"c\"]\n").0), ["a r b", "b r c"]);
    assert_eq!(triples(&default("g.jsonl", "[1, 2, 3]\n").0), ["1 2 3"]);
    assert_eq!(triples(&default("g.jsonl", "{\"t\": 3, \"r\": \"x\", \"h\": 1}\n").0), ["1 x 3"]);
    // Keys by choice.
    let odd = "{\"who\": \"a\", \"does\": \"r\", \"what\": \"b\"}\n";
    assert_eq!(triples(&with_columns("g.jsonl", odd, "who,does,what").unwrap().0), ["a r b"]);
    let cases = [
        (
            odd,
            "g.jsonl:1: expected keys such as head, relation and tail, found who, does, what; \
             hint: choose the keys of head, relation and tail",
        ),
        ("[1, 2]\n", "g.jsonl:1: expected an array of 3, found 2 items; hint: fill it in, or leave malformed rows out"),
        (
            "{\"head\": \"a\", \"relation\": \"r\", \"tail\": null}\n",
            "g.jsonl:1: field 3 is empty, expected the name of a tail entity; hint: fill it in, or leave malformed rows out",
        ),
        (
            "{\"head\": \"a\", \"relation\": {}, \"tail\": \"b\"}\n",
            "g.jsonl:1: expected the name of a relation, found something else; hint: fill it in, or leave malformed rows out",
        ),
        (
            "{\"head\": \"a\",\n",
            "g.jsonl:1: is no JSON: EOF while parsing an object at column 13; \
             hint: write one object or one array of three on each line, or leave malformed rows out",
        ),
    ];
    for (content, want) in cases {
        let content = if content.ends_with(",\n") { content.replace(",\n", ", ") } else { content.to_owned() };
        let got = failed("g.jsonl", &content);
        // The parser's own words may change.
        if want.contains("EOF") {
            assert!(got.starts_with("g.jsonl:1: is no JSON: EOF"), "{got}");
        } else {
            assert_eq!(got, want);
        }
    }
    let lenient = LoadOptions { lenient: true, ..LoadOptions::default() };
    let (_, report) = load_reader("g.jsonl", "oops\n[\"a\",\"r\",\"b\"]\n".as_bytes(), &lenient).unwrap();
    assert_eq!((report.rows, report.triples, report.skipped), (2, 1, 1));
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(content).unwrap();
    out.finish().unwrap()
}

#[test]
fn files_that_are_no_graphs_are_named() {
    let mut tar = vec![0; 1024];
    tar[..8].copy_from_slice(b"edges.tsv"[..8].as_ref());
    tar[257..262].copy_from_slice(b"ustar");
    let xlsx = b"PK\x03\x04\x14\0\x06\0\x08\0[Content_Types].xml...PK\x03\x04..xl/workbook.xml";
    let cases: [(&[u8], &str); 9] = [
        (xlsx, "is an Excel workbook, expected a graph file; hint: save the sheet as CSV"),
        (b"PK\x03\x04\x14\0data.tsv", "found zip data, expected text, gzip or zstd; hint: unpack it first"),
        (b"SQLite format 3\0....", "is an SQLite database, expected a graph file; hint: export a table: "),
        (&tar, "is a tar archive, expected a graph file; hint: unpack it first, then name the file or the directory"),
        (&gzip(&tar), "is a tar archive, expected a graph file"),
        (b"<!DOCTYPE html>\n<html>", "is a web page (HTML), expected a graph file; hint: fetch the file itself"),
        (b"\x89HDF\r\n\x1a\n\0", "is an HDF5 file, expected a graph file"),
        (b"\x80\x04\x95\0\0", "is a Python pickle, expected a graph file"),
        (b"FEA1\0\0\0\0", "is a Feather file of version 1, expected a graph file"),
    ];
    for (content, want) in cases {
        for name in ["g.tsv", "g.csv", "g"] {
            let got = failed(name, content);
            assert!(got.starts_with(&format!("{name}: {want}")), "{got}");
        }
    }
    // Names that begin like magic are names. So are those that have magic further on.
    assert_eq!(default("g.tsv", "DAFFY\tX\tDUCK\nDAFFY\tX\tBUGS\n").1.triples, 2);
    let tasty = format!("{}\tis\tmustard\n", "x".repeat(257 - "\tis\tm".len()));
    assert_eq!(&tasty[257..262], "ustar");
    assert_eq!(default("g.tsv", &tasty).1.triples, 1);
    // Values of JSON lines may have an @id.
    let line = "{\"head\": {\"@id\": \"a\"}, \"relation\": \"r\", \"tail\": {\"@id\": \"b\"}}\n";
    assert_eq!(default("g.jsonl", line.repeat(2)).1.triples, 1);
    assert_eq!(default("g.tsv", "ORC\tis a\tmonster\nGIF8\tis a\tthing\n").1.triples, 2);
}
