//! Fetches upstream files, from the web or from a directory, and checks them before they are put in
//! place.
//!
//! Downloads go to `.fetch/NAME/` beside the datasets. A download that breaks off is resumed where
//! it broke, in the same call or in a later one. Then every file is rewritten as tab-separated
//! head, relation, tail, and the result is compared with the registry: by checksums where they are
//! known, else by counts. Only then does the directory appear under its name.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use super::layout::{Part, Split};
use super::registry::RegistryEntry;
use super::{Dataset, DatasetError, DatasetRemedy, check};
use crate::rows::{Separator, TableRow, rows};
use flock_model::files::sha256_hex;

/// How often a download is tried before it fails.
const TRIES: u32 = 5;

/// Why a dataset cannot be fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The dataset exists already.
    #[error("{dir}: exists already")]
    Exists {
        /// The directory.
        dir: String,
    },
    /// A local file cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// The source does not have a file.
    #[error("{from}: not found")]
    NotFound {
        /// What was asked for first.
        from: String,
        /// The upstream path.
        path: String,
        /// The dataset.
        name: String,
        /// The file of the layout.
        part: Part,
    },
    /// A download failed.
    #[error("{url}: {reason}; what has come is kept")]
    Http {
        /// What was asked for.
        url: String,
        /// What went wrong.
        reason: String,
    },
    /// An upstream file has a row that is not a triple.
    #[error("{file}:{line}: expected 3 fields, found {found}")]
    Row {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// How many fields it has.
        found: usize,
    },
    /// An archive cannot be read.
    #[error("{file}: {reason}")]
    Archive {
        /// The archive.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// The files differ from the registry.
    #[error("{name} is not as published:\n  {}", .differences.join("\n  "))]
    Differs {
        /// The dataset.
        name: String,
        /// What differs.
        differences: Vec<String>,
    },
    /// The fetched files are not a dataset.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
}

impl FetchError {
    /// Returns what to do about it, where that is known.
    pub fn remedy(&self) -> Option<DatasetRemedy> {
        Some(match self {
            FetchError::Exists { .. } => DatasetRemedy::CheckOrRemove,
            FetchError::NotFound { path, name, part, .. } => {
                DatasetRemedy::NameSource { path: path.clone(), name: name.clone(), part: *part }
            }
            FetchError::Http { .. } => DatasetRemedy::Resume,
            FetchError::Differs { .. } => DatasetRemedy::Accept,
            FetchError::Dataset(e) => return e.remedy(),
            _ => return None,
        })
    }
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> FetchError + '_ {
    move |source| FetchError::Io { file: path.display().to_string(), source }
}

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
    let work = data.join(".fetch").join(entry.name);
    let made = work.join("made").join(entry.name);
    fs::create_dir_all(&made).map_err(io_error(&made))?;
    let mut source = Upstream::new(from.unwrap_or(&entry.collection.url), &work);
    let mut sums = BTreeMap::new();
    for (part, paths) in &entry.collection.files {
        let text = gather(entry, *part, paths, &mut source, watch)?;
        sums.insert(*part, sha256_hex(text.as_bytes()));
        let file = made.join(part.file());
        fs::write(&file, text).map_err(io_error(&file))?;
    }
    let meta = made.join("meta.json");
    fs::write(&meta, format!("{:#}\n", description(entry, &source.base, &sums))).map_err(io_error(&meta))?;
    let differences = check::differences(&Dataset::open(&made)?)?;
    if !differences.is_empty() && !accept {
        return Err(FetchError::Differs { name: entry.name.to_string(), differences });
    }
    fs::rename(&made, &target).map_err(io_error(&target))?;
    fs::remove_dir_all(&work).map_err(io_error(&work))?;
    // Fails if another dataset is being fetched, which is fine.
    let _ = fs::remove_dir(data.join(".fetch"));
    Ok(differences)
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
/// layout.
fn gather(
    entry: &RegistryEntry,
    part: Part,
    paths: &[String],
    source: &mut Upstream,
    watch: &mut dyn FnMut(&str, u64),
) -> Result<String, FetchError> {
    let mut text = String::new();
    let paths: Vec<String> = paths.iter().map(|p| p.replace("{}", entry.at)).collect();
    for path in &paths {
        let (file, inner) = path.split_once('!').map_or((path.as_str(), None), |(f, i)| (f, Some(i)));
        let Some(local) = source.file(file, watch)? else {
            return mirror(entry, part, &paths[0], source, watch);
        };
        let bytes = match inner {
            None => fs::read(&local).map_err(io_error(&local))?,
            Some(inner) => unpack(&local, inner)?,
        };
        rewrite(path, &bytes, entry.collection.columns, &mut text)?;
    }
    Ok(text)
}

