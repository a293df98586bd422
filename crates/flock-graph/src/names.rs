//! Names and their dense ids, in both directions.
//!
//! All names are stored one after another in one string, and `ends[id]` is where a name ends. A
//! hash table of bare ids finds the id of a name. No name is stored twice, and none has its own
//! allocation.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::fmt;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;

/// A set of names with ids `0..len`, in the order of first appearance.
#[derive(Clone, Default)]
pub struct Names {
    /// Names with the first ids, shared with other sets. The other fields hold the rest.
    base: Option<Arc<Names>>,
    text: String,
    ends: Vec<usize>,
    ids: HashTable<u32>,
    // Has a new seed in every process, so that nobody can craft a file of colliding names. Ids do
    // not depend on it.
    hasher: RandomState,
}

impl Names {
    /// Makes an empty set.
    pub fn new() -> Names {
        Names::default()
    }

    /// Returns the id of `name`, and adds the name if it is new.
    ///
    /// After 2³² − 1 names every new name gets the id `u32::MAX`. No name has this id, and
    /// [`Topology::build`](crate::Topology::build) refuses it.
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

    /// Returns the first id that does not belong to the base.
    fn first(&self) -> u32 {
        self.base.as_ref().map_or(0, |base| base.len() as u32)
    }

    /// Makes a set that has all names of another one and can take more, without copying them.
    pub(crate) fn over(names: &Arc<Names>) -> Names {
        match names.base {
            Some(_) => Names::clone(names),
            None => Names { base: Some(names.clone()), ..Names::default() },
        }
    }

    /// Returns a set with the same names and ids that has no base.
    pub(crate) fn flattened(&self) -> Names {
        let mut flat = Names::new();
        for name in self.iter() {
            flat.intern(name);
        }
        flat
    }

    /// Finds the ids of all names in `batch`, as if each had been [interned](Names::intern) in
    /// turn, and empties the batch.
    ///
    /// In a large set every step of a look-up misses the cache: table, end, text. Here each step is
    /// done for the whole batch before the next one. So the processor waits for many misses at
    /// once. This halves the time with 200,000 names.
    pub(crate) fn intern_batch(&mut self, batch: &mut NameBatch, ids: &mut Vec<u32>) {
        debug_assert!(self.base.is_none(), "batches are for sets of their own");
        batch.hashes.clear();
        batch.spans.clear();
        ids.clear();
        for i in 0..batch.len() {
            batch.hashes.push(self.hasher.hash_one(batch.get(i).as_bytes()));
        }
        for &hash in &batch.hashes {
            // Takes any entry with this hash. Usually it is the name itself.
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

    /// Returns the number of names.
    pub fn len(&self) -> usize {
        self.first() as usize + self.ends.len()
    }

    /// Tells whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the name of `id`.
    ///
    /// # Panics
    /// If `id` is not below [`len`](Names::len).
    pub fn get(&self, id: u32) -> &str {
        match &self.base {
            Some(base) if (id as usize) < base.len() => base.get(id),
            _ => slice(&self.text, &self.ends, id - self.first()),
        }
    }

    /// Returns the id of `name`, if it is spelled exactly like this.
    pub fn id(&self, name: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(name.as_bytes());
        let own = || self.ids.find(hash, |&own| slice(&self.text, &self.ends, own) == name);
        let first = self.first();
        self.base.as_ref().and_then(|base| base.id(name)).or_else(|| own().map(|own| first + own))
    }

    /// Lists all names in the order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + '_ {
        (0..self.len()).map(|id| self.get(id as u32))
    }

    /// Returns the heap memory of the names in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.base.as_ref().map_or(0, |base| base.memory_bytes())
            + self.text.capacity()
            + self.ends.capacity() * size_of::<usize>()
            + self.ids.allocation_size()
    }

    /// Frees the memory reserved for more names.
    pub(crate) fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

/// Names that wait for their ids.
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
        // And once more: there is only one layer, whatever is added later.
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
