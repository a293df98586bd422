//! `flock-kg eval`, `datasets` and `analyse` from outside.

mod common;

use common::{Place, default_precision};
use flock_kg::eval::partial::{PartialRun, RunKey};
use flock_kg::eval::{AnswerRank, Rank};
use serde_json::Value;

/// A dataset `Toy` and one that is called like a graph of the registry.
fn place() -> Place {
    let place = Place::new();
    for name in ["Toy", "Metafam"] {
        std::fs::create_dir_all(place.path(&format!("kg/{name}"))).unwrap();
        let train: String =
            (0..20).map(|i| format!("e{i}\tnext\te{}\ne{i}\tskip\te{}\n", (i + 1) % 20, (i + 2) % 20)).collect();
        let rest = |from: usize| -> String { (from..from + 6).map(|i| format!("e{i}\tjump\te{}\n", i + 5)).collect() };
        place.write(&format!("kg/{name}/train.txt"), train + "e0\tjump\te5\n");
        place.write(&format!("kg/{name}/valid.txt"), rest(1));
        place.write(&format!("kg/{name}/test.txt"), rest(8));
        place.write(&format!("kg/{name}/meta.json"), format!("{{\"name\": \"{name}\"}}"));
    }
    place
}

const HOW: [&str; 8] = ["--data", "kg", "--model", "entity.safetensors", "--walks", "1", "--passes", "2"];

