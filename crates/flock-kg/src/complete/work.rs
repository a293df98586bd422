//! Which questions are worth asking, and in which order.
//!
//! One question scores all answers, so the work is a list of pairs: an entity and a relation, asked for its tails or, against the
//! relation, for its heads. A pair is worth asking if the entity already stands in that place of the relation, or is compatible
//! with those that do: it has a feature that at least half of them have and that is at least twice as common among them as among
//! all entities. A feature is a directed relation at the entity, or such a relation together with the entity at its other end.
//!
//! Pairs come by the number of links that they are expected to lack. Of the entities that fit a place, let `N(k)` have `k` links
//! there. If a small share of all links is missing, whichever they are, an entity that shows `k` of them lacks a number in
//! proportion to `(k + 1) N(k + 1) / N(k)` (Good and Turing), and from five links on simply to `k`. So of a relation with one
//! tail for each head those without a tail come first, and of a relation with many those with many. Pairs that are expected to
//! lack as much come by the degree of their entity.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use flock_graph::{NodeId, Topology, TypeId};
use flock_walk::{Key, Order as Shuffle};

use super::{CompleteOptions, Order, Pairs};

/// The most questions that are planned: what comes after them in order is left.
pub const MOST_QUESTIONS: usize = 10_000_000;

/// So many of the entities in a place, at most, are looked at for what they have in common.
const LOOKED_AT: usize = 1000;

/// From so many links on, the number of missing links is in proportion to those that are there.
const MANY: usize = 5;

/// A question for the tails of an entity by a relation, or for the heads if the type is that of an inverse.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pair {
    /// The relation, or the inverse of one.
    pub relation: TypeId,
    /// The entity that is known.
    pub entity: NodeId,
}

/// The questions of one place of one relation.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaceOutline {
    /// The relation, or the inverse of one.
    pub relation: TypeId,
    /// How many entities are in that place in the graph.
    pub observed: usize,
    /// How many questions are planned.
    pub questions: usize,
}

/// What is to be asked.
#[derive(Clone, Debug, Default)]
pub struct WorkList {
    /// The questions, in their order.
    pub pairs: Vec<Pair>,
    /// How many of them each place of a relation has, by relation.
    pub places: Vec<PlaceOutline>,
    /// How many questions were left because there are too many.
    pub left: usize,
    /// The number of raw relations of the graph.
    relations: u32,
    /// The relations that have a loop, of those that are asked about.
    loops: HashSet<u32>,
}

impl WorkList {
    /// The inverse of a raw relation.
    pub fn inverse(&self, relation: u32) -> TypeId {
        relation + self.relations
    }

    /// Whether the graph has a loop of this relation.
    pub fn has_loops(&self, relation: u32) -> bool {
        self.loops.contains(&relation)
    }
}

