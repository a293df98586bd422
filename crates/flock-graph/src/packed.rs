//! A graph as bytes, to keep it or to hand it to another process: everything that a [`Graph`] is,
//! with the same ids.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `FLOCKGRF` |
//! | 4 | version of the format, 1 |
//! | 4 | CRC-32 of everything after it |
//! | 8 | length of the body |
//! | 8 | length of the body as it is stored, in what follows |
//! | … | the body: as it is if both lengths are equal, else packed with zstd |
//!
//! Numbers in the header are little-endian. Numbers in the body are `u64` in groups of seven bits,
//! the lowest first; all but the last group have the bit 128. A list of **texts** is its length, the
//! length of each text in bytes, and then all texts in UTF-8, one after another. The body is:
//!
//! 1. the names of entities, and those of relations, as texts in the order of their ids;
//! 2. for each relation the number of its triples, and its triples in (head, tail) order: head minus
//!    the head before; then tail, or, after the same head, tail minus the tail before minus 1;
//! 3. the labels of entities, and those of relations: their number, their ids (each minus the one
//!    before), and the labels as texts;
//! 4. prefixes and namespaces as texts, in turn, the longest namespace first.
//!
//! What is read may come from strangers. The checksum finds accidents only. Therefore each number is
//! held against what is there before memory is taken, and a packed body may be at most
//! [`MAX_FACTOR`] times as long as it is packed. A graph that would shrink more is stored as it is.

use crate::graph::Graph;
use crate::labels::{LabelSet, Labels};
use crate::names::Names;
use crate::prefixes::Prefixes;
use crate::read::error::Remedy;
use crate::topology::{Topology, TopologyError, Triple};
use crate::unknown::NameKind;

const MAGIC: &[u8; 8] = b"FLOCKGRF";

/// The version that is written, and the only one that is read.
const VERSION: u32 = 1;

/// Where the bytes under the checksum begin.
const CHECKED: usize = 16;

/// Length of the header.
const HEADER: usize = 32;

/// Greatest ratio of a body to its packed length. Graphs shrink to a half or a tenth.
const MAX_FACTOR: u64 = 50;

/// How hard zstd tries: fast.
const LEVEL: i32 = 1;

/// Why bytes are no graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PackedError {
    /// The bytes begin with something else.
    #[error("the bytes are no packed graph, expected them to begin with FLOCKGRF")]
    NotPacked,
    /// The graph was packed in another version of the format.
    #[error("the graph was packed in version {found} of the format, expected version {expected}")]
    Version {
        /// The version of the bytes.
        found: u32,
        /// The version that this program reads.
        expected: u32,
    },
    /// Bytes are missing, or there are too many.
    #[error("the packed graph has {found} bytes, expected {expected}")]
    Length {
        /// Number of bytes.
        found: u64,
        /// Number of bytes by the header.
        expected: u64,
    },
    /// The bytes are not those that were written.
    #[error("the packed graph is damaged: its checksum is {found:08x}, expected {expected:08x}")]
    Checksum {
        /// The checksum of the bytes.
        found: u32,
        /// The checksum in the header.
        expected: u32,
    },
    /// The body is far longer than a packed body may be.
    #[error(
        "the packed graph unpacks from {packed} bytes to {unpacked}, expected at most {} times as many",
        MAX_FACTOR
    )]
    Swollen {
        /// Length of the body as it is stored.
        packed: u64,
        /// Length of the body by the header.
        unpacked: u64,
    },
    /// The content is none that is ever written.
    #[error("the packed graph is damaged: {what}")]
    Content {
        /// What is wrong with it.
        what: &'static str,
    },
    /// The index could not be built.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

impl PackedError {
    /// Returns what to do about it, if something is known to help.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            PackedError::NotPacked => Some(Remedy::Write("pass the bytes that a graph was packed into")),
            PackedError::Version { .. } => Some(Remedy::Write("load the graph from its files and pack it again")),
            PackedError::Length { .. } | PackedError::Checksum { .. } => {
                Some(Remedy::Write("copy the bytes again, or load the graph from its files and pack it again"))
            }
            PackedError::Swollen { .. } | PackedError::Content { .. } | PackedError::Topology(_) => None,
        }
    }
}

