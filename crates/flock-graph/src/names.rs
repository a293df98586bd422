//! Names and their dense ids, both ways.
//!
//! All names stand one after another in one string; an id is the position of its end. A hash table of bare ids
//! finds the id of a name. No name is stored twice and none has an allocation of its own.

use crate::near::suggest;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::fmt;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;

/// A set of names with ids `0..len`, in the order of first sight.
#[derive(Clone, Default)]
pub struct Names {
    /// Names with the first ids, shared with other sets; what follows is about the rest.
    base: Option<Arc<Names>>,
    text: String,
    ends: Vec<usize>,
    ids: HashTable<u32>,
    // Seeded afresh in every process, so that no file can be made to collide on purpose. Ids do not depend on it.
    hasher: RandomState,
}

impl Names {
    /// No names yet.
    pub fn new() -> Names {
        Names::default()
    }

    /// The id of `name`, which is added if it is new.
    ///
    /// After 2³² − 1 names every new one gets the id `u32::MAX`, which no name has and which
    /// [`Topology::build`](crate::Topology::build) refuses.
    pub fn intern(&mut self, name: &str) -> u32 {
        self.intern_hashed(self.hasher.hash_one(name.as_bytes()), name)
    }

    fn intern_hashed(&mut self, hash: u64, name: &str) -> u32 {
        if let Some(id) = self.base.as_ref().and_then(|base| base.id(name)) {
            return id;
        }
        let first = self.first();
        if let Some(&own) = self.ids.find(hash, |&own| slice(&self.text, &self.ends, own) == name) {
            return first + own;
        }
        if self.len() == u32::MAX as usize {
            return u32::MAX;
        }
        let own = self.ends.len() as u32;
        self.text.push_str(name);
        self.ends.push(self.text.len());
        let (text, ends, hasher) = (&self.text, &self.ends, &self.hasher);
        self.ids.insert_unique(hash, own, |&own| hasher.hash_one(slice(text, ends, own).as_bytes()));
        first + own
    }

    /// The first id that is not the base's.
    fn first(&self) -> u32 {
        self.base.as_ref().map_or(0, |base| base.len() as u32)
    }

    /// A set that has all names of another and can take more, without a copy of the other's.
    pub(crate) fn over(names: &Arc<Names>) -> Names {
        match names.base {
            Some(_) => Names::clone(names),
            None => Names { base: Some(names.clone()), ..Names::default() },
        }
    }

    /// The same names with the same ids in one piece.
    pub(crate) fn flattened(&self) -> Names {
        let mut flat = Names::new();
        for name in self.iter() {
            flat.intern(name);
        }
        flat
    }

    /// The ids of all names in `batch`, as if each had been [interned](Names::intern) in turn, and an empty batch.
    ///
    /// In a large set every step of a look-up misses the cache: table, end, text. Here each step is done for the whole batch
    /// before the next, so that the processor waits for many misses at once: half the time with 200,000 names.
    pub(crate) fn intern_batch(&mut self, batch: &mut NameBatch, ids: &mut Vec<u32>) {
        debug_assert!(self.base.is_none(), "batches are for sets of their own");
        batch.hashes.clear();
        batch.spans.clear();
        ids.clear();
        for i in 0..batch.len() {
            batch.hashes.push(self.hasher.hash_one(batch.get(i).as_bytes()));
        }
        for &hash in &batch.hashes {
            // Whatever stands in the place of this name: most often the name itself.
            ids.push(self.ids.find(hash, |_| true).copied().unwrap_or(u32::MAX));
        }
        for &id in &*ids {
            let id = id as usize;
            let start = if id == 0 { 0 } else { self.ends.get(id - 1).copied().unwrap_or(0) };
            batch.spans.push(start..self.ends.get(id).copied().unwrap_or(0));
        }
        for i in 0..batch.len() {
            let found = self.text.get(batch.spans[i].clone());
            if ids[i] == u32::MAX || found != Some(batch.get(i)) {
                ids[i] = self.intern_hashed(batch.hashes[i], batch.get(i));
            }
        }
        batch.text.clear();
        batch.ends.clear();
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.first() as usize + self.ends.len()
    }

