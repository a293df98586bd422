//! Work that can be taken up again: what a [`Completion`] has found so far, as a file.

use std::fs;
use std::io;
use std::path::Path;

use flock_graph::Topology;
use flock_model::ModelName;
use flock_model::ensemble::Ask;
use flock_model::files::write_atomically;
use serde::{Deserialize, Serialize};

use super::pool::Pool;
use super::work::Pair;
use super::{Candidate, CompleteOptions, Completion, capacity};
use crate::fingerprint::fingerprint;

const VERSION: u32 = 1;

/// A [`Completion`] between two questions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompletionState {
    version: u32,
    settings: Settings,
    next: usize,
    wave: usize,
    confirm: Vec<[u32; 2]>,
    asked_early: Vec<[u32; 2]>, // besides those of the work list before `next`
    asked_again: Vec<[u32; 2]>,
    pool: Vec<Candidate>,
    floor: Option<f64>,
    /// Seconds that have gone into it.
    pub seconds: f64,
}

/// What must be the same for the work to go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Settings {
    graph: [u64; 4], // entities, relations, triples and a sum over all triples
    model: String,
    precision: String,
    walks: u32,
    passes: u32,
    seed: u64,
    options: CompleteOptions,
}

/// Why the work cannot be taken up again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The file cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{file}: {what}, expected the state of a completion of version {VERSION}")]
    Format {
        /// The file.
        file: String,
        /// What was found.
        what: String,
    },
    /// The state is of other work.
    #[error("the state is of another {what}")]
    Other {
        /// What differs: graph, model, walks, or options.
        what: &'static str,
    },
}

impl CompletionState {
    /// Reads a file; nothing if there is none.
    ///
    /// # Errors
    /// A file that cannot be read, or is something else.
    pub fn read(path: &Path) -> Result<Option<CompletionState>, StateError> {
        let file = path.display().to_string();
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(StateError::Io { file, source }),
        };
        let wrong = |what| StateError::Format { file, what };
        let state: CompletionState = match serde_json::from_str(&text) {
            Ok(state) => state,
            Err(e) => return Err(wrong(format!("found {e}"))),
        };
        if !(0.0..1e12).contains(&state.seconds) {
            return Err(wrong(format!("found {} seconds", state.seconds)));
        }
        if state.version != VERSION {
            return Err(wrong(format!("found version {}", state.version)));
        }
        Ok(Some(state))
    }

    /// Writes a file, whole or not at all.
    ///
    /// # Errors
    /// The system cannot.
    pub fn write(&self, path: &Path) -> Result<(), StateError> {
        let text = serde_json::to_string(self).expect("string keys and finite numbers are always JSON");
        write_atomically(path, text.as_bytes())
            .map_err(|source| StateError::Io { file: path.display().to_string(), source })
    }
}

fn settings(topology: &Topology, model: &ModelName, ask: &Ask, options: &CompleteOptions) -> Settings {
    let sum = fingerprint(topology.triples());
    Settings {
        graph: [topology.num_nodes().into(), topology.num_relations().into(), topology.num_triples() as u64, sum],
        model: model.sha256.clone(),
        precision: model.precision.clone(),
        walks: ask.walks,
        passes: ask.passes,
        seed: ask.seed,
        options: options.clone(),
    }
}

impl Completion {
    /// What has been found so far, as it is asked of this model in this way.
    pub(super) fn state(&self, topology: &Topology, model: &ModelName, ask: &Ask) -> CompletionState {
        let mut early: Vec<Pair> = self.asked.iter().copied().collect();
        let listed: std::collections::HashSet<Pair> = self.work.pairs[..self.next].iter().copied().collect();
        early.retain(|pair| !listed.contains(pair));
        early.sort_unstable();
        let mut again: Vec<Pair> = self.again.iter().copied().collect();
        again.sort_unstable();
        let ids = |pair: &Pair| [pair.relation, pair.entity];
        CompletionState {
            version: VERSION,
            settings: settings(topology, model, ask, &self.options),
            next: self.next,
            wave: self.wave,
            confirm: self.confirm.iter().map(ids).collect(),
            asked_early: early.iter().map(ids).collect(),
            asked_again: again.iter().map(ids).collect(),
            pool: self.pool.best(usize::MAX),
            floor: self.pool.floor(),
            seconds: 0.0,
        }
    }

    /// Goes on from a state.
    pub(super) fn resume(
        &mut self,
        state: CompletionState,
        topology: &Topology,
        model: &ModelName,
        ask: &Ask,
    ) -> Result<(), StateError> {
        let (own, found) = (settings(topology, model, ask, &self.options), &state.settings);
        let differs = [
            ("graph", own.graph != found.graph),
            ("model", (&own.model, &own.precision) != (&found.model, &found.precision)),
            (
                "number of walks, passes or seed",
                (own.walks, own.passes, own.seed) != (found.walks, found.passes, found.seed),
            ),
            ("scope or other options", own.options != found.options),
        ];
        if let Some((what, _)) = differs.into_iter().find(|(_, differs)| *differs) {
            return Err(StateError::Other { what });
        }
        let pair = |ids: &[u32; 2]| Pair { relation: ids[0], entity: ids[1] };
        let sound = |ids: &[u32; 2]| ids[0] < 2 * topology.num_relations() && ids[1] < topology.num_nodes();
        let triple = |c: &Candidate| {
            c.triple.head.max(c.triple.tail) < topology.num_nodes() && c.triple.relation < topology.num_relations()
        };
        if state.next > self.work.pairs.len()
            || !state.confirm.iter().chain(&state.asked_early).chain(&state.asked_again).all(sound)
            || !state.pool.iter().all(triple)
        {
            return Err(StateError::Other { what: "graph" });
        }
        (self.next, self.wave) = (state.next, state.wave);
        self.confirm = state.confirm.iter().map(pair).collect();
        self.asked = self.work.pairs[..self.next].iter().copied().chain(state.asked_early.iter().map(pair)).collect();
        self.again = state.asked_again.iter().map(pair).collect();
        self.pool = Pool::with(self.options.rank_by, capacity(&self.options), state.pool, state.floor);
        Ok(())
    }
}
