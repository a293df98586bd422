//! How names are shown to people: by their label, IRIs without one by their prefix, everything else as it is.

use std::collections::BTreeMap;

use flock_graph::Graph;

/// How names are shown where that is not the full name: full name to label, or to `prefix:rest`.
pub type ShownNames<'a> = BTreeMap<&'a str, String>;

/// Labels of names that have one.
pub type NameLabels<'a> = BTreeMap<&'a str, &'a str>;

/// How `names` are shown, as far as they differ from the full name: a label, `label (name)` where the label alone could stand for
/// something else, or `prefix:rest`.
pub fn shown_names<'a>(graph: &Graph, names: impl IntoIterator<Item = &'a str>) -> ShownNames<'a> {
    if graph.prefixes().is_empty() && graph.labels().is_empty() {
        return ShownNames::new();
    }
    shown_as(names, |name| graph.shown(name).into_owned())
}

/// As [`shown_names`], for those who want ids: without labels.
pub fn shown_ids<'a>(graph: &Graph, names: impl IntoIterator<Item = &'a str>) -> ShownNames<'a> {
    if graph.prefixes().is_empty() {
        return ShownNames::new();
    }
    shown_as(names, |name| graph.display(name).into_owned())
}

fn shown_as<'a>(names: impl IntoIterator<Item = &'a str>, show: impl Fn(&str) -> String) -> ShownNames<'a> {
    let mut shown = ShownNames::new();
    for name in names {
        if !shown.contains_key(name) {
            shown.insert(name, show(name));
        }
    }
    shown.retain(|name, shown| shown != name);
    shown
}

/// The labels of `names`, of those that have one.
pub fn name_labels<'a>(graph: &'a Graph, names: impl IntoIterator<Item = &'a str>) -> NameLabels<'a> {
    if graph.labels().is_empty() {
        return NameLabels::new();
    }
    names.into_iter().filter_map(|name| Some((name, graph.label(name)?))).collect()
}
