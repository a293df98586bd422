//! Recording: from walks over ids to anonymous sequences (section 3 of the specification).
//!
//! Two ids are given at once: the **local id** of a node or type, unique over all updates of a query and pass, by which the model
//! keeps its states; and its **name** within one walk, the order of its first appearance there. Both live in the same 16-byte
//! entry of an open-addressing table, so a position costs one probe for its node and one for its type. An entry counts only if
//! its stamp, the number of the walk that last met it, is not older than the query: forgetting a query is O(1).

use crate::query::WalkQuery;
use flock_graph::{NodeId, TypeId};

/// The longest walk that can be recorded: names are 16 bits wide.
pub const MAX_LENGTH: usize = u16::MAX as usize;

/// Anonymous walks; every vector has walks · L entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// Local node id.
    pub node: Vec<u32>, // (W, L)
    /// Local type id.
    pub ty: Vec<u32>, // (W, L)
    /// Row of the node's name: order of first visit in the walk, from 0.
    pub node_name: Vec<u16>, // (W, L)
    /// Row of the type's name: order of first appearance in the walk, from 0; "no type" is `L`.
    pub type_name: Vec<u16>, // (W, L)
    /// Direction (0 to 3), plus 4 for the first query flag and 8 for the second. Entity queries: node is the head, type is the
    /// query's. Relation queries: node is the head, node is the tail.
    pub mark: Vec<u8>, // (W, L)
}

/// Names walks, update after update, and remembers whom it has met. Reusable: memory is that of the largest query so far.
#[derive(Clone, Debug)]
pub struct Recorder {
    nodes: Table,
    types: Table,
    query: WalkQuery,
    no_type: TypeId,
    walk: u32, // stamp of the walk being named; grows through all queries
}

impl Default for Recorder {
    fn default() -> Recorder {
        Recorder::new()
    }
}

impl Recorder {
    /// A recorder that has met nobody.
    pub fn new() -> Recorder {
        Recorder {
            nodes: Table::new(),
            types: Table::new(),
            query: WalkQuery::Entity { head: 0, relation: 0 },
            no_type: 0,
            walk: 0,
        }
    }

    /// Starts a new query and pass: forgets all local ids.
    pub fn begin(&mut self, query: &WalkQuery, no_type: TypeId) {
        self.query = *query;
        self.no_type = no_type;
        // Stamps must not run out within a query, even one of two billion walks.
        if self.walk > u32::MAX / 2 {
            (self.nodes, self.types, self.walk) = (Table::new(), Table::new(), 0);
        }
        self.nodes.forget(self.walk + 1);
        self.types.forget(self.walk + 1);
    }

