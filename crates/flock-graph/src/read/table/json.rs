//! Reads JSON lines: one object or one array of three on each line.
//!
//! The keys of an object are read like the words of a header: `{"subject": …, "predicate": …,
//! "object": …}`, or an id with a name and a category. A value is a name, a number, or an object
//! with an id. Memory is bounded by the length of a line: values that lie deep, and long lists, are
//! passed over while parsing.

use super::columns::{Column, Columns};
use super::header::{self, Layout, Reading};
use super::report::{ColumnRole, HeaderReason};
use super::{Emitter, TableReport, checked, owned, plain};
use crate::read::error::{LoadError, RowError};
use crate::read::rows::{RowReader, is_blank};
use crate::read::source::Source;
use crate::read::{LoadOptions, LoadReport, Sink};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

/// Number of keys of an object, or items of a list, that are looked at.
const MAX_ITEMS: usize = 1000;

/// How deep values are looked at: down to the name in the properties of a node of a relationship.
const MAX_DEPTH: usize = 4;

/// Number of different sets of keys whose meaning is remembered.
const MAX_LAYOUTS: usize = 256;

/// A value of JSON, as far as it matters here.
#[derive(Clone, Debug, PartialEq)]
enum Json<'a> {
    Null,
    Bool,
    Number(String),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    /// Keys and values in the order of the file.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
    /// Something too deep to matter.
    Deep,
}

impl<'a> Json<'a> {
    fn parse(line: &'a [u8]) -> Result<Json<'a>, RowError> {
        let text = str::from_utf8(line).map_err(|error| RowError::InvalidUtf8 { byte: error.valid_up_to() + 1 })?;
        let mut parser = serde_json::Deserializer::from_str(text);
        let parsed = JsonSeed { depth: 0 }.deserialize(&mut parser);
        parsed.and_then(|value| parser.end().map(|()| value)).map_err(|error| {
            // The line of the file is known, the line in the line is always 1.
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or("").to_owned();
            RowError::Json { column: error.column(), message }
        })
    }

    fn get(&self, key: &str) -> Option<&Json<'a>> {
        match self {
            Json::Object(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            Json::Number(text) => Some(text),
            _ => None,
        }
    }

    /// Joins a list of texts, for a column that may have several values.
    fn joined(&self, separator: char) -> Cow<'_, str> {
        match self {
            Json::List(items) => {
                let texts: Vec<&str> = items.iter().filter_map(Json::text).collect();
                Cow::Owned(texts.join(&separator.to_string()))
            }
            other => Cow::Borrowed(other.text().unwrap_or("")),
        }
    }
}

/// Parses a value at some depth.
#[derive(Copy, Clone)]
struct JsonSeed {
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for JsonSeed {
    type Value = Json<'de>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Json<'de>, D::Error> {
        if self.depth >= MAX_DEPTH {
            serde::Deserialize::deserialize(deserializer).map(|IgnoredAny| Json::Deep)
        } else {
            deserializer.deserialize_any(self)
        }
    }
}

impl<'de> Visitor<'de> for JsonSeed {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool)
    }

    fn visit_i64<E>(self, number: i64) -> Result<Json<'de>, E> {
        Ok(Json::Number(number.to_string()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Json<'de>, E> {
        Ok(Json::Number(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Json<'de>, E> {
        Ok(Json::Number(number.to_string()))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json<'de>, A::Error> {
        let mut list = Vec::new();
        let inner = JsonSeed { depth: self.depth + 1 };
        while list.len() < MAX_ITEMS
            && let Some(item) = items.next_element_seed(inner)?
        {
            list.push(item);
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json<'de>, A::Error> {
        let mut object = Vec::new();
        let inner = JsonSeed { depth: self.depth + 1 };
        while object.len() < MAX_ITEMS
            && let Some(key) = entries.next_key::<Key<'de>>()?
        {
            object.push((key.0, entries.next_value_seed(inner)?));
        }
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Json::Object(object))
    }
}

/// A key, borrowed from the line unless it has escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Key<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Key<'a>, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Cow<'de, str>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
                Ok(Cow::Borrowed(text))
            }

            fn visit_str<E>(self, text: &str) -> Result<Cow<'de, str>, E> {
                Ok(Cow::Owned(text.to_owned()))
            }
        }
        deserializer.deserialize_str(KeyVisitor).map(Key)
    }
}

