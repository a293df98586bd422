//! The work behind a reproduction: graphs at hand, evaluations, trainings and other steps. Each is kept
//! on disk under everything that it depends on, so that the same call goes on after a kill, two items
//! share what they have in common, and other settings or files never meet an old result.
//!
//! ```text
//! OUT/work/ranks/   the ranks of each evaluation (a partial run that stays)
//! OUT/work/steps/   results of other steps, with the settings they were made with
//! OUT/work/runs/    directories of training runs
//! ```

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use flock_eval::datasets::registry::{self, RegistryEntry};
use flock_eval::datasets::select::select;
use flock_eval::datasets::{Dataset, DatasetError, Part};
use flock_eval::evaluate::{EvalProgress, prepare};
use flock_eval::partial::PartialRun;
use flock_eval::results::write_text;
use flock_eval::{EvalError, EvalSettings, Evaluation, evaluate_ranked};
use flock_model::checkpoint::{Checkpoint, Task};
use flock_model::files::sha256_hex;
use flock_train::{Event, TrainConfig};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Item, ReproduceError, ReproduceEvent, ReproduceOptions};
use crate::finetune::{RunOptions, Training};
use crate::predictor::{NamedModel, Predictor};

/// The graphs of an item that are at hand.
pub(super) struct GraphsAtHand {
    pub datasets: Vec<Dataset>,
    /// Names of the item's other graphs.
    pub missing: Vec<&'static str>,
}

impl GraphsAtHand {
    /// Says how many graphs these are of how many, and which are missing.
    pub fn describe(&self) -> String {
        let of = self.datasets.len() + self.missing.len();
        match &self.missing[..] {
            [] => format!("all {of} graphs"),
            missing => format!("{} of {of} graphs; not among them: {}", self.datasets.len(), missing.join(", ")),
        }
    }
}

/// A model that a training run of this work made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TrainedModel {
    /// The checkpoint, below the directory of the work.
    pub model: PathBuf,
    pub steps: u64,
    pub minutes: f64,
    /// Validation MRR of the weights that were kept, if there was a validation.
    pub validation: Option<f64>,
}

/// What every item works with.
pub(super) struct Work<'a> {
    pub options: &'a ReproduceOptions,
    pub predictor: Predictor,
    data: Option<PathBuf>, // absolute: its spelling must not matter
    out: &'a Path,
    stop: &'a AtomicBool,
    watch: RefCell<&'a mut dyn FnMut(ReproduceEvent<'_>)>,
}

