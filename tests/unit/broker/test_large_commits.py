"""OffsetCommit and TxnOffsetCommit of many partitions on a whole node: a thread has their records ready first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.offset_commit.v10.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.offset_fetch.v10.request import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kio.schema.txn_offset_commit.v5.request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kio.schema.types import GroupId, ProducerId, TopicName, TransactionalId
from kio.static.primitive import i16, i32, i64
from memory_node import MINUTE, World, create_topic, describe, ready_coordinator, run

from penstock.broker.apis import offset_commit
from penstock.broker.network.large_messages import in_thread
from penstock.broker.node.server import Node
from penstock.client.connection import Connection, connect
from penstock.protocol.errors import ErrorCode

GROUP = GroupId("g")
MANY = 2_000
"""Well above what is read at once."""


async def topic_with_coordinator(connection: Connection, name: str = "many") -> UUID:
    await create_topic(connection, name, MANY)
    await ready_coordinator(connection, GROUP)
    topic_id = (await describe(connection, name)).topics[0].topic_id
    assert topic_id is not None
    return topic_id


def commit_request(offset: int, *places: tuple[UUID, Sequence[int]], generation: int = -1) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=i32(generation),
        member_id="",
        topics=tuple(
            OffsetCommitRequestTopic(
                topic_id=topic_id,
                partitions=tuple(
                    OffsetCommitRequestPartition(
                        partition_index=i32(number), committed_offset=i64(offset), committed_metadata=None
                    )
                    for number in partitions
                ),
            )
            for topic_id, partitions in places
        ),
    )


def codes_of(response: Any) -> list[list[ErrorCode]]:
    return [[ErrorCode(int(one.error_code)) for one in topic.partitions] for topic in response.topics]


async def committed(connection: Connection, topic_id: UUID, partitions: Sequence[int] = range(MANY)) -> list[int]:
    wanted = OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=tuple(map(i32, partitions)))
    response: Any = await connection.call(
        OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=(wanted,)),), require_stable=False)
    )
    return [int(one.committed_offset) for one in response.groups[0].topics[0].partitions]


def test_a_small_commit_behind_a_large_one_of_the_same_connection_counts() -> None:
    async def scenario() -> None:
        async with World().running() as (_, connection):
            topic_id = await topic_with_coordinator(connection)
            large, small = await asyncio.gather(
                connection.call(commit_request(5, (topic_id, range(MANY)))),
                connection.call(commit_request(6, (topic_id, range(10)))),
            )
            assert codes_of(large) == [[ErrorCode.NONE] * MANY]
            assert codes_of(small) == [[ErrorCode.NONE] * 10]
            assert await committed(connection, topic_id) == [6] * 10 + [5] * (MANY - 10)

    run(scenario)


@pytest.mark.thorough
def test_what_is_refused_of_a_large_commit_is_told_and_the_rest_is_committed() -> None:
    async def scenario() -> None:
        async with World().running() as (_, connection):
            topic_id = await topic_with_coordinator(connection)
            response = await connection.call(
                commit_request(5, (UUID(int=1), range(3)), (topic_id, range(1, MANY + 1)), (topic_id, (0,)))
            )
            assert codes_of(response) == [
                [ErrorCode.UNKNOWN_TOPIC_ID] * 3,
                [*[ErrorCode.NONE] * (MANY - 1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
                [ErrorCode.NONE],
            ]
            assert await committed(connection, topic_id) == [5] * MANY
            response = await connection.call(commit_request(6, (topic_id, range(MANY)), generation=3))
            assert codes_of(response) == [[ErrorCode.UNKNOWN_MEMBER_ID] * MANY]
            assert await committed(connection, topic_id) == [5] * MANY

    run(scenario)


@pytest.mark.thorough
def test_offsets_of_a_topic_that_is_deleted_while_they_are_encoded_are_not_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        async with World().running() as (node, connection):
            kept_id = await topic_with_coordinator(connection, "kept")
            topic_id = await topic_with_coordinator(connection)

            async def delete_first(do: Any, *arguments: Any) -> Any:
                if do is offset_commit._encode and topic_id in _topic_ids(node):
                    records = await in_thread(do, *arguments)
                    await _delete(node, "many")
                    return records
                return await in_thread(do, *arguments)

            monkeypatch.setattr("penstock.broker.apis.offset_commit.in_thread", delete_first)
            response = await connection.call(commit_request(5, (topic_id, range(MANY)), (kept_id, range(MANY))))
            assert codes_of(response) == [[ErrorCode.UNKNOWN_TOPIC_ID] * MANY, [ErrorCode.NONE] * MANY]
            assert await committed(connection, kept_id) == [5] * MANY
            shard = node.parts.groups.coordinators.get(GROUP).shard
            assert set(shard.offsets.committed_of(GROUP)) == {"kept"}

    run(scenario)


def _topic_ids(node: Node) -> Any:
    return node.parts.partitions.image.topics.by_id


async def _delete(node: Node, name: str) -> None:
    async with await connect("127.0.0.1", node.bound_ports["PLAINTEXT"]) as other:
        await other.call(
            DeleteTopicsRequest(topics=(DeleteTopicState(name=TopicName(name), topic_id=None),), timeout=MINUTE)
        )


@pytest.mark.thorough
def test_many_offsets_of_a_transaction_wait_for_it() -> None:
    async def scenario() -> None:
        world = World(transaction_partition_verification_enable="false")
        async with world.running() as (node, connection):
            topic_id = await topic_with_coordinator(connection)
            request = TxnOffsetCommitRequest(
                transactional_id=TransactionalId("t"),
                group_id=GROUP,
                producer_id=ProducerId(7),
                producer_epoch=i16(0),
                topics=(
                    TxnOffsetCommitRequestTopic(
                        name=TopicName("many"),
                        partitions=tuple(
                            TxnOffsetCommitRequestPartition(
                                partition_index=i32(number), committed_offset=i64(5), committed_metadata=None
                            )
                            for number in range(MANY + 1)
                        ),
                    ),
                ),
            )
            connection.versions = {**connection.versions, request.__api_key__: (3, 3)}
            codes = codes_of(await connection.call(request))
            assert codes == [[*[ErrorCode.NONE] * MANY, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]]
            assert await committed(connection, topic_id, range(3)) == [-1] * 3
            shard = node.parts.groups.coordinators.get(GROUP).shard
            shard.replay_end_transaction(7, is_commit=True)
            assert await committed(connection, topic_id) == [5] * MANY

    run(scenario)
