//! Reads ontologies in the OBO format, such as `go-basic.obo`.
//!
//! ```text
//! [Term]
//! id: GO:0000015
//! name: phosphopyruvate hydratase complex
//! is_a: GO:1902494 ! catalytic complex
//! relationship: part_of GO:0005829 {source="x"} ! cytosol
//! ```
//!
//! A stanza is about one term, relation or instance. Its name becomes a label. Links to other terms
//! become triples, under the relation that the file names: `is_a`, `part_of` and so on. Each part of
//! an `intersection_of` becomes the triple that it implies. Obsolete terms are left out. All other
//! clauses are counted like literals, by their tag. A stanza is held until its end, because
//! `is_obsolete` comes late.

use super::rows::{MAX_NAME, MAX_ROW};
use super::source::Source;
use super::{LoadOptions, LoadReport, Sink};
use crate::quote::quote;
use crate::read::error::{LoadError, RowError};
use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read};

/// Greatest number of bytes of a stanza that are held.
const MAX_STANZA: usize = MAX_ROW;

/// Passes every link and label of `source` to `sink`.
pub(crate) fn read(
    source: &mut Source<'_>,
    options: &LoadOptions,
    report: &mut LoadReport,
    sink: &mut dyn Sink,
) -> Result<(), LoadError> {
    let mut lines = LogicalLines { reader: BufReader::new(source.take_reader()), next: 1, cut: false };
    let mut bytes = Vec::new();
    // What comes before the first stanza is about the file.
    let mut stanza: Option<Stanza> = None;
    loop {
        bytes.clear();
        let (number, whole) = match lines.read(&mut bytes) {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(error) => return Err(source.failed(error)),
        };
        let line = match str::from_utf8(&bytes) {
            _ if !whole => Err(RowError::TooLong),
            Err(error) => Err(RowError::InvalidUtf8 { byte: error.valid_up_to() + 1 }),
            Ok(line) => Ok(line.trim()),
        };
        let opened = match line {
            Ok(line) if line.starts_with('[') => Some(line),
            _ => None,
        };
        if let Some(line) = opened.filter(|line| line.contains(']')) {
            if let Some(stanza) = stanza.take() {
                stanza.finish(source, options, report, sink)?;
            }
            stanza = Some(Stanza::new(line, number));
            continue;
        }
        let clause = line.and_then(|line| match &mut stanza {
            _ if line.is_empty() || line.starts_with('!') => Ok(()),
            _ if opened.is_some() => Err(syntax(line, "a stanza such as [Term]")),
            Some(stanza) if stanza.held > MAX_STANZA => {
                Err(RowError::TooMany { what: "bytes in a stanza", limit: MAX_STANZA })
            }
            Some(stanza) => stanza.take(line),
            None => Ok(()),
        });
        if let Err(what) = clause {
            report.rows += 1;
            report.skip(&source.file, number, what, options)?;
        }
    }
    match stanza {
        Some(stanza) => stanza.finish(source, options, report, sink),
        None => Ok(()),
    }
}

fn syntax(found: &str, expected: &'static str) -> RowError {
    RowError::Syntax { found: quote(found), expected }
}

/// Cuts a stream into lines. A line that ends with a backslash goes on in the next.
struct LogicalLines<R> {
    reader: R,
    /// Number of the next line of the file.
    next: u64,
    /// Whether the rest of the last line is to be skipped. It may have no end, so the caller decides
    /// first whether to go on.
    cut: bool,
}

impl<R: BufRead> LogicalLines<R> {
    /// Appends a line to `line`. Returns its number, and whether it was short enough to be read.
    fn read(&mut self, line: &mut Vec<u8>) -> std::io::Result<Option<(u64, bool)>> {
        let number = self.next;
        if std::mem::take(&mut self.cut) {
            self.reader.skip_until(b'\n')?;
        }
        loop {
            let room = MAX_ROW.saturating_sub(line.len());
            let len = self.reader.by_ref().take(room as u64).read_until(b'\n', line)?;
            if len == 0 && room > 0 {
                return Ok((!line.is_empty()).then_some((number, true)));
            }
            self.next += 1;
            if len == room && !line.ends_with(b"\n") {
                self.cut = true;
                return Ok(Some((number, false)));
            }
            let text = line.trim_ascii_end();
            let backslashes = text.iter().rev().take_while(|b| **b == b'\\').count();
            if backslashes % 2 == 0 || !line.ends_with(b"\n") {
                return Ok(Some((number, true)));
            }
            let end = text.len() - 1;
            line.truncate(end);
        }
    }
}

/// A stanza that is being read.
struct Stanza {
    /// Whether it is about a term, a relation or an instance.
    known: bool,
    line: u64,
    id: Option<String>,
    name: Option<String>,
    obsolete: bool,
    /// Relations and tails.
    links: Vec<(String, String)>,
    /// Tags of other clauses.
    others: Vec<String>,
    /// Bytes of all these.
    held: usize,
}

impl Stanza {
    /// Opens a stanza with its first line.
    fn new(kind: &str, line: u64) -> Stanza {
        Stanza {
            known: ["[Term]", "[Typedef]", "[Instance]"].iter().any(|known| kind.starts_with(known)),
            line,
            id: None,
            name: None,
            obsolete: false,
            links: Vec::new(),
            others: Vec::new(),
            held: 0,
        }
    }

