//! N-Triples, Turtle and RDF/XML, through the oxigraph parsers.
//!
//! A name is the full IRI, without brackets, or `_:label` for a blank node. A blank node without a label gets
//! `_:[1]`, `_:[2]`, … in order of appearance: no label can be spelled so, and the same file gives the same names every
//! time. Statements about literals are counted and left out.

use crate::delimited::MAX_ROW;
use crate::error::{LoadError, Remedy, RowError};
use crate::format::Format;
use crate::load::{LoadOptions, LoadReport};
use crate::prefixes::Prefixes;
use crate::source::Source;
use memchr::{memchr, memchr_iter, memmem};
use oxrdf::{BlankNode, NamedOrBlankNode, Term, Triple};
use oxrdfxml::RdfXmlParser;
use oxttl::{NTriplesParser, TurtleParseError, TurtleParser, TurtleSyntaxError};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};

/// Blank nodes without a label, numbered over all files of one graph.
#[derive(Default)]
pub(crate) struct Anonymous {
    numbers: HashMap<String, usize>,
    /// Whether the format knows such nodes: N-Triples does not.
    possible: bool,
}

impl Anonymous {
    /// Writes the name of `node` to `name`.
    fn name<'a>(&mut self, node: &BlankNode, name: &'a mut String) -> &'a str {
        let id = node.as_str();
        // The parsers give such nodes a random number of 128 bits for a label, in hexadecimal. A node that has so long a
        // number for a label in the file gets a new name too, which does no harm.
        let random = node.as_ref().unique_id().is_some_and(|id| id >> 64 != 0);
        name.clear();
        name.push_str("_:");
        if self.possible && random {
            let next = self.numbers.len() + 1;
            let number = self.numbers.entry(id.to_owned()).or_insert(next);
            name.push_str(&format!("[{number}]"));
        } else {
            name.push_str(id);
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
    anonymous: &mut Anonymous,
    sink: &mut dyn FnMut(&str, &str, &str),
) -> Result<(), LoadError> {
    anonymous.possible = source.format != Format::NTriples;
    let mut pass = Pass { report, anonymous, sink };
    match source.format {
        Format::RdfXml => xml(source, &mut pass, prefixes),
        Format::Turtle => {
            let mut triples = TurtleParser::new().for_reader(source.take_reader());
            for triple in triples.by_ref() {
                match triple {
                    Ok(triple) => pass.triple(&triple),
                    Err(TurtleParseError::Io(error)) => return Err(source.failed(error)),
                    // The parser goes on with the next statement.
                    Err(TurtleParseError::Syntax(error)) => {
                        let line = error.location().start.line + 1;
                        pass.bad(source, options, line, row_error(&error))?;
                    }
                }
            }
            declare(prefixes, triples.prefixes());
            Ok(())
        }
        _ => lines(source, &mut pass, options),
    }
}

