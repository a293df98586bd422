//! Recording: turns walks over ids into anonymous sequences (docs/reference/model.md, section 3).
//!
//! Each node gets two numbers, and so does each type:
//!
//! - a **local id**, unique over all updates of a query and pass. The model stores states by it.
//! - a **name** within one walk: the order of its first appearance there.
//!
//! Local ids come from an open-addressing table. Names come from an array over local ids, which
//! holds the last name and the walk that gave it. An entry is valid only if it has the stamp of the
//! current query, so forgetting a query is O(1).

use crate::prefetch::prefetch;
use crate::query::WalkQuery;
use flock_graph::{NodeId, TypeId};
use std::hint::select_unpredictable;

/// The greatest length of a recorded walk: names have 16 bits.
pub const MAX_LENGTH: usize = u16::MAX as usize;

/// Anonymous walks. Every vector has W · L entries, one per position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// Local node id.
    pub node: Vec<u32>, // (W, L)
    /// Local type id.
    pub ty: Vec<u32>, // (W, L)
    /// Name of the node: order of first visit in the walk, from 0.
    pub node_name: Vec<u16>, // (W, L)
    /// Name of the type: order of first appearance in the walk, from 0. "No type" has the name `L`.
    pub type_name: Vec<u16>, // (W, L)
    /// Direction (0 to 3), plus 4 for the first query flag and 8 for the second. In entity queries
    /// the flags mean "node is the head" and "type is the query's". In relation queries they mean
    /// "node is the head" and "node is the tail".
    pub mark: Vec<u8>, // (W, L)
}

/// Records walks, update after update, and remembers the nodes and types it has met. It can be
/// reused. It keeps the memory of the largest query so far.
#[derive(Clone, Debug)]
pub struct Recorder {
    nodes: LocalIds,
    types: LocalIds,
    query: WalkQuery,
    no_type: TypeId,
}

impl Default for Recorder {
    fn default() -> Recorder {
        Recorder::new()
    }
}

impl Recorder {
    /// Makes a recorder that has met nothing.
    pub fn new() -> Recorder {
        let query = WalkQuery::Entity { head: 0, relation: 0 };
        Recorder { nodes: LocalIds::new(), types: LocalIds::new(), query, no_type: 0 }
    }

    /// Starts a new query and pass, and forgets all local ids.
    pub fn begin(&mut self, query: &WalkQuery, no_type: TypeId) {
        self.query = *query;
        self.no_type = no_type;
        self.nodes.forget();
        self.types.forget();
    }

    /// Records the walks of one update, each of `length` positions, and replaces the contents of
    /// `out`. New nodes and types get the next local ids, in the order of their first appearance.
    ///
    /// # Panics
    /// If the slices differ in length or do not hold a whole number of walks, or if `length` is 0
    /// or above [`MAX_LENGTH`].
    pub fn record(&mut self, length: usize, nodes: &[NodeId], types: &[TypeId], dirs: &[u8], out: &mut Records) {
        assert!((1..=MAX_LENGTH).contains(&length), "walks of {length} positions; at most {MAX_LENGTH}");
        assert!(
            nodes.len() == types.len() && nodes.len() == dirs.len() && nodes.len().is_multiple_of(length),
            "{}, {}, {} entries are no walks of {length} positions",
            nodes.len(),
            types.len(),
            dirs.len()
        );
        out.node.resize(nodes.len(), 0);
        out.ty.resize(nodes.len(), 0);
        out.node_name.resize(nodes.len(), 0);
        out.type_name.resize(nodes.len(), 0);
        out.mark.resize(nodes.len(), 0);
        self.nodes.find_or_meet(length, nodes, &mut out.node);
        self.types.find_or_meet(length, types, &mut out.ty);
        self.nodes.name(length, &out.node, None, &mut out.node_name);
        let no_type = self.types.find(self.no_type);
        self.types.name(length, &out.ty, no_type, &mut out.type_name);
        match self.query {
            WalkQuery::Entity { head, relation } => {
                mark(nodes, types, dirs, &mut out.mark, |v, t| (v == head, t == relation));
            }
            WalkQuery::Relation { head, tail } => {
                mark(nodes, types, dirs, &mut out.mark, |v, _| (v == head, v == tail));
            }
        }
    }

    /// Lists the nodes met since [`Recorder::begin`], by local id.
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes.met
    }
    /// Lists the types met since [`Recorder::begin`], by local id. "No type" is one of them.
    pub fn types(&self) -> &[TypeId] {
        &self.types.met
    }
    /// Returns the local id of a node, if a walk met it.
    pub fn local_node(&self, v: NodeId) -> Option<u32> {
        self.nodes.find(v)
    }
    /// Returns the local id of a type, if a walk met it.
    pub fn local_type(&self, t: TypeId) -> Option<u32> {
        self.types.find(t)
    }
}

