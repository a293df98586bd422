//! Reasons, budgets and calibrated probabilities on the command line.

mod common;

use std::process::Stdio;

use common::Place;
use serde_json::json;

const MODELS: [&str; 4] = ["--model", "entity.safetensors", "--model", "relation.safetensors"];

#[test]
fn explanations_in_words_json_and_svg() {
    let place = Place::new();
    place.write("world.tsv", format!("{}Portugal\tlikes <b>\tR&D\nR&D\tin\tSpain\n", common::WORLD));
    let explain = |args: &[&str]| place.run(&[&["explain", "world.tsv"], args, &MODELS, &["--walks", "4"]].concat());
    let out = explain(&["Portugal", "borders", "Spain", "--svg", "why.svg"]).ok();
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "Portugal  borders  ?  →  Spain");
    assert!(lines[1].starts_with("logit ") && lines[1].ends_with("4 passes, n = 4, seed 0"), "{}", lines[1]);
    assert_eq!(lines[2], "the graph has this triple; it is hidden here, so that the reasons are others");
    assert_eq!(lines[3], "share  count  reason");
    // The two short ways that are left once the triple is hidden: through Europe, and through R&D.
    let ways = ["Portugal —in→ Europe ←in— Spain", "Portugal —likes <b>→ R&D —in→ Spain"];
    assert!(lines[4..6].iter().all(|l| ways.iter().any(|w| l.ends_with(w))), "{out}");
    assert!(out.contains("edges of the best reasons the logit falls by") && out.contains("random ones around them by"));
    let svg = std::fs::read_to_string(place.path("why.svg")).unwrap();
    assert!(
        svg.contains("R&amp;D") && svg.contains("likes &lt;b&gt;") && !svg.contains("<b>") && svg.ends_with("</svg>\n")
    );

    let found = explain(&["Portugal", "borders", "France", "--json", "--no-check", "--passes", "2"]).json().remove(0);
    assert_eq!((&found["known"], &found["deletion"], &found["passes"]), (&json!(false), &json!(null), &json!(2)));
    assert_eq!(found["query"], json!(["Portugal", "borders", "?"]));
    let shares: f64 = found["reasons"].as_array().unwrap().iter().map(|r| r["share"].as_f64().unwrap()).sum();
    assert!(shares > 0.0 && shares <= found["joined"].as_f64().unwrap() + 1e-9);
    // Heads and relations can be explained too.
    let head = explain(&["Spain", "borders", "France", "--blank", "head", "--json", "--no-check"]).json().remove(0);
    assert_eq!((&head["query"], &head["answer"]), (&json!(["?", "borders", "France"]), &json!("Spain")));
    let relation = explain(&["Spain", "in", "Europe", "--blank", "relation", "--json"]).json().remove(0);
    assert_eq!((&relation["query"], &relation["answer"]), (&json!(["Spain", "?", "Europe"]), &json!("in")));
    let unknown = explain(&["Portgual", "borders", "Spain"]);
    assert_eq!(unknown.code, Some(1));
    assert_eq!(unknown.err, "error: unknown entity \"Portgual\"; near names: \"Portugal\"\n");
    // An island cannot be reached from elsewhere.
    assert!(explain(&["Portugal", "in", "Iceland"]).ok().contains("no walk joins the query to this answer"));
}