    /// Whether there is no name.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of `id`.
    ///
    /// # Panics
    /// If `id` is not below [`len`](Names::len).
    pub fn get(&self, id: u32) -> &str {
        match &self.base {
            Some(base) if (id as usize) < base.len() => base.get(id),
            _ => slice(&self.text, &self.ends, id - self.first()),
        }
    }

    /// The id of `name`, spelled exactly so.
    pub fn id(&self, name: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(name.as_bytes());
        let own = || self.ids.find(hash, |&own| slice(&self.text, &self.ends, own) == name);
        let first = self.first();
        self.base.as_ref().and_then(|base| base.id(name)).or_else(|| own().map(|own| first + own))
    }

    /// All names, in the order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + '_ {
        (0..self.len()).map(|id| self.get(id as u32))
    }

    /// Up to `k` names that `name` may have been meant for, the nearest first.
    ///
    /// Case, `_` and `-` do not count; misspellings, prefixes and parts of a name are found. An IRI is compared by
    /// what follows its last `/` or `#`. The cost is one pass over all names.
    pub fn suggest(&self, name: &str, k: usize) -> Vec<String> {
        suggest::nearest(self.iter(), name, k).into_iter().map(str::to_owned).collect()
    }

    /// Heap memory held, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.base.as_ref().map_or(0, |base| base.memory_bytes())
            + self.text.capacity()
            + self.ends.capacity() * size_of::<usize>()
            + self.ids.allocation_size()
    }

    /// Gives back the room kept for more names.
    pub(crate) fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

/// Names waiting for their ids.
#[derive(Debug, Default)]
pub(crate) struct NameBatch {
    text: String,
    ends: Vec<usize>,
    hashes: Vec<u64>,
    spans: Vec<Range<usize>>,
}

impl NameBatch {
    pub(crate) fn push(&mut self, name: &str) {
        self.text.push_str(name);
        self.ends.push(self.text.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, i: usize) -> &str {
        slice(&self.text, &self.ends, i as u32)
    }
}

fn slice<'a>(text: &'a str, ends: &[usize], id: u32) -> &'a str {
    let id = id as usize;
    let start = if id == 0 { 0 } else { ends[id - 1] };
    &text[start..ends[id]]
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_dense_and_in_order_of_first_sight() {
        let mut names = Names::new();
        let ids: Vec<u32> = ["b", "a", "", "b", "a", "ü b"].iter().map(|n| names.intern(n)).collect();
        assert_eq!(ids, [0, 1, 2, 0, 1, 3]);
        assert_eq!(names.iter().collect::<Vec<_>>(), ["b", "a", "", "ü b"]);
        assert_eq!(names.id("ü b"), Some(3));
        assert_eq!(names.id("c"), None);
        assert_eq!(names.len(), 4);
    }

    #[test]
    fn a_set_over_another_goes_on_with_its_ids() {
        let mut names = Names::new();
        for name in ["b", "a"] {
            names.intern(name);
        }
        let shared = Arc::new(names);
        let mut more = Names::over(&shared);
        assert_eq!(["a", "c", "b", "d", "c"].map(|n| more.intern(n)), [1, 2, 0, 3, 2]);
        // And once more: one layer, whatever is added later.
        let mut third = Names::over(&Arc::new(more));
        assert_eq!(third.intern("e"), 4);
        assert_eq!(third.iter().collect::<Vec<_>>(), ["b", "a", "c", "d", "e"]);
        assert_eq!((third.id("d"), third.id("b"), third.id("x"), third.len()), (Some(3), Some(0), None, 5));
        assert_eq!(shared.len(), 2);
        let flat = third.flattened();
        assert!(flat.base.is_none() && flat.iter().eq(third.iter()));
    }

    #[test]
    fn many_names_survive_the_growth_of_the_index() {
        let mut names = Names::new();
        for i in 0..100_000 {
            assert_eq!(names.intern(&format!("name {i}")), i);
        }
        for i in 0..100_000 {
            assert_eq!(names.id(&format!("name {i}")), Some(i));
            assert_eq!(names.get(i), format!("name {i}"));
        }
    }
}