impl Graph {
    /// Packs the graph into bytes, with its names, ids, labels and prefixes.
    ///
    /// Equal graphs give equal bytes in one version of this program, whatever edits led to them. A
    /// later version may pack the body in another way.
    ///
    /// ```
    /// # use flock_graph::Graph;
    /// let mut builder = flock_graph::GraphBuilder::new();
    /// builder.add("Lisbon", "capital of", "Portugal");
    /// let bytes = builder.finish()?.to_bytes();
    /// let graph = Graph::from_bytes(&bytes)?;
    /// assert_eq!(graph.entities().get(1), "Portugal");
    /// assert_eq!(graph.to_bytes(), bytes);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        let body = body(self);
        let is_fair = |packed: &Vec<u8>| packed.len() < body.len() && body.len() as u64 <= most(packed.len() as u64);
        // Without zstd the body is stored as it is.
        let packed = zstd::bulk::compress(&body, LEVEL).ok().filter(is_fair);
        let stored = packed.as_deref().unwrap_or(&body);
        let mut bytes = Vec::with_capacity(HEADER + stored.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&(stored.len() as u64).to_le_bytes());
        bytes.extend_from_slice(stored);
        let checksum = checksum(&bytes[CHECKED..]);
        bytes[CHECKED - 4..CHECKED].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Makes the graph that was packed into `bytes`. It has the same ids, so it gives the same walks.
    ///
    /// Bytes from strangers do no harm: this takes memory in proportion to their number, and never
    /// panics.
    ///
    /// # Errors
    /// Bytes that are no packed graph, are damaged, or have another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Graph, PackedError> {
        if !bytes.starts_with(MAGIC) {
            return Err(PackedError::NotPacked);
        }
        let found = bytes.len() as u64;
        let Some((header, stored)) = bytes.split_first_chunk::<HEADER>() else {
            return Err(PackedError::Length { found, expected: HEADER as u64 });
        };
        let version = little_endian(&header[8..12]) as u32;
        if version != VERSION {
            return Err(PackedError::Version { found: version, expected: VERSION });
        }
        let (unpacked, packed) = (little_endian(&header[16..24]), little_endian(&header[24..32]));
        if stored.len() as u64 != packed {
            return Err(PackedError::Length { found, expected: packed.saturating_add(HEADER as u64) });
        }
        let (found, expected) = (checksum(&bytes[CHECKED..]), little_endian(&header[12..16]) as u32);
        if found != expected {
            return Err(PackedError::Checksum { found, expected });
        }
        if unpacked == packed {
            return graph(stored);
        }
        let len = usize::try_from(unpacked).ok().filter(|_| unpacked <= most(packed));
        let len = len.ok_or(PackedError::Swollen { packed, unpacked })?;
        match zstd::bulk::decompress(stored, len) {
            Ok(body) if body.len() == len => graph(&body),
            _ => Err(PackedError::Content { what: "its body cannot be unpacked" }),
        }
    }
}

