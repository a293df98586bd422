//! N-Triples, Turtle and RDF/XML, through the oxigraph parsers.
//!
//! A name is the full IRI, without brackets, or `_:label` for a blank node. A blank node without a label gets
//! `_:[1]`, `_:[2]`, … in order of appearance: no label can be spelled so, and the same file gives the same names every
//! time. Statements about literals are counted and left out.
//!
//! Turtle and RDF/XML abbreviate: prefixes, bases and entities stand for more than they take. What they may stand for is
//! bounded by a [`ExpansionBudget`], and `turtle.rs` and `rdfxml.rs` keep what the parsers hold in bounds too.

pub(crate) mod prefixes;
mod rdfxml;
mod turtle;

use super::rows::{MAX_NAME, MAX_ROW};
use super::source::Source;
use super::{Format, LoadOptions, LoadReport};
use crate::error::{LoadError, Remedy, RowError};
use memchr::memchr;
use oxrdf::{BlankNode, NamedOrBlankNode, Term, Triple};
use oxttl::{NTriplesParser, TurtleSyntaxError};
use prefixes::Prefixes;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};

/// Blank nodes without a label, numbered over all files of one graph.
#[derive(Default)]
pub(crate) struct BlankNodeNumbers {
    numbers: HashMap<u128, usize>,
    /// Whether the format knows such nodes: N-Triples does not.
    possible: bool,
}

impl BlankNodeNumbers {
    /// Writes the name of `node` to `name`.
    fn name<'a>(&mut self, node: &BlankNode, name: &'a mut String) -> &'a str {
        // The parsers give such nodes a random number of 128 bits for a label, in hexadecimal. A node that has so long a
        // number for a label in the file gets a new name too, which does no harm.
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

/// Gives every triple of `source` whose object is no literal to `sink`, and adds the declared prefixes.
pub(crate) fn read(
    source: &mut Source<'_>,
    options: &LoadOptions,
    report: &mut LoadReport,
    prefixes: &mut Prefixes,
    blank_nodes: &mut BlankNodeNumbers,
    sink: &mut dyn FnMut(&str, &str, &str),
) -> Result<(), LoadError> {
    blank_nodes.possible = source.format != Format::NTriples;
    let mut statements = StatementSink { report, blank_nodes, sink };
    match source.format {
        Format::RdfXml => rdfxml::read(source, &mut statements, prefixes),
        Format::Turtle => turtle::read(source, options, &mut statements, prefixes),
        _ => lines(source, &mut statements, options),
    }
}

/// N-Triples, line by line: a line of three plain IRIs is cut by hand, six times as fast; the parser gets the rest.
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
                (statements.sink)(head, relation, tail);
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
                        // The parser may find more to complain about: the line is bad once.
                        statements.bad(source, options, number, row_error(&error))?;
                        break;
                    }
                }
            }
        }
    }
}

/// The names in `<IRI> <IRI> <IRI> .` if all are plain: `http` or `https`, a plain host, and no character that would need a
/// closer look. Whatever is plain is valid.
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

/// Which bytes are plain in a host and in a path.
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

/// Adds prefixes in an order that does not change from run to run.
pub(crate) fn declare<'a>(prefixes: &mut Prefixes, declared: impl Iterator<Item = (&'a str, &'a str)>) {
    let mut declared: Vec<_> = declared.collect();
    declared.sort_unstable();
    for (prefix, namespace) in declared {
        prefixes.insert(prefix, namespace);
    }
}

/// What the names of a file may come to when they are written out in full, relative to what has been read of it. Names
/// that repeat are counted each time they are written, so this bounds time as well as memory.
#[derive(Default)]
pub(crate) struct ExpansionBudget {
    /// Bytes read so far.
    pub(crate) read: u64,
    spent: u64,
}

impl ExpansionBudget {
    /// Any file may come to so much.
    const FLOOR: u64 = 64 << 20;
    /// Then so many bytes for each that is read: `x:1 ,` is 5 bytes, and a long namespace has 100.
    const FACTOR: u64 = 32;

    /// Counts names, or what the parser writes out on the way to them.
    pub(crate) fn spend(&mut self, bytes: usize) -> Result<(), RowError> {
        self.spent = self.spent.saturating_add(bytes as u64);
        if self.spent > ExpansionBudget::FLOOR.saturating_add(self.read.saturating_mul(ExpansionBudget::FACTOR)) {
            return Err(RowError::Swelling { floor: ExpansionBudget::FLOOR, factor: ExpansionBudget::FACTOR });
        }
        Ok(())
    }
}

/// Whether some name is longer than is taken.
pub(crate) fn names_too_long(names: [&str; 3]) -> bool {
    names.iter().any(|name| name.len() > MAX_NAME)
}

/// Statements on their way to the graph.
pub(crate) struct StatementSink<'a> {
    report: &'a mut LoadReport,
    blank_nodes: &'a mut BlankNodeNumbers,
    sink: &'a mut dyn FnMut(&str, &str, &str),
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
            Term::Literal(_) => {
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
        (self.sink)(head, relation, tail);
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
