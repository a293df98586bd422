//! File formats: recognised by the name or the content of a file, or named by the user.

use std::fmt;
use std::str::FromStr;

/// The format of a file of triples.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// One triple per line, separated by tabs. No quoting, no comments.
    Tsv,
    /// One triple per row, separated by commas, quoted with `"`.
    Csv,
    /// One JSON object or array per line.
    JsonLines,
    /// Parquet.
    Parquet,
    /// Arrow IPC, as a file (Feather) or a stream.
    Arrow,
    /// RDF N-Triples.
    NTriples,
    /// RDF Turtle.
    Turtle,
    /// RDF/XML.
    RdfXml,
    /// RDF N-Quads.
    NQuads,
    /// RDF TriG.
    TriG,
    /// RDF as JSON-LD.
    JsonLd,
    /// An ontology in the OBO format.
    Obo,
    /// GraphML.
    GraphMl,
    /// The answers of a SPARQL endpoint. It is named by `sparql:URL`, not by a word.
    Sparql,
}

impl Format {
    /// The formats that a file may have, by their words; tables first.
    pub const ALL: [Format; 13] = [
        Format::Tsv,
        Format::Csv,
        Format::JsonLines,
        Format::Parquet,
        Format::Arrow,
        Format::NTriples,
        Format::NQuads,
        Format::Turtle,
        Format::TriG,
        Format::RdfXml,
        Format::JsonLd,
        Format::Obo,
        Format::GraphMl,
    ];

