//! Parquet: batches of rows are collected into row groups of bounded size.

use std::fmt;
use std::io::{self, BufWriter, Write};

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::Compression;
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use arrow_array::RecordBatch;

use super::RecordError;
use super::batch::BatchBuilder;
use super::cell::{Cell, Column};

/// The most encoded bytes of a row group: what is held back before it is written.
const GROUP_BYTES: usize = 64 << 20;

/// Writes Parquet.
pub struct ParquetWriter<W: Write + Send> {
    out: ArrowWriter<BufWriter<W>>,
    rows: BatchBuilder,
}

impl<W: Write + Send> fmt::Debug for ParquetWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetWriter").field("schema", self.rows.schema()).finish_non_exhaustive()
    }
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Writes the magic bytes.
    pub fn new(out: W, columns: &[Column]) -> Result<ParquetWriter<W>, RecordError> {
        let rows = BatchBuilder::new(columns);
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("flock-kg ", env!("CARGO_PKG_VERSION")).to_string())
            .build();
        let out = ArrowWriter::try_new(BufWriter::new(out), rows.schema().clone(), Some(properties)).map_err(failed)?;
        Ok(ParquetWriter { out, rows })
    }

    /// Takes a row.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), RecordError> {
        let batch = self.rows.row(cells)?;
        self.batch(batch)
    }

    fn batch(&mut self, batch: Option<RecordBatch>) -> Result<(), RecordError> {
        let Some(batch) = batch else { return Ok(()) };
        self.out.write(&batch).map_err(failed)?;
        if self.out.memory_size() > GROUP_BYTES {
            self.out.flush().map_err(failed)?;
        }
        Ok(())
    }

    /// Writes the last row group and the footer, and gives back the sink.
    pub fn finish(mut self) -> Result<W, RecordError> {
        let last = self.rows.finish()?;
        self.batch(last)?;
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
