//! Rows as Arrow record batches: what Parquet files are written from, and what a [`RecordTable`] holds.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use super::RecordError;
use super::cell::{Cell, Column, ColumnKind};

/// The most rows of a batch, and the most bytes of its text.
const ROWS: usize = 8192;
const BYTES: usize = 4 << 20;

/// The schema of columns. Every column may have nulls.
pub(super) fn schema(columns: &[Column]) -> Arc<Schema> {
    let field = |column: &Column| {
        let kind = match column.kind {
            ColumnKind::Text => DataType::Utf8,
            ColumnKind::Integer => DataType::Int64,
            ColumnKind::Number => DataType::Float64,
            ColumnKind::Truth => DataType::Boolean,
        };
        Field::new(column.name.as_ref(), kind, true)
    };
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// Collects rows into batches of bounded size.
pub(super) struct BatchBuilder {
    schema: Arc<Schema>,
    builders: Vec<Builder>,
    rows: usize,
    bytes: usize, // of text
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

impl BatchBuilder {
    /// Begins with no rows.
    pub fn new(columns: &[Column]) -> BatchBuilder {
        let builders = columns.iter().map(|c| Builder::new(c.kind)).collect();
        BatchBuilder { schema: schema(columns), builders, rows: 0, bytes: 0 }
    }

    /// The schema of the batches.
    #[cfg(feature = "parquet")]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Takes a row that was checked. Returns a batch when there are enough rows for one.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> Result<Option<RecordBatch>, RecordError> {
        for (builder, cell) in self.builders.iter_mut().zip(cells) {
            builder.push(cell);
            self.bytes += if let Cell::Text(text) = cell { text.len() } else { 0 };
        }
        self.rows += 1;
        if self.rows >= ROWS || self.bytes >= BYTES { self.finish() } else { Ok(None) }
    }

    /// Returns the rows since the last batch, if there are any.
    pub fn finish(&mut self) -> Result<Option<RecordBatch>, RecordError> {
        if self.rows == 0 {
            return Ok(None);
        }
        (self.rows, self.bytes) = (0, 0);
        let columns = self.builders.iter_mut().map(Builder::finish).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), columns);
        batch.map(Some).map_err(|e| RecordError::Arrow { reason: e.to_string() })
    }
}