/// Plans the questions, unless `go_on` says no before one of the places.
pub fn plan(topology: &Topology, options: &CompleteOptions, go_on: &dyn Fn() -> bool) -> Option<WorkList> {
    let index = Places::new(topology);
    // A random order must not be one of the best only.
    let most = match options.order {
        Order::Expected if options.questions > 0 => options.questions.min(MOST_QUESTIONS),
        _ => MOST_QUESTIONS,
    };
    let mut ranked: Vec<(f32, u32, Pair)> = Vec::new();
    let mut places = Vec::new();
    let mut left = 0;
    let relations: Vec<u32> = match options.relation {
        Some(relation) => vec![relation],
        None => topology.relations_in_use().to_vec(),
    };
    let is_loop = |id| {
        let (head, tail) = topology.ends(id);
        head == tail
    };
    let loops = relations.iter().copied().filter(|r| topology.relation_range(*r).any(is_loop)).collect();
    for relation in relations {
        // A known end makes the question; the other end is what it asks for.
        let forward = options.sides.tails() && options.tail.is_none() || options.head.is_some();
        let backward = options.sides.heads() && options.head.is_none() || options.tail.is_some();
        for (wanted, directed, only) in
            [(forward, relation, options.head), (backward, topology.inverse(relation), options.tail)]
        {
            if !wanted || only.is_none() && (options.head.is_some() || options.tail.is_some()) {
                continue;
            }
            if !go_on() {
                return None;
            }
            let place = Place { index: &index, directed };
            let entities = place.entities(options.pairs, only, options.relation.is_some());
            let expected = match only {
                None => place.expected(&entities),
                // One entity says nothing about how many links are usual. As many may lack them as have them.
                Some(_) => {
                    let observed = index.of(directed);
                    let zeros = observed.iter().map(|&(entity, _)| (entity, 0));
                    place.expected(&observed.iter().copied().chain(zeros).collect::<Vec<_>>())
                }
            };
            for &(entity, links) in &entities {
                let expected = expected(links) as f32;
                ranked.push((expected, topology.degree(entity), Pair { relation: directed, entity }));
            }
            places.push(PlaceOutline { relation: directed, observed: index.of(directed).len(), questions: 0 });
            if ranked.len() > 2 * most {
                left += cut(&mut ranked, most);
            }
        }
    }
    left += cut(&mut ranked, most);
    ranked.sort_unstable_by(order);
    let mut pairs: Vec<Pair> = ranked.into_iter().map(|(.., pair)| pair).collect();
    if options.order == Order::Random {
        pairs.sort_unstable();
        let key = Key { seed: 0, pass: 0, update: 0, query: 0 };
        let shuffled = Shuffle::new(key, pairs.len() as u64);
        pairs = (0..pairs.len() as u64).map(|i| pairs[shuffled.get(i) as usize]).collect();
    }
    if options.questions > 0 {
        pairs.truncate(options.questions);
    }
    let (shard, of) = options.shard;
    let pairs: Vec<Pair> = pairs.into_iter().skip(shard as usize).step_by(of.max(1) as usize).collect();
    let mut counts: HashMap<TypeId, usize> = HashMap::new();
    pairs.iter().for_each(|pair| *counts.entry(pair.relation).or_default() += 1);
    for place in &mut places {
        place.questions = counts.get(&place.relation).copied().unwrap_or(0);
    }
    places.retain(|place| place.questions > 0);
    Some(WorkList { pairs, places, left, relations: topology.num_relations(), loops })
}

fn order(a: &(f32, u32, Pair), b: &(f32, u32, Pair)) -> std::cmp::Ordering {
    b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)).then(a.2.cmp(&b.2))
}

/// Drops what comes after the most questions. Returns how many that are.
fn cut(ranked: &mut Vec<(f32, u32, Pair)>, most: usize) -> usize {
    let left = ranked.len().saturating_sub(most);
    if left > 0 {
        ranked.select_nth_unstable_by(most, order);
        ranked.truncate(most);
    }
    left
}

/// The entities in each place of each relation and how many links each has there, by ascending entity; listed when first asked for.
struct Places<'t> {
    topology: &'t Topology,
    lists: Vec<OnceCell<Vec<(NodeId, u32)>>>,
}

impl<'t> Places<'t> {
    fn new(topology: &'t Topology) -> Places<'t> {
        let types = 2 * topology.num_relations() as usize;
        Places { topology, lists: (0..types).map(|_| OnceCell::new()).collect() }
    }

    fn of(&self, directed: TypeId) -> &[(NodeId, u32)] {
        let topology = self.topology;
        self.lists[directed as usize].get_or_init(|| {
            let forward = directed < topology.num_relations();
            let relation = if forward { directed } else { topology.inverse(directed) };
            let end = |id| {
                let (head, tail) = topology.ends(id);
                if forward { head } else { tail }
            };
            let mut ends: Vec<NodeId> = topology.relation_range(relation).map(end).collect();
            ends.sort_unstable();
            ends.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)).collect()
        })
    }
}

/// A directed relation at an entity, with or without the entity at its other end.
type Feature = (TypeId, Option<NodeId>);

/// One place of a relation: its subjects, or for the inverse its objects.
struct Place<'p, 't> {
    index: &'p Places<'t>,
    directed: TypeId,
}

impl Place<'_, '_> {
    fn links_of(&self, entity: NodeId) -> u32 {
        let links = self.index.of(self.directed);
        links.binary_search_by_key(&entity, |l| l.0).map_or(0, |i| links[i].1)
    }

