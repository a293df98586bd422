//! Values of KGTK, which tell what they are by how they begin: `"text"`, `'text'@en`, `12.5Q123`,
//! `^2020-01-01T00:00:00Z`, `@043.26/010.92`, `True`. Everything else is a name.

use std::borrow::Cow;

/// A value of KGTK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// A node.
    Name(Cow<'a, str>),
    /// Text, with its language if it has one.
    Text { text: Cow<'a, str>, language: Option<&'a str> },
    /// A number, with or without a unit.
    Number,
    /// A date, a place or a truth value.
    Other,
}

/// Reads a value.
pub(crate) fn value(field: &str) -> Value<'_> {
    match field.as_bytes() {
        [b'"', rest @ ..] => {
            let end = if rest.last() == Some(&b'"') { field.len() - 1 } else { field.len() };
            Value::Text { text: unescaped(&field[1..end.max(1)]), language: None }
        }
        [b'\'', ..] => match field[1..].rsplit_once("'@") {
            Some((text, language)) => Value::Text { text: unescaped(text), language: Some(language) },
            None => Value::Text { text: unescaped(field.trim_matches('\'')), language: None },
        },
        [b'^' | b'@' | b'!', _, ..] => Value::Other,
        b"True" | b"False" => Value::Other,
        [b'0'..=b'9', ..] | [b'+' | b'-' | b'.', b'0'..=b'9' | b'.', ..] => Value::Number,
        _ => Value::Name(unescaped(field)),
    }
}

/// Splits a list of values at each `|` without a backslash before it.
pub(crate) fn list(field: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(field);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut escaped = false;
        let bar = text.find(|c: char| {
            let splits = c == '|' && !escaped;
            escaped = c == '\\' && !escaped;
            splits
        });
        rest = bar.map(|at| &text[at + 1..]);
        Some(&text[..bar.unwrap_or(text.len())])
    })
}

/// Tells whether a relation of KGTK gives the label of a node.
pub(crate) fn is_label(relation: &str) -> bool {
    matches!(relation, "label" | "rdfs:label" | "skos:prefLabel" | "schema:name")
}

fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => plain.push(match chars.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some(other) => other,
                None => '\\',
            }),
            c => plain.push(c),
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_tell_what_they_are() {
        let text = |text: &'static str, language| Value::Text { text: Cow::Borrowed(text), language };
        assert_eq!(value("Q42"), Value::Name("Q42".into()));
        assert_eq!(value(r"a\|b"), Value::Name("a|b".into()));
        assert_eq!(value("\"plain\""), text("plain", None));
        assert_eq!(value(r#""a \"b\"""#), Value::Text { text: "a \"b\"".into(), language: None });
        assert_eq!(value("'Lissabon'@de"), text("Lissabon", Some("de")));
        assert_eq!(value("'it's'@en-GB"), text("it's", Some("en-GB")));
        for number in ["12", "-3.5", ".5", "10m", "+1.5e10Q11573", "1[0.9,1.1]"] {
            assert_eq!(value(number), Value::Number, "{number}");
        }
        for other in ["^2020-01-01T00:00:00Z/11", "@043.26193/010.92708", "True", "False", "!ext"] {
            assert_eq!(value(other), Value::Other, "{other}");
        }
        // Pieces of values do no harm.
        for odd in ["\"", "'", "^", "@", "-", "\\", ""] {
            value(odd);
        }
        assert_eq!(list(r"a|b\|c||d").collect::<Vec<_>>(), ["a", r"b\|c", "", "d"]);
    }
}
