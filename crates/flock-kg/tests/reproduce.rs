//! The paper's tables and figures on small stand-ins for its graphs: directories with names of the
//! registry and triples of a seeded random graph. Numbers mean nothing here; what counts is that they are
//! the library's own, that work goes on after a stop, and what the reports say.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use flock_kg::Predictor;
use flock_kg::eval::datasets::{Dataset, Split};
use flock_kg::eval::evaluate::Choice;
use flock_kg::eval::{EvalSettings, evaluate};
use flock_kg::model::checkpoint::{Metadata, Task};
use flock_kg::model::init::initial_weights;
use flock_kg::reproduce::{AblationRow, Item, Report, ReproduceError, ReproduceEvent, ReproduceOptions, reproduce};
use flock_kg::train::Settings;

/// Writes a dataset of 30 entities and 4 relations: fatherOf (a ring), sonOf (its inverse), r2 and r3 at random. Test and validation
/// triples follow from the ring.
fn dataset(data: &Path, name: &str, inductive: bool) {
    let dir = data.join(name);
    fs::create_dir_all(&dir).unwrap();
    let mut state = name.bytes().fold(7u64, |s, b| s.wrapping_mul(31).wrapping_add(u64::from(b)));
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut graph = |prefix: &str| {
        let mut lines: Vec<String> = Vec::new();
        for i in 0..30 {
            lines.push(format!("{prefix}{i}\tfatherOf\t{prefix}{}", (i + 1) % 30));
            if i % 3 != 0 {
                lines.push(format!("{prefix}{}\tsonOf\t{prefix}{i}", (i + 1) % 30));
            }
            lines.push(format!("{prefix}{i}\tr{}\t{prefix}{}", 2 + draw(2), draw(30)));
        }
        let asked: Vec<String> =
            (0..30).step_by(3).map(|i| format!("{prefix}{}\tsonOf\t{prefix}{i}", (i + 1) % 30)).collect();
        (lines.join("\n") + "\n", asked)
    };
    let (train, asked) = graph("a");
    let half = |lines: &[String]| lines.join("\n") + "\n";
    fs::write(dir.join("train.txt"), train).unwrap();
    fs::write(dir.join("valid.txt"), half(&asked[..5])).unwrap();
    if inductive {
        let (inference, asked) = graph("b");
        fs::write(dir.join("inference.txt"), inference).unwrap();
        fs::write(dir.join("test.txt"), half(&asked)).unwrap();
    } else {
        fs::write(dir.join("test.txt"), half(&asked[5..])).unwrap();
    }
}

/// Small settings: new models of two updates and short walks, two walks, one pass, three steps.
fn options(data: &Path) -> ReproduceOptions {
    let models = [Task::Entity, Task::Relation].map(|task| {
        let path = data.join(format!("{task}.safetensors"));
        let meta = Metadata { updates: 2, length: 8, ..Metadata::published(task) };
        initial_weights(meta, 1).unwrap().write(&path).unwrap();
        path
    });
    let mut training = Settings::new();
    for (key, value) in [("walks.n", 2), ("validation.n", 2), ("data.negatives", 4), ("data.batch", 2)] {
        training.put("the test", key, value);
    }
    ReproduceOptions {
        data: Some(data.to_path_buf()),
        models: models.to_vec(),
        walks: Choice::Given(2),
        passes: Choice::Given(1),
        steps: Some(3),
        seeds: 2,
        training,
        seconds: 0.01,
        ..ReproduceOptions::default()
    }
}

fn make(item: Item, options: &ReproduceOptions, out: &Path) -> Report {
    reproduce(item, options, out, &AtomicBool::new(false), &mut |_| {}).unwrap_or_else(|e| panic!("{item}: {e}"))
}

fn cell(report: &Report, row: &str, column: &str) -> String {
    let sheet = &report.sections[0].sheet;
    let c = sheet.header.iter().position(|h| h == column).unwrap_or_else(|| panic!("{column} in {:?}", sheet.header));
    let row = sheet.rows.iter().find(|r| r[0] == row).unwrap_or_else(|| panic!("{row} in {:?}", sheet.rows));
    row[c].replace('*', "")
}

