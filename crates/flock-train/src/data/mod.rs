//! Training data: the batch of any step, computed from a seed. Integers only.
//!
//! There is no generator to save. The graph of step `s` is a hash of (seed, s). The triples of a
//! graph come in a keyed order, one for each (graph, epoch), whose k-th element costs O(1)
//! ([`Order`]). So a run must only remember how many triples each graph has given: [`DataState`], a
//! few integers that go into the training state. The batch of a step is a pure function of it, and
//! a resumed run asks the same questions as one that never stopped. A batch that crosses the end of
//! an epoch may contain a triple twice.
//!
//! ```
//! use flock_graph::{Topology, Triple};
//! use flock_model::checkpoint::Task;
//! use flock_train::data::{DataConfig, Feed, Negatives};
//!
//! let ring = (0..20).map(|v| Triple { head: v, relation: 0, tail: (v + 1) % 20 }).collect();
//! let graph = Topology::build(20, 1, ring)?;
//! let config = DataConfig { batch: 4, negatives: Negatives::Drawn(5), ..DataConfig::published(Task::Entity) };
//! let feed = Feed::new(&[&graph], config, 1)?;
//! let mut state = feed.start();
//! for _ in 0..3 {
//!     let batch = feed.batch(&state)?;
//!     assert_eq!(batch.candidates[0].len(), 1 + 5);
//!     feed.advance(&mut state)?;
//! }
//! assert_eq!((state.step, state.draws[0]), (3, 12));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`batch`]: questions, hidden edges, candidates.
//! - [`negatives`]: entities that are not known answers.
//! - [`Subgraph`]: connected pieces of a graph to train on.
//! - [`world`]: synthetic graphs made from rules.

pub mod batch;
pub mod negatives;
pub mod world;

pub use batch::TrainingBatch;
pub use flock_graph::Subgraph;
pub use flock_model::hide::{Hide, hidden};
pub use flock_walk::Order;
pub use negatives::{Negatives, strict_negatives};
pub use world::World;

use crate::remedy::TrainRemedy;
use flock_graph::{Mask, Topology, TopologyError, Triple};
use flock_model::checkpoint::Task;
use flock_walk::{Key, WalkQuery};
use serde::{Deserialize, Serialize};

/// Passes of walks count from 0. Draws of this module use the last pass, and a purpose in place of
/// the update.
const PASS: u32 = u32::MAX;

/// The purpose of a draw.
#[derive(Copy, Clone)]
enum Purpose {
    Graph,
    EpochOrder,
    Negatives,
    Piece,
    PieceOrder,
    Share,
    Drop,
    World,
}

fn key(seed: u64, purpose: Purpose, query: u64) -> Key {
    Key { seed, pass: PASS, update: purpose as u32, query }
}

/// Number of anchors that are tried before a piece that is too small is taken.
const ANCHORS: u64 = 8;

/// Sizes of the pieces of subgraph pretraining, in entities, both included.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// The least; 2 or more.
    pub low: u32,
    /// The greatest.
    pub high: u32,
}

/// Shares of a piece's triples, in percent, both included.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shares {
    /// The least; 1 or more.
    pub low: u32,
    /// The greatest; at most 100.
    pub high: u32,
}

/// How often a step draws from each graph.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Weighting {
    /// In proportion to its triples, as published.
    #[default]
    Triples,
    /// In proportion to the square root of its triples.
    Root,
    /// All alike.
    Even,
}

impl Weighting {
    /// Returns the weight of a graph with this many triples.
    fn of(self, triples: usize) -> u64 {
        match self {
            Weighting::Triples => triples as u64,
            // Ten bits behind the point.
            Weighting::Root => ((triples as u64) << 20).isqrt(),
            Weighting::Even => u64::from(triples > 0),
        }
    }
}

/// The source of a step's questions.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A training graph, by its index.
    Graph(usize),
    /// A synthetic world of the step's own.
    World,
}

/// Settings of the questions.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataConfig {
    /// The task.
    pub task: Task,
    /// Triples in a batch. Fewer if the graph or piece has fewer.
    pub batch: usize,
    /// Negatives of each entity question.
    pub negatives: Negatives,
    /// What is hidden from the walks.
    pub hide: Hide,
    /// If set, each step runs on a connected piece of the graph, of a size drawn uniformly from
    /// these.
    pub subgraph: Option<Sizes>,
    /// If set, the walks of a step see only a share of its piece's triples, drawn uniformly from
    /// these. The others stay known answers. This helps because training graphs are denser than
    /// most other graphs.
    pub keep: Option<Shares>,
    /// If set, relations of a piece that its batch does not ask about are hidden from the walks,
    /// each with a chance drawn uniformly from these. So the model learns not to rely on a single
    /// relation.
    pub drop: Option<Shares>,
    /// How often a step draws from each graph.
    pub weighting: Weighting,
    /// Percentage of the steps that run on a synthetic [`World`].
    pub worlds: u32,
}

