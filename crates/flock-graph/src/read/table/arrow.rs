//! Reads Parquet and Arrow IPC: a batch of rows at a time, and only the columns that are used.
//!
//! Columns are text (plain, large, views, dictionaries) or whole numbers; the kinds of nodes may be
//! lists of text. A file on disk is read in place. From anywhere else it is held in memory first,
//! because both formats have their directory at the end.

use super::header::{self, Layout, Reading};
use super::report::HeaderReason;
use super::{Emitter, TableReport, owned, places, plain};
use crate::quote::column_name;
use crate::read::error::{LoadError, Remedy};
use crate::read::source::Source;
use crate::read::{Format, LoadOptions, LoadReport, Sink};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, LargeStringArray, RecordBatch, StringArray, StringViewArray};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, DataType, Schema};
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::reader::ChunkReader;
use std::fmt::{Display, Write};
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Number of rows of Parquet that are decoded at a time.
const BATCH: usize = 8192;

/// Number of bytes of names that any file may have, written out in full.
const FLOOR: u64 = 256 << 20;

/// Number of further bytes of names for each byte of the file.
const FACTOR: u64 = 200;

/// Passes the triples and labels of a Parquet or Arrow file to `sink`.
pub(crate) fn read(
    source: &mut Source<'_>,
    options: &LoadOptions,
    report: &mut LoadReport,
    sink: &mut dyn Sink,
) -> Result<(), LoadError> {
    let data = Data::new(source)?;
    let limit = FLOOR.saturating_add(FACTOR.saturating_mul(data.len(source)?));
    let mut table = Table { source, options, report, sink, limit, text: 0, row: 0 };
    // The readers of these formats check what they read, but were not written for files from
    // strangers: a damaged one must not end the program.
    let result = catch_unwind(AssertUnwindSafe(|| match (table.source.format, &data) {
        (Format::Parquet, Data::File(file)) => {
            parquet(file.try_clone().map_err(|e| table.source.failed(e))?, &mut table)
        }
        (Format::Parquet, Data::Memory(bytes)) => parquet(bytes.clone(), &mut table),
        (_, Data::File(file)) => {
            let open = || file.try_clone().map(BufReader::new);
            arrow(&open, &mut table)
        }
        (_, Data::Memory(bytes)) => arrow(&|| Ok(Cursor::new(bytes.clone())), &mut table),
    }));
    result.unwrap_or_else(|_| Err(table.failed("the data is damaged")))
}

/// The bytes of a file.
enum Data {
    File(File),
    Memory(Bytes),
}

impl Data {
    fn new(source: &mut Source<'_>) -> Result<Data, LoadError> {
        if let Some(path) = &source.path {
            return File::open(path).map(Data::File).map_err(|error| source.failed(error));
        }
        let mut bytes = Vec::new();
        match source.reader.read_to_end(&mut bytes) {
            Ok(_) => Ok(Data::Memory(bytes.into())),
            Err(error) => Err(source.failed(error)),
        }
    }

    fn len(&self, source: &Source<'_>) -> Result<u64, LoadError> {
        match self {
            Data::File(file) => file.metadata().map(|metadata| metadata.len()).map_err(|error| source.failed(error)),
            Data::Memory(bytes) => Ok(bytes.len() as u64),
        }
    }
}

fn parquet(data: impl ChunkReader + 'static, table: &mut Table<'_, '_>) -> Result<(), LoadError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(data).map_err(|error| table.failed(error))?;
    let (layout, used) = table.layout(builder.schema())?;
    let mask = ProjectionMask::roots(builder.parquet_schema(), used.iter().copied());
    let batches = builder.with_projection(mask).with_batch_size(BATCH).build().map_err(|error| table.failed(error))?;
    for batch in batches {
        let batch = batch.map_err(|error| table.failed(error))?;
        table.batch(&batch, &layout, &used)?;
    }
    Ok(())
}

/// Reads Arrow IPC. A file has its magic at the beginning, a stream has none.
fn arrow<R: Read + Seek>(open: &dyn Fn() -> std::io::Result<R>, table: &mut Table<'_, '_>) -> Result<(), LoadError> {
    let is_file = table.source.head.0.starts_with(b"ARROW1");
    let opened = || {
        let mut reader = open()?;
        reader.rewind()?;
        Ok(reader)
    };
    let open = |table: &Table<'_, '_>| opened().map_err(|error| table.source.failed(error));
    fn batches<R: Read + Seek>(
        reader: R,
        is_file: bool,
        used: Option<Vec<usize>>,
    ) -> Result<ArrowBatches<R>, ArrowError> {
        Ok(if is_file {
            ArrowBatches::File(Box::new(FileReader::try_new(reader, used)?))
        } else {
            ArrowBatches::Stream(Box::new(StreamReader::try_new(reader, used)?))
        })
    }
    let all = batches(open(table)?, is_file, None).map_err(|error| table.failed(error))?;
    let (layout, used) = table.layout(&all.schema())?;
    drop(all);
    let mut some = batches(open(table)?, is_file, Some(used.clone())).map_err(|error| table.failed(error))?;
    while let Some(batch) = some.next() {
        let batch = batch.map_err(|error| table.failed(error))?;
        table.batch(&batch, &layout, &used)?;
    }
    Ok(())
}

