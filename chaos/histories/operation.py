"""A history: what processes did, one event after the other, in the form that Jepsen's checkers know.

Every operation of a process is two events, its invocation and its completion: `ok`, it took place; `fail`, it certainly
did not; `info`, unknown. A process whose operation ended with `info` never appears again under its number. An
invocation without a completion is open to the end: unknown as well. Source: Jepsen, jepsen.history.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

FORMAT: Final = "penstock-history/1"
# The process of faults; those of clients are numbers.
NEMESIS: Final = "nemesis"

EventType = Literal["invoke", "ok", "fail", "info"]


class Operation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One event. `time` is in nanoseconds since the run began, by a clock that never goes back."""

    index: int
    type: EventType
    process: int | str
    time: int
    f: str
    value: Any = None
    error: str | None = None
    # Of the reads after everything has healed, which must see all that was acknowledged.
    final: bool = False


class Header(msgspec.Struct, frozen=True, tag_field="type", tag="header"):
    """What a judge has to know of a run: the first line of a file of a history."""

    workload: str
    format: str = FORMAT
    seed: int | None = None
    nodes: int = 3
    isolation: Literal["read_committed", "read_uncommitted", "serializable"] = "read_committed"
    idempotent: bool = True
    transactions: bool = False
    # Consumers are members of a group; otherwise they are assigned their partitions.
    subscribe: bool = False


class Pair(Struct, frozen=True):
    """An invocation and what became of it; None where that was never told."""

    invocation: Operation
    completion: Operation | None

    @property
    def outcome(self) -> Literal["ok", "fail", "info"]:
        if self.completion is None or self.completion.type == "invoke":
            return "info"
        return self.completion.type

    @property
    def value(self) -> Any:
        """What the operation is known to have done: as completed where it is, else as invoked."""
        completed = self.completion
        return self.invocation.value if completed is None or completed.value is None else completed.value

    @property
    def index(self) -> int:
        """By which the operation is named as evidence: that of its last event."""
        return (self.completion or self.invocation).index


@dataclass(slots=True)
class _Waiting:
    invocation: Operation
    completion: Operation | None = None
    # Whether its completion is there, or known to be missing.
    is_over: bool = False


class History(Struct, frozen=True):
    header: Header
    # In the order of their indices, which is that of their times.
    operations: Sequence[Operation]

    def pairs(self) -> Iterator[Pair]:
        """Of clients, in the order of their invocations. Goes through the events twice, and keeps of them what waits
        for the slowest operation to complete."""
        unanswered = self._unanswered()
        waiting: deque[_Waiting] = deque()
        by_process: dict[int | str, _Waiting] = {}
        for operation in self.operations:
            if operation.process == NEMESIS:
                continue
            if operation.type == "invoke":
                one = _Waiting(operation, is_over=operation.index in unanswered)
                waiting.append(one)
                by_process[operation.process] = one
            elif (invoked := by_process.pop(operation.process, None)) is not None:
                invoked.completion = operation
                invoked.is_over = True
            while waiting and waiting[0].is_over:
                first = waiting.popleft()
                yield Pair(first.invocation, first.completion)

    def _unanswered(self) -> frozenset[int]:
        """Invocations that have no completion: few, as clients end rarely."""
        pending: dict[int | str, int] = {}
        unanswered: set[int] = set()
        for operation in self.operations:
            if operation.process == NEMESIS:
                continue
            before = pending.pop(operation.process, None)
            if operation.type == "invoke":
                pending[operation.process] = operation.index
                if before is not None:
                    unanswered.add(before)
        return frozenset(unanswered | {*pending.values()})

    def faults(self) -> Iterator[Operation]:
        return (operation for operation in self.operations if operation.process == NEMESIS)
