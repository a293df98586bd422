"""Bulk jobs on Ray: the same rows as one process, whatever is killed, and no mixing of jobs.

One Ray of two workers serves all tests, on the loopback interface alone. Jobs are small: most of the time is that of starting
actors, 2 to 5 s for each job.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

import flock_kg as fk
from flock_kg import ray as fkr
from flock_kg.errors import GraphNotFoundError, QuestionError, StateError, UnknownNameError

pa = pytest.importorskip("pyarrow", reason="jobs on Ray read and write Parquet with pyarrow")
pq = pytest.importorskip("pyarrow.parquet", reason="jobs on Ray read and write Parquet with pyarrow")

pc = pytest.importorskip("pyarrow.compute", reason="jobs on Ray read and write Parquet with pyarrow")

# Ray listens on all interfaces, unless it is told before its import that this machine has no part in a cluster. Giving
# 127.0.0.1 to ray.init does not help: Ray replaces it by an address that others can reach.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"

# Ray reads deprecated settings of its own.
pytestmark = pytest.mark.filterwarnings(r"ignore::DeprecationWarning:ray\.")

OPTIONS: Dict[str, Any] = {"top": 3, "walks": 16, "seed": 5}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    ray = pytest.importorskip("ray", reason='Ray is not installed: pip install "flock-kg[ray]"')
    pytest.importorskip("ray.data", reason='Ray Data is not installed: pip install "flock-kg[ray]"')
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    assert ray.util.get_node_ip_address() == "127.0.0.1", "Ray was imported before this file, and is open to the network"
    yield ray
    ray.shutdown()


@pytest.fixture(scope="module")
def graph() -> fk.Graph:
    return fk.Graph.bundled("medicines")


def questions(graph: fk.Graph, count: int) -> Any:
    """Questions of all three kinds: every third one asks for a tail, a head, a relation."""
    rows: List[Dict[str, Any]] = []
    for at, triple in enumerate(graph.triples()[:count]):
        blank = ["tail", "head", "relation"][at % 3]
        rows.append({**triple, blank: None if at % 2 else "?"})
    return pa.Table.from_pylist(rows)


def same(found: Any, expected: fk.Table) -> bool:
    """Equal to the last bit, with the same names and types."""
    wanted = expected.to_arrow().combine_chunks()
    return bool(found.schema.equals(wanted.schema, check_metadata=True) and found.equals(wanted))


def parts(out: Path) -> List[Path]:
    return sorted(out.glob("part-*.parquet"))


def wait_for(condition: Any, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


# With Ray.


def test_same_rows_as_one_process(cluster: Any, graph: fk.Graph, tmp_path: Path) -> None:
    # Two files, row groups of 7, parts of 9: parts cross both.
    frame = questions(graph, 40)
    (tmp_path / "asked").mkdir()
    pq.write_table(frame.slice(0, 25), tmp_path / "asked" / "a.parquet", row_group_size=7)
    pq.write_table(frame.slice(25), tmp_path / "asked" / "b.parquet", row_group_size=7)
    told: List[Any] = []
    job = fkr.predict_many(graph, fk.Model.bundled(threads=2), tmp_path / "asked", tmp_path / "out", rows_per_task=9,
                           progress=lambda done, total: told.append((done, total)), reasons=True, **OPTIONS)
    expected = fk.Model.bundled().predict_many(graph, frame, reasons=True, **OPTIONS)
    assert same(job.table(), expected)
    assert (job.questions, job.rows, job.parts, job.resumed, job.failures) == (40, len(expected), 5, 0, [])
    assert told[0] == (0, 40) and told[-1] == (40, 40)
    # Nothing but the parts and the manifest is left, and a directory reader sees the parts alone.
    assert sorted(f.name for f in job.out.iterdir()) == ["_job.json"] + [f"part-00000000{k}.parquet" for k in range(5)]
    assert pq.read_table(job.out).num_rows == job.rows


def test_worker_killed(cluster: Any, graph: fk.Graph, tmp_path: Path) -> None:
    frame = questions(graph, 60)
    pq.write_table(frame, tmp_path / "q.parquet")
    out = tmp_path / "out"
    killed: List[int] = []

    def kill() -> None:
        # The attempts file of a part in work names the process; its part is not there yet.
        wait_for(lambda: parts(out) and any(out.glob(".part-*.attempts")))
        while not killed:
            for attempts in out.glob(".part-*.attempts"):
                try:
                    pid = int(attempts.read_text().split()[1])
                except (FileNotFoundError, IndexError):
                    continue
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                break

    killer = threading.Thread(target=kill)
    killer.start()
    job = fkr.predict_many(graph, None, tmp_path / "q.parquet", out, rows_per_task=6, progress=None, **OPTIONS)
    killer.join()
    assert killed and not Path(f"/proc/{killed[0]}/cmdline").exists()
    assert same(job.table(), fk.Model.bundled().predict_many(graph, frame, **OPTIONS))
    assert (job.parts, job.resumed) == (10, 0)


def test_driver_killed(cluster: Any, graph: fk.Graph, tmp_path: Path) -> None:
    frame = questions(graph, 90)
    pq.write_table(frame, tmp_path / "q.parquet")
    graph.triples().save(tmp_path / "graph.tsv")
    out = tmp_path / "out"
    arguments = {"graph": str(tmp_path / "graph.tsv"), "model": None, "questions": str(tmp_path / "q.parquet"),
                 "out": str(out), "rows_per_task": 5, "progress": None, **OPTIONS}
    script = textwrap.dedent("""
        import json, sys
        import ray
        from flock_kg import ray as fkr
        ray.init(address=sys.argv[1], log_to_driver=False)
        fkr.predict_many(**json.loads(sys.argv[2]))
    """)
    address = cluster.get_runtime_context().gcs_address
    with open(tmp_path / "log", "wb") as log:
        driver = subprocess.Popen([sys.executable, "-c", script, address, json.dumps(arguments)], stdout=log, stderr=log)
        try:
            wait_for(lambda: len(parts(out)) >= 2 or driver.poll() is not None)
        finally:
            driver.kill()
            driver.wait()
    assert driver.returncode == -signal.SIGKILL, (tmp_path / "log").read_text()
    # Its actors end with it; until then they may finish the parts they have.
    wait_for(lambda: cluster.available_resources().get("CPU") == 2)
    before = {part: part.stat().st_mtime_ns for part in parts(out)}
    assert 2 <= len(before) < 18
    with pytest.raises(StateError, match=f"{18 - len(before)} of 18 parts are missing; hint: call predict_many again"):
        fkr.read(out)
    assert len(fkr.read(out, partial=True)) >= 2 * 5

    job = fkr.predict_many(**arguments)
    assert (job.parts, job.resumed) == (18, len(before))
    assert {part: part.stat().st_mtime_ns for part in before} == before
    expected = fk.Model.bundled().predict_many(fk.Graph.from_file(tmp_path / "graph.tsv"), frame, **OPTIONS)
    assert same(job.table(), expected)


def test_failing_questions(cluster: Any, graph: fk.Graph, tmp_path: Path) -> None:
    rows = questions(graph, 24).to_pylist()
    rows[17] = {"head": "no such medicine", "relation": "is a", "tail": None}
    frame = pa.Table.from_pylist(rows)
    pq.write_table(frame, tmp_path / "q.parquet")
    arguments: Dict[str, Any] = {"rows_per_task": 4, "progress": None, **OPTIONS}
    with pytest.raises(UnknownNameError, match='^question 17: unknown entity "no such medicine"') as caught:
        fkr.predict_many(graph, None, tmp_path / "q.parquet", tmp_path / "out", **arguments)
    assert (caught.value.kind, caught.value.name) == ("entity", "no such medicine")

    # The same job goes on with the parts that there are, and leaves the question out.
    with pytest.warns(UserWarning, match="1 of 24 questions failed, the first: question 17: "):
        job = fkr.predict_many(graph, None, tmp_path / "q.parquet", tmp_path / "out", on_error="skip", **arguments)
    assert [(f["question"], f["query"]) for f in job.failures] == [(17, ["no such medicine", "is a", "?"])]
    with pytest.warns(UserWarning):
        expected = fk.Model.bundled().predict_many(graph, frame, on_error="skip", **OPTIONS)
    assert job.failures == expected.info["failures"]
    assert same(job.table(), expected)

    # The part remembers that a question failed. No worker is needed to say so.
    with pytest.raises(QuestionError, match="^question 17: "):
        fkr.predict_many(graph, None, tmp_path / "q.parquet", tmp_path / "out", **arguments)


def test_complete(cluster: Any, tmp_path: Path) -> None:
    graph, model = fk.Graph.bundled("countries"), fk.Model.bundled()
    scopes = [{"head": "Spain", "relation": "borders", "tail": None}, {"head": "Atlantis", "relation": "borders", "tail": "?"},
              {"head": None, "relation": "official_language", "tail": "German"}]
    pq.write_table(pa.Table.from_pylist(scopes), tmp_path / "s.parquet")
    options: Dict[str, Any] = {"top": 4, "walks": 16, "pairs": "observed"}
    with pytest.warns(UserWarning, match="1 of 3 scopes failed, the first: scope 1: unknown entity"):
        job = fkr.complete(graph, None, tmp_path / "s.parquet", tmp_path / "out", on_error="skip", progress=None, **options)
    found = job.table()
    assert found.column_names[0] == "scope" and set(found["scope"].to_pylist()) == {0, 2}
    for number, scope in enumerate(scopes):
        if number == 1:
            continue
        rows = found.filter(pc.equal(found["scope"], number)).drop_columns(["scope"]).combine_chunks()
        given = {name: None if cell == "?" else cell for name, cell in scope.items()}
        assert same(rows, model.complete(graph, **given, **options))
    assert (job.questions, job.parts, [f["scope"] for f in job.failures]) == (3, 3, [1])
    assert not list(job.out.glob(".*"))  # states of completions are gone


# Without workers: what is refused before any starts, and a worker by itself.


def finished(graph_file: Path, questions_file: Path, out: Path, **options: Any) -> fkr.JobSummary:
    """A job of one part, done by a worker in this process."""
    plan = fkr._Plan("predict_many", "question", questions_file, ("head", "relation", "tail"), 256)
    identity = {**plan.identity(), "graph": fkr._graph_identity([graph_file]), "options": options,
                "flock_kg": fk.__version__, "model": fkr._model_identity(fk.Model.bundled())}
    fkr._prepare(out, identity, True)
    report = worker(plan, identity, graph_file, out, options)._report(0)
    assert report.error is None, report
    return fkr.JobSummary(out, plan.total, 0, plan.parts, 0)


def worker(plan: Any, identity: Dict[str, Any], graph_file: Path, out: Path, options: Dict[str, Any]) -> Any:
    return fkr._Worker(fkr._Job("predict_many", "question", out, [graph_file], None, identity, 1, plan.groups, plan.columns,
                                plan.total, plan.rows_per_task, False, options))


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A directory with a graph and questions about it, of which there are other names for the columns, too."""
    graph = fk.Graph.bundled("countries")
    graph.triples().save(tmp_path / "graph.tsv")
    frame = questions(graph, 4)
    pq.write_table(frame, tmp_path / "q.parquet")
    pq.write_table(frame.rename_columns(["s", "p", "o"]), tmp_path / "spo.parquet")
    pq.write_table(frame.slice(0, 0), tmp_path / "none.parquet")
    return tmp_path


