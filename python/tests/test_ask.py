"""Questions: one, many and pass by pass; candidates, reasons, budgets, progress; and explanations."""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path

import pandas
import polars
import pyarrow.parquet
import pytest

import flock_kg as fk

#: All three blanks, and both ways to write them.
QUESTIONS = [
    ("Portugal", "borders", None),
    (None, "capital", "Lisbon"),
    ("Lisbon", None, "Portugal"),
    ("France", "official_language", "?"),
    ("?", "continent", "Europe"),
    ("Japan", "?", "Tokyo"),
    ("spain", "BORDERS", None),
]


def without_number(row: dict) -> dict:
    return {name: value for name, value in row.items() if name != "question"}


@pytest.mark.parametrize("question, best, known, task", [
    (("Portugal", "borders", None), "Spain", True, "entity"),
    ((None, "capital", "Tokyo"), "Japan", False, "entity"),
    (("Lisbon", None, "Portugal"), "located_in", False, "relation"),
])
def test_the_three_blanks(
    model: fk.Model, countries: fk.Graph, question: tuple, best: str, known: bool, task: str
) -> None:
    answers = model.predict(countries, *question, top=3)
    assert answers["rank"] == [1, 2, 3]
    assert answers[0]["answer"] == best and answers[0]["known"] is known
    assert answers["logit"] == sorted(answers["logit"], reverse=True)
    assert all(0 < probability < 1 for probability in answers["probability"])
    assert answers.info["model"]["task"] == task
    assert answers.info["candidates"] == (252 if task == "entity" else 8)
    written = tuple("?" if part is None else part for part in question)
    assert model.predict(countries, *written, top=3).to_dicts() == answers.to_dicts()
    assert answers.info["query"] == list(written)


def test_top_0_lists_all(model: fk.Model, countries: fk.Graph) -> None:
    answers = model.predict(countries, "Portugal", "borders", None, top=0)
    assert len(answers) == 252 - answers.info["unreached"]["count"]
    assert answers[:10].to_dicts() == model.predict(countries, "Portugal", "borders", None).to_dicts()


def test_seed_passes_and_walks(model: fk.Model, countries: fk.Graph) -> None:
    def logits(**options: int) -> list:
        return model.predict(countries, "Portugal", "borders", None, **{"walks": 4, **options})["logit"]

    assert logits() == logits(seed=0, passes=1)
    assert logits(seed=1) != logits() and logits(walks=8) != logits() and logits(passes=2) != logits()
    info = model.predict(countries, "Portugal", "borders", None, walks=4, passes=3, seed=7).info
    assert (info["walks"], info["passes"], info["seed"]) == (4, 3, 7)
    assert model.predict(countries, "Portugal", "borders", None, passes=1)["spread"] == [None] * 10
    assert all(spread >= 0 for spread in model.predict(countries, "Portugal", "borders", None, passes=2)["spread"])


def test_only_new_leaves_known_answers_out(model: fk.Model, countries: fk.Graph) -> None:
    every = model.predict(countries, "Spain", "borders", None, walks=4, top=0)
    new = model.predict(countries, "Spain", "borders", None, walks=4, top=0, only_new=True)
    assert new["answer"] == [row["answer"] for row in every if not row["known"]]
    assert {"Portugal", "France"} <= set(every["answer"]) - set(new["answer"])


# Candidates


def test_among_names(model: fk.Model, countries: fk.Graph) -> None:
    names = ["France", "Spain", "japan", "Atlantis"]
    answers = model.predict(countries, "Portugal", "borders", None, walks=4, among=names)
    assert sorted(answers["answer"]) == ["France", "Japan", "Spain"] and answers[0]["answer"] == "Spain"
    assert answers.info["candidates"] == 3
    assert "Atlantis" in json.dumps(answers.info["unknown_candidates"])
    relations = model.predict(countries, "Portugal", None, "Spain", walks=4, among=["borders", "capital"])
    assert sorted(relations["answer"]) == ["borders", "capital"]


def members(graph: fk.Graph, place: str, **conditions: str) -> set:
    return {row[place] for row in graph.triples() if all(row[name] == value for name, value in conditions.items())}


def test_among_type_range_and_domain(model: fk.Model, countries: fk.Graph) -> None:
    def answers(**options: object) -> set:
        return set(model.predict(countries, "Portugal", "borders", None, walks=4, top=0, **options)["answer"])

    every = answers()
    europe = members(countries, "head", relation="continent", tail="Europe")
    nato = members(countries, "head", relation="member_of", tail="NATO")
    assert answers(among_type=("continent", "Europe")) == every & europe
    assert answers(among_type=[("continent", "Europe"), ("member_of", "NATO")]) == every & europe & nato
    assert answers(among_range="continent") == every & members(countries, "tail", relation="continent")
    assert answers(among_domain=["capital", "currency"]) == (
        every & members(countries, "head", relation="capital") & members(countries, "head", relation="currency"))
    assert answers(among_domain="capital", among=["Spain", "Lisbon"]) == {"Spain"}