/// Tells whether the beginning of a file of JSON has one value on each line. `whole` says that this
/// is all of the file.
pub(crate) fn is_lines(head: &[u8], whole: bool) -> bool {
    let head = head.trim_ascii_start();
    let (line, ended) = match memchr::memchr(b'\n', head) {
        Some(at) => (&head[..at], true),
        None => (head, whole),
    };
    let value = match Json::parse(line) {
        Ok(value) => value,
        // A first line longer than what was looked at may well be an object.
        Err(_) => return !ended && line.starts_with(b"{") && line.len() > 1024,
    };
    match value {
        // A document of JSON-LD, or one object that holds a whole graph in lists.
        Json::Object(entries) => {
            let is_document = |(key, value): &(Cow<'_, str>, Json<'_>)| {
                key.starts_with('@')
                    || matches!(&**key, "nodes" | "edges" | "links" | "elements" | "triples" | "results" | "graph")
                        && matches!(value, Json::List(_) | Json::Object(_))
            };
            !entries.iter().any(is_document)
        }
        Json::List(items) => items.iter().all(|item| item.text().is_some()),
        _ => false,
    }
}

/// Passes the triples and labels of JSON lines to `sink`.
pub(crate) fn read(
    source: &mut Source<'_>,
    options: &LoadOptions,
    report: &mut LoadReport,
    sink: &mut dyn Sink,
) -> Result<(), LoadError> {
    // No line contains a line end: the whole line is one field.
    let mut rows = RowReader::new(false, b'\n');
    let mut reader = LineReader { columns: options.columns.as_ref(), layouts: HashMap::new(), table: None };
    loop {
        let row = match rows.next(&mut source.reader) {
            Ok(Some(row)) => row,
            Ok(None) => break,
            Err(error) => return Err(source.failed(error)),
        };
        let line = rows.bytes(&row);
        if row.result.is_ok() && is_blank(line.trim_ascii()) {
            continue;
        }
        let result = row.result.clone().and_then(|()| Json::parse(line));
        let mut emitter = Emitter { report: &mut *report, sink: &mut *sink };
        if let Err(what) = result.and_then(|value| reader.line(&value, &mut emitter)) {
            report.rows += 1;
            report.skip(&source.file, row.line, what, options)?;
        }
    }
    report.table(reader.table.unwrap_or_default());
    Ok(())
}

/// Understands lines of JSON, one by one.
struct LineReader<'a> {
    columns: Option<&'a Columns>,
    /// What sets of keys mean.
    layouts: HashMap<Vec<String>, Option<Layout>>,
    /// How the first lines were understood.
    table: Option<TableReport>,
}

/// A part of a triple.
enum Part<'a> {
    Name {
        name: Cow<'a, str>,
        label: Option<&'a str>,
    },
    Number(&'a str),
    Literal,
    Missing,
    /// Neither a name nor a literal.
    Other,
}

impl LineReader<'_> {
    fn line(&mut self, value: &Json<'_>, emitter: &mut Emitter<'_>) -> Result<(), RowError> {
        match value {
            Json::List(items) => {
                let columns = match self.columns {
                    Some(columns) => columns.numbers().ok_or(RowError::Items { found: items.len() })?,
                    None => [0, 1, 2],
                };
                let enough =
                    if self.columns.is_some() { columns.iter().all(|c| *c < items.len()) } else { items.len() == 3 };
                if !enough {
                    return Err(RowError::Items { found: items.len() });
                }
                self.table.get_or_insert_with(|| TableReport::new(&plain(columns), None, items.len(), None));
                triple(columns.map(|at| &items[at]), columns, emitter)
            }
            Json::Object(entries) if value.get("type").and_then(Json::text) == Some("relationship") => {
                apoc_relationship(value, entries, emitter)
            }
            Json::Object(_) if is_apoc_node(value) => apoc_node(value, emitter),
            Json::Object(entries) => self.object(entries, emitter),
            _ => Err(RowError::NoObject),
        }
    }

    fn object(&mut self, entries: &[(Cow<'_, str>, Json<'_>)], emitter: &mut Emitter<'_>) -> Result<(), RowError> {
        let keys: Vec<String> = entries.iter().map(|(key, _)| key.clone().into_owned()).collect();
        if self.layouts.len() > MAX_LAYOUTS {
            self.layouts.clear();
        }
        let columns = self.columns;
        let layout = self.layouts.entry(keys).or_insert_with_key(|keys| {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            layout(&keys, columns)
        });
        let Some(layout) = layout else {
            let keys: Vec<&str> = entries.iter().map(|(key, _)| &**key).collect();
            return Err(RowError::Keys { found: owned(&keys) });
        };
        describe(&mut self.table, layout, entries);
        if let Some(triples) = &layout.triples {
            for (column, label) in triples.columns.into_iter().zip(triples.labels) {
                let cell = |column: usize| entries[column].1.text();
                if let (Some(name), Some(label)) = (cell(column), label.and_then(cell)) {
                    emitter.label(name, label, 0);
                }
            }
            return triple(triples.columns.map(|column| &entries[column].1), triples.columns, emitter);
        }
        let separator = layout.nodes.as_ref().and_then(|nodes| nodes.kind.as_ref()).map_or('|', |kind| kind.separator);
        let cells: Vec<Cow<'_, str>> = entries.iter().map(|(_, value)| value.joined(separator)).collect();
        emitter.row(layout, &|column| cells.get(column).map(|cell| &**cell))
    }
}

