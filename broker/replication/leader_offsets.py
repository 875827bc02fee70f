"""What a leader's log has, asked on a connection of its own: rarely, when a follower cannot go on without it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.list_offsets.v11.response import ListOffsetsResponse
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


class LeaderOffsets(NamedTuple):
    log_start_offset: int
    log_end_offset: int
    producers: Sequence[ProducerEntry]
    """What the leader knows of those who wrote below its start."""


async def ask_leader_offsets(
    peers: PeerConnector,
    address: tuple[str, int],
    topic: str,
    index: int,
    *,
    node_id: NodeId,
    leader_epoch: LeaderEpoch,
    timeout_ms: int,
) -> LeaderOffsets:
    """Raises what `PeerConnector.connect` does, and KafkaError with the leader's refusal.

    The answers are of one moment after the other: what is asked later knows no less of what is below the start.
    """
    connection, _ = await peers.connect(*address, timeout_ms=timeout_ms)
    async with connection:
        # The end first: then the start is not behind it.
        end_offset = await _ask(connection, topic, index, OffsetTime.LATEST, node_id, leader_epoch, timeout_ms)
        start_offset = await _ask(connection, topic, index, OffsetTime.EARLIEST, node_id, leader_epoch, timeout_ms)
        question = ProducersQuestion(topic, index, leader_epoch, start_offset)
        producers = await ask_leader_producers(connection, question, timeout_ms=timeout_ms)
    return LeaderOffsets(start_offset, end_offset, producers)


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
    if not answer.topics or not answer.topics[0].partitions:
        raise CorruptData(f"{connection.peer} does not answer for {topic}-{index}")
    found = answer.topics[0].partitions[0]
    if found.error_code:
        raise KafkaError(ErrorCode(int(found.error_code)))
    return int(found.offset)
