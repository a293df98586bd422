"""Models, graphs and helpers that the tests share.

Most questions are asked with ``walks=4``: a few milliseconds each, and as deterministic as with more.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, List, Tuple

import pytest

import flock_kg as fk

#: Datasets outside the repository. Tests that use them are skipped where they are not there.
SHARED = Path(__file__).resolve().parents[3] / "shared"

#: A small graph whose names need care: accents, commas, quotes, markup, spaces, other scripts.
TRIPLES = [
    ("São Tomé", "capital of", "São Tomé and Príncipe"),
    ("Lisbon", "capital of", "Portugal"),
    ("Madrid", "capital of", "Spain"),
    ("Paris", "capital of", "France"),
    ("東京", "capital of", "日本"),
    ("Portugal", "borders", "Spain"),
    ("Spain", "borders", "France"),
    ("Congo, Republic of the", "borders", "Congo, Democratic Republic of the"),
    ('Kingdom "of" Spain', "same as", "Spain"),
    ("Côte d'Ivoire", "member of", "African Union"),
    ("São Tomé and Príncipe", "member of", "African Union"),
    ("Congo, Republic of the", "member of", "African Union"),
    ("Portugal", "member of", "European Union"),
    ("Spain", "member of", "European Union"),
    ("France", "member of", "European Union"),
    ("<script>alert(1)</script>", "member of", "R&D"),
]

Triples = List[Tuple[str, str, str]]


def triples_of(graph: fk.Graph) -> Triples:
    """The triples of a graph, sorted."""
    return sorted((row["head"], row["relation"], row["tail"]) for row in graph.triples())


def python_environment() -> dict:
    """The environment of subprocesses: warnings are errors there too."""
    return {**os.environ, "PYTHONWARNINGS": "error", "PYTHONIOENCODING": "utf-8"}


@pytest.fixture(scope="session")
def model() -> fk.Model:
    return fk.Model.bundled()


@pytest.fixture(scope="session")
def countries() -> fk.Graph:
    """Nobody calibrates this one: tests that do so make their own."""
    return fk.Graph.bundled("countries")


@pytest.fixture(scope="session")
def medicines() -> fk.Graph:
    return fk.Graph.bundled("medicines")


@pytest.fixture(scope="session")
def small() -> fk.Graph:
    return fk.Graph.from_triples(TRIPLES)


@pytest.fixture(scope="session")
def ring() -> fk.Graph:
    """Twelve entities and three relations, small enough to train on."""
    relations = (("x", 1), ("y", 2), ("z", 5))
    return fk.Graph.from_triples([(f"a{i}", r, f"a{(i * k + 1) % 12}") for i in range(12) for r, k in relations])


@pytest.fixture(scope="session")
def countries_file(tmp_path_factory: pytest.TempPathFactory, countries: fk.Graph) -> Path:
    """The countries as a file, for the command. Nothing is written beside it."""
    path = tmp_path_factory.mktemp("graphs") / "countries.tsv"
    countries.triples().save(path)
    return path


@pytest.fixture(scope="session")
def from_file(countries_file: Path) -> fk.Graph:
    return fk.Graph.from_file(countries_file)


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory, countries: fk.Graph) -> Path:
    """A directory as benchmark datasets have it: a tenth of the triples tests, another tenth validates."""
    directory = tmp_path_factory.mktemp("datasets") / "Countries"
    directory.mkdir()
    parts: dict = {"train": [], "valid": [], "test": []}
    for at, (head, relation, tail) in enumerate(triples_of(countries)):
        part = {0: "test", 5: "valid"}.get(at % 10, "train")
        parts[part].append(f"{head}\t{relation}\t{tail}\n")
    for part, lines in parts.items():
        (directory / f"{part}.txt").write_text("".join(lines), encoding="utf-8")
    return directory


@pytest.fixture(scope="session")
def command() -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Runs ``python -m flock_kg`` with some arguments. The exit status must be as expected."""

    def run(*args: Any, status: int = 0, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        words = [sys.executable, "-m", "flock_kg", *map(str, args)]
        done = subprocess.run(words, input=stdin, capture_output=True, text=True, encoding="utf-8", timeout=120,
                              env=python_environment())
        assert done.returncode == status, done.stderr
        return done

    return run


@pytest.fixture(scope="session")
def python() -> Callable[..., str]:
    """Runs Python code in another process, where some modules cannot be imported. Returns what it prints."""

    def run(code: str, *, without: Tuple[str, ...] = (), args: Tuple[Any, ...] = (), timeout: float = 60) -> str:
        hidden = "".join(f"sys.modules[{name!r}] = None\n" for name in without)
        words = [sys.executable, "-c", f"import sys\n{hidden}{code}", *map(str, args)]
        done = subprocess.run(words, capture_output=True, text=True, encoding="utf-8", timeout=timeout,
                              env=python_environment())
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
