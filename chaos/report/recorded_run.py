"""A run as the report reads it from its folder: what was asked, what took place, what the cluster was, what was judged.

Only the history has to be there, compressed or not. One of another system's run has no samples, and one that was not
judged yet has no verdict: the page says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from ...local.errors import ClusterError
from ..checkers.finding import Verdict
from ..histories.cluster_sample import ClusterSample, read_samples
from ..histories.history_file import read_history
from ..histories.operation import History
from ..histories.run_folder import RunFolder, RunRecord

_T = TypeVar("_T")


class RecordedRun(Struct, frozen=True, kw_only=True):
    """`name` is that of its folder."""

    name: str
    history: History
    samples: list[ClusterSample] = []
    verdict: Verdict | None = None
    record: RunRecord | None = None


def read_run(folder: RunFolder) -> RecordedRun:
    """Raises ClusterError where the history is missing, or a file does not hold what it should."""
    history = folder.found_history()
    try:
        return RecordedRun(
            name=folder.path.resolve().name,
            history=read_history(history),
            samples=read_samples(folder.samples) if folder.samples.exists() else [],
            verdict=_decoded(folder.verdict, Verdict),
            record=folder.read_record() if folder.run.exists() else None,
        )
    except msgspec.MsgspecError as error:
        raise ClusterError(f"{folder.samples} holds no samples of a cluster: {error}") from error


def _decoded(path: Path, kind: type[_T]) -> _T | None:
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except msgspec.MsgspecError as error:
        raise ClusterError(f"{path} cannot be read: {error}") from error
