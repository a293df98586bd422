//! Names people know: a question by id, label, prefixed name, IRI or another case is the same question, through the library, the
//! command and the server; labels are shown, completed, edited and kept.

mod common;

use common::{Place, Ran, Server};
use flock_kg::model::checkpoint::Checkpoint;
use flock_kg::{Blank, ExplainOptions, Graph, Predictor};
use serde_json::{Value, json};

/// Two genes are called "cadherin"; one has no label.
const BIO: &str = "@prefix bio: <http://example.org/bio/> .
bio:G1 bio:regulates bio:G2 ; bio:binds bio:G3 , bio:G2 .
bio:G2 bio:regulates bio:G1 ; bio:binds bio:G4 .
bio:G4 bio:binds bio:G1 .
bio:G3 bio:regulates bio:G1 .
bio:G5 bio:regulates bio:G1 , bio:G6 .
";

const LABELS: &str = "id\tlabel\nbio:G1\tTumour protein\n<http://example.org/bio/G2>\tdouble minute\nG3\tcadherin\n\
    bio:G4\tcadherin\nbio:G6\tcheckpoint kinase\nbio:regulates\tregulates\nG99\tnobody\n";

const FULL: &str = "http://example.org/bio/";

struct Everything {
    place: Place,
    predictor: Predictor,
    graph: Graph,
}

impl Everything {
    fn new() -> Everything {
        let place = Place::new();
        place.write("bio.ttl", BIO);
        place.write("labels.tsv", LABELS);
        let builder = ["entity", "relation"].iter().fold(Predictor::builder().threads(2), |b, task| {
            let file = format!("{task}.safetensors");
            b.checkpoint(Checkpoint::read(place.path(&file)).unwrap(), file)
        });
        let graph = Graph::open(place.path("bio.ttl")).unwrap();
        let (graph, report) = graph.with_labels_from(&place.path("labels.tsv")).unwrap();
        assert_eq!((report.labels, report.unknown, report.header), (6, 1, true));
        Everything { predictor: builder.build().unwrap(), place, graph }
    }

    /// The command with the labels, the small models and few walks.
    fn run(&self, command: &str, args: &[&str]) -> Ran {
        let models = ["--model", "entity.safetensors", "--model", "relation.safetensors", "--labels", "labels.tsv"];
        self.place.run(&[&[command, "bio.ttl"], args, &models].concat())
    }

    fn serve(&self) -> Server {
        // Without the unknown name: the first line that a server says must be its address.
        self.place.write("known.tsv", LABELS.replace("G99\tnobody\n", ""));
        Server::start_on(&self.place, "bio.ttl", &["--labels", "known.tsv"])
    }
}

#[test]
fn one_question_in_every_spelling_everywhere() {
    let all = Everything::new();
    let server = all.serve();
    let heads = [
        "http://example.org/bio/G1",
        "<http://example.org/bio/G1>",
        "bio:G1",
        "Tumour protein",
        "TUMOUR_PROTEIN",
        " tumour protein ",
        "G1",
        "bio:g1",
    ];
    let relations = ["http://example.org/bio/regulates", "bio:regulates", "regulates", "Regulates"];
    let mut first: Option<Value> = None;
    for (i, head) in heads.iter().enumerate() {
        let question = [head, relations[i % relations.len()], "?"];
        let inquiry = all.predictor.on(&all.graph).walks(4).top(3).reasons(true);
        let library = serde_json::to_value(inquiry.ask(question).unwrap()).unwrap();
        let args = [question[0], question[1], "?", "--walks", "4", "--top", "3", "--explain", "--json"];
        let command = all.run("predict", &args).json_text();
        let body = json!({"query": question, "walks": 4, "top": 3, "explain": true});
        let (status, server) = server.send("POST", "/api/v1/predict", &body.to_string());
        assert_eq!((status, &library, &library), (200, &command, &server), "{question:?}");
        assert_eq!(first.get_or_insert(library.clone()), &library, "{question:?}");
    }
    let reply = first.unwrap();
    let full = |id: &str| format!("{FULL}{id}");
    assert_eq!(reply["query"], json!([full("G1"), full("regulates"), "?"]));
    assert_eq!(reply["labels"][full("G1")], "Tumour protein");
    assert_eq!(
        (&reply["shown"][full("G1")], &reply["shown"][full("regulates")]),
        (&json!("Tumour protein"), &json!("regulates"))
    );
    for answer in reply["answers"].as_array().unwrap() {
        let name = answer["name"].as_str().unwrap();
        assert_eq!(answer.get("label").and_then(Value::as_str), all.graph.label(name), "{answer}");
    }

    // Candidates and explanations, by label in one case and another.
    let among = ["double minute", "CHECKPOINT kinase", "bio:G5"];
    let library = all.predictor.on(&all.graph).walks(4).among(among).ask(["G1", "binds", "?"]).unwrap();
    let library = serde_json::to_value(library).unwrap();
    all.place.write("among.txt", among.join("\n"));
    let args = ["G1", "binds", "?", "--walks", "4", "--top", "0", "--among", "among.txt", "--json"];
    assert_eq!(all.run("predict", &args).json_text(), library);
    let body = json!({"query": ["G1", "binds", "?"], "walks": 4, "top": 0, "among": among});
    assert_eq!(server.send("POST", "/api/v1/predict", &body.to_string()), (200, library.clone()));
    assert_eq!(library["answers"].as_array().unwrap().len(), 3);

    let triple = ["tumour protein", "REGULATES", "double minute"];
    let options = ExplainOptions { check: false, ..ExplainOptions::default() };
    let library = all.predictor.on(&all.graph).walks(4).explain(triple, Blank::Tail, &options).unwrap();
    let library = serde_json::to_value(library).unwrap();
    let args = [triple[0], triple[1], triple[2], "--walks", "4", "--no-check", "--json"];
    assert_eq!(all.run("explain", &args).json_text(), library);
    let (status, server) = server.send("POST", "/api/v1/explain", &json!({"triple": triple, "walks": 4}).to_string());
    assert_eq!((status, &server), (200, &library));
    assert_eq!((&library["answer"], &library["labels"][full("G2")]), (&json!(full("G2")), &json!("double minute")));
}