fn eval(args: &[&'static str]) -> Vec<&'static str> {
    [&["eval"], args, &HOW].concat()
}

#[test]
fn results_hold_numbers_and_protocol() {
    let place = place();
    let out = place.run(&eval(&["Toy", "--json", "--out", "r.json"])).ok();
    let list: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(list, serde_json::from_str::<Value>(&std::fs::read_to_string(place.path("r.json")).unwrap()).unwrap());
    assert!(!place.path("r.json.partial").exists());
    let [e] = &list.as_array().unwrap()[..] else { panic!("{list}") };
    assert_eq!((&e["dataset"], &e["task"], &e["split"]), (&"Toy".into(), &"entity".into(), &"test".into()));
    assert_eq!((&e["queries"], &e["asked"]), (&12.into(), &12.into()));
    for key in ["mrr", "hits1", "hits3", "hits10", "mean_rank"] {
        let [p, r, o] = [&e[key], &e["realistic"][key], &e["optimistic"][key]].map(|v| v.as_f64().unwrap());
        assert!(if key == "mean_rank" { p >= r && r >= o && o >= 1.0 } else { p <= r && r <= o && o <= 1.0 }, "{key}");
    }
    assert!(e["coverage"].is_f64() && e["seconds"].as_f64().unwrap() > 0.0 && e["gflops"].as_f64().unwrap() > 0.0);
    let p = &e["protocol"];
    assert_eq!((&p["seed"], &p["n"], &p["passes"], &p["length"]), (&0.into(), &1.into(), &2.into(), &12.into()));
    assert_eq!((&p["ties"], &p["filtered"]), (&"pessimistic".into(), &true.into()));
    assert_eq!(p["precision"], default_precision());
    assert_eq!(p["filter"], serde_json::json!(["train", "valid", "test"]));
    assert_eq!([&p["graph"], &p["checkpoint"]].map(|h| h.as_str().unwrap().len()), [64, 64]);
    assert!(p["version"].is_string() && e["time"].as_str().unwrap().ends_with('Z'));
    // Threads change nothing but the time.
    let again = place.run(&eval(&["Toy", "--json", "--threads", "1"])).json_text();
    for key in ["mrr", "hits10", "mean_rank", "coverage", "relations", "protocol"] {
        assert_eq!(again[0][key], e[key], "{key}");
    }
}

#[test]
fn a_cut_off_run_goes_on() {
    let place = place();
    let whole = place.run(&eval(&["Toy", "--json", "--out", "whole.json"])).json_text();
    // What a killed run leaves: the beginning of its record. Four queries a batch at 256 walks.
    let args = ["Toy", "--json", "--out", "r.json", "--data", "kg", "--model", "entity.safetensors"];
    let many = [&["eval"], &args[..], &["--walks", "256", "--passes", "1"]].concat();
    let straight = place.run(&many).json_text();
    assert_ne!(straight[0]["protocol"], whole[0]["protocol"]);
    std::fs::remove_file(place.path("r.json")).unwrap();
    place.write("r.json.partial", "{\"flock-kg\":\"eval\",\"format\":3}\n{\"begin\":{\"data");
    let resumed = place.run(&many).json_text();
    assert_eq!((&resumed[0]["mrr"], &resumed[0]["relations"]), (&straight[0]["mrr"], &straight[0]["relations"]));
    // What is on record is not asked again: here four queries whose answers are said to be first.
    let partial = place.path("r.json.partial");
    let key = RunKey {
        run: 0,
        dataset: "Toy".to_string(),
        task: "entity".to_string(),
        split: "test".to_string(),
        protocol: straight[0]["protocol"].clone(),
    };
    let rank = Rank { higher: 0, ties: 0 };
    let mut record = PartialRun::open(&partial, false).unwrap();
    record.resume(&key, Some).unwrap();
    record.append(4, 1.0, &[AnswerRank { rank, filtered: rank, reached: true, score: 0.5, rivals: 19 }; 4]).unwrap();
    drop(record);
    let resumed = place.run(&many).json_text();
    let mrr = |run: &Value| run[0]["mrr"].as_f64().unwrap();
    assert!(mrr(&resumed) > mrr(&straight) && mrr(&resumed) >= 4.0 / 12.0, "{} {}", mrr(&resumed), mrr(&straight));
    // Nor are places used that were taken among other known answers.
    let mut record = PartialRun::open(&partial, false).unwrap();
    record.resume(&key, Some).unwrap();
    drop(record);
    let valid = std::fs::read_to_string(place.path("kg/Toy/valid.txt")).unwrap();
    place.write("kg/Toy/valid.txt", valid.clone() + "e1\tjump\te2\n");
    let other = place.run(&many);
    assert!(other.code == Some(1) && other.err.contains("the run that was cut off has known = "), "{other:?}");
    place.write("kg/Toy/valid.txt", valid);
    place.write("r.json.partial", "something else\n");
    let refused = place.run(&many);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.err.contains("not the record of an evaluation") && refused.err.contains("--fresh"),
        "{}",
        refused.err
    );
    assert_eq!(place.run(&[&many[..], &["--fresh"]].concat()).code, Some(0));
}

/// Three seeds: a row with mean and deviation, a JSON object per seed, ranks with a seed; one seed looks as it always did.
#[test]
fn several_seeds_have_a_mean_and_a_deviation() {
    let place = place();
    let seeds = |args: &[&'static str]| eval(&[args, &["--seed", "4", "--seeds", "3"]].concat());
    let list = place.run(&seeds(&["Toy", "--json", "--out", "r.json", "--ranks", "r.tsv"])).json_text();
    let runs = list.as_array().unwrap();
    let mrr = |e: &Value| e["mrr"].as_f64().unwrap();
    assert_eq!(runs.iter().map(|e| &e["protocol"]["seed"]).collect::<Vec<_>>(), [4, 5, 6]);
    let mean = runs.iter().map(mrr).sum::<f64>() / 3.0;
    let deviation = (runs.iter().map(|e| (mrr(e) - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
    for e in runs {
        let (found, over) = (&e["over_seeds"]["mean"]["mrr"], &e["over_seeds"]["deviation"]["mrr"]);
        assert!((found.as_f64().unwrap() - mean).abs() < 1e-12 && (over.as_f64().unwrap() - deviation).abs() < 1e-12);
    }
    let alone = place.run(&eval(&["Toy", "--json", "--seed", "5", "--ranks", "one.tsv"])).json_text();
    assert_eq!((&alone[0]["mrr"], &alone[0]["sides"]), (&runs[1]["mrr"], &runs[1]["sides"]));
    assert!(alone[0].get("over_seeds").is_none());
    let header = |file: &str| std::fs::read_to_string(place.path(file)).unwrap().lines().next().unwrap().to_string();
    assert_eq!(header("r.tsv"), header("one.tsv") + "\tseed");
    // The seeds are the same ones: every question is level. Against one seed their mean counts.
    let same = place.run(&seeds(&["Toy", "--against", "r.tsv"])).ok();
    assert!(same.contains("+0.0000 to +0.0000"), "{same}");
    let one = place.run(&seeds(&["Toy", "--against", "one.tsv"])).ok();
    assert!(one.contains(&format!("{mean:.4}")) && one.contains(&format!("{:.4}", mrr(&runs[1]))), "{one}");

    let csv = place.run(&seeds(&["Toy", "Metafam", "--output", "csv"])).out;
    let lines: Vec<&str> = csv.lines().collect();
    let titles =
        "dataset,task,queries,n,P,seeds,MRR,MRR ±,Hits@1,Hits@1 ±,Hits@3,Hits@3 ±,Hits@10,Hits@10 ±,coverage,seconds";
    assert_eq!(lines[0], titles);
    assert!(lines[1].starts_with(&format!("Toy,entity,12,1,2,3,{mean:.4},{deviation:.4},")), "{csv}");
    assert!(lines[3].starts_with("mean (2),entity,,,,3,"), "{csv}");
    let jsonl = place.run(&seeds(&["Toy", "--output", "jsonl"])).json();
    assert_eq!((jsonl.len(), &jsonl[0]["seeds"]), (1, &3.into()));
    assert!((jsonl[0]["mrr_deviation"].as_f64().unwrap() - deviation).abs() < 1e-12);
    place.write("p.csv", "dataset,split,flock_mrr\nToy,other,0.5\n");
    let beside = place.run(&seeds(&["Toy", "--compare", "p.csv"])).out;
    assert!(beside.contains(&format!("{mean:.3} ± {deviation:.3}")), "{beside}");
}

#[test]
fn tables_comparisons_and_warnings() {
    let place = place();
    place.write(
        "p.csv",
        "dataset,split,ultra_mrr,ultra_hits10,flock_mrr,flock_hits10\nMetafam,inductive_er,0.238,0.644,0.476,0.935\n",
    );
    let ran = place.run(&eval(&["Toy", "Metafam", "--compare", "p.csv", "--details", "--limit", "4"]));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("warning: Metafam is not as published: test.txt: triples 6, expected 184"), "{}", ran.err);
    for text in [
        "±95 %",
        "mean (2)",
        "beside p.csv, * the best; not the same triples: ours are of a sample, published ones of all test triples",
        "ours (sample) MRR",
        "ours (sample) − flock",
        "0.476*",
        "reached, realistic",
        "relation jump",
    ] {
        assert!(ran.out.contains(text), "no {text:?} in {}", ran.out);
    }
    let markdown = place.run(&eval(&["Metafam", "--compare", "p.csv", "--output", "markdown"])).out;
    assert!(markdown.contains("| dataset | task |") && markdown.contains("**0.476**"), "{markdown}");
    assert!(markdown.contains("\nbeside p.csv\n"), "{markdown}");
    let valid = place.run(&eval(&["Metafam", "--split", "valid", "--compare", "p.csv", "--output", "csv"])).out;
    assert!(valid.contains("dataset,ours (validation) MRR,ultra MRR"), "{valid}");
    let csv = place.run(&eval(&["Metafam", "--compare", "p.csv", "--output", "csv"])).out;
    assert!(csv.starts_with("dataset,task,queries,n,P,MRR") && csv.contains(",flock,"), "{csv}");
    let relation =
        ["eval", "Toy", "--data", "kg", "--model", "relation.safetensors", "--walks", "1", "--passes", "1", "--json"];
    let e = &place.run(&relation).json_text()[0];
    assert_eq!((&e["task"], &e["protocol"]["filtered"], &e["queries"]), (&"relation".into(), &false.into(), &6.into()));
    assert!(e["filtered"]["mrr"].as_f64() >= e["mrr"].as_f64());
}

#[test]
fn published_numbers_are_built_in_for_each_task() {
    let place = place();
    // Toy graphs called like published ones have warnings on standard error.
    let out = |args: &[&str]| {
        let ran = place.run(args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.out
    };
    // Metafam in the paper's tables: flock has MRR 0.476 zero-shot and 0.992 fine-tuned for entities, 0.490 for relations.
    let entity = out(&eval(&["Metafam", "--compare", "published", "--out", "r.json"]));
    assert!(entity.contains("\nbeside published zero-shot numbers, * the best\n"), "{entity}");
    assert!(entity.contains(" flock MRR ") && entity.contains(" 0.476") && entity.contains("Hits@10"), "{entity}");
    assert!(!entity.contains(" 0.490"), "the other task's table has nothing beside it: {entity}");
    let tuned = out(&eval(&["Metafam", "--compare", "published-finetuned"]));
    assert!(tuned.contains("beside published fine-tuned numbers") && tuned.contains(" 0.992"), "{tuned}");
    let mut relation = eval(&["Metafam", "--compare", "published"]);
    let model = relation.iter().position(|arg| *arg == "entity.safetensors").unwrap();
    relation[model] = "relation.safetensors";
    let relation = out(&relation);
    assert!(relation.contains(" 0.490") && !relation.contains(" 0.476"), "{relation}");
    // An earlier run, and the density of the graphs, without any file of numbers.
    let later = out(&["analyse", "compare", "r.json"]);
    assert!(later.contains(" 0.476"), "{later}");
    let density = out(&["analyse", "density", "--format", "csv"]);
    // 54 graphs without Metafam, and the header.
    assert_eq!(density.lines().count(), 54, "{density}");
    // A file of that name is a path like any other.
    place.write("published", "dataset,a_mrr\nMetafam,0.125\n");
    let file = out(&eval(&["Metafam", "--compare", "./published"]));
    assert!(file.contains("beside ./published, * the best") && file.contains(" 0.125"), "{file}");
}

#[test]
fn ranks_are_kept_and_compared() {
    let place = place();
    let first = place.run(&eval(&["Toy", "Metafam", "--ranks", "a.tsv", "--json"])).json_text();
    let text = std::fs::read_to_string(place.path("a.tsv")).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(
        rows[0].join(" "),
        "dataset task split head relation tail side rank ties score candidates reached half_link distance"
    );
    // Two graphs, six test triples, two sides.
    assert_eq!(rows.len(), 1 + 2 * 6 * 2);
    let of_toy: Vec<&Vec<&str>> = rows.iter().filter(|row| row[0] == "Toy").collect();
    let mrr = of_toy.iter().map(|row| 1.0 / row[7].parse::<f64>().unwrap()).sum::<f64>() / of_toy.len() as f64;
    assert!((mrr - first[0]["mrr"].as_f64().unwrap()).abs() < 1e-12, "{mrr}");
    // (e8, jump, e13): only (e0, jump, e5) is in the graph, so neither end has a half-link. 5 apart by next and skip: three moves.
    let one = of_toy.iter().find(|row| row[3] == "e8" && row[6] == "tail").unwrap();
    assert_eq!((one[4], one[5], one[12], one[13]), ("jump", "e13", "0", "3"));
    let strata = &first[0]["strata"];
    assert_eq!(
        (&strata["half_link"]["new_link"]["queries"], &strata["distance"]["3"]["queries"]),
        (&12.into(), &12.into())
    );

    let same = place.run(&eval(&["Toy", "Metafam", "--against", "a.tsv", "--without", "Metafam"]));
    for text in ["95 % over graphs", "mean (2)", "mean without Metafam (1)", "+0.0000 to +0.0000"] {
        assert!(same.out.contains(text), "no {text:?} in {}", same.out);
    }
    let other = place.run(&eval(&["Toy", "--seed", "9", "--against", "a.tsv"]));
    assert!(other.err.contains("12 questions are in one run only"), "{}", other.err);
    let none = place.run(&eval(&["Toy", "--split", "valid", "--against", "a.tsv"]));
    assert!(none.code == Some(1) && none.err.contains("no question in common"), "{none:?}");
    place.write("bad.tsv", "a\tb\n");
    let bad = place.run(&eval(&["Toy", "--against", "bad.tsv"]));
    assert!(bad.code == Some(1) && bad.err.contains("bad.tsv:1: expected the columns of eval --ranks"), "{bad:?}");
}

#[test]
fn errors_say_what_to_do() {
    let place = place();
    let error = |args: &[&'static str]| {
        let ran = place.run(&eval(args));
        assert_eq!(ran.code, Some(1), "{ran:?}");
        ran.err
    };
    assert!(error(&["Metafan"]).contains("unknown dataset \"Metafan\"; near names: Metafam"));
    assert!(error(&["FBNELL"]).contains("hint: flock-kg datasets fetch FBNELL --data DIR, or another --data"));
    assert!(error(&["Toy", "--task", "relation"]).contains("this is an entity model"));
    assert!(error(&["Toy", "--compare", "none.csv"]).starts_with("error: none.csv:"));
    assert!(error(&["transductive"]).contains("no dataset of transductive there"));
    assert!(error(&["Toy", "--out", "kg"]).contains("--out kg: is a directory, expected a file"));
    assert!(!place.path("kg.partial").exists());
}

#[test]
fn lists_and_checks_datasets() {
    let place = place();
    let out = place.run(&["datasets"]).ok();
    assert_eq!(out.lines().count(), 58);
    assert!(out.contains("CC BY-NC-SA 4.0") && out.contains("8/4"));
    let checked = place.run(&["datasets", "--data", "kg"]);
    assert_eq!(checked.code, Some(1));
    assert!(checked.err.contains("Metafam: inference.txt: No such file"), "{}", checked.err);
    assert_eq!(place.run(&["datasets", "--json"]).json().len(), 57);
    let nowhere = place.run(&["datasets", "--data", "gk"]);
    assert_eq!((nowhere.code, nowhere.err.as_str()), (Some(1), "error: --data gk: is no directory\n"));
    // A checksum of any length is compared, not cut.
    let meta = r#"{"name": "Metafam", "sha256": {"train": "abc"}}"#;
    place.write("kg/Metafam/meta.json", meta);
    assert_eq!(place.run(&["datasets", "--data", "kg"]).code, Some(1));
    let fetched = place.run(&["datasets", "fetch", "Metafam", "--data", "kg", "--from", "nowhere"]);
    let skipped = "kg/Metafam: is there already, skipped; flock-kg datasets --data kg checks it\n";
    assert_eq!((fetched.code, fetched.err.as_str()), (Some(0), skipped));
    let fetched = place.run(&["datasets", "fetch", "HM_1k", "--data", "kg", "--from", "nowhere"]);
    let hint = "--from URL or DIR that has data/Hamaguchi-BM_both-1000/train/train.txt, or HM_1k/train.txt in the layout itself";
    let tried = "nowhere/data/Hamaguchi-BM_both-1000/train/train.txt: not found; also tried nowhere/HM_1k/train.txt, nowhere/train.txt";
    assert_eq!((fetched.code, fetched.err), (Some(1), format!("error: {tried}; hint: {hint}\n")));
}

/// One dataset of the group is there, one can be fetched, one cannot.
#[test]
fn fetches_a_group_and_goes_on_after_a_failure() {
    let place = place();
    for dir in ["mirror/WN18RR", "kg/CoDExMedium"] {
        std::fs::create_dir_all(place.path(dir)).unwrap();
    }
    for part in ["train", "valid", "test"] {
        place.write(&format!("mirror/WN18RR/{part}.txt"), format!("a\tr\t{part}\n"));
    }
    place.write("kg/CoDExMedium/train.txt", "a\tr\tb\n");
    let run = |more: &[&str]| {
        place.run(&[&["datasets", "fetch", "pretraining", "--data", "kg", "--from", "mirror"], more].concat())
    };
    // Counts that differ are a failure, with each count and what to do.
    let refused = run(&[]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""));
    for said in [
        "error: WN18RR is not as published:\n  train.txt: SHA-256 ",
        "\n  train.txt: triples 1, expected 86835\n",
        "\n  test.txt: triples 1, expected 3134\nhint: --accept to keep it all the same\n",
        "kg/CoDExMedium: is there already, skipped",
        "\n0 fetched, 1 there already, 2 failed (FB15k237, WN18RR)\n",
    ] {
        assert!(refused.err.contains(said), "{}", refused.err);
    }
    assert!(!place.path("kg/WN18RR").exists() && !place.path("kg/.fetch").exists());
    let fetched = run(&["--accept", "--json"]);
    assert_eq!(fetched.code, Some(1));
    assert!(fetched.err.ends_with("\n1 fetched, 1 there already, 1 failed (FB15k237)\n"), "{}", fetched.err);
    let lines = fetched.json();
    let states: Vec<_> = lines.iter().map(|o| (o["name"].as_str().unwrap(), o["state"].as_str().unwrap())).collect();
    assert_eq!(states, [("FB15k237", "failed"), ("WN18RR", "fetched"), ("CoDExMedium", "present")]);
    assert!(
        lines[0]["error"]
            .as_str()
            .unwrap()
            .starts_with("mirror/FB15k-237.tar.gz: not found; also tried mirror/FB15k237/")
    );
    let differences = lines[1]["differences"].as_array().unwrap();
    assert!(differences.iter().any(|d| d == "train.txt: triples 1, expected 86835"), "{differences:?}");
    assert_eq!((lines[1]["dir"].as_str(), &lines[1]["error"]), (Some("kg/WN18RR"), &serde_json::Value::Null));
    assert!(place.path("kg/WN18RR/meta.json").exists());
    // A word that is neither a dataset nor a group.
    let unknown = place.run(&["datasets", "fetch", "inductive", "--data", "kg"]);
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.err.starts_with("error: unknown dataset \"inductive\""), "{}", unknown.err);
}

#[test]
fn analyses_draw() {
    let place = place();
    place.write(
        "p.csv",
        "dataset,split,ultra_mrr,flock_mrr\nFBNELL,a,0.4,0.5\nHM_1k,a,0.1,0.2\nNELL995,a,0.2,0.2\nYAGO310,a,0.4,0.3\n",
    );
    let base = |name: &'static str, more: &[&'static str]| {
        [&["analyse", name, "Toy", "--svg", "a.svg"], &HOW[..], more].concat()
    };
    let drawn = |args: &[&str], texts: &[&str]| {
        let ran = place.run(args);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let picture = std::fs::read_to_string(place.path("a.svg")).unwrap();
        for text in texts {
            assert!(picture.contains(text), "no {text:?} in {picture}");
        }
        ran.out
    };
    let without = |flag: &str| -> Vec<&'static str> {
        let at = HOW.iter().position(|a| *a == flag).unwrap();
        [&HOW[..at], &HOW[at + 2..]].concat()
    };
    let over = |name: &'static str, how: &[&'static str], more: &[&'static str]| {
        [&["analyse", name, "Toy", "--svg", "a.svg"], how, more].concat()
    };
    // What would have no effect is refused.
    for (name, flag) in
        [("passes", "--passes"), ("walks", "--walks"), ("frontier", "--most-passes"), ("relations", "--limit")]
    {
        let refused = place.run(&base(name, if flag == "--limit" { &["--limit", "1"] } else { &[] }));
        assert!(refused.code == Some(2) && refused.err.contains(flag), "{refused:?}");
    }
    let table = drawn(&over("passes", &without("--passes"), &["--counts", "1,2,3"]), &["passes P", "Toy"]);
    assert_eq!(table.lines().count(), 4);
    drawn(&over("walks", &without("--walks"), &["--counts", "1,2"]), &["base walk count n", "r=\"7\"", ">16<"]);
    drawn(
        &base("ablations", &[]),
        &[
            "w/o non-backtracking (not retrained)",
            "w/o diverse starts",
            "w/o weighted consensus",
            "ℓ = 6 (not retrained)",
        ],
    );
    place.write("peers.csv", "system,dataset,ms,mrr\nFAST,Toy,0.000001,0.9\nSLOW,Toy,1e9,0.0001\nELSE,Other,1,0.5\n");
    let asked = ["--counts", "1,2", "--most-passes", "3", "--peers", "peers.csv"];
    let table = drawn(&over("frontier", &HOW[..4], &asked), &["milliseconds a question", "ours, n = 2", ">FAST<"]);
    // Two walk counts with 1 and 2 passes each, two peers, the header and the note.
    assert_eq!(table.lines().count(), 8, "{table}");
    assert!(table.contains("not reached at their time: FAST\n") && !table.contains("ELSE"), "{table}");
    drawn(&base("relations", &["--questions", "2"]), &[">next<", ">skip<", ">jump<", "of the variance"]);
    let density =
        drawn(&["analyse", "density", "--published", "p.csv", "--svg", "a.svg"], &["YAGO310", "transductive"]);
    assert!(density.contains("Pearson r = "), "{density}");
}

