//! Where data goes, and in which format: standard output or a file; a table for people, or records to take away.
//!
//! Data on standard output is flushed at once: whoever reads it hears of it when it is there. A file gets its name when it is
//! complete; until then its rows are in `FILE.partial`, where they also stay if the command is cut off.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use flock_kg::records::{Cell, Column, OutputFormat, RecordError, RecordWriter, TableStyle};
use serde::Serialize;
use serde_json::Value;

use crate::shared::failure::{Failure, error};

/// A line of data.
pub fn println(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// Text as it is.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// The values of `--output`.
pub fn output_format() -> impl TypedValueParser<Value = OutputFormat> {
    let value = |format: OutputFormat| {
        let value = PossibleValue::new(format.name());
        match format {
            OutputFormat::Md => value.alias("markdown"),
            OutputFormat::Jsonl => value.alias("json").alias("ndjson"),
            _ => value,
        }
    };
    PossibleValuesParser::new(OutputFormat::ALL.map(value)).try_map(|text| text.parse::<OutputFormat>())
}

/// Format and place of the output.
#[derive(clap::Args, Debug, Clone, Default)]
pub struct OutputArgs {
    /// Format of the output [default: by the ending of --out, else table]
    #[arg(long, value_name = "FORMAT", value_parser = output_format())]
    pub output: Option<OutputFormat>,
    /// Write here instead of to standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

impl OutputArgs {
    /// What was asked for: by name, else by the ending of the file.
    pub fn format(&self) -> OutputFormat {
        let by_ending = || self.out.as_deref().and_then(OutputFormat::of_path);
        self.output.or_else(by_ending).unwrap_or_default()
    }

    /// Refuses what cannot work, before the work is done.
    pub fn check(&self) -> Result<(), Failure> {
        check_format(self.format(), self.out.as_deref())
    }

    /// Opens the output for text.
    pub fn text(&self) -> Result<Output, Failure> {
        self.check()?;
        Output::new(self.out.as_deref())
    }

    /// Opens the output for records.
    pub fn records(&self, columns: Vec<Column>) -> Result<Records, Failure> {
        self.check()?;
        let out = Output::new(self.out.as_deref())?;
        let style = if self.out.is_some() { TableStyle::default() } else { style() };
        Ok(Records(RecordWriter::with_style(self.format(), columns, out, style)?))
    }
}

/// The name of a file that belongs to another: `FILE` and an ending.
pub fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

/// Refuses Parquet on a terminal, and a directory as a file.
pub fn check_format(format: OutputFormat, out: Option<&Path>) -> Result<(), Failure> {
    if let Some(out) = out.filter(|out| out.is_dir() || out.file_name().is_none()) {
        return Err(Failure::Error(format!("--out {}: is a directory, expected a file", out.display())));
    }
    if !format.is_built() {
        return Err(error(RecordError::NotBuilt { format }));
    }
    if !format.is_text() && out.is_none() && io::stdout().is_terminal() {
        return Err(Failure::Error(format!(
            "{format} is not text, and standard output is a terminal; hint: --out FILE.{format}, or > FILE.{format}"
        )));
    }
    Ok(())
}

/// Writes records to standard output.
pub fn print_records<'a>(
    format: OutputFormat,
    columns: Vec<Column>,
    rows: impl IntoIterator<Item = Vec<Cell<'a>>>,
) -> Result<(), Failure> {
    let mut records = OutputArgs { output: Some(format), out: None }.records(columns)?;
    for row in rows {
        records.row(&row)?;
    }
    records.finish()
}

/// Writes a report as records of facts: each number or text of its JSON is a row, named by the way to it (`graph.degree.max`).
pub fn facts(output: &OutputArgs, report: &impl Serialize) -> Result<(), Failure> {
    let report = serde_json::to_value(report).map_err(error)?;
    let mut records = output.records(vec![Column::text("fact"), Column::text("value")])?;
    let mut rest = vec![(String::new(), &report)];
    while let Some((name, value)) = rest.pop() {
        let join = |key: &str| if name.is_empty() { key.to_string() } else { format!("{name}.{key}") };
        match value {
            Value::Object(fields) => rest.extend(fields.iter().rev().map(|(key, value)| (join(key), value))),
            Value::Array(items) => {
                rest.extend(items.iter().enumerate().rev().map(|(i, value)| (join(&(i + 1).to_string()), value)))
            }
            Value::Null => records.row(&[name.into(), Cell::None])?,
            Value::String(text) => records.row(&[name.into(), text.as_str().into()])?,
            other => records.row(&[name.into(), other.to_string().into()])?,
        }
    }
    records.finish()
}

/// The width and colours of standard output, if it is a terminal.
pub fn style() -> TableStyle {
    if !io::stdout().is_terminal() {
        return TableStyle::default();
    }
    let width = console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
    let colours = console::colors_enabled() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    TableStyle { width, colours }
}

/// Records on their way to standard output or into a file.
#[derive(Debug)]
pub struct Records(RecordWriter<Output>);

impl Records {
    /// The writer, for what the library writes itself.
    pub fn writer(&mut self) -> &mut RecordWriter<Output> {
        &mut self.0
    }

    /// Writes a row.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), Failure> {
        Ok(self.0.row(cells)?)
    }

    /// Lets the reader have what there is.
    pub fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.0.flush()?)
    }

    /// Completes the output.
    pub fn finish(self) -> Result<(), Failure> {
        self.0.finish()?.finish()
    }
}

/// Standard output, or a file that gets its name at the end.
#[derive(Debug)]
pub struct Output {
    file: Option<(File, PathBuf, PathBuf)>, // its name until the end, and its name
}

impl Output {
    /// Opens `out`, or standard output.
    pub fn new(out: Option<&Path>) -> Result<Output, Failure> {
        let Some(path) = out else { return Ok(Output { file: None }) };
        let partial = beside(path, ".partial");
        let file = File::create(&partial)
            .map_err(|e| Failure::Error(format!("--out {}: cannot write: {e}", partial.display())))?;
        Ok(Output { file: Some((file, partial, path.to_path_buf())) })
    }

    /// Completes the output: a file gets its name.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.flush()?;
        let Some((file, partial, path)) = self.file else { return Ok(()) };
        let written = file.sync_all().and_then(|()| fs::rename(&partial, &path));
        written.map_err(|e| Failure::Error(format!("--out {}: cannot write: {e}", path.display())))
    }

    /// A failure of the file is told with its name.
    fn named(&self, e: io::Error) -> io::Error {
        match &self.file {
            Some((_, partial, _)) => {
                io::Error::other(FileError(format!("--out {}: cannot write: {e}", partial.display())))
            }
            None => e,
        }
    }
}

/// A file of `--out` that cannot be written.
#[derive(Debug)]
pub struct FileError(String);

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FileError {}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.file {
            Some((file, ..)) => file.write(bytes),
            None => io::stdout().write(bytes),
        };
        written.map_err(|e| self.named(e))
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.file {
            Some(_) => Ok(()),
            None => io::stdout().flush(),
        }
    }
}

impl From<RecordError> for Failure {
    fn from(e: RecordError) -> Failure {
        match e {
            RecordError::Io(e) => e.into(),
            other => error(other),
        }
    }
}
