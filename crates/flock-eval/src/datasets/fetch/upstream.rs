//! The place that upstream files come from: a directory, or a web server whose downloads are resumed.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::{FetchError, io_error};

/// How often a download is tried before it fails.
const TRIES: u32 = 5;
/// A download may have so many bytes.
const MAX_DOWNLOAD: u64 = 2 << 30;
/// The file that says where the downloads in a directory come from.
const ORIGIN: &str = "origin";

/// The place that upstream files come from.
pub(super) struct Upstream {
    pub base: String,
    work: PathBuf,
    agent: ureq::Agent,
}

impl Upstream {
    /// Downloads go to `work`, which must exist. What is there from another source is removed.
    pub fn new(base: &str, work: &Path) -> Result<Upstream, FetchError> {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(30)))
            .timeout_recv_response(Some(Duration::from_secs(60)))
            .user_agent(concat!("flock-kg/", env!("CARGO_PKG_VERSION")))
            .build();
        let base = base.trim_end_matches('/').to_string();
        let upstream = Upstream { base, work: work.to_path_buf(), agent: config.new_agent() };
        let origin = work.join(ORIGIN);
        if upstream.is_web() && fs::read_to_string(&origin).ok().as_ref() != Some(&upstream.base) {
            fs::remove_dir_all(work).map_err(io_error(work))?;
            fs::create_dir_all(work).map_err(io_error(work))?;
            fs::write(&origin, &upstream.base).map_err(io_error(&origin))?;
        }
        Ok(upstream)
    }

    /// Returns whether files are downloaded.
    pub fn is_web(&self) -> bool {
        self.base.starts_with("http://") || self.base.starts_with("https://")
    }

    /// Returns the address of upstream's `path`.
    pub fn at(&self, path: &str) -> String {
        format!("{}/{path}", self.base)
    }

    /// Removes a local copy that is of no use, so that the next call downloads it again.
    pub fn discard(&self, local: &Path) {
        if self.is_web() {
            let _ = fs::remove_file(local);
        }
    }

    /// Returns a local copy of upstream's `path`, or `None` if upstream does not have it.
    pub fn file(&self, path: &str, watch: &mut dyn FnMut(&str, u64)) -> Result<Option<PathBuf>, FetchError> {
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
                    if have > MAX_DOWNLOAD {
                        drop(file);
                        fs::remove_file(part).map_err(io_error(part))?;
                        let expected = "a benchmark graph".to_string();
                        return Err(FetchError::TooLarge { file: url.to_string(), limit: MAX_DOWNLOAD, expected });
                    }
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
