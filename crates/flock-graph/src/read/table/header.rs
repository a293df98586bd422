//! What the columns of a table mean, by the words of its header.
//!
//! Files come from many tools, each with its own words: `subject predicate object`, `head relation
//! tail`, `source target type`, `node1 label node2` (KGTK), `:START_ID :TYPE :END_ID` (Neo4j),
//! `x_name display_relation y_name`, and so on. Words are compared by their letters and digits only,
//! so `Subject ID`, `subject_id` and `subjectId` are the same. A table may also describe nodes: an
//! id, a label, a kind.

/// What the columns of a table mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The columns of triples. A table of nodes has none.
    pub(crate) triples: Option<TripleColumns>,
    /// The columns of nodes. If there are triples too, a row without a head is a node.
    pub(crate) nodes: Option<NodeColumns>,
    /// Whether values are written as in KGTK.
    pub(crate) kgtk: bool,
}

/// The columns (from 0) of triples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TripleColumns {
    /// Head, relation and tail.
    pub(crate) columns: [usize; 3],
    /// The columns with their labels.
    pub(crate) labels: [Option<usize>; 3],
    /// The groups that ids of heads and tails belong to. Numbers are unique only within a group.
    pub(crate) groups: [Option<String>; 2],
}

/// The columns (from 0) of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeColumns {
    pub(crate) id: usize,
    pub(crate) group: Option<String>,
    pub(crate) label: Option<usize>,
    pub(crate) kind: Option<NodeKind>,
}

/// A column that says what kind of thing a node is. Each kind becomes a triple.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeKind {
    pub(crate) column: usize,
    /// The relation of the triples.
    pub(crate) relation: String,
    /// What stands between two kinds of the same node.
    pub(crate) separator: char,
}

/// What a header says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one for each file")]
pub(crate) enum Reading {
    /// It names the columns. `sure` is false if the words may also be names of entities.
    Named { layout: Layout, sure: bool },
    /// It names head and tail and has no column for the relation.
    NoRelation { head: usize, tail: usize },
}

/// Words for head and tail, the most telling ones first.
const PAIRS: [(&str, &str); 27] = [
    ("subject", "object"),
    ("head", "tail"),
    ("node1", "node2"),
    ("source", "target"),
    ("from", "to"),
    ("start", "end"),
    ("src", "dst"),
    ("src", "dest"),
    ("src", "tgt"),
    ("src", "target"),
    ("source", "destination"),
    ("source", "dest"),
    ("source", "sink"),
    ("origin", "destination"),
    ("subj", "obj"),
    ("sub", "obj"),
    ("entity1", "entity2"),
    ("entitya", "entityb"),
    ("nodea", "nodeb"),
    ("e1", "e2"),
    ("arg1", "arg2"),
    ("argument1", "argument2"),
    ("participanta", "participantb"),
    ("interactora", "interactorb"),
    ("concept1", "concept2"),
    ("left", "right"),
    ("x", "y"),
];

/// Words that people mix: each of these heads may stand with each of these tails.
const MIXED: [&[&str]; 2] = [&["head", "subject", "source"], &["tail", "object", "target"]];

/// What may follow a word for head or tail.
const ENDINGS: [&str; 11] = ["", "id", "node", "entity", "nodeid", "entityid", "iri", "uri", "curie", "name", "label"];

/// The same for `x` and `y`, which are coordinates when they stand alone. Ids of these are often
/// unique only together with a source, so names go first.
const ENDINGS_OF_X: [&str; 3] = ["name", "id", "index"];

/// Words for the relation that hardly mean anything else, the best first.
const RELATIONS: [&str; 18] = [
    "predicate",
    "relation",
    "relationship",
    "property",
    "displayrelation",
    "rel",
    "relationtype",
    "relationshiptype",
    "reltype",
    "predicatetype",
    "edgetype",
    "edgelabel",
    "linktype",
    "interactiontype",
    "interaction",
    "edge",
    "link",
    "verb",
];

/// Words for the relation beside a pair of words for head and tail.
const WEAK_RELATIONS: [&str; 6] = ["type", "label", "kind", "role", "association", "action"];

/// What may follow a word for the relation.
const RELATION_ENDINGS: [&str; 7] = ["", "id", "iri", "uri", "curie", "name", "label"];

