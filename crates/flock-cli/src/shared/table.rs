//! Columns of text, aligned by what a terminal shows.

use std::borrow::Cow;
use std::io::{self, Write};

use flock_kg::records::{TableStyle, cut};
pub use flock_kg::records::{grouped, printable};
use unicode_width::UnicodeWidthStr;

/// Which side of its column a cell keeps to.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// The least that a column of text is cut to.
const LEAST_TEXT: usize = 12;

/// Writes rows of as many cells as there are alignments, two spaces between columns.
pub fn write(out: &mut dyn Write, aligns: &[Align], rows: &[Vec<String>]) -> io::Result<()> {
    write_styled(out, aligns, rows, false, TableStyle::default())
}

/// The titles of columns that people look at first.
const SCORES: [&str; 3] = ["probability", "score", "MRR"];

/// The same for a terminal: columns of text (those on the left of their column) are cut to its width, the widest first. With colours
/// the titles in the first row and the word `known` are dim, and scores stand out.
pub fn write_titled(out: &mut dyn Write, aligns: &[Align], rows: &[Vec<String>], style: TableStyle) -> io::Result<()> {
    write_styled(out, aligns, rows, true, style)
}

fn write_styled(
    out: &mut dyn Write,
    aligns: &[Align],
    rows: &[Vec<String>],
    is_titled: bool,
    style: TableStyle,
) -> io::Result<()> {
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..aligns.len()).map(width).collect();
    if let Some(room) = style.width {
        let mut total = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
        while total > room {
            let text = (0..widths.len()).filter(|i| aligns[*i] == Align::Left && widths[*i] > LEAST_TEXT);
            let Some(widest) = text.max_by_key(|i| widths[*i]) else { break };
            widths[widest] -= 1;
            total -= 1;
        }
    }
    for (number, row) in rows.iter().enumerate() {
        let mut line = String::new();
        let mut owed = 0; // spaces that are written only if something follows
        for (i, ((cell, align), width)) in row.iter().zip(aligns).zip(&widths).enumerate() {
            owed += if i == 0 { 0 } else { 2 };
            let cell = if *align == Align::Left { cut(cell, *width) } else { Cow::Borrowed(cell.as_str()) };
            let space = width.saturating_sub(cell.width());
            owed += if *align == Align::Right { space } else { 0 };
            if !cell.is_empty() {
                line.extend(std::iter::repeat_n(' ', owed));
                owed = 0;
                let colour = match style.colours && is_titled {
                    true if number == 0 || cell == "known" => "2",
                    true if SCORES.contains(&rows[0][i].as_str()) => "36",
                    _ => "",
                };
                line += &if colour.is_empty() { cell.into_owned() } else { format!("\x1b[{colour}m{cell}\x1b[0m") };
            }
            owed += if *align == Align::Left { space } else { 0 };
        }
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// 0.1234, or 1.2e-7 where that would show nothing.
pub fn probability(p: f64) -> String {
    if p < 1e-4 { format!("{p:.1e}") } else { format!("{p:.4}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligns_by_width_on_screen() {
        let row = |cells: [&str; 3]| cells.map(str::to_string).to_vec();
        let rows = [row(["rank", "name", "p"]), row(["1", "日本", "0.5"]), row(["10", "Åland Islands", ""])];
        let mut out = Vec::new();
        write(&mut out, &[Align::Right, Align::Left, Align::Right], &rows).unwrap();
        let want = "rank  name             p\n   1  日本           0.5\n  10  Åland Islands\n";
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }

    #[test]
    fn fits_a_terminal_by_cutting_text() {
        let row = |cells: [&str; 3]| cells.map(str::to_string).to_vec();
        let long = "a path from here to there, and back again";
        let rows = [row(["name", "score", "reason"]), row(["Portugal", "0.123456789", long]), row(["x", "1", "known"])];
        let mut out = Vec::new();
        let style = TableStyle { width: Some(40), colours: true };
        write_titled(&mut out, &[Align::Left, Align::Right, Align::Left], &rows, style).unwrap();
        let want = "\x1b[2mname\x1b[0m            \x1b[2mscore\x1b[0m  \x1b[2mreason\x1b[0m\n\
                    Portugal  \x1b[36m0.123456789\x1b[0m  a path from here…\n\
                    x                   \x1b[36m1\x1b[0m  \x1b[2mknown\x1b[0m\n";
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }

    #[test]
    fn names_cannot_steer_the_terminal() {
        assert_eq!(printable("São Tomé"), "São Tomé");
        assert_eq!(printable("a\u{1b}[31m\nb"), "a\\u{1b}[31m\\nb");
    }

    #[test]
    fn groups_digits() {
        let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (272_115, "272,115"), (1_234_567, "1,234,567")];
        assert!(cases.iter().all(|(n, text)| grouped(*n) == *text));
    }
}
