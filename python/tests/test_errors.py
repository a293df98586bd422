"""Errors: each class is raised by something real, says what to do in Python's words, and fits Python's own classes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Callable, Dict, Tuple, Type

import pandas
import polars
import pytest

import flock_kg as fk
from flock_kg import errors


class Place:
    """What the errors below are made with."""

    def __init__(self, model: fk.Model, graph: fk.Graph, ring: fk.Graph, directory: Path) -> None:
        self.model, self.graph, self.ring, self.directory = model, graph, ring, directory

    def file(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        return path

    def ask(self, *question: Any, **options: Any) -> fk.Table:
        return self.model.predict(self.graph, *(question or ("Portugal", "borders", None)), **options)

    def entity_model(self) -> fk.Model:
        self.model.save(self.directory / "entity.safetensors", task="entity")
        return fk.Model.from_file(self.directory / "entity.safetensors")


FOUR = {"w": ["a"], "x": ["b"], "y": ["c"], "z": ["d"]}
ONE = [("Portugal", "borders", "Spain")]

#: What is done, the class of the error, and a part of its message.
CASES: Dict[str, Tuple[Callable[[Place], object], Type[errors.FlockError], str]] = {
    # Graphs
    "no file": (
        lambda p: fk.Graph.from_file(p.directory / "no.tsv"),
        errors.GraphNotFoundError, r"no\.tsv: no such file",
    ),
    "four fields": (
        lambda p: fk.Graph.from_file(p.file("g.tsv", "a\tb\tc\td\ne\tf\tg\th\n")),
        errors.LoadError, r"g\.tsv:1: expected 3 tab-separated fields, found 4; hint: columns=\(0, 1, 2\)",
    ),
    "four fields of CSV": (
        lambda p: fk.Graph.from_file(p.file("g.csv", "a,b,c\na,b,c,d\n"), header=False),
        errors.LoadError, r"hint: columns=\(0, 1, 2\), or quote names that contain commas",
    ),
    "two fields": (
        lambda p: fk.Graph.from_file(p.file("g.tsv", "a\tb\n")),
        errors.LoadError, "found 2; hint: a triple needs",
    ),
    "no rows": (lambda p: fk.Graph.from_file(p.file("g.tsv", "")), errors.LoadError, "no triples"),
    "column too far": (
        lambda p: fk.Graph.from_file(p.file("g.tsv", "a\tb\tc\n"), columns=(0, 1, 5), header=False),
        errors.LoadError, "expected at least 6 tab-separated fields, found 3; hint: columns= counts from 0",
    ),
    "no such column": (
        lambda p: fk.Graph.from_file(p.file("g.tsv", "head\trelation\ttail\na\tb\tc\n"), columns=("a", "b", "c")),
        errors.LoadError, r'no column "a".*columns=\("head", "relation", "tail"\)',
    ),
    "columns of RDF": (
        lambda p: fk.Graph.from_file(p.file("g.ttl", "<e:a> <e:b> <e:c> .\n"), columns=(0, 1, 2)),
        errors.LoadError, "hint: leave columns= and header= out",
    ),
    "two columns": (
        lambda p: fk.Graph.from_polars(polars.DataFrame(FOUR), columns=(0, 1)),
        errors.QuestionError, r"columns= is no choice of three; hint: columns=\(0, 1, 2\), or three names",
    ),
    "column of a frame too far": (
        lambda p: fk.Graph.from_pandas(pandas.DataFrame(FOUR), columns=(0, 1, 4)),
        errors.LoadError, r"column 4\b.*hint: .*columns=",
    ),
    "no such column of a frame": (
        lambda p: fk.Graph.from_pandas(pandas.DataFrame(FOUR), columns=("w", "x", "q")),
        errors.LoadError, r'no column "q", expected one of w, x, y, z; hint: .*columns=',
    ),
    "unclear columns": (
        lambda p: fk.Graph.from_pandas(pandas.DataFrame(FOUR)),
        errors.LoadError, r'has columns w, x, y, z.*hint: .*columns=\("w", "x", "y"\)',
    ),
    "fractions": (
        lambda p: fk.Graph.from_pandas(pandas.DataFrame({"head": [1.5], "relation": ["r"], "tail": ["t"]})),
        errors.LoadError, 'column "head" has values of type Float64, expected text or whole numbers',
    ),
    "JSON": (
        lambda p: fk.Graph.from_file(p.file("g.json", '[{"head": "a"}]')),
        errors.LoadError, "expected JSON lines",
    ),
    "no keys": (
        lambda p: fk.Graph.from_file(p.file("g.jsonl", '{"x":"a","y":"b","z":"c"}\n')),
        errors.LoadError, "hint: columns= with the keys of head, relation and tail",
    ),
    "no Parquet": (
        lambda p: fk.Graph.from_file(p.file("g.parquet", "text")),
        errors.LoadError, "hint: format= one of tsv, csv",
    ),
    "no Turtle": (lambda p: fk.Graph.from_file(p.file("g.ttl", "<e:a> <e:b> .\n")), errors.LoadError, r"g\.ttl:1:"),
    "no format": (
        lambda p: fk.Graph.from_file(p.file("g.tsv", "a\tb\tc\n"), format="xls"),
        errors.QuestionError, 'unknown format "xls"',
    ),
    "no way to pickle": (
        lambda p: fk.Graph.from_file(p.file("g.tsv", "a\tb\tc\n"), pickle="x"),
        errors.QuestionError, "pickle=",
    ),
    "no bundled graph": (lambda p: fk.Graph.bundled("world"), errors.QuestionError, 'hint: "countries" or "medicines"'),
    "pairs": (
        lambda p: fk.Graph.from_triples([("a", "r", "b"), ("a", "b")]),
        errors.QuestionError, "^triples: row 1 is 2 fields, expected head, relation and tail; hint: a frame, or tuples",
    ),
    "no tail": (
        lambda p: fk.Graph.from_triples([("a", "b", None)]),
        errors.QuestionError, "row 0 has no head, relation or tail",
    ),
    "empty name": (lambda p: fk.Graph.from_triples([("a", "", "c")]), errors.QuestionError, "row 0 has an empty name"),
    "no triples": (lambda p: fk.Graph.from_triples([]), errors.LoadError, "no triples"),
    "no frame": (lambda p: fk.Graph.from_arrow([1]), errors.QuestionError, "found list, expected a frame"),
    # Questions
    "unknown entity": (lambda p: p.ask("Portugl", "borders", None), errors.UnknownNameError, 'near names: "Portugal"'),
    "unknown relation": (lambda p: p.ask("Portugal", "bordrs", None), errors.UnknownNameError, 'near names: "borders"'),
    "nothing is near": (
        lambda p: p.ask("Xyzzyx", "borders", None),
        errors.UnknownNameError, "no name is near; hint: the graph has",
    ),
    "no blank": (
        lambda p: p.ask(*ONE[0]),
        errors.QuestionError, r"found none; hint: None \(or \"\?\"\) where the answer goes; Model.score",
    ),
    "two blanks": (lambda p: p.ask("Portugal", None, None), errors.QuestionError, "found 2; hint: name the other two"),
    "no walks": (lambda p: p.ask(walks=0), errors.QuestionError, "found walks=0; hint: walks= from 1 to 16384"),
    "too many passes": (
        lambda p: p.ask(passes=5000),
        errors.QuestionError, "found passes=5000; hint: passes= from 1 to 4096",
    ),
    "negative budget": (lambda p: p.ask(budget=-1), errors.QuestionError, "hint: budget= a number of seconds"),
    "no candidates": (lambda p: p.ask(among=[]), errors.QuestionError, "hint: among=None ranks all"),
    "unknown candidates": (lambda p: p.ask(among=["Portugl"]), errors.UnknownNameError, "^among: unknown entity"),
    "nobody fits": (
        lambda p: p.ask(among_type=("continent", "Spain")),
        errors.QuestionError, "hint: leave one of among=, among_type=",
    ),
    "unknown type": (
        lambda p: p.ask(among_type=("contnent", "Asia")),
        errors.UnknownNameError, 'near names: "continent"',
    ),
    "entities for a relation": (
        lambda p: p.ask("Portugal", None, "Spain", among_domain="capital"),
        errors.QuestionError, "hint: ask for a head or a tail",
    ),
    "no way to go on": (
        lambda p: p.model.predict_many(p.graph, [], on_error="ignore"),
        errors.QuestionError, 'on_error="raise" or "skip"',
    ),
    "questions of texts": (
        lambda p: p.model.predict_many(p.graph, ["abc"]),
        errors.QuestionError, "^questions: row 0 is one text, expected head, relation and tail; hint: a frame",
    ),
    "a file of no format": (
        lambda p: p.model.predict_many(p.graph, [], out=p.directory / "x.xls"),
        errors.QuestionError, r"hint: a name that ends in .csv, .tsv, .jsonl, .md or .parquet$",
    ),
    "no directory": (
        lambda p: p.model.predict_many(p.graph, [], out=p.directory / "no" / "x.csv"),
        errors.FlockError, "No such file",
    ),
    "no such blank": (lambda p: p.model.explain(p.graph, *ONE[0], blank="x"), errors.QuestionError, 'found blank="x"'),
    "an open triple": (
        lambda p: p.model.explain(p.graph, "Portugal", "borders", "?"),
        errors.QuestionError, "blank= says which",
    ),
    "a blank to score": (
        lambda p: p.model.score(p.graph, [("Portugal", "borders", None)]),
        errors.QuestionError, r"^triple 0: .*; hint: three names; Model.predict\(graph, …\) is for questions",
    ),
    "an unknown triple": (
        lambda p: p.model.score(p.graph, [*ONE, ("Portugal", "borders", "Spaim")]),
        errors.UnknownNameError, "^triple 1: unknown entity",
    ),
    "no way to go on scoring": (
        lambda p: p.model.score(p.graph, ONE, on_error="ignore"),
        errors.QuestionError, 'on_error="raise" or "skip"',
    ),
    "no such shard": (
        lambda p: p.model.complete(p.graph, shard=(2, 2)),
        errors.QuestionError, r"hint: shard=\(0, 2\) to \(1, 2\)",
    ),
    "no such pairs": (
        lambda p: p.model.complete(p.graph, pairs="x"),
        errors.QuestionError, "observed, compatible, all",
    ),
    "no such search": (lambda p: p.model.complete(p.graph, search="x"), errors.QuestionError, "tails, heads, both"),
    "no such ranking": (lambda p: p.model.complete(p.graph, rank_by="x"), errors.QuestionError, "score, specificity"),
    "nothing to list": (lambda p: p.model.complete(p.graph, top=0), errors.QuestionError, "hint: top= from 1 to"),
    "unknown scope": (
        lambda p: p.model.complete(p.graph, relation="bordrs"),
        errors.UnknownNameError, 'near names: "borders"',
    ),
    "no such doubt": (
        lambda p: p.model.doubtful(p.graph, relation="bordrs"),
        errors.UnknownNameError, 'near names: "borders"',
    ),
    # Models
    "no model file": (
        lambda p: fk.Model.from_file(p.directory / "no.safetensors"),
        errors.ModelNotFoundError, "hint: check the path",
    ),
    "no file named": (lambda p: fk.Model.from_file(), errors.QuestionError, r"Model.bundled\(\)"),
    "no model": (
        lambda p: fk.Model.from_file(p.file("m.safetensors", "x" * 20)),
        errors.ModelError, "not a safetensors file",
    ),
    "a directory": (lambda p: fk.Model.from_file(p.directory), errors.ModelError, "Is a directory"),
    "one task twice": (
        lambda p: (p.entity_model(), fk.Model.from_file(*[p.directory / "entity.safetensors"] * 2)),
        errors.ModelError, "both entity models.*hint: give one file for each task",
    ),
    "not its task": (
        lambda p: p.entity_model().predict(p.graph, "Portugal", None, "Spain"),
        errors.ModelError,
        r"hint: Model.from_file\(…\) with a file trained for the relation task, or Model.bundled\(\)",
    ),
    "no such task": (lambda p: p.model.sha256("x"), errors.QuestionError, 'hint: task="entity" or "relation"'),
    "too many threads": (
        lambda p: fk.Model.bundled(threads=100_000),
        errors.QuestionError, "found threads=100000; hint: threads= from 1 to 1024, or None for all",
    ),
    "no such precision": (
        lambda p: fk.Model.bundled(precision="f16"),
        errors.QuestionError, 'hint: precision="f32" or "bf16"',
    ),
    # Unfinished work
    "a state of something else": (
        lambda p: p.model.complete(p.graph, state=p.file("state", "junk")),
        errors.StateError, "hint: another state=, or remove the file",
    ),
    "a journal of something else": (
        lambda p: p.model.score(p.graph, ONE, state=p.file("state", "junk" * 50)),
        errors.StateError, "hint: remove it to begin anew",
    ),
    "a short journal of something else": (
        lambda p: p.model.score(p.graph, ONE, state=p.file("state", "junk")),
        errors.StateError, "hint: remove it to begin anew",
    ),
    # Evaluation, training, calibration
    "all is hidden": (
        lambda p: p.model.evaluate(p.graph, holdout=1.5),
        errors.DatasetError, "found 1.5.*above 0 and below 1",
    ),
    "nothing is asked": (lambda p: p.model.evaluate(p.graph, limit=0), errors.FlockError, "limit"),
    "no dataset": (
        lambda p: p.model.evaluate_dataset(p.directory / "no"),
        errors.FlockError, "no such directory; hint: a directory with",
    ),
    "an empty dataset": (
        lambda p: p.model.evaluate_dataset(p.directory),
        errors.DatasetError, "train.txt: no such file",
    ),
    "no such split": (
        lambda p: p.model.evaluate_dataset(p.directory, split="x"),
        errors.QuestionError, 'split="test" or "valid"',
    ),
    "no such passes": (
        lambda p: p.model.evaluate_dataset(p.directory, passes="x"),
        errors.QuestionError, 'found passes="x"',
    ),
    "nothing published": (
        lambda p: p.model.evaluate(p.graph, limit=1, walks=4).beside_published(),
        errors.QuestionError, r"no published numbers; hint: evaluate_dataset\(directory\)",
    ),
    "too small": (
        lambda p: p.model.calibrate(fk.Graph.from_triples([("a", "b", "c")])),
        errors.CalibrationError, "expected at least 40",
    ),
    "too few questions": (
        lambda p: p.model.calibrate(fk.Graph.bundled(), queries=1, walks=4),
        errors.CalibrationError, "hint: a larger queries= or top=",
    ),
    "no calibration": (
        lambda p: fk.Calibration.from_file(p.file("c.json", "{}")),
        errors.CalibrationError, "hint: calibrate again",
    ),
    "no calibration file": (
        lambda p: fk.Calibration.from_file(p.directory / "no.json"),
        errors.CalibrationError, "No such file",
    ),
    "no such setting": (
        lambda p: p.model.finetune(p.ring, steps=1, settings={"bogus": 1}),
        errors.TrainingError, "unknown key `bogus`",
    ),
    "settings are a list": (
        lambda p: p.model.finetune(p.ring, steps=1, batch=2, negatives=8, settings=[1], out=p.directory / "run"),
        errors.FlockError, "settings",
    ),
    "no steps": (lambda p: p.model.finetune(p.ring, steps=0), errors.TrainingError, "^steps="),
    "no time": (lambda p: p.model.finetune(p.ring, minutes=-1), errors.TrainingError, "^minutes="),
    "no rate": (lambda p: p.model.finetune(p.ring, steps=1, rate=-1), errors.TrainingError, "^rate="),
    "no batch": (lambda p: p.model.finetune(p.ring, steps=1, batch=0), errors.TrainingError, "^batch="),
    "nothing to train on": (
        lambda p: p.model.finetune(p.directory / "no", steps=1, out=p.directory / "run"),
        errors.TrainingError, "no such file",
    ),
    # Tables
    # Unlike predict_many(out=), save() takes a format=.
    "no such file format": (
        lambda p: p.ask(walks=4).save(p.directory / "x.xls"),
        errors.QuestionError, "hint: a name that ends in .csv, .tsv, .jsonl, .md or .parquet, or format=$",
    ),
    "unknown file format": (
        lambda p: p.ask(walks=4).save(p.directory / "x", format="xls"),
        errors.QuestionError, "hint: format= one of csv",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_error(model: fk.Model, countries: fk.Graph, ring: fk.Graph, tmp_path: Path, case: str) -> None:
    provoke, kind, message = CASES[case]
    with pytest.raises(errors.FlockError) as caught:
        provoke(Place(model, countries, ring, tmp_path))
    error, text = caught.value, str(caught.value)
    assert type(error) is kind or kind is errors.FlockError, type(error)
    assert re.search(message, text, re.DOTALL), text
    # In Python's words: no flags of the command, and what is hinted at is the remedy.
    assert " --" not in text and "--" not in (error.remedy or ""), text
    hint = text.partition("; hint: ")[2]
    assert (error.remedy or "") == hint, (error.remedy, text)
    assert "\n" not in text


def test_every_class_is_raised() -> None:
    classes = {getattr(errors, name) for name in errors.__all__ if name.endswith("Error")}
    assert {kind for _, kind, _ in CASES.values()} == classes


@pytest.mark.parametrize("kind, bases", [
    (errors.LoadError, (ValueError,)), (errors.GraphNotFoundError, (errors.LoadError, FileNotFoundError)),
    (errors.QuestionError, (ValueError,)), (errors.UnknownNameError, (errors.QuestionError, LookupError)),
    (errors.ModelError, (ValueError,)), (errors.ModelNotFoundError, (errors.ModelError, FileNotFoundError)),
    (errors.CalibrationError, (ValueError,)), (errors.DatasetError, (ValueError,)),
    (errors.TrainingError, (ValueError,)), (errors.StateError, (ValueError,))])
def test_errors_are_pythons_too(kind: type, bases: tuple) -> None:
    assert issubclass(kind, fk.FlockError) and all(issubclass(kind, base) for base in bases)


@pytest.mark.parametrize("call", [
    lambda model, graph: model.predict(graph, 1, "borders", None),
    lambda model, graph: model.predict("graph", "Portugal", "borders", None),
    lambda model, graph: model.predict(graph, "Portugal", "borders"),
    lambda model, graph: model.predict(graph, "Portugal", "borders", None, 5),
    lambda model, graph: model.predict(graph, "Portugal", "borders", None, tops=5),
    lambda model, graph: model.predict(graph, "Portugal", "borders", None, among="Spain"),
    lambda model, graph: model.predict_many(graph, 5),
    lambda model, graph: model.finetune(5),
    lambda model, graph: fk.Graph.from_triples(5),
])
def test_wrong_types_are_type_errors(model: fk.Model, countries: fk.Graph, call: Callable) -> None:
    with pytest.raises(TypeError):
        call(model, countries)


def test_a_foreign_state_file_is_left_alone(model: fk.Model, countries: fk.Graph, tmp_path: Path) -> None:
    for text in ("junk", "junk" * 100):
        for work in (lambda state: model.score(countries, ONE, walks=4, state=state),
                     lambda state: model.complete(countries, head="Spain", relation="borders", walks=4, state=state)):
            state = tmp_path / "notes.txt"
            state.write_text(text)
            with pytest.raises(errors.StateError):
                work(state)
            assert state.read_text() == text


def test_errors_survive_pickling() -> None:
    import pickle

    with pytest.raises(errors.UnknownNameError) as caught:
        fk.Graph.bundled().find_entity("Portugl")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and again.near == ["Portugal"] and again.kind == "entity"