/// Returns the greatest length of a body that is packed in so many bytes.
fn most(packed: u64) -> u64 {
    packed.saturating_mul(MAX_FACTOR)
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// Writes the body of a packed graph.
fn body(graph: &Graph) -> Vec<u8> {
    let mut out = Vec::new();
    put_texts(&mut out, || graph.entities().iter());
    put_texts(&mut out, || graph.relations().iter());
    let mut triples = graph.topology().triples();
    for relation in 0..graph.topology().num_relations() {
        let count = graph.topology().relation_range(relation).len();
        put(&mut out, count as u64);
        let (mut head, mut next) = (0, 0);
        for triple in triples.by_ref().take(count) {
            if triple.head != head {
                next = 0;
            }
            put(&mut out, u64::from(triple.head - head));
            put(&mut out, u64::from(triple.tail) - next);
            (head, next) = (triple.head, u64::from(triple.tail) + 1);
        }
    }
    for kind in [NameKind::Entity, NameKind::Relation] {
        let labels = graph.labels().of(kind);
        put(&mut out, labels.len() as u64);
        let mut before = 0;
        for (id, _) in labels.iter() {
            put(&mut out, u64::from(id - before));
            before = id;
        }
        put_texts(&mut out, || labels.iter().map(|(_, label)| label));
    }
    let prefixes: Vec<&str> = graph.prefixes().iter().flat_map(|(prefix, namespace)| [prefix, namespace]).collect();
    put_texts(&mut out, || prefixes.iter().copied());
    out
}

/// Makes a graph of the body of a packed one.
fn graph(body: &[u8]) -> Result<Graph, PackedError> {
    let mut rest = Rest(body);
    let entities = rest.names()?;
    let relations = rest.names()?;
    let triples = rest.triples(relations.len() as u32)?;
    let topology = Topology::build(entities.len() as u32, relations.len() as u32, triples)?;
    let labels = Labels::new(rest.labels(&entities)?, rest.labels(&relations)?);
    let prefixes = rest.prefixes()?;
    match rest.0 {
        [] => Ok(Graph::from_parts(entities, relations, topology, prefixes, labels)),
        _ => Err(PackedError::Content { what: "something follows its end" }),
    }
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_texts<'a, I: ExactSizeIterator<Item = &'a str>>(out: &mut Vec<u8>, texts: impl Fn() -> I) {
    put(out, texts().len() as u64);
    texts().for_each(|text| put(out, text.len() as u64));
    texts().for_each(|text| out.extend_from_slice(text.as_bytes()));
}

/// What is left of a body.
#[derive(Copy, Clone)]
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn number(&mut self) -> Result<u64, PackedError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let Some((&byte, rest)) = self.0.split_first() else {
                return Err(PackedError::Content { what: "its body ends early" });
            };
            self.0 = rest;
            let group = u64::from(byte & 127);
            if group << shift >> shift != group {
                break;
            }
            number |= group << shift;
            if byte < 128 {
                return Ok(number);
            }
        }
        Err(PackedError::Content { what: "it has a number of more than 64 bits" })
    }

    /// Reads the length of a list whose items take at least so many bytes.
    fn count(&mut self, bytes: usize) -> Result<usize, PackedError> {
        let count = usize::try_from(self.number()?).ok().filter(|count| *count <= self.0.len() / bytes);
        count.ok_or(PackedError::Content { what: "a list is longer than what is left" })
    }

    fn texts(&mut self) -> Result<Texts<'a>, PackedError> {
        let count = self.count(1)?;
        let lengths = *self;
        let mut length = Some(0usize);
        for _ in 0..count {
            let one = usize::try_from(self.number()?).ok();
            length = length.zip(one).and_then(|(length, one)| length.checked_add(one));
        }
        let Some((text, rest)) = length.and_then(|length| self.0.split_at_checked(length)) else {
            return Err(PackedError::Content { what: "texts are longer than what is left" });
        };
        self.0 = rest;
        let text = std::str::from_utf8(text).map_err(|_| PackedError::Content { what: "a text is not UTF-8" })?;
        Ok(Texts { count, lengths, text })
    }

    fn names(&mut self) -> Result<Names, PackedError> {
        let texts = self.texts()?;
        // The last id stands for no name.
        if texts.count == 0 || texts.count >= u32::MAX as usize {
            return Err(PackedError::Content { what: "it has no names, or more than there are ids" });
        }
        let mut names = Names::new();
        for (id, name) in texts.enumerate() {
            if names.intern(name?) as usize != id {
                return Err(PackedError::Content { what: "a name occurs twice" });
            }
        }
        names.shrink();
        Ok(names)
    }

    fn triples(&mut self, num_relations: u32) -> Result<Vec<Triple>, PackedError> {
        let mut triples = Vec::new();
        for relation in 0..num_relations {
            let count = self.count(2)?;
            triples.reserve(count);
            let (mut head, mut next) = (0u32, 0u64);
            for _ in 0..count {
                let more = self.number()?;
                if more > 0 {
                    next = 0;
                }
                let ids = (u64::from(head).checked_add(more), next.checked_add(self.number()?));
                let narrow = |id: Option<u64>| id.and_then(|id| u32::try_from(id).ok());
                let (Some(new_head), Some(tail)) = (narrow(ids.0), narrow(ids.1)) else {
                    return Err(PackedError::Content { what: "an id is out of range" });
                };
                head = new_head;
                next = u64::from(tail) + 1;
                triples.push(Triple { head, relation, tail });
            }
        }
        Ok(triples)
    }

    fn labels(&mut self, names: &Names) -> Result<LabelSet, PackedError> {
        let count = self.count(1)?;
        let mut ids = Vec::with_capacity(count);
        for _ in 0..count {
            let more = self.number()?;
            let id = ids.last().map_or(Some(more), |&before| u64::from(before).checked_add(more));
            let is_next = |id: &u64| *id < names.len() as u64 && (ids.is_empty() || more > 0);
            let id = id.filter(is_next).ok_or(PackedError::Content { what: "a label belongs to no name" })?;
            ids.push(id as u32);
        }
        let texts = self.texts()?;
        if texts.count != count {
            return Err(PackedError::Content { what: "it has more labels than ids of labels, or fewer" });
        }
        let mut labels = Vec::with_capacity(count);
        for (id, label) in ids.into_iter().zip(texts) {
            let label = label?;
            if label.is_empty() {
                return Err(PackedError::Content { what: "a label is empty" });
            }
            labels.push((id, label));
        }
        Ok(LabelSet::new(labels.into_iter()))
    }

    fn prefixes(&mut self) -> Result<Prefixes, PackedError> {
        let bad = || PackedError::Content { what: "its prefixes are not different, or not in order" };
        let mut texts = self.texts()?;
        let mut entries = Vec::new();
        while let Some(prefix) = texts.next() {
            let namespace = texts.next().ok_or_else(bad)?;
            entries.push((prefix?.to_owned(), namespace?.to_owned()));
        }
        Prefixes::from_entries(entries).ok_or_else(bad)
    }
}

/// A list of texts.
struct Texts<'a> {
    /// Number of texts that are left.
    count: usize,
    /// Their lengths, and what follows.
    lengths: Rest<'a>,
    /// The texts.
    text: &'a str,
}

impl<'a> Iterator for Texts<'a> {
    type Item = Result<&'a str, PackedError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        Some(self.lengths.number().and_then(|length| {
            let cut = usize::try_from(length).ok().and_then(|length| self.text.split_at_checked(length));
            let (text, rest) = cut.ok_or(PackedError::Content { what: "a text is not UTF-8" })?;
            self.text = rest;
            Ok(text)
        }))
    }
}
