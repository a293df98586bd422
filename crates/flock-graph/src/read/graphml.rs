//! Reads GraphML, as Gephi, yEd, NetworkX, TinkerPop and Neo4j write it.
//!
//! ```text
//! <key id="d0" for="node" attr.name="name"/> <key id="d1" for="edge" attr.name="relation"/>
//! <graph edgedefault="directed">
//!   <node id="n0"><data key="d0">Ada</data></node>
//!   <edge source="n0" target="n1"><data key="d1">works at</data></edge>
//! ```
//!
//! Entities are called by the ids of nodes; a label or name becomes their label. The relation of an
//! edge is what its data calls relation, label or type. An edge without any of them has the relation
//! `edge`. Graphs inside nodes are part of the same graph. All other data is counted like literals,
//! by the name of its key.
//!
//! A file is streamed: an element is held until its end. XML entities of the file's own are refused.

use super::rows::{MAX_NAME, MAX_ROW};
use super::source::Source;
use super::{LoadOptions, LoadReport, Sink};
use crate::read::error::{LoadError, RowError};
use memchr::memchr_iter;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use std::collections::HashMap;
use std::io::{self, BufReader, Read};
use std::sync::Arc;

/// Greatest number of elements inside each other.
const MAX_DEPTH: usize = 1024;

/// Greatest number of keys.
const MAX_KEYS: usize = 1 << 16;

/// Greatest number of attributes of an element.
const MAX_ATTRIBUTES: usize = 1024;

/// Names of keys that label a node, the best first.
const LABELS: [&str; 3] = ["label", "name", "title"];

/// Names of keys that name the relation of an edge, the best first.
const RELATIONS: [&str; 10] = [
    "relation",
    "predicate",
    "relationship",
    "label",
    "edge label",
    "edgelabel",
    "labele",
    "type",
    "interaction",
    "name",
];

/// The relation of edges that name none.
const EDGE: &str = "edge";

/// Passes every edge and label of `source` to `sink`. After an XML error nothing that follows can be
/// trusted, so `lenient` applies only to edges and nodes that lack something.
pub(crate) fn read(
    source: &mut Source<'_>,
    options: &LoadOptions,
    report: &mut LoadReport,
    sink: &mut dyn Sink,
) -> Result<(), LoadError> {
    let limited = EventLimit { reader: source.take_reader(), since: 0, lines: 1 };
    let mut tokens = Reader::from_reader(BufReader::new(limited));
    tokens.config_mut().expand_empty_elements = true;
    let mut bytes = Vec::new();
    let mut document = Document::default();
    loop {
        bytes.clear();
        tokens.get_mut().get_mut().since = 0;
        let event = tokens.read_event_into(&mut bytes);
        let line = {
            let buffered = tokens.get_ref().buffer();
            tokens.get_ref().get_ref().lines - memchr_iter(b'\n', buffered).count() as u64
        };
        let taken = match event {
            Ok(Event::Eof) => break,
            Ok(Event::Start(start)) => document.open(&start, report),
            Ok(Event::End(_)) => match document.close(report, sink) {
                Err(what) if is_syntax(&what) => {
                    report.rows += 1;
                    report.skip(&source.file, line, what, options)?;
                    Ok(())
                }
                closed => closed,
            },
            Ok(Event::Text(text)) => match text.unescape() {
                Ok(text) => document.text(&text),
                Err(error) => Err(xml_error(&error)),
            },
            Ok(Event::CData(text)) => match str::from_utf8(&text) {
                Ok(text) => document.text(text),
                Err(error) => Err(RowError::InvalidUtf8 { byte: error.valid_up_to() + 1 }),
            },
            Ok(_) => Ok(()),
            Err(quick_xml::Error::Io(error)) => {
                if tokens.get_ref().get_ref().since > MAX_ROW {
                    return Err(source.row(line, RowError::TooLong));
                }
                let error = Arc::try_unwrap(error).unwrap_or_else(|e| io::Error::new(e.kind(), e));
                return Err(source.failed(error));
            }
            Err(error) => Err(xml_error(&error)),
        };
        taken.map_err(|what| source.row(line, what))?;
    }
    if !document.open.is_empty() {
        let found = "the end of the file".to_owned();
        let what = RowError::Syntax { found, expected: "the end of the element before it" };
        return Err(source.row(tokens.get_ref().get_ref().lines, what));
    }
    if !document.seen && tokens.buffer_position() > 0 {
        let what = RowError::Syntax { found: "no element graphml".to_owned(), expected: "GraphML" };
        return Err(source.row(1, what));
    }
    Ok(())
}

fn is_syntax(what: &RowError) -> bool {
    matches!(what, RowError::Syntax { .. } | RowError::LongName)
}

