//! Reads files into a [`Graph`].

pub(crate) mod error;
mod foreign;
mod format;
mod paths;
mod rdf;
pub(crate) mod rows;
mod source;
pub(crate) mod table;

pub use format::{Format, UnknownFormat};
pub use paths::DirectoryReport;
pub use table::columns::{BadColumns, Column, Columns};
pub use table::report::{ColumnRole, HeaderReason, TableReport, UsedColumn};

use crate::graph::{Graph, GraphBuilder};
use crate::prefixes::Prefixes;
use crate::quote::{quote, shown};
use error::{LoadError, Remedy, RowError};
use rdf::BlankNodeNumbers;
use source::Source;
use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Settings for reading a graph file. With the defaults everything is detected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// The format. `None` detects it by the name of the file, or else by its beginning.
    pub format: Option<Format>,
    /// Whether to leave out malformed rows and count them, instead of failing at the first.
    pub lenient: bool,
    /// Whether the first row of TSV or CSV names the columns. `None` decides by its words (`head`,
    /// `relation`, `tail`, or `subject`, `predicate`, `object`, and many others), and by whether
    /// they come again.
    pub header: Option<bool>,
    /// The columns of head, relation and tail in a table: TSV, CSV, JSON lines, Parquet or Arrow.
    /// `None` finds them by their names, and expects exactly three in this order if there are no
    /// names.
    pub columns: Option<Columns>,
    /// Greatest number of bytes of text, after decompression, that a file may have. A longer file
    /// is an error. Set this for files from strangers: a compressed file can grow a thousandfold.
    pub max_bytes: Option<u64>,
}

/// What reading the files found. `rows = triples + duplicates + literals + labels + skipped`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadReport {
    /// The format of the first file.
    pub format: Format,
    /// The files, in the order in which they were read.
    pub files: Vec<FileReport>,
    /// The directories among the paths.
    pub directories: Vec<DirectoryReport>,
    /// Whether a header row was left out.
    pub header: bool,
    /// The columns (from 0) of head, relation and tail in the first file with a header. `None` if
    /// they are the first three in order.
    pub columns: Option<[usize; 3]>,
    /// Number of rows of a table of triples, without blank lines and the header, or of statements of
    /// RDF. A row that describes a node counts once for each of its kinds.
    pub rows: u64,
    /// Number of distinct triples. These are in the graph.
    pub triples: u64,
    /// Number of triples that repeat an earlier one.
    pub duplicates: u64,
    /// Number of statements left out because their object is a literal.
    pub literals: u64,
    /// How many of these each relation has: the 20 most frequent ones, the most frequent first.
    pub literals_by_predicate: Vec<(String, u64)>,
    /// Number of statements that were read as labels.
    pub labels: u64,
    /// Number of rows that describe nodes.
    pub nodes: u64,
    /// Number of malformed rows left out because of [`LoadOptions::lenient`].
    pub skipped: u64,
    /// The first malformed row that was left out.
    pub first_skipped: Option<SkippedRow>,
    /// First rows that were read as triples but may be headers.
    pub maybe_header: Vec<MaybeHeader>,
    /// Number of literals of each relation, for as many relations as are counted.
    literal_counts: HashMap<String, u64>,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileReport {
    /// The file, as the caller named it, or as it was found in a directory.
    pub file: String,
    /// Its format.
    pub format: Format,
    /// How its columns were understood, if it has some.
    pub table: Option<TableReport>,
}

/// Number of relations whose literals are counted one by one while a file is read.
const COUNTED: usize = 10_000;

/// Number of relations that a report names.
const REPORTED: usize = 20;

/// A first row whose names occur nowhere else in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MaybeHeader {
    /// The file, as the caller named it.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The names that were read as head, relation and tail.
    pub names: [String; 3],
}

/// A warning to whoever loaded a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadWarning {
    /// Malformed rows were left out.
    Skipped {
        /// Number of rows left out.
        skipped: u64,
        /// Number of rows in all.
        rows: u64,
        /// The first row left out.
        first: SkippedRow,
    },
    /// A header may have been read as a triple.
    MaybeHeader(MaybeHeader),
}

