//! Reads Parquet and Arrow IPC, and batches of rows that are in memory: a batch at a time, and only
//! the columns that are used.
//!
//! Columns are text (plain, large, views, dictionaries) or whole numbers; the kinds of nodes may be
//! lists of text. A column of the type Null has no values. A file on disk is read in place. From
//! anywhere else it is held in memory first, because both formats have their directory at the end.

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
use arrow_array::{Array, LargeStringArray, RecordBatch, RecordBatchReader, StringArray, StringViewArray};
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
    let source = &*source;
    let limit = FLOOR.saturating_add(FACTOR.saturating_mul(data.len(source)?));
    let table = Table { format: Some(source.format), limit: Some(limit), ..Table::new(&source.file, options) };
    let mut loading = Loading { table, report, sink };
    // The readers of these formats check what they read, but were not written for files from
    // strangers: a damaged one must not end the program.
    let result = catch_unwind(AssertUnwindSafe(|| match (source.format, &data) {
        (Format::Parquet, Data::File(file)) => parquet(file.try_clone().map_err(|e| source.failed(e))?, &mut loading),
        (Format::Parquet, Data::Memory(bytes)) => parquet(bytes.clone(), &mut loading),
        (_, Data::File(file)) => {
            let open = || file.try_clone().map(BufReader::new);
            arrow(source, &open, &mut loading)
        }
        (_, Data::Memory(bytes)) => arrow(source, &|| Ok(Cursor::new(bytes.clone())), &mut loading),
    }));
    result.unwrap_or_else(|_| Err(loading.table.failed("the data is damaged")))
}

/// Passes the triples and labels of batches to `sink`. `name` stands for the file in messages.
pub(crate) fn read_batches(
    name: &str,
    batches: impl RecordBatchReader,
    options: &LoadOptions,
    report: &mut LoadReport,
    sink: &mut dyn Sink,
) -> Result<(), LoadError> {
    let mut loading = Loading { table: Table::new(name, options), report, sink };
    let (layout, used) = loading.layout(&batches.schema())?;
    for batch in batches {
        let batch = batch.and_then(|batch| batch.project(&used)).map_err(|error| loading.table.failed(error))?;
        loading.batch(&batch, &layout, &used)?;
    }
    Ok(())
}

/// Passes head, relation and tail of every row of batches to `sink`, `None` for a null. Returns the
/// number of rows.
pub(crate) fn for_each_row(
    name: &str,
    batches: impl RecordBatchReader,
    options: &LoadOptions,
    mut sink: impl FnMut([Option<&str>; 3]),
) -> Result<u64, LoadError> {
    let mut table = Table::new(name, options);
    let schema = batches.schema();
    let names = names(&schema);
    let columns = match table.understood(&schema, &names)?.triples {
        Some(triples) => triples.columns,
        // It describes nodes.
        None => return Err(table.unknown_columns(&schema, &names)),
    };
    let used = table.used(&schema, &plain(columns))?;
    for batch in batches {
        let batch = batch.and_then(|batch| batch.project(&used)).map_err(|error| table.failed(error))?;
        table.rows(&batch, &used, |_, row| {
            sink(columns.map(|column| row.cell(column)));
            Ok(())
        })?;
    }
    Ok(table.row)
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

fn parquet(data: impl ChunkReader + 'static, loading: &mut Loading<'_>) -> Result<(), LoadError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(data).map_err(|error| loading.table.failed(error))?;
    let (layout, used) = loading.layout(builder.schema())?;
    let mask = ProjectionMask::roots(builder.parquet_schema(), used.iter().copied());
    let batches = builder.with_projection(mask).with_batch_size(BATCH).build();
    for batch in batches.map_err(|error| loading.table.failed(error))? {
        let batch = batch.map_err(|error| loading.table.failed(error))?;
        loading.batch(&batch, &layout, &used)?;
    }
    Ok(())
}