impl<'a> Work<'a> {
    pub fn new(
        options: &'a ReproduceOptions,
        out: &'a Path,
        stop: &'a AtomicBool,
        watch: &'a mut dyn FnMut(ReproduceEvent<'_>),
    ) -> Result<Work<'a>, ReproduceError> {
        let mut builder = Predictor::builder().precision(options.precision);
        for model in &options.models {
            builder = builder.model(model);
        }
        if let Some(threads) = options.threads {
            builder = builder.threads(threads);
        }
        for part in ["ranks", "steps", "runs"] {
            let dir = out.join("work").join(part);
            fs::create_dir_all(&dir).map_err(|e| file_error(&dir, &e))?;
        }
        let data = match &options.data {
            Some(data) => Some(fs::canonicalize(data).map_err(|e| file_error(data, &e))?),
            None => None,
        };
        Ok(Work { options, predictor: builder.build()?, data, out, stop, watch: RefCell::new(watch) })
    }

    pub fn tell(&self, event: ReproduceEvent<'_>) {
        (self.watch.borrow_mut())(event);
    }

    /// Tells that a part of the work begins.
    pub fn begin(&self, stage: &str, number: usize, of: usize) {
        self.tell(ReproduceEvent::Began { stage, number: number + 1, of });
    }

    pub fn check_stop(&self) -> Result<(), ReproduceError> {
        if self.stop.load(Ordering::Relaxed) { Err(ReproduceError::Stopped) } else { Ok(()) }
    }

    /// Finds the graphs of an item: those at hand, or those of them that were named.
    pub fn graphs(&self, item: Item) -> Result<GraphsAtHand, ReproduceError> {
        let wanted = wanted(item, &self.options.graphs)?;
        let data = self.data.as_deref();
        let mut found = GraphsAtHand { datasets: Vec::new(), missing: Vec::new() };
        for entry in registry::entries().iter().filter(|e| item.asks(e)) {
            let dir = data.map(|data| data.join(entry.name)).filter(|dir| dir.is_dir());
            match dir.filter(|_| wanted.iter().any(|e| e.name == entry.name)) {
                Some(dir) => found.datasets.push(Dataset::open(&dir)?),
                None => found.missing.push(entry.name),
            }
        }
        let absent = |name: &&String| found.missing.contains(&name.as_str());
        if let (Some(graph), Some(data)) = (self.options.graphs.iter().find(absent), data) {
            let data = data.display().to_string();
            return Err(ReproduceError::MissingGraph { item, graph: graph.clone(), data });
        }
        if found.datasets.is_empty() {
            return Err(self.no_graphs(item));
        }
        Ok(found)
    }

    pub fn no_graphs(&self, item: Item) -> ReproduceError {
        ReproduceError::NoGraphs { item, data: self.options.data.as_ref().map(|d| d.display().to_string()) }
    }

    /// Finds the graphs that an item pretrains on: those named, or those of the paper that are at hand.
    pub fn training_graphs(&self, item: Item) -> Result<Vec<PathBuf>, ReproduceError> {
        let data = self.data.as_deref();
        let mut found = Vec::new();
        if self.options.train_on.is_empty() {
            let at_hand = |name: &&str| data.map(|data| data.join(name)).filter(|dir| dir.is_dir());
            found.extend(item.pretrains_on().iter().filter_map(at_hand));
        }
        for name in &self.options.train_on {
            let in_data = data.map(|data| data.join(name)).filter(|dir| dir.is_dir());
            match in_data.or_else(|| Some(PathBuf::from(name)).filter(|path| path.exists())) {
                Some(path) => found.push(path),
                None => {
                    let file = data.map_or_else(|| name.clone(), |data| data.join(name).display().to_string());
                    return Err(ReproduceError::File { file, reason: "no such dataset or graph file".to_string() });
                }
            }
        }
        if found.is_empty() { Err(self.no_graphs(item)) } else { Ok(found) }
    }

    /// Returns the model that is asked: a given one, or the bundled one.
    pub fn model(&self, task: Task) -> Result<&NamedModel, ReproduceError> {
        Ok(self.predictor.model(task)?)
    }

    /// Packs a checkpoint that this work made.
    pub fn open(&self, trained: &TrainedModel) -> Result<NamedModel, ReproduceError> {
        let checkpoint = Checkpoint::read(self.out.join(&trained.model))?;
        Ok(NamedModel::new(&checkpoint, self.predictor.engine(), trained.model.display().to_string())?)
    }

    /// Evaluates a model on a dataset. What was done before is not done again.
    pub fn evaluate(
        &self,
        named: &NamedModel,
        dataset: &Dataset,
        settings: &EvalSettings,
    ) -> Result<Evaluation, ReproduceError> {
        let protocol = prepare(dataset, &named.model, &named.name, settings, settings.seed)?.protocol;
        let (n, passes, seed) = (protocol.n, protocol.passes, protocol.seed);
        let key = digest(&serde_json::to_value(&protocol).expect("plain values"));
        let (task, split) = (named.name.task, settings.split);
        let name = format!("{}-{task}-{split}-n{n}-P{passes}-seed{seed}-{key}.ranks", dataset.name);
        let path = self.out.join("work/ranks").join(name);
        let mut partial = PartialRun::open(&path, false).map_err(EvalError::from)?;
        let mut watch = |p: EvalProgress| {
            self.tell(ReproduceEvent::Asked(p));
            !self.stop.load(Ordering::Relaxed)
        };
        let ranked = evaluate_ranked(
            dataset,
            &named.model,
            &named.name,
            settings,
            self.predictor.pool(),
            Some(&mut partial),
            Some(self.stop),
            &mut watch,
        );
        match ranked {
            Err(EvalError::Stopped) => Err(ReproduceError::Stopped),
            Err(EvalError::Model(flock_model::ModelError::Stopped)) => Err(ReproduceError::Stopped),
            ranked => Ok(ranked?.evaluation),
        }
    }

    /// Evaluates a model on several datasets, in order. `of` is for progress: what precedes a dataset's name.
    pub fn evaluate_all(
        &self,
        of: &str,
        named: &NamedModel,
        datasets: &[Dataset],
        settings: &EvalSettings,
    ) -> Result<Vec<Evaluation>, ReproduceError> {
        let one = |(i, dataset): (usize, &Dataset)| {
            self.begin(&format!("{of}{}", dataset.name), i, datasets.len());
            self.evaluate(named, dataset, settings)
        };
        datasets.iter().enumerate().map(one).collect()
    }

    /// Does a step once. Its result is kept under `name` and the settings `key` that it depends on, so that other settings make
    /// another step.
    pub fn once<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        key: &Value,
        work: impl FnOnce() -> Result<T, ReproduceError>,
    ) -> Result<T, ReproduceError> {
        let path = self.out.join("work/steps").join(format!("{name}-{}.json", digest(key)));
        let bad = |reason: String| ReproduceError::File { file: path.display().to_string(), reason };
        match fs::read(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(bad(e.to_string())),
            Ok(bytes) => {
                let kept: StepResult<T> = serde_json::from_slice(&bytes)
                    .map_err(|e| bad(format!("not the result of a step, remove it: {e}")))?;
                if kept.key == *key {
                    return Ok(kept.result);
                }
            }
        }
        self.check_stop()?;
        let done = StepResult { key: key.clone(), result: work()? };
        let text = serde_json::to_string_pretty(&done).map_err(|e| bad(e.to_string()))?;
        write_text(&path, &text)?;
        Ok(done.result)
    }

    /// Trains a model once. A run that was cut off goes on.
    pub fn train(
        &self,
        name: &str,
        config: &TrainConfig,
        start: Option<&Checkpoint>,
    ) -> Result<TrainedModel, ReproduceError> {
        let mut key = serde_json::to_value(config).expect("a config has string keys and plain values");
        if let Some(start) = start {
            key["start"] = json!(start.hash);
        }
        // What the graphs have counts, not where they are. Threads change nothing.
        let graphs: Vec<Value> = config.data.graphs.iter().map(|g| content(g)).collect::<Result<_, _>>()?;
        key["data"]["graphs"] = Value::Array(graphs);
        key["threads"] = Value::Null;
        let dir = self.out.join("work/runs").join(format!("{name}-{}", digest(&key)));
        self.once(&format!("train-{name}"), &key, || {
            let mut training = Training::new(config);
            if let Some(start) = start {
                training = training.start(start);
            }
            let watch = Box::new(|event: Event<'_>| self.tell(ReproduceEvent::Training(event)));
            let summary = training.run(&dir, RunOptions { resume: false, stop: self.stop, watch })?;
            if !summary.finished {
                return Err(ReproduceError::Stopped);
            }
            let model = dir.join(Path::new(&summary.model).file_name().unwrap_or_default());
            Ok(TrainedModel {
                // Below the directory of the work, which may be moved.
                model: model.strip_prefix(self.out).unwrap_or(&model).to_path_buf(),
                steps: summary.steps,
                minutes: summary.minutes,
                validation: summary.best.map(|best| best.mrr),
            })
        })
    }

    /// Returns the directory of a training run with these settings.
    pub fn run_dir(&self, name: &str, settings: &impl Serialize) -> PathBuf {
        let key = serde_json::to_value(settings).expect("a config has string keys and plain values");
        self.out.join("work/runs").join(format!("{name}-{}", digest(&key)))
    }

    /// Returns what stops the work.
    pub fn stop(&self) -> &AtomicBool {
        self.stop
    }
}

