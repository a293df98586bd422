//! Subgraph pretraining: a connected piece of a training graph with a set number of entities.
//!
//! The entities are chosen by *neighbour expansion*: from the ends of an anchor triple on, a uniform one of the chosen brings in a
//! uniform one of its neighbours, until there are enough. A hub has one voice like anyone else, so it does not fill the piece by
//! itself. Then all triples among the chosen are kept (the *induced* subgraph), so that what is a known answer among them stays one.
//!
//! Nothing depends on ids but through uniform draws, so renaming the graph renames the pieces and leaves their distribution alone.
//! The cost is that of the piece: a few draws an entity to choose, O(min(degree, entities)) an entity to induce, whatever the size
//! of the graph. `docs/reference/data.md` compares this with other ways to choose.

use crate::{NodeId, Topology, TopologyError, Triple};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// A piece of a graph with ids of its own.
#[derive(Clone, Debug)]
pub struct Subgraph {
    /// The piece, by local ids; every relation in it has a triple.
    pub topology: Topology,
    /// Local entity to entity of the whole graph.
    pub nodes: Vec<NodeId>,
    /// Local relation to relation of the whole graph, ascending.
    pub relations: Vec<u32>,
}

impl Subgraph {
    /// A connected piece of `size` entities around `anchor`, or the anchor's whole component if that is smaller. The ends of the
    /// anchor come first. `below(b)` draws uniformly from `0..b`.
    ///
    /// # Errors
    /// An anchor outside the graph.
    pub fn around(
        topology: &Topology,
        anchor: Triple,
        size: usize,
        below: &mut impl FnMut(u64) -> u64,
    ) -> Result<Subgraph, TopologyError> {
        for v in [anchor.head, anchor.tail] {
            if v >= topology.num_nodes() {
                return Err(TopologyError::NodeOutOfRange { triple: anchor, num_nodes: topology.num_nodes() });
            }
        }
        Subgraph::induced(topology, &grow(topology, anchor, size, below))
    }

    /// All triples among `nodes`, which get the local ids of their places; repeated nodes count once.
    ///
    /// # Errors
    /// None on nodes of the graph.
    pub fn induced(topology: &Topology, nodes: &[NodeId]) -> Result<Subgraph, TopologyError> {
        let mut chosen = Chosen::default();
        for &v in nodes {
            chosen.add(v);
        }
        // A hub has more neighbours than there are entities in the piece: its list is not worth reading.
        let is_hub = |v: u32| topology.degree(chosen.nodes[v as usize]) as usize > chosen.nodes.len();
        let (hubs, others): (Vec<u32>, Vec<u32>) = (0..chosen.nodes.len() as u32).partition(|&v| is_hub(v));
        let mut triples = Vec::new(); // local entities, relations of the whole graph
        let mut keep = |v: u32, w: u32, slot: u32| {
            let first = topology.record(chosen.nodes[v as usize]).first();
            let step = topology.slot(first + slot).step();
            for &half_step in topology.half_steps(&step) {
                let (head, tail) = if half_step & 1 == 0 { (v, w) } else { (w, v) };
                triples.push(Triple { head, relation: half_step / 2, tail });
            }
        };
        // A pair is found in the slots of its end that is no hub, or, of two such ends, in those of the smaller local id.
        for &v in &others {
            for (slot, neighbour) in topology.neighbours(chosen.nodes[v as usize]).enumerate() {
                if let Some(&w) = chosen.local.get(&neighbour)
                    && (v < w || is_hub(w))
                {
                    keep(v, w, slot as u32);
                }
            }
        }
        // What joins two hubs is looked up.
        for (i, &v) in hubs.iter().enumerate() {
            for &w in &hubs[i + 1..] {
                if let Some(slot) = topology.find_slot(chosen.nodes[v as usize], chosen.nodes[w as usize]) {
                    keep(v, w, slot);
                }
            }
        }
        for v in 0..chosen.nodes.len() as u32 {
            let global = chosen.nodes[v as usize];
            if let Some(slot) = topology.find_slot(global, global) {
                keep(v, v, slot);
            }
        }

        let mut relations: Vec<u32> = triples.iter().map(|t| t.relation).collect();
        relations.sort_unstable();
        relations.dedup();
        for t in &mut triples {
            t.relation = relations.partition_point(|&r| r < t.relation) as u32;
        }
        let topology = Topology::build(chosen.nodes.len() as u32, relations.len() as u32, triples)?;
        Ok(Subgraph { topology, nodes: chosen.nodes, relations })
    }

    /// A local triple by the ids of the whole graph.
    ///
    /// # Panics
    /// If the triple has ids that the subgraph does not.
    pub fn to_global(&self, t: Triple) -> Triple {
        Triple {
            head: self.nodes[t.head as usize],
            relation: self.relations[t.relation as usize],
            tail: self.nodes[t.tail as usize],
        }
    }
}

/// Entities in the order they were chosen.
#[derive(Default)]
struct Chosen {
    nodes: Vec<NodeId>,
    local: HashMap<NodeId, u32>,
}

impl Chosen {
    /// Whether it is new.
    fn add(&mut self, v: NodeId) -> bool {
        let Entry::Vacant(free) = self.local.entry(v) else { return false };
        free.insert(self.nodes.len() as u32);
        self.nodes.push(v);
        true
    }
}

/// The entities of [`Subgraph::around`], in the order they were chosen. Unknown ends of the anchor count as isolated.
pub fn grow(topology: &Topology, anchor: Triple, size: usize, below: &mut impl FnMut(u64) -> u64) -> Vec<NodeId> {
    let mut chosen = Chosen::default();
    // Those who may have someone left to bring in, and how often they drew in vain since they were last looked through.
    let mut open: Vec<(NodeId, u32)> = Vec::new();
    for v in [anchor.head, anchor.tail] {
        if chosen.add(v) {
            open.push((v, 0));
        }
    }
    while chosen.nodes.len() < size && !open.is_empty() {
        let at = below(open.len() as u64) as usize;
        let (v, vain) = &mut open[at];
        let record = topology.record(*v);
        if record.degree() > 0 {
            let slot = u64::from(record.first()) + below(u64::from(record.degree()));
            let w = topology.slot(slot as u32).neighbour();
            if chosen.add(w) {
                open.push((w, 0));
                continue;
            }
        }
        // Looking through a list costs no more than the vain draws before it. To drop those who have nobody left changes no chance
        // of anyone else, and ends the search where the component ends.
        *vain += 1;
        if *vain >= record.degree() {
            *vain = 0;
            if topology.neighbours(*v).all(|w| chosen.local.contains_key(&w)) {
                open.swap_remove(at);
            }
        }
    }
    chosen.nodes
}
