"""Missing links and scores of triples: what is listed, unfinished work that goes on, and parts of the work."""

from __future__ import annotations

from pathlib import Path

import polars
import pytest

import flock_kg as fk
from conftest import triples_of

LINKS = ["rank", "head", "relation", "tail", "head_label", "relation_label", "tail_label", "score", "probability",
         "specificity", "tail_rank", "head_rank", "logit", "tail_logit", "head_logit", "sides", "probability_from"]


class Interrupted(Exception):
    """Raised by a progress function to end the work."""


def after(count: int):
    """A progress function that ends the work when something like half of it is done."""

    def progress(done: int, total: int) -> None:
        if done >= count:
            raise Interrupted

    return progress


# complete


def test_links_of_a_head(model: fk.Model, countries: fk.Graph) -> None:
    links = model.complete(countries, relation="borders", head="Spain", walks=4, top=5)
    assert links.columns == LINKS and links["rank"] == [1, 2, 3, 4, 5]
    assert set(links["head"]) == {"Spain"} and set(links["relation"]) == {"borders"} and set(links["sides"]) == {"both"}
    assert not any((row["head"], row["relation"], row["tail"]) in countries for row in links)
    assert links["specificity"] == sorted(links["specificity"], reverse=True)
    for row in links:
        assert row["logit"] == (row["tail_logit"] + row["head_logit"]) / 2
    assert links.info["in_time"] is True and links.info["progress"]["left"] == 0


def test_a_link_has_the_logits_of_its_questions(model: fk.Model, countries: fk.Graph) -> None:
    link = model.complete(countries, relation="borders", head="Spain", walks=4, top=1)[0]
    tails = model.predict(countries, "Spain", "borders", None, walks=4, top=0)
    heads = model.predict(countries, None, "borders", link["tail"], walks=4, top=0)
    assert [row["logit"] for row in tails if row["answer"] == link["tail"]] == [link["tail_logit"]]
    assert [row["logit"] for row in heads if row["answer"] == "Spain"] == [link["head_logit"]]


def test_ranked_by_score(model: fk.Model, countries: fk.Graph) -> None:
    links = model.complete(countries, relation="borders", tail="Spain", walks=4, top=5, rank_by="score")
    assert links["score"] == sorted(links["score"], reverse=True) and set(links["tail"]) == {"Spain"}


def test_links_with_reasons(model: fk.Model, countries: fk.Graph) -> None:
    links = model.complete(countries, relation="borders", head="Spain", walks=4, top=2, reasons=True)
    assert links.columns == [*LINKS, "reason"]
    assert all(" —" in row["reason"] or " ←" in row["reason"] for row in links)


def test_questions_bound_the_work(model: fk.Model, countries: fk.Graph) -> None:
    few = model.complete(countries, relation="borders", walks=4, top=3, questions=4)
    assert few.info["progress"]["planned"] == 4 and few.info["progress"]["asked"] < 20 and len(few) == 3


def test_a_budget_ends_in_time(model: fk.Model, medicines: fk.Graph) -> None:
    links = model.complete(medicines, budget=0.3, walks=1, top=5)
    assert links.info["in_time"] is False and links.info["progress"]["left"] > 0


def test_progress_of_complete(model: fk.Model, countries: fk.Graph) -> None:
    seen = []
    model.complete(countries, relation="borders", walks=4, top=3, questions=20, progress=lambda *at: seen.append(at))
    assert seen[-1][0] == seen[-1][1] > 0, seen


def test_interrupted_work_goes_on(model: fk.Model, countries: fk.Graph, tmp_path: Path) -> None:
    options = {"relation": "borders", "walks": 4, "top": 10}
    whole = model.complete(countries, **options)
    state = tmp_path / "links.state"
    with pytest.raises(Interrupted):
        model.complete(countries, **options, state=state, progress=after(1))
    assert state.stat().st_size > 0, "what was done is kept"
    seen = []
    again = model.complete(countries, **options, state=state, progress=lambda *at: seen.append(at))
    assert again.to_dicts() == whole.to_dicts() and again.info["progress"] == whole.info["progress"]
    # Progress counts what is asked now, which is less than all.
    assert 0 < seen[-1][0] < whole.info["progress"]["asked"], seen


def test_a_state_of_other_options_is_an_error(model: fk.Model, countries: fk.Graph, tmp_path: Path) -> None:
    state = tmp_path / "links.state"
    with pytest.raises(Interrupted):
        model.complete(countries, relation="borders", walks=4, top=10, state=state, progress=after(1))
    with pytest.raises(fk.errors.StateError, match="hint: "):
        model.complete(countries, relation="capital", walks=4, top=10, state=state)
    with pytest.raises(fk.errors.StateError):
        model.complete(countries, relation="borders", walks=4, top=10, seed=1, state=state)


def test_shards_have_all_links_together(model: fk.Model, countries: fk.Graph) -> None:
    options = {"relation": "continent", "walks": 4, "pairs": "observed"}
    whole = model.complete(countries, **options, top=10)
    parts = [model.complete(countries, **options, top=10, shard=(part, 3)) for part in range(3)]
    asked = [part.info["progress"]["planned"] for part in parts]
    assert sum(asked) == whole.info["progress"]["planned"] and min(asked) > 0
    found = {(row["head"], row["tail"]): row["logit"] for part in parts for row in part}
    for row in whole:
        assert found[row["head"], row["tail"]] == row["logit"]


# score


TRIPLES = [("Portugal", "borders", "Spain"), ("Portugal", "borders", "Japan"), ("Japan", "continent", "Asia")]


