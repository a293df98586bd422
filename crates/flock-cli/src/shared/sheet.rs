//! Tables of results in the format of `--output`.

use std::io::Write;

use flock_kg::eval::Evaluation;
use flock_kg::eval::compare::{Style, compare};
use flock_kg::eval::published::PublishedNumbers;
use flock_kg::eval::sheet::Sheet;
use flock_kg::records::{OutputFormat, typed};

use crate::shared::failure::Failure;
use crate::shared::output::{output_format, print, print_records, style};
use crate::shared::table::{self, Align, printable};

/// The format of tables on standard output.
#[derive(clap::Args, Debug, Clone, Copy)]
pub struct SheetArgs {
    /// Format of the tables
    // The old spelling stays where a command reads no graph file, whose format --format is everywhere.
    #[arg(long, value_name = "FORMAT", alias = "format", default_value = "table", value_parser = output_format())]
    pub output: OutputFormat,
}

/// Prints a table in its form: the first column to the left, the others to the right.
pub fn print_sheet(sheet: &Sheet, format: OutputFormat) -> Result<(), Failure> {
    print_aligned(sheet, &[Align::Left], format)
}

/// Prints a table in its form. `first` aligns its first columns for people; the others are aligned right.
pub fn print_aligned(sheet: &Sheet, first: &[Align], format: OutputFormat) -> Result<(), Failure> {
    match format {
        OutputFormat::Md => print(&sheet.markdown()),
        OutputFormat::Csv => print(&sheet.csv()),
        OutputFormat::Tsv | OutputFormat::Jsonl | OutputFormat::Parquet => {
            let (columns, rows) = typed(&sheet.header, &sheet.rows);
            print_records(format, columns, rows)
        }
        OutputFormat::Table => {
            let mut aligns = vec![Align::Right; sheet.header.len()];
            aligns.iter_mut().zip(first).for_each(|(align, first)| *align = *first);
            let rows: Vec<Vec<String>> = std::iter::once(&sheet.header)
                .chain(&sheet.rows)
                .map(|row| row.iter().map(|cell| printable(cell).into_owned()).collect())
                .collect();
            let mut out = std::io::stdout().lock();
            table::write_titled(&mut out, &aligns, &rows, style())?;
            Ok(out.flush()?)
        }
    }
}

/// Prints our results beside published ones.
pub fn print_beside(
    results: &[&Evaluation],
    published: &PublishedNumbers,
    format: OutputFormat,
) -> Result<(), Failure> {
    let style = match format {
        OutputFormat::Table => Style::Marked("", "*"),
        OutputFormat::Md => Style::Marked("**", "**"),
        _ => Style::Plain,
    };
    print_sheet(&compare(results, published, style), format)
}
