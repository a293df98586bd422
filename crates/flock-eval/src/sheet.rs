//! A table of text, written as Markdown or CSV.

/// A table of text, to be written in some form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sheet {
    /// Titles of the columns.
    pub header: Vec<String>,
    /// Rows; a mean over datasets stands as a row of its own.
    pub rows: Vec<Vec<String>>,
}

impl Sheet {
    /// As a Markdown table: the first column to the left, the others to the right.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | ").replace('\n', " "));
        let rule: Vec<String> =
            (0..self.header.len()).map(|i| if i == 0 { "---" } else { "---:" }.to_string()).collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        line(&self.header) + &line(&rule) + &rows
    }

    /// As CSV.
    pub fn csv(&self) -> String {
        let cell = |c: &String| match c.contains([',', '"', '\n']) {
            true => format!("\"{}\"", c.replace('"', "\"\"")),
            false => c.clone(),
        };
        let line = |cells: &Vec<String>| cells.iter().map(cell).collect::<Vec<_>>().join(",") + "\n";
        std::iter::once(&self.header).chain(&self.rows).map(line).collect()
    }
}
