//! Opens a path or a reader as a stream of plain bytes, and detects its format.

use super::table::json;
use super::{Format, LoadOptions, foreign};
use crate::read::error::{Compression, LoadError, Remedy, RowError};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Number of bytes (after decompression) that are examined to detect the format.
const HEAD: usize = 64 << 10;

/// A stream of plain bytes.
pub(crate) struct Source<'a> {
    /// The name to use in messages.
    pub(crate) file: String,
    pub(crate) format: Format,
    pub(crate) reader: Box<dyn Read + 'a>,
    /// The address of a SPARQL endpoint, which has no bytes to read.
    #[cfg_attr(not(feature = "sparql"), expect(dead_code, reason = "nobody asks it"))]
    pub(crate) endpoint: Option<String>,
    /// The beginning of the plain bytes, and whether this is all.
    pub(crate) head: (Vec<u8>, bool),
    /// Where the plain bytes are, if they are in a file.
    pub(crate) path: Option<PathBuf>,
    compression: Option<Compression>,
}

impl<'a> Source<'a> {
    /// Opens a file, or standard input for `-`.
    pub(crate) fn open(path: &Path, options: &LoadOptions) -> Result<Source<'static>, LoadError> {
        if path == Path::new("-") {
            return Source::new("<stdin>".to_owned(), io::stdin().lock(), options);
        }
        let file = source_name(path);
        if let Some(address) = path.to_str().and_then(|path| path.strip_prefix("sparql:")) {
            return Ok(Source::endpoint(file, address));
        }
        if path.is_dir() {
            let example = example_in(path);
            return Err(LoadError::Directory { file, example });
        }
        match File::open(path) {
            Ok(reader) => {
                let mut source = Source::new(file, reader, options)?;
                // A pipe or a device cannot be read again.
                let is_plain = source.compression.is_none() && path.is_file();
                source.path = is_plain.then(|| path.to_path_buf());
                Ok(source)
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Err(LoadError::NotFound { file }),
            Err(source) => Err(LoadError::Io { file, source }),
        }
    }

