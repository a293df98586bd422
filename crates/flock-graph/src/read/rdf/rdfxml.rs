//! Reads RDF/XML. Each event is checked before the parser sees it, so that the output of the parser
//! stays within limits.
//!
//! In XML a short file can stand for a lot of text: entities made of entities, namespaces in every
//! name, a base before every IRI. The parser writes all that out without warning. So an
//! [`EventGuard`] sits between the file and the parser. It cuts the file into events with the same
//! tokeniser as the parser (the same version of `quick-xml`), computes how long each event becomes,
//! and passes on the bytes of events that fit the [`ExpansionBudget`]. The file is streamed, and
//! the guard holds one piece of whole events at a time.

use super::turtle::MAX_DEPTH;
use super::{ExpansionBudget, StatementSink, declare, rdf_remedy};
use crate::prefixes::Prefixes;
use crate::read::LoadOptions;
use crate::read::error::{LoadError, RowError};
use crate::read::rows::{MAX_NAME, MAX_ROW};
use crate::read::source::Source;
use memchr::{memchr, memchr_iter};
use oxrdf::GraphName;
use oxrdfxml::{RdfXmlParseError, RdfXmlParser};
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::{LocalName, Namespace, ResolveResult};
use quick_xml::{NsReader, escape};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, BufReader, Read};
use std::rc::Rc;
use std::sync::Arc;

/// Least number of bytes that the parser gets at a time, except at the end.
const PIECE: usize = 8 << 10;

/// Greatest number of bytes that an XML entity may stand for. Entities are meant to abbreviate
/// namespaces.
const MAX_ENTITY: usize = 64 << 10;

/// Greatest number of attributes of an element. The tokeniser compares each with all earlier ones.
const MAX_ATTRIBUTES: usize = 1024;

/// Greatest number of prefixes in scope. The tokeniser searches all of them for each name.
const MAX_PREFIXES: usize = 1024;

/// Greatest number of members of a collection. The parser makes two statements of each, all at the
/// end.
const MAX_MEMBERS: usize = 1 << 18;

const XML: &[u8] = b"http://www.w3.org/XML/1998/namespace";
const PARSE_TYPE: &[u8] = b"http://www.w3.org/1999/02/22-rdf-syntax-ns#parseType";

/// Passes every statement to `statements`. After an XML error nothing that follows can be trusted,
/// so `lenient` does not apply.
pub(crate) fn read(
    source: &mut Source<'_>,
    statements: &mut StatementSink<'_>,
    prefixes: &mut Prefixes,
) -> Result<(), LoadError> {
    let guard = Rc::new(RefCell::new(EventGuard::new(source.take_reader())));
    let mut triples = RdfXmlParser::new().for_reader(ParserInput(guard.clone()));
    let strict = LoadOptions::default();
    let mut declared = false;
    while let Some(triple) = triples.next() {
        if !std::mem::replace(&mut declared, true) {
            // A declaration ends with its element, so it must be read inside it. At this point
            // those of the root are known.
            declare(prefixes, triples.prefixes());
        }
        let line = || guard.borrow().line_at(triples.buffer_position());
        match triple {
            Ok(triple) => statements.quad(source, &strict, line, &triple.in_graph(GraphName::DefaultGraph))?,
            Err(RdfXmlParseError::Io(error)) => {
                let refused = guard.borrow_mut().refused.take();
                return Err(match refused {
                    Some((line, what)) => source.row(line, what),
                    None => source.failed(error),
                });
            }
            Err(RdfXmlParseError::Syntax(error)) => {
                let message = error.to_string();
                let what = RowError::Rdf { remedy: rdf_remedy(&message).map(Box::new), message };
                return Err(source.row(line(), what));
            }
        }
    }
    Ok(())
}

/// The input of the parser.
struct ParserInput<'a>(Rc<RefCell<EventGuard<'a>>>);

impl Read for ParserInput<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.borrow_mut().read(buffer)
    }
}

/// Passes on the events that fit the limits.
struct EventGuard<'a> {
    tokens: NsReader<BufReader<Tee<'a>>>,
    event: Vec<u8>,
    meter: ExpansionMeter,
    /// Whole events. The parser has got the first `given` bytes of them, and has used up everything
    /// before.
    piece: Vec<u8>,
    given: usize,
    /// Byte and line where the piece begins.
    start: u64,
    line: u64,
    ended: bool,
    /// Line and reason of a refusal.
    refused: Option<(u64, RowError)>,
}

