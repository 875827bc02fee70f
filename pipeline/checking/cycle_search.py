"""Cycles of operations over all keys: the checker's own search, of the operations that could be in one.

A cycle has to go back somewhere, so only what backward edges cover is searched (`dependencies`): of a healthy history
little beside reads that lag, of which a bounded part is searched. That much goes to one machine, numbered and ordered
as in a whole history, so that the same cycles are found.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ...chaos.checkers.dependencies import WR, WW, Dependencies, Span
from ...chaos.checkers.finding import Findings
from ...chaos.checkers.queue.cycles import PIECES, SEARCHED_MAX, SEARCHES, search_cycles
from .key_parts import NONE
from .queue_part import EdgeRow

LAGGING: Final = "ww+wr+rw"
"""The search of which a bounded part is done."""
LAGGING_MAX: Final = PIECES * SEARCHED_MAX + 1


class OperationRow(NamedTuple):
    """An operation that may be in a cycle."""

    order: int
    invoked: int
    completed: int
    outcome: str
    process: str
    position: int
    micro_count: int


class Covered(Container[int]):
    """The positions within spans, which are sorted and apart."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._starts = [start for start, _ in spans]
        self._ends = [end for _, end in spans]

    def __contains__(self, position: object) -> bool:
        assert isinstance(position, int)
        span = bisect_right(self._starts, position) - 1
        return span >= 0 and position <= self._ends[span]


def find_cycles_among(
    rows: Sequence[OperationRow],
    edges: Sequence[EdgeRow],
    keys: Mapping[str, int],
    spans: Mapping[str, Sequence[Span]],
    findings: Findings,
    *,
    sees_uncommitted: bool,
) -> Mapping[str, Any]:
    """What `queue.cycles.find_cycles` notes and returns of the whole history. `keys` are numbered as they come."""
    operations = _Rows(sorted(rows), edges)
    dependencies = operations.dependencies()
    for edge in sorted(edges, key=lambda edge: _rank(edge, keys, operations)):
        dependencies.add(operations.numbers[edge.source], operations.numbers[edge.target], edge.kind)
    return search_cycles(
        dependencies,
        operations,
        findings,
        sees_uncommitted=sees_uncommitted,
        spans={name: spans[name] for name in SEARCHES},
    )


def _rank(edge: EdgeRow, keys: Mapping[str, int], operations: _Rows) -> tuple[int, ...]:
    """In the order of `queue.cycles.edges`."""
    if edge.kind == WW:
        return 0, keys[edge.key], edge.rank
    if edge.kind == WR:
        return 1, operations.numbers[edge.target], 0, edge.rank
    return 1, operations.numbers[edge.source], 1, edge.rank


class _Rows:
    """Operations by number, in the order in which they were complete."""

    def __init__(self, rows: Sequence[OperationRow], edges: Sequence[EdgeRow]) -> None:
        self._rows = rows
        self.numbers = {self.event(number): number for number in range(len(rows))}
        self._evidence: dict[tuple[int, int, int], EdgeRow] = {}
        for edge in edges:
            one = self.numbers[edge.source], self.numbers[edge.target], edge.kind
            before = self._evidence.get(one)
            if before is None or edge.place < before.place:
                self._evidence[one] = edge

    def dependencies(self) -> Dependencies:
        rows = self._rows
        processes: dict[str, int] = {}
        return Dependencies(
            [row.invoked for row in rows],
            [NONE if row.outcome == "info" else row.completed for row in rows],
            [processes.setdefault(row.process, len(processes)) for row in rows],
            [row.position for row in rows],
        )

    def event(self, operation: int) -> int:
        row = self._rows[operation]
        return row.invoked if row.completed == NONE else row.completed

    def process_name(self, operation: int) -> int | str:
        name: int | str = msgspec.json.decode(self._rows[operation].process)
        return name

    def micro_operations(self, operation: int) -> int:
        return self._rows[operation].micro_count

    def evidence(self, source: int, target: int, kind: int) -> tuple[str, Any] | None:
        edge = self._evidence.get((source, target, kind))
        return None if edge is None else (edge.key, edge.value)
