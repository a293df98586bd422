"""Tables: rows by number and by column, the same values in other libraries without a copy, files, and how they look."""

from __future__ import annotations

import csv
import gc
import json
from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import flock_kg as fk


@pytest.fixture(scope="module")
def table(model: fk.Model, countries: fk.Graph) -> fk.Table:
    """Texts, whole numbers, numbers, truths, and columns with gaps: `label` has none, `visits` has some."""
    questions = [("Portugal", "borders", None), (None, "capital", "Lisbon"), ("Portugal", None, "Spain")]
    return model.predict_many(countries, questions, walks=4, top=5)


COLUMNS = ["question", "head", "relation", "tail", "rank", "answer", "label", "probability", "probability_from",
           "logit", "spread", "visits", "known"]


def test_rows_by_number(table: fk.Table) -> None:
    assert table.columns == COLUMNS
    assert len(table) == 15
    rows = table.to_dicts()
    assert list(table) == rows == [table[at] for at in range(15)]
    assert list(rows[0]) == COLUMNS
    assert table[-1] == rows[14] and table[-15] == rows[0]
    assert (rows[0]["answer"], rows[0]["rank"], rows[0]["known"], rows[0]["label"]) == ("Spain", 1, True, None)
    assert [type(rows[0][name]) for name in ("question", "answer", "logit", "known")] == [int, str, float, bool]


def test_columns_by_name(table: fk.Table) -> None:
    for name in COLUMNS:
        assert table[name] == [row[name] for row in table]
    assert table["question"] == [0] * 5 + [1] * 5 + [2] * 5
    assert table["visits"][10:] == [None] * 5 and None not in table["visits"][:10]


@pytest.mark.parametrize("part", [slice(2, 4), slice(None, 3), slice(-2, None), slice(3, 99), slice(4, 2), slice(None)])
def test_slices_are_tables(table: fk.Table, part: slice) -> None:
    sliced = table[part]
    assert isinstance(sliced, fk.Table) and sliced.columns == table.columns
    assert sliced.to_dicts() == table.to_dicts()[part] and len(sliced) == len(sliced.to_dicts())
    assert pyarrow.table(sliced).to_pylist() == sliced.to_dicts()


def test_wrong_keys(table: fk.Table) -> None:
    with pytest.raises(IndexError, match="row 15 of 15"):
        table[15]
    with pytest.raises(IndexError, match="row -16 of 15"):
        table[-16]
    with pytest.raises(KeyError, match="no column .*answr.*expected one of question, head, relation"):
        table["answr"]
    with pytest.raises(TypeError, match="expected a row number, a slice or a column name"):
        table[1.5]
    with pytest.raises(TypeError, match="a slice of a Table has step 1"):
        table[::2]


def test_iterators_are_independent(table: fk.Table) -> None:
    one, two = iter(table), iter(table)
    assert next(one) == next(two) == table[0]
    assert next(one) == table[1] and next(two) == table[1]
    assert len(list(one)) == 13


# Other libraries


def test_pyarrow_has_the_same_values(table: fk.Table) -> None:
    for made in (table.to_arrow(), pyarrow.table(table)):
        assert made.column_names == COLUMNS and made.to_pylist() == table.to_dicts()
    kinds = {field.name: field.type for field in table.to_arrow().schema}
    assert pyarrow.types.is_integer(kinds["rank"])
    assert kinds["logit"] == pyarrow.float64() and kinds["known"] == pyarrow.bool_()
    assert pyarrow.schema(table) == table.to_arrow().schema


def test_polars_has_the_same_values(table: fk.Table) -> None:
    for made in (table.to_polars(), polars.DataFrame(table)):
        assert made.columns == COLUMNS and made.to_dicts() == table.to_dicts()


def test_pandas_has_the_same_values(table: fk.Table) -> None:
    made = table.to_pandas()
    assert isinstance(made, pandas.DataFrame) and list(made.columns) == COLUMNS and len(made) == 15
    for name in ("answer", "rank", "logit", "probability", "known"):
        assert made[name].tolist() == table[name]
    assert made["visits"].isna().tolist() == [count is None for count in table["visits"]]
    assert made["label"].isna().all()