/// Nobody reads the table any more: the results are written all the same.
#[cfg(unix)]
#[test]
fn a_closed_pipe_costs_no_results() {
    let place = place();
    let mut child = place.command(&eval(&["Toy", "Metafam", "--out", "r.json"]));
    let mut child = child.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let list: Value = serde_json::from_str(&std::fs::read_to_string(place.path("r.json")).unwrap()).unwrap();
    assert_eq!(list.as_array().unwrap().len(), 2);
    assert!(!place.path("r.json.partial").exists());
    // Nor what other files were asked for: ranks, and the report on a graph of one's own.
    let ring: String = (0..40).map(|i| format!("e{i}\tnext\te{}\n", (i + 1) % 40)).collect();
    place.write("ring.tsv", ring);
    let how = ["--model", "entity.safetensors", "--walks", "1", "--passes", "1"];
    let ranks = [&["eval", "Toy", "--data", "kg", "--ranks", "a.tsv"], &how[..]].concat();
    let holdout = [&["eval", "ring.tsv", "--holdout", "0.1", "--out", "h.json"], &how[..]].concat();
    for (args, file) in [(ranks, "a.tsv"), (holdout, "h.json")] {
        let mut child = place.command(&args);
        let mut child = child.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{args:?}");
        assert!(place.path(file).exists(), "{file}");
    }
}