#[test]
fn a_label_of_several_is_refused_with_the_choices() {
    let all = Everything::new();
    let server = all.serve();
    let said = r#""cadherin" could be any of 2 entities: "cadherin (bio:G3)", "cadherin (bio:G4)""#;
    for text in ["cadherin", "Cadherin"] {
        let said = said.replacen("cadherin", text, 1);
        let question = [text, "bio:binds", "?"];
        assert_eq!(all.predictor.on(&all.graph).ask(question).unwrap_err().to_string(), said);
        let ran = all.run("predict", &question);
        assert_eq!((ran.code, ran.err.lines().last()), (Some(1), Some(format!("error: {said}").as_str())));
        let (status, problem) = server.send("POST", "/api/v1/predict", &json!({"query": question}).to_string());
        let near = json!(["cadherin (bio:G3)", "cadherin (bio:G4)"]);
        assert_eq!(
            (status, &problem["code"], &problem["error"], &problem["near"]),
            (400, &json!("ambiguous_name"), &json!(said), &near)
        );
    }
    // Each choice can be asked about.
    let asked = all.predictor.on(&all.graph).walks(2).ask(["cadherin (bio:G4)", "bio:binds", "?"]).unwrap();
    assert_eq!(asked.query[0], "http://example.org/bio/G4");
    let near = all.predictor.on(&all.graph).ask(["Tumor protien", "bio:binds", "?"]).unwrap_err();
    assert_eq!(near.to_string(), r#"unknown entity "Tumor protien"; near names: "Tumour protein""#);
}

#[test]
fn tables_show_labels_or_ids() {
    let all = Everything::new();
    let note = "note: labels.tsv: 1 of 7 labels are for names that the graph does not have, such as \"G99\"\n";
    let ran = all.run("predict", &["bio:G1", "bio:regulates", "?", "--walks", "4"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), note));
    assert!(ran.out.starts_with("Tumour protein  regulates  ?\n"), "{}", ran.out);
    for shown in ["double minute", "cadherin (bio:G3)", "checkpoint kinase", "bio:G5"] {
        assert!(ran.out.contains(&format!("  {shown} ")), "{shown}: {}", ran.out);
    }
    let ids = all.run("predict", &["Tumour protein", "regulates", "?", "--walks", "4", "--ids"]).out;
    assert!(ids.starts_with("bio:G1  bio:regulates  ?\n") && !ids.contains("cadherin"), "{ids}");
    let explained = all.run("explain", &["G1", "regulates", "double minute", "--walks", "4", "--no-check"]).out;
    assert!(explained.starts_with("Tumour protein  regulates  ?  →  double minute\n"), "{explained}");
    let ids = all.run("explain", &["G1", "regulates", "double minute", "--walks", "4", "--no-check", "--ids"]).out;
    assert!(ids.starts_with("bio:G1  bio:regulates  ?  →  bio:G2\n"), "{ids}");

    let info = all.run("info", &[]).out;
    assert!(
        info.contains("labels         5 of 6 entities, 1 of 2 relations\n") && info.contains("  regulates\n"),
        "{info}"
    );
    assert!(all.run("info", &["--ids"]).out.contains("  bio:regulates\n"));
    let info = all.run("info", &["--json"]).json_text();
    assert_eq!(info["graph"]["labels"], json!({"entities": 5, "relations": 1}));
    assert_eq!(
        info["graph"]["top_relations"][0],
        json!({"name": "http://example.org/bio/regulates", "label": "regulates", "triples": 5})
    );

    all.place.write("others.tsv", "Q1\tone\n");
    let none = all.place.run(&["info", "bio.ttl", "--labels", "others.tsv", "--model", "entity.safetensors"]);
    assert_eq!(
        none.err,
        "warning: others.tsv: 1 of 1 labels are for names that the graph does not have, such as \"Q1\"\n"
    );
    let none = all.place.run(&["info", "bio.ttl", "--labels", "none.tsv", "--model", "entity.safetensors"]);
    assert_eq!(
        (none.code, none.err.lines().next().unwrap().starts_with("error: none.tsv: no such file")),
        (Some(1), true)
    );
    let none = all.place.run(&["serve", "--labels", "labels.tsv"]);
    assert_eq!(none.code, Some(2));
}

