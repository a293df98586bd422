//! A shuffle without an array: finds the k-th element of `0..len`, in an order that a key decides,
//! in O(1).
//!
//! A Feistel network permutes words of `2h` bits, with `2^{2h} ≥ len`. A word outside `0..len` goes
//! through the network again until it falls inside (*cycle walking*). This keeps the map one to
//! one. There are fewer than `4 · len` words (but at least 64), so the expected number of turns is
//! below 4, except for the smallest lengths.

use crate::rng::{Key, Stream};

/// Rounds of the network. With eight, orders of three and of five elements pass tests for
/// uniformity. With four, small words have weak spots.
const ROUNDS: u64 = 8;
/// Least number of bits in half a word. Words of fewer than 6 bits mix badly.
const MIN_HALF: u32 = 3;

/// A pseudo-random permutation of `0..len`.
#[derive(Copy, Clone, Debug)]
pub struct Order {
    base: u64, // seed of the network's hashes
    len: u64,
    half: u32, // bits in half a word
}

impl Order {
    /// Makes the permutation of `0..len` that belongs to `key`. `len` is at most 2^48.
    pub fn new(key: Key, len: u64) -> Order {
        Order::from_base(key.base(), len)
    }

    /// Does the same as [`Order::new`] for a key that is already one word.
    pub(crate) fn from_base(base: u64, len: u64) -> Order {
        let bits = u64::BITS - len.saturating_sub(1).leading_zeros();
        Order { base, len, half: bits.div_ceil(2).max(MIN_HALF) }
    }

    /// Returns the element at `position`. Positions count modulo `len`. If `len` is 0, returns 0.
    pub fn get(&self, position: u64) -> u64 {
        if self.len == 0 {
            return 0;
        }
        let mut word = position % self.len;
        loop {
            word = self.network(word);
            if word < self.len {
                return word;
            }
        }
    }

    fn network(&self, word: u64) -> u64 {
        let mask = (1u64 << self.half) - 1;
        let (mut left, mut right) = (word >> self.half, word & mask);
        for round in 0..ROUNDS {
            let hash = Stream::from_base(self.base, round << 56 | right).draw();
            (left, right) = (right, left ^ hash & mask);
        }
        left << self.half | right
    }
}
