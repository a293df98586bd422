//! Relation embeddings as points in a plane: how a model sees each relation of a graph.
//!
//! The embedding of a relation is its final state when it is asked about, (h, r, ?): what the
//! scoring head reads. It is averaged over some of the relation's edges and over passes, each with
//! its own walks.

use flock_graph::Topology;
use flock_walk::{Key, WalkQuery};
use rayon::prelude::*;

use super::finding::Finding;
use crate::chart::{self, Axis, LabelledPoint};
use crate::datasets::TestSet;
use crate::sheet::Sheet;
use flock_model::ensemble::Ask;
use flock_model::model::{Draw, Model, ModelError, PassBuffers, View};
use flock_model::update::Parallelism;

/// Computes the embedding of each relation that has an edge: the mean over `questions` of its edges
/// and the passes of `ask`.
pub fn relations(
    model: &Model,
    topology: &Topology,
    ask: Ask,
    questions: usize,
    pool: &rayon::ThreadPool,
) -> Result<Vec<(u32, Vec<f64>)>, ModelError> {
    if let Some(relation) = topology.relations_in_use().first() {
        model.check(topology, &WalkQuery::Entity { head: 0, relation: *relation })?;
    }
    let of = |relation: u32| {
        let edges = topology.relation_range(relation);
        let mut stream =
            Key { seed: ask.seed, pass: u32::MAX, update: u32::MAX - 2, query: u64::from(relation) }.stream(0);
        let mut sum = vec![0.0; model.meta().width];
        let mut buffers = PassBuffers::default();
        for _ in 0..questions.max(1) {
            let (head, _) = topology.ends(edges.start + stream.below(edges.len() as u64) as usize);
            let query = WalkQuery::Entity { head, relation };
            for pass in 0..ask.passes.max(1) {
                let draw = Draw { walks: ask.walks, seed: ask.seed, pass, options: ask.options };
                model.pass(View { topology, mask: None }, &query, draw, &mut buffers, Parallelism::OneThread);
                let state = model.type_state(&buffers, relation);
                sum.iter_mut().zip(state).for_each(|(s, x)| *s += f64::from(*x));
            }
        }
        let count = (questions.max(1) * ask.passes.max(1) as usize) as f64;
        (relation, sum.into_iter().map(|s| s / count).collect())
    };
    Ok(pool.install(|| topology.relations_in_use().par_iter().map(|r| of(*r)).collect()))
}

/// Places embeddings of a graph's relations, which [`relations`] computed, in the plane of their two main directions. `who` names
/// the model.
pub fn picture(who: &str, set: &TestSet, ask: Ask, questions: usize, found: &[(u32, Vec<f64>)]) -> Finding {
    let names = set.on.graph().relations();
    let vectors: Vec<Vec<f64>> = found.iter().map(|(_, v)| v.clone()).collect();
    let (places, share) = plane(&vectors);
    let points: Vec<LabelledPoint> = found
        .iter()
        .zip(&places)
        .map(|((r, _), (x, y))| LabelledPoint { x: *x, y: *y, label: names.get(*r).to_string(), class: 0 })
        .collect();
    let rows = points.iter().map(|p| vec![p.label.clone(), format!("{:.4}", p.x), format!("{:.4}", p.y)]).collect();
    let axis =
        |k: usize| format!("{} main direction ({:.0} % of the variance)", ["first", "second"][k], share[k] * 100.0);
    let (x, y) = (axis(0), axis(1));
    let title = format!("Relation embeddings of {}", set.on.name);
    let subtitle =
        format!("{who}, n = {}, {questions} questions × {} passes each, seed {}", ask.walks, ask.passes, ask.seed);
    Finding {
        sheet: Sheet { header: ["relation", "first", "second"].map(String::from).to_vec(), rows },
        picture: chart::points(&title, &subtitle, &Axis::linear(&x), &Axis::linear(&y), &points, &[], None),
        note: None,
    }
}

