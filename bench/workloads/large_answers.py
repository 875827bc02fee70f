"""Requests about each of many partitions: how long each takes, and how long nothing else is answered meanwhile.

Answers are read as they come and not looked into, so that the turns that are measured are the node's.
"""

from __future__ import annotations

import asyncio
import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import timedelta
from statistics import median
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final
from uuid import UUID

from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.describe_log_dirs.v5.request import DescribeLogDirsRequest
from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.metadata.v13.request import MetadataRequest
from kio.schema.offset_commit.v10.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.offset_fetch.v10.request import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kio.schema.offset_for_leader_epoch.v4.request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kio.schema.types import BrokerId, GroupId, TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64

from ...client.addresses import Address
from ...local.local_node import HOST
from ...protocol.apis import APIS
from ...protocol.messages import Request, encode_request
from ..coordinators import coordinator_of
from ..node_here import Turns, create_topic, with_node_here
from ..target import Target

if TYPE_CHECKING:
    from ...broker.node.server import Node

TOPIC: Final = "many"
GROUP: Final = GroupId("many")
OTHER_PARTITIONS: Final = 1_000
"""Of a topic that is created in each round."""
ROUNDS: Final = 5
_SIZE: Final = struct.Struct(">i")
_NS_PER_MS: Final = 1e6
_TIMEOUT: Final = i32Timedelta.parse(timedelta(seconds=30))


def large_answers(_target: Target, *, partitions: int) -> Mapping[str, float | None]:
    """The longest answer, and the longest turn of each. The first round, which loads handlers, is not counted."""

    async def ask(node: Node) -> Mapping[str, float | None]:
        topic_id = await create_topic(node, TOPIC, partitions)
        port = node.bound_ports["PLAINTEXT"]
        await coordinator_of(GROUP, (Address(HOST, port),))
        reader, writer = await asyncio.open_connection(HOST, port)
        turns = Turns()
        answers: defaultdict[str, list[float]] = defaultdict(list)
        longest_turns: defaultdict[str, list[float]] = defaultdict(list)
        try:
            for number in range(ROUNDS + 1):
                for name, request in _requests(topic_id, partitions, number).items():
                    key = request.__api_key__
                    frame = encode_request(key, APIS[key].max_version, number, "bench", request)
                    begun_ns = perf_counter_ns()
                    turns.start()
                    writer.write(frame)
                    (size,) = _SIZE.unpack(await reader.readexactly(_SIZE.size))
                    await reader.readexactly(size)
                    turn_ms = turns.stop()
                    if number:
                        answers[name].append((perf_counter_ns() - begun_ns) / _NS_PER_MS)
                        longest_turns[name].append(turn_ms)
        finally:
            writer.close()
        return {
            "answer_ms": max(map(median, answers.values())),
            "turn_ms_median": max(map(median, longest_turns.values())),
            "turn_ms_max": max(map(max, longest_turns.values())),
            **{f"{name}_ms": median(times) for name, times in answers.items()},
            **{f"{name}_turn_ms": median(times) for name, times in longest_turns.items()},
        }

    return with_node_here({}, ask)


def _requests(topic_id: UUID, partitions: int, number: int) -> Mapping[str, Request]:
    name, numbers = TopicName(TOPIC), range(partitions)
    return {
        # A topic is made before it, so no answer is kept that was encoded for the last one.
        "create_topics": CreateTopicsRequest(topics=(_topic(f"other-{number}"),), timeout=_TIMEOUT),
        "metadata": MetadataRequest(topics=None, include_topic_authorized_operations=False),
        "list_offsets": ListOffsetsRequest(
            replica_id=BrokerId(-1), isolation_level=i8(0), topics=(_listed(name, numbers),), timeout=_TIMEOUT
        ),
        "offset_for_leader_epoch": OffsetForLeaderEpochRequest(topics=(_led(name, numbers),)),
        "offset_commit": OffsetCommitRequest(group_id=GROUP, member_id="", topics=(_committed(topic_id, numbers),)),
        "offset_fetch": OffsetFetchRequest(
            groups=(
                OffsetFetchRequestGroup(
                    group_id=GROUP,
                    topics=(OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=tuple(map(i32, numbers))),),
                ),
            )
        ),
        "describe_log_dirs": DescribeLogDirsRequest(topics=None),
    }


def _topic(name: str) -> CreatableTopic:
    return CreatableTopic(
        name=TopicName(name),
        num_partitions=i32(OTHER_PARTITIONS),
        replication_factor=i16(-1),
        assignments=(),
        configs=(),
    )


def _listed(name: TopicName, numbers: Iterable[int]) -> ListOffsetsTopic:
    latest = i64(-1)
    return ListOffsetsTopic(
        name=name,
        partitions=tuple(ListOffsetsPartition(partition_index=i32(number), timestamp=latest) for number in numbers),
    )


def _led(name: TopicName, numbers: Iterable[int]) -> OffsetForLeaderTopic:
    return OffsetForLeaderTopic(
        topic=name,
        partitions=tuple(OffsetForLeaderPartition(partition=i32(number), leader_epoch=i32(0)) for number in numbers),
    )


def _committed(topic_id: UUID, numbers: Iterable[int]) -> OffsetCommitRequestTopic:
    return OffsetCommitRequestTopic(
        topic_id=topic_id,
        partitions=tuple(
            OffsetCommitRequestPartition(partition_index=i32(number), committed_offset=i64(0), committed_metadata=None)
            for number in numbers
        ),
    )
