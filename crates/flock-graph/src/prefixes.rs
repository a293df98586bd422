//! Prefixes of IRIs: `http://example.org/family#` is shown as `family:`.
//!
//! Prefixes come from the declarations in the file. For a format without declarations (N-Triples)
//! they are derived from the namespaces in use. They serve only for display and for typing: a name
//! in a graph is always the full IRI.

use crate::near::suggest::split_iri;
use std::collections::{HashMap, HashSet};

/// Well-known namespaces and their usual prefixes.
const WELL_KNOWN: [(&str, &str); 14] = [
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("owl", "http://www.w3.org/2002/07/owl#"),
    ("xsd", "http://www.w3.org/2001/XMLSchema#"),
    ("skos", "http://www.w3.org/2004/02/skos/core#"),
    ("foaf", "http://xmlns.com/foaf/0.1/"),
    ("dc", "http://purl.org/dc/elements/1.1/"),
    ("dcterms", "http://purl.org/dc/terms/"),
    ("schema", "http://schema.org/"),
    ("dbr", "http://dbpedia.org/resource/"),
    ("dbo", "http://dbpedia.org/ontology/"),
    ("dbp", "http://dbpedia.org/property/"),
    ("wd", "http://www.wikidata.org/entity/"),
    ("wdt", "http://www.wikidata.org/prop/direct/"),
];

/// Greatest number of derived prefixes. The namespaces with the most names get one.
const MAX_DERIVED: usize = 64;

/// Prefixes and the namespaces they stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prefixes {
    // Longest namespace first, so that the first match is the right one.
    entries: Vec<(String, String)>,
}

impl Prefixes {
    /// Adds a prefix, unless the prefix or its namespace is already there.
    pub fn insert(&mut self, prefix: &str, namespace: &str) {
        let known = |(p, n): &(String, String)| p == prefix || n == namespace;
        if namespace.is_empty() || self.entries.iter().any(known) {
            return;
        }
        let longer = |(_, n): &(String, String)| n.len() >= namespace.len();
        let at = self.entries.partition_point(longer);
        self.entries.insert(at, (prefix.to_owned(), namespace.to_owned()));
    }

    /// Takes pairs of prefix and namespace as [`iter`](Prefixes::iter) lists them. Returns `None` if it
    /// would never list these.
    pub(crate) fn from_entries(entries: Vec<(String, String)>) -> Option<Prefixes> {
        let in_order = entries.is_sorted_by(|(_, a), (_, b)| a.len() >= b.len());
        let different = {
            let (mut prefixes, mut namespaces) = (HashSet::new(), HashSet::new());
            entries.iter().all(|(p, n)| !n.is_empty() && prefixes.insert(p) && namespaces.insert(n))
        };
        (in_order && different).then_some(Prefixes { entries })
    }