impl<'a> EventGuard<'a> {
    fn new(reader: Box<dyn Read + 'a>) -> EventGuard<'a> {
        let mut tokens = NsReader::from_reader(BufReader::new(Tee { reader, bytes: Vec::new(), start: 0 }));
        // The parser has the same setting.
        tokens.config_mut().expand_empty_elements = true;
        EventGuard {
            tokens,
            event: Vec::new(),
            meter: ExpansionMeter::default(),
            piece: Vec::new(),
            given: 0,
            start: 0,
            line: 1,
            ended: false,
            refused: None,
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.piece.len() {
            self.next_piece()?;
        }
        let rest = &self.piece[self.given..];
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        self.given += len;
        Ok(len)
    }

    /// Reads whole events until there are enough bytes to pass on.
    fn next_piece(&mut self) -> io::Result<()> {
        self.start += self.piece.len() as u64;
        self.line += lines(&self.piece);
        self.piece.clear();
        self.given = 0;
        while self.piece.len() < PIECE && !self.ended {
            self.event.clear();
            let checked = match self.tokens.read_event_into(&mut self.event) {
                Ok(Event::Eof) => None,
                Ok(event) => Some(self.meter.check(&self.tokens, &event)),
                Err(quick_xml::Error::Io(_)) if self.tokens.get_ref().get_ref().too_long() => {
                    Some(Err(RowError::TooLong))
                }
                Err(quick_xml::Error::Io(error)) => {
                    return Err(Arc::try_unwrap(error).unwrap_or_else(|e| io::Error::new(e.kind(), e)));
                }
                // The parser will meet the same error and report it.
                Err(_) => None,
            };
            let until = match checked {
                Some(Ok(())) => Some(self.tokens.buffer_position()),
                Some(Err(what)) => {
                    self.refused = Some((self.line + lines(&self.piece), what));
                    return Err(io::Error::other("refused"));
                }
                None => None,
            };
            self.ended = until.is_none();
            let from = self.start + self.piece.len() as u64;
            let len = until.map(|until| until.saturating_sub(from) as usize);
            self.tokens.get_mut().get_mut().take(len, &mut self.piece);
            self.meter.budget.read = self.start + self.piece.len() as u64;
        }
        Ok(())
    }

    /// Returns the line of a byte that the parser has reached.
    fn line_at(&self, byte: u64) -> u64 {
        let len = (byte.saturating_sub(self.start) as usize).min(self.piece.len());
        self.line + lines(&self.piece[..len])
    }
}

fn lines(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

/// Copies the bytes that the tokeniser reads, until they are taken.
struct Tee<'a> {
    reader: Box<dyn Read + 'a>,
    /// `bytes[start..]` has not been taken yet.
    bytes: Vec<u8>,
    start: usize,
}

impl Tee<'_> {
    /// Tells whether the current event is too long.
    fn too_long(&self) -> bool {
        self.bytes.len() - self.start > MAX_ROW
    }

    /// Moves the next `len` bytes, or all bytes, to `piece`.
    fn take(&mut self, len: Option<usize>, piece: &mut Vec<u8>) {
        let end = len.map_or(self.bytes.len(), |len| self.bytes.len().min(self.start + len));
        piece.extend_from_slice(&self.bytes[self.start..end]);
        self.start = end;
    }
}

impl Read for Tee<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.too_long() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.bytes.drain(..self.start);
        self.start = 0;
        let len = self.reader.read(buffer)?;
        self.bytes.extend_from_slice(&buffer[..len]);
        Ok(len)
    }
}

/// Computes how long events become when the parser writes them out.
#[derive(Default)]
struct ExpansionMeter {
    budget: ExpansionBudget,
    /// Length of each entity, written out.
    entities: HashMap<String, usize>,
    open: Vec<OpenElement>,
    /// Number and length of the prefixes of all open elements.
    prefixes: usize,
    prefix_bytes: usize,
}

/// An open element.
#[derive(Clone, Default)]
struct OpenElement {
    /// Number and length of the prefixes declared here.
    prefixes: usize,
    prefix_bytes: usize,
    /// Length of the base IRI in scope.
    base: usize,
    /// Whether it may be a collection or an XML literal.
    special: bool,
    children: usize,
}

