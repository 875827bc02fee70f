"""A whole node with a tier in memory, a topic that is copied there, and the requests that tests make (KIP-405)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kio.schema.fetch.v18.response import PartitionData
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse
from kio.schema.list_offsets.v11.response import ListOffsetsPartitionResponse
from kio.schema.types import ProducerId, TopicName
from kio.schema.write_txn_markers.v2.request import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kio.schema.write_txn_markers.v2.response import WriteTxnMarkersResponse
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64
from memory_node import MINUTE, World, create_topic, fetch_from, list_offsets, produce
from memory_tier import MemoryTier
from open_transactions import HANGING_PRODUCER_ID

from penstock.broker.node.server import Node
from penstock.client.connection import Connection
from penstock.protocol.batches import iterate_headers
from penstock.protocol.errors import ErrorCode
from penstock.storage.log.log import Log

TOPIC = "tiered"
SEGMENT_BYTES = 1000
# Of these, three make a segment.
VALUE = bytes(200)
PER_SEGMENT = 3
ONE_SEGMENT = {"local_retention_bytes": "1"}


class TieredWorld(World):
    """A disk, a tier, and the node between them."""

    def __init__(self, tier: MemoryTier, **properties: str) -> None:
        super().__init__(
            remote_log_storage_system_enable="true",
            remote_log_storage_url="memory:",
            remote_log_manager_task_interval_ms="20",
            log_retention_check_interval_ms="20",
            log_initial_task_delay_ms="1",
            # Before it is synced nothing leaves the disk.
            log_flush_scheduler_interval_ms="20",
            offsets_topic_num_partitions="1",
            **{"rlmm.config.remote.log.metadata.topic.num.partitions": "1"},
            **properties,
        )
        self.tier = tier
        self.open_tier = lambda _url: tier

    async def fill(self, connection: Connection, segments: int, **configs: str) -> None:
        """Makes the topic, and so many closed segments in it; the first record has offset 0."""
        given = {
            "remote_storage_enable": "true",
            "internal_segment_bytes": str(SEGMENT_BYTES),
            "file_delete_delay_ms": "0",
            **configs,
        }
        assert await create_topic(connection, TOPIC, 1, **given) is ErrorCode.NONE
        for _ in range(segments * PER_SEGMENT + 1):
            await write(self, connection)

    def failed_copies(self, node: Node) -> int:
        return node.parts.partitions.total_counters().failed_remote_copies

    @asynccontextmanager
    async def tiered(self, segments: int, **configs: str) -> AsyncIterator[tuple[Node, Connection]]:
        """A node with a filled topic."""
        async with self.running() as (node, connection):
            await self.fill(connection, segments, **configs)
            yield node, connection


async def write(world: World, connection: Connection) -> None:
    """One record, a second younger than the one before."""
    world.now_ms += 1000
    assert await produce(connection, TOPIC, VALUE, timestamp_ms=world.now_ms) is ErrorCode.NONE


async def delete_records(connection: Connection, offset: int) -> None:
    wanted = DeleteRecordsPartition(partition_index=i32(0), offset=i64(offset))
    topic = DeleteRecordsTopic(name=TopicName(TOPIC), partitions=(wanted,))
    await connection.call(DeleteRecordsRequest(topics=(topic,), timeout=MINUTE))


async def abort(connection: Connection) -> None:
    """Ends the transaction of `leave_open`."""
    topic = WritableTxnMarkerTopic(name=TopicName(TOPIC), partition_indexes=(i32(0),))
    marker = WritableTxnMarker(
        producer_id=ProducerId(HANGING_PRODUCER_ID),
        producer_epoch=i16(0),
        transaction_result=False,
        topics=(topic,),
        coordinator_epoch=i32(0),
        transaction_version=i8(0),
    )
    response = await connection.call(WriteTxnMarkersRequest(markers=(marker,)))
    assert isinstance(response, WriteTxnMarkersResponse)
    assert not response.markers[0].topics[0].partitions[0].error_code


async def fetch(connection: Connection, offset: int) -> PartitionData:
    return await fetch_from(connection, TOPIC, offset)


async def read_offsets(connection: Connection, start: int, end: int) -> list[int]:
    """Of every record in [start, end), as a consumer that asks on reads them."""
    found: list[int] = []
    while (offset := found[-1] + 1 if found else start) < end:
        # While the metadata are replayed after a start there may be nothing yet.
        data = await fetch(connection, offset)
        assert not data.error_code, data.error_code
        for _, header in iterate_headers(bytes(data.records or b"")):
            found += range(header.base_offset, header.next_offset)
    return found


async def offset_for(connection: Connection, timestamp: int) -> int:
    found = await list_offsets(connection, TOPIC, timestamp)
    assert not found.error_code, found.error_code
    return int(found.offset)


async def search(connection: Connection, timestamp: int, timeout_ms: int) -> ListOffsetsPartitionResponse:
    timeout = i32Timedelta.parse(timedelta(milliseconds=timeout_ms))
    return await list_offsets(connection, TOPIC, timestamp, timeout=timeout)


async def alter(connection: Connection, **configs: str) -> ErrorCode:
    changes = tuple(
        AlterableConfig(name=name.replace("_", "."), config_operation=i8(0), value=value)
        for name, value in configs.items()
    )
    resource = AlterConfigsResource(resource_type=i8(2), resource_name=TOPIC, configs=changes)
    response = await connection.call(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))
    assert isinstance(response, IncrementalAlterConfigsResponse)
    return ErrorCode(int(response.responses[0].error_code))


def log_of(node: Node) -> Log:
    partition = node.parts.partitions.find(TOPIC, 0)
    assert partition is not None, "the node has the partition"
    return partition.log