/// N-Triples, line by line: a line of three plain IRIs is cut by hand, six times as fast; the parser gets the rest.
fn lines(source: &mut Source<'_>, pass: &mut Pass<'_>, options: &LoadOptions) -> Result<(), LoadError> {
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
            pass.report.rows += 1;
            (pass.sink)(head, relation, tail);
        } else if len == limit && !line.ends_with(b"\n") {
            pass.bad(source, options, number, RowError::TooLong)?;
            if let Err(error) = reader.skip_until(b'\n') {
                return Err(source.failed(error));
            }
        } else {
            for triple in NTriplesParser::new().for_slice(&line) {
                match triple {
                    Ok(triple) => pass.triple(&triple),
                    Err(error) => {
                        // The parser may find more to complain about: the line is bad once.
                        pass.bad(source, options, number, row_error(&error))?;
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

/// RDF/XML is parsed from memory: its parser gives the byte of an error, and the line is counted from that. After an
/// error in XML nothing that follows can be trusted, so `lenient` does not apply.
fn xml(source: &mut Source<'_>, pass: &mut Pass<'_>, prefixes: &mut Prefixes) -> Result<(), LoadError> {
    let mut bytes = Vec::new();
    if let Err(error) = source.reader.read_to_end(&mut bytes) {
        return Err(source.failed(error));
    }
    if let Some(offset) = swelling_entity(&bytes) {
        let line = memchr_iter(b'\n', &bytes[..offset]).count() as u64 + 1;
        let message = format!("an XML entity of more than {MAX_ENTITY} bytes, expected short ones");
        let what = RowError::Rdf { remedy: None, message };
        return Err(LoadError::Row { file: source.file.clone(), line, what });
    }
    let mut triples = RdfXmlParser::new().for_slice(&bytes);
    let mut declared = false;
    while let Some(triple) = triples.next() {
        if !std::mem::replace(&mut declared, true) {
            // Declarations end with their element, so they must be read inside it: those of the root are known now.
            declare(prefixes, triples.prefixes());
        }
        match triple {
            Ok(triple) => pass.triple(&triple),
            Err(error) => {
                let offset = (triples.buffer_position() as usize).min(bytes.len());
                let line = memchr_iter(b'\n', &bytes[..offset]).count() as u64 + 1;
                let message = error.to_string();
                let what = RowError::Rdf { remedy: rdf_remedy(&message).map(Box::new), message };
                return Err(LoadError::Row { file: source.file.clone(), line, what });
            }
        }
    }
    Ok(())
}

/// The most bytes that an XML entity may stand for; they are abbreviations of namespaces.
const MAX_ENTITY: usize = 64 << 10;

/// Where an entity is declared that stands for more: one that names others can double with every line, and the parser writes
/// them all out.
fn swelling_entity(bytes: &[u8]) -> Option<usize> {
    const DECLARED: &[u8] = b"<!ENTITY";
    let from = memmem::find(bytes, b"<!DOCTYPE")?;
    let mut sizes: HashMap<&[u8], usize> = HashMap::new();
    for at in memmem::find_iter(&bytes[from..], DECLARED).map(|at| from + at) {
        let rest = bytes[at + DECLARED.len()..].trim_ascii_start();
        let name = &rest[..rest.iter().position(u8::is_ascii_whitespace)?];
        let quote = rest.iter().position(|b| matches!(b, b'"' | b'\''))?;
        let value = &rest[quote + 1..];
        let value = &value[..memchr(rest[quote], value)?];
        let mut size = 0usize;
        for (i, piece) in value.split(|b| *b == b'&').enumerate() {
            let named = memchr(b';', piece).filter(|_| i > 0).and_then(|end| sizes.get(&piece[..end]));
            size = size.saturating_add(piece.len()).saturating_add(named.copied().unwrap_or(0));
        }
        if size > MAX_ENTITY {
            return Some(at);
        }
        sizes.insert(name, size);
    }
    None
}

/// Adds prefixes in an order that does not change from run to run.
fn declare<'a>(prefixes: &mut Prefixes, declared: impl Iterator<Item = (&'a str, &'a str)>) {
    let mut declared: Vec<_> = declared.collect();
    declared.sort_unstable();
    for (prefix, namespace) in declared {
        prefixes.insert(prefix, namespace);
    }
}

struct Pass<'a> {
    report: &'a mut LoadReport,
    anonymous: &'a mut Anonymous,
    sink: &'a mut dyn FnMut(&str, &str, &str),
}

impl Pass<'_> {
    fn bad(&mut self, source: &Source<'_>, options: &LoadOptions, line: u64, what: RowError) -> Result<(), LoadError> {
        self.report.rows += 1;
        self.report.skip(source, line, what, options)
    }

    fn triple(&mut self, triple: &Triple) {
        self.report.rows += 1;
        if matches!(triple.object, Term::Literal(_)) {
            self.report.literals += 1;
            return;
        }
        let (mut head, mut tail) = (String::new(), String::new());
        let head = match &triple.subject {
            NamedOrBlankNode::NamedNode(node) => node.as_str(),
            NamedOrBlankNode::BlankNode(node) => self.anonymous.name(node, &mut head),
        };
        let tail = match &triple.object {
            Term::NamedNode(node) => node.as_str(),
            Term::BlankNode(node) => self.anonymous.name(node, &mut tail),
            Term::Literal(_) => return,
        };
        (self.sink)(head, triple.predicate.as_str(), tail);
    }
}

fn row_error(error: &TurtleSyntaxError) -> RowError {
    let message = error.message();
    if message.starts_with("Invalid UTF-8") {
        let byte = error.location().start.column as usize + 1;
        return RowError::InvalidUtf8 { byte };
    }
    RowError::Rdf { message: message.to_owned(), remedy: rdf_remedy(message).map(Box::new) }
}

fn rdf_remedy(message: &str) -> Option<Remedy> {
    let lower = message.to_ascii_lowercase();
    if lower.contains("no scheme") || lower.contains("relative iri") {
        Some(Remedy::Write("declare a base IRI (@base in Turtle, xml:base in RDF/XML)"))
    } else if lower.contains("prefix") {
        Some(Remedy::Write("declare the prefix with @prefix"))
    } else {
        None
    }
}
