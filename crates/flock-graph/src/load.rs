//! From files to a [`Graph`].

use crate::delimited;
use crate::error::{LoadError, RowError};
use crate::format::Format;
use crate::graph::{Graph, GraphBuilder};
use crate::prefixes::Prefixes;
use crate::rdf::{self, Anonymous};
use crate::source::Source;
use std::io::Read;
use std::path::{Path, PathBuf};

/// How to read a graph file. The default finds out by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// The format; `None`: by the file's name, else by its beginning.
    pub format: Option<Format>,
    /// Leaves malformed rows out and counts them, instead of failing at the first.
    pub lenient: bool,
    /// Whether the first row of TSV or CSV names the columns; `None`: if it looks so (`head`, `relation`, `tail` or
    /// `subject`, `predicate`, `object` and the like).
    pub header: Option<bool>,
    /// The columns (from 0) of head, relation and tail in TSV or CSV; `None`: exactly three columns, in this order.
    pub columns: Option<[usize; 3]>,
    /// The most bytes of text, unpacked, that are read of a file; more are an error. For files from strangers: a packed one
    /// can grow a thousandfold.
    pub max_bytes: Option<u64>,
}

/// What was found in the files. `rows = triples + duplicates + literals + skipped`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadReport {
    /// The format of the (first) file.
    pub format: Format,
    /// Whether a header row was left out.
    pub header: bool,
    /// Rows of TSV and CSV, without blank lines and header; statements of RDF.
    pub rows: u64,
    /// Distinct triples, which are in the graph.
    pub triples: u64,
    /// Triples that were there already.
    pub duplicates: u64,
    /// Statements left out because their object is a literal.
    pub literals: u64,
    /// Malformed rows left out by [`LoadOptions::lenient`].
    pub skipped: u64,
    /// What was wrong with the first of them.
    pub first_skipped: Option<SkippedRow>,
}

/// A malformed row that was left out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
#[non_exhaustive]
pub struct SkippedRow {
    /// The file as it was named.
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
            header: false,
            rows: 0,
            triples: 0,
            duplicates: 0,
            literals: 0,
            skipped: 0,
            first_skipped: None,
        }
    }

    /// How many rows were skipped and why the first of them was, if any were.
    pub fn left_out(&self) -> Option<String> {
        let first = self.first_skipped.as_ref()?;
        Some(format!("{} of {} rows skipped as malformed; the first: {first}", self.skipped, self.rows))
    }

    /// Counts a bad row if that is allowed.
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

/// Loads a graph from a file, or from standard input if `path` is `-`. Streams packed with gzip or zstd are unpacked.
pub fn load(path: &Path, options: &LoadOptions) -> Result<(Graph, LoadReport), LoadError> {
    let source = Source::open(path, options)?;
    let mut loader = Loader::new(&source);
    loader.read(source, options)?;
    loader.finish()
}

/// Loads a graph from a reader. `name` stands for the file in messages, and its extension may tell the format.
pub fn load_reader(name: &str, reader: impl Read, options: &LoadOptions) -> Result<(Graph, LoadReport), LoadError> {
    let source = Source::new(name.to_owned(), reader, options)?;
    let mut loader = Loader::new(&source);
    loader.read(source, options)?;
    loader.finish()
}

/// Loads several files into one graph. A blank node with a label is the same node in all of them.
pub fn load_many(paths: &[PathBuf], options: &LoadOptions) -> Result<(Graph, LoadReport), LoadError> {
    let mut loader: Option<Loader> = None;
    for path in paths {
        let source = Source::open(path, options)?;
        loader.get_or_insert_with(|| Loader::new(&source)).read(source, options)?;
    }
    match loader {
        Some(loader) => loader.finish(),
        None => Err(LoadError::Empty { files: "no files".to_owned(), rows: 0, literals: 0, skipped: 0 }),
    }
}

/// Gives every triple of a file to `sink`, in order and with its duplicates, for callers that have their own ids. Names are
/// spelled as [`load`] would spell them.
pub fn for_each_triple(
    path: &Path,
    options: &LoadOptions,
    mut sink: impl FnMut(&str, &str, &str),
) -> Result<LoadReport, LoadError> {
    let mut source = Source::open(path, options)?;
    let mut report = LoadReport::new(source.format);
    let (mut prefixes, mut anonymous) = (Prefixes::default(), Anonymous::default());
    read(&mut source, options, &mut report, &mut prefixes, &mut anonymous, &mut sink)?;
    report.triples = report.rows - report.literals - report.skipped;
    Ok(report)
}

fn read(
    source: &mut Source<'_>,
    options: &LoadOptions,
    report: &mut LoadReport,
    prefixes: &mut Prefixes,
    anonymous: &mut Anonymous,
    sink: &mut dyn FnMut(&str, &str, &str),
) -> Result<(), LoadError> {
    if source.format.is_rdf() {
        if options.columns.is_some() || options.header == Some(true) {
            return Err(LoadError::NoColumns { file: source.file.clone(), format: source.format });
        }
        rdf::read(source, options, report, prefixes, anonymous, sink)
    } else {
        delimited::read(source, options, report, sink)
    }
}

/// A graph in the making, from one file or more.
struct Loader {
    builder: GraphBuilder,
    report: LoadReport,
    anonymous: Anonymous,
    files: Vec<String>,
    any_rdf: bool,
}

impl Loader {
    fn new(first: &Source<'_>) -> Loader {
        Loader {
            builder: GraphBuilder::new(),
            report: LoadReport::new(first.format),
            anonymous: Anonymous::default(),
            files: Vec::new(),
            any_rdf: false,
        }
    }

    fn read(&mut self, mut source: Source<'_>, options: &LoadOptions) -> Result<(), LoadError> {
        self.files.push(source.file.clone());
        self.any_rdf |= source.format.is_rdf();
        let mut prefixes = std::mem::take(self.builder.prefixes());
        let (report, anonymous) = (&mut self.report, &mut self.anonymous);
        let builder = &mut self.builder;
        let mut sink = |h: &str, r: &str, t: &str| builder.add(h, r, t);
        read(&mut source, options, report, &mut prefixes, anonymous, &mut sink)?;
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
                Ok((graph, self.report))
            }
            Err(error) => Err(LoadError::from_graph(self.files.join(", "), error, &self.report)),
        }
    }
}
