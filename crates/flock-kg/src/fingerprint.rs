//! Numbers by which work that is taken up again knows its triples.

use flock_graph::{Graph, Triple};

/// A number that another set of triples is not likely to have. Their order does not count: an index may keep them in any.
pub(crate) fn fingerprint(triples: impl Iterator<Item = Triple>) -> u64 {
    let mix = |x: u64| (x ^ (x >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash =
        |t: Triple| mix(mix(u64::from(t.head) << 32 | u64::from(t.tail)).wrapping_add(u64::from(t.relation) + 1));
    triples.map(hash).fold(0, u64::wrapping_add)
}

/// The same, for triples whose order counts.
pub(crate) fn ordered_fingerprint(triples: impl Iterator<Item = Triple>) -> u64 {
    (0u64..).zip(triples).fold(0, |sum, (place, triple)| {
        let one = fingerprint(std::iter::once(triple)) ^ place.wrapping_mul(0xd6e8_feb8_6659_fd93);
        (sum ^ one).rotate_left(23).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

/// A number that another graph is not likely to have: another in triples, ids or names. Labels do not count.
pub fn graph_fingerprint(graph: &Graph) -> u64 {
    let mix = |sum: u64, x: u64| (sum ^ x).rotate_left(23).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The byte after a name is none of UTF-8: two names are not one that is longer.
    let name = |sum: u64, name: &str| name.bytes().chain([0xff]).fold(sum, |sum, byte| mix(sum, byte.into()));
    let names = graph.entities().iter().fold(1, name);
    let names = graph.relations().iter().fold(names, name);
    mix(names, fingerprint(graph.topology().triples()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_or_triples_are_another_graph() {
        let graph = |triples: &[[&str; 3]]| {
            let mut builder = flock_graph::GraphBuilder::new();
            triples.iter().for_each(|[h, r, t]| builder.add(h, r, t));
            graph_fingerprint(&builder.finish().unwrap())
        };
        let one = graph(&[["a", "r", "b"], ["b", "r", "c"]]);
        assert_eq!(one, graph(&[["a", "r", "b"], ["b", "r", "c"], ["a", "r", "b"]]));
        for other in [
            &[["a", "r", "b"], ["b", "r", "d"]],
            &[["a", "r", "b"], ["c", "r", "b"]],
            &[["ab", "r", "b"], ["b", "r", "c"]],
        ] {
            assert_ne!(one, graph(other));
        }
    }
}