#[test]
fn zero_shot_scores_are_those_of_an_evaluation() {
    let (data, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    dataset(data.path(), "Metafam", true);
    dataset(data.path(), "CoDExSmall", false);
    let options = options(data.path());
    let predictor = options.models.iter().fold(Predictor::builder(), |b, file| b.model(file)).build().unwrap();
    for (item, task) in [(Item::EntityZeroShot, Task::Entity), (Item::RelationZeroShot, Task::Relation)] {
        let report = make(item, &options, out.path());
        let named = predictor.model(task).unwrap();
        let settings = EvalSettings {
            split: Split::Test,
            walks: Choice::Given(2),
            passes: Choice::Given(1),
            seed: 0,
            limit: None,
        };
        for name in ["Metafam", "CoDExSmall"] {
            let dataset = Dataset::open(&data.path().join(name)).unwrap();
            let result =
                evaluate(&dataset, &named.model, &named.name, &settings, predictor.pool(), None, &mut |_| true)
                    .unwrap();
            let ours = format!("{:.3}", result.summary.all.pessimistic.mrr);
            assert_eq!(cell(&report, name, "ours MRR"), ours, "{item} {name}");
        }
        // Published numbers stand beside: Flock on Metafam, zero-shot, as the paper prints them.
        let flock = if task == Task::Entity { "0.476" } else { "0.490" };
        assert_eq!(cell(&report, "Metafam", "flock MRR"), flock);
        assert!(report.protocol.iter().any(|line| line.starts_with("2 of 54 graphs; not among them: FBIngram_25, ")));
        // The stand-ins are not the published graphs, and the report says so.
        assert!(report.protocol.iter().any(|line| line == "files that are not as published: Metafam, CoDExSmall"));
        let files = report.write(out.path(), "flock-kg reproduce").unwrap();
        let endings: Vec<&str> = files.iter().filter_map(|f| f.extension()?.to_str()).collect();
        assert_eq!(endings, ["md", "csv", "csv", "svg", "json"], "{item}");
        let page = fs::read_to_string(&files[0]).unwrap();
        assert!(page.contains("```sh\nflock-kg reproduce\n```") && page.contains("## By graph"), "{page}");
        assert!(fs::read_to_string(&files[1]).unwrap().starts_with("dataset,ours MRR,ultra MRR,"));
    }
}

/// A stop after the first batch, again and again, leads to the same report as no stop at all.
#[test]
fn work_that_is_stopped_goes_on() {
    let (data, once, often) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for name in ["Metafam", "WN18RRInductive_v1", "FB15k237", "WN18RR"] {
        dataset(data.path(), name, name.contains("Inductive") || name == "Metafam");
    }
    let mut options =
        ReproduceOptions { rows: vec![AblationRow::Full, AblationRow::HalfLength], ..options(data.path()) };
    for (key, value) in [("model.updates", 2), ("model.length", 8)] {
        options.training.put("the test", key, value);
    }
    for item in [Item::EntityZeroShot, Item::Ensemble, Item::Ablations, Item::PretrainingMix] {
        let want = make(item, &options, once.path());
        let mut stops = 0;
        let report = loop {
            // Stopped later in every call, so that each gets a little further.
            let (stop, mut events) = (AtomicBool::new(false), 0);
            let made = reproduce(item, &options, often.path(), &stop, &mut |event| {
                events += usize::from(!matches!(event, ReproduceEvent::Began { .. }));
                stop.store(events > stops + 1, Ordering::Relaxed);
            });
            match made {
                Ok(report) => break report,
                Err(ReproduceError::Stopped) => stops += 2,
                Err(e) => panic!("{item}: {e}"),
            }
            assert!(stops < 200, "{item} never ends");
        };
        assert!(stops > 0, "{item} was never stopped");
        // Times differ.
        let timeless = |report: &Report| -> Vec<Vec<String>> {
            let sheet = &report.sections[0].sheet;
            let keep = |row: &Vec<String>| {
                let cells = row.iter().zip(&sheet.header).filter(|(_, title)| *title != "minutes");
                cells.map(|(cell, _)| cell.clone()).collect()
            };
            sheet.rows.iter().map(keep).collect()
        };
        assert_eq!(timeless(&report), timeless(&want), "{item}");
        assert_eq!(report.pictures[0].svg, want.pictures[0].svg, "{item}");
    }
}

#[test]
fn items_make_tables_and_pictures() {
    let (data, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for name in ["Metafam", "WN18RRInductive_v1", "WDsinger", "FB15k237", "WN18RR"] {
        dataset(data.path(), name, name.contains("Inductive") || name == "Metafam");
    }
    let options = options(data.path());
    // Petals and the measurements of speed work on graphs of their own, and take longer.
    let quick = [
        Item::EntityFineTuned,
        Item::RelationFineTuned,
        Item::AdaptiveWalks,
        Item::CaseStudy,
        Item::Density,
        Item::Statistics,
        Item::Hyperparameters,
    ];
    for item in quick {
        let report = make(item, &options, out.path());
        assert!(!report.sections.is_empty() && report.sections.iter().all(|s| !s.sheet.rows.is_empty()), "{item}");
        let square = |s: &flock_kg::reproduce::Section| s.sheet.rows.iter().all(|r| r.len() == s.sheet.header.len());
        assert!(report.sections.iter().all(square), "{item}");
        let without = [Item::Statistics, Item::Hyperparameters].contains(&item);
        assert_eq!(report.pictures.is_empty(), without, "{item}");
        assert!(report.pictures.iter().all(|p| p.svg.ends_with("</svg>\n") && !p.svg.contains("NaN")), "{item}");
        report.write(out.path(), "").unwrap();
    }
    // What departs from the published settings is said.
    let tuned = make(Item::EntityFineTuned, &options, out.path());
    let said = tuned.protocol.iter().find(|line| line.starts_with("**not as published**")).unwrap();
    assert!(said.contains("steps = 3") && said.contains("data.batch = 2") && said.contains("walks.n = 2"), "{said}");
    assert_eq!(cell(&tuned, "WN18RR", "flock MRR").len(), 5);
    let runs = &tuned.sections.last().unwrap().sheet.rows;
    assert!(runs.len() == 5 && runs.iter().all(|row| row[1] == "3"), "{runs:?}");
    // Another budget is another run. The first one's table stays as it was.
    let more = make(Item::EntityFineTuned, &ReproduceOptions { steps: Some(6), ..options.clone() }, out.path());
    assert!(more.sections.last().unwrap().sheet.rows.iter().all(|row| row[1] == "6"));
    let again = make(Item::EntityFineTuned, &options, out.path());
    assert_eq!(again.sections[0].sheet, tuned.sections[0].sheet);
    assert_ne!(again.sections[0].sheet, more.sections[0].sheet);
    // The rule and n = 2 everywhere: what both have in common is asked once.
    let ranks = || fs::read_dir(out.path().join("work/ranks")).unwrap().count();
    let before = ranks();
    make(Item::AdaptiveWalks, &options, out.path());
    make(Item::Density, &options, out.path());
    assert_eq!(ranks(), before);
}

#[test]
fn trainings_say_how_they_differ_and_follow_the_files() {
    let (data, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    dataset(data.path(), "WN18RR", false);
    dataset(data.path(), "Metafam", true);
    let mut options = ReproduceOptions { rows: vec![AblationRow::Full], ..options(data.path()) };
    for (key, value) in [("model.updates", 2), ("model.length", 8)] {
        options.training.put("the test", key, value);
    }
    let first = make(Item::Ablations, &options, out.path());
    let said = first.protocol.iter().find(|line| line.starts_with("**not as published**")).unwrap();
    for part in ["steps = 3", "model.updates = 2", "model.length = 8", "data.negatives = 4", "walks.n = 2"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let runs = || fs::read_dir(out.path().join("work/runs")).unwrap().count();
    assert_eq!(runs(), 1);
    // Another spelling of the same directory is the same work. Other triples are not.
    let spelt = data.path().join("WN18RR").join("..");
    make(Item::Ablations, &ReproduceOptions { data: Some(spelt), ..options.clone() }, out.path());
    assert_eq!(runs(), 1);
    let file = data.path().join("WN18RR/train.txt");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text + "a0\tr2\ta17\n").unwrap();
    make(Item::Ablations, &options, out.path());
    assert_eq!(runs(), 2);
}

#[test]
fn petals_are_trained_with_the_settings_given() {
    let (data, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut options = ReproduceOptions { steps: None, training: Settings::new(), ..options(data.path()) };
    for (key, value) in [("epochs", 1), ("walks", 1), ("length", 6), ("updates", 1), ("passes", 1)] {
        options.training.put("the test", key, value);
    }
    let report = make(Item::Petals, &options, out.path());
    let ours = report.sections[0].sheet.rows.last().unwrap();
    assert!(ours[1] == "ours" && ours[3].ends_with(" of 220"), "{ours:?}");
    assert!(report.protocol.iter().any(|line| line.starts_with("**not as published**")), "{:?}", report.protocol);
    assert!(report.pictures[0].svg.starts_with("<svg"));
    // A finished run is not run again.
    assert_eq!(make(Item::Petals, &options, out.path()).sections[0].sheet, report.sections[0].sheet);
    let refused = reproduce(
        Item::Petals,
        &ReproduceOptions { steps: Some(5), ..options },
        out.path(),
        &AtomicBool::new(false),
        &mut |_| {},
    );
    assert!(matches!(refused, Err(ReproduceError::Setting { key: "steps", .. })));
}

#[test]
fn wrong_wishes_are_refused_with_what_to_do() {
    let (data, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let refused = |item: Item, change: &dyn Fn(&mut ReproduceOptions)| {
        let mut options = options(data.path());
        change(&mut options);
        let made = reproduce(item, &options, out.path(), &AtomicBool::new(false), &mut |_| {});
        let error = made.map(|_| ()).unwrap_err();
        let remedy = error.remedy().map_or(String::new(), |remedy| format!("; {remedy}"));
        format!("{error}{remedy}").replace(&data.path().display().to_string(), "DATA")
    };
    assert_eq!(
        refused(Item::EntityZeroShot, &|_| ()),
        "entity-zero-shot needs graphs of the paper, and none of them is in DATA; name a directory with datasets, or fetch them first"
    );
    dataset(data.path(), "WDsinger", false);
    assert_eq!(
        refused(Item::Ensemble, &|o| o.graphs = vec!["WDsinger".to_string()]),
        "ensemble: WDsinger is none of its graphs, which are inductive_er and inductive_e"
    );
    let group = refused(Item::Ensemble, &|o| o.graphs = vec!["transductive".to_string()]);
    assert!(group.starts_with("ensemble: transductive is none of its graphs"), "{group}");
    let absent = refused(Item::EntityZeroShot, &|o| o.graphs = vec!["Metafam".to_string()]);
    assert!(
        absent.starts_with("entity-zero-shot: Metafam is not in ") && absent.contains("; name a directory"),
        "{absent}"
    );
    let unknown = refused(Item::EntityZeroShot, &|o| o.graphs = vec!["WDsingr".to_string()]);
    assert!(unknown.starts_with("unknown dataset \"WDsingr\"; near names: WDsinger"), "{unknown}");
    assert!(refused(Item::Ablations, &|_| ()).starts_with("ablations needs graphs of the paper"));
    let wrong = refused(Item::Ablations, &|o| {
        o.train_on = vec!["WDsinger".to_string()];
        o.training.put("--set", "optimiser.rate", -1.0);
    });
    assert!(wrong.contains("--set: optimiser.rate: expected more than 0"), "{wrong}");
    assert!(refused(Item::NoiseInjection, &|_| ()).contains("it needs TRIX, which this engine does not run"));
    dataset(data.path(), "Metafam", true);
    let missing = refused(Item::PretrainingMix, &|o| o.train_on = vec!["nowhere".to_string()]);
    assert!(missing.ends_with("nowhere: no such dataset or graph file"), "{missing}");
    dataset(data.path(), "WN18RR", false);
    let decided = refused(Item::Ablations, &|o| o.training.put("--set", "task", "relation"));
    assert!(decided.starts_with("ablations: task cannot be set for its trainings; use the option"), "{decided}");
}
