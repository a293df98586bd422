"""The ``flock-kg`` command: ``python -m flock_kg`` and the script of the same name."""

from __future__ import annotations

import signal
import sys

from ._flock_kg import _run_command


def main() -> None:
    """Run the command with the arguments of this process, and end with its status."""
    # Python would only take note of Ctrl-C and go on.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_run_command(["flock-kg", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
