"""Ctrl-C ends long calls with KeyboardInterrupt, soon, and leaves nothing broken behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import python_environment

CHILD = """
import sys
import flock_kg as fk
model, graph, medicines = fk.Model.bundled(), fk.Graph.bundled(), fk.Graph.bundled("medicines")
questions = [(row["head"], row["relation"], None) for row in graph.triples()]
dataset, directory = sys.argv[1:]
model.predict(graph, "Portugal", "borders", None, walks=4)
print("ready", flush=True)
try:
    CALL
except KeyboardInterrupt:
    print("interrupted", flush=True)
else:
    print("finished", flush=True)
print(model.predict(graph, "Portugal", "borders", None, walks=4, top=1)[0]["answer"], flush=True)
"""

#: Calls that take minutes.
CALLS = {
    "predict": 'model.predict(graph, "Portugal", "borders", None, passes=4096)',
    "stream": 'list(model.stream(graph, "Portugal", "borders", None, passes=4096))',
    "stream of short passes": 'list(model.stream(graph, "Portugal", "borders", None, passes=4096, walks=2))',
    "predict_many": "model.predict_many(graph, questions, passes=64)",
    "predict_many with out": 'model.predict_many(graph, questions, passes=64, out=directory + "/answers.csv")',
    "explain": 'model.explain(graph, "Portugal", "borders", "Spain", passes=4096)',
    "complete": "model.complete(medicines, passes=64)",
    "score": "model.score(graph, graph.triples(), passes=64)",
    "doubtful": "model.doubtful(graph, passes=64)",
    "evaluate": "model.evaluate(medicines, limit=None, passes=64)",
    "evaluate_dataset": "model.evaluate_dataset(dataset, passes=64)",
    "finetune": "model.finetune(medicines, steps=100000)",
    "calibrate": "model.calibrate(graph, queries=200, passes=64)",
}


@pytest.mark.parametrize("call", CALLS)
def test_ctrl_c(call: str, dataset: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-c", CHILD.replace("CALL", CALLS[call]), str(dataset), str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=python_environment()) as child:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        time.sleep(0.5)
        os.kill(child.pid, signal.SIGINT)
        try:
            out, errors = child.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            child.kill()
            pytest.fail("Ctrl-C did not end it in ten seconds")
    # The model is of use afterwards, and nothing is left.
    assert (out, errors, child.returncode) == ("interrupted\nSpain\n", "", 0)
    assert list(tmp_path.iterdir()) == []
