"""One operation of a history by the keys that it is about: what a checker of one key has to see of it.

An operation of micro-operations (`send`, `poll`, `txn`) has a part for each partition, with the records of that one
only; one of a register or a counter has a single part. What belongs to no key (an assignment, a poll that returned
nothing) has a part without one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from ...chaos.histories.operation import EventType, Operation

NONE: Final = -1
NEVER: Final = 1 << 62
"""The order of an operation that never completed: behind all that did."""

By = Literal["micro-operations", "k"]
_MICRO: Final = frozenset({"send", "poll", "txn"})


class PairRow(NamedTuple):
    """An operation, an invocation with its completion, as a row of Spark. Values are JSON; `process` is as well."""

    # Rises as operations complete; those that never do come last.
    order: int
    invoked: int
    invoked_ns: int
    # NONE, and the time of the invocation, where it never completed.
    completed: int
    completed_ns: int
    process: str
    f: str
    outcome: str
    final_invoked: bool
    final_completed: bool
    asked: str | None
    answer: str | None


class PartRow(NamedTuple):
    """What one key has to see of an operation. One row of an operation `is_first`; its key may be None."""

    key: str | None
    is_first: bool
    order: int
    invoked: int
    invoked_ns: int
    completed: int
    completed_ns: int
    process: str
    f: str
    outcome: str
    final_invoked: bool
    final_completed: bool
    asked: str | None
    answer: str | None
    # By record, its place among all records of the operation; None where they are 0, 1, 2, …
    places: list[int] | None
    # Of the whole operation: where it stands among others (`cycles.positions`), and its sends and polls of something.
    position: int
    micro_count: int

    @property
    def event(self) -> int:
        """The index that names the operation."""
        return self.invoked if self.completed == NONE else self.completed

    def events(self) -> tuple[Operation, Operation | None]:
        """Invocation and completion, with the values of this key only."""
        process: int | str = msgspec.json.decode(self.process)
        asked = None if self.asked is None else msgspec.json.decode(self.asked)
        invocation = Operation(
            self.invoked, "invoke", process, self.invoked_ns, self.f, asked, None, self.final_invoked
        )
        if self.completed == NONE:
            return invocation, None
        answer = None if self.answer is None else msgspec.json.decode(self.answer)
        kind: EventType = self.outcome  # type: ignore[assignment]  # The reader of lines took no others.
        completion = Operation(
            self.completed, kind, process, self.completed_ns, self.f, answer, None, self.final_completed
        )
        return invocation, completion


def parts_of(pair: PairRow, by: By) -> Iterator[PartRow]:
    """At least one. Raises ValueError for values of another form than docs/correctness.md has."""
    if by == "k":
        key = None
        if pair.asked is not None:
            value = msgspec.json.decode(pair.asked)
            key = str(value["k"]) if isinstance(value, dict) and "k" in value else None
        yield _row(pair, key, is_first=True, asked=pair.asked, answer=pair.answer)
        return
    used = pair.asked if pair.answer is None else pair.answer
    if pair.f not in _MICRO or used is None:
        yield _row(pair, None, is_first=True, asked=pair.asked, answer=pair.answer)
        return
    parts, micro_count, has_reads = _projected(msgspec.json.decode(used))
    position = pair.completed if has_reads and pair.completed != NONE else pair.invoked
    if not parts:
        yield _row(pair, None, is_first=True, asked=used, position=position)
    for number, (key, (micro, places)) in enumerate(parts.items()):
        yield _row(
            pair,
            key,
            is_first=number == 0,
            asked=used if len(parts) == 1 else msgspec.json.encode(micro).decode(),
            places=None if len(parts) == 1 else places,
            position=position,
            micro_count=micro_count,
        )


def _row(
    pair: PairRow,
    key: str | None,
    *,
    is_first: bool,
    asked: str | None,
    answer: str | None = None,
    places: list[int] | None = None,
    position: int | None = None,
    micro_count: int = 0,
) -> PartRow:
    where = pair.invoked if position is None else position
    return PartRow(key, is_first, *pair[:10], asked, answer, places, where, micro_count)


def _projected(micro_operations: Any) -> tuple[dict[str, tuple[list[Any], list[int]]], int, bool]:
    """By key: the micro-operations with its records only, and the places of these; how many micro-operations send or
    return something, and whether any returns something."""
    parts: dict[str, tuple[list[Any], list[int]]] = {}
    place = micro_count = 0
    has_reads = False
    try:
        for micro in micro_operations:
            if micro[0] == "send":
                mine, places = parts.setdefault(micro[1], ([], []))
                mine.append(micro)
                places.append(place)
                place += 1
                micro_count += 1
            elif len(micro) > 1 and micro[1]:
                has_records = False
                for key, records in micro[1].items():
                    if not records:
                        continue
                    has_records = True
                    mine, places = parts.setdefault(key, ([], []))
                    mine.append(["poll", {key: records}])
                    places.extend(range(place, place + len(records)))
                    place += len(records)
                micro_count += has_records
                has_reads = has_reads or has_records
    except (AttributeError, LookupError, TypeError) as error:
        raise ValueError(
            f"expected micro-operations as docs/correctness.md has them, and found another form "
            f"({type(error).__name__}: {error})"
        ) from error
    return parts, micro_count, has_reads


def events_in_order(rows: Iterable[PartRow]) -> Sequence[Operation]:
    """The events of operations by their indices, as a history has them."""
    events: list[Operation] = []
    for row in rows:
        invocation, completion = row.events()
        events.append(invocation)
        if completion is not None:
            events.append(completion)
    return sorted(events, key=lambda event: event.index)
