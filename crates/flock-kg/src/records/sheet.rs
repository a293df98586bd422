//! Tables of text as records: columns get their kind from what stands in them.

use super::cell::{Cell, Column, ColumnKind};

/// Reads columns and rows of text. A column is of whole numbers or of numbers if all its cells are; empty cells and `–` are nothing
/// there. A title that occurs again gets a number.
pub fn typed<'a>(header: &[String], rows: &'a [Vec<String>]) -> (Vec<Column>, Vec<Vec<Cell<'a>>>) {
    let mut columns: Vec<Column> = Vec::with_capacity(header.len());
    for (i, title) in header.iter().enumerate() {
        let name = (1..)
            .map(|n| if n == 1 { title.clone() } else { format!("{title} ({n})") })
            .find(|name| columns.iter().all(|c| c.name != *name))
            .unwrap_or_default();
        columns.push(Column::new(name, kind(rows.iter().filter_map(|row| row.get(i)))));
    }
    let cells = |row: &'a Vec<String>| -> Vec<Cell<'a>> {
        columns
            .iter()
            .enumerate()
            .map(|(i, column)| row.get(i).map_or(Cell::None, |text| cell(column.kind, text)))
            .collect()
    };
    let rows = rows.iter().map(cells).collect();
    (columns, rows)
}

fn is_nothing(text: &str) -> bool {
    matches!(text.trim(), "" | "–")
}

fn kind<'a>(cells: impl Iterator<Item = &'a String> + Clone) -> ColumnKind {
    let mut given = cells.filter(|text| !is_nothing(text)).peekable();
    if given.peek().is_none() {
        return ColumnKind::Text;
    }
    if given.clone().all(|text| text.parse::<i64>().is_ok()) {
        ColumnKind::Integer
    } else if given.all(|text| text.parse::<f64>().is_ok_and(f64::is_finite)) {
        ColumnKind::Number
    } else {
        ColumnKind::Text
    }
}

fn cell(kind: ColumnKind, text: &str) -> Cell<'_> {
    match kind {
        ColumnKind::Integer => text.parse().map_or(Cell::None, Cell::Integer),
        ColumnKind::Number => text.parse().map_or(Cell::None, Cell::Number),
        _ => Cell::from(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_come_from_the_cells() {
        let text = |cells: &[&str]| cells.iter().map(|s| s.to_string()).collect::<Vec<_>>();
        let rows = [text(&["a", "1", "0.5", "–", "1"]), text(&["2", "–", "3", "", "x"])];
        let (columns, cells) = typed(&text(&["name", "n", "x", "none", "n"]), &rows);
        let seen: Vec<(&str, ColumnKind)> = columns.iter().map(|c| (&*c.name, c.kind)).collect();
        use ColumnKind::{Integer, Number, Text};
        assert_eq!(seen, [("name", Text), ("n", Integer), ("x", Number), ("none", Text), ("n (2)", Text)]);
        let second = [Cell::from("2"), Cell::None, Cell::Number(3.0), Cell::from(""), Cell::from("x")];
        assert_eq!(cells[1], second);
    }
}
