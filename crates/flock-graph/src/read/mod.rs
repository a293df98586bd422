//! Reads files into a [`Graph`].

pub(crate) mod error;
mod foreign;
mod format;
mod graphml;
pub(crate) mod labels;
mod obo;
mod paths;
mod rdf;
pub(crate) mod rows;
mod source;
#[cfg(feature = "sparql")]
mod sparql;
pub(crate) mod table;

pub use foreign::foreign_kind;
pub use format::{Format, UnknownFormat};
pub use paths::DirectoryReport;
pub use source::source_name;
pub use table::columns::{BadColumns, Column, Columns};
pub use table::report::{ColumnRole, HeaderReason, TableReport, UsedColumn};

use crate::graph::{Graph, GraphBuilder};
use crate::near::suggest::split_iri;
use crate::prefixes::Prefixes;
use crate::quote::{quote, shown};
use error::{LoadError, Remedy, RowError};
use rdf::BlankNodeNumbers;
use source::Source;
use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

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
    /// Languages of labels in RDF, the best first, such as `de` or `pt-BR`. `en` stands for `en-GB`
    /// too. Then come labels without a language, then all others. Empty stands for English.
    pub languages: Vec<String>,
    /// Number of rows to ask a SPARQL endpoint for at a time. `None` stands for 10,000.
    pub page_size: Option<u32>,
    /// Counts the rows that a SPARQL endpoint sends, for whoever waits.
    pub progress: LoadProgress,
}

/// How far loading is. Clones share the numbers, so that another thread can show them.
#[derive(Clone, Debug, Default)]
pub struct LoadProgress(Arc<[AtomicU64; 2]>);

impl LoadProgress {
    /// Returns the number of rows so far, and of all rows if that is known.
    pub fn rows(&self) -> (u64, Option<u64>) {
        let [rows, total] = &*self.0;
        (rows.load(Relaxed), Some(total.load(Relaxed)).filter(|total| *total > 0))
    }

    #[cfg(feature = "sparql")]
    fn expect_rows(&self, total: u64) {
        self.0[1].store(total, Relaxed);
    }

    #[cfg(feature = "sparql")]
    fn add_row(&self) {
        self.0[0].fetch_add(1, Relaxed);
    }
}

/// How far loading is makes no difference between options.
impl PartialEq for LoadProgress {
    fn eq(&self, _: &LoadProgress) -> bool {
        true
    }
}

impl Eq for LoadProgress {}