    /// Returns the word for the format, such as `tsv`.
    pub fn word(self) -> &'static str {
        match self {
            Format::Tsv => "tsv",
            Format::Csv => "csv",
            Format::JsonLines => "jsonl",
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
            Format::NTriples => "nt",
            Format::Turtle => "ttl",
            Format::RdfXml => "rdfxml",
            Format::NQuads => "nq",
            Format::TriG => "trig",
            Format::JsonLd => "jsonld",
            Format::Obo => "obo",
            Format::GraphMl => "graphml",
            Format::Sparql => "sparql",
        }
    }

    /// Lists the words of all formats: `tsv, csv or nt`.
    pub fn words() -> String {
        let words = Format::ALL.map(Format::word);
        let (last, others) = words.split_last().expect("there are formats");
        format!("{} or {last}", others.join(", "))
    }

    /// Tells whether names are IRIs.
    pub fn is_rdf(self) -> bool {
        !self.is_table() && !matches!(self, Format::Obo | Format::GraphMl)
    }

    /// Tells whether it has columns.
    pub fn is_table(self) -> bool {
        matches!(self, Format::Tsv | Format::Csv | Format::JsonLines | Format::Parquet | Format::Arrow)
    }

    /// Recognises a format by the extension of a file's name, ignoring `.gz` and `.zst`.
    pub(crate) fn from_name(file: &str) -> Option<Format> {
        let name = file.to_ascii_lowercase();
        let name = [".gz", ".zst"].iter().find_map(|z| name.strip_suffix(z)).unwrap_or(&name);
        let name = name.rsplit(['/', '\\']).next()?;
        match name.rsplit_once('.')?.1 {
            "tsv" | "tab" => Some(Format::Tsv),
            "csv" => Some(Format::Csv),
            "jsonl" | "ndjson" | "jsonlines" => Some(Format::JsonLines),
            "parquet" | "pq" => Some(Format::Parquet),
            "arrow" | "arrows" | "feather" | "ipc" => Some(Format::Arrow),
            "nt" | "ntriples" => Some(Format::NTriples),
            "ttl" | "turtle" => Some(Format::Turtle),
            "rdf" | "owl" | "xml" | "rdfxml" => Some(Format::RdfXml),
            "nq" | "nquads" => Some(Format::NQuads),
            "trig" => Some(Format::TriG),
            "jsonld" => Some(Format::JsonLd),
            "obo" => Some(Format::Obo),
            "graphml" => Some(Format::GraphMl),
            _ => None,
        }
    }

    /// Corrects the format that the name of a file shows, by its content. Ontologies in any syntax
    /// are called `.owl` or `.rdf`, and GraphML may be called `.xml`.
    pub(crate) fn corrected(self, head: &[u8]) -> Format {
        let xml = self == Format::RdfXml;
        let other = || Format::sniff(head).filter(|f| !f.is_table());
        if xml { other().unwrap_or(self) } else { self }
    }

    /// Tells whether JSON (see [`Format::is_json`]) is JSON-LD: one of its first keys is a keyword.
    pub(crate) fn is_json_ld(head: &[u8]) -> bool {
        let text = String::from_utf8_lossy(head);
        let keyword = |word: &&str| {
            let mut places = text.match_indices(*word).map(|(at, _)| &text[at + word.len()..]);
            places.any(|rest| rest.trim_start().starts_with(':'))
        };
        ["\"@context\"", "\"@graph\"", "\"@id\"", "\"@type\""].iter().any(keyword)
    }

    /// Tells whether a file begins like JSON: with an object that has a key, or an array of
    /// objects, arrays or strings. A name in TSV or CSV may begin with a bracket, but will not
    /// match all of that.
    pub(crate) fn is_json(head: &[u8]) -> bool {
        let text = String::from_utf8_lossy(head);
        let text = text.trim_start();
        // A line with two tabs or more is a row of TSV.
        if text.lines().next().is_some_and(|line| line.matches('\t').count() >= 2) {
            return false;
        }
        let inner = text.trim_start_matches(|c: char| c == '[' || c.is_ascii_whitespace());
        let in_array = inner.len() < text.len();
        let (in_object, rest) = match inner.strip_prefix('{') {
            Some(rest) => (true, rest.trim_start()),
            None => (false, inner),
        };
        // Find the end of the first string.
        let Some(rest) = rest.strip_prefix('"') else { return false };
        let mut escaped = false;
        let end = rest.find(|c: char| {
            let closes = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            closes
        });
        let after = end.and_then(|end| rest[end + 1..].trim_start().chars().next());
        match after {
            Some(':') => in_object,
            Some(',' | ']') => in_array && !in_object,
            _ => false,
        }
    }

    /// Recognises a binary format by its first bytes, which no text has.
    pub(crate) fn by_magic(head: &[u8]) -> Option<Format> {
        match head {
            [b'P', b'A', b'R', b'1', 0x15, ..] => Some(Format::Parquet),
            [b'A', b'R', b'R', b'O', b'W', b'1', 0, 0, ..] => Some(Format::Arrow),
            // A stream begins with a mark and the length of its schema.
            [0xff, 0xff, 0xff, 0xff, _, _, _, 0, ..] => Some(Format::Arrow),
            _ => None,
        }
    }

    /// Recognises a format by the beginning of the content.
    pub(crate) fn sniff(head: &[u8]) -> Option<Format> {
        let text = String::from_utf8_lossy(head);
        let mut lines = text.lines().map(str::trim_end).filter(|l| !l.trim().is_empty());
        let first = lines.next()?;
        let tabs = first.matches('\t').count();
        // Only in RDF does `#` start a comment. A row of TSV may begin with it.
        let rdf =
            if first.starts_with('#') && tabs < 2 { lines.find(|l| !l.trim_start().starts_with('#'))? } else { first };
        let rdf = rdf.trim_start();
        let begins = |word: &str| {
            let start = rdf.get(..word.len());
            start.is_some_and(|s| s.eq_ignore_ascii_case(word))
        };
        if begins("<?xml") || begins("<rdf:") || begins("<!DOCTYPE") || begins("<!--") || begins("<graphml") {
            let graphml = text.contains("<graphml") || text.contains(":graphml");
            return Some(if graphml { Format::GraphMl } else { Format::RdfXml });
        }
        // The words of SPARQL also begin names, such as base camp.
        let declares = tabs < 2 && rdf.contains('<') && (begins("PREFIX ") || begins("BASE "));
        if begins("@prefix") || begins("@base") || declares || begins("@version") {
            return Some(if has_graph_block(&text) { Format::TriG } else { Format::Turtle });
        }
        if (rdf.starts_with('<') || rdf.starts_with("_:")) && rdf.ends_with('.') {
            return Some(if is_quad(rdf) { Format::NQuads } else { Format::NTriples });
        }
        if begins("GRAPH ") && rdf.ends_with('{') {
            return Some(Format::TriG);
        }
        let obo = |line: &str| line.starts_with("format-version:") || matches!(line, "[Term]" | "[Typedef]");
        if tabs == 0 && (obo(first) || first.starts_with('!') && lines.take(100).any(obo)) {
            return Some(Format::Obo);
        }
        if tabs >= 1 {
            return Some(Format::Tsv);
        }
        (first.matches(',').count() >= 2).then_some(Format::Csv)
    }
}