    /// Tells whether there are no prefixes.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Lists all pairs of prefix and namespace, longest namespace first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> + '_ {
        self.entries.iter().map(|(p, n)| (p.as_str(), n.as_str()))
    }

    /// Shortens `http://example.org/family#Ann` to `family:Ann`, if some prefix fits.
    pub fn shorten(&self, iri: &str) -> Option<String> {
        self.entries.iter().find_map(|(prefix, namespace)| {
            let local = iri.strip_prefix(namespace.as_str())?;
            (!local.is_empty()).then(|| format!("{prefix}:{local}"))
        })
    }

    /// Expands `family:Ann` to `http://example.org/family#Ann`, if the prefix is known.
    pub fn expand(&self, short: &str) -> Option<String> {
        let (prefix, local) = short.split_once(':')?;
        let (_, namespace) = self.entries.iter().find(|(p, _)| p == prefix)?;
        Some(format!("{namespace}{local}"))
    }

    /// Lists other spellings of `text`, if it has a prefix or a namespace of the graph or a well-known
    /// one, in any case: in full, with its prefix, and without both.
    pub(crate) fn spellings<'a>(&'a self, text: &'a str) -> impl Iterator<Item = String> + 'a {
        let own = self.entries.iter().map(|(p, n)| (p.as_str(), n.as_str()));
        own.chain(WELL_KNOWN).flat_map(move |(prefix, namespace)| {
            let after = |start: &str| text.get(..start.len()).filter(|s| s.eq_ignore_ascii_case(start)).map(str::len);
            let short = after(prefix).filter(|&at| text[at..].starts_with(':')).map(|at| &text[at + 1..]);
            let local = short.or_else(|| after(namespace).map(|at| &text[at..])).filter(|local| !local.is_empty());
            let all = |local: &str| [format!("{namespace}{local}"), format!("{prefix}:{local}"), local.to_owned()];
            local.map(all).into_iter().flatten()
        })
    }

    /// Derives prefixes for the namespaces that at least two of `names` share, and for the
    /// well-known ones in use.
    pub(crate) fn derive<'a>(names: impl Iterator<Item = &'a str>) -> Prefixes {
        let mut uses: HashMap<&str, usize> = HashMap::new();
        for name in names {
            let (namespace, _) = split_iri(name);
            if !namespace.is_empty() {
                *uses.entry(namespace).or_default() += 1;
            }
        }
        let well_known = |ns: &str| WELL_KNOWN.iter().find(|w| w.1 == ns).map(|w| w.0);
        let mut common: Vec<(&str, usize)> =
            uses.into_iter().filter(|&(ns, count)| count >= 2 || well_known(ns).is_some()).collect();
        common.sort_unstable_by_key(|&(ns, count)| (std::cmp::Reverse(count), ns));
        common.truncate(MAX_DERIVED);

        let mut prefixes = Prefixes::default();
        // Well-known namespaces go first, so that no other one takes their prefix.
        common.sort_by_key(|(ns, _)| well_known(ns).is_none());
        for (namespace, _) in common {
            let label = well_known(namespace).map_or_else(|| label(namespace), str::to_owned);
            let mut prefix = label.clone();
            let mut number = 1;
            while prefixes.entries.iter().any(|(p, _)| *p == prefix) {
                number += 1;
                prefix = format!("{label}{number}");
            }
            prefixes.insert(&prefix, namespace);
        }
        prefixes
    }
}

/// Suggests a prefix for a namespace: the last part of its path, or else the main part of its host.
fn label(namespace: &str) -> String {
    let rest = namespace.split_once("://").map_or(namespace, |(_, r)| r);
    let mut parts = rest.split(['/', '#']);
    let host = parts.next().unwrap_or_default();
    let host = host.strip_prefix("www.").unwrap_or(host);
    let host = host.rsplit('.').nth(1).unwrap_or(host);
    let good = |part: &str| part.starts_with(|c: char| c.is_ascii_alphabetic());
    let part = parts.rfind(|p| good(p)).unwrap_or(if good(host) { host } else { "ns" });
    part.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_namespace_wins_and_expands_back() {
        let mut prefixes = Prefixes::default();
        prefixes.insert("ex", "http://example.org/");
        prefixes.insert("fam", "http://example.org/family#");
        prefixes.insert("", "http://default.org/");
        prefixes.insert("ex", "http://other.org/");
        let ann = "http://example.org/family#Ann";
        assert_eq!(prefixes.shorten(ann).as_deref(), Some("fam:Ann"));
        assert_eq!(prefixes.expand("fam:Ann").as_deref(), Some(ann));
        assert_eq!(prefixes.shorten("http://example.org/a/b").as_deref(), Some("ex:a/b"));
        assert_eq!(prefixes.shorten("http://default.org/x").as_deref(), Some(":x"));
        assert_eq!(prefixes.shorten("http://example.org/").as_deref(), None);
        assert_eq!(prefixes.shorten("http://other.org/x"), None);
        assert_eq!(prefixes.expand("nope:x"), None);
        assert_eq!(prefixes.expand("no colon"), None);
    }

    #[test]
    fn derived_prefixes_are_named_after_path_or_host() {
        let names = [
            "http://www.wikidata.org/entity/Q42",
            "http://example.org/family#Ann",
            "http://example.org/family#Bob",
            "http://example.org/family#Cid",
            "https://www.example.com/1",
            "https://www.example.com/2",
            "http://other.net/Family/Ann",
            "http://other.net/Family/Bob",
            "http://lonely.org/x",
            "not an iri",
        ];
        let prefixes = Prefixes::derive(names.into_iter());
        let mut found: Vec<(&str, &str)> = prefixes.iter().collect();
        found.sort_unstable();
        let want = [
            ("example", "https://www.example.com/"),
            ("family", "http://example.org/family#"),
            ("family2", "http://other.net/Family/"),
            ("wd", "http://www.wikidata.org/entity/"),
        ];
        assert_eq!(found, want);
    }
}