impl DataConfig {
    /// Returns the settings of the published pretraining: batches of 8, 512 negatives, whole
    /// graphs.
    pub fn published(task: Task) -> DataConfig {
        DataConfig {
            task,
            batch: 8,
            negatives: Negatives::Drawn(512),
            hide: Hide::Positives,
            subgraph: None,
            keep: None,
            drop: None,
            weighting: Weighting::Triples,
            worlds: 0,
        }
    }
}

/// The position of a run in its data: all that later batches depend on besides seed, graphs and
/// config.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataState {
    /// Steps done.
    pub step: u64,
    /// Draws from each graph's triples so far: triples of batches, or anchors of pieces.
    pub draws: Vec<u64>,
}

/// Why there is nothing to train on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// No graph has a triple.
    #[error("{graphs} training graphs without a triple, expected at least one triple")]
    NoTriples {
        /// How many graphs were given.
        graphs: usize,
    },
    /// Batches are empty.
    #[error("batches of 0 triples, expected at least 1")]
    EmptyBatch,
    /// The sizes of pieces are out of range.
    #[error("pieces of {low} to {high} entities, expected 2 ≤ least ≤ greatest")]
    Sizes {
        /// The least size.
        low: u32,
        /// The greatest size.
        high: u32,
    },
    /// The shares are out of range, or there are no pieces.
    #[error("{low} to {high} % of a piece's triples, expected pieces and 1 ≤ least ≤ greatest ≤ 100")]
    Shares {
        /// The least share.
        low: u32,
        /// The greatest share.
        high: u32,
    },
    /// The share of worlds is out of range.
    #[error("synthetic worlds in {percent} % of the steps, expected at most 100")]
    Worlds {
        /// The share.
        percent: u32,
    },
    /// The state belongs to another run.
    #[error("the data state counts draws from {found} graphs, but there are {expected}")]
    State {
        /// Graphs in the state.
        found: usize,
        /// Graphs of this run.
        expected: usize,
    },
    /// The state has impossible counts.
    #[error("the data state counts more than 2^63 steps or draws")]
    Counts,
    /// A piece cannot be indexed.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

impl DataError {
    /// Returns what to do about it, where that is known.
    pub fn remedy(&self) -> Option<TrainRemedy> {
        match self {
            DataError::State { .. } => Some(TrainRemedy::ResumeSameGraphs),
            DataError::Counts => Some(TrainRemedy::ReplaceDamaged),
            _ => None,
        }
    }
}

/// The questions of a training run.
#[derive(Clone, Debug)]
pub struct Feed<'a> {
    graphs: Vec<&'a Topology>,
    ends: Vec<u64>, // (graphs): weights of all graphs up to and with this one
    config: DataConfig,
    seed: u64,
}

