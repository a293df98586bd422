//! Synthetic worlds: small graphs made from rules. They have kinds of relations that the training
//! graphs lack.
//!
//! A world is a pure function of a key. It is made in four steps:
//!
//! 1. **Vocabulary.** Entities (100 to 2,000, log-uniform), each with one of 4 to 16 types and a
//!    Zipf popularity; 8 to 64 relations with 1 to 3 types each for domain and range, and Zipf
//!    frequencies.
//! 2. **Rules**, each with a confidence of 50 to 100 %: hierarchy, inversion, symmetry, composition
//!    of two or three relations, mutual exclusion. The relation that a rule derives takes its
//!    domain and range from the rule's body.
//! 3. **Facts.** Random facts first; then the rules add what follows, in up to three rounds.
//! 4. **Questions.** A share of what the rules added is left out. These facts can be derived from
//!    what is left, mostly.
//!
//! Draws use integers, and square roots, which all machines round alike: the same key gives the
//! same world everywhere.

use std::collections::{BTreeMap, HashMap, HashSet};

use flock_graph::Triple;
use flock_walk::{Key, Stream};
use serde::Serialize;

/// Entities, before those without a fact are taken away: least, and steps of 20^(1/64) above it.
const LEAST_ENTITIES: f64 = 100.0;
const SIZE_STEPS: u64 = 64;
/// 20^(1/64): 64 steps lead from 100 to 2,000.
const SIZE_STEP: f64 = 1.047_922_353_9;
/// Greatest number of facts per entity.
const MOST_FACTS: usize = 16;
/// Greatest number of facts that a composition follows from each middle entity. Otherwise hubs
/// would dominate.
const MOST_BRANCHES: usize = 6;
/// Rounds of chaining.
const ROUNDS: usize = 3;
/// Number of worlds that are tried before one with few questions is taken.
const ATTEMPTS: u64 = 8;

/// How a relation follows from others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Rule {
    /// body(x, y) → head(x, y)
    Hierarchy {
        /// The narrower relation.
        body: u32,
        /// The wider one.
        head: u32,
        /// In percent.
        confidence: u32,
    },
    /// body(x, y) → head(y, x)
    Inversion {
        /// One way.
        body: u32,
        /// The other.
        head: u32,
        /// In percent.
        confidence: u32,
    },
    /// head(x, y) → head(y, x)
    Symmetry {
        /// The relation.
        head: u32,
        /// In percent.
        confidence: u32,
    },
    /// body₁(x, y), body₂(y, z), … → head(x, …)
    Composition {
        /// Two or three relations.
        body: Vec<u32>,
        /// What follows.
        head: u32,
        /// In percent.
        confidence: u32,
    },
    /// Never both: one(x, y), other(x, y)
    Exclusion {
        /// A relation.
        one: u32,
        /// Another.
        other: u32,
    },
}

/// A graph and what is to be asked about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    /// Entities `0..entities`, each with a fact or a question.
    pub entities: u32,
    /// Relations `0..relations`, each with a fact or a question.
    pub relations: u32,
    /// What is seen.
    pub facts: Vec<Triple>,
    /// What follows by rules and was left out.
    pub questions: Vec<Triple>,
    /// The type of each entity.
    pub types: Vec<u32>,
    /// The rules, of relations that are left.
    pub rules: Vec<Rule>,
}

impl World {
    /// Makes the world of a key. A few attempts are made to get at least `questions` questions.
    pub fn new(key: Key, questions: usize) -> World {
        let mut best: Option<World> = None;
        for attempt in 0..ATTEMPTS {
            let world = Maker::new(key.stream(attempt)).world();
            let enough = world.questions.len() >= questions;
            if enough || best.as_ref().is_none_or(|b| world.questions.len() > b.questions.len()) {
                best = Some(world);
            }
            if enough {
                break;
            }
        }
        best.unwrap_or(World {
            entities: 0,
            relations: 0,
            facts: Vec::new(),
            questions: Vec::new(),
            types: Vec::new(),
            rules: Vec::new(),
        })
    }

    /// Returns the name of an entity: its type and its number.
    pub fn entity_name(&self, entity: u32) -> String {
        format!("t{}_{entity}", self.types[entity as usize])
    }

