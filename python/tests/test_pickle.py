"""Pickles of graphs, models and tables, and pools of processes, forked or spawned."""

from __future__ import annotations

import copy
import hashlib
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import flock_kg as fk
from flock_kg import errors
from conftest import python_environment, triples_of

ASKED = [("Portugal", "borders", None), ("Portugal", None, "Spain")]


def again(value):
    return pickle.loads(pickle.dumps(value))


def answers(model: fk.Model, graph: fk.Graph) -> list:
    return [model.predict(graph, *asked, walks=4).to_dicts() for asked in ASKED]


# Graphs


def test_graph_by_content(model: fk.Model, small: fk.Graph, countries: fk.Graph) -> None:
    for graph in (small, countries):
        other = again(graph)
        assert triples_of(other) == triples_of(graph) and repr(other) == repr(graph)
        assert other.entities == graph.entities and other.relations == graph.relations
    assert answers(model, again(countries)) == answers(model, countries)
    assert answers(model, copy.deepcopy(countries)) == answers(model, countries)


def test_labels_notes_and_changes_are_kept(tmp_path: Path, model: fk.Model) -> None:
    path = tmp_path / "g.tsv"
    path.write_text("head\trelation\ttail\nQ1\tP1\tQ2\nQ2\tP1\tQ3\n")
    graph = fk.Graph.from_file(path).with_labels({"Q1": "Lisbon"}).add([("Q3", "P1", "Q1")])
    other = again(graph)
    assert other.label("Q1") == "Lisbon" and ("Q3", "P1", "Q1") in other and len(other) == 3
    assert other.name == graph.name and again(fk.Graph.from_file(path)).notes == [f"{path}: left out: header row"]
    one, two = (model.predict(g, "Lisbon", "P1", None, walks=4) for g in (other, graph))
    assert one.to_dicts() == two.to_dicts() and repr(one) == repr(two)


def test_a_graph_from_a_file_needs_the_file_no_more(countries: fk.Graph, tmp_path: Path) -> None:
    path = tmp_path / "g.tsv"
    countries.triples().save(path)
    data = pickle.dumps(fk.Graph.from_file(path))
    path.unlink()
    assert triples_of(pickle.loads(data)) == triples_of(countries)


def test_graph_by_path(model: fk.Model, countries: fk.Graph, tmp_path: Path) -> None:
    path = tmp_path / "g.tsv"
    countries.triples().save(path)
    graph = fk.Graph.from_file(path, pickle="path", columns=("head", "relation", "tail"))
    data = pickle.dumps(graph)
    assert len(data) < 1000 < len(pickle.dumps(fk.Graph.from_file(path)))
    other = pickle.loads(data)
    assert answers(model, other) == answers(model, graph)
    assert len(pickle.dumps(other)) < 1000, "it is by path again"
    # A changed graph is no longer that of the file.
    assert len(again(graph.add([("a", "b", "c")]))) == len(graph) + 1
    # A changed file is an error, and so is a file that has gone.
    with open(path, "a") as file:
        file.write("Atlantis\tborders\tPortugal\n")
    with pytest.raises(fk.FlockError, match='other triples than when the graph was pickled; hint: .*"content"'):
        pickle.loads(data)
    path.unlink()
    with pytest.raises(fk.errors.GraphNotFoundError):
        pickle.loads(data)


def test_calibrations_travel_with_the_graph(model: fk.Model) -> None:
    graph = fk.Graph.bundled()
    model.calibrate(graph, queries=30, walks=4)
    other = again(graph)
    assert other.calibration.info == graph.calibration.info
    assert answers(model, other) == answers(model, graph)


def test_calibration(model: fk.Model, countries: fk.Graph) -> None:
    made = model.calibrate(fk.Graph.bundled(), queries=30, walks=4)
    other = again(made)
    assert other.info == made.info and other.svg == made.svg and repr(other) == repr(made)
    one, two = (model.predict(countries, *ASKED[0], walks=4, calibration=c) for c in (other, made))
    assert one.to_dicts() == two.to_dicts() and one.info["probability_from"] == "graph"


# Models


def test_bundled_model(model: fk.Model, countries: fk.Graph) -> None:
    data = pickle.dumps(fk.Model.bundled(threads=1, precision="bf16"))
    assert len(data) < 1000, "the weights are in the package"
    other = pickle.loads(data)
    assert other.threads == 1 and other.precision == "bf16" and other.tasks == ["entity", "relation"]
    assert answers(again(model), countries) == answers(model, countries)


