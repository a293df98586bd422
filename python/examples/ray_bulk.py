"""A bulk job on Ray: what may each medicine treat? From a Parquet file of questions to a directory of answers.

    pip install "flock-kg[ray]"
    python ray_bulk.py [directory]

Ray runs on this machine here. On a cluster, leave RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER out, call ray.init(address="auto"), and
give a directory that all machines share. Stop it while it runs and start it again with the same directory: it does only what
is missing.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import flock_kg as fk
from flock_kg import ray as fkr

# On Linux, Ray listens on all interfaces by default. This keeps it on 127.0.0.1; it must be set before Ray is imported.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
import ray  # noqa: E402


def main() -> None:
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="flock-kg-"))
    directory.mkdir(parents=True, exist_ok=True)
    graph = fk.Graph.bundled("medicines")

    # One question for each medicine that treats something: (medicine, treats, ?).
    medicines = sorted({row["head"] for row in graph.triples() if row["relation"] == "treats"})
    questions = pa.table({"head": medicines, "relation": ["treats"] * len(medicines),
                          "tail": pa.nulls(len(medicines), pa.string())})
    pq.write_table(questions, directory / "questions.parquet")

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        job = fkr.predict_many(graph, None, directory / "questions.parquet", directory / "answers", workers=2,
                               rows_per_task=32, top=3, only_new=True)
    finally:
        ray.shutdown()

    print(f"{job.questions} questions, {job.rows} rows in {job.parts} parts, {job.resumed} of them from before: {job.out}")
    for row in job.table().slice(0, 6).to_pylist():
        print(f"{row['question']:3} {row['head']:20} {row['relation']} {row['answer']:32} {row['probability']:.4f}")


if __name__ == "__main__":
    main()
