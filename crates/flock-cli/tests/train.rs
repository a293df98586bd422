//! `pretrain`, `finetune` and `petals` from outside: what they say, and that a run which is killed goes on to the same bits.

mod common;

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use common::{Place, Ran};
use flock_kg::bundled::default_checkpoint;
use flock_kg::model::checkpoint::Checkpoint;

/// `pretrain world.tsv` with a tiny model, saved after every step.
fn pretrain<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let tiny = [
        "pretrain",
        "--graph",
        "world.tsv",
        "--batch",
        "4",
        "--negatives",
        "4",
        "--walks",
        "2",
        "--set",
        "model.length=8",
        "--set",
        "model.updates=2",
        "--set",
        "output.log_every=1",
        "--set",
        "output.save_seconds=0",
        "--out",
        out,
    ];
    [&tiny[..], more].concat()
}

/// Lines of the run's log.
fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path.join("metrics.jsonl")).unwrap_or_default().lines().count()
}

fn spawn(place: &Place, args: &[&str]) -> Child {
    let mut command = place.command(args);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Waits until a run has logged so many lines, or is over.
fn wait_for(child: &mut Child, path: &Path, count: usize) {
    let end = Instant::now() + Duration::from_secs(60);
    while lines(path) < count && child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < end, "no progress in a minute");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn ok(ran: Ran) -> Ran {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

#[test]
fn a_killed_run_ends_as_one_that_was_not() {
    let place = Place::new();
    let more = [
        "--steps",
        "300",
        "--set",
        "optimiser.ema=0.9",
        "--set",
        "data.holdout=0.2",
        "--set",
        "validation.every=40",
        "--set",
        "validation.n=2",
    ];
    ok(place.run(&pretrain("whole", &more)));
    let out = place.path("cut");
    let mut killed = 0;
    for count in [3, 60, 150, 200] {
        let mut child = spawn(&place, &pretrain("cut", &more));
        wait_for(&mut child, &out, count);
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap(); // SIGKILL
            killed += 1;
        }
        child.wait().unwrap();
    }
    assert!(killed >= 2, "the runs were too fast to be killed");
    let ran = ok(place.run(&[&pretrain("cut", &more)[..], &["--resume", "--json"]].concat()));
    let summary = &ran.json()[0];
    assert_eq!((&summary["finished"], &summary["steps"]), (&true.into(), &300.into()));
    assert!(summary["resumed_at"].as_u64().is_some_and(|step| step > 0));
    for file in ["last.safetensors", "ema.safetensors", "best.safetensors"] {
        let read = |run: &str| std::fs::read(place.path(run).join(file)).unwrap();
        assert!(read("whole") == read("cut"), "{file} differs");
    }
    // Every step logged once and in order, and nothing left lying about.
    let log = std::fs::read_to_string(out.join("metrics.jsonl")).unwrap();
    let steps = log.lines().map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap());
    let steps: Vec<u64> = steps.filter(|r| r.get("loss").is_some()).map(|r| r["step"].as_u64().unwrap()).collect();
    assert_eq!(steps, (1..=300).collect::<Vec<_>>());
    let left = std::fs::read_dir(&out).unwrap().flatten().map(|e| e.file_name().into_string().unwrap());
    assert_eq!(left.filter(|name| name.ends_with(".tmp")).count(), 0);
}

#[cfg(unix)]
#[test]
fn an_interrupt_saves_and_says_how_to_go_on() {
    let place = Place::new();
    let args = pretrain("out", &["--steps", "100000", "--set", "output.save_seconds=600"]);
    let mut command = place.command(&args);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&mut child, &place.path("out"), 5);
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(err.contains("the same command goes on from out"), "{err}");
    // Saved where it stopped: nothing that was logged is lost.
    let done = lines(&place.path("out"));
    assert!(done >= 5 && place.path("out/last.safetensors").exists() && place.path("out/curve.svg").exists());
    let steps = done.to_string();
    let more = ["--steps", &steps, "--set", "output.save_seconds=600", "--json"];
    let ran = ok(place.run(&pretrain("out", &more)));
    assert_eq!(ran.json()[0]["resumed_at"], done);
}

