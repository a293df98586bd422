//! Edits on disk: a table of triples that differ from the graph file, in an embedded ACID store.
//!
//! The key is head, relation and tail by name, the value whether the graph has the triple. What was written last about a triple
//! counts, so opening the store and applying all of it gives the edited graph, whatever the order. A commit is one transaction,
//! on disk when it returns. New names are kept in the order they came in: ids follow it, and walks follow ids.

use std::path::{Path, PathBuf};

use flock_kg::graph::NamedEdit;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

type Key = (&'static str, &'static str, &'static str);
const EDITS: TableDefinition<'static, Key, bool> = TableDefinition::new("edits-1");
const NAMES: [TableDefinition<'static, u64, &'static str>; 2] =
    [TableDefinition::new("entities-1"), TableDefinition::new("relations-1")];

/// Why edits cannot be read or kept.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {source}; hint: {hint}")]
pub struct StoreError {
    file: String,
    source: Box<redb::Error>,
    hint: &'static str,
}

/// A triple by its names, and whether the graph has it.
pub type StoredEdit = ([String; 3], bool);

/// What a store holds.
#[derive(Default)]
pub struct Stored {
    /// Entities and relations that the graph file lacks, in the order they came in.
    pub names: [Vec<String>; 2],
    /// Edits, in the order of their names.
    pub edits: Vec<StoredEdit>,
}

/// The edits of one graph.
pub struct Store {
    path: PathBuf,
    database: Option<Database>,
}

impl Store {
    /// Opens the store if it exists; else it is made with the first edit.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        let mut store = Store { path: path.to_path_buf(), database: None };
        if path.exists() {
            store.database()?;
        }
        Ok(store)
    }

    fn database(&mut self) -> Result<&Database, StoreError> {
        if self.database.is_none() {
            let opened = Database::create(&self.path).map_err(|e| {
                let hint = match e {
                    redb::DatabaseError::DatabaseAlreadyOpen => {
                        "another server has it open; stop that one, or give --edits"
                    }
                    _ => "is the directory writable? --edits names another place",
                };
                self.error(e.into(), hint)
            });
            self.database = Some(opened?);
        }
        match &self.database {
            Some(database) => Ok(database),
            None => Err(self.error(redb::Error::DatabaseClosed, "restart the server")),
        }
    }

    fn error(&self, source: redb::Error, hint: &'static str) -> StoreError {
        StoreError { file: self.path.display().to_string(), source: Box::new(source), hint }
    }

    /// All of it.
    pub fn read(&self) -> Result<Stored, StoreError> {
        let Some(database) = &self.database else { return Ok(Stored::default()) };
        let read = || -> Result<Stored, redb::Error> {
            let transaction = database.begin_read()?;
            let mut stored = Stored::default();
            for (names, table) in stored.names.iter_mut().zip(NAMES) {
                if let Some(table) = there(transaction.open_table(table))? {
                    for row in table.iter()? {
                        names.push(row?.1.value().to_string());
                    }
                }
            }
            if let Some(table) = there(transaction.open_table(EDITS))? {
                for row in table.iter()? {
                    let (key, present) = row?;
                    let (head, relation, tail) = key.value();
                    stored.edits.push(([head, relation, tail].map(str::to_string), present.value()));
                }
            }
            Ok(stored)
        };
        read().map_err(|e| self.error(e, "the file is damaged or of another program; move it away"))
    }

    /// Keeps edits and the entities and relations that came with them, all or none. When this returns they are on disk.
    pub fn commit(&mut self, edits: &[NamedEdit<'_>], names: [Vec<&str>; 2]) -> Result<(), StoreError> {
        let database = self.database()?;
        let write = || -> Result<(), redb::Error> {
            let transaction = database.begin_write()?;
            {
                let mut table = transaction.open_table(EDITS)?;
                for edit in edits {
                    let [head, relation, tail] = edit.triple;
                    table.insert((head, relation, tail), edit.present)?;
                }
            }
            for (names, table) in names.iter().zip(NAMES) {
                let mut table = transaction.open_table(table)?;
                let next = table.last()?.map_or(0, |(last, _)| last.value() + 1);
                for (number, name) in (next..).zip(names) {
                    table.insert(number, *name)?;
                }
            }
            transaction.commit()?;
            Ok(())
        };
        write().map_err(|e| self.error(e, "is the disk full?"))
    }
}

/// A table, if it has been made.
fn there<T>(opened: Result<T, redb::TableError>) -> Result<Option<T>, redb::Error> {
    match opened {
        Ok(table) => Ok(Some(table)),
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
        Err(e) => Err(e.into()),
    }
}
