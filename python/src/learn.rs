//! How good a model is, how to make it better on a graph, and what its logits mean there.

use std::path::PathBuf;
use std::time::Instant;

use flock_kg::calibrate::Calibrations;
use flock_kg::eval::datasets::{Dataset, Split};
use flock_kg::eval::evaluate::{Choice, EvalSettings, evaluate_ranked};
use flock_kg::eval::holdout::{HoldoutSettings, evaluate_holdout};
use flock_kg::eval::partial::PartialRun;
use flock_kg::finetune::{RunOptions, Training};
use flock_kg::train::{Event, Settings, TrainConfig};
use flock_kg::{AskError, CalibrateOptions};
use pyo3::prelude::*;
use serde_json::Value;

use crate::ask::{Asking, at_least_one};
use crate::calibration::Calibration;
use crate::evaluation::{Evaluated, Evaluation};
use crate::fault::Fault;
use crate::graph::Graph;
use crate::model::Model;
use crate::objects::value;
use crate::wait::{Control, wait};

/// A number, or a word for it.
#[derive(FromPyObject)]
enum Count {
    Number(u32),
    Word(String),
}

fn choice(name: &str, given: Option<Count>, default: Choice) -> Result<Choice, Fault> {
    let most = if name == "walks" { 16_384 } else { 4096 };
    match given {
        None => Ok(default),
        Some(Count::Number(n)) if (1..=most).contains(&n) => Ok(Choice::Given(n)),
        Some(Count::Word(word)) if word == "published" => Ok(Choice::Published),
        Some(Count::Word(word)) if word == "rule" && name == "walks" => Ok(Choice::Rule),
        Some(Count::Number(n)) => {
            Err(Fault::argument(format!("found {name}={n}"), format!("{name}= from 1 to {most}")))
        }
        Some(Count::Word(word)) => {
            let words = if name == "walks" { "\"rule\" or \"published\"" } else { "\"published\"" };
            Err(Fault::argument(format!("found {name}={word:?}"), format!("a number, {words}")))
        }
    }
}

/// A graph in memory, or a dataset directory or graph file.
#[derive(FromPyObject)]
enum GraphOrPath<'py> {
    Graph(Bound<'py, Graph>),
    Path(PathBuf),
}