/// Returns what keys mean.
fn layout(keys: &[&str], columns: Option<&Columns>) -> Option<Layout> {
    if let Some(columns) = columns {
        let mut places = [0; 3];
        for (place, column) in places.iter_mut().zip(columns.each()) {
            *place = match column {
                Column::Name(name) => header::find(keys, name)?,
                Column::Number(_) => return None,
            };
        }
        return Some(plain(places));
    }
    if let Some(Reading::Named { layout, .. }) = header::read(keys) {
        return Some(layout);
    }
    // Initials, in any order: the keys of an object have none.
    let initials = [["h", "r", "t"], ["s", "p", "o"]];
    let places = |initials: [&str; 3]| {
        let [head, relation, tail] = initials.map(|initial| keys.iter().position(|key| *key == initial));
        Some([head?, relation?, tail?])
    };
    initials.into_iter().find_map(places).map(plain)
}

/// Describes how the first triple and the first node were understood.
fn describe(table: &mut Option<TableReport>, layout: &Layout, entries: &[(Cow<'_, str>, Json<'_>)]) {
    let make = || {
        let keys: Vec<&str> = entries.iter().map(|(key, _)| &**key).collect();
        TableReport::new(layout, Some(&keys), keys.len(), Some(HeaderReason::Schema))
    };
    match table {
        None => *table = Some(make()),
        Some(table) => {
            let has_triples = table.columns().is_some();
            let has_nodes = table.used.iter().any(|used| used.role == ColumnRole::Node);
            if layout.triples.is_some() && !has_triples || layout.nodes.is_some() && !has_nodes {
                let more = make();
                table.used.extend(more.used);
                table.unused.extend(more.unused);
            }
        }
    }
}

fn part<'v>(value: &'v Json<'_>) -> Part<'v> {
    match value {
        Json::Null => Part::Missing,
        Json::Bool => Part::Literal,
        Json::Number(text) => Part::Number(text),
        Json::Text(text) => Part::Name { name: Cow::Borrowed(text), label: None },
        Json::Object(_) => {
            let kind = value.get("type").and_then(Json::text);
            if value.get("@value").is_some() || matches!(kind, Some("literal" | "typed-literal")) {
                return Part::Literal;
            }
            let ids = ["id", "@id", "iri", "uri", "curie", "value"];
            match ids.iter().find_map(|key| value.get(key)?.text()) {
                Some(id) => {
                    let label = ["name", "label"].iter().find_map(|key| value.get(key)?.text());
                    Part::Name { name: Cow::Borrowed(id), label }
                }
                None => Part::Other,
            }
        }
        Json::List(_) | Json::Deep => Part::Other,
    }
}

