//! Petals: 220 small graphs that no model with deterministic relation invariants can solve (the
//! paper's appendix on Petals; `docs/reference/model.md`, section 10).
//!
//! A flower: a *stem* `b₀ → b₁ → … → b_t` of relation `r₀`, and petals that hang on `b₀`. Petal `i`
//! has a pair of relations `(p, q)` and two sides of `l` nodes that meet in a tip; only the first
//! edge of the second side has relation `q`:
//!
//! ```text
//!      p      p      p
//!   ┌───▶ a₁ ───▶ a₃ ───┐
//!  b₀                   ├─▶ a₅        l = 2
//!   └───▶ a₂ ───▶ a₄ ───┘
//!      q      p      p
//! ```
//!
//! The query is `(b_s, r₀, ?)`, and the targets are the two nodes at distance `j` of one petal:
//! `a_{2j−1}` is true, `a_{2j}` false.
//!
//! - **Why invariants fail.** Renaming the relations by
//!   [`permutation`](PetalsInstance::permutation) and the nodes by
//!   [`node_map`](PetalsInstance::node_map) gives the same graph; both leave the stem alone. The
//!   permutation is one cycle through all petal relations, so an encoder that gives a relation a
//!   deterministic invariant gives all of them the same. With `p` and `q` alike, a petal's sides
//!   are mirror images, and so are the targets.
//! - **Why it can be done.** The only path from `b₀` to the true target has one relation
//!   throughout, the other does not, and no renaming changes that.
//!
//! The sides differ by the *relations* of edges, so a petal's symmetry cannot be broken without
//! looking at two edges of one walk together: this is what anonymous names of types are for.
//!
//! **Inverses.** The published protocol adds none to these graphs: a move along a triple has the
//! one label `(r, 0)`, against it `(r, 1)`, and balanced starts are along triples. With `inverses`
//! in the config each move has a second label, `(r⁻¹, 1)` or `(r⁻¹, 0)`, as in a run of the
//! published code with inverses added, which solved all 44 instances sampled. The symmetry above
//! extends to them (`r⁻¹ ↦ permutation(r)⁻¹`), so the graphs are no easier for it.

mod config;
mod drawing;
mod export;
mod run;
mod test;

pub use config::{PetalsConfig, PetalsProtocol};
pub use run::{MARGIN, PetalsReport, petals};

pub use drawing::svg;
pub use export::{INDEX, PetalsRecord, export};
pub use test::{PetalsTest, test_petals};

use flock_graph::{NodeId, Topology, TopologyError, Triple};
use flock_walk::{Key, WalkQuery};

/// How many relation assignments there are; they are numbered from 1.
pub const ASSIGNMENTS: u32 = 11;
/// Stems have 1 to this many edges.
pub const MAX_STEM: u32 = 4;
/// The sides of a petal have 1 to this many nodes.
pub const MAX_PETAL_LENGTH: u32 = 5;
/// The relation of the stem and of the query.
pub const STEM_RELATION: u32 = 0;

/// Sets these draws apart from those of the walks under the same seed.
const PASS: u32 = u32::MAX;
const UPDATE: u32 = u32::MAX;

/// One graph with its query, its two targets, and the symmetry that makes it hard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PetalsInstance {
    /// All triples: the stem's, then each petal's.
    pub triples: Vec<Triple>,
    /// Nodes: `b₀ … b_t`, then `a₁ … a_{2l+1}` of each petal.
    pub num_nodes: u32,
    /// Relations, the stem's included.
    pub num_relations: u32,
    /// Which of the 11 assignments, from 1.
    pub assignment: u32,
    /// The pair `(p, q)` of each petal.
    pub petals: Vec<(u32, u32)>,
    /// Edges `t` of the stem.
    pub stem: u32,
    /// Nodes `l` on each side of a petal, the tip not counted.
    pub petal_length: u32,
    /// The query's node, on the stem but not its end.
    pub head: NodeId,
    /// The query's type, which is the stem's relation.
    pub relation: u32,
    /// The petal that is asked about, counted from 0.
    pub petal: u32,
    /// The distance of the targets from `b₀`, from 1.
    pub distance: u32,
    /// The target on the side entered by `p`.
    pub target_true: NodeId,
    /// The target on the side entered by `q`.
    pub target_false: NodeId,
    /// Relation to relation: one cycle through all petal relations. With `node_map`, an
    /// automorphism of the graph.
    pub permutation: Vec<u32>, // (num_relations)
    /// Node to node: what `permutation` does to the petals; the stem stays.
    pub node_map: Vec<NodeId>, // (num_nodes)
}

impl PetalsInstance {
    /// The graph, indexed for walking.
    ///
    /// # Errors
    /// None for the instances of this module; the type is that of [`Topology::build`].
    pub fn topology(&self) -> Result<Topology, TopologyError> {
        Topology::build(self.num_nodes, self.num_relations, self.triples.clone())
    }

