//! Datasets of RDF, ontologies and other formats of whole graphs: what becomes a triple, what a
//! label, and what is left out.

use flock_graph::{Format, Graph, LoadOptions, LoadReport, load_many, load_reader};

fn read(name: &str, content: &str, options: &LoadOptions) -> (Graph, LoadReport) {
    let (graph, report) = load_reader(name, content.as_bytes(), options).unwrap();
    assert!(report.adds_up(), "{report:?}");
    (graph, report)
}

fn default(name: &str, content: &str) -> (Graph, LoadReport) {
    read(name, content, &LoadOptions::default())
}

fn said(name: &str, content: &str) -> String {
    let error = load_reader(name, content.as_bytes(), &LoadOptions::default()).unwrap_err();
    let remedy = error.remedy().map_or_else(String::new, |remedy| format!("; hint: {remedy}"));
    format!("{error}{remedy}")
}

/// Lists all triples by the last parts of their names, sorted.
fn triples(graph: &Graph) -> Vec<String> {
    let (e, r) = (graph.entities(), graph.relations());
    let short = |name: &str| name.rsplit(['/', '#']).next().unwrap_or_default().to_owned();
    let mut all: Vec<String> = graph
        .topology()
        .triples()
        .map(|t| [e.get(t.head), r.get(t.relation), e.get(t.tail)].map(short).join(" "))
        .collect();
    all.sort();
    all
}

/// Returns the label of an entity.
fn label<'a>(graph: &'a Graph, entity: &str) -> Option<&'a str> {
    graph.labels().entity(graph.entities().id(entity)?)
}

fn relation_label<'a>(graph: &'a Graph, relation: &str) -> Option<&'a str> {
    graph.labels().relation(graph.relations().id(relation)?)
}

const N_QUADS: &str = "<http://e.org/a> <http://e.org/r> <http://e.org/b> <http://e.org/g1> .\n\
    <http://e.org/b> <http://e.org/r> <http://e.org/c> <http://e.org/g2> .\n\
    <http://e.org/b> <http://e.org/r> <http://e.org/c> <http://e.org/g1> .\n\
    <http://e.org/c> <http://e.org/r> _:x .\n\
    <http://e.org/c> <http://e.org/note> \"free text\"@en _:g .\n\
    <http://e.org/a> <http://www.w3.org/2000/01/rdf-schema#label> \"Ann\" <http://e.org/g1> .\n";

const TRIG: &str = "@prefix : <http://e.org/> .\n@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n\
    GRAPH :g1 { :a :r :b ; rdfs:label \"Ann\" . :b :r :c }\n\
    :g2 { :b :r :c }\n\
    :c :r _:x .\n\
    _:g { :c :note \"free text\"@en }\n";

const JSON_LD: &str = r#"{
  "@context": {"@vocab": "http://e.org/", "rdfs": "http://www.w3.org/2000/01/rdf-schema#", "r": {"@type": "@id"}},
  "@graph": [
    {"@id": "http://e.org/g1", "@graph": [
      {"@id": "http://e.org/a", "r": "http://e.org/b", "rdfs:label": "Ann"},
      {"@id": "http://e.org/b", "r": "http://e.org/c"}]},
    {"@id": "http://e.org/g2", "@graph": [{"@id": "http://e.org/b", "r": "http://e.org/c"}]},
    {"@id": "_:g", "@graph": [{"@id": "http://e.org/c", "note": {"@value": "free text", "@language": "en"}}]},
    {"@id": "http://e.org/c", "r": "_:x"}
  ]
}"#;

