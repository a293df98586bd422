//! Reads N-Triples, N-Quads, Turtle, TriG, RDF/XML and JSON-LD, with the parsers of oxigraph.
//!
//! A name is the full IRI, without brackets, or `_:label` for a blank node. Blank nodes without a
//! label are called `_:[1]`, `_:[2]`, and so on, in order of appearance. No label can be spelled
//! like this, and the same file always gives the same names. Named graphs are merged.
//!
//! A literal is a label (`labels.rs`) or is counted and left out. Statements about statements
//! (RDF 1.2) are counted and left out too. `ontology.rs` reads class expressions of OWL.
//!
//! Turtle and RDF/XML have abbreviations: prefixes, bases and entities can stand for much more text
//! than they take. An [`ExpansionBudget`] limits how much. `turtle.rs` and `rdfxml.rs` also limit
//! what the parsers hold in memory.

mod jsonld;
pub(crate) mod labels;
mod ontology;
mod rdfxml;
mod turtle;

use super::rows::{MAX_NAME, MAX_ROW};
use super::source::Source;
use super::{Format, LoadOptions, LoadReport, Sink};
use crate::prefixes::Prefixes;
use crate::read::error::{LoadError, Remedy, RowError};
use memchr::memchr;
use ontology::OntologyFilter;
use oxrdf::vocab::rdf;
use oxrdf::{BlankNode, GraphName, Literal, NamedOrBlankNode, Quad, Term};
use oxttl::{NQuadsParser, NTriplesParser, TurtleSyntaxError};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Read};

/// The numbers of blank nodes without a label, over all files of one graph.
#[derive(Default)]
pub(crate) struct BlankNodeNumbers {
    numbers: HashMap<u128, usize>,
    /// Labels of nodes that have no number yet: text and rank.
    labels: HashMap<u128, (String, u32)>,
    /// Whether the format has such nodes. N-Triples does not.
    possible: bool,
}

impl BlankNodeNumbers {
    /// Returns the number that a parser gave to a node without a label.
    fn random(&self, node: &BlankNode) -> Option<u128> {
        // The parsers label such nodes with a random number of 128 bits, in hexadecimal. A node
        // with such a long number as its label in the file gets a new name too, which does no harm.
        node.as_ref().unique_id().filter(|id| self.possible && id >> 64 != 0)
    }

    /// Writes the name of `node` to `name`.
    fn name<'a>(&mut self, node: &BlankNode, name: &'a mut String, sink: &mut dyn Sink) -> &'a str {
        let random = self.random(node);
        name.clear();
        name.push_str("_:");
        match random {
            Some(id) => {
                let next = self.numbers.len() + 1;
                let number = self.numbers.entry(id).or_insert(next);
                name.push_str(&format!("[{number}]"));
                if !self.labels.is_empty()
                    && let Some((label, rank)) = self.labels.remove(&id)
                {
                    sink.label(name, &label, rank);
                }
            }
            None => name.push_str(node.as_str()),
        }
        name
    }

    /// Gives `node` a label. A node without a number gets none by this: numbers count the nodes of
    /// triples.
    fn label(&mut self, node: &BlankNode, label: &str, rank: u32, sink: &mut dyn Sink) {
        match self.random(node) {
            Some(id) if !self.numbers.contains_key(&id) => {
                let kept = self.labels.entry(id).or_insert_with(|| (label.to_owned(), rank));
                if kept.1 > rank {
                    *kept = (label.to_owned(), rank);
                }
            }
            _ => {
                let mut name = String::new();
                self.name(node, &mut name, sink);
                sink.label(&name, label, rank);
            }
        }
    }
}

