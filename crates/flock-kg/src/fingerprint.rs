//! Numbers by which work that is taken up again knows its triples.

use flock_graph::Triple;

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
