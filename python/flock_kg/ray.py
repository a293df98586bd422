"""Bulk jobs on Ray: many questions from Parquet files, answered by several workers, as a directory of Parquet files.

>>> from flock_kg import ray as fkr                                         # doctest: +SKIP
>>> job = fkr.predict_many("graph.tsv", None, "questions.parquet", "answers", workers=8, top=5)   # doctest: +SKIP
>>> job.table()                     # the same rows as Model.predict_many   # doctest: +SKIP

A job of N questions is cut into parts: part k has the questions from k * rows_per_task on. The plan comes from the metadata of
the files alone. Ray Data hands part numbers to actors; an actor opens graph and model once, reads its questions, and writes
``part-000000007.parquet`` under a temporary name before it renames it. So a part is there whole or not at all, and whoever is
killed, worker or driver, loses only parts in work: a worker's are given out again by Ray, and the next call with the same
arguments does what a killed driver left. ``_job.json`` says of what job the parts are, and no other job gets in.

All paths must be the same on all machines: on a cluster, use a shared file system.
"""

from __future__ import annotations

import bisect
import contextlib
import hashlib
import importlib
import inspect
import json
import os
import pickle
import re
import socket
import traceback
import uuid
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, Generator, List, Optional, Sequence, Tuple, Union

from . import errors
from ._flock_kg import Calibration, Graph, Model, __version__
from ._progress import open_meter
from .errors import FlockError, QuestionError, StateError

__all__ = ["JobSummary", "complete", "predict_many", "read"]

PathLike = Union[str, "os.PathLike[str]"]
Paths = Union[PathLike, Sequence[PathLike]]
Progress = Union[bool, Callable[[int, Optional[int]], object], None]

#: The file that says of what job the parts are.
MANIFEST = "_job.json"
#: The key of what a part says besides its rows, in the metadata of its schema.
ABOUT = b"flock_kg.ray"
#: A part that has ended so many workers is given up.
ATTEMPTS = 8
#: Ray gets at most so many blocks: it is slow with many. With more parts than this, a block has several.
MAX_BLOCKS = 2000


@dataclass(frozen=True)
class JobSummary:
    """What a job has made."""

    #: The directory of the parts.
    out: Path
    #: How many questions, or scopes, the job had.
    questions: int
    #: How many rows all parts have together.
    rows: int
    #: How many parts there are.
    parts: int
    #: How many of them were there before this call.
    resumed: int
    #: The questions or scopes that failed (``on_error="skip"``): ``question`` or ``scope``, ``query`` and ``error``.
    failures: List[Dict[str, Any]] = field(default_factory=list)

    def table(self) -> Any:
        """All rows as one table of pyarrow: :func:`read`."""
        return read(self.out)


def predict_many(
    graph: Union[Graph, Paths],
    model: Union[Model, Paths, None],
    questions: Paths,
    out: PathLike,
    *,
    columns: Sequence[Union[int, str]] = ("head", "relation", "tail"),
    workers: int = 2,
    rows_per_task: int = 256,
    threads: int = 1,
    on_error: str = "raise",
    resume: bool = True,
    progress: Progress = True,
    **options: Any,
) -> JobSummary:
    """Answers all questions of Parquet files, as :meth:`flock_kg.Model.predict_many` does, with the workers of a Ray cluster.

    ``graph`` is a graph, or the path of one, which each worker opens itself. ``model`` is a model, its path or paths, or
    ``None`` for the bundled ones. ``questions`` are Parquet files or directories of them; ``None`` or ``"?"`` is the blank.
    Each of ``workers`` uses ``threads`` cores. ``options`` are those of :meth:`flock_kg.Model.predict_many`.

    With ``resume``, the parts that a call with the same arguments has left in ``out`` are used; without, ``out`` begins anew.
    With ``on_error="skip"``, failing questions are reported in the summary; else the first that is met ends the job.
    """
    plan = _Plan("predict_many", "question", questions, columns, rows_per_task)
    return _run(plan, graph, model, out, workers, threads, on_error, resume, progress, options)