#[test]
fn named_graphs_are_merged_and_counted() {
    for (name, content, format) in [
        ("g.nq", N_QUADS, Format::NQuads),
        ("g.trig", TRIG, Format::TriG),
        ("g.jsonld", JSON_LD, Format::JsonLd),
        // By content.
        ("nq", N_QUADS, Format::NQuads),
        ("trig", TRIG, Format::TriG),
        ("g.json", JSON_LD, Format::JsonLd),
    ] {
        let (graph, report) = default(name, content);
        assert_eq!(report.format, format, "{name}");
        assert_eq!(triples(&graph), ["a r b", "b r c", "c r _:x"], "{name}");
        assert_eq!((report.rows, report.triples, report.duplicates), (6, 3, 1), "{name}");
        assert_eq!((report.literals, report.labels, report.graphs), (1, 1, 3), "{name}");
        assert_eq!(report.literals_by_predicate, [("http://e.org/note".to_owned(), 1)], "{name}");
        assert_eq!(report.left_out().as_deref(), Some("1 literal (note 1), 1 duplicate"), "{name}");
        assert_eq!(report.understood().as_deref(), Some("3 named graphs merged"), "{name}");
        assert_eq!(label(&graph, "http://e.org/a"), Some("Ann"), "{name}");
    }
}

#[test]
fn bad_lines_of_n_quads_are_skipped() {
    let content = format!("{N_QUADS}<http://e.org/a> <http://e.org/r> .\n");
    assert!(said("g.nq", &content).starts_with("g.nq:7: "), "{}", said("g.nq", &content));
    let lenient = LoadOptions { lenient: true, ..LoadOptions::default() };
    let (graph, report) = read("g.nq", &content, &lenient);
    assert_eq!((triples(&graph).len(), report.skipped), (3, 1));
    // A graph is an error in N-Triples.
    assert!(said("g.nt", N_QUADS).starts_with("g.nt:1: "));
}

#[test]
fn statements_about_statements_are_left_out() {
    let prefix = "@prefix : <http://e.org/> .\n";
    let annotated = format!("{prefix}:a :r :b {{| :source :book ; :year 1999 |}} .\n:b :r :c .\n");
    let (graph, report) = default("g.ttl", &annotated);
    assert_eq!(triples(&graph), ["a r b", "b r c"]);
    // The reifier, the source and the year, which is a literal.
    assert_eq!((report.rows, report.about, report.literals), (5, 2, 1));
    let want = "1 literal (year 1), 2 statements about other statements";
    assert_eq!(report.left_out().as_deref(), Some(want));

    // The quoted triple is not asserted here.
    let quoted =
        format!("{prefix}<< :a :r :b >> :source :book .\n:c :knows << :a :r :b ~ :n >> .\n:n :by :d .\n:b :r :c .\n");
    let (graph, report) = default("g.ttl", &quoted);
    assert_eq!((triples(&graph), report.about), (vec!["b r c".to_owned()], 5));

    let term = "<http://e.org/n> <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> \
        <<( <http://e.org/a> <http://e.org/r> <http://e.org/b> )>> .\n\
        <http://e.org/n> <http://e.org/by> <http://e.org/d> .\n\
        <http://e.org/a> <http://e.org/r> <http://e.org/b> .\n";
    for name in ["g.nt", "g.nq", "g.ttl", "g.trig"] {
        let (graph, report) = default(name, term);
        assert_eq!((triples(&graph), report.about), (vec!["a r b".to_owned()], 2), "{name}");
    }
}

#[test]
fn labels_by_property_and_language() {
    let turtle = "@prefix : <http://e.org/> .\n@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n\
        @prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n@prefix foaf: <http://xmlns.com/foaf/0.1/> .\n\
        @prefix s: <https://schema.org/> .\n@prefix dct: <http://purl.org/dc/terms/> .\n\
        :a :r :b , :c , :d .\n\
        :a rdfs:label \"Wien\"@de , \"Vienna\"@en , \"Vienna\"@en-US , \"Vienne\"@fr ; foaf:name \"V\" .\n\
        :b skos:altLabel \"other\" ; skos:prefLabel \"Bonn\"@de .\n\
        :c s:name \"Cork\" ; dct:title \"The city of Cork\" .\n\
        :d foaf:name \" \" ; rdfs:label 5 .\n\
        :r rdfs:label \"twinned with\"@en .\n:nobody rdfs:label \"Nobody\" .\n";
    let (graph, report) = default("g.ttl", turtle);
    let names = ["a", "b", "c", "d"].map(|name| format!("http://e.org/{name}"));
    let labels = |graph: &Graph| names.each_ref().map(|name| label(graph, name).map(str::to_owned));
    let want =
        |names: [&str; 3]| [Some(names[0].to_owned()), Some(names[1].to_owned()), Some(names[2].to_owned()), None];
    assert_eq!(labels(&graph), want(["Vienna", "Bonn", "Cork"]));
    assert_eq!(relation_label(&graph, "http://e.org/r"), Some("twinned with"));
    // An alternative label, an empty name and a number are no labels.
    assert_eq!((report.labels, report.literals, report.triples), (10, 3, 3));

    let german = LoadOptions { languages: vec!["de".to_owned(), "fr".to_owned()], ..LoadOptions::default() };
    assert_eq!(labels(&read("g.ttl", turtle, &german).0), want(["Wien", "Bonn", "Cork"]));
    let french = LoadOptions { languages: vec!["fr".to_owned()], ..LoadOptions::default() };
    assert_eq!(labels(&read("g.ttl", turtle, &french).0), want(["Vienne", "Bonn", "Cork"]));
}

