"""A whole node on a disk in memory, and what a test asks it over the loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from random import Random
from typing import Any, Final

from kio.schema.create_topics.v7.request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
from kio.schema.fetch.v18.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.fetch.v18.response import FetchResponse, PartitionData
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.list_offsets.v11.response import ListOffsetsPartitionResponse, ListOffsetsResponse
from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v13.response import MetadataResponse
from kio.schema.offset_fetch.v9.request import OffsetFetchRequest, OffsetFetchRequestGroup
from kio.schema.produce.v13.response import ProduceResponse
from kio.schema.types import BrokerId, GroupId, TopicName, TransactionalId
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64
from other_tasks import end_other_tasks
from produce_requests import produce_request
from waiting import ask_until

from penstock.broker.configuration.node_config import load
from penstock.broker.node.server import Node
from penstock.client.connection import Connection, connect
from penstock.protocol.errors import ErrorCode
from penstock.protocol.records import Record, write_batch
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.tiers.rules.tier_store import OpenTier

MINUTE = i32Timedelta.parse(timedelta(minutes=1))
_FINAL_EPOCH = -1
LATEST = -1
OF_GROUPS: Final = 0
OF_TRANSACTIONS: Final = 1


class World:
    """A disk, and the nodes that are started on it one after the other."""

    def __init__(self, **properties: str) -> None:
        self.files = MemoryFiles()
        self.now_ms = 1_700_000_000_000
        self.random = Random(7)
        self.open_tier: OpenTier | None = None
        self.properties = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": "/data",
            **{name.replace("_", "."): value for name, value in properties.items()},
        }

    def node(self, **properties: str) -> Node:
        changed = {name.replace("_", "."): value for name, value in properties.items()}
        return Node(
            load({**self.properties, **changed}),
            self.files,
            loop=asyncio.get_running_loop(),
            wall_clock_ms=lambda: self.now_ms,
            random=self.random,
            open_tier=self.open_tier,
        )

    @asynccontextmanager
    async def running(self, **properties: str) -> AsyncIterator[tuple[Node, Connection]]:
        node = self.node(**properties)
        await node.start()
        try:
            async with await connect("127.0.0.1", node.bound_ports["PLAINTEXT"]) as connection:
                yield node, connection
        finally:
            await node.stop()

    @asynccontextmanager
    async def losing_power(self, **properties: str) -> AsyncIterator[tuple[Node, Connection]]:
        """`running`, until the power is lost."""
        node = self.node(**properties)
        await node.start()
        async with await connect("127.0.0.1", node.bound_ports["PLAINTEXT"]) as connection:
            yield node, connection
        await self.lose_power(node)

    async def lose_power(self, node: Node) -> None:
        """Nothing of the node gets to the disk any more, and what was not synced may be gone."""
        self.files.crash(self.random)
        await end_other_tasks()
        node.parts.listeners.close()


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(30):
            await scenario()

    asyncio.run(main())


def run_then_stop(scenario: Callable[[], Awaitable[None]], stop: Callable[[], Awaitable[None]]) -> None:
    """For several nodes. They are stopped after a failure too: a mutant's run shares its process, and its sockets, with
    the tests behind it."""

    async def main() -> None:
        try:
            async with asyncio.timeout(60):
                await scenario()
        finally:
            async with asyncio.timeout(60):
                await stop()

    asyncio.run(main())


async def create_topic(connection: Connection, name: str, partition_count: int = 1, **configs: str) -> ErrorCode:
    response = await connection.call(
        CreateTopicsRequest(
            topics=(
                CreatableTopic(
                    name=TopicName(name),
                    num_partitions=i32(partition_count),
                    replication_factor=i16(1),
                    assignments=(),
                    configs=tuple(
                        CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
                    ),
                ),
            )
        )
    )
    assert isinstance(response, CreateTopicsResponse)
    return ErrorCode(int(response.topics[0].error_code))


async def describe(connection: Connection, *names: str, creates: bool = False) -> MetadataResponse:
    topics = tuple(MetadataRequestTopic(topic_id=None, name=TopicName(name)) for name in names)
    response = await connection.call(
        MetadataRequest(topics=topics, allow_auto_topic_creation=creates, include_topic_authorized_operations=False)
    )
    assert isinstance(response, MetadataResponse)
    return response


async def ready_coordinator(connection: Connection, key: str, key_type: int = OF_GROUPS) -> None:
    """The coordinator of a group or a transactional id, whose topic is made for it, has read its log."""
    await connection.call(FindCoordinatorRequest(key_type=i8(key_type), coordinator_keys=(key,)))

    async def ask() -> ErrorCode:
        response: Any
        if key_type == OF_TRANSACTIONS:
            ids = (TransactionalId(key),)
            response = await connection.call(DescribeTransactionsRequest(transactional_ids=ids))
            return ErrorCode(int(response.transaction_states[0].error_code))
        groups = (OffsetFetchRequestGroup(group_id=GroupId(key), topics=()),)
        response = await connection.call(OffsetFetchRequest(groups=groups, require_stable=False))
        return ErrorCode(int(response.groups[0].error_code))

    await ask_until(ask, lambda code: code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"the coordinator of {key}")


async def produce(
    connection: Connection,
    topic: str,
    value: bytes,
    partition: int = 0,
    *,
    timestamp_ms: int = 0,
    producer_id: int = -1,
) -> ErrorCode:
    """With a producer id, as the first batch of that producer."""
    described = await describe(connection, topic)
    first = -1 if producer_id < 0 else 0
    batch = write_batch(
        [Record(offset=0, timestamp_ms=timestamp_ms, key=None, value=value, headers=())],
        producer_id=producer_id,
        producer_epoch=first,
        base_sequence=first,
    )
    response = await connection.call(produce_request(described.topics[0].topic_id, partition, batch))
    assert isinstance(response, ProduceResponse)
    return ErrorCode(int(response.responses[0].partition_responses[0].error_code))


async def end_offset(connection: Connection, topic: str) -> int:
    return (await list_offsets(connection, topic, LATEST)).offset


async def list_offsets(
    connection: Connection, topic: str, timestamp: int, *, timeout: i32Timedelta = MINUTE
) -> ListOffsetsPartitionResponse:
    """Of the topic's first partition."""
    wanted = ListOffsetsPartition(partition_index=i32(0), timestamp=i64(timestamp))
    response = await connection.call(
        ListOffsetsRequest(
            replica_id=BrokerId(-1),
            isolation_level=i8(0),
            topics=(ListOffsetsTopic(name=TopicName(topic), partitions=(wanted,)),),
            timeout=timeout,
        )
    )
    assert isinstance(response, ListOffsetsResponse)
    return response.topics[0].partitions[0]


async def fetch_from(connection: Connection, topic: str, offset: int) -> PartitionData:
    """Committed records of the topic's first partition; waits for one."""
    topic_id = (await describe(connection, topic)).topics[0].topic_id
    wanted = FetchPartition(partition=i32(0), fetch_offset=i64(offset), partition_max_bytes=i32(1_000_000))
    response = await connection.call(
        FetchRequest(
            max_wait=MINUTE,
            min_bytes=i32(1),
            max_bytes=i32(1_000_000),
            isolation_level=i8(1),
            session_id=i32(0),
            session_epoch=i32(_FINAL_EPOCH),
            topics=(FetchTopic(topic_id=topic_id, partitions=(wanted,)),),
            forgotten_topics_data=(),
        )
    )
    assert isinstance(response, FetchResponse)
    return response.responses[0].partitions[0]
