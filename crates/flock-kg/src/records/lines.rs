//! Formats with a line for each row, written as it comes: CSV, TSV, JSON lines, Markdown.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};

use super::cell::{Cell, Column};
use super::table::printable;

/// CSV, or TSV with escapes.
#[derive(Debug)]
pub struct DelimitedWriter<W: Write> {
    rows: csv::Writer<W>,
    is_escaped: bool,
}

impl<W: Write> DelimitedWriter<W> {
    /// CSV as RFC 4180 has it, but with `\n` at line ends: fields are quoted where they must be.
    pub fn csv(out: W, columns: &[Column]) -> io::Result<DelimitedWriter<W>> {
        DelimitedWriter::start(csv::Writer::from_writer(out), false, columns)
    }

    /// One line per row whatever is in it: tabs, line ends and backslashes are written as `\t`, `\n`, `\r` and `\\`, and nothing is
    /// quoted.
    pub fn tsv(out: W, columns: &[Column]) -> io::Result<DelimitedWriter<W>> {
        let rows = csv::WriterBuilder::new().delimiter(b'\t').quote_style(csv::QuoteStyle::Never).from_writer(out);
        DelimitedWriter::start(rows, true, columns)
    }

    fn start(rows: csv::Writer<W>, is_escaped: bool, columns: &[Column]) -> io::Result<DelimitedWriter<W>> {
        let mut writer = DelimitedWriter { rows, is_escaped };
        columns.iter().try_for_each(|column| writer.field(&column.name))?;
        writer.end_row()?;
        Ok(writer)
    }

    fn field(&mut self, text: &str) -> io::Result<()> {
        let text = if self.is_escaped { escaped(text) } else { Cow::Borrowed(text) };
        Ok(self.rows.write_field(text.as_bytes())?)
    }

    fn end_row(&mut self) -> io::Result<()> {
        Ok(self.rows.write_record(None::<&[u8]>)?)
    }

    /// Writes a row.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        cells.iter().try_for_each(|cell| self.field(&cell.exact()))?;
        self.end_row()
    }

    /// Passes on what is buffered.
    pub fn flush(&mut self) -> io::Result<()> {
        self.rows.flush()
    }

    /// Gives back the sink.
    pub fn finish(mut self) -> io::Result<W> {
        self.rows.flush()?;
        let mut out = self.rows.into_inner().map_err(csv::IntoInnerError::into_error)?;
        out.flush()?;
        Ok(out)
    }
}

/// A field of TSV.
fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['\t', '\n', '\r', '\\']) {
        return Cow::Borrowed(text);
    }
    let mut field = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\t' => field += "\\t",
            '\n' => field += "\\n",
            '\r' => field += "\\r",
            '\\' => field += "\\\\",
            other => field.push(other),
        }
    }
    Cow::Owned(field)
}

/// The text of a field of TSV, as this module writes it.
pub fn unescape_tsv(field: &str) -> String {
    let mut text = String::with_capacity(field.len());
    let mut chars = field.chars();
    while let Some(c) = chars.next() {
        let plain = if c == '\\' { chars.next() } else { None };
        text.push(match plain {
            None => c,
            Some('t') => '\t',
            Some('n') => '\n',
            Some('r') => '\r',
            Some(other) => other,
        });
    }
    text
}

/// JSON lines: one object per row.
#[derive(Debug)]
pub struct JsonWriter<W: Write> {
    out: BufWriter<W>,
    keys: Vec<String>, // quoted, with the colon
}

impl<W: Write> JsonWriter<W> {
    /// Writes nothing yet: there is no header.
    pub fn new(out: W, columns: &[Column]) -> io::Result<JsonWriter<W>> {
        let key = |column: &Column| Ok(format!("{}:", serde_json::to_string(&column.name)?));
        Ok(JsonWriter { out: BufWriter::new(out), keys: columns.iter().map(key).collect::<io::Result<_>>()? })
    }

    /// Writes a row.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        for (i, (key, cell)) in self.keys.iter().zip(cells).enumerate() {
            self.out.write_all(if i == 0 { b"{" } else { b"," })?;
            self.out.write_all(key.as_bytes())?;
            match cell {
                Cell::None => self.out.write_all(b"null")?,
                Cell::Text(text) => serde_json::to_writer(&mut self.out, text)?,
                Cell::Integer(n) => write!(self.out, "{n}")?,
                Cell::Number(x) => serde_json::to_writer(&mut self.out, x)?,
                Cell::Truth(truth) => write!(self.out, "{truth}")?,
            }
        }
        self.out.write_all(b"}\n")
    }

    /// Passes on what is buffered.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Gives back the sink.
    pub fn finish(self) -> io::Result<W> {
        unbuffered(self.out)
    }
}

/// A Markdown table (GitHub's).
#[derive(Debug)]
pub struct MarkdownWriter<W: Write> {
    out: BufWriter<W>,
}

impl<W: Write> MarkdownWriter<W> {
    /// Writes the header and the alignments.
    pub fn new(out: W, columns: &[Column]) -> io::Result<MarkdownWriter<W>> {
        let mut out = BufWriter::new(out);
        for column in columns {
            write!(out, "| {} ", inline(&column.name))?;
        }
        writeln!(out, "|")?;
        for column in columns {
            write!(out, "|{}", if column.is_numeric() { "---:" } else { "---" })?;
        }
        writeln!(out, "|")?;
        Ok(MarkdownWriter { out })
    }

    /// Writes a row.
    pub fn row(&mut self, columns: &[Column], cells: &[Cell<'_>]) -> io::Result<()> {
        for (column, cell) in columns.iter().zip(cells) {
            write!(self.out, "| {} ", inline(&column.shown(cell)))?;
        }
        writeln!(self.out, "|")
    }

    /// Passes on what is buffered.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Gives back the sink.
    pub fn finish(self) -> io::Result<W> {
        unbuffered(self.out)
    }
}

/// Text that stays what it is inside a cell of Markdown: what would start a column, markup or HTML is escaped.
fn inline(text: &str) -> String {
    let mut cell = String::with_capacity(text.len());
    for c in printable(text).chars() {
        if matches!(c, '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '~' | '$') {
            cell.push('\\');
        }
        cell.push(c);
    }
    cell
}

fn unbuffered<W: Write>(out: BufWriter<W>) -> io::Result<W> {
    let mut out = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    out.flush()?;
    Ok(out)
}
