//! Files that are no graph files, recognised by how they begin. Read as text, some of them would
//! load as garbage, and for all of them something better than a syntax error can be said.

use super::error::Remedy;
use memchr::memmem;

/// Kinds of files that are not read: the first bytes, what it is, and what to do.
const KINDS: [(&[u8], &str, &str); 16] = [
    (b"SQLite format 3\0", "an SQLite database", "export a table: sqlite3 -csv -header FILE 'select * from TABLE'"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1", "an old Excel workbook or another Office file", "save the sheet as CSV"),
    (b"FEA1", "a Feather file of version 1", "write it as Feather 2 (Arrow IPC), Parquet or CSV"),
    (b"ORC", "an ORC file", "write it as Parquet or CSV"),
    (b"Obj\x01", "an Avro file", "write it as Parquet or CSV"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", "write its table as CSV or Parquet"),
    (b"\x93NUMPY", "a NumPy array", "write it as TSV, with names"),
    (b"$HDT", "an HDT file", "convert it to N-Triples"),
    (b"%PDF-", "a PDF", "export the data as CSV"),
    (b"RDX", "an R workspace", "write the table as CSV"),
    (b"Rar!", "a rar archive", "unpack it first"),
    (b"\x04\x22\x4d\x18", "an lz4 stream", "unpack it first"),
    (b"DUCK", "a DuckDB database", "export a table as Parquet or CSV"),
    (b"\x89PNG", "an image", "name the graph file"),
    (b"\xff\xd8\xff", "an image", "name the graph file"),
    (b"GIF8", "an image", "name the graph file"),
];

/// Recognises a file by its first bytes. `None` if it may be a graph.
pub(crate) fn recognise(head: &[u8]) -> Option<(&'static str, Remedy)> {
    // Text has no control characters.
    let is_binary = head.iter().take(512).any(|b| *b < b'\t');
    for (magic, found, remedy) in KINDS {
        // Three letters may also begin a name.
        if head.starts_with(magic) && (magic.len() > 4 || is_binary) {
            return Some((found, Remedy::Write(remedy)));
        }
    }
    // DuckDB has its name after a checksum.
    if is_binary && head.get(8..12) == Some(b"DUCK") {
        return Some(("a DuckDB database", Remedy::Write("export a table as Parquet or CSV")));
    }
    if is_binary && head.get(257..262) == Some(b"ustar") {
        return Some(("a tar archive", Remedy::Write("unpack it first, then name the file or the directory")));
    }
    // Pickle, of protocol 2 to 5.
    if let [0x80, 2..=5, _, ..] = head {
        return Some(("a Python pickle", Remedy::Write("write it as Parquet or CSV")));
    }
    let text = head.trim_ascii_start();
    let begins = |word: &[u8]| text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    if begins(b"<!doctype html") || begins(b"<html") {
        return Some(("a web page (HTML)", Remedy::Write("fetch the file itself, not the page about it")));
    }
    None
}

/// Says what kind of file begins like this, such as "a web page (HTML)". `None` if it may hold
/// triples.
pub fn foreign_kind(head: &[u8]) -> Option<&'static str> {
    recognise(head).map(|(kind, _)| kind)
}

/// Says what a zip archive is by the names in it.
pub(crate) fn zip(head: &[u8]) -> Option<(&'static str, Remedy)> {
    let has = |name: &[u8]| memmem::find(head, name).is_some();
    if has(b"xl/workbook") || has(b"xl/worksheets") || has(b"xl/_rels") || has(b"xl/") && has(b"[Content_Types].xml") {
        Some(("an Excel workbook", Remedy::Write("save the sheet as CSV")))
    } else if has(b"opendocument.spreadsheet") {
        Some(("an OpenDocument spreadsheet", Remedy::Write("save the sheet as CSV")))
    } else {
        None
    }
}
