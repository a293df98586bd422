//! What the first rows of a table tell about its columns: whether the first row is a header in
//! unknown words, and which columns may be head, relation and tail.

use super::header;
use std::collections::HashSet;

/// The first rows of a table, cut into fields. Malformed rows are left out.
pub(crate) struct Sample {
    pub(crate) rows: Vec<Vec<String>>,
}

/// Words in headers that nobody knows in full, such as `Entity B` or `gene id`.
const COLUMN_WORDS: [&str; 21] = [
    "id",
    "ids",
    "name",
    "names",
    "type",
    "label",
    "entity",
    "node",
    "source",
    "target",
    "subject",
    "object",
    "predicate",
    "relation",
    "relationship",
    "head",
    "tail",
    "curie",
    "iri",
    "uri",
    "identifier",
];

/// Rows that a judgement by the look of the other rows takes at least.
const MANY: usize = 10;

impl Sample {
    /// Tells whether the first row, of three fields, is a header although its words are not known.
    ///
    /// None of its names may come again, they must look like names of columns, and relations must
    /// repeat below it. Then either the words are those of columns, or the column of heads or tails
    /// has digits in every row but this one.
    pub(crate) fn first_is_header(&self) -> bool {
        let Some((first, others)) = self.rows.split_first() else { return false };
        let [head, relation, tail] = &first[..] else { return false };
        let plausible = |name: &String| {
            let ok = |c: char| c.is_alphanumeric() || " _-()#".contains(c);
            name.chars().count() <= 40
                && name.starts_with(|c: char| c.is_alphabetic() || "_#".contains(c))
                && name.chars().all(ok)
                && name.split_whitespace().count() <= 4
        };
        let others: Vec<&Vec<String>> = others.iter().filter(|row| row.len() == 3).collect();
        if others.len() < 2 || !first.iter().all(plausible) || self.comes_again(first) {
            return false;
        }
        let relations: HashSet<&str> = others.iter().map(|row| row[1].as_str()).collect();
        if relations.len() * 2 > others.len() {
            return false;
        }
        let words = first.iter().filter(|name| has_column_word(name)).count();
        if header::is_relation_word(relation) || words >= 2 {
            return true;
        }
        let digits = |name: &str| name.bytes().any(|b| b.is_ascii_digit());
        let differs = |name: &str, column: usize| !digits(name) && others.iter().all(|row| digits(&row[column]));
        others.len() >= MANY && (differs(head, 0) || differs(tail, 2))
    }

    /// Tells whether a name of the first row of triples comes again.
    pub(crate) fn comes_again(&self, first: &[String]) -> bool {
        let [head, relation, tail] = first else { return true };
        let ends = [head, tail];
        self.rows
            .iter()
            .skip(1)
            .filter(|row| row.len() == 3)
            .any(|row| row[1] == *relation || ends.contains(&&row[0]) || ends.contains(&&row[2]))
    }

    /// Returns the fields of the first row if they may be names of columns.
    pub(crate) fn names(&self) -> Option<&[String]> {
        let (first, others) = self.rows.split_first()?;
        let distinct: HashSet<&String> = first.iter().collect();
        let is_name = |name: &String| !name.is_empty() && name.len() <= 60 && !is_number(name);
        let again = |name: &String, at: usize| others.iter().any(|row| row.get(at) == Some(name));
        let fits = others.len() >= 2
            && distinct.len() == first.len()
            && first.iter().all(is_name)
            && !first.iter().enumerate().any(|(at, name)| again(name, at));
        fits.then_some(&first[..])
    }

    /// Guesses the columns of head, relation and tail of a table of more than three columns: the
    /// relation has the fewest different values, head and tail the most. Numbers are neither.
    pub(crate) fn guess(&self) -> Option<[usize; 3]> {
        let width = self.rows.first()?.len();
        let skip = usize::from(self.names().is_some());
        let rows: Vec<&Vec<String>> = self.rows.iter().skip(skip).filter(|row| row.len() == width).collect();
        if rows.len() < 3 || width > 1000 {
            return None;
        }
        let different = |column: usize| rows.iter().map(|row| row[column].as_str()).collect::<HashSet<_>>().len();
        let is_text = |column: &usize| rows.iter().any(|row| !row[*column].is_empty() && !is_number(&row[*column]));
        let counts: Vec<(usize, usize)> =
            (0..width).filter(is_text).map(|column| (different(column), column)).collect();
        // A column with the same value everywhere says nothing, if there is another.
        let relation = counts.iter().filter(|(n, _)| *n > 1).min().or_else(|| counts.iter().min())?.1;
        let mut ends: Vec<(usize, usize)> = counts.into_iter().filter(|(_, column)| *column != relation).collect();
        ends.sort_by_key(|(n, column)| (std::cmp::Reverse(*n), *column));
        let [(_, a), (_, b), ..] = ends[..] else { return None };
        Some([a.min(b), relation, a.max(b)])
    }
}

fn is_number(text: &str) -> bool {
    text.trim().parse::<f64>().is_ok()
}

/// Tells whether a word in it is one of [`COLUMN_WORDS`].
fn has_column_word(name: &str) -> bool {
    let mut words = name.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    words.any(|word| COLUMN_WORDS.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(text: &str) -> Sample {
        Sample { rows: text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect() }
    }

    #[test]
    fn headers_in_unknown_words() {
        let rows = "aspirin,inhibits,COX1\naspirin,inhibits,COX2\nibuprofen,inhibits,COX1\n";
        for header in ["Compound,Interaction,Entity B", "gene id,how,disease id", "a,relation,b"] {
            assert!(sample(&format!("{header}\n{rows}")).first_is_header(), "{header}");
        }
        // Names that come again, and triples that only stand alone, are no headers.
        for first in ["drug,inhibits,protein", "aspirin,relation,entity id", "Lisbon,capital of,Portugal", "1,2,3"] {
            assert!(!sample(&format!("{first}\n{rows}")).first_is_header(), "{first}");
        }
        assert!(!sample("gene id,how,disease id\na,b,c\n").first_is_header());
        assert!(!sample("Tom,label,cat\nAnn,likes,Bob\nEve,likes,Dan\n").first_is_header());
        assert!(!sample("Tom,relation,cat\nAnn,likes,Bob\nEve,knows,Dan\n").first_is_header());
        let paths = "/m/id,/m/relation,/m/name\n/a,r,/b\n/c,r,/d\n";
        assert!(!sample(paths).first_is_header());
        // Ids in every other row.
        let ids: String = (0..12).map(|i| format!("Q{i},r{},Q{}\n", i % 3, i + 5)).collect();
        assert!(sample(&format!("who,does,what\n{ids}")).first_is_header());
        assert!(!sample(&format!("Q77,does,Q78\n{ids}")).first_is_header());
    }

    #[test]
    fn columns_are_guessed_by_their_values() {
        let rows = "1,aspirin,inhibits,COX1,0.5\n2,aspirin,inhibits,COX2,0.4\n3,ibuprofen,binds,COX1,0.1\n\
                    4,codeine,binds,OPRM1,0.3\n";
        assert_eq!(sample(rows).guess(), Some([1, 2, 3]));
        assert!(sample(rows).names().is_none());
        let named = sample(&format!("id,drug,how,protein,score\n{rows}"));
        assert_eq!(named.guess(), Some([1, 2, 3]));
        assert_eq!(named.names().unwrap()[1], "drug");
        assert_eq!(sample("a,b,c,d\n").guess(), None);
        assert_eq!(sample("1,2,3,4\n1,2,3,4\n1,2,3,4\n").guess(), None);
    }
}
