//! What can go wrong on the way from a file to a graph. Every message names the file, the line where there is one, what
//! was found and what was expected. What to do about it is a [`Remedy`]: the command says it as a flag, the server in words.

use crate::{Format, GraphError, TopologyError};
use std::borrow::Cow;
use std::{fmt, io};

/// Why a graph file could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// There is no such file.
    #[error("{file}: no such file")]
    NotFound {
        /// The file as it was named.
        file: String,
    },
    /// A directory was named instead of a file.
    #[error("{file}: is a directory, expected a graph file")]
    Directory {
        /// The directory as it was named.
        file: String,
        /// A file in it that may have been meant.
        example: Option<String>,
    },
    /// The system could not open or read the file.
    #[error("{file}: cannot read: {source}")]
    Io {
        /// The file as it was named.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// There is more text than may be read.
    #[error("{file}: more than {limit} bytes of text, packed or not")]
    TooMuch {
        /// The file as it was named.
        file: String,
        /// The most that is read.
        limit: u64,
    },
    /// Compressed data ends early or is broken.
    #[error("{file}: {compression} data ends early or is damaged ({source})")]
    Damaged {
        /// The file as it was named.
        file: String,
        /// How it is compressed.
        compression: Compression,
        /// What the decompressor said.
        source: io::Error,
    },
    /// A small packed file unpacks to very much.
    #[error(
        "{file}: {compression} data unpacks to more than {} MiB and {factor} times its own size, expected less",
        floor >> 20
    )]
    Swollen {
        /// The file as it was named.
        file: String,
        /// How it is compressed.
        compression: Compression,
        /// So many bytes any file may unpack to.
        floor: u64,
        /// And so many more for each packed byte.
        factor: u64,
    },
    /// The file is some archive or compressed stream that is not read here.
    #[error("{file}: found {found} data, expected text, gzip or zstd")]
    Archive {
        /// The file as it was named.
        file: String,
        /// What its first bytes say.
        found: &'static str,
    },
    /// The text is JSON.
    #[error("{file}: found JSON, expected tsv, csv, nt, ttl or rdfxml")]
    Json {
        /// The file as it was named.
        file: String,
    },
    /// The text is UTF-16.
    #[error("{file}: found UTF-16 text, expected UTF-8")]
    Utf16 {
        /// The file as it was named.
        file: String,
    },
    /// Neither the name nor the content tells the format.
    #[error("{file}: cannot tell the format from the name or the first line")]
    UnknownFormat {
        /// The file as it was named.
        file: String,
    },
    /// Columns were chosen, or a header promised, for a format that has neither.
    #[error("{file}: is {format}, which has no columns and no header")]
    NoColumns {
        /// The file as it was named.
        file: String,
        /// What it was read as.
        format: Format,
    },
    /// A line is not what it should be.
    #[error("{file}:{line}: {what}")]
    Row {
        /// The file as it was named.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        what: RowError,
    },
    /// There is nothing to make a graph of.
    #[error(
        "{files}: no triples, expected at least one: {rows} rows read, {literals} literals and {skipped} bad rows left out"
    )]
    Empty {
        /// The files as they were named.
        files: String,
        /// Rows or statements read.
        rows: u64,
        /// Statements left out because their object is a literal.
        literals: u64,
        /// Rows left out because they are malformed.
        skipped: u64,
    },
    /// The graph is too large for its index.
    #[error("{files}: {source}")]
    TooLarge {
        /// The files as they were named.
        files: String,
        /// The limit that was met.
        source: TopologyError,
    },
}

