//! How names are shown to people: IRIs by their prefix, everything else as it is.

use std::collections::BTreeMap;

use flock_graph::Graph;

/// How names are shown where that is not the full name: full name to `prefix:rest`.
pub type ShownNames<'a> = BTreeMap<&'a str, String>;

/// How `names` are shown, as far as they differ from the full name.
pub fn shown_names<'a>(graph: &Graph, names: impl IntoIterator<Item = &'a str>) -> ShownNames<'a> {
    let mut shown = ShownNames::new();
    if graph.prefixes().is_empty() {
        return shown;
    }
    for name in names {
        let short = graph.display(name);
        if short != name {
            shown.insert(name, short.into_owned());
        }
    }
    shown
}