    /// Names a SPARQL endpoint. Nothing is asked yet.
    fn endpoint(file: String, address: &str) -> Source<'static> {
        Source {
            file,
            format: Format::Sparql,
            reader: Box::new(io::empty()),
            endpoint: Some(address.to_owned()),
            head: (Vec::new(), true),
            path: None,
            compression: None,
        }
    }

    /// Decompresses `reader` if its first bytes say so, and detects the format unless it is given.
    pub(crate) fn new(
        file: String,
        mut reader: impl Read + 'a,
        options: &LoadOptions,
    ) -> Result<Source<'a>, LoadError> {
        let magic = match peek(&mut reader, 6) {
            Ok(magic) => magic,
            Err(source) => return Err(LoadError::Io { file, source }),
        };
        if let Some(found) = archive(&magic) {
            let mut head = magic;
            // A workbook is told from other archives by the names in it. Whatever is read suffices.
            let _ = reader.take(HEAD as u64).read_to_end(&mut head);
            if let Some((found, remedy)) = foreign::zip(&head).filter(|_| found == "zip") {
                return Err(LoadError::Foreign { file, found, remedy });
            }
            return Err(LoadError::Archive { file, found });
        }
        let compression = match magic[..] {
            [0x1f, 0x8b, ..] => Some(Compression::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstd),
            _ => None,
        };
        let packed_bytes = Rc::new(Cell::new(0));
        let packed = CountingReader { reader: Cursor::new(magic).chain(reader), bytes: packed_bytes.clone() };
        let reader: Box<dyn Read + 'a> = match compression {
            None => Box::new(packed),
            Some(Compression::Gzip) => {
                let buffered = io::BufReader::with_capacity(64 << 10, packed);
                Box::new(flate2::bufread::MultiGzDecoder::new(buffered))
            }
            Some(Compression::Zstd) => match zstd::Decoder::new(packed) {
                Ok(decoder) => Box::new(decoder),
                Err(source) => return Err(LoadError::Io { file, source }),
            },
        };
        let reader: Box<dyn Read + 'a> = match compression {
            Some(_) => Box::new(ExpansionLimitReader { reader, bytes: 0, packed_bytes }),
            None => reader,
        };
        let reader: Box<dyn Read + 'a> = match options.max_bytes {
            Some(most) => Box::new(LimitedReader { reader, most, left: most }),
            None => reader,
        };
        // This format is a placeholder: the bytes must be decompressed before the format can be
        // detected.
        let head = (Vec::new(), true);
        let mut source = Source { file, format: Format::Tsv, reader, head, path: None, endpoint: None, compression };
        let mut head = peek(&mut source.reader, HEAD).map_err(|e| source.failed(e))?;
        if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
            return Err(LoadError::Utf16 { file: source.file });
        }
        if head.starts_with(b"\xef\xbb\xbf") {
            head.drain(..3);
        }
        // If the caller names the format, trust that.
        if let Some(format) = options.format {
            source.format = format;
        } else {
            source.format = detect(&source.file, &head)?;
        }
        let is_all = head.len() < HEAD - 3;
        source.head = (head.clone(), is_all);
        source.reader = Box::new(Cursor::new(head).chain(source.reader));
        Ok(source)
    }

    /// Takes the reader out, for a parser that wants to own it.
    pub(crate) fn take_reader(&mut self) -> Box<dyn Read + 'a> {
        std::mem::replace(&mut self.reader, Box::new(io::empty()))
    }

    /// Makes an error about a line.
    pub(crate) fn row(&self, line: u64, what: RowError) -> LoadError {
        LoadError::Row { file: self.file.clone(), line, what }
    }

    /// Turns a failed read into an error.
    pub(crate) fn failed(&self, source: io::Error) -> LoadError {
        let file = self.file.clone();
        if let Some(ByteLimitExceeded(limit)) = source.get_ref().and_then(|e| e.downcast_ref()) {
            return LoadError::TooMuch { file, limit: *limit };
        }
        let swollen = source.get_ref().and_then(|e| e.downcast_ref::<ExpansionLimitExceeded>());
        match self.compression {
            Some(compression) if swollen.is_some() => LoadError::Swollen {
                file,
                compression,
                floor: ExpansionLimitReader::<File>::FLOOR,
                factor: ExpansionLimitReader::<File>::FACTOR,
            },
            Some(compression) => LoadError::Damaged { file, compression, source },
            None => LoadError::Io { file, source },
        }
    }
}

/// Returns the name of a graph file or SPARQL endpoint for messages: without a password.
pub fn source_name(path: &Path) -> String {
    let name = path.display().to_string();
    let address = name.strip_prefix("sparql:").and_then(|address| address.split_once("://"));
    match address.and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?))) {
        Some((scheme, (user, rest))) if !user.contains(['/', '#', '?']) => {
            format!("sparql:{scheme}://{}:…@{rest}", user.split(':').next().unwrap_or_default())
        }
        _ => name,
    }
}

/// Detects the format by the content where that is certain, then by the name of the file, then by
/// the look of the first lines.
fn detect(file: &str, head: &[u8]) -> Result<Format, LoadError> {
    if let Some(format) = Format::by_magic(head) {
        return Ok(format);
    }
    let file = || file.to_owned();
    if let Some((found, remedy)) = foreign::recognise(head) {
        return Err(LoadError::Foreign { file: file(), found, remedy });
    }
    let named = Format::from_name(&file());
    let is_text =
        |format| matches!(format, Format::Tsv | Format::Csv | Format::NTriples | Format::Turtle | Format::RdfXml);
    let is_all = head.len() < HEAD - 3;
    // Values of JSON lines may be objects with an `@id`.
    let is_lines = || named == Some(Format::JsonLines) && json::is_lines(head, is_all);
    if Format::is_json(head) && Format::is_json_ld(head) && !is_lines() {
        return Ok(Format::JsonLd);
    }
    if Format::is_json(head) && named.is_none_or(is_text) {
        if json::is_lines(head, is_all) {
            return Ok(Format::JsonLines);
        }
        return Err(LoadError::Json { file: file(), found: json::shape(head) });
    }
    match named {
        Some(format @ (Format::Parquet | Format::Arrow)) if !head.is_empty() => {
            let found = if format == Format::Parquet { "no Parquet file" } else { "no Arrow file" };
            Err(LoadError::Foreign { file: file(), found, remedy: Remedy::NameFormat })
        }
        Some(format) => Ok(format.corrected(head)),
        None => match Format::sniff(head) {
            Some(format) => Ok(format),
            // The file is empty. Any format will report that.
            None if head.trim_ascii().is_empty() => Ok(Format::Tsv),
            None => Err(LoadError::UnknownFormat { file: file() }),
        },
    }
}