impl LoadError {
    /// What to do about it, where something is known to help.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            LoadError::NotFound { .. } => Some(Remedy::CheckPath),
            LoadError::Directory { example, .. } => example.clone().map(Remedy::NameFile),
            LoadError::Damaged { .. } => Some(Remedy::FetchAgain),
            LoadError::Archive { .. } | LoadError::Swollen { .. } => Some(Remedy::Unpack),
            LoadError::Utf16 { .. } => Some(Remedy::ToUtf8 { from: "UTF-16" }),
            LoadError::Json { .. } => Some(Remedy::FromJson),
            LoadError::UnknownFormat { .. } => Some(Remedy::NameFormat),
            LoadError::NoColumns { .. } => Some(Remedy::NoColumns),
            LoadError::Row { what, .. } => what.remedy(),
            LoadError::Io { .. } | LoadError::TooMuch { .. } | LoadError::Empty { .. } | LoadError::TooLarge { .. } => {
                None
            }
        }
    }

    pub(crate) fn from_graph(files: String, error: GraphError, report: &crate::LoadReport) -> Self {
        match error {
            GraphError::Empty => {
                LoadError::Empty { files, rows: report.rows, literals: report.literals, skipped: report.skipped }
            }
            GraphError::Topology(source) => LoadError::TooLarge { files, source },
        }
    }
}

/// What is wrong with one line of a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RowError {
    /// Too many or too few fields.
    #[error("expected {} {separator}-separated fields, found {found}", expected(.wanted))]
    Fields {
        /// `tab` or `comma`.
        separator: &'static str,
        /// The columns that were asked for (from 0), if any were.
        wanted: Option<[usize; 3]>,
        /// How many fields there are.
        found: usize,
        /// What to do, by the looks of the line.
        remedy: Option<Box<Remedy>>,
    },
    /// A field without a name in it.
    #[error("field {column} is empty, expected the name of {}", role_text(*.role))]
    EmptyField {
        /// The field, from 1.
        column: usize,
        /// 0 head, 1 relation, 2 tail.
        role: usize,
    },
    /// Bytes that are not UTF-8.
    #[error("invalid UTF-8 at byte {byte} of the line, expected UTF-8 text")]
    InvalidUtf8 {
        /// The first bad byte, from 1, not counting the quotes of CSV.
        byte: usize,
    },
    /// A quoted field without an end.
    #[error("a quote is opened and never closed, expected a closing \"")]
    OpenQuote,
    /// A quoted field that goes on after its end.
    #[error("found text after a closing quote, expected a comma")]
    TextAfterQuote,
    /// A row longer than any sensible one.
    #[error("found a row of more than {} MiB, expected one triple per line", crate::read::rows::MAX_ROW >> 20)]
    TooLong,
    /// A row of more fields than any sensible one.
    #[error("found a row of more than {} fields, expected one triple per line", crate::read::rows::MAX_FIELDS)]
    ManyFields,
    /// A name longer than any sensible one.
    #[error("found a name of more than {} KiB, expected a shorter one", crate::read::rows::MAX_NAME >> 10)]
    LongName,
    /// Abbreviations (prefixes, bases, entities) that stand for far more than the file has.
    #[error(
        "names written out in full come to more than {} MiB and {factor} times the bytes read, expected less",
        floor >> 20
    )]
    Swelling {
        /// So much any file may come to.
        floor: u64,
        /// And so much more for each byte read.
        factor: u64,
    },
    /// Something that a parser would have to hold all at once.
    #[error("found more than {limit} {what}, expected fewer")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// The most that is taken.
        limit: usize,
    },
    /// A syntax error in an RDF file, in the words of the RDF parser.
    #[error("{}", shown(.message))]
    Rdf {
        /// What was found.
        message: String,
        /// What may help.
        remedy: Option<Box<Remedy>>,
    },
}

impl RowError {
    /// What to do about it, where something is known to help.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            RowError::Fields { remedy, .. } | RowError::Rdf { remedy, .. } => remedy.as_deref().cloned(),
            RowError::EmptyField { .. } => Some(Remedy::FillOrSkip),
            RowError::InvalidUtf8 { .. } => Some(Remedy::ToUtf8 { from: "LATIN1" }),
            RowError::OpenQuote | RowError::TextAfterQuote => {
                Some(Remedy::Write("write a quote inside a name as \"\""))
            }
            RowError::Swelling { .. } => {
                Some(Remedy::Write("shorten the namespaces and entities, or write the file as N-Triples"))
            }
            RowError::TooMany { .. } => Some(Remedy::Write("write the file as N-Triples")),
            RowError::TooLong | RowError::ManyFields | RowError::LongName => None,
        }
    }
}