#[test]
fn mistakes_are_told_in_one_line() {
    let place = Place::new();
    place.write("typo.toml", "steps = 3\n[optimiser]\nrat = 1\n");
    let cases: [(&[&str], &str); 7] = [
        (
            &["pretrain", "--config", "typo.toml"],
            "error: typo.toml:3: unknown key `optimiser.rat`; near keys: `optimiser.rate`",
        ),
        (&["pretrain", "--config", "nowhere.toml"], "error: nowhere.toml: "),
        (&["pretrain"], "error: config: data.graphs: expected at least one"),
        (&["pretrain", "--graph", "world.tsv", "--set", "steps"], "error: --set \"steps\": expected key=value"),
        (&["pretrain", "--graph", "nowhere", "--out", "x"], "error: nowhere: "),
        (&["finetune", "--graph", "world.tsv", "--model", "nowhere"], "error: nowhere: "),
        (&["pretrain", "--graph", "world.tsv", "--resume", "--out", "y"], "error: y: no training state to resume"),
    ];
    for (args, message) in cases {
        let ran = place.run(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
        assert!(ran.err.starts_with(message) && ran.err.lines().count() == 1, "{args:?}: {}", ran.err);
    }
}

#[test]
fn graph_files_are_read_as_flags_say() {
    let place = Place::new();
    let rows: String = (0..30).map(|i| format!("{i},e{i},next,e{}\n", (i + 1) % 30)).collect();
    place.write("four.dat", format!("id,from,how,to\n{rows}broken\n"));
    let steps = ["--steps", "1", "--walks", "1", "--set", "validation.every=0", "--out", "x"];
    let tune = |more: &[&'static str]| place.run(&[&["finetune", "--graph", "four.dat"], more, &steps].concat());
    let refused = tune(&["--format", "csv", "--columns", "2,3,4", "--header"]);
    assert!(refused.code == Some(1) && refused.err.contains("four.dat:32: "), "{refused:?}");
    let ran = ok(tune(&["--format", "csv", "--columns", "2,3,4", "--header", "--lenient"]));
    assert!(ran.err.contains("warning: 1 of 31 rows skipped as malformed; the first: four.dat:32: "), "{}", ran.err);
    let named = ["--format", "csv", "--columns", "from,how,to", "--lenient", "--out", "y"];
    ok(place.run(&[&["finetune", "--graph", "four.dat"], &named[..], &steps[..6]].concat()));
    let wrong = place.run(&["finetune", "--graph", "four.dat", "--set", "data.columns=[1,1,2]"]);
    assert!(wrong.code == Some(1) && wrong.err.contains("data.columns: expected three different"), "{wrong:?}");
}

/// A log that goes nowhere ends no run.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_under_the_log_is_no_reason_to_stop() {
    let place = Place::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let args = pretrain("run", &["--steps", "2"]);
    let status = place.command(&args).stderr(full).stdout(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(place.path("run/last.safetensors").exists());
}

#[test]
fn fine_tuning_starts_from_the_built_in_model_of_the_task() {
    let place = Place::new();
    for task in ["entity", "relation"] {
        let args = ["finetune", "--graph", "world.tsv", "--task", task, "--steps", "1", "--walks", "1", "--out", task];
        ok(place.run(&[&args[..], &["--set", "validation.every=0"]].concat()));
        let tuned = Checkpoint::read(place.path(task).join("last.safetensors")).unwrap();
        let bundled = default_checkpoint(tuned.meta().task);
        assert_eq!((tuned.meta().task.to_string(), tuned.meta().steps), (task.to_string(), bundled.meta().steps + 1));
        assert!(
            tuned.meta().graphs.starts_with(&bundled.meta().graphs) && tuned.weights.values != bundled.weights.values
        );
    }
}

#[test]
fn minutes_end_a_run_and_more_minutes_continue_it() {
    let place = Place::new();
    // A billionth of a minute is over after any step.
    let ran = ok(place.run(&pretrain("out", &["--minutes", "1e-9", "--json"])));
    let summary = &ran.json()[0];
    assert_eq!((&summary["finished"], &summary["steps"]), (&true.into(), &1.into()));
    assert!(ran.err.contains("step 1/1  loss "), "{}", ran.err);
    let ended = std::fs::read(place.path("out/last.safetensors")).unwrap();
    ok(place.run(&pretrain("one", &["--steps", "1"])));
    assert!(ended == std::fs::read(place.path("one/last.safetensors")).unwrap());
    // The same command has nothing left to do; one with more time and a last step has.
    let ran = ok(place.run(&pretrain("out", &["--minutes", "1e-9", "--json"])));
    assert_eq!((&ran.json()[0]["resumed_at"], &ran.json()[0]["steps"]), (&1.into(), &1.into()));
    let ran = ok(place.run(&pretrain("out", &["--minutes", "600", "--steps", "3", "--json"])));
    assert_eq!((&ran.json()[0]["resumed_at"], &ran.json()[0]["steps"]), (&1.into(), &3.into()));

    let ran = place.run(&pretrain("cosine", &["--minutes", "5", "--set", "optimiser.schedule=cosine"]));
    let message = "error: --minutes: minutes: a cosine schedule needs the number of steps, and none is given; \
                   hint: a number of steps too, or optimiser.schedule = \"constant\"\n";
    assert!(ran.code == Some(1) && ran.err.ends_with(message), "{ran:?}");
    let finetune = ["finetune", "--graph", "world.tsv", "--minutes"];
    for (minutes, message) in [
        ("0", "error: --minutes: minutes: expected more than 0, or \"off\"\n"),
        ("nan", "error: --minutes: minutes: expected a value, and a number to be finite\n"),
    ] {
        let ran = place.run(&[&finetune[..], &[minutes]].concat());
        assert!(ran.code == Some(1) && ran.err.ends_with(message), "{ran:?}");
    }
}

#[test]
fn precision_and_switches_reach_the_run() {
    let place = Place::new();
    let switches = ["--set", "model.processor=transformer", "--set", "model.consensus=mean", "--steps", "2"];
    for precision in ["f32", "bf16"] {
        let ran = ok(place.run(&pretrain(precision, &[&switches[..], &["--precision", precision]].concat())));
        assert!(ran.err.contains("transformer, mean consensus"), "{}", ran.err);
    }
    let weights = |run: &str| std::fs::read(place.path(run).join("last.safetensors")).unwrap();
    assert!(weights("f32") != weights("bf16"), "rounded operands make other weights");
    let model = place.path("bf16/last.safetensors");
    ok(place.run(&["predict", "world.tsv", "Portugal", "borders", "?", "--model", model.to_str().unwrap()]));
    // A run goes on in the precision it began in.
    let ran = place.run(&pretrain("bf16", &switches));
    let message = "the run there has optimiser.precision = \"bf16\", this one optimiser.precision = \"f32\"";
    assert!(ran.code == Some(1) && ran.err.contains(message), "{ran:?}");
}

#[test]
fn a_model_is_asked_with_the_switches_it_was_trained_with() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("kg/Toy")).unwrap();
    let train: String =
        (0..20).map(|i| format!("e{i}\tnext\te{}\ne{i}\tskip\te{}\n", (i + 1) % 20, (i + 2) % 20)).collect();
    place.write("kg/Toy/train.txt", train);
    place.write("kg/Toy/valid.txt", "e1\tnext\te3\n");
    place.write("kg/Toy/test.txt", "e2\tskip\te5\ne7\tnext\te9\n");
    let switches = ["backtrack", "all_at_query", "balanced_on_query_relation"];
    for on in switches {
        let set = format!("walks.{on}=true");
        let ran = ok(place.run(&pretrain(on, &["--steps", "1", "--set", &set])));
        let words = ["walks may step back", "all walks start at the query", "balanced starts on the query's relation"];
        let expected = words[switches.iter().position(|s| *s == on).unwrap()];
        assert!(ran.err.contains(expected), "{}", ran.err);
        let model = format!("{on}/last.safetensors");
        let how = ["--data", "kg", "--model", &model, "--walks", "1", "--passes", "1", "--json"];
        let results = ok(place.run(&[&["eval", "Toy"], &how[..]].concat())).json_text();
        for switch in switches {
            assert_eq!(results[0]["protocol"][switch], switch == on, "{on}: {switch}");
        }
    }
    // Restarts of every second walk, in parts of 1024; and steps that all run on synthetic worlds.
    let set = ["--set", "walks.restart=0.25", "--set", "walks.restart_period=2", "--set", "data.worlds=100"];
    let ran = ok(place.run(&pretrain("restart", &[&set[..], &["--steps", "2"]].concat())));
    assert!(ran.err.contains("restarts of one walk in 2 (0.250)"), "{}", ran.err);
    let how = ["--data", "kg", "--model", "restart/last.safetensors", "--walks", "2", "--passes", "1", "--json"];
    let protocol = &ok(place.run(&[&["eval", "Toy"], &how[..]].concat())).json_text()[0]["protocol"];
    assert_eq!((&protocol["restart"], &protocol["restart_period"]), (&256.into(), &2.into()));
    let ran = place.run(&pretrain("wrong", &["--set", "walks.restart=1.5"]));
    assert!(ran.code == Some(1) && ran.err.contains("walks.restart: expected 0 to 1"), "{ran:?}");
    let ran = place.run(&pretrain("wrong", &["--set", "walks.query_start_period=20000"]));
    assert!(ran.code == Some(1) && ran.err.contains("walks.query_start_period: expected 0 to 16384"), "{ran:?}");
    // One name for each relation, and half of the random starts at the query: asked as trained, and kept
    // so by further training.
    for task in ["entity", "relation"] {
        let set =
            ["--task", task, "--steps", "1", "--set", "walks.inverses=false", "--set", "walks.query_start_period=2"];
        let [raw, further] = ["raw", "further"].map(|name| format!("{task}-{name}"));
        let ran = ok(place.run(&pretrain(&raw, &set)));
        assert!(ran.err.contains("one name for each relation, one random start in 2 at the query"), "{}", ran.err);
        let from = format!("model.from={raw}/last.safetensors");
        ok(place.run(&pretrain(&further, &["--task", task, "--steps", "1", "--set", &from])));
        for model in [&raw, &further] {
            let model = format!("{model}/last.safetensors");
            let how = ["--data", "kg", "--model", &model, "--walks", "2", "--passes", "1", "--json"];
            let protocol = &ok(place.run(&[&["eval", "Toy"], &how[..]].concat())).json_text()[0]["protocol"];
            assert_eq!((&protocol["inverses"], &protocol["query_start_period"]), (&false.into(), &2.into()), "{model}");
        }
    }
}