impl LoadWarning {
    /// Returns what to do about it, if something is known to help.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            LoadWarning::Skipped { first, .. } => first.what.remedy(),
            LoadWarning::MaybeHeader(_) => Some(Remedy::SayHeader),
        }
    }
}

impl fmt::Display for LoadWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadWarning::Skipped { skipped, rows, first } => {
                write!(f, "{skipped} of {rows} rows skipped as malformed; the first: {first}")
            }
            LoadWarning::MaybeHeader(MaybeHeader { file, line, names }) => {
                let [head, relation, tail] = names.each_ref().map(|name| quote(name));
                write!(
                    f,
                    "{file}:{line}: {head}, {relation}, {tail} was read as a triple, but none of these names comes again: "
                )?;
                f.write_str("it may be a header")
            }
        }
    }
}

/// A malformed row that was left out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
#[non_exhaustive]
pub struct SkippedRow {
    /// The file, as the caller named it.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub what: RowError,
}

impl LoadReport {
    fn new(format: Format) -> LoadReport {
        LoadReport {
            format,
            files: Vec::new(),
            directories: Vec::new(),
            header: false,
            columns: None,
            rows: 0,
            triples: 0,
            duplicates: 0,
            literals: 0,
            literals_by_predicate: Vec::new(),
            labels: 0,
            nodes: 0,
            skipped: 0,
            first_skipped: None,
            maybe_header: Vec::new(),
            literal_counts: HashMap::new(),
        }
    }

    /// Counts a literal.
    pub(crate) fn literal(&mut self, predicate: &str) {
        self.literals += 1;
        if let Some(count) = self.literal_counts.get_mut(predicate) {
            *count += 1;
        } else if self.literal_counts.len() < COUNTED {
            self.literal_counts.insert(predicate.to_owned(), 1);
        }
    }

    /// Says how the columns of the last file were understood.
    pub(crate) fn table(&mut self, table: TableReport) {
        if matches!(table.header, Some(HeaderReason::Told | HeaderReason::Words | HeaderReason::Evidence)) {
            self.header = true;
            let columns = table.columns().filter(|columns| *columns != [0, 1, 2]);
            self.columns = self.columns.or(columns);
        }
        if let Some(file) = self.files.last_mut() {
            file.table = Some(table);
        }
    }

    /// Sorts the counts of literals.
    fn finish(&mut self) {
        let mut counts: Vec<(String, u64)> = std::mem::take(&mut self.literal_counts).into_iter().collect();
        counts.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        counts.truncate(REPORTED);
        self.literals_by_predicate = counts;
    }

    /// Says how the files were understood, one line for each file or directory that needs words:
    /// which columns were used, which files of a directory were read. Three columns without a header
    /// need none.
    pub fn notes(&self) -> Vec<String> {
        let directories = self.directories.iter().map(ToString::to_string);
        let described = |file: &FileReport| {
            let table = file.table.as_ref().filter(|table| !table.used.is_empty() && !table.is_plain())?;
            // A header in order is said to be left out, which suffices.
            let in_order = table.columns() == Some([0, 1, 2]) && table.used.len() == 3 && table.unused.is_empty();
            if in_order && table.header != Some(HeaderReason::Evidence) {
                return None;
            }
            Some(format!("{}: {table}", file.file))
        };
        directories.chain(self.files.iter().filter_map(described)).collect()
    }

    /// Lists what may have gone wrong.
    pub fn warnings(&self) -> Vec<LoadWarning> {
        let (skipped, rows) = (self.skipped, self.rows);
        let bad = self.first_skipped.iter().map(|first| LoadWarning::Skipped { skipped, rows, first: first.clone() });
        bad.chain(self.maybe_header.iter().cloned().map(LoadWarning::MaybeHeader)).collect()
    }

