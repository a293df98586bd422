//! What a name stands for, and a name that is not in the graph.

use crate::quote::quote;
use std::fmt;

/// What a name stands for: an entity or a relation.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A node of the graph.
    Entity,
    /// A kind of edge.
    Relation,
}

impl fmt::Display for NameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NameKind::Entity => "entity",
            NameKind::Relation => "relation",
        })
    }
}

/// A name that is not in the graph, or that could stand for several.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct UnknownName {
    /// The kind of name that was looked for.
    pub kind: NameKind,
    /// The name as it was given.
    pub name: String,
    /// Whether the name belongs to a relation where an entity was looked for, or the reverse.
    pub is_other_kind: bool,
    /// Names that it could stand for, as written by [`Graph::shown`](crate::Graph::shown): the first ten of them. Empty if
    /// it stands for none.
    pub fits: Vec<String>,
    /// Number of names that it could stand for.
    pub fit_count: u32,
    /// Names that may have been meant, nearest first, as written by [`Graph::shown`](crate::Graph::shown).
    pub near: Vec<String>,
    /// Number of names of this kind in the graph.
    pub count: usize,
    /// Some names of this kind.
    pub examples: Vec<String>,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (other, plural) = match self.kind {
            NameKind::Entity => ("a relation", "entities"),
            NameKind::Relation => ("an entity", "relations"),
        };
        if !self.fits.is_empty() {
            let (count, fits) = (self.fit_count, quoted(&self.fits));
            write!(f, "{} could be any of {count} {plural}: {fits}", quote(&self.name))?;
            return match count as usize - self.fits.len() {
                0 => Ok(()),
                more => write!(f, " and {more} more"),
            };
        }
        write!(f, "unknown {} {}", self.kind, quote(&self.name))?;
        if self.is_other_kind {
            write!(f, " (that is the name of {other})")?;
        }
        if !self.near.is_empty() {
            return write!(f, "; near names: {}", quoted(&self.near));
        }
        let (count, examples) = (self.count, quoted(&self.examples));
        write!(f, "; no name is near; hint: the graph has {count} {plural}, such as {examples}")
    }
}

fn quoted(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| quote(n)).collect();
    quoted.join(", ")
}
