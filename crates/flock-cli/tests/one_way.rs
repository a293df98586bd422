//! One way to ask: the same fifty-odd questions through the library, the command and the server get the same reply, field by field.
//!
//! The questions ask for tails, heads and relations; with passes, seeds, walks, candidates, only new answers, budgets, reasons and
//! calibrated probabilities; on a plain graph and on one of IRIs with prefixes. Ten of them are explanations.

mod common;

use std::path::Path;
use std::time::Duration;

use common::{Place, Server};
use flock_kg::model::checkpoint::Checkpoint;
use flock_kg::{Blank, CalibrateOptions, Calibrations, ExplainOptions, Graph, Predictor, Task};
use serde_json::{Map, Value, json};

const BIO: &str = "@prefix bio: <http://example.org/bio/> .
bio:TP53 bio:regulates bio:MDM2 ; bio:binds bio:EP300 , bio:MDM2 .
bio:MDM2 bio:regulates bio:TP53 ; bio:binds bio:MDM4 .
bio:MDM4 bio:binds bio:TP53 .
bio:EP300 bio:regulates bio:TP53 .
bio:ATM bio:regulates bio:TP53 , bio:CHEK2 .
bio:CHEK2 bio:regulates bio:TP53 .
";

/// A question and how it is asked.
#[derive(Clone, Copy, Debug)]
struct Case {
    graph: &'static str,
    question: [&'static str; 3],
    walks: Option<u32>,
    passes: Option<u32>,
    seed: u64,
    top: usize,
    only_new: bool,
    among: &'static [&'static str],
    among_type: Option<[&'static str; 2]>,
    among_range: Option<&'static str>,
    among_domain: Option<&'static str>,
    budget: Option<u64>, // ms
    reasons: bool,
    explain: Option<Blank>, // explains the triple instead
}

const PLAIN: Case = Case {
    graph: "world.tsv",
    question: ["Portugal", "borders", "?"],
    walks: Some(4),
    passes: Some(2),
    seed: 0,
    top: 10,
    only_new: false,
    among: &[],
    among_type: None,
    among_range: None,
    among_domain: None,
    budget: None,
    reasons: false,
    explain: None,
};

/// Fifty and some.
fn cases() -> Vec<Case> {
    let tails =
        [["Portugal", "borders", "?"], ["Spain", "in", "?"], ["Paris", "capital_of", "?"], ["Nowhere", "in", "?"]];
    let heads = [["?", "borders", "Spain"], ["?", "in", "Europe"], ["?", "capital_of", "Iceland"]];
    let relations = [["Portugal", "?", "Spain"], ["Lisbon", "?", "Portugal"], ["Spain", "?", "Nowhere"]];
    let all: Vec<[&str; 3]> = tails.into_iter().chain(heads).chain(relations).collect();
    let mut cases: Vec<Case> = Vec::new();
    for (i, &question) in all.iter().enumerate() {
        // As one asks by default: walks by the graph's size, one pass.
        cases.push(Case { question, walks: None, passes: None, top: 3, ..PLAIN });
        cases.push(Case { question, seed: i as u64, top: 0, ..PLAIN });
    }
    // Budgets that end by the number of passes, by a settled ranking, and by the clock after one pass.
    for (question, passes, budget) in [
        (tails[0], Some(3), 60_000),
        (heads[0], Some(1), 0),
        (relations[0], None, 600_000),
        (tails[1], Some(9), 0),
        (relations[1], Some(2), 60_000),
    ] {
        cases.push(Case { question, passes, budget: Some(budget), top: 2, ..PLAIN });
    }
    // Candidates, known answers left out, reasons.
    cases.push(Case { question: tails[0], among: &["France", "Europe", "Nowhere"], ..PLAIN });
    cases.push(Case { question: heads[1], among: &["Spain", "Lisbon"], only_new: true, ..PLAIN });
    cases.push(Case { question: relations[0], among: &["in", "borders"], ..PLAIN });
    cases.push(Case { question: tails[0], among_type: Some(["in", "Europe"]), ..PLAIN });
    cases.push(Case { question: heads[0], among_domain: Some("borders"), among_type: Some(["in", "Europe"]), ..PLAIN });
    cases.push(Case { question: tails[0], among_range: Some("in"), among: &["Europe", "Atlantis"], ..PLAIN });
    cases.push(Case { question: tails[1], only_new: true, reasons: true, ..PLAIN });
    cases.push(Case { question: relations[1], only_new: true, top: 2, ..PLAIN });
    cases.push(Case { question: heads[0], reasons: true, passes: Some(6), ..PLAIN });
    cases.push(Case { question: relations[2], reasons: true, ..PLAIN });
    // IRIs, in full and by their prefix.
    for question in [
        ["bio:TP53", "bio:binds", "?"],
        ["http://example.org/bio/TP53", "bio:regulates", "?"],
        ["?", "<http://example.org/bio/regulates>", "bio:TP53"],
        ["bio:ATM", "?", "bio:CHEK2"],
    ] {
        cases.push(Case { graph: "bio.ttl", question, reasons: true, top: 4, ..PLAIN });
    }
    cases.push(Case {
        graph: "bio.ttl",
        question: ["bio:ATM", "bio:regulates", "?"],
        among: &["bio:MDM2", "bio:EP300"],
        ..PLAIN
    });
    // Calibrated: asked as the calibrations were made, and otherwise.
    for (question, passes) in [(tails[0], 1), (heads[1], 1), (relations[0], 1), (tails[0], 2)] {
        cases.push(Case { graph: "calibrated.tsv", question, passes: Some(passes), ..PLAIN });
    }
    // Explained.
    for (graph, question, explain, passes) in [
        ("world.tsv", ["Portugal", "borders", "Spain"], Blank::Tail, Some(2)),
        ("world.tsv", ["Portugal", "borders", "France"], Blank::Tail, None),
        ("world.tsv", ["Portugal", "borders", "Spain"], Blank::Head, Some(2)),
        ("world.tsv", ["Spain", "in", "Europe"], Blank::Relation, Some(2)),
        ("world.tsv", ["Paris", "in", "Europe"], Blank::Relation, Some(3)),
        ("bio.ttl", ["bio:TP53", "bio:binds", "bio:MDM2"], Blank::Tail, Some(2)),
        ("bio.ttl", ["bio:ATM", "bio:regulates", "bio:CHEK2"], Blank::Relation, Some(2)),
        ("calibrated.tsv", ["Portugal", "borders", "Spain"], Blank::Tail, Some(1)),
        ("calibrated.tsv", ["Portugal", "borders", "Spain"], Blank::Tail, Some(4)),
    ] {
        cases.push(Case { graph, question, explain: Some(explain), passes, ..PLAIN });
    }
    cases
}

fn place_name(blank: Blank) -> &'static str {
    match blank {
        Blank::Head => "head",
        Blank::Relation => "relation",
        Blank::Tail => "tail",
    }
}

