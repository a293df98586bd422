//! Properties of the parsers: nothing panics, names survive, and the counts of a report add up.

use flock_graph::{Format, Graph, LoadError, LoadOptions, LoadReport, load_reader};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const FORMATS: [Format; 13] = Format::ALL;
const RDF: [Format; 6] =
    [Format::NTriples, Format::NQuads, Format::Turtle, Format::TriG, Format::RdfXml, Format::JsonLd];

fn options(format: Format, lenient: bool) -> LoadOptions {
    LoadOptions { format: Some(format), lenient, header: Some(false), ..LoadOptions::default() }
}

fn run(content: &[u8], options: &LoadOptions) -> Result<(Graph, LoadReport), LoadError> {
    load_reader("g", content, options)
}

fn triples(graph: &Graph) -> Vec<[String; 3]> {
    let (e, r) = (graph.entities(), graph.relations());
    let mut all: Vec<[String; 3]> = graph
        .topology()
        .triples()
        .map(|t| [e.get(t.head), r.get(t.relation), e.get(t.tail)].map(str::to_owned))
        .collect();
    all.sort();
    all
}

/// The same cases in every run.
fn config() -> ProptestConfig {
    ProptestConfig { cases: 2000, rng_seed: RngSeed::Fixed(20), failure_persistence: None, ..ProptestConfig::default() }
}

/// Lenient loading never does worse than strict loading, does the same on valid input, and its
/// counts add up.
fn check_counts(content: &[u8], format: Format) -> Result<(), TestCaseError> {
    let strict = run(content, &options(format, false));
    let lenient = run(content, &options(format, true));
    match (&strict, &lenient) {
        (Ok((a, strict)), Ok((b, lenient))) => {
            prop_assert_eq!(strict, lenient);
            prop_assert_eq!(triples(a), triples(b));
        }
        (Ok(_), Err(error)) => prop_assert!(false, "only lenient fails: {}", error),
        (Err(error), Ok((_, report))) => {
            prop_assert!(report.skipped > 0);
            let first = report.first_skipped.as_ref().map(ToString::to_string);
            prop_assert_eq!(Some(error.to_string()), first);
        }
        (Err(_), Err(_)) => {}
    }
    if let Ok((graph, report)) = &lenient {
        prop_assert!(report.adds_up(), "{:?}", report);
        prop_assert_eq!(report.triples, graph.topology().num_triples() as u64);
        prop_assert!(!graph.entities().iter().any(str::is_empty));
    }
    if let Err(LoadError::Empty { rows, literals, skipped, .. }) = &lenient {
        // Statements about statements, and those that hold lists together, are not named.
        prop_assert!(*rows >= literals + skipped);
        prop_assert!(format.is_rdf() || *rows == literals + skipped);
    }
    Ok(())
}

