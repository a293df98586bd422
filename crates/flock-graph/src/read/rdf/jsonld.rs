//! Reads JSON-LD. The parser gets the text only after a [`Meter`] has found that its output stays
//! within limits.
//!
//! JSON-LD says how to read an object in a `@context` that may come last, so the parser holds the
//! whole text and all statements of an object. Contexts abbreviate: a term stands for an IRI, which
//! may be made of other terms. An object repeats its id in every statement. So the text is read
//! twice: first by the meter, which adds up how long everything can become, then by the parser.
//! Contexts on other servers are not fetched.

use super::{ExpansionBudget, StatementSink, declare};
use crate::prefixes::Prefixes;
use crate::read::LoadOptions;
use crate::read::error::{LoadError, Remedy, RowError};
use crate::read::source::Source;
use oxjsonld::JsonLdParser;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::Read;

/// Greatest length of a file in bytes.
const MAX_TEXT: usize = 64 << 20;

/// Greatest number of terms and definitions in all contexts.
const MAX_TERMS: usize = 1 << 16;

/// Greatest number of terms that the parser may copy: every context is a copy of the one around it.
const MAX_COPIES: usize = 1 << 23;

/// Greatest number of prefixes inside each other.
const MAX_CHAIN: usize = 16;

/// Memory for a statement besides its names, in bytes.
const STATEMENT: u64 = 256;

/// Passes every statement to `statements`. What a context says is unknown after an error, so
/// `lenient` does not apply.
pub(crate) fn read(
    source: &mut Source<'_>,
    statements: &mut StatementSink<'_>,
    prefixes: &mut Prefixes,
) -> Result<(), LoadError> {
    let (mut text, mut reader) = (Vec::new(), source.take_reader());
    // The memory doubles with the text, but never beyond the limit.
    while text.len() == text.capacity() && text.len() < MAX_TEXT {
        text.reserve_exact(text.len().max(64 << 10).min(MAX_TEXT - text.len()));
        let room = (text.capacity() - text.len()) as u64;
        reader.by_ref().take(room).read_to_end(&mut text).map_err(|e| source.failed(e))?;
    }
    if text.len() >= MAX_TEXT && reader.read(&mut [0]).map_err(|e| source.failed(e))? > 0 {
        return Err(source.row(1, RowError::TooMany { what: "bytes of JSON-LD", limit: MAX_TEXT }));
    }
    if text.trim_ascii().is_empty() {
        return Ok(());
    }
    Meter::check(&text).map_err(|(line, what)| source.row(line, what))?;
    let mut quads = JsonLdParser::new().for_slice(&text);
    let strict = LoadOptions::default();
    let mut declared = false;
    while let Some(quad) = quads.next() {
        if !std::mem::replace(&mut declared, true) {
            declare(prefixes, quads.prefixes());
        }
        match quad {
            Ok(quad) => statements.quad(source, &strict, || 1, &quad)?,
            Err(error) => {
                let line = error.location().map_or(1, |at| at.start.line + 1);
                return Err(source.row(line, row_error(&error.to_string())));
            }
        }
    }
    Ok(())
}

fn row_error(message: &str) -> RowError {
    if message.contains("LoadDocumentCallback") {
        let message = "a context on another server, expected one in the file".to_owned();
        let remedy = Remedy::Write("put the context into the file, or write the file as N-Quads");
        return RowError::Rdf { message, remedy: Some(Box::new(remedy)) };
    }
    RowError::Rdf { message: message.to_owned(), remedy: None }
}

/// Adds up how long a document can become.
#[derive(Default)]
struct Meter {
    /// Definitions of terms in all contexts: length, and the term that the definition begins with.
    terms: HashMap<String, HashSet<(usize, String)>>,
    definitions: usize,
    /// Terms that stand for `@id`.
    ids: HashSet<String>,
    /// Longest string of a context that belongs to no term, such as a base.
    base: usize,
    /// Length of all relative bases and vocabularies. Each may be relative to the one before.
    relative: usize,
    contexts: usize,
    /// Whether a term has a context of its own.
    scoped: bool,
    /// Longest expansion of a term.
    longest: usize,
    /// Strings, numbers, objects and so on.
    items: u64,
    /// Bytes of all statements.
    cost: u64,
    /// Whether contexts have been read.
    weighing: bool,
    too_many_terms: bool,
}

impl Meter {
    fn check(text: &[u8]) -> Result<(), (u64, RowError)> {
        let mut meter = Meter::default();
        meter.walk(text)?;
        if meter.too_many_terms {
            return Err((1, RowError::TooMany { what: "terms in contexts", limit: MAX_TERMS }));
        }
        meter.longest = meter.longest_term().map_err(|what| (1, what))?;
        let contexts = if meter.scoped { meter.contexts as u64 + meter.items } else { meter.contexts as u64 };
        if contexts.saturating_mul(meter.definitions as u64) > MAX_COPIES as u64 {
            return Err((1, RowError::TooMany { what: "terms, counted for each context", limit: MAX_COPIES }));
        }
        meter.weighing = true;
        meter.items = 0;
        meter.walk(text)?;
        let mut budget = ExpansionBudget { read: text.len() as u64, ..ExpansionBudget::default() };
        budget.spend(usize::try_from(meter.cost).unwrap_or(usize::MAX)).map_err(|what| (1, what))
    }

