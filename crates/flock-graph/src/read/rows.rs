//! Reads rows of tab- or comma-separated triples.
//!
//! The file goes through one reused buffer. A field is a range of it. Only rows with quotes are
//! copied, to drop the quotes. TSV has neither quotes nor comments, so names may contain `"` and
//! `#`. CSV is RFC 4180: a field that starts with `"` ends with `"`, may contain commas and line
//! ends, and writes a quote as `""`.

use super::source::Source;
use super::table::{Emitter, Layout, Plan, Sample, plain, suggested_columns};
use super::{Format, HeaderReason, LoadOptions, LoadReport, MaybeHeader, Sink, TableReport};
use crate::read::error::{LoadError, Remedy, RowError};
use memchr::{memchr, memchr_iter};
use std::io::{self, Read};
use std::ops::Range;

/// Greatest length of a row in bytes. A binary file, or a quote that is never closed, must not fill
/// the memory.
pub(crate) const MAX_ROW: usize = 16 << 20;

/// Greatest length of a name in bytes. A longer one comes from some other kind of file, or from a
/// column of text.
pub(crate) const MAX_NAME: usize = 64 << 10;

/// Greatest number of fields in a row. A field takes more memory than its separator.
pub(crate) const MAX_FIELDS: usize = 64 << 10;

/// Number of rows at the beginning that decide what the columns mean.
const SAMPLE: usize = 1000;

/// Number of bytes read at a time.
const CHUNK: usize = 256 << 10;

/// Passes every triple of `source` to `sink`.
pub(crate) fn read(
    source: &mut Source<'_>,
    options: &LoadOptions,
    report: &mut LoadReport,
    sink: &mut dyn Sink,
) -> Result<(), LoadError> {
    let csv = source.format == Format::Csv;
    let sample = sample(&source.head, csv);
    let mut plan = Plan::new(&source.file, &sample, options)?;
    // Most tables are triples and nothing else, and go the short way.
    let simple = plan.layout.triples.as_ref().map(|triples| triples.columns);
    let simple = simple.filter(|columns| plan.layout == plain(*columns));
    let columns = simple.filter(|_| !plan.exact);
    let mut rows = RowReader::new(csv, if csv { b',' } else { b'\t' });
    let mut first = true;
    let mut opening: Option<FirstRow> = None;
    loop {
        let more = match rows.next(&mut source.reader) {
            Ok(more) => more,
            Err(error) => return Err(source.failed(error)),
        };
        let Some(row) = more else { break };
        if !row.had_quotes && row.result.is_ok() && is_blank(rows.bytes(&row)) {
            continue;
        }
        let was_first = std::mem::take(&mut first);
        if was_first && plan.report.header.is_some() {
            // A header by evidence is kept, in case that its names come again after all.
            if plan.report.header == Some(HeaderReason::Evidence)
                && let Ok(names) = row.result.clone().and_then(|()| rows.triple(&row, None, &sample))
            {
                opening = Some(FirstRow::new(row.line, names));
            }
            continue;
        }
        if simple.is_none() {
            let mut emitter = Emitter { report: &mut *report, sink: &mut *sink };
            let result = row.result.clone().and_then(|()| rows.cells(&row, &plan.layout, &sample, &mut emitter));
            if let Err(what) = result {
                report.rows += 1;
                report.skip(&source.file, row.line, what, options)?;
            }
            continue;
        }
        report.rows += 1;
        match row.result.clone().and_then(|()| rows.triple(&row, columns, &sample)) {
            Ok(names) => {
                if was_first && options.header.is_none() {
                    opening = Some(FirstRow::new(row.line, names));
                } else if let Some(first) = &mut opening {
                    first.compare(names);
                    if first.met_again && plan.report.header == Some(HeaderReason::Evidence) {
                        let [head, relation, tail] = &first.names;
                        report.rows += 1;
                        sink.triple(head, relation, tail);
                        plan.report = TableReport::new(&plan.layout, None, 3, None);
                        opening = None;
                    }
                }
                let [head, relation, tail] = names;
                sink.triple(head, relation, tail);
            }
            Err(what) => report.skip(&source.file, row.line, what, options)?,
        }
    }
    if plan.report.header.is_none() {
        report.maybe_header.extend(opening.filter(FirstRow::is_odd).map(|first| MaybeHeader {
            file: source.file.clone(),
            line: first.line,
            names: first.names,
        }));
    }
    report.table(plan.report);
    Ok(())
}