# Reasons and explanations


def test_reasons_are_paths_from_the_question(model: fk.Model, countries: fk.Graph) -> None:
    plain = model.predict(countries, "Portugal", "borders", None, top=3)
    answers = model.predict(countries, "Portugal", "borders", None, top=3, reasons=True)
    assert answers.columns == [*plain.columns, "reason"]
    for row, bare in zip(answers, plain):
        assert {name: row[name] for name in plain.columns} == bare
        # Paths over the same relations share a row: "… (1 of 2 paths)".
        assert row["reason"].startswith("Portugal ") and row["reason"].split(" (1 of ")[0].endswith(row["answer"])
        assert row["reason"].count("—") <= 4
    short = model.predict(countries, "Portugal", "borders", None, top=3, reasons=True, max_hops=1)
    assert short[0]["reason"].count("—") == 1


@pytest.mark.parametrize("blank, answer", [("tail", "Spain"), ("head", "Portugal"), ("relation", "borders")])
def test_explanation(model: fk.Model, countries: fk.Graph, blank: str, answer: str) -> None:
    told = model.explain(countries, "Portugal", "borders", "Spain", blank=blank, top=2, check=False, passes=1, walks=4)
    assert told.known is True and told.info["answer"] == answer and told.info["passes"] == 1
    assert (told.logit, told.probability) == (told.info["logit"], told.info["probability"])
    assert 1 <= len(told.reasons) <= 2 and told.reasons["rank"] == list(range(1, len(told.reasons) + 1))
    assert told.reasons["share"] == [reason["share"] for reason in told.info["reasons"]]
    assert told.svg.startswith("<svg") and told.svg.rstrip().endswith("</svg>")
    # A notebook shows the same, no wider than the page.
    assert told._repr_svg_().replace(' style="max-width:100%;height:auto"', "") == told.svg
    assert answer in repr(told).splitlines()[0] and told.reasons[0]["reason"].split()[0] in repr(told)


def test_explanation_is_checked_by_deletion(model: fk.Model, countries: fk.Graph) -> None:
    told = model.explain(countries, "Portugal", "borders", "Spain", passes=2, walks=8, hide=2, draws=2)
    deletion = told.info["deletion"]
    assert len(deletion["random"]) == 2 and all(tuple(edge) in countries for edge in deletion["edges"])
    assert "the logit falls by" in repr(told)
    plain = model.explain(countries, "Portugal", "borders", "Spain", passes=2, walks=8, check=False)
    assert plain.info["deletion"] is None and plain.logit == told.logit


# Pass by pass


def test_the_end_of_a_stream_is_the_answer(model: fk.Model, countries: fk.Graph) -> None:
    question = ("Portugal", "borders", None)
    tables = list(model.stream(countries, *question, passes=4, walks=4, top=5, reasons=True))
    assert [table.info["passes"] for table in tables] == [1, 2, 3, 4]
    for passes, table in enumerate(tables, start=1):
        answers = model.predict(countries, *question, passes=passes, walks=4, top=5, reasons=passes == 4)
        assert table["logit"] == answers["logit"] and table["answer"] == answers["answer"]
    last = model.predict(countries, *question, passes=4, walks=4, top=5, reasons=True)
    assert tables[-1].to_dicts() == last.to_dicts() and tables[-1].info == last.info


def test_a_stream_can_be_left(model: fk.Model, countries: fk.Graph) -> None:
    begin = time.monotonic()
    stream = model.stream(countries, "Portugal", "borders", None, passes=4096)
    assert iter(stream) is stream
    assert next(stream).info["passes"] == 1
    del stream
    model.predict(countries, "Portugal", "borders", None, walks=4)
    assert time.monotonic() - begin < 30, "4096 passes take minutes"


def test_a_stream_says_what_is_wrong(model: fk.Model, countries: fk.Graph) -> None:
    with pytest.raises(fk.errors.UnknownNameError, match="Portugl"):
        next(iter(model.stream(countries, "Portugl", "borders", None)))