def test_duckdb_has_the_same_values(table: fk.Table) -> None:
    answers = table.to_arrow()
    assert duckdb.sql("select * from answers").to_arrow_table().to_pylist() == table.to_dicts()
    first = duckdb.sql("select answer, logit from answers where question = 0 order by rank limit 1")
    assert first.fetchall() == [(table[0]["answer"], table[0]["logit"])]


def test_duckdb_takes_the_table_itself(table: fk.Table) -> None:
    given = table  # noqa: F841: duckdb finds it by name
    try:
        counted = duckdb.sql("select question, count(*) from given group by 1 order by 1").fetchall()
    except (duckdb.InvalidInputException, duckdb.CatalogException) as error:
        pytest.skip(f"this duckdb takes no Arrow capsules: {error}")
    assert counted == [(0, 5), (1, 5), (2, 5)]


def addresses(table: pyarrow.Table) -> list:
    chunks = [chunk for column in table.columns for chunk in column.chunks]
    return [buffer.address for chunk in chunks for buffer in chunk.buffers() if buffer]


def test_nothing_is_copied(table: fk.Table) -> None:
    one, two = pyarrow.table(table), pyarrow.table(table)
    assert addresses(one) == addresses(two) and len(addresses(one)) >= len(COLUMNS)
    # Polars shares the memory too: numbers without gaps are the same buffer.
    logits = table.to_polars()["logit"].to_arrow()
    assert logits.buffers()[1].address == one.column("logit").chunk(0).buffers()[1].address


def test_what_others_took_outlives_the_table(model: fk.Model, countries: fk.Graph) -> None:
    table = model.predict(countries, "Portugal", "borders", None, walks=4, top=0)
    rows = table.to_dicts()
    arrow, frame, part = table.to_arrow(), table.to_polars(), pyarrow.table(table[5:50])
    capsule = table.__arrow_c_stream__()
    del table
    gc.collect()
    filler = [bytes(1000) for _ in range(1000)]  # memory that was freed would be used again
    assert arrow.to_pylist() == rows and frame.to_dicts() == rows and part.to_pylist() == rows[5:50]
    del capsule, filler
    gc.collect()


def test_an_unused_capsule_is_freed(table: fk.Table) -> None:
    for _ in range(100):
        table.__arrow_c_stream__()
        table.__arrow_c_schema__()
    assert pyarrow.table(table).num_rows == 15


def test_an_empty_table(model: fk.Model, countries: fk.Graph) -> None:
    table = model.predict_many(countries, [])
    assert len(table) == 0 and list(table) == [] and table.columns == COLUMNS and table["answer"] == []
    assert table.to_arrow().num_rows == 0 and table.to_arrow().column_names == COLUMNS
    assert table.to_polars().shape == (0, 13) and table.to_pandas().shape == (0, 13)
    assert "answer" in repr(table) and "<table" in table._repr_html_()


BARE = """
import flock_kg as fk
model, graph = fk.Model.bundled(threads=1), fk.Graph.bundled()
table = model.predict(graph, "Portugal", "borders", None, walks=4, top=3)
assert [row["rank"] for row in table] == table["rank"] == [1, 2, 3]
assert table[0] == table.to_dicts()[0] and table[-1]["rank"] == 3 and len(table[1:]) == 2
assert "Spain" in repr(table) and "<td" in table._repr_html_()
table.save(sys.argv[1])
for name in ("pandas", "polars", "arrow"):
    try:
        getattr(table, f"to_{name}")()
    except ImportError as error:
        print(error)
"""


def test_tables_need_no_other_library(python, tmp_path: Path) -> None:
    path = tmp_path / "answers.parquet"
    said = python(BARE, without=("pandas", "polars", "pyarrow", "numpy", "tqdm"), args=(path,)).splitlines()
    assert said == [f"to_{name}() needs {library}; hint: pip install {library}, or table.to_dicts()"
                    for name, library in (("pandas", "pandas"), ("polars", "polars"), ("arrow", "pyarrow"))]
    assert pyarrow.parquet.read_table(path).num_rows == 3


# Files


