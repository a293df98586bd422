//! Reads N-Triples, Turtle and RDF/XML, with the parsers of oxigraph.
//!
//! A name is the full IRI, without brackets, or `_:label` for a blank node. Blank nodes without a
//! label are called `_:[1]`, `_:[2]`, and so on, in order of appearance. No label can be spelled
//! like this, and the same file always gives the same names. Statements about literals are counted
//! and left out.
//!
//! Turtle and RDF/XML have abbreviations: prefixes, bases and entities can stand for much more text
//! than they take. An [`ExpansionBudget`] limits how much. `turtle.rs` and `rdfxml.rs` also limit
//! what the parsers hold in memory.

mod rdfxml;
mod turtle;

use super::rows::{MAX_NAME, MAX_ROW};
use super::source::Source;
use super::{Format, LoadOptions, LoadReport, Sink};
use crate::prefixes::Prefixes;
use crate::read::error::{LoadError, Remedy, RowError};
use memchr::memchr;
use oxrdf::{BlankNode, NamedOrBlankNode, Term, Triple};
use oxttl::{NTriplesParser, TurtleSyntaxError};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};

/// The numbers of blank nodes without a label, over all files of one graph.
#[derive(Default)]
pub(crate) struct BlankNodeNumbers {
    numbers: HashMap<u128, usize>,
    /// Whether the format has such nodes. N-Triples does not.
    possible: bool,
}

impl BlankNodeNumbers {
    /// Writes the name of `node` to `name`.
    fn name<'a>(&mut self, node: &BlankNode, name: &'a mut String) -> &'a str {
        // The parsers label such nodes with a random number of 128 bits, in hexadecimal. A node
        // with such a long number as its label in the file gets a new name too, which does no harm.
        let random = node.as_ref().unique_id().filter(|id| self.possible && id >> 64 != 0);
        name.clear();
        name.push_str("_:");
        match random {
            Some(id) => {
                let next = self.numbers.len() + 1;
                let number = self.numbers.entry(id).or_insert(next);
                name.push_str(&format!("[{number}]"));
            }
            None => name.push_str(node.as_str()),
        }
        name
    }
}

/// Passes every triple of `source` to `sink`, except those with a literal as object, and adds the
/// declared prefixes.
pub(crate) fn read(
    source: &mut Source<'_>,
    options: &LoadOptions,
    report: &mut LoadReport,
    prefixes: &mut Prefixes,
    blank_nodes: &mut BlankNodeNumbers,
    sink: &mut dyn Sink,
) -> Result<(), LoadError> {
    blank_nodes.possible = source.format != Format::NTriples;
    let mut statements = StatementSink { report, blank_nodes, sink };
    match source.format {
        Format::RdfXml => rdfxml::read(source, &mut statements, prefixes),
        Format::Turtle => turtle::read(source, options, &mut statements, prefixes),
        _ => lines(source, &mut statements, options),
    }
}

/// Reads N-Triples line by line. A line of three plain IRIs is cut by hand, which is six times as
/// fast. The parser gets all other lines.
fn lines(source: &mut Source<'_>, statements: &mut StatementSink<'_>, options: &LoadOptions) -> Result<(), LoadError> {
    let mut reader = BufReader::with_capacity(256 << 10, source.take_reader());
    let (mut line, mut number) = (Vec::new(), 0);
    loop {
        line.clear();
        let limit = MAX_ROW as u64;
        let len = match reader.by_ref().take(limit).read_until(b'\n', &mut line) {
            Ok(0) => return Ok(()),
            Ok(len) => len as u64,
            Err(error) => return Err(source.failed(error)),
        };
        number += 1;
        if let Some([head, relation, tail]) = plain_triple(&line) {
            if names_too_long([head, relation, tail]) {
                statements.bad(source, options, number, RowError::LongName)?;
            } else {
                statements.report.rows += 1;
                statements.sink.triple(head, relation, tail);
            }
        } else if len == limit && !line.ends_with(b"\n") {
            statements.bad(source, options, number, RowError::TooLong)?;
            if let Err(error) = reader.skip_until(b'\n') {
                return Err(source.failed(error));
            }
        } else {
            for triple in NTriplesParser::new().for_slice(&line) {
                match triple {
                    Ok(triple) => statements.triple(source, options, || number, &triple)?,
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
/// and no character that needs closer inspection. Every plain IRI is valid.
fn plain_triple(line: &[u8]) -> Option<[&str; 3]> {
    let mut rest = line;
    let mut names = [""; 3];
    for name in &mut names {
        rest = rest.strip_prefix(b"<")?;
        let end = memchr(b'>', rest)?;
        *name = plain_iri(&rest[..end])?;
        rest = rest[end + 1..].strip_prefix(b" ")?;
    }
    let rest = rest.strip_prefix(b".")?;
    matches!(rest, b"\n" | b"\r\n" | b"").then_some(names)
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
}

impl StatementSink<'_> {
    pub(crate) fn bad(
        &mut self,
        source: &Source<'_>,
        options: &LoadOptions,
        line: u64,
        what: RowError,
    ) -> Result<(), LoadError> {
        self.report.rows += 1;
        self.report.skip(source, line, what, options)
    }

    pub(crate) fn triple(
        &mut self,
        source: &Source<'_>,
        options: &LoadOptions,
        line: impl Fn() -> u64,
        triple: &Triple,
    ) -> Result<(), LoadError> {
        let (mut head, mut tail) = (String::new(), String::new());
        let tail = match &triple.object {
            Term::NamedNode(node) => node.as_str(),
            Term::BlankNode(node) => self.blank_nodes.name(node, &mut tail),
            // Statements about statements are no links either.
            Term::Literal(_) | Term::Triple(_) => {
                self.report.rows += 1;
                self.report.literals += 1;
                return Ok(());
            }
        };
        let head = match &triple.subject {
            NamedOrBlankNode::NamedNode(node) => node.as_str(),
            NamedOrBlankNode::BlankNode(node) => self.blank_nodes.name(node, &mut head),
        };
        let relation = triple.predicate.as_str();
        if names_too_long([head, relation, tail]) {
            return self.bad(source, options, line(), RowError::LongName);
        }
        self.report.rows += 1;
        self.sink.triple(head, relation, tail);
        Ok(())
    }
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