def complete(
    graph: Union[Graph, Paths],
    model: Union[Model, Paths, None],
    scopes: Paths,
    out: PathLike,
    *,
    columns: Sequence[Union[int, str]] = ("head", "relation", "tail"),
    workers: int = 2,
    rows_per_task: int = 1,
    threads: int = 1,
    on_error: str = "raise",
    resume: bool = True,
    progress: Progress = True,
    **options: Any,
) -> JobSummary:
    """Lists missing links, as :meth:`flock_kg.Model.complete` does, for each row of Parquet files: a head, a relation, a tail,
    or several of them. What is null or ``"?"`` is left open.

    The rows have a column ``scope`` in front: the number of the row of ``scopes``. A scope that is interrupted goes on where
    its state was last kept. The arguments are those of :func:`predict_many`, ``options`` those of
    :meth:`flock_kg.Model.complete`.
    """
    plan = _Plan("complete", "scope", scopes, columns, rows_per_task)
    if plan.total == 0:
        raise _error(QuestionError, f"{plan.files[0]}: no scopes in it", "a row for each completion")
    return _run(plan, graph, model, out, workers, threads, on_error, resume, progress, options)


def read(out: PathLike, *, partial: bool = False) -> Any:
    """All rows of a job as one table of pyarrow, by question (or scope) and rank.

    A job that is not done is an error, or with ``partial`` what there is.
    """
    pa, pq = _pyarrow("read()")
    directory = Path(out)
    manifest = _manifest(directory)
    if manifest is None:
        raise _error(StateError, f"{directory}: no {MANIFEST} in it", "the out= of a job")
    total = int(manifest["parts"])
    parts = [part for part in (_part(directory, number) for number in range(total)) if part.exists()]
    if len(parts) < total and not partial:
        raise _error(StateError, f"{directory}: {total - len(parts)} of {total} parts are missing",
                     f"call {manifest['call']} again with the same arguments, or read(out, partial=True)")
    if not parts:
        return pa.table({})
    tables = []
    for part in parts:
        with pq.ParquetFile(part) as file:
            tables.append(file.read().replace_schema_metadata(None))
    # A completion that failed has no rows, and no columns to speak of.
    return _joined([table for table in tables if table.num_rows] or tables[:1])


# What is to be done: files, parts, settings.


@dataclass(frozen=True)
class _RowGroup:
    """A row group of a file of questions: the unit that Parquet reads."""

    file: str
    group: int
    first: int  # the number of its first question
    count: int