def test_saved_as_parquet(table: fk.Table, tmp_path: Path) -> None:
    table.save(tmp_path / "t.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "t.parquet").to_pylist() == table.to_dicts()


def test_saved_as_json_lines(table: fk.Table, tmp_path: Path) -> None:
    table.save(tmp_path / "t.jsonl")
    lines = (tmp_path / "t.jsonl").read_text(encoding="utf-8").splitlines()
    assert [{name: json.loads(line).get(name) for name in COLUMNS} for line in lines] == table.to_dicts()


@pytest.mark.parametrize("ending, delimiter", [("csv", ","), ("tsv", "\t")])
def test_saved_as_separated_values(table: fk.Table, tmp_path: Path, ending: str, delimiter: str) -> None:
    path = tmp_path / f"t.{ending}"
    table.save(path)
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter=delimiter))
    assert len(rows) == 15 and list(rows[0]) == COLUMNS
    for read, row in zip(rows, table):
        assert float(read["logit"]) == row["logit"] and float(read["probability"]) == row["probability"]
        assert int(read["rank"]) == row["rank"] and read["answer"] == row["answer"] and read["label"] == ""
        assert read["known"] == str(row["known"]).lower()


def test_saved_as_markdown(table: fk.Table, tmp_path: Path) -> None:
    table.save(tmp_path / "t.md")
    lines = (tmp_path / "t.md").read_text(encoding="utf-8").splitlines()
    # Markdown would take a bare _ for emphasis.
    cells = [[cell.strip().replace("\\_", "_") for cell in line.strip("|").split("|")] for line in lines]
    assert len(lines) == 17 and cells[0] == COLUMNS
    assert [row[COLUMNS.index("answer")] for row in cells[2:]] == table["answer"]


def test_a_given_format_overrules_the_name(table: fk.Table, tmp_path: Path) -> None:
    table.save(tmp_path / "t.dat", format="jsonl")
    table.save(tmp_path / "t.jsonl")
    assert (tmp_path / "t.dat").read_bytes() == (tmp_path / "t.jsonl").read_bytes()
    with pytest.raises(fk.errors.QuestionError, match="the ending of the name says no format"):
        table.save(tmp_path / "t.xls")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.dat", "t.jsonl"]


def test_awkward_names_survive_files(tmp_path: Path) -> None:
    names = ["a,b", 'say "hi"', "tab\there", "line\nbreak", "pipe | bar", "<b>", "日本", " space "]
    graph = fk.Graph.from_triples([(name, "r", "x") for name in names])
    graph.triples().save(tmp_path / "t.csv")
    with open(tmp_path / "t.csv", newline="", encoding="utf-8") as file:
        assert sorted(row["head"] for row in csv.DictReader(file)) == sorted(names)
    graph.triples().save(tmp_path / "t.parquet")
    assert sorted(pyarrow.parquet.read_table(tmp_path / "t.parquet")["head"].to_pylist()) == sorted(names)
    graph.triples().save(tmp_path / "t.jsonl")
    lines = (tmp_path / "t.jsonl").read_text(encoding="utf-8").splitlines()
    assert sorted(json.loads(line)["head"] for line in lines) == sorted(names)


# How they look


def test_text(model: fk.Model, countries: fk.Graph) -> None:
    lines = repr(model.predict(countries, "Portugal", "borders", None, walks=4, top=3)).splitlines()
    assert lines[0] == "Portugal  borders  ?"
    assert lines[1].split() == ["rank", "answer", "probability", "logit", "visits", "known"]
    assert len(lines) == 5 and lines[2].split()[:2] == ["1", "Spain"]


def test_long_tables_show_their_beginning(countries: fk.Graph) -> None:
    table = countries.triples()
    assert repr(table).splitlines()[-1] == "… 668 more of 688 rows"
    assert len(repr(table).splitlines()) == 1 + 1 + 20 + 1
    html = table._repr_html_()
    assert html.count("<tr>") == 21 and "… 668 more of 688 rows" in html


def test_html_is_escaped(model: fk.Model, small: fk.Graph) -> None:
    table = model.predict(small, "<script>alert(1)</script>", "member of", None, walks=4, top=0)
    html = table._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html and "R&amp;D" in html
    assert html.count("<tr>") == len(table) + 1


def test_info_is_a_fresh_dict(table: fk.Table) -> None:
    assert table.info["questions"] == 3 and table.info["walks"] == 4
    table.info["questions"] = 99
    assert table.info["questions"] == 3
