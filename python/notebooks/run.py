#!/usr/bin/env python3
"""Runs the notebooks with this interpreter, and fails if a cell does.

python run.py                     runs all, says how long each took
python run.py 1-first-answers     runs one
python run.py --html DIR          also writes what they show, as HTML (needs nbconvert)
python run.py --save DIR          also writes copies with their outputs

Needs nbclient, ipykernel and what the notebooks import: pandas, polars, matplotlib. Uses no network. The notebooks themselves
are kept without outputs; one that has some is an error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
KERNEL = "flock-kg-notebooks"


def use_private_jupyter(folder: Path) -> None:
    """Makes Jupyter use a kernel of this interpreter and leave the user's directories alone."""
    kernel = folder / "data" / "kernels" / KERNEL
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Python 3", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    for variable in ("DATA_DIR", "CONFIG_DIR", "RUNTIME_DIR"):
        os.environ[f"JUPYTER_{variable}"] = str(folder / variable.split("_")[0].lower())
    os.environ["IPYTHONDIR"] = str(folder / "ipython")
    # A font cache of its own would be made anew in every run, so matplotlib keeps the user's.
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")


def check_clean(path: Path) -> None:
    """Ends the program if a notebook was kept with outputs."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    if any(cell.get("outputs") or cell.get("execution_count") for cell in cells):
        sys.exit(f"{path.name}: has outputs; hint: jupyter nbconvert --clear-output --inplace {path.name}")


def run(path: Path, timeout: int, folder: Path) -> tuple[object, bool]:
    """Executes a notebook. Returns it with its outputs, and whether all cells ran."""
    import nbclient
    import nbformat
    from traitlets.config import Config

    book = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(HERE)}}
    # Sockets in a directory of ours, where there are such sockets: nobody else can talk to the kernel. The path is absolute, since
    # the kernel runs in another directory.
    sockets = {"transport": "ipc", "ip": str(folder / path.stem[:1])}
    config = Config({"KernelManager": sockets} if os.name == "posix" else {})
    client = nbclient.NotebookClient(
        book, timeout=timeout, kernel_name=KERNEL, resources=resources, config=config
    )
    begin, fault = time.monotonic(), None
    try:
        client.execute()
    except (nbclient.exceptions.CellExecutionError, nbclient.exceptions.CellTimeoutError) as error:
        fault = error
    # What a cell wrote to standard error is shown: a warning is a defect of a notebook.
    for cell in book.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stderr":
                print(f"{path.name}: {output.text.strip()}", file=sys.stderr)
    print(f"{path.name:<32} {time.monotonic() - begin:5.1f} s  {'failed' if fault else 'ok'}", flush=True)
    if fault:
        print(fault, file=sys.stderr)
    return book, fault is None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="notebooks, with or without .ipynb; all by default")
    parser.add_argument("--timeout", type=int, default=600, metavar="SECONDS", help="longest time of a cell")
    parser.add_argument("--html", type=Path, metavar="DIR", help="write pages of what they show")
    parser.add_argument("--save", type=Path, metavar="DIR", help="write copies with outputs")
    given = parser.parse_args()
    paths = [HERE / f"{name.removesuffix('.ipynb')}.ipynb" for name in given.names] or sorted(HERE.glob("*.ipynb"))
    for path in paths:
        if not path.is_file():
            sys.exit(f"{path}: no such notebook")
        check_clean(path)
    for folder in filter(None, (given.html, given.save)):
        folder.mkdir(parents=True, exist_ok=True)
    failed = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        use_private_jupyter(Path(folder))
        import nbformat

        for path in paths:
            book, is_ok = run(path, given.timeout, Path(folder))
            if not is_ok:
                failed.append(path.name)
            if given.save:
                nbformat.write(book, given.save / path.name)
            if given.html:
                from nbconvert import HTMLExporter

                page, _ = HTMLExporter().from_notebook_node(book)
                (given.html / f"{path.stem}.html").write_text(page, encoding="utf-8")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