class _Plan:
    """The questions of a job, as parts of equal size over all files. Reads metadata alone."""

    def __init__(
        self, call: str, unit: str, questions: Paths, columns: Sequence[Union[int, str]], rows_per_task: int
    ) -> None:
        _, pq = _pyarrow(f"{call}()")
        if rows_per_task < 1:
            raise _error(QuestionError, f"found rows_per_task={rows_per_task}", "rows_per_task= from 1")
        if isinstance(columns, str) or len(columns) != 3:
            raise _error(QuestionError, "columns= is no choice of three", "columns=(0, 1, 2), or three names")
        self.call = call
        self.unit = unit
        self.rows_per_task = rows_per_task
        self.files = _parquet_files(questions)
        self.groups: List[_RowGroup] = []
        self.columns: Tuple[str, ...] = ()
        self.total = 0
        for file in self.files:
            try:
                metadata = pq.read_metadata(file)
            except _pyarrow_error() as e:
                raise _error(QuestionError, f"{file}: no Parquet file: {e}", "a file of Parquet, or a directory of them") \
                    from e
            names = metadata.schema.to_arrow_schema().names
            # Numbers are of the first file; all others must have columns of the same names.
            self.columns = self.columns or tuple(_column(file, names, column) for column in columns)
            for column in self.columns:
                _column(file, names, column)
            for group in range(metadata.num_row_groups):
                count = metadata.row_group(group).num_rows
                self.groups.append(_RowGroup(str(file), group, self.total, count))
                self.total += count

    @property
    def parts(self) -> int:
        # A job without questions has a part without rows, so that its table has columns.
        return max(1, -(-self.total // self.rows_per_task))

    def count(self, part: int) -> int:
        """How many questions a part has."""
        return min(self.rows_per_task, self.total - part * self.rows_per_task)

    def identity(self) -> Dict[str, Any]:
        """What must be the same for the work to go on."""
        files = [{"name": file.name, "bytes": file.stat().st_size, "sha256": _digest(file)} for file in self.files]
        return {"call": self.call, "questions": self.total, "rows_per_task": self.rows_per_task, "parts": self.parts,
                "columns": list(self.columns), "files": files}


def _column(file: Path, names: List[str], column: Union[int, str]) -> str:
    if isinstance(column, int) and 0 <= column < len(names):
        return names[column]
    if column in names:
        return str(column)
    raise _error(QuestionError, f"{file}: no column {column!r}; there are {', '.join(names)}",
                 "columns= the names of head, relation and tail")


def _parquet_files(given: Paths) -> List[Path]:
    found: List[Path] = []
    for path in _paths(given):
        if path.is_dir():
            inside = sorted(file for file in path.rglob("*.parquet") if not file.name.startswith((".", "_")))
            if not inside:
                raise _error(QuestionError, f"{path}: no files *.parquet in it", "check the path")
            found.extend(inside)
        elif path.exists():
            found.append(path)
        else:
            raise _error(QuestionError, f"{path}: no such file", "check the path")
    if not found:
        raise _error(QuestionError, "no file was named", "a file of Parquet, or a directory of them")
    return found


def _paths(given: Paths) -> List[Path]:
    """Absolute paths: workers may be in another directory."""
    several = [given] if isinstance(given, (str, os.PathLike)) else list(given)
    for path in several:
        if str(path).startswith("sparql:") or str(path) == "-":
            raise _error(QuestionError, f"{path}: a worker cannot open it again", "graph=fk.Graph.from_file(…), loaded once")
    return [Path(path).absolute() for path in several]


def _digest(path: Path) -> str:
    """A sum over a file, or over all files of a directory with their names."""
    sum = hashlib.sha256()
    if path.is_dir():
        for inside in sorted(inside for inside in path.rglob("*") if inside.is_file()):
            sum.update(f"{inside.relative_to(path)} {_digest(inside)}\n".encode())
        return sum.hexdigest()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            sum.update(block)
    return sum.hexdigest()


def _graph_identity(graph: Union[Graph, List[Path]]) -> Dict[str, Any]:
    """A graph as its name and a sum over what its answers depend on."""
    if isinstance(graph, Graph):
        # A pickle has all that answers depend on: triples (or a sum over them), labels and calibrations.
        content, _, _, calibrations, _ = _state(graph)
        return {"name": graph.name, "triples": graph.num_triples,
                "sha256": hashlib.sha256(content + calibrations.encode()).hexdigest()}
    files = []
    for path in graph:
        if not path.exists():
            raise _error(errors.GraphNotFoundError, f"{path}: no such file", "check the path")
        beside = path.with_name(path.name + ".calibration.json")
        files.append({"name": path.name, "sha256": _digest(path),
                      "calibration": _digest(beside) if beside.exists() and len(graph) == 1 else None})
    return {"files": files}


def _model_identity(model: Model) -> Dict[str, Any]:
    sources, _, precision, _, _ = _state(model)
    defaults = json.dumps([text for _, _, text, _ in sources])
    tasks: List[Any] = list(model.tasks)
    return {"precision": precision, "sha256": {task: model.sha256(task) for task in tasks},
            "calibration": hashlib.sha256(defaults.encode()).hexdigest()}


def _state(thing: Union[Graph, Model, Calibration]) -> Tuple[Any, ...]:
    """What a pickle of it has."""
    reduced: Any = thing.__reduce__()
    return tuple(reduced[1])


def _open_model(model: Union[Model, List[Path], None], threads: int) -> Model:
    """The model with so many threads, whatever it had."""
    if model is None:
        return Model.bundled(threads=threads)
    if isinstance(model, Model):
        from ._flock_kg import _model_from_state

        sources, _, *rest = _state(model)
        return _model_from_state(sources, threads, *rest)
    return Model.from_file(*model, threads=threads)


#: Arguments of the calls that the job gives itself.
_NO_OPTIONS = {
    "predict_many": {"self", "graph", "questions", "out"},
    "complete": {"self", "graph", "head", "relation", "tail", "state"},
}


def _checked_options(call: str, options: Dict[str, Any]) -> Dict[str, Any]:
    """The options that differ from the defaults, as JSON has them. Refuses those that the call does not have."""
    known = inspect.signature(getattr(Model, call)).parameters
    for name in options:
        if name not in known or name in _NO_OPTIONS[call]:
            raise TypeError(f"{call}() got an unexpected keyword argument {name!r}")
    changed = {name: value for name, value in options.items() if not _equal(value, known[name].default)}
    if isinstance(changed.get("calibration"), Calibration):
        changed["calibration"] = hashlib.sha256(_state(changed["calibration"])[0].encode()).hexdigest()
    # As they are read back: tuples as lists, numbers and arrays of numpy as what they are.
    plain: Dict[str, Any] = json.loads(json.dumps(changed, default=lambda value: value.tolist()))
    return plain


def _equal(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))


# The directory of the parts.


def _part(out: Path, part: int) -> Path:
    return out / f"part-{part:09}.parquet"


def _attempts_file(out: Path, part: int) -> Path:
    """A line for each worker that has begun with a part. Readers of Parquet directories leave out names like this."""
    return out / f".part-{part:09}.attempts"


def _state_file(out: Path, scope: int) -> Path:
    """What a completion has found so far."""
    return out / f".scope-{scope:09}.state"


def _strays(out: Path) -> List[Path]:
    """Files that workers leave behind when they are killed."""
    return [*out.glob(".part-*"), *out.glob(".scope-*")]


def _manifest(out: Path) -> Optional[Dict[str, Any]]:
    path = out / MANIFEST
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as e:
        raise _error(StateError, f"{path}: no description of a job: {e}", "another out=") from e
    if not isinstance(found, dict) or found.get("format") != "flock_kg.ray" or found.get("version") != 1:
        raise _error(StateError, f"{path}: no description of a job of this version", "another out=")
    return found


def _prepare(out: Path, identity: Dict[str, Any], resume: bool) -> None:
    """Makes the directory, or checks that its parts are of this job."""
    manifest = {"format": "flock_kg.ray", "version": 1, **identity}
    found = _manifest(out) if out.exists() else None
    if found is None and out.exists() and (not out.is_dir() or any(not f.name.startswith(".") for f in out.iterdir())):
        raise _error(StateError, f"{out}: has other files in it, and no {MANIFEST}", "another out=")
    if found is not None and not resume:
        for old in [*out.glob("part-*.parquet"), *_strays(out)]:
            old.unlink()
    elif found is not None and found != manifest:
        wrong = [key for key in sorted({*found, *manifest}) if found.get(key) != manifest.get(key)]
        told = "; ".join(f"{key} is {_short(found.get(key))} there, {_short(manifest.get(key))} here" for key in wrong)
        raise _error(StateError, f"{out}: is of another job: {told}",
                     "the same arguments to go on with it, another out=, or resume=False to begin anew")
    out.mkdir(parents=True, exist_ok=True)
    for count in out.glob(".part-*.attempts"):
        count.unlink()
    if found != manifest:
        _write(out / MANIFEST, lambda path: path.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8"))


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 100 else text[:97] + "…"


def _write(path: Path, write: Callable[[Path], object]) -> None:
    """Writes a file, whole or not at all: under a temporary name, flushed, renamed."""
    temporary = path.with_name(f".{path.stem}.{uuid.uuid4().hex}.tmp")
    try:
        write(temporary)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _about(part: Path) -> Tuple[int, List[Dict[str, Any]]]:
    """How many rows a part has, and what failed in it: from its metadata."""
    _, pq = _pyarrow("read()")
    metadata = pq.read_metadata(part)
    failures: List[Dict[str, Any]] = json.loads(metadata.metadata[ABOUT])["failures"]
    return metadata.num_rows, failures


# The workers.


@dataclass(frozen=True)
class _Job:
    """What each worker gets."""

    call: str
    unit: str
    out: Path
    graph: Any  # paths, or the reference of a Graph in Ray's store
    model: Any  # paths, None, or the reference of a Model
    identity: Dict[str, Any]
    threads: int
    groups: List[_RowGroup]
    columns: Tuple[str, ...]
    total: int
    rows_per_task: int
    skip: bool
    options: Dict[str, Any]


@dataclass
class _Report:
    """What a worker tells the driver about a part."""

    part: int
    error: Optional[Exception] = None
    trace: str = ""
    warnings: List[Tuple[str, str]] = field(default_factory=list)


class _Worker:
    """An actor: opens graph and model with its first part, and keeps them."""

    def __init__(self, job: _Job) -> None:
        self._job = job
        self._engine: Optional[Tuple[Graph, Model, Dict[str, Any]]] = None
        self._firsts = [group.first for group in job.groups]
        self._last: Tuple[int, Any] = (-1, None)  # the row group that was read last

    def __call__(self, batch: Dict[str, Any]) -> Dict[str, Any]:
        # Errors are told, not raised: the driver raises them as they are, without the layers of Ray around them.
        return {"report": [pickle.dumps(self._report(int(part))) for part in batch["part"]]}

    def _report(self, part: int) -> _Report:
        report = _Report(part)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                self._do(part)
            except Exception as error:
                report.error = error if _survives_pickle(error) else RuntimeError(repr(error))
                report.trace = "" if isinstance(error, FlockError) else traceback.format_exc()
        # Failures are in the part, and the driver warns of them once.
        own = [(kind.category.__name__, str(kind.message)) for kind in heard if kind.category.__module__ == errors.__name__]
        report.warnings = list(dict.fromkeys(own))
        return report

    def _do(self, part: int) -> None:
        job = self._job
        path = _part(job.out, part)
        if path.exists():  # from before its worker was killed
            return
        first = part * job.rows_per_task
        count = min(job.rows_per_task, job.total - first)
        attempts = _attempts_file(job.out, part)
        with open(attempts, "a+", encoding="utf-8") as file:
            file.seek(0)
            if len(file.readlines()) >= ATTEMPTS:
                what = f"{job.unit}s {first} to {first + count - 1}"
                raise _error(StateError, f"{what} have ended {ATTEMPTS} workers, as {attempts} tells",
                             "more memory, a smaller rows_per_task= in another out=, or leave them out")
            file.write(f"{socket.gethostname()} {os.getpid()}\n")
        if self._engine is None:
            self._engine = self._open()
        questions = self._questions(first, count)
        ask = self._predict if job.call == "predict_many" else self._complete
        table, failures = ask(questions, first)
        about = {"first": first, "count": count, "failures": failures}
        table = table.replace_schema_metadata({ABOUT: json.dumps(about).encode()})
        _, pq = _pyarrow(f"{job.call}()")
        _write(path, lambda temporary: pq.write_table(table, temporary, compression="zstd"))
        for at in range(first, first + count):
            _state_file(job.out, at).unlink(missing_ok=True)
        attempts.unlink(missing_ok=True)

    def _open(self) -> Tuple[Graph, Model, Dict[str, Any]]:
        job = self._job
        if isinstance(job.graph, list):
            self._same("graph", _graph_identity(job.graph))
            graph: Graph = Graph.from_file(job.graph)
        else:
            graph = _ray(f"{job.call}()").get(job.graph)
        by_path = job.model is None or isinstance(job.model, list)
        model = _open_model(job.model if by_path else _ray(f"{job.call}()").get(job.model), job.threads)
        self._same("model", _model_identity(model))
        return graph, model, dict(job.options)

    def _same(self, what: str, found: Dict[str, Any]) -> None:
        if found != self._job.identity[what]:
            raise _error(StateError, f"{socket.gethostname()}: the {what} is not that of the job",
                         "the same file at the same path on all machines, and no change to it while the job runs")

    def _questions(self, first: int, count: int) -> Any:
        """Rows of the files, as a table of head, relation and tail."""
        pa, _ = _pyarrow("predict_many()")
        pieces = []
        at = max(0, bisect.bisect_right(self._firsts, first) - 1)
        for group in range(at, len(self._job.groups)):
            found = self._job.groups[group]
            begin, end = max(first, found.first), min(first + count, found.first + found.count)
            if found.first >= first + count:
                break
            if begin < end:
                pieces.append(self._group(group).slice(begin - found.first, end - begin))
        if not pieces:  # a job without questions
            names = ("head", "relation", "tail")
            return pa.table({name: pa.array([], pa.string()) for name in names})
        return _joined(pieces)

    def _group(self, number: int) -> Any:
        if self._last[0] != number:
            _, pq = _pyarrow("predict_many()")
            group = self._job.groups[number]
            with pq.ParquetFile(group.file) as file:
                table = file.read_row_group(group.group, columns=list(self._job.columns))
            table = table.select(list(self._job.columns)).rename_columns(["head", "relation", "tail"])
            self._last = (number, table.replace_schema_metadata(None))
        return self._last[1]

    def _predict(self, questions: Any, first: int) -> Tuple[Any, List[Dict[str, Any]]]:
        pa, _ = _pyarrow("predict_many()")
        assert self._engine is not None
        graph, model, options = self._engine
        try:
            answers = model.predict_many(graph, questions, columns=("head", "relation", "tail"),
                                         on_error="skip" if self._job.skip else "raise", **options)
        except FlockError as error:
            error.args = (_renumbered(str(error), first), *error.args[1:])
            raise
        table = pa.table(answers)
        numbers = importlib.import_module("pyarrow.compute").add(table.column("question"), first)
        table = table.set_column(0, table.schema.field("question"), numbers)
        failures = [{**failure, "question": failure["question"] + first, "error": _renumbered(failure["error"], first)}
                    for failure in answers.info["failures"]]
        return table, failures

    def _complete(self, scopes: Any, first: int) -> Tuple[Any, List[Dict[str, Any]]]:
        pa, _ = _pyarrow("complete()")
        assert self._engine is not None
        graph, model, options = self._engine
        tables: List[Any] = []
        failures: List[Dict[str, Any]] = []
        for scope, row in enumerate(scopes.to_pylist(), first):
            given: Dict[str, Any] = {name: None if cell in (None, "?") else str(cell) for name, cell in row.items()}
            try:
                state = _state_file(self._job.out, scope)
                links = model.complete(graph, **given, state=state, **options)
            except FlockError as error:
                text = f"scope {scope}: {error}"
                if not self._job.skip or not isinstance(error, QuestionError):
                    error.args = (text, *error.args[1:])
                    raise
                failures.append({"scope": scope, "query": [cell or "?" for cell in given.values()], "error": text})
                continue
            table = pa.table(links)
            tables.append(table.add_column(0, pa.field("scope", pa.int64()), pa.array([scope] * len(table), pa.int64())))
        return _joined(tables) if tables else pa.table({"scope": pa.array([], pa.int64())}), failures


def _joined(tables: List[Any]) -> Any:
    """Tables one below the other. Where only some have a column, the others have nulls there."""
    pa, _ = _pyarrow("read()")
    return pa.concat_tables(tables, promote_options="default").combine_chunks()


def _renumbered(text: str, first: int) -> str:
    """A message that begins with the number of a question in its part, with the number in the job instead."""
    return re.sub(r"^question (\d+): ", lambda found: f"question {int(found[1]) + first}: ", text)


def _survives_pickle(error: Exception) -> bool:
    try:
        return type(pickle.loads(pickle.dumps(error))) is type(error)
    except Exception:
        return False


# The driver.


def _run(
    plan: _Plan,
    graph: Union[Graph, Paths],
    model: Union[Model, Paths, None],
    out: PathLike,
    workers: int,
    threads: int,
    on_error: str,
    resume: bool,
    progress: Progress,
    options: Dict[str, Any],
) -> JobSummary:
    ray = _ray(f"{plan.call}()")
    for name, value in [("workers", workers), ("threads", threads)]:
        if value < 1:
            raise _error(QuestionError, f"found {name}={value}", f"{name}= from 1")
    if on_error not in ("raise", "skip"):
        raise _error(QuestionError, f"found on_error={on_error!r}", 'on_error="raise" or "skip"')
    directory = Path(out).absolute()
    checked = _checked_options(plan.call, options)
    found_graph = graph if isinstance(graph, Graph) else _paths(graph)
    found_model = model if model is None or isinstance(model, Model) else _paths(model)
    # Neither workers nor threads, nor what happens to failing questions, change the rows of the others.
    identity = {**plan.identity(), "graph": _graph_identity(found_graph), "options": checked, "flock_kg": __version__,
                "model": _model_identity(_open_model(found_model, threads))}
    _prepare(directory, identity, resume)

    there = [part for part in range(plan.parts) if _part(directory, part).exists()]
    if on_error == "raise":
        for part in there:
            for failure in _about(_part(directory, part))[1]:
                raise QuestionError(failure["error"])
    missing = sorted(set(range(plan.parts)) - set(there))
    if missing:
        if not ray.is_initialized():
            ray.init()
        job = _Job(plan.call, plan.unit, directory, _shared(ray, found_graph), _shared(ray, found_model), identity, threads,
                   plan.groups, plan.columns, plan.total, plan.rows_per_task, on_error == "skip", options)
        meter = open_meter(progress, f"{plan.unit}s")
        done = sum(plan.count(part) for part in there)
        told: Dict[Tuple[str, str], None] = {}
        try:
            if meter is not None:
                meter.update(done, plan.total)
            # Closed at once if a part fails: the traceback would keep it, and so the actors, alive.
            with contextlib.closing(_reports(job, missing, workers)) as reports:
                for report in reports:
                    told.update(dict.fromkeys(report.warnings))
                    if report.error is not None:
                        raise report.error from (RuntimeError(f"in a worker:\n{report.trace}") if report.trace else None)
                    done += plan.count(report.part)
                    if meter is not None:
                        meter.update(done, plan.total)
        finally:
            if meter is not None:
                meter.close()
        for kind, text in told:
            warnings.warn(text, getattr(errors, kind), stacklevel=3)
    for stray in _strays(directory):
        stray.unlink(missing_ok=True)

    rows, failures = 0, []
    for part in range(plan.parts):
        count, failed = _about(_part(directory, part))
        rows += count
        failures.extend(failed)
    if failures:
        text = f"{len(failures)} of {plan.total} {plan.unit}s failed, the first: {failures[0]['error']}"
        warnings.warn(text, UserWarning, stacklevel=3)
    return JobSummary(directory, plan.total, rows, plan.parts, len(there), failures)


def _shared(ray: Any, thing: Any) -> Any:
    """A graph or model once in Ray's store, from where each worker takes it."""
    return ray.put(thing) if isinstance(thing, (Graph, Model)) else thing


def _reports(job: _Job, parts: List[int], workers: int) -> Generator[_Report, None, None]:
    """Gives the parts to actors, and tells what became of each."""
    data = importlib.import_module("ray.data")
    context = data.DataContext.get_current()
    bars, context.enable_progress_bars = context.enable_progress_bars, False
    try:
        # Actors that die are started again and their tasks are retried without end: Ray's default for a pool of actors.
        # One task at a time for each: a queue behind a long part would wait while other actors are idle.
        pool = data.ActorPoolStrategy(size=min(workers, len(parts)), max_tasks_in_flight_per_actor=1)
        units = data.from_items([{"part": part} for part in parts], override_num_blocks=min(len(parts), MAX_BLOCKS))
        done = units.map_batches(_Worker, fn_constructor_kwargs={"job": job}, compute=pool, batch_size=1,
                                 num_cpus=job.threads)
        for row in done.iter_rows():
            yield pickle.loads(row["report"])
    finally:
        context.enable_progress_bars = bars


# Other libraries, and errors.


def _ray(call: str) -> Any:
    try:
        importlib.import_module("ray.data")
        return importlib.import_module("ray")
    except ImportError as error:
        raise ImportError(f'{call} needs Ray; hint: pip install "flock-kg[ray]"') from error


def _pyarrow(call: str) -> Tuple[Any, Any]:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError(f'{call} needs pyarrow; hint: pip install "flock-kg[ray]"') from error


def _pyarrow_error() -> Any:
    return _pyarrow("read()")[0].ArrowInvalid


def _error(kind: Any, message: str, remedy: str) -> Any:
    error = kind(f"{message}; hint: {remedy}")
    error.remedy = remedy
    return error
