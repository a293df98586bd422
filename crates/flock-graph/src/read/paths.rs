//! From the paths that a caller names to the files to read: a directory stands for the files in it.

use super::error::LoadError;
use super::source::Source;
use super::{Format, LoadOptions};
use crate::quote::shown;
use std::fmt;
use std::path::{Path, PathBuf};

/// A directory that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirectoryReport {
    /// The directory, as the caller named it.
    pub directory: String,
    /// The names of the files that were read, in order.
    pub read: Vec<String>,
    /// The names of the files and directories in it that were not read.
    pub passed_over: Vec<String>,
    /// Whether it is a dataset, of which only the training triples were read.
    pub is_dataset: bool,
}

/// Number of files that a message names.
const NAMED: usize = 8;

impl fmt::Display for DirectoryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |names: &[String]| {
            let shown: Vec<String> = names.iter().take(NAMED).map(|name| shown(name)).collect();
            let more = names.len().saturating_sub(NAMED);
            shown.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
        };
        write!(f, "{}: read {}", self.directory, names(&self.read))?;
        if self.is_dataset {
            f.write_str(", the training triples of a dataset")?;
        }
        if !self.passed_over.is_empty() {
            write!(f, "; passed over {}", names(&self.passed_over))?;
        }
        Ok(())
    }
}

/// Replaces directories by the files in them.
pub(crate) fn expand(
    paths: &[PathBuf],
    options: &LoadOptions,
) -> Result<(Vec<PathBuf>, Vec<DirectoryReport>), LoadError> {
    let (mut files, mut directories) = (Vec::new(), Vec::new());
    for path in paths {
        if path.is_dir() {
            let report = list(path, options)?;
            files.extend(report.read.iter().map(|name| path.join(name)));
            directories.push(report);
        } else {
            files.push(path.clone());
        }
    }
    Ok((files, directories))
}

/// Lists the graph files of a directory, in the order of their names.
fn list(directory: &Path, options: &LoadOptions) -> Result<DirectoryReport, LoadError> {
    let shown = directory.display().to_string();
    let failed = |source| LoadError::Io { file: shown.clone(), source };
    let (mut read, mut passed_over) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Hidden files are nobody's data. A name that is not UTF-8 could not be opened again.
        if name.starts_with('.') || !directory.join(&name).exists() {
            continue;
        }
        let is_graph = entry.path().is_file() && is_graph(&entry.path(), &name, options);
        if is_graph { &mut read } else { &mut passed_over }.push(name);
    }
    read.sort_unstable();
    // Of a dataset, only the training triples are known. The others are for evaluation.
    let train = read.iter().position(|name| stem(name) == "train");
    let has_split = read.iter().any(|name| matches!(stem(name), "valid" | "test" | "dev"));
    let is_dataset = train.is_some() && has_split;
    if let Some(train) = train.filter(|_| is_dataset) {
        let train = read.swap_remove(train);
        passed_over.append(&mut read);
        read.push(train);
    }
    passed_over.sort_unstable();
    if read.is_empty() {
        return Err(LoadError::Directory { file: shown, example: None });
    }
    Ok(DirectoryReport { directory: shown, read, passed_over, is_dataset })
}

/// Returns the name without all of its extensions.
fn stem(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// Tells whether a file in a directory is a graph: by its extension, or as text with tabs that is
/// called `.txt`. Other files lie about for other purposes, such as a README with commas.
fn is_graph(path: &Path, name: &str, options: &LoadOptions) -> bool {
    if Format::from_name(name).is_some() {
        return true;
    }
    let name = name.to_ascii_lowercase();
    let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
    let options = LoadOptions { format: None, ..options.clone() };
    match name.rsplit_once('.') {
        Some((_, "txt")) => Source::open(path, &options).is_ok_and(|source| source.format == Format::Tsv),
        _ => false,
    }
}
