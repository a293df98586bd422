//! Results: rows under columns, which other libraries take without a copy and people read as they are.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Cursor;
use std::path::PathBuf;

use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use flock_kg::model::files::write_atomically;
use flock_kg::records::{Cell, Column, OutputFormat, RecordTable, RecordTableBuilder, RecordWriter, RowSink};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyIndexError, PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList, PySlice, PyTuple};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arrow;
use crate::fault::Fault;
use crate::objects::object;

/// The most rows that a table shows of itself.
const SHOWN_ROWS: usize = 20;

/// How a table is shown, and what it says besides its rows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct About {
    /// What stands above it.
    pub title: String,
    /// Columns that people need not see.
    pub quiet: Vec<String>,
    /// How names are shown, where that is not the full name.
    pub shown: HashMap<String, String>,
    /// Everything else that is known, for programs.
    pub info: Value,
}

/// Rows under columns: what most calls return.
///
/// pandas, polars, pyarrow and duckdb take it without a copy (the Arrow PyCapsule interface), and it needs none of them:
///
/// >>> import flock_kg as fk
/// >>> table = fk.Graph.from_triples([("Lisbon", "capital of", "Portugal")]).triples()
/// >>> len(table), table.columns, table[0]["tail"], table["head"]
/// (1, ['head', 'relation', 'tail'], 'Portugal', ['Lisbon'])
/// >>> [row["relation"] for row in table]
/// ['capital of']
///
/// It shows the first rows of itself, with the names that people read; programs read full names.
#[pyclass(frozen, module = "flock_kg")]
pub struct Table {
    pub records: RecordTable,
    pub about: About,
}

impl Table {
    /// Makes a table of what `write` writes.
    pub fn build(
        columns: Vec<Column>,
        about: About,
        write: impl FnOnce(&mut dyn RowSink) -> Result<(), flock_kg::records::RecordError>,
    ) -> Result<Table, Fault> {
        let mut builder = RecordTableBuilder::new(columns)?;
        write(&mut builder)?;
        Ok(Table { records: builder.finish()?, about })
    }

    fn place(&self, column: &str) -> Option<usize> {
        self.records.columns().iter().position(|c| c.name == column)
    }

    fn dict<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (at, column) in self.records.columns().iter().enumerate() {
            dict.set_item(column.name.as_ref(), cell(py, &self.records.cell(row, at))?)?;
        }
        Ok(dict)
    }

    /// The columns that people see, and their places.
    fn visible(&self) -> Vec<(usize, &Column)> {
        let columns = self.records.columns().iter().enumerate();
        columns.filter(|(_, c)| !self.about.quiet.iter().any(|quiet| *quiet == c.name)).collect()
    }

    /// A cell as people read it: names as they are shown.
    fn friendly<'a>(&'a self, row: usize, column: usize) -> Cell<'a> {
        match self.records.cell(row, column) {
            Cell::Text(name) => match self.about.shown.get(name.as_ref()) {
                Some(shown) => Cell::from(shown.as_str()),
                None => Cell::Text(name),
            },
            cell => cell,
        }
    }

    fn text(&self) -> Result<String, Fault> {
        let visible = self.visible();
        let columns = visible.iter().map(|(_, c)| (*c).clone()).collect();
        let mut out = RecordWriter::new(OutputFormat::Table, columns, Vec::new())?;
        for row in 0..self.records.len().min(SHOWN_ROWS) {
            let cells: Vec<Cell<'_>> = visible.iter().map(|(at, _)| self.friendly(row, *at)).collect();
            out.row(&cells)?;
        }
        let rows = String::from_utf8_lossy(&out.finish()?).trim_end().to_string();
        let title = if self.about.title.is_empty() { String::new() } else { format!("{}\n", self.about.title) };
        Ok(format!("{title}{rows}{}", self.rest()))
    }

    /// How many rows are not shown.
    fn rest(&self) -> String {
        match self.records.len().saturating_sub(SHOWN_ROWS) {
            0 => String::new(),
            rest => format!("\n… {rest} more of {} rows", self.records.len()),
        }
    }

    pub fn html(&self) -> String {
        let visible = self.visible();
        let mut out = String::from("<table class=\"flock-kg\">");
        if !self.about.title.is_empty() {
            _ = write!(out, "<caption style=\"text-align:left\">{}</caption>", escape(&self.about.title));
        }
        let align = |column: &Column| if column.is_numeric() { "right" } else { "left" };
        out += "<thead><tr>";
        for (_, column) in &visible {
            _ = write!(out, "<th style=\"text-align:{}\">{}</th>", align(column), escape(&column.name));
        }
        out += "</tr></thead><tbody>";
        for row in 0..self.records.len().min(SHOWN_ROWS) {
            out += "<tr>";
            for (at, column) in &visible {
                let cell = self.friendly(row, *at);
                let text = escape(&column.shown(&cell));
                _ = write!(out, "<td style=\"text-align:{}\">{text}</td>", align(column));
            }
            out += "</tr>";
        }
        out += "</tbody></table>";
        if self.records.len() > SHOWN_ROWS {
            _ = write!(out, "<p>{}</p>", escape(self.rest().trim()));
        }
        out
    }
}