impl<'a> Feed<'a> {
    /// Makes the feed and checks its settings.
    ///
    /// # Errors
    /// No triples, or a config out of range.
    pub fn new(graphs: &[&'a Topology], config: DataConfig, seed: u64) -> Result<Feed<'a>, DataError> {
        let ends: Vec<u64> = graphs
            .iter()
            .scan(0, |sum, g| {
                *sum += config.weighting.of(g.num_triples());
                Some(*sum)
            })
            .collect();
        if ends.last().is_none_or(|&sum| sum == 0) {
            return Err(DataError::NoTriples { graphs: graphs.len() });
        }
        if config.batch == 0 {
            return Err(DataError::EmptyBatch);
        }
        if let Some(Sizes { low, high }) = config.subgraph
            && !(2 <= low && low <= high)
        {
            return Err(DataError::Sizes { low, high });
        }
        for Shares { low, high } in config.keep.into_iter().chain(config.drop) {
            if !(config.subgraph.is_some() && 1 <= low && low <= high && high <= 100) {
                return Err(DataError::Shares { low, high });
            }
        }
        if config.worlds > 100 {
            return Err(DataError::Worlds { percent: config.worlds });
        }
        Ok(Feed { graphs: graphs.to_vec(), ends, config, seed })
    }

    /// Returns the state before the first step.
    pub fn start(&self) -> DataState {
        DataState { step: 0, draws: vec![0; self.graphs.len()] }
    }

    /// Computes the state after `step` steps by counting them all, one hash per step. A saved state
    /// must equal it.
    pub fn state_at(&self, step: u64) -> DataState {
        let mut state = self.start();
        for s in 0..step {
            self.count_draws(s, &mut state);
        }
        state.step = step;
        state
    }

    fn count_draws(&self, step: u64, state: &mut DataState) {
        if let Origin::Graph(graph) = self.origin(step) {
            state.draws[graph] += self.draws_per_step(graph);
        }
    }

    /// Returns the source of a step's questions: a world for a share of the steps, else a graph
    /// with probability proportional to its weight.
    pub fn origin(&self, step: u64) -> Origin {
        let chance = u64::from(self.config.worlds);
        if chance > 0 && key(self.seed, Purpose::World, step).stream(u64::MAX).below(100) < chance {
            return Origin::World;
        }
        let total = self.ends[self.ends.len() - 1];
        let drawn = key(self.seed, Purpose::Graph, step).stream(0).below(total);
        Origin::Graph(self.ends.partition_point(|&end| end <= drawn))
    }

    /// Advances the state by one step.
    ///
    /// # Errors
    /// A state of another number of graphs, or with impossible counts.
    pub fn advance(&self, state: &mut DataState) -> Result<(), DataError> {
        self.check(state)?;
        self.count_draws(state.step, state);
        state.step += 1;
        Ok(())
    }

    /// Makes the batch of the step that the state has reached. It depends on the state alone.
    ///
    /// # Errors
    /// A state of another number of graphs, or with impossible counts.
    pub fn batch(&self, state: &DataState) -> Result<TrainingBatch, DataError> {
        self.check(state)?;
        let Origin::Graph(graph) = self.origin(state.step) else { return self.world_batch(state.step) };
        let whole = self.graphs[graph];
        let drawn = state.draws[graph];
        let mut thinned = None;
        let (mut subgraph, triples) = match self.config.subgraph {
            None => {
                let count = self.draws_per_step(graph);
                (None, (drawn..drawn + count).map(|k| whole.triple(self.nth_draw(graph, k))).collect())
            }
            Some(sizes) => {
                let piece = self.piece(graph, drawn, sizes, state.step)?;
                let all = piece.topology.num_triples() as u64;
                let order = Order::new(key(self.seed, Purpose::PieceOrder, state.step), all);
                let first = |count: u64| (0..count).map(|k| piece.topology.triple(order.get(k) as u32));
                let count = all.min(self.config.batch as u64);
                let triples: Vec<_> = first(count).collect();
                if self.config.keep.is_some() || self.config.drop.is_some() {
                    let whole = Shares { low: 100, high: 100 };
                    let share = self.share(Purpose::Share, state.step, self.config.keep.unwrap_or(whole));
                    // The batch's triples are hidden by the mask, not by what is kept: the least
                    // that is left is their number.
                    let kept = (all * share).div_ceil(100).max(count);
                    let Subgraph { topology, nodes, .. } = &piece;
                    let hidden = self.dropped(state.step, topology.num_relations(), &triples);
                    let seen = first(kept).filter(|t| !hidden[t.relation as usize]).collect();
                    thinned = Some(Topology::build(nodes.len() as u32, topology.num_relations(), seen)?);
                }
                (Some(piece), triples)
            }
        };
        let topology = subgraph.as_ref().map_or(whole, |s| &s.topology);

        let walked = thinned.as_ref().unwrap_or(topology);
        let mask = Mask::new(walked, &hidden(walked, &triples, self.config.task, self.config.hide));
        // Answers are known by all triples of the piece, whether or not the walks see them.
        let (queries, candidates) = self.questions(state.step, topology, &triples);
        if let (Some(piece), Some(thinned)) = (&mut subgraph, thinned) {
            piece.topology = thinned;
        }
        Ok(TrainingBatch { origin: Origin::Graph(graph), subgraph, triples, mask, queries, candidates })
    }

    /// Makes the question about each triple, and its candidates. Known answers are those of
    /// `topology`.
    fn questions(&self, step: u64, topology: &Topology, triples: &[Triple]) -> (Vec<WalkQuery>, Vec<Vec<u32>>) {
        let DataConfig { task, negatives, .. } = self.config;
        let question = |(place, t): (usize, &Triple)| {
            let ask_head = place >= triples.len() / 2;
            let mut stream = key(self.seed, Purpose::Negatives, step).stream(place as u64);
            TrainingBatch::question(topology, *t, task, ask_head, negatives, &mut stream)
        };
        triples.iter().enumerate().map(question).unzip()
    }

    /// Makes a batch on a world of its own, about the facts that the world leaves out.
    fn world_batch(&self, step: u64) -> Result<TrainingBatch, DataError> {
        let World { entities, relations, facts, questions, .. } =
            World::new(key(self.seed, Purpose::World, step), self.config.batch);
        let order = Order::new(key(self.seed, Purpose::PieceOrder, step), questions.len() as u64);
        let count = questions.len().min(self.config.batch) as u64;
        let triples: Vec<Triple> = (0..count).map(|k| questions[order.get(k) as usize]).collect();
        // The walks see the facts. Answers are known by facts and questions together.
        let walked = Topology::build(entities, relations, facts.clone())?;
        let known = Topology::build(entities, relations, [facts, questions].concat())?;
        let mask = Mask::new(&walked, &hidden(&walked, &triples, self.config.task, self.config.hide));
        let (queries, candidates) = self.questions(step, &known, &triples);
        let subgraph =
            Subgraph { topology: walked, nodes: (0..entities).collect(), relations: (0..relations).collect() };
        Ok(TrainingBatch { origin: Origin::World, subgraph: Some(subgraph), triples, mask, queries, candidates })
    }

    fn check(&self, state: &DataState) -> Result<(), DataError> {
        let (found, expected) = (state.draws.len(), self.graphs.len());
        if found != expected {
            return Err(DataError::State { found, expected });
        }
        let most = state.draws.iter().fold(state.step, |most, &draws| most.max(draws));
        if most > 1 << 63 { Err(DataError::Counts) } else { Ok(()) }
    }

    /// Draws a share for a step, in percent.
    fn share(&self, purpose: Purpose, step: u64, Shares { low, high }: Shares) -> u64 {
        u64::from(low) + key(self.seed, purpose, step).stream(0).below(u64::from(high - low) + 1)
    }

    /// Draws the relations that the walks of a step do not see. None of them is asked about.
    fn dropped(&self, step: u64, relations: u32, asked: &[Triple]) -> Vec<bool> {
        let Some(shares) = self.config.drop else { return vec![false; relations as usize] };
        let chance = self.share(Purpose::Drop, step, shares);
        let mut stream = key(self.seed, Purpose::Drop, step).stream(1);
        let mut hidden: Vec<bool> = (0..relations).map(|_| stream.below(100) < chance).collect();
        asked.iter().for_each(|t| hidden[t.relation as usize] = false);
        hidden
    }

    /// Returns how many draws a step makes from a graph: a batch, or the anchor of a piece.
    fn draws_per_step(&self, graph: usize) -> u64 {
        match self.config.subgraph {
            None => self.config.batch.min(self.graphs[graph].num_triples()) as u64,
            Some(_) => 1,
        }
    }

    /// Returns the k-th draw from a graph's triples. Within an epoch there is no repetition, and
    /// each epoch has its own order.
    fn nth_draw(&self, graph: usize, k: u64) -> u32 {
        let triples = self.graphs[graph].num_triples() as u64;
        let (epoch, position) = (k / triples, k % triples);
        // One seed for each (graph, epoch), so that graphs of the same size have different orders.
        let seed = key(self.seed, Purpose::EpochOrder, epoch).stream(graph as u64).draw();
        Order::new(key(seed, Purpose::EpochOrder, 0), triples).get(position) as u32
    }

    /// Draws the piece of a step, around the next anchor. If the anchor's component is too small, a
    /// few others are tried and the largest piece is taken.
    fn piece(&self, graph: usize, drawn: u64, sizes: Sizes, step: u64) -> Result<Subgraph, DataError> {
        let whole = self.graphs[graph];
        let mut stream = key(self.seed, Purpose::Piece, step).stream(0);
        let size = u64::from(sizes.low) + stream.below(u64::from(sizes.high - sizes.low) + 1);
        let size = size.min(u64::from(whole.num_nodes())) as usize;
        let mut around = |anchor: u32| Subgraph::around(whole, whole.triple(anchor), size, &mut |b| stream.below(b));
        let mut best = around(self.nth_draw(graph, drawn))?;
        for attempt in 1..ANCHORS {
            if best.nodes.len() == size {
                break;
            }
            let anchor = key(self.seed, Purpose::Piece, step).stream(attempt).below(whole.num_triples() as u64) as u32;
            let other = around(anchor)?;
            if other.nodes.len() > best.nodes.len() {
                best = other;
            }
        }
        Ok(best)
    }
}
