//! Every format reads back as what was written.

use super::*;

/// A name with all that a format can trip over.
const NASTY: &str = "a \"b\"\t'c',\r\nd\\t | `e` é日本";

fn columns() -> Vec<Column> {
    vec![Column::text("name"), Column::integer("rank"), Column::number("score"), Column::truth("known")]
}

fn rows() -> Vec<Vec<Cell<'static>>> {
    vec![
        vec![NASTY.into(), 1u32.into(), Cell::Number(0.1 + 0.2), true.into()],
        vec!["".into(), Cell::Integer(-2), Cell::Number(-1e-300), false.into()],
        vec!["plain".into(), Cell::None, Cell::Integer(3), Cell::None],
    ]
}

fn written(format: OutputFormat) -> Vec<u8> {
    let mut writer = RecordWriter::new(format, columns(), Vec::new()).unwrap();
    rows().iter().for_each(|row| writer.row(row).unwrap());
    assert_eq!(writer.rows(), 3);
    writer.finish().unwrap()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn csv_reads_back() {
    let bytes = written(OutputFormat::Csv);
    let mut reader = csv::Reader::from_reader(&bytes[..]);
    assert_eq!(reader.headers().unwrap(), vec!["name", "rank", "score", "known"]);
    let read: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(read[0], vec![NASTY, "1", "0.30000000000000004", "true"]);
    assert_eq!(read[0][2].parse::<f64>().unwrap(), 0.1 + 0.2);
    assert_eq!(read[1], vec!["", "-2", "-1e-300", "false"]);
    assert_eq!(read[2], vec!["plain", "", "3", ""]);
}

#[test]
fn tsv_has_one_line_per_row_and_reads_back() {
    let text = text(written(OutputFormat::Tsv));
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines[0], ["name", "rank", "score", "known"]);
    assert_eq!(lines[1], [r#"a "b"\t'c',\r\nd\\t | `e` é日本"#, "1", "0.30000000000000004", "true"]);
    assert_eq!(lines[3], ["plain", "", "3", ""]);
    // A reader that knows the escapes.
    let mut name = String::new();
    let mut chars = lines[1][0].chars();
    while let Some(c) = chars.next() {
        name.push(match c {
            '\\' => match chars.next().unwrap() {
                't' => '\t',
                'n' => '\n',
                'r' => '\r',
                other => other,
            },
            other => other,
        });
    }
    assert_eq!(name, NASTY);
}

#[test]
fn json_lines_read_back() {
    let text = text(written(OutputFormat::Jsonl));
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0], serde_json::json!({"name": NASTY, "rank": 1, "score": 0.1 + 0.2, "known": true}));
    assert_eq!(lines[2], serde_json::json!({"name": "plain", "rank": null, "score": 3, "known": null}));
}

#[test]
fn numbers_that_json_does_not_have_are_null() {
    let mut writer = RecordWriter::new(OutputFormat::Jsonl, vec![Column::number("x")], Vec::new()).unwrap();
    writer.row(&[f64::NAN.into()]).unwrap();
    assert_eq!(text(writer.finish().unwrap()), "{\"x\":null}\n");
}

#[test]
fn markdown_keeps_one_line_per_row() {
    let text = text(written(OutputFormat::Md));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "| name | rank | score | known |");
    assert_eq!(lines[1], "|---|---:|---:|---|");
    assert_eq!(lines[2], r#"| a "b"\\t'c',\\r\\nd\\t \| \`e\` é日本 | 1 | 0.3000 | yes |"#);
    assert_eq!(lines[4], "| plain | – | 3.0000 |  |");
    assert_eq!(lines.len(), 5);
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_reads_back() {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::RowAccessor;

    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&written(OutputFormat::Parquet)).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let read: Vec<::parquet::record::Row> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(read.len(), 3);
    assert_eq!(read[0].get_string(0).unwrap(), NASTY);
    assert_eq!((read[0].get_long(1).unwrap(), read[0].get_double(2).unwrap()), (1, 0.1 + 0.2));
    assert!(read[0].get_bool(3).unwrap() && !read[1].get_bool(3).unwrap());
    assert_eq!(read[1].get_string(0).unwrap(), "");
    assert_eq!((read[1].get_long(1).unwrap(), read[1].get_double(2).unwrap()), (-2, -1e-300));
    assert!(read[2].is_null(1).unwrap() && read[2].is_null(3).unwrap());
    assert_eq!(read[2].get_double(2).unwrap(), 3.0);
}