/// Passes every triple and label of `source` to `sink`, and adds the declared prefixes.
pub(crate) fn read(
    source: &mut Source<'_>,
    options: &LoadOptions,
    report: &mut LoadReport,
    prefixes: &mut Prefixes,
    blank_nodes: &mut BlankNodeNumbers,
    sink: &mut dyn Sink,
) -> Result<(), LoadError> {
    blank_nodes.possible = !matches!(source.format, Format::NTriples | Format::NQuads);
    // A label belongs to a node of one file.
    blank_nodes.labels.clear();
    let mut statements = StatementSink::new(report, blank_nodes, sink, options);
    match source.format {
        Format::JsonLd => jsonld::read(source, &mut statements, prefixes)?,
        Format::RdfXml => rdfxml::read(source, &mut statements, prefixes)?,
        Format::Turtle | Format::TriG => turtle::read(source, options, &mut statements, prefixes)?,
        _ => lines(source, &mut statements, options)?,
    }
    statements.finish(source)
}

/// Reads N-Triples or N-Quads line by line. A line of three plain IRIs is cut by hand, which is six times as
/// fast. The parser gets all other lines.
fn lines(source: &mut Source<'_>, statements: &mut StatementSink<'_>, options: &LoadOptions) -> Result<(), LoadError> {
    let mut reader = BufReader::with_capacity(256 << 10, source.take_reader());
    let (mut line, mut number) = (Vec::new(), 0);
    let quads = source.format == Format::NQuads;
    loop {
        line.clear();
        let limit = MAX_ROW as u64;
        let len = match reader.by_ref().take(limit).read_until(b'\n', &mut line) {
            Ok(0) => return Ok(()),
            Ok(len) => len as u64,
            Err(error) => return Err(source.failed(error)),
        };
        number += 1;
        if let Some((names, graph)) = plain_triple(&line, quads) {
            if names_too_long(names) {
                statements.bad(source, options, number, RowError::LongName)?;
            } else {
                statements.plain(names, graph);
            }
        } else if len == limit && !line.ends_with(b"\n") {
            statements.bad(source, options, number, RowError::TooLong)?;
            if let Err(error) = reader.skip_until(b'\n') {
                return Err(source.failed(error));
            }
        } else {
            let triples = (!quads).then(|| NTriplesParser::new().for_slice(&line));
            let triples = triples.into_iter().flatten().map(|t| t.map(|t| t.in_graph(GraphName::DefaultGraph)));
            let quads = quads.then(|| NQuadsParser::new().for_slice(&line)).into_iter().flatten();
            for quad in triples.chain(quads) {
                match quad {
                    Ok(quad) => statements.quad(source, options, || number, &quad)?,
                    Err(error) => {
                        // Stop here: the parser may report more errors, but the line counts as
                        // malformed once.
                        statements.bad(source, options, number, row_error(&error))?;
                        break;
                    }
                }
            }
        }
    }
}

/// Returns the names in `<IRI> <IRI> <IRI> .` if all are plain: `http` or `https`, a plain host,
/// and no character that needs closer inspection. Every plain IRI is valid. A line of N-Quads may
/// have a graph before the dot.
fn plain_triple(line: &[u8], quads: bool) -> Option<([&str; 3], Option<&str>)> {
    let mut rest = line;
    let mut names = [""; 3];
    for name in &mut names {
        *name = plain_term(&mut rest)?;
    }
    let graph = if quads && rest.starts_with(b"<") { Some(plain_term(&mut rest)?) } else { None };
    let rest = rest.strip_prefix(b".")?;
    matches!(rest, b"\n" | b"\r\n" | b"").then_some((names, graph))
}

/// Cuts `<IRI> ` off.
fn plain_term<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let term = rest.strip_prefix(b"<")?;
    let end = memchr(b'>', term)?;
    let name = plain_iri(&term[..end])?;
    *rest = term[end + 1..].strip_prefix(b" ")?;
    Some(name)
}

fn plain_iri(iri: &[u8]) -> Option<&str> {
    let rest = iri.strip_prefix(b"http")?;
    let rest = rest.strip_prefix(b"s").unwrap_or(rest).strip_prefix(b"://")?;
    let (host, path) = rest.split_at(memchr(b'/', rest)?);
    let (path, fragment) = path.split_at(memchr(b'#', path).unwrap_or(path.len()));
    let fragment = fragment.strip_prefix(b"#").unwrap_or(fragment);
    let all = |part: &[u8], kind: u8| part.iter().all(|&b| PLAIN[b as usize] & kind != 0);
    let plain = all(host, HOST) && all(path, PATH) && all(fragment, PATH);
    if plain { str::from_utf8(iri).ok() } else { None }
}

