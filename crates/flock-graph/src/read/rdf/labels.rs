//! Finds labels among literals: which properties give labels, and which of several is kept.

use oxrdf::Literal;
use oxrdf::vocab::xsd;

/// Languages to look for if the caller names none.
const DEFAULT: [&str; 1] = ["en"];

/// Greatest length of a label in bytes. Longer text is no label.
const MAX_LABEL: usize = 4 << 10;

/// The properties that give labels, the best first. Those from `foaf:name` on often have a long
/// form, or a title of something else.
const PROPERTIES: [&str; 7] = [
    "http://www.w3.org/2000/01/rdf-schema#label",
    "http://www.w3.org/2004/02/skos/core#prefLabel",
    "http://schema.org/name",
    "https://schema.org/name",
    "http://xmlns.com/foaf/0.1/name",
    "http://purl.org/dc/terms/title",
    "http://purl.org/dc/elements/1.1/title",
];

/// Returns the properties that give labels.
#[cfg(feature = "sparql")]
pub(crate) fn properties() -> impl Iterator<Item = &'static str> {
    PROPERTIES.into_iter()
}

/// Returns the rank of a label by its property and language, lowest first, or `None` if the
/// property gives no labels. The language counts more than the property: wanted languages in
/// order, then labels without a language, then all others.
pub(crate) fn rank(property: &str, language: Option<&str>, wanted: &[String]) -> Option<u32> {
    let property = PROPERTIES.iter().position(|p| *p == property)?;
    let place = if wanted.is_empty() {
        place(language, DEFAULT.into_iter())
    } else {
        place(language, wanted.iter().map(String::as_str))
    };
    Some((place * PROPERTIES.len() + property) as u32)
}

/// Returns the place of a language in the order of preference. A range such as `en` matches `en-GB`
/// too, but prefers `en`.
fn place<'a>(language: Option<&str>, wanted: impl ExactSizeIterator<Item = &'a str>) -> usize {
    let last = 2 * wanted.len();
    let Some(language) = language else { return last };
    for (i, range) in wanted.enumerate() {
        let Some(start) = language.get(..range.len()) else { continue };
        if start.eq_ignore_ascii_case(range) {
            match language.as_bytes().get(range.len()) {
                None => return 2 * i,
                Some(b'-') => return 2 * i + 1,
                Some(_) => {}
            }
        }
    }
    last + 1
}

/// Returns the text of a literal if it can be a label.
pub(crate) fn text(literal: &Literal) -> Option<&str> {
    let plain = literal.language().is_some() || literal.datatype() == xsd::STRING;
    let text = literal.value().trim();
    (plain && !text.is_empty() && text.len() <= MAX_LABEL).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: &str = PROPERTIES[0];

    #[test]
    fn english_first_then_no_language_then_any() {
        let of = |language| rank(LABEL, language, &[]).unwrap();
        let order = [Some("en"), Some("EN-gb"), None, Some("de")].map(of);
        assert!(order.is_sorted_by(|a, b| a < b), "{order:?}");
        // `eng` is another language, and `e` is shorter than the range.
        assert_eq!(of(Some("eng")), of(Some("de")));
        assert_eq!(of(Some("e")), of(Some("de")));
    }

    #[test]
    fn languages_count_more_than_properties() {
        let wanted = ["de".to_owned(), "pt-BR".to_owned()];
        let of = |property, language| rank(property, language, &wanted).unwrap();
        let title = "http://purl.org/dc/terms/title";
        let order = [
            of(LABEL, Some("de")),
            of(title, Some("de")),
            of(LABEL, Some("de-AT")),
            of(LABEL, Some("pt-br")),
            of(LABEL, None),
            of(title, None),
            of(LABEL, Some("pt")),
        ];
        assert!(order.is_sorted_by(|a, b| a < b), "{order:?}");
        assert_eq!(rank("http://www.w3.org/2004/02/skos/core#altLabel", None, &wanted), None);
    }
}