/// The batches of an Arrow file or stream.
enum ArrowBatches<R: Read + Seek> {
    File(Box<FileReader<R>>),
    Stream(Box<StreamReader<R>>),
}

impl<R: Read + Seek> ArrowBatches<R> {
    fn schema(&self) -> std::sync::Arc<Schema> {
        match self {
            ArrowBatches::File(reader) => reader.schema(),
            ArrowBatches::Stream(reader) => reader.schema(),
        }
    }

    fn next(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        match self {
            ArrowBatches::File(reader) => reader.next(),
            ArrowBatches::Stream(reader) => reader.next(),
        }
    }
}

/// A table that is being read.
struct Table<'t, 's> {
    source: &'t mut Source<'s>,
    options: &'t LoadOptions,
    report: &'t mut LoadReport,
    sink: &'t mut dyn Sink,
    /// Number of bytes of names that the file may have, and that it had so far.
    limit: u64,
    text: u64,
    /// Number of rows read.
    row: u64,
}

impl Table<'_, '_> {
    fn failed(&self, error: impl Display) -> LoadError {
        let (file, format) = (self.source.file.clone(), self.source.format);
        LoadError::Columnar { file, format, message: error.to_string() }
    }

    /// Finds out what the columns mean. Returns the layout over the columns that are used, and these
    /// columns.
    fn layout(&mut self, schema: &Schema) -> Result<(Layout, Vec<usize>), LoadError> {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let layout = self.understood(schema, &names)?;
        let header = Some(HeaderReason::Schema);
        self.report.table(TableReport::new(&layout, Some(&names), names.len(), header));
        let mut used = Vec::new();
        let kinds = layout.nodes.as_ref().and_then(|nodes| nodes.kind.as_ref()).map(|kind| kind.column);
        for column in columns_of(&layout) {
            let Some(field) = schema.fields().get(column) else {
                let columns = owned(&names);
                let column = (column + 1).to_string();
                return Err(LoadError::NoSuchColumn { file: self.source.file.clone(), column, columns, remedy: None });
            };
            if !is_read(field.data_type(), Some(column) == kinds) {
                let (file, column) = (self.source.file.clone(), column_name(field.name()));
                return Err(LoadError::ColumnType { file, column, found: column_name(&field.data_type().to_string()) });
            }
            used.push(column);
        }
        used.sort_unstable();
        used.dedup();
        Ok((layout, used))
    }

    fn understood(&self, schema: &Schema, names: &[&str]) -> Result<Layout, LoadError> {
        let file = self.source.file.clone();
        if let Some(columns) = &self.options.columns {
            return places(&file, columns, names).map(plain);
        }
        match header::read(names) {
            Some(Reading::Named { layout, .. }) => return Ok(layout),
            Some(Reading::NoRelation { head, tail }) => {
                let ends = [head, tail].map(|at| column_name(names[at]));
                return Err(LoadError::NoRelation { file, ends, columns: owned(names) });
            }
            None => {}
        }
        // Three columns with names that say nothing, such as 0, 1 and 2.
        let is_name = |at: usize| is_read(schema.field(at).data_type(), false);
        if names.len() == 3 && (0..3).all(is_name) {
            return Ok(plain([0, 1, 2]));
        }
        let text: Vec<usize> = (0..names.len()).filter(|&at| is_name(at)).collect();
        let columns = match text[..] {
            [head, relation, tail, ..] => [head, relation, tail],
            _ => [0, 1, 2],
        };
        let remedy = Box::new(Remedy::Columns { columns, names: owned(names), or_quote: false });
        Err(LoadError::UnknownColumns { file, columns: owned(names), remedy })
    }

    /// Takes the rows of a batch, which has the columns `used`.
    fn batch(&mut self, batch: &RecordBatch, layout: &Layout, used: &[usize]) -> Result<(), LoadError> {
        let columns: Option<Vec<Cells<'_>>> = batch.columns().iter().map(|column| Cells::new(column)).collect();
        let columns = columns.filter(|columns| columns.len() == used.len());
        let columns = columns.ok_or_else(|| self.failed("the columns are not those of the schema"))?;
        let mut texts = vec![String::new(); used.len()];
        for row in 0..batch.num_rows() {
            self.row += 1;
            for (text, column) in texts.iter_mut().zip(&columns) {
                text.clear();
                column.write(row, text);
                self.text += text.len() as u64 + 1;
            }
            if let Some(limit) = self.options.max_bytes.filter(|limit| self.text > *limit) {
                return Err(LoadError::TooMuch { file: self.source.file.clone(), limit });
            }
            if self.text > self.limit {
                let message = "its names come to more than 256 MiB and 200 times the size of the file, expected less";
                return Err(self.failed(message));
            }
            let mut emitter = Emitter { report: &mut *self.report, sink: &mut *self.sink };
            let cell = |column: usize| Some(texts[used.binary_search(&column).ok()?].as_str());
            if let Err(what) = emitter.row(layout, &cell) {
                self.report.rows += 1;
                self.report.skip(self.source, self.row, what, self.options)?;
            }
        }
        Ok(())
    }
}

