//! From the cells of a row to triples and labels.

use super::header::{Layout, NodeColumns, TripleColumns};
use super::kgtk;
use crate::read::error::RowError;
use crate::read::rows::MAX_NAME;
use crate::read::{LoadReport, Sink};
use std::borrow::Cow;

/// Takes what rows say, counts it and passes it on.
pub(crate) struct Emitter<'a> {
    pub(crate) report: &'a mut LoadReport,
    pub(crate) sink: &'a mut dyn Sink,
}

impl Emitter<'_> {
    /// Takes a row of a table. `cell` returns the text of a column, or `None` if the row is too
    /// short.
    pub(crate) fn row<'c>(&mut self, layout: &Layout, cell: &dyn Fn(usize) -> Option<&'c str>) -> Result<(), RowError> {
        let filled = |column: usize| cell(column).is_some_and(|text| !text.is_empty());
        match (&layout.triples, &layout.nodes) {
            (Some(triples), Some(nodes)) if !filled(triples.columns[0]) => self.node_row(nodes, cell),
            (Some(triples), _) if layout.kgtk => self.kgtk_row(triples, cell),
            (Some(triples), _) => self.triple_row(triples, cell),
            (None, Some(nodes)) => self.node_row(nodes, cell),
            (None, None) => Ok(()),
        }
    }

    fn triple_row<'c>(
        &mut self,
        triples: &TripleColumns,
        cell: &dyn Fn(usize) -> Option<&'c str>,
    ) -> Result<(), RowError> {
        let mut names = [Cow::Borrowed(""), Cow::Borrowed(""), Cow::Borrowed("")];
        for role in 0..3 {
            let column = triples.columns[role];
            let name = checked(cell(column), column, role)?;
            let group = match role {
                0 => triples.groups[0].as_deref(),
                2 => triples.groups[1].as_deref(),
                _ => None,
            };
            names[role] = in_group(name, group);
        }
        for (name, column) in names.iter().zip(triples.labels) {
            self.label(name, column.and_then(cell).unwrap_or(""), 0);
        }
        self.triple([&names[0], &names[1], &names[2]]);
        Ok(())
    }

    fn kgtk_row<'c>(
        &mut self,
        triples: &TripleColumns,
        cell: &dyn Fn(usize) -> Option<&'c str>,
    ) -> Result<(), RowError> {
        let mut fields = [""; 3];
        for (role, field) in fields.iter_mut().enumerate() {
            let column = triples.columns[role];
            *field = checked(cell(column), column, role)?;
        }
        let [node1, relation, node2] = fields;
        // Numbers are literals, unless the file has numbers as the names of nodes.
        let head = match kgtk::value(node1) {
            kgtk::Value::Name(name) => name,
            kgtk::Value::Number => Cow::Borrowed(node1),
            _ => {
                self.literal(relation);
                return Ok(());
            }
        };
        let numbers_are_names = matches!(kgtk::value(node1), kgtk::Value::Number);
        for (role, name) in [&*head, relation, node2].into_iter().enumerate() {
            let text = triples.labels[role].and_then(cell).unwrap_or("");
            if let kgtk::Value::Text { text, .. } = kgtk::value(text) {
                self.label(name, &text, 0);
            }
        }
        // Text may contain anything; a list of names has bars between them.
        let values: &mut dyn Iterator<Item = &str> =
            if node2.starts_with(['"', '\'']) { &mut std::iter::once(node2) } else { &mut kgtk::list(node2) };
        for value in values.filter(|value| !value.is_empty()) {
            match kgtk::value(value) {
                kgtk::Value::Name(tail) => self.triple([&head, relation, &tail]),
                kgtk::Value::Number if numbers_are_names => self.triple([&head, relation, value]),
                kgtk::Value::Text { text, language } if kgtk::is_label(relation) => {
                    let english = language.is_none_or(|l| l == "en" || l.starts_with("en-"));
                    self.report.rows += 1;
                    self.report.labels += 1;
                    self.label(&head, &text, u32::from(!english));
                }
                _ => self.literal(relation),
            }
        }
        Ok(())
    }

    fn node_row<'c>(&mut self, nodes: &NodeColumns, cell: &dyn Fn(usize) -> Option<&'c str>) -> Result<(), RowError> {
        let id = in_group(checked(cell(nodes.id), nodes.id, 0)?, nodes.group.as_deref());
        self.report.nodes += 1;
        self.label(&id, nodes.label.and_then(cell).unwrap_or(""), 0);
        if let Some(kind) = &nodes.kind {
            let kinds = cell(kind.column).unwrap_or("").split(kind.separator).map(str::trim);
            for name in kinds.filter(|name| !name.is_empty() && name.len() <= MAX_NAME) {
                self.triple([&id, &kind.relation, name]);
            }
        }
        Ok(())
    }

    /// Counts a triple and passes it on.
    pub(crate) fn triple(&mut self, [head, relation, tail]: [&str; 3]) {
        self.report.rows += 1;
        self.sink.triple(head, relation, tail);
    }

    /// Counts a statement about a literal.
    pub(crate) fn literal(&mut self, relation: &str) {
        self.report.rows += 1;
        self.report.literal(relation);
    }

    /// Passes a label on, unless it is empty or too long to be one.
    pub(crate) fn label(&mut self, name: &str, label: &str, rank: u32) {
        let label = label.trim();
        if !label.is_empty() && label.len() <= MAX_NAME {
            self.sink.label(name, label, rank);
        }
    }
}

/// Checks a name: 0 head, 1 relation, 2 tail.
pub(crate) fn checked(name: Option<&str>, column: usize, role: usize) -> Result<&str, RowError> {
    match name {
        None | Some("") => Err(RowError::EmptyField { column: column + 1, role }),
        Some(name) if name.len() > MAX_NAME => Err(RowError::LongName),
        Some(name) => Ok(name),
    }
}

/// Puts the group before a number, which is unique only within its group.
fn in_group<'n>(name: &'n str, group: Option<&str>) -> Cow<'n, str> {
    match group {
        Some(group) if name.bytes().all(|b| b.is_ascii_digit()) => Cow::Owned(format!("{group}:{name}")),
        _ => Cow::Borrowed(name),
    }
}
