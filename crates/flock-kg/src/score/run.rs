//! Scoring many triples step by step, with what is done kept in a file.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use flock_graph::{Graph, Triple};
use flock_walk::{Key, Order};

use super::{Journal, JournalError, ScoredTriple};
use crate::error::AskError;
use crate::inquiry::Inquiry;

/// The triples of a graph, or those of a relation.
///
/// # Errors
/// A relation that the graph does not have.
pub fn existing(graph: &Graph, relation: Option<&str>) -> Result<Vec<Triple>, AskError> {
    let relation = relation.map(|name| graph.parse_relation(name)).transpose()?;
    Ok(graph.topology().triples().filter(|t| relation.is_none_or(|r| t.relation == r)).collect())
}

/// Draws `count` of some triples by a seed, in their order.
pub fn sample(triples: &[Triple], count: usize, seed: u64) -> Vec<Triple> {
    // A pass number that no walk has, so that the choice and the walks share nothing.
    let order = Order::new(Key { seed, pass: u32::MAX, update: 0, query: 0 }, triples.len() as u64);
    let mut places: Vec<u64> = (0..count.min(triples.len()) as u64).map(|k| order.get(k)).collect();
    places.sort_unstable();
    places.into_iter().map(|place| triples[place as usize]).collect()
}

/// The `top` triples of the lowest logits, the lowest first; those of equal logits in their order.
pub fn least_likely(mut scored: Vec<ScoredTriple>, top: usize) -> Vec<ScoredTriple> {
    scored.sort_by(|a, b| a.logit().total_cmp(&b.logit()));
    scored.truncate(top);
    scored
}

/// What came of a run.
pub struct ScoreRun {
    /// The triples that were scored, in their order.
    pub scored: Vec<ScoredTriple>,
    /// The file that keeps them, to be removed when they are where they should be.
    pub journal: Option<Journal>,
    /// Whether someone has stopped it.
    pub interrupted: bool,
}

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScoreError {
    /// A triple cannot be asked for.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The file that keeps the scores cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl Inquiry<'_> {
    /// Scores triples step by step until all are done or `stop` is set. What is done is kept in `journal`; if that file is there, the
    /// run goes on from it. `watch` hears how many triples were done before and are done now, at the beginning and after each step.
    ///
    /// # Errors
    /// There is no entity model, someone has cancelled, or the file is of another run or cannot be written.
    pub fn score_all(
        &self,
        triples: &[Triple],
        journal: Option<&Path>,
        stop: &AtomicBool,
        watch: &mut dyn FnMut(usize, usize),
    ) -> Result<ScoreRun, ScoreError> {
        let settings = self.score_settings(triples)?;
        let (mut journal, mut scored) = match journal {
            Some(path) => {
                let (journal, scored) = Journal::open(path, &settings)?;
                (Some(journal), scored)
            }
            None => (None, Vec::new()),
        };
        let (before, step) = (scored.len(), self.step_size()?.div_ceil(2));
        watch(before, scored.len());
        while scored.len() < triples.len() {
            if stop.load(Ordering::Relaxed) {
                return Ok(ScoreRun { scored, journal, interrupted: true });
            }
            let end = triples.len().min(scored.len() + step);
            let new = self.score_triples(&triples[scored.len()..end])?;
            if let Some(journal) = &mut journal {
                journal.add(&new)?;
            }
            scored.extend(new);
            watch(before, scored.len());
        }
        Ok(ScoreRun { scored, journal, interrupted: false })
    }
}