/// What reading the files found. [`LoadReport::adds_up`] says how the counts are related.
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
    /// The properties of most of these literals, and their numbers: the greatest first, 20 at most.
    pub literals_by_predicate: Vec<(String, u64)>,
    /// Number of statements read as labels of entities or relations.
    pub labels: u64,
    /// Number of statements left out because they are about another statement.
    pub about: u64,
    /// Number of statements left out because they only hold an ontology or a list together.
    pub structure: u64,
    /// Number of triples made from the class expressions of an ontology.
    pub derived: u64,
    /// Number of statements of a SPARQL endpoint left out because they have a blank node, which has
    /// no lasting name there.
    pub blank: u64,
    /// Number of terms of an ontology left out because they are obsolete.
    pub obsolete: u64,
    /// Number of named graphs whose triples were merged.
    pub graphs: u64,
    /// Number of edges without a direction. They were read from source to target.
    pub undirected: u64,
    /// Number of rows that describe nodes.
    pub nodes: u64,
    /// Number of malformed rows left out because of [`LoadOptions::lenient`].
    pub skipped: u64,
    /// The first malformed row that was left out.
    pub first_skipped: Option<SkippedRow>,
    /// First rows that were read as triples but may be headers.
    pub maybe_header: Vec<MaybeHeader>,
    literal_counts: LiteralCounts,
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
            about: 0,
            structure: 0,
            derived: 0,
            blank: 0,
            obsolete: 0,
            graphs: 0,
            undirected: 0,
            nodes: 0,
            skipped: 0,
            first_skipped: None,
            maybe_header: Vec::new(),
            literal_counts: LiteralCounts::default(),
        }
    }

    /// Tells whether every row is counted once: `rows + derived = triples + duplicates + literals +
    /// labels + about + structure + blank + skipped`.
    pub fn adds_up(&self) -> bool {
        let left_out = self.literals + self.labels + self.about + self.structure + self.blank + self.skipped;
        self.rows + self.derived == self.triples + self.duplicates + left_out
    }

    /// Counts a literal that is left out.
    pub(crate) fn literal(&mut self, predicate: &str) {
        self.add_literals(predicate, 1);
    }

    /// Counts literals that are left out.
    pub(crate) fn add_literals(&mut self, predicate: &str, count: u64) {
        self.literals += count;
        self.literal_counts.add(predicate, count);
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
        self.literals_by_predicate = std::mem::take(&mut self.literal_counts).most();
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

    /// Says what was left out although nothing is wrong with it, such as `header row, 2 literals
    /// (comment 2), 1 duplicate`. Returns `None` if there was nothing but duplicates.
    pub fn left_out(&self) -> Option<String> {
        let header = self.header.then(|| "header row".to_owned());
        let literals = counted(self.literals, "literal", "literals").map(|text| text + &self.most_literals());
        let parts = [
            header,
            literals,
            counted(self.about, "statement about another statement", "statements about other statements"),
            counted(
                self.structure,
                "statement of a class expression or list",
                "statements of class expressions and lists",
            ),
            counted(self.blank, "statement with a blank node", "statements with blank nodes"),
            counted(self.obsolete, "obsolete term", "obsolete terms"),
        ];
        let mut parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() {
            return None;
        }
        parts.extend(counted(self.duplicates, "duplicate", "duplicates"));
        Some(parts.join(", "))
    }

    /// Says how the triples were understood, where the files left that open, such as `2 named graphs
    /// merged`.
    pub fn understood(&self) -> Option<String> {
        let parts = [
            counted(self.graphs, "named graph", "named graphs").map(|text| text + " merged"),
            counted(self.derived, "triple", "triples").map(|text| text + " from class expressions"),
            counted(self.undirected, "undirected edge", "undirected edges")
                .map(|text| text + " read from source to target"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Lists the three properties with the most literals.
    fn most_literals(&self) -> String {
        let of = &self.literals_by_predicate;
        if of.is_empty() {
            return String::new();
        }
        let most = of.iter().take(3).map(|(predicate, count)| format!("{} {count}", shown(split_iri(predicate).1)));
        let more = if of.len() > 3 { ", …" } else { "" };
        format!(" ({}{more})", most.collect::<Vec<_>>().join(", "))
    }

    /// Counts a malformed row, or fails if that is not allowed.
    pub(crate) fn skip(
        &mut self,
        file: &str,
        line: u64,
        what: RowError,
        options: &LoadOptions,
    ) -> Result<(), LoadError> {
        let file = || file.to_owned();
        if !options.lenient {
            return Err(LoadError::Row { file: file(), line, what });
        }
        self.skipped += 1;
        self.first_skipped.get_or_insert_with(|| SkippedRow { file: file(), line, what });
        Ok(())
    }
}

/// Writes a count with the right word, or nothing for 0.
fn counted(count: u64, one: &str, many: &str) -> Option<String> {
    (count > 0).then(|| format!("{count} {}", if count == 1 { one } else { many }))
}

/// Numbers of literals by property. Properties beyond a limit are not told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct LiteralCounts {
    counts: HashMap<String, u64>,
    /// Length of all properties, in bytes.
    bytes: usize,
}

impl LiteralCounts {
    /// Greatest length of all properties together, in bytes.
    const MAX_BYTES: usize = 1 << 20;
    /// Number of properties that a report lists.
    const LISTED: usize = 20;

    fn add(&mut self, predicate: &str, more: u64) {
        if let Some(count) = self.counts.get_mut(predicate) {
            *count += more;
        } else if self.bytes + predicate.len() <= LiteralCounts::MAX_BYTES {
            // A short name takes some memory too.
            self.bytes += predicate.len() + 64;
            self.counts.insert(predicate.to_owned(), more);
        }
    }

    /// Returns the properties with the most literals, in order of their number, then of their name.
    fn most(self) -> Vec<(String, u64)> {
        let mut all: Vec<(String, u64)> = self.counts.into_iter().collect();
        all.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        all.truncate(LiteralCounts::LISTED);
        all
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
    let mut loader = Loader::new(source.format);
    loader.read(source, options)?;
    loader.finish()
}

/// Loads a graph from record batches that are in memory, such as those of a data frame. `name`
/// stands for the file in messages.
///
/// Columns are understood as those of a Parquet file: by [`LoadOptions::columns`], or else by their
/// names, or else there are three of them. [`LoadOptions::lenient`] and [`LoadOptions::max_bytes`]
/// apply. The line in a message is the number of the row, from 1. The reader is trusted: a panic in it
/// is passed on.
///
/// ```
/// use flock_graph::arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, StringArray};
/// let column = |names: [&str; 2]| std::sync::Arc::new(StringArray::from(names.to_vec())) as ArrayRef;
/// let batch = RecordBatch::try_from_iter([
///     ("subject", column(["Lisbon", "Portugal"])),
///     ("predicate", column(["capital of", "borders"])),
///     ("object", column(["Portugal", "Spain"])),
/// ])?;
/// let schema = batch.schema();
/// let batches = RecordBatchIterator::new([Ok(batch)], schema);
/// let (graph, report) = flock_graph::load_batches("the frame", batches, &Default::default())?;
/// assert_eq!((graph.entities().len(), report.triples), (3, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Columns or rows that are no triples, or a reader that fails.
#[cfg(feature = "parquet")]
pub fn load_batches(
    name: &str,
    batches: impl arrow_array::RecordBatchReader,
    options: &LoadOptions,
) -> Result<(Graph, LoadReport), LoadError> {
    let mut loader = Loader::new(Format::Arrow);
    loader.files.push(name.to_owned());
    loader.report.files.push(FileReport { file: name.to_owned(), format: Format::Arrow, table: None });
    table::arrow::read_batches(name, batches, options, &mut loader.report, &mut loader.builder)?;
    loader.finish()
}

/// Passes head, relation and tail of every row of record batches to `sink`, in order, and returns
/// the number of rows. A null is `None`: this serves questions, which leave a part open. The texts
/// are those of the cells, and an empty one is `Some("")`.
///
/// Columns are found as [`load_batches`] finds them, and all three must be there. Of the options
/// only [`LoadOptions::columns`] and [`LoadOptions::max_bytes`] apply.
///
/// # Errors
/// Columns that are no head, relation and tail, or a reader that fails. Rows before the error have
/// been passed on.
#[cfg(feature = "parquet")]
pub fn for_each_row(
    name: &str,
    batches: impl arrow_array::RecordBatchReader,
    options: &LoadOptions,
    sink: impl FnMut([Option<&str>; 3]),
) -> Result<u64, LoadError> {
    table::arrow::for_each_row(name, batches, options, sink)
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
        loader.get_or_insert_with(|| Loader::new(source.format)).read(source, options)?;
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
    let mut sink = TriplesOnly { sink, triples: 0 };
    read(&mut source, options, &mut report, &mut prefixes, &mut blank_nodes, &mut sink)?;
    report.triples = sink.triples;
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
struct TriplesOnly<F> {
    sink: F,
    triples: u64,
}

impl<F: FnMut(&str, &str, &str)> Sink for TriplesOnly<F> {
    fn triple(&mut self, head: &str, relation: &str, tail: &str) {
        self.triples += 1;
        (self.sink)(head, relation, tail);
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
    if !source.format.is_table() && (options.columns.is_some() || options.header == Some(true)) {
        return Err(LoadError::NoColumns { file: source.file.clone(), format: source.format });
    }
    match source.format {
        Format::Tsv | Format::Csv => rows::read(source, options, report, sink),
        Format::JsonLines => table::json::read(source, options, report, sink),
        #[cfg(feature = "parquet")]
        Format::Parquet | Format::Arrow => table::arrow::read(source, options, report, sink),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet | Format::Arrow => {
            let remedy = Remedy::Write("write it as CSV, or build the program with the feature parquet");
            let found = "a Parquet or Arrow file, which this build does not read";
            Err(LoadError::Foreign { file: source.file.clone(), found, remedy })
        }
        #[cfg(feature = "sparql")]
        Format::Sparql => sparql::read(source, options, report, sink),
        #[cfg(not(feature = "sparql"))]
        Format::Sparql => {
            let file = source.file.clone();
            Err(LoadError::Endpoint { file, what: error::EndpointError::NotBuilt })
        }
        Format::Obo => obo::read(source, options, report, sink),
        Format::GraphMl => graphml::read(source, options, report, sink),
        _ => rdf::read(source, options, report, prefixes, blank_nodes, sink),
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
    fn new(first: Format) -> Loader {
        Loader {
            builder: GraphBuilder::new(),
            report: LoadReport::new(first),
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
