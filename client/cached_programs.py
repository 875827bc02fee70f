"""Where programs lie that are fetched or built once, outside the source tree, and where toxiproxy's server is found."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

TOXIPROXY: Final = "toxiproxy-server"
TOXIPROXY_VERSION: Final = "2.12.0"
"""The one that is built where the machine has none: its `slow_close` and `reset_peer` are those of the tests."""


class BuildFailedError(Exception):
    """The end of what the compiler said."""


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/penstock` (`~/.cache/penstock`)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock"


def build_once(
    name: str, sources: Iterable[bytes], command: Callable[[Path], Sequence[str]], *, folder: Path, timeout_s: float
) -> Path:
    """The file or folder in the cache that was built of these sources, in `folder` by the command that makes the path.

    Raises BuildFailedError, subprocess.TimeoutExpired.
    """
    stamp = sha256(b"".join(sources)).hexdigest()[:16]
    program = cache_folder() / f"{name}-{stamp}"
    if program.exists():
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent, prefix=f"{name}-") as work:
        made = Path(work) / program.name
        built = subprocess.run(
            command(made), cwd=folder, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        if built.returncode != 0:
            raise BuildFailedError(built.stderr[-2000:])
        try:
            # Renamed when whole: a build that is killed, or another at the same time, leaves no part of a program.
            made.rename(program)
        except OSError:
            if not program.exists():
                raise
    return program


def toxiproxy_folder() -> Path:
    """Where `penstock chaos install-toxiproxy` puts the server."""
    return cache_folder() / "toxiproxy" / TOXIPROXY_VERSION


def find_program(name: str) -> str | None:
    """The path of a program: the machine's own, else for toxiproxy's server the one that was built into the cache."""
    found = shutil.which(name)
    if found is None and name == TOXIPROXY:
        found = shutil.which(name, path=str(toxiproxy_folder()))
    return found