fn xml_error(error: &dyn std::error::Error) -> RowError {
    RowError::Rdf { message: error.to_string(), remedy: None }
}

/// Counts lines, and fails if one event takes too many bytes.
struct EventLimit<'a> {
    reader: Box<dyn Read + 'a>,
    /// Bytes read since the last event.
    since: usize,
    lines: u64,
}

impl Read for EventLimit<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.since > MAX_ROW {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let len = self.reader.read(buffer)?;
        self.since += len;
        self.lines += memchr_iter(b'\n', &buffer[..len]).count() as u64;
        Ok(len)
    }
}

/// What has been read of a document.
#[derive(Default)]
struct Document {
    /// Names of keys by their ids, in lower case.
    keys: HashMap<String, String>,
    /// The label of nodes, and the relation of edges, that have none.
    node_default: Option<(usize, String)>,
    edge_default: Option<(usize, String)>,
    open: Vec<Element>,
    /// Bytes of text of all open elements.
    held: usize,
    /// Whether there was an element `graphml`.
    seen: bool,
}

/// A key declares a kind of data.
struct Key {
    /// Its name in lower case.
    name: String,
    /// The value of nodes or edges that have none.
    default: Option<String>,
    /// Whether it is for nodes, and for edges.
    nodes: bool,
    edges: bool,
}

/// An open element.
enum Element {
    Key(String, Key),
    /// The default of a key.
    Default(String),
    /// Whether edges are undirected.
    Graph(bool),
    Node(Node),
    Edge(Edge),
    /// Data of the element around it: key and text.
    Data(String, String),
    /// The label of yEd: text.
    YedLabel(String),
    Other,
}

struct Node {
    id: String,
    /// The best label so far, and its place.
    label: Option<(usize, String)>,
}

struct Edge {
    ends: [Option<String>; 2],
    /// The best relation so far, and its place.
    relation: Option<(usize, String)>,
    undirected: bool,
}

