"""The folder of a run as the report reads it: what was asked, what took place, what the cluster was, what was judged.

Only `history.jsonl` (or `history.jsonl.gz`) has to be there. A history of another system's run has no samples, and one
that was not judged yet has no verdict: the page says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from ...local.errors import ClusterError
from ..histories.history_file import read_history
from ..histories.operation import History
from ..runs.cluster_samples import ClusterSample, read_samples

REPORT: Final = "report.html"

_T = TypeVar("_T")


class ReportedFinding(msgspec.Struct, frozen=True):
    """One anomaly; `operations` are indices of the events that prove it."""

    type: str
    message: str
    allowed: bool = False
    key: str | None = None
    operations: tuple[int, ...] = ()
    why_allowed: str | None = None
    detail: Any = None


class ReportedVerdict(msgspec.Struct, frozen=True):
    """What the page reads of `verdict.json`. `notes` say why a run is invalid, or what else limits its verdict."""

    valid: str
    findings: tuple[ReportedFinding, ...] = ()
    # By type of finding: all, of which `findings` may have only some.
    counts: dict[str, int] = {}
    statistics: dict[str, Any] = {}
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFolder:
    """`description` is `run.json`: all options and versions, with `replay`, the line that repeats the run."""

    name: str
    history: History
    samples: list[ClusterSample] = field(default_factory=list)
    verdict: ReportedVerdict | None = None
    description: dict[str, Any] = field(default_factory=dict)


def read_run_folder(folder: Path) -> RunFolder:
    """Raises ClusterError where a file is missing that must be there, or does not hold what it should."""
    history = folder / "history.jsonl"
    compressed = folder / "history.jsonl.gz"
    if not history.exists() and not compressed.exists():
        raise ClusterError(f"{folder} is no folder of a run: it has no history.jsonl")
    samples = folder / "cluster.jsonl"
    try:
        return RunFolder(
            name=folder.resolve().name,
            history=read_history(history if history.exists() else compressed),
            samples=read_samples(samples) if samples.exists() else [],
            verdict=_decoded(folder / "verdict.json", ReportedVerdict),
            description=_decoded(folder / "run.json", dict[str, Any]) or {},
        )
    except msgspec.MsgspecError as error:
        raise ClusterError(f"{samples} holds no samples of a cluster: {error}") from error


def _decoded(path: Path, kind: type[_T]) -> _T | None:
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except msgspec.MsgspecError as error:
        raise ClusterError(f"{path} cannot be read: {error}") from error
