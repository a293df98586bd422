//! Where the walks of a query begin (docs/reference/model.md, section 2).
//!
//! Balanced starts need one decision for all walks of a query: which types get a ticket. It is made
//! here once, in O(n), and shared by all threads that sample the walks.
//!
//! The edge of a ticket is drawn **without replacement** over the updates and passes of a query.
//! The edges of a type come in an order that depends only on (seed, query, type). When all edges
//! have been used, a new order begins. Every ticket that a type *could* get has a fixed place in
//! that order, whether or not the type wins the ticket:
//!
//! `place = (pass · updates + update) · copies + copy`
//!
//! Here `copies` is the greatest number of tickets that a type can get in one update, and `copy` is
//! the number of the ticket among them. So any pass and update can be drawn alone, in O(1), without
//! knowing the others. If a type wins every ticket (as for starts on the query's relation), no edge
//! repeats before all edges have been used. If it wins only some tickets, no edge repeats within
//! one order, but an order may leave out some edges.

use crate::order::Order;
use crate::query::{WalkOptions, WalkQuery};
use crate::rng::{Key, Stream};
use flock_graph::mask::nth_kept;
use flock_graph::{Mask, NodeId, Topology, TypeId};

/// The walk number of the stream that draws the tickets. No walk has it.
const TICKETS: u64 = u64::MAX;
/// Added to the number of a walk, it gives the stream of its restarts. No walk has such a number.
const RESTARTS: u64 = 1 << 63;

/// The starts of all walks of one query and one update.
#[derive(Clone, Debug)]
pub struct Starts {
    n: usize,
    base: u64,
    groups: [StartKind; 4], // the first three for an entity query
    query_start_period: usize,
    walks: usize,
    head: NodeId,
    tail: NodeId,         // the head, for an entity query
    tickets: Vec<Ticket>, // (n), empty if no walk has a balanced start
    key: Key,
    first_place: u64, // place of this update in the order of a type's edges
    pub(crate) naming: Naming,
}

/// Which of the two types of a relation name a step.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// Either, by a coin.
    Both,
    /// Always the relation (0), or always its inverse (1).
    One(u32),
}

impl Naming {
    /// Without inverse types the query's own type says which one it is.
    fn of(topology: &Topology, relation: Option<TypeId>, options: &WalkOptions) -> Naming {
        match options.inverses {
            true => Naming::Both,
            false => Naming::One(relation.map_or(0, |t| u32::from(t >= topology.num_relations()))),
        }
    }
}

/// The right of a balanced walk to start on an edge of a type.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Ticket {
    ty: TypeId,
    copy: u32, // number of the ticket among the type's tickets in this update
}

/// The kind of start of a group of walks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum StartKind {
    At(NodeId),
    Uniform,
    Balanced,
}

/// The start of one walk.
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
    /// Draws the tickets. `n` is the base count. Takes O(n) time and memory, whatever the size of
    /// the graph.
    ///
    /// If there is no edge to start on, balanced walks start from uniform nodes. If there is no
    /// node, uniform walks start at the head.
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
        let naming = Naming::of(topology, relation, options);
        let (mut tickets, mut copies) = (Vec::new(), 0);
        if !options.all_at_query {
            let wanted = relation.filter(|_| options.balanced_on_query_relation);
            let own = wanted.filter(|&t| edges_of(topology, mask, t) > 0);
            (tickets, copies) = match own {
                Some(ty) => ((0..n).map(|copy| Ticket { ty, copy }).collect(), n),
                None => draw_tickets(topology, mask, n, naming, Stream::from_base(base, TICKETS)),
            };
        }
        let balanced = if tickets.is_empty() { StartKind::Uniform } else { StartKind::Balanced };
        let head_group = StartKind::At(head);
        let has_tail = tail.is_some();
        let tail = tail.unwrap_or(head);
        let tail_group = StartKind::At(tail);
        let groups = match (options.all_at_query, has_tail) {
            (true, _) => [head_group, tail_group, head_group, tail_group],
            (false, false) => [head_group, StartKind::Uniform, balanced, balanced],
            (false, true) => [head_group, tail_group, StartKind::Uniform, balanced],
        };
        let update = u64::from(key.pass) * u64::from(options.updates) + u64::from(key.update);
        let first_place = update.wrapping_mul(u64::from(copies));
        Starts {
            n: n as usize,
            base,
            groups,
            query_start_period: options.query_start_period as usize,
            walks: query.num_walks(n),
            head,
            tail,
            tickets,
            key,
            first_place,
            naming,
        }
    }

    /// Returns the number of walks of the query.
    pub fn num_walks(&self) -> usize {
        self.walks
    }

    /// Lists the types of the first moves of the balanced walks, one per walk.
    pub fn tickets(&self) -> impl ExactSizeIterator<Item = TypeId> + '_ {
        self.tickets.iter().map(|ticket| ticket.ty)
    }

    /// Returns the kind of start of walk `walk`.
    fn kind(&self, walk: usize) -> StartKind {
        let (group, number) = (self.groups[walk / self.n], walk % self.n);
        match group {
            StartKind::Uniform if self.query_start_period > 0 && number.is_multiple_of(self.query_start_period) => {
                let turn = number / self.query_start_period;
                StartKind::At(if turn.is_multiple_of(2) { self.head } else { self.tail })
            }
            group => group,
        }
    }

    /// Returns the stream of walk `walk`, and its start. The start may have used the first word of
    /// the stream.
    pub(crate) fn start(&self, topology: &Topology, mask: Option<&Mask>, walk: usize) -> (Stream, Start) {
        let mut stream = Stream::from_base(self.base, walk as u64);
        let start = match self.kind(walk) {
            StartKind::At(v) => Start::Node(v),
            StartKind::Uniform if topology.num_nodes() == 0 => Start::Node(self.head),
            StartKind::Uniform => Start::Node(stream.below(u64::from(topology.num_nodes())) as u32),
            StartKind::Balanced => {
                let ticket = self.tickets[walk % self.n];
                let (from, to) = self.edge(topology, mask, ticket);
                Start::Edge { from, to, ty: ticket.ty }
            }
        };
        (stream, start)
    }

    /// Returns the stream that decides when and where a walk restarts.
    pub(crate) fn restarts(&self, walk: usize) -> Stream {
        Stream::from_base(self.base, RESTARTS | walk as u64)
    }

    /// Draws a new start of the walk's own kind: the same node, another uniform node, or another
    /// edge of its type.
    pub(crate) fn again(&self, topology: &Topology, mask: Option<&Mask>, walk: usize, stream: &mut Stream) -> Start {
        match self.kind(walk) {
            StartKind::At(v) => Start::Node(v),
            StartKind::Uniform if topology.num_nodes() == 0 => Start::Node(self.head),
            StartKind::Uniform => Start::Node(stream.below(u64::from(topology.num_nodes())) as u32),
            StartKind::Balanced => {
                let ty = self.tickets[walk % self.n].ty;
                let (from, to) = edge_at(topology, mask, ty, |edges| stream.below(edges));
                Start::Edge { from, to, ty }
            }
        }
    }

    /// Returns the edge of a ticket. Its type has at least one.
    fn edge(&self, topology: &Topology, mask: Option<&Mask>, ticket: Ticket) -> (NodeId, NodeId) {
        edge_at(topology, mask, ticket.ty, |edges| {
            let place = self.first_place.wrapping_add(u64::from(ticket.copy));
            let order = Order::from_base(self.key.base_of_query(u64::from(ticket.ty), place / edges), edges);
            order.get(place % edges)
        })
    }

    /// Tells whether the walk counts a node's self-loop among its candidates.
    pub(crate) fn counts_loops(&self, walk: usize) -> bool {
        self.kind(walk) == StartKind::Balanced
    }
}