#[test]
fn blank_nodes_have_labels_and_keep_their_numbers() {
    let turtle = "@prefix : <http://e.org/> .\n@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n\
        [] rdfs:label \"alone\" .\n[ rdfs:label \"first\" ; :r :b ] :q [ :r :c ] .\n_:x rdfs:label \"named\" ; :r :b .\n";
    let (graph, _) = default("g.ttl", turtle);
    assert_eq!(triples(&graph), ["_:[1] q _:[2]", "_:[1] r b", "_:[2] r c", "_:x r b"]);
    assert_eq!(label(&graph, "_:[1]"), Some("first"));
    assert_eq!(label(&graph, "_:x"), Some("named"));
    assert_eq!(graph.labels().len(), 2);
}

#[test]
fn literals_are_counted_by_predicate() {
    let mut turtle = "@prefix : <http://e.org/> .\n:a :r :b .\n".to_owned();
    for property in 0..25 {
        for value in 0..=property {
            turtle += &format!(":a :p{property} {value} .\n");
        }
    }
    let (_, report) = default("g.ttl", &turtle);
    assert_eq!(report.literals, 325);
    assert_eq!(report.literals_by_predicate.len(), 20);
    assert_eq!(report.literals_by_predicate[0], ("http://e.org/p24".to_owned(), 25));
    assert_eq!(report.literals_by_predicate[19], ("http://e.org/p5".to_owned(), 6));
    assert_eq!(report.left_out().as_deref(), Some("325 literals (p24 25, p23 24, p22 23, …)"));
}

const OBO: &str = "format-version: 1.4\nontology: t\n\n\
    [Term]\nid: T:1 ! root\nname: limb\n\n\
    [Term]\nid: T:2\nname: arm \\{upper\\} {source=\"x\"} ! not the name\nnamespace: anatomy\n\
    def: \"An arm.\" [ref:1]\nsynonym: \"brachium\" EXACT []\nis_a: T:1 {is_inferred=\"true\"} ! limb\n\n\
    [Term]\nid: T:3\nname: hand\nrelationship: part_of T:2 {x=\"a ! b\"} ! arm\nintersection_of: T:1 ! limb\n\
    intersection_of: part_of T:2 ! arm\nproperty_value: seen_in T:1\nproperty_value: size \"7\" xsd:integer\n\n\
    [Term]\nid: T:4\nname: old\nis_a: T:1\nis_obsolete: true\n\n\
    [Typedef]\nid: part_of\nname: part of\nis_a: overlaps\n\n\
    [Instance]\nid: I:1\ninstance_of: T:3\n";

