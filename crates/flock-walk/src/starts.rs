//! Where the walks of a query begin (section 2 of the specification).
//!
//! Balanced starts need one decision over all of a query's walks: which types get a ticket. It is made here once, in O(n), and
//! shared by whoever samples the walks. Everything else about a start comes from the walk's own stream.

use crate::query::{WalkOptions, WalkQuery};
use crate::rng::{Key, Stream};
use flock_graph::mask::nth_kept;
use flock_graph::{Mask, NodeId, Topology, TypeId};

/// The walk number whose stream draws the tickets; no walk has it.
const TICKETS: u64 = u64::MAX;

/// How the walks of one query and one update begin.
#[derive(Clone, Debug)]
pub struct Starts {
    n: usize,
    base: u64,
    groups: [Group; 4], // the first three for an entity query
    walks: usize,
    head: NodeId,
    tickets: Vec<TypeId>, // (n), empty if no walk has a balanced start
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Group {
    At(NodeId),
    Uniform,
    Balanced,
}

/// The beginning of one walk.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Node(NodeId),
    /// A balanced start: the first move goes along this edge.
    Edge {
        from: NodeId,
        to: NodeId,
        ty: TypeId,
    },
}

impl Starts {
    /// Draws the tickets. `n` is the base count. Takes O(n) time and memory, whatever the graph.
    ///
    /// Without any edge to start on, balanced walks start from uniform nodes; without any node, uniform ones start at the head.
    pub fn prepare(
        topology: &Topology,
        mask: Option<&Mask>,
        query: &WalkQuery,
        n: u32,
        key: Key,
        options: &WalkOptions,
    ) -> Starts {
        let base = key.base();
        let (head, tail, relation) = match *query {
            WalkQuery::Entity { head, relation } => (head, None, Some(relation)),
            WalkQuery::Relation { head, tail } => (head, Some(tail), None),
        };
        let mut tickets = Vec::new();
        if !options.all_at_query {
            let walked = |t: TypeId| options.inverses || t < topology.num_relations();
            let wanted = relation.filter(|&t| options.balanced_on_query_relation && walked(t));
            let own = wanted.filter(|&t| edges_of(topology, mask, t) > 0);
            tickets = match own {
                Some(t) => vec![t; n as usize],
                None => draw_tickets(topology, mask, n, options.inverses, Stream::from_base(base, TICKETS)),
            };
        }
        let balanced = if tickets.is_empty() { Group::Uniform } else { Group::Balanced };
        let head_group = Group::At(head);
        let tail_group = Group::At(tail.unwrap_or(head));
        let groups = match (options.all_at_query, tail) {
            (true, _) => [head_group, tail_group, head_group, tail_group],
            (false, None) => [head_group, Group::Uniform, balanced, balanced],
            (false, Some(_)) => [head_group, tail_group, Group::Uniform, balanced],
        };
        Starts { n: n as usize, base, groups, walks: query.num_walks(n), head, tickets }
    }

    /// Number of walks of the query.
    pub fn num_walks(&self) -> usize {
        self.walks
    }

    /// The types of the balanced walks' first moves, one per balanced walk.
    pub fn tickets(&self) -> &[TypeId] {
        &self.tickets
    }

    /// The stream of walk `walk` and its start, for which the stream's first word may have been used.
    pub(crate) fn start(&self, topology: &Topology, mask: Option<&Mask>, walk: usize) -> (Stream, Start) {
        let mut stream = Stream::from_base(self.base, walk as u64);
        let start = match self.groups[walk / self.n] {
            Group::At(v) => Start::Node(v),
            Group::Uniform if topology.num_nodes() == 0 => Start::Node(self.head),
            Group::Uniform => Start::Node(stream.below(u64::from(topology.num_nodes())) as u32),
            Group::Balanced => {
                let ty = self.tickets[walk % self.n];
                let (from, to) = draw_edge(topology, mask, ty, &mut stream);
                Start::Edge { from, to, ty }
            }
        };
        (stream, start)
    }

    /// Whether the walk counts a node's self-loop among its ways out.
    pub(crate) fn counts_loops(&self, walk: usize) -> bool {
        self.groups[walk / self.n] == Group::Balanced
    }
}

/// The raw relation whose triples are the type's edges.
fn raw(topology: &Topology, t: TypeId) -> u32 {
    if t < topology.num_relations() { t } else { t - topology.num_relations() }
}

/// Number of edges of a type that are not hidden.
fn edges_of(topology: &Topology, mask: Option<&Mask>, t: TypeId) -> usize {
    let relation = raw(topology, t);
    topology.relation_range(relation).len() - mask.map_or(0, |m| m.hidden_in_relation(relation).len())
}

/// A uniform edge of a type that has one.
fn draw_edge(topology: &Topology, mask: Option<&Mask>, ty: TypeId, stream: &mut Stream) -> (NodeId, NodeId) {
    let relation = raw(topology, ty);
    let range = topology.relation_range(relation);
    let hidden = mask.map_or(&[][..], |m| m.hidden_in_relation(relation));
    let index = stream.below((range.len() - hidden.len()) as u64) as u32;
    let (head, tail) = topology.ends(range.start + nth_kept(hidden, index) as usize);
    if ty < topology.num_relations() { (head, tail) } else { (tail, head) }
}

/// With m types in use, a uniform n of m · (⌊n/m⌋ + 1) tickets, and the type of each. Empty if no type is in use.
fn draw_tickets(topology: &Topology, mask: Option<&Mask>, n: u32, inverses: bool, mut stream: Stream) -> Vec<TypeId> {
    let ways = 1 + u32::from(inverses); // types of a relation
    let relations = topology.relations_in_use();
    let gone = mask.map_or(&[][..], |m| m.gone_relations());
    let m = u64::from(ways) * (relations.len() - gone.len()) as u64;
    if m == 0 {
        return Vec::new();
    }
    let n = u64::from(n);
    let total = m * (n / m + 1);
    // Floyd's subset: after round `top` the chosen are a uniform subset of 0..=top.
    let mut chosen = TicketSet::new(n as usize);
    let mut tickets = Vec::with_capacity(n as usize);
    for top in total - n..total {
        let drawn = stream.below(top + 1);
        let ticket = if chosen.insert(drawn) { drawn } else { top };
        chosen.insert(ticket);
        let t = (ticket % m) as u32;
        let relation = relations[nth_kept(gone, t / ways) as usize];
        tickets.push(relation + t % ways * topology.num_relations());
    }
    tickets
}

/// A set of at most `n` ticket numbers: open addressing, half full at most.
struct TicketSet(Vec<u64>);

impl TicketSet {
    const EMPTY: u64 = u64::MAX;

    fn new(n: usize) -> TicketSet {
        TicketSet(vec![Self::EMPTY; (2 * n).next_power_of_two()])
    }

    /// Whether the ticket is new.
    fn insert(&mut self, ticket: u64) -> bool {
        let last = self.0.len() - 1;
        let mut at = (ticket.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & last;
        while self.0[at] != Self::EMPTY {
            if self.0[at] == ticket {
                return false;
            }
            at = (at + 1) & last;
        }
        self.0[at] = ticket;
        true
    }
}
