"""Graphs and frames of other libraries. None of them is imported unless it is there already."""

from __future__ import annotations

import importlib.util
import warnings
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Tuple

from .errors import LoadError, QuestionError

if TYPE_CHECKING:
    from ._flock_kg import Table

Triple = Tuple[str, str, str]


def _error(message: str, remedy: str) -> QuestionError:
    error = QuestionError(f"{message}; hint: {remedy}")
    error.remedy = remedy
    return error


def _load_error(message: str, remedy: str) -> LoadError:
    error = LoadError(f"{message}; hint: {remedy}")
    error.remedy = remedy
    return error


def _is_pandas(frame: Any) -> bool:
    kind = type(frame)
    return kind.__name__ == "DataFrame" and kind.__module__.split(".")[0] == "pandas"


def frame(given: Any) -> Optional[Any]:
    """The same as something with ``__arrow_c_stream__``, or ``None`` if it is no frame."""
    if _is_pandas(given):
        # Without the index, which may be of any kind and is no part of a triple. Names of columns may be numbers.
        plain = given.rename(columns=str)
        for at, name in enumerate(plain.columns):
            # A column that is left open in every row is one of numbers to pandas.
            if list(plain.columns).count(name) == 1 and plain.iloc[:, at].isna().all():
                plain[name] = [None] * len(plain)
                plain[name] = plain[name].astype(object)
        if importlib.util.find_spec("pyarrow") is None:
            return _texts(plain)
        import pyarrow

        try:
            return pyarrow.Table.from_pandas(plain, preserve_index=False)
        except pyarrow.ArrowException:  # a column of texts and numbers
            return _texts(plain)
    if hasattr(given, "__arrow_c_stream__"):
        return given
    if hasattr(given, "collect") and hasattr(given, "lazy"):  # a LazyFrame of polars
        return given.collect()
    return None


def _texts(frame: Any) -> Table:
    """A frame of pandas as texts, where pyarrow is not there to hand it over."""
    from ._flock_kg import _table_of_texts

    for name, kind in zip(frame.columns, frame.dtypes):
        if getattr(kind, "kind", "") == "f":
            raise _load_error(f"frame: column \"{name}\" has values of type {kind}, expected text or whole numbers",
                              "texts or whole numbers: frame.astype(str), or other columns=")
    missing = frame.isna()
    columns = [
        [None if gone else str(cell) for cell, gone in zip(frame[name], missing[name])] for name in frame.columns
    ]
    return _table_of_texts(list(frame.columns), columns)


def require_frame(given: Any) -> Any:
    """As :func:`frame`, for calls that take nothing else."""
    found = frame(given)
    if found is not None:
        return found
    raise _error(f"found {type(given).__name__}, expected a frame with the Arrow PyCapsule interface",
                 "a frame of pandas, polars, pyarrow or duckdb, or Graph.from_triples(…)")


def networkx(graph: Any, relation: str, default: Optional[str]) -> Tuple[List[Triple], Dict[str, str]]:
    """The edges of a graph of networkx as triples, and the labels of its nodes."""
    triples: List[Triple] = []
    if graph.is_multigraph():
        edges: Iterable[Tuple[Any, Any, Any, Dict[str, Any]]] = graph.edges(keys=True, data=True)
    else:
        edges = ((head, tail, None, data) for head, tail, data in graph.edges(data=True))
    for head, tail, key, data in edges:
        # The key of a multigraph is the relation if it is a text and there is no attribute.
        name = data.get(relation)
        if name is None:
            name = key if isinstance(key, str) else default
        if name is None:
            raise _error(f"the edge from {head!r} to {tail!r} has no attribute {relation!r}",
                         "relation= the name of the attribute, or default= a relation for edges without it")
        triples.append((str(head), str(name), str(tail)))
    labels = {str(node): str(data["label"]) for node, data in graph.nodes(data=True) if data.get("label") is not None}
    return triples, labels


def rdflib(graph: Any) -> Tuple[bytes, str]:
    """A graph of rdflib as text, and its format. Reading it is left to the reader of such files."""
    is_dataset = getattr(graph, "context_aware", False) and hasattr(graph, "quads")
    format, word = ("nquads", "nq") if is_dataset else ("nt", "nt")
    with warnings.catch_warnings():
        # Its serializer of datasets uses what the library itself calls deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        text = graph.serialize(format=format, encoding="utf-8")
    return bytes(text), word


def pykeen(factory: Any) -> Iterator[Triple]:
    """The triples of a triples factory of PyKEEN, or the training triples of a dataset, by their labels."""
    factory = getattr(factory, "training", factory)
    if not hasattr(factory, "mapped_triples"):
        raise _error(f"found {type(factory).__name__}, expected a TriplesFactory or a Dataset of PyKEEN",
                     "Graph.from_pykeen(dataset.training)")
    ids = factory.mapped_triples
    rows: List[List[int]] = ids.tolist()
    entities = _names(factory, "entity")
    relations = _names(factory, "relation")
    for head, relation, tail in rows:
        yield entities.get(head, str(head)), relations.get(relation, str(relation)), entities.get(tail, str(tail))


def _names(factory: Any, kind: str) -> Dict[int, str]:
    """Labels by id; none if the factory has ids alone."""
    by_label = getattr(factory, f"{kind}_to_id", None)
    if not by_label:
        return {}
    return {int(number): str(label) for label, number in by_label.items()}


def to_arrow(table: Table) -> Any:
    """A table of pyarrow that shares the memory."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError("to_arrow() needs pyarrow; hint: pip install pyarrow, or table.to_dicts()") from error
    return pyarrow.table(table)


def to_pandas(table: Table) -> Any:
    """A frame of pandas."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_pandas() needs pandas; hint: pip install pandas, or table.to_dicts()") from error
    if importlib.util.find_spec("pyarrow") is not None:
        return to_arrow(table).to_pandas()
    return pandas.DataFrame({name: table[name] for name in table.columns}, columns=table.columns)


def to_polars(table: Table) -> Any:
    """A frame of polars that shares the memory."""
    try:
        import polars
    except ImportError as error:
        raise ImportError("to_polars() needs polars; hint: pip install polars, or table.to_dicts()") from error
    return polars.DataFrame(table)
