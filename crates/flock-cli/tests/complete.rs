//! Missing links and scores of triples on the command line.

mod common;

use std::collections::HashSet;
use std::process::Stdio;
use std::time::Duration;

use common::Place;
use serde_json::Value;

/// `complete` on the small world, with the small model and few walks.
fn complete(place: &Place, args: &[&str]) -> common::Ran {
    let all = ["complete", "world.tsv", "--model", "entity.safetensors", "--walks", "2"];
    place.run(&[&all[..], args].concat())
}

fn triples(rows: &[Value]) -> Vec<[String; 3]> {
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_string();
    rows.iter().map(|row| ["head", "relation", "tail"].map(|key| text(row, key))).collect()
}

#[test]
fn every_format_lists_the_same_links() {
    let place = Place::new();
    let whole = complete(&place, &["--top", "6", "--json"]).fine();
    let list: Value = serde_json::from_str(&whole.out).unwrap();
    let links = triples(list["links"].as_array().unwrap());
    assert_eq!(links.len(), 6);
    let known: HashSet<[String; 3]> = common::WORLD
        .lines()
        .map(|line| {
            let mut parts = line.split('\t').map(str::to_string);
            [(); 3].map(|()| parts.next().unwrap())
        })
        .collect();
    assert!(links.iter().all(|link| !known.contains(link)), "{links:?}");

    let lines = complete(&place, &["--top", "6", "--output", "jsonl"]).fine().json();
    assert_eq!(triples(&lines), links);
    assert_eq!(lines[0]["logit"], list["links"][0]["logit"]);
    let csv = complete(&place, &["--top", "6", "--output", "csv"]).fine();
    assert_eq!(csv.out.lines().count(), 7);
    assert!(
        csv.out
            .starts_with("rank,head,relation,tail,head_label,relation_label,tail_label,score,probability,specificity,")
    );
    let table = complete(&place, &["--top", "6", "--explain"]).fine();
    assert!(table.out.lines().next().unwrap().contains("tail_rank") && table.out.contains("reason"));
    assert!(links.iter().zip(table.out.lines().skip(1)).all(|(link, row)| link.iter().all(|name| row.contains(name))));
    complete(&place, &["--top", "6", "--out", "links.parquet"]).fine();
    assert_eq!(&std::fs::read(place.path("links.parquet")).unwrap()[..4], b"PAR1");

    let scoped = complete(&place, &["--head", "France", "--relation", "borders", "--output", "jsonl"]).fine().json();
    assert!(!scoped.is_empty() && scoped.iter().all(|l| l["head"] == "France" && l["relation"] == "borders"));
    let unknown = complete(&place, &["--head", "Frence"]);
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.err.contains("unknown entity \"Frence\"; near names: \"France\""), "{}", unknown.err);
}