/// Projects points on the two directions in which they differ most. Returns each point's
/// coordinates, and the share of the variance that each direction has.
pub fn plane(points: &[Vec<f64>]) -> (Vec<(f64, f64)>, [f64; 2]) {
    let width = points.first().map_or(0, Vec::len);
    let count = points.len().max(1) as f64;
    let mean: Vec<f64> = (0..width).map(|c| points.iter().map(|p| p[c]).sum::<f64>() / count).collect();
    let centred: Vec<Vec<f64>> = points.iter().map(|p| p.iter().zip(&mean).map(|(x, m)| x - m).collect()).collect();
    let mut matrix: Vec<Vec<f64>> = (0..width)
        .map(|a| (0..width).map(|b| centred.iter().map(|p| p[a] * p[b]).sum::<f64>() / count).collect())
        .collect();
    let total: f64 = (0..width).map(|c| matrix[c][c]).sum();
    let vectors = diagonalise(&mut matrix);
    let mut order: Vec<usize> = (0..width).collect();
    order.sort_by(|a, b| matrix[*b][*b].total_cmp(&matrix[*a][*a]));
    let along = |p: &[f64], k: usize| order.get(k).map_or(0.0, |&k| (0..width).map(|c| p[c] * vectors[c][k]).sum());
    let share = |k: usize| order.get(k).map_or(0.0, |&k| if total > 0.0 { matrix[k][k] / total } else { 0.0 });
    (centred.iter().map(|p| (along(p, 0), along(p, 1))).collect(), [share(0), share(1)])
}

/// Diagonalises a symmetric matrix by Jacobi's method. The columns of the result are its
/// eigenvectors.
fn diagonalise(a: &mut [Vec<f64>]) -> Vec<Vec<f64>> {
    let n = a.len();
    let mut v: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    let scale: f64 = a.iter().flatten().map(|x| x * x).sum();
    for _ in 0..60 {
        let off: f64 = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| a[i][j] * a[i][j]).sum();
        if off <= 1e-24 * scale {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                if a[p][q] == 0.0 {
                    continue;
                }
                // The rotation that makes this entry zero.
                let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                for k in 0..n {
                    let (x, y) = (a[k][p], a[k][q]);
                    (a[k][p], a[k][q]) = (c * x - s * y, s * x + c * y);
                }
                for k in 0..n {
                    let (x, y) = (a[p][k], a[q][k]);
                    (a[p][k], a[q][k]) = (c * x - s * y, s * x + c * y);
                    let (x, y) = (v[k][p], v[k][q]);
                    (v[k][p], v[k][q]) = (c * x - s * y, s * x + c * y);
                }
            }
        }
    }
    v
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_directions_of_a_known_cloud() {
        // Along (3, 4, 0)/5 at −2, 0, 2 and along (0, 0, 1) at ±1, about (7, 7, 7): variances 8/3
        // and 2/3·…: by hand below.
        let points: Vec<Vec<f64>> = [(-2.0, 1.0), (0.0, -2.0), (2.0, 1.0)]
            .iter()
            .map(|(u, w)| vec![7.0 + 0.6 * u, 7.0 + 0.8 * u, 7.0 + w])
            .collect();
        let (at, share) = plane(&points);
        // Variances: u (4 + 0 + 4)/3 = 8/3, w (1 + 4 + 1)/3 = 2; shares 8/14 and 6/14.
        assert!((share[0] - 8.0 / 14.0).abs() < 1e-12 && (share[1] - 6.0 / 14.0).abs() < 1e-12, "{share:?}");
        for ((x, y), (u, w)) in at.iter().zip([(2.0f64, 1.0f64), (0.0, 2.0), (2.0, 1.0)]) {
            assert!((x.abs() - u).abs() < 1e-12 && (y.abs() - w).abs() < 1e-12);
        }
        assert!(at[0].0 * at[2].0 < 0.0 && at[0].1 * at[1].1 < 0.0);
        assert_eq!(plane(&[]).1, [0.0, 0.0]);
        assert_eq!(plane(&[vec![1.0, 2.0]]).0, [(0.0, 0.0)]);
    }
}