#[test]
fn obo() {
    for name in ["t.obo", "t"] {
        let (graph, report) = default(name, OBO);
        assert_eq!(report.format, Format::Obo);
        let want = [
            "I:1 instance_of T:3",
            "T:2 is_a T:1",
            "T:3 is_a T:1",
            "T:3 part_of T:2",
            "T:3 seen_in T:1",
            "part_of is_a overlaps",
        ];
        assert_eq!(triples(&graph), want);
        assert_eq!(label(&graph, "T:2"), Some("arm {upper}"));
        assert_eq!(relation_label(&graph, "part_of"), Some("part of"));
        assert_eq!((report.labels, report.obsolete, report.duplicates), (4, 1, 1));
        assert_eq!(
            report.left_out().as_deref(),
            Some("4 literals (def 1, namespace 1, size 1, …), 1 obsolete term, 1 duplicate")
        );
        assert!(graph.prefixes().is_empty());
    }
}

#[test]
fn obo_with_mistakes() {
    let bad = "[Term]\nid: T:1\nis_a:\nrelationship: part_of\nis_a: T:2\nno colon\n\n[Term]\nname: no id\n";
    assert_eq!(said("t.obo", bad), "t.obo:3: found \"is_a:\", expected the id of another term");
    let lenient = LoadOptions { lenient: true, ..LoadOptions::default() };
    let (graph, report) = read("t.obo", bad, &lenient);
    assert_eq!((triples(&graph), report.skipped), (vec!["T:1 is_a T:2".to_owned()], 4));
    let no_id = "[Term]\nid: T:1\nis_a: T:2\n\n[Term]\nname: no id\n";
    assert_eq!(said("t.obo", no_id), "t.obo:5: found a stanza without an id, expected a line with id: in it");
}

/// Hand is part of some arm; arm is a limb and has a place; the grip is defined by an intersection.
const OWL_TURTLE: &str = "@prefix : <http://o.org/> .\n@prefix owl: <http://www.w3.org/2002/07/owl#> .\n\
    @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n\
    :Hand rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :part_of ; owl:someValuesFrom :Arm ] .\n\
    :Arm rdfs:subClassOf :Limb , [ a owl:Restriction ; owl:onProperty :in ; owl:hasValue :body ] .\n\
    :Grip owl:equivalentClass [ a owl:Class ; owl:intersectionOf ( :Act\n\
      [ a owl:Restriction ; owl:onProperty :by ; owl:someValuesFrom :Hand ]\n\
      [ owl:intersectionOf ( :Deed ) ] ) ] .\n\
    :Foot rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :near ; owl:allValuesFrom :Leg ] .\n\
    :Toe rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :part_of ; owl:someValuesFrom\n\
      [ owl:intersectionOf ( :Foot [ a owl:Restriction ; owl:onProperty :in ; owl:someValuesFrom :Shoe ] ) ] ] .\n\
    :in rdfs:domain [ a owl:Class ; owl:unionOf ( :Arm :Hand ) ] .\n\
    :part_of rdfs:label \"part of\" .\n\
    [] a owl:Axiom ; owl:annotatedSource :Hand ; owl:annotatedProperty rdfs:subClassOf ; owl:annotatedTarget :Limb ; :by :me .\n\
    :me :knows [ :likes :you ] .\n";

#[test]
fn class_expressions_become_triples() {
    let want = [
        "Arm in body",
        "Arm subClassOf Limb",
        "Grip by Hand",
        "Grip subClassOf Act",
        "Grip subClassOf Deed",
        "Hand part_of Arm",
        "Toe part_of Foot",
        "_ likes you",
        "me knows _",
    ];
    let check = |name: &str, content: &str| {
        let (graph, report) = default(name, content);
        // The number of the one blank node that stays depends on the order of the parser.
        let no_number =
            |t: String| t.split(' ').map(|n| if n.starts_with("_:") { "_" } else { n }).collect::<Vec<_>>().join(" ");
        let mut found: Vec<String> = triples(&graph).into_iter().map(no_number).collect();
        found.sort();
        assert_eq!(found, want, "{name}");
        assert_eq!(relation_label(&graph, "http://o.org/part_of"), Some("part of"), "{name}");
        // Five statements annotate an axiom.
        assert_eq!((report.about, report.derived, report.labels), (5, 6, 1), "{name}");
        report
    };
    let report = check("o.ttl", OWL_TURTLE);
    assert_eq!(report.understood().as_deref(), Some("6 triples from class expressions"));
    check("o.owl", OWL_TURTLE);

    // Statements come in any order in N-Triples.
    let mut lines: Vec<String> = oxttl_lines(OWL_TURTLE);
    check("o.nt", &lines.concat());
    lines.sort();
    check("o.nt", &lines.concat());
    lines.reverse();
    check("o.nt", &lines.concat());
}

