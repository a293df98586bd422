//! How many base walks a graph gets at test time: by its size (the paper's harmonic-mean rule), and by its density.
//!
//! By size: `n = n_train · HM(|V|/V̄, |E|/Ē)`, `HM(a, b) = 2ab/(a+b)`, to the nearest power of two, within [16, 512].
//! "Nearest" is by ratio: the border between `p` and `2p` is `p·√2`. That reading gives every row of the paper's
//! table; nearest by difference gives 64 for WN18RR and 16 for two of the Wiki graphs, where the paper has 128 and 32.
//!
//! By density: `n = c · 2|E|/|V|`, rounded in the same way, within [16, 128]. The published models have no such part.

/// The least base walk count the published rule gives. A model may ask for more (`n_least` in its metadata).
pub const MIN_BASE_WALKS: u32 = 16;
/// The greatest base walk count the rule gives.
pub const MAX_BASE_WALKS: u32 = 512;
/// The greatest base walk count that a graph gets for its density.
pub const MAX_DENSE_WALKS: u32 = 128;

/// Computes the base walk count `n` for a walked graph of `num_nodes` nodes and `num_triples` raw triples (inverses not counted).
///
/// `n_train`, `mean_nodes` (V̄) and `mean_triples` (Ē) come from the checkpoint's metadata. An empty graph gets the least count.
pub fn base_walks(n_train: u32, mean_nodes: f64, mean_triples: f64, num_nodes: u32, num_triples: usize) -> u32 {
    let a = f64::from(num_nodes) / mean_nodes;
    let b = num_triples as f64 / mean_triples;
    // 0/0 on an empty graph is NaN, which no comparison lets grow.
    power_of_two(f64::from(n_train) * (2.0 * a * b / (a + b)), MAX_BASE_WALKS)
}

/// Computes the least count that a graph gets for its density: `per_degree` (c) walks for each neighbour that a node has in
/// the mean.
pub fn dense_walks(per_degree: f64, num_nodes: u32, num_triples: usize) -> u32 {
    power_of_two(per_degree * 2.0 * num_triples as f64 / f64::from(num_nodes), MAX_DENSE_WALKS)
}

/// Returns the power of two from [`MIN_BASE_WALKS`] to `most` that is nearest to `n`, by ratio.
fn power_of_two(n: f64, most: u32) -> u32 {
    let mut power = MIN_BASE_WALKS;
    // n ≥ p·√2, squared: no logarithm, so no platform's rounding can move a border.
    while power < most && n * n >= 2.0 * f64::from(power).powi(2) {
        power *= 2;
    }
    power
}
