"""Several Python threads with one model: the same answers, and the lock is free while it thinks."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import flock_kg as fk

QUESTIONS = [("Portugal", "borders", None), (None, "capital", "Lisbon"), ("Portugal", None, "Spain"),
             ("Japan", "continent", None), ("France", "official_language", None), (None, "borders", "Spain")]


def test_threads_get_the_same_answers(model: fk.Model, countries: fk.Graph) -> None:
    def ask(question: tuple) -> list:
        return model.predict(countries, *question, walks=4).to_dicts()

    expected = [ask(question) for question in QUESTIONS]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(ask, QUESTIONS * 5)) == expected * 5


def test_different_calls_at_once(model: fk.Model, countries: fk.Graph) -> None:
    calls = [
        lambda: model.predict_many(countries, QUESTIONS, walks=4).to_dicts(),
        lambda: model.complete(countries, head="Spain", relation="borders", walks=4, top=3).to_dicts(),
        lambda: model.score(countries, [("Portugal", "borders", "Spain")], walks=4).to_dicts(),
        lambda: [table.to_dicts() for table in model.stream(countries, *QUESTIONS[0], walks=4, passes=3)],
        lambda: model.explain(countries, "Portugal", "borders", "Spain", walks=4, passes=1, check=False).info,
        lambda: model.evaluate(countries, limit=4, walks=4).table.to_dicts(),
        lambda: len(countries.add([("a", "b", "c")])),
    ]
    expected = [call() for call in calls]
    with ThreadPoolExecutor(len(calls)) as pool:
        assert [future.result() for future in [pool.submit(call) for call in calls]] == expected


def test_models_of_any_number_of_threads_agree(countries: fk.Graph) -> None:
    models = [fk.Model.bundled(threads=n) for n in (1, 2, 3)]
    answers = [model.predict_many(countries, QUESTIONS, passes=2, walks=4).to_dicts() for model in models]
    assert answers[0] == answers[1] == answers[2]


def test_another_thread_counts_meanwhile(model: fk.Model, countries: fk.Graph) -> None:
    ticks, stop = [], threading.Event()

    def count() -> None:
        while not stop.wait(0.01):
            ticks.append(time.monotonic())

    counter = threading.Thread(target=count)
    counter.start()
    try:
        begin = time.monotonic()
        model.predict_many(countries, QUESTIONS[:2] * 8, passes=2)
        end = time.monotonic()
    finally:
        stop.set()
        counter.join()
    during = [tick for tick in ticks if begin < tick < end]
    # A hundred per second if nothing else runs; with the lock held it would be none.
    assert len(during) >= 5 * (end - begin), f"{len(during)} in {end - begin:.1f} s"


def test_a_graph_is_read_without_the_lock(countries: fk.Graph, tmp_path: Path) -> None:
    countries.triples().save(tmp_path / "g.tsv")
    with ThreadPoolExecutor(4) as pool:
        graphs = list(pool.map(fk.Graph.from_file, [tmp_path / "g.tsv"] * 8))
    assert {len(graph) for graph in graphs} == {688}


def test_progress_is_called_in_the_thread_of_the_caller(model: fk.Model, countries: fk.Graph) -> None:
    threads = []
    model.predict_many(countries, QUESTIONS, walks=4, progress=lambda *_: threads.append(threading.get_ident()))
    assert set(threads) == {threading.get_ident()}


def test_objects_die_in_other_threads(countries: fk.Graph) -> None:
    def work() -> int:
        model, graph = fk.Model.bundled(threads=1), countries.add([("a", "borders", "b")])
        table = model.predict(graph, "a", "borders", None, walks=4, top=1)
        return len(table)

    with ThreadPoolExecutor(4) as pool:
        assert [future.result() for future in [pool.submit(work) for _ in range(8)]] == [1] * 8