    fn walk(&mut self, text: &[u8]) -> Result<(), (u64, RowError)> {
        let mut json = serde_json::Deserializer::from_slice(text);
        let walk = Walk { meter: self, place: Place::Document, above: 0 };
        let walked = walk.deserialize(&mut json).and_then(|_| json.end());
        walked.map_err(|error| {
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            let what = match message {
                "recursion limit exceeded" => RowError::TooMany { what: "brackets inside each other", limit: 127 },
                message => RowError::Rdf { message: format!("{message}, expected JSON"), remedy: None },
            };
            (error.line() as u64, what)
        })
    }

    /// Records a string of a context.
    fn define(&mut self, term: &str, value: &str) {
        if value == "@id" {
            self.ids.insert(term.to_owned());
        }
        // Without a term it is the address of a context.
        if term.is_empty() || term.starts_with('@') {
            self.base = self.base.max(value.len());
            if matches!(term, "@base" | "@vocab") && !value.contains(':') {
                self.relative += value.len();
            }
            return;
        }
        let prefix = match value.split_once(':') {
            Some((prefix, rest)) if !rest.starts_with("//") => prefix,
            Some(_) => "",
            None => value,
        };
        let prefix = if prefix == term { String::new() } else { prefix.to_owned() };
        if self.definitions >= MAX_TERMS {
            self.too_many_terms = true;
        } else if self.terms.entry(term.to_owned()).or_default().insert((value.len(), prefix)) {
            self.definitions += 1;
        }
    }

    /// Returns the length of the longest expansion of a term.
    fn longest_term(&self) -> Result<usize, RowError> {
        let mut lengths: HashMap<&str, usize> = HashMap::new();
        for _ in 0..=MAX_CHAIN {
            let mut changed = false;
            for (term, definitions) in &self.terms {
                let length = |(own, prefix): &(usize, String)| own + lengths.get(prefix.as_str()).unwrap_or(&0);
                let length = definitions.iter().map(length).max().unwrap_or(0);
                changed |= lengths.insert(term, length) != Some(length);
            }
            if !changed {
                return Ok(lengths.into_values().max().unwrap_or(0));
            }
        }
        Err(RowError::TooMany { what: "prefixes made of prefixes", limit: MAX_CHAIN })
    }

    /// Counts a value: a statement, as a rule.
    fn item(&mut self, above: u64, own: usize) {
        self.items += 1;
        if self.weighing {
            let names = 3 * self.longest as u64 + (self.base + self.relative) as u64;
            self.cost = self.cost.saturating_add(STATEMENT + names + own as u64).saturating_add(above);
        }
    }
}

/// Where a value stands.
#[derive(Clone)]
enum Place {
    Document,
    /// In so many contexts, in the definition of a term or of `@base` and so on.
    Context(usize, String),
}

/// Walks through a value. Returns its length if it is a string.
struct Walk<'a> {
    meter: &'a mut Meter,
    place: Place,
    /// Length of the keys above.
    above: u64,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<usize, E> {
        self.meter.item(self.above, 0);
        Ok(0)
    }

    fn visit_i64<E>(self, _: i64) -> Result<usize, E> {
        self.meter.item(self.above, 20);
        Ok(0)
    }

    fn visit_u64<E>(self, _: u64) -> Result<usize, E> {
        self.meter.item(self.above, 20);
        Ok(0)
    }

    fn visit_f64<E>(self, _: f64) -> Result<usize, E> {
        self.meter.item(self.above, 24);
        Ok(0)
    }

    fn visit_unit<E>(self) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_str<E>(self, value: &str) -> Result<usize, E> {
        match &self.place {
            Place::Document => self.meter.item(self.above, value.len()),
            Place::Context(_, term) if !self.meter.weighing => self.meter.define(&term.clone(), value),
            Place::Context(..) => {}
        }
        Ok(value.len())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<usize, A::Error> {
        let mut longest = 0;
        while let Some(length) =
            seq.next_element_seed(Walk { meter: self.meter, place: self.place.clone(), above: self.above })?
        {
            longest = longest.max(length);
        }
        Ok(longest)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<usize, A::Error> {
        let (first_item, mut id) = (self.meter.items, 0);
        while let Some(key) = map.next_key::<String>()? {
            let place = match &self.place {
                _ if key == "@context" => {
                    let depth = if let Place::Context(depth, _) = &self.place { depth + 1 } else { 1 };
                    self.meter.contexts += 1;
                    self.meter.scoped |= depth > 1;
                    Place::Context(depth, String::new())
                }
                // `@id` and so on belong to the term whose definition this is.
                Place::Context(depth, term) if key.starts_with('@') && !term.is_empty() => {
                    Place::Context(*depth, term.clone())
                }
                Place::Context(depth, _) => Place::Context(*depth, key.clone()),
                Place::Document => Place::Document,
            };
            let above = self.above + key.len() as u64;
            let length = map.next_value_seed(Walk { meter: self.meter, place, above })?;
            if key == "@id" || self.meter.ids.contains(&key) {
                id = id.max(length);
            }
        }
        if matches!(self.place, Place::Document) {
            self.meter.item(self.above, 0);
            if self.meter.weighing {
                // The id is written in all statements of the object, or is the name of their graph.
                let inside = self.meter.items - first_item;
                self.meter.cost = self.meter.cost.saturating_add(inside.saturating_mul(id as u64));
            }
        }
        Ok(0)
    }
}