#[test]
fn shards_make_one_list() {
    let place = Place::new();
    let whole = complete(&place, &["--top", "8", "--output", "jsonl"]).fine().json();
    for (part, name) in [("1/2", "a.jsonl"), ("2/2", "b.csv")] {
        complete(&place, &["--top", "8", "--shard", part, "--out", name]).fine();
    }
    let merged = place.run(&["merge", "a.jsonl", "b.csv", "--top", "8", "--output", "jsonl"]).fine().json();
    // Each shard asks for the other ends of its own best links, and may find more by it: the list is at least as good, and a link
    // has the same numbers in both.
    let number = |row: &Value, key: &str| row[key].as_f64().unwrap();
    assert_eq!(merged.len(), whole.len());
    assert!(merged.iter().zip(&whole).all(|(m, w)| number(m, "specificity") >= number(w, "specificity")));
    let (of_merged, of_whole) = (triples(&merged), triples(&whole));
    let common: Vec<_> = (0..8).filter_map(|i| Some((i, of_merged.iter().position(|t| *t == of_whole[i])?))).collect();
    assert!(common.len() >= 4, "{of_merged:?} {of_whole:?}");
    for (w, m) in common {
        assert_eq!(number(&whole[w], "logit").to_bits(), number(&merged[m], "logit").to_bits());
    }
    let wrong = place.run(&["merge", "world.tsv"]);
    assert!(wrong.code == Some(1) && wrong.err.contains("expected a row of a list"), "{}", wrong.err);
    let wrong = complete(&place, &["--shard", "3/2"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("such as 1/4"), "{}", wrong.err);
}

#[test]
fn a_dry_run_says_how_much_there_is() {
    let place = Place::new();
    let said = complete(&place, &["--dry-run"]).fine();
    assert!(said.out.contains(" questions, about ") && said.out.contains("capital_of"), "{}", said.out);
    let json: Value = serde_json::from_str(&complete(&place, &["--dry-run", "--json"]).fine().out).unwrap();
    let places = json["places"].as_array().unwrap();
    let sum: u64 = places.iter().map(|p| p["questions"].as_u64().unwrap()).sum();
    assert!(sum > 0 && json["questions"] == sum);
}

#[test]
fn work_goes_on_after_a_kill() {
    let place = Place::new();
    let args =
        ["complete", "world.tsv", "--model", "entity.safetensors", "--walks", "2", "--pairs", "all", "--top", "9"];
    let whole = place.run(&[&args[..], &["--output", "jsonl"]].concat()).fine();
    // Stopped by its budget at once, then taken up.
    let out = ["--out", "links.jsonl"];
    place.run(&[&args[..], &out, &["--budget", "0s"]].concat()).fine();
    assert!(place.path("links.jsonl.state").exists());
    let again = place.run(&[&args[..], &out].concat()).fine();
    assert!(again.err.contains("going on after"), "{}", again.err);
    assert_eq!(std::fs::read_to_string(place.path("links.jsonl")).unwrap(), whole.out);
    assert!(!place.path("links.jsonl.state").exists());
    // A state of other work is not taken up.
    place.run(&[&args[..], &out, &["--budget", "0s"]].concat()).fine();
    let other = place.run(&[&args[..], &out, &["--seed", "1"]].concat());
    assert!(other.code == Some(1) && other.err.contains("remove it to begin anew"), "{}", other.err);
}

#[test]
fn a_stream_has_each_link_once() {
    let place = Place::new();
    let rows = complete(&place, &["--top", "8", "--stream", "--output", "jsonl"]).fine().json();
    let links = triples(&rows);
    assert_eq!(links.iter().collect::<HashSet<_>>().len(), links.len());
    let whole = triples(&complete(&place, &["--top", "8", "--output", "jsonl"]).fine().json());
    assert!(whole.iter().all(|link| links.contains(link)));
}

#[test]
fn given_triples_are_scored() {
    let place = Place::new();
    place.write("triples.tsv", "Portugal\tborders\tSpain\nPortgual\tborders\tSpain\nSpain\tborders\tParis\n");
    let score = |args: &[&str]| {
        let all = ["score", "world.tsv", "triples.tsv", "--model", "entity.safetensors", "--walks", "2", "--no-header"];
        place.run(&[&all[..], args].concat())
    };
    let ran = score(&["--output", "jsonl"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("near names: \"Portugal\""), "{}", ran.err);
    let rows = ran.json();
    assert_eq!((rows.len(), &rows[0]["known"], &rows[1]["known"]), (2, &Value::Bool(true), &Value::Bool(false)));
    for row in &rows {
        let number = |key: &str| row[key].as_f64().unwrap();
        assert_eq!(number("logit"), (number("tail_logit") + number("head_logit")) / 2.0);
        assert!(number("tail_rank") <= number("tail_candidates") && (0.0..=100.0).contains(&number("head_percentile")));
    }
    // The same triples as rows of a batch.
    let batch =
        ["predict", "world.tsv", "--queries", "triples.tsv", "--model", "entity.safetensors", "--walks", "2", "--json"];
    let batch = place.run(&batch);
    let lines = batch.json();
    assert_eq!(lines[0]["scores"][0]["logit"], rows[0]["logit"]);
    assert!(lines[1]["error"].as_str().unwrap().contains("Portgual"));
    assert_eq!(lines[2]["scores"][0]["as_head"]["rank"], rows[1]["head_rank"]);
    // Without a model of entities triples fail one by one, and questions about relations are answered.
    place.write("mixed.tsv", "Portugal\t?\tSpain\nPortugal\tborders\tSpain\nSpain\t?\tFrance\n");
    let batch = ["predict", "world.tsv", "--queries", "mixed.tsv", "--model", "relation.safetensors", "--walks", "2"];
    let batch = place.run(&[&batch[..], &["--json"]].concat());
    let lines = batch.json();
    assert_eq!((batch.code, lines.len()), (Some(1), 3));
    assert!(lines[1]["error"].is_string() && lines[0]["answers"].is_array() && lines[2]["answers"].is_array());
    // A first row that looks like a header is left out with a note, unless one says that it is none.
    place.write("triples.tsv", "Ada\tlink\tBob\nPortugal\tin\tEurope\nSpain\tin\tEurope\n");
    let all = ["score", "world.tsv", "triples.tsv", "--model", "entity.safetensors", "--walks", "2"];
    let ran = place.run(&all).fine();
    assert!(ran.err.contains("triples.tsv") && ran.err.contains("header"), "{}", ran.err);
    let ran = score(&[]);
    assert!(ran.code == Some(1) && ran.err.contains("Ada, link, Bob"), "{}", ran.err);
}

#[test]
fn the_least_likely_triples_of_a_graph_come_first() {
    let place = Place::new();
    let score = |args: &[&str]| {
        let all = ["score", "world.tsv", "--existing", "--model", "entity.safetensors", "--walks", "2"];
        place.run(&[&all[..], args].concat())
    };
    let rows = score(&["--output", "jsonl"]).fine().json();
    assert_eq!(rows.len(), 10); // the duplicate counts once
    let logits: Vec<f64> = rows.iter().map(|row| row["logit"].as_f64().unwrap()).collect();
    assert!(logits.windows(2).all(|w| w[0] <= w[1]), "{logits:?}");
    assert!(rows.iter().all(|row| row["known"] == true));
    let borders = score(&["--relation", "borders", "--top", "1", "--output", "jsonl"]).fine().json();
    assert_eq!((borders.len(), &borders[0]["relation"]), (1, &Value::from("borders")));
    assert_eq!(score(&["--sample", "4", "--output", "jsonl"]).fine().json().len(), 4);
}

#[test]
fn a_killed_score_goes_on() {
    let place = Place::new();
    let args = [
        "score",
        "world.tsv",
        "--existing",
        "--model",
        "entity.safetensors",
        "--walks",
        "512",
        "--threads",
        "1",
        "--out",
        "doubtful.csv",
    ];
    let mut child = place.command(&args).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // Killed as soon as the journal has a triple: two lines.
    let journal = place.path("doubtful.csv.state");
    loop {
        let lines = std::fs::read_to_string(&journal).map_or(0, |text| text.lines().count());
        if lines >= 2 || child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    let ended = child.wait().unwrap().success();
    let again = place.run(&args).fine();
    assert!(ended || again.err.contains("going on after"), "{}", again.err);
    assert_eq!(std::fs::read_to_string(place.path("doubtful.csv")).unwrap().lines().count(), 11);
    assert!(!journal.exists());
}
