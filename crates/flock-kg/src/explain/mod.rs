//! Reasons for an answer: the walks that carried it, and what becomes of it without them.
//!
//! **Evidence.** In the last updates of every pass, the consensus gives each position at the answer a weight, and the weights of
//! an update and pass sum to one. Each position's walk has a path that joins the query to the answer, without loops ([`Path`]);
//! the weights of equal paths, averaged over heads, updates and passes, are the path's share. What is left of one belongs to
//! walks that never met the query.
//!
//! **Reasons.** Paths with the same relations in the same directions are one reason ([`Reason`]): their shares are added, and the
//! weightiest is the example. Reasons come by share × brevity, where brevity is one over the number of hops: of two that weigh
//! the same, the shorter is easier to check. Paths of more than [`ExplainOptions::max_hops`] hops are counted, not listed; if
//! there are no others, the shortest are listed.
//!
//! **Deletion.** Weights alone prove nothing. [`delete`] hides the edges of the best reasons, all paths of each, asks again with
//! the same draws, and says how far the logit falls, beside the falls for as many random edges around the same entities.
//!
//! A triple that the graph already has is hidden first: it would be its own best reason. Other relations between the same two
//! entities stay, which training hides from relation questions: that they are there is a reason like any other.

mod path;
mod picture;
mod report;

pub use path::Path;
pub use picture::svg;
pub use report::{DeletionReport, Explanation, ReasonReport, StepReport, explain};

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use flock_graph::{Mask, Topology, Triple};
use flock_kernels::consensus::Side;
use flock_walk::{Key, WalkQuery};

use flock_model::ensemble::{Ask, Score, Tally};
use flock_model::model::{Draw, Model, ModelError, PassBuffers, View};
use flock_model::update::Parallelism;
use path::Walk;

/// How an answer is explained.
#[derive(Copy, Clone, Debug)]
pub struct ExplainOptions {
    /// How many reasons are listed.
    pub top: usize,
    /// Whether to check the reasons by deletion, which takes several times longer.
    pub check: bool,
    /// How many of the last updates are looked at.
    pub updates: usize,
    /// How many of the best reasons have their edges hidden in the check by deletion.
    pub hide: usize,
    /// How often as many random edges are hidden instead.
    pub draws: u32,
    /// The most hops of a path that is listed; if all are longer, the shortest there are.
    pub max_hops: usize,
}

/// The most hops of a listed path, if nothing else is said: people follow about so many.
pub const MAX_HOPS: usize = 4;

impl Default for ExplainOptions {
    fn default() -> ExplainOptions {
        ExplainOptions { top: 5, check: true, updates: 2, hide: 3, draws: 3, max_hops: MAX_HOPS }
    }
}

pub use crate::passes::GoOn;

/// Paths of one pattern from the query to the answer, and how much they weighed.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// The weightiest of them.
    pub path: Path,
    /// The others, the weightiest first.
    pub others: Vec<Path>,
    /// Their share of the consensus at the answer.
    pub share: f64,
    /// At how many positions they were found.
    pub count: u32,
}

impl Reason {
    /// All its paths, the weightiest first.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.path).chain(&self.others)
    }

    /// What reasons are ordered by: share × brevity.
    fn weight(&self) -> f64 {
        self.share / self.path.hops().max(1) as f64
    }
}

/// What the walks say of one answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// The paths from the query to the answer by their patterns, by share × brevity.
    pub reasons: Vec<Reason>,
    /// Positions at the answer.
    pub positions: u32,
    /// The share of the weight that lies on walks which met the query.
    pub joined: f64,
    /// How many different paths there are, listed or too long.
    pub paths: usize,
    /// How many of them are too long to be listed.
    pub longer: usize,
    /// The share of these.
    pub longer_share: f64,
}

/// The evidence for several answers of one query.
#[derive(Clone, Debug)]
pub struct QueryEvidence {
    /// The score of each answer, and its evidence.
    pub answers: Vec<(Score, Evidence)>,
    /// The score of the candidates that no walk reached.
    pub unreached: Score,
    /// How many candidates were reached.
    pub reached: u32,
}

