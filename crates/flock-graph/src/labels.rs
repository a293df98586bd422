//! Labels: what people call entities and relations whose names are ids or IRIs.
//!
//! The labels of one kind are stored one after another in one string, in the order of the ids they
//! belong to. A binary search finds the label of an id. A list of hashes, made when a label is first
//! looked up, finds the ids of a label.

use crate::names::Names;
use crate::text_index::TextIndex;
use crate::unknown::NameKind;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// The labels of a graph. Most graphs have none.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    entities: Arc<LabelSet>,
    relations: Arc<LabelSet>,
}

impl Labels {
    /// Puts the labels of entities and of relations together.
    pub(crate) fn new(entities: LabelSet, relations: LabelSet) -> Labels {
        Labels { entities: Arc::new(entities), relations: Arc::new(relations) }
    }

    /// Returns the label of an entity.
    pub fn entity(&self, id: u32) -> Option<&str> {
        self.entities.get(id)
    }

    /// Returns the label of a relation.
    pub fn relation(&self, id: u32) -> Option<&str> {
        self.relations.get(id)
    }

    /// Returns the labels of all entities or of all relations.
    pub fn of(&self, kind: NameKind) -> &Arc<LabelSet> {
        match kind {
            NameKind::Entity => &self.entities,
            NameKind::Relation => &self.relations,
        }
    }

    /// Returns the number of labels.
    pub fn len(&self) -> usize {
        self.entities.len() + self.relations.len()
    }

    /// Tells whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the heap memory of the labels in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.entities.memory_bytes() + self.relations.memory_bytes()
    }
}

/// The labels of the entities, or of the relations, of a graph.
#[derive(Debug, Default)]
pub struct LabelSet {
    /// The ids that have a label, ascending.
    ids: Vec<u32>,
    /// Where the label of each of them ends in `text`.
    ends: Vec<usize>,
    text: String,
    /// The place (in `ids`) of each label.
    by_label: OnceLock<TextIndex>,
}

impl LabelSet {
    /// Makes a set from ids, in ascending order, and their labels.
    pub(crate) fn new<'a>(labels: impl Iterator<Item = (u32, &'a str)>) -> LabelSet {
        let mut set = LabelSet::default();
        for (id, label) in labels {
            debug_assert!(set.ids.last().is_none_or(|last| *last < id));
            set.ids.push(id);
            set.text.push_str(label);
            set.ends.push(set.text.len());
        }
        set.ids.shrink_to_fit();
        set.ends.shrink_to_fit();
        set.text.shrink_to_fit();
        set
    }

    /// Returns the label of an id.
    pub fn get(&self, id: u32) -> Option<&str> {
        self.ids.binary_search(&id).ok().map(|at| self.at(at))
    }

    fn at(&self, at: usize) -> &str {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[start..self.ends[at]]
    }

    /// Lists the ids whose label is spelled exactly like `label`, ascending.
    pub fn ids<'a>(&'a self, label: &'a str) -> impl Iterator<Item = u32> + 'a {
        let index = self.by_label.get_or_init(|| {
            let mut index = TextIndex::default();
            (0..self.len()).for_each(|at| index.push(self.at(at), at as u32));
            index.sort();
            index
        });
        index.get(label).filter(move |&at| self.at(at as usize) == label).map(|at| self.ids[at as usize])
    }

    /// Lists ids and labels, by ascending id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, &str)> + '_ {
        self.ids.iter().enumerate().map(|(at, &id)| (id, self.at(at)))
    }

    /// Returns the number of labels.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Tells whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    fn memory_bytes(&self) -> usize {
        self.ids.capacity() * size_of::<u32>()
            + self.ends.capacity() * size_of::<usize>()
            + self.text.capacity()
            + self.by_label.get().map_or(0, TextIndex::memory_bytes)
    }
}

/// Labels by name, before all names have ids.
#[derive(Debug, Default)]
pub(crate) struct LabelsByName {
    names: Names,
    /// Rank and place of the label of each name.
    kept: Vec<(u32, Range<usize>)>,
    text: String,
}