fn csv_field(name: &str, quoted: bool) -> String {
    if quoted || name.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.to_owned()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_bytes(content in prop::collection::vec(any::<u8>(), 0..200), which in 0..FORMATS.len()) {
        check_counts(&content, FORMATS[which])?;
        let _ = load_reader("g", &content[..], &LoadOptions::default());
    }

    /// The same, with bytes that have a meaning to some parser.
    #[test]
    fn any_text_of_marks(content in "[ab\t,\"\r\n .:;#<>/_@=é{}\\[\\]1-]{0,80}", which in 0..FORMATS.len()) {
        check_counts(content.as_bytes(), FORMATS[which])?;
    }

    #[test]
    fn any_words_of_rdf(
        words in prop::collection::vec(prop::sample::select(vec![
            "<http://a.b/c>", "<http://a.b/d#e>", "<e>", "_:x", "\"l\"", "\"l\"@en", "a:b", "a", ".", ";", ",", "[", "]",
            "(", ")", "@prefix a: <http://a.b/> .", "\n", "# c\n", "1.5", "true", "<rdf:RDF>", "</rdf:RDF>", "^^", "\\u0041",
        ]), 0..25),
        which in 0..RDF.len(),
    ) {
        check_counts(words.join(" ").as_bytes(), RDF[which])?;
    }

    /// The parts of ontologies in any order, and statements about statements.
    #[test]
    fn any_words_of_ontologies(
        words in prop::collection::vec(prop::sample::select(vec![
            "o:A", "o:B", "_:x", "_:y", "[", "]", "(", ")", ".\n", ";", ",", "a", "{", "}", "{|", "|}", "<<", ">>", "<<(", ")>>",
            "rdfs:subClassOf", "w:equivalentClass", "w:Restriction", "w:onProperty", "w:someValuesFrom", "w:intersectionOf",
            "rdf:first", "rdf:rest", "rdf:nil", "rdf:reifies", "rdfs:label", "\"l\"@en", "w:Class", "w:Axiom", "GRAPH", "~",
        ]), 0..30),
        trig in any::<bool>(),
    ) {
        let prefixes = "@prefix o: <http://o.org/> .\n@prefix w: <http://www.w3.org/2002/07/owl#> .\n\
            @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n\
            @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .\n";
        let content = format!("{prefixes}{} .", words.join(" "));
        check_counts(content.as_bytes(), if trig { Format::TriG } else { Format::Turtle })?;
    }

    #[test]
    fn any_lines_of_obo(
        lines in prop::collection::vec(prop::sample::select(vec![
            "[Term]", "[Typedef]", "[Instance]", "[Other]", "[", "id: A:1", "id: A:2 ! c", "id:", "name: n", "name: ! c",
            "is_a: A:2 {x=\"y\"} ! c", "is_a:", "relationship: part_of A:3", "relationship: part_of", "intersection_of: A:1",
            "intersection_of: part_of A:2", "is_obsolete: true", "property_value: p A:4", "property_value: p \"1\" xsd:int",
            "def: \"d\" []", "a\\", "\\", "no colon", "! c", "", ":",
        ]), 0..20),
    ) {
        check_counts(lines.join("\n").as_bytes(), Format::Obo)?;
    }

    #[test]
    fn names_survive_obo(
        names in prop::collection::vec(prop::array::uniform3("[a-z:_\\\\!{}\"]{1,6}"), 1..20),
    ) {
        let escaped = |name: &String| -> String { name.chars().flat_map(|c| ['\\', c]).collect::<String>() };
        // `\\n`, `\\t` and `\\W` stand for white space.
        let names: Vec<[String; 3]> =
            names.into_iter().map(|names| names.map(|name| name.replace(['n', 't'], "x"))).collect();
        let stanza = |[h, r, t]: &[String; 3]| {
            format!("[Term]\nid: {}\nrelationship: {} {}\n", escaped(h), escaped(r), escaped(t))
        };
        let content: String = names.iter().map(stanza).collect();
        let (graph, _) = run(content.as_bytes(), &options(Format::Obo, false)).unwrap();
        let mut want = names;
        want.sort();
        want.dedup();
        prop_assert_eq!(triples(&graph), want);
    }

    #[test]
    fn names_survive_tsv(
        // A carriage return at the very end would be taken for part of the line end.
        names in prop::collection::vec(("[^\t\n]{1,12}", "[^\t\n]{1,12}", "[^\t\n\r]{1,12}"), 1..20),
    ) {
        let names: Vec<[String; 3]> = names.into_iter().map(<[String; 3]>::from).collect();
        prop_assume!(!names[0][0].starts_with('\u{feff}'));
        let content: String = names.iter().map(|n| n.join("\t") + "\n").collect();
        let (graph, report) = run(content.as_bytes(), &options(Format::Tsv, false)).unwrap();
        let mut want = names;
        want.sort();
        want.dedup();
        prop_assert_eq!(report.triples, want.len() as u64);
        prop_assert_eq!(triples(&graph), want);
    }

    #[test]
    fn names_survive_csv(
        names in prop::collection::vec(prop::array::uniform3("(?s)[\"a,\n\r b]{1,6}|.{1,12}"), 1..20),
        quoted in any::<bool>(),
        end in prop::sample::select(vec!["\n", "\r\n"]),
    ) {
        prop_assume!(!names[0][0].starts_with('\u{feff}'));
        let row = |n: &[String; 3]| n.each_ref().map(|n| csv_field(n, quoted)).join(",") + end;
        let content: String = names.iter().map(row).collect();
        let (graph, report) = run(content.as_bytes(), &options(Format::Csv, false)).unwrap();
        let mut want = names;
        prop_assert_eq!(report.rows, want.len() as u64);
        want.sort();
        want.dedup();
        prop_assert_eq!(triples(&graph), want);
    }

    /// Plain lines of N-Triples are cut by hand. Turtle includes them and always goes through its
    /// parser.
    #[test]
    fn plain_lines_are_read_as_the_parser_reads_them(
        iris in prop::array::uniform3("https?://[a.:@\\[%-]{0,3}/[a/#%.,()?\u{e9}_ -]{0,5}"),
    ) {
        let [h, r, t] = &iris;
        let content = format!("<{h}> <{r}> <{t}> .\n");
        let plain = run(content.as_bytes(), &options(Format::NTriples, false));
        let parsed = run(content.as_bytes(), &options(Format::Turtle, false));
        match (plain, parsed) {
            (Ok((a, _)), Ok((b, _))) => prop_assert_eq!(triples(&a), triples(&b)),
            (Err(_), Err(_)) => {}
            (a, b) => prop_assert!(false, "{:?} and {:?} for {}", a.map(|r| r.1), b.map(|r| r.1), content),
        }
    }
}