/// Writes Turtle as lines of N-Triples, with the parser that the reader uses.
fn oxttl_lines(turtle: &str) -> Vec<String> {
    oxttl::TurtleParser::new().for_slice(turtle).map(|triple| format!("{} .\n", triple.unwrap())).collect()
}

#[test]
fn an_ontology_in_rdf_xml() {
    let owl = r#"<?xml version="1.0"?>
<rdf:RDF xmlns="http://o.org/" xmlns:owl="http://www.w3.org/2002/07/owl#" xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"
    xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <owl:Class rdf:about="http://o.org/Hand">
    <rdfs:label xml:lang="en">hand</rdfs:label>
    <owl:equivalentClass>
      <owl:Class>
        <owl:intersectionOf rdf:parseType="Collection">
          <rdf:Description rdf:about="http://o.org/Part"/>
          <owl:Restriction>
            <owl:onProperty rdf:resource="http://o.org/part_of"/>
            <owl:someValuesFrom rdf:resource="http://o.org/Arm"/>
          </owl:Restriction>
        </owl:intersectionOf>
      </owl:Class>
    </owl:equivalentClass>
    <rdfs:subClassOf rdf:resource="http://o.org/Part"/>
  </owl:Class>
</rdf:RDF>"#;
    let (graph, report) = default("o.owl", owl);
    assert_eq!(triples(&graph), ["Hand part_of Arm", "Hand subClassOf Part", "Hand type Class"]);
    assert_eq!(label(&graph, "http://o.org/Hand"), Some("hand"));
    // The class is a part twice. The class expression has 2 statements, the list 4, the restriction 3.
    assert_eq!((report.duplicates, report.derived, report.structure), (1, 2, 10));
    assert!(!graph.entities().iter().any(|name| name.starts_with("_:")));
}

#[test]
fn without_restrictions_nothing_changes() {
    // Everything but restrictions: lists, unnamed classes, annotations.
    let turtle = OWL_TURTLE.replace("owl:Restriction", "owl:Condition");
    let (graph, report) = default("o.ttl", &turtle);
    assert_eq!((report.about, report.structure, report.derived), (0, 0, 0));
    // Ids are given in the order of the statements, as they come out of the parser.
    let mut order: Vec<String> = Vec::new();
    let mut see = |name: String| {
        if !order.contains(&name) {
            order.push(name);
        }
    };
    let mut blanks: Vec<String> = Vec::new();
    for triple in oxttl::TurtleParser::new().for_slice(&turtle) {
        let triple = triple.unwrap();
        let object = triple.object.to_string();
        if object.starts_with('"') {
            continue;
        }
        let mut name = |term: String| match term.strip_prefix("_:") {
            Some(_) => {
                let at = blanks.iter().position(|b| *b == term).unwrap_or(blanks.len());
                if at == blanks.len() {
                    blanks.push(term);
                }
                format!("_:[{}]", at + 1)
            }
            None => term.trim_matches(['<', '>']).to_owned(),
        };
        // The reader names the tail first.
        let tail = name(object);
        see(name(triple.subject.to_string()));
        see(tail);
    }
    assert_eq!(graph.entities().iter().collect::<Vec<_>>(), order);
}

