//! Near names: finds what may have been meant by a name that is not in the graph.
//!
//! Reads all names once, without an index. Each name is folded (case, `_`, `-`) into a reused
//! buffer and then compared: is it equal, does it begin with the query or contain it, or is it a
//! few edits away? Edits are insertions, deletions, replacements and swaps of neighbours (optimal
//! string alignment). They are counted for 64 characters at a time in the bits of a word: H. Hyyrö,
//! "A bit-vector algorithm for computing Levenshtein and Damerau edit distances", 2003.

use crate::names::Names;
use memchr::{memchr, memmem, memrchr2};

/// Costs: lower is nearer. One edit costs `EDIT`. The other costs lie between multiples of it.
const EDIT: u32 = 4;
const BEGINS: u32 = 5;
const HAS_WORD: u32 = 7;
const CONTAINS: u32 = 9;
const INSIDE_QUERY: u32 = 9;
const OTHER_NAMESPACE: u32 = 6;

/// Number of characters of the query that are used: one word of bits.
const MAX_QUERY: usize = 64;

/// Lists up to `k` of `names`, nearest to `query` first. Ties go to the shorter name, then to the
/// earlier one.
pub(crate) fn nearest<'a>(names: impl Iterator<Item = &'a str>, query: &str, k: usize) -> Vec<&'a str> {
    nearest_by(names.map(|name| (name, name)), query, k)
}

/// Does the same for things that have names. A thing with several names may come several times.
pub(crate) fn nearest_by<'a, T>(things: impl Iterator<Item = (T, &'a str)>, query: &str, k: usize) -> Vec<T> {
    let (namespace, local) = split_iri(query);
    let query = FoldedQuery::new(local);
    if k == 0 || query.chars == 0 {
        return Vec::new();
    }
    let mut best: Vec<(u32, usize, T)> = Vec::with_capacity(k + 1);
    let mut folded = String::new();
    for (thing, name) in things {
        let (name_namespace, name_local) = split_iri(name);
        let elsewhere = !namespace.is_empty() && namespace != name_namespace;
        let extra = if elsewhere { OTHER_NAMESPACE } else { 0 };
        fold(name_local, &mut folded);
        let Some(cost) = query.cost(&folded) else {
            continue;
        };
        let key = (cost + extra, name.len());
        if best.len() == k && best.last().is_some_and(|b| (b.0, b.1) <= key) {
            continue;
        }
        let at = best.partition_point(|b| (b.0, b.1) <= key);
        best.insert(at, (key.0, key.1, thing));
        best.truncate(k);
    }
    best.into_iter().map(|(_, _, thing)| thing).collect()
}

/// Splits an IRI after its last `/` or `#`, into namespace and local part. Any other name is all
/// local.
pub(crate) fn split_iri(name: &str) -> (&str, &str) {
    let bytes = name.as_bytes();
    let is_iri = memchr(b':', bytes).is_some_and(|at| bytes[at..].starts_with(b"://"));
    if !is_iri {
        return ("", name);
    }
    match memrchr2(b'/', b'#', bytes) {
        Some(at) if at + 1 < name.len() => name.split_at(at + 1),
        _ => ("", name),
    }
}

/// Writes `name` to `out` in lower case, with `_` and `-` as spaces.
pub(crate) fn fold(name: &str, out: &mut String) {
    out.clear();
    for c in name.chars() {
        match c {
            '_' | '-' => out.push(' '),
            _ if c.is_ascii() => out.push(c.to_ascii_lowercase()),
            _ => out.extend(c.to_lowercase()),
        }
    }
}

/// A folded query and the bit masks of its characters.
struct FoldedQuery {
    text: String,
    chars: usize,
    /// Greatest number of edits that still counts as near.
    limit: u32,
    ascii: [u64; 128],
    other: Vec<(char, u64)>,
    finder: memmem::Finder<'static>,
}