impl ExpansionMeter {
    fn check(&mut self, tokens: &NsReader<BufReader<Tee<'_>>>, event: &Event<'_>) -> Result<(), RowError> {
        match event {
            Event::Start(start) | Event::Empty(start) => self.start(tokens, start),
            Event::End(_) => {
                let closed = self.open.pop().unwrap_or_default();
                self.prefixes -= closed.prefixes;
                self.prefix_bytes -= closed.prefix_bytes;
                Ok(())
            }
            Event::Text(text) => {
                let bytes = self.expanded(text);
                self.budget.spend(bytes)
            }
            Event::DocType(text) => self.declare(text),
            // The parser copies these unchanged, or ignores them.
            Event::CData(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::Eof => Ok(()),
        }
    }

    fn start(&mut self, tokens: &NsReader<BufReader<Tee<'_>>>, start: &BytesStart<'_>) -> Result<(), RowError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(RowError::TooMany { what: "elements inside each other", limit: MAX_DEPTH });
        }
        let (namespace, local) = tokens.resolve_element(start.name());
        let mut bytes = self.name(&namespace, local);
        let mut element = OpenElement { base: self.open.last().map_or(0, |e| e.base), ..OpenElement::default() };
        let (mut attributes, mut longest) = (0, 0);
        // The parser stops at a broken attribute.
        for attribute in start.attributes().with_checks(false).map_while(Result::ok) {
            attributes += 1;
            if attributes > MAX_ATTRIBUTES {
                return Err(RowError::TooMany { what: "attributes of an element", limit: MAX_ATTRIBUTES });
            }
            let value = self.expanded(&attribute.value);
            bytes = bytes.saturating_add(value);
            longest = longest.max(value);
            if attribute.key.as_namespace_binding().is_some() {
                element.prefixes += 1;
                element.prefix_bytes += attribute.key.0.len() + attribute.value.len();
            }
            let (namespace, local) = tokens.resolve_attribute(attribute.key);
            bytes = bytes.saturating_add(self.name(&namespace, local));
            if namespace == ResolveResult::Bound(Namespace(XML)) && local.as_ref() == b"base" {
                if value > MAX_NAME {
                    return Err(RowError::LongName);
                }
                element.base = value;
            }
            element.special |= may_be_parse_type(&namespace, local);
        }
        // Any attribute may be an IRI that the base is prepended to.
        bytes = bytes.saturating_add(attributes * element.base);
        // It may also be the subject or the language of a statement for each of the other
        // attributes.
        if longest > MAX_NAME {
            bytes = bytes.saturating_add(longest.saturating_mul(attributes));
        }
        self.prefixes += element.prefixes;
        self.prefix_bytes += element.prefix_bytes;
        if self.prefixes > MAX_PREFIXES {
            return Err(RowError::TooMany { what: "prefixes", limit: MAX_PREFIXES });
        }
        if let Some(parent) = self.open.last_mut().filter(|parent| parent.special) {
            parent.children += 1;
            if parent.children > MAX_MEMBERS {
                return Err(RowError::TooMany { what: "members of a collection", limit: MAX_MEMBERS });
            }
            // An XML literal repeats all declarations in each of its elements.
            bytes = bytes.saturating_add(self.prefix_bytes);
        }
        self.open.push(element);
        self.budget.spend(bytes)
    }

    /// Returns the length of a qualified name. The parser joins namespace and local part, and then
    /// expands entities.
    fn name(&self, namespace: &ResolveResult<'_>, local: LocalName<'_>) -> usize {
        let ResolveResult::Bound(Namespace(namespace)) = namespace else { return 0 };
        let local = local.into_inner();
        match memchr(b'&', namespace).or(memchr(b'&', local)) {
            Some(_) => self.expanded(&[namespace, local].concat()),
            None => namespace.len() + local.len(),
        }
    }

    /// Returns the length of a text with its entities written out.
    fn expanded(&self, text: &[u8]) -> usize {
        if memchr(b'&', text).is_none() {
            return text.len();
        }
        let Ok(text) = str::from_utf8(text) else { return text.len() };
        let mut entities = 0usize;
        // Entities are replaced by nothing here, but their lengths are counted.
        let rest = escape::unescape_with(text, |name| {
            let bytes = match escape::resolve_xml_entity(name) {
                Some(character) => character.len(),
                None => *self.entities.get(name)?,
            };
            entities = entities.saturating_add(bytes);
            Some("")
        });
        // The parser also stops at an unknown entity, at the same place.
        rest.map_or(0, |rest| rest.len()).saturating_add(entities)
    }

    /// Records the entities of a document type, cut as the parser cuts them.
    fn declare(&mut self, text: &[u8]) -> Result<(), RowError> {
        let Ok(text) = str::from_utf8(text) else { return Ok(()) };
        for declaration in text.split('<').skip(1).filter_map(|d| d.strip_prefix("!ENTITY")) {
            let Some((name, value)) = entity(declaration) else { return Ok(()) };
            let bytes = self.expanded(value.as_bytes());
            if bytes > MAX_ENTITY {
                let message = format!("an XML entity of more than {MAX_ENTITY} bytes, expected short ones");
                return Err(RowError::Rdf { remedy: None, message });
            }
            self.budget.spend(bytes)?;
            self.entities.insert(name.to_owned(), bytes);
        }
        Ok(())
    }
}

/// Returns the name and the value in what follows `<!ENTITY`.
fn entity(declaration: &str) -> Option<(&str, &str)> {
    let rest = declaration.trim_start().strip_prefix('%').unwrap_or(declaration);
    let (name, rest) = rest.trim_start().split_once(|c: char| c.is_ascii_whitespace())?;
    let (value, _) = rest.trim_start().strip_prefix('"')?.split_once('"')?;
    Some((name, value))
}

/// Tells whether an attribute may say that an element is a collection or an XML literal. An entity
/// in its name may hide that.
fn may_be_parse_type(namespace: &ResolveResult<'_>, local: LocalName<'_>) -> bool {
    let ResolveResult::Bound(Namespace(namespace)) = namespace else { return false };
    let local = local.into_inner();
    let entities = memchr(b'&', namespace).or(memchr(b'&', local)).is_some();
    entities || PARSE_TYPE.strip_prefix(*namespace).is_some_and(|rest| rest == local)
}