fn mirror(
    entry: &RegistryEntry,
    part: Part,
    path: &str,
    source: &mut Upstream,
    watch: &mut dyn FnMut(&str, u64),
) -> Result<String, FetchError> {
    for place in [format!("{}/{}", entry.name, part.file()), part.file()] {
        if let Some(local) = source.file(&place, watch)? {
            let mut text = String::new();
            rewrite(&place, &fs::read(&local).map_err(io_error(&local))?, [0, 1, 2], &mut text)?;
            return Ok(text);
        }
    }
    let (name, path) = (entry.name.to_string(), path.to_string());
    Err(FetchError::NotFound { from: source.at(&path), path, name, part })
}

/// Rewrites triples as `head \t relation \t tail \n`. Fields are separated by tabs, or by blanks
/// where there is no tab.
fn rewrite(file: &str, bytes: &[u8], columns: [usize; 3], out: &mut String) -> Result<(), FetchError> {
    let text = String::from_utf8_lossy(bytes);
    for TableRow { line, fields } in rows(&text, Separator::Tab) {
        let fields: Vec<&str> = match fields.len() {
            1 => fields[0].split_whitespace().collect(),
            _ => fields.iter().map(str::trim).collect(),
        };
        // A line of blanks.
        if fields.iter().all(|field| field.is_empty()) {
            continue;
        }
        if fields.len() != 3 {
            return Err(FetchError::Row { file: file.to_string(), line, found: fields.len() });
        }
        for (i, column) in columns.into_iter().enumerate() {
            out.push_str(fields[column]);
            out.push(if i == 2 { '\n' } else { '\t' });
        }
    }
    Ok(())
}

/// Reads a file inside a `.zip` or `.tar.gz`, found by the end of its path.
fn unpack(archive: &Path, inner: &str) -> Result<Vec<u8>, FetchError> {
    let bad = |reason: String| FetchError::Archive { file: archive.display().to_string(), reason };
    let file = File::open(archive).map_err(io_error(archive))?;
    let mut bytes = Vec::new();
    let is_it = |path: &Path| path.ends_with(inner);
    if archive.extension().is_some_and(|e| e == "zip") {
        let mut zip = zip::ZipArchive::new(file).map_err(|e| bad(e.to_string()))?;
        let name =
            zip.file_names().flatten().find(|name| is_it(Path::new(name.as_ref()))).map(|name| name.into_owned());
        let name = name.ok_or_else(|| bad(format!("no {inner} in it")))?;
        zip.by_name(&name).map_err(|e| bad(e.to_string()))?.read_to_end(&mut bytes).map_err(io_error(archive))?;
        return Ok(bytes);
    }
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(file));
    for entry in tar.entries().map_err(io_error(archive))? {
        let mut entry = entry.map_err(io_error(archive))?;
        if entry.path().is_ok_and(|path| is_it(&path)) {
            entry.read_to_end(&mut bytes).map_err(io_error(archive))?;
            return Ok(bytes);
        }
    }
    Err(bad(format!("no {inner} in it")))
}

/// The place that upstream files come from.
struct Upstream {
    base: String,
    work: PathBuf,
    agent: ureq::Agent,
}