/// Text inside HTML.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c => out.push(c),
        }
    }
    out
}

fn cell<'py>(py: Python<'py>, cell: &Cell<'_>) -> PyResult<Bound<'py, PyAny>> {
    match cell {
        Cell::None => Ok(py.None().into_bound(py)),
        Cell::Text(text) => text.as_ref().into_bound_py_any(py),
        Cell::Integer(n) => n.into_bound_py_any(py),
        Cell::Number(x) => x.into_bound_py_any(py),
        Cell::Truth(truth) => truth.into_bound_py_any(py),
    }
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.records.columns().iter().map(|c| c.name.to_string()).collect()
    }

    /// Whatever is known besides the rows: settings, the model, counts.
    #[getter]
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, &self.about.info)
    }

    fn __len__(&self) -> usize {
        self.records.len()
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, len) = (key.py(), self.records.len());
        if let Ok(name) = key.extract::<String>() {
            let Some(at) = self.place(&name) else {
                let columns = self.columns().join(", ");
                return Err(PyKeyError::new_err(format!("no column {name:?}, expected one of {columns}")));
            };
            let list = PyList::empty(py);
            (0..len).try_for_each(|row| list.append(cell(py, &self.records.cell(row, at))?))?;
            return list.into_bound_py_any(py);
        }
        if let Ok(slice) = key.cast::<PySlice>() {
            let at = slice.indices(len as isize)?;
            if at.step == 1 {
                let records = self.records.slice(at.start as usize, at.slicelength);
                return Table { records, about: self.about.clone() }.into_bound_py_any(py);
            }
            return Err(PyTypeError::new_err("a slice of a Table has step 1; hint: table.to_dicts()[::2]"));
        }
        let row: isize =
            key.extract().map_err(|_| PyTypeError::new_err("expected a row number, a slice or a column name"))?;
        let at = if row < 0 { row + len as isize } else { row };
        if !(0..len as isize).contains(&at) {
            return Err(PyIndexError::new_err(format!("row {row} of {len}")));
        }
        self.dict(py, at as usize)?.into_bound_py_any(py)
    }

    fn __iter__(table: PyRef<'_, Self>) -> TableRows {
        TableRows { table: table.into(), next: 0 }
    }

    /// The rows as dictionaries.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        (0..self.records.len()).try_for_each(|row| list.append(self.dict(py, row)?))?;
        Ok(list)
    }

    /// A frame of pandas.
    fn to_pandas<'py>(table: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        table.py().import("flock_kg._adapters")?.call_method1("to_pandas", (table,))
    }

    /// A frame of polars, which shares the memory.
    fn to_polars<'py>(table: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        table.py().import("flock_kg._adapters")?.call_method1("to_polars", (table,))
    }

    /// A table of pyarrow, which shares the memory.
    fn to_arrow<'py>(table: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        table.py().import("flock_kg._adapters")?.call_method1("to_arrow", (table,))
    }

    /// Writes a file, whole or not at all: .csv, .tsv, .jsonl, .md or .parquet by its name, or as ``format`` says.
    #[pyo3(signature = (path, *, format=None))]
    fn save(&self, py: Python<'_>, path: PathBuf, format: Option<&str>) -> PyResult<()> {
        let work = || -> Result<(), Fault> {
            let format = output_format(&path, format, ", or format=")?;
            let name = path.display().to_string();
            let mut out = RecordWriter::new(format, self.records.columns().to_vec(), Vec::new())?;
            self.records.write(&mut out)?;
            write_atomically(&path, &out.finish()?).map_err(|e| Fault::other(format!("{name}: {e}")))
        };
        py.detach(work).map_err(|fault| fault.raise(py))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer ignore the wish for another schema.
        let _ = requested_schema;
        arrow::stream(py, &self.records)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::schema(py, &self.records)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.text().map_err(|fault| fault.raise(py))
    }

    fn _repr_html_(&self) -> String {
        self.html()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let fail = |e: &dyn std::fmt::Display| Fault::other(e.to_string()).raise(py);
        let mut bytes = Vec::new();
        let mut writer = StreamWriter::try_new(&mut bytes, self.records.schema()).map_err(|e| fail(&e))?;
        self.records.batches().iter().try_for_each(|batch| writer.write(batch)).map_err(|e| fail(&e))?;
        writer.finish().map_err(|e| fail(&e))?;
        drop(writer);
        let rest = serde_json::to_string(&(self.records.columns(), &self.about)).map_err(|e| fail(&e))?;
        let make = py.import("flock_kg._flock_kg")?.getattr("_table_from_state")?;
        Ok((make, (PyBytes::new(py, &bytes), rest).into_pyobject(py)?))
    }
}

