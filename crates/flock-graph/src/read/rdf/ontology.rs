//! Turns the class expressions of OWL into triples.
//!
//! "Every hand is part of some arm" is four statements in OWL, about a node without a name:
//!
//! ```text
//! hand rdfs:subClassOf _:x .   _:x rdf:type owl:Restriction .
//! _:x owl:onProperty part_of . _:x owl:someValuesFrom arm .
//! ```
//!
//! The graph gets the triple (hand, part_of, arm) instead. `owl:hasValue` is read in the same way.
//! An `owl:intersectionOf` says all that its members say: a named class becomes an
//! `rdfs:subClassOf`, a restriction becomes its triple. What else is said of unnamed classes, and
//! the links of lists, are counted and left out. So are annotations of axioms (`owl:Axiom`), as
//! statements about statements.
//!
//! All this happens only if a file has an `owl:Restriction`. Until the first one, statements go
//! through a [`Window`] that keeps their order. A file without any gives the same graph as without
//! this module. After the first one, statements with blank nodes wait for the end of the file,
//! because their parts may come in any order.

use crate::names::Names;
use crate::read::error::RowError;
use crate::read::{LoadReport, Sink};
use std::collections::HashMap;

const OWL: &str = "http://www.w3.org/2002/07/owl#";
const SWRL: &str = "http://www.w3.org/2003/11/swrl#";
const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
const FIRST: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#first";
const REST: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#rest";
const LIST: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#List";
const SUBCLASS: &str = "http://www.w3.org/2000/01/rdf-schema#subClassOf";

/// Number of bytes of names that wait in half a window.
const HALF_WINDOW: usize = 32 << 20;

/// Stands for no name.
const NONE: u32 = u32::MAX;

fn is_blank(name: &str) -> bool {
    name.starts_with("_:")
}

/// Passes triples on, without the blank nodes of class expressions.
#[derive(Default)]
pub(crate) struct OntologyFilter {
    state: State,
}

#[derive(Default)]
enum State {
    /// Nothing looks like an ontology so far.
    #[default]
    Streaming,
    /// It may be an ontology, but there was no restriction yet.
    Watching(Window),
    /// There was a restriction.
    Reading(Box<Expressions>),
}

impl OntologyFilter {
    /// Takes a triple.
    pub(crate) fn take(&mut self, triple: [&str; 3], sink: &mut dyn Sink) {
        match &mut self.state {
            State::Streaming => {
                if !looks_like_owl(triple) {
                    let [head, relation, tail] = triple;
                    return sink.triple(head, relation, tail);
                }
                self.state = State::Watching(Window::default());
                self.take(triple, sink);
            }
            State::Watching(window) => {
                window.push(triple, sink);
                let [_, relation, tail] = triple;
                if relation == TYPE && tail.strip_prefix(OWL) == Some("Restriction") {
                    let window = std::mem::take(window);
                    let mut expressions = Box::<Expressions>::default();
                    window.drain(|triple| expressions.take(triple, sink));
                    self.state = State::Reading(expressions);
                }
            }
            State::Reading(expressions) => expressions.take(triple, sink),
        }
    }

    /// Passes on what has waited, at the end of a file.
    pub(crate) fn finish(&mut self, report: &mut LoadReport, sink: &mut dyn Sink) -> Result<(), RowError> {
        match std::mem::take(&mut self.state) {
            State::Streaming => Ok(()),
            State::Watching(window) => {
                window.drain(|[head, relation, tail]| sink.triple(head, relation, tail));
                Ok(())
            }
            State::Reading(expressions) => expressions.finish(report, sink),
        }
    }
}

/// Tells whether a triple may belong to an ontology with class expressions.
fn looks_like_owl([head, relation, tail]: [&str; 3]) -> bool {
    if let Some(word) = tail.strip_prefix(OWL) {
        return relation == TYPE && !matches!(word, "Thing" | "NamedIndividual");
    }
    match relation.strip_prefix(OWL) {
        Some(word) => word != "sameAs",
        // Lists and unnamed classes may come before any word of OWL.
        None => is_blank(tail) && relation == SUBCLASS || is_blank(head) && matches!(relation, FIRST | REST),
    }
}

/// The last triples, in order. The older ones have been passed on.
#[derive(Default)]
struct Window {
    old: Triples,
    new: Triples,
}

/// Triples, written one after the other.
#[derive(Default)]
struct Triples {
    text: String,
    /// Where head, relation and tail end.
    ends: Vec<[usize; 3]>,
}

impl Triples {
    fn for_each(&self, mut f: impl FnMut([&str; 3])) {
        let mut from = 0;
        for &[head, relation, tail] in &self.ends {
            f([&self.text[from..head], &self.text[head..relation], &self.text[relation..tail]]);
            from = tail;
        }
    }
}

impl Window {
    fn push(&mut self, triple: [&str; 3], sink: &mut dyn Sink) {
        let Triples { text, ends } = &mut self.new;
        ends.push(triple.map(|name| {
            text.push_str(name);
            text.len()
        }));
        if self.new.text.len() > HALF_WINDOW {
            self.old.for_each(|[head, relation, tail]| sink.triple(head, relation, tail));
            self.old = std::mem::take(&mut self.new);
        }
    }