/// Through the library.
fn library(place: &Place, predictor: &Predictor, case: &Case) -> Value {
    let path = place.path(case.graph);
    let graph = Graph::open(&path).unwrap();
    let calibrations = Calibrations::read(&path).unwrap();
    let mut inquiry = predictor.on(&graph).seed(case.seed).calibrations(&calibrations);
    if let Some(walks) = case.walks {
        inquiry = inquiry.walks(walks);
    }
    if let Some(passes) = case.passes {
        inquiry = inquiry.passes(passes);
    }
    if let Some(blank) = case.explain {
        return serde_json::to_value(inquiry.explain(case.question, blank, &ExplainOptions::default()).unwrap())
            .unwrap();
    }
    inquiry = inquiry.top(case.top).only_new(case.only_new).reasons(case.reasons);
    if !case.among.is_empty() {
        inquiry = inquiry.among(case.among);
    }
    if let Some([relation, value]) = case.among_type {
        inquiry = inquiry.among_type(relation, value);
    }
    if let Some(relation) = case.among_range {
        inquiry = inquiry.among_range(relation);
    }
    if let Some(relation) = case.among_domain {
        inquiry = inquiry.among_domain(relation);
    }
    if let Some(ms) = case.budget {
        inquiry = inquiry.budget(Duration::from_millis(ms));
    }
    serde_json::to_value(inquiry.ask(case.question).unwrap()).unwrap()
}

