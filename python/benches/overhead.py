"""What Python costs: the overhead of a call, and the rate of many questions beside that of the command.

    python benches/overhead.py                      # 10,000 questions, about five minutes on two cores
    python benches/overhead.py --questions 1000

Prints what it measured, and as one JSON line at the end. Nothing else should run on the machine.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import flock_kg as fk


def call_overhead(model: fk.Model, graph: fk.Graph) -> dict[str, float]:
    """Milliseconds of a call beyond what the library takes for the same question, the median over rounds taken in turns."""
    question = ("Spain", "borders", "?")
    ours, library = [], []
    for _ in range(15):
        begin = time.perf_counter()
        for _ in range(20):
            model.predict(graph, *question, walks=1)
        ours.append((time.perf_counter() - begin) / 20)
        library.append(model._seconds_of_asking(graph, question, 1, 20) / 20)
    ms = [1000 * statistics.median(times) for times in (ours, library)]
    return {"call_ms": ms[0], "library_ms": ms[1], "overhead_ms": ms[0] - ms[1]}


def questions(graph: fk.Graph, count: int) -> list[tuple[str, str, str]]:
    """Tails and heads of triples, drawn with a fixed seed."""
    triples = [(row["head"], row["relation"], row["tail"]) for row in graph.triples()]
    draw = random.Random(0)
    picked = [draw.choice(triples) for _ in range(count)]
    return [(h, r, "?") if draw.random() < 0.5 else ("?", r, t) for h, r, t in picked]


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def bulk(graph: fk.Graph, asked: list[tuple[str, str, str]], rounds: int) -> dict[str, float]:
    """Questions a second: through predict_many, and by the command with the same output, in turns."""
    model = fk.Model.bundled()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        graph.triples().save(folder / "graph.csv")
        (folder / "questions.tsv").write_text("".join("\t".join(row) + "\n" for row in asked))
        ours, command = [], []
        model.predict_many(graph, asked[:50], out=folder / "warm.parquet")
        before = peak_mb()
        for _ in range(rounds):
            begin = time.perf_counter()
            rows = model.predict_many(graph, asked, out=folder / "ours.parquet")
            ours.append(time.perf_counter() - begin)
            begin = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "flock_kg", "predict", str(folder / "graph.csv"), "--queries",
                 str(folder / "questions.tsv"), "--out", str(folder / "command.parquet")],
                check=True, stderr=subprocess.DEVNULL,
            )
            command.append(time.perf_counter() - begin)
        count = len(asked)
        return {
            "questions": count,
            "rows": rows,
            "ours_per_s": count / statistics.median(ours),
            "command_per_s": count / statistics.median(command),
            "ratio": statistics.median(command) / statistics.median(ours),
            "peak_mb_before": before,
            "peak_mb_after": peak_mb(),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    graph = fk.Graph.bundled("countries")
    found = call_overhead(fk.Model.bundled(threads=1), graph)
    print("a call takes {call_ms:.3f} ms, the library alone {library_ms:.3f}: {overhead_ms:.3f} ms more".format(**found))
    found.update(bulk(graph, questions(graph, args.questions), args.rounds))
    print("{questions} questions: predict_many {ours_per_s:.1f} a second, the command {command_per_s:.1f}: "
          "{ratio:.3f} of its rate; peak memory {peak_mb_before:.0f} MB after 50 questions, {peak_mb_after:.0f} MB at the "
          "end".format(**found))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
