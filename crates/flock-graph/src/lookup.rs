//! Looks names up: which entity or relation a text in a question stands for.
//!
//! The first rule that finds something counts, so a loose match never beats an exact one:
//!
//! 1. The name itself.
//! 2. For IRIs `<IRI>`, or `prefix:local` with a prefix of the graph.
//! 3. A label. Several entities with this label are an error that lists them.
//! 4. `label (name)`, as [`Graph::shown`] writes a label that several have.
//! 5. Rules 1 to 4 for the text without the space around it.
//! 6. The part of one name after its prefix or namespace: `Q42` for `wd:Q42` or for an IRI that ends
//!    in `/Q42`.
//! 7. One name, such a part, or a label that differs only in case, or in `_` for a space. Also a
//!    text whose prefix or namespace is known, for a name without it. Several are an error.
//!
//! Rules 6 and 7 need an index of folded names. It is made when a text first gets there, and shared
//! by all later states of the graph.

use crate::graph::Graph;
use crate::labels::LabelSet;
use crate::names::Names;
use crate::near::suggest::{nearest_by, split_iri};
use crate::text_index::TextIndex;
use crate::unknown::{NameKind, UnknownName};
use std::borrow::Cow;

/// Number of near names that an error offers.
const NEAR: usize = 3;

/// Number of names that an error lists if a text fits several.
const CHOICES: usize = 10;

/// What a text stands for.
enum Found {
    One(u32),
    /// All that it fits, ascending.
    Several(Vec<u32>),
    Nothing,
}

impl Found {
    /// What one of these ids is.
    fn among(ids: Vec<u32>) -> Found {
        match ids[..] {
            [] => Found::Nothing,
            [id] => Found::One(id),
            _ => Found::Several(ids),
        }
    }
}

impl Graph {
    /// Returns the names of a kind.
    pub fn names(&self, kind: NameKind) -> &Names {
        match kind {
            NameKind::Entity => self.entities(),
            NameKind::Relation => self.relations(),
        }
    }

    /// Finds the entity called `text`: by its name; for IRIs by `<IRI>` or `prefix:local`; by its
    /// label; or by one of these in another case, with space around it, or without its prefix, if only
    /// one entity fits.
    ///
    /// # Errors
    /// If there is none, or if several fit. The error offers near names, or lists those that fit.
    pub fn parse_entity(&self, text: &str) -> Result<u32, UnknownName> {
        self.parse(NameKind::Entity, text)
    }

    /// Finds the relation called `text`, by the rules of [`parse_entity`](Graph::parse_entity).
    ///
    /// # Errors
    /// If there is none, or if several fit. The error offers near names, or lists those that fit.
    pub fn parse_relation(&self, text: &str) -> Result<u32, UnknownName> {
        self.parse(NameKind::Relation, text)
    }

    /// Does the same as [`parse_entity`](Graph::parse_entity), without a search for near names.
    pub fn find_entity(&self, text: &str) -> Option<u32> {
        self.resolve(NameKind::Entity, text).ok().flatten()
    }

    /// Does the same as [`parse_relation`](Graph::parse_relation), without a search for near names.
    pub fn find_relation(&self, text: &str) -> Option<u32> {
        self.resolve(NameKind::Relation, text).ok().flatten()
    }

    /// Finds a name by the rules of [`parse_entity`](Graph::parse_entity), without a search for near
    /// names: `None` if nothing fits.
    ///
    /// # Errors
    /// If several fit.
    pub fn resolve(&self, kind: NameKind, text: &str) -> Result<Option<u32>, UnknownName> {
        match self.look_up(kind, text) {
            Found::One(id) => Ok(Some(id)),
            Found::Nothing => Ok(None),
            Found::Several(ids) => Err(self.several(kind, text, &ids)),
        }
    }