/// Returns the edge of a type that `choose` picks, given the number of edges that are not hidden.
/// There is at least one.
fn edge_at(topology: &Topology, mask: Option<&Mask>, ty: TypeId, choose: impl FnOnce(u64) -> u64) -> (NodeId, NodeId) {
    let relation = raw(topology, ty);
    let range = topology.relation_range(relation);
    let hidden = mask.map_or(&[][..], |m| m.hidden_in_relation(relation));
    let index = choose((range.len() - hidden.len()) as u64) as u32;
    let (head, tail) = topology.ends(range.start + nth_kept(hidden, index) as usize);
    if ty < topology.num_relations() { (head, tail) } else { (tail, head) }
}

/// Returns the raw relation of a type.
fn raw(topology: &Topology, t: TypeId) -> u32 {
    if t < topology.num_relations() { t } else { t - topology.num_relations() }
}

/// Counts the edges of a type that are not hidden.
fn edges_of(topology: &Topology, mask: Option<&Mask>, t: TypeId) -> usize {
    let relation = raw(topology, t);
    topology.relation_range(relation).len() - mask.map_or(0, |m| m.hidden_in_relation(relation).len())
}

/// Draws the tickets of an update. Also returns the greatest number of tickets that a type can get.
///
/// There are `T` types in the vocabulary, used or not, and `m` of them have an edge. Each of these
/// `m` types has ⌊n/T⌋ + 1 tickets, and a uniform choice of n tickets is kept. If there are fewer
/// than n tickets, all are taken as often as they fit as a whole, and a uniform choice of them
/// makes up the rest. The result is empty if no type has an edge.
fn draw_tickets(
    topology: &Topology,
    mask: Option<&Mask>,
    n: u32,
    naming: Naming,
    mut stream: Stream,
) -> (Vec<Ticket>, u32) {
    // The types of a relation, and the first of them.
    let (ways, inverse) = match naming {
        Naming::Both => (2, 0),
        Naming::One(inverse) => (1, inverse),
    };
    let relations = topology.relations_in_use();
    let gone = mask.map_or(&[][..], |m| m.gone_relations());
    let m = u64::from(ways) * (relations.len() - gone.len()) as u64;
    if m == 0 || n == 0 {
        return (Vec::new(), 0);
    }
    let n = u64::from(n);
    let vocabulary = u64::from(ways) * u64::from(topology.num_relations());
    let each = n / vocabulary + 1;
    let total = m * each;
    let (rounds, rest) = (n / total, n % total);
    let ticket = |number: u64| {
        let t = (number % m) as u32;
        let relation = relations[nth_kept(gone, t / ways) as usize];
        Ticket { ty: relation + (inverse + t % ways) * topology.num_relations(), copy: (number / m) as u32 }
    };
    let mut tickets = Vec::with_capacity(n as usize);
    tickets.extend((0..rounds * total).map(ticket));
    // Floyd's algorithm: after round `top` the chosen numbers are a uniform subset of 0..=top.
    let mut chosen = TicketSet::new(rest as usize);
    for top in total - rest..total {
        let drawn = stream.below(top + 1);
        let number = if chosen.insert(drawn) { drawn } else { top };
        chosen.insert(number);
        tickets.push(ticket(rounds * total + number));
    }
    (tickets, (n.div_ceil(total) * each) as u32)
}

/// A set of at most `n` ticket numbers, with open addressing, at most half full.
struct TicketSet(Vec<u64>);

impl TicketSet {
    const EMPTY: u64 = u64::MAX;

    fn new(n: usize) -> TicketSet {
        TicketSet(vec![Self::EMPTY; (2 * n).next_power_of_two()])
    }

    /// Adds a ticket and tells whether it is new.
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
