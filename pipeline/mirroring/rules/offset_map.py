"""The offset map: how far each source partition is copied, and which source offset became which target offset.

Its topic in the sink is compacted. Keys are JSON arrays, the kind first:

    ["position", cluster, topic, partition]       next source offset; written in each transaction, with the records
    ["run", cluster, topic, partition, offset]    first target offset and count; null when the target has lost them
    ["fence", cluster, topic, partition]          null; what a writer appends to learn that it reads all before it
    ["request"], ["range", topic, partition]      of a backfill: what was asked for, and the offsets it meant

The group coordinator forgets offsets (`offsets.retention.minutes`), and a coordinator that is cut off answers with old
ones; a compacted log does neither for a reader that waits for the offset of a record of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

import msgspec

from .offset_runs import Run
from .source_partition import SourcePartition

K = TypeVar("K")
V = TypeVar("V")

POSITION: Final = "position"
RUN: Final = "run"
FENCE: Final = "fence"
REQUEST: Final = "request"
RANGE: Final = "range"

Pair = tuple[bytes, bytes | None]
"""Key and value of a record of the topic."""


class Position(msgspec.Struct, frozen=True, kw_only=True):
    next_offset: int
    """Every record of the source below it is in the target, or was never to be copied."""
    source_topic_id: str
    target_topic: str
    target_topic_id: str
    target_partition: int | None = None
    """None when records of one source partition go to several."""
    target_next_offset: int | None = None
    """All copied records lie below it, and all later ones will not."""


class RunValue(msgspec.Struct, frozen=True, kw_only=True):
    first_target_offset: int
    count: int


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """Of a backfill: `end_offset` is not inside."""

    start_offset: int
    end_offset: int
    source_topic_id: str


class OffsetMap:
    """What the records of the topic say, in their order."""

    def __init__(self) -> None:
        self.positions: dict[SourcePartition, Position] = {}
        self.runs: dict[SourcePartition, dict[int, Run]] = {}
        self.request: str | None = None
        self.ranges: dict[tuple[str, int], Range] = {}

    def apply(self, key: bytes, value: bytes | None) -> None:
        """Raises msgspec.DecodeError for a record that is none of the map's."""
        kind, *place = msgspec.json.decode(key)
        if kind == POSITION:
            self._move(_partition(place), None if value is None else _POSITION.decode(value))
        elif kind == RUN:
            found = self.runs.setdefault(_partition(place), {})
            run = None if value is None else _RUN.decode(value)
            offset = int(place[3])
            if run is None:
                found.pop(offset, None)
            else:
                found[offset] = Run(first_offset=offset, first_target_offset=run.first_target_offset, count=run.count)
        elif kind == REQUEST:
            self.request = None if value is None else value.decode()
        elif kind == RANGE:
            _set(self.ranges, (str(place[0]), int(place[1])), None if value is None else _RANGE.decode(value))

    def _move(self, partition: SourcePartition, position: Position | None) -> None:
        """A position never goes back: one that does is read late, of a map whose topic has got more partitions."""
        before = self.positions.get(partition)
        if before is None or position is None or position.next_offset >= before.next_offset:
            _set(self.positions, partition, position)

    def sorted_runs(self, partition: SourcePartition) -> list[Run]:
        return sorted(self.runs.get(partition, {}).values(), key=lambda run: run.first_offset)

    def lost_runs(self, log_starts: dict[tuple[str, int], int]) -> list[tuple[SourcePartition, Run]]:
        """Runs whose records are all below the log start of their target: nothing is translated to them any more.

        The last run of a partition stays: it says where the copy was when all before it had gone.
        """
        lost = []
        for partition, runs in self.runs.items():
            position = self.positions.get(partition)
            if position is None or position.target_partition is None or not runs:
                continue
            start = log_starts.get((position.target_topic, position.target_partition))
            last = max(runs)
            lost += [
                (partition, run)
                for offset, run in runs.items()
                if start is not None and run.end_target_offset <= start and offset != last
            ]
        return lost


def position_record(partition: SourcePartition, position: Position) -> Pair:
    return _key(POSITION, partition), msgspec.json.encode(position)


def fence_record(partition: SourcePartition) -> Pair:
    return _key(FENCE, partition), None


def run_records(partition: SourcePartition, runs: Iterable[Run]) -> list[Pair]:
    return [
        (
            _key(RUN, partition, run.first_offset),
            msgspec.json.encode(RunValue(first_target_offset=run.first_target_offset, count=run.count)),
        )
        for run in runs
    ]


def tombstone(partition: SourcePartition, run: Run) -> Pair:
    return _key(RUN, partition, run.first_offset), None


def request_record(request: str) -> Pair:
    return msgspec.json.encode([REQUEST]), request.encode()


def range_record(topic: str, partition: int, found: Range) -> Pair:
    return msgspec.json.encode([RANGE, topic, partition]), msgspec.json.encode(found)


def position_of(partition: SourcePartition, records: Iterable[Pair], before: Position | None) -> Position | None:
    """What the position is after these records of the map."""
    wanted = _key(POSITION, partition)
    for key, value in records:
        if key == wanted:
            before = None if value is None else _POSITION.decode(value)
    return before


def map_partition(partition: SourcePartition, partition_count: int) -> int:
    """Of the map's topic: all records about one source partition are in one. FNV-1a, the same in every process."""
    digest = 2166136261
    for byte in str(partition).encode():
        digest = (digest ^ byte) * 16777619 & 0xFFFFFFFF
    return digest % partition_count


def _key(kind: str, partition: SourcePartition, *more: int) -> bytes:
    return msgspec.json.encode([kind, partition.cluster, partition.topic, partition.partition, *more])


def _partition(place: list[object]) -> SourcePartition:
    return SourcePartition(cluster=str(place[0]), topic=str(place[1]), partition=int(str(place[2])))


def _set(values: dict[K, V], key: K, value: V | None) -> None:
    if value is None:
        values.pop(key, None)
    else:
        values[key] = value


_POSITION = msgspec.json.Decoder(Position)
_RUN = msgspec.json.Decoder(RunValue)
_RANGE = msgspec.json.Decoder(Range)
