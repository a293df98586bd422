"""Types of the native half of the package. The documentation is in the docstrings of the module itself."""

from os import PathLike
from pathlib import Path
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Literal,
    Mapping,
    Optional,
    Protocol,
    Sequence,
    Tuple,
    Union,
    final,
    overload,
)

__all__ = [
    "__version__",
    "Graph",
    "Model",
    "Table",
    "Explanation",
    "Evaluation",
    "Calibration",
    "_run_command",
    "_calibration_from_state",
    "_graph_from_state",
    "_model_from_state",
    "_table_from_state",
    "_table_of_texts",
]

__version__: str

_Path = Union[str, "PathLike[str]"]
_Triple = Tuple[str, str, str]
_Question = Tuple[Optional[str], Optional[str], Optional[str]]
_Columns = Union[Tuple[int, int, int], Tuple[str, str, str], Sequence[Union[int, str]]]
_Cell = Union[str, int, float, bool, None]
_Row = Dict[str, Any]
_Task = Literal["entity", "relation"]
_Precision = Literal["f32", "bf16"]
_Pickle = Literal["content", "path"]
_OnError = Literal["raise", "skip"]
_Progress = Union[bool, Callable[[int, Optional[int]], object], None]

class _ArrowStream(Protocol):
    """A frame of any library with the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

# pandas and lazy frames of polars have no type here: they are not needed to use the package.
_Frame = Union[_ArrowStream, Any]

@final
class Graph:
    @classmethod
    def from_file(
        cls,
        path: Union[_Path, Sequence[_Path]],
        *,
        format: Optional[str] = None,
        columns: Optional[_Columns] = None,
        header: Optional[bool] = None,
        lenient: bool = False,
        languages: Optional[Sequence[str]] = None,
        labels: Optional[_Path] = None,
        page_size: Optional[int] = None,
        pickle: _Pickle = "content",
    ) -> Graph: ...
    @classmethod
    def from_triples(
        cls, triples: Union[Iterable[_Triple], _Frame], *, labels: Optional[Mapping[str, str]] = None
    ) -> Graph: ...
    @classmethod
    def from_arrow(cls, frame: _Frame, *, columns: Optional[_Columns] = None, lenient: bool = False) -> Graph: ...
    @classmethod
    def from_pandas(cls, frame: _Frame, *, columns: Optional[_Columns] = None, lenient: bool = False) -> Graph: ...
    @classmethod
    def from_polars(cls, frame: _Frame, *, columns: Optional[_Columns] = None, lenient: bool = False) -> Graph: ...
    @classmethod
    def from_networkx(cls, graph: Any, *, relation: str = "relation", default: Optional[str] = None) -> Graph: ...
    @classmethod
    def from_rdflib(cls, graph: Any, *, languages: Optional[Sequence[str]] = None) -> Graph: ...
    @classmethod
    def from_pykeen(cls, factory: Any) -> Graph: ...
    @classmethod
    def bundled(cls, name: Literal["countries", "medicines"] = "countries") -> Graph: ...
    @property
    def name(self) -> str: ...
    @property
    def num_entities(self) -> int: ...
    @property
    def num_relations(self) -> int: ...
    @property
    def num_triples(self) -> int: ...
    @property
    def entities(self) -> List[str]: ...
    @property
    def relations(self) -> List[str]: ...
    @property
    def notes(self) -> List[str]: ...
    @property
    def calibration(self) -> Optional[Calibration]: ...
    def triples(self) -> Table: ...
    def find_entity(self, text: str) -> str: ...
    def find_relation(self, text: str) -> str: ...
    def label(self, name: str) -> Optional[str]: ...
    def with_labels(self, labels: Mapping[str, str]) -> Graph: ...
    def add(self, triples: Union[Iterable[_Triple], _Frame]) -> Graph: ...
    def remove(self, triples: Union[Iterable[_Triple], _Frame]) -> Graph: ...
    def __len__(self) -> int: ...
    def __contains__(self, triple: object, /) -> bool: ...
    def _repr_html_(self) -> str: ...
    def __reduce__(self) -> Tuple[Any, ...]: ...

@final
class Model:
    @classmethod
    def bundled(cls, *, threads: Optional[int] = None, precision: Optional[_Precision] = None) -> Model: ...
    @classmethod
    def from_file(
        cls,
        *paths: _Path,
        threads: Optional[int] = None,
        precision: Optional[_Precision] = None,
        pickle: _Pickle = "content",
    ) -> Model: ...
    @property
    def tasks(self) -> List[str]: ...
    @property
    def threads(self) -> int: ...
    @property
    def precision(self) -> str: ...
    @property
    def training(self) -> Optional[Dict[str, Any]]: ...
    def sha256(self, task: _Task = "entity") -> str: ...
    def save(self, path: _Path, *, task: Optional[_Task] = None) -> None: ...
    def predict(
        self,
        graph: Graph,
        head: Optional[str],
        relation: Optional[str],
        tail: Optional[str],
        *,
        top: int = 10,
        passes: Optional[int] = None,
        walks: Optional[int] = None,
        seed: int = 0,
        budget: Optional[float] = None,
        only_new: bool = False,
        among: Optional[Sequence[str]] = None,
        among_type: Union[Tuple[str, str], Sequence[Tuple[str, str]], None] = None,
        among_range: Union[str, Sequence[str], None] = None,
        among_domain: Union[str, Sequence[str], None] = None,
        reasons: bool = False,
        max_hops: int = 4,
        calibration: Optional[Calibration] = None,
        ids: bool = False,
    ) -> Table: ...
    def stream(
        self,
        graph: Graph,
        head: Optional[str],
        relation: Optional[str],
        tail: Optional[str],
        *,
        top: int = 10,
        passes: Optional[int] = None,
        walks: Optional[int] = None,
        seed: int = 0,
        budget: Optional[float] = None,
        only_new: bool = False,
        reasons: bool = False,
        max_hops: int = 4,
        calibration: Optional[Calibration] = None,
        ids: bool = False,
    ) -> Iterator[Table]: ...
    @overload
    def predict_many(
        self,
        graph: Graph,
        questions: Union[Iterable[_Question], _Frame],
        *,
        columns: Optional[_Columns] = None,
        top: int = 10,
        passes: Optional[int] = None,
        walks: Optional[int] = None,
        seed: int = 0,
        budget: Optional[float] = None,
        only_new: bool = False,
        among: Optional[Sequence[str]] = None,
        among_type: Union[Tuple[str, str], Sequence[Tuple[str, str]], None] = None,
        among_range: Union[str, Sequence[str], None] = None,
        among_domain: Union[str, Sequence[str], None] = None,
        reasons: bool = False,
        max_hops: int = 4,
        calibration: Optional[Calibration] = None,
        ids: bool = False,
        on_error: _OnError = "raise",
        out: None = None,
        progress: _Progress = None,
    ) -> Table: ...
    @overload
    def predict_many(
        self,
        graph: Graph,
        questions: Union[Iterable[_Question], _Frame],
        *,
        columns: Optional[_Columns] = None,
        top: int = 10,
        passes: Optional[int] = None,
        walks: Optional[int] = None,
        seed: int = 0,
        budget: Optional[float] = None,
        only_new: bool = False,
        among: Optional[Sequence[str]] = None,
        among_type: Union[Tuple[str, str], Sequence[Tuple[str, str]], None] = None,
        among_range: Union[str, Sequence[str], None] = None,
        among_domain: Union[str, Sequence[str], None] = None,
        reasons: bool = False,
        max_hops: int = 4,
        calibration: Optional[Calibration] = None,
        ids: bool = False,
        on_error: _OnError = "raise",
        out: _Path,
        progress: _Progress = None,
    ) -> int: ...
    def complete(
        self,
        graph: Graph,
        *,
        relation: Optional[str] = None,
        head: Optional[str] = None,
        tail: Optional[str] = None,
        top: int = 1000,
        pairs: Literal["observed", "compatible", "all"] = "compatible",
        search: Literal["tails", "heads", "both"] = "both",
        rank_by: Literal["score", "specificity"] = "specificity",
        order: Literal["expected", "random"] = "expected",
        questions: int = 0,
        shard: Optional[Tuple[int, int]] = None,
        budget: Optional[float] = None,
        reasons: bool = False,
        state: Optional[_Path] = None,
        passes: Optional[int] = None,
        walks: Optional[int] = None,
        seed: int = 0,
        calibration: Optional[Calibration] = None,
        ids: bool = False,
        progress: _Progress = None,
    ) -> Table: ...
    def score(
        self,
        graph: Graph,
        triples: Union[Iterable[_Triple], _Frame],
        *,
        columns: Optional[_Columns] = None,
        passes: Optional[int] = None,
        walks: Optional[int] = None,
        seed: int = 0,
        state: Optional[_Path] = None,
        calibration: Optional[Calibration] = None,
        ids: bool = False,
        on_error: _OnError = "raise",
        progress: _Progress = None,
    ) -> Table: ...
    def doubtful(
        self,
        graph: Graph,
        *,
        relation: Optional[str] = None,
        sample: Optional[int] = None,
        top: int = 100,
        passes: Optional[int] = None,
        walks: Optional[int] = None,
        seed: int = 0,
        state: Optional[_Path] = None,
        calibration: Optional[Calibration] = None,
        ids: bool = False,
        progress: _Progress = None,
    ) -> Table: ...
    def explain(
        self,
        graph: Graph,
        head: str,
        relation: str,
        tail: str,
        *,
        blank: Literal["head", "relation", "tail"] = "tail",
        top: int = 5,
        max_hops: int = 4,
        updates: int = 2,
        hide: int = 3,
        draws: int = 3,
        check: bool = True,
        passes: Optional[int] = None,
        walks: Optional[int] = None,
        seed: int = 0,
        calibration: Optional[Calibration] = None,
        ids: bool = False,
    ) -> Explanation: ...
    def evaluate(
        self,
        graph: Graph,
        *,
        holdout: float = 0.1,
        task: Optional[_Task] = None,
        limit: Optional[int] = 1000,
        passes: int = 1,
        walks: Optional[int] = None,
        seed: int = 0,
        progress: _Progress = None,
    ) -> Evaluation: ...
    def evaluate_dataset(
        self,
        path: _Path,
        *,
        task: Optional[_Task] = None,
        split: Literal["test", "valid"] = "test",
        passes: Union[int, Literal["published"], None] = None,
        walks: Union[int, Literal["rule", "published"], None] = None,
        limit: Optional[int] = None,
        seed: int = 0,
        ranks: bool = False,
        out: Optional[_Path] = None,
        fresh: bool = False,
        progress: _Progress = None,
    ) -> Evaluation: ...
    def finetune(
        self,
        graph: Union[Graph, _Path],
        *,
        minutes: Optional[float] = None,
        steps: Optional[int] = None,
        task: Optional[_Task] = None,
        out: Optional[_Path] = None,
        rate: Optional[float] = None,
        batch: Optional[int] = None,
        negatives: Optional[int] = None,
        holdout: Optional[float] = None,
        seed: Optional[int] = None,
        precision: Optional[_Precision] = None,
        settings: Optional[Mapping[str, Any]] = None,
        progress: _Progress = None,
    ) -> Model: ...
    def calibrate(
        self,
        graph: Graph,
        *,
        task: Optional[_Task] = None,
        queries: int = 200,
        top: int = 10,
        passes: int = 1,
        walks: Optional[int] = None,
        seed: int = 0,
        progress: _Progress = None,
    ) -> Calibration: ...
    def _seconds_of_asking(self, graph: Graph, question: _Triple, walks: int, count: int) -> float: ...
    def __reduce__(self) -> Tuple[Any, ...]: ...

@final
class Table:
    @property
    def columns(self) -> List[str]: ...
    @property
    def info(self) -> Dict[str, Any]: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: int, /) -> _Row: ...
    @overload
    def __getitem__(self, key: slice, /) -> Table: ...
    @overload
    def __getitem__(self, key: str, /) -> List[Any]: ...
    def __iter__(self) -> Iterator[_Row]: ...
    def to_dicts(self) -> List[_Row]: ...
    def to_pandas(self) -> Any: ...
    def to_polars(self) -> Any: ...
    def to_arrow(self) -> Any: ...
    def save(self, path: _Path, *, format: Optional[str] = None) -> None: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def __arrow_c_schema__(self) -> Any: ...
    def _repr_html_(self) -> str: ...
    def __reduce__(self) -> Tuple[Any, ...]: ...

@final
class Explanation:
    @property
    def info(self) -> Dict[str, Any]: ...
    @property
    def reasons(self) -> Table: ...
    @property
    def logit(self) -> float: ...
    @property
    def probability(self) -> float: ...
    @property
    def known(self) -> bool: ...
    @property
    def svg(self) -> str: ...
    def _repr_svg_(self) -> str: ...

@final
class Evaluation:
    @property
    def mrr(self) -> float: ...
    @property
    def hits1(self) -> float: ...
    @property
    def hits3(self) -> float: ...
    @property
    def hits10(self) -> float: ...
    @property
    def mean_rank(self) -> float: ...
    @property
    def coverage(self) -> float: ...
    @property
    def sentence(self) -> str: ...
    @property
    def task(self) -> str: ...
    @property
    def info(self) -> Dict[str, Any]: ...
    @property
    def table(self) -> Table: ...
    @property
    def ranks(self) -> Optional[Table]: ...
    def beside_published(self, setting: Literal["zero-shot", "fine-tuned"] = "zero-shot") -> Table: ...
    def _repr_html_(self) -> str: ...

@final
class Calibration:
    @staticmethod
    def from_file(path: _Path) -> Calibration: ...
    @property
    def info(self) -> Dict[str, Any]: ...
    @property
    def svg(self) -> Optional[str]: ...
    def save(self, path: Optional[_Path] = None) -> Path: ...
    def _repr_svg_(self) -> Optional[str]: ...
    def __reduce__(self) -> Tuple[Any, ...]: ...

def _run_command(args: Sequence[str]) -> int: ...
def _calibration_from_state(text: str, picture: Optional[str], beside: Optional[str]) -> Calibration: ...
def _graph_from_state(
    bytes: bytes, name: str, notes: List[str], calibrations: str, files: Optional[str]
) -> Graph: ...
def _model_from_state(
    sources: List[Tuple[str, Optional[bytes], Optional[str], str]],
    threads: Optional[int],
    precision: str,
    by_path: bool,
    training: Optional[str],
) -> Model: ...
def _table_from_state(rows: bytes, rest: str) -> Table: ...
def _table_of_texts(names: List[str], columns: List[List[Optional[str]]]) -> Table: ...
