"""One key of a history of the queue workload, judged by the checker's own functions; and the edges of its operations.

What is found within a key needs this key's records only, with three things that are asked of the whole history before:
whether it has final reads, which transactions of unknown outcome took place as records of other keys prove, and who was
assigned partitions when. Cycles go over keys: a part gives its edges, and where they lead backwards.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from ...chaos.checkers.dependencies import RW, WR, WW, Span, merged_spans
from ...chaos.checkers.finding import Checked, Findings
from ...chaos.checkers.queue.checker import consume_counts, find_within_keys
from ...chaos.checkers.queue.columns import QueueColumns
from ...chaos.checkers.queue.cycles import PIECES, SEARCHED_MAX, SEARCHES, edges
from ...chaos.checkers.queue.orders import Orders
from ...chaos.histories.operation import Header
from .key_parts import PartRow

SPANS_MAX: Final = PIECES * SEARCHED_MAX + 1
"""Of a key and a search. The search for cycles with reads that lack a write takes the first `PIECES` pieces of
`SEARCHED_MAX` operations: each span has two operations at least, so further ones are not among them."""


class KnownOfHistory(NamedTuple):
    """What was asked of the whole history."""

    header: Header
    has_final_reads: bool
    known_there: frozenset[int]


class EdgeRow(NamedTuple):
    """An edge, with the value that makes it; operations by the events that name them."""

    source: int
    target: int
    kind: int
    key: str
    value: Any
    # Where the edge comes in the order of `cycles.edges`, within its key (ww) or its reader (wr, rw).
    rank: int
    # The place of the value among the target's records, by which the first is the evidence.
    place: int


class QueuePart(msgspec.Struct, frozen=True, kw_only=True):
    """What is told to the driver of one key."""

    key: str
    # The first operation with a record of the key, and the place of that in it: keys go in this order.
    first: tuple[int, int, int]
    checked: Checked
    sends: int
    reads: int
    consume_counts: dict[str, int]
    # By search.
    spans: dict[str, list[Span]]


class QueuePartJudge:
    """All operations of a key, taken in by their order."""

    def __init__(self, key: str, known: KnownOfHistory) -> None:
        self._key = key
        self._known = known
        self._columns = QueueColumns(
            has_transactions=known.header.transactions, known_there=known.known_there
        )  # fmt: skip
        self._positions = array("q")
        self._send_places = array("i")
        self._read_places = array("i")
        self._first: tuple[int, int, int] | None = None

    def add(self, row: PartRow) -> None:
        columns = self._columns
        sends, reads = len(columns.send_value), len(columns.read_value)
        columns.add(*row.events())
        if len(columns) == len(self._positions):
            # Of no interest to a queue.
            return
        self._positions.append(row.position)
        new_sends, new_reads = len(columns.send_value) - sends, len(columns.read_value) - reads
        if self._first is None and new_sends + new_reads:
            self._first = row.order, row.invoked, row.places[0] if row.places else 0
        if row.places is None and not (new_sends and new_reads):
            self._send_places.extend(range(new_sends))
            self._read_places.extend(range(new_reads))
        else:
            self._note_places(row, new_sends + new_reads)

    def _note_places(self, row: PartRow, count: int) -> None:
        """Sends and reads are in one row of places, in the order of the micro-operations."""
        places = iter(row.places or range(count))
        for micro in msgspec.json.decode(row.asked or "[]"):
            if micro[0] == "send":
                self._send_places.append(next(places))
            elif len(micro) > 1 and micro[1]:
                for records in micro[1].values():
                    self._read_places.extend(next(places) for _ in records)

    def finish(self) -> None:
        self._columns.finish()
        self._orders = Orders(self._columns)

    def part(self) -> QueuePart:
        header, columns = self._known.header, self._columns
        findings = Findings()
        find_within_keys(
            columns, self._orders, findings, header, has_final_reads=self._known.has_final_reads
        )  # fmt: skip
        assert self._first is not None, "a key is one of a record"
        return QueuePart(
            key=self._key,
            first=self._first,
            checked=findings.checked(),
            sends=len(columns.send_value),
            reads=len(columns.read_value),
            consume_counts=consume_counts(columns, is_subscribed=header.subscribe),
            spans=self._spans(),
        )

    def _spans(self) -> dict[str, list[Span]]:
        position = self._positions
        by_kind: dict[int, list[Span]] = {WW: [], WR: [], RW: []}
        for source, target, kind, _ in edges(self._columns, self._orders):
            if position[target] < position[source]:
                by_kind[kind].append((position[target], position[source]))
        return {
            name: merged_spans(span for kind, spans in by_kind.items() if kind & kinds for span in spans)[:SPANS_MAX]
            for name, kinds in SEARCHES.items()
        }

    def edges_among(self, wanted: Container[int]) -> Iterator[EdgeRow]:
        """Between operations whose positions are `wanted`."""
        columns, position = self._columns, self._positions
        for rank, (source, target, kind, value) in enumerate(edges(columns, self._orders)):
            if source != target and position[source] in wanted and position[target] in wanted:
                yield EdgeRow(
                    columns.event[source],
                    columns.event[target],
                    kind,
                    self._key,
                    columns.values[value],
                    rank if kind == WW else self._first_read(target if kind == WR else source, value, kind),
                    self._place(target, value, kind),
                )

    def _place(self, operation: int, value: int, kind: int) -> int:
        """Of the value among the records of the edge's target."""
        columns = self._columns
        if kind == WR:
            return next(
                self._read_places[read] for read in columns.reads(operation) if columns.read_value[read] == value
            )
        return next(
            (self._send_places[send] for send in columns.sends(operation) if columns.send_value[send] == value), 0
        )

    def _first_read(self, reader: int, value: int, kind: int) -> int:
        """wr goes by where the value was read, rw by where the key was."""
        if kind == WR:
            return self._place(reader, value, kind)
        return self._read_places[self._columns.first_read[reader]]


def judged(key: str, rows: Iterable[PartRow], known: KnownOfHistory) -> QueuePartJudge:
    """The part of a key, of whose operations all are in `rows`, by their order."""
    judge = QueuePartJudge(key, known)
    for row in rows:
        judge.add(row)
    judge.finish()
    return judge