/// Returns the graphs of an item that were named, or all of them if none was.
pub(super) fn wanted(item: Item, names: &[String]) -> Result<Vec<&'static RegistryEntry>, ReproduceError> {
    if names.is_empty() {
        return Ok(registry::entries().iter().filter(|e| item.asks(e)).collect());
    }
    // Of a group those are meant that the item has. A graph by its own name must be one of them.
    let other = |name: &&String| registry::find(name).is_some_and(|e| !item.asks(e));
    if let Some(graph) = names.iter().find(other) {
        return Err(ReproduceError::OtherGraph { item, graph: graph.clone() });
    }
    let mut found = select(names).map_err(DatasetError::from)?;
    found.retain(|e| item.asks(e));
    match found.is_empty() {
        true => Err(ReproduceError::OtherGraph { item, graph: names.join(", ") }),
        false => Ok(found),
    }
}

#[derive(Serialize, Deserialize)]
struct StepResult<T> {
    key: Value,
    result: T,
}

/// A short name for settings.
fn digest(key: &Value) -> String {
    sha256_hex(key.to_string().as_bytes())[..8].to_string()
}

/// Names a graph to train on by what it has: a file, or the files of a dataset directory.
fn content(path: &Path) -> Result<Value, ReproduceError> {
    let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let hash = |path: &Path| {
        let bytes = fs::read(path).map_err(|e| file_error(path, &e))?;
        Ok::<_, ReproduceError>(sha256_hex(&bytes))
    };
    if path.is_file() {
        return Ok(json!({ "name": name, "sha256": hash(path)? }));
    }
    let dataset = Dataset::open(path)?;
    let mut sums = serde_json::Map::new();
    for part in Part::ALL {
        let file = dataset.file(part);
        if file.is_file() {
            sums.insert(part.to_string(), json!(hash(&file)?));
        }
    }
    Ok(json!({ "name": name, "sha256": sums }))
}

fn file_error(path: &Path, e: &std::io::Error) -> ReproduceError {
    ReproduceError::File { file: path.display().to_string(), reason: e.to_string() }
}