#[test]
fn class_expressions_that_are_shared_come_to_an_end() {
    const OWL: &str = "http://www.w3.org/2002/07/owl#";
    const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
    let mut lines = format!("_:r <{RDF}type> <{OWL}Restriction> .\n_:c <{OWL}intersectionOf> _:l0 .\n");
    for i in 0..2000 {
        lines += &format!("_:l{i} <{RDF}first> <http://o.org/m{i}> .\n_:l{i} <{RDF}rest> _:l{} .\n", i + 1);
        lines += &format!("<http://o.org/c{i}> <http://www.w3.org/2000/01/rdf-schema#subClassOf> _:c .\n");
    }
    let said = said("o.nt", &lines);
    assert!(said.contains("members of class expressions"), "{said}");
    // A list that is its own rest.
    let cycle = format!(
        "_:r <{RDF}type> <{OWL}Restriction> .\n_:c <{OWL}intersectionOf> _:l .\n_:l <{RDF}rest> _:l .\n\
         <http://o.org/c> <http://www.w3.org/2000/01/rdf-schema#subClassOf> _:c .\n"
    );
    assert!(load_reader("o.nt", cycle.as_bytes(), &LoadOptions::default()).is_err());
}

#[test]
fn json_ld_that_cannot_be_read() {
    let remote = r#"{"@context": "https://schema.org", "@id": "http://e.org/a", "name": "A"}"#;
    assert_eq!(
        said("g.jsonld", remote),
        "g.jsonld:1: a context on another server, expected one in the file; \
         hint: put the context into the file, or write the file as N-Quads"
    );
    assert_eq!(said("g.jsonld", "{\n\"a\": }"), "g.jsonld:2: expected value, expected JSON");
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    assert!(said("g.jsonld", &deep).contains("more than 127 brackets inside each other"));
    // JSON without its keywords is no JSON-LD.
    assert!(said("g.json", r#"{"head": "a"}"#).contains("expected keys such as head, relation and tail"));
}

#[test]
fn json_ld_forms() {
    // A list of documents, reverse properties, lists, and terms for keywords.
    let content = r#"[
      {"@context": {"id": "@id", "type": "@type", "e": "http://e.org/", "parent": {"@reverse": "e:child"}},
       "id": "e:a", "type": "e:Person", "parent": {"id": "e:b"}, "e:age": 7},
      {"@id": "http://e.org/a", "http://e.org/likes": {"@list": [{"@id": "http://e.org/c"}]}}]"#;
    let (graph, report) = default("g.jsonld", content);
    let want = ["_:[1] first c", "_:[1] rest nil", "a likes _:[1]", "a type Person", "b child a"];
    assert_eq!(triples(&graph), want);
    assert_eq!(report.literals_by_predicate, [("http://e.org/age".to_owned(), 1)]);
    assert_eq!(graph.display("http://e.org/a"), "e:a");
}

/// Returns GraphML with these keys and this content.
fn graphml(keys: &str, graph: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\" xmlns:y=\"http://www.yworks.com/xml/graphml\">\n\
         {keys}\n{graph}\n</graphml>\n"
    )
}