def test_another_job_is_refused(small: Path) -> None:
    pytest.importorskip("ray", reason='Ray is not installed: pip install "flock-kg[ray]"')
    out = small / "out"
    finished(small / "graph.tsv", small / "q.parquet", out, walks=16)
    call: Dict[str, Any] = {"progress": None, "walks": 16}
    # A default that is spelt out, and another number of workers, are the same job: nothing is to be done.
    job = fkr.predict_many(small / "graph.tsv", None, small / "q.parquet", out, top=10, workers=7, **call)
    graph, frame = fk.Graph.from_file(small / "graph.tsv"), pq.read_table(small / "q.parquet")
    assert job.resumed == 1 and same(job.table(), fk.Model.bundled().predict_many(graph, frame, walks=16))
    with pytest.raises(StateError, match="options is .* there, .* here; hint: the same arguments") as caught:
        fkr.predict_many(small / "graph.tsv", None, small / "q.parquet", out, top=11, **call)
    assert caught.value.remedy and "resume=False" in caught.value.remedy
    with pytest.raises(StateError, match="another job: .*rows_per_task is 256 there, 2 here"):
        fkr.predict_many(small / "graph.tsv", None, small / "q.parquet", out, rows_per_task=2, **call)
    with open(small / "graph.tsv", "a", encoding="utf-8") as file:
        file.write("Atlantis\tborders\tSpain\n")
    with pytest.raises(StateError, match="another job: graph is "):
        fkr.predict_many(small / "graph.tsv", None, small / "q.parquet", out, **call)
    # A directory of something else is left alone.
    (small / "mine").mkdir()
    (small / "mine" / "part-000000000.parquet").write_bytes(b"mine")
    for resume in (True, False):
        with pytest.raises(StateError, match="has other files in it, and no _job.json; hint: another out="):
            fkr.predict_many(small / "graph.tsv", None, small / "q.parquet", small / "mine", resume=resume, **call)


