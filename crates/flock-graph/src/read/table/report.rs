//! How a table was understood, for people to check.

use super::header::Layout;
use crate::quote::column_name;
use std::fmt;

/// How the columns of a table were understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableReport {
    /// Why the first row was taken for a header and left out, if it was.
    pub header: Option<HeaderReason>,
    /// The columns that were used.
    pub used: Vec<UsedColumn>,
    /// The columns that were not used: their names, or their numbers from 1.
    pub unused: Vec<String>,
}

/// Why a first row was taken for a header.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderReason {
    /// The caller said so, or chose columns by name.
    Told,
    /// It has words that name columns.
    Words,
    /// None of its names comes again, and they look like names of columns.
    Evidence,
    /// The format has names of columns.
    Schema,
}

/// A column that was used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsedColumn {
    /// What it was used as.
    pub role: ColumnRole,
    /// Its place, from 0.
    pub column: usize,
    /// Its name, if the table has a header.
    pub name: Option<String>,
}

/// What a column is used as.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnRole {
    /// The head of a triple.
    Head,
    /// The relation of a triple.
    Relation,
    /// The tail of a triple.
    Tail,
    /// The label of the head.
    HeadLabel,
    /// The label of the relation.
    RelationLabel,
    /// The label of the tail.
    TailLabel,
    /// The id of a node.
    Node,
    /// The label of a node.
    NodeLabel,
    /// What kind of thing a node is.
    NodeKind,
}

impl fmt::Display for ColumnRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ColumnRole::Head => "head",
            ColumnRole::Relation => "relation",
            ColumnRole::Tail => "tail",
            ColumnRole::HeadLabel => "label of the head",
            ColumnRole::RelationLabel => "label of the relation",
            ColumnRole::TailLabel => "label of the tail",
            ColumnRole::Node => "node",
            ColumnRole::NodeLabel => "label of the node",
            ColumnRole::NodeKind => "kind of the node",
        })
    }
}

/// Number of unused columns that are named.
const NAMED: usize = 8;

impl TableReport {
    /// Describes a layout. `names` are the fields of the header.
    pub(crate) fn new(layout: &Layout, names: Option<&[&str]>, width: usize, header: Option<HeaderReason>) -> Self {
        let mut used = Vec::new();
        let mut add = |role: ColumnRole, column: Option<usize>| {
            let name = |column: usize| names.and_then(|names| names.get(column)).map(|name| column_name(name));
            used.extend(column.map(|column| UsedColumn { role, column, name: name(column) }));
        };
        if let Some(triples) = &layout.triples {
            let roles = [ColumnRole::Head, ColumnRole::Relation, ColumnRole::Tail];
            roles.into_iter().zip(triples.columns).for_each(|(role, column)| add(role, Some(column)));
            let roles = [ColumnRole::HeadLabel, ColumnRole::RelationLabel, ColumnRole::TailLabel];
            roles.into_iter().zip(triples.labels).for_each(|(role, column)| add(role, column));
        }
        if let Some(nodes) = &layout.nodes {
            add(ColumnRole::Node, Some(nodes.id));
            add(ColumnRole::NodeLabel, nodes.label);
            add(ColumnRole::NodeKind, nodes.kind.as_ref().map(|kind| kind.column));
        }
        let is_unused = |column: &usize| !used.iter().any(|used| used.column == *column);
        let name = |column: usize| match names.and_then(|names| names.get(column)) {
            Some(name) => column_name(name),
            None => (column + 1).to_string(),
        };
        // A row may have tens of thousands of fields, and only some are named.
        let unused = (0..width.min(1000)).filter(is_unused).map(name).collect();
        TableReport { header, used, unused }
    }

    /// Returns the columns (from 0) of head, relation and tail.
    pub fn columns(&self) -> Option<[usize; 3]> {
        let column = |role| self.used.iter().find(|used| used.role == role).map(|used| used.column);
        Some([column(ColumnRole::Head)?, column(ColumnRole::Relation)?, column(ColumnRole::Tail)?])
    }

    /// Tells whether it is three columns in order without a header, which needs no words.
    pub fn is_plain(&self) -> bool {
        self.header.is_none() && self.unused.is_empty() && self.columns() == Some([0, 1, 2]) && self.used.len() == 3
    }
}

impl fmt::Display for TableReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.header {
            Some(HeaderReason::Evidence) => {
                f.write_str("the first row was taken for a header, since none of its names comes again; ")?;
            }
            Some(HeaderReason::Told | HeaderReason::Words) => f.write_str("the first row is a header; ")?,
            Some(HeaderReason::Schema) | None => {}
        }
        for (at, UsedColumn { role, column, name }) in self.used.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { ", " })?;
            match name {
                Some(name) => write!(f, "{role} = {name}")?,
                None => write!(f, "{role} = column {}", column + 1)?,
            }
        }
        if !self.unused.is_empty() {
            write!(f, "; not used: {}", self.unused[..self.unused.len().min(NAMED)].join(", "))?;
            if self.unused.len() > NAMED {
                write!(f, " and {} more", self.unused.len() - NAMED)?;
            }
        }
        Ok(())
    }
}