#[pymethods]
impl Model {
    /// Says how good the model is on this graph: hides a share of its triples and asks for them.
    ///
    /// At most ``limit`` of the hidden triples are asked for (``None``: all).
    ///
    /// >>> import flock_kg as fk
    /// >>> model, graph = fk.Model.bundled(), fk.Graph.bundled()
    /// >>> model.evaluate(graph, limit=20).hits10 > 0.5
    /// True
    #[pyo3(signature = (graph, *, holdout=0.1, task=None, limit=1000, passes=1, walks=None, seed=0, progress=None))]
    fn evaluate(
        &self,
        py: Python<'_>,
        graph: &Bound<'_, Graph>,
        holdout: f64,
        task: Option<&str>,
        limit: Option<usize>,
        passes: u32,
        walks: Option<u32>,
        seed: u64,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Evaluation> {
        let graph = graph.get();
        let make = || -> Result<_, Fault> {
            at_least_one("limit", limit)?;
            // Only for the checks.
            Asking::new(graph, walks, Some(passes), seed, None, false)?;
            let predictor = self.predictor()?;
            let task = self.task(&predictor, task)?;
            Ok((predictor.model(task)?.clone(), predictor))
        };
        let (named, predictor) = make().map_err(|fault| fault.raise(py))?;
        let settings = HoldoutSettings { share: holdout, walks, passes, seed, limit };
        let evaluated = wait(py, progress, "questions", |control: &Control| {
            let report = evaluate_holdout(
                &graph.name,
                (*graph.graph).clone(),
                &named.model,
                &named.name,
                &settings,
                predictor.pool(),
                None,
                Some(&control.cancel),
                &mut |p| {
                    control.tell(p.done, p.total);
                    control.goes_on()
                },
            )?;
            Evaluated::of_holdout(&graph.graph, &report)
        })?;
        evaluated.into_object(py)
    }

    /// Ranks the held-out answers of a benchmark directory (train.txt, valid.txt, test.txt) by the published protocol.
    ///
    /// ``passes`` is a number or ``"published"``, ``walks`` a number, ``"rule"`` or ``"published"``. ``limit`` predicts a sample.
    /// ``ranks=True`` keeps the rank of every answer. With ``out`` the results are written to a file, and a call that was cut
    /// off goes on where it was.
    #[pyo3(signature = (path, *, task=None, split="test", passes=None, walks=None, limit=None, seed=0, ranks=false, out=None,
        fresh=false, progress=None))]
    fn evaluate_dataset(
        &self,
        py: Python<'_>,
        path: PathBuf,
        task: Option<&str>,
        split: &str,
        passes: Option<Count>,
        walks: Option<Count>,
        limit: Option<usize>,
        seed: u64,
        ranks: bool,
        out: Option<PathBuf>,
        fresh: bool,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Evaluation> {
        let make = || -> Result<_, Fault> {
            let split = match split {
                "test" => Split::Test,
                "valid" => Split::Valid,
                other => return Err(Fault::argument(format!("found split={other:?}"), "split=\"test\" or \"valid\"")),
            };
            at_least_one("limit", limit)?;
            if fresh && out.is_none() {
                return Err(Fault::argument("fresh=True without out=", "out= the file of the results"));
            }
            let predictor = self.predictor()?;
            let named = predictor.model(self.task(&predictor, task)?)?.clone();
            let settings = EvalSettings {
                split,
                walks: choice("walks", walks, Choice::Rule)?,
                passes: choice("passes", passes, Choice::Published)?,
                seed,
                limit,
            };
            Ok((predictor, named, settings))
        };
        let (predictor, named, settings) = make().map_err(|fault| fault.raise(py))?;
        let evaluated = wait(py, progress, "questions", |control: &Control| {
            if !path.is_dir() {
                let message = format!("{}: no such directory", path.display());
                let hint =
                    "a directory with train.txt, valid.txt and test.txt; evaluate(graph, holdout=0.1) is for graphs";
                return Err(Fault::argument(message, hint));
            }
            let dataset = Dataset::open(&path)?;
            let partial = out.as_deref().map(PartialRun::path);
            let mut record = partial
                .as_deref()
                .map(|partial| PartialRun::open(partial, fresh))
                .transpose()
                .map_err(flock_kg::eval::EvalError::from)?;
            let result = evaluate_ranked(
                &dataset,
                &named.model,
                &named.name,
                &settings,
                predictor.pool(),
                record.as_mut(),
                Some(&control.cancel),
                &mut |p| {
                    control.tell(p.done, p.total);
                    control.goes_on()
                },
            )?;
            if let Some(out) = &out {
                flock_kg::eval::results::write(out, std::slice::from_ref(&result.evaluation))?;
            }
            if let Some(record) = record {
                record.remove().map_err(flock_kg::eval::EvalError::from)?;
            }
            Evaluated::of_dataset(result, ranks)
        })?;
        evaluated.into_object(py)
    }

    /// Trains the model further on a graph, or on a dataset directory, and returns the better one.
    ///
    /// Ends after ``minutes`` or ``steps`` (1,000 if neither is given). ``holdout`` of the triples (0.05) are held out to
    /// choose the best weights by; the weights it started from are a candidate. With ``out`` the run is kept in that directory
    /// and goes on if it was cut off. ``settings`` has any other key of a training config.
    #[pyo3(signature = (graph, *, minutes=None, steps=None, task=None, out=None, rate=None, batch=None, negatives=None,
        holdout=None, seed=None, precision=None, settings=None, progress=None))]
    fn finetune(
        &self,
        py: Python<'_>,
        graph: GraphOrPath<'_>,
        minutes: Option<f64>,
        steps: Option<u64>,
        task: Option<&str>,
        out: Option<PathBuf>,
        rate: Option<f64>,
        batch: Option<usize>,
        negatives: Option<u32>,
        holdout: Option<f64>,
        seed: Option<u64>,
        precision: Option<&str>,
        settings: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Model> {
        let more: Value = match settings {
            Some(settings) => {
                let text: String = py.import("json")?.call_method1("dumps", (settings,))?.extract()?;
                serde_json::from_str(&text).map_err(|e| Fault::other(e.to_string()).raise(py))?
            }
            None => Value::Null,
        };
        if !more.is_null() && !more.is_object() {
            let hint = "settings={\"optimiser.clip\": 1}";
            return Err(Fault::argument("settings= is no dictionary", hint).raise(py));
        }
        let make = || -> Result<_, Fault> {
            let predictor = self.predictor()?;
            let task = self.task(&predictor, task.or_else(|| more.get("task").and_then(Value::as_str)))?;
            let start = predictor.checkpoint(task)?;
            let mut settings = Settings::new();
            for (key, value) in more.as_object().into_iter().flatten() {
                settings.put("settings=", key, value.clone());
            }
            settings.put("task=", "task", task.to_string());
            let given: [(&str, &str, Option<Value>); 8] = [
                ("seed=", "seed", seed.map(Value::from)),
                ("precision=", "optimiser.precision", precision.map(Value::from)),
                ("minutes=", "minutes", minutes.map(Value::from)),
                ("steps=", "steps", steps.map(Value::from)),
                ("rate=", "optimiser.rate", rate.map(Value::from)),
                ("batch=", "data.batch", batch.map(Value::from)),
                ("negatives=", "data.negatives", negatives.map(Value::from)),
                ("holdout=", "data.holdout", holdout.map(Value::from)),
            ];
            for (argument, key, value) in given {
                if let Some(value) = value {
                    settings.put(argument, key, value);
                }
            }
            if let (Some(threads), None) = (self.threads, more.get("threads")) {
                settings.put("threads=", "threads", threads);
            }
            let (config, graph) = match &graph {
                GraphOrPath::Graph(graph) => {
                    let graph = graph.get();
                    let config = TrainConfig::resolve_in_memory(&settings, TrainConfig::finetuning)?;
                    (config, Some((graph.name.clone(), (*graph.graph).clone())))
                }
                GraphOrPath::Path(path) => {
                    settings.put("graph", "data.graphs", vec![path.display().to_string()]);
                    (TrainConfig::resolve(&settings, TrainConfig::finetuning)?, None)
                }
            };
            Ok((task, start, config, graph))
        };
        let (task, start, config, graph) = make().map_err(|fault| fault.raise(py))?;
        // Without a directory of the caller's, the run has one of its own, which goes when it ends.
        let (dir, guard) = match &out {
            Some(dir) => (dir.clone(), None),
            None => {
                let guard = py.import("tempfile")?.call_method0("TemporaryDirectory")?;
                (guard.getattr("name")?.extract::<PathBuf>()?.join("run"), Some(guard))
            }
        };
        let clock = Instant::now();
        let unit = if minutes.is_some() { "seconds" } else { "steps" };
        let model = wait(py, progress, unit, |control: &Control| {
            let mut training = Training::new(&config).start(&start);
            if let Some((name, graph)) = graph {
                training = training.graph(name, graph);
            }
            let watch = |event: Event<'_>| {
                if let Event::Step(step) = event {
                    match minutes {
                        Some(minutes) => control.tell(clock.elapsed().as_secs() as usize, (60.0 * minutes) as usize),
                        None => control.tell(step.step as usize, step.steps as usize),
                    }
                }
            };
            let options = RunOptions { resume: false, stop: &control.cancel, watch: Box::new(watch) };
            let summary = training.run(&dir, options)?;
            let mut info = value(&summary)?;
            let curve = std::fs::read_to_string(&summary.curve).ok();
            info["svg"] = curve.map_or(Value::Null, Value::from);
            if out.is_none() {
                // They go with the directory.
                ["dir", "model", "curve"].into_iter().for_each(|key| info[key] = Value::Null);
            }
            let origin = if out.is_some() { summary.model.clone() } else { "fine-tuned".to_string() };
            self.tuned(task, std::path::Path::new(&summary.model), origin, info)
        });
        if let Some(guard) = guard {
            guard.call_method0("cleanup")?;
        }
        model
    }

    /// Fits probabilities to this graph: hides triples, asks for them, and sees how often answers are true.
    ///
    /// The graph remembers the result, so that later calls with the same ``walks`` and ``passes`` use it; ``save()`` keeps it
    /// beside the graph's file, where :meth:`Graph.from_file` and the command find it.
    #[pyo3(signature = (graph, *, task=None, queries=200, top=10, passes=1, walks=None, seed=0, progress=None))]
    fn calibrate(
        &self,
        py: Python<'_>,
        graph: &Bound<'_, Graph>,
        task: Option<&str>,
        queries: usize,
        top: usize,
        passes: u32,
        walks: Option<u32>,
        seed: u64,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Calibration> {
        let graph = graph.get();
        let make = || -> Result<_, Fault> {
            let predictor = self.predictor()?;
            let task = self.task(&predictor, task)?;
            Ok((Asking::new(graph, walks, Some(passes), seed, None, false)?, task, predictor))
        };
        let (asking, task, predictor) = make().map_err(|fault| fault.raise(py))?;
        let options = CalibrateOptions { queries, top };
        let report = wait(py, progress, "questions", |control: &Control| {
            let inquiry = asking.on(&predictor, &graph.graph, Some(&control.cancel));
            let report = inquiry.calibrate(task, &options, &mut |done, of| {
                control.tell(done, of);
                control.goes_on()
            })?;
            report.ok_or_else(|| AskError::Cancelled.into())
        })?;
        let mut kept: Calibrations = (*graph.calibrations()).clone();
        kept.set(task, report.calibration.clone());
        let beside = graph.file().map(Calibrations::path);
        let made = Calibration::of(&kept, beside)
            .map(|c| c.with_picture(&format!("{task} probabilities on {}", graph.name), &report));
        graph.set_calibrations(kept);
        made.ok_or_else(|| Fault::other("no calibration was made").raise(py))
    }
}