    fn drain(self, mut f: impl FnMut([&str; 3])) {
        self.old.for_each(&mut f);
        self.new.for_each(&mut f);
    }
}

/// Statements with blank nodes of an ontology.
#[derive(Default)]
struct Expressions {
    names: Names,
    statements: Vec<[u32; 3]>,
    nodes: HashMap<u32, BlankNodeRole>,
}

/// What an ontology says of a blank node that is part of its own structure.
struct BlankNodeRole {
    /// The property and the value of a restriction.
    property: u32,
    value: u32,
    /// The list of an intersection.
    intersection: u32,
    /// A member of a list, and the rest of the list.
    first: u32,
    rest: u32,
    /// Whether it annotates an axiom.
    annotates: bool,
}

impl Expressions {
    fn take(&mut self, triple: [&str; 3], sink: &mut dyn Sink) {
        let [head, relation, tail] = triple;
        if !is_blank(head) && !is_blank(tail) {
            return sink.triple(head, relation, tail);
        }
        let ids = triple.map(|name| self.names.intern(name));
        self.statements.push(ids);
        if !is_blank(head) {
            return;
        }
        let word = relation.strip_prefix(OWL);
        let kind = if relation == TYPE { tail.strip_prefix(OWL) } else { None };
        let structural = word.is_some_and(|w| w != "sameAs" && w != "differentFrom")
            || kind.is_some_and(|k| !matches!(k, "Thing" | "NamedIndividual"))
            || matches!(relation, FIRST | REST)
            || relation == TYPE && (tail == LIST || tail.starts_with(SWRL))
            || relation.starts_with(SWRL);
        if !structural {
            return;
        }
        let node = self.nodes.entry(ids[0]).or_insert(BlankNodeRole {
            property: NONE,
            value: NONE,
            intersection: NONE,
            first: NONE,
            rest: NONE,
            annotates: false,
        });
        node.annotates |= matches!(kind, Some("Axiom" | "Annotation")) || word == Some("annotatedSource");
        match (relation, word) {
            (_, Some("onProperty")) => node.property = ids[2],
            (_, Some("someValuesFrom" | "hasValue")) => node.value = ids[2],
            (_, Some("intersectionOf")) => node.intersection = ids[2],
            (FIRST, _) => node.first = ids[2],
            (REST, _) => node.rest = ids[2],
            _ => {}
        }
    }

    fn finish(&self, report: &mut LoadReport, sink: &mut dyn Sink) -> Result<(), RowError> {
        // A node belongs to one expression, as a rule. If short lists are shared by many classes, a
        // short file could give any number of triples.
        let mut steps = 1024 + 8 * self.statements.len();
        for &[head, relation, tail] in &self.statements {
            if let Some(node) = self.nodes.get(&head) {
                *(if node.annotates { &mut report.about } else { &mut report.structure }) += 1;
            } else if let Some(node) = self.nodes.get(&tail) {
                *(if node.annotates { &mut report.about } else { &mut report.structure }) += 1;
                let relation = self.names.get(relation);
                let is_a = match relation {
                    TYPE => Some(TYPE),
                    SUBCLASS => Some(SUBCLASS),
                    _ => matches!(relation.strip_prefix(OWL), Some("equivalentClass" | "intersectionOf"))
                        .then_some(SUBCLASS),
                };
                if let Some(is_a) = is_a {
                    report.derived += self.expand(head, is_a, tail, &mut steps, sink)?;
                }
            } else {
                sink.triple(self.names.get(head), self.names.get(relation), self.names.get(tail));
            }
        }
        Ok(())
    }

    /// Passes on what an expression says of `head`. Returns the number of triples.
    fn expand(
        &self,
        head: u32,
        is_a: &str,
        expression: u32,
        steps: &mut usize,
        sink: &mut dyn Sink,
    ) -> Result<u64, RowError> {
        let mut count = 0;
        // Expressions, each with its relation to the head. What stands inside a restriction says
        // something of its value, so only named classes are of use there.
        let mut open = vec![(expression, None)];
        while let Some((id, property)) = open.pop() {
            *steps = steps.checked_sub(1).ok_or(RowError::TooMany {
                what: "members of class expressions that are used again and again",
                limit: 1024 + 8 * self.statements.len(),
            })?;
            let Some(node) = self.nodes.get(&id) else {
                let name = self.names.get(id);
                if !is_blank(name) {
                    sink.triple(self.names.get(head), property.unwrap_or(is_a), name);
                    count += 1;
                }
                continue;
            };
            // The rest of a list goes first, so that the first member is popped first.
            for part in [node.rest, node.first, node.intersection] {
                if part != NONE && self.names.get(part) != "http://www.w3.org/1999/02/22-rdf-syntax-ns#nil" {
                    open.push((part, property));
                }
            }
            if node.value != NONE && node.property != NONE && property.is_none() {
                let name = self.names.get(node.property);
                if !is_blank(name) {
                    open.push((node.value, Some(name)));
                }
            }
        }
        Ok(count)
    }
}
