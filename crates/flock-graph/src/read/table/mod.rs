//! Tables: rows whose columns are head, relation and tail, or describe nodes.
//!
//! [`Plan::new`] decides what the columns mean, before the first row is read: the caller may have
//! said so, the first row may be a header in known words (`header.rs`), or look like one
//! (`evidence.rs`). [`Emitter`] turns the cells of a row into triples and labels. `rows.rs` cuts
//! TSV and CSV into rows; `json.rs` and `arrow.rs` read the other tables.

pub(crate) mod columns;
mod emit;
pub(crate) mod evidence;
mod header;
pub(crate) mod json;
mod kgtk;
pub(crate) mod report;

#[cfg(feature = "parquet")]
pub(crate) mod arrow;

pub(crate) use emit::{Emitter, checked};
pub(crate) use evidence::Sample;
pub(crate) use header::{Layout, TripleColumns};

use super::LoadOptions;
use super::error::{LoadError, Remedy};
use crate::quote::column_name;
use columns::{Column, Columns};
use header::Reading;
use report::{HeaderReason, TableReport};

/// How to read the rows of a table.
pub(crate) struct Plan {
    pub(crate) layout: Layout,
    /// Whether rows must have exactly three fields.
    pub(crate) exact: bool,
    /// How the table was understood. `header` says whether to leave out the first row.
    pub(crate) report: TableReport,
}

impl Plan {
    /// Decides how to read TSV or CSV, by the options and the first rows.
    pub(crate) fn new(file: &str, sample: &Sample, options: &LoadOptions) -> Result<Plan, LoadError> {
        let first: Option<Vec<&str>> = sample.rows.first().map(|row| row.iter().map(String::as_str).collect());
        let fields: &[&str] = first.as_deref().unwrap_or(&[]);
        let reading = if options.header == Some(false) { None } else { header::read(fields) };
        if let Some(columns) = &options.columns {
            return Plan::chosen(file, columns, fields, reading.is_some(), options.header);
        }
        let told = options.header == Some(true);
        let words = if told { HeaderReason::Told } else { HeaderReason::Words };
        match reading {
            Some(Reading::Named { layout, sure }) => {
                let comes_again = || sample.rows.len() < 2 || sample.comes_again(&sample.rows[0]);
                if sure || told {
                    return Ok(Plan::with_header(layout, fields, words));
                }
                if !comes_again() {
                    return Ok(Plan::with_header(layout, fields, HeaderReason::Evidence));
                }
            }
            Some(Reading::NoRelation { head, tail }) => {
                return Err(LoadError::NoRelation {
                    file: file.to_owned(),
                    ends: [head, tail].map(|at| column_name(fields[at])),
                    columns: owned(fields),
                });
            }
            None => {}
        }
        let reason = if told {
            Some(HeaderReason::Told)
        } else {
            (options.header.is_none() && sample.first_is_header()).then_some(HeaderReason::Evidence)
        };
        let layout = plain([0, 1, 2]);
        let report = TableReport::new(&layout, reason.is_some().then_some(fields), fields.len().max(3), reason);
        Ok(Plan { layout, exact: true, report })
    }

    fn with_header(layout: Layout, fields: &[&str], reason: HeaderReason) -> Plan {
        let exact = layout == plain([0, 1, 2]) && fields.len() == 3;
        let report = TableReport::new(&layout, Some(fields), fields.len(), Some(reason));
        Plan { layout, exact, report }
    }

    /// Reads the columns that the caller chose.
    fn chosen(
        file: &str,
        columns: &Columns,
        fields: &[&str],
        named: bool,
        header: Option<bool>,
    ) -> Result<Plan, LoadError> {
        if columns.has_names() && header == Some(false) {
            return Err(LoadError::NamesWithoutHeader { file: file.to_owned() });
        }
        let layout = plain(places(file, columns, fields)?);
        let told = columns.has_names() || header == Some(true);
        let reason = if told { Some(HeaderReason::Told) } else { named.then_some(HeaderReason::Words) };
        let report = TableReport::new(&layout, reason.is_some().then_some(fields), fields.len(), reason);
        Ok(Plan { layout, exact: false, report })
    }
}

/// Returns the places of chosen columns in a table with these names.
pub(crate) fn places(file: &str, columns: &Columns, names: &[&str]) -> Result<[usize; 3], LoadError> {
    let mut places = [0; 3];
    for (place, column) in places.iter_mut().zip(columns.each()) {
        *place = match column {
            Column::Number(at) => *at,
            Column::Name(name) => header::find(names, name).ok_or_else(|| LoadError::NoSuchColumn {
                file: file.to_owned(),
                column: column_name(name),
                columns: owned(names),
                remedy: named_columns(names).map(Box::new),
            })?,
        };
    }
    let [head, relation, tail] = places;
    if head == relation || relation == tail || head == tail {
        return Err(LoadError::SameColumn { file: file.to_owned(), columns: columns.to_string() });
    }
    Ok(places)
}

/// Suggests the columns of triples in a table with these names.
pub(crate) fn named_columns(names: &[&str]) -> Option<Remedy> {
    match header::read(names)? {
        Reading::Named { layout, .. } => {
            let columns = layout.triples?.columns;
            Some(Remedy::Columns { columns, names: owned(names), or_quote: false })
        }
        Reading::NoRelation { .. } => None,
    }
}

/// Suggests columns for rows with more than three fields, judging by the first rows.
pub(crate) fn suggested_columns(sample: &Sample, or_quote: bool) -> Remedy {
    let columns = sample.guess().unwrap_or([0, 1, 2]);
    let names = sample.names().unwrap_or(&[]);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Remedy::Columns { columns, names: owned(&names), or_quote }
}

/// Describes a table of triples in these columns and nothing else.
pub(crate) fn plain(columns: [usize; 3]) -> Layout {
    let triples = Some(TripleColumns { columns, ..TripleColumns::default() });
    Layout { triples, ..Layout::default() }
}

/// Copies names of columns for a message: not too many, and without control characters.
fn owned(names: &[&str]) -> Vec<String> {
    names.iter().take(12).map(|name| column_name(name)).collect()
}
