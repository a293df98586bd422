//! Columns for people: aligned by what a terminal shows, rounded, and cut to the width of the terminal.
//!
//! The first rows decide the widths; they are held back until there are [`TABLE_ROWS`] of them, or someone wants to see them. Only
//! text is ever cut, the widest column first; a number that is too wide pushes the rest of its line aside.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::cell::{Cell, Column, ColumnKind, Tone};

/// How many rows a table holds back to find the widths of its columns.
pub const TABLE_ROWS: usize = 200;

/// The least that a column of text is cut to.
const LEAST_TEXT: usize = 12;

/// The least width of a column of text when there are more rows to come.
const USUAL_TEXT: usize = 20;

/// How a table is shown.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct TableStyle {
    /// Columns of the terminal. Text is cut to fit; without it nothing is cut.
    pub width: Option<usize>,
    /// Whether to use colours.
    pub colours: bool,
}

/// A cell on its way to the terminal.
#[derive(Debug)]
struct ShownCell {
    text: String,
    colour: &'static str, // as ANSI has it; empty for none
}

/// Writes a table.
#[derive(Debug)]
pub struct TableWriter<W: Write> {
    out: BufWriter<W>,
    style: TableStyle,
    held: Vec<Vec<ShownCell>>,
    widths: Option<Vec<usize>>,
}

impl<W: Write> TableWriter<W> {
    /// Writes nothing before the widths are known.
    pub fn new(out: W, columns: &[Column], style: TableStyle) -> TableWriter<W> {
        let header = |c: &Column| ShownCell { text: printable(&c.name).into_owned(), colour: "2" };
        let held = vec![columns.iter().map(header).collect()];
        TableWriter { out: BufWriter::new(out), style, held, widths: None }
    }

    /// Takes a row.
    pub fn row(&mut self, columns: &[Column], cells: &[Cell<'_>]) -> io::Result<()> {
        let shown = |(column, cell): (&Column, &Cell<'_>)| ShownCell {
            text: printable(&column.shown(cell)).into_owned(),
            colour: colour(column.tone, cell),
        };
        let row: Vec<ShownCell> = columns.iter().zip(cells).map(shown).collect();
        if let Some(widths) = &self.widths {
            return write_row(&mut self.out, self.style, columns, widths, &row);
        }
        self.held.push(row);
        if self.held.len() > TABLE_ROWS { self.settle(columns, USUAL_TEXT) } else { Ok(()) }
    }

    /// Fixes the widths and writes what was held back. Text gets at least so much room.
    fn settle(&mut self, columns: &[Column], least: usize) -> io::Result<()> {
        if self.widths.is_some() {
            return Ok(());
        }
        let widest = |i: usize| self.held.iter().map(|row| row[i].text.width()).max().unwrap_or(0);
        let room = |(i, c): (usize, &Column)| if c.kind == ColumnKind::Text { widest(i).max(least) } else { widest(i) };
        let mut widths: Vec<usize> = columns.iter().enumerate().map(room).collect();
        if let Some(width) = self.style.width {
            fit(&mut widths, columns, width);
        }
        for row in std::mem::take(&mut self.held) {
            write_row(&mut self.out, self.style, columns, &widths, &row)?;
        }
        self.widths = Some(widths);
        Ok(())
    }

    /// Shows all rows so far. Before the first row the widths stay open.
    pub fn flush(&mut self, columns: &[Column]) -> io::Result<()> {
        if self.held.len() != 1 {
            self.settle(columns, USUAL_TEXT)?;
        }
        self.out.flush()
    }

    /// Gives back the sink.
    pub fn finish(mut self, columns: &[Column]) -> io::Result<W> {
        self.settle(columns, 0)?;
        let mut out = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        out.flush()?;
        Ok(out)
    }
}

/// Takes from the widest column of text until all fit, or no text can give more.
fn fit(widths: &mut [usize], columns: &[Column], width: usize) {
    let mut total = widths.iter().sum::<usize>() + 2 * (widths.len() - 1);
    while total > width {
        let text = (0..widths.len()).filter(|i| columns[*i].kind == ColumnKind::Text && widths[*i] > LEAST_TEXT);
        let Some(widest) = text.max_by_key(|i| widths[*i]) else { return };
        widths[widest] -= 1;
        total -= 1;
    }
}

fn write_row(
    out: &mut dyn Write,
    style: TableStyle,
    columns: &[Column],
    widths: &[usize],
    row: &[ShownCell],
) -> io::Result<()> {
    let mut line = String::new();
    let mut owed = 0; // spaces that are written only if something follows
    for ((column, cell), width) in columns.iter().zip(row).zip(widths) {
        let is_cut = style.width.is_some() && column.kind == ColumnKind::Text;
        let text = if is_cut { cut(&cell.text, *width) } else { Cow::Borrowed(cell.text.as_str()) };
        let space = width.saturating_sub(text.width());
        let (before, after) = if column.is_numeric() { (space, 0) } else { (0, space) };
        owed += before;
        if !text.is_empty() {
            line.extend(std::iter::repeat_n(' ', owed));
            owed = 0;
            // Writing to a string cannot fail.
            let _ = match style.colours && !cell.colour.is_empty() {
                true => write!(line, "\x1b[{}m{text}\x1b[0m", cell.colour),
                false => write!(line, "{text}"),
            };
        }
        owed += after + 2;
    }
    writeln!(out, "{line}")
}

fn colour(tone: Tone, cell: &Cell<'_>) -> &'static str {
    match (tone, cell) {
        (_, Cell::None) => "2",
        (Tone::Score, _) => "36",
        (Tone::Dim, _) | (Tone::NewsIfFalse, Cell::Truth(true)) => "2",
        (Tone::NewsIfFalse, Cell::Truth(false)) => "32",
        _ => "",
    }
}

/// A text in at most so many columns of a terminal, with … for what was cut off.
pub fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if text.width() <= width {
        return Cow::Borrowed(text);
    }
    let mut used = 1; // the …
    let mut kept = String::new();
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        kept.push(c);
    }
    Cow::Owned(kept.trim_end().to_string() + "…")
}

/// A name without control characters, which could break the table or steer the terminal.
pub fn printable(name: &str) -> Cow<'_, str> {
    if !name.contains(char::is_control) {
        return Cow::Borrowed(name);
    }
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(name.chars().map(escape).collect())
}

/// 1234567 → 1,234,567.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
