//! Parquet: rows are collected into batches, batches into row groups of bounded size.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::Compression;
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use super::RecordError;
use super::cell::{Cell, Column, ColumnKind};

/// The most rows of a batch, and the most bytes of its text.
const BATCH_ROWS: usize = 8192;
const BATCH_BYTES: usize = 4 << 20;

/// The most encoded bytes of a row group: what is held back before it is written.
const GROUP_BYTES: usize = 64 << 20;

/// Writes Parquet.
pub struct ParquetWriter<W: Write + Send> {
    out: ArrowWriter<BufWriter<W>>,
    schema: Arc<Schema>,
    builders: Vec<Builder>,
    rows: usize,  // of the batch
    bytes: usize, // of its text
}

impl<W: Write + Send> fmt::Debug for ParquetWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetWriter").field("schema", &self.schema).field("rows", &self.rows).finish_non_exhaustive()
    }
}

/// The cells of a column of the batch.
enum Builder {
    Text(StringBuilder),
    Integer(Int64Builder),
    Number(Float64Builder),
    Truth(BooleanBuilder),
}

impl Builder {
    fn new(kind: ColumnKind) -> Builder {
        match kind {
            ColumnKind::Text => Builder::Text(StringBuilder::new()),
            ColumnKind::Integer => Builder::Integer(Int64Builder::new()),
            ColumnKind::Number => Builder::Number(Float64Builder::new()),
            ColumnKind::Truth => Builder::Truth(BooleanBuilder::new()),
        }
    }

    /// Takes a cell whose kind was checked: anything else here would be nothing.
    fn push(&mut self, cell: &Cell<'_>) {
        match (self, cell) {
            (Builder::Text(column), Cell::Text(text)) => column.append_value(text),
            (Builder::Text(column), _) => column.append_null(),
            (Builder::Integer(column), Cell::Integer(n)) => column.append_value(*n),
            (Builder::Integer(column), _) => column.append_null(),
            (Builder::Number(column), Cell::Number(x)) => column.append_value(*x),
            (Builder::Number(column), Cell::Integer(n)) => column.append_value(*n as f64),
            (Builder::Number(column), _) => column.append_null(),
            (Builder::Truth(column), Cell::Truth(truth)) => column.append_value(*truth),
            (Builder::Truth(column), _) => column.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Builder::Text(column) => Arc::new(column.finish()),
            Builder::Integer(column) => Arc::new(column.finish()),
            Builder::Number(column) => Arc::new(column.finish()),
            Builder::Truth(column) => Arc::new(column.finish()),
        }
    }
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Writes the magic bytes. Every column may have nulls.
    pub fn new(out: W, columns: &[Column]) -> Result<ParquetWriter<W>, RecordError> {
        let field = |column: &Column| {
            let kind = match column.kind {
                ColumnKind::Text => DataType::Utf8,
                ColumnKind::Integer => DataType::Int64,
                ColumnKind::Number => DataType::Float64,
                ColumnKind::Truth => DataType::Boolean,
            };
            Field::new(column.name.as_ref(), kind, true)
        };
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("flock-kg ", env!("CARGO_PKG_VERSION")).to_string())
            .build();
        let out = ArrowWriter::try_new(BufWriter::new(out), schema.clone(), Some(properties)).map_err(failed)?;
        let builders = columns.iter().map(|c| Builder::new(c.kind)).collect();
        Ok(ParquetWriter { out, schema, builders, rows: 0, bytes: 0 })
    }

    /// Takes a row.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), RecordError> {
        for (builder, cell) in self.builders.iter_mut().zip(cells) {
            builder.push(cell);
            self.bytes += if let Cell::Text(text) = cell { text.len() } else { 0 };
        }
        self.rows += 1;
        if self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES { self.end_batch() } else { Ok(()) }
    }

    fn end_batch(&mut self) -> Result<(), RecordError> {
        if self.rows == 0 {
            return Ok(());
        }
        let columns = self.builders.iter_mut().map(Builder::finish).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), columns);
        self.out.write(&batch.map_err(|e| RecordError::Parquet { reason: e.to_string() })?).map_err(failed)?;
        (self.rows, self.bytes) = (0, 0);
        if self.out.memory_size() > GROUP_BYTES {
            self.out.flush().map_err(failed)?;
        }
        Ok(())
    }

    /// Writes the last row group and the footer, and gives back the sink.
    pub fn finish(mut self) -> Result<W, RecordError> {
        self.end_batch()?;
        let buffer = self.out.into_inner().map_err(failed)?;
        let mut out = buffer.into_inner().map_err(io::IntoInnerError::into_error)?;
        out.flush()?;
        Ok(out)
    }
}

/// The system's own words where it was the system, so that a closed pipe is known as one.
fn failed(e: ParquetError) -> RecordError {
    match e {
        ParquetError::External(e) => match e.downcast::<io::Error>() {
            Ok(e) => RecordError::Io(*e),
            Err(e) => RecordError::Parquet { reason: e.to_string() },
        },
        other => RecordError::Parquet { reason: other.to_string() },
    }
}
