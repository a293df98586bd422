//! Random numbers that depend only on (seed, pass, update, query, walk).
//!
//! Each walk has its own stream. The generator is wyrand: a counter and one widening
//! multiplication. So the whole random state of a walk is one word, and any thread can draw any
//! walk. A key becomes a counter through the finaliser of splitmix64, applied once per component,
//! so that the streams of neighbouring keys are unrelated.

/// The key from which all draws for the walks of a query derive.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Seed of the run.
    pub seed: u64,
    /// Number of the pass in the ensemble.
    pub pass: u32,
    /// Number of the update in the model, from 0.
    pub update: u32,
    /// Number of the query.
    pub query: u64,
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Applies the finaliser of splitmix64: a bijection in which every input bit affects every output
/// bit.
#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Key {
    /// Hashes the whole key to one word. Each component enters through a bijection, so keys that
    /// differ in one component never collide.
    pub(crate) fn base(self) -> u64 {
        let mut state = GOLDEN;
        for word in [self.seed, u64::from(self.pass) << 32 | u64::from(self.update), self.query] {
            state = mix((state ^ word).wrapping_add(GOLDEN));
        }
        state
    }

    /// Hashes seed, query and two further words to one word. It does not depend on the pass or the
    /// update.
    pub(crate) fn base_of_query(self, tag: u64, number: u64) -> u64 {
        let mut state = GOLDEN;
        for word in [self.seed, tag, self.query, number] {
            state = mix((state ^ word).wrapping_add(GOLDEN));
        }
        state
    }

    /// Returns the stream of one walk.
    pub fn stream(self, walk: u64) -> Stream {
        Stream::from_base(self.base(), walk)
    }
}

/// A stream of 64-bit random words.
#[derive(Copy, Clone, Debug, Default)]
pub struct Stream(u64);

impl Stream {
    #[inline]
    pub(crate) fn from_base(base: u64, walk: u64) -> Stream {
        Stream(mix((base ^ walk).wrapping_add(GOLDEN)))
    }

    /// Draws the next word.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0xA076_1D64_78BD_642F);
        let product = u128::from(self.0) * u128::from(self.0 ^ 0xE703_7ED1_A0B4_28DB);
        (product >> 64) as u64 ^ product as u64
    }

    /// Draws a number below `bound`, by multiply and shift. The result is uniform up to an error
    /// below `bound / 2^64`. Returns 0 if `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        split(self.draw(), bound).0
    }
}

/// Cuts `0..2^64` into `bound` equal parts. Returns the part that `x` lies in, and the place of `x`
/// within it, as a new random word for a further choice.
#[inline]
pub(crate) fn split(x: u64, bound: u64) -> (u64, u64) {
    let product = u128::from(x) * u128::from(bound);
    ((product >> 64) as u64, product as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of splitmix64 from state 1234567: the usual check of the mixer.
    #[test]
    fn mixer_reference_values() {
        let drawn: Vec<u64> = (1..=5).map(|i| mix(GOLDEN.wrapping_mul(i).wrapping_add(1_234_567))).collect();
        let expected =
            [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821];
        assert_eq!(drawn, expected);
    }

    /// Changing any single bit of any key component flips each bit of the first three draws about half the time. 4096 keys a bit:
    /// the mean number of flipped bits of 64 is 32 with standard deviation 4 / 64 = 0.0625; 6 deviations either way.
    #[test]
    fn keys_avalanche() {
        for bit in 0..64 {
            for field in 0..5 {
                if (field == 1 || field == 2) && bit >= 32 {
                    continue;
                }
                let mut flipped = [0u32; 3];
                for i in 0..4096u32 {
                    let key = Key { seed: 7, pass: i & 3, update: i >> 2 & 7, query: u64::from(i >> 5) };
                    let walk = u64::from(i & 31);
                    let (mut other, mut other_walk) = (key, walk);
                    match field {
                        0 => other.seed ^= 1 << bit,
                        1 => other.pass ^= 1 << bit,
                        2 => other.update ^= 1 << bit,
                        3 => other.query ^= 1 << bit,
                        _ => other_walk ^= 1 << bit,
                    }
                    let (mut a, mut b) = (key.stream(walk), other.stream(other_walk));
                    for f in &mut flipped {
                        *f += (a.draw() ^ b.draw()).count_ones();
                    }
                }
                for f in flipped {
                    let mean = f64::from(f) / 4096.0;
                    assert!((mean - 32.0).abs() < 0.375, "field {field} bit {bit}: {mean} bits flip");
                }
            }
        }
    }

    /// Streams of neighbouring walks, queries, updates and passes: the joint counts of the top 3 bits of draw i of one and draw j
    /// of the other are uniform over 64 cells. Chi-square with 63 degrees of freedom, 2^18 samples: 131 is p = 1e-6.
    #[test]
    fn neighbouring_streams_are_uncorrelated() {
        for field in 0..4 {
            for (i, j) in [(0, 0), (0, 1), (1, 0), (5, 5), (3, 7)] {
                let mut counts = [0u32; 64];
                for k in 0..1u32 << 18 {
                    let key = Key { seed: 3, pass: 0, update: 0, query: u64::from(k >> 8) };
                    let mut other = key;
                    let (walk, mut other_walk) = (u64::from(k & 255), u64::from(k & 255));
                    match field {
                        0 => other_walk += 1,
                        1 => other.query += 1,
                        2 => other.update += 1,
                        _ => other.pass += 1,
                    }
                    let (mut a, mut b) = (key.stream(walk), other.stream(other_walk));
                    let x = (0..=i).map(|_| a.draw()).last().unwrap_or(0) >> 61;
                    let y = (0..=j).map(|_| b.draw()).last().unwrap_or(0) >> 61;
                    counts[(x << 3 | y) as usize] += 1;
                }
                let expected = f64::from(1u32 << 18) / 64.0;
                let chi: f64 = counts.iter().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum();
                assert!(chi < 131.0, "field {field} draws {i},{j}: chi-square {chi}");
            }
        }
    }
}