    /// The entities to ask about, each once, with the number of links it has.
    fn entities(&self, pairs: Pairs, only: Option<NodeId>, named: bool) -> Vec<(NodeId, u32)> {
        if let Some(entity) = only {
            let links = self.links_of(entity);
            // Whoever names both the entity and the relation gets an answer in any case.
            let fits = match pairs {
                _ if named || links > 0 => true,
                Pairs::All => true,
                Pairs::Observed => false,
                Pairs::Compatible => self.fits(entity),
            };
            return if fits { vec![(entity, links)] } else { Vec::new() };
        }
        let mut all = self.index.of(self.directed).to_vec();
        let others: Vec<NodeId> = match pairs {
            Pairs::Observed => Vec::new(),
            Pairs::Compatible => self.compatible(),
            Pairs::All => (0..self.index.topology.num_nodes()).collect(),
        };
        all.extend(others.into_iter().filter(|e| self.links_of(*e) == 0).map(|e| (e, 0)));
        all
    }

    /// In proportion to the number of links that an entity with `k` of them lacks, by the number of those that have as many and
    /// one more.
    fn expected(&self, entities: &[(NodeId, u32)]) -> impl Fn(u32) -> f64 + use<> {
        let mut counts = [0usize; MANY + 1];
        for &(_, k) in entities {
            if let Some(count) = counts.get_mut(k as usize) {
                *count += 1;
            }
        }
        move |k| match k as usize {
            k if k >= MANY => k as f64,
            k => (k + 1) as f64 * counts[k + 1] as f64 / counts[k].max(1) as f64,
        }
    }

    /// How many entities have a feature.
    fn having(&self, (directed, other): Feature) -> usize {
        match other {
            Some(other) => self.index.topology.answers(other, self.index.topology.inverse(directed)).len(),
            None => self.index.of(directed).len(),
        }
    }

    /// What at least half of those in the place have, and at least twice as often as all entities.
    fn features(&self) -> Vec<Feature> {
        let topology = self.index.topology;
        let links = self.index.of(self.directed);
        let step = links.len().div_ceil(LOOKED_AT).max(1);
        let mut counts: HashMap<Feature, usize> = HashMap::new();
        let mut looked_at = 0usize;
        for &(entity, _) in links.iter().step_by(step) {
            looked_at += 1;
            let mut own: Vec<Feature> = Vec::new();
            for t in topology.triples_at(entity) {
                let ways = [(t.head, t.relation, t.tail), (t.tail, topology.inverse(t.relation), t.head)];
                for (from, directed, to) in ways {
                    if from == entity && directed != self.directed {
                        own.extend([(directed, None), (directed, Some(to))]);
                    }
                }
            }
            own.sort_unstable();
            own.dedup();
            for feature in own {
                *counts.entry(feature).or_default() += 1;
            }
        }
        let nodes = f64::from(topology.num_nodes());
        let telling = |&(feature, count): &(Feature, usize)| {
            let share = count as f64 / looked_at as f64;
            2 * count >= looked_at && share >= 2.0 * self.having(feature) as f64 / nodes
        };
        let mut features: Vec<Feature> = counts.into_iter().filter(telling).map(|(feature, _)| feature).collect();
        features.sort_unstable();
        features
    }

    /// All entities with such a feature.
    fn compatible(&self) -> Vec<NodeId> {
        let topology = self.index.topology;
        let mut found: Vec<NodeId> = Vec::new();
        for (directed, other) in self.features() {
            match other {
                Some(other) => found.extend(topology.answers(other, topology.inverse(directed))),
                None => found.extend(self.index.of(directed).iter().map(|(entity, _)| *entity)),
            }
            found.sort_unstable();
            found.dedup();
        }
        found
    }

