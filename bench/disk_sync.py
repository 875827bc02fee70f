"""How long the disk itself takes to make a small write last."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from time import perf_counter_ns
from typing import Final

_WRITE: Final = bytes(200)
_SYNCS: Final = 500


def sync_times_ns(folder: Path) -> list[int]:
    """Of appends of 200 bytes to a file in the folder, one after the other, each with fdatasync."""
    times_ns = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(_SYNCS):
            file.write(_WRITE)
            start_ns = perf_counter_ns()
            os.fdatasync(file.fileno())
            times_ns.append(perf_counter_ns() - start_ns)
    return times_ns