/// Reads Arrow IPC. A file has its magic at the beginning, a stream has none.
fn arrow<R: Read + Seek>(
    source: &Source<'_>,
    open: &dyn Fn() -> std::io::Result<R>,
    loading: &mut Loading<'_>,
) -> Result<(), LoadError> {
    let is_file = source.head.0.starts_with(b"ARROW1");
    let opened = || {
        let mut reader = open()?;
        reader.rewind()?;
        Ok(reader)
    };
    let open = || opened().map_err(|error| source.failed(error));
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
    let all = batches(open()?, is_file, None).map_err(|error| loading.table.failed(error))?;
    let (layout, used) = loading.layout(&all.schema())?;
    drop(all);
    let mut some = batches(open()?, is_file, Some(used.clone())).map_err(|error| loading.table.failed(error))?;
    while let Some(batch) = some.next() {
        let batch = batch.map_err(|error| loading.table.failed(error))?;
        loading.batch(&batch, &layout, &used)?;
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

/// A table whose rows become triples and labels.
struct Loading<'t> {
    table: Table<'t>,
    report: &'t mut LoadReport,
    sink: &'t mut dyn Sink,
}

impl Loading<'_> {
    /// Finds out what the columns mean, and reports it. Returns the layout, and the columns that it
    /// uses.
    fn layout(&mut self, schema: &Schema) -> Result<(Layout, Vec<usize>), LoadError> {
        let names = names(schema);
        let layout = self.table.understood(schema, &names)?;
        let header = Some(HeaderReason::Schema);
        self.report.table(TableReport::new(&layout, Some(&names), names.len(), header));
        let used = self.table.used(schema, &layout)?;
        Ok((layout, used))
    }

    /// Takes the rows of a batch, which has the columns `used`.
    fn batch(&mut self, batch: &RecordBatch, layout: &Layout, used: &[usize]) -> Result<(), LoadError> {
        let (file, options) = (self.table.file, self.table.options);
        let (report, sink) = (&mut *self.report, &mut *self.sink);
        self.table.rows(batch, used, |line, row| {
            let mut emitter = Emitter { report: &mut *report, sink: &mut *sink };
            if let Err(what) = emitter.row(layout, &|column| row.cell(column)) {
                report.rows += 1;
                report.skip(file, line, what, options)?;
            }
            Ok(())
        })
    }
}

/// A table that is being read.
struct Table<'t> {
    /// The name of the file for messages.
    file: &'t str,
    /// The format of the file. Batches in memory have none.
    format: Option<Format>,
    options: &'t LoadOptions,
    /// Number of bytes of names that the file may have, if there is a limit, and that it had so far.
    limit: Option<u64>,
    text: u64,
    /// Number of rows read.
    row: u64,
}

impl<'t> Table<'t> {
    /// Describes a table in memory.
    fn new(file: &'t str, options: &'t LoadOptions) -> Table<'t> {
        Table { file, format: None, options, limit: None, text: 0, row: 0 }
    }

    fn failed(&self, error: impl Display) -> LoadError {
        let (file, message) = (self.file.to_owned(), error.to_string());
        match self.format {
            Some(format) => LoadError::Columnar { file, format, message },
            None => LoadError::Batches { file, message },
        }
    }

    /// Lists the columns that a layout uses, ascending, and checks that their values are names.
    fn used(&self, schema: &Schema, layout: &Layout) -> Result<Vec<usize>, LoadError> {
        let mut used = Vec::new();
        let kinds = layout.nodes.as_ref().and_then(|nodes| nodes.kind.as_ref()).map(|kind| kind.column);
        let file = || self.file.to_owned();
        for column in columns_of(layout) {
            let Some(field) = schema.fields().get(column) else {
                let (columns, column) = (owned(&names(schema)), (column + 1).to_string());
                return Err(LoadError::NoSuchColumn { file: file(), column, columns, remedy: None });
            };
            if !is_read(field.data_type(), Some(column) == kinds) {
                let (column, found) = (column_name(field.name()), column_name(&field.data_type().to_string()));
                return Err(LoadError::ColumnType { file: file(), column, found });
            }
            used.push(column);
        }
        used.sort_unstable();
        used.dedup();
        Ok(used)
    }

    /// Finds out what the columns mean.
    fn understood(&self, schema: &Schema, names: &[&str]) -> Result<Layout, LoadError> {
        if let Some(columns) = &self.options.columns {
            return places(self.file, columns, names).map(plain);
        }
        match header::read(names) {
            Some(Reading::Named { layout, .. }) => return Ok(layout),
            Some(Reading::NoRelation { head, tail }) => {
                let ends = [head, tail].map(|at| column_name(names[at]));
                return Err(LoadError::NoRelation { file: self.file.to_owned(), ends, columns: owned(names) });
            }
            None => {}
        }
        // Three columns with names that say nothing, such as 0, 1 and 2.
        let all: Vec<usize> = (0..names.len()).filter(|&at| !is_index(names[at])).collect();
        match all[..] {
            [head, relation, tail] if all.iter().all(|&at| is_read(schema.field(at).data_type(), false)) => {
                Ok(plain([head, relation, tail]))
            }
            _ => Err(self.unknown_columns(schema, names)),
        }
    }

    /// Says that the names of the columns do not tell, and suggests the first three that could be
    /// names.
    fn unknown_columns(&self, schema: &Schema, names: &[&str]) -> LoadError {
        let is_name = |&at: &usize| {
            let data_type = schema.field(at).data_type();
            is_read(data_type, false) && *data_type != DataType::Null && !is_index(names[at])
        };
        let text: Vec<usize> = (0..names.len()).filter(is_name).take(3).collect();
        let columns = text.try_into().unwrap_or([0, 1, 2]);
        let remedy = Box::new(Remedy::Columns { columns, names: owned(names), or_quote: false });
        LoadError::UnknownColumns { file: self.file.to_owned(), columns: owned(names), remedy }
    }

    /// Passes each row of a batch, which has the columns `used`, to `each`, with its number, from 1.
    fn rows(
        &mut self,
        batch: &RecordBatch,
        used: &[usize],
        mut each: impl FnMut(u64, Row<'_>) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        let columns: Option<Vec<Cells<'_>>> = batch.columns().iter().map(|column| Cells::new(column)).collect();
        let columns = columns.filter(|columns| columns.len() == used.len());
        let columns = columns.ok_or_else(|| self.failed("the columns are not those of the schema"))?;
        let (mut texts, mut present) = (vec![String::new(); used.len()], vec![false; used.len()]);
        for row in 0..batch.num_rows() {
            self.row += 1;
            for ((text, present), column) in texts.iter_mut().zip(&mut present).zip(&columns) {
                text.clear();
                *present = column.write(row, text);
                self.text += text.len() as u64 + 1;
            }
            if let Some(limit) = self.options.max_bytes.filter(|limit| self.text > *limit) {
                return Err(LoadError::TooMuch { file: self.file.to_owned(), limit });
            }
            if self.limit.is_some_and(|limit| self.text > limit) {
                let message = "its names come to more than 256 MiB and 200 times the size of the file, expected less";
                return Err(self.failed(message));
            }
            each(self.row, Row { used, texts: &texts, present: &present })?;
        }
        Ok(())
    }
}