#[test]
fn datasets_by_path_and_in_other_spellings() {
    let place = place();
    let how = ["--model", "entity.safetensors", "--walks", "1", "--passes", "1", "--output", "jsonl"];
    let by_name = place.run(&[&["eval", "Toy", "--data", "kg"], &how[..]].concat()).json();
    let by_path = place.run(&[&["eval", "kg/Toy"], &how[..]].concat()).json();
    assert_eq!((by_name.len(), &by_name[0]["mrr"]), (1, &by_path[0]["mrr"]));
    assert_eq!((&by_path[0]["dataset"], &by_path[0]["queries"]), (&"Toy".into(), &12.into()));
    std::fs::create_dir_all(place.path("mine")).unwrap();
    for part in ["train", "valid", "test"] {
        let text = std::fs::read_to_string(place.path(&format!("kg/Toy/{part}.txt"))).unwrap().replace('\t', ",");
        place.write(&format!("mine/{part}.csv"), format!("head,relation,tail\n{text}"));
    }
    let csv = place.run(&[&["eval", "mine"], &how[..]].concat()).json();
    assert_eq!((&csv[0]["dataset"], &csv[0]["mrr"]), (&"mine".into(), &by_name[0]["mrr"]));
    let nowhere = place.run(&["eval", "Toy"]);
    assert!(nowhere.err.contains("Toy: no such directory; hint: --data DIR"), "{}", nowhere.err);
    let file = place.run(&["eval", "world.tsv"]);
    assert!(file.err.contains("is a file, expected a dataset; hint: --holdout 0.1"), "{}", file.err);
    let old = place.run(&eval(&["Toy", "--format", "csv"]));
    assert!(old.code == Some(2) && old.err.contains("hint: --output is the format of tables"), "{}", old.err);
    let details = place.run(&eval(&["Toy", "--details", "--output", "jsonl"]));
    assert!(details.code == Some(2) && details.err.contains("hint: --output table, md or csv"), "{}", details.err);
}

