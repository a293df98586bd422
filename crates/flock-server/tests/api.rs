//! The routes, asked without a socket: what they answer, what they refuse, and that nothing a client sends breaks them.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, Version};
use flock_kg::Predictor;
use flock_kg::calibrate::Calibrations;
use flock_kg::graph::{Graph, LoadOptions, load_reader};
use flock_kg::model::checkpoint::{Checkpoint, Metadata, Task};
use flock_kg::model::init::initial_weights;
use flock_server::live::Live;
use flock_server::{App, Limits, Options, router};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::{Value, json};
use tower::ServiceExt;

const WORLD: &str = "Lisbon\tcapital_of\tPortugal\nMadrid\tcapital_of\tSpain\nParis\tcapital_of\tFrance\n\
    Portugal\tborders\tSpain\nSpain\tborders\tFrance\nPortugal\tin\tEurope\nSpain\tin\tEurope\nFrance\tin\tEurope\n";

fn world() -> Graph {
    load_reader("world.tsv", WORLD.as_bytes(), &LoadOptions::default()).unwrap().0
}

fn checkpoint(task: Task) -> Checkpoint {
    initial_weights(Metadata { updates: 2, length: 12, ..Metadata::published(task) }, 7).unwrap()
}

fn predictor(tasks: &[Task]) -> Predictor {
    let builder = tasks.iter().fold(Predictor::builder().threads(2), |b, task| b.checkpoint(checkpoint(*task), "test"));
    builder.build().unwrap()
}

fn options() -> Options {
    Options {
        // Port 80 is the one that `Host: localhost` means.
        listen: "127.0.0.1:80".parse().unwrap(),
        names: Vec::new(),
        main: Live::open("world".into(), world(), None, Calibrations::default()).unwrap(),
        kept: false,
        predictor: predictor(&[Task::Entity, Task::Relation]),
        token: None,
        guard_reads: false,
        limits: Limits { walks: 32, ..Limits::default() },
    }
}

fn app() -> Router {
    router(App::new(options()))
}

struct Answer {
    status: StatusCode,
    headers: axum::http::HeaderMap,
    text: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {}", self.text))
    }
}

async fn send(app: &Router, request: Request<Body>) -> Answer {
    let response = app.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    Answer { status: parts.status, headers: parts.headers, text: String::from_utf8(bytes.to_vec()).unwrap() }
}

async fn get(app: &Router, path: &str) -> Answer {
    send(app, Request::get(path).header("host", "localhost").body(Body::empty()).unwrap()).await
}