#[test]
fn a_loss_that_is_no_number_ends_the_run() {
    let place = Place::new();
    let ran = place.run(&pretrain("out", &["--steps", "9", "--rate", "1e30"]));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let message = ran.err.lines().last().unwrap();
    assert!(message.starts_with("error: step ") && message.contains("on world") && message.contains('?'), "{message}");
}

#[test]
fn fine_tuning_takes_task_and_sizes_from_the_model() {
    let place = Place::new();
    for task in ["entity", "relation"] {
        let model = format!("{task}.safetensors");
        let out = format!("out-{task}");
        let args = [
            "finetune",
            "--model",
            &model,
            "--graph",
            "world.tsv",
            "--steps",
            "2",
            "--walks",
            "2",
            "--out",
            &out,
            "--json",
        ];
        let ran = ok(place.run(&args));
        let summary = &ran.json()[0];
        assert_eq!((&summary["task"], &summary["steps"]), (&task.into(), &2.into()));
        assert!(place.path(summary["model"].as_str().unwrap()).exists());
        ok(place.run(&[
            "predict",
            "world.tsv",
            "Portugal",
            if task == "entity" { "borders" } else { "?" },
            if task == "entity" { "?" } else { "Spain" },
            "--model",
            summary["model"].as_str().unwrap(),
        ]));
    }
    // What is said about the same on a terminal's behalf.
    let ran = ok(place.run(&[
        "finetune",
        "--model",
        "entity.safetensors",
        "--graph",
        "world.tsv",
        "--steps",
        "2",
        "--walks",
        "2",
        "--set",
        "data.holdout=0.3",
        "--out",
        "text",
    ]));
    assert!(ran.out.starts_with("entity model, trained on world\n  steps     2 in "), "{}", ran.out);
    assert!(ran.out.contains("\n  before    MRR 0.") && ran.out.contains(", gain +0."), "{}", ran.out);
    assert!(ran.err.contains("step 2/2  loss "), "{}", ran.err);
}

