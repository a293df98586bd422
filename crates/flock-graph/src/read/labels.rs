//! Reads files of labels: TSV or CSV with a column of names and a column of labels.
//!
//! Without a header the first two columns count, whatever follows them. A first row is a header if it
//! names both columns by usual words, and its first field is no name in the graph.

use super::source::Source;
use super::{Format, LoadOptions};
use crate::graph::Graph;
use crate::labels::LabelsByName;
use crate::lookup::{bare, local_part};
use crate::read::error::{LoadError, RowError};
use crate::read::rows::MAX_NAME;
use crate::unknown::NameKind;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Words for the column of names, and for that of labels. The first words are the most specific.
const NAME_WORDS: [&str; 10] = ["id", ":id", "curie", "iri", "uri", "node", "entity", "identifier", "node1", "name"];
const LABEL_WORDS: [&str; 8] = ["label", "preflabel", "rdfs:label", "skos:preflabel", "name", "title", "text", "node2"];

/// What reading a file of labels found. `rows = labels + unknown + empty`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LabelReport {
    /// Number of rows, without blank lines and the header.
    pub rows: u64,
    /// Number of rows whose name is in the graph.
    pub labels: u64,
    /// Number of rows whose name is not in the graph.
    pub unknown: u64,
    /// The first name that is not in the graph.
    pub first_unknown: Option<String>,
    /// Number of rows without a label.
    pub empty: u64,
    /// Whether a header row was left out.
    pub header: bool,
}

impl Graph {
    /// Returns the graph with the labels in a file: TSV or CSV, plain or compressed, with the columns
    /// name and label, or a header that says which columns these are. A name is written as in the
    /// graph, as `<IRI>`, as `prefix:local`, or without its prefix if only one name fits. Labels in
    /// the file replace those that the graph has. Of several labels of a name the first counts. Names
    /// that the graph does not have are counted.
    ///
    /// # Errors
    /// A file that cannot be read or has no two columns.
    pub fn with_labels_from(&self, path: &Path) -> Result<(Graph, LabelReport), LoadError> {
        let told = Format::from_name(&path.display().to_string()).filter(|f| matches!(f, Format::Tsv | Format::Csv));
        // Named, so that nothing tries to detect a format of graphs.
        let options = LoadOptions { format: Some(told.unwrap_or(Format::Tsv)), ..LoadOptions::default() };
        self.labelled(Source::open(path, &options)?, told)
    }

    /// Does the same for a reader. `file` stands for it in messages, and its extension may show the
    /// format.
    ///
    /// # Errors
    /// Text that cannot be read or has no two columns.
    pub fn with_labels_read(&self, file: &str, reader: impl Read) -> Result<(Graph, LabelReport), LoadError> {
        let told = Format::from_name(file).filter(|f| matches!(f, Format::Tsv | Format::Csv));
        let options = LoadOptions { format: Some(told.unwrap_or(Format::Tsv)), ..LoadOptions::default() };
        self.labelled(Source::new(file.to_owned(), reader, &options)?, told)
    }

    fn labelled(&self, mut source: Source<'_>, told: Option<Format>) -> Result<(Graph, LabelReport), LoadError> {
        let mut reader = BufReader::with_capacity(256 << 10, source.take_reader());
        let start = match reader.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) => return Err(source.failed(error)),
        };
        let first_line = start.split(|b| *b == b'\n').next().unwrap_or_default();
        let is_csv = told.map_or(!first_line.contains(&b'\t') && first_line.contains(&b','), |f| f == Format::Csv);
        // TSV has no quotes: names may contain them.
        let mut rows = csv::ReaderBuilder::new()
            .delimiter(if is_csv { b',' } else { b'\t' })
            .quoting(is_csv)
            .has_headers(false)
            .flexible(true)
            .from_reader(reader);
        let separator = if is_csv { "comma" } else { "tab" };
        let (mut report, mut columns, mut first) = (LabelReport::default(), [0, 1], true);
        let mut locals: Option<HashMap<&str, Option<&str>>> = None;
        let mut labels = LabelsByName::default();
        let mut record = csv::ByteRecord::new();
        loop {
            match rows.read_byte_record(&mut record) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => match error.into_kind() {
                    csv::ErrorKind::Io(error) => return Err(source.failed(error)),
                    other => return Err(source.failed(std::io::Error::other(format!("{other:?}")))),
                },
            }
            let line = record.position().map_or(0, csv::Position::line);
            let field = |column: usize| -> Result<Option<&str>, LoadError> {
                let Some(bytes) = record.get(column) else { return Ok(None) };
                if bytes.len() > MAX_NAME {
                    return Err(source.row(line, RowError::LongName));
                }
                let text = str::from_utf8(bytes);
                text.map(Some).map_err(|e| source.row(line, RowError::InvalidUtf8 { byte: e.valid_up_to() + 1 }))
            };
            if record.len() == 1 && field(0)?.is_none_or(|text| text.trim().is_empty()) {
                continue;
            }
            if std::mem::take(&mut first) {
                let fields = (0..record.len().min(256)).map(|i| Ok(field(i)?.unwrap_or_default().trim()));
                let fields = fields.collect::<Result<Vec<_>, LoadError>>()?;
                let known = self.name(fields[0]).is_some();
                if let Some(named) = named_columns(&fields).filter(|_| !known) {
                    (columns, report.header) = (named, true);
                    continue;
                }
            }
            report.rows += 1;
            let (Some(name), Some(label)) = (field(columns[0])?, field(columns[1])?) else {
                return Err(source.row(line, RowError::LabelFields { separator, found: record.len() }));
            };
            if label.trim().is_empty() {
                report.empty += 1;
                continue;
            }
            let found = self.name(name).map(|name| (name, 0)).or_else(|| {
                // The first name that is not in the graph as it stands: parts of names are needed now.
                let locals = locals.get_or_insert_with(|| self.local_parts());
                locals.get(name.trim()).copied().flatten().map(|name| (name, 1))
            });
            match found {
                Some((name, rank)) => {
                    report.labels += 1;
                    labels.add(name, label, rank);
                }
                None => {
                    report.unknown += 1;
                    report.first_unknown.get_or_insert_with(|| name.to_owned());
                }
            }
        }
        Ok((self.relabelled(&labels), report))
    }

    /// Returns the name that is spelled as `text`, as `<IRI>` or as `prefix:local`.
    fn name(&self, text: &str) -> Option<&str> {
        let text = text.trim();
        let spelled = |text: &str| {
            let of = |kind: NameKind| Some(self.names(kind).get(self.names(kind).id(text)?));
            of(NameKind::Entity).or_else(|| of(NameKind::Relation))
        };
        spelled(text).or_else(|| spelled(bare(text)?)).or_else(|| spelled(&self.prefixes().expand(text)?))
    }

    /// Returns the names by what follows their prefix or namespace. A part of several names has none.
    fn local_parts(&self) -> HashMap<&str, Option<&str>> {
        let mut parts: HashMap<&str, Option<&str>> = HashMap::new();
        for name in self.entities().iter().chain(self.relations().iter()) {
            if let Some(local) = local_part(name) {
                let entry = parts.entry(local).or_insert(Some(name));
                // One name may be both an entity and a relation.
                *entry = entry.filter(|other| *other == name);
            }
        }
        parts
    }
}

