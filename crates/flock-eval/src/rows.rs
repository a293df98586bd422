//! The one reader of small tables: comma- or tab-separated text, row by row, each row with its
//! line.
//!
//! Graph files have a reader of their own in `flock-graph`, which streams and repairs.

use csv::{ReaderBuilder, StringRecord};

/// How the fields of a row are separated.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Separator {
    /// Commas. Fields may be quoted, and lines that start with `#` are comments.
    Comma,
    /// Tabs. Quotes and `#` have no meaning.
    Tab,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableRow {
    /// The line that the row starts on, counted from 1.
    pub line: usize,
    /// Its fields.
    pub fields: StringRecord,
}

/// Reads the rows of a text. Blank lines are skipped. Rows may differ in length.
pub(crate) fn rows(text: &str, separator: Separator) -> impl Iterator<Item = TableRow> {
    let commas = separator == Separator::Comma;
    let reader = ReaderBuilder::new()
        .delimiter(if commas { b',' } else { b'\t' })
        .quoting(commas)
        .comment(commas.then_some(b'#'))
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let (mut line, mut seen) = (1, 0);
    // The text is UTF-8 and in memory, so no record fails.
    reader.into_records().map_while(Result::ok).filter_map(move |fields| {
        // The reader's own line is taken before line ends, blank lines and comments in front of the
        // row are skipped.
        let start = fields.position().map_or(seen, |p| p.byte() as usize);
        let start = start + skipped(&text[start..], commas);
        line += text[seen..start].matches('\n').count();
        seen = start;
        // A comment at the very end, without a line end, comes as an empty record.
        (start < text.len()).then_some(TableRow { line, fields })
    })
}

/// Returns the length of the line ends and comments at the beginning of a text.
fn skipped(text: &str, comments: bool) -> usize {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(['\r', '\n']);
        if !(comments && rest.starts_with('#')) {
            return text.len() - rest.len();
        }
        rest = rest.split_once('\n').map_or("", |(_, after)| after);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, separator: Separator) -> Vec<(usize, Vec<String>)> {
        rows(text, separator).map(|r| (r.line, r.fields.iter().map(String::from).collect())).collect()
    }

    fn row(line: usize, fields: &[&str]) -> (usize, Vec<String>) {
        (line, fields.iter().map(|f| f.to_string()).collect())
    }

    #[test]
    fn rows_have_their_lines() {
        // Comments, blank lines, CRLF, a quoted comma and a quoted line end.
        let text = "# a\n\n# b\nx,y\r\n\r\n\"1,2\",\"3\n4\"\r\n# c\n5\n";
        let want = [row(4, &["x", "y"]), row(6, &["1,2", "3\n4"]), row(9, &["5"])];
        assert_eq!(read(text, Separator::Comma), want);
        // In tab-separated text quotes and number signs are part of a name; an empty field is a
        // field.
        let text = "\n#\"a\tb,c\t\n\n\tz";
        assert_eq!(read(text, Separator::Tab), [row(2, &["#\"a", "b,c", ""]), row(4, &["", "z"])]);
        assert!(read("", Separator::Tab).is_empty() && read("#\n#", Separator::Comma).is_empty());
    }
}
