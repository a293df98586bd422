//! Indexes of names without case and punctuation.

use crate::names::Names;
use crate::text_index::TextIndex;
use std::sync::OnceLock;

/// Number of names that may be added after the index was made. They are read one by one.
pub(crate) const FEW: usize = 4096;

/// Indexes of folded names, made when they are needed.
#[derive(Debug)]
pub(crate) struct FoldedNames {
    /// Number of entities and relations that the indexes cover: those with the first ids.
    pub(crate) covered: [usize; 2],
    pub(crate) indexes: [OnceLock<TextIndex>; 2],
}

impl FoldedNames {
    /// Prepares indexes of so many entities and relations.
    pub(crate) fn new(entities: &Names, relations: &Names) -> FoldedNames {
        FoldedNames { covered: [entities.len(), relations.len()], indexes: Default::default() }
    }

    /// Tells whether the indexes serve a later state of their graph well, which has these names.
    pub(crate) fn serves(&self, entities: &Names, relations: &Names) -> bool {
        let few = |covered: usize, names: &Names| names.len() - covered <= FEW.max(covered / 8);
        few(self.covered[0], entities) && few(self.covered[1], relations)
    }

    /// Returns the heap memory of the indexes in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.indexes.iter().filter_map(OnceLock::get).map(TextIndex::memory_bytes).sum()
    }
}
