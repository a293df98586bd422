//! Records to take away: rows of typed cells under named columns, written as a table, CSV, TSV, JSON lines, Markdown or Parquet.
//!
//! A [`RecordWriter`] writes each row as it comes: CSV, TSV, JSON lines and Markdown hold no row back, a table holds back the first
//! [`TABLE_ROWS`] to find the widths of its columns, Parquet holds back a row group. So memory does not grow with the number of rows.
//!
//! Numbers have all their digits in CSV, TSV, JSON lines and Parquet (the shortest text that reads back as the same number), and are
//! rounded in tables and Markdown, which people read.
//!
//! ```
//! use flock_kg::records::{Cell, Column, OutputFormat, RecordWriter};
//!
//! let columns = vec![Column::text("name"), Column::number("score")];
//! let mut records = RecordWriter::new(OutputFormat::Csv, columns, Vec::new())?;
//! records.row(&[Cell::from("Korea, Republic of"), Cell::from(0.25)])?;
//! assert_eq!(records.finish()?, b"name,score\n\"Korea, Republic of\",0.25\n");
//! # Ok::<(), flock_kg::records::RecordError>(())
//! ```

mod answers;
#[cfg(feature = "arrow")]
mod batch;
mod cell;
mod format;
#[cfg(feature = "arrow")]
mod held;
mod lines;
#[cfg(feature = "parquet")]
mod parquet;
mod sheet;
mod table;

use std::io::{self, Write};

pub use answers::{answer_columns, write_answers};
pub use cell::{Cell, Column, ColumnKind, Tone};
pub use format::{OutputFormat, UnknownFormat};
#[cfg(feature = "arrow")]
pub use held::{RecordTable, RecordTableBuilder};
pub use lines::unescape_tsv;
pub use sheet::typed;
pub use table::{TABLE_ROWS, TableStyle, cut, grouped, printable};

use lines::{DelimitedWriter, JsonWriter, MarkdownWriter};
use table::TableWriter;

/// Why records cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The system cannot write.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The Parquet encoder failed.
    #[error("cannot write Parquet: {reason}")]
    Parquet {
        /// What it said.
        reason: String,
    },
    /// Rows that Arrow does not take.
    #[error("cannot make an Arrow table: {reason}")]
    Arrow {
        /// What it said.
        reason: String,
    },
    /// A format that this program was built without.
    #[error("this program was built without {format}; build it with the feature {format}, or choose another format")]
    NotBuilt {
        /// The format.
        format: OutputFormat,
    },
    /// A row with too many or too few cells.
    #[error("expected {expected} cells in a row, found {found}")]
    Width {
        /// The number of columns.
        expected: usize,
        /// The number of cells.
        found: usize,
    },
    /// A cell that does not fit its column.
    #[error("column {column}: expected {expected}, found {found}")]
    Kind {
        /// The column.
        column: String,
        /// What the column holds.
        expected: ColumnKind,
        /// What the cell holds.
        found: ColumnKind,
    },
    /// No columns, or two of the same name.
    #[error("expected columns with different names, found {}", match .repeated { Some(name) => format!("{name} twice"), None => "none".to_string() })]
    Columns {
        /// The name that occurs twice; none if there are no columns.
        repeated: Option<String>,
    },
}

/// Takes rows of cells: a [`RecordWriter`], or what holds them in memory.
pub trait RowSink {
    /// Takes a row: one cell for each column. An integer fits a column of numbers; [`Cell::None`] fits every column.
    ///
    /// # Errors
    /// Cells that do not fit the columns, or a sink that cannot take more.
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), RecordError>;
}

impl<W: Write + Send> RowSink for RecordWriter<W> {
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), RecordError> {
        RecordWriter::row(self, cells)
    }
}

/// Columns have different names, and there is one at least.
fn check_columns(columns: &[Column]) -> Result<(), RecordError> {
    let repeated = columns.iter().enumerate().find(|(i, c)| columns[..*i].iter().any(|other| other.name == c.name));
    if columns.is_empty() || repeated.is_some() {
        return Err(RecordError::Columns { repeated: repeated.map(|(_, c)| c.name.to_string()) });
    }
    Ok(())
}

