"""How far a table is in its source: the next offset of each topic and partition. Pure.

A commit of a table carries its rows and its positions as one, so that a row below a position is in the table already,
whichever checkpoint, query or batch brings it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

# By topic and partition, the first offset that the table does not have.
Positions: TypeAlias = Mapping[str, Mapping[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """What a batch holds of one partition: rows between two offsets, both inside. Compaction and aborts leave gaps."""

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    row_count: int
    # Rows that cannot go into the table; a position goes past them as well.
    rejected_count: int = 0


def position(positions: Positions, topic: str, partition: int) -> int:
    return positions.get(topic, {}).get(partition, 0)


def advanced(positions: Positions, ranges: Iterable[OffsetRange]) -> Positions:
    """Positions after a batch. They never go back: a replayed batch leaves them as they are."""
    after = {topic: dict(partitions) for topic, partitions in positions.items()}
    for one in ranges:
        partitions = after.setdefault(one.topic, {})
        partitions[one.partition] = max(partitions.get(one.partition, 0), one.last_offset + 1)
    return after


def overlapping(positions: Positions, ranges: Iterable[OffsetRange]) -> Positions:
    """The positions of those partitions of which the batch has rows that the table has already."""
    found: dict[str, dict[int, int]] = {}
    for one in ranges:
        next_offset = position(positions, one.topic, one.partition)
        if one.first_offset < next_offset:
            found.setdefault(one.topic, {})[one.partition] = next_offset
    return found


def encoded(positions: Positions) -> str:
    """JSON: Spark's own form of offsets, `{"topic":{"0":17}}`."""
    return msgspec.json.encode(positions).decode()


def decoded(text: str | bytes) -> Positions:
    """Raises msgspec.DecodeError or msgspec.ValidationError."""
    return msgspec.json.decode(text, type=dict[str, dict[int, int]])
