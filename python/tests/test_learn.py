"""How good a model is, training it further, and probabilities that fit a graph."""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path

import pytest

import flock_kg as fk
from conftest import SHARED, triples_of

ASKED = ("Portugal", "borders", None)


class Interrupted(Exception):
    """Raised by a progress function to end the work."""


# evaluate


@pytest.mark.parametrize("task", ["entity", "relation"])
def test_evaluation_of_a_share(model: fk.Model, countries: fk.Graph, task: str) -> None:
    seen = []
    result = model.evaluate(countries, task=task, holdout=0.2, limit=15, walks=4, progress=lambda *at: seen.append(at))
    every = result.table[0]
    questions = 30 if task == "entity" else 15
    assert (every["part"], every["questions"]) == ("all", questions)
    # A question with two hidden answers is asked once.
    assert seen[-1][0] == seen[-1][1] and questions - 3 <= seen[-1][0] <= questions
    for name in ("mrr", "hits1", "hits3", "hits10", "mean_rank", "coverage"):
        assert every[name] == getattr(result, name)
    assert 0 < result.hits1 <= result.mrr <= 1 and result.hits1 <= result.hits3 <= result.hits10 <= 1
    # The relations together are all questions, and their mean is that of all.
    parts = result.table[1:]
    assert sum(parts["questions"]) == questions and set(parts["part"]) == {"relation"}
    mean = sum(row["mrr"] * row["questions"] for row in parts) / questions
    assert mean == pytest.approx(result.mrr, rel=1e-12)
    assert every["mrr"] <= every["mrr_realistic"] <= every["mrr_optimistic"]
    assert result.task == task == result.info["task"] and result.info["asked"] == 15 and result.ranks is None
    assert repr(result) == result.sentence and result.sentence.startswith("For a hidden link")
    assert result._repr_html_().count("<tr>") == len(result.table) + 1


def test_evaluation_depends_on_the_seed_alone(model: fk.Model, countries: fk.Graph) -> None:
    def table(seed: int) -> list:
        return model.evaluate(countries, limit=10, walks=4, seed=seed).table.to_dicts()

    assert table(0) == table(0) != table(1)


def test_no_limit_asks_for_all_hidden_triples(model: fk.Model, ring: fk.Graph) -> None:
    result = model.evaluate(ring, holdout=0.3, limit=None, walks=4)
    assert result.info["asked"] == result.info["hidden"] > 5


# evaluate_dataset


def test_evaluation_of_a_dataset(model: fk.Model, dataset: Path) -> None:
    result = model.evaluate_dataset(dataset, limit=10, passes=1, walks=4, ranks=True)
    assert result.info["dataset"] == "Countries" and result.info["protocol"]["passes"] == 1
    assert result.table[0]["mrr"] == result.mrr and result.table[0]["questions"] == 20
    # The ranks are those that the metrics are of.
    ranks = result.ranks
    assert len(ranks) == 20 and sorted(set(ranks["side"])) == ["head", "tail"]
    assert sum(1 / rank for rank in ranks["rank"]) / 20 == pytest.approx(result.mrr, rel=1e-12)
    assert sum(rank <= 10 for rank in ranks["rank"]) / 20 == result.hits10
    assert sum(ranks["rank"]) / 20 == result.mean_rank
    assert sum(ranks["reached"]) / 20 == pytest.approx(result.coverage)
    test = {tuple(line.split("\t")) for line in (dataset / "test.txt").read_text(encoding="utf-8").splitlines()}
    assert {(row["head"], row["relation"], row["tail"]) for row in ranks} <= test
    assert "MRR" in repr(result) and f"{result.mrr:.4f}" in repr(result)
    valid = model.evaluate_dataset(dataset, split="valid", limit=5, passes=1, walks=4)
    assert valid.info["split"] == "valid" and valid.ranks is None


def test_evaluation_of_a_dataset_for_relations(model: fk.Model, dataset: Path) -> None:
    result = model.evaluate_dataset(dataset, task="relation", limit=10, passes=1, walks=4)
    assert result.task == "relation" and result.table[0]["questions"] == 10 and result.mrr > 0.2