/// Passes on at most `most` bytes, and fails at the next one.
struct LimitedReader<R> {
    reader: R,
    most: u64,
    left: u64,
}

/// Says that a [`LimitedReader`] exceeded its limit.
#[derive(Debug, thiserror::Error)]
#[error("more than {0} bytes")]
struct ByteLimitExceeded(u64);

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Read one byte more than allowed, to distinguish the end from too much.
        let room = buffer.len().min(self.left.saturating_add(1).try_into().unwrap_or(usize::MAX));
        let len = self.reader.read(&mut buffer[..room])?;
        match self.left.checked_sub(len as u64) {
            Some(left) => self.left = left,
            None => return Err(io::Error::other(ByteLimitExceeded(self.most))),
        }
        Ok(len)
    }
}

/// Counts the bytes that pass through.
struct CountingReader<R> {
    reader: R,
    bytes: Rc<Cell<u64>>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.reader.read(buffer)?;
        self.bytes.set(self.bytes.get() + len as u64);
        Ok(len)
    }
}

/// Passes on decompressed bytes, and fails if they are far more than a file of triples would give.
/// A few compressed bytes can stand for more data than anybody has time to read.
struct ExpansionLimitReader<R> {
    reader: R,
    bytes: u64,
    packed_bytes: Rc<Cell<u64>>,
}

/// Says that an [`ExpansionLimitReader`] exceeded its limit.
#[derive(Debug, thiserror::Error)]
#[error("unpacks to too much")]
struct ExpansionLimitExceeded;

impl<R> ExpansionLimitReader<R> {
    /// Number of bytes that any file may expand to.
    const FLOOR: u64 = 256 << 20;
    /// Number of further bytes allowed for each compressed byte. Files of triples shrink to a
    /// fifth, or to a fiftieth at most.
    const FACTOR: u64 = 200;
}

impl<R: Read> Read for ExpansionLimitReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.reader.read(buffer)?;
        self.bytes += len as u64;
        if self.bytes > Self::FLOOR.saturating_add(Self::FACTOR.saturating_mul(self.packed_bytes.get())) {
            return Err(io::Error::other(ExpansionLimitExceeded));
        }
        Ok(len)
    }
}

/// Reads the first `len` bytes, or all if there are fewer.
fn peek(reader: &mut impl Read, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(len);
    reader.take(len as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Recognises archives and compressed streams that are not supported.
fn archive(magic: &[u8]) -> Option<&'static str> {
    match magic {
        [b'P', b'K', 3, 4, ..] => Some("zip"),
        [b'B', b'Z', b'h', b'1'..=b'9', b'1', b'A'] => Some("bzip2"),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => Some("xz"),
        [b'7', b'z', 0xbc, 0xaf, ..] => Some("7z"),
        _ => None,
    }
}

/// Finds the first file in a directory whose name looks like that of a graph. Names with `train` go
/// first.
fn example_in(directory: &Path) -> Option<String> {
    let mut files: Vec<String> = std::fs::read_dir(directory)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file())
        .map(|path| path.display().to_string())
        .filter(|file| Format::from_name(file).is_some() || file.ends_with(".txt"))
        .collect();
    files.sort_unstable_by_key(|file| (!file.contains("train"), file.clone()));
    files.into_iter().next()
}