const HOST: u8 = 1;
const PATH: u8 = 2;

/// The bytes that are plain in a host and in a path.
const PLAIN: [u8; 256] = {
    let mut plain = [0; 256];
    let mut b = 0;
    while b < 128 {
        plain[b] = match b as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' => HOST | PATH,
            b'/' | b'_' | b',' | b'(' | b')' => PATH,
            _ => 0,
        };
        b += 1;
    }
    plain
};

/// Adds prefixes, always in the same order.
pub(crate) fn declare<'a>(prefixes: &mut Prefixes, declared: impl Iterator<Item = (&'a str, &'a str)>) {
    let mut declared: Vec<_> = declared.collect();
    declared.sort_unstable();
    for (prefix, namespace) in declared {
        prefixes.insert(prefix, namespace);
    }
}

/// A limit on the total length of the names in a file when they are written out in full, relative
/// to the number of bytes read. Repeated names count each time they are written, so this limits
/// time as well as memory.
#[derive(Default)]
pub(crate) struct ExpansionBudget {
    /// Bytes read so far.
    pub(crate) read: u64,
    spent: u64,
}

impl ExpansionBudget {
    /// Number of bytes that the names of any file may take.
    const FLOOR: u64 = 64 << 20;
    /// Number of further bytes allowed for each byte read. `x:1 ,` has 5 bytes, and a long
    /// namespace has 100.
    const FACTOR: u64 = 32;

    /// Counts the bytes of names, or of intermediate text that the parser writes.
    pub(crate) fn spend(&mut self, bytes: usize) -> Result<(), RowError> {
        self.spent = self.spent.saturating_add(bytes as u64);
        if self.spent > ExpansionBudget::FLOOR.saturating_add(self.read.saturating_mul(ExpansionBudget::FACTOR)) {
            return Err(RowError::Swelling { floor: ExpansionBudget::FLOOR, factor: ExpansionBudget::FACTOR });
        }
        Ok(())
    }
}

/// Tells whether some name is too long.
pub(crate) fn names_too_long(names: [&str; 3]) -> bool {
    names.iter().any(|name| name.len() > MAX_NAME)
}

/// Passes statements on to the graph, names blank nodes and keeps the report.
pub(crate) struct StatementSink<'a> {
    report: &'a mut LoadReport,
    blank_nodes: &'a mut BlankNodeNumbers,
    sink: &'a mut dyn Sink,
    languages: &'a [String],
    ontology: OntologyFilter,
    /// Hashes of the names of statements (`rdf:reifies`).
    statement_names: HashSet<u64>,
    /// Hashes of the names of graphs.
    graphs: HashSet<u64>,
}

