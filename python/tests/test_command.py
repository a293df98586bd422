"""The command: it gives the same numbers as the Python calls, to the last bit, and behaves in a shell."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import flock_kg as fk
from conftest import python_environment

QUESTIONS = [("Portugal", "borders", None), (None, "capital", "Lisbon"), ("Portugal", None, "Spain"),
             ("Japan", "continent", None), ("France", None, "Germany")]


def lines(text: str) -> list:
    return [json.loads(line) for line in text.splitlines()]


def numbers(info: dict) -> dict:
    """All but what the clock and the machine decide."""
    machine = ("seconds", "time", "gflops", "overhead", "threads")
    return {name: value for name, value in info.items() if name not in machine}


def write_rows(path: Path, rows: list) -> Path:
    text = [["head", "relation", "tail"], *([name or "?" for name in row] for row in rows)]
    path.write_text("".join("\t".join(row) + "\n" for row in text), encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=[1, 2])
def threaded(request: pytest.FixtureRequest) -> fk.Model:
    """Models on one and on two threads: both give the numbers of a command on all."""
    return fk.Model.bundled(threads=request.param)


def test_threads_are_as_asked(threaded: fk.Model, request: pytest.FixtureRequest) -> None:
    assert threaded.threads == request.node.callspec.params["threaded"]


@pytest.fixture(scope="module")
def predicted(command, countries_file: Path) -> dict:
    words = ["predict", countries_file, "Portugal", "borders", "?", "--json", "--passes", 3, "--seed", 5, "--walks", 8]
    return json.loads(command(*words).stdout)


def test_predict(threaded: fk.Model, from_file: fk.Graph, predicted: dict) -> None:
    answers = threaded.predict(from_file, "Portugal", "borders", None, passes=3, seed=5, walks=8)
    said = predicted["answers"]
    assert answers["answer"] == [row["name"] for row in said]
    for name in ("rank", "logit", "probability", "spread", "visits", "known"):
        assert answers[name] == [row[name] for row in said]
    assert answers.info == {name: value for name, value in predicted.items() if name != "answers"}


@pytest.fixture(scope="module")
def predicted_many(command, countries_file: Path, tmp_path_factory: pytest.TempPathFactory) -> list:
    file = tmp_path_factory.mktemp("questions") / "questions.tsv"
    file.write_text("".join("\t".join(name or "?" for name in row) + "\n" for row in QUESTIONS), encoding="utf-8")
    words = ["predict", countries_file, "--queries", file, "--output", "jsonl", "--walks", 4, "--explain"]
    return lines(command(*words).stdout)


def test_predict_many(threaded: fk.Model, from_file: fk.Graph, predicted_many: list) -> None:
    answers = threaded.predict_many(from_file, QUESTIONS, walks=4, reasons=True).to_dicts()
    assert [{name: value for name, value in row.items() if name != "question"} for row in answers] == predicted_many
    assert len(predicted_many) == 10 + 10 + 8 + 10 + 8


@pytest.fixture(scope="module")
def completed(command, countries_file: Path) -> list:
    words = ["complete", countries_file, "--relation", "capital", "--top", 15, "--walks", 4, "--seed", 2]
    return lines(command(*words, "--questions", 20, "--output", "jsonl").stdout)


def test_complete(threaded: fk.Model, from_file: fk.Graph, completed: list) -> None:
    links = threaded.complete(from_file, relation="capital", top=15, walks=4, seed=2, questions=20)
    assert links.to_dicts() == completed and len(completed) == 15


@pytest.fixture(scope="module")
def scored(command, countries_file: Path, tmp_path_factory: pytest.TempPathFactory) -> list:
    file = write_rows(tmp_path_factory.mktemp("triples") / "triples.tsv", TO_SCORE)
    return lines(command("score", countries_file, file, "--output", "jsonl", "--passes", 2, "--walks", 4).stdout)


TO_SCORE = [("Portugal", "borders", "Spain"), ("Portugal", "borders", "Japan"), ("Japan", "continent", "Asia")]


def test_score(threaded: fk.Model, from_file: fk.Graph, scored: list) -> None:
    assert threaded.score(from_file, TO_SCORE, passes=2, walks=4).to_dicts() == scored
    assert [row["known"] for row in scored] == [True, False, True]


@pytest.fixture(scope="module")
def doubted(command, countries_file: Path) -> list:
    words = ["score", countries_file, "--existing", "--relation", "capital", "--sample", 12, "--top", 5, "--walks", 4]
    return lines(command(*words, "--output", "jsonl").stdout)


def test_doubtful(threaded: fk.Model, from_file: fk.Graph, doubted: list) -> None:
    assert threaded.doubtful(from_file, relation="capital", sample=12, top=5, walks=4).to_dicts() == doubted


@pytest.fixture(scope="module")
def explained(command, countries_file: Path) -> dict:
    words = ["explain", countries_file, "Portugal", "borders", "Spain", "--walks", 8, "--passes", 2, "--top", 3]
    return json.loads(command(*words, "--json").stdout)


def test_explain(threaded: fk.Model, from_file: fk.Graph, explained: dict) -> None:
    assert threaded.explain(from_file, "Portugal", "borders", "Spain", walks=8, passes=2, top=3).info == explained
    assert explained["deletion"]["fall"] != 0


@pytest.fixture(scope="module", params=["entity", "relation"])
def evaluated(request: pytest.FixtureRequest, command, countries_file: Path) -> dict:
    words = ["eval", countries_file, "--holdout", 0.2, "--json", "--limit", 12, "--walks", 4, "--seed", 3]
    return json.loads(command(*words, "--task", request.param).stdout)[0]


def test_evaluate(threaded: fk.Model, from_file: fk.Graph, evaluated: dict) -> None:
    result = threaded.evaluate(from_file, task=evaluated["task"], holdout=0.2, limit=12, walks=4, seed=3)
    assert numbers(result.info) == numbers(evaluated)
    assert result.mrr == evaluated["summary"]["mrr"] and result.task == evaluated["task"]


@pytest.fixture(scope="module")
def evaluated_dataset(command, dataset: Path) -> dict:
    words = ["eval", dataset, "--json", "--limit", 12, "--walks", 4, "--passes", 1]
    return json.loads(command(*words).stdout)[0]


def test_evaluate_dataset(threaded: fk.Model, dataset: Path, evaluated_dataset: dict) -> None:
    result = threaded.evaluate_dataset(dataset, limit=12, walks=4, passes=1)
    assert numbers(result.info) == numbers(evaluated_dataset) and result.mrr == evaluated_dataset["mrr"]


def test_calibration_of_the_command(command, model: fk.Model, countries: fk.Graph, tmp_path: Path) -> None:
    path = tmp_path / "countries.tsv"
    countries.triples().save(path)
    command("calibrate", path, "--queries", 30, "--walks", 4)
    beside = tmp_path / "countries.tsv.calibration.json"
    by_command = fk.Graph.from_file(path)
    assert by_command.calibration is not None
    beside.unlink()
    plain = fk.Graph.from_file(path)
    assert plain.calibration is None
    model.calibrate(plain, queries=30, walks=4)
    asked = ("Portugal", "borders", None)
    assert model.predict(plain, *asked, walks=4).to_dicts() == model.predict(by_command, *asked, walks=4).to_dicts()


# In a shell


def test_version(command) -> None:
    assert command("--version").stdout == f"flock-kg {fk.__version__}\n"
    script = Path(sys.executable).with_name("flock-kg")
    if script.exists():
        done = subprocess.run([script, "--version"], capture_output=True, text=True)
        assert done.stdout == f"flock-kg {fk.__version__}\n"


def test_misuse_is_status_2(command, countries_file: Path) -> None:
    assert "unrecognized subcommand 'bogus'" in command("bogus", status=2).stderr
    assert "--bogus" in command("predict", countries_file, "--bogus", status=2).stderr


def test_an_error_is_status_1_and_one_line(command, countries_file: Path) -> None:
    done = command("predict", "nowhere.tsv", "a", "b", "?", status=1)
    assert done.stdout == "" and done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: nowhere.tsv: no such file")
    done = command("predict", countries_file, "Portugl", "borders", "?", status=1)
    assert 'unknown entity "Portugl"; near names: "Portugal"' in done.stderr and "Traceback" not in done.stderr


def test_results_are_on_standard_output_alone(command, countries_file: Path) -> None:
    done = command("predict", countries_file, "Portugal", "borders", "?", "--walks", 4, "--top", 1, "--output", "csv")
    assert len(done.stdout.splitlines()) == 2 and done.stdout.startswith("head,relation,tail,rank,answer")
    assert "left out: header row" in done.stderr


def test_standard_input(command, countries_file: Path) -> None:
    done = command("predict", countries_file, "--queries", "-", "--walks", 4, "--top", 1, "--output", "jsonl",
                   stdin="Portugal\tborders\t?\n")
    assert lines(done.stdout)[0]["answer"] == "Spain"


def test_a_reader_that_leaves_is_no_error(countries_file: Path, tmp_path: Path) -> None:
    # More than a pipe holds, so that the command still writes when head has gone.
    questions = tmp_path / "questions.tsv"
    questions.write_text("Portugal\tborders\t?\n" * 60)
    words = [sys.executable, "-m", "flock_kg", "predict", countries_file, "--queries", questions]
    words = shlex.join(map(str, [*words, "--walks", 4, "--top", 0, "--output", "jsonl"]))
    done = subprocess.run(["bash", "-c", f'{words} | head -1; echo "${{PIPESTATUS[0]}}"'], capture_output=True,
                          text=True, timeout=60, env=python_environment())
    first, status = done.stdout.splitlines()
    assert json.loads(first)["answer"] == "Spain" and status in ("0", str(128 + signal.SIGPIPE)), done
    assert "error" not in done.stderr.lower() and "panicked" not in done.stderr and "Traceback" not in done.stderr


def test_ctrl_c_ends_the_command(countries_file: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "flock_kg", "predict", countries_file, "Portugal", "borders", "?"]
    words += ["--passes", "4096"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=python_environment()) as child:
        assert child.stderr is not None and b"header row" in child.stderr.readline()
        time.sleep(0.3)
        os.kill(child.pid, signal.SIGINT)
        try:
            out, said = child.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            child.kill()
            pytest.fail("Ctrl-C did not end it in ten seconds")
    assert child.returncode in (-signal.SIGINT, 128 + signal.SIGINT) and out == b"" and b"Traceback" not in said
