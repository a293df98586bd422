//! Errors on the way from a file to a graph. Every message names the file, the line if there is
//! one, what was found and what was expected. A [`Remedy`] says what to do about it. The command
//! renders it as a flag, the server as text.

use crate::quote::shown;
use crate::read::Format;
use crate::read::table::columns::{Column, Columns};
use crate::{GraphError, TopologyError};
use std::{fmt, io};

/// Why a graph file could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// There is no such file.
    #[error("{file}: no such file")]
    NotFound {
        /// The file, as the caller named it.
        file: String,
    },
    /// A directory was named that has no graph file, or one where only a file will do.
    #[error("{file}: is a directory, expected a graph file")]
    Directory {
        /// The directory, as the caller named it.
        file: String,
        /// A file in the directory that may have been meant.
        example: Option<String>,
    },
    /// The system could not open or read the file.
    #[error("{file}: cannot read: {source}")]
    Io {
        /// The file, as the caller named it.
        file: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The file has more text than the caller allows.
    #[error("{file}: more than {limit} bytes of text, packed or not")]
    TooMuch {
        /// The file, as the caller named it.
        file: String,
        /// Greatest number of bytes that is read.
        limit: u64,
    },
    /// Compressed data ends early or is broken.
    #[error("{file}: {compression} data ends early or is damaged ({source})")]
    Damaged {
        /// The file, as the caller named it.
        file: String,
        /// How it is compressed.
        compression: Compression,
        /// The error of the decompressor.
        source: io::Error,
    },
    /// A compressed file expands to far more data than a file of triples would.
    #[error(
        "{file}: {compression} data unpacks to more than {} MiB and {factor} times its own size, expected less",
        floor >> 20
    )]
    Swollen {
        /// The file, as the caller named it.
        file: String,
        /// How it is compressed.
        compression: Compression,
        /// Number of bytes that any file may expand to.
        floor: u64,
        /// Number of further bytes allowed for each compressed byte.
        factor: u64,
    },
    /// The file is an archive or a compressed stream of a kind that is not supported.
    #[error("{file}: found {found} data, expected text, gzip or zstd")]
    Archive {
        /// The file, as the caller named it.
        file: String,
        /// The kind of data, recognised by the first bytes.
        found: &'static str,
    },
    /// The text is JSON that is not one value per line.
    #[error("{file}: found {found}, expected JSON lines: one object or array of three on each line")]
    Json {
        /// The file, as the caller named it.
        file: String,
        /// What it is.
        found: &'static str,
    },
    /// The file is of a kind that is not read.
    #[error("{file}: is {found}, expected a graph file")]
    Foreign {
        /// The file, as the caller named it.
        file: String,
        /// What it is, with an article.
        found: &'static str,
        /// What to do about it.
        remedy: Remedy,
    },
    /// A Parquet or Arrow file that cannot be read.
    #[error("{file}: cannot read {format}: {}", shown(.message))]
    Columnar {
        /// The file, as the caller named it.
        file: String,
        /// The format.
        format: Format,
        /// The message of the reader.
        message: String,
    },
    /// Record batches that cannot be read.
    #[error("{file}: cannot read the batches: {}", shown(.message))]
    Batches {
        /// The batches, as the caller named them.
        file: String,
        /// The message of the reader.
        message: String,
    },
    /// The header names head and tail, and no relation.
    #[error(
        "{file}: has columns {}, expected one for the relation beside {} and {}",
        columns.join(", "), ends[0], ends[1]
    )]
    NoRelation {
        /// The file, as the caller named it.
        file: String,
        /// The columns of head and tail.
        ends: [String; 2],
        /// The names of all columns, or of the first ones if there are many.
        columns: Vec<String>,
    },
    /// The names of the columns do not say which are head, relation and tail.
    #[error("{file}: has columns {}, expected head, relation and tail among them", columns.join(", "))]
    UnknownColumns {
        /// The file, as the caller named it.
        file: String,
        /// The names of all columns, or of the first ones if there are many.
        columns: Vec<String>,
        /// What to do about it.
        remedy: Box<Remedy>,
    },
    /// A column was chosen that the file does not have.
    #[error("{file}: has no column \"{column}\", expected one of {}", columns.join(", "))]
    NoSuchColumn {
        /// The file, as the caller named it.
        file: String,
        /// The column that was chosen.
        column: String,
        /// The names of all columns, or of the first ones if there are many.
        columns: Vec<String>,
        /// Columns that fit, if there are some.
        remedy: Option<Box<Remedy>>,
    },
    /// A column has values that are no names.
    #[error("{file}: column \"{column}\" has values of type {found}, expected text or whole numbers")]
    ColumnType {
        /// The file, as the caller named it.
        file: String,
        /// The column.
        column: String,
        /// The type of its values.
        found: String,
    },
    /// The same column was chosen twice.
    #[error("{file}: columns {columns} are not different, expected three different ones")]
    SameColumn {
        /// The file, as the caller named it.
        file: String,
        /// The columns that were chosen.
        columns: String,
    },
    /// Columns were chosen by name, but the caller said that there is no header.
    #[error("{file}: columns were chosen by name, expected a header or numbers of columns")]
    NamesWithoutHeader {
        /// The file, as the caller named it.
        file: String,
    },
    /// The text is UTF-16.
    #[error("{file}: found UTF-16 text, expected UTF-8")]
    Utf16 {
        /// The file, as the caller named it.
        file: String,
    },
    /// Neither the name nor the content shows the format.
    #[error("{file}: cannot tell the format from the name or the first line")]
    UnknownFormat {
        /// The file, as the caller named it.
        file: String,
    },
    /// The caller chose columns or announced a header, but the format has neither.
    #[error("{file}: is {format}, which has no columns and no header")]
    NoColumns {
        /// The file, as the caller named it.
        file: String,
        /// The format it was read as.
        format: Format,
    },
    /// A line is malformed.
    #[error("{file}:{line}: {what}")]
    Row {
        /// The file, as the caller named it.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        what: RowError,
    },
    /// The files have no triples.
    #[error(
        "{files}: no triples, expected at least one: {rows} rows read, {literals} literals and {skipped} bad rows left out{}",
        if *nodes > 0 { format!("; {nodes} nodes described") } else { String::new() }
    )]
    Empty {
        /// The files, as the caller named them.
        files: String,
        /// Number of rows or statements read.
        rows: u64,
        /// Number of statements left out because their object is a literal.
        literals: u64,
        /// Number of malformed rows left out.
        skipped: u64,
        /// Number of rows that describe nodes.
        nodes: u64,
    },
    /// A SPARQL endpoint gave no graph.
    #[error("{file}: {what}")]
    Endpoint {
        /// The endpoint, as the caller named it, without a password.
        file: String,
        /// What happened.
        what: EndpointError,
    },
    /// The graph is too large for its index.
    #[error("{files}: {source}")]
    TooLarge {
        /// The files, as the caller named them.
        files: String,
        /// The limit that was exceeded.
        source: TopologyError,
    },
}

