"""What a leader's log has, asked on a connection of its own: rarely, when a follower cannot go on without it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.list_offsets.v11.response import ListOffsetsPartitionResponse, ListOffsetsResponse
from kio.schema.offset_for_leader_epoch.v4.request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kio.schema.offset_for_leader_epoch.v4.response import EpochEndOffset, OffsetForLeaderEpochResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i64

from ...client.connection import Connection
from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...protocol.ids import LeaderEpoch, NodeId
from ...protocol.messages import NO_THROTTLE
from ...storage.log.rules.producer_entry import ProducerEntry
from ..cluster.peers import PeerConnector
from ..cluster.rules.offset_questions import OffsetTime
from .leader_producers import ProducersQuestion, ask_leader_producers

_Answer = TypeVar("_Answer", EpochEndOffset, ListOffsetsPartitionResponse)


class LeaderOffsets(NamedTuple):
    log_start_offset: int
    log_end_offset: int
    producers: Sequence[ProducerEntry]
    """What the leader knows of those who wrote below its local start."""
    local_start_offset: int | None = None
    """Where its log on its own disk starts, when a tier has what is before; None: at the log start."""
    leader_epochs: Sequence[tuple[LeaderEpoch, int]] = ()
    """Epochs and their start offsets below that."""


async def ask_leader_offsets(
    peers: PeerConnector,
    address: tuple[str, int],
    topic: str,
    index: int,
    *,
    node_id: NodeId,
    leader_epoch: LeaderEpoch,
    timeout_ms: int,
    is_tiered: bool = False,
) -> LeaderOffsets:
    """With `is_tiered` also where its local log starts, and the leader epochs before.

    Raises what `PeerConnector.connect` does, and KafkaError with the leader's refusal.

    The answers are of one moment after the other: what is asked later knows no less of what is below the start.
    """
    connection, _ = await peers.connect(*address, timeout_ms=timeout_ms)
    async with connection:
        # The end first: then the start is not behind it.
        end_offset = await _ask(connection, topic, index, OffsetTime.LATEST, node_id, leader_epoch, timeout_ms)
        start_offset = await _ask(connection, topic, index, OffsetTime.EARLIEST, node_id, leader_epoch, timeout_ms)
        local_start_offset: int | None = None
        epochs: Sequence[tuple[LeaderEpoch, int]] = ()
        if is_tiered:
            local_start_offset = await _ask(
                connection, topic, index, OffsetTime.EARLIEST_LOCAL, node_id, leader_epoch, timeout_ms
            )
            epochs = await _ask_epochs(
                connection, topic, index, node_id, leader_epoch, (start_offset, local_start_offset), timeout_ms
            )
        begin_offset = start_offset if local_start_offset is None else local_start_offset
        question = ProducersQuestion(topic, index, leader_epoch, begin_offset)
        producers = await ask_leader_producers(connection, question, timeout_ms=timeout_ms)
    return LeaderOffsets(start_offset, end_offset, producers, local_start_offset, epochs)


async def _ask_epochs(
    connection: Connection,
    topic: str,
    index: int,
    node_id: NodeId,
    leader_epoch: LeaderEpoch,
    between: tuple[int, int],
    timeout_ms: int,
) -> Sequence[tuple[LeaderEpoch, int]]:
    """The epochs of the records between two offsets, the later ones first asked: each answer ends where the next
    epoch starts. Raises KafkaError."""
    start_offset, end_offset = between
    found: list[tuple[LeaderEpoch, int]] = []
    asked = leader_epoch
    while asked >= 0 and start_offset < end_offset:
        epoch, epoch_end = await _ask_epoch_end(connection, topic, index, node_id, leader_epoch, asked, timeout_ms)
        if epoch_end < 0 or epoch_end <= start_offset:
            break
        if found and epoch == found[0][0]:
            raise CorruptData(f"{connection.peer} repeats leader epoch {epoch} of {topic}-{index}")
        # Its start is the end of the one before, or the start of the log.
        found.insert(0, (epoch, epoch_end))
        asked = LeaderEpoch(epoch - 1)
    return epoch_starts(found, start_offset, end_offset)


def epoch_starts(
    ends: Sequence[tuple[LeaderEpoch, int]], start_offset: int, end_offset: int
) -> Sequence[tuple[LeaderEpoch, int]]:
    """The epochs that have records in [start_offset, end_offset), with their starts; `ends` rise."""
    starts = []
    before = start_offset
    for epoch, epoch_end in ends:
        if before < min(epoch_end, end_offset):
            starts.append((epoch, before))
        before = max(before, epoch_end)
    return starts


async def _ask_epoch_end(
    connection: Connection,
    topic: str,
    index: int,
    node_id: NodeId,
    leader_epoch: LeaderEpoch,
    asked: LeaderEpoch,
    timeout_ms: int,
) -> tuple[LeaderEpoch, int]:
    wanted = OffsetForLeaderPartition(
        partition=i32(index), current_leader_epoch=i32(leader_epoch), leader_epoch=i32(asked)
    )
    answer = await connection.call(
        OffsetForLeaderEpochRequest(
            replica_id=BrokerId(node_id),
            topics=(OffsetForLeaderTopic(topic=TopicName(topic), partitions=(wanted,)),),
        ),
        timeout_ms=timeout_ms,
    )
    assert isinstance(answer, OffsetForLeaderEpochResponse)
    found = _only([one for some in answer.topics for one in some.partitions], f"{topic}-{index}", connection)
    return LeaderEpoch(found.leader_epoch), int(found.end_offset)


async def _ask(
    connection: Connection,
    topic: str,
    index: int,
    timestamp: int,
    node_id: NodeId,
    leader_epoch: LeaderEpoch,
    timeout_ms: int,
) -> int:
    wanted = ListOffsetsPartition(
        partition_index=i32(index), current_leader_epoch=i32(leader_epoch), timestamp=i64(timestamp)
    )
    answer = await connection.call(
        ListOffsetsRequest(
            replica_id=BrokerId(node_id),
            isolation_level=i8(0),
            topics=(ListOffsetsTopic(name=TopicName(topic), partitions=(wanted,)),),
            timeout=NO_THROTTLE,
        ),
        timeout_ms=timeout_ms,
    )
    assert isinstance(answer, ListOffsetsResponse)
    found = _only([one for some in answer.topics for one in some.partitions], f"{topic}-{index}", connection)
    return int(found.offset)


def _only(answers: Sequence[_Answer], partition: str, connection: Connection) -> _Answer:
    """What is answered about the one partition that was asked for. CorruptData without an answer, KafkaError with the
    leader's refusal."""
    if not answers:
        raise CorruptData(f"{connection.peer} does not answer for {partition}")
    found = answers[0]
    if found.error_code:
        raise KafkaError(ErrorCode(int(found.error_code)))
    return found
