//! Graphs of the registry by name and by group.

use super::registry::{self, DatasetGroup, RegistryEntry, UnknownDataset};

/// Returns the graphs that a word stands for: those of a group (`inductive_er` and the like), or all
/// for `all`. `None` if the word is no group.
pub fn members(word: &str) -> Option<Vec<&'static RegistryEntry>> {
    let group = DatasetGroup::ALL.into_iter().find(|g| g.to_string() == word);
    let is_member = |e: &&RegistryEntry| group.is_none_or(|g| g == e.group);
    (group.is_some() || word == "all").then(|| registry::entries().iter().filter(is_member).collect())
}

/// Returns the graphs called so, by name or by group, without repetition, in the order given.
pub fn select(words: &[String]) -> Result<Vec<&'static RegistryEntry>, UnknownDataset> {
    let mut found: Vec<&'static RegistryEntry> = Vec::new();
    for word in words {
        // A group without graphs is no name either.
        let these = match members(word).filter(|these| !these.is_empty()) {
            Some(these) => these,
            None => vec![registry::get(word)?],
        };
        for entry in these {
            if found.iter().all(|e| e.name != entry.name) {
                found.push(entry);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::select;

    #[test]
    fn names_and_groups_without_repetition() {
        let names = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|w| w.to_string()).collect();
            select(&words).map(|found| found.iter().map(|e| e.name).collect::<Vec<_>>()).map_err(|e| e.name)
        };
        assert_eq!(names(&["WN18RR", "pretraining"]).unwrap(), ["WN18RR", "FB15k237", "CoDExMedium"]);
        // The paper: 23 graphs with new entities and relations, 57 in all.
        assert_eq!((names(&["inductive_er"]).unwrap().len(), names(&["Metafam", "all"]).unwrap().len()), (23, 57));
        assert_eq!((names(&["other"]), names(&["WN18RR", "x"])), (Err("other".to_string()), Err("x".to_string())));
    }
}