impl LoadError {
    /// Returns what to do about it, if something is known to help.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            LoadError::NotFound { .. } => Some(Remedy::CheckPath),
            LoadError::Directory { example, .. } => example.clone().map(Remedy::NameFile),
            LoadError::Damaged { .. } => Some(Remedy::FetchAgain),
            LoadError::Archive { .. } | LoadError::Swollen { .. } => Some(Remedy::Unpack),
            LoadError::Utf16 { .. } => Some(Remedy::ToUtf8 { from: "UTF-16" }),
            LoadError::Json { .. } => Some(Remedy::FromJson),
            LoadError::Foreign { remedy, .. } => Some(remedy.clone()),
            LoadError::UnknownColumns { remedy, .. } => Some((**remedy).clone()),
            LoadError::NoSuchColumn { remedy, .. } => remedy.as_deref().cloned(),
            LoadError::NoRelation { .. } => Some(Remedy::Write(
                "add a column called relation that says how the two are linked, or choose the columns",
            )),
            LoadError::ColumnType { .. } | LoadError::SameColumn { .. } => Some(Remedy::FewerColumns),
            LoadError::NamesWithoutHeader { .. } => Some(Remedy::SayHeader),
            LoadError::Columnar { .. } => Some(Remedy::FetchAgain),
            LoadError::UnknownFormat { .. } => Some(Remedy::NameFormat),
            LoadError::NoColumns { .. } => Some(Remedy::NoColumns),
            LoadError::Row { what, .. } => what.remedy(),
            LoadError::Endpoint { what, .. } => what.remedy(),
            LoadError::Empty { nodes, .. } if *nodes > 0 => Some(Remedy::AddEdges),
            LoadError::Io { .. }
            | LoadError::TooMuch { .. }
            | LoadError::Batches { .. }
            | LoadError::Empty { .. }
            | LoadError::TooLarge { .. } => None,
        }
    }

    pub(crate) fn from_graph(files: String, error: GraphError, report: &crate::read::LoadReport) -> Self {
        match error {
            GraphError::Empty => LoadError::Empty {
                files,
                rows: report.rows,
                literals: report.literals + report.labels,
                skipped: report.skipped,
                nodes: report.nodes,
            },
            GraphError::Topology(source) => LoadError::TooLarge { files, source },
        }
    }
}