def test_budget(model: fk.Model, countries: fk.Graph) -> None:
    answers = model.predict(countries, "Portugal", "borders", None, budget=0.2)
    passes = answers.info["passes"]
    assert passes >= 1 and answers.info["stopped"] in ("time", "passes", "settled", "stable"), answers.info
    again = model.predict(countries, "Portugal", "borders", None, passes=passes)
    assert answers.to_dicts() == again.to_dicts(), "a budget decides the number of passes and nothing else"
    assert model.predict(countries, "Portugal", "borders", None, budget=60, passes=2).info["passes"] <= 2


# Many


def one_by_one(model: fk.Model, graph: fk.Graph, questions: list, **options: object) -> list:
    rows = []
    for at, question in enumerate(questions):
        rows += [{"question": at, **row} for row in model.predict(graph, *question, **options)]
    return rows


@pytest.mark.parametrize("options", [
    {}, {"passes": 2, "seed": 3, "top": 3}, {"reasons": True, "top": 2}, {"only_new": True}])
def test_many_are_the_same_as_one_by_one(model: fk.Model, countries: fk.Graph, options: dict) -> None:
    many = model.predict_many(countries, QUESTIONS, walks=4, **options)
    assert many.to_dicts() == one_by_one(model, countries, QUESTIONS, walks=4, **options)
    assert many.info["questions"] == len(QUESTIONS) and many.info["failures"] == []


def test_many_among(model: fk.Model, countries: fk.Graph) -> None:
    options = {"among_type": ("continent", "Europe"), "walks": 4}
    many = model.predict_many(countries, QUESTIONS[:2], **options)
    assert many.to_dicts() == one_by_one(model, countries, QUESTIONS[:2], **options)


def test_questions_in_frames(model: fk.Model, countries: fk.Graph) -> None:
    expected = model.predict_many(countries, QUESTIONS, walks=4, top=2).to_dicts()
    heads, relations, tails = (list(column) for column in zip(*QUESTIONS))
    columns = {"head": heads, "relation": relations, "tail": tails}
    odd = {"t": tails, "note": ["x"] * len(tails), "h": heads, "r": relations}
    for frame in (pandas.DataFrame(columns), pandas.DataFrame(QUESTIONS), polars.DataFrame(columns),
                  polars.LazyFrame(columns), pyarrow.table(columns)):
        assert model.predict_many(countries, frame, walks=4, top=2).to_dicts() == expected
    for columns in (("h", "r", "t"), (2, 3, 0)):
        answers = model.predict_many(countries, polars.DataFrame(odd), columns=columns, walks=4, top=2)
        assert answers.to_dicts() == expected
    assert model.predict_many(countries, iter(QUESTIONS), walks=4, top=2).to_dicts() == expected


WRONG = [QUESTIONS[0], ("Portugl", "borders", None), QUESTIONS[1], ("Spain", None, None)]


def test_skipped_questions_are_reported(model: fk.Model, countries: fk.Graph) -> None:
    with pytest.warns(UserWarning, match=r'2 of 4 questions failed, the first: question 1: unknown entity "Portugl"'):
        answers = model.predict_many(countries, WRONG, walks=4, top=2, on_error="skip")
    assert answers["question"] == [0, 0, 2, 2]
    kept = {0: QUESTIONS[0], 2: QUESTIONS[1]}
    for row in answers:
        assert without_number(row) in model.predict(countries, *kept[row["question"]], walks=4, top=2).to_dicts()
    failures = answers.info["failures"]
    assert [failure["question"] for failure in failures] == [1, 3]
    assert failures[0]["query"] == ["Portugl", "borders", "?"] and 'near names: "Portugal"' in failures[0]["error"]


def test_a_wrong_question_is_named(model: fk.Model, countries: fk.Graph, tmp_path: Path) -> None:
    seen = []
    out = tmp_path / "answers.csv"
    with pytest.raises(fk.errors.UnknownNameError, match=r'^question 1: unknown entity "Portugl"'):
        model.predict_many(countries, WRONG, out=out, progress=lambda done, total: seen.append(done))
    assert max(seen, default=0) == 0, "it is found before anything is asked"
    assert list(tmp_path.iterdir()) == [], "no file is left"


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_out_has_the_rows_of_the_table(model: fk.Model, countries: fk.Graph, tmp_path: Path, ending: str) -> None:
    table = model.predict_many(countries, QUESTIONS, walks=4)
    out = tmp_path / f"answers.{ending}"
    assert model.predict_many(countries, QUESTIONS, walks=4, out=out) == len(table)
    table.save(tmp_path / f"saved.{ending}")
    if ending == "parquet":
        assert pyarrow.parquet.read_table(out).to_pylist() == table.to_dicts()
    else:
        assert out.read_bytes() == (tmp_path / f"saved.{ending}").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"answers.{ending}", f"saved.{ending}"]