/// Returns the columns of name and label, if the fields of a first row name them.
fn named_columns(fields: &[&str]) -> Option<[usize; 2]> {
    let place = |words: &[&str], taken: Option<usize>| {
        let is = |i: &usize, word: &str| Some(*i) != taken && fields[*i].eq_ignore_ascii_case(word);
        words.iter().find_map(|word| (0..fields.len()).find(|i| is(i, word)))
    };
    let name = place(&NAME_WORDS, None)?;
    Some([name, place(&LABEL_WORDS, Some(name))?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GraphBuilder;

    fn graph() -> Graph {
        let mut builder = GraphBuilder::new();
        builder.prefixes().insert("ex", "http://example.org/");
        builder.add("http://example.org/a", "http://example.org/r", "http://example.org/b");
        builder.add("c", "http://example.org/r", "http://other.org/b");
        builder.label("c", "old", 0);
        builder.finish().unwrap()
    }

    fn read(file: &str, text: &str) -> (Vec<Option<String>>, LabelReport) {
        let (graph, report) = graph().with_labels_read(file, text.as_bytes()).unwrap();
        let of =
            |kind: NameKind| graph.names(kind).iter().map(|n| graph.label(n).map(str::to_owned)).collect::<Vec<_>>();
        ([of(NameKind::Entity), of(NameKind::Relation)].concat(), report)
    }

    fn some(labels: [&str; 5]) -> Vec<Option<String>> {
        labels.iter().map(|label| (!label.is_empty()).then(|| label.to_string())).collect()
    }

    #[test]
    fn names_of_all_forms_get_labels() {
        // Names in order: a, b, c, other b; and the relation r. The bare part `b` is that of two names.
        let text = "<http://example.org/a>\tAnn \"the\" first\tan alias\nex:b\tBob\n\nc\tCid\nr\tlikes\nb\twho\nz\tnobody\nc\tlater\nex:b\t \n";
        let (labels, report) = read("labels.tsv", text);
        assert_eq!(labels, some(["Ann \"the\" first", "Bob", "Cid", "", "likes"]));
        let want =
            LabelReport { rows: 8, labels: 5, unknown: 2, first_unknown: Some("b".into()), empty: 1, header: false };
        assert_eq!(report, want);
        // The name as it stands counts more than its part, whatever comes first.
        assert_eq!(read("l.tsv", "a\tpart\nex:a\twhole\n").0, some(["whole", "", "old", "", ""]));
    }

    #[test]
    fn headers_and_commas() {
        let quoted = "description,label,id\nx,\"Ann, \"\"A\"\"\",ex:a\n";
        assert_eq!(read("labels.csv", quoted).0, some(["Ann, \"A\"", "", "old", "", ""]));
        let (labels, report) = read("labels.txt", "id,name\nex:a,Ann\n");
        assert_eq!((labels, report.header, report.rows), (some(["Ann", "", "old", "", ""]), true, 1));
        assert!(!read("labels", "ex:a\tname\n").1.header);
    }

    #[test]
    fn errors_name_file_and_line() {
        let error = |file: &str, text: &[u8]| graph().with_labels_read(file, text).unwrap_err().to_string();
        assert_eq!(
            error("l.tsv", b"c\tCid\nc Cid\n"),
            "l.tsv:2: expected 2 tab-separated fields (name and label), found 1"
        );
        assert_eq!(error("l.csv", b"c\n"), "l.csv:1: expected 2 comma-separated fields (name and label), found 1");
        assert!(error("l.tsv", b"c\t\xff\n").starts_with("l.tsv:1: invalid UTF-8"));
        let missing = graph().with_labels_from(Path::new("no/such/file.tsv")).unwrap_err();
        assert_eq!(missing.to_string(), "no/such/file.tsv: no such file");
    }
}
