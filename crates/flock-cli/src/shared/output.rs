//! Data on standard output. It is flushed at once: whoever reads it hears of it when it is there.

use std::io::Write;

use crate::shared::failure::Failure;

/// A line of data.
pub fn println(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// Text as it is.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
