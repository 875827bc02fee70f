"""Where programs lie that are fetched or built once, outside the source tree, and where toxiproxy's server is found."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

TOXIPROXY: Final = "toxiproxy-server"
TOXIPROXY_VERSION: Final = "2.12.0"
"""The one that is built where the machine has none: its `slow_close` and `reset_peer` are those of the tests."""


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/penstock` (`~/.cache/penstock`)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock"


def toxiproxy_folder() -> Path:
    """Where `penstock chaos install-toxiproxy` puts the server."""
    return cache_folder() / "toxiproxy" / TOXIPROXY_VERSION


def find_program(name: str) -> str | None:
    """The path of a program: the machine's own, else for toxiproxy's server the one that was built into the cache."""
    found = shutil.which(name)
    if found is None and name == TOXIPROXY:
        found = shutil.which(name, path=str(toxiproxy_folder()))
    return found