/// The format of a file, by a word or by the ending of its name. `or` says what else would help.
pub fn output_format(path: &std::path::Path, word: Option<&str>, or: &str) -> Result<OutputFormat, Fault> {
    match word {
        Some(word) => word.parse().map_err(|e: flock_kg::records::UnknownFormat| {
            Fault::argument(e.to_string(), "format= one of csv, tsv, jsonl, md, parquet, table")
        }),
        None => OutputFormat::of_path(path).ok_or_else(|| {
            let message = format!("{}: the ending of the name says no format", path.display());
            Fault::argument(message, format!("a name that ends in .csv, .tsv, .jsonl, .md or .parquet{or}"))
        }),
    }
}

/// The rows of a table, one after the other.
#[pyclass(module = "flock_kg")]
struct TableRows {
    table: Py<Table>,
    next: usize,
}

#[pymethods]
impl TableRows {
    fn __iter__(rows: PyRef<'_, Self>) -> PyRef<'_, Self> {
        rows
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let table = self.table.get();
        if self.next >= table.records.len() {
            return Ok(None);
        }
        self.next += 1;
        table.dict(py, self.next - 1).map(Some)
    }
}

/// A table from its pickle.
#[pyfunction]
pub fn _table_from_state(py: Python<'_>, rows: &[u8], rest: &str) -> PyResult<Table> {
    let make = || -> Result<Table, Fault> {
        let fail = |e: &dyn std::fmt::Display| Fault::other(format!("this is no pickled table: {e}"));
        let (columns, about): (Vec<Column>, About) = serde_json::from_str(rest).map_err(|e| fail(&e))?;
        let reader = StreamReader::try_new(Cursor::new(rows), None).map_err(|e| fail(&e))?;
        let batches = reader.collect::<Result<Vec<_>, _>>().map_err(|e| fail(&e))?;
        Ok(Table { records: RecordTable::new(columns, batches)?, about })
    };
    make().map_err(|fault| fault.raise(py))
}

/// A table of columns of texts, for frames that cannot hand themselves over.
#[pyfunction]
pub fn _table_of_texts(py: Python<'_>, names: Vec<String>, columns: Vec<Vec<Option<String>>>) -> PyResult<Table> {
    let rows = columns.iter().map(Vec::len).min().unwrap_or(0);
    let titles = names.into_iter().map(Column::text).collect();
    let table = Table::build(titles, About::default(), |out| {
        (0..rows).try_for_each(|row| {
            let cells: Vec<Cell<'_>> = columns.iter().map(|column| Cell::from(column[row].as_deref())).collect();
            out.row(&cells)
        })
    });
    table.map_err(|fault| fault.raise(py))
}