/// Through the command.
fn command(place: &Place, case: &Case) -> Value {
    let name = if case.explain.is_some() { "explain" } else { "predict" };
    let mut args: Vec<String> = [name, case.graph].into_iter().chain(case.question).map(String::from).collect();
    for model in ["entity", "relation"] {
        args.extend(["--model".to_string(), format!("{model}.safetensors")]);
    }
    let mut flag =
        |name: &str, value: Option<String>| args.extend(value.into_iter().flat_map(|v| [name.to_string(), v]));
    flag("--seed", Some(case.seed.to_string()));
    flag("--walks", case.walks.map(|n| n.to_string()));
    flag("--passes", case.passes.map(|n| n.to_string()));
    flag("--blank", case.explain.map(|blank| place_name(blank).to_string()));
    flag("--budget", case.budget.map(|ms| format!("{ms}ms")));
    if case.explain.is_none() {
        flag("--top", Some(case.top.to_string()));
    }
    if !case.among.is_empty() {
        place.write("among.txt", case.among.join("\n"));
        flag("--among", Some("among.txt".to_string()));
    }
    flag("--among-type", case.among_type.map(|pair| pair.join("=")));
    flag("--among-range", case.among_range.map(String::from));
    flag("--among-domain", case.among_domain.map(String::from));
    args.push("--json".to_string());
    args.extend(case.only_new.then(|| "--novel".to_string()));
    args.extend(case.reasons.then(|| "--explain".to_string()));
    place.run(&args.iter().map(String::as_str).collect::<Vec<_>>()).json_text()
}

/// Through the server.
fn server(servers: &[(&str, Server)], case: &Case) -> Value {
    let server = &servers.iter().find(|(graph, _)| *graph == case.graph).unwrap().1;
    let mut body = Map::from_iter([("seed".to_string(), json!(case.seed))]);
    let mut put = |key: &str, value: Option<Value>| body.extend(value.map(|v| (key.to_string(), v)));
    put("walks", case.walks.map(Value::from));
    put("passes", case.passes.map(Value::from));
    let path = match case.explain {
        Some(blank) => {
            put("triple", Some(json!(case.question)));
            put("blank", Some(json!(place_name(blank))));
            put("check", Some(json!(true)));
            "/api/v1/explain"
        }
        None => {
            put("query", Some(json!(case.question)));
            put("top", Some(json!(case.top)));
            put("novel", Some(json!(case.only_new)));
            put("explain", Some(json!(case.reasons)));
            put("budget_ms", case.budget.map(Value::from));
            put("among", (!case.among.is_empty()).then(|| json!(case.among)));
            put("among_type", case.among_type.map(|pair| json!([pair])));
            put("among_range", case.among_range.map(|relation| json!([relation])));
            put("among_domain", case.among_domain.map(|relation| json!([relation])));
            "/api/v1/predict"
        }
    };
    let (status, reply) = server.send("POST", path, &Value::Object(body).to_string());
    assert_eq!(status, 200, "{case:?}: {reply}");
    reply
}

#[test]
fn fifty_questions_get_the_same_reply_everywhere() {
    let place = Place::new();
    place.write("bio.ttl", BIO);
    // Large enough to be calibrated: the world with a ring of towns.
    let towns = (0..150).map(|i| format!("town{i}\tborders\ttown{}\ntown{i}\tin\tEurope\n", (i + 1) % 150));
    place.write("calibrated.tsv", common::WORLD.to_string() + &towns.collect::<String>());
    let builder = ["entity", "relation"].iter().fold(Predictor::builder().threads(2), |b, task| {
        // By the name that the command and the server see, so that the origin in replies is the same.
        let checkpoint = Checkpoint::read(place.path(&format!("{task}.safetensors"))).unwrap();
        b.checkpoint(checkpoint, format!("{task}.safetensors"))
    });
    let predictor = builder.build().unwrap();
    calibrate(&place.path("calibrated.tsv"), &predictor);

    let servers = ["world.tsv", "bio.ttl", "calibrated.tsv"].map(|graph| (graph, Server::start_on(&place, graph, &[])));
    let cases = cases();
    assert_eq!(cases.len(), 53);
    let mut seen = Vec::new();
    for case in &cases {
        let [library, command, server] =
            [library(&place, &predictor, case), command(&place, case), server(&servers, case)];
        // As text too: numbers to the last digit.
        assert_eq!(library.to_string(), command.to_string(), "library and command: {case:?}");
        assert_eq!(library.to_string(), server.to_string(), "library and server: {case:?}");
        seen.push(library);
    }
    // The fifty do show what they are meant to show.
    let count = |test: &dyn Fn(&Value) -> bool| seen.iter().filter(|reply| test(reply)).count();
    for reason in ["time", "steady", "passes"] {
        assert!(count(&|r| r["stopped"] == reason) > 0, "no budget ended by {reason}");
    }
    assert!(count(&|r| r.get("calibration").is_some()) >= 4 && count(&|r| r.get("calibration_unused").is_some()) >= 2);
    // Of the list, Europe alone is a tail of `in`, and the graph lacks Atlantis.
    let skipped = json!({"count": 1, "first": ["Atlantis"]});
    assert_eq!(count(&|r| r["unknown_candidates"] == skipped && r["candidates"] == 1), 1);
    assert!(count(&|r| r.get("shown").is_some()) >= 7, "IRIs are shown by their prefix");
    assert!(count(&|r| r["deletion"]["fall"].is_number()) >= 9);
    assert!(count(&|r| r["answers"].as_array().is_some_and(|a| a.iter().any(|a| a.get("reason").is_some()))) >= 5);
}

