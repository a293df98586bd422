//! The models a command uses: those of `--model`, or the built-in ones.

use std::cell::OnceCell;
use std::path::PathBuf;

use flock_kg::answers::ModelName;
use flock_kg::bundled::{self, default_checkpoint};
use flock_kg::checkpoint::{Checkpoint, Task};
use flock_kg::kernels::{Engine, Level, Precision};
use flock_kg::model::{Model, ModelError};

use flock_server::ask::Served;

use crate::failure::{Failure, error};

/// A model ready to run.
pub struct Loaded {
    /// The model.
    pub model: Model,
    /// Its name in answers.
    pub name: ModelName,
}

impl Loaded {
    fn new(checkpoint: &Checkpoint, engine: Engine, origin: String) -> Result<Loaded, Failure> {
        let model = Model::new(checkpoint, engine).map_err(|e| format!("{origin}: {e}"))?;
        let name = ModelName {
            task: checkpoint.meta().task,
            sha256: model.hash().to_string(),
            precision: engine.precision().to_string(),
            origin,
        };
        Ok(Loaded { model, name })
    }
}

/// One model per task. Built-in ones are unpacked when they are first asked for.
pub struct Models {
    engine: Engine,
    given: bool,
    slots: [OnceCell<Loaded>; 2],
}

impl Models {
    /// Reads the given files; with none, the built-in models are used.
    pub fn open(paths: &[PathBuf], engine: Engine) -> Result<Models, Failure> {
        let models = Models { engine, given: !paths.is_empty(), slots: Default::default() };
        for path in paths {
            let checkpoint = Checkpoint::read(path).map_err(error)?;
            let loaded = Loaded::new(&checkpoint, engine, path.display().to_string())?;
            let task = loaded.name.task;
            if let Err(second) = models.slots[task as usize].set(loaded) {
                let first = models.slots[task as usize].get().map_or("", |m| m.name.origin.as_str());
                let second = second.name.origin;
                return Err(Failure::Error(format!(
                    "{first} and {second} are both {task} models; give --model one of each task"
                )));
            }
        }
        Ok(models)
    }

    /// The tasks of the given models; entities if none was given.
    pub fn tasks(&self) -> Vec<Task> {
        let given: Vec<Task> = self.slots.iter().filter_map(OnceCell::get).map(|m| m.name.task).collect();
        if given.is_empty() { vec![Task::Entity] } else { given }
    }

    /// The model of a task.
    pub fn get(&self, task: Task) -> Result<&Loaded, Failure> {
        let slot = &self.slots[task as usize];
        if let Some(loaded) = slot.get() {
            return Ok(loaded);
        }
        if self.given {
            let other = self.slots.iter().find_map(OnceCell::get);
            let file = other.map_or("", |m| m.name.origin.as_str());
            let found = if task == Task::Entity { Task::Relation } else { Task::Entity };
            return Err(Failure::Error(format!("{file}: {}", ModelError::Task { found })));
        }
        let loaded = Loaded::new(&default_checkpoint(task), self.engine, bundled::ORIGIN.to_string())?;
        Ok(slot.get_or_init(|| loaded))
    }

    /// All models that were opened, for a server.
    pub fn into_served(self) -> Vec<Served> {
        let served = |m: Loaded| Served { model: m.model, name: m.name };
        self.slots.into_iter().filter_map(OnceCell::into_inner).map(served).collect()
    }
}

/// The engine for a precision at the level of `FLOCK_SIMD`, or else the best of this machine.
pub fn engine(precision: Precision) -> Result<Engine, Failure> {
    let level = Level::detect()?;
    Engine::new(level, precision).ok_or_else(|| Failure::Error(format!("this machine has no {level}")))
}

/// How many threads this machine offers.
pub fn all_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// A pool of so many threads, or all.
pub fn pool(threads: Option<usize>) -> Result<rayon::ThreadPool, Failure> {
    let threads = threads.unwrap_or_else(all_threads);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|e| Failure::Error(format!("cannot start {threads} threads: {e}; hint: --threads")))
}
