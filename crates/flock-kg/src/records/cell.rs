//! Columns and cells: what a record holds, and how people see it.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::table::grouped;

/// What the cells of a column hold.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnKind {
    /// Text: names, labels, reasons.
    Text,
    /// A whole number: a rank, a count.
    Integer,
    /// A number: a score, a share.
    Number,
    /// Yes or no.
    Truth,
}

impl fmt::Display for ColumnKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ColumnKind::Text => "text",
            ColumnKind::Integer => "a whole number",
            ColumnKind::Number => "a number",
            ColumnKind::Truth => "yes or no",
        })
    }
}

/// How a table on a terminal with colours shows the cells of a column.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// As other text.
    #[default]
    Plain,
    /// As what the reader looks for: a score.
    Score,
    /// As a side remark.
    Dim,
    /// A truth that is news when it is false: `new` stands out, `known` does not.
    NewsIfFalse,
}

/// A column: its name and kind, and how tables and Markdown show its cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// The name: a header, a key of JSON objects, a column of Parquet.
    pub name: Cow<'static, str>,
    /// What its cells hold.
    pub kind: ColumnKind,
    /// Digits after the point that tables and Markdown show.
    pub digits: usize,
    /// Whether tables and Markdown show the sign of positive numbers.
    pub signed: bool,
    /// What tables and Markdown show for true and for false.
    pub words: [Cow<'static, str>; 2],
    /// Its colour.
    pub tone: Tone,
}

impl Column {
    /// A column of a kind. Numbers show 4 digits after the point, truths `yes` or `no`.
    pub fn new(name: impl Into<Cow<'static, str>>, kind: ColumnKind) -> Column {
        let words = [Cow::Borrowed("yes"), Cow::Borrowed("no")];
        Column { name: name.into(), kind, digits: 4, signed: false, words, tone: Tone::Plain }
    }

    /// A column of text.
    pub fn text(name: impl Into<Cow<'static, str>>) -> Column {
        Column::new(name, ColumnKind::Text)
    }

    /// A column of whole numbers.
    pub fn integer(name: impl Into<Cow<'static, str>>) -> Column {
        Column::new(name, ColumnKind::Integer)
    }

    /// A column of numbers.
    pub fn number(name: impl Into<Cow<'static, str>>) -> Column {
        Column::new(name, ColumnKind::Number)
    }

    /// A column of truths.
    pub fn truth(name: impl Into<Cow<'static, str>>) -> Column {
        Column::new(name, ColumnKind::Truth)
    }

    /// The same with so many digits after the point, where people read it.
    pub fn digits(mut self, digits: usize) -> Column {
        self.digits = digits;
        self
    }

    /// The same with the sign of positive numbers, where people read it.
    pub fn signed(mut self) -> Column {
        self.signed = true;
        self
    }

    /// The same with words for true and false, where people read it. Either may be empty.
    pub fn words(mut self, yes: impl Into<Cow<'static, str>>, no: impl Into<Cow<'static, str>>) -> Column {
        self.words = [yes.into(), no.into()];
        self
    }

    /// The same in a colour.
    pub fn tone(mut self, tone: Tone) -> Column {
        self.tone = tone;
        self
    }

    /// Whether its cells keep to the right.
    pub fn is_numeric(&self) -> bool {
        matches!(self.kind, ColumnKind::Integer | ColumnKind::Number)
    }

    /// A cell as people read it, control characters included.
    pub fn shown<'a>(&self, cell: &'a Cell<'_>) -> Cow<'a, str> {
        match cell {
            Cell::None => Cow::Borrowed(if self.is_numeric() { "–" } else { "" }),
            Cell::Text(text) => Cow::Borrowed(text),
            Cell::Truth(truth) => Cow::Owned(self.words[usize::from(!truth)].to_string()),
            Cell::Integer(n) if self.kind == ColumnKind::Integer => {
                Cow::Owned(format!("{}{}", if *n < 0 { "-" } else { "" }, grouped(n.unsigned_abs())))
            }
            Cell::Integer(n) => Cow::Owned(self.rounded(*n as f64)),
            Cell::Number(x) => Cow::Owned(self.rounded(*x)),
        }
    }

    /// 0.1234, or 1.2e-7 where that would show nothing.
    fn rounded(&self, x: f64) -> String {
        let sign = if self.signed && x >= 0.0 { "+" } else { "" };
        let is_small = x != 0.0 && x.abs() < 0.1f64.powi(self.digits as i32);
        if is_small && !self.signed { format!("{x:.1e}") } else { format!("{sign}{x:.*}", self.digits) }
    }
}

/// One value of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Nothing: an empty field, `null`.
    None,
    /// Text.
    Text(Cow<'a, str>),
    /// A whole number.
    Integer(i64),
    /// A number. JSON has no NaN and no infinities: there they are `null`.
    Number(f64),
    /// Yes or no.
    Truth(bool),
}

impl Cell<'_> {
    pub(super) fn kind(&self) -> Option<ColumnKind> {
        match self {
            Cell::None => None,
            Cell::Text(_) => Some(ColumnKind::Text),
            Cell::Integer(_) => Some(ColumnKind::Integer),
            Cell::Number(_) => Some(ColumnKind::Number),
            Cell::Truth(_) => Some(ColumnKind::Truth),
        }
    }

    /// The cell as programs read it: numbers with all their digits, nothing for nothing.
    pub(super) fn exact(&self) -> Cow<'_, str> {
        match self {
            Cell::None => Cow::Borrowed(""),
            Cell::Text(text) => Cow::Borrowed(text),
            Cell::Integer(n) => Cow::Owned(n.to_string()),
            // The shortest text that reads back as the same number, 1e-300 instead of three hundred zeros.
            Cell::Number(x) => Cow::Owned(format!("{x:?}")),
            Cell::Truth(truth) => Cow::Borrowed(if *truth { "true" } else { "false" }),
        }
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Cell<'a> {
        Cell::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Cell<'_> {
    fn from(text: String) -> Self {
        Cell::Text(Cow::Owned(text))
    }
}

impl<'a> From<Cow<'a, str>> for Cell<'a> {
    fn from(text: Cow<'a, str>) -> Cell<'a> {
        Cell::Text(text)
    }
}

impl From<i64> for Cell<'_> {
    fn from(n: i64) -> Self {
        Cell::Integer(n)
    }
}

impl From<u32> for Cell<'_> {
    fn from(n: u32) -> Self {
        Cell::Integer(n.into())
    }
}

/// Counts above 2⁶³ do not occur: they would not fit in memory.
impl From<u64> for Cell<'_> {
    fn from(n: u64) -> Self {
        Cell::Integer(i64::try_from(n).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Cell<'_> {
    fn from(n: usize) -> Self {
        Cell::from(n as u64)
    }
}

impl From<f64> for Cell<'_> {
    fn from(x: f64) -> Self {
        Cell::Number(x)
    }
}

impl From<bool> for Cell<'_> {
    fn from(truth: bool) -> Self {
        Cell::Truth(truth)
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Cell<'a> {
        value.map_or(Cell::None, Into::into)
    }
}