/// Words for columns beside head and tail that are no relation.
const MEASURES: [&str; 20] = [
    "weight",
    "score",
    "confidence",
    "count",
    "counts",
    "value",
    "probability",
    "prob",
    "year",
    "date",
    "time",
    "timestamp",
    "id",
    "distance",
    "similarity",
    "frequency",
    "freq",
    "strength",
    "cost",
    "index",
];

/// Words for labels of nodes, the best first.
const NODE_LABELS: [&str; 7] = ["name", "label", "title", "preferredname", "displayname", "preflabel", "fullname"];

/// Words for kinds of nodes, the best first.
const NODE_KINDS: [&str; 6] = ["category", "categories", "kind", "type", "types", "nodetype"];

/// The relation of the kinds of nodes in KGX.
const BIOLINK_CATEGORY: &str = "biolink:category";

/// The relation of the kinds of nodes in exports of Neo4j, which calls them labels.
pub(crate) const NEO4J_LABEL: &str = ":LABEL";

/// Tells whether a word hardly means anything but a relation.
pub(crate) fn is_relation_word(field: &str) -> bool {
    let word = letters(field);
    RELATIONS.iter().any(|relation| RELATION_ENDINGS.iter().any(|ending| word == format!("{relation}{ending}")))
}

/// Leaves only letters and digits, in lower case.
pub(crate) fn letters(field: &str) -> String {
    field.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Reads the fields of a first row as a header. Returns `None` if they name no columns.
pub(crate) fn read(fields: &[&str]) -> Option<Reading> {
    // No header has that many columns.
    if fields.len() > 1000 {
        return None;
    }
    let header = Header { fields, words: fields.iter().map(|field| letters(field)).collect() };
    header.neo4j().or_else(|| header.apoc()).or_else(|| header.triples()).or_else(|| header.nodes())
}

struct Header<'a> {
    fields: &'a [&'a str],
    /// The fields without punctuation.
    words: Vec<String>,
}

