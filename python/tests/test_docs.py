"""Examples in docstrings and in the README run and show what they say."""

import contextlib
import doctest
import io
import re
from pathlib import Path

import flock_kg
import pytest


@pytest.fixture(autouse=True)
def full_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents show what f32 gives. With AVX-512 the default could be bf16."""
    monkeypatch.setenv("FLOCK_SIMD", "avx2")


def test_docstrings() -> None:
    found = [test for test in doctest.DocTestFinder().find(flock_kg, "flock_kg") if test.examples]
    # Classes of the native module are looked into as well.
    assert {"flock_kg", "flock_kg.Graph", "flock_kg.Model.predict", "flock_kg.Table"} <= {test.name for test in found}
    runner = doctest.DocTestRunner()
    for test in found:
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


def test_every_method_is_documented() -> None:
    classes = [flock_kg.Graph, flock_kg.Model, flock_kg.Table, flock_kg.Explanation, flock_kg.Evaluation, flock_kg.Calibration]
    bare = [
        f"{kind.__name__}.{name}"
        for kind in classes
        for name, member in vars(kind).items()
        if not name.startswith("_") and not (getattr(member, "__doc__", None) or "").strip()
    ]
    assert bare == []


def test_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    # Each block of Python, with the output that is shown behind it.
    blocks = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", readme, re.DOTALL)
    assert len(blocks) > 3 and sum(1 for _, shown in blocks if shown) > 2
    # They use no file of the repository: whoever reads them has only the wheel.
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, (block, shown) in enumerate(blocks):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, f"README.md, block {number}", "exec"), names)
        if shown:
            assert printed.getvalue().rstrip() == shown.rstrip(), f"block {number}"