/// What to do about an error. `Display` says it in words that fit any caller; a command may say the same as a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// The path may be misspelled, or standard input was meant.
    CheckPath,
    /// A file in the directory that was named.
    NameFile(String),
    /// The file came in pieces: get or pack it anew.
    FetchAgain,
    /// Unpack the archive.
    Unpack,
    /// Convert the text.
    ToUtf8 {
        /// What its encoding is or may be.
        from: &'static str,
    },
    /// Write triples in place of JSON, or name the format if it is none.
    FromJson,
    /// Say whether the first row is a header.
    SayHeader,
    /// Say which format it is.
    NameFormat,
    /// Read it in this format.
    Format {
        /// The likely format.
        format: Format,
        /// What makes it likely.
        why: &'static str,
    },
    /// Choose these columns (from 0) for head, relation and tail.
    Columns {
        /// The columns.
        columns: [usize; 3],
        /// Whether quotes may be missing around names with commas.
        or_quote: bool,
    },
    /// There are fewer columns than the highest that was chosen.
    FewerColumns,
    /// Choose no columns and promise no header.
    NoColumns,
    /// Fill the field in, or leave out what is malformed ([`LoadOptions::lenient`](crate::LoadOptions::lenient)).
    FillOrSkip,
    /// Write the file in another way: these words say how.
    Write(&'static str),
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remedy::CheckPath => f.write_str("check the path"),
            Remedy::NameFile(file) => write!(f, "name a file in it, such as {file}"),
            Remedy::FetchAgain => f.write_str("fetch or compress the file again"),
            Remedy::Unpack => f.write_str("unpack it first"),
            Remedy::ToUtf8 { from } => write!(f, "convert the text from {from} to UTF-8"),
            Remedy::FromJson => {
                f.write_str("write one line per triple: head, relation and tail, with tabs between them")
            }
            Remedy::SayHeader => f.write_str("say whether the first row names the columns"),
            Remedy::NameFormat => f.write_str("name the format: tsv, csv, nt, ttl or rdfxml"),
            Remedy::Format { format, why } => write!(f, "read it as {format} ({why})"),
            Remedy::Columns { columns: [h, r, t], or_quote } => {
                let [h, r, t] = [h + 1, r + 1, t + 1];
                write!(f, "choose the columns of head, relation and tail, such as {h}, {r} and {t}")?;
                f.write_str(if *or_quote { ", or quote names that contain commas" } else { "" })
            }
            Remedy::FewerColumns => f.write_str("choose columns that the file has"),
            Remedy::NoColumns => {
                f.write_str("choose no columns and no header, or read it as tsv or csv if it is one of these")
            }
            Remedy::FillOrSkip => f.write_str("fill it in, or leave malformed rows out"),
            Remedy::Write(how) => f.write_str(how),
        }
    }
}

/// A piece of the input as a message may show it: without control characters, which could steer a terminal, and with its
/// middle left out if it is long.
pub(crate) fn shown(text: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    shorten(text).chars().map(escape).collect()
}

/// A name in quotes, its middle left out if it is long.
pub(crate) fn quote(name: &str) -> String {
    format!("{:?}", shorten(name))
}

/// The beginning and the end of a long text.
fn shorten(text: &str) -> Cow<'_, str> {
    const START: usize = 120;
    const END: usize = 60;
    let start = text.char_indices().nth(START).map_or(text.len(), |(at, _)| at);
    let end = text.char_indices().nth_back(END - 1).map_or(0, |(at, _)| at);
    if end <= start { Cow::Borrowed(text) } else { Cow::Owned(format!("{}…{}", &text[..start], &text[end..])) }
}

/// How a file is compressed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Compression {
    /// gzip, `.gz`.
    Gzip,
    /// Zstandard, `.zst`.
    Zstd,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        })
    }
}

fn expected(wanted: &Option<[usize; 3]>) -> String {
    match wanted {
        None => "3".to_owned(),
        Some(columns) => format!("at least {}", columns.iter().max().map_or(3, |c| c + 1)),
    }
}

fn role_text(role: usize) -> &'static str {
    ["a head entity", "a relation", "a tail entity"][role.min(2)]
}
