//! Tables of results in the form of `--format`.

use std::io::Write;

use clap::ValueEnum;
use flock_kg::eval::Evaluation;
use flock_kg::eval::compare::{Style, compare};
use flock_kg::eval::published::PublishedNumbers;
use flock_kg::eval::sheet::Sheet;

use crate::shared::failure::Failure;
use crate::shared::output::print;
use crate::shared::table::{self, Align, printable};

/// Form of a table.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// Columns
    Table,
    /// Markdown
    Markdown,
    /// Comma-separated
    Csv,
}

/// Prints a table in its form.
pub fn print_sheet(sheet: &Sheet, format: TableFormat) -> Result<(), Failure> {
    match format {
        TableFormat::Markdown => print(&sheet.markdown()),
        TableFormat::Csv => print(&sheet.csv()),
        TableFormat::Table => {
            let mut aligns = vec![Align::Right; sheet.header.len()];
            aligns[0] = Align::Left;
            let rows: Vec<Vec<String>> = std::iter::once(&sheet.header)
                .chain(&sheet.rows)
                .map(|row| row.iter().map(|cell| printable(cell).into_owned()).collect())
                .collect();
            let mut out = std::io::stdout().lock();
            table::write(&mut out, &aligns, &rows)?;
            Ok(out.flush()?)
        }
    }
}

/// Prints our results beside published ones.
pub fn print_beside(results: &[&Evaluation], published: &PublishedNumbers, format: TableFormat) -> Result<(), Failure> {
    let style = match format {
        TableFormat::Table => Style::Marked("", "*"),
        TableFormat::Markdown => Style::Marked("**", "**"),
        TableFormat::Csv => Style::Plain,
    };
    print_sheet(&compare(results, published, style), format)
}