/// The evidence for each of `answers` (entities, or relations) of one query, and their scores, from the passes of `ask`,
/// as long as `go_on`. Runs on the threads of the current pool.
pub fn evidence(
    go_on: GoOn<'_>,
    model: &Model,
    view: View<'_>,
    query: &WalkQuery,
    ask: Ask,
    answers: &[u32],
    options: &ExplainOptions,
) -> Result<QueryEvidence, ModelError> {
    model.check(view.topology, query)?;
    let updates = options.updates.clamp(1, model.updates().len());
    let first = model.updates().len() - updates;
    let passes = ask.passes.max(1);
    let one = 1.0 / (updates as f64 * f64::from(passes));
    let mut found: Vec<HashMap<Path, (f64, u32)>> = vec![HashMap::new(); answers.len()];
    let mut positions = vec![0; answers.len()];
    let (mut buffers, mut tally) = (PassBuffers::default(), Tally::default());
    for pass in 0..passes {
        if !go_on() {
            return Err(ModelError::Stopped);
        }
        let draw = Draw { walks: ask.walks.max(1), seed: ask.seed, pass, options: ask.options };
        let mut watch = |update: usize, buffers: &PassBuffers| {
            if update < first {
                return;
            }
            for ((&answer, found), positions) in answers.iter().zip(&mut found).zip(&mut positions) {
                for (at, weights) in positions_at(model, buffers, query, answer) {
                    *positions += 1;
                    if let Some(path) = stretch(view.topology, buffers, model.meta().length, query, at) {
                        let entry = found.entry(path).or_default();
                        entry.0 += one * weights.iter().map(|w| f64::from(*w)).sum::<f64>() / weights.len() as f64;
                        entry.1 += 1;
                    }
                }
            }
        };
        tally.add(&model.pass_watched(view, query, draw, &mut buffers, Parallelism::Pool, &mut watch));
    }
    let scores = tally.scores();
    let each = answers.iter().zip(found).zip(positions).map(|((&answer, found), positions)| {
        let evidence = Evidence { positions, ..merge(found.into_iter().collect(), options.max_hops) };
        (scores.of(answer), evidence)
    });
    Ok(QueryEvidence { answers: each.collect(), unreached: scores.unreached, reached: scores.reached.len() as u32 })
}

/// Paths with their shares and counts, as reasons.
fn merge(mut paths: Vec<(Path, (f64, u32))>, max_hops: usize) -> Evidence {
    // In one order, whatever the map's was: sums depend on it to the last bit.
    let shorter = |a: &Path, b: &Path| (a.hops(), a).cmp(&(b.hops(), b));
    paths.sort_by(|(a, (share_a, _)), (b, (share_b, _))| share_b.total_cmp(share_a).then_with(|| shorter(a, b)));
    let joined = paths.iter().map(|(_, (share, _))| share).sum();
    let most = max_hops.max(paths.iter().map(|(path, _)| path.hops()).min().unwrap_or(0));
    let mut evidence = Evidence { joined, paths: paths.len(), ..Evidence::default() };
    let mut places: HashMap<_, usize> = HashMap::new(); // pattern to reason
    for (path, (share, count)) in paths {
        if path.hops() > most {
            evidence.longer += 1;
            evidence.longer_share += share;
            continue;
        }
        match places.entry(path.pattern()) {
            Entry::Occupied(place) => {
                let reason = &mut evidence.reasons[*place.get()];
                reason.share += share;
                reason.count += count;
                reason.others.push(path);
            }
            Entry::Vacant(place) => {
                place.insert(evidence.reasons.len());
                evidence.reasons.push(Reason { path, others: Vec::new(), share, count });
            }
        }
    }
    let order = |a: &Reason, b: &Reason| b.weight().total_cmp(&a.weight()).then_with(|| shorter(&a.path, &b.path));
    evidence.reasons.sort_by(order);
    evidence
}

/// The positions at an answer in the last update's walks, with their weights in its consensus, per head.
fn positions_at(model: &Model, buffers: &PassBuffers, query: &WalkQuery, answer: u32) -> Vec<(usize, Vec<f32>)> {
    match query {
        WalkQuery::Entity { .. } => buffers.weights(model, Side::Node, answer),
        WalkQuery::Relation { .. } => buffers.weights(model, Side::Type, answer),
    }
}

