"""Cycles of operations of the queue workload.

Kafka keeps apart what transactions read, not what they write, and a poll returns of each partition what has arrived: a
prefix, not a snapshot. So a cycle is allowed that needs the order of writes of a transaction of several, or an edge
from a poll to what it did not return. Forbidden are all others, as that two transactions read each other's records, or
that what was polled before it was sent. Sources: jepsen.tests.kafka (which has no rw edges), docs/guarantees.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..dependencies import NAMES, PROCESS, RW, WR, WW, Cycle, Dependencies
from ..finding import Findings
from .columns import ASSIGN, FAIL, INFO, NONE, QueueColumns
from .orders import Orders

NOT_ISOLATED: Final = (
    "Kafka does not isolate writes: others lie between those of a transaction, or an operation of several"
)
NOT_A_SNAPSHOT: Final = "a poll returns of each partition what has arrived, not a snapshot of all"
UNCOMMITTED: Final = "consumers read uncommitted records of transactions"
# Consumers lag, so edges to what they have not read yet cover most of a history. Cycles of these are allowed, hence
# looked for in pieces of so many operations.
_SEARCHED_MAX: Final = 20_000
_PIECES: Final = 10


def find_cycles(
    columns: QueueColumns, orders: Orders, findings: Findings, *, sees_uncommitted: bool
) -> Mapping[str, Any]:  # fmt: skip
    """Note all cycles, and return how much was searched for which."""
    dependencies = _dependencies(columns, orders)
    statistics = {}
    reported: set[tuple[int, ...]] = set()
    for name, kinds in (("wr", WR), ("ww+wr", WW | WR), ("ww+wr+rw", WW | WR | RW)):
        if kinds & RW:
            # That a consumer had not read what was there already says only that it lagged.
            search = dependencies.cycles(kinds, orders=(0,), searched_max=_SEARCHED_MAX, parts_max=_PIECES)
        else:
            search = dependencies.cycles(kinds)
        statistics[name] = {"searched": search.searched, "is_whole": search.is_whole}
        for cycle in search.cycles:
            operations = tuple(sorted(cycle.operations))
            if operations not in reported:
                reported.add(operations)
                why_allowed = _why_allowed(columns, cycle, sees_uncommitted=sees_uncommitted)
                _add(columns, orders, findings, cycle, why_allowed)
    return statistics


def _dependencies(columns: QueueColumns, orders: Orders) -> Dependencies:
    # A send has happened by the time that a poll returns it, and a poll's records exist when it is answered: positions
    # by which the edges of a healthy history lead forward.
    position = columns.invoked[:]
    completed = columns.completed[:]
    for operation in range(len(columns)):
        if completed[operation] != NONE and columns.first_read[operation] != columns.first_read[operation + 1]:
            position[operation] = completed[operation]
        if columns.outcome[operation] == INFO:
            completed[operation] = NONE
    dependencies = Dependencies(columns.invoked, completed, columns.process, position)
    writer, outcome, function = columns.writer, columns.outcome, columns.function
    index_of, add = orders.index_of, dependencies.add
    # What lies at several offsets has no place in an order; that it does is found as what it is.
    astray = columns.more_offsets
    for before, after in orders.neighbours():
        if writer[before] != NONE != writer[after] and before not in astray and after not in astray:
            add(writer[before], writer[after], WW)
    read_value, key_of, first_read = columns.read_value, columns.key_of, columns.first_read
    for operation in range(len(columns)):
        if first_read[operation] == first_read[operation + 1] or outcome[operation] == FAIL:
            continue
        if function[operation] >= ASSIGN:
            continue
        last_sender = NONE
        highest: dict[int, int] = {}
        for value in read_value[first_read[operation] : first_read[operation + 1]]:
            sender = writer[value]
            if sender != last_sender and sender != NONE and outcome[sender] != FAIL:
                add(sender, operation, WR)
                last_sender = sender
            highest[key_of[value]] = max(index_of[value], highest.get(key_of[value], NONE))
        for key, index in highest.items():
            values = orders.keys[key].values
            following = values[index + 1] if NONE != index < len(values) - 1 else NONE
            if following != NONE and writer[following] != NONE and following not in astray:
                add(operation, writer[following], RW)
    return dependencies


def _why_allowed(columns: QueueColumns, cycle: Cycle, *, sees_uncommitted: bool) -> str | None:
    if RW in cycle.kinds:
        return NOT_A_SNAPSHOT
    for source, target, kind in cycle.edges():
        if kind == WW and any(_micro_operations(columns, one) > 1 for one in (source, target)):
            return NOT_ISOLATED
    if sees_uncommitted and WR in cycle.kinds and any(_micro_operations(columns, one) > 1 for one in cycle.operations):
        return UNCOMMITTED
    return None


def _micro_operations(columns: QueueColumns, operation: int) -> int:
    return len(columns.sends(operation)) + sum(columns.begins_poll[read] for read in columns.reads(operation))


def _add(
    columns: QueueColumns, orders: Orders, findings: Findings, cycle: Cycle, why_allowed: str | None
) -> None:  # fmt: skip
    steps = [_step(columns, orders, *edge) for edge in cycle.edges()]
    findings.add(
        cycle.type,
        "; ".join(step["text"] for step in steps),
        [columns.event[operation] for operation in cycle.operations],
        key=next((step["key"] for step in steps if step["key"] is not None), None),
        why_allowed=why_allowed,
        detail={"steps": steps},
    )


def _step(columns: QueueColumns, orders: Orders, source: int, target: int, kind: int) -> dict[str, Any]:
    """One edge, with what proves it."""
    before, after = columns.event[source], columns.event[target]
    value = _evidence(columns, orders, source, target, kind)
    key = None if value is None else columns.keys[columns.key_of[value]]
    what = None if value is None else columns.values[value]
    if kind == WW:
        text = f"{before} sent to {key} what lies right before {what} of {after}"
    elif kind == WR:
        text = f"{before} sent {what} to {key}, which {after} polled"
    elif kind == RW:
        text = f"{before} polled {key} up to right before {what}, which {after} sent"
    elif kind == PROCESS:
        text = f"process {columns.process_names[columns.process[source]]} did {before} before {after}"
    else:
        text = f"{before} was complete before {after} began"
    return {"kind": NAMES[kind], "from": before, "to": after, "key": key, "value": what, "text": text}


def _evidence(columns: QueueColumns, orders: Orders, source: int, target: int, kind: int) -> int | None:
    """The value that makes the edge."""
    if kind == WR:
        reads = (columns.read_value[read] for read in columns.reads(target))
        return next((value for value in reads if columns.writer[value] == source), None)
    if kind not in (WW, RW):
        return None
    sent = {columns.send_value[send] for send in columns.sends(source)}
    read = {columns.read_value[read] for read in columns.reads(source)}
    for send in columns.sends(target):
        value = columns.send_value[send]
        index = orders.index_of[value]
        if index > 0:
            previous = orders.keys[columns.key_of[value]].values[index - 1]
            if previous in (sent if kind == WW else read):
                return value
    return None
