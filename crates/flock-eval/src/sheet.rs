//! A table of text, which can be written as Markdown or CSV.

/// A table of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sheet {
    /// Titles of the columns.
    pub header: Vec<String>,
    /// Rows, each as long as the header.
    pub rows: Vec<Vec<String>>,
}

impl Sheet {
    /// Writes the table as Markdown, with the first column aligned left and the others right.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | ").replace('\n', " "));
        let rule: Vec<String> =
            (0..self.header.len()).map(|i| if i == 0 { "---" } else { "---:" }.to_string()).collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        line(&self.header) + &line(&rule) + &rows
    }

    /// Writes the table as CSV.
    pub fn csv(&self) -> String {
        let mut out = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
        for row in std::iter::once(&self.header).chain(&self.rows) {
            out.write_record(row).expect("writing to memory does not fail");
        }
        let bytes = out.into_inner().expect("writing to memory does not fail");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