/// The cells of a row fit the columns.
fn check_row(columns: &[Column], cells: &[Cell<'_>]) -> Result<(), RecordError> {
    if cells.len() != columns.len() {
        return Err(RecordError::Width { expected: columns.len(), found: cells.len() });
    }
    for (column, cell) in columns.iter().zip(cells) {
        if let Some(found) = cell.kind()
            && found != column.kind
            && (found, column.kind) != (ColumnKind::Integer, ColumnKind::Number)
        {
            return Err(RecordError::Kind { column: column.name.to_string(), expected: column.kind, found });
        }
    }
    Ok(())
}

/// Writes rows in one format. The sink needs no buffer of its own.
///
/// Dropping a writer without [`RecordWriter::finish`] may lose rows, and leaves a Parquet file that nobody can read.
#[derive(Debug)]
pub struct RecordWriter<W: Write + Send> {
    columns: Vec<Column>,
    rows: u64,
    sink: Sink<W>,
}

#[derive(Debug)]
enum Sink<W: Write + Send> {
    Table(TableWriter<W>),
    Delimited(Box<DelimitedWriter<W>>),
    Json(JsonWriter<W>),
    Markdown(MarkdownWriter<W>),
    #[cfg(feature = "parquet")]
    Parquet(Box<parquet::ParquetWriter<W>>),
}

impl<W: Write + Send> RecordWriter<W> {
    /// Starts with a header, where the format has one. A table has neither colour nor a limit to its width.
    ///
    /// # Errors
    /// No columns or repeated ones, a format that this program was built without, or a sink that cannot be written to.
    pub fn new(format: OutputFormat, columns: Vec<Column>, out: W) -> Result<RecordWriter<W>, RecordError> {
        RecordWriter::with_style(format, columns, out, TableStyle::default())
    }

    /// The same with colours and a width for tables. Other formats do not look at the style.
    ///
    /// # Errors
    /// As [`RecordWriter::new`].
    pub fn with_style(
        format: OutputFormat,
        columns: Vec<Column>,
        out: W,
        style: TableStyle,
    ) -> Result<RecordWriter<W>, RecordError> {
        check_columns(&columns)?;
        let sink = match format {
            OutputFormat::Table => Sink::Table(TableWriter::new(out, &columns, style)),
            OutputFormat::Csv => Sink::Delimited(Box::new(DelimitedWriter::csv(out, &columns)?)),
            OutputFormat::Tsv => Sink::Delimited(Box::new(DelimitedWriter::tsv(out, &columns)?)),
            OutputFormat::Jsonl => Sink::Json(JsonWriter::new(out, &columns)?),
            OutputFormat::Md => Sink::Markdown(MarkdownWriter::new(out, &columns)?),
            #[cfg(feature = "parquet")]
            OutputFormat::Parquet => Sink::Parquet(Box::new(parquet::ParquetWriter::new(out, &columns)?)),
            #[cfg(not(feature = "parquet"))]
            OutputFormat::Parquet => return Err(RecordError::NotBuilt { format }),
        };
        Ok(RecordWriter { columns, rows: 0, sink })
    }

    /// Writes a row: one cell for each column. An integer fits a column of numbers; [`Cell::None`] fits every column.
    ///
    /// # Errors
    /// Cells that do not fit the columns, which leaves the output as it was, or a sink that cannot be written to.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), RecordError> {
        check_row(&self.columns, cells)?;
        match &mut self.sink {
            Sink::Table(table) => table.row(&self.columns, cells)?,
            Sink::Delimited(lines) => lines.row(cells)?,
            Sink::Json(lines) => lines.row(cells)?,
            Sink::Markdown(lines) => lines.row(&self.columns, cells)?,
            #[cfg(feature = "parquet")]
            Sink::Parquet(groups) => groups.row(cells)?,
        }
        self.rows += 1;
        Ok(())
    }

    /// How many rows were written.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Lets the reader have all rows so far. A table fixes the widths of its columns by them. Parquet has nothing to read before its
    /// end, so there this does nothing.
    ///
    /// # Errors
    /// A sink that cannot be written to.
    pub fn flush(&mut self) -> Result<(), RecordError> {
        match &mut self.sink {
            Sink::Table(table) => table.flush(&self.columns)?,
            Sink::Delimited(lines) => lines.flush()?,
            Sink::Json(lines) => lines.flush()?,
            Sink::Markdown(lines) => lines.flush()?,
            #[cfg(feature = "parquet")]
            Sink::Parquet(_) => {}
        }
        Ok(())
    }

    /// Writes what was held back and gives back the sink, flushed.
    ///
    /// # Errors
    /// A sink that cannot be written to.
    pub fn finish(self) -> Result<W, RecordError> {
        Ok(match self.sink {
            Sink::Table(table) => table.finish(&self.columns)?,
            Sink::Delimited(lines) => lines.finish()?,
            Sink::Json(lines) => lines.finish()?,
            Sink::Markdown(lines) => lines.finish()?,
            #[cfg(feature = "parquet")]
            Sink::Parquet(groups) => groups.finish()?,
        })
    }
}

#[cfg(test)]
mod tests;