impl Document {
    fn open(&mut self, start: &BytesStart<'_>, report: &mut LoadReport) -> Result<(), RowError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(RowError::TooMany { what: "elements inside each other", limit: MAX_DEPTH });
        }
        let mut attributes = HashMap::new();
        for attribute in start.attributes().with_checks(false) {
            let attribute = attribute.map_err(|e| xml_error(&e))?;
            if attributes.len() >= MAX_ATTRIBUTES {
                return Err(RowError::TooMany { what: "attributes of an element", limit: MAX_ATTRIBUTES });
            }
            let value = attribute.unescape_value().map_err(|e| xml_error(&e))?;
            attributes.insert(String::from_utf8_lossy(attribute.key.as_ref()).into_owned(), value.into_owned());
        }
        let name = start.local_name();
        let element = match name.as_ref() {
            b"graphml" => {
                self.seen = true;
                Element::Other
            }
            b"key" => {
                let kind = attributes.remove("for").unwrap_or_else(|| "all".to_owned());
                let id = attributes.remove("id").unwrap_or_default();
                let name = attributes.remove("attr.name").unwrap_or_else(|| id.clone());
                let (nodes, edges) = (kind == "node" || kind == "all", kind == "edge" || kind == "all");
                Element::Key(id, Key { name: name.to_lowercase(), default: None, nodes, edges })
            }
            b"default" if matches!(self.open.last(), Some(Element::Key(..))) => Element::Default(String::new()),
            b"graph" => Element::Graph(attributes.get("edgedefault").is_some_and(|d| d == "undirected")),
            b"node" => {
                let id = attributes.remove("id").unwrap_or_default();
                let label = attributes.remove("label").map(|label| (0, label));
                Element::Node(Node { id, label })
            }
            b"edge" => {
                let around =
                    self.open.iter().rev().find_map(|e| if let Element::Graph(u) = e { Some(*u) } else { None });
                let undirected = match attributes.get("directed").map(String::as_str) {
                    Some(directed) => directed == "false",
                    None => around.unwrap_or(false),
                };
                // Neo4j writes the relation as an attribute too.
                let relation = attributes.remove("label").map(|label| (place(&RELATIONS, "label"), label));
                let ends = [attributes.remove("source"), attributes.remove("target")];
                Element::Edge(Edge { ends, relation, undirected })
            }
            b"hyperedge" => {
                report.rows += 1;
                report.literal("hyperedge");
                Element::Other
            }
            b"data" => Element::Data(attributes.remove("key").unwrap_or_default(), String::new()),
            b"NodeLabel" | b"EdgeLabel" => Element::YedLabel(String::new()),
            _ => Element::Other,
        };
        self.open.push(element);
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), RowError> {
        if let Some(Element::Default(held) | Element::Data(_, held) | Element::YedLabel(held)) = self.open.last_mut() {
            self.held += text.len();
            if self.held > MAX_ROW {
                return Err(RowError::TooLong);
            }
            held.push_str(text);
        }
        Ok(())
    }

    fn close(&mut self, report: &mut LoadReport, sink: &mut dyn Sink) -> Result<(), RowError> {
        match self.open.pop() {
            Some(Element::Key(id, key)) => {
                if self.keys.len() >= MAX_KEYS {
                    return Err(RowError::TooMany { what: "keys", limit: MAX_KEYS });
                }
                let default = key.default.unwrap_or_default();
                if key.nodes && LABELS.contains(&key.name.as_str()) {
                    keep(&mut self.node_default, place(&LABELS, &key.name), &default);
                }
                if key.edges && RELATIONS.contains(&key.name.as_str()) {
                    keep(&mut self.edge_default, place(&RELATIONS, &key.name), &default);
                }
                self.keys.insert(id, key.name);
            }
            Some(Element::Default(text)) => {
                self.held -= text.len();
                if let Some(Element::Key(_, key)) = self.open.last_mut() {
                    key.default = Some(text.trim().to_owned());
                }
            }
            Some(Element::Data(key, text)) => {
                self.held -= text.len();
                self.data(&key, text.trim(), report);
            }
            Some(Element::YedLabel(text)) => {
                self.held -= text.len();
                let text = text.trim();
                // The label is inside data, which is inside the node or edge.
                for element in self.open.iter_mut().rev() {
                    match element {
                        Element::Node(node) => {
                            keep(&mut node.label, LABELS.len(), text);
                            break;
                        }
                        Element::Edge(edge) => {
                            keep(&mut edge.relation, RELATIONS.len(), text);
                            break;
                        }
                        _ => {}
                    }
                }
            }
            Some(Element::Node(node)) => return self.node(node, report, sink),
            Some(Element::Edge(edge)) => return self.edge(edge, report, sink),
            Some(Element::Graph(_) | Element::Other) | None => {}
        }
        Ok(())
    }

    /// Takes data of the node or edge that is open.
    fn data(&mut self, key: &str, text: &str, report: &mut LoadReport) {
        // A key that is not declared is called by its id.
        let id = key.to_lowercase();
        let name = self.keys.get(key).map_or(id.as_str(), String::as_str);
        let (names, best) = match self.open.last_mut() {
            // What yEd draws has been read already.
            _ if text.is_empty() => return,
            Some(Element::Node(node)) => (&LABELS[..], &mut node.label),
            Some(Element::Edge(edge)) => (&RELATIONS[..], &mut edge.relation),
            // Data of the graph or the file.
            _ => return,
        };
        // Of two names one is left out.
        let second = best.as_ref().is_some_and(|(_, best)| best != text);
        let named = names.contains(&name) && text.len() <= MAX_NAME;
        if named {
            keep(best, place(names, name), text);
        }
        if !named || second {
            report.rows += 1;
            report.literal(name);
        }
    }

    fn node(&self, node: Node, report: &mut LoadReport, sink: &mut dyn Sink) -> Result<(), RowError> {
        check_name(&node.id, "the id of a node")?;
        if let Some((_, label)) = node.label.as_ref().or(self.node_default.as_ref()) {
            report.rows += 1;
            report.labels += 1;
            sink.label(&node.id, label, 0);
        }
        Ok(())
    }

    fn edge(&self, edge: Edge, report: &mut LoadReport, sink: &mut dyn Sink) -> Result<(), RowError> {
        let [head, tail] = edge.ends.map(Option::unwrap_or_default);
        check_name(&head, "the source of an edge")?;
        check_name(&tail, "the target of an edge")?;
        let relation = edge.relation.as_ref().or(self.edge_default.as_ref());
        let relation = relation.map_or(EDGE, |(_, relation)| relation);
        check_name(relation, "the relation of an edge")?;
        report.rows += 1;
        report.undirected += u64::from(edge.undirected);
        sink.triple(&head, relation, &tail);
        Ok(())
    }
}

/// Returns the place of a name in a list.
fn place(names: &[&str], name: &str) -> usize {
    names.iter().position(|n| *n == name).unwrap_or(names.len())
}

/// Keeps a text unless one with a lower place is there.
fn keep(best: &mut Option<(usize, String)>, place: usize, text: &str) {
    let better = best.as_ref().is_none_or(|(p, _)| place <= *p);
    if better && !text.is_empty() && text.len() <= MAX_NAME {
        *best = Some((place, text.to_owned()));
    }
}

fn check_name(name: &str, expected: &'static str) -> Result<(), RowError> {
    match name.len() {
        0 => Err(RowError::Syntax { found: "nothing".to_owned(), expected }),
        len if len > MAX_NAME => Err(RowError::LongName),
        _ => Ok(()),
    }
}
