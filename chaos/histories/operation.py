"""A history: what processes did, one event after the other, in the form that Jepsen's checkers know.

Every operation of a process is two events, its invocation and its completion: `ok`, it took place; `fail`, it certainly
did not; `info`, unknown. A process whose operation ended with `info` never appears again under its number. An
invocation without a completion is open to the end: unknown as well. Source: Jepsen, jepsen.history.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

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
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    idempotent: bool = True
    transactions: bool = False
    # Consumers are members of a group; otherwise they are assigned their partitions.
    subscribe: bool = False


@dataclass(frozen=True, slots=True)
class Pair:
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


@dataclass(frozen=True, slots=True)
class History:
    header: Header
    # In the order of their indices, which is that of their times.
    operations: Sequence[Operation]

    def pairs(self) -> Iterator[Pair]:
        """Of clients, in the order of their invocations."""
        completions: dict[int, Operation] = {}
        pending: dict[int | str, int] = {}
        for operation in self.operations:
            if operation.process == NEMESIS:
                continue
            if operation.type == "invoke":
                pending[operation.process] = operation.index
            elif (invoked := pending.pop(operation.process, None)) is not None:
                completions[invoked] = operation
        for operation in self.operations:
            if operation.type == "invoke" and operation.process != NEMESIS:
                yield Pair(operation, completions.get(operation.index))

    def faults(self) -> Iterator[Operation]:
        return (operation for operation in self.operations if operation.process == NEMESIS)