impl Header<'_> {
    /// Returns the column with this word, if there is exactly one.
    fn one(&self, word: &str) -> Option<usize> {
        let mut found = (0..self.words.len()).filter(|&at| self.words[at] == word);
        found.next().filter(|_| found.next().is_none())
    }

    fn first_of(&self, words: &[&str]) -> Option<usize> {
        words.iter().find_map(|word| self.one(word))
    }

    /// Finds `name:WORD(group)`, as Neo4j writes it. Returns the column and the group.
    fn marked(&self, word: &str) -> Option<(usize, Option<String>)> {
        let mark = |field: &str| {
            let (_, mark) = field.rsplit_once(':')?;
            let (mark, group) = match mark.split_once('(') {
                Some((mark, group)) => (mark, group.strip_suffix(')').map(str::to_owned)),
                None => (mark, None),
            };
            mark.trim().eq_ignore_ascii_case(word).then_some(group)
        };
        let mut found = self.fields.iter().enumerate().filter_map(|(at, field)| Some((at, mark(field.trim())?)));
        found.next().filter(|_| found.next().is_none())
    }

    /// Headers of `neo4j-admin import`.
    fn neo4j(&self) -> Option<Reading> {
        let label = || {
            let name = |field: &str| letters(field.split(':').next().unwrap_or(""));
            let names: Vec<String> = self.fields.iter().map(|field| name(field)).collect();
            NODE_LABELS.iter().find_map(|word| names.iter().position(|name| name == word))
        };
        let mut layout = Layout::default();
        if let (Some(start), Some(kind), Some(end)) =
            (self.marked("START_ID"), self.marked("TYPE"), self.marked("END_ID"))
        {
            layout.triples = Some(TripleColumns {
                columns: [start.0, kind.0, end.0],
                groups: [start.1, end.1],
                ..TripleColumns::default()
            });
        } else if let Some((id, group)) = self.marked("ID") {
            let kind = self.marked("LABEL").map(|(column, _)| NodeKind {
                column,
                relation: NEO4J_LABEL.to_owned(),
                separator: ';',
            });
            layout.nodes = Some(NodeColumns { id, group, label: label().filter(|&at| at != id), kind });
        } else {
            return None;
        }
        Some(Reading::Named { layout, sure: true })
    }

    /// Headers of `apoc.export.csv` (`_id _labels … _start _end _type`, nodes and relationships in
    /// one file) and of Neptune (`~id ~label`, `~from ~to ~label`).
    fn apoc(&self) -> Option<Reading> {
        let at = |name: &str| self.fields.iter().position(|field| field.trim() == name);
        let kind = |column: Option<usize>, separator| {
            column.map(|column| NodeKind { column, relation: NEO4J_LABEL.to_owned(), separator })
        };
        let nodes = |id: usize, kind| Some(NodeColumns { id, group: None, label: self.first_of(&NODE_LABELS), kind });
        let triples = |columns| Some(TripleColumns { columns, ..TripleColumns::default() });
        let mut layout = Layout::default();
        if let (Some(start), Some(end), Some(relation)) = (at("_start"), at("_end"), at("_type")) {
            layout.triples = triples([start, relation, end]);
            layout.nodes = at("_id").and_then(|id| nodes(id, kind(at("_labels"), ':')));
        } else if let (Some(from), Some(to), Some(relation)) = (at("~from"), at("~to"), at("~label")) {
            layout.triples = triples([from, relation, to]);
        } else {
            let label = |field: &str| NODE_LABELS.contains(&letters(field.split(':').next().unwrap_or("")).as_str());
            let column = self.fields.iter().position(|field| !field.starts_with('~') && label(field));
            let kind = kind(at("~label"), ';');
            layout.nodes = Some(NodeColumns { id: at("~id")?, group: None, label: column, kind });
        }
        Some(Reading::Named { layout, sure: true })
    }

    /// Tables of triples, in the words of many tools.
    fn triples(&self) -> Option<Reading> {
        if let Some(reading) = self.initials() {
            return Some(reading);
        }
        let (head, tail, pair) = self.ends()?;
        let Some((relation, word)) = self.relation(pair.0, head, tail) else {
            // Three columns: what is left is the relation, unless it measures something.
            let others: Vec<usize> = (0..self.words.len()).filter(|&at| at != head && at != tail).collect();
            return match others[..] {
                // Two words for the same end: who knows which is meant.
                [other] if MIXED.iter().any(|words| words.contains(&self.words[other].as_str())) => None,
                [relation] if !MEASURES.contains(&self.words[relation].as_str()) => {
                    let columns = [head, relation, tail];
                    let triples = Some(TripleColumns { columns, ..TripleColumns::default() });
                    let layout = Layout { triples, ..Layout::default() };
                    // `source knows target` may be a triple about two things of these names.
                    Some(Reading::Named { layout, sure: columns != [0, 1, 2] })
                }
                _ => Some(Reading::NoRelation { head, tail }),
            };
        };
        let columns = [head, relation, tail];
        let label = |word: &str| {
            let columns = ["label", "name"].iter().find_map(|ending| self.one(&format!("{word}{ending}")));
            columns.filter(|at| ![head, relation, tail].contains(at))
        };
        let labels = [label(pair.0), label(word), label(pair.1)];
        let kgtk = pair.0 == "node1" && self.words[head] == "node1" && (word == "label" || word == "property");
        let strong = columns != [0, 1, 2]
            || self.words.len() > 3
            || RELATIONS.contains(&word)
            || !["from", "start", "left", "origin", "e1"].contains(&pair.0);
        let triples = Some(TripleColumns { columns, labels, ..TripleColumns::default() });
        Some(Reading::Named { layout: Layout { triples, nodes: None, kgtk }, sure: strong })
    }

    /// Single letters count only as three columns in this order.
    fn initials(&self) -> Option<Reading> {
        let [h, r, t] = self.fields else { return None };
        let is = |field: &str, role: usize| {
            let (letters, mixed) =
                ([["h", "s"], ["r", "p"], ["t", "o"]][role], [MIXED[0], &RELATIONS[..4], MIXED[1]][role]);
            letters.iter().chain(mixed).any(|word| field.trim().eq_ignore_ascii_case(word))
        };
        let triples = Some(TripleColumns { columns: [0, 1, 2], ..TripleColumns::default() });
        let layout = Layout { triples, ..Layout::default() };
        (is(h, 0) && is(r, 1) && is(t, 2)).then_some(Reading::Named { layout, sure: true })
    }

    /// Finds the columns of head and tail, and the words without their endings.
    fn ends(&self) -> Option<(usize, usize, (&'static str, &'static str))> {
        for pair in PAIRS {
            let endings: &[&str] = if pair.0 == "x" { &ENDINGS_OF_X } else { &ENDINGS };
            for ending in endings {
                let column = |word: &str| self.one(&format!("{word}{ending}"));
                if let (Some(head), Some(tail)) = (column(pair.0), column(pair.1)) {
                    return Some((head, tail, pair));
                }
            }
        }
        let only = |words: &[&'static str]| {
            let mut found = words.iter().filter(|word| self.words.iter().any(|w| w == *word));
            let word = found.next().filter(|_| found.next().is_none())?;
            Some((self.one(word)?, *word))
        };
        let ((head, h), (tail, t)) = (only(MIXED[0])?, only(MIXED[1])?);
        // Two ends alone say little: the relation must be named as well.
        self.relation(h, head, tail).map(|_| (head, tail, (h, t)))
    }

    /// Finds the column of the relation beside these ends, and its word without the ending.
    fn relation(&self, head_word: &str, head: usize, tail: usize) -> Option<(usize, &'static str)> {
        let first: &[&'static str] = match head_word {
            "node1" => &["label", "property"],
            "x" => &["displayrelation"],
            _ => &[],
        };
        let strong = first.iter().chain(&RELATIONS);
        let strong = strong.flat_map(|word| RELATION_ENDINGS.map(|ending| (*word, format!("{word}{ending}"))));
        let weak = WEAK_RELATIONS.iter().map(|word| (*word, (*word).to_owned()));
        let found = strong.chain(weak).find_map(|(word, whole)| Some((self.one(&whole)?, word)));
        found.filter(|(at, _)| *at != head && *at != tail)
    }

    /// Tables of nodes: an id, with a label or a kind.
    fn nodes(&self) -> Option<Reading> {
        let id = self.first_of(&["id", "nodeid", "entityid", "curie", "node"])?;
        // A word for a part of a triple makes it some other table.
        let ends = PAIRS.iter().flat_map(|(head, tail)| [*head, *tail]).filter(|word| !["x", "y"].contains(word));
        if ends.chain(RELATIONS).any(|word| self.words.iter().any(|w| w == word)) {
            return None;
        }
        let label = self.first_of(&NODE_LABELS);
        let kind = self.first_of(&NODE_KINDS).map(|column| NodeKind {
            column,
            relation: match self.words[column].as_str() {
                "category" | "categories" => BIOLINK_CATEGORY.to_owned(),
                _ => self.fields[column].trim().to_owned(),
            },
            separator: '|',
        });
        if label.is_none() && kind.is_none() {
            return None;
        }
        let nodes = Some(NodeColumns { id, group: None, label, kind });
        Some(Reading::Named { layout: Layout { nodes, ..Layout::default() }, sure: true })
    }
}

