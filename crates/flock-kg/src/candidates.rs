//! The only candidates of a question: names that are given or read from a file, or entities that the graph itself picks out by
//! their type or by the relations they occur with.
//!
//! | condition | who is a candidate |
//! |---|---|
//! | a list ([`Candidates::new`], [`Candidates::open`]) | the names of the list that the graph has; others are skipped and counted |
//! | [`Candidates::of_type`] | x with (x, relation, value) in the graph |
//! | [`Candidates::of_range`] | x with (…, relation, x) in the graph |
//! | [`Candidates::of_domain`] | x with (x, relation, …) in the graph |
//!
//! Conditions are joined with [`Candidates::and`]: a candidate must fit all of them. Lists are of entities or of relations, as the
//! question asks; the other conditions are about entities only.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flock_graph::{Graph, Names, UnknownName};
use flock_model::checkpoint::Task;
use serde::Serialize;

/// The most bytes of a name: no name in a graph is longer.
const MAX_NAME: u64 = 64 << 10;

/// The most bytes of a list, so that a stream without an end has one.
const MAX_LIST: u64 = 256 << 20;

/// So many unknown names are told; the rest are counted.
const TOLD: usize = 5;

/// Conditions that all must hold. Without any, everything is a candidate.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    conditions: Vec<Condition>,
}

#[derive(Clone, Debug)]
enum Condition {
    Names(NameList),
    Type { relation: String, value: String },
    Range { relation: String },
    Domain { relation: String },
}

/// Distinct names, each with the place it was read from.
#[derive(Clone, Debug, Default)]
struct NameList {
    names: Names,
    file: Option<String>,
    lines: Vec<u64>, // of a file: where each name stands first
}

/// The candidates of one graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundCandidates {
    /// Entities or relations, ascending.
    pub ids: Vec<u32>,
    /// The names of lists that the graph does not have, if there are any.
    pub unknown: Option<UnknownCandidates>,
}

/// Names of a list of candidates that the graph does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UnknownCandidates {
    /// How many there are.
    pub count: usize,
    /// The first few.
    pub first: Vec<String>,
}

/// Why a list of candidates cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CandidatesError {
    /// The system cannot read it.
    #[error("{file}: cannot read: {source}")]
    Io {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// A line that is no name.
    #[error("{file}:{line}: found a line of more than {} KiB, expected one name per line", MAX_NAME >> 10)]
    LongLine {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
    },
    /// More than is taken.
    #[error("{file}:{line}: found more than {} MiB of names", MAX_LIST >> 20)]
    LongList {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
    },
    /// A line that is no text.
    #[error("{file}:{line}: invalid UTF-8, expected one name per line")]
    NotText {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
    },
    /// Nothing at all.
    #[error("{file}: no names, expected one per line")]
    Empty {
        /// The file.
        file: String,
    },
}

/// Why a question has no candidates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CandidateError {
    /// A list without any name that the graph has.
    #[error("{}{unknown}{}", place_of(.place), if *.count > 1 { format!("; none of the {count} candidates is known") } else { String::new() })]
    NoneKnown {
        /// `file:line` of the first name, or nothing.
        place: String,
        /// The first name, and names near it.
        unknown: Box<UnknownName>,
        /// How many names the list has.
        count: usize,
    },
    /// The relation or the value of a condition is not in the graph.
    #[error("candidates {condition}: {unknown}")]
    Unknown {
        /// The condition.
        condition: String,
        /// The name, and names near it.
        unknown: Box<UnknownName>,
    },
    /// No entity fits all conditions.
    #[error("no entity of the graph is a candidate: expected at least one {conditions}")]
    Nothing {
        /// The conditions, joined with "and".
        conditions: String,
    },
    /// Entities as candidates for a question that asks for a relation.
    #[error("the question asks for a relation, and candidates {condition} are entities")]
    NotRelations {
        /// The condition.
        condition: String,
    },
    /// A type that is not written as relation and value.
    #[error("{text:?}: expected RELATION=VALUE, such as instance_of=city")]
    NoType {
        /// What was written.
        text: String,
    },
}

fn place_of(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!("{place}: ") }
}

impl Candidates {
    fn with(condition: Condition) -> Candidates {
        Candidates { conditions: vec![condition] }
    }

    /// Candidates by name; repeated ones count once.
    pub fn new<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Candidates {
        let mut list = NameList::default();
        for name in names {
            list.names.intern(name.as_ref());
        }
        Candidates::with(Condition::Names(list))
    }

    /// Entities x with (x, `relation`, `value`) in the graph: all cities, by `of_type("instance_of", "city")`.
    pub fn of_type(relation: impl Into<String>, value: impl Into<String>) -> Candidates {
        Candidates::with(Condition::Type { relation: relation.into(), value: value.into() })
    }

