//! N-Triples, Turtle and RDF/XML, through the oxigraph parsers.
//!
//! A name is the full IRI, without brackets, or `_:label` for a blank node. A blank node without a label gets
//! `_:[1]`, `_:[2]`, … in order of appearance: no label can be spelled so, and the same file gives the same names every
//! time. Statements about literals are counted and left out.

use crate::error::{LoadError, RowError};
use crate::format::Format;
use crate::load::{LoadOptions, LoadReport};
use crate::prefixes::Prefixes;
use crate::source::Source;
use memchr::memchr_iter;
use oxrdf::{BlankNode, NamedOrBlankNode, Term, Triple};
use oxrdfxml::RdfXmlParser;
use oxttl::{NTriplesParser, TurtleParseError, TurtleParser, TurtleSyntaxError};
use std::collections::HashMap;
use std::io::Read;

/// Blank nodes without a label, numbered over all files of one graph.
#[derive(Default)]
pub(crate) struct Anonymous {
    numbers: HashMap<String, usize>,
}

impl Anonymous {
    /// Writes the name of `node` to `name`.
    fn name<'a>(&mut self, node: &BlankNode, name: &'a mut String) -> &'a str {
        let id = node.as_str();
        // The parsers give such nodes random ids of 32 hexadecimal digits that start with a letter.
        let random = id.len() == 32
            && id.starts_with(|c: char| c.is_ascii_alphabetic())
            && id.bytes().all(|b| b.is_ascii_hexdigit());
        name.clear();
        name.push_str("_:");
        if random {
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
    let mut pass = Pass {
        report,
        anonymous,
        sink,
    };
    match source.format {
        Format::RdfXml => xml(source, &mut pass, prefixes),
        Format::Turtle => {
            let mut reader = std::mem::replace(&mut source.reader, Box::new(std::io::empty()));
            let mut triples = TurtleParser::new().for_reader(&mut reader);
            for triple in triples.by_ref() {
                pass.terse(triple, source, options)?;
            }
            declare(prefixes, triples.prefixes());
            Ok(())
        }
        _ => {
            let mut reader = std::mem::replace(&mut source.reader, Box::new(std::io::empty()));
            for triple in NTriplesParser::new().for_reader(&mut reader) {
                pass.terse(triple, source, options)?;
            }
            Ok(())
        }
    }
}

/// RDF/XML is parsed from memory: its parser gives the byte of an error, and the line is counted from that. After an
/// error in XML nothing that follows can be trusted, so `lenient` does not apply.
fn xml(
    source: &mut Source<'_>,
    pass: &mut Pass<'_>,
    prefixes: &mut Prefixes,
) -> Result<(), LoadError> {
    let mut bytes = Vec::new();
    if let Err(error) = source.reader.read_to_end(&mut bytes) {
        return Err(source.failed(error));
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
                let what = RowError::Rdf {
                    hint: rdf_hint(&message),
                    message,
                };
                return Err(LoadError::Row {
                    file: source.file.clone(),
                    line,
                    what,
                });
            }
        }
    }
    Ok(())
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
    /// One result of the Turtle or N-Triples parser, which go on after a syntax error.
    fn terse(
        &mut self,
        triple: Result<Triple, TurtleParseError>,
        source: &Source<'_>,
        options: &LoadOptions,
    ) -> Result<(), LoadError> {
        match triple {
            Ok(triple) => {
                self.triple(&triple);
                Ok(())
            }
            Err(TurtleParseError::Io(error)) => Err(source.failed(error)),
            Err(TurtleParseError::Syntax(error)) => {
                self.report.rows += 1;
                let line = error.location().start.line + 1;
                let what = row_error(&error);
                let error = LoadError::Row {
                    file: source.file.clone(),
                    line,
                    what,
                };
                self.report.skip(error, options)
            }
        }
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
    RowError::Rdf {
        message: message.to_owned(),
        hint: rdf_hint(message),
    }
}

fn rdf_hint(message: &str) -> Option<&'static str> {
    let lower = message.to_ascii_lowercase();
    if lower.contains("no scheme") || lower.contains("relative iri") {
        Some("declare a base IRI (@base in Turtle, xml:base in RDF/XML)")
    } else if lower.contains("prefix") {
        Some("declare the prefix with @prefix")
    } else {
        None
    }
}
