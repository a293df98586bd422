//! A batch of queries: a file or standard input, read row by row while earlier rows are being answered.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};

use crate::shared::failure::Failure;

/// The most bytes of a row: three names and room to spare. A file that is no text must not fill the memory.
const MAX_ROW: u64 = 1 << 20;

/// One row of a batch.
#[derive(Debug)]
pub struct Row {
    /// `file:line`.
    pub place: String,
    /// The line, from 1.
    pub line: u64,
    /// Its fields, as far as they are text.
    pub fields: Vec<String>,
    /// Why they cannot be a query, if so.
    pub problem: Option<String>,
}

impl Row {
    /// Head, relation and tail, if the row has them.
    pub fn question(&self) -> Option<[&str; 3]> {
        match (&self.problem, &self.fields[..]) {
            (None, [head, relation, tail]) => Some([head, relation, tail]),
            _ => None,
        }
    }
}

/// Starts reading. The channel ends with the file; an `Err` in it means that reading failed.
pub fn read(path: &Path) -> Result<Receiver<Result<Row, String>>, Failure> {
    let stdin = path == Path::new("-");
    let name = if stdin { "<stdin>".to_string() } else { path.display().to_string() };
    let cannot = |e: io::Error| format!("{name}: cannot read: {e}");
    let source: Box<dyn Read + Send> = if stdin {
        Box::new(io::stdin())
    } else {
        let file = File::open(path).map_err(cannot)?;
        if file.metadata().map_err(cannot)?.is_dir() {
            return Err(Failure::Error(format!("{name}: is a directory, expected a file of queries")));
        }
        Box::new(file)
    };
    let csv = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv"));
    // Some rows ahead, so that a group of queries can be filled without waiting.
    let (send, receive) = sync_channel(1024);
    std::thread::spawn(move || {
        let mut rows = csv::ReaderBuilder::new()
            .delimiter(if csv { b',' } else { b'\t' })
            .quoting(csv)
            .has_headers(false)
            .flexible(true)
            .from_reader(LineCounter::new(source));
        let mut record = csv::ByteRecord::new();
        loop {
            let item = match rows.read_byte_record(&mut record) {
                Ok(false) => return,
                Ok(true) => {
                    rows.get_ref().passed.set(rows.position().byte());
                    match row(&name, csv, &record, rows.get_ref().of(&record)) {
                        Some(row) => Ok(row),
                        None => continue,
                    }
                }
                Err(e) if is_too_long(&e) => Err(format!(
                    "{name}:{}: found more than {} MiB without the end of a row, expected head, relation and tail",
                    rows.get_ref().line.get(),
                    MAX_ROW >> 20
                )),
                Err(e) => Err(format!("{name}: cannot read: {e}")),
            };
            let stop = item.is_err();
            if send.send(item).is_err() || stop {
                return;
            }
        }
    });
    Ok(receive)
}

/// Knows the line of each record. The parser's own count is taken before it has passed the line end of the record before,
/// and blank lines: too low in files with CRLF or gaps.
struct LineCounter<R> {
    source: R,
    read: u64,
    /// Offsets of line-end bytes that no record has passed yet, and whether they are `\n`.
    ends: RefCell<VecDeque<(u64, bool)>>,
    /// The line after the ends that were passed.
    line: Cell<u64>,
    /// Where the last record ended.
    passed: Cell<u64>,
}

/// A row, or blank lines, of more than [`MAX_ROW`] bytes.
#[derive(Debug)]
struct RowTooLong;

impl fmt::Display for RowTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row is too long")
    }
}

impl std::error::Error for RowTooLong {}

fn is_too_long(e: &csv::Error) -> bool {
    matches!(e.kind(), csv::ErrorKind::Io(e) if e.get_ref().is_some_and(|e| e.is::<RowTooLong>()))
}

impl<R> LineCounter<R> {
    fn new(source: R) -> LineCounter<R> {
        LineCounter { source, read: 0, ends: RefCell::default(), line: Cell::new(1), passed: Cell::new(0) }
    }

    /// The line that a record begins on; records in their order.
    fn of(&self, record: &csv::ByteRecord) -> u64 {
        let mut start = record.position().map_or(0, csv::Position::byte);
        let mut ends = self.ends.borrow_mut();
        while let Some(&(at, newline)) = ends.front().filter(|(at, _)| *at <= start) {
            start = start.max(at + 1);
            self.line.set(self.line.get() + u64::from(newline));
            ends.pop_front();
        }
        self.line.get()
    }
}

impl<R: Read> Read for LineCounter<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // The parser has used up what it got.
        if self.read - self.passed.get() > MAX_ROW {
            return Err(io::Error::other(RowTooLong));
        }
        let len = self.source.read(buffer)?;
        let ends = (self.read..).zip(&buffer[..len]).filter(|(_, b)| matches!(b, b'\n' | b'\r'));
        self.ends.get_mut().extend(ends.map(|(at, b)| (at, *b == b'\n')));
        self.read += len as u64;
        Ok(len)
    }
}

/// A record as a row; nothing for a blank line.
fn row(name: &str, csv: bool, record: &csv::ByteRecord, line: u64) -> Option<Row> {
    let fields: Vec<String> = record.iter().map(|f| String::from_utf8_lossy(f).into_owned()).collect();
    if fields.len() == 1 && fields[0].trim().is_empty() {
        return None;
    }
    let problem = if record.iter().any(|f| std::str::from_utf8(f).is_err()) {
        Some("invalid UTF-8, expected UTF-8 text".to_string())
    } else if fields.len() != 3 {
        let separator = if csv { "comma" } else { "tab" };
        let hint = match (csv, fields.len()) {
            (false, 1) if fields[0].matches(',').count() == 2 => "; hint: name a file of commas .csv",
            (false, 1) => "; hint: write tabs between head, relation and tail",
            _ => "",
        };
        Some(format!("expected 3 {separator}-separated fields, found {}{hint}", fields.len()))
    } else {
        None
    };
    Some(Row { place: format!("{name}:{line}"), line, fields, problem })
}
