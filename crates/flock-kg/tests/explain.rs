//! A planted reason comes first: a small model learns one rule, and explanations find the edges that make it fire.

use std::sync::atomic::AtomicBool;

use flock_kg::Question;
use flock_kg::calibrate::{CalibrateOptions, Calibrations, calibrate};
use flock_kg::explain::{ExplainOptions, explain};
use flock_kg::graph::{Graph, GraphBuilder};
use flock_kg::kernels::{Engine, Level, Precision};
use flock_kg::model::checkpoint::Checkpoint;
use flock_kg::model::ensemble::{Ask, Asker};
use flock_kg::model::gradient::FastGradient;
use flock_kg::model::{Model, View};
use flock_kg::train::{RunContext, Settings, TrainConfig, train};
use flock_kg::walk::{Key, Stream};

const FAMILIES: u64 = 40;

/// Families in which `c` holds exactly where `a` and then `b` lead: x —a→ y —b→ z, x —c→ z. `noise` edges `d` from each entity
/// to any other make other ways. The last family lacks its `c`.
fn graph(noise: u64, seed: u64) -> Graph {
    let mut builder = GraphBuilder::new();
    for i in 0..FAMILIES {
        builder.add(&format!("x{i}"), "a", &format!("y{i}"));
        builder.add(&format!("y{i}"), "b", &format!("z{i}"));
        if i + 1 < FAMILIES {
            builder.add(&format!("x{i}"), "c", &format!("z{i}"));
        }
        // One false trail in the shape of the true one.
        builder.add(&format!("x{i}"), "d", &format!("z{}", (i * 7 + 3) % FAMILIES));
    }
    let mut stream: Stream = Key { seed, pass: 0, update: 0, query: 0 }.stream(0);
    for i in 0..FAMILIES {
        for from in ["x", "y", "z"] {
            for _ in 0..noise {
                let to = ["x", "y", "z"][stream.below(3) as usize];
                builder.add(&format!("{from}{i}"), "d", &format!("{to}{}", stream.below(FAMILIES)));
            }
        }
    }
    builder.finish().unwrap()
}

fn trained(graph: &Graph, engine: Engine, pool: &rayon::ThreadPool) -> Model {
    let dir = tempfile::tempdir().unwrap();
    let (entities, relations) = (graph.entities(), graph.relations());
    let lines = graph
        .topology()
        .triples()
        .map(|t| format!("{}\t{}\t{}\n", entities.get(t.head), relations.get(t.relation), entities.get(t.tail)));
    let file = dir.path().join("graph.tsv");
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    let mut settings = Settings::new();
    let text = "steps = 350\nseed = 1\n[model]\nlength = 8\nupdates = 2\n[data]\nholdout = 0\nbatch = 8\nnegatives = 16\n\
                [walks]\nn = 16\n[optimiser]\nrate = 0.002\n[output]\nlog_every = 100\n";
    settings.toml("test.toml", text).unwrap();
    settings.put("test", "data.graphs", vec![file.display().to_string()]);
    let config = TrainConfig::resolve(&settings, TrainConfig::pretraining).unwrap();
    let mut gradient = FastGradient::new(engine, 2).unwrap();
    let context = RunContext {
        bundled: None,
        start: None,
        gradient: &mut gradient,
        engine,
        pool,
        peak_gflops: None,
        resume: false,
        stop: &AtomicBool::new(false),
        watch: &mut |_| {},
    };
    let summary = train(&config, &dir.path().join("run"), context).unwrap();
    eprintln!("loss {:?}", summary.loss);
    Model::new(&Checkpoint::read(&summary.model).unwrap(), engine).unwrap()
}

#[test]
fn the_planted_edges_come_first_and_matter() {
    let graph = graph(1, 2);
    let engine = Engine::new(Level::detect().unwrap(), Precision::F32).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    // With noise of its own, so that it learns the rule and not that there is nothing else (seeds 1 to 3 alike).
    let model = trained(&self::graph(1, 1), engine, &pool);
    let last = FAMILIES - 1;
    let [x, y, z] = ["x", "y", "z"].map(|n| format!("{n}{last}"));
    let question = Question::parse(&graph, [&x, "c", "?"]).unwrap();
    let answer = graph.entities().id(&z).unwrap();
    let ask = Ask { walks: 32, passes: 4, seed: 3, options: model.walk_options() };

    // The model has learnt the rule: the right answer is first.
    let view = View { topology: graph.topology(), mask: None };
    let scores = Asker::new(&model, view, &pool).ask(&[question.query], ask).unwrap().remove(0);
    let own = scores.of(answer).logit;
    assert!(scores.reached.iter().all(|(id, s)| *id == answer || s.logit < own), "{own}");

    let options = ExplainOptions { hide: 1, draws: 5, ..ExplainOptions::default() };
    let found = pool.install(|| explain(&|| true, &model, &graph, &question, answer, ask, &options)).unwrap();
    eprintln!(
        "{}",
        found.reasons.iter().map(|r| format!("{:.3} {}\n", r.share, r.line(str::to_string))).collect::<String>()
    );
    assert!(!found.known && found.logit == own);
    assert_eq!(found.reasons[0].line(str::to_string), format!("{x} —a→ {y} —b→ {z}"));
    let deletion = found.deletion.unwrap();
    eprintln!("fall {} random {:?}", deletion.fall, deletion.random);
    assert_eq!(deletion.edges.len(), 2);
    // Without the planted edges the answer falls by more than two, and by far more than without any two others.
    let worst = deletion.random.iter().fold(0.0f64, |a, b| a.max(*b));
    assert!(deletion.fall > 2.0 && deletion.fall > 3.0 * worst, "{} {:?}", deletion.fall, deletion.random);

    // An answer of the training graph is explained without itself.
    let known = Question::parse(&graph, ["x0", "c", "?"]).unwrap();
    let z0 = graph.entities().id("z0").unwrap();
    let short = ExplainOptions { top: 3, check: false, ..options };
    let found = pool.install(|| explain(&|| true, &model, &graph, &known, z0, ask, &short)).unwrap();
    assert!(found.known && found.deletion.is_none());
    assert_eq!(found.reasons[0].line(str::to_string), "x0 —a→ y0 —b→ z0");

    // The same model, calibrated on the graph: the error falls, and the file comes back as it was.
    let ask = Ask { walks: 16, passes: 1, seed: 3, options: model.walk_options() };
    let options = CalibrateOptions { queries: 20, top: 10 };
    let calibrated =
        calibrate(&|| true, &model, graph.topology(), &pool, &options, ask, &mut |_, _| true).unwrap().unwrap();
    let c = &calibrated.calibration;
    eprintln!("error {} → {}, {} of {}", c.error_before, c.error_after, c.positives, c.samples);
    assert!(c.error_after < c.error_before && c.positives > 0 && c.queries == 20);
    assert!(c.map.is_sound() && c.map.at(10.0) > c.map.at(-10.0));
    let dir = tempfile::tempdir().unwrap();
    let beside = dir.path().join("graph.tsv");
    let mut kept = Calibrations::read(&beside).unwrap();
    assert_eq!(kept, Calibrations::default());
    kept.set(model.meta().task, c.clone());
    kept.write(&Calibrations::path(&beside)).unwrap();
    assert_eq!(Calibrations::read(&beside).unwrap(), kept);
    std::fs::write(Calibrations::path(&beside), r#"{"version":9}"#).unwrap();
    let refused = Calibrations::read(&beside).unwrap_err().to_string();
    assert!(refused.contains("found version 9, expected a calibration of version 1"), "{refused}");
}