/// The same for questions in a batch, for a stream, and for questions that fail.
#[test]
fn batches_streams_and_failures_are_alike() {
    let place = Place::new();
    let tasks = ["entity", "relation"].map(|task| format!("{task}.safetensors"));
    let builder = tasks.iter().fold(Predictor::builder().threads(2), |b, file| {
        b.checkpoint(Checkpoint::read(place.path(file)).unwrap(), file.clone())
    });
    let predictor = builder.build().unwrap();
    let graph = Graph::open(place.path("world.tsv")).unwrap();
    let server = Server::start_on(&place, "world.tsv", &[]);
    let questions = [
        ["Portugal", "borders", "?"],
        ["Spian", "in", "?"],
        ["Lisbon", "?", "Portugal"],
        ["?", "in", "?"],
        ["?", "in", "Europe"],
    ];

    // A batch: what is answered is the same, and the same questions fail for the same reason.
    let library: Vec<Result<Value, String>> = predictor
        .on(&graph)
        .walks(4)
        .top(3)
        .passes(2)
        .ask_many(&questions)
        .into_iter()
        .map(|reply| reply.map(|a| serde_json::to_value(a).unwrap()).map_err(|e| e.to_string()))
        .collect();
    place.write("questions.tsv", questions.map(|q| q.join("\t")).join("\n"));
    let models = tasks.iter().flat_map(|file| ["--model", file]);
    let args =
        ["predict", "world.tsv", "--queries", "questions.tsv", "--walks", "4", "--top", "3", "--passes", "2", "--json"];
    let command = place.run(&args.into_iter().chain(models).collect::<Vec<_>>());
    assert_eq!(command.code, Some(1), "two of them fail: {command:?}");
    let body = json!({"queries": questions, "walks": 4, "top": 3, "passes": 2});
    let (status, reply) = server.send("POST", "/api/v1/predict", &body.to_string());
    assert_eq!(status, 200);
    for (i, (library, command)) in library.iter().zip(command.json()).enumerate() {
        let server = &reply["replies"][i];
        match library {
            Ok(reply) => assert_eq!((reply, reply), (&command, server), "question {i}"),
            Err(error) => {
                let [command, server] = [&command, server].map(|reply| reply["error"].as_str().unwrap());
                assert!(command.starts_with(error.as_str()), "{command}: {error}");
                // "none" is 0 in numbers; the rest is the same.
                assert!(server == error || error.contains("expected one ?"), "{server}: {error}");
            }
        }
    }
    assert_eq!(library.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true, false, true]);

    // A stream, as many passes as there are by default: the last reply is the same.
    let steps = predictor.on(&graph).walks(4).top(3).stream(questions[0]).unwrap();
    let last = steps.map(|step| serde_json::to_value(step.unwrap()).unwrap()).last().unwrap();
    let body = json!({"query": questions[0], "walks": 4, "top": 3});
    let (status, events) = server.try_send("POST", "/api/v1/predict/stream", &body.to_string()).unwrap();
    let done = events.split("event: done").nth(1).and_then(|e| e.split("data: ").nth(1)).and_then(|e| e.lines().next());
    let done: Value = serde_json::from_str(done.unwrap_or_else(|| panic!("{events}"))).unwrap();
    assert_eq!((status, &done, &done["passes"]), (200, &last, &json!(16)));
}

/// Makes the calibrations of both tasks, with one pass and four base walks.
fn calibrate(path: &Path, predictor: &Predictor) {
    let graph = Graph::open(path).unwrap();
    let mut made = Calibrations::default();
    for task in [Task::Entity, Task::Relation] {
        let options = CalibrateOptions { queries: 30, top: 5 };
        let report = predictor.on(&graph).walks(4).calibrate(task, &options, &mut |_, _| true).unwrap().unwrap();
        made.set(task, report.calibration);
    }
    made.write(&Calibrations::path(path)).unwrap();
}