    /// Says what was left out although nothing is wrong with it, such as `header row, 2 literals, 1
    /// duplicate`. Returns `None` if there was no header and no literal.
    pub fn left_out(&self) -> Option<String> {
        if !self.header && self.literals == 0 {
            return None;
        }
        let header = self.header.then(|| "header row".to_owned());
        let counted = |count: u64, what: &str| {
            (count > 0).then(|| format!("{count} {what}{}", if count == 1 { "" } else { "s" }))
        };
        let literals = counted(self.literals, "literal").map(|literals| match &self.literals_by_predicate[..] {
            [] => literals,
            counts => {
                let top = counts.iter().take(3).map(|(name, count)| format!("{} {count}", shown(name)));
                format!("{literals} ({})", top.collect::<Vec<_>>().join(", "))
            }
        });
        let parts = [header, literals, counted(self.duplicates, "duplicate")];
        Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }

    /// Counts a malformed row, or fails if that is not allowed.
    pub(crate) fn skip(
        &mut self,
        source: &Source<'_>,
        line: u64,
        what: RowError,
        options: &LoadOptions,
    ) -> Result<(), LoadError> {
        if !options.lenient {
            return Err(source.row(line, what));
        }
        self.skipped += 1;
        self.first_skipped.get_or_insert_with(|| SkippedRow { file: source.file.clone(), line, what });
        Ok(())
    }
}

/// Loads a graph from a file, from all graph files of a directory, or from standard input if `path`
/// is `-`. Decompresses gzip and zstd.
pub fn load(path: &Path, options: &LoadOptions) -> Result<(Graph, LoadReport), LoadError> {
    load_many(&[path.to_path_buf()], options)
}

impl Graph {
    /// Reads a graph from a file, in whatever format it is. [`load`] takes options, and reports what
    /// was left out.
    ///
    /// # Errors
    /// A file that cannot be read, or is no graph.
    pub fn open(path: impl AsRef<Path>) -> Result<Graph, LoadError> {
        load(path.as_ref(), &LoadOptions::default()).map(|(graph, _)| graph)
    }
}

/// Loads a graph from a reader. `name` stands for the file in messages, and its extension may show
/// the format.
pub fn load_reader(name: &str, reader: impl Read, options: &LoadOptions) -> Result<(Graph, LoadReport), LoadError> {
    let source = Source::new(name.to_owned(), reader, options)?;
    let mut loader = Loader::new(&source);
    loader.read(source, options)?;
    loader.finish()
}

/// Loads several files into one graph. A blank node with a label is the same node in all of them.
///
/// A directory stands for the graph files in it, in the order of their names. Of a dataset (`train`
/// beside `valid` or `test`) only `train` is read. [`LoadReport::directories`] says what was read
/// and what was not.
pub fn load_many(paths: &[PathBuf], options: &LoadOptions) -> Result<(Graph, LoadReport), LoadError> {
    let (files, directories) = paths::expand(paths, options)?;
    let mut loader: Option<Loader> = None;
    for path in &files {
        let source = Source::open(path, options)?;
        loader.get_or_insert_with(|| Loader::new(&source)).read(source, options)?;
    }
    match loader {
        Some(mut loader) => {
            loader.report.directories = directories;
            loader.finish()
        }
        None => Err(LoadError::Empty { files: "no files".to_owned(), rows: 0, literals: 0, skipped: 0, nodes: 0 }),
    }
}

/// Passes every triple of a file to `sink`, in order and including duplicates, for callers that
/// have their own ids. Names are spelled as [`load`] spells them.
pub fn for_each_triple(
    path: &Path,
    options: &LoadOptions,
    sink: impl FnMut(&str, &str, &str),
) -> Result<LoadReport, LoadError> {
    let mut source = Source::open(path, options)?;
    let mut report = LoadReport::new(source.format);
    let (mut prefixes, mut blank_nodes) = (Prefixes::default(), BlankNodeNumbers::default());
    read(&mut source, options, &mut report, &mut prefixes, &mut blank_nodes, &mut TriplesOnly(sink))?;
    report.triples = report.rows - report.literals - report.labels - report.skipped;
    report.finish();
    Ok(report)
}