#[test]
fn petals_are_trained_tested_and_drawn() {
    let place = Place::new();
    let args = [
        "petals",
        "--epochs",
        "1",
        "--walks",
        "1",
        "--length",
        "6",
        "--set",
        "updates=1",
        "--set",
        "passes=1",
        "--set",
        "inverses=true",
        "--seed",
        "3",
        "--out",
        "out",
        "--json",
    ];
    let ran = ok(place.run(&args));
    let report = &ran.json()[0];
    for (key, value) in [("seed", 3), ("epochs", 1), ("instances", 220)] {
        assert_eq!(report[key], value, "{report}");
    }
    for key in ["solved", "accuracy_true", "accuracy_false", "minutes"] {
        assert!(report[key].is_number(), "{report}");
    }
    assert_eq!(report["losses"].as_array().map(Vec::len), Some(1));
    ok(place.run(&["petals", "--svg", "one.svg"]));
    assert!(std::fs::read_to_string(place.path("one.svg")).unwrap().starts_with("<svg"));
    assert!(!place.path("runs").exists());

    // The checkpoint alone gives what the run found. It was trained with inverse types, so it is tested with them.
    let how = ["petals", "--model", "out/last.safetensors", "--seed", "3", "--walks", "1", "--passes", "1"];
    let test = &ok(place.run(&[&how[..], &["--json"]].concat())).json()[0];
    for key in ["solved", "instances", "accuracy_true", "accuracy_false", "seed", "passes"] {
        assert_eq!(test[key], report[key], "{key}: {test}");
    }
    assert_eq!((&test["inverses"], &test["length"]), (&true.into(), &6.into()));
    let said = ok(place.run(&how)).out;
    assert!(said.starts_with("Petals, seed 3, test of out/last.safetensors in "), "{said}");
    assert!(said.contains(" of 220 (P = 1)\n") && said.contains("  inverse types    with, as the model"), "{said}");
    let refused = place.run(&["petals", "--model", "relation.safetensors"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.starts_with("error: relation.safetensors: predicts relations, and Petals asks"), "{refused:?}");
    assert_eq!(place.run(&["petals", "--model", "entity.safetensors", "--epochs", "2"]).code, Some(2));
}

#[test]
fn petals_are_exported_as_graphs_that_can_be_asked() {
    let place = Place::new();
    let said = ok(place.run(&["petals", "--export", "g", "--seed", "2"])).out;
    assert!(
        said.starts_with("Petals, seed 2: 220 graphs in g\n") && said.contains("flock-kg predict g/000.tsv b0 r0 '?'")
    );
    let model = ["--model", "entity.safetensors", "--json"];
    let asked = ok(place.run(&[&["predict", "g/000.tsv", "b0", "r0", "?"], &model[..]].concat()));
    assert!(asked.out.contains("\"p1_a1\""), "{}", asked.out);
    let refused = place.run(&["petals", "--export", ".", "--seed", "2"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("expected a directory that is new or empty; hint: another directory"), "{refused:?}");
}

#[test]
fn a_dataset_is_finetuned_as_published() {
    let place = Place::new();
    for name in ["Metafam", "Mine"] {
        std::fs::create_dir_all(place.path(&format!("kg/{name}"))).unwrap();
        let train: String = (0..20).map(|i| format!("e{i}\tnext\te{}\n", (i + 1) % 20)).collect();
        place.write(&format!("kg/{name}/train.txt"), train);
        place.write(&format!("kg/{name}/valid.txt"), "e1\tnext\te3\n");
    }
    let model = ["--model", "entity.safetensors", "--data", "kg", "--published"];
    let with = |args: &[&'static str]| [&["finetune"], args, &model].concat();
    // 20 triples in batches of 8 are 3 batches, validated after each of 3 epochs.
    let ran = ok(place.run(&with(&["Metafam", "--out", "run", "--json"])));
    assert_eq!((&ran.json()[0]["steps"], &ran.json()[0]["finished"]), (&9.into(), &true.into()));
    assert!(!ran.err.contains("not as published") && ran.err.contains("step 6: validation MRR"), "{}", ran.err);
    let ran = ok(place.run(&with(&["Metafam", "--steps", "1", "--set", "optimiser.rate=1e-4"])));
    let notes: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("note: ")).collect();
    let want = [
        "note: not as published: optimiser.rate = 0.0001, published is 0.0005",
        "note: not as published: steps = 1, published is 9",
    ];
    assert_eq!(notes, want);
    assert!(place.path("runs/finetune-Metafam-entity/best.safetensors").exists());
    for (name, says) in [
        ("Mine", "unknown dataset \"Mine\"; hint: flock-kg datasets lists all"),
        ("Metafan", "unknown dataset \"Metafan\"; near names: Metafam; hint: flock-kg datasets lists all"),
        ("HM_1k", "kg/HM_1k: no such directory; hint: flock-kg datasets fetch HM_1k --data DIR, or another --data"),
    ] {
        let refused = place.run(&with(&[name]));
        assert_eq!((refused.code, refused.err), (Some(1), format!("error: {says}\n")));
    }
    // A dataset or a file of one's own by position is what --graph names.
    for graph in ["kg/Mine", "world.tsv"] {
        let tiny = ["--steps", "1", "--walks", "1", "--batch", "2", "--out", "own", "--model", "entity.safetensors"];
        ok(place.run(&[&["finetune", graph], &tiny[..]].concat()));
        std::fs::remove_dir_all(place.path("own")).unwrap();
    }
    assert_eq!(place.run(&["finetune", "--published", "--graph", "kg/Metafam"]).code, Some(2));
}

#[test]
fn a_world_is_written_as_a_dataset_that_can_be_evaluated() {
    let place = Place::new();
    let report = &ok(place.run(&["world", "--seed", "3", "--out", "kg/w3", "--svg", "w3.svg", "--json"])).json()[0];
    let count = |file: &str| std::fs::read_to_string(place.path(file)).unwrap().lines().count();
    assert_eq!(report["facts"], count("kg/w3/train.txt"));
    assert_eq!(report["questions"], count("kg/w3/test.txt"));
    assert!(report["rules"].as_object().is_some_and(|kinds| !kinds.is_empty()), "{report}");
    let svg = std::fs::read_to_string(place.path("w3.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("relations") && !svg.contains("NaN"));
    let args = [
        "eval",
        "w3",
        "--data",
        "kg",
        "--model",
        "entity.safetensors",
        "--walks",
        "1",
        "--passes",
        "1",
        "--limit",
        "5",
    ];
    let results = ok(place.run(&[&args[..], &["--json"]].concat())).json_text();
    assert_eq!(results[0]["queries"], 10);
    // The same seed writes the same world.
    ok(place.run(&["world", "--seed", "3", "--out", "again"]));
    let bytes = |file: &str| std::fs::read(place.path(file)).unwrap();
    assert!(bytes("kg/w3/train.txt") == bytes("again/train.txt") && bytes("kg/w3/test.txt") == bytes("again/test.txt"));
}