/// What joins the query to a position of the last update's walks; nothing if that walk never met the query.
fn stretch(topology: &Topology, buffers: &PassBuffers, length: usize, query: &WalkQuery, at: usize) -> Option<Path> {
    let (nodes, types, dirs) = buffers.walks();
    let from = at / length * length;
    let whole = from..from + length;
    let walk = Walk { nodes: &nodes[whole.clone()], types: &types[whole.clone()], dirs: &dirs[whole] };
    match *query {
        WalkQuery::Entity { head, .. } => walk.to_node(topology, head, at - from),
        WalkQuery::Relation { head, tail } => walk.to_step(topology, [head, tail], at - from),
    }
}

/// What became of an answer when edges were hidden.
#[derive(Clone, Debug, PartialEq)]
pub struct Deletion {
    /// The edges of the best reasons, which were hidden.
    pub edges: Vec<Triple>,
    /// How far the answer's logit fell without them.
    pub fall: f64,
    /// How far it fell without as many random edges around the same entities, in several draws.
    pub random: Vec<f64>,
}

/// Hides the edges of the best of the listed reasons, all paths of each, and asks again; then as many random edges of their
/// neighbourhood, several times. `hidden` is hidden throughout. Runs on the threads of the current pool.
pub fn delete(
    go_on: GoOn<'_>,
    model: &Model,
    topology: &Topology,
    query: &WalkQuery,
    ask: Ask,
    (answer, score): (u32, Score),
    reasons: &[Reason],
    hidden: &[Triple],
    options: &ExplainOptions,
) -> Result<Deletion, ModelError> {
    model.check(topology, query)?;
    let mut edges: Vec<Triple> = Vec::new();
    let mut near: Vec<u32> = Vec::new();
    for path in reasons.iter().take(options.hide.min(options.top)).flat_map(Reason::paths) {
        edges.extend(&path.triples);
        near.extend(path.nodes());
    }
    edges.sort_unstable();
    edges.dedup();
    near.sort_unstable();
    near.dedup();
    let fall = |edges: &[Triple]| -> Result<f64, ModelError> {
        let mask = Mask::new(topology, &[hidden, edges].concat());
        let view = View { topology, mask: Some(&mask) };
        Ok(score.logit - logit(go_on, model, view, query, ask, answer)?)
    };
    let mut around: Vec<Triple> = near.iter().flat_map(|&v| topology.triples_at(v)).collect();
    around.sort_unstable();
    around.dedup();
    around.retain(|t| edges.binary_search(t).is_err() && !hidden.contains(t));
    let draws = if edges.is_empty() || around.is_empty() { 0 } else { options.draws };
    let random = (0..draws).map(|draw| {
        // The first so many of a shuffle; a pass number that no walk has.
        let mut stream = Key { seed: ask.seed, pass: u32::MAX, update: draw, query: u64::from(answer) }.stream(0);
        let count = edges.len().min(around.len());
        for i in 0..count {
            let other = i + stream.below((around.len() - i) as u64) as usize;
            around.swap(i, other);
        }
        fall(&around[..count])
    });
    let random = random.collect::<Result<_, ModelError>>()?;
    Ok(Deletion { fall: if edges.is_empty() { 0.0 } else { fall(&edges)? }, edges, random })
}

/// The mean logit of one answer.
fn logit(
    go_on: GoOn<'_>,
    model: &Model,
    view: View<'_>,
    query: &WalkQuery,
    ask: Ask,
    answer: u32,
) -> Result<f64, ModelError> {
    let (mut buffers, mut tally) = (PassBuffers::default(), Tally::default());
    for pass in 0..ask.passes.max(1) {
        if !go_on() {
            return Err(ModelError::Stopped);
        }
        let draw = Draw { walks: ask.walks.max(1), seed: ask.seed, pass, options: ask.options };
        tally.add(&model.pass(view, query, draw, &mut buffers, Parallelism::Pool));
    }
    Ok(tally.scores().of(answer).logit)
}

#[cfg(test)]
mod tests;