impl Upstream {
    fn new(base: &str, work: &Path) -> Upstream {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(30)))
            .timeout_recv_response(Some(Duration::from_secs(60)))
            .user_agent(concat!("flock-kg/", env!("CARGO_PKG_VERSION")))
            .build();
        Upstream { base: base.trim_end_matches('/').to_string(), work: work.to_path_buf(), agent: config.new_agent() }
    }

    fn is_web(&self) -> bool {
        self.base.starts_with("http://") || self.base.starts_with("https://")
    }

    fn at(&self, path: &str) -> String {
        format!("{}/{path}", self.base)
    }

    /// Returns a local copy of upstream's `path`, or `None` if upstream does not have it.
    fn file(&mut self, path: &str, watch: &mut dyn FnMut(&str, u64)) -> Result<Option<PathBuf>, FetchError> {
        // A query string is part of an address, not of a name.
        let plain = path.split('?').next().unwrap_or(path);
        if !self.is_web() {
            let local = Path::new(&self.base).join(plain);
            return Ok(local.is_file().then_some(local));
        }
        let local = self.work.join(plain.replace('/', "_"));
        if local.is_file() {
            return Ok(Some(local));
        }
        let (url, part) = (self.at(path), local.with_added_extension("part"));
        let mut failure = String::new();
        for attempt in 0..TRIES {
            if attempt > 0 {
                std::thread::sleep(Duration::from_millis(200 << attempt));
            }
            match self.download(&url, &part, &mut |bytes| watch(path, bytes))? {
                Download::Complete => {
                    fs::rename(&part, &local).map_err(io_error(&local))?;
                    return Ok(Some(local));
                }
                Download::Missing => return Ok(None),
                Download::Partial(reason) => failure = reason,
            }
        }
        Err(FetchError::Http { url, reason: failure })
    }

    /// Downloads the rest of `part`.
    fn download(&self, url: &str, part: &Path, watch: &mut dyn FnMut(u64)) -> Result<Download, FetchError> {
        let mut have = fs::metadata(part).map_or(0, |m| m.len());
        // The server's tag for the version of the part. Another version starts over.
        let mark = part.with_added_extension("etag");
        let mut request = self.agent.get(url);
        if have > 0 {
            request = request.header("Range", format!("bytes={have}-"));
            if let Ok(tag) = fs::read_to_string(&mark) {
                request = request.header("If-Range", tag);
            }
        }
        let mut response = match request.call() {
            Ok(response) => response,
            Err(e) => return Ok(Download::Partial(e.to_string())),
        };
        let header = |name: &str| response.headers().get(name).and_then(|v| v.to_str().ok()).map(String::from);
        let total = |range: Option<String>| range?.rsplit_once('/')?.1.parse::<u64>().ok();
        let expected = match response.status().as_u16() {
            206 if header("content-range").is_some_and(|r| r.starts_with(&format!("bytes {have}-"))) => {
                total(header("content-range"))
            }
            200 => {
                have = 0;
                header("content-length").and_then(|n| n.parse().ok())
            }
            416 if total(header("content-range")) == Some(have) => return Ok(Download::Complete),
            // A range that does not fit what we have: from the beginning.
            206 | 416 => {
                fs::remove_file(part).map_err(io_error(part))?;
                return Ok(Download::Partial("the server sent another range than was asked for".to_string()));
            }
            404 | 410 => return Ok(Download::Missing),
            status => return Ok(Download::Partial(format!("the server answered {status}"))),
        };
        match header("etag").filter(|tag| !tag.starts_with("W/")) {
            Some(tag) => fs::write(&mark, tag).map_err(io_error(&mark))?,
            None => _ = fs::remove_file(&mark),
        }
        let mut file =
            OpenOptions::new().create(true).write(true).truncate(false).open(part).map_err(io_error(part))?;
        file.set_len(have).map_err(io_error(part))?;
        io::Seek::seek(&mut file, io::SeekFrom::Start(have)).map_err(io_error(part))?;
        let mut reader = response.body_mut().as_reader();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => {
                    file.write_all(&buffer[..n]).map_err(io_error(part))?;
                    have += n as u64;
                    watch(have);
                }
                Err(e) => return Ok(Download::Partial(format!("broke off after {have} bytes: {e}"))),
            }
        }
        match expected {
            Some(expected) if have < expected => {
                Ok(Download::Partial(format!("broke off after {have} of {expected} bytes")))
            }
            Some(expected) if have > expected => {
                fs::remove_file(part).map_err(io_error(part))?;
                Ok(Download::Partial(format!("the server sent more than the {expected} bytes it announced")))
            }
            _ => Ok(Download::Complete),
        }
    }
}

/// The result of a request.
enum Download {
    /// The whole file is here.
    Complete,
    /// It broke off, for this reason.
    Partial(String),
    /// The server does not have the file.
    Missing,
}
