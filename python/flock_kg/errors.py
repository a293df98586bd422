"""What can go wrong. Every error says what happened, where, and what to do about it (``remedy``)."""

from __future__ import annotations

from typing import List, Optional

__all__ = [
    "CalibrationError",
    "CalibrationWarning",
    "DatasetError",
    "FlockError",
    "GraphNotFoundError",
    "GraphWarning",
    "LoadError",
    "ModelError",
    "ModelNotFoundError",
    "QuestionError",
    "StateError",
    "TrainingError",
    "UnknownNameError",
]


class FlockError(Exception):
    """The base of all errors of this package."""

    #: What to do about it, in terms of the arguments of the call; ``None`` where nothing is known to help.
    remedy: Optional[str] = None


class LoadError(FlockError, ValueError):
    """A file or frame is no graph."""


class GraphNotFoundError(LoadError, FileNotFoundError):
    """There is no such graph file."""


class QuestionError(FlockError, ValueError):
    """A question, or an argument of it, cannot be used."""


class UnknownNameError(QuestionError, LookupError):
    """A name that the graph does not have, or that could stand for several."""

    #: ``"entity"`` or ``"relation"``.
    kind: str = ""
    #: The name as it was given.
    name: str = ""
    #: Names that may have been meant, the nearest first.
    near: List[str] = []


class ModelError(FlockError, ValueError):
    """A model file cannot be used, or there is no model for this kind of question."""


class ModelNotFoundError(ModelError, FileNotFoundError):
    """There is no such model file."""


class CalibrationError(FlockError, ValueError):
    """There is no calibration: the graph is too small, or a file is something else."""


class DatasetError(FlockError, ValueError):
    """A dataset, a held-out share or a file of results cannot be used."""


class TrainingError(FlockError, ValueError):
    """A training run cannot start, cannot go on, or a step failed."""


class StateError(FlockError, ValueError):
    """A file that keeps unfinished work is of other work, or cannot be used."""


class GraphWarning(UserWarning):
    """A graph was loaded, but something in its file looks wrong."""


class CalibrationWarning(UserWarning):
    """A calibration of the graph was not used, and why."""
