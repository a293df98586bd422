"""Progress of long calls: through tqdm if it is there, else a line on standard error."""

from __future__ import annotations

import sys
import time
from typing import Any, Callable, Optional, Protocol


class Meter(Protocol):
    """Hears how far the work is."""

    def update(self, done: int, total: Optional[int]) -> None: ...

    def close(self) -> None: ...


class FunctionMeter:
    """Calls a function of the caller's, whenever something has changed."""

    def __init__(self, function: Callable[[int, Optional[int]], object]) -> None:
        self._function = function
        self._last: Optional[tuple[int, Optional[int]]] = None

    def update(self, done: int, total: Optional[int]) -> None:
        if (done, total) != self._last:
            self._last = (done, total)
            self._function(done, total)

    def close(self) -> None:
        pass


class TqdmMeter:
    """A bar of tqdm, in a notebook or on a terminal."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def update(self, done: int, total: Optional[int]) -> None:
        if total is not None and self._bar.total != total:
            self._bar.total = total
            self._bar.refresh()
        if done != self._bar.n:
            self._bar.update(done - self._bar.n)

    def close(self) -> None:
        self._bar.close()


class LineMeter:
    """A line on standard error, every few seconds, for those without tqdm."""

    SECONDS = 5.0

    def __init__(self, what: str) -> None:
        self._what = what
        self._begin = self._told = time.monotonic()

    def update(self, done: int, total: Optional[int]) -> None:
        now = time.monotonic()
        if now - self._told >= self.SECONDS and done:
            self._told = now
            left = ""
            if total:
                seconds = (now - self._begin) / done * (total - done)
                left = f" of {total}, about {seconds:.0f} s left"
            print(f"{done}{left} {self._what}", file=sys.stderr, flush=True)

    def close(self) -> None:
        pass


def open_meter(progress: Any, what: str) -> Optional[Meter]:
    """A meter for what a caller gave as ``progress``: a function, true, or nothing."""
    if progress is None or progress is False:
        return None
    if callable(progress):
        return FunctionMeter(progress)
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return LineMeter(what)
    return TqdmMeter(tqdm(total=None, unit=f" {what}"))