    /// Takes a clause.
    fn take(&mut self, clause: &str) -> Result<(), RowError> {
        if !self.known {
            return Ok(());
        }
        let (tag, value) = clause.split_once(':').ok_or_else(|| syntax(clause, "a clause such as is_a: ID"))?;
        let (tag, value) = (tag.trim_end(), value.trim());
        self.held += clause.len() + 64;
        let mut words = words(value);
        match tag {
            "id" => {
                let id = words.next().ok_or_else(|| syntax(clause, "an id"))?;
                self.id = Some(name_of(id)?);
            }
            "name" => self.name = Some(unescape(without_comment(value)).trim().to_owned()),
            "is_obsolete" => self.obsolete = words.next() == Some("true"),
            "is_a" | "instance_of" | "disjoint_from" | "equivalent_to" => {
                let tail = words.next().ok_or_else(|| syntax(clause, "the id of another term"))?;
                self.links.push((tag.to_owned(), name_of(tail)?));
            }
            "relationship" => {
                let (Some(relation), Some(tail)) = (words.next(), words.next()) else {
                    return Err(syntax(clause, "a relation and the id of another term"));
                };
                self.links.push((name_of(relation)?, name_of(tail)?));
            }
            "intersection_of" => {
                let first = words.next().ok_or_else(|| syntax(clause, "the id of another term"))?;
                let link = match words.next() {
                    Some(tail) => (name_of(first)?, name_of(tail)?),
                    None => ("is_a".to_owned(), name_of(first)?),
                };
                self.links.push(link);
            }
            "property_value" => {
                let relation = words.next().ok_or_else(|| syntax(clause, "a property and a value"))?;
                match words.next() {
                    // A literal has quotes, or a datatype after it.
                    Some(tail) if !tail.starts_with('"') && words.next().is_none() => {
                        self.links.push((name_of(relation)?, name_of(tail)?));
                    }
                    _ => self.others.push(name_of(relation)?),
                }
            }
            _ => self.others.push(name_of(tag)?),
        }
        Ok(())
    }

    fn finish(
        self,
        source: &Source<'_>,
        options: &LoadOptions,
        report: &mut LoadReport,
        sink: &mut dyn Sink,
    ) -> Result<(), LoadError> {
        if !self.known {
            return Ok(());
        }
        if self.obsolete {
            report.obsolete += 1;
            return Ok(());
        }
        let Some(id) = self.id else {
            report.rows += 1;
            let found = "a stanza without an id".to_owned();
            let what = RowError::Syntax { found, expected: "a line with id: in it" };
            return report.skip(&source.file, self.line, what, options);
        };
        if let Some(name) = self.name.filter(|name| !name.is_empty() && name.len() <= MAX_NAME) {
            report.rows += 1;
            report.labels += 1;
            sink.label(&id, &name, 0);
        }
        report.rows += (self.links.len() + self.others.len()) as u64;
        self.others.iter().for_each(|tag| report.literal(tag));
        self.links.iter().for_each(|(relation, tail)| sink.triple(&id, relation, tail));
        Ok(())
    }
}

/// Returns the words of a value, up to a comment (`! …`) or trailing modifiers (`{…}`).
fn words(value: &str) -> impl Iterator<Item = &str> {
    value.split_whitespace().take_while(|word| !word.starts_with(['!', '{']))
}

/// Returns the name that a word stands for.
fn name_of(word: &str) -> Result<String, RowError> {
    if word.len() > MAX_NAME {
        return Err(RowError::LongName);
    }
    let name = unescape(word);
    if name.is_empty() { Err(syntax(word, "an id")) } else { Ok(name.into_owned()) }
}

/// Cuts a comment (`! …`) and trailing modifiers (`{key="value"}`) off a text. Names of chemicals
/// have braces too, so modifiers must have a key.
fn without_comment(text: &str) -> &str {
    let mut end = text.len();
    let mut modifiers = None;
    let (mut escaped, mut space) = (false, true);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '!' if space => {
                end = at;
                break;
            }
            '{' if space => modifiers = Some(at),
            _ => {}
        }
        space = c.is_whitespace();
    }
    let text = text[..end].trim_end();
    match modifiers {
        Some(at) if at < text.len() && text.ends_with('}') && text[at..].contains('=') => text[..at].trim_end(),
        _ => text,
    }
}

/// Replaces `\n`, `\W` and `\t` by white space, and drops the backslash before any other character.
fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        plain.push(match c {
            '\\' => match chars.next() {
                Some('n' | 'W') => ' ',
                Some('t') => '\t',
                Some(other) => other,
                None => break,
            },
            other => other,
        });
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_modifiers_and_escapes() {
        let name = |text| unescape(without_comment(text)).into_owned();
        assert_eq!(name("cytosol ! a comment"), "cytosol");
        assert_eq!(name("cytosol {source=\"x\"} ! a comment"), "cytosol");
        assert_eq!(name("{[(2S)-2-amino]} acid"), "{[(2S)-2-amino]} acid");
        assert_eq!(name("acid {2S}"), "acid {2S}");
        assert_eq!(name("Yahoo! \\! \\\"x\\\" a\\Wb\\:c \\{d=e\\}"), "Yahoo! ! \"x\" a b:c {d=e}");
        assert_eq!(name("! nothing"), "");
        assert_eq!(words("part_of GO:1 {a=\"b c\"} ! d e").collect::<Vec<_>>(), ["part_of", "GO:1"]);
    }

    #[test]
    fn lines_go_on_after_a_backslash() {
        let mut lines = LogicalLines { reader: &b"a\\\nb\nc\\\\\nd\\"[..], next: 1, cut: false };
        let mut read = || {
            let mut line = Vec::new();
            let number = lines.read(&mut line).unwrap();
            number.map(|(number, _)| (number, String::from_utf8(line).unwrap()))
        };
        assert_eq!(read(), Some((1, "ab\n".to_owned())));
        assert_eq!(read(), Some((3, "c\\\\\n".to_owned())));
        assert_eq!(read(), Some((4, "d\\".to_owned())));
        assert_eq!(read(), None);
    }
}
