//! Completion: finds names and labels that begin with the typed text, then those that are near it.
//!
//! The index holds the ids twice: sorted by folded name, and, those that have a label, by folded
//! label. Folding lowers the case and turns `_` and `-` into spaces. Of an IRI it takes what follows
//! the last `/` or `#`. So finding a prefix takes two binary searches, however many names there are.
//! Only if that gives too few names are all names and labels read, once.

use crate::graph::Graph;
use crate::labels::LabelSet;
use crate::lookup::{bare, near};
use crate::names::Names;
use crate::near::suggest::{fold, split_iri};
use crate::unknown::NameKind;
use std::sync::Arc;

/// The names and labels of one graph, sorted for completion.
#[derive(Clone, Debug, Default)]
pub struct NameIndex {
    by_name: Vec<u32>,
    by_label: Vec<u32>,
    /// The labels that `by_label` is sorted by. The graph may have others by now.
    labels: Arc<LabelSet>,
}

fn name_key(name: &str) -> String {
    label_key(split_iri(name).1)
}

fn label_key(label: &str) -> String {
    #[cfg(test)]
    tests::KEYS.set(tests::KEYS.get() + 1);
    let mut folded = String::new();
    fold(label, &mut folded);
    folded
}

/// Sorts ids by key.
fn sorted(keyed: impl Iterator<Item = (String, u32)>) -> Vec<u32> {
    let mut keyed: Vec<(String, u32)> = keyed.collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, id)| id).collect()
}

/// Lists up to `k` of some sorted ids, those whose keys begin with `wanted`, with their keys.
fn beginning(sorted: &[u32], wanted: &str, k: usize, key: impl Fn(u32) -> String) -> Vec<(String, u32)> {
    let low = sorted.partition_point(|&id| *key(id) < *wanted);
    let keyed = sorted[low..].iter().map(|&id| (key(id), id));
    keyed.take_while(|(key, _)| key.starts_with(wanted)).take(k).collect()
}

impl NameIndex {
    /// Sorts all names and labels into an index.
    pub fn build(names: &Names, labels: &Arc<LabelSet>) -> NameIndex {
        NameIndex {
            by_name: sorted((0..).zip(names.iter()).map(|(id, name)| (name_key(name), id))),
            by_label: sorted(labels.iter().map(|(id, label)| (label_key(label), id))),
            labels: labels.clone(),
        }
    }

    /// Returns the number of indexed names: those with the first ids.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Tells whether no name is indexed.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Lists up to `k` names. Those that begin with `text`, or whose label does, come first, in sorted
    /// order, then others that are near it, nearest first. Also finds names added after the index was
    /// built. An empty text gives the first names.
    pub fn search<'n>(&self, names: &'n Names, labels: &LabelSet, text: &str, k: usize) -> Vec<&'n str> {
        let wanted = name_key(text);
        let mut keyed = beginning(&self.by_name, &wanted, k, |id| name_key(names.get(id)));
        // Labels of this index are there: they are those it was sorted by.
        keyed.extend(beginning(&self.by_label, &wanted, k, |id| {
            self.labels.get(id).map_or_else(String::new, label_key)
        }));
        keyed.sort_unstable();
        let mut found: Vec<u32> = Vec::new();
        let mut put = |id: u32| {
            if !found.contains(&id) {
                found.push(id);
            }
        };
        // An exact match comes first, wherever it is.
        names.id(text).into_iter().chain(labels.ids(text).take(k)).for_each(&mut put);
        keyed.into_iter().for_each(|(_, id)| put(id));
        let begins = |id: &u32| name_key(names.get(*id)).starts_with(&wanted);
        (self.by_name.len() as u32..names.len() as u32).filter(begins).take(k).for_each(&mut put);
        if found.len() < k && !wanted.is_empty() {
            for id in near(names, labels, text, k) {
                if !found.contains(&id) {
                    found.push(id);
                }
            }
        }
        found.truncate(k);
        found.into_iter().map(|id| names.get(id)).collect()
    }
}