#[test]
fn graphml_of_several_programs() {
    let networkx = graphml(
        "<key id=\"d0\" for=\"node\" attr.name=\"name\" attr.type=\"string\"/>\
         <key id=\"d1\" for=\"edge\" attr.name=\"relation\" attr.type=\"string\"><default>knows</default></key>\
         <key id=\"d2\" for=\"edge\" attr.name=\"weight\" attr.type=\"double\"/>",
        "<graph edgedefault=\"undirected\"><node id=\"a\"><data key=\"d0\">Ann &amp; co</data></node><node id=\"b\"/>\n\
         <edge source=\"a\" target=\"b\"><data key=\"d1\">likes</data><data key=\"d2\">0.5</data></edge>\
         <edge source=\"b\" target=\"a\" directed=\"true\"/></graph>",
    );
    let (graph, report) = default("g.graphml", &networkx);
    assert_eq!(triples(&graph), ["a likes b", "b knows a"]);
    assert_eq!(label(&graph, "a"), Some("Ann & co"));
    assert_eq!((report.format, report.undirected, report.labels), (Format::GraphMl, 1, 1));
    assert_eq!(report.literals_by_predicate, [("weight".to_owned(), 1)]);
    assert_eq!(report.understood().as_deref(), Some("1 undirected edge read from source to target"));

    let yed = graphml(
        "<key for=\"node\" id=\"d6\" yfiles.type=\"nodegraphics\"/><key for=\"edge\" id=\"d10\" yfiles.type=\"edgegraphics\"/>",
        "<graph edgedefault=\"directed\" id=\"G\">\
         <node id=\"n0\"><data key=\"d6\"><y:ShapeNode><y:NodeLabel visible=\"true\"> Group\n<y:LabelModel/></y:NodeLabel></y:ShapeNode></data>\
         <graph edgedefault=\"directed\" id=\"n0:\"><node id=\"n0::n0\"/><edge source=\"n0::n0\" target=\"n1\">\
         <data key=\"d10\"><y:PolyLineEdge><y:EdgeLabel>part of</y:EdgeLabel></y:PolyLineEdge></data></edge></graph></node>\
         <node id=\"n1\"/><edge source=\"n1\" target=\"n0\"/></graph>",
    );
    // By content, whatever the extension of XML.
    for name in ["g", "g.xml"] {
        let (graph, _) = default(name, &yed);
        assert_eq!(triples(&graph), ["n0::n0 part of n1", "n1 edge n0"]);
        assert_eq!(label(&graph, "n0"), Some("Group"));
    }

    let neo4j = graphml(
        "<key id=\"name\" for=\"node\" attr.name=\"name\"/><key id=\"label\" for=\"edge\" attr.name=\"label\"/>",
        "<graph id=\"G\" edgedefault=\"directed\"><node id=\"n0\" labels=\":Person\"><data key=\"labels\">:Person</data>\
         <data key=\"name\">Tom</data></node><edge id=\"e0\" source=\"n0\" target=\"n1\" label=\"ACTED_IN\">\
         <data key=\"label\">ACTED_IN</data></edge></graph>",
    );
    let (graph, report) = default("g.graphml", &neo4j);
    assert_eq!(triples(&graph), ["n0 ACTED_IN n1"]);
    assert_eq!((label(&graph, "n0"), report.literals), (Some("Tom"), 1));

    let gephi = graphml(
        "<key attr.name=\"label\" attr.type=\"string\" for=\"node\" id=\"label\"/>\
         <key attr.name=\"Edge Label\" attr.type=\"string\" for=\"edge\" id=\"edgelabel\"/>",
        "<graph edgedefault=\"directed\"><node id=\"1\"><data key=\"label\">One</data></node>\
         <edge id=\"7\" source=\"1\" target=\"2\"><data key=\"edgelabel\">cites</data></edge></graph>",
    );
    let (graph, _) = default("g.graphml", &gephi);
    assert_eq!((triples(&graph), label(&graph, "1")), (vec!["1 cites 2".to_owned()], Some("One")));
}

#[test]
fn graphml_with_mistakes() {
    let edges = "<graph><edge source=\"a\" target=\"b\"/>\n<edge source=\"a\"/></graph>";
    let bad = graphml("", edges);
    assert_eq!(said("g.graphml", &bad), "g.graphml:5: found nothing, expected the target of an edge");
    let lenient = LoadOptions { lenient: true, ..LoadOptions::default() };
    let (graph, report) = read("g.graphml", &bad, &lenient);
    assert_eq!((triples(&graph), report.skipped), (vec!["a edge b".to_owned()], 1));
    let cut = &bad[..bad.len() - 20];
    assert_eq!(
        said("g.graphml", &cut.replace("<edge source=\"a\"/>", "")),
        "g.graphml:5: found the end of the file, expected the end of the element before it"
    );
    assert_eq!(said("g.graphml", "<doc></doc>"), "g.graphml:1: found no element graphml, expected GraphML");
    let entity = graphml("", "<graph><edge source=\"&x;\" target=\"b\"/></graph>");
    assert!(said("g.graphml", &entity).starts_with("g.graphml:4: "), "{}", said("g.graphml", &entity));
}

#[test]
fn formats_can_be_mixed() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let files = [file("g.nq", N_QUADS), file("t.obo", OBO), file("o.ttl", OWL_TURTLE)];
    let (graph, report) = load_many(&files, &LoadOptions::default()).unwrap();
    assert!(report.adds_up(), "{report:?}");
    assert_eq!(graph.topology().num_triples(), 3 + 6 + 9);
}
