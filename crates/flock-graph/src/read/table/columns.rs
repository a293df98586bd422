//! Columns that the caller chose for head, relation and tail, by number or by name.

use std::fmt;
use std::str::FromStr;

/// One column of a table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Column {
    /// Its place, from 0.
    Number(usize),
    /// Its name in the header. Case, spaces and punctuation do not count if no column has exactly
    /// this name.
    Name(String),
}

/// The columns of head, relation and tail.
///
/// ```
/// use flock_graph::{Column, Columns};
/// // Numbers in text count from 1, as people count columns.
/// let columns: Columns = "2,predicate,4".parse()?;
/// assert_eq!(columns.head, Column::Number(1));
/// assert_eq!(columns.relation, Column::Name("predicate".to_owned()));
/// assert_eq!(columns.to_string(), "2,predicate,4");
/// # Ok::<(), flock_graph::BadColumns>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Columns {
    /// The column of the head.
    pub head: Column,
    /// The column of the relation.
    pub relation: Column,
    /// The column of the tail.
    pub tail: Column,
}

impl Columns {
    /// Returns the columns in the order head, relation, tail.
    pub fn each(&self) -> [&Column; 3] {
        [&self.head, &self.relation, &self.tail]
    }

    /// Tells whether a column is chosen by name, which takes a header.
    pub fn has_names(&self) -> bool {
        self.each().iter().any(|column| matches!(column, Column::Name(_)))
    }

    /// Returns the places (from 0), if all are numbers.
    pub(crate) fn numbers(&self) -> Option<[usize; 3]> {
        let mut numbers = [0; 3];
        for (number, column) in numbers.iter_mut().zip(self.each()) {
            let Column::Number(at) = column else { return None };
            *number = *at;
        }
        Some(numbers)
    }
}

impl From<[usize; 3]> for Columns {
    /// Chooses columns by place, from 0.
    fn from(numbers: [usize; 3]) -> Columns {
        let [head, relation, tail] = numbers.map(Column::Number);
        Columns { head, relation, tail }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Column::Number(at) => write!(f, "{}", at + 1),
            // A comma would end the name, and digits would be a number.
            Column::Name(name) if name.contains([',', '"']) || name.bytes().all(|b| b.is_ascii_digit()) => {
                write!(f, "\"{}\"", name.replace('"', "\"\""))
            }
            Column::Name(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.head, self.relation, self.tail)
    }
}

/// Text that does not choose three columns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected three different columns, by number counted from 1 or by name, such as 1,2,3 or subject,predicate,object"
)]
pub struct BadColumns;

impl FromStr for Columns {
    type Err = BadColumns;

    /// Reads three columns with commas between them. A name with a comma, and one of digits only,
    /// stands in double quotes.
    fn from_str(text: &str) -> Result<Columns, BadColumns> {
        let mut rest = text;
        let mut columns = Vec::new();
        loop {
            let column = rest.trim_start();
            let (column, after) = match column.strip_prefix('"') {
                Some(quoted) => quoted_name(quoted)?,
                None => {
                    let end = column.find(',').unwrap_or(column.len());
                    (plain(column[..end].trim())?, &column[end..])
                }
            };
            columns.push(column);
            let after = after.trim_start();
            match after.strip_prefix(',') {
                Some(more) => rest = more,
                None if after.is_empty() => break,
                None => return Err(BadColumns),
            }
        }
        let [head, relation, tail] = <[Column; 3]>::try_from(columns).map_err(|_| BadColumns)?;
        if head == relation || relation == tail || head == tail {
            return Err(BadColumns);
        }
        Ok(Columns { head, relation, tail })
    }
}

/// Reads a name up to its closing quote. Returns it and what follows.
fn quoted_name(text: &str) -> Result<(Column, &str), BadColumns> {
    let mut name = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('"').ok_or(BadColumns)?;
        name.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None if name.is_empty() => return Err(BadColumns),
            None => return Ok((Column::Name(name), after)),
        }
    }
}

fn plain(text: &str) -> Result<Column, BadColumns> {
    if text.is_empty() {
        return Err(BadColumns);
    }
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(Column::Name(text.to_owned()));
    }
    let number: usize = text.parse().map_err(|_| BadColumns)?;
    number.checked_sub(1).map(Column::Number).ok_or(BadColumns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_spelled_as_they_are_read() {
        for text in ["1,2,3", "subject,predicate,object", "2,display relation,\"a, b\"", "\"1\",\"say \"\"x\"\"\",2"] {
            assert_eq!(text.parse::<Columns>().unwrap().to_string(), text);
        }
        assert_eq!("3,1,2".parse(), Ok(Columns::from([2, 0, 1])));
        assert_eq!(" a , 2 ,c".parse::<Columns>().unwrap().to_string(), "a,2,c");
        for text in ["", "1", "1,2", "1,2,3,4", "0,1,2", "1,1,2", "a,b,a", "a,,b", "\"a,b,c", "\"\",b,c", "\"a\"x,b,c"]
        {
            assert_eq!(text.parse::<Columns>(), Err(BadColumns), "{text}");
        }
    }
}
