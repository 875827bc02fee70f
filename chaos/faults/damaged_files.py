"""Damage to the logs on the disk of a node that is down: a bit that flips, an end that is gone.

Only logs of partitions: damage to the metadata journal ends a node, by intention (docs/guarantees.md).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any, Final

from ...local.errors import ClusterError

_BITS: Final = 8


def has_log(data: Path, topics: Iterable[str]) -> bool:
    """Whether there is a log that has anything in it."""
    return bool(_logs(data, topics))


def flip_bit(data: Path, topics: Iterable[str], random: Random) -> dict[str, Any]:
    """One bit of the log that was written last; where, and the byte before and after. Raises ClusterError without a
    log that has anything in it."""
    log = _last_written(data, topics)
    with log.open("r+b") as file:
        position = random.randrange(log.stat().st_size)
        file.seek(position)
        (before,) = file.read(1)
        after = before ^ 1 << random.randrange(_BITS)
        file.seek(position)
        file.write(bytes((after,)))
    return {"file": str(log.relative_to(data)), "position": position, "before": before, "after": after}


def cut_end(data: Path, topics: Iterable[str], size_bytes: int) -> dict[str, Any]:
    """So many bytes of the log that was written last, of the whole of it at most. Raises as `flip_bit`."""
    log = _last_written(data, topics)
    size = log.stat().st_size
    kept = max(0, size - size_bytes)
    os.truncate(log, kept)
    return {"file": str(log.relative_to(data)), "size": size, "kept": kept}


def _last_written(data: Path, topics: Iterable[str]) -> Path:
    logs = _logs(data, topics)
    if not logs:
        raise ClusterError(f"no log below {data.name} has anything in it that could be damaged")
    return max(logs, key=lambda log: (log.stat().st_mtime_ns, str(log)))


def _logs(data: Path, topics: Iterable[str]) -> list[Path]:
    # Only `topic-0` and so on, not a folder of another topic whose name begins so, nor one that is being deleted.
    folders = [
        folder for topic in topics for folder in data.glob(f"{topic}-*") if folder.name[len(topic) + 1 :].isdigit()
    ]
    return [log for folder in folders for log in folder.glob("*.log") if log.stat().st_size]
