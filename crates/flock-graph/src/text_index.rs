//! An index of texts by hash: finds the numbers that were filed under a text, in eight bytes for each.
//!
//! The texts themselves are stored elsewhere. Two texts may have the same hash, so whoever looks
//! something up compares what is found.

use foldhash::fast::RandomState;
use std::hash::BuildHasher;

/// Numbers, filed under texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextIndex {
    /// The hash of a text (upper half) and its number (lower half), sorted.
    entries: Vec<u64>,
    /// Has a new seed in every process, so that nobody can craft a file of colliding texts.
    hasher: RandomState,
}

impl TextIndex {
    /// Files a number under a text. [`sort`](TextIndex::sort) must follow.
    pub(crate) fn push(&mut self, text: &str, number: u32) {
        self.entries.push(self.hash(text) | u64::from(number));
    }

    /// Makes the index ready for look-ups.
    pub(crate) fn sort(&mut self) {
        self.entries.sort_unstable();
        self.entries.dedup();
        self.entries.shrink_to_fit();
    }

    /// Lists the numbers that are filed under `text`, ascending, and perhaps a few others.
    pub(crate) fn get(&self, text: &str) -> impl Iterator<Item = u32> + '_ {
        let low = self.hash(text);
        let from = self.entries.partition_point(|&entry| entry < low);
        self.entries[from..].iter().take_while(move |&&entry| entry >> 32 == low >> 32).map(|&entry| entry as u32)
    }

    /// Returns the heap memory of the index in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<u64>()
    }

    fn hash(&self, text: &str) -> u64 {
        self.hasher.hash_one(text.as_bytes()) & !u64::from(u32::MAX)
    }
}
