//! Columns of text, aligned by what a terminal shows.

use std::borrow::Cow;
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;

/// Which side of its column a cell keeps to.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// Writes rows of as many cells as there are alignments, two spaces between columns.
pub fn write(out: &mut dyn Write, aligns: &[Align], rows: &[Vec<String>]) -> io::Result<()> {
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..aligns.len()).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for ((cell, align), width) in row.iter().zip(aligns).zip(&widths) {
            let space = " ".repeat(width - cell.width());
            line += if line.is_empty() { "" } else { "  " };
            line += &if *align == Align::Right { space + cell } else { format!("{cell}{space}") };
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
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