#[test]
fn one_line_of_reason_for_each_answer_and_a_budget() {
    let place = Place::new();
    let out = place.predict(&["Portugal", "borders", "?", "--explain", "--top", "3"]).ok();
    assert!(out.lines().nth(1).unwrap().ends_with("reason"), "{out}");
    let reply = place.predict(&["Portugal", "borders", "?", "--explain", "--json", "--top", "0"]).json().remove(0);
    let spain = reply["answers"].as_array().unwrap().iter().find(|a| a["name"] == "Spain").unwrap();
    assert_eq!(spain["reason"]["start"], "Portugal");
    assert_eq!(spain["reason"]["steps"].as_array().unwrap().last().unwrap()["to"], "Spain");

    let steady =
        place.predict(&["Portugal", "borders", "?", "--budget", "60s", "--json", "--top", "1"]).json().remove(0);
    assert_eq!(steady["stopped"], "steady");
    let passes = steady["passes"].as_u64().unwrap();
    assert!(passes >= 5);
    // A budget changes how many passes there are, and nothing else.
    let asked = ["Portugal", "borders", "?", "--json", "--top", "1", "--passes", &passes.to_string()];
    assert_eq!(place.predict(&asked).json()[0]["answers"], steady["answers"]);
    let capped = place.predict(&["Portugal", "borders", "?", "--budget", "60s", "--passes", "2"]).ok();
    assert!(capped.contains("\n2 passes: no more were allowed\n"), "{capped}");
    let hasty = place.predict(&["Portugal", "borders", "?", "--budget", "0ms"]).ok();
    assert!(hasty.contains("\n1 passes: time was up\n"), "{hasty}");
    let wrong = place.predict(&["Portugal", "borders", "?", "--budget", "fast"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("expected a time such as 300ms, 2s, 1.5s, 5m or 1m30s, up to 1 hour"), "{}", wrong.err);
}

#[test]
fn calibrated_probabilities_are_used_and_said() {
    let place = Place::new();
    let few = place.run(&["calibrate", "world.tsv", "--model", "entity.safetensors", "--walks", "2"]);
    assert_eq!(few.code, Some(1));
    assert!(few.err.contains("expected at least 40: the graph has only 10 triples"), "{}", few.err);

    let ring: String =
        (0..120).map(|i| format!("n{i}\tnext\tn{}\nn{i}\tskip\tn{}\n", (i + 1) % 120, (i + 2) % 120)).collect();
    place.write("ring.tsv", ring);
    let calibrate = ["calibrate", "ring.tsv", "--model", "entity.safetensors", "--walks", "4", "--svg", "r.svg"];
    let out = place.run(&calibrate).ok();
    assert!(out.starts_with("entity: expected calibration error ") && out.contains("24 held-out questions"), "{out}");
    assert!(out.ends_with("kept in ring.tsv.calibration.json; predict uses it from now on\n"));
    assert!(std::fs::read_to_string(place.path("r.svg")).unwrap().contains("stated probability"));
    let ask = ["predict", "ring.tsv", "n0", "next", "?", "--model", "entity.safetensors", "--walks", "4"];
    let out = place.run(&ask).ok();
    assert!(out.contains("probabilities are calibrated on this graph: expected error "), "{out}");
    let reply = place.run(&[&ask[..], &["--json"]].concat()).json().remove(0);
    assert_eq!(reply["calibration"]["queries"], 24);
    let answer = &reply["answers"][0];
    let (logit, p) = (answer["logit"].as_f64().unwrap(), answer["probability"].as_f64().unwrap());
    assert!((p - 1.0 / (1.0 + (-logit).exp())).abs() > 1e-6, "not mapped: {p}");
    // The same for an explanation: n5 is no known answer, so nothing is hidden and the score is that of predict.
    let why =
        ["explain", "ring.tsv", "n0", "next", "n5", "--model", "entity.safetensors", "--walks", "4", "--no-check"];
    let out = place.run(&[&why[..], &["--passes", "1"]].concat()).ok();
    assert!(out.lines().nth(1).unwrap().contains(" (calibrated on this graph), 1 passes"), "{out}");
    let found = place.run(&[&why[..], &["--passes", "1", "--json"]].concat()).json().remove(0);
    let all = place.run(&[&ask[..], &["--json", "--top", "0"]].concat()).json().remove(0);
    let n5 = all["answers"].as_array().unwrap().iter().find(|a| a["name"] == "n5").unwrap();
    assert_eq!((&found["logit"], &found["probability"]), (&n5["logit"], &n5["probability"]));
    assert_eq!(found["calibration"], reply["calibration"]);
    // Asked in another way it is not used, and that is said.
    for (how, reason) in [
        (["--walks", "4", "--passes", "2"], "the calibration was made with 1 passes, not used with 2"),
        (["--walks", "5", "--passes", "1"], "the calibration was made with n = 4, not used with n = 5"),
    ] {
        let other = place.run(&[&ask[..7], &how, &["--json"]].concat());
        let said = format!("warning: ring.tsv.calibration.json: {reason}; hint: flock-kg calibrate with this --model");
        assert!(other.err.starts_with(&said), "{other:?}");
        let reply = other.json().remove(0);
        let (logit, p) = (reply["answers"][0]["logit"].as_f64().unwrap(), &reply["answers"][0]["probability"]);
        assert!((p.as_f64().unwrap() - 1.0 / (1.0 + (-logit).exp())).abs() < 1e-12);
        assert!(reply["calibration"].is_null() && reply["calibration_unused"] == reason);
    }
    assert!(place.run(&why).err.contains("made with 1 passes, not used with 4"));
    // Another model's probabilities are its own, and a broken file is named.
    let other = ["predict", "ring.tsv", "n0", "?", "n1", "--model", "relation.safetensors", "--walks", "4", "--json"];
    assert!(place.run(&other).json()[0]["calibration"].is_null());
    place.write("ring.tsv.calibration.json", "{");
    let broken = place.run(&ask);
    assert_eq!(broken.code, Some(1));
    assert!(broken.err.starts_with("error: ring.tsv.calibration.json: found EOF"), "{}", broken.err);
    // As the hint says: calibrate makes it anew, and it is there even if nobody reads what is said about it.
    let mut child = place.command(&calibrate).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let again = child.wait_with_output().unwrap();
    assert_eq!(again.status.code(), Some(0));
    let said = String::from_utf8(again.stderr).unwrap();
    assert!(said.starts_with("warning: ring.tsv.calibration.json: found EOF"), "{said}");
    assert_eq!(place.run(&ask).code, Some(0));
    // A file that another graph has taken the place of.
    place.write("ring.tsv", "n0\tnext\tn1\nn1\tnext\tn2\n");
    let other = place.run(&ask);
    assert!(
        !other.out.contains("calibrated") && other.err.contains("of a graph of another size, not used"),
        "{other:?}"
    );
}

#[test]
fn calibrations_are_kept_elsewhere_or_at_least_printed() {
    let place = Place::new();
    let ring: String = (0..120).map(|i| format!("n{i}\tnext\tn{}\n", (i + 1) % 120)).collect();
    place.write("ring.tsv", &ring);
    let how = ["--model", "entity.safetensors", "--walks", "2"];
    let calibrate = |more: &[&str]| place.run(&[&["calibrate", "ring.tsv"], &how[..], more].concat());
    let ask =
        |more: &[&str]| place.run(&[&["predict", "ring.tsv", "n0", "next", "?", "--json"], &how[..], more].concat());

    let out = calibrate(&["--out", "kept.json"]).ok();
    assert!(out.ends_with("kept in kept.json; predict uses it with --calibration kept.json\n"), "{out}");
    assert!(ask(&[]).json()[0]["calibration"].is_null());
    assert_eq!(ask(&["--calibration", "kept.json"]).json()[0]["calibration"]["queries"], 12);
    let none = ask(&["--calibration", "nope.json"]);
    assert_eq!(none.code, Some(1));
    assert!(none.err.starts_with("error: nope.json: "), "{}", none.err);

    // Where it cannot be written, the result is not lost; and no half-written file stays.
    let lost = calibrate(&["--out", "missing/kept.json", "--svg", "r.svg"]);
    assert_eq!(lost.code, Some(1));
    assert!(lost.err.starts_with("error: missing/kept.json: "), "{}", lost.err);
    assert!(lost.err.contains("the result is on standard output instead; hint: keep that, or use --out FILE"));
    assert_eq!(lost.out, std::fs::read_to_string(place.path("kept.json")).unwrap());
    let files = std::fs::read_dir(place.path(".")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    assert!(files.into_iter().all(|name| !name.ends_with(".tmp")));
}

#[test]
fn default_calibrations_come_with_the_model() {
    let place = Place::new();
    for (file, count) in [("a.tsv", 120), ("b.tsv", 90)] {
        let ring = (0..count).map(|i| format!("n{i}\tnext\tn{}\nn{i}\tskip\tn{}\n", (i + 1) % count, (i + 2) % count));
        place.write(file, ring.collect::<String>());
    }
    let model = ["--model", "entity.safetensors"];
    let ask =
        |more: &[&str]| place.run(&[&["predict", "world.tsv", "Portugal", "borders", "?"], &model[..], more].concat());
    let header = |out: &str| out.lines().nth(1).unwrap().split_whitespace().nth(2).unwrap().to_string();
    assert_eq!(header(&ask(&[]).ok()), "score");

    let fit =
        |graphs: &[&str]| place.run(&[&["calibrate", "--queries", "8", "--default-from"], graphs, &model[..]].concat());
    let one = fit(&["a.tsv"]);
    assert_eq!(one.code, Some(1));
    assert!(one.err.starts_with("error: found 1 graph, expected at least 2"), "{}", one.err);
    let out = fit(&["a.tsv", "b.tsv"]).ok();
    assert!(out.starts_with("entity, 1 passes: expected calibration error on a graph that was left out "), "{out}");
    assert!(
        out.contains("\na ") && out.contains("\nb ") && out.ends_with("kept in entity.calibration.json\n"),
        "{out}"
    );

    // It is found beside the model, used, and said.
    let out = ask(&[]).ok();
    assert_eq!(header(&out), "probability");
    assert!(out.contains("\nprobabilities are calibrated on 2 other graphs: expect an error of "), "{out}");
    let reply = ask(&["--json"]).json().remove(0);
    assert_eq!((&reply["probability_from"], &reply["default_calibration"]["graphs"]), (&json!("default"), &json!(2)));
    assert!(reply.get("calibration").is_none());
    // A model of another hash has none of it, and a broken file is named.
    std::fs::copy(place.path("entity.calibration.json"), place.path("relation.calibration.json")).unwrap();
    let relation = ["predict", "world.tsv", "Portugal", "?", "Spain", "--model", "relation.safetensors", "--json"];
    assert_eq!(place.run(&relation).json()[0]["probability_from"], "score");
    place.write("entity.calibration.json", "{");
    let broken = ask(&[]);
    assert_eq!(broken.code, Some(1));
    assert!(broken.err.starts_with("error: entity.calibration.json: found EOF"), "{}", broken.err);

    // One of the two is named, not both; the built-in model has no file to keep it beside.
    assert_eq!(place.run(&["calibrate", "world.tsv", "--default-from", "a.tsv", "b.tsv"]).code, Some(2));
    assert_eq!(place.run(&["calibrate"]).code, Some(2));
    let inside = place.run(&["calibrate", "--default-from", "a.tsv", "b.tsv"]);
    assert!(
        inside.err.contains("the built-in model has no file") && inside.err.contains("hint: --out FILE"),
        "{inside:?}"
    );
}

#[test]
fn alike_paths_are_one_reason() {
    let place = Place::new();
    // Twelve drugs between A and B, all by the same relations; and a way of five hops.
    let middle = (0..12).map(|i| format!("A\tuses\tm{i}\nm{i}\ttreats\tB\n"));
    let long = "A\tx\tp\np\tx\tq\nq\tx\tr\nr\tx\ts\ns\tx\tB\n";
    place.write("drugs.tsv", middle.collect::<String>() + long);
    let explain = |more: &[&str]| {
        let how = ["--walks", "16", "--model", "entity.safetensors", "--hide", "1"];
        place.run(&[&["explain", "drugs.tsv", "A", "uses", "B"], &how[..], more].concat())
    };
    let found = explain(&["--json"]).json().remove(0);
    let reasons = found["reasons"].as_array().unwrap();
    let alike: Vec<_> = reasons.iter().filter(|r| r["steps"].as_array().unwrap().len() == 2).collect();
    assert_eq!((alike.len(), &alike[0]["paths"]), (1, &json!(12)), "{found}");
    assert!(reasons.iter().all(|r| r["steps"].as_array().unwrap().len() <= 4));
    // The first reason is hidden whole: all 24 edges of its twelve paths.
    assert_eq!((&reasons[0]["paths"], found["deletion"]["edges"].as_array().unwrap().len()), (&json!(12), 24));
    let out = explain(&["--no-check", "--svg", "why.svg"]).ok();
    assert!(out.contains("  12 paths: uses · treats\n                A —uses→ m"), "{out}");
    assert!(std::fs::read_to_string(place.path("why.svg")).unwrap().contains(">12 paths</text>"));
    // Longer ones are counted, and listed on request.
    assert!(found["longer"].as_u64().unwrap() > 0 && out.contains("more hops than are listed (share 0."), "{out}");
    assert_eq!(explain(&["--json", "--no-check", "--max-hops", "64"]).json()[0]["longer"], 0);
    let short = explain(&["--json", "--no-check", "--max-hops", "2"]).json().remove(0);
    assert!(short["reasons"].as_array().unwrap().iter().all(|r| r["steps"].as_array().unwrap().len() <= 2));
}