#[test]
fn the_server_completes_edits_and_keeps_labels() {
    let all = Everything::new();
    let server = all.serve();
    let names = |server: &Server, q: &str| server.send("GET", &format!("/api/v1/entities?k=1&q={q}"), "").1;
    for q in ["Tumour", "tumour%20prot", "Tumuor%20protein", "bio:G1", "%3Chttp://example.org/bio/G1%3E"] {
        let found = names(&server, q);
        let name = "http://example.org/bio/G1";
        assert_eq!(found["names"], json!([name]), "{q}");
        assert_eq!(
            (&found["labels"][name], &found["shown"][name]),
            (&json!("Tumour protein"), &json!("Tumour protein"))
        );
    }
    let (_, info) = server.send("GET", "/api/v1/info", "");
    assert_eq!(info["labels"], 6);
    let (_, around) = server.send("GET", "/api/v1/neighbourhood?entity=TUMOUR%20PROTEIN", "");
    assert_eq!(around["labels"]["http://example.org/bio/G2"], "double minute");

    // Edits by label, prefix and IRI; a new name with a prefix; labels for it and for an old name.
    let edit = |server: &Server, body: Value| server.send("POST", "/api/v1/triples", &body.to_string());
    let add = json!([
        ["Tumour protein", "regulates", "bio:G7"],
        ["bio:G7", "<http://example.org/bio/binds>", "double minute"]
    ]);
    let labels = json!({"bio:G7": "apoptosis factor", "bio:G5": "kinase"});
    let (status, made) =
        edit(&server, json!({"add": add, "labels": labels, "remove": [["g5", "Regulates", "checkpoint kinase"]]}));
    assert_eq!((status, &made["added"], &made["removed"]), (200, &json!(2), &json!(1)), "{made}");
    let (status, problem) = edit(&server, json!({"add": [["cadherin", "regulates", "new"]]}));
    assert_eq!((status, &problem["code"]), (400, &json!("ambiguous_name")));
    let (status, problem) = edit(&server, json!({"labels": {"Tumor protien": "x"}}));
    assert_eq!((status, &problem["code"], &problem["near"]), (404, &json!("unknown_name"), &json!(["Tumour protein"])));
    let ask = |server: &Server, entity: &str| {
        let body = json!({"query": [entity, "regulates", "?"], "walks": 2, "top": 0});
        server.send("POST", "/api/v1/predict", &body.to_string())
    };
    let (status, reply) = ask(&server, "Apoptosis Factor");
    assert_eq!((status, &reply["query"][0]), (200, &json!("http://example.org/bio/G7")), "{reply}");
    let before = ask(&server, "kinase");
    assert_eq!(before.1["shown"]["http://example.org/bio/G5"], "kinase");
    drop(server);

    // They are there when the server starts again, and old names have the labels of the file.
    let server = all.serve();
    assert_eq!(ask(&server, "kinase"), before);
    assert_eq!(ask(&server, "APOPTOSIS FACTOR").1, reply);
    assert_eq!(server.send("GET", "/api/v1/info", "").1["labels"], 8);
    let (status, _) = edit(&server, json!({"labels": {"kinase": ""}}));
    assert_eq!(
        (status, ask(&server, "bio:G5").1["shown"]["http://example.org/bio/G5"].as_str()),
        (200, Some("bio:G5"))
    );
    assert_eq!(ask(&server, "kinase").0, 404);
}
