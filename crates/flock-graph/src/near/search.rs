//! Completion: finds names that begin with the typed text, then names that are near it.
//!
//! The index holds the ids, sorted by folded name. Folding lowers the case and turns `_` and `-`
//! into spaces. Of an IRI it takes what follows the last `/` or `#`. So finding a prefix takes a
//! binary search, however many names there are. Only if that gives too few names are all names
//! read, once.

use super::suggest::{fold, nearest, split_iri};
use crate::names::Names;

/// The names of one graph, sorted for completion.
#[derive(Clone, Debug, Default)]
pub struct NameIndex {
    sorted: Vec<u32>,
}

fn key(name: &str) -> String {
    #[cfg(test)]
    tests::KEYS.set(tests::KEYS.get() + 1);
    let mut folded = String::new();
    fold(split_iri(name).1, &mut folded);
    folded
}

impl NameIndex {
    /// Sorts all names into an index.
    pub fn build(names: &Names) -> NameIndex {
        let mut keyed: Vec<(String, u32)> = (0..).zip(names.iter()).map(|(id, name)| (key(name), id)).collect();
        keyed.sort_unstable();
        NameIndex { sorted: keyed.into_iter().map(|(_, id)| id).collect() }
    }

    /// Returns the number of indexed names: those with the first ids.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Tells whether no name is indexed.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Lists up to `k` names. Those that begin with `text` come first, in sorted order, then others
    /// that are near it, nearest first. Also finds names added after the index was built. An empty
    /// text gives the first names.
    pub fn search<'n>(&self, names: &'n Names, text: &str, k: usize) -> Vec<&'n str> {
        let wanted = key(text);
        let low = self.sorted.partition_point(|&id| key(names.get(id)) < wanted);
        let begins = |name: &&str| key(name).starts_with(&wanted);
        let indexed = self.sorted[low..].iter().map(|&id| names.get(id)).take_while(begins).take(k);
        let mut found: Vec<&str> = indexed.collect();
        // An exact match comes first, wherever it is.
        if let Some(exact) = names.id(text) {
            found.retain(|name| *name != text);
            found.insert(0, names.get(exact));
        }
        let later = (self.sorted.len()..names.len()).map(|id| names.get(id as u32));
        for name in later.filter(begins).take(k) {
            if !found.contains(&name) {
                found.push(name);
            }
        }
        if found.len() < k && !wanted.is_empty() {
            for name in nearest(names.iter(), text, k) {
                if !found.contains(&name) {
                    found.push(name);
                }
            }
        }
        found.truncate(k);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        /// Number of names that were folded.
        pub(super) static KEYS: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn prefixes_first_then_near_names() {
        let mut names = Names::new();
        for name in ["Spain", "Portugal", "Port-au-Prince", "Seaport", "Poland", "port", "http://a.org/Porto"] {
            names.intern(name);
        }
        let index = NameIndex::build(&names);
        assert_eq!(index.len(), 7);
        assert_eq!(index.search(&names, "port", 4), ["port", "Port-au-Prince", "http://a.org/Porto", "Portugal"]);
        assert_eq!(index.search(&names, "Portu", 1), ["Portugal"]);
        // Misspelled, and in the middle of a name.
        assert_eq!(index.search(&names, "Portgual", 3)[0], "Portugal");
        assert_eq!(index.search(&names, "eaport", 3)[0], "Seaport");
        assert_eq!(index.search(&names, "", 2), ["Poland", "port"]);
        // A name that came later.
        names.intern("Portland");
        assert!(index.search(&names, "portl", 3).contains(&"Portland"));
        assert!(index.search(&names, "zzzzzz", 3).is_empty());
    }

    #[test]
    fn a_million_names_take_no_time_to_complete() {
        let mut names = Names::new();
        for i in 0..1_000_000u32 {
            names.intern(&format!("Entity {:07}", i.wrapping_mul(2_654_435_761) % 10_000_000));
        }
        let index = NameIndex::build(&names);
        KEYS.set(0);
        for i in 0..100 {
            assert_eq!(index.search(&names, &format!("entity {i:02}"), 10).len(), 10);
        }
        // Each search folds the typed text, at most 21 of a million names to find the place, and
        // the 10 names that are found.
        assert!(KEYS.get() <= 100 * (1 + 21 + 10), "{}", KEYS.get());
    }
}
