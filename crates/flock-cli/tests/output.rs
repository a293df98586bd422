//! What the commands print.

mod common;

use common::{Place, default_precision, predict_args};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

const QUERIES: &str = "Portugal\tborders\t?
Portugal\t?\tSpain

?\tcapital_of\tFrance
Portgual\tborders\t?
Iceland\tin\t?
only two\tfields
Spain\tborders\tFrance
";

fn names(reply: &Value) -> Vec<&str> {
    reply["answers"].as_array().unwrap().iter().map(|a| a["name"].as_str().unwrap()).collect()
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn json_of_one_query() {
    let place = Place::new();
    let ran = place.predict(&["Portugal", "borders", "?", "--json", "--top", "0", "--passes", "3", "--seed", "5"]);
    let [reply] = &ran.json()[..] else { panic!("{ran:?}") };
    let want =
        ["answers", "candidates", "coverage", "model", "passes", "probability_from", "query", "seed", "unreached"];
    assert_eq!(keys(reply), [&want[..], &["walks"]].concat());
    assert_eq!(reply["probability_from"], "score");
    assert_eq!(reply["query"], json!(["Portugal", "borders", "?"]));
    assert_eq!((&reply["seed"], &reply["walks"], &reply["passes"]), (&json!(5), &json!(2), &json!(3)));
    assert_eq!(reply["model"]["origin"], "entity.safetensors");
    assert_eq!(reply["model"]["task"], "entity");
    assert_eq!(reply["model"]["precision"], default_precision());
    assert_eq!(reply["model"]["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(keys(&reply["unreached"]), ["count", "logit", "probability", "rank"]);

    let answers = reply["answers"].as_array().unwrap();
    let number = |v: &Value| v.as_f64().unwrap();
    let mut before = f64::INFINITY;
    for answer in answers {
        assert_eq!(keys(answer), ["known", "logit", "name", "probability", "rank", "spread", "visits"]);
        let logit = number(&answer["logit"]);
        assert!(logit <= before);
        assert!((number(&answer["probability"]) - 1.0 / (1.0 + (-logit).exp())).abs() < 1e-12);
        assert!(number(&answer["spread"]) >= 0.0 && number(&answer["visits"]) >= 1.0);
        assert_eq!(answer["known"], answer["name"] == "Spain");
        before = logit;
    }
    // Walks start at Portugal: it and its neighbours are reached, and with what is not that makes all ten entities.
    assert!(["Portugal", "Spain", "Lisbon"].iter().all(|n| names(reply).contains(n)));
    assert_eq!(reply["candidates"], 10);
    assert_eq!(answers.len() as u64 + reply["unreached"]["count"].as_u64().unwrap(), 10);
    assert_eq!(number(&reply["coverage"]), answers.len() as f64 / 10.0);
}

#[test]
fn a_relation_query_ranks_all_relations() {
    let place = Place::new();
    let ran = place.predict(&["Portugal", "?", "Spain", "--json"]);
    let reply = &ran.json()[0];
    assert_eq!(reply["query"], json!(["Portugal", "?", "Spain"]));
    assert_eq!((&reply["model"]["task"], &reply["candidates"]), (&json!("relation"), &json!(3)));
    for answer in reply["answers"].as_array().unwrap() {
        assert_eq!(answer["known"], answer["name"] == "borders");
        assert_eq!(answer["visits"], Value::Null);
        // One pass has no spread.
        assert!(answer["spread"].is_null());
    }
}

#[test]
fn a_batch_answers_as_single_queries_do_and_survives_bad_rows() {
    let place = Place::new();
    place.write("q.tsv", QUERIES);
    let batch = place.predict(&["--queries", "q.tsv", "--json"]);
    assert_eq!(batch.code, Some(1));
    let lines: Vec<&str> = batch.out.lines().collect();
    assert_eq!(lines.len(), 7);
    let single = |texts: [&str; 3]| place.predict(&[&texts[..], &["--json"]].concat()).ok();
    assert_eq!(lines[0], single(["Portugal", "borders", "?"]).trim_end());
    assert_eq!(lines[1], single(["Portugal", "?", "Spain"]).trim_end());
    assert_eq!(lines[2], single(["?", "capital_of", "France"]).trim_end());
    assert_eq!(lines[4], single(["Iceland", "in", "?"]).trim_end());
    let unknown = "unknown entity \"Portgual\"; near names: \"Portugal\"";
    let fields = "expected 3 tab-separated fields, found 2";
    let json = batch.json();
    assert_eq!(json[3], json!({"query": ["Portgual", "borders", "?"], "line": 5, "error": unknown}));
    assert_eq!(json[5], json!({"query": ["only two", "fields"], "line": 7, "error": fields}));
    // All three parts named: where the triple stands.
    assert_eq!((&json[6]["scores"][0]["tail"], &json[6]["scores"][0]["known"]), (&json!("France"), &json!(true)));
    let err: Vec<&str> = batch.err.lines().collect();
    assert_eq!(err.len(), 3);
    assert_eq!(err[0], format!("error: q.tsv:5: {unknown}"));
    assert_eq!(err[1], format!("error: q.tsv:7: {fields}"));
    assert_eq!(err[2], "error: 2 of 7 queries failed");

    // From standard input only the name of the place differs.
    let piped = place.run_with_stdin(&predict_args(&["--queries", "-", "--json"]), QUERIES);
    assert_eq!((piped.code, &piped.out), (Some(1), &batch.out));
    assert!(piped.err.starts_with(&format!("error: <stdin>:5: {unknown}\n")));
    // And a batch that needs a model that was not given goes on with the others.
    place.write("mixed.tsv", "Portugal\t?\tSpain\nPortugal\tborders\t?\n");
    let args = ["predict", "world.tsv", "--queries", "mixed.tsv", "--json", "--model", "entity.safetensors"];
    let ran = place.run(&args);
    assert_eq!(ran.code, Some(1));
    assert!(ran.json()[0]["error"].as_str().unwrap().contains("cannot answer (head, ?, tail)"));
    assert_eq!(ran.json()[1]["query"], json!(["Portugal", "borders", "?"]));
}

#[test]
fn lines_of_a_batch_are_those_of_the_file() {
    let place = Place::new();
    let bad = |line: u64| format!("error: q:{line}: ");
    let cases: [(&str, &str, &[u64]); 4] = [
        ("q.tsv", "a\tborders\t?\r\nb\tborders\t?\r\n\r\nc\tborders\t?\r\n", &[1, 2, 4]),
        ("q.tsv", "\n\na\tborders\t?\n\n\nb\tborders\t?", &[3, 6]),
        ("q.csv", "\r\na,borders,?\r\n\"b\nb\",borders,?\r\nc,borders,?\r\n", &[2, 3, 5]),
        ("q.csv", "a,borders,?\n\n\"b\n\nb\",borders,?\n  \nc,borders,?\n", &[1, 3, 7]),
    ];
    for (file, text, lines) in cases {
        place.write(file, text);
        let ran = place.predict(&["--queries", file]);
        let err = ran.err.replace(&format!("{file}:"), "q:");
        let told: Vec<&str> = err.lines().filter(|l| l.contains("unknown entity")).collect();
        assert_eq!(told.len(), lines.len(), "{err}");
        assert!(told.iter().zip(lines).all(|(told, line)| told.starts_with(&bad(*line))), "{text:?}: {err}");
    }
}

#[test]
fn csv_queries() {
    let place = Place::new();
    place.write("odd.csv", "\"Smith, Ann\",knows,\"Bob \"\"B\"\" Roe\"\n\"Bob \"\"B\"\" Roe\",knows,Cid\n");
    place.write("q.csv", "\"Smith, Ann\",knows,?\n?,knows,\"Bob \"\"B\"\" Roe\"\n");
    let model = ["--model", "entity.safetensors", "--walks", "2"];
    let ran = place.run(&[&["predict", "odd.csv", "--queries", "q.csv", "--json"][..], &model].concat());
    let replies = ran.json();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(replies[0]["query"], json!(["Smith, Ann", "knows", "?"]));
    assert_eq!(replies[1]["query"], json!(["?", "knows", "Bob \"B\" Roe"]));
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let place = Place::new();
    place.write("q.tsv", QUERIES);
    for precision in ["f32", "bf16"] {
        let with = |threads| {
            let args = ["--queries", "q.tsv", "--json", "--passes", "3", "--top", "0"];
            let more = ["--threads", threads, "--precision", precision];
            place.predict(&[&args[..], &more].concat()).out
        };
        let one = with("1");
        assert_eq!(one.lines().count(), 7);
        assert_eq!(one, with("2"));
        assert_eq!(one, with("5"));
    }
    let seeded = |seed| place.predict(&["Portugal", "borders", "?", "--json", "--seed", seed]).ok();
    assert_eq!(seeded("1"), seeded("1"));
    assert_ne!(seeded("1"), seeded("2"));
}

#[test]
fn novel_answers_only() {
    let place = Place::new();
    let ask = |extra: &[&str]| {
        let args = ["predict", "world.tsv", "?", "in", "Europe", "--json", "--top", "0", "--walks", "40"];
        place.run(&[&args[..], &["--model", "entity.safetensors"], extra].concat()).json().remove(0)
    };
    let (all, novel) = (ask(&[]), ask(&["--novel"]));
    // 40 · 3 walks of 12 positions reach all ten entities of so small a graph.
    assert_eq!((&all["candidates"], &all["coverage"]), (&json!(10), &json!(1.0)));
    let known = ["France", "Portugal", "Spain"];
    let left: Vec<&str> = names(&all).into_iter().filter(|n| !known.contains(n)).collect();
    assert_eq!(names(&novel), left);
    assert_eq!(novel["candidates"], 7);
    let ranks: Vec<u64> = novel["answers"].as_array().unwrap().iter().map(|a| a["rank"].as_u64().unwrap()).collect();
    assert_eq!(ranks, [1, 2, 3, 4, 5, 6, 7]);
}

/// A path n0 → n1 → … → n500, whose far end a few short walks cannot reach.
fn path_graph() -> String {
    (0..500).map(|i| format!("n{i}\tnext\tn{}\n", i + 1)).collect()
}

#[test]
fn among_a_list_every_name_is_ranked() {
    let place = Place::new();
    place.write("path.tsv", path_graph());
    // Fifty names ten apart, one of them twice. Six walks (three starts, two updates) of 12 positions meet two each at most.
    let list: String = (0..50).map(|i| format!("n{}\r\n", 10 * i + 5)).collect();
    place.write("list.txt", format!("{list}\nn5\n"));
    let ask = |top| {
        let args = ["predict", "path.tsv", "n5", "next", "?", "--json", "--model", "entity.safetensors"];
        let reply = place.run(&[&args[..], &["--walks", "1", "--among", "list.txt", "--top", top]].concat()).ok();
        serde_json::from_str::<Value>(&reply).unwrap()
    };
    let all = ask("0");
    let mut listed = names(&all);
    listed.sort_unstable();
    listed.dedup();
    assert_eq!((listed.len(), &all["candidates"]), (50, &json!(50)));
    let answers = all["answers"].as_array().unwrap();
    let missed: Vec<&Value> = answers.iter().filter(|a| a["visits"] == 0).collect();
    assert!(missed.len() >= 38, "{all}");
    assert_eq!(all["unreached"]["count"], missed.len());
    for answer in missed {
        assert_eq!((&answer["logit"], &answer["rank"]), (&all["unreached"]["logit"], &all["unreached"]["rank"]));
    }
    // A shorter list has the same ranks among the same candidates.
    let one = ask("1");
    assert_eq!((one["answers"].as_array().unwrap().len(), &one["candidates"]), (1, &json!(50)));
    assert_eq!((&one["answers"][0], &one["unreached"]), (&answers[0], &all["unreached"]));
}

#[test]
fn tables() {
    let place = Place::new();
    let out = place.predict(&["Portugal", "borders", "?", "--passes", "2"]).ok();
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "Portugal  borders  ?");
    assert_eq!(
        lines[1].split_whitespace().collect::<Vec<_>>(),
        ["rank", "entity", "score", "logit", "spread", "visits"]
    );
    let spain = lines.iter().find(|l| l.contains("Spain")).unwrap();
    assert!(spain.ends_with("  known"));
    assert_eq!(lines.iter().filter(|l| l.ends_with("known")).count(), 1);
    let one = place.predict(&["Portugal", "?", "Spain"]).ok();
    assert!(one.lines().nth(2).unwrap().contains(" –"), "{one}");

    place.write("path.tsv", path_graph());
    let args = ["predict", "path.tsv", "n0", "next", "?", "--walks", "1", "--model", "entity.safetensors"];
    let out = place.run(&args).ok();
    let last = out.lines().last().unwrap();
    assert!(last.contains(" of 501 entities were not reached by any walk; they share score 0."), "{out}");
    assert!(last.ends_with(')') && last.contains(" (rank "), "{out}");
}

#[test]
fn iris_are_short_in_tables_and_whole_in_json() {
    let place = Place::new();
    place.write("g.ttl", "@prefix ex: <http://example.org/> .\nex:a ex:knows ex:b . ex:b ex:knows ex:c .\n");
    let ask = |extra: &[&str]| {
        let args = ["predict", "g.ttl", "ex:a", "<http://example.org/knows>", "?", "--walks", "2"];
        place.run(&[&args[..], &["--model", "entity.safetensors"], extra].concat())
    };
    assert!(ask(&[]).ok().starts_with("ex:a  ex:knows  ?\n"));
    let iris = json!(["http://example.org/a", "http://example.org/knows", "?"]);
    assert_eq!(ask(&["--json"]).json()[0]["query"], iris);
}

#[test]
fn the_built_in_model_answers_when_none_is_named() {
    let place = Place::new();
    for question in [["Portugal", "borders", "?"], ["Portugal", "?", "Spain"]] {
        let ran = place.run(&[&["predict", "world.tsv"][..], &question, &["--json", "--walks", "1"]].concat());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        assert_eq!(ran.json()[0]["model"]["origin"], "bundled");
    }
}

#[test]
fn a_graph_from_standard_input() {
    let place = Place::new();
    let args = ["predict", "-", "Portugal", "borders", "?", "--json", "--model", "entity.safetensors", "--walks", "2"];
    let piped = place.run_with_stdin(&args, common::WORLD).ok();
    assert_eq!(piped, place.predict(&["Portugal", "borders", "?", "--json"]).ok());
}

/// What a graph file has besides triples is said, and so is a first row that may be a header.
#[test]
fn what_is_left_out_is_said() {
    let place = Place::new();
    let rows = common::WORLD.replace('\t', ",");
    place.write("named.csv", format!("head,relation,tail\n{rows}"));
    place.write("odd.csv", format!("Thing,Does,Other\n{rows}"));
    place.write("unnamed.csv", format!("Thing,Link,Other Thing\n{rows}"));
    let run = |file| {
        place.run(&["predict", file, "Portugal", "borders", "?", "--model", "entity.safetensors", "--walks", "2"])
    };
    assert_eq!(run("named.csv").err, "note: named.csv: left out: header row, 1 duplicate\n");
    assert_eq!(
        run("odd.csv").err,
        "warning: odd.csv:1: \"Thing\", \"Does\", \"Other\" was read as a triple, but none of these names comes again: \
         it may be a header; hint: --header if it is, --no-header if it is a triple\n"
    );
    assert_eq!(
        run("unnamed.csv").err,
        "note: unnamed.csv: the first row was taken for a header, since none of its names comes again; head = Thing, \
         relation = Link, tail = Other Thing\nnote: unnamed.csv: left out: header row, 1 duplicate\n"
    );
}

/// A directory, `--with` and further files of `info` make one graph, and give the same answers.
#[test]
fn several_files_make_one_graph() {
    let place = Place::new();
    std::fs::create_dir(place.path("parts")).unwrap();
    let (first, second) = common::WORLD.split_at(common::WORLD.len() / 2);
    let cut = first.rfind('\n').unwrap() + 1;
    let (first, second) = (&first[..cut], [&first[cut..], second].concat());
    place.write("parts/a.tsv", first);
    place.write(
        "parts/b.csv",
        format!("id,subject,predicate,object\n{}", {
            second.lines().map(|line| format!("x,{}\n", line.replace('\t', ","))).collect::<String>()
        }),
    );
    place.write("parts/notes.md", "nothing\n");
    let ask = |graph: &[&str]| {
        let rest = ["Portugal", "borders", "?", "--json", "--model", "entity.safetensors", "--walks", "2"];
        place.run(&[&["predict"], graph, &rest].concat())
    };
    let whole = ask(&["world.tsv"]);
    let parts = ask(&["parts/"]);
    assert_eq!(parts.out, whole.out);
    assert_eq!(
        parts.err.lines().take(2).collect::<Vec<_>>(),
        [
            "note: parts: read a.tsv, b.csv; passed over notes.md",
            "note: parts/b.csv: the first row is a header; head = subject, relation = predicate, tail = object; not used: id",
        ]
    );
    assert_eq!(ask(&["parts/a.tsv", "--with", "parts/b.csv"]).out, whole.out);
    let info = place.run(&["info", "parts/a.tsv", "parts/b.csv", "--json", "--model", "entity.safetensors"]).fine().out;
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    assert_eq!(info["files"][1]["file"], "parts/b.csv");
    assert_eq!(
        info["files"][1]["columns"],
        "the first row is a header; head = subject, relation = predicate, tail = object; not used: id"
    );
    let twice = place.run_with_stdin(&["info", "-", "-", "--model", "entity.safetensors"], common::WORLD);
    assert!(twice.err.contains("only one of GRAPH and --with can be standard input (-)"), "{}", twice.err);
    // The hint is a flag to copy.
    place.write("odd.csv", "n,drug,how,gene name\n1,a,hits,b\n2,b,hits,c\n3,c,binds,d\n4,d,binds,e\n");
    let odd = place.run(&["info", "odd.csv", "--model", "entity.safetensors"]);
    assert_eq!(
        odd.err,
        "error: odd.csv:1: expected 3 comma-separated fields, found 4; hint: this file has columns n, drug, how, gene \
         name: try --columns 'drug,how,gene name', or quote names that contain commas\n"
    );
    let chosen = place.run(&["info", "odd.csv", "--columns", "drug,how,gene name", "--model", "entity.safetensors"]);
    assert_eq!(chosen.code, Some(0), "{}", chosen.err);
}

/// Literals are counted by their properties, and labels are read.
#[test]
fn what_rdf_has_besides_triples_is_said() {
    let place = Place::new();
    let turtle = "@prefix : <http://e.org/> .\n@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n\
        :a :r :b ; rdfs:label \"Ann\"@en ; :age 7 ; :note \"x\" , \"y\" .\n:b :r :a ; :size 1 , 2 , 3 ; :age 8 ; :id \"b\" .\n";
    place.write("g.ttl", turtle);
    let ran = place.run(&["info", "g.ttl", "--model", "entity.safetensors", "--language", "de,en"]);
    assert_eq!(ran.err, "note: g.ttl: left out: 8 literals (size 3, age 2, note 2, …)\n");
    let out = ran.fine().out;
    assert!(
        out.contains("triples        2; literals skipped: 8\nlabels         1 of 2 entities, 0 of 1 relations\n"),
        "{out}"
    );
    let rest =
        [":age", ":note", ":id"].iter().zip([2, 2, 1]).map(|(name, count)| format!("               {count}  {name}\n"));
    assert!(out.contains(&format!("literals       3  :size\n{}", rest.collect::<String>())), "{out}");
    place.write("g.trig", "@prefix : <http://e.org/> .\n:g { :a :r :b } :h { :b :r :a }\n");
    let ran = place.run(&["info", "g.trig", "--model", "entity.safetensors"]);
    assert_eq!(ran.err, "note: g.trig: 2 named graphs merged\n");
    assert!(ran.fine().out.contains("(trig)\n"));
}

#[test]
fn bad_rows_are_skipped_if_allowed() {
    let place = Place::new();
    place.write("bad.tsv", format!("{}only two\tfields\n", common::WORLD));
    let args = ["predict", "bad.tsv", "Portugal", "borders", "?", "--lenient", "--walks", "2"];
    let ran = place.run(&[&args[..], &["--model", "entity.safetensors"]].concat());
    assert_eq!(ran.code, Some(0));
    assert!(ran.err.starts_with("warning: 1 of 12 rows skipped as malformed; the first: bad.tsv:12: "), "{}", ran.err);
}

/// A program that asks one question at a time gets each answer before it asks the next.
#[test]
fn answers_come_at_once() {
    let place = Place::new();
    let args = predict_args(&["--queries", "-", "--json"]);
    let mut child = place.command(&args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for head in ["Portugal", "Spain"] {
        writeln!(stdin, "{head}\tborders\t?").unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert!(line.starts_with(&format!("{{\"query\":[\"{head}\"")), "{line}");
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

/// `… | head` is no error.
#[test]
fn a_closed_pipe_is_silent() {
    let place = Place::new();
    // Far more output than a pipe holds.
    place.write("many.tsv", "Portugal\tborders\t?\n".repeat(3000));
    let args = predict_args(&["--queries", "many.tsv", "--json"]);
    let mut child = place.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 100]).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

/// Ctrl-C ends a run at once; a shell then shows status 130.
#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_run() {
    let place = Place::new();
    let args = predict_args(&["--queries", "-"]);
    let mut command = place.command(&args);
    if cfg!(target_os = "linux") {
        // A shell starts its background jobs with the signal ignored, and what is ignored is inherited.
        let mut env = std::process::Command::new("env");
        env.arg("--default-signal=INT").arg(command.get_program()).args(command.get_args());
        env.current_dir(command.get_current_dir().unwrap());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => env.env(name, value),
                None => env.env_remove(name),
            };
        }
        command = env;
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    writeln!(child.stdin.as_mut().unwrap(), "Portugal\tborders\t?").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let status = child.wait().unwrap();
    use std::os::unix::process::ExitStatusExt;
    // 128 + 2 is what a shell makes of it. Had the signal been ignored, the end of its input would have ended it with status 0.
    assert!(status.signal() == Some(2) || status.code() == Some(130), "{status:?}");
}

#[test]
fn info_counts_right() {
    let place = Place::new();
    let ran = place.run(&["info", "world.tsv", "--json", "--model", "entity.safetensors"]);
    let report = &ran.json()[0];
    // By hand: Lisbon, Madrid, Paris, Reykjavik, Iceland have one neighbour; Portugal, France, Europe three; Spain four;
    // Nowhere none: sum 18 over ten.
    let want = json!({
        "entities": 10, "relations": 3, "triples": 10, "duplicates": 1, "literals": 0,
        "literals_by_predicate": [], "labels": {"entities": 0, "relations": 0}, "about": 0, "structure": 0, "derived": 0, "blank": 0, "obsolete": 0,
        "named_graphs": 0, "undirected": 0, "skipped": 0,
        "degree": {"min": 0, "median": 1.0, "mean": 1.8, "max": 4},
        "isolated": 1, "components": 3, "largest_component": 7, "self_loops": 1,
        "top_relations": [
            {"name": "capital_of", "triples": 4}, {"name": "in", "triples": 4}, {"name": "borders", "triples": 2},
        ],
        "bytes": report["graph"]["bytes"],
    });
    assert_eq!(report["graph"], want);
    let query = &report["query"];
    // The least the rule gives, for three kinds of start.
    assert_eq!((&query["base_walks"], &query["walks"], &query["length"]), (&json!(16), &json!(48), &json!(12)));
    assert!(query["seconds"].as_f64().unwrap() > 0.0 && query["bytes"].as_u64().unwrap() > 48 * 12 * 256);
    let out = place.run(&["info", "world.tsv", "--model", "relation.safetensors"]).ok();
    assert!(out.contains("triples         10; duplicates dropped: 1\n"), "{out}");
    assert!(out.contains("components      3; the largest has 70.0 % of the entities\n"), "{out}");
    assert!(out.contains("relation query  64 walks of 12 positions a pass\n"), "{out}");
}

#[test]
fn the_doctor_finds_nothing() {
    let place = Place::new();
    let ran = place.run(&["doctor", "--json", "--model", "entity.safetensors"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    let report = &ran.json()[0];
    assert_eq!((&report["ok"], &report["models"][0]["task"]), (&json!(true), &json!("entity")));
    // bf16 is the default where the processor multiplies it, and only there.
    let native = report["bf16"] == "native";
    assert_eq!(report["precision"], if native { "bf16" } else { "f32" });
    assert_eq!(
        (&report["precision"], &report["models"][0]["precision"]),
        (&json!(default_precision()), &json!(default_precision()))
    );
    let tests = report["tests"].as_array().unwrap();
    // Three known answers, every other instruction set, threads.
    assert_eq!(tests.len(), 3 + report["simd_available"].as_array().unwrap().len() - 1 + 1);
    assert!(tests.iter().all(|t| t["ok"] == true));
}

#[test]
fn import_writes_a_checkpoint() {
    let place = Place::new();
    let from = concat!(env!("CARGO_MANIFEST_DIR"), "/../flock-model/tests/data/pytorch-2.15.pth");
    let out = place.run(&["import", from, "out.safetensors"]).ok();
    assert!(out.starts_with("out.safetensors: entity model, "), "{out}");
    let checkpoint = flock_kg::model::checkpoint::Checkpoint::read(place.path("out.safetensors")).unwrap();
    assert!(out.ends_with(&format!("SHA-256 {}\n", checkpoint.hash)));
    // It carries a checksum: a flipped bit in its last weight is noticed.
    let mut bytes = std::fs::read(place.path("out.safetensors")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    let damaged = flock_kg::model::checkpoint::Checkpoint::from_bytes("out", &bytes).unwrap_err().to_string();
    assert!(damaged.starts_with("out: damaged: the checksum"), "{damaged}");
}

#[test]
fn a_checkpoint_is_made_from_others() {
    use flock_kg::model::checkpoint::Checkpoint;
    let place = Place::new();
    let model = "entity.safetensors";
    let rule = ["--least-walks", "64", "--walks-per-degree", "1.5"];
    let out = place.run(&[&["checkpoint", model, "--half", "--out", "half.safetensors"], &rule[..]].concat()).ok();
    let (whole, half) = [model, "half.safetensors"].map(|f| Checkpoint::read(place.path(f)).unwrap()).into();
    assert!(out.starts_with("half.safetensors: entity model, ") && out.ends_with(&format!("SHA-256 {}\n", half.hash)));
    assert_eq!((whole.meta().n_least, half.meta().n_least), (16, 64));
    assert_eq!((whole.meta().n_per_degree, half.meta().n_per_degree), (0.0, 1.5));
    let ran = place.run(&["checkpoint", model, "--walks-per-degree", "nan", "--out", "never.safetensors"]);
    assert!(ran.code == Some(2) && ran.err.contains("expected a number from 0 to 64"), "{ran:?}");
    assert_eq!(half.weights.values, whole.weights.in_half_precision().values);

    let wide = ["checkpoint", model, "--width", "96", "--seed", "4", "--out", "wide.safetensors"];
    assert!(place.run(&wide).ok().starts_with("wide.safetensors: entity model, "));
    let wide = Checkpoint::read(place.path("wide.safetensors")).unwrap();
    assert_eq!((wide.meta().width, wide.weights), (96, whole.weights.widened(96, 4).unwrap()));
    let ran = place.run(&["checkpoint", model, "--width", "100", "--out", "never.safetensors"]);
    assert!(ran.code == Some(2) && ran.err.contains("expected 32, 64, 96 or 128"), "{ran:?}");
    let ran = place.run(&["checkpoint", model, "--width", "32", "--out", "never.safetensors"]);
    assert!(ran.code == Some(1) && ran.err.contains("width is 32; it must be at least the model's"), "{ran:?}");

    // The mean of a model and itself has its weights.
    place.run(&["checkpoint", model, model, "--out", "mean.safetensors"]).ok();
    let mean = Checkpoint::read(place.path("mean.safetensors")).unwrap();
    assert_eq!(mean.weights.values, whole.weights.values);
    let ran = place.run(&["checkpoint", model, "relation.safetensors", "--out", "never.safetensors"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("relation model") && !place.path("never.safetensors").exists(), "{ran:?}");
}

#[test]
fn help_version_and_completions() {
    let place = Place::new();
    assert_eq!(place.run(&["--version"]).ok(), format!("flock-kg {}\n", env!("CARGO_PKG_VERSION")));
    for command in [&["--help"][..], &["predict", "--help"], &["info", "--help"], &["doctor", "--help"]] {
        assert!(place.run(command).ok().contains("Example"), "{command:?}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = place.run(&["completions", shell]).ok();
        assert!(script.contains("predict") && script.contains("novel"), "{shell}");
    }
}

#[test]
fn manual_pages() {
    let place = Place::new();
    let page = place.run(&["man"]).ok();
    assert!(page.contains(".TH flock-kg 1") && page.contains("flock\\-kg\\-predict(1)"), "{page}");
    place.run(&["man", "--out", "pages/man1"]).ok();
    let read = |name: &str| std::fs::read_to_string(place.path("pages/man1").join(name)).unwrap();
    // Every page that the first one names is there, and so are those of commands below commands.
    assert_eq!(read("flock-kg.1"), page);
    let named: Vec<_> = page.lines().filter_map(|line| line.strip_suffix("(1)")).collect();
    assert!(named.len() > 10, "{named:?}");
    for name in named {
        assert!(read(&format!("{}.1", name.replace('\\', ""))).contains(".SH SYNOPSIS"), "{name}");
    }
    assert!(read("flock-kg-predict.1").contains("Spain"));
    assert!(read("flock-kg-datasets-fetch.1").contains("\\-\\-data"));
    // A file where the directory should be.
    std::fs::write(place.path("taken"), "").unwrap();
    let ran = place.run(&["man", "--out", "taken"]);
    assert_eq!((ran.code, ran.err.starts_with("error: taken: ")), (Some(1), true), "{ran:?}");
}

/// Every format has the same rows as the JSON objects, and a file gets its name when it is complete.
#[test]
fn answers_as_records() {
    let place = Place::new();
    place.write("q.tsv", "Portugal\tborders\t?\nPortgual\tborders\t?\nPortugal\t?\tSpain\n");
    let ask = |args: &[&str]| place.predict(&[&["--queries", "q.tsv", "--top", "2", "--passes", "2"], args].concat());
    let objects = ask(&["--json"]).json();
    let csv = ask(&["--output", "csv"]);
    assert_eq!(csv.code, Some(1), "one question fails, the others are answered");
    assert!(csv.err.starts_with("error: q.tsv:2: unknown entity \"Portgual\""), "{}", csv.err);
    let mut reader = csv::Reader::from_reader(csv.out.as_bytes());
    let header = "head,relation,tail,rank,answer,label,probability,probability_from,logit,spread,visits,known";
    assert_eq!(reader.headers().unwrap().iter().collect::<Vec<_>>().join(","), header);
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 4);
    let answers = [&objects[0], &objects[0], &objects[2], &objects[2]];
    for (i, (row, object)) in rows.iter().zip(answers).enumerate() {
        let answer = &object["answers"][i % 2];
        assert_eq!(json!([row[0], row[1], row[2]]), object["query"]);
        assert_eq!(
            (&row[4], &row[5], &row[7]),
            (answer["name"].as_str().unwrap(), "", object["probability_from"].as_str().unwrap())
        );
        // All digits: the text is the number.
        for (column, key) in [(3, "rank"), (6, "probability"), (8, "logit"), (9, "spread")] {
            assert_eq!(row[column].parse::<f64>().unwrap(), answer[key].as_f64().unwrap(), "{key}");
        }
        assert_eq!(&row[10], answer["visits"].as_u64().map_or(String::new(), |v| v.to_string()));
        assert_eq!(row[11].parse::<bool>().unwrap(), answer["known"].as_bool().unwrap());
    }
    let lines = ask(&["--output", "jsonl"]).json();
    assert_eq!((lines.len(), &lines[0]["answer"]), (4, &objects[0]["answers"][0]["name"]));
    assert_eq!(lines[0]["probability"], objects[0]["answers"][0]["probability"]);
    assert_eq!(ask(&["--output", "tsv"]).out.lines().next().unwrap(), header.replace(',', "\t"));
    assert!(ask(&["--output", "md"]).out.starts_with("| head | relation | tail | rank |"));

    // The ending of the file names the format.
    place.predict(&["Portugal", "borders", "?", "--explain", "--out", "a.csv"]).ok();
    let text = std::fs::read_to_string(place.path("a.csv")).unwrap();
    assert!(text.starts_with(&format!("{header},reason\n")), "{text}");
    place.predict(&["Portugal", "borders", "?", "--out", "a.parquet"]).ok();
    let bytes = std::fs::read(place.path("a.parquet")).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    place.predict(&["Portugal", "borders", "?", "--out", "a.txt"]).ok();
    assert_eq!(
        std::fs::read_to_string(place.path("a.txt")).unwrap(),
        place.predict(&["Portugal", "borders", "?"]).ok(),
        "a file has the same table"
    );
    assert!(!place.path("a.csv.partial").exists() && !place.path("a.parquet.partial").exists());
    let ran = place.predict(&["Portugal", "borders", "?", "--out", "nowhere/a.csv"]);
    assert!(ran.err.starts_with("error: --out nowhere/a.csv.partial: cannot write: "), "{}", ran.err);
    let ran = place.predict(&["Portugal", "borders", "?", "--out", "."]);
    assert!(ran.err.contains("is a directory, expected a file"), "{}", ran.err);
    let ran = place.predict(&["Portugal", "borders", "?", "--json", "--output", "csv"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn candidates_by_type_and_range() {
    let place = Place::new();
    let asked = |question: [&'static str; 3], args: &[&'static str]| {
        let ran = place.predict(&[&question[..], &["--json", "--top", "0"], args].concat());
        let mut names: Vec<String> = names(&ran.json()[0]).into_iter().map(String::from).collect();
        names.sort_unstable();
        names.join(" ")
    };
    let tails = ["Portugal", "borders", "?"];
    assert_eq!(asked(tails, &["--among-type", "in=Europe"]), "France Portugal Spain");
    assert_eq!(asked(tails, &["--among-range", "borders"]), "France Spain");
    assert_eq!(asked(tails, &["--among-domain", "capital_of"]), "Lisbon Madrid Paris Reykjavik");
    // All conditions together.
    assert_eq!(asked(tails, &["--among-range", "borders", "--among-domain", "borders"]), "Spain");
    assert_eq!(asked(["?", "borders", "Spain"], &["--among-type", "in=Europe", "--novel"]), "France Spain");
}

#[test]
fn other_commands_have_records_too() {
    let place = Place::new();
    let model = ["--model", "entity.safetensors"];
    let info = place.run(&[&["info", "world.tsv", "--output", "jsonl"], &model[..]].concat()).json();
    let fact = |name: &str| info.iter().find(|row| row["fact"] == name).unwrap()["value"].clone();
    assert_eq!((fact("graph.entities"), fact("graph.top_relations.1.triples")), (json!("10"), json!("4")));
    let explain = ["explain", "world.tsv", "Portugal", "borders", "Spain", "--walks", "4", "--no-check"];
    let reasons = place.run(&[&explain[..], &model, &["--output", "csv"]].concat()).ok();
    assert!(reasons.starts_with("rank,share,count,steps,reason\n1,"), "{reasons}");
    let datasets = place.run(&["datasets", "--output", "jsonl"]).json();
    assert!(datasets.len() == 57 && datasets[0]["n"].is_number(), "{:?}", datasets[0]);
    // The old spelling is still taken where no graph file is read.
    assert_eq!(place.run(&["datasets", "--format", "csv"]).ok(), place.run(&["datasets", "--output", "csv"]).ok());
}