    /// Names one update's walks, each of `length` positions, into `out`, whose old contents are dropped. Newly met nodes and types
    /// get the next local ids, in the order of their first appearance.
    ///
    /// # Panics
    /// If the slices differ in length or are no whole number of walks, or if `length` is 0 or above [`MAX_LENGTH`].
    pub fn record(&mut self, length: usize, nodes: &[NodeId], types: &[TypeId], dirs: &[u8], out: &mut Records) {
        assert!((1..=MAX_LENGTH).contains(&length), "walks of {length} positions; at most {MAX_LENGTH}");
        assert!(
            nodes.len() == types.len() && nodes.len() == dirs.len() && nodes.len().is_multiple_of(length),
            "{}, {}, {} entries are no walks of {length} positions",
            nodes.len(),
            types.len(),
            dirs.len()
        );
        out.node.clear();
        out.ty.clear();
        out.node_name.clear();
        out.type_name.clear();
        out.mark.clear();
        match self.query {
            WalkQuery::Entity { head, relation } => {
                self.name(length, nodes, types, dirs, out, |v, t| (v == head, t == relation));
            }
            WalkQuery::Relation { head, tail } => {
                self.name(length, nodes, types, dirs, out, |v, _| (v == head, v == tail));
            }
        }
    }
    /// The nodes met since [`Recorder::begin`], by local id.
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes.met
    }
    /// The types met since [`Recorder::begin`], by local id; "no type" is one of them.
    pub fn types(&self) -> &[TypeId] {
        &self.types.met
    }
    /// The local id of a node, if a walk met it.
    pub fn local_node(&self, v: NodeId) -> Option<u32> {
        self.nodes.find(v)
    }
    /// The local id of a type, if a walk met it.
    pub fn local_type(&self, t: TypeId) -> Option<u32> {
        self.types.find(t)
    }

    fn name(
        &mut self,
        length: usize,
        nodes: &[NodeId],
        types: &[TypeId],
        dirs: &[u8],
        out: &mut Records,
        flags: impl Fn(NodeId, TypeId) -> (bool, bool),
    ) {
        let walks = nodes.chunks_exact(length).zip(types.chunks_exact(length)).zip(dirs.chunks_exact(length));
        for ((nodes, types), dirs) in walks {
            self.walk += 1;
            let (mut node_names, mut type_names) = (0, 0);
            for ((&v, &t), &dir) in nodes.iter().zip(types).zip(dirs) {
                let (local, name) = self.nodes.meet(v, self.walk, &mut node_names);
                out.node.push(local);
                out.node_name.push(name as u16);
                let mut unused = 0; // "no type" has a local id but takes no name from the count
                let no_type = t == self.no_type;
                let names = if no_type { &mut unused } else { &mut type_names };
                let (local, name) = self.types.meet(t, self.walk, names);
                out.ty.push(local);
                out.type_name.push(if no_type { length as u16 } else { name as u16 });
                let (a, b) = flags(v, t);
                out.mark.push(dir | u8::from(a) << 2 | u8::from(b) << 3);
            }
        }
    }
}

/// One node or type that was met.
#[derive(Copy, Clone, Debug, Default)]
#[repr(C, align(16))]
struct Entry {
    id: u32,
    local: u32,
    walk: u32, // the walk that met it last; an entry older than the table's `since` is free
    name: u32, // its name in that walk, from 0
}

/// Ids to entries; at most half full.
#[derive(Clone, Debug)]
struct Table {
    entries: Vec<Entry>, // a power of two
    met: Vec<u32>,       // local id -> id
    since: u32,          // the first walk of this query
}

impl Table {
    fn new() -> Table {
        Table { entries: vec![Entry::default(); 256], met: Vec::new(), since: 1 }
    }

    fn forget(&mut self, since: u32) {
        self.since = since;
        self.met.clear();
    }

    /// Where `id` is, or where it would go.
    #[inline]
    fn place(&self, id: u32) -> usize {
        let last = self.entries.len() - 1;
        let mut at = ((u64::from(id.wrapping_mul(0x9E37_79B1)) * self.entries.len() as u64) >> 32) as usize;
        while self.entries[at].walk >= self.since && self.entries[at].id != id {
            at = (at + 1) & last;
        }
        at
    }

    fn find(&self, id: u32) -> Option<u32> {
        let entry = self.entries[self.place(id)];
        (entry.walk >= self.since).then_some(entry.local)
    }

    /// The local id of `id`, and its name in this walk: `*names`, then one more, at the first meeting.
    #[inline]
    fn meet(&mut self, id: u32, walk: u32, names: &mut u32) -> (u32, u32) {
        let at = self.place(id);
        let entry = &mut self.entries[at];
        if entry.walk == walk {
            return (entry.local, entry.name);
        }
        let known = entry.walk >= self.since;
        let local = if known { entry.local } else { self.met.len() as u32 };
        *entry = Entry { id, local, walk, name: *names };
        let met = (local, *names);
        *names += 1;
        if !known {
            self.met.push(id);
            if 2 * self.met.len() > self.entries.len() {
                self.grow();
            }
        }
        met
    }

    #[cold]
    fn grow(&mut self) {
        let bigger = vec![Entry::default(); 2 * self.entries.len()];
        let old = std::mem::replace(&mut self.entries, bigger);
        for entry in old.into_iter().filter(|e| e.walk >= self.since) {
            let at = self.place(entry.id);
            self.entries[at] = entry;
        }
    }
}