    /// The question `(head, r₀, ?)`.
    pub fn query(&self) -> WalkQuery {
        WalkQuery::Entity { head: self.head, relation: self.relation }
    }

    /// The node `a_k` of a petal; petals count from 0, `k` from 1 to `2l + 1`.
    pub fn petal_node(&self, petal: u32, k: u32) -> NodeId {
        self.stem + 1 + petal * (2 * self.petal_length + 1) + k - 1
    }
}

/// The 220 instances: assignment by assignment, stems from short to long, then petals from short to
/// long. The seed decides only what is asked: head, petal and distance.
pub fn instances(seed: u64) -> Vec<PetalsInstance> {
    let mut all = Vec::new();
    for assignment in 1..=ASSIGNMENTS {
        for stem in 1..=MAX_STEM {
            for petal_length in 1..=MAX_PETAL_LENGTH {
                let key = Key { seed, pass: PASS, update: UPDATE, query: all.len() as u64 };
                all.push(instance(assignment, stem, petal_length, key));
            }
        }
    }
    all
}

fn instance(assignment: u32, stem: u32, petal_length: u32, key: Key) -> PetalsInstance {
    let (petals, cycle) = scheme(assignment);
    let nodes_per_petal = 2 * petal_length + 1;
    let num_nodes = stem + 1 + petals.len() as u32 * nodes_per_petal;

    let mut permutation: Vec<u32> = (0..=cycle.len() as u32).collect();
    for (i, &from) in cycle.iter().enumerate() {
        permutation[from as usize] = cycle[(i + 1) % cycle.len()];
    }

    let mut stream = key.stream(0);
    let head = stream.below(u64::from(stem)) as u32;
    let petal = stream.below(petals.len() as u64) as u32;
    let distance = 1 + stream.below(u64::from(petal_length)) as u32;

    let mut made = PetalsInstance {
        triples: Vec::new(),
        num_nodes,
        num_relations: permutation.len() as u32,
        assignment,
        petals,
        stem,
        petal_length,
        head,
        relation: STEM_RELATION,
        petal,
        distance,
        target_true: 0,
        target_false: 0,
        permutation,
        node_map: (0..num_nodes).collect(),
    };
    (made.target_true, made.target_false) =
        (made.petal_node(petal, 2 * distance - 1), made.petal_node(petal, 2 * distance));
    made.triples = triples(&made);
    for i in 0..made.petals.len() {
        let (p, q) = made.petals[i];
        let image = (made.permutation[p as usize], made.permutation[q as usize]);
        // Every scheme is closed under its cycle, so the image is there; a test holds every
        // instance to it.
        let to = made.petals.iter().position(|&pair| pair == image).unwrap_or(i);
        for k in 1..=nodes_per_petal {
            let from = made.petal_node(i as u32, k);
            made.node_map[from as usize] = made.petal_node(to as u32, k);
        }
    }
    made
}

/// The edges as the paper's appendix lists them.
fn triples(of: &PetalsInstance) -> Vec<Triple> {
    let triple = |head, relation, tail| Triple { head, relation, tail };
    let l = of.petal_length;
    let mut all: Vec<Triple> = (1..=of.stem).map(|i| triple(i - 1, STEM_RELATION, i)).collect();
    for (i, &(p, q)) in of.petals.iter().enumerate() {
        let a = |k| of.petal_node(i as u32, k);
        all.extend([triple(0, p, a(1)), triple(0, q, a(2))]);
        for j in 1..l {
            all.extend([triple(a(2 * j - 1), p, a(2 * j + 1)), triple(a(2 * j), p, a(2 * j + 2))]);
        }
        all.extend([triple(a(2 * l - 1), p, a(2 * l + 1)), triple(a(2 * l), p, a(2 * l + 1))]);
    }
    all
}

/// The pairs of an assignment, and a cyclic order of its relations that sends pairs to pairs.
fn scheme(assignment: u32) -> (Vec<(u32, u32)>, Vec<u32>) {
    let ordered_pairs =
        |n: u32| (1..=n).flat_map(move |p| (1..=n).filter(move |&q| q != p).map(move |q| (p, q))).collect();
    match assignment {
        7 => (ordered_pairs(3), vec![1, 2, 3]),
        8 => (ordered_pairs(4), vec![1, 2, 3, 4]),
        // Each relation with the next two of four, around.
        9 => (vec![(1, 2), (1, 3), (2, 3), (2, 4), (3, 4), (3, 1), (4, 1), (4, 2)], vec![1, 2, 3, 4]),
        10 => (vec![(1, 3), (3, 1), (2, 4), (4, 2)], vec![1, 2, 3, 4]),
        11 => (vec![(1, 3), (3, 1), (2, 4), (4, 2), (5, 6), (6, 5)], vec![1, 2, 5, 3, 4, 6]),
        _ => {
            let c = assignment + 1;
            ((1..=c).map(|p| (p, p % c + 1)).collect(), (1..=c).collect())
        }
    }
}
