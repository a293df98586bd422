"""Predict missing links in any knowledge graph, with one pretrained model, on a plain CPU.

>>> import flock_kg as fk
>>> graph = fk.Graph.bundled("countries")
>>> model = fk.Model.bundled()
>>> model.predict(graph, "Spain", "official_language", None, top=3)[0]["answer"]
'Spanish'

A :class:`Graph` holds names and triples, a :class:`Model` answers questions about any graph. Results are
:class:`Table`\\ s: rows to print or to iterate over, which pandas, polars, pyarrow and duckdb take without a copy.
"""

from __future__ import annotations

from . import errors
from ._flock_kg import Calibration, Evaluation, Explanation, Graph, Model, Table, __version__
from .errors import FlockError

__all__ = [
    "Calibration",
    "Evaluation",
    "Explanation",
    "FlockError",
    "Graph",
    "Model",
    "Table",
    "__version__",
    "errors",
]
