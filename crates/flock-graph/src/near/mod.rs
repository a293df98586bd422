//! Names that are near what was typed: suggestions after a misspelling, and completion.

mod search;
pub(crate) mod suggest;

pub use search::NameIndex;