    /// Returns the name of a relation.
    pub fn relation_name(relation: u32) -> String {
        format!("r{relation}")
    }
}

/// Numbers with weights that fall like a power of their rank.
struct Zipf {
    ends: Vec<u64>,
}

impl Zipf {
    /// Weights `1 / rank^(quarters / 4)` for 2, 3 or 4 quarters.
    fn new(len: usize, quarters: u64) -> Zipf {
        let weight = |rank: usize| {
            let rank = rank as f64;
            let power = match quarters {
                2 => rank.sqrt(),
                3 => (rank * rank.sqrt()).sqrt(),
                _ => rank,
            };
            ((1u64 << 20) as f64 / power).max(1.0) as u64
        };
        let ends = (1..=len).scan(0, |sum, rank| {
            *sum += weight(rank);
            Some(*sum)
        });
        Zipf { ends: ends.collect() }
    }

    fn total(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns the number at a position in `0..total`.
    fn at(&self, place: u64) -> usize {
        self.ends.partition_point(|end| *end <= place)
    }
}

/// Types that a relation's heads, or its tails, may have.
type TypeSet = Vec<u32>;

struct Maker {
    stream: Stream,
    types: Vec<u32>,               // of each entity
    members: Vec<Vec<u32>>,        // of each type, the most popular first
    popularity: Vec<Zipf>,         // of each type's members
    signatures: Vec<[TypeSet; 2]>, // domain and range of each relation
    rules: Vec<Rule>,
    excluded: HashMap<u32, Vec<u32>>,
    facts: Vec<Triple>,
    first_derived: usize,
    known: HashSet<Triple>,
    by_head: HashMap<(u32, u32), Vec<u32>>, // (relation, head) -> tails
    most_facts: usize,
}

impl Maker {
    fn new(mut stream: Stream) -> Maker {
        let steps = stream.below(SIZE_STEPS + 1);
        let entities = (0..steps).fold(LEAST_ENTITIES, |size, _| size * SIZE_STEP).round() as u32;
        let num_types = 4 + stream.below(13) as usize;
        let of_types = Zipf::new(num_types, 2);
        let types: Vec<u32> = (0..entities).map(|_| of_types.at(stream.below(of_types.total())) as u32).collect();
        let mut members = vec![Vec::new(); num_types];
        (0..entities).for_each(|e| members[types[e as usize] as usize].push(e));
        let quarters = 2 + stream.below(3);
        let popularity = members.iter().map(|m| Zipf::new(m.len(), quarters)).collect();
        Maker {
            stream,
            types,
            members,
            popularity,
            signatures: Vec::new(),
            rules: Vec::new(),
            excluded: HashMap::new(),
            facts: Vec::new(),
            first_derived: 0,
            known: HashSet::new(),
            by_head: HashMap::new(),
            most_facts: MOST_FACTS * entities as usize,
        }
    }

    fn world(mut self) -> World {
        let relations = 8 + self.stream.below(57) as u32;
        let derived: Vec<bool> = (0..relations).map(|r| self.relation(r)).collect();
        self.draw_facts(&derived);
        self.first_derived = self.facts.len();
        for _ in 0..ROUNDS {
            if !self.chain() {
                break;
            }
        }
        self.finish()
    }

    /// Returns true with this chance, in percent.
    fn chance(&mut self, percent: u64) -> bool {
        self.stream.below(100) < percent
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        let place = self.stream.below(of.len() as u64) as usize;
        of.get(place).cloned()
    }

    /// Draws one to three types that have members.
    fn type_set(&mut self) -> TypeSet {
        let used: Vec<u32> = (0..self.members.len() as u32).filter(|t| !self.members[*t as usize].is_empty()).collect();
        let mut set = TypeSet::new();
        for _ in 0..1 + self.stream.below(3) {
            set.extend(self.pick(&used));
        }
        set.sort_unstable();
        set.dedup();
        set
    }