/// Tells whether a line of N-Triples or N-Quads has a graph after the object.
fn is_quad(line: &str) -> bool {
    let line = line.trim_end_matches('.').trim_end();
    // What follows the last quote is a language or datatype, and a graph.
    let (terms, before) = match line.rfind('"') {
        Some(quote) => (line[quote + 1..].split_whitespace().count(), 2),
        None => (line.split_whitespace().count(), 3),
    };
    let suffix = line.rfind('"').is_some_and(|quote| line[quote + 1..].starts_with(['@', '^']));
    match before {
        2 => terms > usize::from(suffix),
        _ => terms == 4,
    }
}

/// Tells whether some line opens the block of a graph, as only TriG has it: `NAME {` or `GRAPH NAME
/// {`. An annotation of Turtle begins with `{|`.
fn has_graph_block(text: &str) -> bool {
    let opens = |line: &str| {
        let Some((name, rest)) = line.trim_start().split_once('{') else { return false };
        let name = name.trim();
        let words = name.split_whitespace().count();
        let graph = name.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("GRAPH "));
        let plain = !name.contains(['"', '\'', '#']) || name.starts_with('<') && name.ends_with('>');
        !rest.starts_with('|') && plain && (words <= 1 || words == 2 && graph)
    };
    text.lines().any(opens)
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The name of a format that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown format \"{}\"; expected {}", crate::quote::shown(.0), Format::words())]
pub struct UnknownFormat(pub String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Format, UnknownFormat> {
        match text.to_ascii_lowercase().as_str() {
            "tsv" => Ok(Format::Tsv),
            "csv" => Ok(Format::Csv),
            "jsonl" | "ndjson" | "jsonlines" => Ok(Format::JsonLines),
            "parquet" => Ok(Format::Parquet),
            "arrow" | "feather" => Ok(Format::Arrow),
            "nt" | "ntriples" | "n-triples" => Ok(Format::NTriples),
            "ttl" | "turtle" => Ok(Format::Turtle),
            "rdf" | "xml" | "rdfxml" | "rdf/xml" => Ok(Format::RdfXml),
            "nq" | "nquads" | "n-quads" => Ok(Format::NQuads),
            "trig" => Ok(Format::TriG),
            "jsonld" | "json-ld" => Ok(Format::JsonLd),
            "obo" => Ok(Format::Obo),
            "graphml" => Ok(Format::GraphMl),
            _ => Err(UnknownFormat(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_name() {
        assert_eq!(Format::from_name("a/b.tsv"), Some(Format::Tsv));
        assert_eq!(Format::from_name("B.CSV.GZ"), Some(Format::Csv));
        assert_eq!(Format::from_name("x.nt.zst"), Some(Format::NTriples));
        assert_eq!(Format::from_name("x.ttl"), Some(Format::Turtle));
        assert_eq!(Format::from_name("x.owl"), Some(Format::RdfXml));
        assert_eq!(Format::from_name("x.nq.gz"), Some(Format::NQuads));
        assert_eq!(Format::from_name("x.trig"), Some(Format::TriG));
        assert_eq!(Format::from_name("x.jsonld"), Some(Format::JsonLd));
        assert_eq!(Format::from_name("go-basic.obo"), Some(Format::Obo));
        assert_eq!(Format::from_name("x.graphml"), Some(Format::GraphMl));
        assert_eq!(Format::from_name("x.jsonl.gz"), Some(Format::JsonLines));
        assert_eq!(Format::from_name("x.parquet"), Some(Format::Parquet));
        assert_eq!(Format::from_name("x.feather"), Some(Format::Arrow));
        assert_eq!(Format::from_name("train.txt"), None);
        assert_eq!(Format::from_name("dir.tsv/train"), None);
        assert_eq!(Format::from_name("tsv"), None);
        assert_eq!(Format::from_name(""), None);
    }

    #[test]
    fn by_content() {
        let sniff = |text: &str| Format::sniff(text.as_bytes());
        assert_eq!(sniff("\n a\tb\tc\n"), Some(Format::Tsv));
        assert_eq!(sniff("#1\tis\t#2\n"), Some(Format::Tsv));
        assert_eq!(sniff("a,\"b\",c\n"), Some(Format::Csv));
        assert_eq!(sniff("Base camp\tin\tNepal\n"), Some(Format::Tsv));
        assert_eq!(sniff("BASE <a:b>\n"), Some(Format::Turtle));
        assert_eq!(sniff("<a:b>\t<a:c>\t<a:d> .\n"), Some(Format::NTriples));
        assert_eq!(sniff("# made by hand\n_:b0 <a:c> \"d\" .\n"), Some(Format::NTriples));
        assert_eq!(sniff("# by hand\n\n@prefix a: <b:> .\n"), Some(Format::Turtle));
        assert_eq!(sniff("prefix a: <b:>\n"), Some(Format::Turtle));
        assert_eq!(sniff("<?xml version=\"1.0\"?>\n<rdf:RDF>"), Some(Format::RdfXml));
        assert_eq!(sniff("<!-- made by hand. -->\n<rdf:RDF>"), Some(Format::RdfXml));
        assert_eq!(sniff("<?xml version=\"1.0\"?>\n<graphml xmlns=\"g\">"), Some(Format::GraphMl));
        assert_eq!(sniff("<a:b> <a:c> <a:d> <a:g> .\n"), Some(Format::NQuads));
        assert_eq!(sniff("<a:b> <a:c> \"d e f\"@en <a:g> .\n"), Some(Format::NQuads));
        assert_eq!(sniff("<a:b> <a:c> \"d e f\"^^<a:t> .\n"), Some(Format::NTriples));
        assert_eq!(sniff("<a:b> <a:c> \"d\" .\n"), Some(Format::NTriples));
        assert_eq!(sniff("@prefix a: <b:> .\na:g {\n a:b a:c a:d }\n"), Some(Format::TriG));
        assert_eq!(sniff("@prefix a: <b:> .\ngraph a:g { a:b a:c a:d }\n"), Some(Format::TriG));
        assert_eq!(sniff("@prefix a: <b:> .\na:b a:c a:d {| a:e a:f |} .\n"), Some(Format::Turtle));
        assert_eq!(sniff("@prefix a: <b:> .\na:b a:c \"{ d }\" .\n"), Some(Format::Turtle));
        assert_eq!(sniff("format-version: 1.2\nontology: go\n\n[Term]\n"), Some(Format::Obo));
        assert_eq!(sniff("a b c\n"), None);
        assert_eq!(sniff(""), None);
    }

    #[test]
    fn names_that_fit_several_formats() {
        let owl = |text: &str| Format::RdfXml.corrected(text.as_bytes());
        assert_eq!(owl("@prefix a: <b:> .\n"), Format::Turtle);
        assert_eq!(owl("<?xml version=\"1.0\"?>\n<graphml>"), Format::GraphMl);
        assert_eq!(owl("<Thing/>"), Format::RdfXml);
        assert_eq!(Format::Turtle.corrected(b"<a:b> <a:c> <a:d> ."), Format::Turtle);
        assert!(Format::is_json_ld(b"{\"@context\": {}}"));
        assert!(!Format::is_json_ld(b"{\"head\": \"@id\"}"));
    }

    #[test]
    fn json_is_told_from_names_with_brackets() {
        let json = [
            r#"{"head": "a", "relation": "r", "tail": "b"}"#,
            "\n{\n  \"nodes\" : []}",
            r#"[{"a\"b":1}]"#,
            r#"[["a","r","b"]]"#,
            r#"["a", "r", "b"]"#,
        ];
        assert!(json.iter().all(|text| Format::is_json(text.as_bytes())));
        let names = [
            "[a],r,b",
            "{a},r,b",
            "\"a\",r,b",
            "\"a\": b,r,c",
            "[\"a\" b],r,c",
            "{\"a\"},r,b",
            "{\"id\": 1}\tr\t{\"id\": 2}",
            "[1,2],r,b",
            "[] ,r,b",
            "{",
            "",
        ];
        assert!(!names.iter().any(|text| Format::is_json(text.as_bytes())));
    }

    #[test]
    fn by_word() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        let error = "json".parse::<Format>().unwrap_err().to_string();
        let want = "unknown format \"json\"; expected tsv, csv, jsonl, parquet, arrow, nt, nq, ttl, trig, rdfxml, jsonld, obo or graphml";
        assert_eq!(error, want);
    }
}