    /// As [`Candidates::of_type`], written as `RELATION=VALUE`. A name may have a `=` in it: the first `=` with names of the graph on
    /// both sides counts, else the first.
    ///
    /// # Errors
    /// A text without `=`, or with nothing before or after it.
    pub fn parse_type(graph: &Graph, text: &str) -> Result<Candidates, CandidateError> {
        let splits = || text.match_indices('=').map(|(at, _)| (&text[..at], &text[at + 1..]));
        let is_known = |(relation, value): &(&str, &str)| {
            graph.find_relation(relation).is_some() && graph.find_entity(value).is_some()
        };
        let (relation, value) = splits()
            .find(is_known)
            .or_else(|| splits().next())
            .filter(|(relation, value)| !relation.is_empty() && !value.is_empty())
            .ok_or_else(|| CandidateError::NoType { text: text.to_string() })?;
        Ok(Candidates::of_type(relation, value))
    }

    /// Entities that the graph has as a tail (an object) of the relation.
    pub fn of_range(relation: impl Into<String>) -> Candidates {
        Candidates::with(Condition::Range { relation: relation.into() })
    }

    /// Entities that the graph has as a head (a subject) of the relation.
    pub fn of_domain(relation: impl Into<String>) -> Candidates {
        Candidates::with(Condition::Domain { relation: relation.into() })
    }

    /// Candidates that fit both.
    pub fn and(mut self, other: Candidates) -> Candidates {
        self.conditions.extend(other.conditions);
        self
    }

    /// Reads a file with one name per line.
    ///
    /// # Errors
    /// As [`Candidates::read`].
    pub fn open(path: &Path) -> Result<Candidates, CandidatesError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| CandidatesError::Io { file: name.clone(), source })?;
        Candidates::read(&name, file)
    }

    /// Reads one name per line; blank lines are skipped. `file` is the name of the source in errors.
    ///
    /// # Errors
    /// A source that cannot be read, has no names, or is no list of names.
    pub fn read(file: &str, source: impl Read) -> Result<Candidates, CandidatesError> {
        let file = file.to_string();
        let io_error = |source| CandidatesError::Io { file: file.clone(), source };
        // One byte more than is taken tells an end from too much.
        let mut reader = BufReader::new(source.take(MAX_LIST + 1));
        let (mut names, mut lines, mut row) = (Names::new(), Vec::new(), Vec::new());
        let mut total = 0;
        for line in 1u64.. {
            row.clear();
            let len = reader.by_ref().take(MAX_NAME + 1).read_until(b'\n', &mut row).map_err(io_error)? as u64;
            total += len;
            if len == 0 {
                break;
            }
            if len > MAX_NAME && !row.ends_with(b"\n") {
                return Err(CandidatesError::LongLine { file, line });
            }
            if total > MAX_LIST {
                return Err(CandidatesError::LongList { file, line });
            }
            let Ok(text) = std::str::from_utf8(&row) else { return Err(CandidatesError::NotText { file, line }) };
            let text = if line == 1 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
            let name = text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text));
            if !name.trim().is_empty() && names.intern(name) as usize == lines.len() {
                lines.push(line);
            }
        }
        if names.is_empty() {
            return Err(CandidatesError::Empty { file });
        }
        Ok(Candidates::with(Condition::Names(NameList { names, file: Some(file), lines })))
    }

    /// Whether a list without a name leaves no candidates, whatever the graph.
    pub fn is_empty(&self) -> bool {
        self.conditions.iter().any(|c| matches!(c, Condition::Names(list) if list.names.is_empty()))
    }

    /// Finds the candidates in a graph: entities, or relations.
    ///
    /// # Errors
    /// A list of which no name is known, a condition with an unknown name or about entities where relations are asked for, or nothing
    /// that fits all conditions.
    pub fn find(&self, graph: &Graph, task: Task) -> Result<FoundCandidates, CandidateError> {
        let mut ids: Option<Vec<u32>> = None;
        let mut unknown: Option<UnknownCandidates> = None;
        for condition in &self.conditions {
            let mut found = match condition {
                Condition::Names(list) => {
                    let found = list.find(graph, task)?;
                    if let Some(more) = found.unknown {
                        let all = unknown.get_or_insert(UnknownCandidates { count: 0, first: Vec::new() });
                        all.count += more.count;
                        let room = TOLD - all.first.len();
                        all.first.extend(more.first.into_iter().take(room));
                    }
                    found.ids
                }
                entities => entities.entities(graph, task)?,
            };
            found.sort_unstable();
            found.dedup();
            ids = Some(match ids {
                None => found,
                Some(mut before) => {
                    before.retain(|id| found.binary_search(id).is_ok());
                    before
                }
            });
        }
        let all = || match task {
            Task::Entity => graph.topology().num_nodes(),
            Task::Relation => graph.topology().num_relations(),
        };
        let ids = ids.unwrap_or_else(|| (0..all()).collect());
        if ids.is_empty() {
            let conditions: Vec<String> = self.conditions.iter().map(Condition::to_string).collect();
            return Err(CandidateError::Nothing { conditions: conditions.join(" and ") });
        }
        Ok(FoundCandidates { ids, unknown })
    }
}