/// Cuts the beginning of a file into rows. The last one may be incomplete, and is left out.
fn sample((head, is_all): &(Vec<u8>, bool), csv: bool) -> Sample {
    let mut rows = RowReader::new(csv, if csv { b',' } else { b'\t' });
    let mut reader = &head[..];
    let mut cut = Vec::new();
    // Reading from memory does not fail.
    while let Ok(Some(row)) = rows.next(&mut reader) {
        let ends_early = !is_all && rows.start == rows.end && reader.is_empty() && rows.at_end;
        if ends_early || cut.len() == SAMPLE {
            break;
        }
        if !row.had_quotes && row.result.is_ok() && is_blank(rows.bytes(&row)) {
            continue;
        }
        match row.result.is_ok().then(|| str::from_utf8(rows.bytes(&row)).ok()).flatten() {
            Some(text) if rows.fields.len() <= 1000 => {
                let start = row.range.start;
                cut.push(rows.fields.iter().map(|f| text[f.start - start..f.end - start].to_owned()).collect());
            }
            // The first row decides about the header. If it is no row, there is none.
            _ if cut.is_empty() => cut.push(Vec::new()),
            _ => {}
        }
    }
    Sample { rows: cut }
}

/// A first row that was read as a triple. It may be a header if none of its names appears again.
struct FirstRow {
    line: u64,
    names: [String; 3],
    rows_after: u64,
    met_again: bool,
}

impl FirstRow {
    fn new(line: u64, names: [&str; 3]) -> FirstRow {
        FirstRow { line, names: names.map(str::to_owned), rows_after: 0, met_again: false }
    }

    fn compare(&mut self, [head, relation, tail]: [&str; 3]) {
        if self.met_again {
            return;
        }
        self.rows_after += 1;
        let [h, r, t] = &self.names;
        self.met_again = relation == r || head == h || head == t || tail == h || tail == t;
    }

    /// Tells whether the row may be a header. This needs at least two further rows.
    fn is_odd(&self) -> bool {
        !self.met_again && self.rows_after >= 2
    }
}

pub(crate) fn is_blank(row: &[u8]) -> bool {
    row.iter().all(|&b| b == b' ')
}

/// One row of the buffer. Its fields are in [`RowReader::fields`].
pub(crate) struct Row {
    /// Line on which it starts, from 1.
    pub(crate) line: u64,
    /// Its range without the line end, in the buffer, or in `unquoted` if it had quotes.
    range: Range<usize>,
    had_quotes: bool,
    /// Whether it was cut into fields, or what is wrong with it.
    pub(crate) result: Result<(), RowError>,
}

/// The result of cutting a row off the start of the buffer.
enum CutResult {
    /// A whole row, and the number of bytes and lines it takes.
    Row { row: Row, len: usize, lines: u64 },
    /// The row does not end in the buffer.
    More,
}

/// Cuts a stream into rows.
pub(crate) struct RowReader {
    csv: bool,
    separator: u8,
    buffer: Vec<u8>,
    /// The bytes that are not cut yet are `buffer[start..end]`.
    start: usize,
    end: usize,
    at_end: bool,
    line: u64,
    /// `buffer[start..start + seen]` has no line end.
    seen: usize,
    /// Set after a row that was too long: drop bytes up to the next line end.
    dropping: bool,
    fields: Vec<Range<usize>>,
    unquoted: Vec<u8>,
}