    fn fits(&self, entity: NodeId) -> bool {
        let topology = self.index.topology;
        self.features().into_iter().any(|(directed, other)| match other {
            Some(other) => topology.contains(entity, directed, other),
            None => topology.answers(entity, directed).len() > 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::complete::{Scope, Search};
    use flock_graph::{Graph, GraphBuilder};

    fn plan(topology: &Topology, options: &CompleteOptions) -> WorkList {
        super::plan(topology, options, &|| true).unwrap()
    }

    /// Ten towns `in` a country; town 9 has no mayor; three people speak languages: ann two, bob one, eve none. Rivers are `in` a
    /// country as well.
    fn graph() -> Graph {
        let mut builder = GraphBuilder::new();
        for i in 0..10 {
            builder.add(&format!("town {i}"), "in", "Spain");
            builder.add(&format!("town {i}"), "is", "town");
            if i < 9 {
                builder.add(&format!("town {i}"), "mayor", &format!("mayor {i}"));
            }
        }
        for i in 0..20 {
            builder.add(&format!("river {i}"), "in", "Spain");
            builder.add(&format!("river {i}"), "is", "river");
        }
        builder.finish().unwrap()
    }

    fn names(graph: &Graph, list: &WorkList) -> Vec<String> {
        let name = |p: &Pair| graph.entities().get(p.entity).to_string();
        list.pairs.iter().map(name).collect()
    }

    fn options(graph: &Graph, relation: &str, pairs: Pairs, sides: Search) -> CompleteOptions {
        let scope = Scope { relation: Some(relation), ..Scope::default() };
        CompleteOptions { pairs, sides, ..CompleteOptions::default() }.within(graph, &scope).unwrap()
    }

    #[test]
    fn what_lacks_its_only_link_comes_first() {
        let graph = graph();
        let plan = |pairs| plan(graph.topology(), &options(&graph, "mayor", pairs, Search::Tails));
        // N(0) = 1, N(1) = 9, N(2) = 0: town 9 lacks 9 / 1, the others 0 / 9. Rivers are no towns: (is, town) is a feature of all
        // nine subjects, and of 10 of 40 entities; (in, Spain) of all nine and of 30 of 40, which is not twice as common.
        let compatible = plan(Pairs::Compatible);
        assert_eq!(compatible.pairs.len(), 10);
        assert_eq!(names(&graph, &compatible)[0], "town 9");
        let place = PlaceOutline { relation: graph.parse_relation("mayor").unwrap(), observed: 9, questions: 10 };
        assert_eq!(compatible.places, [place]);
        assert_eq!(plan(Pairs::Observed).pairs.len(), 9);
        assert_eq!(plan(Pairs::All).pairs.len(), graph.entities().len());
    }

    #[test]
    fn what_has_many_links_comes_first_where_many_are_usual() {
        let mut builder = GraphBuilder::new();
        for (film, actors) in [("one", 1), ("six", 6), ("nine", 9)] {
            (0..actors).for_each(|i| builder.add(film, "actor", &format!("{film} {i}")));
        }
        let graph = builder.finish().unwrap();
        let list = plan(graph.topology(), &options(&graph, "actor", Pairs::Observed, Search::Tails));
        assert_eq!(names(&graph, &list), ["nine", "six", "one"]);
    }

    #[test]
    fn shards_share_the_questions_out() {
        let graph = graph();
        let whole = plan(graph.topology(), &options(&graph, "in", Pairs::Compatible, Search::Both));
        let shard = |i| {
            let options = CompleteOptions { shard: (i, 3), ..options(&graph, "in", Pairs::Compatible, Search::Both) };
            plan(graph.topology(), &options).pairs
        };
        let mut all: Vec<Pair> = (0..3).flat_map(shard).collect();
        all.sort_unstable();
        let mut wanted = whole.pairs.clone();
        wanted.sort_unstable();
        assert_eq!(all, wanted);
        assert!((0..3).all(|i| shard(i).len().abs_diff(whole.pairs.len() / 3) <= 1));
    }

    #[test]
    fn a_named_end_is_asked_about_and_nothing_else() {
        let graph = graph();
        let scope = Scope { head: Some("town 9"), ..Scope::default() };
        let options = CompleteOptions::default().within(&graph, &scope).unwrap();
        let list = plan(graph.topology(), &options);
        assert!(list.pairs.iter().all(|p| graph.entities().get(p.entity) == "town 9"));
        let relation = |p: &Pair| graph.relations().get(p.relation).to_string();
        let mut relations: Vec<String> = list.pairs.iter().map(relation).collect();
        relations.sort();
        assert_eq!(relations, ["in", "is", "mayor"]);
    }
}
