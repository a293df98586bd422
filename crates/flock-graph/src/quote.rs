//! Names and other text of a file in messages: without control characters, and without the middle of what is long.

use std::borrow::Cow;

/// Prepares a piece of the input for a message. Escapes control characters, which could change the
/// state of a terminal, and leaves out the middle of a long text.
pub(crate) fn shown(text: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    shorten(text).chars().map(escape).collect()
}

/// Prepares the name of a column for a message, which may name a dozen: at most 40 characters.
pub(crate) fn column_name(name: &str) -> String {
    let name = shown(name.trim());
    match name.char_indices().nth(40) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name,
    }
}

/// Quotes a name and leaves out its middle if it is long.
pub(crate) fn quote(name: &str) -> String {
    format!("{:?}", shorten(name))
}

/// Returns the beginning and the end of a long text.
fn shorten(text: &str) -> Cow<'_, str> {
    const START: usize = 120;
    const END: usize = 60;
    let start = text.char_indices().nth(START).map_or(text.len(), |(at, _)| at);
    let end = text.char_indices().nth_back(END - 1).map_or(0, |(at, _)| at);
    if end <= start { Cow::Borrowed(text) } else { Cow::Owned(format!("{}…{}", &text[..start], &text[end..])) }
}
