//! Edits of older versions: tables in the embedded store redb. They are read once and written again as a log.

use std::fs::File;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};

use super::{StoreContent, StoreError, with_ending};

type Key = (&'static str, &'static str, &'static str);
const EDITS: TableDefinition<'static, Key, bool> = TableDefinition::new("edits-1");
const NAMES: [TableDefinition<'static, u64, &'static str>; 2] =
    [TableDefinition::new("entities-1"), TableDefinition::new("relations-1")];

/// Where older versions kept the edits that are now in `path`: `GRAPH.edits.redb` for `GRAPH.edits`.
pub fn beside(path: &Path) -> PathBuf {
    with_ending(path, ".redb")
}

/// Whether a file is a redb store, by its first bytes.
pub fn is_old(path: &Path) -> io::Result<bool> {
    let mut magic = [0; 4];
    let len = File::open(path)?.take(4).read(&mut magic)?;
    Ok(magic[..len] == *b"redb")
}

/// All of it, if all checksums are right.
pub fn read(path: &Path) -> Result<StoreContent, StoreError> {
    let file = path.display().to_string();
    // On damaged files redb may panic.
    match catch_unwind(AssertUnwindSafe(|| read_tables(path))) {
        Ok(Ok(Some(stored))) => Ok(stored),
        Ok(Ok(None)) => Err(StoreError::Old { file, what: "its checksums do not match".into() }),
        Ok(Err(redb::Error::DatabaseAlreadyOpen)) => Err(StoreError::InUse { file }),
        Ok(Err(e)) => Err(StoreError::Old { file, what: e.to_string() }),
        Err(_) => Err(StoreError::Old { file, what: "it is damaged".into() }),
    }
}

fn read_tables(path: &Path) -> Result<Option<StoreContent>, redb::Error> {
    let mut database = Database::open(path)?;
    if !database.check_integrity().map_err(|e: DatabaseError| redb::Error::from(e))? {
        return Ok(None);
    }
    let transaction = database.begin_read()?;
    let mut stored = StoreContent::default();
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
    Ok(Some(stored))
}

/// A table, if it has been made.
fn there<T>(opened: Result<T, redb::TableError>) -> Result<Option<T>, redb::Error> {
    match opened {
        Ok(table) => Ok(Some(table)),
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
        Err(e) => Err(e.into()),
    }
}
