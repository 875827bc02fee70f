"""One copy of a segment in the tier, as the metadata topic has it. Kafka: `RemoteLogSegmentMetadata`.

    none → COPY_SEGMENT_STARTED → COPY_SEGMENT_FINISHED → DELETE_SEGMENT_STARTED → DELETE_SEGMENT_FINISHED
                               └──────────────────────────┘

A state may be told again; whatever else comes is dropped, so that the order of the topic decides between an old leader
that still copies and a new one that has begun to delete.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple
from uuid import UUID

from msgspec import Struct

from ....protocol.ids import LeaderEpoch, NodeId, TopicId


class SegmentState(IntEnum):
    """Kafka: `RemoteLogSegmentState`, with its numbers."""

    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


_FOLLOWING: Final[Mapping[SegmentState | None, frozenset[SegmentState]]] = MappingProxyType(
    {
        None: frozenset({SegmentState.COPY_SEGMENT_STARTED}),
        SegmentState.COPY_SEGMENT_STARTED: frozenset(
            {
                SegmentState.COPY_SEGMENT_STARTED,
                SegmentState.COPY_SEGMENT_FINISHED,
                SegmentState.DELETE_SEGMENT_STARTED,
            }
        ),
        SegmentState.COPY_SEGMENT_FINISHED: frozenset(
            {SegmentState.COPY_SEGMENT_FINISHED, SegmentState.DELETE_SEGMENT_STARTED}
        ),
        SegmentState.DELETE_SEGMENT_STARTED: frozenset(
            {SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED}
        ),
        SegmentState.DELETE_SEGMENT_FINISHED: frozenset({SegmentState.DELETE_SEGMENT_FINISHED}),
    }
)


def may_follow(state: SegmentState | None, following: SegmentState) -> bool:
    """Whether a segment in `state`, None for an unknown one, can be told to be in `following`."""
    return following in _FOLLOWING[state]


class TierPartition(NamedTuple):
    """The partition that a segment is of."""

    topic: str
    topic_id: TopicId
    partition_index: int


class RemoteSegment(Struct, frozen=True, kw_only=True):
    """Kafka's fields. Offsets are those of the first and the last record; replicas may cut their segments elsewhere."""

    partition: TierPartition
    id: UUID
    start_offset: int
    end_offset: int
    max_timestamp_ms: int
    broker_id: NodeId
    event_ms: int
    size_bytes: int
    # Each with the first offset that it has in the segment, ascending.
    leader_epochs: tuple[tuple[LeaderEpoch, int], ...]
    state: SegmentState
    has_aborted_transactions: bool
    """False only where the segment has no transaction index (KAFKA-16780)."""

    def epoch_of(self, offset: int) -> LeaderEpoch | None:
        """Of the record at `offset`; None where that is not known."""
        return next((epoch for epoch, start in reversed(self.leader_epochs) if start <= offset), None)

    def last_offset_of(self, epoch: LeaderEpoch) -> int:
        """Of the records of `epoch`, one of `leader_epochs`."""
        return next((start - 1 for later, start in self.leader_epochs if later > epoch), self.end_offset)


class SegmentUpdate(Struct, frozen=True, kw_only=True):
    """Kafka: `RemoteLogSegmentMetadataUpdate`."""

    partition: TierPartition
    id: UUID
    broker_id: NodeId
    event_ms: int
    state: SegmentState