def test_out_is_whole_or_as_before(model: fk.Model, countries: fk.Graph, tmp_path: Path) -> None:
    out = tmp_path / "answers.csv"
    out.write_text("before")

    def stop(done: int, total: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        model.predict_many(countries, QUESTIONS * 20, out=out, progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["answers.csv"] and out.read_text() == "before"


def test_out_reads_back(model: fk.Model, countries: fk.Graph, tmp_path: Path) -> None:
    model.predict_many(countries, QUESTIONS, walks=4, top=1, out=tmp_path / "answers.csv")
    with open(tmp_path / "answers.csv", newline="", encoding="utf-8") as file:
        assert [row["answer"] for row in csv.DictReader(file)][:3] == ["Spain", "Portugal", "located_in"]


# Progress


def test_progress_ends_at_the_end(model: fk.Model, countries: fk.Graph) -> None:
    seen = []
    model.predict_many(countries, QUESTIONS * 10, walks=4, top=1, progress=lambda *at: seen.append(at))
    assert seen[-1] == (70, 70) and len(seen) == len(set(seen))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_progress_with_tqdm(model: fk.Model, countries: fk.Graph, capsys: pytest.CaptureFixture) -> None:
    model.predict_many(countries, QUESTIONS * 10, walks=4, top=1, progress=True)
    shown = capsys.readouterr()
    assert "70/70" in shown.err and "questions" in shown.err and shown.out == ""
    model.predict_many(countries, QUESTIONS, walks=4, top=1, progress=False)
    assert capsys.readouterr().err == ""


LINES = """
import flock_kg as fk
from flock_kg import _progress
_progress.LineMeter.SECONDS = 0.0
fk.Model.bundled().predict_many(fk.Graph.bundled(), [("Portugal", "borders", None)] * 70, walks=4, progress=True)
"""


def test_progress_without_tqdm(python) -> None:
    said = python("import os; os.dup2(1, 2)\n" + LINES, without=("tqdm", "tqdm.auto"))
    assert said.splitlines()[-1].startswith("70 of 70")


def test_a_column_that_is_left_open_in_every_row(model: fk.Model, countries: fk.Graph) -> None:
    for blank in (None, float("nan")):
        frame = pandas.DataFrame({"head": ["Spain"], "relation": ["borders"], "tail": [blank]})
        asked = model.predict_many(countries, frame, walks=2, top=2)
        assert asked["answer"] == model.predict(countries, "Spain", "borders", None, walks=2, top=2)["answer"]


def test_what_failed_is_beside_the_file(model: fk.Model, countries: fk.Graph, tmp_path: Path) -> None:
    out = tmp_path / "answers.csv"
    with pytest.warns(UserWarning, match="1 of 2 questions failed"):
        rows = model.predict_many(countries, [("Spain", "borders", None), ("Spian", "borders", None)], walks=2, top=1,
                                  on_error="skip", out=out)
    failures = [json.loads(line) for line in (tmp_path / "answers.csv.failures.jsonl").read_text().splitlines()]
    assert rows == 1 and [failure["question"] for failure in failures] == [1]
    # When all are right, nothing of an earlier call is left.
    assert model.predict_many(countries, [("Spain", "borders", None)], walks=2, top=1, on_error="skip", out=out) == 1
    assert not (tmp_path / "answers.csv.failures.jsonl").exists()


def test_what_failed_is_kept_even_if_the_warning_is_an_error(
    model: fk.Model, countries: fk.Graph, tmp_path: Path
) -> None:
    with pytest.raises(UserWarning, match="1 of 1 questions failed"):
        model.predict_many(countries, [("Spian", "borders", None)], on_error="skip", out=tmp_path / "a.csv")
    assert (tmp_path / "a.csv").exists() and (tmp_path / "a.csv.failures.jsonl").exists()


def test_no_hops_is_an_error_everywhere(model: fk.Model, countries: fk.Graph) -> None:
    asked = ("Spain", "borders", None)
    for call in (model.predict, model.stream):
        with pytest.raises(fk.errors.QuestionError, match="found max_hops=0; hint: max_hops= from 1"):
            call(countries, *asked, max_hops=0)


def test_info_of_many_questions_is_by_task(model: fk.Model, countries: fk.Graph) -> None:
    info = model.predict_many(countries, [("France", None, "Spain"), ("Spain", "borders", None)], walks=2, top=1).info
    assert set(info["tasks"]) == {"entity", "relation"}
    assert {task: about["model"]["task"] for task, about in info["tasks"].items()} == {"entity": "entity", "relation": "relation"}