fn mark(
    nodes: &[NodeId],
    types: &[TypeId],
    dirs: &[u8],
    marks: &mut [u8],
    flags: impl Fn(NodeId, TypeId) -> (bool, bool),
) {
    for (((mark, &v), &t), &dir) in marks.iter_mut().zip(nodes).zip(types).zip(dirs) {
        let (a, b) = flags(v, t);
        *mark = dir | u8::from(a) << 2 | u8::from(b) << 3;
    }
}

/// A node or type and its local id.
#[derive(Copy, Clone, Debug, Default)]
#[repr(C, align(16))]
struct LocalIdEntry {
    id: u32,
    query: u32, // stamp of the query it was met in; the entry is free for any other query
    local: u32,
}

/// The local ids of the nodes, or of the types, met in one query.
#[derive(Clone, Debug)]
struct LocalIds {
    entries: Vec<LocalIdEntry>, // a power of two, at most a quarter of them in use
    query: u32,                 // stamp of this query
    met: Vec<u32>,              // local id -> id
    named: Vec<(u32, u32)>,     // local id -> stamp of the walk that last named it, and the name
    walk: u32,                  // stamp of the last walk of this query
}

impl LocalIds {
    fn new() -> LocalIds {
        LocalIds { entries: vec![LocalIdEntry::default(); 256], query: 1, met: Vec::new(), named: Vec::new(), walk: 0 }
    }

    fn forget(&mut self) {
        if self.query == u32::MAX {
            *self = LocalIds::new(); // stamps have run out
        }
        self.query += 1;
        self.met.clear();
        self.named.clear();
        self.walk = 0;
    }

    fn find(&self, id: u32) -> Option<u32> {
        let entry = self.entries[self.place(id)];
        (entry.query == self.query).then_some(entry.local)
    }

    /// Looks up the local ids of all ids in some walks. New ids get the next local ids.
    fn find_or_meet(&mut self, length: usize, ids: &[u32], locals: &mut [u32]) {
        for (ids, locals) in ids.chunks_exact(length).zip(locals.chunks_exact_mut(length)) {
            for &id in ids {
                prefetch(&self.entries, home(self.entries.len(), id));
            }
            for (&id, local) in ids.iter().zip(locals) {
                let entry = self.entries[home(self.entries.len(), id)];
                let found = (entry.id == id) & (entry.query == self.query);
                *local = if found { entry.local } else { self.look_further(id) };
            }
        }
        self.named.resize(self.met.len(), (0, 0));
    }

    /// Returns the place of `id` in the table, or the free place where it would go.
    fn place(&self, id: u32) -> usize {
        let mut at = home(self.entries.len(), id);
        while self.entries[at].query == self.query && self.entries[at].id != id {
            at = (at + 1) & (self.entries.len() - 1);
        }
        at
    }

    /// Returns the local id of an id that is not in its first place. It is elsewhere or new.
    #[inline(never)]
    fn look_further(&mut self, id: u32) -> u32 {
        let at = self.place(id);
        if self.entries[at].query == self.query {
            return self.entries[at].local;
        }
        let local = self.met.len() as u32;
        self.entries[at] = LocalIdEntry { id, query: self.query, local };
        self.met.push(id);
        if 4 * self.met.len() > self.entries.len() {
            self.grow();
        }
        local
    }

    fn grow(&mut self) {
        let bigger = vec![LocalIdEntry::default(); 2 * self.entries.len()];
        let old = std::mem::replace(&mut self.entries, bigger);
        for entry in old.into_iter().filter(|e| e.query == self.query) {
            let at = self.place(entry.id);
            self.entries[at] = entry;
        }
    }

    /// Writes the names, within each walk, of local ids that have been met. `unnamed` gets the name
    /// L and does not count.
    fn name(&mut self, length: usize, locals: &[u32], unnamed: Option<u32>, names: &mut [u16]) {
        for (locals, names) in locals.chunks_exact(length).zip(names.chunks_exact_mut(length)) {
            self.walk += 1;
            if let Some(local) = unnamed {
                self.named[local as usize] = (self.walk, length as u32);
            }
            let mut next = 0;
            for (&local, name) in locals.iter().zip(names) {
                let (walk, old) = self.named[local as usize];
                let first = walk != self.walk;
                let this = select_unpredictable(first, next, old);
                self.named[local as usize] = (self.walk, this);
                next += u32::from(first);
                *name = this as u16;
            }
        }
    }
}

/// Returns the first place to look for `id` in a table of `size` entries.
#[inline(always)]
fn home(size: usize, id: u32) -> usize {
    ((u64::from(id.wrapping_mul(0x9E37_79B1)) * size as u64) >> 32) as usize
}
