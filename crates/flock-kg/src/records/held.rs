//! Records that are held in memory as Arrow batches, for programs that hand them to others without a copy.

use std::io::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::Schema;

use super::batch::{BatchBuilder, schema};
use super::cell::{Cell, Column, ColumnKind};
use super::{RecordError, RecordWriter, RowSink, check_columns, check_row};

/// Takes rows and makes a [`RecordTable`] of them.
///
/// ```
/// use flock_kg::records::{Cell, Column, RecordTableBuilder, RowSink};
///
/// let mut rows = RecordTableBuilder::new(vec![Column::text("name"), Column::number("score")])?;
/// rows.row(&[Cell::from("Portugal"), Cell::from(0.25)])?;
/// let table = rows.finish()?;
/// assert_eq!((table.len(), table.row(0)), (1, Some(vec![Cell::from("Portugal"), Cell::from(0.25)])));
/// # Ok::<(), flock_kg::records::RecordError>(())
/// ```
pub struct RecordTableBuilder {
    columns: Vec<Column>,
    open: BatchBuilder,
    batches: Vec<RecordBatch>,
}

impl RecordTableBuilder {
    /// Begins with no rows.
    ///
    /// # Errors
    /// No columns, or repeated ones.
    pub fn new(columns: Vec<Column>) -> Result<RecordTableBuilder, RecordError> {
        check_columns(&columns)?;
        Ok(RecordTableBuilder { open: BatchBuilder::new(&columns), columns, batches: Vec::new() })
    }

    /// Returns the table.
    ///
    /// # Errors
    /// A column that Arrow does not take: more than 2 GiB of text in one row.
    pub fn finish(mut self) -> Result<RecordTable, RecordError> {
        self.batches.extend(self.open.finish()?);
        Ok(RecordTable::of(self.columns, self.batches))
    }
}

impl RowSink for RecordTableBuilder {
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), RecordError> {
        check_row(&self.columns, cells)?;
        self.batches.extend(self.open.row(cells)?);
        Ok(())
    }
}

/// Rows under columns, as Arrow record batches.
#[derive(Clone, Debug)]
pub struct RecordTable {
    columns: Vec<Column>,
    schema: Arc<Schema>,
    batches: Vec<RecordBatch>,
    ends: Vec<usize>, // the first row after each batch
}

impl RecordTable {
    fn of(columns: Vec<Column>, batches: Vec<RecordBatch>) -> RecordTable {
        let mut end = 0;
        let ends = batches.iter().map(|batch| {
            end += batch.num_rows();
            end
        });
        RecordTable { ends: ends.collect(), schema: schema(&columns), columns, batches }
    }

    /// A table of batches that were made elsewhere, such as those of another process.
    ///
    /// # Errors
    /// No columns or repeated ones, or a batch that does not have these columns.
    pub fn new(columns: Vec<Column>, batches: Vec<RecordBatch>) -> Result<RecordTable, RecordError> {
        check_columns(&columns)?;
        let expected = schema(&columns);
        if let Some(other) = batches.iter().find(|batch| batch.schema().fields() != expected.fields()) {
            let reason = format!("found a batch of {}, expected {expected}", other.schema());
            return Err(RecordError::Arrow { reason });
        }
        Ok(RecordTable::of(columns, batches))
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The columns as Arrow has them.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The rows as Arrow has them.
    pub fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One cell; [`Cell::None`] beyond the table.
    pub fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let at = self.ends.partition_point(|&end| end <= row);
        let (Some(batch), Some(kind)) = (self.batches.get(at), self.columns.get(column).map(|c| c.kind)) else {
            return Cell::None;
        };
        let row = row - if at == 0 { 0 } else { self.ends[at - 1] };
        let array = batch.column(column);
        if array.is_null(row) {
            return Cell::None;
        }
        match kind {
            ColumnKind::Text => array.as_string::<i32>().value(row).into(),
            ColumnKind::Integer => array.as_primitive::<Int64Type>().value(row).into(),
            ColumnKind::Number => array.as_primitive::<Float64Type>().value(row).into(),
            ColumnKind::Truth => array.as_boolean().value(row).into(),
        }
    }