/// Takes what a file says.
pub(crate) trait Sink {
    /// Takes a triple.
    fn triple(&mut self, head: &str, relation: &str, tail: &str);

    /// Takes a label of an entity or a relation. Of several labels the one with the lowest `rank` is
    /// kept, and of those the first.
    fn label(&mut self, name: &str, label: &str, rank: u32);
}

/// A sink for those who want no labels.
struct TriplesOnly<F>(F);

impl<F: FnMut(&str, &str, &str)> Sink for TriplesOnly<F> {
    fn triple(&mut self, head: &str, relation: &str, tail: &str) {
        (self.0)(head, relation, tail);
    }

    fn label(&mut self, _: &str, _: &str, _: u32) {}
}

impl Sink for GraphBuilder {
    fn triple(&mut self, head: &str, relation: &str, tail: &str) {
        self.add(head, relation, tail);
    }

    fn label(&mut self, name: &str, label: &str, rank: u32) {
        GraphBuilder::label(self, name, label, rank);
    }
}

fn read(
    source: &mut Source<'_>,
    options: &LoadOptions,
    report: &mut LoadReport,
    prefixes: &mut Prefixes,
    blank_nodes: &mut BlankNodeNumbers,
    sink: &mut dyn Sink,
) -> Result<(), LoadError> {
    report.files.push(FileReport { file: source.file.clone(), format: source.format, table: None });
    match source.format {
        Format::JsonLines => return table::json::read(source, options, report, sink),
        #[cfg(feature = "parquet")]
        Format::Parquet | Format::Arrow => return table::arrow::read(source, options, report, sink),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet | Format::Arrow => {
            let remedy = Remedy::Write("write it as CSV, or build the program with the feature parquet");
            let found = "a Parquet or Arrow file, which this build does not read";
            return Err(LoadError::Foreign { file: source.file.clone(), found, remedy });
        }
        _ => {}
    }
    if source.format.is_rdf() {
        if options.columns.is_some() || options.header == Some(true) {
            return Err(LoadError::NoColumns { file: source.file.clone(), format: source.format });
        }
        rdf::read(source, options, report, prefixes, blank_nodes, sink)
    } else {
        rows::read(source, options, report, sink)
    }
}

/// A graph that is being loaded from one or more files.
struct Loader {
    builder: GraphBuilder,
    report: LoadReport,
    blank_nodes: BlankNodeNumbers,
    files: Vec<String>,
    any_rdf: bool,
}

impl Loader {
    fn new(first: &Source<'_>) -> Loader {
        Loader {
            builder: GraphBuilder::new(),
            report: LoadReport::new(first.format),
            blank_nodes: BlankNodeNumbers::default(),
            files: Vec::new(),
            any_rdf: false,
        }
    }

    fn read(&mut self, mut source: Source<'_>, options: &LoadOptions) -> Result<(), LoadError> {
        self.files.push(source.file.clone());
        self.any_rdf |= source.format.is_rdf();
        let mut prefixes = std::mem::take(self.builder.prefixes());
        let (report, blank_nodes) = (&mut self.report, &mut self.blank_nodes);
        read(&mut source, options, report, &mut prefixes, blank_nodes, &mut self.builder)?;
        *self.builder.prefixes() = prefixes;
        Ok(())
    }

    fn finish(mut self) -> Result<(Graph, LoadReport), LoadError> {
        if self.any_rdf {
            self.builder.derive_prefixes();
        }
        let added = self.builder.len() as u64;
        match self.builder.finish() {
            Ok(graph) => {
                self.report.triples = graph.topology().num_triples() as u64;
                self.report.duplicates = added - self.report.triples;
                self.report.finish();
                Ok((graph, self.report))
            }
            Err(error) => Err(LoadError::from_graph(self.files.join(", "), error, &self.report)),
        }
    }
}
