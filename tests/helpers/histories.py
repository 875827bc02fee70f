"""Histories written down in a test, and those of objects that really behaved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from penstock.chaos.checkers.linearizability import Step
from penstock.chaos.checkers.object_models import Action
from penstock.chaos.histories.operation import EventType, Header, History, Operation

MS = 1_000_000


def planted(*events: tuple[Any, ...]) -> History:
    """Of events as process, f, type, value, and `final` or the name of an error; one each millisecond. The index of an
    event is its place."""
    operations = []
    for index, (process, f, kind, value, *more) in enumerate(events):
        final = more == ["final"]
        error = more[0] if more and not final else None
        operations.append(Operation(index, kind, process, index * MS, f, value, error, final))
    return History(Header(workload="planted"), operations)


Words = Callable[[Action], tuple[str, Any, Any, str | None]]
"""From an action to f, the value asked, the value answered and an error."""


def told(steps: Sequence[Step], words: Words) -> History:
    """The history of `steps` as clients tell it. Operations that do not overlap are of one process while it can be."""
    free: list[tuple[int, int]] = []
    lives = 0
    events: list[tuple[int, Operation]] = []
    for step in sorted(steps, key=lambda step: step.invoked):
        assert isinstance(step.action, Action)
        f, asked, answered, error = words(step.action)
        idle = [one for one in free if one[0] < step.invoked]
        if idle:
            free.remove(idle[0])
            process = idle[0][1]
        else:
            process = lives
            lives += 1
        events.append((step.invoked, Operation(0, "invoke", process, 0, f, asked)))
        if step.returned is not None:
            kind: EventType = "ok" if error is None else "fail"
            events.append((step.returned, Operation(0, kind, process, 0, f, answered, error)))
            free.append((step.returned, process))
    return numbered(events)


def numbered(events: Iterable[tuple[int, Operation]], workload: str = "planted") -> History:
    """By their moments, which are milliseconds."""
    ordered = sorted(events, key=lambda event: event[0])
    operations = [
        Operation(index, one.type, one.process, moment * MS, one.f, one.value, one.error, one.final)
        for index, (moment, one) in enumerate(ordered)
    ]
    return History(Header(workload=workload), operations)
