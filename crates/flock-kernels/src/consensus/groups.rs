//! The rows of each node or type, in the order in which the fast consensus reads them.

use crate::embed::{block_width, row_of};

/// Rows sorted by group.
#[derive(Default)]
pub struct Groups {
    /// Groups that have a row, ascending.
    pub(super) ids: Vec<u32>,
    /// Where the rows of `ids[i]` begin in `rows`, with the end of the last group as an extra
    /// entry.
    pub(super) starts: Vec<u32>,
    pub(super) rows: Vec<u32>,
    counts: Vec<u32>,
}

impl Groups {
    /// Sorts positions by group: a counting sort over `groups` groups. `group` is walk-major. The
    /// result lists time-major rows within blocks. Within a group the order of the positions stays.
    pub fn build(
        &mut self,
        groups: usize,
        group: &[u32], // (W, L), each < groups
        length: usize,
    ) {
        // An incomplete walk at the end would keep the rows of an earlier build.
        assert!(group.len().is_multiple_of(length));
        self.counts.clear();
        self.counts.resize(groups, 0);
        for &g in group {
            self.counts[g as usize] += 1;
        }
        self.ids.clear();
        self.starts.clear();
        let mut start = 0;
        for (g, count) in self.counts.iter_mut().enumerate() {
            let n = std::mem::replace(count, start);
            if n > 0 {
                self.ids.push(g as u32);
                self.starts.push(start);
                start += n;
            }
        }
        self.starts.push(start);
        self.rows.resize(group.len(), 0);
        let walks = group.len() / length;
        for (w, group) in group.chunks_exact(length).enumerate() {
            let width = block_width(w, walks);
            let mut row = row_of(w, 0, walks, length);
            for &g in group {
                let next = &mut self.counts[g as usize];
                self.rows[*next as usize] = row as u32;
                *next += 1;
                row += width;
            }
        }
    }

    /// Lists the groups that have a row, ascending.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Counts the rows of all groups.
    pub fn num_rows(&self) -> usize {
        self.rows.len()
    }

    /// Lists the rows of the `i`-th group of [`Self::ids`].
    pub fn rows(&self, i: usize) -> &[u32] {
        &self.rows[self.starts[i] as usize..self.starts[i + 1] as usize]
    }

    /// Cuts `ids` into at most `parts` ranges of about equal row counts.
    pub fn split(&self, parts: usize) -> Vec<std::ops::Range<usize>> {
        let mut ranges = Vec::with_capacity(parts);
        let mut from = 0;
        for part in 1..=parts {
            let until = (self.rows.len() * part / parts) as u32;
            let to = if part == parts { self.ids.len() } else { self.starts.partition_point(|s| *s < until) };
            let to = to.clamp(from, self.ids.len());
            if to > from {
                ranges.push(from..to);
            }
            from = to;
        }
        ranges
    }
}