impl FoldedQuery {
    fn new(query: &str) -> FoldedQuery {
        let mut text = String::new();
        fold(query, &mut text);
        if let Some((cut, _)) = text.char_indices().nth(MAX_QUERY) {
            text.truncate(cut);
        }
        let mut ascii = [0; 128];
        let mut other: Vec<(char, u64)> = Vec::new();
        for (i, c) in text.chars().enumerate() {
            let mask = if c.is_ascii() {
                &mut ascii[c as usize]
            } else {
                let at = other.iter().position(|o| o.0 == c).unwrap_or_else(|| {
                    other.push((c, 0));
                    other.len() - 1
                });
                &mut other[at].1
            };
            *mask |= 1 << i;
        }
        let chars = text.chars().count();
        FoldedQuery {
            chars,
            // 3 characters allow one edit, 6 two, 10 three, and so on.
            limit: if chars < 3 { 0 } else { (chars as u32 + 2) / 4 },
            ascii,
            other,
            finder: memmem::Finder::new(&text).into_owned(),
            text,
        }
    }

    fn mask(&self, c: char) -> u64 {
        if c.is_ascii() {
            return self.ascii[c as usize];
        }
        self.other.iter().find(|o| o.0 == c).map_or(0, |o| o.1)
    }

    /// Returns the cost of the folded `name`, if it is near at all.
    fn cost(&self, name: &str) -> Option<u32> {
        if name == self.text {
            return Some(0);
        }
        let edits = self.edits(name).map(|d| d * EDIT);
        let part = self.part(name);
        match (edits, part) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Returns the cost if one contains the other.
    fn part(&self, name: &str) -> Option<u32> {
        if self.chars < 3 {
            return None;
        }
        if name.len() < self.text.len() {
            let much = name.len() >= 3 && name.len() * 3 >= self.text.len();
            return (much && self.text.contains(name)).then_some(INSIDE_QUERY);
        }
        let at = self.finder.find(name.as_bytes())?;
        Some(match at {
            0 => BEGINS,
            _ if !name.as_bytes()[at - 1].is_ascii_alphanumeric() => HAS_WORD,
            _ => CONTAINS,
        })
    }

    /// Returns the number of edits between query and name, if it is within the limit.
    fn edits(&self, name: &str) -> Option<u32> {
        // A name has at most as many characters as bytes, and at least a quarter as many.
        let (least, most) = (self.chars - self.limit as usize, self.chars + self.limit as usize);
        if name.len() < least || name.len() > 4 * most {
            return None;
        }
        let distance = if name.is_ascii() {
            if name.len() > most {
                return None;
            }
            self.alignment(name.bytes().map(|b| self.ascii[b as usize]))
        } else {
            self.alignment(name.chars().map(|c| self.mask(c)))
        };
        (distance <= self.limit).then_some(distance)
    }

    /// Returns the optimal string alignment distance to the text whose characters have these masks.
    fn alignment(&self, masks: impl Iterator<Item = u64>) -> u32 {
        let last = 1u64 << (self.chars - 1);
        let (mut plus, mut minus, mut diagonal, mut before) = (!0u64, 0u64, 0u64, 0u64);
        let mut distance = self.chars as u32;
        for mask in masks {
            let swap = ((!diagonal & mask) << 1) & before;
            diagonal = (((mask & plus).wrapping_add(plus)) ^ plus) | mask | minus | swap;
            let right_plus = minus | !(diagonal | plus);
            let right_minus = diagonal & plus;
            distance += u32::from(right_plus & last != 0);
            distance -= u32::from(right_minus & last != 0);
            let right_plus = (right_plus << 1) | 1;
            plus = (right_minus << 1) | !(diagonal | right_plus);
            minus = right_plus & diagonal;
            before = mask;
        }
        distance
    }
}

impl Names {
    /// Lists up to `k` names that `name` may have been meant for, nearest first.
    ///
    /// Ignores case and treats `_` and `-` as spaces. Finds misspellings, prefixes and parts of
    /// names. Compares IRIs by what follows their last `/` or `#`. Reads all names once.
    pub fn suggest(&self, name: &str, k: usize) -> Vec<String> {
        nearest(self.iter(), name, k).into_iter().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    fn near<'a>(names: &[&'a str], query: &str) -> Vec<&'a str> {
        nearest(names.iter().copied(), query, 3)
    }

    #[test]
    fn misspelled_names() {
        let names = ["Spain", "Portugal", "Poland", "United Kingdom", "São Tomé", "UK", "US"];
        assert_eq!(near(&names, "Portgual"), ["Portugal"]);
        assert_eq!(near(&names, "portugal"), ["Portugal"]);
        assert_eq!(near(&names, "Pland"), ["Poland"]);
        assert_eq!(near(&names, "Sapin"), ["Spain"]);
        assert_eq!(near(&names, "united_kingdom"), ["United Kingdom"]);
        assert_eq!(near(&names, "sao tome"), ["São Tomé"]);
        assert_eq!(near(&names, "SÃO TOMÉ"), ["São Tomé"]);
        assert_eq!(near(&names, "uk"), ["UK"]);
        assert_eq!(near(&names, "Kingdom"), ["United Kingdom"]);
        assert_eq!(near(&names, "Portugal (country)"), ["Portugal"]);
        assert_eq!(near(&names, "Zimbabwe"), Vec::<&str>::new());
        assert_eq!(near(&names, ""), Vec::<&str>::new());
    }

    #[test]
    fn nearer_names_come_first() {
        let names = ["Seaport", "Porto Alegre", "Fort", "An open port", "Porto", "Part"];
        // One edit: Fort, Part, Porto (shorter first, then earlier). Then what begins with it, has it as a word, contains it.
        let all = nearest(names.iter().copied(), "Port", 9);
        let want = ["Fort", "Part", "Porto", "Porto Alegre", "An open port", "Seaport"];
        assert_eq!(all, want);
        assert_eq!(nearest(names.iter().copied(), "Port", 2), ["Fort", "Part"]);
        assert!(nearest(names.iter().copied(), "Port", 0).is_empty());
    }

    #[test]
    fn iris_match_by_their_last_part() {
        let names = ["http://a.org/x/Portugal", "http://b.org/y#Portugal", "http://a.org/x/Spain"];
        assert_eq!(near(&names, "portugal"), names[..2]);
        assert_eq!(near(&names, "http://b.org/y#Portgual"), [names[1], names[0]]);
        assert_eq!(near(&names, "http://b.org/Y#Spain"), [names[2]]);
    }

    #[test]
    fn splitting_iris() {
        assert_eq!(split_iri("http://a.org/x#y"), ("http://a.org/x#", "y"));
        assert_eq!(split_iri("http://a.org/"), ("", "http://a.org/"));
        assert_eq!(split_iri("/m/027rn"), ("", "/m/027rn"));
        assert_eq!(split_iri("a:b/c"), ("", "a:b/c"));
    }

    /// Computes the distance with the textbook table. This is the definition.
    fn plain_alignment(a: &[char], b: &[char]) -> u32 {
        let mut d = vec![vec![0u32; b.len() + 1]; a.len() + 1];
        for i in 0..=a.len() {
            for j in 0..=b.len() {
                d[i][j] = if i == 0 || j == 0 {
                    (i + j) as u32
                } else {
                    let replaced = d[i - 1][j - 1] + u32::from(a[i - 1] != b[j - 1]);
                    let mut least = replaced.min(d[i - 1][j] + 1).min(d[i][j - 1] + 1);
                    if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                        least = least.min(d[i - 2][j - 2] + 1);
                    }
                    least
                };
            }
        }
        d[a.len()][b.len()]
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(64),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn bit_parallel_distance_equals_the_table(a in "[abcé]{1,64}", b in "[abcé]{0,80}") {
            let query = FoldedQuery::new(&a);
            let (x, y): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
            let plain = plain_alignment(&x, &y);
            prop_assert_eq!(query.alignment(b.chars().map(|c| query.mask(c))), plain);
            prop_assert_eq!(query.edits(&b), (plain <= query.limit).then_some(plain));
        }

        #[test]
        fn any_text_is_a_fair_query(names in prop::collection::vec(".*", 0..20), query in ".*") {
            let found = nearest(names.iter().map(String::as_str), &query, 5);
            prop_assert!(found.len() <= 5);
            for name in found {
                prop_assert!(names.iter().any(|n| n == name));
            }
        }
    }
}
