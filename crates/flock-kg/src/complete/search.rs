//! The whole search for missing links: asking until the work is done, time is up or someone stops it, with the work kept in a file.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{Completion, CompletionState, StateError};
use crate::error::AskError;
use crate::inquiry::Inquiry;

/// The work is written down at least so often.
const EVERY_STATE: Duration = Duration::from_secs(10);

/// When a search ends, and where it is kept.
#[derive(Copy, Clone, Debug)]
pub struct SearchLimits<'r> {
    /// Ends the search so early that the other ends of the best links can still be asked for.
    pub budget: Option<Duration>,
    /// A file that keeps the work. If it is there, the search goes on from it.
    pub state: Option<&'r Path>,
    /// Ends the search after the current step.
    pub stop: &'r AtomicBool,
}

/// How a search has ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SearchEnd {
    /// Whether everything was asked that was planned.
    pub in_time: bool,
    /// Whether someone has stopped it.
    pub interrupted: bool,
}

/// How far a search is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SearchProgress {
    /// Questions that were asked before, if the search goes on from a file.
    pub before: Option<usize>,
    /// Questions asked since then.
    pub now: usize,
    /// How many there will be, as far as that is known.
    pub total: usize,
}

/// Why a search has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// A question cannot be asked.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The file that keeps the work cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The file is of other work.
    #[error("{file}: {source}")]
    OtherState {
        /// The file.
        file: String,
        /// What differs.
        source: StateError,
    },
}

impl Inquiry<'_> {
    /// Asks the questions of the work until there are none, time is up, or someone stops it. `watch` is called at the beginning and
    /// after each step.
    ///
    /// # Errors
    /// There is no entity model, someone has cancelled, or the file that keeps the work is of other work or cannot be written; or what
    /// `watch` returns.
    pub fn search<E: From<SearchError>>(
        &self,
        work: &mut Completion,
        limits: &SearchLimits<'_>,
        watch: &mut dyn FnMut(&Completion, SearchProgress) -> Result<(), E>,
    ) -> Result<SearchEnd, E> {
        let mut spent = Duration::ZERO;
        let mut resumed = None;
        if let Some(path) = limits.state
            && let Some(state) = CompletionState::read(path).map_err(SearchError::State)?
        {
            spent = Duration::from_secs_f64(state.seconds);
            let taken_up = self.resume(work, state).map_err(SearchError::Ask)?;
            let file = || path.display().to_string();
            taken_up.map_err(|source| SearchError::OtherState { file: file(), source })?;
            resumed = Some(work.progress().asked);
        }
        let before = resumed.unwrap_or(0);
        let tell = |work: &Completion| {
            let progress = work.progress();
            let now = progress.asked - before;
            SearchProgress { before: resumed, now, total: now + progress.left + progress.lacking }
        };
        watch(work, tell(work))?;
        let (begin, mut written) = (Instant::now(), Instant::now());
        let keep = |work: &Completion| -> Result<(), SearchError> {
            let Some(path) = limits.state else { return Ok(()) };
            let mut state = self.state(work)?;
            state.seconds = (spent + begin.elapsed()).as_secs_f64();
            Ok(state.write(path)?)
        };
        let step = self.step_size().map_err(SearchError::Ask)?;
        let mut end = SearchEnd { in_time: true, interrupted: false };
        loop {
            let (progress, elapsed) = (work.progress(), begin.elapsed());
            let left = limits.budget.map(|budget| budget.saturating_sub(spent));
            let hurry = left.is_some_and(|left| progress.must_end(elapsed, progress.asked - before, 0, left));
            if limits.stop.load(Ordering::Relaxed) {
                end.interrupted = true;
                break;
            }
            if limits.budget.is_some_and(|budget| spent + elapsed >= budget) {
                end.in_time = false;
                break;
            }
            let asked = self.advance(work, step, hurry);
            if let Err(AskError::Cancelled) = asked {
                keep(work)?;
            }
            if asked.map_err(SearchError::Ask)? == 0 {
                end.in_time = !hurry || work.progress().left == 0;
                break;
            }
            watch(work, tell(work))?;
            if written.elapsed() >= EVERY_STATE {
                keep(work)?;
                written = Instant::now();
            }
        }
        keep(work)?;
        Ok(end)
    }
}