/// Finds the column that a caller chose by name: one of exactly this name, or else the only one with
/// the same letters and digits.
pub(crate) fn find(fields: &[&str], name: &str) -> Option<usize> {
    if let Some(at) = fields.iter().position(|field| *field == name) {
        return Some(at);
    }
    let word = letters(name);
    let mut found = (0..fields.len()).filter(|&at| !word.is_empty() && letters(fields[at]) == word);
    found.next().filter(|_| found.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(header: &str) -> Option<[usize; 3]> {
        let fields: Vec<&str> = header.split(',').collect();
        match read(&fields)? {
            Reading::Named { layout, .. } => layout.triples.map(|triples| triples.columns),
            Reading::NoRelation { .. } => None,
        }
    }

    #[test]
    fn many_words_name_the_same_columns() {
        let cases = [
            ("subject,predicate,object", [0, 1, 2]),
            ("head,relation,tail", [0, 1, 2]),
            ("h,r,t", [0, 1, 2]),
            ("S,P,O", [0, 1, 2]),
            ("source,r,target", [0, 1, 2]),
            ("source,target,type", [0, 2, 1]),
            ("source,relation,target", [0, 1, 2]),
            ("Source,Target,Interaction Type,PMID", [0, 2, 1]),
            ("from,to,type", [0, 2, 1]),
            ("from,kind,to,since", [0, 1, 2]),
            ("start,end,relationship", [0, 2, 1]),
            ("node1,label,node2", [0, 1, 2]),
            ("id,node1,label,node2,rank", [1, 2, 3]),
            (":START_ID,:TYPE,:END_ID", [0, 1, 2]),
            (":START_ID(City),since:int,:END_ID(Country),:TYPE", [0, 3, 2]),
            ("_id,_labels,name,_start,_end,_type,since", [3, 5, 4]),
            ("~id,~from,~to,~label,weight:Double", [1, 3, 2]),
            // PrimeKG
            (
                "relation,display_relation,x_index,x_id,x_type,x_name,x_source,y_index,y_id,y_type,y_name,y_source",
                [5, 1, 10],
            ),
            ("x_id,relation,y_id", [0, 1, 2]),
            // KGX and SSSOM
            ("id,subject,predicate,object,source,weight", [1, 2, 3]),
            ("subject_id,subject_label,predicate_id,object_id,object_label", [0, 2, 3]),
            ("head_id,tail_id,relation_id", [0, 2, 1]),
            ("headEntity,tailEntity,relationType", [0, 2, 1]),
            ("entity1,entity2,rel", [0, 2, 1]),
            ("src,dst,edge_type", [0, 2, 1]),
            ("subject,target,relation", [0, 2, 1]),
            ("object,subject,predicate", [1, 2, 0]),
            ("source,knows,target", [0, 1, 2]),
            ("source,target,how", [0, 2, 1]),
        ];
        for (header, want) in cases {
            assert_eq!(columns(header), Some(want), "{header}");
        }
        for none in ["a,b,c", "h,t,r", "x,y,type", "head,head,tail", "source,subject,object", "id,weight,score", ""] {
            let fields: Vec<&str> = none.split(',').collect();
            assert_eq!(read(&fields), None, "{none}");
        }
        for (header, head, tail) in [("source,target,weight", 0, 1), ("from,to", 0, 1), ("date,from,to,amount", 1, 2)] {
            let fields: Vec<&str> = header.split(',').collect();
            assert_eq!(read(&fields), Some(Reading::NoRelation { head, tail }), "{header}");
        }
    }

    #[test]
    fn tables_of_nodes_have_ids_labels_and_kinds() {
        let nodes = |header: &str| {
            let fields: Vec<&str> = header.split(',').collect();
            match read(&fields) {
                Some(Reading::Named { layout: Layout { nodes: Some(n), .. }, .. }) => {
                    Some((n.id, n.group, n.label, n.kind.map(|kind| (kind.column, kind.relation))))
                }
                _ => None,
            }
        };
        let kind = |column: usize, relation: &str| Some((column, relation.to_owned()));
        assert_eq!(nodes("id,category,name"), Some((0, None, Some(2), kind(1, "biolink:category"))));
        assert_eq!(nodes("id,name,kind"), Some((0, None, Some(1), kind(2, "kind"))));
        assert_eq!(nodes("id,label"), Some((0, None, Some(1), None)));
        let person = Some("Person".to_owned());
        assert_eq!(nodes("personId:ID(Person),name:string,:LABEL"), Some((0, person, Some(1), kind(2, ":LABEL"))));
        assert_eq!(nodes("~id,~label,name:String"), Some((0, None, Some(2), kind(1, ":LABEL"))));
        assert_eq!(nodes("_id,_labels,name,_start,_end,_type"), Some((0, None, Some(2), kind(1, ":LABEL"))));
        // These are edges, or nothing known.
        for header in ["id,name,relation,target", "id,subject,predicate,object", "id,weight"] {
            assert_eq!(nodes(header), None, "{header}");
        }
    }

    #[test]
    fn labels_stand_beside_ids() {
        let fields = ["subject_id", "subject_label", "predicate_id", "object_id", "object_label"];
        let Some(Reading::Named { layout, .. }) = read(&fields) else { panic!() };
        assert_eq!(layout.triples.unwrap().labels, [Some(1), None, Some(4)]);
        let fields = ["id", "node1", "label", "node2", "node1;label", "label;label"];
        let Some(Reading::Named { layout, .. }) = read(&fields) else { panic!() };
        assert!(layout.kgtk);
        assert_eq!(layout.triples.unwrap().labels, [Some(4), Some(5), None]);
    }

    #[test]
    fn columns_are_found_by_name() {
        let fields = ["Subject ID", "predicate", "Predicate", "object"];
        assert_eq!(find(&fields, "subject_id"), Some(0));
        assert_eq!(find(&fields, "Predicate"), Some(2));
        assert_eq!(find(&fields, "PREDICATE"), None);
        assert_eq!(find(&fields, "-"), None);
    }
}
