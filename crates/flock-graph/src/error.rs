//! What can go wrong on the way from a file to a graph. Every message names the file, the line where there is one, what
//! was found, what was expected, and a next step.

use crate::{Format, GraphError, TopologyError};
use std::{fmt, io};

/// Why a graph file could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// There is no such file.
    #[error("{file}: no such file; hint: check the path, or name - for standard input")]
    NotFound {
        /// The file as it was named.
        file: String,
    },
    /// A directory was named instead of a file.
    #[error("{file}: is a directory, expected a graph file{}", hint_text(.example.as_ref().map(|e| format!("name a file in it, such as {e}"))))]
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
    #[error("{file}: {compression} data ends early or is damaged ({source}); hint: fetch or compress the file again")]
    Damaged {
        /// The file as it was named.
        file: String,
        /// How it is compressed.
        compression: Compression,
        /// What the decompressor said.
        source: io::Error,
    },
    /// The file is some archive or compressed stream that is not read here.
    #[error("{file}: found {found} data, expected text, gzip or zstd; hint: unpack it first")]
    Archive {
        /// The file as it was named.
        file: String,
        /// What its first bytes say.
        found: &'static str,
    },
    /// The text is UTF-16.
    #[error("{file}: found UTF-16 text, expected UTF-8; hint: iconv -f UTF-16 -t UTF-8")]
    Utf16 {
        /// The file as it was named.
        file: String,
    },
    /// Neither the name nor the content tells the format.
    #[error(
        "{file}: cannot tell the format from the name or the first line; hint: --format tsv, csv, nt, ttl or rdfxml"
    )]
    UnknownFormat {
        /// The file as it was named.
        file: String,
    },
    /// Columns were chosen, or a header promised, for a format that has neither.
    #[error(
        "{file}: is {format}, which has no columns and no header; hint: leave --columns and --header out, or give --format tsv or csv if it is one of these"
    )]
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
    #[error("expected {} {separator}-separated fields, found {found}{}", expected(.wanted), hint_text(.hint.as_ref()))]
    Fields {
        /// `tab` or `comma`.
        separator: &'static str,
        /// The columns that were asked for (from 0), if any were.
        wanted: Option<[usize; 3]>,
        /// How many fields there are.
        found: usize,
        /// What the line looks like, and so what to do.
        hint: Option<String>,
    },
    /// A field without a name in it.
    #[error("field {column} is empty, expected the name of {}; hint: fill it in, or leave such rows out with --lenient", role_text(*.role))]
    EmptyField {
        /// The field, from 1.
        column: usize,
        /// 0 head, 1 relation, 2 tail.
        role: usize,
    },
    /// Bytes that are not UTF-8.
    #[error("invalid UTF-8 at byte {byte} of the line, expected UTF-8 text; hint: iconv -f LATIN1 -t UTF-8")]
    InvalidUtf8 {
        /// The first bad byte, from 1, not counting the quotes of CSV.
        byte: usize,
    },
    /// A quoted field without an end.
    #[error("a quote is opened and never closed, expected a closing \"; hint: write a quote inside a name as \"\"")]
    OpenQuote,
    /// A quoted field that goes on after its end.
    #[error("found text after a closing quote, expected a comma; hint: write a quote inside a name as \"\"")]
    TextAfterQuote,
    /// A row longer than any sensible one.
    #[error("found a row of more than {} MiB, expected one triple per line", crate::delimited::MAX_ROW >> 20)]
    TooLong,
    /// A syntax error in an RDF file, in the words of the RDF parser.
    #[error("{message}{}", hint_text(.hint.as_ref()))]
    Rdf {
        /// What was found.
        message: String,
        /// What may help.
        hint: Option<&'static str>,
    },
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

fn hint_text(hint: Option<impl fmt::Display>) -> String {
    hint.map_or_else(String::new, |h| format!("; hint: {h}"))
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