def test_wrong_arguments(small: Path) -> None:
    pytest.importorskip("ray", reason='Ray is not installed: pip install "flock-kg[ray]"')
    graph, asked, out = small / "graph.tsv", small / "q.parquet", small / "out"
    with pytest.raises(QuestionError, match="no column 'head'; there are s, p, o; hint: columns="):
        fkr.predict_many(graph, None, small / "spo.parquet", out)
    with pytest.raises(QuestionError, match="nowhere.parquet: no such file"):
        fkr.predict_many(graph, None, small / "nowhere.parquet", out)
    with pytest.raises(QuestionError, match="graph.tsv: no Parquet file"):
        fkr.predict_many(graph, None, graph, out)
    with pytest.raises(GraphNotFoundError, match="nowhere.tsv: no such file"):
        fkr.predict_many(small / "nowhere.tsv", None, asked, out)
    with pytest.raises(TypeError, match="unexpected keyword argument 'tpo'"):
        fkr.predict_many(graph, None, asked, out, tpo=3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'state'"):
        fkr.complete(graph, None, asked, out, state="x")
    with pytest.raises(QuestionError, match="found workers=0"):
        fkr.predict_many(graph, None, asked, out, workers=0)
    with pytest.raises(QuestionError, match="found on_error='ignore'"):
        fkr.predict_many(graph, None, asked, out, on_error="ignore")
    with pytest.raises(QuestionError, match="none.parquet: no scopes in it"):
        fkr.complete(graph, None, small / "none.parquet", out)
    assert not out.exists()


def test_columns_of_other_names(small: Path) -> None:
    for columns in [("s", "p", "o"), (0, 1, 2)]:
        plan = fkr._Plan("predict_many", "question", small / "spo.parquet", columns, 3)
        assert plan.columns == ("s", "p", "o") and (plan.parts, plan.count(1)) == (2, 1)
        job = worker(plan, {}, small / "graph.tsv", small, {})
        assert job._questions(1, 2).equals(pq.read_table(small / "q.parquet").slice(1, 2))


def test_no_questions(small: Path) -> None:
    finished(small / "graph.tsv", small / "none.parquet", small / "out", walks=16)
    assert same(fkr.read(small / "out"), fk.Model.bundled().predict_many(fk.Graph.bundled("countries"), []))


def test_a_part_that_ends_every_worker_is_given_up(small: Path) -> None:
    finished(small / "graph.tsv", small / "q.parquet", small / "out", walks=16)
    plan = fkr._Plan("predict_many", "question", small / "q.parquet", ("head", "relation", "tail"), 256)
    fkr._part(small / "out", 0).unlink()
    fkr._attempts_file(small / "out", 0).write_text("host 1\n" * fkr.ATTEMPTS)
    report = worker(plan, {}, small / "graph.tsv", small / "out", {})._report(0)
    assert isinstance(report.error, StateError) and "questions 0 to 3 have ended 8 workers" in str(report.error)


def test_a_changed_graph_is_refused_by_the_worker(small: Path) -> None:
    (small / "out").mkdir()
    plan = fkr._Plan("predict_many", "question", small / "q.parquet", ("head", "relation", "tail"), 256)
    report = worker(plan, {"graph": {"files": []}}, small / "graph.tsv", small / "out", {})._report(0)
    assert isinstance(report.error, StateError) and "the graph is not that of the job" in str(report.error)


def test_calibration_reaches_the_worker(small: Path) -> None:
    graph, model = fk.Graph.bundled("countries"), fk.Model.bundled()
    calibration = model.calibrate(graph, queries=60, walks=16)
    assert pickle.loads(pickle.dumps(calibration)).info == calibration.info
    checked = fkr._checked_options("predict_many", {"calibration": calibration, "top": 10, "among_type": ("a", "b")})
    assert sorted(checked) == ["among_type", "calibration"] and checked["among_type"] == ["a", "b"]


def test_without_ray(small: Path) -> None:
    script = textwrap.dedent("""
        import sys
        sys.modules["ray"] = None
        from flock_kg import ray as fkr
        try:
            fkr.predict_many(None, None, sys.argv[1], "out")
        except ImportError as error:
            print(error)
    """)
    told = subprocess.run([sys.executable, "-c", script, str(small / "q.parquet")], capture_output=True, text=True, check=True)
    assert told.stdout == 'predict_many() needs Ray; hint: pip install "flock-kg[ray]"\n'