impl RowReader {
    /// Makes a reader of rows. Only CSV has quotes.
    pub(crate) fn new(csv: bool, separator: u8) -> RowReader {
        RowReader {
            csv,
            separator,
            buffer: vec![0; CHUNK],
            start: 0,
            end: 0,
            at_end: false,
            line: 1,
            seen: 0,
            dropping: false,
            fields: Vec::new(),
            unquoted: Vec::new(),
        }
    }

    /// Returns the next row.
    pub(crate) fn next(&mut self, reader: &mut dyn Read) -> io::Result<Option<Row>> {
        loop {
            if self.dropping {
                self.drop_line();
            } else if self.start < self.end
                && let CutResult::Row { row, len, lines } = self.cut()
            {
                self.start += len;
                self.line += lines;
                self.seen = 0;
                return Ok(Some(row));
            }
            if self.at_end {
                return Ok(None);
            }
            if self.end - self.start > MAX_ROW {
                self.dropping = true;
                return Ok(Some(self.bad(RowError::TooLong)));
            }
            self.fill(reader)?;
        }
    }

    /// Reads more bytes. First moves the rest to the front, and enlarges the buffer if it is full.
    fn fill(&mut self, reader: &mut dyn Read) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            self.buffer.resize(self.end * 2, 0);
        }
        loop {
            match reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.at_end = true,
                Ok(len) => self.end += len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }

    fn drop_line(&mut self) {
        match memchr(b'\n', &self.buffer[self.start..self.end]) {
            Some(at) => {
                self.start += at + 1;
                self.line += 1;
                self.dropping = false;
                self.seen = 0;
            }
            None => self.start = self.end,
        }
    }

    fn bad(&self, error: RowError) -> Row {
        let range = self.start..self.start;
        Row { line: self.line, range, had_quotes: false, result: Err(error) }
    }

    /// Cuts off the next row, if the buffer holds all of it.
    fn cut(&mut self) -> CutResult {
        let rest = &self.buffer[self.start..self.end];
        let newline = memchr(b'\n', &rest[self.seen..]).map(|at| self.seen + at);
        let (len, content) = match newline {
            Some(at) => (at + 1, at),
            None if self.at_end => (rest.len(), rest.len()),
            None => {
                self.seen = rest.len();
                return CutResult::More;
            }
        };
        let content = content - usize::from(rest[..content].ends_with(b"\r"));
        if self.csv && memchr(b'"', &rest[..content]).is_some() {
            return self.cut_quoted(len);
        }
        let separator = self.separator;
        self.fields.clear();
        let (mut from, mut result) = (self.start, Ok(()));
        for at in memchr_iter(separator, &rest[..content]) {
            if self.fields.len() == MAX_FIELDS {
                result = Err(RowError::ManyFields);
                break;
            }
            self.fields.push(from..self.start + at);
            from = self.start + at + 1;
        }
        let range = self.start..self.start + content;
        self.fields.push(from..range.end);
        let row = Row { line: self.line, range, had_quotes: false, result };
        CutResult::Row { row, len, lines: 1 }
    }

    /// Cuts off the next row if its first line, `first_line` bytes long, contains a quote.
    fn cut_quoted(&mut self, first_line: usize) -> CutResult {
        self.fields.clear();
        self.unquoted.clear();
        let rest = &self.buffer[self.start..self.end];
        let (mut at, mut lines) = (0, 1);
        let mut result = Ok(());
        'row: loop {
            let from = self.unquoted.len();
            if rest.get(at) == Some(&b'"') {
                at += 1;
                // Read up to the closing quote. A doubled quote is a quote in the name.
                loop {
                    let Some(quote) = memchr(b'"', &rest[at..]) else {
                        if !self.at_end && rest.len() <= MAX_ROW {
                            return CutResult::More;
                        }
                        result = Err(RowError::OpenQuote);
                        break 'row;
                    };
                    let quote = at + quote;
                    self.unquoted.extend_from_slice(&rest[at..quote]);
                    lines += memchr_iter(b'\n', &rest[at..quote]).count() as u64;
                    at = quote + 1;
                    if rest.get(at) != Some(&b'"') {
                        break;
                    }
                    self.unquoted.push(b'"');
                    at += 1;
                }
            } else {
                let len = rest[at..].iter().position(|b| matches!(b, b',' | b'\n'));
                let Some(len) = len.or(self.at_end.then_some(rest.len() - at)) else {
                    return CutResult::More;
                };
                let end = at + len;
                let cr = rest.get(end) != Some(&b',') && rest[at..end].ends_with(b"\r");
                self.unquoted.extend_from_slice(&rest[at..end - usize::from(cr)]);
                at = end;
            }
            if self.fields.len() == MAX_FIELDS {
                result = Err(RowError::ManyFields);
                break;
            }
            self.fields.push(from..self.unquoted.len());
            match rest[at..] {
                [b',', ..] => {
                    at += 1;
                    // Separates the fields. Otherwise invalid bytes at the edges of two fields
                    // could form a valid character.
                    self.unquoted.push(b',');
                }
                [b'\n', ..] => {
                    at += 1;
                    break;
                }
                [b'\r', b'\n', ..] => {
                    at += 2;
                    break;
                }
                [] | [b'\r'] if self.at_end => {
                    at = rest.len();
                    break;
                }
                [] | [b'\r'] => return CutResult::More,
                _ => {
                    result = Err(RowError::TextAfterQuote);
                    break;
                }
            }
        }
        // A bad quote makes only the line on which it opens malformed, not all that follows.
        let (len, lines) = if result.is_ok() { (at, lines) } else { (first_line, 1) };
        let range = 0..self.unquoted.len();
        let row = Row { line: self.line, range, had_quotes: true, result };
        CutResult::Row { row, len, lines }
    }

    /// Returns the bytes of a row.
    pub(crate) fn bytes(&self, row: &Row) -> &[u8] {
        let buffer = if row.had_quotes { &self.unquoted } else { &self.buffer };
        &buffer[row.range.clone()]
    }

    /// Passes on what a row of a table with labels, nodes or values of KGTK says.
    fn cells(&self, row: &Row, layout: &Layout, sample: &Sample, emitter: &mut Emitter<'_>) -> Result<(), RowError> {
        let text = self.text(row)?;
        let found = self.fields.len();
        let needed = match (&layout.triples, &layout.nodes) {
            (Some(triples), _) => triples.columns,
            (None, nodes) => [nodes.as_ref().map_or(0, |nodes| nodes.id); 3],
        };
        if needed.iter().any(|&column| column >= found) {
            return Err(self.wrong_number(text, Some(needed), sample));
        }
        let start = row.range.start;
        emitter.row(layout, &|column| {
            let field = self.fields.get(column)?;
            Some(&text[field.start - start..field.end - start])
        })
    }

    fn text(&self, row: &Row) -> Result<&str, RowError> {
        str::from_utf8(self.bytes(row)).map_err(|error| RowError::InvalidUtf8 { byte: error.valid_up_to() + 1 })
    }

    fn wrong_number(&self, text: &str, wanted: Option<[usize; 3]>, sample: &Sample) -> RowError {
        let separator = if self.csv { "comma" } else { "tab" };
        let remedy = self.remedy(text, wanted, sample).map(Box::new);
        RowError::Fields { separator, wanted, found: self.fields.len(), remedy }
    }

    /// Returns the head, relation and tail of a row that was cut into fields.
    fn triple(&self, row: &Row, columns: Option<[usize; 3]>, sample: &Sample) -> Result<[&str; 3], RowError> {
        let found = self.fields.len();
        let enough = match columns {
            None => found == 3,
            Some(columns) => columns.iter().all(|&c| c < found),
        };
        let text = self.text(row)?;
        if !enough {
            return Err(self.wrong_number(text, columns, sample));
        }
        let columns = columns.unwrap_or([0, 1, 2]);
        let mut names = [""; 3];
        for role in 0..3 {
            let field = &self.fields[columns[role]];
            if field.is_empty() {
                return Err(RowError::EmptyField { column: columns[role] + 1, role });
            }
            if field.len() > MAX_NAME {
                return Err(RowError::LongName);
            }
            names[role] = &text[field.start - row.range.start..field.end - row.range.start];
        }
        Ok(names)
    }

    /// Suggests what to do with a row that has the wrong number of fields, judging by the row.
    fn remedy(&self, text: &str, columns: Option<[usize; 3]>, sample: &Sample) -> Option<Remedy> {
        let found = self.fields.len();
        let count = |c: char| text.matches(c).count();
        let rdf = text.trim_end().ends_with('.') && (text.starts_with('<') || text.starts_with("_:"));
        let remedy = if rdf {
            Remedy::Format { format: Format::NTriples, why: "the line looks like N-Triples" }
        } else if !self.csv && found < 3 && count(',') >= 2 {
            Remedy::Format { format: Format::Csv, why: "the line has commas" }
        } else if self.csv && found < 3 && count('\t') >= 2 {
            Remedy::Format { format: Format::Tsv, why: "the line has tabs" }
        } else if found < 3 && count(';') >= 2 {
            Remedy::Write("write tabs or commas in place of the semicolons")
        } else if columns.is_some() {
            Remedy::FewerColumns
        } else if found == 2 {
            Remedy::Write("a triple needs a relation too: head, relation, tail")
        } else if !self.csv && found == 1 && text.split_whitespace().count() >= 3 {
            Remedy::Write("write tabs in place of the spaces between names")
        } else if found > 3 {
            suggested_columns(sample, self.csv)
        } else {
            return None;
        };
        Some(remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    /// A reader that returns a few bytes at a time.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let len = self.1.min(self.0.len()).min(buffer.len());
            let (now, later) = self.0.split_at(len);
            buffer[..len].copy_from_slice(now);
            self.0 = later;
            Ok(len)
        }
    }

    /// Returns the line and the fields of every row.
    fn cut(content: &str, csv: bool, piece: usize) -> Vec<(u64, Result<Vec<String>, RowError>)> {
        let mut reader = Pieces(content.as_bytes(), piece);
        let mut rows = RowReader::new(csv, if csv { b',' } else { b'\t' });
        let mut all = Vec::new();
        while let Some(row) = rows.next(&mut reader).unwrap() {
            let text = str::from_utf8(rows.bytes(&row)).unwrap();
            let start = row.range.start;
            let field = |f: &Range<usize>| text[f.start - start..f.end - start].to_owned();
            let fields = row.result.map(|()| rows.fields.iter().map(field).collect());
            all.push((row.line, fields));
        }
        all
    }

    #[test]
    fn rows_know_their_lines() {
        let rows = cut("a,\"b\nc\"\r\n\n\"d\"\"\",\n\"e\"f\ng", true, 1);
        let fields = |names: &[&str]| Ok(names.iter().map(|n| (*n).to_owned()).collect());
        let want = [
            (1, fields(&["a", "b\nc"])),
            (3, fields(&[""])),
            (4, fields(&["d\"", ""])),
            (5, Err(RowError::TextAfterQuote)),
            (6, fields(&["g"])),
        ];
        assert_eq!(rows, want);
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 5000,
            rng_seed: RngSeed::Fixed(3),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn how_the_bytes_come_in_makes_no_difference(
            content in "[ab,\"\n\r\t]{0,40}",
            piece in 1..7usize,
            csv in any::<bool>(),
        ) {
            prop_assert_eq!(cut(&content, csv, piece), cut(&content, csv, usize::MAX));
        }
    }
}