def test_results_are_written(model: fk.Model, dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "results.json"
    result = model.evaluate_dataset(dataset, limit=5, passes=1, walks=4, out=out)
    written = json.loads(out.read_text(encoding="utf-8"))
    assert str(result.mrr) in out.read_text(encoding="utf-8") and "Countries" in json.dumps(written)
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


def test_an_evaluation_that_was_cut_off_goes_on(model: fk.Model, countries: fk.Graph, tmp_path: Path) -> None:
    # With one walk 256 questions are asked at a time, so there have to be more.
    rows = ["\t".join(row) + "\n" for row in triples_of(countries)]
    (tmp_path / "data").mkdir()
    for part, lines in (("train", [*rows[::3], *rows[1::3]]), ("valid", rows[:1]), ("test", rows[2::3])):
        (tmp_path / "data" / f"{part}.txt").write_text("".join(lines), encoding="utf-8")
    whole = model.evaluate_dataset(tmp_path / "data", passes=1, walks=1)
    out, partial = tmp_path / "results.json", tmp_path / "results.json.partial"

    def stop(done: int, total: int) -> None:
        if done:
            raise Interrupted

    with pytest.raises(Interrupted):
        model.evaluate_dataset(tmp_path / "data", passes=1, walks=1, out=out, progress=stop)
    assert partial.stat().st_size > 0 and not out.exists()
    with pytest.raises(fk.errors.DatasetError, match="fresh=True"):
        model.evaluate_dataset(tmp_path / "data", passes=1, walks=2, out=out)
    begin = time.monotonic()
    again = model.evaluate_dataset(tmp_path / "data", passes=1, walks=1, out=out)
    assert again.table.to_dicts() == whole.table.to_dicts()
    # The seconds are those of both calls together, so they are more than the second one took.
    assert again.info["seconds"] > time.monotonic() - begin
    assert out.exists() and not partial.exists()


def test_an_unpublished_dataset_stands_alone(model: fk.Model, dataset: Path) -> None:
    result = model.evaluate_dataset(dataset, limit=2, passes=1, walks=4)
    beside = result.beside_published()
    assert "Countries" in str(beside.to_dicts()[0].values())
    with pytest.raises(fk.errors.QuestionError, match='setting="zero-shot" or "fine-tuned"'):
        result.beside_published("other")


@pytest.mark.skipif(not (SHARED / "kg" / "Metafam").is_dir(), reason=f"{SHARED / 'kg' / 'Metafam'} is not here")
def test_beside_published_numbers(model: fk.Model) -> None:
    result = model.evaluate_dataset(SHARED / "kg" / "Metafam", limit=10, passes=1)
    beside = result.beside_published()
    assert len(beside) == 1 and beside[0]["dataset"] == "Metafam"
    # Zero-shot MRR on Metafam as published: shared/published, and crates/flock-eval/src/published.
    assert (beside[0]["flock MRR"], beside[0]["ultra MRR"], beside[0]["trix MRR"]) == (0.476, 0.238, 0.341)
    assert beside[0]["ours (sample) MRR"] == pytest.approx(result.mrr, abs=5e-4)


# finetune


TINY = {"batch": 2, "negatives": 8}


@pytest.fixture(scope="module")
def tuned(model: fk.Model, ring: fk.Graph) -> fk.Model:
    return model.finetune(ring, steps=2, seed=1, **TINY)


def test_finetune(tuned: fk.Model, model: fk.Model, ring: fk.Graph) -> None:
    training = tuned.training
    assert model.training is None
    assert training["steps"] == 2 and training["finished"] is True and training["task"] == "entity"
    assert training["gain"] == pytest.approx(training["best"]["mrr"] - training["before"])
    assert training["gain"] >= 0, "the weights it started from are a candidate"
    assert training["svg"].startswith("<svg") and training["dir"] is None and training["model"] is None
    # Both tasks are answered. The weights are other ones unless no step was better.
    assert tuned.tasks == ["entity", "relation"]
    assert tuned.sha256("relation") == model.sha256("relation")
    one, two = (m.predict(ring, "a0", "x", None, walks=4)["logit"] for m in (tuned, model))
    assert (one == two) == (training["best"]["step"] == 0)
    related = [m.predict(ring, "a0", None, "a1", walks=4).to_dicts() for m in (tuned, model)]
    assert related[0] == related[1]


def test_a_tuned_model_is_saved(tuned: fk.Model, ring: fk.Graph, tmp_path: Path) -> None:
    tuned.save(tmp_path / "tuned.safetensors")
    tuned.save(tmp_path / "relation.safetensors", task="relation")
    again = fk.Model.from_file(tmp_path / "tuned.safetensors", tmp_path / "relation.safetensors")
    assert again.tasks == ["entity", "relation"]
    for asked in [("a0", "x", None), (None, "y", "a3"), ("a0", None, "a1")]:
        one, two = (m.predict(ring, *asked, walks=4) for m in (tuned, again))
        assert one["logit"] == two["logit"] and one["answer"] == two["answer"]


def test_training_moves_the_weights(model: fk.Model, ring: fk.Graph, tmp_path: Path) -> None:
    seen = []
    run = tmp_path / "run"
    model.finetune(ring, steps=3, out=run, rate=0.01, progress=lambda *at: seen.append(at), **TINY)
    assert seen[-1] == (3, 3)
    last = fk.Model.from_file(run / "last.safetensors")
    moved = last.predict(ring, "a0", "x", None, walks=4)["logit"]
    assert moved != model.predict(ring, "a0", "x", None, walks=4)["logit"]


def test_a_run_in_a_directory_goes_on(model: fk.Model, ring: fk.Graph, tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done >= 2:
            raise Interrupted

    run = tmp_path / "run"
    with pytest.raises(Interrupted):
        model.finetune(ring, steps=6, out=run, progress=stop, **TINY)
    seen = []
    tuned = model.finetune(ring, steps=6, out=run, progress=lambda *at: seen.append(at), **TINY)
    assert tuned.training["finished"] is True and tuned.training["steps"] == 6
    assert 2 <= tuned.training["resumed_at"] < 6 and tuned.training["dir"] == str(run)
    assert fk.Model.from_file(run / "best.safetensors").sha256() == tuned.sha256()
    # A run that has ended is returned as it is.
    again = model.finetune(ring, steps=6, out=run, **TINY)
    assert again.training["resumed_at"] == 6 and again.sha256() == tuned.sha256()
    with pytest.raises(fk.errors.TrainingError, match=r"optimiser\.rate.*hint: .*out="):
        model.finetune(ring, steps=6, out=run, rate=0.01, **TINY)


def test_minutes_end_a_run(model: fk.Model, ring: fk.Graph) -> None:
    tuned = model.finetune(ring, minutes=0.001, **TINY)
    assert tuned.training["finished"] is True and 1 <= tuned.training["steps"] < 1000


def test_finetune_relations_with_other_settings(model: fk.Model, ring: fk.Graph) -> None:
    tuned = model.finetune(ring, steps=1, task="relation", settings={"optimiser.clip": 1}, **TINY)
    assert tuned.training["task"] == "relation" and tuned.sha256("entity") == model.sha256("entity")


def test_finetune_on_a_dataset(model: fk.Model, dataset: Path) -> None:
    settings = {"validation.triples": 4, "walks.n": 4, "validation.n": 4}
    tuned = model.finetune(dataset, steps=1, settings=settings, **TINY)
    assert tuned.training["steps"] == 1 and "Countries" in str(tuned.training["graphs"])


# calibrate


@pytest.fixture
def graph() -> fk.Graph:
    return fk.Graph.bundled("countries")


def test_calibrate(model: fk.Model, graph: fk.Graph) -> None:
    before = model.predict(graph, *ASKED, walks=4)
    assert graph.calibration is None and before.info["probability_from"] == "score"
    seen = []
    made = model.calibrate(graph, queries=40, walks=4, progress=lambda *at: seen.append(at))
    assert seen[-1] == (40, 40)
    info = made.info["entity"]
    assert (info["queries"], info["walks"], info["passes"]) == (40, 4, 1) and info["error_after"] < info["error_before"]
    assert repr(made).startswith("Calibration(entity: expected error ")
    assert made.svg.startswith("<svg")
    assert made._repr_svg_().replace(' style="max-width:100%;height:auto"', "") == made.svg
    assert graph.calibration is not None and graph.calibration.info == made.info
    after = model.predict(graph, *ASKED, walks=4)
    assert after.info["probability_from"] == "graph" and set(after["probability_from"]) == {"graph"}
    assert after["logit"] == before["logit"] and after["probability"] != before["probability"]
    # Given to a graph that has none, it does the same.
    given = model.predict(fk.Graph.bundled("countries"), *ASKED, walks=4, calibration=made)
    assert given.to_dicts() == after.to_dicts()
    assert graph.add([("a", "borders", "b")]).calibration.info == made.info


def test_a_calibration_for_other_passes_is_not_used(model: fk.Model, graph: fk.Graph) -> None:
    model.calibrate(graph, queries=40, walks=4)
    calls = [
        lambda: model.predict(graph, *ASKED, walks=4, passes=2),
        lambda: model.predict_many(graph, [ASKED], walks=4, passes=2),
        lambda: model.score(graph, [("Portugal", "borders", "Spain")], walks=4, passes=2),
        lambda: model.explain(graph, "Portugal", "borders", "Spain", walks=4, passes=2, check=False),
        lambda: model.complete(graph, head="Spain", relation="borders", top=1, walks=4, passes=2),
    ]
    for call in calls:
        with pytest.warns(fk.errors.CalibrationWarning, match="made with 1 passes, not used with 2; hint: model"):
            result = call()
        assert result.info["probability_from"] == "score"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(graph, *ASKED, walks=4)


def test_a_calibration_is_kept_beside_the_file(model: fk.Model, countries: fk.Graph, tmp_path: Path) -> None:
    path = tmp_path / "countries.tsv"
    countries.triples().save(path)
    graph = fk.Graph.from_file(path)
    made = model.calibrate(graph, queries=40, walks=4)
    assert made.save() == tmp_path / "countries.tsv.calibration.json"
    again = fk.Graph.from_file(path)
    assert again.calibration.info == made.info
    assert model.predict(again, *ASKED, walks=4).to_dicts() == model.predict(graph, *ASKED, walks=4).to_dicts()
    # That of the graph knows the place too.
    assert again.calibration.save() == made.save()


def test_a_calibration_in_a_file_of_its_own(model: fk.Model, graph: fk.Graph, tmp_path: Path) -> None:
    made = model.calibrate(graph, queries=40, walks=4)
    with pytest.raises(fk.errors.QuestionError, match="from no file"):
        made.save()
    assert made.save(tmp_path / "c.json") == tmp_path / "c.json"
    assert fk.Calibration.from_file(tmp_path / "c.json").info == made.info


def test_both_tasks_are_calibrated(model: fk.Model, graph: fk.Graph) -> None:
    model.calibrate(graph, queries=40, walks=4)
    made = model.calibrate(graph, task="relation", queries=40, walks=4)
    assert sorted(made.info) == sorted(graph.calibration.info) == ["entity", "relation"]
    assert model.predict(graph, "Portugal", None, "Spain", walks=4).info["probability_from"] == "graph"


def test_settings_are_not_overridden_by_arguments_that_were_not_given(model: fk.Model, ring: fk.Graph) -> None:
    small = {"steps": 1, "batch": 2, "negatives": 8}
    one = model.finetune(ring, settings={"seed": 5}, **small)
    assert one.sha256() == model.finetune(ring, seed=5, **small).sha256() != model.finetune(ring, **small).sha256()
