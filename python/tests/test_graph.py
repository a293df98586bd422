"""Graphs: the same triples from files, frames and graphs of other libraries; names, labels and changes."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from types import SimpleNamespace

import duckdb
import networkx
import pandas
import polars
import pyarrow
import pytest
import rdflib

import flock_kg as fk
from conftest import TRIPLES, triples_of

HEADS, RELATIONS, TAILS = (list(column) for column in zip(*TRIPLES))
COLUMNS = {"head": HEADS, "relation": RELATIONS, "tail": TAILS}
EX = "http://example.org/"


def write(path: Path, text: str) -> Path:
    """Writes a file, packed if its name ends so."""
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


# Files


def tsv(header: bool) -> str:
    rows = [("head", "relation", "tail"), *TRIPLES] if header else TRIPLES
    return "".join("\t".join(row) + "\n" for row in rows)


def comma_separated(path: Path) -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("subject", "predicate", "object"), *TRIPLES])
    return path


def json_lines() -> str:
    return "".join(json.dumps(dict(zip(COLUMNS, row)), ensure_ascii=False) + "\n" for row in TRIPLES)


@pytest.mark.parametrize("name", ["g.tsv", "g.tsv.gz", "headless.tsv", "g.csv", "g.jsonl", "g.jsonl.gz", "g.parquet"])
def test_table_files_give_the_same_graph(tmp_path: Path, model: fk.Model, small: fk.Graph, name: str) -> None:
    path = tmp_path / name
    options = {}
    if name.startswith("g.tsv"):
        write(path, tsv(header=True))
    elif name == "headless.tsv":
        write(path, tsv(header=False))
        options["header"] = False
    elif name == "g.csv":
        comma_separated(path)
    elif name.startswith("g.jsonl"):
        write(path, json_lines())
    else:
        polars.DataFrame(COLUMNS).write_parquet(path)
    graph = fk.Graph.from_file(path, **options)
    assert triples_of(graph) == sorted(TRIPLES)
    assert graph.name == str(path)
    asked = ("Portugal", "member of", None)
    assert model.predict(graph, *asked, walks=4).to_dicts() == model.predict(small, *asked, walks=4).to_dicts()


RDF_TRIPLES = [
    (f"{EX}lisbon", f"{EX}capitalOf", f"{EX}portugal"),
    (f"{EX}madrid", f"{EX}capitalOf", f"{EX}spain"),
    (f"{EX}portugal", f"{EX}borders", f"{EX}spain"),
]
N_TRIPLES = "".join(f"<{h}> <{r}> <{t}> .\n" for h, r, t in RDF_TRIPLES) + (
    f'<{EX}lisbon> <http://www.w3.org/2000/01/rdf-schema#label> "Lisbon"@en .\n'
    f'<{EX}lisbon> <http://www.w3.org/2000/01/rdf-schema#label> "Lissabon"@de .\n'
    f'<{EX}lisbon> <{EX}inhabitants> "545000"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
)
TURTLE = f"""
@prefix ex: <{EX}> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:lisbon ex:capitalOf ex:portugal ; rdfs:label "Lisbon"@en, "Lissabon"@de ; ex:inhabitants 545000 .
ex:madrid ex:capitalOf ex:spain .
ex:portugal ex:borders ex:spain .
"""


@pytest.mark.parametrize("name", ["g.nt", "g.nt.gz", "g.ttl", "g.ttl.gz"])
def test_rdf_files_give_the_same_graph(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, N_TRIPLES if ".nt" in name else TURTLE)
    graph = fk.Graph.from_file(path)
    assert triples_of(graph) == RDF_TRIPLES
    assert graph.label(f"{EX}lisbon") == "Lisbon"
    assert graph.find_entity("lisbon") == f"{EX}lisbon"
    assert any("literal" in note for note in graph.notes), graph.notes
    assert fk.Graph.from_file(path, languages=["de", "en"]).label(f"{EX}lisbon") == "Lissabon"


def test_several_files_are_one_graph(tmp_path: Path) -> None:
    one = write(tmp_path / "1.tsv", "".join("\t".join(row) + "\n" for row in TRIPLES[:8]))
    two = write(tmp_path / "2.tsv", "".join("\t".join(row) + "\n" for row in TRIPLES[8:]))
    assert triples_of(fk.Graph.from_file([one, two], header=False)) == sorted(TRIPLES)
    assert triples_of(fk.Graph.from_file(tmp_path, header=False)) == sorted(TRIPLES)


@pytest.mark.parametrize("columns", [("who", "what", "whom"), (1, 0, 3)])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_of_a_file_by_name_and_from_0(tmp_path: Path, columns: tuple, ending: str) -> None:
    frame = polars.DataFrame({"what": RELATIONS, "who": HEADS, "when": ["now"] * len(TRIPLES), "whom": TAILS})
    path = tmp_path / f"g.{ending}"
    frame.write_csv(path) if ending == "csv" else frame.write_parquet(path)
    header = {"header": True} if ending == "csv" else {}
    assert triples_of(fk.Graph.from_file(path, columns=columns, **header)) == sorted(TRIPLES)


def test_format_overrules_the_name(tmp_path: Path) -> None:
    path = write(tmp_path / "graph.dat", tsv(header=False))
    graph = fk.Graph.from_file(path, format="tsv", header=False)
    assert triples_of(graph) == sorted(TRIPLES)


def test_notes_say_how_a_file_was_understood(tmp_path: Path) -> None:
    path = write(tmp_path / "g.tsv", tsv(header=True))
    assert fk.Graph.from_file(path).notes == [f"{path}: left out: header row"]


def test_a_header_that_was_read_as_a_triple_is_a_warning(tmp_path: Path) -> None:
    rows = "".join(f"a{i}\tb\tc{i % 7}\n" for i in range(30))
    path = write(tmp_path / "g.tsv", '"kind one"\t"link"\t"kind two"\n' + rows)
    with pytest.warns(fk.errors.GraphWarning, match=r"it may be a header; hint: header=True if it is") as caught:
        graph = fk.Graph.from_file(path)
    assert len(graph) == 31
    assert caught[0].filename == __file__, "the warning points at the caller"
    assert len(fk.Graph.from_file(path, header=True)) == 30
    assert len(fk.Graph.from_file(path, header=False)) == 31


def test_lenient_leaves_malformed_rows_out(tmp_path: Path) -> None:
    path = write(tmp_path / "g.tsv", "a\tb\tc\nonly\ttwo\nc\tb\ta\n")
    with pytest.raises(fk.errors.LoadError, match=r"g\.tsv:2: expected 3 tab-separated fields, found 2"):
        fk.Graph.from_file(path, header=False)
    with pytest.warns(fk.errors.GraphWarning, match="1 of 3 rows skipped as malformed"):
        graph = fk.Graph.from_file(path, header=False, lenient=True)
    assert triples_of(graph) == [("a", "b", "c"), ("c", "b", "a")]


# Triples and frames


def pandas_frame(**options: object) -> pandas.DataFrame:
    return pandas.DataFrame(COLUMNS, **options)


FRAMES = {
    "pandas": lambda: pandas_frame(),
    "pandas object": lambda: pandas_frame(dtype=object),
    "pandas string": lambda: pandas_frame(dtype="string"),
    "pandas string[pyarrow]": lambda: pandas_frame(dtype="string[pyarrow]"),
    "pandas category": lambda: pandas_frame(dtype="category"),
    "pandas odd index": lambda: pandas_frame(index=[f"row {i}" for i in range(len(TRIPLES))]),
    "pandas double index": lambda: pandas_frame(index=[0] * len(TRIPLES)),
    "pandas multi-index": lambda: pandas_frame(index=[[1] * len(TRIPLES), list(range(len(TRIPLES)))]),
    "pandas named index": lambda: pandas_frame(index=pandas.Index(range(len(TRIPLES)), name="head")),
    "pandas integer columns": lambda: pandas.DataFrame(TRIPLES),
    "pandas more columns": lambda: pandas_frame().assign(weight=1.5),
    "polars": lambda: polars.DataFrame(COLUMNS),
    "polars lazy": lambda: polars.LazyFrame(COLUMNS),
    "polars categorical": lambda: polars.DataFrame(COLUMNS).cast(polars.Categorical),
    "polars chunks": lambda: polars.concat(
        [polars.DataFrame(COLUMNS)[:5], polars.DataFrame(COLUMNS)[5:]], rechunk=False),
    "pyarrow table": lambda: pyarrow.table(COLUMNS),
    "pyarrow dictionary": lambda: pyarrow.table(
        {name: pyarrow.array(column).dictionary_encode() for name, column in COLUMNS.items()}),
    "pyarrow large string": lambda: pyarrow.table(
        {name: pyarrow.array(column, pyarrow.large_string()) for name, column in COLUMNS.items()}),
    "pyarrow batch": lambda: pyarrow.RecordBatch.from_pydict(COLUMNS),
    "pyarrow reader": lambda: pyarrow.table(COLUMNS).to_reader(max_chunksize=3),
    "duckdb": lambda: duckdb.from_arrow(pyarrow.table(COLUMNS)),
    "flock table": lambda: fk.Graph.from_triples(TRIPLES).triples(),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_give_the_same_graph(model: fk.Model, kind: str) -> None:
    make = FRAMES[kind]
    load = {"pandas": fk.Graph.from_pandas, "polars": fk.Graph.from_polars}.get(kind.split()[0], fk.Graph.from_arrow)
    graph = load(make())
    assert triples_of(graph) == sorted(TRIPLES)
    # Rows in the same order give the same answers to the last bit. Ours are in the order of the graph.
    same = fk.Graph.from_triples(make() if kind == "flock table" else TRIPLES)
    for asked in [("Portugal", "member of", None), ("Portugal", None, "Spain")]:
        assert model.predict(graph, *asked, walks=4).to_dicts() == model.predict(same, *asked, walks=4).to_dicts()


@pytest.mark.parametrize("kind", ["pandas", "polars", "polars lazy", "pyarrow table", "duckdb"])
def test_from_triples_takes_frames_too(kind: str) -> None:
    assert triples_of(fk.Graph.from_triples(FRAMES[kind]())) == sorted(TRIPLES)


def test_triples_are_any_iterable(small: fk.Graph) -> None:
    assert triples_of(fk.Graph.from_triples(iter(TRIPLES))) == sorted(TRIPLES)
    assert triples_of(fk.Graph.from_triples(row for row in TRIPLES)) == sorted(TRIPLES)
    assert triples_of(fk.Graph.from_triples(TRIPLES + TRIPLES[:3])) == sorted(TRIPLES)
    assert (small.num_entities, small.num_relations, small.num_triples) == (18, 4, 16)
    assert repr(small) == 'Graph("graph": 18 entities, 4 relations, 16 triples)'


@pytest.mark.parametrize("columns", [("who", "what", "whom"), (1, 0, 3)])
@pytest.mark.parametrize("library", [pandas, polars, pyarrow])
def test_columns_of_a_frame_by_name_and_from_0(library: object, columns: tuple) -> None:
    data = {"what": RELATIONS, "who": HEADS, "when": ["now"] * len(TRIPLES), "whom": TAILS}
    frame = pyarrow.table(data) if library is pyarrow else library.DataFrame(data)
    assert triples_of(fk.Graph.from_arrow(frame, columns=columns)) == sorted(TRIPLES)


def test_whole_numbers_are_names() -> None:
    graph = fk.Graph.from_pandas(pandas.DataFrame({"head": [1, 2], "relation": [7, 7], "tail": [2, 3]}))
    assert triples_of(graph) == [("1", "7", "2"), ("2", "7", "3")]


def test_a_missing_cell_is_an_error_or_left_out() -> None:
    frame = pandas.DataFrame({"head": ["a", None], "relation": ["r", "r"], "tail": ["b", "c"]})
    with pytest.raises(fk.errors.LoadError, match=r"hint: .*lenient=True"):
        fk.Graph.from_pandas(frame)
    with pytest.warns(fk.errors.GraphWarning, match="1 of 2 rows skipped"):
        assert triples_of(fk.Graph.from_pandas(frame, lenient=True)) == [("a", "r", "b")]


def test_an_object_column_of_numbers_and_texts_is_no_crash() -> None:
    frame = pandas.DataFrame({"head": [1, "a"], "relation": ["r", "r"], "tail": ["b", "c"]})
    try:
        graph = fk.Graph.from_pandas(frame)
    except fk.errors.LoadError:
        return
    assert triples_of(graph) == [("1", "r", "b"), ("a", "r", "c")]


PANDAS_WITHOUT_PYARROW = """
import pandas, flock_kg as fk
frame = pandas.DataFrame({"head": ["a", "b", "é"], "relation": ["r", "r", "r"], "tail": ["b", "c", "a"], 5: [1, 2, 3]},
                         index=[7, 7, 7])
