//! Labels: what people call entities and relations whose names are ids or IRIs.

use std::collections::HashMap;
use std::sync::Arc;

use crate::names::Names;

/// The labels of a graph. Most graphs have none.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    entities: Arc<HashMap<u32, Box<str>>>,
    relations: Arc<HashMap<u32, Box<str>>>,
}

impl Labels {
    /// Returns the label of an entity.
    pub fn entity(&self, id: u32) -> Option<&str> {
        self.entities.get(&id).map(|label| &**label)
    }

    /// Returns the label of a relation.
    pub fn relation(&self, id: u32) -> Option<&str> {
        self.relations.get(&id).map(|label| &**label)
    }

    /// Returns the number of labels.
    pub fn len(&self) -> usize {
        self.entities.len() + self.relations.len()
    }

    /// Tells whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Labels by name, before all names have ids.
#[derive(Debug, Default)]
pub(crate) struct LabelsByName(HashMap<Box<str>, (u32, Box<str>)>);

impl LabelsByName {
    /// Keeps a label unless there is one of the same rank or a lower one.
    pub(crate) fn add(&mut self, name: &str, label: &str, rank: u32) {
        match self.0.get_mut(name) {
            Some((kept, _)) if *kept <= rank => {}
            Some(kept) => *kept = (rank, label.into()),
            None => _ = self.0.insert(name.into(), (rank, label.into())),
        }
    }

    /// Gives the labels to the names that the graph has, and drops the others.
    pub(crate) fn finish(self, entities: &Names, relations: &Names) -> Labels {
        let (mut of_entities, mut of_relations) = (HashMap::new(), HashMap::new());
        for (name, (_, label)) in self.0 {
            if label == name {
                continue;
            }
            if let Some(id) = relations.id(&name) {
                of_relations.insert(id, label.clone());
            }
            if let Some(id) = entities.id(&name) {
                of_entities.insert(id, label);
            }
        }
        Labels { entities: Arc::new(of_entities), relations: Arc::new(of_relations) }
    }
}