/// Why a SPARQL endpoint gave no graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// This build has no SPARQL.
    #[error("this build cannot ask SPARQL endpoints")]
    NotBuilt,
    /// The address is not one of the web.
    #[error("expected an address such as sparql:http://localhost:7878/query")]
    Address,
    /// What follows `#` does not name a graph.
    #[error("expected #graph=IRI, or nothing, after the address")]
    GraphName,
    /// No answer at all.
    #[error("the endpoint cannot be reached: {}", shown(.reason))]
    Unreachable {
        /// The error of the connection.
        reason: String,
    },
    /// The endpoint refused a query.
    #[error("the endpoint answered with status {status}: {}", shown(.said))]
    Status {
        /// The HTTP status.
        status: u16,
        /// The beginning of what it said.
        said: String,
    },
    /// The answer is not a result of SPARQL.
    #[error("the endpoint sent {}, expected results of SPARQL; it begins: {}", shown(.media_type), shown(.said))]
    NoResults {
        /// The type of the answer.
        media_type: String,
        /// Its beginning.
        said: String,
    },
    /// The answer ends early or has a mistake.
    #[error("the answer of the endpoint is broken: {}", shown(.reason))]
    Broken {
        /// The error of the parser.
        reason: String,
    },
    /// A request failed again and again.
    #[error("{last} ({tries} tries)")]
    GaveUp {
        /// Number of requests.
        tries: u32,
        /// What happened the last time.
        last: Box<EndpointError>,
    },
    /// The endpoint sent fewer triples than it has.
    #[error("the endpoint has {total} triples, but sent {rows}")]
    Incomplete {
        /// Number of triples received.
        rows: u64,
        /// Number of triples that it counted.
        total: u64,
    },
    /// A name is too long.
    #[error("found a name of more than {} KiB, expected a shorter one", crate::read::rows::MAX_NAME >> 10)]
    LongName,
    /// There are no triples of IRIs.
    #[error("no triples, expected at least one with an IRI on both sides")]
    NoTriples {
        /// Some named graphs of the endpoint.
        graphs: Vec<String>,
    },
}

