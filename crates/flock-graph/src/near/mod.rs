//! Names that are near what was typed.

pub(crate) mod suggest;