    /// Adds relation `r`, about half of the time with a rule that derives it. Returns whether a
    /// rule derives its facts.
    fn relation(&mut self, r: u32) -> bool {
        let confidence = 50 + self.stream.below(51) as u32;
        let earlier: Vec<u32> = (0..r).collect();
        let rule = if r >= 2 && self.chance(55) { self.stream.below(14) } else { 15 };
        let body = self.pick(&earlier).unwrap_or(0);
        let chained = |maker: &mut Maker, after: u32| -> Option<u32> {
            let meets = |s: &u32| {
                maker.signatures[after as usize][1].iter().any(|t| maker.signatures[*s as usize][0].contains(t))
            };
            let next: Vec<u32> = earlier.iter().copied().filter(meets).collect();
            maker.pick(&next)
        };
        match rule {
            0..3 => {
                self.signatures.push(self.signatures[body as usize].clone());
                self.rules.push(Rule::Hierarchy { body, head: r, confidence });
                return true;
            }
            3..6 => {
                let [domain, range] = self.signatures[body as usize].clone();
                self.signatures.push([range, domain]);
                self.rules.push(Rule::Inversion { body, head: r, confidence });
                return true;
            }
            6..12 => {
                let length = if rule < 10 { 2 } else { 3 };
                let mut bodies = vec![body];
                while bodies.len() < length {
                    match chained(self, bodies[bodies.len() - 1]) {
                        Some(next) => bodies.push(next),
                        None => break,
                    }
                }
                if bodies.len() > 1 {
                    let domain = self.signatures[bodies[0] as usize][0].clone();
                    let range = self.signatures[bodies[bodies.len() - 1] as usize][1].clone();
                    self.signatures.push([domain, range]);
                    self.rules.push(Rule::Composition { body: bodies, head: r, confidence });
                    return true;
                }
            }
            12..14 => {
                self.signatures.push(self.signatures[body as usize].clone());
                self.rules.push(Rule::Exclusion { one: body, other: r });
                self.excluded.entry(body).or_default().push(r);
                self.excluded.entry(r).or_default().push(body);
                return false;
            }
            _ => {}
        }
        let domain = self.type_set();
        if self.chance(12) {
            self.signatures.push([domain.clone(), domain]);
            self.rules.push(Rule::Symmetry { head: r, confidence });
        } else {
            let range = self.type_set();
            self.signatures.push([domain, range]);
        }
        false
    }

    /// Draws an entity of one of these types, popular ones more often.
    fn entity(&mut self, types: &[u32]) -> u32 {
        let weight = |t: &u32| self.popularity[*t as usize].total();
        let mut place = self.stream.below(types.iter().map(weight).sum());
        for t in types {
            if place < weight(t) {
                return self.members[*t as usize][self.popularity[*t as usize].at(place)];
            }
            place -= weight(t);
        }
        0
    }

    /// Draws facts that no rule derives. Relations that a rule derives have a few of them too.
    fn draw_facts(&mut self, derived: &[bool]) {
        let quarters = 2 + self.stream.below(3);
        let frequency = Zipf::new(derived.len(), quarters);
        // Which relation has which rank.
        let mut ranked: Vec<u32> = (0..derived.len() as u32).collect();
        for i in (1..ranked.len()).rev() {
            ranked.swap(i, self.stream.below(i as u64 + 1) as usize);
        }
        // One and a half to six facts an entity.
        let wanted = self.types.len() * (6 + self.stream.below(19) as usize) / 4;
        for _ in 0..wanted {
            let relation = ranked[frequency.at(self.stream.below(frequency.total()))];
            if derived[relation as usize] && !self.chance(20) {
                continue;
            }
            let [domain, range] = self.signatures[relation as usize].clone();
            let (head, tail) = (self.entity(&domain), self.entity(&range));
            self.add(Triple { head, relation, tail });
        }
    }

    /// Adds a fact, unless it exists, has the same head and tail, or is excluded.
    fn add(&mut self, fact: Triple) -> bool {
        let Triple { head, relation, tail } = fact;
        let clashes = self.excluded.get(&relation).is_some_and(|others| {
            others.iter().any(|other| self.known.contains(&Triple { head, relation: *other, tail }))
        });
        if head == tail || clashes || self.facts.len() >= self.most_facts || !self.known.insert(fact) {
            return false;
        }
        self.facts.push(fact);
        self.by_head.entry((relation, head)).or_default().push(tail);
        true
    }