/// Takes a triple. A list of tails is one triple for each.
fn triple(parts: [&Json<'_>; 3], columns: [usize; 3], emitter: &mut Emitter<'_>) -> Result<(), RowError> {
    let name = |role: usize| match part(parts[role]) {
        Part::Name { name, label } => Ok((name, label)),
        Part::Number(number) => Ok((Cow::Borrowed(number), None)),
        Part::Missing => Err(RowError::EmptyField { column: columns[role] + 1, role }),
        Part::Literal | Part::Other => Err(RowError::NoName { role }),
    };
    let (head, head_label) = name(0)?;
    let (relation, relation_label) = name(1)?;
    checked(Some(&head), columns[0], 0)?;
    checked(Some(&relation), columns[1], 1)?;
    // Numbers are literals, unless the file has numbers as the names of nodes.
    let numbers_are_names = matches!(part(parts[0]), Part::Number(_));
    let tails = match parts[2] {
        Json::List(items) => &items[..],
        one => std::slice::from_ref(one),
    };
    if tails.is_empty() {
        return Err(RowError::EmptyField { column: columns[2] + 1, role: 2 });
    }
    // A line counts as malformed as a whole: nothing of it is passed on before all of it is checked.
    for tail in tails {
        match part(tail) {
            Part::Name { name, .. } => checked(Some(&name), columns[2], 2).map(|_| ())?,
            Part::Number(_) | Part::Literal => {}
            Part::Missing => return Err(RowError::EmptyField { column: columns[2] + 1, role: 2 }),
            Part::Other => return Err(RowError::NoName { role: 2 }),
        }
    }
    emitter.label(&head, head_label.unwrap_or(""), 0);
    emitter.label(&relation, relation_label.unwrap_or(""), 0);
    for tail in tails {
        match part(tail) {
            Part::Name { name, label } => {
                emitter.label(&name, label.unwrap_or(""), 0);
                emitter.triple([&head, &relation, &name]);
            }
            Part::Number(number) if numbers_are_names => emitter.triple([&head, &relation, number]),
            _ => emitter.literal(&relation),
        }
    }
    Ok(())
}

/// Takes a relationship of `apoc.export.json`: `{"type": "relationship", "label": "KNOWS", "start":
/// {"id": …}, "end": {"id": …}}`.
fn apoc_relationship(
    value: &Json<'_>,
    entries: &[(Cow<'_, str>, Json<'_>)],
    emitter: &mut Emitter<'_>,
) -> Result<(), RowError> {
    match (value.get("start"), value.get("label"), value.get("end")) {
        (Some(start), Some(label), Some(end)) => {
            for node in [start, end] {
                let name = node.get("properties").and_then(apoc_name);
                if let (Some(id), Some(name)) = (node.get("id").and_then(Json::text), name) {
                    emitter.label(id, name, 0);
                }
            }
            triple([start, label, end], [0, 1, 2], emitter)
        }
        _ => {
            let keys: Vec<&str> = entries.iter().map(|(key, _)| &**key).collect();
            Err(RowError::Keys { found: owned(&keys) })
        }
    }
}

fn apoc_name<'v>(properties: &'v Json<'_>) -> Option<&'v str> {
    ["name", "label", "title"].iter().find_map(|key| properties.get(key)?.text())
}

fn is_apoc_node(value: &Json<'_>) -> bool {
    value.get("type").and_then(Json::text) == Some("node") && value.get("id").is_some()
}

/// Takes a node of `apoc.export.json`: `{"type": "node", "id": "0", "labels": ["Person"],
/// "properties": {"name": …}}`.
fn apoc_node(value: &Json<'_>, emitter: &mut Emitter<'_>) -> Result<(), RowError> {
    let id = checked(value.get("id").and_then(Json::text), 0, 0)?;
    emitter.report.nodes += 1;
    emitter.label(id, value.get("properties").and_then(apoc_name).unwrap_or(""), 0);
    if let Some(Json::List(kinds)) = value.get("labels") {
        for kind in kinds.iter().filter_map(Json::text).filter(|kind| !kind.is_empty()) {
            checked(Some(kind), 0, 2)?;
            emitter.triple([id, header::NEO4J_LABEL, kind]);
        }
    }
    Ok(())
}

/// Says what JSON it is that is not read.
pub(crate) fn shape(head: &[u8]) -> &'static str {
    match head.trim_ascii_start().first() {
        Some(b'[') => "one JSON array",
        _ => "one JSON document",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_from_documents() {
        for lines in [
            "{\"head\": \"a\", \"relation\": \"r\", \"tail\": \"b\"}\n",
            "[\"a\", \"r\", \"b\"]\n[\"b\", \"r\", \"c\"]\n",
            "{\"a\": 1}",
            "\n\n{\"id\": \"a\", \"category\": [\"x\"]}\n{",
        ] {
            assert!(is_lines(lines.as_bytes(), true), "{lines}");
        }
        for document in [
            "{\n  \"head\": \"a\"\n}\n",
            "[{\"head\": \"a\"}]",
            "[[\"a\", \"r\", \"b\"]]",
            "{\"nodes\": [], \"edges\": []}",
            "{\"@context\": {}, \"@id\": \"a\"}",
            "[\n[\"a\"",
            "1\n",
        ] {
            assert!(!is_lines(document.as_bytes(), true), "{document}");
        }
        let long = format!("{{\"head\": \"{}", "x".repeat(5000));
        assert!(is_lines(long.as_bytes(), false) && !is_lines(long.as_bytes(), true));
    }

    #[test]
    fn what_is_deep_or_long_is_passed_over() {
        let value = Json::parse(br#"{"a": {"b": {"c": {"d": 1}}}, "e": [1, 2.5, true, null, "\n"]}"#).unwrap();
        let inner = value.get("a").unwrap().get("b").unwrap();
        assert_eq!(inner.get("c").unwrap().get("d"), Some(&Json::Deep));
        assert_eq!(value.get("e").unwrap().joined('|'), "1|2.5|\n");
        let long = format!("[{}1]", "1,".repeat(5000));
        let Json::List(items) = Json::parse(long.as_bytes()).unwrap() else { panic!() };
        assert_eq!(items.len(), MAX_ITEMS);
        let error = Json::parse(br#"{"a": }"#).unwrap_err();
        assert_eq!(error.to_string(), "is no JSON: expected value at column 7");
    }
}