/// As an error says it after "candidates": `with instance_of = city`.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Names(NameList { file: Some(file), .. }) => write!(f, "listed in {file}"),
            Condition::Names(_) => f.write_str("of the list"),
            Condition::Type { relation, value } => write!(f, "with {relation} = {value}"),
            Condition::Range { relation } => write!(f, "that are tails of {relation}"),
            Condition::Domain { relation } => write!(f, "that are heads of {relation}"),
        }
    }
}

impl Condition {
    /// The entities that fit a condition which is no list.
    fn entities(&self, graph: &Graph, task: Task) -> Result<Vec<u32>, CandidateError> {
        let condition = || self.to_string();
        if task == Task::Relation {
            return Err(CandidateError::NotRelations { condition: condition() });
        }
        let fail = |unknown| CandidateError::Unknown { condition: condition(), unknown: Box::new(unknown) };
        let topology = graph.topology();
        let ends = |relation: &str, end: fn((u32, u32)) -> u32| {
            let relation = graph.parse_relation(relation).map_err(fail)?;
            Ok(topology.relation_range(relation).map(|id| end(topology.ends(id))).collect())
        };
        match self {
            Condition::Names(_) => Ok(Vec::new()),
            Condition::Type { relation, value } => {
                let relation = graph.parse_relation(relation).map_err(fail)?;
                let value = graph.parse_entity(value).map_err(fail)?;
                Ok(topology.answers(value, topology.inverse(relation)).collect())
            }
            Condition::Range { relation } => ends(relation, |(_, tail)| tail),
            Condition::Domain { relation } => ends(relation, |(head, _)| head),
        }
    }
}

