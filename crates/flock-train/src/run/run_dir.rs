//! The directory of a run: its lock, its files, and the check that a resumed run has the same
//! config.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use flock_eval::difference::difference;
use serde::Serialize;
use serde_json::Value;

use super::error::{TrainError, io_error};
use crate::settings::{lay_over, to_json};

/// The directory of a run. It stays locked while this value lives.
pub(crate) struct RunDir {
    path: PathBuf,
    _lock: File,
}

impl RunDir {
    /// Opens the directory, or makes it. Removes temporary files that a killed run left.
    pub fn open(path: &Path, resume: bool) -> Result<RunDir, TrainError> {
        let dir = path.display().to_string();
        if resume && !path.join("state").is_file() {
            return Err(TrainError::NoState { dir });
        }
        fs::create_dir_all(path).map_err(io_error(path))?;
        let lock_path = path.join(".lock");
        let lock = File::create(&lock_path).map_err(io_error(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(TrainError::Locked { dir }),
            Err(TryLockError::Error(e)) => return Err(io_error(&lock_path)(e)),
        }
        let run = RunDir { path: path.to_path_buf(), _lock: lock };
        for entry in fs::read_dir(path).map_err(io_error(path))?.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') && name.ends_with(".tmp") {
                let _ = fs::remove_file(entry.path());
            }
        }
        if !run.has_state() {
            for file in ["best.safetensors", "last.safetensors", "ema.safetensors", "metrics.jsonl"] {
                // A run that could not write its first state leaves an empty log.
                if fs::metadata(run.file(file)).is_ok_and(|m| m.len() > 0) {
                    return Err(TrainError::Foreign { dir, file });
                }
            }
        }
        Ok(run)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub fn state(&self) -> PathBuf {
        self.file("state")
    }

    pub fn has_state(&self) -> bool {
        self.state().is_file()
    }

    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Refuses a config that differs from the state's in a key that is not in `free`. A key that
    /// the state does not have yet had its default.
    pub fn check_config<C: Serialize + Default>(&self, old: &Value, new: &C, free: &[&str]) -> Result<(), TrainError> {
        let mut filled = to_json(&C::default());
        lay_over(&mut filled, old);
        match difference(&filled, &to_json(new), free) {
            None => Ok(()),
            Some((key, old, new)) => Err(TrainError::Changed { dir: self.name(), key, old, new }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::petals::PetalsConfig;

    #[test]
    fn a_key_that_came_later_had_its_default() {
        let place = tempfile::tempdir().unwrap();
        let dir = RunDir::open(place.path(), false).unwrap();
        let mut old = to_json(&PetalsConfig::default());
        old.as_object_mut().unwrap().remove("inverses");
        old["optimiser"].as_object_mut().unwrap().remove("precision");
        dir.check_config(&old, &PetalsConfig::default(), &[]).unwrap();
        let new = PetalsConfig { inverses: true, ..PetalsConfig::default() };
        let error = dir.check_config(&old, &new, &[]).unwrap_err().to_string();
        assert!(error.contains("the run there has inverses = false, this one inverses = true"), "{error}");
        dir.check_config(&old, &new, &["inverses"]).unwrap();
    }
}