async fn post_with(app: &Router, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Answer {
    let mut request = Request::builder().method(Method::POST).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(app, request.body(body.into()).unwrap()).await
}

async fn post(app: &Router, path: &str, body: Value) -> Answer {
    let headers = [("host", "localhost"), ("content-type", "application/json")];
    post_with(app, path, &headers, body.to_string()).await
}

#[tokio::test]
async fn answers_as_the_library_does() {
    let app = app();
    assert_eq!(get(&app, "/api/v1/health").await.json(), json!({"status": "ok"}));
    let info = get(&app, "/api/v1/info").await.json();
    assert_eq!((&info["entities"], &info["relations"], &info["triples"]), (&json!(7), &json!(3), &json!(8)));
    // The favourite: Portugal borders.
    assert_eq!(info["examples"][0], json!(["Portugal", "borders", "?"]));

    let body =
        json!({"query": ["Portugal", "borders", "?"], "walks": 2, "passes": 3, "seed": 5, "top": 0, "explain": true});
    let answer = post(&app, "/api/v1/predict", body.clone()).await;
    assert_eq!(answer.status, StatusCode::OK);
    let reply = answer.json();
    assert_eq!((&reply["passes"], &reply["walks"], &reply["seed"]), (&json!(3), &json!(2), &json!(5)));
    let spain = reply["answers"].as_array().unwrap().iter().find(|a| a["name"] == "Spain").unwrap();
    assert_eq!((&spain["known"], &spain["reason"]["start"]), (&json!(true), &json!("Portugal")));

    // By hand, through the library.
    let (graph, predictor) = (world(), predictor(&[Task::Entity]));
    let model = &predictor.model(Task::Entity).unwrap().model;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let view = flock_kg::model::View { topology: graph.topology(), mask: None };
    let asker = flock_kg::model::ensemble::Asker::new(model, view, &pool);
    let ask = flock_kg::model::ensemble::Ask { walks: 2, passes: 3, seed: 5, options: model.walk_options() };
    let question = flock_kg::Question::parse(&graph, ["Portugal", "borders", "?"]).unwrap();
    let scores = asker.ask(&[question.query], ask).unwrap().remove(0);
    let logit = scores.of(graph.entities().id("Spain").unwrap()).logit;
    assert_eq!(spain["logit"], json!(logit));
    assert!(spain["spread"].as_f64().is_some_and(|s| s > 0.0), "{spain}");

    // The stream ends with the same answers, and refines towards them pass by pass.
    let streamed = post(&app, "/api/v1/predict/stream", body).await;
    assert_eq!(streamed.headers["content-type"], "text/event-stream");
    let events: Vec<(String, Value)> = streamed
        .text
        .split("\n\n")
        .filter(|e| !e.trim().is_empty())
        .map(|e| {
            let field = |name: &str| e.lines().find_map(|l| l.strip_prefix(name)).unwrap_or("").trim().to_string();
            (field("event:"), serde_json::from_str(&field("data:")).unwrap())
        })
        .collect();
    assert_eq!(events.last().unwrap(), &("done".to_string(), reply));
    let passes: Vec<u64> = events.iter().map(|e| e.1["passes"].as_u64().unwrap()).collect();
    assert!(passes.windows(2).all(|w| w[0] < w[1]) && passes.last() == Some(&3), "{passes:?}");

    // One pass has no spread.
    let head = post(&app, "/api/v1/predict", json!({"query": ["?", "capital_of", "Spain"], "walks": 2})).await.json();
    assert_eq!(head["answers"][0]["spread"], Value::Null);
    assert_eq!(head["query"], json!(["?", "capital_of", "Spain"]));
    let relation = post(&app, "/api/v1/predict", json!({"query": ["Portugal", "?", "Spain"], "walks": 2})).await.json();
    assert_eq!((&relation["model"]["task"], &relation["candidates"]), (&json!("relation"), &json!(3)));
    let among = json!({"query": ["Portugal", "borders", "?"], "walks": 2, "among": ["France", "Paris"]});
    assert_eq!(post(&app, "/api/v1/predict", among).await.json()["candidates"], 2);
    // Names that the graph lacks are skipped and told; conditions on candidates are joined.
    let among = json!({"query": ["Portugal", "borders", "?"], "walks": 2, "among": ["France", "Atlantis"]});
    let reply = post(&app, "/api/v1/predict", among).await.json();
    assert_eq!((&reply["candidates"], &reply["unknown_candidates"]["first"]), (&json!(1), &json!(["Atlantis"])));
    let none =
        json!({"query": ["Portugal", "borders", "?"], "walks": 2, "among": ["Paris"], "among_range": ["borders"]});
    let reply = post(&app, "/api/v1/predict", none).await;
    assert_eq!(reply.status, StatusCode::BAD_REQUEST);
    assert!(reply.json()["error"].as_str().unwrap().contains("no entity of the graph is a candidate"));
    assert!(reply.json()["remedy"].as_str().unwrap().contains("among_range"));
    let novel = json!({"query": ["Portugal", "borders", "?"], "walks": 2, "novel": true, "top": 0});
    let novel = post(&app, "/api/v1/predict", novel).await.json();
    assert!(novel["answers"].as_array().unwrap().iter().all(|a| a["name"] != "Spain"));
    let budget = json!({"query": ["Portugal", "borders", "?"], "walks": 2, "budget_ms": 60000, "passes": 2});
    let budget = post(&app, "/api/v1/predict", budget).await.json();
    assert_eq!((&budget["passes"], &budget["stopped"]), (&json!(2), &json!("passes")));

    let queries = json!({"queries": [["Portugal", "borders", "?"], ["Portgual", "borders", "?"], ["Spain", "?", "France"]], "walks": 2});
    let batch = post(&app, "/api/v1/predict", queries).await.json();
    let replies = batch["replies"].as_array().unwrap();
    assert_eq!(replies.len(), 3);
    assert_eq!(replies[1]["near"], json!(["Portugal"]));
    assert_eq!((&replies[0]["model"]["task"], &replies[2]["model"]["task"]), (&json!("entity"), &json!("relation")));

    let explain = json!({"triple": ["Portugal", "borders", "Spain"], "walks": 4, "passes": 2, "check": true});
    let explain = post(&app, "/api/v1/explain", explain).await.json();
    assert_eq!((&explain["answer"], &explain["known"]), (&json!("Spain"), &json!(true)));
    assert!(explain["deletion"]["random"].as_array().is_some_and(|r| r.len() <= 3));
    // The triple itself is hidden, so no way is that edge alone.
    let direct = |r: &Value| r["steps"].as_array().unwrap().len() == 1 && r["steps"][0]["relation"] == "borders";
    assert!(!explain["reasons"].as_array().unwrap().iter().any(direct));
    assert_eq!((&explain["probability_from"], &explain["max_hops"]), (&json!("score"), &json!(4)));
    let short = json!({"triple": ["Portugal", "borders", "Spain"], "walks": 4, "max_hops": 2});
    let short = post(&app, "/api/v1/explain", short).await.json();
    let hops = |r: &Value| r["steps"].as_array().unwrap().len();
    assert!(short["reasons"].as_array().unwrap().iter().all(|r| hops(r) <= 2 && r["paths"].as_u64() >= Some(1)));
    let none = json!({"triple": ["Portugal", "borders", "Spain"], "max_hops": 0});
    assert_eq!(post(&app, "/api/v1/explain", none).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn names_and_surroundings() {
    let app = app();
    // The index is built on a thread; with or without it the answer is the same here.
    assert_eq!(get(&app, "/api/v1/entities?q=por").await.json()["names"][0], "Portugal");
    assert_eq!(get(&app, "/api/v1/relations?q=bordres").await.json()["names"][0], "borders");
    assert_eq!(get(&app, "/api/v1/entities?q=a&k=0").await.status, StatusCode::BAD_REQUEST);
    let around = get(&app, "/api/v1/neighbourhood?entity=Lisbon&limit=3").await.json();
    assert_eq!(around["entities"].as_array().unwrap().len(), 3);
    assert_eq!(around["triples"][0], json!(["Lisbon", "capital_of", "Portugal"]));
    assert_eq!(get(&app, "/api/v1/neighbourhood?entity=Atlantis").await.status, StatusCode::NOT_FOUND);
}

/// A graph of IRIs, two of which have the same label.
fn labelled() -> Graph {
    let bio = "@prefix bio: <http://example.org/bio/> .\nbio:G1 bio:regulates bio:G2 ; bio:binds bio:G3 , bio:G2 .\n\
        bio:G2 bio:regulates bio:G1 ; bio:binds bio:G4 .\nbio:G5 bio:regulates bio:G1 , bio:G6 .\n";
    let graph = load_reader("bio.ttl", bio.as_bytes(), &LoadOptions::default()).unwrap().0;
    let labels = "bio:G1\tTumour protein\nG2\tdouble minute\nG3\tcadherin\nG4\tcadherin\nregulates\tregulates\n";
    graph.with_labels_read("labels.tsv", labels.as_bytes()).unwrap().0
}

#[tokio::test]
async fn one_question_in_every_spelling() {
    let main = Live::open("bio".into(), labelled(), None, Calibrations::default()).unwrap();
    let app = router(App::new(Options { main, ..options() }));
    let full = |id: &str| format!("http://example.org/bio/{id}");
    let (graph, predictor) = (labelled(), predictor(&[Task::Entity, Task::Relation]));
    let mut first: Option<Value> = None;
    for head in
        [&full("G1"), &format!("<{}>", full("G1")), "bio:G1", "Tumour protein", " TUMOUR_protein", "G1", "bio:g1"]
    {
        let question = [head, "Regulates", "?"];
        let library = predictor.on(&graph).walks(4).top(5).reasons(true).ask(question).unwrap();
        let library = serde_json::to_value(library).unwrap();
        let body = json!({"query": question, "walks": 4, "top": 5, "explain": true});
        assert_eq!(post(&app, "/api/v1/predict", body).await.json(), library, "{head}");
        assert_eq!(first.get_or_insert(library.clone()), &library, "{head}");
    }
    let reply = first.unwrap();
    assert_eq!(reply["query"], json!([full("G1"), full("regulates"), "?"]));
    assert_eq!(
        (&reply["labels"][full("G1")], &reply["shown"][full("G1")]),
        (&json!("Tumour protein"), &json!("Tumour protein"))
    );
    for answer in reply["answers"].as_array().unwrap() {
        assert_eq!(
            answer.get("label").and_then(Value::as_str),
            graph.label(answer["name"].as_str().unwrap()),
            "{answer}"
        );
    }
    let body = json!({"query": ["G1", "binds", "?"], "walks": 4, "top": 0, "among": ["Double Minute", "bio:G5"]});
    assert_eq!(post(&app, "/api/v1/predict", body).await.json()["answers"].as_array().unwrap().len(), 2);
    let body = json!({"triple": ["tumour protein", "REGULATES", "double minute"], "walks": 4});
    let explained = post(&app, "/api/v1/explain", body).await.json();
    assert_eq!((&explained["answer"], &explained["labels"][full("G2")]), (&json!(full("G2")), &json!("double minute")));

    let answer = post(&app, "/api/v1/predict", json!({"query": ["Cadherin", "bio:binds", "?"]})).await;
    let said = r#""Cadherin" could be any of 2 entities: "cadherin (bio:G3)", "cadherin (bio:G4)""#;
    let problem = answer.json();
    assert_eq!(
        (answer.status, &problem["error"], &problem["code"]),
        (StatusCode::BAD_REQUEST, &json!(said), &json!("ambiguous_name"))
    );
    assert_eq!(problem["near"], json!(["cadherin (bio:G3)", "cadherin (bio:G4)"]));
    let body = json!({"query": ["cadherin (bio:G4)", "bio:binds", "?"], "walks": 2});
    assert_eq!(post(&app, "/api/v1/predict", body).await.json()["query"][0], full("G4"));
}

#[tokio::test]
async fn labels_are_completed_and_edited() {
    let main = Live::open("bio".into(), labelled(), None, Calibrations::default()).unwrap();
    let app = router(App::new(Options { main, ..options() }));
    let name = "http://example.org/bio/G1";
    for q in ["Tumour", "tumour%20prot", "Tumuor%20protein", "bio:G1", "%3Chttp://example.org/bio/G1%3E"] {
        let found = get(&app, &format!("/api/v1/entities?k=1&q={q}")).await.json();
        assert_eq!((&found["names"], &found["labels"][name]), (&json!([name]), &json!("Tumour protein")), "{q}");
    }
    assert_eq!(get(&app, "/api/v1/info").await.json()["labels"], 5);
    let around = get(&app, "/api/v1/neighbourhood?entity=TUMOUR%20PROTEIN").await.json();
    assert_eq!(around["labels"]["http://example.org/bio/G2"], "double minute");

    // A new name with a prefix, by labels and an IRI; labels for it and for an old name.
    let body = json!({
        "add": [["Tumour protein", "regulates", "bio:G7"], ["bio:G7", "<http://example.org/bio/binds>", "double minute"]],
        "remove": [["g5", "Regulates", "bio:G6"]],
        "labels": {"bio:G7": "apoptosis factor", "bio:G5": "kinase"},
    });
    let edited = post(&app, "/api/v1/triples", body).await.json();
    assert_eq!(
        (&edited["added"], &edited["removed"], &edited["labelled"]),
        (&json!(2), &json!(1), &json!(2)),
        "{edited}"
    );
    for (text, id) in [("Apoptosis Factor", "G7"), ("bio:G7", "G7"), ("KINASE", "G5")] {
        let reply = post(&app, "/api/v1/predict", json!({"query": [text, "regulates", "?"], "walks": 2})).await.json();
        assert_eq!(reply["query"][0], format!("http://example.org/bio/{id}"), "{text}");
    }
    for (body, code) in [
        (json!({"add": [["cadherin", "regulates", "new"]]}), "ambiguous_name"),
        (json!({"labels": {"Tumor protien": "x"}}), "unknown_name"),
        (json!({"labels": {"bio:G1": "x".repeat(5000)}}), "bad_request"),
    ] {
        assert_eq!(post(&app, "/api/v1/triples", body).await.json()["code"], code);
    }
    // In another case it is a new name: an edit says exactly what it means.
    let edited = post(&app, "/api/v1/triples", json!({"add": [["KINASE", "regulates", "G1"]]})).await.json();
    let info = get(&app, "/api/v1/info").await.json();
    assert_eq!((&edited["added"], &info["entities"]), (&json!(1), &json!(9)), "{info}");
}

#[tokio::test]
async fn an_edit_is_seen_by_the_next_question() {
    let app = app();
    let known = |reply: &Value| {
        let answers = reply["answers"].as_array().unwrap().iter();
        answers.filter(|a| a["known"] == true).map(|a| a["name"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    let ask = || json!({"query": ["Portugal", "borders", "?"], "walks": 8, "top": 0});
    assert_eq!(known(&post(&app, "/api/v1/predict", ask()).await.json()), ["Spain"]);
    let hostile = "<img src=x onerror=alert(1)>\u{202e}";
    let edit = json!({"add": [["Portugal", "borders", hostile], [hostile, "new relation", "Spain"]], "remove": [["Portugal", "borders", "Spain"]]});
    let edited = post(&app, "/api/v1/triples", edit).await.json();
    assert_eq!((&edited["added"], &edited["removed"], &edited["triples"]), (&json!(2), &json!(1), &json!(9)));
    assert_eq!(known(&post(&app, "/api/v1/predict", ask()).await.json()), [hostile]);
    assert_eq!(get(&app, "/api/v1/info").await.json()["relations"], 4);
    let new = json!({"query": ["?", "new relation", "Spain"], "walks": 8, "explain": true});
    assert_eq!(post(&app, "/api/v1/predict", new).await.status, StatusCode::OK);
    assert_eq!(get(&app, "/api/v1/relations?q=new").await.json()["names"][0], "new relation");
    for bad in
        [json!({}), json!({"add": [["", "r", "t"]]}), json!({"add": [["h", "?", "t"]]}), json!({"add": [["h", "r"]]})]
    {
        assert_eq!(post(&app, "/api/v1/triples", bad).await.status, StatusCode::BAD_REQUEST);
    }
}

/// How a file is to be read can be said, as on the command line.
#[tokio::test]
async fn uploads_say_their_columns() {
    let app = app();
    let headers = [("host", "localhost"), ("content-type", "text/tab-separated-values")];
    // Five columns: number, tail, relation, weight, head. The first row has names; the last one is short.
    let text = "n,where,how,weight,what\n1,b,r,0.5,a\n2,c,r,0.5,b\n3,c\n";
    let load =
        async |query: &str| post_with(&app, &format!("/api/v1/graphs?name=odd.txt{query}"), &headers, text).await;
    let refused = load("&format=csv").await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    let remedy = refused.json()["remedy"].as_str().unwrap().to_string();
    assert!(remedy.contains("columns="), "{remedy}");
    let loaded = load("&format=csv&columns=5,3,2&header=true&lenient=true").await.json();
    assert_eq!((&loaded["entities"], &loaded["relations"], &loaded["triples"]), (&json!(3), &json!(1), &json!(2)));
    let id = loaded["graph"].as_str().unwrap();
    let reply = post(&app, "/api/v1/explain", json!({"graph": id, "triple": ["a", "r", "b"], "walks": 2})).await;
    assert_eq!(reply.json()["known"], true);
    // Without leave, the short row is an error.
    assert_eq!(load("&format=csv&columns=5,3,2&header=true").await.status, StatusCode::BAD_REQUEST);
    for wrong in ["&columns=1,2", "&columns=1,2,2", "&columns=0,1,2", "&format=xls", "&header=perhaps"] {
        let answer = load(wrong).await;
        assert_eq!(
            (answer.status, &answer.json()["code"]),
            (StatusCode::BAD_REQUEST, &json!("bad_request")),
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn uploaded_graphs() {
    let app = app();
    let headers = [("host", "localhost"), ("content-type", "text/tab-separated-values")];
    let answer = post_with(&app, "/api/v1/graphs?name=mine.tsv", &headers, "a\tr\tb\nb\tr\tc\n").await;
    let id = answer.json()["graph"].as_str().unwrap().to_string();
    assert!(id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
    let info = get(&app, &format!("/api/v1/info?graph={id}")).await.json();
    assert_eq!((&info["name"], &info["triples"]), (&json!("mine.tsv"), &json!(2)));
    let reply = post(&app, "/api/v1/predict", json!({"graph": id, "query": ["a", "r", "?"], "walks": 2})).await;
    assert_eq!(reply.json()["candidates"], 3);
    assert_eq!(
        post(&app, "/api/v1/triples", json!({"graph": id, "add": [["c", "r", "a"]]})).await.json()["triples"],
        3
    );
    // What the loader doubts is said: none of the first row's names comes again.
    let text = "Compound\tDoes\tOther\na\tr\tb\nb\tr\tc\n";
    let doubted = post_with(&app, "/api/v1/graphs?name=mine.tsv", &headers, text).await.json();
    let warning = doubted["warnings"][0].as_str().unwrap();
    assert!(warning.contains("may be a header") && !warning.contains("--"), "{warning}");
    assert_eq!(answer.json()["warnings"], Value::Null);
    // Columns are understood by their names, or chosen, and the reply says how.
    let table = "who\tdoes\twhat\tsince\na\tr\tb\t1\nb\tr\tc\t2\nc\tq\td\t3\nd\tq\te\t4\n";
    let unknown = post_with(&app, "/api/v1/graphs?name=mine.tsv", &headers, table).await;
    assert_eq!(unknown.status, StatusCode::BAD_REQUEST);
    let remedy = "this file has columns who, does, what, since; choose head, relation and tail in the query, such as \
                  columns=who,does,what";
    assert!(unknown.text.contains(remedy), "{}", unknown.text);
    let chosen = post_with(&app, "/api/v1/graphs?name=mine.tsv&columns=who,does,what", &headers, table).await.json();
    assert_eq!((&chosen["triples"], &chosen["left_out"]), (&json!(4), &json!("header row")));
    let note = "mine.tsv: the first row is a header; head = who, relation = does, tail = what; not used: since";
    assert_eq!(chosen["notes"], json!([note]));
    let wrong = post_with(&app, "/api/v1/graphs?columns=1,1,2", &headers, table).await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
    let lines = [("host", "localhost"), ("content-type", "application/x-ndjson")];
    let objects = "{\"head\": \"a\", \"relation\": \"r\", \"tail\": \"b\"}\n";
    assert_eq!(post_with(&app, "/api/v1/graphs", &lines, objects).await.json()["triples"], 1);
    let kept = post_with(&app, "/api/v1/graphs?header=false", &headers, "head\trelation\ttail\n").await.json();
    assert_eq!(kept["triples"], 1);
    let broken = post_with(&app, "/api/v1/graphs?name=mine.tsv", &headers, "a\tr\tb\na\tb\n").await;
    assert_eq!(broken.status, StatusCode::BAD_REQUEST);
    assert!(broken.text.contains("mine.tsv:2: expected 3 tab-separated fields, found 2"), "{}", broken.text);
    let simple = [("host", "localhost"), ("content-type", "text/plain")];
    let answer = post_with(&app, "/api/v1/graphs", &simple, "a\tr\tb\n").await;
    assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    // The ninth pushes out the first.
    for _ in 0..8 {
        post_with(&app, "/api/v1/graphs", &headers, "a\tr\tb\n").await;
    }
    assert_eq!(get(&app, &format!("/api/v1/info?graph={id}")).await.status, StatusCode::NOT_FOUND);
    // So does the second, if the memory of both is too much. One is always kept.
    let app = router(App::new(Options { limits: Limits { graphs_memory: 1, ..Limits::default() }, ..options() }));
    let mut ids = Vec::new();
    for _ in 0..2 {
        let answer = post_with(&app, "/api/v1/graphs", &headers, "a\tr\tb\n").await.json();
        ids.push(answer["graph"].as_str().unwrap().to_string());
    }
    let status = async |id: &str| get(&app, &format!("/api/v1/info?graph={id}")).await.status;
    assert_eq!((status(&ids[0]).await, status(&ids[1]).await), (StatusCode::NOT_FOUND, StatusCode::OK));
}

#[tokio::test]
async fn refusals_have_a_status_and_say_why() {
    let app = app();
    let predict = |body: Value| post(&app, "/api/v1/predict", body);
    let cases = [
        (json!({"query": ["Portugal", "borders", "Spain"]}), 400, "expected one ?"),
        (json!({"query": ["Portgual", "borders", "?"]}), 404, "near names"),
        (json!({"query": ["Portugal", "borders", "?"], "passes": 0}), 400, "passes is 0, expected 1 to 64"),
        (json!({"query": ["Portugal", "borders", "?"], "passes": 4000000000u32}), 400, "expected 1 to 64"),
        (json!({"query": ["Portugal", "borders", "?"], "walks": 33}), 400, "walks is 33, expected 1 to 32"),
        (json!({"query": ["Portugal", "borders", "?"], "wlaks": 3}), 400, "unknown field `wlaks`"),
        (json!({"query": ["Portugal", "borders", "?"], "seed": -1}), 400, "the body is not what was expected"),
        (json!({"query": ["Portugal", "borders", "?"], "graph": "../../etc/passwd"}), 404, "no such uploaded graph"),
        (json!({"queries": []}), 400, "found 0 queries, expected 1 to 256"),
        (json!({"query": ["Portugal", "borders", "?"], "top": 100001}), 400, "top is 100001, expected 0 to 100000"),
        (
            json!({"queries": [["Portugal", "borders", "?"], ["Spain", "borders", "?"]], "top": 60000}),
            400,
            "top is 60000, expected 0 to 50000",
        ),
        (
            json!({"query": ["Portugal", "borders", "?"], "top": 101, "explain": true}),
            400,
            "top is 101, expected 0 to 100",
        ),
        (json!({"query": ["Portugal", "borders", "?"], "queries": []}), 400, "either query or queries"),
    ];
    for (body, status, text) in cases {
        let answer = predict(body).await;
        assert_eq!(answer.status.as_u16(), status, "{}", answer.text);
        assert!(answer.json()["error"].as_str().unwrap().contains(text), "{}", answer.text);
    }
    assert_eq!(get(&app, "/../../etc/passwd").await.status, StatusCode::NOT_FOUND);
    assert_eq!(get(&app, "/%2e%2e%2fetc%2fpasswd").await.status, StatusCode::NOT_FOUND);
    assert_eq!(get(&app, "/api/v1/predict").await.status, StatusCode::METHOD_NOT_ALLOWED);
    let headers = [("host", "localhost"), ("content-type", "application/json")];
    let large = format!("{{\"query\": [\"{}\"", "x".repeat(2 << 20));
    assert_eq!(post_with(&app, "/api/v1/predict", &headers, large).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    // Another site's page: by its origin, or by a name of its own for this machine.
    let foreign = [("host", "localhost"), ("content-type", "application/json"), ("origin", "http://evil.example")];
    assert_eq!(post_with(&app, "/api/v1/triples", &foreign, "{}").await.status, StatusCode::FORBIDDEN);
    let rebound = Request::get("/api/v1/info").header("host", "evil.example").body(Body::empty()).unwrap();
    assert_eq!(send(&app, rebound).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn tokens_guard_writes_and_reads_if_wished() {
    let open = || ("0.0.0.0:0".parse().unwrap(), Options { ..options() });
    let (listen, o) = open();
    let app = router(App::new(Options { listen, ..o }));
    let edit = json!({"add": [["a", "b", "c"]]});
    assert_eq!(post(&app, "/api/v1/triples", edit.clone()).await.status, StatusCode::FORBIDDEN);
    // A variable without a value makes no token.
    let (listen, o) = open();
    let app = router(App::new(Options { listen, token: Some(String::new()), ..o }));
    assert_eq!(post(&app, "/api/v1/triples", edit.clone()).await.status, StatusCode::FORBIDDEN);
    for guard_reads in [false, true] {
        let (listen, o) = open();
        let app = router(App::new(Options { listen, token: Some("secret".into()), guard_reads, ..o }));
        assert_eq!(post(&app, "/api/v1/triples", edit.clone()).await.status, StatusCode::UNAUTHORIZED);
        let headers = |token| [("host", "x"), ("content-type", "application/json"), ("authorization", token)];
        let wrong = post_with(&app, "/api/v1/triples", &headers("Bearer secreT"), edit.to_string()).await;
        assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
        let right = post_with(&app, "/api/v1/triples", &headers("Bearer secret"), edit.to_string()).await;
        assert_eq!(right.status, StatusCode::OK);
        let read = get(&app, "/api/v1/info").await.status;
        assert_eq!(read, if guard_reads { StatusCode::UNAUTHORIZED } else { StatusCode::OK });
        // The page itself and the sign of life stay open.
        for path in ["/", "/app.js", "/docs", "/openapi.json", "/api/v1/health"] {
            assert_eq!(get(&app, path).await.status, StatusCode::OK, "{path}");
        }
        // A link to what needs a token would lead to an error.
        assert_eq!(get(&app, "/docs").await.text.contains("href=\"/metrics\""), !guard_reads);
        let code = |answer: Answer| answer.json()["code"].as_str().unwrap().to_string();
        assert_eq!(code(post(&app, "/api/v1/triples", edit.clone()).await), "token_needed");
        assert_eq!(code(post_with(&app, "/api/v1/triples", &headers("secret"), edit.to_string()).await), "wrong_token");
    }
}

/// A server on loopback without a token: what may change the graph, and what is, or may be, a proxy that passes strangers on.
#[tokio::test]
async fn only_direct_requests_change_something_without_a_token() {
    let listen = "127.0.0.1:7878".parse().unwrap();
    let edit = || json!({"add": [["a", "b", "c"]]}).to_string();
    let request = |version: Version, headers: &[(&str, &str)]| {
        let mut request = Request::post("/api/v1/triples").version(version).header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::from(edit())).unwrap()
    };
    let app = router(App::new(Options { listen, ..options() }));
    let own = ("host", "127.0.0.1:7878");
    for host in ["127.0.0.1:7878", "localhost:7878", "[::1]:7878"] {
        let answer = send(&app, request(Version::HTTP_11, &[("host", host)])).await;
        assert_eq!(answer.status, StatusCode::OK, "{host}: {}", answer.text);
    }
    // The page of the server itself, and an address typed by hand.
    for site in ["same-origin", "none"] {
        let headers = [own, ("origin", "http://127.0.0.1:7878"), ("sec-fetch-site", site)];
        assert_eq!(send(&app, request(Version::HTTP_11, &headers)).await.status, StatusCode::OK);
    }
    // nginx with `proxy_pass http://127.0.0.1:7878` and nothing else.
    let nginx = request(Version::HTTP_10, &[own, ("connection", "close")]);
    let mut refused = vec![nginx];
    // A proxy that keeps the client's name for it, another port, and no name or two.
    for host in ["localhost", "localhost:80", "localhost:7879", "127.0.0.1:7878x"] {
        refused.push(request(Version::HTTP_11, &[("host", host)]));
    }
    refused.push(request(Version::HTTP_11, &[own, own]));
    for header in [
        "forwarded",
        "via",
        "x-forwarded-for",
        "x-forwarded-proto",
        "x-forwarded-host",
        "x-real-ip",
        "cf-connecting-ip",
        "cf-ray",
        "true-client-ip",
        "x-client-ip",
        "x-original-forwarded-for",
        "x-envoy-external-address",
        "fly-client-ip",
    ] {
        refused.push(request(Version::HTTP_11, &[own, (header, "203.0.113.9")]));
    }
    for request in refused {
        let about = format!("{request:?}");
        let answer = send(&app, request).await;
        assert_eq!((answer.status, &answer.json()["code"]), (StatusCode::FORBIDDEN, &json!("read_only")), "{about}");
    }
    // Pages of other sites, as browsers announce them.
    for headers in [
        [own, ("origin", "http://evil.example")],
        [own, ("origin", "null")],
        [own, ("origin", "http://127.0.0.1:3000")],
        [own, ("sec-fetch-site", "cross-site")],
        [own, ("sec-fetch-site", "same-site")],
    ] {
        let answer = send(&app, request(Version::HTTP_11, &headers)).await;
        assert_eq!((answer.status, &answer.json()["code"]), (StatusCode::FORBIDDEN, &json!("other_site")));
    }
    // Uploads go by the same rule, and the page is told.
    let upload = [own, ("content-type", "text/csv"), ("x-forwarded-for", "203.0.113.9")];
    assert_eq!(post_with(&app, "/api/v1/graphs", &upload, "a,b,c\n").await.status, StatusCode::FORBIDDEN);
    let info = async |headers: &[(&str, &str)]| {
        let mut request = Request::get("/api/v1/info");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        send(&app, request.body(Body::empty()).unwrap()).await.json()["writable"].clone()
    };
    assert_eq!((info(&[own]).await, info(&[own, ("via", "1.1 proxy")]).await), (json!(true), json!(false)));

    // With a token the way does not matter; a name of its own is for a proxy that passes the public name on.
    let names = vec!["kg.example.org".to_string()];
    let app = router(App::new(Options { listen, names, token: Some("secret".into()), ..options() }));
    let token = ("authorization", "Bearer secret");
    let headers =
        [("host", "kg.example.org"), ("x-forwarded-for", "203.0.113.9"), ("origin", "https://kg.example.org"), token];
    assert_eq!(send(&app, request(Version::HTTP_10, &headers)).await.status, StatusCode::OK);
    let answer = send(&app, request(Version::HTTP_11, &[("host", "other.example.org"), token])).await;
    assert_eq!(answer.json()["code"], "wrong_host");
}

/// Whoever speaks HTTP has not started the server: nothing in an error is a flag of the command line.
#[tokio::test]
async fn errors_speak_of_the_api() {
    let app = app();
    let mut problems = Vec::new();
    let long_name = ["a\tb\t".as_bytes(), &[b'c'; 70_000], b"\n"].concat();
    let long_row = ["a\t".repeat(70_000).as_bytes(), b"\n"].concat();
    let files: [(&str, &str, &[u8]); 24] = [
        ("text/tab-separated-values", "a.tsv", b"a\tb\n"),
        ("text/tab-separated-values", "a.tsv", b"a\tb\tc\td\n"),
        ("text/tab-separated-values", "a.tsv", b"a b c\n"),
        ("text/tab-separated-values", "a.tsv", b"a,b,c\n"),
        ("text/tab-separated-values", "a.tsv", b"<a> <b> <c> .\n"),
        ("text/tab-separated-values", "a.tsv", b"a\t\tc\n"),
        ("text/tab-separated-values", "a.tsv", b"a\tb\xff\tc\n"),
        ("text/tab-separated-values", "a.tsv", b"\xff\xfea\0"),
        ("text/tab-separated-values", "a.tsv", b""),
        ("text/tab-separated-values", "what", b"one word\n"),
        ("text/tab-separated-values", "a.tsv", b"PK\x03\x04zip"),
        ("text/tab-separated-values", "a.tsv.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x01\x02\x03"),
        ("text/tab-separated-values", "a.tsv", &long_name),
        ("text/tab-separated-values", "a.tsv", &long_row),
        ("text/tab-separated-values", "a.tsv", b"[{\"head\": \"a\"}]\n"),
        ("text/csv", "a.csv", b"a,b\n"),
        // On the command line these two are told of --columns.
        ("text/csv", "a.csv", b"a,b,c,d\n"),
        ("text/csv", "a.csv", b"tail,relation,head\nb,a\n"),
        ("text/csv", "a.csv", b"a,\"b,c\n"),
        ("text/csv", "a.csv", b"a,\"b\"x,c\n"),
        ("text/turtle", "a.ttl", b"<a> <b> .\n"),
        ("text/turtle", "a.ttl", b"<http://a> <http://b> <http://c> <http://d> .\n"),
        ("text/turtle", "a.ttl", b"@prefix a: <b> .\nx:y a a .\n"),
        ("application/n-triples", "a.nt", b"<http://a> <http://b> \"only a literal\" .\n"),
    ];
    for (kind, name, bytes) in files {
        let headers = [("host", "localhost"), ("content-type", kind)];
        let answer = post_with(&app, &format!("/api/v1/graphs?name={name}"), &headers, bytes.to_vec()).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["code"]), (400, &json!("bad_graph")), "{}", answer.text);
        assert!(answer.json()["remedy"].is_string(), "{}", answer.text);
        problems.push(answer);
    }
    // What is refused before it is read as a graph: by its type, by its size.
    let small = router(App::new(Options { limits: Limits { upload: 10, ..Limits::default() }, ..options() }));
    for (kind, code) in [("text/plain", "wrong_type"), ("text/csv", "too_large")] {
        let headers = [("host", "localhost"), ("content-type", kind)];
        let answer = post_with(&small, "/api/v1/graphs", &headers, "a,b,c\nd,e,f\n").await;
        assert_eq!(answer.json()["code"], code, "{}", answer.text);
        assert!(answer.json()["remedy"].is_string(), "{}", answer.text);
        problems.push(answer);
    }
    // A name may hold anything, and is not taken for advice.
    let headers = [("host", "localhost"), ("content-type", "text/csv")];
    let odd = post_with(&app, "/api/v1/graphs?name=a;%20hint:%20b.csv", &headers, "a,b\n").await;
    assert_eq!(odd.json()["error"], "a; hint: b.csv:1: expected 3 comma-separated fields, found 2");
    for query in [
        json!(["Portgual", "borders", "?"]),
        json!(["Xyzzyplugh", "borders", "?"]),
        json!(["borders", "borders", "?"]),
        json!(["Portugal", "Spain", "?"]),
        json!(["Portugal", "borders", "Spain"]),
        json!(["?", "borders", "?"]),
    ] {
        problems.push(post(&app, "/api/v1/predict", json!({ "query": query })).await);
        problems.push(post(&app, "/api/v1/predict", json!({ "queries": [query] })).await);
    }
    for triple in [json!(["Portgual", "borders", "Spain"]), json!(["Portugal", "borders", "?"])] {
        problems.push(post(&app, "/api/v1/explain", json!({ "triple": triple })).await);
    }
    problems.push(get(&app, "/api/v1/neighbourhood?entity=Atlantis").await);
    problems.push(get(&app, "/api/v1/info?graph=none").await);
    problems.push(get(&app, "/nothing").await);
    problems.push(get(&app, "/api/v1/predict").await);
    problems.push(post(&app, "/api/v1/triples", json!({})).await);
    let only_entities = router(App::new(Options { predictor: predictor(&[Task::Entity]), ..options() }));
    problems.push(post(&only_entities, "/api/v1/predict", json!({"query": ["Portugal", "?", "Spain"]})).await);
    let public = router(App::new(Options { listen: "0.0.0.0:80".parse().unwrap(), ..options() }));
    problems.push(post(&public, "/api/v1/triples", json!({"add": [["a", "b", "c"]]})).await);
    for problem in problems {
        let json = problem.json();
        let json = json["replies"].get(0).unwrap_or(&json);
        assert!(json["error"].is_string() && json["code"].is_string(), "{}", problem.text);
        let advice = ["--", "hint:", "shell", "iconv"].iter().find(|a| problem.text.contains(**a));
        assert_eq!(advice, None, "{}", problem.text);
    }
}

/// One heavy request used to set the time of a pass for all: most of the light ones behind it were refused.
#[tokio::test]
async fn light_requests_are_admitted_behind_a_heavy_one() {
    let limits = Limits { walks: 512, ..Limits::default() };
    let app = router(App::new(Options { limits, ..options() }));
    let heavy = json!({"query": ["Portugal", "borders", "?"], "walks": 512, "passes": 6});
    let light = json!({"query": ["Portugal", "borders", "?"], "walks": 1});
    let heavy = tokio::spawn({
        let app = app.clone();
        async move { post(&app, "/api/v1/predict", heavy).await.status }
    });
    let all: Vec<_> = (0..64)
        .map(|_| {
            let (app, light) = (app.clone(), light.clone());
            tokio::spawn(async move { post(&app, "/api/v1/predict", light).await.status })
        })
        .collect();
    for one in all {
        assert_eq!(one.await.unwrap(), StatusCode::OK);
    }
    assert_eq!(heavy.await.unwrap(), StatusCode::OK);
}

#[tokio::test]
async fn uploads_share_a_bounded_room() {
    let limits = Limits { upload: 1 << 20, uploading: 1 << 20, ..Limits::default() };
    let app = router(App::new(Options { limits, ..options() }));
    // An upload of 600 KiB that has been announced and is on its way.
    let announced = (600 << 10).to_string();
    let request = Request::post("/api/v1/graphs").header("host", "localhost").header("content-type", "text/csv");
    let (_sender, body) = pending_body();
    let request = request.header("content-length", &announced).body(body).unwrap();
    let mut first = std::pin::pin!(app.clone().oneshot(request));
    std::future::poll_fn(|context| {
        assert!(first.as_mut().poll(context).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
    let headers = [("host", "localhost"), ("content-type", "text/csv"), ("content-length", announced.as_str())];
    let second = post_with(&app, "/api/v1/graphs", &headers, "a,b,c\n".repeat(102_400)).await;
    assert_eq!((second.status.as_u16(), &second.json()["code"]), (429, &json!("busy")));
    assert_eq!(second.headers["retry-after"], "1");
    // A small one has room.
    let headers = [("host", "localhost"), ("content-type", "text/csv"), ("content-length", "6")];
    assert_eq!(post_with(&app, "/api/v1/graphs", &headers, "a,b,c\n").await.status, StatusCode::OK);
}

/// A body that never comes, and what keeps it so.
fn pending_body() -> (tokio::sync::oneshot::Sender<()>, Body) {
    struct Never(tokio::sync::oneshot::Receiver<()>);
    impl hyper::body::Body for Never {
        type Data = axum::body::Bytes;
        type Error = std::convert::Infallible;
        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            context: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
            std::pin::Pin::new(&mut self.0).poll(context).map(|_| None)
        }
    }
    let (sender, receiver) = tokio::sync::oneshot::channel();
    (sender, Body::new(Never(receiver)))
}

/// The description against the specification, by a validator that knows all of it.
#[tokio::test]
async fn the_description_is_valid_openapi() {
    use roas::validation::{Options as Strictness, Validate};
    let text = get(&app(), "/openapi.json").await.text;
    let spec: roas::v3_1::spec::Spec = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let valid = spec.validate(Strictness::new(), None);
    valid.unwrap_or_else(|e| panic!("{e}"));
    let api: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(api["components"]["securitySchemes"]["token"]["scheme"], "bearer");
    assert_eq!(api["security"], json!([{}, {"token": []}]));
    // Each answer says what it is, each failure is a Problem, and the codes are listed.
    for (path, methods) in api["paths"].as_object().unwrap() {
        for (status, answer) in methods.as_object().unwrap().values().flat_map(|m| m["responses"].as_object().unwrap())
        {
            assert!(answer["description"].as_str().is_some_and(|d| d.len() > 10), "{path} {status}");
            let schema = &answer["content"]["application/json"]["schema"]["$ref"];
            assert!(status == "200" || schema == "#/components/schemas/Problem", "{path} {status} {schema}");
        }
    }
    let codes = api["components"]["schemas"]["Code"].to_string();
    assert!(codes.contains("unknown_name") && codes.contains("disk_full"), "{codes}");
    // A description with a hole in it is told apart.
    let holed = text.replacen("\"description\":\"The server lives\",", "", 1);
    assert!(holed.len() < text.len());
    let holed = serde_json::from_str::<roas::v3_1::spec::Spec>(&holed);
    assert!(holed.is_err() || holed.unwrap().validate(Strictness::new(), None).is_err());
}

/// A stream is counted when it ends, with the time to its last event.
#[tokio::test]
async fn a_stream_is_timed_to_its_end() {
    let app = app();
    let body = json!({"query": ["Portugal", "borders", "?"], "walks": 2, "passes": 2}).to_string();
    let request = Request::post("/api/v1/predict/stream").header("host", "localhost");
    let request = request.header("content-type", "application/json").body(Body::from(body)).unwrap();
    let begin = std::time::Instant::now();
    let streaming = app.clone().oneshot(request).await.unwrap();
    assert_eq!(streaming.status(), StatusCode::OK);
    let route = "flock_request_seconds_count{route=\"/api/v1/predict/stream\"}";
    assert!(!get(&app, "/metrics").await.text.contains(route));
    let pause = Duration::from_millis(30);
    tokio::time::sleep(pause).await;
    axum::body::to_bytes(streaming.into_body(), usize::MAX).await.unwrap();
    let metrics = get(&app, "/metrics").await.text;
    assert!(metrics.contains(&format!("{route} 1")), "{metrics}");
    let sum = "flock_request_seconds_sum{route=\"/api/v1/predict/stream\"} ";
    let seconds: f64 = metrics.lines().find_map(|l| l.strip_prefix(sum)).unwrap().parse().unwrap();
    // At least the pause, at most all that has passed, both on the same clock.
    assert!(seconds >= pause.as_secs_f64() && seconds <= begin.elapsed().as_secs_f64(), "{seconds}");
}

#[tokio::test]
async fn a_full_queue_and_a_deadline() {
    let limits = Limits { queue: 1, walks: 512, deadline: Duration::from_millis(300), ..Limits::default() };
    let app = router(App::new(Options { limits, ..options() }));
    let slow = || json!({"query": ["Portugal", "borders", "?"], "walks": 512, "passes": 64});
    let (first, second) = tokio::join!(post(&app, "/api/v1/predict", slow()), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        post(&app, "/api/v1/predict", slow()).await
    });
    assert_eq!(first.status, StatusCode::SERVICE_UNAVAILABLE, "{}", first.text);
    assert_eq!(second.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(second.headers["retry-after"], "1");
    // What nobody waits for any more is dropped at its next pass, and the next question has its turn.
    let quick = || json!({"query": ["Portugal", "borders", "?"], "walks": 1});
    let begin = std::time::Instant::now();
    while post(&app, "/api/v1/predict", quick()).await.status != StatusCode::OK {
        assert!(begin.elapsed() < Duration::from_secs(20));
    }
}

#[tokio::test]
async fn a_stream_that_nobody_reads_gives_up_its_place() {
    let limits = Limits { queue: 1, walks: 512, deadline: Duration::from_millis(300), ..Limits::default() };
    let app = router(App::new(Options { limits, ..options() }));
    let slow = json!({"query": ["Portugal", "borders", "?"], "walks": 512, "passes": 64}).to_string();
    let request = Request::post("/api/v1/predict/stream").header("host", "localhost");
    let request = request.header("content-type", "application/json").body(Body::from(slow)).unwrap();
    let unread = app.clone().oneshot(request).await.unwrap();
    let quick = || json!({"query": ["Portugal", "borders", "?"], "walks": 1});
    assert_eq!(post(&app, "/api/v1/predict", quick()).await.status, StatusCode::TOO_MANY_REQUESTS);
    let begin = std::time::Instant::now();
    while post(&app, "/api/v1/predict", quick()).await.status != StatusCode::OK {
        assert!(begin.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(unread);
}

#[tokio::test]
async fn misspelt_batches_and_long_names() {
    let app = app();
    let queries = vec![json!(["Portgual", "borders", "?"]); 20];
    let batch = post(&app, "/api/v1/predict", json!({"queries": queries, "walks": 1})).await.json();
    let replies = batch["replies"].as_array().unwrap();
    assert!(replies[..16].iter().all(|r| r["near"] == json!(["Portugal"])));
    let unknown = |r: &Value| r["error"].as_str().unwrap().starts_with("unknown entity \"Portgual\"");
    assert!(replies[16..].iter().all(|r| r["near"] == json!([]) && unknown(r)), "{batch}");
    // The same for triples.
    let triples = vec![json!(["Portgual", "borders", "Spain"]); 20];
    let reply = post(&app, "/api/v1/score", json!({"triples": triples, "walks": 1})).await.json();
    let failed = reply["failed"].as_array().unwrap();
    assert!(failed[..16].iter().all(|r| r["near"] == json!(["Portugal"])));
    assert!(failed.len() == 20 && failed[16..].iter().all(|r| r["near"] == json!([]) && unknown(r)), "{reply}");
    let long = "x".repeat(5000);
    let removed = post(&app, "/api/v1/triples", json!({"remove": [[long, "b", "c"]]})).await;
    assert_eq!(removed.status, StatusCode::BAD_REQUEST);
    assert!(removed.text.contains("longer than 4096 bytes"), "{}", removed.text);
}

#[tokio::test]
async fn descriptions_counters_and_headers() {
    let app = app();
    let api = get(&app, "/openapi.json").await.json();
    let paths: Vec<&String> = api["paths"].as_object().unwrap().keys().collect();
    assert_eq!(paths.len(), 13, "{paths:?}");
    let fields = &api["components"]["schemas"]["PredictRequest"]["properties"];
    assert!(fields["budget_ms"]["description"].as_str().unwrap().contains("milliseconds"));
    assert!(api["components"]["schemas"].as_object().unwrap().keys().any(|k| k.starts_with("Reply")));
    let docs = get(&app, "/docs").await;
    assert!(docs.text.contains("<th>Parameters") && !docs.text.contains("<th>Weights"));
    assert!(docs.text.contains("POST /api/v1/predict/stream") && docs.text.contains("budget_ms"));
    assert!(docs.text.contains("<code>unknown_name</code>, <code>unknown_graph</code>"));
    // Nothing in it, nor in the page, comes from elsewhere.
    for page in [docs, get(&app, "/").await] {
        assert!(!page.text.contains("src=\"http") && !page.text.contains("href=\"http"));
        assert!(page.headers["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'"));
        assert_eq!(
            (&page.headers["x-content-type-options"], &page.headers["x-frame-options"]),
            (&"nosniff".parse().unwrap(), &"DENY".parse().unwrap())
        );
    }
    assert_eq!(get(&app, "/app.js").await.headers["content-type"], "text/javascript; charset=utf-8");
    post(&app, "/api/v1/predict", json!({"query": ["Portugal", "borders", "?"], "walks": 2, "passes": 3})).await;
    let metrics = get(&app, "/metrics").await.text;
    assert!(metrics.contains("flock_requests_total{route=\"/api/v1/predict\",status=\"200\"} 1"), "{metrics}");
    assert!(metrics.contains("flock_graph_triples 8"));
}

/// JSON of any shape, with the fields and values the server knows mixed in.
fn anything() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        "\\PC{0,12}".prop_map(Value::from),
        proptest::sample::select(vec!["Portugal", "Spain", "borders", "in", "?", "tail", "head"]).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0u32..40).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    let fields = vec![
        "query",
        "queries",
        "top",
        "novel",
        "among",
        "among_type",
        "among_range",
        "among_domain",
        "walks",
        "passes",
        "seed",
        "budget_ms",
        "explain",
        "graph",
        "triple",
        "triples",
        "head",
        "relation",
        "tail",
        "pairs",
        "search",
        "rank_by",
        "questions",
        "blank",
        "check",
        "add",
        "remove",
        "other",
    ];
    word.prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(inner.clone(), 3).prop_map(Value::from),
            prop::collection::btree_map(proptest::sample::select(fields.clone()), inner, 0..5).prop_map(|m| m
                .into_iter()
                .map(|(k, v)| (k.to_string(), v))
                .collect::<serde_json::Map<_, _>>()
                .into()),
        ]
    })
}

#[tokio::test]
async fn missing_links_and_scores_are_those_of_the_library() {
    use flock_kg::complete::{CompleteOptions, Completion, Scope};
    let app = app();
    let (graph, predictor) = (world(), predictor(&[Task::Entity]));
    let inquiry = predictor.on(&graph).walks(2).seed(3);
    let scope = Scope { relation: Some("borders"), ..Scope::default() };
    let options = CompleteOptions { top: 5, ..CompleteOptions::default() }.within(&graph, &scope).unwrap();
    let mut work = Completion::new(graph.topology(), options);
    while inquiry.advance(&mut work, 16, false).unwrap() > 0 {}
    let wanted = serde_json::to_value(inquiry.links(&work).unwrap()).unwrap();

    let body = json!({"relation": "borders", "top": 5, "walks": 2, "seed": 3});
    let reply = post(&app, "/api/v1/complete", body.clone()).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
    let reply = reply.json();
    assert_eq!(reply["links"], wanted["links"]);
    assert_eq!(reply["progress"], wanted["progress"]);
    assert!(!reply["links"].as_array().unwrap().is_empty());
    let streamed = post(&app, "/api/v1/complete/stream", body).await;
    assert_eq!(streamed.headers["content-type"], "text/event-stream");
    let last = streamed.text.split("\n\n").filter(|e| !e.trim().is_empty()).last().unwrap();
    let data: Value = serde_json::from_str(last.lines().find_map(|l| l.strip_prefix("data:")).unwrap()).unwrap();
    assert!(last.starts_with("event: done") && data["links"] == wanted["links"], "{last}");

    let unknown = post(&app, "/api/v1/complete", json!({"head": "Portgual"})).await;
    assert_eq!((unknown.status, &unknown.json()["near"]), (StatusCode::NOT_FOUND, &json!(["Portugal"])));
    let many = post(&app, "/api/v1/complete", json!({"top": 101, "explain": true})).await;
    assert_eq!(many.status, StatusCode::BAD_REQUEST);

    let triples =
        json!([["Portugal", "borders", "Spain"], ["Portgual", "borders", "Spain"], ["Spain", "borders", "Paris"]]);
    let reply = post(&app, "/api/v1/score", json!({"triples": triples, "walks": 2, "seed": 3})).await.json();
    let names = [["Portugal", "borders", "Spain"], ["Spain", "borders", "Paris"]];
    let ids = names.map(|t| flock_kg::score::find_triple(&graph, t).unwrap());
    let scored = inquiry.score_triples(&ids).unwrap();
    let wanted = serde_json::to_value(inquiry.named_scores(&scored).unwrap()).unwrap();
    assert_eq!(reply["scores"], wanted["scores"]);
    assert_eq!(
        (&reply["failed"][0]["triple"][0], &reply["failed"][0]["near"]),
        (&json!("Portgual"), &json!(["Portugal"]))
    );
    let none = post(&app, "/api/v1/score", json!({"triples": []})).await;
    assert_eq!(none.status, StatusCode::BAD_REQUEST);
}

#[test]
fn no_body_breaks_it() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let app = runtime.block_on(async { app() });
    let paths = [
        "/api/v1/predict",
        "/api/v1/predict/stream",
        "/api/v1/explain",
        "/api/v1/complete",
        "/api/v1/complete/stream",
        "/api/v1/score",
        "/api/v1/triples",
        "/api/v1/graphs",
    ];
    let config = Config { cases: 400, rng_seed: RngSeed::Fixed(6), failure_persistence: None, ..Config::default() };
    let body = prop_oneof![
        anything().prop_map(|v| v.to_string().into_bytes()),
        prop::collection::vec(any::<u8>(), 0..60),
        // Nearly right.
        (anything(), proptest::sample::select(vec!["top", "walks", "passes", "seed", "among", "budget_ms", "explain"]))
            .prop_map(|(value, field)| {
                let mut body = json!({"query": ["Portugal", "borders", "?"], "walks": 1});
                body[field] = value;
                body.to_string().into_bytes()
            }),
    ];
    let mut runner = TestRunner::new(config);
    let case = (proptest::sample::select(paths.to_vec()), body);
    runner
        .run(&case, |(path, body)| {
            let kind = if path.ends_with("graphs") { "text/tab-separated-values" } else { "application/json" };
            let headers = [("host", "localhost"), ("content-type", kind)];
            let answer = runtime.block_on(post_with(&app, path, &headers, body));
            let fair = [200, 400, 404, 413].contains(&answer.status.as_u16());
            prop_assert!(fair, "{} {}", answer.status, answer.text);
            if answer.status != StatusCode::OK {
                prop_assert!(answer.json()["error"].is_string());
            }
            Ok(())
        })
        .unwrap();
}