graph = fk.Graph.from_pandas(frame)
assert sorted(tuple(row.values()) for row in graph.triples()) == [("a", "r", "b"), ("b", "r", "c"), ("é", "r", "a")]
questions = pandas.DataFrame({"head": ["a", None], "relation": ["r", "r"], "tail": [None, "c"]})
model = fk.Model.bundled(threads=1)
answers = model.predict_many(graph, questions, walks=4)
assert answers.to_dicts() == model.predict_many(graph, [("a", "r", None), (None, "r", "c")], walks=4).to_dicts()
back = answers.to_pandas()
assert list(back.columns) == answers.columns
assert back["logit"].tolist() == answers["logit"] and back["answer"].tolist() == answers["answer"]
assert "pyarrow" not in {name.split(".")[0] for name, module in sys.modules.items() if module is not None}
print("done")
"""


def test_pandas_without_pyarrow(python) -> None:
    assert python(PANDAS_WITHOUT_PYARROW, without=("pyarrow", "polars")) == "done\n"


# Graphs of other libraries


def test_networkx() -> None:
    graph = networkx.DiGraph()
    graph.add_node("Q1", label="Lisbon")
    graph.add_edge("Q1", "Q2", relation="capital of")
    graph.add_edge("Q2", 3, relation="borders")
    made = fk.Graph.from_networkx(graph)
    assert triples_of(made) == [("Q1", "capital of", "Q2"), ("Q2", "borders", "3")]
    assert made.label("Q1") == "Lisbon" and made.label("Q2") is None


def test_networkx_multigraph_with_keys() -> None:
    graph = networkx.MultiDiGraph()
    graph.add_edge("a", "b", key="likes")
    graph.add_edge("a", "b", key="knows")
    graph.add_edge("b", "a", key="likes", relation="loves")
    assert triples_of(fk.Graph.from_networkx(graph)) == [("a", "knows", "b"), ("a", "likes", "b"), ("b", "loves", "a")]
    numbered = networkx.MultiDiGraph([("a", "b", {"relation": "likes"}), ("a", "b", {"relation": "knows"})])
    assert triples_of(fk.Graph.from_networkx(numbered)) == [("a", "knows", "b"), ("a", "likes", "b")]


def test_networkx_undirected() -> None:
    graph = networkx.Graph()
    graph.add_edge("a", "b", relation="meets")
    graph.add_edge("c", "b", relation="meets")
    made = triples_of(fk.Graph.from_networkx(graph))
    assert {frozenset((head, tail)) for head, _, tail in made} == {frozenset("ab"), frozenset("bc")}
    assert len(made) == 2


def test_networkx_attribute_of_another_name_and_default() -> None:
    graph = networkx.DiGraph()
    graph.add_edge("a", "b", kind="likes")
    graph.add_edge("b", "c")
    assert triples_of(fk.Graph.from_networkx(graph, relation="kind", default="linked")) == [
        ("a", "likes", "b"), ("b", "linked", "c")]
    with pytest.raises(fk.errors.QuestionError, match="the edge from 'b' to 'c' has no attribute 'kind'") as caught:
        fk.Graph.from_networkx(graph, relation="kind")
    assert "default=" in caught.value.remedy


def test_rdflib() -> None:
    graph = rdflib.Graph()
    graph.parse(data=TURTLE, format="turtle")
    made = fk.Graph.from_rdflib(graph)
    assert triples_of(made) == RDF_TRIPLES
    assert made.label(f"{EX}lisbon") == "Lisbon"
    assert fk.Graph.from_rdflib(graph, languages=["de"]).label(f"{EX}lisbon") == "Lissabon"
    assert any("literal" in note for note in made.notes), made.notes


# The N-Quads writer of rdflib uses a deprecated name of rdflib.
@pytest.mark.filterwarnings("ignore:Dataset:DeprecationWarning")
def test_rdflib_dataset() -> None:
    dataset = rdflib.Dataset()
    name = rdflib.Namespace(EX)
    dataset.graph(name.one).add((name.lisbon, name.capitalOf, name.portugal))
    dataset.graph(name.two).add((name.portugal, name.borders, name.spain))
    dataset.default_graph.add((name.madrid, name.capitalOf, name.spain))
    assert triples_of(fk.Graph.from_rdflib(dataset)) == RDF_TRIPLES


def test_pykeen_factory_and_dataset() -> None:
    """A stand-in with what a TriplesFactory has: PyKEEN itself needs PyTorch."""
    ids = [[0, 0, 1], [1, 1, 2]]
    factory = SimpleNamespace(mapped_triples=SimpleNamespace(tolist=lambda: ids),
                              entity_to_id={"Lisbon": 0, "Portugal": 1, "Spain": 2},
                              relation_to_id={"capital of": 0, "borders": 1})
    expected = [("Lisbon", "capital of", "Portugal"), ("Portugal", "borders", "Spain")]
    assert triples_of(fk.Graph.from_pykeen(factory)) == expected
    assert triples_of(fk.Graph.from_pykeen(SimpleNamespace(training=factory))) == expected
    bare = SimpleNamespace(mapped_triples=factory.mapped_triples)
    assert triples_of(fk.Graph.from_pykeen(bare)) == [("0", "0", "1"), ("1", "1", "2")]
    with pytest.raises(fk.errors.QuestionError, match="expected a TriplesFactory"):
        fk.Graph.from_pykeen(object())


# Names and labels


LABELLED = [("Q1", "P1", "Q2"), ("Q2", "P1", "Q3"), ("Q3", "P1", "Q1")]
LABELS = {"Q1": "Lisbon", "Q2": "Springfield", "Q3": "Springfield", "P1": "twinned with"}


def test_labels_are_shown_and_found(model: fk.Model) -> None:
    graph = fk.Graph.from_triples(LABELLED, labels=LABELS)
    assert graph.label("Q1") == "Lisbon" and graph.label("P1") == "twinned with" and graph.label("nobody") is None
    assert graph.find_entity("lisbon") == "Q1" and graph.find_relation("Twinned With") == "P1"
    by_label = model.predict(graph, "Lisbon", "twinned with", None, walks=4)
    by_name = model.predict(graph, "Q1", "P1", None, walks=4)
    assert by_label.to_dicts() == by_name.to_dicts()
    assert set(by_label["answer"]) == {"Q1", "Q2", "Q3"} and set(by_label["label"]) == {"Lisbon", "Springfield"}
    assert repr(by_label).splitlines()[0] == "Lisbon  twinned with  ?"
    assert "Springfield (Q2)" in repr(by_label)
    assert repr(model.predict(graph, "Q1", "P1", None, walks=4, ids=True)).splitlines()[0] == "Q1  P1  ?"


def test_with_labels_is_a_new_graph() -> None:
    plain = fk.Graph.from_triples(LABELLED)
    graph = plain.with_labels({"Q1": "Lisbon", "nobody": "else"})
    assert graph.label("Q1") == "Lisbon" and plain.label("Q1") is None
    assert triples_of(graph) == triples_of(plain)


def test_a_file_of_labels(tmp_path: Path) -> None:
    path = write(tmp_path / "g.tsv", "".join("\t".join(row) + "\n" for row in LABELLED))
    labels = write(tmp_path / "labels.tsv", "name\tlabel\nQ1\tLisbon\nQ9\tNobody\n")
    graph = fk.Graph.from_file(path, header=False, labels=labels)
    assert graph.label("Q1") == "Lisbon"
    assert any("1 of 2 labels are for names that the graph does not have" in note for note in graph.notes)


def test_several_fitting_names_are_listed() -> None:
    graph = fk.Graph.from_triples(LABELLED, labels=LABELS)
    with pytest.raises(fk.errors.UnknownNameError, match="could be any of 2 entities") as caught:
        graph.find_entity("Springfield")
    error = caught.value
    assert (error.kind, error.name) == ("entity", "Springfield")
    # What is listed can be asked for.
    assert [graph.find_entity(name) for name in error.near] == ["Q2", "Q3"]


@pytest.mark.parametrize("find, kind, text, near", [
    ("find_entity", "entity", "Portugl", "Portugal"),
    ("find_relation", "relation", "oficial_language", "official_language"),
])
def test_near_names(countries: fk.Graph, find: str, kind: str, text: str, near: str) -> None:
    with pytest.raises(fk.errors.UnknownNameError, match=f'unknown {kind} "{text}"; near names: "{near}"') as caught:
        getattr(countries, find)(text)
    assert (caught.value.kind, caught.value.name, caught.value.near[0]) == (kind, text, near)


# Changes


def test_add_and_remove_make_new_graphs(small: fk.Graph, model: fk.Model) -> None:
    before = triples_of(small)
    new = [("Atlantis", "member of", "African Union"), ("Atlantis", "borders", "Portugal")]
    more = small.add(new)
    assert triples_of(more) == sorted(TRIPLES + new)
    assert len(more) == 18 and len(small) == 16 and triples_of(small) == before
    assert new[0] in more and new[0] not in small
    known = [row["answer"] for row in model.predict(more, "Atlantis", "borders", None, walks=4, top=0) if row["known"]]
    assert known == ["Portugal"]
    less = more.remove(new + [("nobody", "knows", "this")])
    assert triples_of(less) == before and len(more) == 18
    assert triples_of(small.remove(polars.DataFrame(COLUMNS)[:15])) == [TRIPLES[15]]


def test_add_gives_the_answers_of_the_whole_graph(model: fk.Model, small: fk.Graph) -> None:
    grown = fk.Graph.from_triples(TRIPLES[:10]).add(TRIPLES[10:])
    asked = ("Portugal", "member of", None)
    assert model.predict(grown, *asked, walks=4).to_dicts() == model.predict(small, *asked, walks=4).to_dicts()


def test_add_does_not_take_empty_names(small: fk.Graph) -> None:
    with pytest.raises(fk.FlockError, match="empty"):
        small.add([("", "member of", "R&D")])


def test_contains_and_len(countries: fk.Graph) -> None:
    assert ("Portugal", "borders", "Spain") in countries
    assert ("Portugal", "borders", "Atlantis") not in countries
    assert ("Spain", "capital", "Portugal") not in countries
    assert len(countries) == countries.num_triples == len(countries.triples()) == 688
    assert len(countries.entities) == countries.num_entities == 252
    assert len(countries.relations) == countries.num_relations == 8


def test_html_of_a_graph_is_escaped() -> None:
    html = fk.Graph.from_triples([("a", "<script>alert(1)</script>", "b")])._repr_html_()
    assert "<script" not in html and "&lt;script&gt;alert(1)&lt;/script&gt; (1)" in html


def test_what_is_no_triple_is_not_in_a_graph(small: fk.Graph) -> None:
    assert "Lisbon" not in small and ("Lisbon", "capital of") not in small and None not in small