    /// Applies all rules once. Returns false if nothing was added.
    fn chain(&mut self) -> bool {
        let before = self.facts.len();
        for rule in self.rules.clone() {
            let (first, head, confidence) = match &rule {
                Rule::Hierarchy { body, head, confidence } | Rule::Inversion { body, head, confidence } => {
                    (*body, *head, *confidence)
                }
                Rule::Symmetry { head, confidence } => (*head, *head, *confidence),
                Rule::Composition { body, head, confidence } => (body[0], *head, *confidence),
                Rule::Exclusion { .. } => continue,
            };
            // What the rule itself adds is for the next round.
            let of_first: Vec<Triple> = self.facts[..before].iter().copied().filter(|f| f.relation == first).collect();
            for fact in of_first {
                let ends: Vec<(u32, u32)> = match &rule {
                    Rule::Hierarchy { .. } => vec![(fact.head, fact.tail)],
                    Rule::Composition { body, .. } => {
                        self.follow(fact.tail, &body[1..]).into_iter().map(|end| (fact.head, end)).collect()
                    }
                    _ => vec![(fact.tail, fact.head)],
                };
                for (x, y) in ends {
                    if self.chance(u64::from(confidence)) {
                        self.add(Triple { head: x, relation: head, tail: y });
                    }
                }
            }
        }
        self.facts.len() > before
    }

    /// Follows relations from an entity, one after the other, along at most a few ways.
    fn follow(&mut self, from: u32, relations: &[u32]) -> Vec<u32> {
        let mut at = vec![from];
        for relation in relations {
            let mut next = Vec::new();
            for entity in at {
                let tails = self.by_head.get(&(*relation, entity)).cloned().unwrap_or_default();
                let first =
                    if tails.len() > MOST_BRANCHES { self.stream.below(tails.len() as u64) as usize } else { 0 };
                next.extend(tails.iter().cycle().skip(first).take(tails.len().min(MOST_BRANCHES)));
            }
            next.truncate(MOST_BRANCHES);
            at = next;
        }
        at
    }

    /// Leaves out some derived facts as questions, and renumbers the rest.
    fn finish(mut self) -> World {
        let share = 20 + self.stream.below(31);
        let derived = self.facts.split_off(self.first_derived);
        let (mut seen, mut asked) = (std::mem::take(&mut self.facts), Vec::new());
        for fact in derived {
            if self.chance(share) { asked.push(fact) } else { seen.push(fact) }
        }
        // Questions about an entity or relation without any fact are dropped.
        let (mut entities, mut relations) = (BTreeMap::new(), BTreeMap::new());
        for fact in &seen {
            entities.insert(fact.head, 0);
            entities.insert(fact.tail, 0);
            relations.insert(fact.relation, 0);
        }
        (0..).zip(entities.values_mut()).for_each(|(new, id)| *id = new);
        (0..).zip(relations.values_mut()).for_each(|(new, id)| *id = new);
        let renumber = |fact: &Triple| {
            let (head, tail) = (*entities.get(&fact.head)?, *entities.get(&fact.tail)?);
            Some(Triple { head, relation: *relations.get(&fact.relation)?, tail })
        };
        World {
            entities: entities.len() as u32,
            relations: relations.len() as u32,
            types: entities.keys().map(|e| self.types[*e as usize]).collect(),
            facts: seen.iter().filter_map(renumber).collect(),
            questions: asked.iter().filter_map(renumber).collect(),
            rules: self.rules.iter().filter_map(|rule| renumbered(rule, &relations)).collect(),
        }
    }
}

/// Renumbers the relations of a rule. Returns `None` if one of them is gone.
fn renumbered(rule: &Rule, relations: &BTreeMap<u32, u32>) -> Option<Rule> {
    let of = |r: &u32| relations.get(r).copied();
    Some(match rule {
        Rule::Hierarchy { body, head, confidence } => {
            Rule::Hierarchy { body: of(body)?, head: of(head)?, confidence: *confidence }
        }
        Rule::Inversion { body, head, confidence } => {
            Rule::Inversion { body: of(body)?, head: of(head)?, confidence: *confidence }
        }
        Rule::Symmetry { head, confidence } => Rule::Symmetry { head: of(head)?, confidence: *confidence },
        Rule::Composition { body, head, confidence } => Rule::Composition {
            body: body.iter().map(of).collect::<Option<_>>()?,
            head: of(head)?,
            confidence: *confidence,
        },
        Rule::Exclusion { one, other } => Rule::Exclusion { one: of(one)?, other: of(other)? },
    })
}