impl NameList {
    fn find(&self, graph: &Graph, task: Task) -> Result<FoundCandidates, CandidateError> {
        let mut ids = Vec::with_capacity(self.names.len());
        let mut unknown = UnknownCandidates { count: 0, first: Vec::new() };
        for name in self.names.iter() {
            let id = match task {
                Task::Entity => graph.find_entity(name),
                Task::Relation => graph.find_relation(name),
            };
            match id {
                Some(id) => ids.push(id),
                None => {
                    unknown.count += 1;
                    if unknown.first.len() < TOLD {
                        unknown.first.push(name.to_string());
                    }
                }
            }
        }
        // Near names only for the one that is told: for each, all names of the graph are compared.
        if let (true, Some(first)) = (ids.is_empty(), unknown.first.first()) {
            let parsed = match task {
                Task::Entity => graph.parse_entity(first),
                Task::Relation => graph.parse_relation(first),
            };
            let place = match (&self.file, self.lines.first()) {
                (Some(file), Some(line)) => format!("{file}:{line}"),
                _ => String::new(),
            };
            match parsed {
                Ok(id) => ids.push(id),
                Err(unknown) => {
                    return Err(CandidateError::NoneKnown {
                        place,
                        unknown: Box::new(unknown),
                        count: self.names.len(),
                    });
                }
            }
        }
        Ok(FoundCandidates { ids, unknown: (unknown.count > 0).then_some(unknown) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph() -> Graph {
        let mut builder = flock_graph::GraphBuilder::new();
        builder.add("Lisbon", "capital of", "Portugal");
        builder.add("Portugal", "borders", "Spain");
        builder.finish().unwrap()
    }

    #[test]
    fn names_are_found_once_each() {
        // Lisbon 0, Portugal 1, Spain 2; a byte order mark, CRLF, a blank line and a repeated name.
        let file = "\u{feff}Spain\r\n\nLisbon\nSpain\n";
        let read = Candidates::read("list.txt", file.as_bytes()).unwrap();
        assert_eq!(read.find(&graph(), Task::Entity).unwrap(), FoundCandidates { ids: vec![0, 2], unknown: None });
        let given = Candidates::new(["borders", "borders"]);
        assert_eq!(given.find(&graph(), Task::Relation).unwrap().ids, [1]);
    }

    #[test]
    fn errors_name_file_and_line() {
        let read = |bytes: &[u8]| Candidates::read("list.txt", bytes);
        let text = |e: CandidatesError| e.to_string();
        assert_eq!(text(read(b"\n \n").unwrap_err()), "list.txt: no names, expected one per line");
        assert_eq!(text(read(b"a\n\xff\n").unwrap_err()), "list.txt:2: invalid UTF-8, expected one name per line");
        let long = vec![b'x'; 65 << 10];
        assert!(text(read(&long).unwrap_err()).starts_with("list.txt:1: found a line of more than 64 KiB"));
        assert!(text(Candidates::read("-", io::repeat(0)).unwrap_err()).starts_with("-:1: found a line"));
        let unknown = read(b"\nSpian\nx\n").unwrap().find(&graph(), Task::Entity).unwrap_err();
        let near = r#"unknown entity "Spian"; near names: "Spain""#;
        assert_eq!(unknown.to_string(), format!("list.txt:2: {near}; none of the 2 candidates is known"));
        let given = Candidates::new(["Spian"]).find(&graph(), Task::Entity).unwrap_err();
        assert_eq!(given.to_string(), near);
    }

    #[test]
    fn unknown_names_are_skipped_and_counted() {
        let names = ["a", "Spain", "b", "c", "d", "e", "f", "Lisbon", "a"];
        let found = Candidates::new(names).find(&graph(), Task::Entity).unwrap();
        let first = ["a", "b", "c", "d", "e"].map(String::from).to_vec();
        assert_eq!(found, FoundCandidates { ids: vec![0, 2], unknown: Some(UnknownCandidates { count: 6, first }) });
    }

    /// Lisbon 0, city 1, Porto 2, Portugal 3, country 4, Spain 5.
    fn typed() -> Graph {
        let mut builder = flock_graph::GraphBuilder::new();
        builder.add("Lisbon", "is a", "city");
        builder.add("Porto", "is a", "city");
        builder.add("Portugal", "is a", "country");
        builder.add("Spain", "is a", "country");
        builder.add("Lisbon", "capital of", "Portugal");
        builder.add("Portugal", "borders", "Spain");
        builder.finish().unwrap()
    }

    #[test]
    fn the_graph_picks_candidates() {
        let graph = typed();
        let ids = |candidates: Candidates| candidates.find(&graph, Task::Entity).unwrap().ids;
        assert_eq!(ids(Candidates::of_type("is a", "city")), [0, 2]);
        assert_eq!(ids(Candidates::of_range("is a")), [1, 4]);
        assert_eq!(ids(Candidates::of_domain("capital of")), [0]);
        assert_eq!(ids(Candidates::default()), [0, 1, 2, 3, 4, 5]);
        // All conditions must hold.
        let both = || Candidates::of_type("is a", "country").and(Candidates::of_range("borders"));
        assert_eq!(ids(both()), [5]);
        assert_eq!(ids(both().and(Candidates::new(["Spain", "Lisbon"]))), [5]);
        let error = |candidates: Candidates, task| candidates.find(&graph, task).unwrap_err().to_string();
        assert_eq!(
            error(both().and(Candidates::of_domain("borders")), Task::Entity),
            "no entity of the graph is a candidate: expected at least one with is a = country and that are tails of borders \
             and that are heads of borders"
        );
        assert_eq!(
            error(Candidates::of_range("border"), Task::Entity),
            r#"candidates that are tails of border: unknown relation "border"; near names: "borders""#
        );
        assert!(error(both(), Task::Relation).starts_with("the question asks for a relation"));
        // An edit is seen at once.
        let added = flock_graph::NamedEdit { triple: ["Braga", "is a", "city"], present: true };
        let edited = graph.edited(&[added]).unwrap();
        assert_eq!(Candidates::of_type("is a", "city").find(&edited, Task::Entity).unwrap().ids, [0, 2, 6]);
        assert_eq!(Candidates::of_domain("is a").find(&edited, Task::Entity).unwrap().ids, [0, 2, 3, 5, 6]);
    }

    #[test]
    fn types_are_written_with_an_equals_sign() {
        let mut builder = flock_graph::GraphBuilder::new();
        builder.add("x", "q=type", "a=b");
        builder.add("y", "is", "c");
        let graph = builder.finish().unwrap();
        let ids = |text: &str| Candidates::parse_type(&graph, text).unwrap().find(&graph, Task::Entity).unwrap().ids;
        assert_eq!((ids("is=c"), ids("q=type=a=b")), (vec![2], vec![0]));
        for text in ["is", "=c", "is=", "="] {
            let error = Candidates::parse_type(&graph, text).unwrap_err().to_string();
            assert!(error.contains("expected RELATION=VALUE"), "{error}");
        }
    }
}
