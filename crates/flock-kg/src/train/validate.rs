//! Validation: mean reciprocal rank of held-out answers (section 9 of the specification).
//!
//! Filtered: candidates known to be true are left out. Pessimistic: a tie counts against the answer. A graph's MRR is the mean
//! over its questions, a run's score the mean over its graphs. No loop here is as long as the graph: candidates that no walk
//! reached share one score, and are counted, not listed.

use flock_graph::Topology;
use flock_walk::WalkQuery;

use super::config::ValidationSection;
use super::dataset::ValidationSet;
use crate::checkpoint::Task;
use crate::ensemble::{Ask, Asker, Scores};
use crate::model::{Model, ModelError, View};

/// How many questions are asked at once.
const CHUNK: usize = 8;

/// The MRR of each set, with the name of its graph. `progress` is told after each part how many questions are done, of how many;
/// if it answers false the rest is left, and there is no result.
pub(crate) fn mrr(
    model: &Model,
    sets: &[ValidationSet],
    config: &ValidationSection,
    pool: &rayon::ThreadPool,
    progress: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Option<Vec<(String, f64)>>, ModelError> {
    let questions: Vec<_> = sets.iter().map(|set| questions(model.meta().task, set)).collect();
    let total = questions.iter().map(Vec::len).sum();
    let (mut done, mut result) = (0, Vec::new());
    for (set, questions) in sets.iter().zip(&questions) {
        let topology = set.on.topology();
        let asker = Asker::new(model, View { topology, mask: None }, pool);
        let walks = config.n.on(model.meta(), topology.num_nodes(), topology.num_triples());
        let ask = Ask { walks, passes: config.passes, seed: config.seed, options: model.walk_options() };
        let mut sum = 0.0;
        for chunk in questions.chunks(CHUNK) {
            let queries: Vec<WalkQuery> = chunk.iter().map(|(query, _)| *query).collect();
            for ((query, answer), scores) in chunk.iter().zip(asker.ask(&queries, ask)?) {
                sum += 1.0 / rank(&set.known, query, *answer, &scores) as f64;
            }
            done += chunk.len();
            if !progress(done, total) {
                return Ok(None);
            }
        }
        result.push((set.on.name.clone(), sum / questions.len().max(1) as f64));
    }
    Ok(Some(result))
}

/// The questions about a set's triples, with their answers.
fn questions(task: Task, set: &ValidationSet) -> Vec<(WalkQuery, u32)> {
    let inverse = |r| set.on.topology().inverse(r);
    let ask = |t: &flock_graph::Triple| match task {
        Task::Relation => vec![(WalkQuery::Relation { head: t.head, tail: t.tail }, t.relation)],
        Task::Entity => {
            let mut both = vec![(WalkQuery::Entity { head: t.head, relation: t.relation }, t.tail)];
            if set.heads {
                both.push((WalkQuery::Entity { head: t.tail, relation: inverse(t.relation) }, t.head));
            }
            both
        }
    };
    set.triples.iter().flat_map(ask).collect()
}

/// `1 + #{candidates that are not known to be true and score at least as high as the answer}`.
fn rank(known: &Topology, query: &WalkQuery, answer: u32, scores: &Scores) -> u64 {
    let (mut filtered, candidates): (Vec<u32>, u32) = match *query {
        WalkQuery::Entity { head, relation } => (known.answers(head, relation).collect(), known.num_nodes()),
        WalkQuery::Relation { head, tail } => (known.relations_between(head, tail), known.num_relations()),
    };
    // The answer itself is no rival, whether the filter knows it or not.
    if let Err(place) = filtered.binary_search(&answer) {
        filtered.insert(place, answer);
    }
    let own = scores.of(answer).logit;
    let rivals = scores.reached.iter().filter(|(id, _)| filtered.binary_search(id).is_err());
    let (mut reached, mut above) = (0u64, 0u64);
    for (_, score) in rivals {
        reached += 1;
        above += u64::from(score.logit >= own);
    }
    let unreached = u64::from(candidates) - filtered.len() as u64 - reached;
    if scores.unreached.logit >= own {
        above += unreached;
    }
    1 + above
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ensemble::Score;
    use crate::update::Stages;
    use flock_graph::Triple;
    use flock_walk::Key;

    fn score(logit: f64) -> Score {
        Score { logit, spread: 0.0, visits: 0 }
    }

    #[test]
    fn ranks_by_hand() {
        // Entities 0..6; known answers of (0, r, ?) are 1, 2, 3. Reached: 1 at 5, 3 at 2, 4 at 2, 5 at −1; unreached at 0.
        let t = |tail| Triple { head: 0, relation: 0, tail };
        let known = Topology::build(7, 2, vec![t(1), t(2), t(3), Triple { head: 0, relation: 1, tail: 2 }]).unwrap();
        let reached = vec![(1, score(5.0)), (3, score(2.0)), (4, score(2.0)), (5, score(-1.0))];
        let scores = Scores { reached, unreached: score(0.0), stages: Stages::default() };
        let query = WalkQuery::Entity { head: 0, relation: 0 };
        // 3 at 2: rivals are 0, 4, 5, 6; only 4 ties with it.
        assert_eq!(rank(&known, &query, 3, &scores), 2);
        assert_eq!(rank(&known, &query, 1, &scores), 1);
        // 2 is unreached: 4 is above, and 0 and 6 tie with it.
        assert_eq!(rank(&known, &query, 2, &scores), 4);
        // 5 is not known, so it is only left out as the answer: above it are 4 and the unreached 0 and 6.
        assert_eq!(rank(&known, &query, 5, &scores), 4);
        // Relations: (0, ?, 2) has both; asked for 0, nothing is left to be above it.
        let scores = Scores { reached: vec![(1, score(9.0))], unreached: score(0.0), stages: Stages::default() };
        assert_eq!(rank(&known, &WalkQuery::Relation { head: 0, tail: 2 }, 0, &scores), 1);
        assert_eq!(rank(&known, &WalkQuery::Relation { head: 0, tail: 3 }, 0, &scores), 2);
    }

    #[test]
    fn ranks_as_an_explicit_list_does() {
        let mut stream = Key { seed: 4, pass: 0, update: 0, query: 0 }.stream(0);
        for _ in 0..500 {
            let nodes = 2 + stream.below(9) as u32;
            let triple = |tail| Triple { head: 0, relation: 0, tail };
            let tails: Vec<u32> = (0..nodes).filter(|_| stream.below(3) == 0).collect();
            let known = Topology::build(nodes, 1, tails.iter().map(|t| triple(*t)).collect()).unwrap();
            // Few distinct logits, so that ties are common.
            let drawn: Vec<u32> = (0..nodes).filter(|_| stream.below(2) == 0).collect();
            let reached: Vec<(u32, Score)> = drawn.into_iter().map(|v| (v, score(stream.below(4) as f64))).collect();
            let scores = Scores { reached, unreached: score(1.0), stages: Stages::default() };
            let answer = stream.below(u64::from(nodes)) as u32;
            let rivals = (0..nodes).filter(|v| *v != answer && !tails.contains(v));
            let expected = 1 + rivals.filter(|v| scores.of(*v).logit >= scores.of(answer).logit).count() as u64;
            assert_eq!(rank(&known, &WalkQuery::Entity { head: 0, relation: 0 }, answer, &scores), expected);
        }
    }
}