impl<'a> StatementSink<'a> {
    fn new(
        report: &'a mut LoadReport,
        blank_nodes: &'a mut BlankNodeNumbers,
        sink: &'a mut dyn Sink,
        options: &'a LoadOptions,
    ) -> StatementSink<'a> {
        StatementSink {
            report,
            blank_nodes,
            sink,
            languages: &options.languages,
            ontology: OntologyFilter::default(),
            statement_names: HashSet::new(),
            graphs: HashSet::new(),
        }
    }

    pub(crate) fn bad(
        &mut self,
        source: &Source<'_>,
        options: &LoadOptions,
        line: u64,
        what: RowError,
    ) -> Result<(), LoadError> {
        self.report.rows += 1;
        self.report.skip(&source.file, line, what, options)
    }

    /// Takes a triple of plain names.
    fn plain(&mut self, names: [&str; 3], graph: Option<&str>) {
        self.report.rows += 1;
        if let Some(graph) = graph {
            self.graphs.insert(hash(graph));
        }
        if !self.statement_names.is_empty() && self.is_about_statement(names[0], names[2]) {
            self.report.about += 1;
        } else {
            self.ontology.take(names, self.sink);
        }
    }

    /// Takes a statement in any form.
    pub(crate) fn quad(
        &mut self,
        source: &Source<'_>,
        options: &LoadOptions,
        line: impl Fn() -> u64,
        quad: &Quad,
    ) -> Result<(), LoadError> {
        match &quad.graph_name {
            GraphName::NamedNode(node) => _ = self.graphs.insert(hash(node.as_str())),
            GraphName::BlankNode(node) => _ = self.graphs.insert(hash(node.as_str())),
            GraphName::DefaultGraph => {}
        }
        let relation = quad.predicate.as_str();
        let (mut head, mut tail) = (String::new(), String::new());
        let tail = match &quad.object {
            Term::NamedNode(node) => node.as_str(),
            Term::BlankNode(node) => self.blank_nodes.name(node, &mut tail, self.sink),
            Term::Literal(literal) => {
                self.literal(&quad.subject, relation, literal);
                return Ok(());
            }
            Term::Triple(_) => {
                self.report.rows += 1;
                self.report.about += 1;
                if quad.predicate == rdf::REIFIES {
                    let name = match &quad.subject {
                        NamedOrBlankNode::NamedNode(node) => node.as_str(),
                        NamedOrBlankNode::BlankNode(node) => self.blank_nodes.name(node, &mut head, self.sink),
                    };
                    self.statement_names.insert(hash(name));
                }
                return Ok(());
            }
        };
        let head = match &quad.subject {
            NamedOrBlankNode::NamedNode(node) => node.as_str(),
            NamedOrBlankNode::BlankNode(node) => self.blank_nodes.name(node, &mut head, self.sink),
        };
        if names_too_long([head, relation, tail]) {
            return self.bad(source, options, line(), RowError::LongName);
        }
        self.plain([head, relation, tail], None);
        Ok(())
    }

    fn literal(&mut self, subject: &NamedOrBlankNode, predicate: &str, literal: &Literal) {
        self.report.rows += 1;
        let rank = labels::rank(predicate, literal.language(), self.languages);
        let (Some(rank), Some(label)) = (rank, labels::text(literal)) else {
            return self.report.literal(predicate);
        };
        self.report.labels += 1;
        match subject {
            NamedOrBlankNode::NamedNode(node) => self.sink.label(node.as_str(), label, rank),
            NamedOrBlankNode::BlankNode(node) => self.blank_nodes.label(node, label, rank, self.sink),
        }
    }

    fn is_about_statement(&self, head: &str, tail: &str) -> bool {
        self.statement_names.contains(&hash(head)) || self.statement_names.contains(&hash(tail))
    }

    /// Passes on what has waited for the end of the file.
    fn finish(mut self, source: &Source<'_>) -> Result<(), LoadError> {
        self.report.graphs += self.graphs.len() as u64;
        // What is wrong here is wrong with the whole file.
        self.ontology.finish(self.report, self.sink).map_err(|what| source.row(1, what))
    }
}

/// Returns a hash of a name. Sets of hashes take little memory, however long the names are.
fn hash(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

pub(crate) fn row_error(error: &TurtleSyntaxError) -> RowError {
    let message = error.message();
    if message.starts_with("Invalid UTF-8") {
        let byte = error.location().start.column as usize + 1;
        return RowError::InvalidUtf8 { byte };
    }
    RowError::Rdf { message: message.to_owned(), remedy: rdf_remedy(message).map(Box::new) }
}

pub(crate) fn rdf_remedy(message: &str) -> Option<Remedy> {
    let lower = message.to_ascii_lowercase();
    if lower.contains("no scheme") || lower.contains("relative iri") {
        Some(Remedy::Write("declare a base IRI (@base in Turtle, xml:base in RDF/XML)"))
    } else if lower.contains("prefix") {
        Some(Remedy::Write("declare the prefix with @prefix"))
    } else {
        None
    }
}
