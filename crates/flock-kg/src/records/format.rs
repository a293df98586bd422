//! The formats of records, by name and by file extension.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A format of records.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum OutputFormat {
    /// Columns for people, aligned and rounded.
    #[default]
    Table,
    /// Comma-separated values with a header.
    Csv,
    /// Tab-separated values with a header; `\t`, `\n`, `\r` and `\\` stand for a tab, line ends and a backslash.
    Tsv,
    /// JSON lines: one object per row.
    Jsonl,
    /// A Markdown table.
    Md,
    /// Parquet (feature `parquet`).
    Parquet,
}

/// A text that names no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown output format {name:?}, expected table, csv, tsv, jsonl, md or parquet")]
pub struct UnknownFormat {
    /// The text.
    pub name: String,
}

impl OutputFormat {
    /// All of them.
    pub const ALL: [OutputFormat; 6] = [
        OutputFormat::Table,
        OutputFormat::Csv,
        OutputFormat::Tsv,
        OutputFormat::Jsonl,
        OutputFormat::Md,
        OutputFormat::Parquet,
    ];

    /// Its name, as [`FromStr`] reads it.
    pub fn name(self) -> &'static str {
        match self {
            OutputFormat::Table => "table",
            OutputFormat::Csv => "csv",
            OutputFormat::Tsv => "tsv",
            OutputFormat::Jsonl => "jsonl",
            OutputFormat::Md => "md",
            OutputFormat::Parquet => "parquet",
        }
    }

    /// The format that the extension of a file name says: `answers.csv`. None for an extension that says nothing.
    pub fn of_path(path: &Path) -> Option<OutputFormat> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "txt" => OutputFormat::Table,
            "tab" => OutputFormat::Tsv,
            "json" | "ndjson" => OutputFormat::Jsonl,
            "pq" => OutputFormat::Parquet,
            other => return other.parse().ok().filter(|format| *format != OutputFormat::Table),
        })
    }

    /// Whether a terminal can show it.
    pub fn is_text(self) -> bool {
        self != OutputFormat::Parquet
    }

    /// Whether this program was built with it.
    pub fn is_built(self) -> bool {
        cfg!(feature = "parquet") || self != OutputFormat::Parquet
    }
}

impl fmt::Display for OutputFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for OutputFormat {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<OutputFormat, UnknownFormat> {
        let name = match text {
            "markdown" => "md",
            "json" | "ndjson" => "jsonl",
            other => other,
        };
        let found = OutputFormat::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| UnknownFormat { name: text.to_string() })
    }
}