/// The cells of a row.
#[derive(Copy, Clone)]
struct Row<'r> {
    /// The columns that are read, ascending.
    used: &'r [usize],
    /// Their texts.
    texts: &'r [String],
    /// Whether they have one.
    present: &'r [bool],
}

impl<'r> Row<'r> {
    /// Returns the text of a column. A null has none.
    fn cell(self, column: usize) -> Option<&'r str> {
        let at = self.used.binary_search(&column).ok()?;
        self.present[at].then_some(self.texts[at].as_str())
    }
}

/// Lists the names of the columns.
fn names(schema: &Schema) -> Vec<&str> {
    schema.fields().iter().map(|field| field.name().as_str()).collect()
}

/// Tells whether a column is the index of a pandas frame, which pandas writes beside its columns.
fn is_index(name: &str) -> bool {
    let number = name.strip_prefix("__index_level_").and_then(|rest| rest.strip_suffix("__"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
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

/// Tells whether values of a type are names. A column without values may have the type Null.
fn is_read(data_type: &DataType, or_list: bool) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_read(values, false),
        DataType::List(field) | DataType::LargeList(field) if or_list => is_read(field.data_type(), false),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => true,
        other => other.is_integer(),
    }
}

/// A column of a batch.
enum Cells<'a> {
    Nulls,
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
            DataType::Null => Some(Cells::Nulls),
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

    /// Adds the text of a row. Returns whether there is one: a null has none.
    fn write(&self, row: usize, text: &mut String) -> bool {
        let value = match self {
            Cells::Nulls => None,
            Cells::Text(array) => array.is_valid(row).then(|| array.value(row)),
            Cells::LargeText(array) => array.is_valid(row).then(|| array.value(row)),
            Cells::TextView(array) => array.is_valid(row).then(|| array.value(row)),
            Cells::Numbers(numbers) => {
                // Writing to a string does not fail.
                return numbers[row].is_some_and(|number| write!(text, "{number}").is_ok());
            }
            Cells::Dictionary(places, values) => return places[row].is_some_and(|at| values.write(at, text)),
            Cells::Lists(ranges, values) => {
                for at in ranges[row].clone() {
                    text.push_str(if at > ranges[row].start { "|" } else { "" });
                    values.write(at, text);
                }
                return !ranges[row].is_empty();
            }
        };
        text.push_str(value.unwrap_or_default());
        value.is_some()
    }
}

fn numbers<'a, T: ArrowPrimitiveType<Native: Into<i128>>>(array: &'a dyn Array) -> Option<Cells<'a>> {
    let array = array.as_primitive_opt::<T>()?;
    Some(Cells::Numbers(array.iter().map(|number| number.map(Into::into)).collect()))
}