impl EndpointError {
    /// Returns what to do about it, if something is known to help.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            EndpointError::NotBuilt => Some(Remedy::Write("export the graph to a file, such as N-Triples")),
            EndpointError::Incomplete { .. } => {
                Some(Remedy::Write("ask for one named graph (#graph=IRI), or download the graph as a file"))
            }
            EndpointError::NoTriples { graphs } => graphs.first().map(|graph| Remedy::NameGraph(graph.clone())),
            EndpointError::GaveUp { last, .. } => match &**last {
                EndpointError::Unreachable { .. } => {
                    Some(Remedy::Write("check that the endpoint runs at this address"))
                }
                _ => Some(Remedy::SmallerPages),
            },
            EndpointError::NoResults { .. } => Some(Remedy::Write("check that this is the address for queries")),
            _ => None,
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
        /// The chosen columns (from 0), if any.
        wanted: Option<[usize; 3]>,
        /// Number of fields in the row.
        found: usize,
        /// What to do, judging by the line.
        remedy: Option<Box<Remedy>>,
    },
    /// A row of a file of labels that has no label.
    #[error("expected 2 {separator}-separated fields (name and label), found {found}")]
    LabelFields {
        /// `tab` or `comma`.
        separator: &'static str,
        /// Number of fields in the row.
        found: usize,
    },
    /// An empty field where a name is needed.
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
    /// A quoted field that is never closed.
    #[error("a quote is opened and never closed, expected a closing \"")]
    OpenQuote,
    /// A quoted field with text after its closing quote.
    #[error("found text after a closing quote, expected a comma")]
    TextAfterQuote,
    /// A row that is too long to be a triple.
    #[error("found a row of more than {} MiB, expected one triple per line", crate::read::rows::MAX_ROW >> 20)]
    TooLong,
    /// A row with too many fields.
    #[error("found a row of more than {} fields, expected one triple per line", crate::read::rows::MAX_FIELDS)]
    ManyFields,
    /// A name that is too long.
    #[error("found a name of more than {} KiB, expected a shorter one", crate::read::rows::MAX_NAME >> 10)]
    LongName,
    /// Abbreviations (prefixes, bases, entities) that stand for far more text than the file has.
    #[error(
        "names written out in full come to more than {} MiB and {factor} times the bytes read, expected less",
        floor >> 20
    )]
    Swelling {
        /// Number of bytes that the names of any file may take in full.
        floor: u64,
        /// Number of further bytes allowed for each byte read.
        factor: u64,
    },
    /// Too many things that a parser would have to hold in memory at once.
    #[error("found more than {limit} {what}, expected fewer")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// Greatest number that is accepted.
        limit: usize,
    },
    /// A line that is no JSON.
    #[error("is no JSON: {} at column {column}", shown(.message))]
    Json {
        /// The column, from 1.
        column: usize,
        /// The message of the parser.
        message: String,
    },
    /// A line of JSON that is neither an object nor an array.
    #[error("expected an object or an array of head, relation and tail")]
    NoObject,
    /// An array that is no triple.
    #[error("expected an array of 3, found {found} items")]
    Items {
        /// Number of items.
        found: usize,
    },
    /// An object whose keys do not say what is head, relation and tail.
    #[error("expected keys such as head, relation and tail, found {}", keys(.found))]
    Keys {
        /// The keys of the object, or the first ones if there are many.
        found: Vec<String>,
    },
    /// A value that is no name.
    #[error("expected the name of {}, found something else", role_text(*.role))]
    NoName {
        /// 0 head, 1 relation, 2 tail.
        role: usize,
    },
    /// A line or element that does not follow the rules of its format.
    #[error("found {}, expected {expected}", shown(.found))]
    Syntax {
        /// What the file has there.
        found: String,
        /// What the format has there.
        expected: &'static str,
    },
    /// A syntax error in an RDF file, in the words of the RDF parser.
    #[error("{}", shown(.message))]
    Rdf {
        /// The message of the parser.
        message: String,
        /// What may help, if known.
        remedy: Option<Box<Remedy>>,
    },
}

impl RowError {
    /// Returns what to do about it, if something is known to help.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            RowError::Fields { remedy, .. } | RowError::Rdf { remedy, .. } => remedy.as_deref().cloned(),
            RowError::LabelFields { .. } => {
                Some(Remedy::Write("write a name, a tab and a label in each line, or commas in a .csv file"))
            }
            RowError::EmptyField { .. } => Some(Remedy::FillOrSkip),
            RowError::InvalidUtf8 { .. } => Some(Remedy::ToUtf8 { from: "LATIN1" }),
            RowError::OpenQuote | RowError::TextAfterQuote => {
                Some(Remedy::Write("write a quote inside a name as \"\""))
            }
            RowError::Swelling { .. } => {
                Some(Remedy::Write("shorten the namespaces and entities, or write the file as N-Triples"))
            }
            RowError::TooMany { .. } => Some(Remedy::Write("write the file as N-Triples")),
            RowError::Json { .. } | RowError::NoObject => {
                Some(Remedy::Write("write one object or one array of three on each line, or leave malformed rows out"))
            }
            RowError::Keys { .. } => Some(Remedy::NameKeys),
            RowError::Items { .. } | RowError::NoName { .. } => Some(Remedy::FillOrSkip),
            RowError::TooLong | RowError::ManyFields | RowError::LongName | RowError::Syntax { .. } => None,
        }
    }
}

