"""Cycles of operations of the queue workload.

Kafka keeps apart what transactions read, not what they write, and a poll returns of each partition what has arrived: a
prefix, not a snapshot. So a cycle is allowed that needs the order of writes of a transaction of several, or an edge
from a poll to what it did not return. Forbidden are all others, as that two transactions read each other's records, or
that what was polled before it was sent. Sources: jepsen.tests.kafka (which has no rw edges), docs/guarantees.md.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from ..dependencies import NAMES, PROCESS, RW, WR, WW, Cycle, Dependencies, Span
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
SEARCHED_MAX: Final = 20_000
PIECES: Final = 10
SEARCHES: Final = {"wr": WR, "ww+wr": WW | WR, "ww+wr+rw": WW | WR | RW}
"""Kinds of edges that cycles are looked for in, one search after the other."""


class Operations(Protocol):
    """What the sentences of a cycle say of its operations, which go by number."""

    def event(self, operation: int) -> int:
        """The index that names it."""

    def process_name(self, operation: int) -> int | str: ...

    def micro_operations(self, operation: int) -> int:
        """Its sends, and its polls that returned something."""

    def evidence(self, source: int, target: int, kind: int) -> tuple[str, Any] | None:
        """Key and value that make an edge of data: the first that the target reads or sends."""


class Edge(NamedTuple):
    source: int
    target: int
    kind: int
    # The number of the value that makes it.
    value: int


def find_cycles(
    columns: QueueColumns, orders: Orders, findings: Findings, *, sees_uncommitted: bool
) -> Mapping[str, Any]:  # fmt: skip
    """Note all cycles, and return how much was searched for which."""
    completed = columns.completed[:]
    for operation in range(len(columns)):
        if columns.outcome[operation] == INFO:
            completed[operation] = NONE
    dependencies = Dependencies(columns.invoked, completed, columns.process, positions(columns))
    for edge in edges(columns, orders):
        dependencies.add(edge.source, edge.target, edge.kind)
    return search_cycles(dependencies, _Columns(columns, orders), findings, sees_uncommitted=sees_uncommitted)


def search_cycles(
    dependencies: Dependencies,
    operations: Operations,
    findings: Findings,
    *,
    sees_uncommitted: bool,
    spans: Mapping[str, Sequence[Span]] | None = None,
) -> Mapping[str, Any]:
    """The same of any dependencies; `spans`, by the names of searches, where these do not have all edges."""
    statistics = {}
    reported: set[tuple[int, ...]] = set()
    for name, kinds in SEARCHES.items():
        covered = None if spans is None else spans[name]
        if kinds & RW:
            # That a consumer had not read what was there already says only that it lagged.
            search = dependencies.cycles(
                kinds, orders=(0,), searched_max=SEARCHED_MAX, parts_max=PIECES, spans=covered
            )  # fmt: skip
        else:
            search = dependencies.cycles(kinds, spans=covered)
        statistics[name] = {"searched": search.searched, "is_whole": search.is_whole}
        for cycle in search.cycles:
            members = tuple(sorted(cycle.operations))
            if members not in reported:
                reported.add(members)
                why_allowed = _why_allowed(operations, cycle, sees_uncommitted=sees_uncommitted)
                _add(operations, findings, cycle, why_allowed)
    return statistics


def positions(columns: QueueColumns) -> array[int]:
    """A send has happened by the time that a poll returns it, and a poll's records exist when it is answered: positions
    by which the edges of a healthy history lead forward."""
    position = columns.invoked[:]
    for operation in range(len(columns)):
        if columns.completed[operation] != NONE and columns.reads(operation):
            position[operation] = columns.completed[operation]
    return position


def edges(columns: QueueColumns, orders: Orders) -> Iterator[Edge]:
    """Of data: first ww, by key and offset, then wr and rw, reader by reader."""
    writer, outcome, function = columns.writer, columns.outcome, columns.function
    index_of = orders.index_of
    # What lies at several offsets has no place in an order; that it does is found as what it is.
    astray = columns.more_offsets
    for before, after in orders.neighbours():
        if writer[before] != NONE != writer[after] and before not in astray and after not in astray:
            yield Edge(writer[before], writer[after], WW, after)
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
                yield Edge(sender, operation, WR, value)
                last_sender = sender
            highest[key_of[value]] = max(index_of[value], highest.get(key_of[value], NONE))
        for key, index in highest.items():
            values = orders.keys[key].values
            following = values[index + 1] if NONE != index < len(values) - 1 else NONE
            if following != NONE and writer[following] != NONE and following not in astray:
                yield Edge(operation, writer[following], RW, following)


class _Columns:
    """The operations of a whole history."""

    def __init__(self, columns: QueueColumns, orders: Orders) -> None:
        self._columns = columns
        self._orders = orders

    def event(self, operation: int) -> int:
        return self._columns.event[operation]

    def process_name(self, operation: int) -> int | str:
        return self._columns.process_names[self._columns.process[operation]]

    def micro_operations(self, operation: int) -> int:
        columns = self._columns
        return len(columns.sends(operation)) + sum(columns.begins_poll[read] for read in columns.reads(operation))

    def evidence(self, source: int, target: int, kind: int) -> tuple[str, Any] | None:
        columns, orders = self._columns, self._orders
        value = None
        if kind == WR:
            reads = (columns.read_value[read] for read in columns.reads(target))
            value = next((value for value in reads if columns.writer[value] == source), None)
        elif kind in (WW, RW):
            before = self._last_reads(source) if kind == RW else ()
            for send in columns.sends(target):
                sent = columns.send_value[send]
                index = orders.index_of[sent]
                if index <= 0 or sent in columns.more_offsets:
                    continue
                previous = orders.keys[columns.key_of[sent]].values[index - 1]
                is_before = columns.writer[previous] == source and previous not in columns.more_offsets
                if previous in before if kind == RW else is_before:
                    value = sent
                    break
        return None if value is None else (columns.keys[columns.key_of[value]], columns.values[value])

    def _last_reads(self, operation: int) -> set[int]:
        """Of each key that it read, the value that lies highest."""
        columns, index_of = self._columns, self._orders.index_of
        highest: dict[int, int] = {}
        for read in columns.reads(operation):
            value = columns.read_value[read]
            key = columns.key_of[value]
            if key not in highest or index_of[value] > index_of[highest[key]]:
                highest[key] = value
        return {*highest.values()}


def _why_allowed(operations: Operations, cycle: Cycle, *, sees_uncommitted: bool) -> str | None:
    if RW in cycle.kinds:
        return NOT_A_SNAPSHOT
    for source, target, kind in cycle.edges():
        if kind == WW and any(operations.micro_operations(one) > 1 for one in (source, target)):
            return NOT_ISOLATED
    if sees_uncommitted and WR in cycle.kinds and any(operations.micro_operations(one) > 1 for one in cycle.operations):
        return UNCOMMITTED
    return None


def _add(operations: Operations, findings: Findings, cycle: Cycle, why_allowed: str | None) -> None:
    steps = [_step(operations, *edge) for edge in cycle.edges()]
    findings.add(
        cycle.type,
        "; ".join(step["text"] for step in steps),
        [operations.event(operation) for operation in cycle.operations],
        key=next((step["key"] for step in steps if step["key"] is not None), None),
        why_allowed=why_allowed,
        detail={"steps": steps},
    )


def _step(operations: Operations, source: int, target: int, kind: int) -> dict[str, Any]:
    """One edge, with what proves it."""
    before, after = operations.event(source), operations.event(target)
    key, what = operations.evidence(source, target, kind) or (None, None)
    if kind == WW:
        text = f"{before} sent to {key} what lies right before {what} of {after}"
    elif kind == WR:
        text = f"{before} sent {what} to {key}, which {after} polled"
    elif kind == RW:
        text = f"{before} polled {key} up to right before {what}, which {after} sent"
    elif kind == PROCESS:
        text = f"process {operations.process_name(source)} did {before} before {after}"
    else:
        text = f"{before} was complete before {after} began"
    return {"kind": NAMES[kind], "from": before, "to": after, "key": key, "value": what, "text": text}