    /// Returns the name that an edit means by `text`, which may be new. Only exact spellings stand for
    /// a name that the graph has: the name, `<IRI>`, `prefix:local`, a label, `label (name)`. A new name
    /// with a known prefix is written out in full.
    ///
    /// # Errors
    /// If `text` is the label of several.
    pub fn name_for_edit<'t>(&self, kind: NameKind, text: &'t str) -> Result<Cow<'t, str>, UnknownName> {
        match self.look_up_exactly(kind, text) {
            Found::One(id) => return Ok(Cow::Owned(self.names(kind).get(id).to_owned())),
            Found::Several(ids) => return Err(self.several(kind, text, &ids)),
            Found::Nothing => {}
        }
        let is_iri = |text: &&str| text.contains("://") || (!self.prefixes().is_empty() && text.contains(':'));
        Ok(match (self.prefixes().expand(text), bare(text).filter(is_iri)) {
            (Some(full), _) if !text.contains(char::is_whitespace) => Cow::Owned(full),
            (_, Some(iri)) => Cow::Borrowed(iri),
            _ => Cow::Borrowed(text),
        })
    }

    /// Returns the name that is to get a label: an entity or else a relation, by its exact spelling.
    ///
    /// # Errors
    /// If there is none.
    pub fn name_for_label(&self, text: &str) -> Result<&str, UnknownName> {
        let exact = |kind| match self.look_up_exactly(kind, text) {
            Found::One(id) => Some(self.names(kind).get(id)),
            _ => None,
        };
        match exact(NameKind::Entity).or_else(|| exact(NameKind::Relation)) {
            Some(name) => Ok(name),
            // In another case, or with near names if it is not there at all.
            None => self.parse_entity(text).map(|id| self.entities().get(id)),
        }
    }

    /// Returns the label of a name, if the graph has the name and a label for it.
    pub fn label(&self, name: &str) -> Option<&str> {
        let of = |kind| self.labels().of(kind).get(self.names(kind).id(name)?);
        if self.labels().is_empty() { None } else { of(NameKind::Entity).or_else(|| of(NameKind::Relation)) }
    }

    /// Writes a name for people: its label, or `label (name)` if the label alone could stand for
    /// something else, or the name as [`Graph::display`] writes it. The result can be asked about.
    pub fn shown<'a>(&'a self, name: &'a str) -> Cow<'a, str> {
        let Some(label) = self.label(name) else { return self.display(name) };
        let is_alone = |kind| match self.names(kind).id(name) {
            Some(id) => matches!(self.look_up_exactly(kind, label), Found::One(found) if found == id),
            None => true,
        };
        // A question mark stands for what is asked.
        if label != "?" && is_alone(NameKind::Entity) && is_alone(NameKind::Relation) {
            return Cow::Borrowed(label);
        }
        Cow::Owned(format!("{label} ({})", self.display(name)))
    }

    /// Lists up to `k` ids whose names or labels are nearest to `text`, nearest first.
    pub(crate) fn near(&self, kind: NameKind, text: &str, k: usize) -> Vec<u32> {
        near(self.names(kind), self.labels().of(kind), text, k)
    }

    /// Rules 1 and 2.
    fn spelled(&self, kind: NameKind, text: &str) -> Option<u32> {
        let id = |name: &str| self.names(kind).id(name);
        id(text).or_else(|| id(bare(text)?)).or_else(|| id(&self.prefixes().expand(text)?))
    }

    /// Rules 1 to 4.
    fn look_up_exactly(&self, kind: NameKind, text: &str) -> Found {
        if let Some(id) = self.spelled(kind, text) {
            return Found::One(id);
        }
        let labels = self.labels().of(kind);
        if labels.is_empty() {
            return Found::Nothing;
        }
        match Found::among(labels.ids(text).collect()) {
            Found::Nothing => {}
            found => return found,
        }
        // A label may have brackets of its own, and so may a name.
        let Some(inner) = text.strip_suffix(')') else { return Found::Nothing };
        let split = |(at, _): (usize, &str)| (inner[..at].to_owned(), &inner[at + 2..]);
        let named = inner.match_indices(" (").map(split).find_map(|(label, name)| {
            let id = self.spelled(kind, name)?;
            (labels.get(id) == Some(&label)).then_some(id)
        });
        named.map_or(Found::Nothing, Found::One)
    }

    fn look_up(&self, kind: NameKind, text: &str) -> Found {
        let trimmed = text.trim();
        for text in std::iter::once(text).chain((text != trimmed).then_some(trimmed)) {
            match self.look_up_exactly(kind, text) {
                Found::Nothing => {}
                found => return found,
            }
        }
        let fits = self.folded_fits(kind, trimmed);
        let names = self.names(kind);
        let parts = fits.iter().copied().filter(|&id| local_part(names.get(id)) == Some(trimmed)).collect();
        match Found::among(parts) {
            Found::One(id) => Found::One(id),
            _ => Found::among(fits),
        }
    }

    /// Lists the ids that a text fits by rules 6 and 7, ascending.
    fn folded_fits(&self, kind: NameKind, text: &str) -> Vec<u32> {
        let key = fold(text);
        if key.is_empty() {
            return Vec::new();
        }
        let (names, labels) = (self.names(kind), self.labels().of(kind));
        // What the text may be if its prefix or namespace is known. This is compared with whole names.
        let mut others: Vec<String> = self.prefixes().spellings(bare(text).unwrap_or(text)).map(|s| fold(&s)).collect();
        others.extend(bare(text).map(fold));
        let fits = |id: u32| {
            let (name, label) = (names.get(id), labels.get(id));
            let whole = fold(name);
            whole == key
                || others.contains(&whole)
                || local_part(name).is_some_and(|local| fold(local) == key)
                || label.is_some_and(|label| fold(label) == key)
        };
        let covered = self.folded.covered[kind as usize];
        let index = self.folded.indexes[kind as usize].get_or_init(|| {
            let mut index = TextIndex::default();
            for (id, name) in (0..).zip(names.iter().take(covered)) {
                index.push(&fold(name), id);
                if let Some(local) = local_part(name) {
                    index.push(&fold(local), id);
                }
                if let Some(label) = labels.get(id) {
                    index.push(&fold(label), id);
                }
            }
            index.sort();
            index
        });
        let filed = std::iter::once(&key).chain(&others).flat_map(|key| index.get(key));
        let mut found: Vec<u32> = filed.chain(covered as u32..names.len() as u32).filter(|&id| fits(id)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    fn several(&self, kind: NameKind, text: &str, ids: &[u32]) -> UnknownName {
        let names = self.names(kind);
        let show = |&id: &u32| self.shown(names.get(id)).into_owned();
        UnknownName {
            kind,
            name: text.to_owned(),
            is_other_kind: false,
            fits: ids.iter().take(CHOICES).map(show).collect(),
            fit_count: ids.len() as u32,
            near: Vec::new(),
            count: names.len(),
            examples: Vec::new(),
        }
    }

    fn parse(&self, kind: NameKind, text: &str) -> Result<u32, UnknownName> {
        if let Some(id) = self.resolve(kind, text)? {
            return Ok(id);
        }
        let expanded = self.prefixes().expand(text);
        let meant = expanded.as_deref().or_else(|| bare(text)).unwrap_or(text);
        let (names, other) = match kind {
            NameKind::Entity => (self.entities(), NameKind::Relation),
            NameKind::Relation => (self.relations(), NameKind::Entity),
        };
        let show = |id: u32| self.shown(names.get(id)).into_owned();
        Err(UnknownName {
            kind,
            name: text.to_owned(),
            is_other_kind: !matches!(self.look_up_exactly(other, text), Found::Nothing),
            fits: Vec::new(),
            fit_count: 0,
            near: self.near(kind, meant, NEAR).into_iter().map(show).collect(),
            count: names.len(),
            examples: (0..names.len().min(NEAR) as u32).map(show).collect(),
        })
    }
}

/// Lists up to `k` ids whose names or labels are nearest to `text`, nearest first.
pub(crate) fn near(names: &Names, labels: &LabelSet, text: &str, k: usize) -> Vec<u32> {
    let all = (0..).zip(names.iter()).chain(labels.iter());
    // The name and the label of one id may both be near.
    let mut found: Vec<u32> = Vec::new();
    for id in nearest_by(all, text, if labels.is_empty() { k } else { 2 * k }) {
        if !found.contains(&id) {
            found.push(id);
        }
    }
    found.truncate(k);
    found
}

/// Returns the IRI in `<IRI>`.
pub(crate) fn bare(text: &str) -> Option<&str> {
    text.strip_prefix('<').and_then(|t| t.strip_suffix('>'))
}

/// Returns the part of a name after its namespace, if it is an IRI, or after its prefix: `Q42` of
/// `wd:Q42`.
pub(crate) fn local_part(name: &str) -> Option<&str> {
    let (namespace, local) = split_iri(name);
    if !namespace.is_empty() {
        return Some(local);
    }
    let (prefix, local) = name.split_once(':')?;
    let is_prefix = prefix.starts_with(|c: char| c.is_ascii_alphabetic())
        && prefix.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
    (is_prefix && !local.is_empty() && !local.starts_with("//") && !local.contains(char::is_whitespace))
        .then_some(local)
}

/// Returns a text in lower case, with one space for each run of `_` and white space, and none around
/// it.
fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    let mut space = false;
    for c in text.chars() {
        if c == '_' || c.is_whitespace() {
            space = true;
            continue;
        }
        if std::mem::take(&mut space) && !folded.is_empty() {
            folded.push(' ');
        }
        match c.is_ascii() {
            true => folded.push(c.to_ascii_lowercase()),
            false => folded.extend(c.to_lowercase()),
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GraphBuilder, NamedEdit};

    const WIKIDATA: &str = "http://www.wikidata.org/entity/";

    /// Two places called Paris, Texas without a label, one name in two cases, and a name that is
    /// somebody else's label.
    fn graph() -> Graph {
        let mut builder = GraphBuilder::new();
        builder.prefixes().insert("wiki", WIKIDATA);
        builder.prefixes().insert("ex", "http://example.org/");
        let wd = |id: &str| format!("{WIKIDATA}{id}");
        builder.add(&wd("Q90"), "http://example.org/located_in", &wd("Q142"));
        builder.add(&wd("Q830149"), "http://example.org/located_in", "http://example.org/Texas");
        builder.add("Us", "Near", "US");
        builder.add("New_York", "Near", "Lyon");
        builder.add("GO:0008150", "Near", "http://example.org/Q456");
        for (name, label) in [
            (wd("Q90"), "Paris"),
            (wd("Q830149"), "Paris"),
            (wd("Q142"), "France (country)"),
            ("http://example.org/Q456".into(), "Lyon"),
            ("http://example.org/located_in".into(), "is located in"),
            ("GO:0008150".into(), "?"),
        ] {
            builder.label(&name, label, 0);
        }
        builder.finish().unwrap()
    }

    fn found(graph: &Graph, text: &str) -> String {
        match graph.parse_entity(text) {
            Ok(id) => graph.display(graph.entities().get(id)).into_owned(),
            Err(unknown) => unknown.to_string(),
        }
    }

    #[test]
    fn a_name_is_found_by_every_form() {
        let graph = graph();
        for (text, name) in [
            ("http://www.wikidata.org/entity/Q142", "wiki:Q142"),
            ("<http://www.wikidata.org/entity/Q142>", "wiki:Q142"),
            ("wiki:Q142", "wiki:Q142"),
            ("France (country)", "wiki:Q142"),
            (" wiki:Q142\t", "wiki:Q142"),
            ("Q142", "wiki:Q142"),
            ("q142", "wiki:Q142"),
            // The usual prefix, which this graph does not declare, and other cases.
            ("wd:Q142", "wiki:Q142"),
            ("WIKI:q142", "wiki:Q142"),
            ("<HTTP://www.wikidata.org/entity/q142>", "wiki:Q142"),
            ("france_(Country) ", "wiki:Q142"),
            ("Paris (wiki:Q90)", "wiki:Q90"),
            ("Paris (http://www.wikidata.org/entity/Q830149)", "wiki:Q830149"),
            ("texas", "ex:Texas"),
            ("new  york", "New_York"),
            ("0008150", "GO:0008150"),
            // Exact names count before anything else.
            ("US", "US"),
            ("Us", "Us"),
            ("Lyon", "Lyon"),
            (" Us", "Us"),
        ] {
            assert_eq!(found(&graph, text), name, "{text:?}");
        }
        let relation = |text| graph.parse_relation(text).map(|id| graph.relations().get(id));
        for text in ["ex:located_in", "is located in", "Is_Located_In", "LOCATED IN", "located_in"] {
            assert_eq!(relation(text), Ok("http://example.org/located_in"), "{text}");
        }
    }

    #[test]
    fn what_could_be_several_is_listed() {
        let graph = graph();
        let paris = r#"any of 2 entities: "Paris (wiki:Q90)", "Paris (wiki:Q830149)""#;
        assert_eq!(found(&graph, "Paris"), format!(r#""Paris" could be {paris}"#));
        assert_eq!(found(&graph, "PARIS"), format!(r#""PARIS" could be {paris}"#));
        assert_eq!(found(&graph, "us"), r#""us" could be any of 2 entities: "Us", "US""#);
        // A name in another case, and the label of something else.
        assert_eq!(found(&graph, "lyon"), r#""lyon" could be any of 2 entities: "Lyon", "Lyon (ex:Q456)""#);
        assert_eq!((graph.find_entity("Paris"), graph.find_entity("nowhere")), (None, None));
        assert_eq!(found(&graph, "mars:Q90"), r#"unknown entity "mars:Q90"; near names: "Paris (wiki:Q90)""#);
        assert_eq!(
            found(&graph, "Frnce (country)"),
            r#"unknown entity "Frnce (country)"; near names: "France (country)""#
        );
        assert!(
            found(&graph, "is located in")
                .starts_with(r#"unknown entity "is located in" (that is the name of a relation)"#)
        );
        assert!(found(&graph, "").starts_with("unknown entity") && found(&graph, " _ ").starts_with("unknown entity"));

        let mut builder = GraphBuilder::new();
        for i in 0..25 {
            builder.add(&format!("n{i}"), "r", "x");
            builder.label(&format!("n{i}"), "same", 0);
        }
        let many = builder.finish().unwrap().parse_entity("same").unwrap_err();
        assert_eq!((many.fits.len(), many.fit_count), (10, 25));
        assert!(many.to_string().starts_with(r#""same" could be any of 25 entities: "same (n0)", "same (n1)", "#));
        assert!(many.to_string().ends_with(r#""same (n9)" and 15 more"#));
    }

    #[test]
    fn what_is_shown_can_be_asked() {
        let graph = graph();
        let shown: Vec<_> = graph.entities().iter().map(|name| graph.shown(name)).collect();
        let want = [
            "Paris (wiki:Q90)",
            "France (country)",
            "Paris (wiki:Q830149)",
            "ex:Texas",
            "Us",
            "US",
            "New_York",
            "Lyon",
            "? (GO:0008150)",
            "Lyon (ex:Q456)",
        ];
        assert_eq!(shown, want);
        for (id, shown) in (0..).zip(&shown) {
            assert_eq!(graph.parse_entity(shown), Ok(id), "{shown}");
        }
        assert_eq!(graph.shown("http://example.org/located_in"), "is located in");
    }

    #[test]
    fn edits_keep_labels_and_later_names_are_found() {
        let graph = graph();
        assert_eq!(found(&graph, "TEXAS"), "ex:Texas"); // the index is made here
        let edit = |name| NamedEdit { triple: [name, "Near", "US"], present: true };
        let (one, other) = (graph.edited(&[edit("Mars_1")]).unwrap(), graph.edited(&[edit("Venus")]).unwrap());
        assert_eq!((found(&one, "mars 1"), found(&other, "VENUS")), ("Mars_1".into(), "Venus".into()));
        assert!(found(&one, "VENUS").starts_with("unknown") && found(&other, "mars 1").starts_with("unknown"));
        let many: Vec<String> = (0..crate::folded::FEW + 1).map(|i| format!("Later {i}")).collect();
        let many: Vec<_> = many.iter().map(|name| edit(name)).collect();
        for later in [one.edited(&many).unwrap(), one.with_names(["Later 7"].into_iter(), [].into_iter()).unwrap()] {
            for graph in [later.flattened().unwrap(), later] {
                assert_eq!(found(&graph, "LATER 7"), "Later 7");
                assert_eq!(found(&graph, "paris"), found(&one, "PARIS").replace("PARIS", "paris"));
                assert_eq!(found(&graph, "FRANCE (COUNTRY)"), "wiki:Q142");
                assert_eq!(graph.labels().len(), 6);
            }
        }
        let before = graph.memory_bytes();
        let renamed =
            graph.with_labels([("US", "États-Unis"), ("nobody", "x"), ("New_York", "Ny"), ("New_York", "NY")]);
        assert_eq!(found(&renamed, "états-unis"), "US");
        assert_eq!(
            (found(&renamed, "ny"), found(&renamed, "Paris (wiki:Q90)")),
            ("New_York".into(), "wiki:Q90".into())
        );
        assert_eq!((renamed.labels().len(), graph.labels().len()), (8, 6));
        assert!(before > 0 && renamed.memory_bytes() > 0);
    }

    #[test]
    fn edits_name_things_exactly() {
        let graph = graph();
        let name = |text| graph.name_for_edit(NameKind::Entity, text).unwrap().into_owned();
        for (text, want) in [
            ("wiki:Q90", "http://www.wikidata.org/entity/Q90"),
            ("France (country)", "http://www.wikidata.org/entity/Q142"),
            // New: with a prefix, as an IRI, and as anything else.
            ("ex:New", "http://example.org/New"),
            ("<http://example.org/New>", "http://example.org/New"),
            ("<b>", "<b>"),
            ("us", "us"),
            ("ex: an aside", "ex: an aside"),
        ] {
            assert_eq!(name(text), want, "{text}");
        }
        assert_eq!(graph.name_for_edit(NameKind::Entity, "Paris").unwrap_err().fit_count, 2);
    }
}
