//! Rows of three names that a caller gives: a frame of any library, or an iterable of tuples.

use flock_kg::graph::{Column, Columns, LoadOptions, for_each_row};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

use crate::arrow;
use crate::fault::Fault;

/// Head, relation and tail; nothing where it was left open.
pub type Row = [Option<String>; 3];

/// Reads what a caller gave. `what` names it in errors.
pub fn rows(given: &Bound<'_, PyAny>, columns: Option<Columns>, what: &str) -> PyResult<Vec<Row>> {
    let py = given.py();
    let frame = py.import("flock_kg._adapters")?.call_method1("frame", (given,))?;
    let mut rows: Vec<Row> = Vec::new();
    if !frame.is_none() {
        let reader = arrow::reader(&frame)?;
        let options = LoadOptions { columns, ..LoadOptions::default() };
        let read = py
            .detach(|| for_each_row(what, reader, &options, |row| rows.push(row.map(|cell| cell.map(str::to_string)))));
        read.map_err(|e| Fault::from(e).raise(py))?;
        return Ok(rows);
    }
    for (at, item) in given.try_iter()?.enumerate() {
        let item = item?;
        let row = row(&item).map_err(|found| {
            let message = format!("{what}: row {at} is {found}, expected head, relation and tail");
            Fault::argument(message, "a frame, or tuples of three texts").raise(py)
        })?;
        rows.push(row);
    }
    Ok(rows)
}

/// Three cells: texts or whole numbers, nothing for `None`. If it is something else, says what.
fn row(item: &Bound<'_, PyAny>) -> Result<Row, String> {
    let kind =
        |item: &Bound<'_, PyAny>| item.get_type().name().map_or_else(|_| "?".to_string(), |name| name.to_string());
    // A text is a sequence too, of texts.
    if item.is_instance_of::<PyString>() {
        return Err("one text".to_string());
    }
    let cells: Option<Vec<Bound<'_, PyAny>>> =
        item.try_iter().ok().and_then(|cells| cells.collect::<PyResult<_>>().ok());
    let Some(cells) = cells else { return Err(format!("of type {}", kind(item))) };
    let [head, relation, tail] =
        <[Bound<'_, PyAny>; 3]>::try_from(cells).map_err(|cells| format!("{} fields", cells.len()))?;
    let cell = |item: &Bound<'_, PyAny>| cell(item).ok_or_else(|| format!("one with a field of type {}", kind(item)));
    Ok([cell(&head)?, cell(&relation)?, cell(&tail)?])
}

fn cell(item: &Bound<'_, PyAny>) -> Option<Option<String>> {
    if item.is_none() {
        return Some(None);
    }
    if let Ok(text) = item.extract::<String>() {
        return Some(Some(text));
    }
    if item.is_instance_of::<PyBool>() {
        return None;
    }
    item.extract::<i64>().ok().map(|number| Some(number.to_string()))
}

/// Columns as a caller gives them: names, or numbers from 0.
pub fn columns(given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Columns>> {
    let Some(given) = given else { return Ok(None) };
    let wrong = || Fault::argument("columns= is no choice of three", "columns=(0, 1, 2), or three names");
    let items: Vec<Bound<'_, PyAny>> = given.extract().map_err(|_| wrong().raise(given.py()))?;
    let column = |item: &Bound<'_, PyAny>| match item.extract::<usize>() {
        Ok(number) => Ok(Column::Number(number)),
        Err(_) => item.extract::<String>().map(Column::Name).map_err(|_| wrong().raise(given.py())),
    };
    let [head, relation, tail] = &items[..] else { return Err(wrong().raise(given.py())) };
    Ok(Some(Columns { head: column(head)?, relation: column(relation)?, tail: column(tail)? }))
}
