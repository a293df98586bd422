//! Fetches upstream files, from the web or from a directory, and checks them before they are put in
//! place.
//!
//! Downloads go to `.fetch/NAME/` beside the datasets. A download that breaks off is resumed where
//! it broke, in the same call or in a later one. Then every file is rewritten as tab-separated
//! head, relation, tail, and the result is compared with the registry: by checksums where they are
//! known, else by counts. Only then does the directory appear under its name.
//!
//! If it does not come to that, nothing is left under the dataset's name. Downloads are kept for the
//! next call with the same source, except a file that is no table of triples.

mod archive;
mod error;
mod rewrite;
mod suspicion;
mod upstream;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use serde_json::json;

use super::layout::{Part, Split};
use super::registry::RegistryEntry;
use super::{Dataset, check};
pub use error::FetchError;
use error::io_error;
use rewrite::PartWriter;
pub use suspicion::Suspicion;
use upstream::Upstream;

/// Head, relation and tail in order.
const IN_ORDER: [usize; 3] = [0, 1, 2];

/// Fetches a dataset into `data`. `from` is the URL or directory that upstream paths are relative
/// to; the default is the registry's URL. With `accept`, files that differ from the registry are
/// kept, and the differences are returned. `watch` gets each file and its bytes so far.
pub fn fetch(
    entry: &RegistryEntry,
    from: Option<&str>,
    data: &Path,
    accept: bool,
    watch: &mut dyn FnMut(&str, u64),
) -> Result<Vec<String>, FetchError> {
    let target = data.join(entry.name);
    if target.exists() {
        return Err(FetchError::Exists { dir: target.display().to_string() });
    }
    let place = data.join(".fetch");
    let work = place.join(entry.name);
    fs::create_dir_all(&work).map_err(io_error(&work))?;
    let fetched = Upstream::new(from.unwrap_or(&entry.collection.url), &work).and_then(|source| {
        let made = work.join("made");
        let differences = make(entry, &source, &made, accept, watch);
        let placed = differences.and_then(|differences| {
            fs::rename(made.join(entry.name), &target).map_err(io_error(&target))?;
            Ok(differences)
        });
        // What was made of a failed fetch is of no use; what was downloaded is.
        let rest = if placed.is_ok() { &work } else { &made };
        let _ = fs::remove_dir_all(rest);
        let _ = fs::remove_dir(&work); // fails if downloads are kept
        placed
    });
    // Fails if downloads are kept, or another dataset is being fetched, which is fine.
    let _ = fs::remove_dir(place);
    fetched
}

/// Makes the dataset in a directory of its name in `made`. Returns what differs from the registry.
fn make(
    entry: &RegistryEntry,
    source: &Upstream,
    made: &Path,
    accept: bool,
    watch: &mut dyn FnMut(&str, u64),
) -> Result<Vec<String>, FetchError> {
    let dir = made.join(entry.name);
    fs::create_dir_all(&dir).map_err(io_error(&dir))?;
    let (mut sums, mut columns) = (BTreeMap::new(), IN_ORDER);
    for (part, paths) in &entry.collection.files {
        let mut out = PartWriter::create(&dir, entry, *part)?;
        columns = gather(entry, *part, paths, source, &mut out, watch)?;
        sums.insert(*part, out.finish()?);
    }
    let meta = dir.join("meta.json");
    fs::write(&meta, format!("{:#}\n", description(entry, &source.base, &sums))).map_err(io_error(&meta))?;
    let differences = check::differences(&Dataset::open(&dir)?)?;
    if differences.is_empty() || accept {
        return Ok(differences);
    }
    let suspicions = suspicion::suspicions(entry, &dir, columns, &made.join("swapped"))?;
    let kept = made.parent().filter(|_| source.is_web()).map(|dir| dir.display().to_string());
    Err(FetchError::Differs { name: entry.name.to_string(), differences, suspicions, kept })
}

/// Returns the content of `meta.json`.
fn description(entry: &RegistryEntry, from: &str, sums: &BTreeMap<Part, String>) -> serde_json::Value {
    let p = &entry.protocol;
    json!({
        "name": entry.name,
        "split": p.kind,
        "source_repo": entry.collection.source,
        "fetched_from": from,
        "license": entry.collection.licence,
        "valid_graph": p.valid_graph,
        "filter": { "valid": p.filter(Split::Valid), "test": p.filter(Split::Test) },
        "entity_task": if p.heads { "h/t" } else { "t" },
        "sha256": sums,
    })
}

/// Assembles one file of the layout from its upstream files, or takes it from a mirror that has the
/// layout. Returns the columns of head, relation and tail in what was read.
fn gather(
    entry: &RegistryEntry,
    part: Part,
    paths: &[String],
    source: &Upstream,
    out: &mut PartWriter,
    watch: &mut dyn FnMut(&str, u64),
) -> Result<[usize; 3], FetchError> {
    let columns = entry.collection.columns;
    let paths: Vec<String> = paths.iter().map(|p| p.replace("{}", entry.at)).collect();
    for path in &paths {
        let (file, inner) = path.split_once('!').map_or((path.as_str(), None), |(f, i)| (f, Some(i)));
        let Some(local) = source.file(file, watch)? else {
            return mirror(entry, part, file, source, out, watch);
        };
        let added = match inner {
            None => add_plain(out, path, &local, columns),
            Some(inner) => archive::read(&local, inner, |reader| {
                let damaged =
                    |e| FetchError::Archive { file: path.clone(), reason: format!("the archive is damaged: {e}") };
                out.add(path, reader, columns, &damaged)
            }),
        };
        added.inspect_err(|e| {
            if e.is_content() {
                source.discard(&local);
            }
        })?;
    }
    Ok(columns)
}

/// Takes a file from a mirror that has the layout. `upstream` is what the source lacks.
fn mirror(
    entry: &RegistryEntry,
    part: Part,
    upstream: &str,
    source: &Upstream,
    out: &mut PartWriter,
    watch: &mut dyn FnMut(&str, u64),
) -> Result<[usize; 3], FetchError> {
    let places = [format!("{}/{}", entry.name, part.file()), part.file()];
    for place in &places {
        if let Some(local) = source.file(place, watch)? {
            add_plain(out, place, &local, IN_ORDER).inspect_err(|e| {
                if e.is_content() {
                    source.discard(&local);
                }
            })?;
            return Ok(IN_ORDER);
        }
    }
    let tried = [upstream].into_iter().chain(places.iter().map(String::as_str)).map(|path| source.at(path)).collect();
    Err(FetchError::NotFound { tried, path: upstream.to_string(), name: entry.name.to_string(), part })
}

fn add_plain(out: &mut PartWriter, file: &str, local: &Path, columns: [usize; 3]) -> Result<(), FetchError> {
    let mut reader = BufReader::new(File::open(local).map_err(io_error(local))?);
    out.add(file, &mut reader, columns, &io_error(local))
}
