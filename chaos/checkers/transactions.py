"""Whether transactions were whole and apart, by what clients did and read: the anomalies of Jepsen's tests of Kafka.

A transaction whose client never asked to commit it has not happened (the client or the coordinator aborted it), one
whose commit was answered has, and one whose commit was asked for and not answered may have or not, as a whole. Each
value is sent once. What is judged against is what the partitions have in the end, when nothing is deleted from them.

A transaction may also consume: then the offsets that it commits for its group say the same as its records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from msgspec import Struct

from .records import Stored


class Anomaly(Enum):
    ABORTED_READ = "a reader of committed records has one of a transaction that was not committed (G1a)"
    PRECOMMITTED_READ = "a reader of committed records has one whose commit was not requested yet"
    LOST = "a record of a committed transaction cannot be read"
    TORN = "some records of a transaction can be read, and others not"
    DUPLICATED = "a record is stored more than once"
    MOVED = "a record is elsewhere than it was before"
    FOREIGN = "a record is stored that no producer sent"
    SEND_ORDER = "records of one transaction are not stored in the order sent"
    POLL_ORDER = "a reader goes back"
    POLL_SKIP = "a reader leaves out what it could read"
    STUCK = "the last stable offset stays below the high watermark"
    INPUT_TWICE = "what was consumed once is consumed again"
    INPUT_SKIPPED = "what was passed over was not consumed"
    OFFSETS_TORN = "the group's committed offset is not that of the committed transactions"


class Place(NamedTuple):
    """A partition."""

    topic: str
    partition: int


class Finding(Struct, frozen=True, kw_only=True):
    anomaly: Anomaly
    evidence: str

    def __str__(self) -> str:
        return f"{self.anomaly.name}: {self.anomaly.value}: {self.evidence}"


@dataclass(slots=True)
class Send:
    place: Place
    value: bytes
    offset: int | None = None
    """Where it was acknowledged."""


@dataclass(slots=True)
class Transaction:
    """As its client saw it. Commit is asked for once all of its sends are acknowledged."""

    name: str
    sends: list[Send] = field(default_factory=list)
    consumed: dict[Place, tuple[int, int]] = field(default_factory=dict)
    """By place, from which offset up to which (exclusive); the end is committed for the group."""
    commit_asked_s: float | None = None
    is_commit_answered: bool = False


class Poll(Struct, frozen=True, kw_only=True):
    """What one poll gave of one partition. A reader begins anew with another name."""

    reader: str
    is_read_committed: bool
    place: Place
    records: tuple[Stored, ...]
    read_s: float


class PlaceEnd(Struct, frozen=True, kw_only=True):
    """A partition in the end: `committed` by a reader of committed records, `stored` by one of all."""

    committed: tuple[Stored, ...]
    stored: tuple[Stored, ...]
    last_stable_offset: int
    high_watermark: int
    group_offset: int | None = None
    """What the group has committed that consumes it."""


def judge_transactions(
    transactions: Sequence[Transaction], polls: Sequence[Poll], ends: Mapping[Place, PlaceEnd]
) -> list[Finding]:
    """The anomalies; none means that every transaction was what it had to be."""
    of_value = {send.value: one for one in transactions for send in one.sends}
    visible = {(place, record.value): record.offset for place, end in ends.items() for record in end.committed}
    return [
        *_judge_ends(of_value, ends),
        *(finding for one in transactions for finding in _judge_transaction(one, visible)),
        *_judge_reads(polls, of_value, visible),
        *_judge_order(polls, ends),
        *_judge_consumed(transactions, ends, visible),
    ]


def sentences(findings: Iterable[Finding]) -> list[str]:
    """The first of each anomaly, and how many more there are: what one of them breaks is broken often."""
    by_anomaly: dict[Anomaly, list[Finding]] = {}
    for finding in findings:
        by_anomaly.setdefault(finding.anomaly, []).append(finding)
    return [f"{some[0]}{f' (and {len(some) - 1} more)' if len(some) > 1 else ''}" for some in by_anomaly.values()]


def _judge_ends(of_value: Mapping[bytes, Transaction], ends: Mapping[Place, PlaceEnd]) -> Iterator[Finding]:
    for place, end in ends.items():
        offsets = defaultdict(list)
        for record in end.stored:
            offsets[record.value].append(record.offset)
        for value, some in offsets.items():
            if value not in of_value:
                yield _found(Anomaly.FOREIGN, place, f"{value!r:.60} at offset {some[0]}")
            if len(some) > 1:
                yield _found(Anomaly.DUPLICATED, place, f"{value!r:.60} at offsets {some}")
        stored = set(end.stored)
        for record in end.committed:
            if record not in stored:
                yield _found(Anomaly.FOREIGN, place, f"{record.value!r:.60}, which is not stored at {record.offset}")
        if end.last_stable_offset < end.high_watermark:
            yield _found(Anomaly.STUCK, place, f"{end.last_stable_offset} below {end.high_watermark}")


def _judge_transaction(
    transaction: Transaction, visible: Mapping[tuple[Place, bytes], int]
) -> Iterator[Finding]:  # fmt: skip
    name = transaction.name
    offsets = [visible.get((send.place, send.value)) for send in transaction.sends]
    seen = [send for send, offset in zip(transaction.sends, offsets, strict=True) if offset is not None]
    unseen = [send for send, offset in zip(transaction.sends, offsets, strict=True) if offset is None]
    if transaction.commit_asked_s is None:
        for send in seen:
            yield _found(Anomaly.ABORTED_READ, send.place, f"{send.value!r:.60} in the end")
    elif transaction.is_commit_answered:
        for send in unseen:
            yield _found(Anomaly.LOST, send.place, f"{send.value!r:.60}, acknowledged at {send.offset}")
    elif seen and unseen:
        send = unseen[0]
        yield _found(Anomaly.TORN, send.place, f"{name} has {len(seen)} records, and not {send.value!r:.60}")
    last: dict[Place, int] = {}
    for send, offset in zip(transaction.sends, offsets, strict=True):
        if offset is not None and send.offset is not None and 0 <= send.offset != offset:
            yield _found(Anomaly.MOVED, send.place, f"{send.value!r:.60} from {send.offset} to {offset}")
        if send.offset is not None and send.offset >= 0:
            if send.offset <= last.get(send.place, -1):
                yield _found(Anomaly.SEND_ORDER, send.place, f"{send.value!r:.60} at {send.offset}")
            last[send.place] = send.offset


def _judge_reads(
    polls: Iterable[Poll], of_value: Mapping[bytes, Transaction], visible: Mapping[tuple[Place, bytes], int]
) -> Iterator[Finding]:
    for poll in polls:
        if not poll.is_read_committed:
            continue
        for record in poll.records:
            transaction = of_value.get(record.value)
            evidence = f"{poll.reader}: {record.value!r:.60} at offset {record.offset}"
            if transaction is None:
                yield _found(Anomaly.FOREIGN, poll.place, evidence)
            elif transaction.commit_asked_s is None:
                yield _found(Anomaly.ABORTED_READ, poll.place, evidence)
            elif poll.read_s < transaction.commit_asked_s:
                yield _found(Anomaly.PRECOMMITTED_READ, poll.place, evidence)
            elif (poll.place, record.value) not in visible:
                # Of a commit that was answered the same is a loss.
                is_lost = transaction.is_commit_answered
                yield _found(Anomaly.LOST if is_lost else Anomaly.ABORTED_READ, poll.place, evidence)


def _judge_order(polls: Iterable[Poll], ends: Mapping[Place, PlaceEnd]) -> Iterator[Finding]:
    """Each reader reads on, and leaves nothing out between the first that it read and the last."""
    after: dict[tuple[str, Place], int] = {}
    # By place and level, each record with the number that it has among them.
    numbers = {
        (place, is_read_committed): {
            record.offset: (number, record.value)
            for number, record in enumerate(end.committed if is_read_committed else end.stored)
        }
        for place, end in ends.items()
        for is_read_committed in (True, False)
    }
    last_offsets: dict[tuple[str, Place], int] = {}
    for poll in polls:
        key = (poll.reader, poll.place)
        known = numbers[poll.place, poll.is_read_committed]
        for record in poll.records:
            evidence = f"{poll.reader}: {record.value!r:.60} at offset {record.offset}"
            if record.offset <= last_offsets.get(key, -1):
                yield _found(Anomaly.POLL_ORDER, poll.place, f"{evidence} after {last_offsets[key]}")
            last_offsets[key] = record.offset
            if record.offset not in known:
                # Of committed records it is said what they are, above.
                if not poll.is_read_committed:
                    yield _found(Anomaly.LOST, poll.place, evidence)
                continue
            number, value = known[record.offset]
            if value != record.value:
                yield _found(Anomaly.MOVED, poll.place, f"{evidence}, where in the end is {value!r:.60}")
            if number > after.get(key, number):
                yield _found(Anomaly.POLL_SKIP, poll.place, f"{evidence}, and {number - after[key]} before it are not")
            after[key] = number + 1


def _judge_consumed(
    transactions: Iterable[Transaction],
    ends: Mapping[Place, PlaceEnd],
    visible: Mapping[tuple[Place, bytes], int],
) -> Iterator[Finding]:
    ranges = defaultdict(list)
    for one in transactions:
        if any((send.place, send.value) in visible for send in one.sends):
            for place, (start, end) in one.consumed.items():
                ranges[place].append((start, end, one.name))
    for place, place_end in ends.items():
        if place_end.group_offset is None:
            continue
        before = 0
        for start, end, name in sorted(ranges[place]):
            if start < before:
                yield _found(Anomaly.INPUT_TWICE, place, f"{name} from {start} on, after {before}")
            elif any(before <= record.offset < start for record in place_end.committed):
                yield _found(Anomaly.INPUT_SKIPPED, place, f"{name} from {start} on, after {before}")
            before = max(before, end)
        if place_end.group_offset != before:
            yield _found(Anomaly.OFFSETS_TORN, place, f"{place_end.group_offset}, not {before}")


def _found(anomaly: Anomaly, place: Place, evidence: str) -> Finding:
    return Finding(anomaly=anomaly, evidence=f"{place.topic}-{place.partition}: {evidence}")
