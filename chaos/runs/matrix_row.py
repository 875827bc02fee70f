"""One run of the matrix in a table: what it was, how much was done, and what was found."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ...local.errors import ClusterError
from ..checkers.finding import Verdict
from ..histories.run_folder import RunFolder
from ..nemeses.schedule import read_schedule


class MatrixRow(msgspec.Struct, frozen=True, kw_only=True):
    """`operations` are those that took place, `faults` beginnings of faults."""

    name: str
    workload: str
    nodes: int
    seed: int
    seconds: float
    operations: int
    faults: int
    verdict: str
    found: str
    allowed: str


def row_of(folder: RunFolder) -> MatrixRow:
    """Of a run that has its verdict. Raises ClusterError."""
    record = folder.read_record()
    try:
        verdict = msgspec.json.decode(folder.verdict.read_bytes(), type=Verdict)
    except msgspec.MsgspecError as error:
        raise ClusterError(f"{folder.verdict} is no verdict: {error}") from error
    outcomes = verdict.statistics.get("operations", {})
    schedule = read_schedule(folder.schedule)
    return MatrixRow(
        name=folder.path.name,
        workload=record.workload,
        nodes=record.nodes,
        seed=record.seed,
        seconds=record.seconds,
        operations=sum(told.get("ok", 0) for told in outcomes.values()),
        faults=len(schedule.steps),
        verdict=verdict.valid,
        found="; ".join([*_counted(verdict, is_allowed=False), *verdict.notes]),
        allowed=", ".join(_counted(verdict, is_allowed=True)),
    )


def _counted(verdict: Verdict, *, is_allowed: bool) -> list[str]:
    types = sorted({finding.type for finding in verdict.findings if finding.allowed == is_allowed})
    return [f"{verdict.count_of(type_, is_allowed=is_allowed)} × {type_}" for type_ in types]


def table(rows: Iterable[MatrixRow]) -> str:
    """As Markdown."""
    lines = [
        "| run | seed | nodes | s | faults | operations | verdict | found | allowed |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        load = f"{row.seed} | {row.nodes} | {row.seconds:g} | {row.faults} | {row.operations:,}"
        lines.append(f"| {row.name} | {load} | {row.verdict} | {row.found.replace('|', '/')} | {row.allowed} |")
    return "\n".join(lines) + "\n"