impl LabelsByName {
    /// Keeps a label unless there is one of the same rank or a lower one.
    pub(crate) fn add(&mut self, name: &str, label: &str, rank: u32) {
        let label = label.trim();
        let at = self.names.intern(name) as usize;
        if self.kept.get(at).is_some_and(|(kept, _)| *kept <= rank) {
            return;
        }
        let start = self.text.len();
        self.text.push_str(label);
        let entry = (rank, start..self.text.len());
        match self.kept.get_mut(at) {
            Some(kept) => *kept = entry,
            None => self.kept.push(entry),
        }
    }

    /// Gives the labels to the names that the graph has, on top of those that it has already, and
    /// drops the others. An empty label, or one that is the name itself, takes the old label away.
    pub(crate) fn finish(&self, entities: &Names, relations: &Names, old: &Labels) -> Labels {
        let set = |names: &Names, old: &Arc<LabelSet>| {
            let mut new: Vec<(u32, &str)> = Vec::new();
            for (name, (_, place)) in self.names.iter().zip(&self.kept) {
                if let Some(id) = names.id(name) {
                    let label = &self.text[place.clone()];
                    new.push((id, if label == name { "" } else { label }));
                }
            }
            if new.is_empty() {
                return old.clone();
            }
            new.sort_unstable_by_key(|(id, _)| *id);
            Arc::new(LabelSet::new(merged(old.iter(), new.into_iter()).filter(|(_, label)| !label.is_empty())))
        };
        Labels { entities: set(entities, &old.entities), relations: set(relations, &old.relations) }
    }
}

/// Merges two lists that are sorted by id. Where both have an id, the new one counts.
fn merged<'a>(
    old: impl Iterator<Item = (u32, &'a str)>,
    new: impl Iterator<Item = (u32, &'a str)>,
) -> impl Iterator<Item = (u32, &'a str)> {
    let (mut old, mut new) = (old.peekable(), new.peekable());
    std::iter::from_fn(move || match (old.peek(), new.peek()) {
        (Some((a, _)), Some((b, _))) if a < b => old.next(),
        (Some((a, _)), Some((b, _))) => {
            if a == b {
                old.next();
            }
            new.next()
        }
        (Some(_), None) => old.next(),
        (None, _) => new.next(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Names {
        let mut names = Names::new();
        all.iter().for_each(|name| _ = names.intern(name));
        names
    }

    #[test]
    fn labels_are_found_both_ways() {
        let (entities, relations) = (names(&["Q1", "Q2", "Q3", "Q4", "P1"]), names(&["P1"]));
        let mut labels = LabelsByName::default();
        for (name, label, rank) in
            [("Q3", "Paris", 1), ("Q1", " Paris ", 0), ("Q2", "Lyon", 2), ("Q2", "Lyons", 3), ("Q2", "LYON", 1)]
        {
            labels.add(name, label, rank);
        }
        // Its own name, nothing, a name of nothing, and a name of both kinds.
        for (name, label) in [("Q4", "Q4"), ("Q9", "nobody"), ("P1", "in")] {
            labels.add(name, label, 0);
        }
        let labels = labels.finish(&entities, &relations, &Labels::default());
        assert_eq!(labels.len(), 5);
        assert_eq!(
            [0, 1, 2, 3, 4].map(|id| labels.entity(id)),
            [Some("Paris"), Some("LYON"), Some("Paris"), None, Some("in")]
        );
        assert_eq!(labels.relation(0), Some("in"));
        let found = |label| labels.of(NameKind::Entity).ids(label).collect::<Vec<_>>();
        assert_eq!((found("Paris"), found("LYON"), found("lyon"), found("")), (vec![0, 2], vec![1], vec![], vec![]));
        assert!(labels.memory_bytes() > 0);

        let mut more = LabelsByName::default();
        for (name, label) in [("Q4", "Nice"), ("Q1", ""), ("Q3", "Paris, Texas")] {
            more.add(name, label, 0);
        }
        let more = more.finish(&entities, &relations, &labels);
        let all: Vec<_> = more.of(NameKind::Entity).iter().collect();
        assert_eq!(all, [(1, "LYON"), (2, "Paris, Texas"), (3, "Nice"), (4, "in")]);
        // Relations have no new label, so both share the old ones.
        assert!(Arc::ptr_eq(&more.relations, &labels.relations));
    }
}