#[test]
fn how_good_on_ones_own_graph() {
    let place = place();
    let ring: String =
        (0..40).map(|i| format!("e{i}\tnext\te{}\ne{i}\tskip\te{}\n", (i + 1) % 40, (i + 2) % 40)).collect();
    place.write("ring.tsv", ring);
    let how = ["eval", "ring.tsv", "--holdout", "0.1", "--model", "entity.safetensors", "--walks", "2"];
    let ask = |args: &[&str]| place.run(&[&how[..], args].concat());
    // 8 of 80 triples, both sides of each.
    let report = ask(&["--json", "--out", "r.json"]).json_text();
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(place.path("r.json")).unwrap()).unwrap();
    assert_eq!(report, kept);
    assert!(!place.path("r.json.partial").exists());
    let [r] = &report.as_array().unwrap()[..] else { panic!("{report}") };
    assert_eq!((&r["triples"], &r["hidden"], &r["candidates"]), (&80.into(), &8.into(), &40.into()));
    assert_eq!((&r["summary"]["queries"], &r["passes"], &r["n"]), (&16.into(), &1.into(), &2.into()));
    // The same numbers in a table, with the sentence, on any number of threads; another seed hides others.
    let table = ask(&["--threads", "1"]).ok();
    let percent = format!("{:.0} %", r["summary"]["hits10"].as_f64().unwrap() * 100.0);
    let sentence =
        format!("For a hidden link, the right answer is among the first 10 of 40 candidates in {percent} of cases");
    assert!(table.starts_with(&sentence), "{table}");
    assert!(table.contains("ring.tsv: 8 of 80 triples hidden, 16 questions about 8 of them"), "{table}");
    let rows = ask(&["--output", "jsonl"]).json();
    assert_eq!(
        (&rows[0]["part"], &rows[0]["questions"], &rows[0]["mrr"]),
        (&"all".into(), &16.into(), &r["summary"]["mrr"])
    );
    let questions: u64 = rows[1..].iter().map(|row| row["questions"].as_u64().unwrap()).sum();
    assert_eq!((questions, &rows[1]["part"]), (16, &"relation".into()));
    let other = ask(&["--json", "--seed", "1"]).json_text();
    assert_ne!(other[0]["summary"]["mrr"], r["summary"]["mrr"]);
    // A sample says how sure it is.
    assert!(ask(&["--limit", "4"]).ok().contains("a sample of 4 of 8 hidden triples: MRR ± "));
    // What cannot be hidden or is no share is refused with the rule.
    place.write("star.tsv", "a\tr\tb\na\tr\tc\n");
    let star = place.run(&["eval", "star.tsv", "--holdout", "0.1", "--model", "entity.safetensors"]);
    assert!(star.err.starts_with("error: star.tsv: no triple of the graph (2 triples, 3 entities)"), "{}", star.err);
    assert_eq!(place.run(&["eval", "ring.tsv", "--holdout", "1.5"]).code, Some(2));
    assert!(
        place.run(&["eval", "kg/Toy", "--holdout", "0.1"]).err.contains("expected a graph file; hint: leave --holdout")
    );
}