def test_model_from_a_file(model: fk.Model, countries: fk.Graph, tmp_path: Path) -> None:
    path = tmp_path / "entity.safetensors"
    model.save(path)
    data = pickle.dumps(fk.Model.from_file(path, threads=1))
    by_path = pickle.dumps(fk.Model.from_file(path, pickle="path"))
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    expected = fk.Model.from_file(path).predict(countries, *ASKED[0], walks=4).to_dicts()
    assert [row["logit"] for row in expected] == model.predict(countries, *ASKED[0], walks=4)["logit"]
    assert len(by_path) < 1000 < len(data)
    assert pickle.loads(by_path).predict(countries, *ASKED[0], walks=4).to_dicts() == expected
    path.unlink()
    other = pickle.loads(data)
    assert other.threads == 1 and other.tasks == ["entity"] and other.sha256() == sha256
    assert other.predict(countries, *ASKED[0], walks=4).to_dicts() == expected
    with pytest.raises(fk.errors.ModelNotFoundError):
        pickle.loads(by_path)


def test_tuned_model(model: fk.Model, ring: fk.Graph, tmp_path: Path) -> None:
    tuned = model.finetune(ring, steps=1, batch=2, negatives=8, out=tmp_path / "run")
    other = again(tuned)
    assert other.training == tuned.training and other.sha256() == tuned.sha256() and other.tasks == tuned.tasks
    one, two = (m.predict(ring, "a0", "x", None, walks=4) for m in (other, tuned))
    assert one.to_dicts() == two.to_dicts()


# Tables


def test_table(model: fk.Model, small: fk.Graph) -> None:
    table = model.predict_many(small, [("Portugal", "borders", None), ("Portugal", None, "Spain")], walks=4, top=3)
    for other, one in ((again(table), table), (again(table[1:3]), table[1:3]), (again(table[:0]), table[:0])):
        assert other.to_dicts() == one.to_dicts() and other.columns == one.columns and other.info == one.info
        assert repr(other) == repr(one) and other._repr_html_() == one._repr_html_()
        assert other.to_arrow().equals(one.to_arrow())


# Pools of processes


POOL = """
import concurrent.futures, multiprocessing, pickle, sys
import flock_kg as fk

QUESTIONS = [("Portugal", "borders", None), (None, "capital", "Lisbon"), ("Portugal", None, "Spain")]

def ask(job):
    model, graph, question = job
    return model.predict(graph, *question, walks=4)

def ask_global(question):
    return MODEL.predict(GRAPH, *question, walks=4)

if __name__ == "__main__":
    MODEL, GRAPH = fk.Model.bundled(), fk.Graph.bundled()
    expected = [ask_global(question).to_dicts() for question in QUESTIONS]  # the parent has used its model
    stream = MODEL.stream(GRAPH, *QUESTIONS[0], walks=4, passes=2)
    next(stream)
    context = multiprocessing.get_context(sys.argv[1])
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        tables = list(pool.map(ask, [(MODEL, GRAPH, question) for question in QUESTIONS]))
        assert [table.to_dicts() for table in tables] == expected
        if sys.argv[1] == "fork":  # the objects of the parent itself, without a pickle
            assert [table.to_dicts() for table in pool.map(ask_global, QUESTIONS)] == expected
            many = list(pool.map(ask_global, QUESTIONS * 4))
            assert [table.to_dicts() for table in many] == expected * 4
    assert [ask_global(question).to_dicts() for question in QUESTIONS] == expected  # and the parent goes on
    print("same")
"""


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_process_pool(start: str, tmp_path: Path) -> None:
    script = tmp_path / "pool.py"
    script.write_text(POOL)
    child = subprocess.Popen([sys.executable, script, start], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env={**python_environment(), "PYTHONWARNINGS": ""}, start_new_session=True)
    try:
        out, said = child.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, 9)  # the session that was started above, and no other
        out, said = child.communicate()
        pytest.fail(f"{start}: it hangs\n{said}")
    assert (child.returncode, out) == (0, "same\n"), said


def test_a_model_by_path_is_refused_if_its_file_has_another_one(model: fk.Model, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    model.save(path, task="entity")
    pickled = pickle.dumps(fk.Model.from_file(path, pickle="path"))
    assert pickle.loads(pickled).sha256() == model.sha256()
    model.save(path, task="relation")
    with pytest.raises(errors.ModelError, match="has another model than when it was pickled"):
        pickle.loads(pickled)


def test_a_graph_by_a_relative_path_is_found_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "g.tsv").write_text("a\tr\tb\n")
    monkeypatch.chdir(tmp_path)
    pickled = pickle.dumps(fk.Graph.from_file("g.tsv", pickle="path"))
    monkeypatch.chdir("/")
    assert pickle.loads(pickled).entities == ["a", "b"]