/// Lists the columns that a layout uses.
fn columns_of(layout: &Layout) -> Vec<usize> {
    let triples = layout.triples.iter().flat_map(|t| t.columns.into_iter().chain(t.labels.into_iter().flatten()));
    let nodes = layout
        .nodes
        .iter()
        .flat_map(|n| [Some(n.id), n.label, n.kind.as_ref().map(|kind| kind.column)].into_iter().flatten());
    triples.chain(nodes).collect()
}

/// Tells whether values of a type are names.
fn is_read(data_type: &DataType, or_list: bool) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_read(values, false),
        DataType::List(field) | DataType::LargeList(field) if or_list => is_read(field.data_type(), false),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        other => other.is_integer(),
    }
}

/// A column of a batch.
enum Cells<'a> {
    Text(&'a StringArray),
    LargeText(&'a LargeStringArray),
    TextView(&'a StringViewArray),
    Numbers(Vec<Option<i128>>),
    /// The place of each value, if there is one.
    Dictionary(Vec<Option<usize>>, Box<Cells<'a>>),
    /// Where the items of each row are.
    Lists(Vec<std::ops::Range<usize>>, Box<Cells<'a>>),
}

impl<'a> Cells<'a> {
    fn new(array: &'a dyn Array) -> Option<Cells<'a>> {
        if let Some(dictionary) = array.as_any_dictionary_opt() {
            let values = dictionary.values();
            // With no values there are only nulls.
            let places = if values.is_empty() { vec![0; array.len()] } else { dictionary.normalized_keys() };
            let keys = dictionary.keys();
            let places = places.into_iter().enumerate();
            let places = places.map(|(row, at)| (keys.is_valid(row) && at < values.len()).then_some(at)).collect();
            return Some(Cells::Dictionary(places, Box::new(Cells::new(values)?)));
        }
        if let Some(lists) = array.as_list_opt::<i32>() {
            let range = |row: usize| lists.value_offsets()[row] as usize..lists.value_offsets()[row + 1] as usize;
            let ranges = (0..lists.len()).map(|row| if lists.is_valid(row) { range(row) } else { 0..0 }).collect();
            return Some(Cells::Lists(ranges, Box::new(Cells::new(lists.values())?)));
        }
        if let Some(lists) = array.as_list_opt::<i64>() {
            let range = |row: usize| lists.value_offsets()[row] as usize..lists.value_offsets()[row + 1] as usize;
            let ranges = (0..lists.len()).map(|row| if lists.is_valid(row) { range(row) } else { 0..0 }).collect();
            return Some(Cells::Lists(ranges, Box::new(Cells::new(lists.values())?)));
        }
        match array.data_type() {
            DataType::Utf8 => array.as_string_opt::<i32>().map(Cells::Text),
            DataType::LargeUtf8 => array.as_string_opt::<i64>().map(Cells::LargeText),
            DataType::Utf8View => array.as_string_view_opt().map(Cells::TextView),
            DataType::Int8 => numbers::<Int8Type>(array),
            DataType::Int16 => numbers::<Int16Type>(array),
            DataType::Int32 => numbers::<Int32Type>(array),
            DataType::Int64 => numbers::<Int64Type>(array),
            DataType::UInt8 => numbers::<UInt8Type>(array),
            DataType::UInt16 => numbers::<UInt16Type>(array),
            DataType::UInt32 => numbers::<UInt32Type>(array),
            DataType::UInt64 => numbers::<UInt64Type>(array),
            _ => None,
        }
    }

    /// Adds the text of a row. A null is empty.
    fn write(&self, row: usize, text: &mut String) {
        match self {
            Cells::Text(array) if array.is_valid(row) => text.push_str(array.value(row)),
            Cells::LargeText(array) if array.is_valid(row) => text.push_str(array.value(row)),
            Cells::TextView(array) if array.is_valid(row) => text.push_str(array.value(row)),
            Cells::Numbers(numbers) => {
                if let Some(number) = numbers[row] {
                    // Writing to a string does not fail.
                    let _ = write!(text, "{number}");
                }
            }
            Cells::Dictionary(places, values) => {
                if let Some(at) = places[row] {
                    values.write(at, text);
                }
            }
            Cells::Lists(ranges, values) => {
                for at in ranges[row].clone() {
                    text.push_str(if at > ranges[row].start { "|" } else { "" });
                    values.write(at, text);
                }
            }
            _ => {}
        }
    }
}

fn numbers<'a, T: ArrowPrimitiveType<Native: Into<i128>>>(array: &'a dyn Array) -> Option<Cells<'a>> {
    let array = array.as_primitive_opt::<T>()?;
    Some(Cells::Numbers(array.iter().map(|number| number.map(Into::into)).collect()))
}