/// What to do about an error. `Display` says it in words that fit any caller. A command may render
/// it as a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// Check the path: it may be misspelled, or standard input was meant.
    CheckPath,
    /// Name this file, which is in the given directory.
    NameFile(String),
    /// Fetch or compress the file again: it is incomplete or damaged.
    FetchAgain,
    /// Unpack the archive.
    Unpack,
    /// Convert the text to UTF-8.
    ToUtf8 {
        /// Its encoding, or a guess at it.
        from: &'static str,
    },
    /// Write triples instead of JSON, or name the format if the file is not JSON.
    FromJson,
    /// Say whether the first row is a header.
    SayHeader,
    /// Say which format it is.
    NameFormat,
    /// Read it in this format.
    Format {
        /// The likely format.
        format: Format,
        /// The reason why it is likely.
        why: &'static str,
    },
    /// Choose these columns (from 0) for head, relation and tail.
    Columns {
        /// The columns.
        columns: [usize; 3],
        /// The names of all columns of the file, or of the first ones if there are many. Empty if it
        /// has no header.
        names: Vec<String>,
        /// Whether quotes may be missing around names with commas.
        or_quote: bool,
    },
    /// Choose columns that the file has.
    FewerColumns,
    /// Choose the keys of head, relation and tail.
    NameKeys,
    /// Load a file with edges together with this one, which describes nodes.
    AddEdges,
    /// Choose no columns and announce no header.
    NoColumns,
    /// Fill in the field, or leave out malformed rows
    /// ([`LoadOptions::lenient`](crate::LoadOptions::lenient)).
    FillOrSkip,
    /// Ask for this named graph of an endpoint.
    NameGraph(String),
    /// Ask for fewer rows at a time ([`LoadOptions::page_size`](crate::LoadOptions::page_size)).
    SmallerPages,
    /// Write the file in a different way, as described.
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
                f.write_str("write each triple as an object or array on a line of its own, or name the format")
            }
            Remedy::SayHeader => f.write_str("say whether the first row names the columns"),
            Remedy::NameFormat => write!(f, "name the format: {}", Format::words()),
            Remedy::Format { format, why } => write!(f, "read it as {format} ({why})"),
            Remedy::Columns { columns, names, or_quote } => {
                if !names.is_empty() {
                    write!(f, "this file has columns {}: ", names.join(", "))?;
                }
                let [h, r, t] = column_names(*columns, names);
                write!(f, "choose the columns of head, relation and tail, such as {h}, {r} and {t}")?;
                f.write_str(if *or_quote { ", or quote names that contain commas" } else { "" })
            }
            Remedy::FewerColumns => f.write_str("choose columns that the file has"),
            Remedy::NameKeys => f.write_str("choose the keys of head, relation and tail"),
            Remedy::AddEdges => f.write_str("load it together with a file of edges"),
            Remedy::NoColumns => {
                f.write_str("choose no columns and no header, or read it as a table if it is one, such as tsv or csv")
            }
            Remedy::FillOrSkip => f.write_str("fill it in, or leave malformed rows out"),
            Remedy::NameGraph(graph) => write!(f, "name a graph, such as #graph={}", shown(graph)),
            Remedy::SmallerPages => f.write_str("ask for fewer rows at a time, or try again later"),
            Remedy::Write(how) => f.write_str(how),
        }
    }
}

/// Names columns: by their names if all are known, or else by their numbers.
fn column_names(columns: [usize; 3], names: &[String]) -> [String; 3] {
    Remedy::chosen(columns, names).each().map(ToString::to_string)
}

impl Remedy {
    /// Returns columns as a choice: by name if all names are known, or else by number.
    pub fn chosen(columns: [usize; 3], names: &[String]) -> Columns {
        // A name that was cut would not be found.
        let name = |at: usize| names.get(at).filter(|name| !name.ends_with('…')).map(|name| Column::Name(name.clone()));
        match columns.map(name) {
            [Some(head), Some(relation), Some(tail)] => Columns { head, relation, tail },
            _ => Columns::from(columns),
        }
    }
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

fn keys(found: &[String]) -> String {
    if found.is_empty() { "none".to_owned() } else { found.join(", ") }
}

fn role_text(role: usize) -> &'static str {
    ["a head entity", "a relation", "a tail entity"][role.min(2)]
}