/// Many batches end in one file; a row group is closed when it is full.
#[cfg(feature = "parquet")]
#[test]
fn parquet_takes_many_rows() {
    use arrow_array::cast::AsArray;

    let columns = vec![Column::integer("i"), Column::text("name")];
    let mut writer = RecordWriter::new(OutputFormat::Parquet, columns, tempfile::tempfile().unwrap()).unwrap();
    for i in 0..20_000u32 {
        writer.row(&[i.into(), format!("name {i}").into()]).unwrap();
        if i % 5000 == 0 {
            writer.flush().unwrap();
        }
    }
    let file = writer.finish().unwrap();
    let reader = ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    assert_eq!(reader.metadata().num_row_groups(), 1);
    let mut next = 0u32;
    for batch in reader.build().unwrap() {
        let batch = batch.unwrap();
        for name in batch.column(1).as_string::<i32>() {
            assert_eq!(name.unwrap(), format!("name {next}"));
            next += 1;
        }
    }
    assert_eq!(next, 20_000);
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_says_how_to_get_it() {
    let error = RecordWriter::new(OutputFormat::Parquet, columns(), Vec::new()).unwrap_err().to_string();
    assert!(error.contains("feature parquet"), "{error}");
    assert!(!OutputFormat::Parquet.is_built());
}

fn table(style: TableStyle, columns: Vec<Column>, rows: &[Vec<Cell<'_>>]) -> String {
    let mut writer = RecordWriter::with_style(OutputFormat::Table, columns, Vec::new(), style).unwrap();
    rows.iter().for_each(|row| writer.row(row).unwrap());
    text(writer.finish().unwrap())
}

#[test]
fn tables_align_by_width_on_screen() {
    let columns = vec![
        Column::integer("rank"),
        Column::text("name"),
        Column::number("score"),
        Column::truth("known").words("known", ""),
    ];
    let rows = [
        vec![Cell::Integer(1234), "日本".into(), 0.5.into(), true.into()],
        vec![Cell::Integer(10), "Åland Islands".into(), 1.25e-7.into(), false.into()],
        vec![Cell::None, "a\u{1b}[31m".into(), Cell::None, false.into()],
    ];
    let want = " rank  name            score  known\n\
                1,234  日本           0.5000  known\n   \
                   10  Åland Islands  1.2e-7\n    \
                    –  a\\u{1b}[31m         –\n";
    assert_eq!(table(TableStyle::default(), columns, &rows), want);
}

#[test]
fn tables_fit_the_terminal_and_never_cut_numbers() {
    let columns = || vec![Column::text("name"), Column::integer("count"), Column::text("reason")];
    let long = "日本".repeat(20);
    let rows = [vec![long.as_str().into(), Cell::Integer(123_456_789), "because it is so, as was said before".into()]];
    let style = TableStyle { width: Some(50), colours: false };
    let shown = table(style, columns(), &rows);
    for line in shown.lines() {
        assert!(unicode_width::UnicodeWidthStr::width(line) <= 50, "{line}");
    }
    assert!(shown.contains("123,456,789") && shown.contains('…'), "{shown}");
    // Too narrow for the numbers: they stay whole.
    let narrow = table(TableStyle { width: Some(10), colours: false }, columns(), &rows);
    assert!(narrow.contains("123,456,789"), "{narrow}");
    // Without a terminal nothing is cut.
    assert!(table(TableStyle::default(), columns(), &rows).contains(&long));
}

#[test]
fn colours_are_for_terminals() {
    let columns = || {
        let known = Column::truth("known").words("known", "new").tone(Tone::NewsIfFalse);
        vec![Column::number("score").tone(Tone::Score), known]
    };
    let rows = [vec![0.5.into(), false.into()], vec![0.25.into(), true.into()]];
    let plain = table(TableStyle::default(), columns(), &rows);
    assert_eq!(plain, " score  known\n0.5000  new\n0.2500  known\n");
    let coloured = table(TableStyle { width: None, colours: true }, columns(), &rows);
    assert!(coloured.contains("\x1b[32mnew\x1b[0m") && coloured.contains("\x1b[2mknown\x1b[0m"), "{coloured}");
    let mut bare = coloured;
    ["\x1b[0m", "\x1b[2m", "\x1b[32m", "\x1b[36m"].iter().for_each(|code| bare = bare.replace(code, ""));
    assert_eq!(bare, plain);
}

/// A sink that shows what has reached it.
#[derive(Clone, Default)]
struct Shared(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn rows_reach_the_reader_when_flushed() {
    for format in [OutputFormat::Table, OutputFormat::Csv, OutputFormat::Tsv, OutputFormat::Jsonl, OutputFormat::Md] {
        let sink = Shared::default();
        let seen = || String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        let mut writer = RecordWriter::new(format, vec![Column::text("name")], sink.clone()).unwrap();
        writer.flush().unwrap();
        writer.row(&["first".into()]).unwrap();
        writer.flush().unwrap();
        assert!(seen().contains("first"), "{format}");
        writer.row(&["second, which is wider than what came before it".into()]).unwrap();
        writer.flush().unwrap();
        assert!(seen().contains("second, which is wider than what came before it"), "{format}");
        writer.finish().unwrap();
        // One header, and in JSON a key in each row.
        assert_eq!(seen().matches("name").count(), if format == OutputFormat::Jsonl { 2 } else { 1 });
    }
}

#[test]
fn a_long_table_is_not_held_back() {
    let sink = Shared::default();
    let mut writer = RecordWriter::new(OutputFormat::Table, vec![Column::integer("n")], sink.clone()).unwrap();
    for n in 0..50_000u32 {
        writer.row(&[n.into()]).unwrap();
    }
    assert!(sink.0.lock().unwrap().len() > 200_000);
    let all = text({
        writer.finish().unwrap();
        sink.0.lock().unwrap().clone()
    });
    assert_eq!(all.lines().count(), 50_001);
}

#[test]
fn refuses_rows_that_do_not_fit() {
    let mut writer = RecordWriter::new(OutputFormat::Csv, columns(), Vec::new()).unwrap();
    let error = writer.row(&["a".into()]).unwrap_err().to_string();
    assert_eq!(error, "expected 4 cells in a row, found 1");
    let error = writer.row(&["a".into(), 0.5.into(), 0.5.into(), true.into()]).unwrap_err().to_string();
    assert_eq!(error, "column rank: expected a whole number, found a number");
    assert_eq!(writer.finish().unwrap(), b"name,rank,score,known\n");
    let twice = vec![Column::text("a"), Column::text("a")];
    let error = RecordWriter::new(OutputFormat::Csv, twice, Vec::new()).unwrap_err().to_string();
    assert_eq!(error, "expected columns with different names, found a twice");
}

#[test]
fn formats_by_name_and_extension() {
    for format in OutputFormat::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    assert_eq!("markdown".parse(), Ok(OutputFormat::Md));
    assert!("xlsx".parse::<OutputFormat>().unwrap_err().to_string().contains("expected table, csv, tsv, jsonl, md or"));
    let of = |name: &str| OutputFormat::of_path(std::path::Path::new(name));
    assert_eq!(of("a.CSV"), Some(OutputFormat::Csv));
    assert_eq!(of("a.ndjson"), Some(OutputFormat::Jsonl));
    assert_eq!(of("a.b.md"), Some(OutputFormat::Md));
    assert_eq!(of("a.parquet"), Some(OutputFormat::Parquet));
    assert_eq!((of("a"), of("a.xyz"), of("a.table")), (None, None, None));
}