    /// The cells of a row; nothing beyond the last.
    pub fn row(&self, row: usize) -> Option<Vec<Cell<'_>>> {
        (row < self.len()).then(|| (0..self.columns.len()).map(|column| self.cell(row, column)).collect())
    }

    /// At most `count` rows from `first` on. They share the memory.
    pub fn slice(&self, first: usize, count: usize) -> RecordTable {
        let (mut begin, end) = (0, first.saturating_add(count).min(self.len()));
        let mut batches = Vec::new();
        for (batch, &until) in self.batches.iter().zip(&self.ends) {
            let (from, to) = (first.max(begin), end.min(until));
            if from < to {
                batches.push(batch.slice(from - begin, to - from));
            }
            begin = until;
        }
        RecordTable::of(self.columns.clone(), batches)
    }

    /// Writes all rows.
    ///
    /// # Errors
    /// A writer of other columns, or a sink that cannot be written to.
    pub fn write<W: Write + Send>(&self, out: &mut RecordWriter<W>) -> Result<(), RecordError> {
        (0..self.len()).filter_map(|row| self.row(row)).try_for_each(|cells| out.row(&cells))
    }
}

#[cfg(test)]
mod tests {
    use super::super::OutputFormat;
    use super::*;

    fn columns() -> Vec<Column> {
        vec![Column::text("name"), Column::integer("rank"), Column::number("score"), Column::truth("known")]
    }

    /// More rows than one batch holds (8192), every seventh with nothing in it.
    fn table(rows: i64) -> RecordTable {
        let mut builder = RecordTableBuilder::new(columns()).unwrap();
        for i in 0..rows {
            let row = [i.to_string().into(), i.into(), (i as f64 / 2.0).into(), (i % 2 == 0).into()];
            let none = [Cell::None, Cell::None, Cell::None, Cell::None];
            builder.row(if i % 7 == 6 { &none } else { &row }).unwrap();
        }
        builder.finish().unwrap()
    }

    #[test]
    fn gives_back_what_it_took() {
        let table = table(20_000);
        assert_eq!((table.len(), table.batches().len(), table.row(20_000)), (20_000, 3, None));
        for i in [0, 1, 8191, 8192, 16_383, 16_384, 19_999] {
            let want = match i % 7 {
                6 => vec![Cell::None; 4],
                _ => vec![i.to_string().into(), (i as i64).into(), (i as f64 / 2.0).into(), (i % 2 == 0).into()],
            };
            assert_eq!(table.row(i).unwrap(), want);
        }
        let part = table.slice(8190, 5);
        assert_eq!((part.len(), part.cell(0, 1), part.cell(4, 1)), (5, 8190i64.into(), 8194i64.into()));
        assert_eq!((table.slice(19_998, 9).len(), table.slice(30_000, 9).len(), table.slice(3, 0).len()), (2, 0, 0));
    }

    #[test]
    fn is_written_like_rows_that_were_never_held() {
        let mut out = RecordWriter::new(OutputFormat::Csv, columns(), Vec::new()).unwrap();
        table(8).write(&mut out).unwrap();
        let lines = String::from_utf8(out.finish().unwrap()).unwrap();
        assert_eq!(lines.lines().nth(1), Some("0,0,0.0,true"));
        assert_eq!((lines.lines().nth(7), lines.lines().count()), (Some(",,,"), 9));
    }

    #[test]
    fn refuses_batches_of_other_columns() {
        let other = vec![Column::text("name")];
        let batches = table(3).batches().to_vec();
        assert!(matches!(RecordTable::new(other, batches.clone()), Err(RecordError::Arrow { .. })));
        assert_eq!(RecordTable::new(columns(), batches).unwrap().len(), 3);
        let mut builder = RecordTableBuilder::new(columns()).unwrap();
        assert!(matches!(builder.row(&[Cell::None]), Err(RecordError::Width { expected: 4, found: 1 })));
    }
}