impl Graph {
    /// Completes what someone types: up to `k` names, found by name, by label, as `<IRI>` or as
    /// `prefix:local`. `index` is the one of this kind.
    pub fn complete<'g>(&'g self, index: &NameIndex, kind: NameKind, text: &str, k: usize) -> Vec<&'g str> {
        let (names, labels) = (self.names(kind), self.labels().of(kind));
        let expanded = self.prefixes().expand(text);
        let iri = expanded.as_deref().or_else(|| bare(text)).or_else(|| text.strip_prefix('<'));
        let Some(iri) = iri.filter(|_| names.id(text).is_none()) else { return index.search(names, labels, text, k) };
        let (namespace, _) = split_iri(iri);
        if namespace.is_empty() {
            // All of it is a namespace.
            return names.iter().filter(|name| name.starts_with(iri)).take(k).collect();
        }
        // Those of this namespace come first.
        let mut found = index.search(names, labels, iri, 4 * k);
        found.sort_by_key(|name| !name.starts_with(namespace));
        found.truncate(k);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        /// Number of names and labels that were folded.
        pub(super) static KEYS: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn prefixes_first_then_near_names() {
        let mut names = Names::new();
        for name in ["Spain", "Portugal", "Port-au-Prince", "Seaport", "Poland", "port", "http://a.org/Porto"] {
            names.intern(name);
        }
        let none = Arc::default();
        let index = NameIndex::build(&names, &none);
        assert_eq!(index.len(), 7);
        assert_eq!(
            index.search(&names, &none, "port", 4),
            ["port", "Port-au-Prince", "http://a.org/Porto", "Portugal"]
        );
        assert_eq!(index.search(&names, &none, "Portu", 1), ["Portugal"]);
        // Misspelled, and in the middle of a name.
        assert_eq!(index.search(&names, &none, "Portgual", 3)[0], "Portugal");
        assert_eq!(index.search(&names, &none, "eaport", 3)[0], "Seaport");
        assert_eq!(index.search(&names, &none, "", 2), ["Poland", "port"]);
        // A name that came later.
        names.intern("Portland");
        assert!(index.search(&names, &none, "portl", 3).contains(&"Portland"));
        assert!(index.search(&names, &none, "zzzzzz", 3).is_empty());
    }

    #[test]
    fn a_million_names_take_no_time_to_complete() {
        let mut names = Names::new();
        for i in 0..1_000_000u32 {
            names.intern(&format!("Entity {:07}", i.wrapping_mul(2_654_435_761) % 10_000_000));
        }
        let none = Arc::default();
        let index = NameIndex::build(&names, &none);
        KEYS.set(0);
        for i in 0..100 {
            assert_eq!(index.search(&names, &none, &format!("entity {i:02}"), 10).len(), 10);
        }
        // Each search folds the typed text, at most 21 of a million names to find the place, and
        // the 10 names that are found.
        assert!(KEYS.get() <= 100 * (1 + 21 + 10), "{}", KEYS.get());
    }

    #[test]
    fn labels_and_prefixed_names_complete() {
        let mut builder = crate::GraphBuilder::new();
        builder.prefixes().insert("wd", "http://www.wikidata.org/entity/");
        builder.prefixes().insert("ex", "http://example.org/");
        for id in ["Q90", "Q830149", "Q45", "Q901"] {
            builder.add(&format!("http://www.wikidata.org/entity/{id}"), "in", "http://example.org/Q90");
        }
        for (id, label) in [("Q90", "Paris"), ("Q830149", "Paris"), ("Q45", "Portugal")] {
            builder.label(&format!("http://www.wikidata.org/entity/{id}"), label, 0);
        }
        let graph = builder.finish().unwrap();
        let index = NameIndex::build(graph.entities(), graph.labels().of(NameKind::Entity));
        let complete = |text: &str, k| {
            let found = graph.complete(&index, NameKind::Entity, text, k);
            found.into_iter().map(|name| graph.display(name).into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(complete("por", 1), ["wd:Q45"]);
        assert_eq!(complete("Paris", 2), ["wd:Q90", "wd:Q830149"]);
        // Misspelled, and in the middle of a label.
        assert_eq!((complete("Portgual", 1), complete("tugal", 1)), (vec!["wd:Q45".into()], vec!["wd:Q45".into()]));
        assert_eq!(complete("wd:Q90", 3), ["wd:Q90", "wd:Q901", "ex:Q90"]);
        assert_eq!(complete("ex:Q9", 1), complete("<http://example.org/Q9", 1));
        assert_eq!(complete("wd:", 9).len(), 4);
        assert_eq!(complete("q9", 3).len(), 3);
        // Without an index, all names and labels are read.
        assert_eq!(
            graph.complete(&NameIndex::default(), NameKind::Entity, "Portug", 1),
            ["http://www.wikidata.org/entity/Q45"]
        );
    }
}