def test_scores(model: fk.Model, countries: fk.Graph) -> None:
    scores = model.score(countries, TRIPLES)
    assert [(row["head"], row["relation"], row["tail"]) for row in scores] == TRIPLES
    assert scores["known"] == [True, False, True] and scores.info["failures"] == []
    assert scores[0]["tail_rank"] == 1 and scores[0]["score"] > 0.9 > 0.5 > scores[1]["score"]
    # Among all 252 entities but the other answers: Spain has two other neighbours that name it.
    neighbours = sum(tail == "Spain" and relation == "borders" for _, relation, tail in triples_of(countries))
    assert (scores[0]["tail_candidates"], scores[0]["head_candidates"]) == (252, 252 - (neighbours - 1))
    for row in scores:
        assert row["logit"] == (row["tail_logit"] + row["head_logit"]) / 2
        below = (row["tail_candidates"] - row["tail_rank"]) / (row["tail_candidates"] - 1)
        assert row["tail_percentile"] <= 100 * below + 1e-9


def test_scores_of_a_frame(model: fk.Model, countries: fk.Graph) -> None:
    heads, relations, tails = (list(column) for column in zip(*TRIPLES))
    frame = polars.DataFrame({"object": tails, "note": ["x"] * 3, "who": heads, "what": relations})
    expected = model.score(countries, TRIPLES, walks=4).to_dicts()
    assert model.score(countries, frame, columns=("who", "what", "object"), walks=4).to_dicts() == expected
    assert model.score(countries, frame, columns=(2, 3, 0), walks=4).to_dicts() == expected


def test_skipped_triples_are_reported(model: fk.Model, countries: fk.Graph) -> None:
    triples = [TRIPLES[0], ("Portugal", "borders", "Spaim"), TRIPLES[2]]
    with pytest.warns(UserWarning, match="1 of 3 triples"):
        scores = model.score(countries, triples, walks=4, on_error="skip")
    assert scores.to_dicts() == model.score(countries, [TRIPLES[0], TRIPLES[2]], walks=4).to_dicts()
    failures = scores.info["failures"]
    assert [failure["triple"] for failure in failures] == [1] and "Spaim" in failures[0]["error"]


def test_interrupted_scores_go_on(model: fk.Model, countries: fk.Graph, tmp_path: Path) -> None:
    # 128 triples are scored at a time with one walk.
    triples = countries.triples()[:200]
    whole = model.score(countries, triples, walks=1)
    state = tmp_path / "scores.state"
    with pytest.raises(Interrupted):
        model.score(countries, triples, walks=1, state=state, progress=after(1))
    assert state.exists()
    seen = []
    again = model.score(countries, triples, walks=1, state=state, progress=lambda *at: seen.append(at))
    assert again.to_dicts() == whole.to_dicts()
    assert seen[-1] == (200, 200) and (0, 200) not in seen, f"it began anew: {seen}"
    assert not state.exists(), "the work is done"


def test_scores_of_another_seed_do_not_go_on(model: fk.Model, countries: fk.Graph, tmp_path: Path) -> None:
    triples, state = countries.triples()[:200], tmp_path / "scores.state"
    with pytest.raises(Interrupted):
        model.score(countries, triples, walks=1, state=state, progress=after(1))
    kept = state.read_bytes()
    with pytest.raises(fk.errors.StateError, match="hint: remove it to begin anew"):
        model.score(countries, triples, walks=1, seed=1, state=state)
    assert state.read_bytes() == kept


# doubtful


def test_doubtful_lists_the_least_likely(model: fk.Model, countries: fk.Graph) -> None:
    # A wrong triple among the capitals.
    graph = countries.add([("Lisbon", "continent", "Asia")])
    doubtful = model.doubtful(graph, relation="continent", top=5, walks=4)
    assert doubtful["logit"] == sorted(doubtful["logit"]) and len(doubtful) == 5
    assert set(doubtful["relation"]) == {"continent"} and all(doubtful["known"])
    assert ("Lisbon", "Asia") in [(row["head"], row["tail"]) for row in doubtful]
    rows = [(row["head"], row["relation"], row["tail"]) for row in doubtful]
    assert model.score(graph, rows, walks=4).to_dicts() == doubtful.to_dicts()


def test_doubtful_of_a_sample(model: fk.Model, countries: fk.Graph) -> None:
    sample = model.doubtful(countries, sample=8, walks=4)
    assert len(sample) == 8 and all((row["head"], row["relation"], row["tail"]) in countries for row in sample)
    assert model.doubtful(countries, sample=8, walks=4).to_dicts() == sample.to_dicts()
    other = model.doubtful(countries, sample=8, walks=4, seed=1)
    assert {tuple(row.values())[:3] for row in other} != {tuple(row.values())[:3] for row in sample}


def test_near_names_are_looked_up_for_the_first_bad_rows_only(model: fk.Model, countries: fk.Graph) -> None:
    rows = [("Portugal", "borders", "Spian")] * 20
    with pytest.warns(UserWarning, match="20 of 20 triples failed"):
        errors = [row["error"] for row in model.score(countries, rows, on_error="skip").info["failures"]]
    # 16, as for questions.
    assert all('near names: "Spain"' in error for error in errors[:16])
    assert all("near names are looked up for 16 only" in error for error in errors[16:]) and len(errors) == 20


def test_a_state_stays_until_the_scores_are_out(model: fk.Model, countries: fk.Graph, tmp_path: Path) -> None:
    state = tmp_path / "state"
    rows = [("Portugal", "borders", "Spain"), ("Portugal", "borders", "Nowhere")]
    # pytest turns the warning of the second row into an error.
    with pytest.raises(UserWarning, match="1 of 2 triples failed"):
        model.score(countries, rows, walks=2, state=state, on_error="skip")
    assert state.exists()
    with pytest.warns(UserWarning, match="1 of 2 triples failed"):
        assert len(model.score(countries, rows, walks=2, state=state, on_error="skip")) == 1
    assert not state.exists()
