"""An interpreter whose clock and chance are a simulation's, for a program or for one test.

    python -m penstock.chaos.simulation.application.program FILE [ARGUMENT…]

It starts once more if it has to: sets of strings have the same order in every run only with PYTHONHASHSEED=0.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

from ..cluster.command import ENVIRONMENT
from .prepared_world import WORLD


def main(arguments: list[str]) -> None:
    if not arguments:
        sys.exit(f"{__doc__}")
    if any(os.environ.get(name) != value for name, value in ENVIRONMENT.items()):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **ENVIRONMENT})
    WORLD.seed(0)
    file = Path(arguments[0]).resolve()
    sys.argv = [str(file), *arguments[1:]]
    # As for any program: modules beside it are found.
    sys.path.insert(0, str(file.parent))
    runpy.run_path(str(file), run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
