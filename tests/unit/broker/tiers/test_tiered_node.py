"""A whole node with a tier in memory that fails when it is to: what is copied, read, kept and deleted (KIP-405)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from kio.schema.alter_replica_log_dirs.v2.request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.fetch.v18.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.fetch.v18.response import FetchResponse, PartitionData
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse
from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.list_offsets.v11.response import ListOffsetsPartitionResponse, ListOffsetsResponse
from kio.schema.types import BrokerId, ProducerId, TopicName
from kio.schema.write_txn_markers.v2.request import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kio.schema.write_txn_markers.v2.response import WriteTxnMarkersResponse
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64
from memory_node import MINUTE, World, create_topic, describe, produce, run
from memory_tier import MemoryTier
from open_transactions import HANGING_PRODUCER_ID, leave_open
from waiting import loop_until

from penstock.broker.configuration.node_config import load
from penstock.broker.node.server import Node
from penstock.broker.replicas.partition import Partition
from penstock.broker.tiers import remote_log_manager, segment_copier
from penstock.broker.tiers.rules.metadata_records import METADATA_TOPIC
from penstock.broker.tiers.rules.remote_segment import SegmentState, SegmentUpdate
from penstock.client.connection import Connection
from penstock.protocol.batches import iterate_headers
from penstock.protocol.errors import ConfigError, ErrorCode
from penstock.protocol.ids import NodeId
from penstock.protocol.messages import kio_error
from penstock.storage.log.log import Log
from penstock.storage.log.rules.file_names import OFFSET_INDEX, TIME_INDEX
from penstock.storage.log.segment import Segment
from penstock.storage.tiers.rules.segment_objects import unpack_parts

TOPIC = "tiered"
FINAL_EPOCH = -1
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


@pytest.fixture
def tier() -> MemoryTier:
    return MemoryTier()


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
    topic_id = (await describe(connection, TOPIC)).topics[0].topic_id
    wanted = FetchPartition(partition=i32(0), fetch_offset=i64(offset), partition_max_bytes=i32(1_000_000))
    response = await connection.call(
        FetchRequest(
            max_wait=MINUTE,
            min_bytes=i32(1),
            max_bytes=i32(1_000_000),
            isolation_level=i8(1),
            session_id=i32(0),
            session_epoch=i32(FINAL_EPOCH),
            topics=(FetchTopic(topic_id=topic_id, partitions=(wanted,)),),
            forgotten_topics_data=(),
        )
    )
    assert isinstance(response, FetchResponse)
    return response.responses[0].partitions[0]


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
    wanted = ListOffsetsPartition(partition_index=i32(0), timestamp=i64(timestamp))
    response = await connection.call(
        ListOffsetsRequest(
            replica_id=BrokerId(-1),
            isolation_level=i8(0),
            topics=(ListOffsetsTopic(name=TopicName(TOPIC), partitions=(wanted,)),),
            timeout=MINUTE,
        )
    )
    assert isinstance(response, ListOffsetsResponse)
    (found,) = response.topics[0].partitions
    assert not found.error_code, found.error_code
    return int(found.offset)


async def search(connection: Connection, timestamp: int, timeout_ms: int) -> ListOffsetsPartitionResponse:
    wanted = ListOffsetsPartition(partition_index=i32(0), timestamp=i64(timestamp))
    response = await connection.call(
        ListOffsetsRequest(
            replica_id=BrokerId(-1),
            isolation_level=i8(0),
            topics=(ListOffsetsTopic(name=TopicName(TOPIC), partitions=(wanted,)),),
            timeout=i32Timedelta.parse(timedelta(milliseconds=timeout_ms)),
        )
    )
    assert isinstance(response, ListOffsetsResponse)
    return response.topics[0].partitions[0]


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


def test_closed_segments_leave_the_disk_and_are_read_from_the_tier(tier: MemoryTier) -> None:
    world = TieredWorld(tier)

    async def scenario() -> None:
        async with world.tiered(5, **ONE_SEGMENT) as (node, connection):
            log = log_of(node)
            await loop_until(lambda: log.local_log_start_offset == 15, "local retention")
            assert log.log_start_offset == 0
            assert tier.logs() == [0, 3, 6, 9, 12]
            assert await read_offsets(connection, 0, 16) == list(range(16))
            assert await offset_for(connection, -2) == 0
            assert await offset_for(connection, -4) == 15
            assert await offset_for(connection, -5) == 14
            assert await offset_for(connection, -6) == 15
            assert await offset_for(connection, world.now_ms - 8_500) == 7
            assert await offset_for(connection, 0) == 0
        async with world.running() as (node, connection):
            assert log_of(node).log_start_offset == 0
            assert await read_offsets(connection, 0, 16) == list(range(16))

    run(scenario)


def test_a_loss_of_power_takes_nothing_that_only_the_tier_has(tier: MemoryTier) -> None:
    """The metadata topic is synced before a local segment goes."""
    world = TieredWorld(tier)

    async def scenario() -> None:
        async with world.losing_power() as (node, connection):
            await world.fill(connection, 5, **ONE_SEGMENT, flush_messages="1")
            await loop_until(lambda: log_of(node).local_log_start_offset == 15, "local retention")
        async with world.running() as (_, connection):
            assert await read_offsets(connection, 0, 16) == list(range(16))

    run(scenario)


def test_a_fetch_waits_for_the_tier_no_longer_than_it_is_to(tier: MemoryTier) -> None:
    """Whatever the client's own wait is (KIP-1018); what comes later is there for its next request."""
    world = TieredWorld(tier, remote_fetch_max_wait_ms="50")
    answers = threading.Event()

    def wait(call: str, key: str) -> bool:
        if call == "get" and key.endswith(".log"):
            answers.wait()
        return False

    async def scenario() -> None:
        async with world.tiered(2, **ONE_SEGMENT) as (node, connection):
            await loop_until(lambda: log_of(node).local_log_start_offset == 6, "local retention")
            tier.fails = wait
            try:
                data = await fetch(connection, 0)
                assert (data.error_code, data.records or b"") == (kio_error(ErrorCode.NONE), b"")
                assert data.high_watermark == 7
                assert await read_offsets(connection, 6, 7) == [6], "others do not wait for it"
            finally:
                answers.set()
            assert await read_offsets(connection, 0, 7) == list(range(7))

    run(scenario)


def test_a_search_by_timestamp_waits_for_the_tier_no_longer_than_it_is_to(tier: MemoryTier) -> None:
    """KIP-1075: as the request says, or the broker's configuration."""
    world = TieredWorld(tier, remote_list_offsets_request_timeout_ms="50")
    answers = threading.Event()

    def wait(call: str, _key: str) -> bool:
        if call == "get":
            answers.wait()
        return False

    async def scenario() -> None:
        async with world.tiered(2, **ONE_SEGMENT) as (node, connection):
            await loop_until(lambda: log_of(node).local_log_start_offset == 6, "local retention")
            tier.fails = wait
            try:
                for timeout_ms in (0, 20):
                    assert (await search(connection, 0, timeout_ms)).error_code == kio_error(
                        ErrorCode.REQUEST_TIMED_OUT
                    )
            finally:
                answers.set()
            found = await search(connection, 0, 60_000)
            assert (found.error_code, found.offset) == (kio_error(ErrorCode.NONE), 0)

    run(scenario)


@pytest.mark.parametrize("leads_on", [True, False])
def test_an_upload_that_ends_after_its_deletion_leaves_nothing_behind(
    tier: MemoryTier, monkeypatch: pytest.MonkeyPatch, leads_on: bool
) -> None:
    """Another leader gave the copy up meanwhile, and this one is told only when it finishes it, or leads no more."""
    world = TieredWorld(tier)
    is_leader = True
    does_lead = segment_copier.leads
    monkeypatch.setattr(segment_copier, "leads", lambda *args: is_leader and does_lead(*args))

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with world.running() as (node, connection):
            assert node.parts.tier is not None
            metadata = node.parts.tier.metadata
            late: list[str] = []

            async def give_up(key: str) -> None:
                nonlocal is_leader
                is_leader = leads_on
                partition = node.parts.partitions.find(TOPIC, 0)
                assert partition is not None
                (copy,) = metadata.segments_of(partition.topic_id, 0)
                for state in (SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED):
                    update = SegmentUpdate(
                        partition=copy.partition, id=copy.id, broker_id=NodeId(7), event_ms=0, state=state
                    )
                    await metadata.publish([update])
                tier.objects.clear()
                late.append(key)

            def end_late(call: str, key: str) -> bool:
                if call == "put" and key.endswith(".log") and not late:
                    asyncio.run_coroutine_threadsafe(give_up(key), loop).result(10)
                return False

            tier.fails = end_late
            await world.fill(connection, 1)
            await loop_until(lambda: ("delete", late[0]) in tier.calls if late else False, "the end of the late one")
            is_leader = True
            await loop_until(lambda: tier.logs() == [0], "a copy")
            assert late[0] not in tier.objects
            assert len(tier.objects) == 2

    is_leader = True
    run(scenario)


def test_an_upload_that_ends_after_the_leadership_is_not_finished(
    tier: MemoryTier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log may have been cut meanwhile, in another epoch."""
    world = TieredWorld(tier)
    is_leader = True
    does_lead = segment_copier.leads
    monkeypatch.setattr(segment_copier, "leads", lambda *args: is_leader and does_lead(*args))

    def lose_leadership(call: str, key: str) -> bool:
        nonlocal is_leader
        if call == "put" and key.endswith(".log") and ("put", key) not in tier.calls[:-1]:
            is_leader = False
        return False

    async def scenario() -> None:
        async with world.running() as (node, connection):
            assert node.parts.tier is not None
            tier.fails = lose_leadership
            await world.fill(connection, 1)
            await loop_until(lambda: tier.logs() == [0], "an upload")
            nonlocal is_leader
            partition = node.parts.partitions.find(TOPIC, 0)
            assert partition is not None
            metadata = node.parts.tier.metadata
            for _ in range(3):
                await metadata.catch_up(partition.topic_id, 0)
            (copy,) = metadata.segments_of(partition.topic_id, 0)
            assert copy.state is SegmentState.COPY_SEGMENT_STARTED
            assert log_of(node).tiered_end_offset == 0
            is_leader = True
            await loop_until(lambda: log_of(node).tiered_end_offset == 3, "the copy")
            assert len(tier.objects) == 2, "the same copy"

    run(scenario)


def test_damaged_leader_epochs_lose_nothing_that_only_the_tier_has(tier: MemoryTier) -> None:
    world = TieredWorld(tier)

    async def scenario() -> None:
        async with world.tiered(3, **ONE_SEGMENT) as (node, _):
            await loop_until(lambda: log_of(node).local_log_start_offset == 9, "local retention")
        async with world.running() as (node, connection):
            # In another leader epoch.
            for _ in range(3 * PER_SEGMENT):
                await write(world, connection)
            await loop_until(lambda: log_of(node).local_log_start_offset == 18, "local retention")
            epochs = log_of(node).leader_epochs.entries
            folder = log_of(node).directory
        assert len(epochs) == 2
        world.files.write_atomically(f"{folder}/leader-epoch-checkpoint", b"0\n1\ngarbage\n")
        async with world.running() as (node, connection):
            await loop_until(lambda: log_of(node).leader_epochs.entries[:2] == epochs, "epochs from the tier")
            assert await read_offsets(connection, 0, 19) == list(range(19))

    run(scenario)


def test_an_outage_of_the_tier_keeps_everything_on_the_disk(tier: MemoryTier) -> None:
    world = TieredWorld(tier)

    async def scenario() -> None:
        async with world.tiered(3, **ONE_SEGMENT) as (node, connection):
            log = log_of(node)
            await loop_until(lambda: log.local_log_start_offset == 9, "local retention")
            tier.fails = lambda _call, _key: True
            failed = world.failed_copies(node)
            for _ in range(4 * PER_SEGMENT):
                await write(world, connection)
            await loop_until(lambda: world.failed_copies(node) > failed + 3, "copies that fail")
            assert log.local_log_start_offset == 9
            assert await read_offsets(connection, 9, 22) == list(range(9, 22))
            assert (await fetch(connection, 0)).error_code == kio_error(ErrorCode.KAFKA_STORAGE_ERROR)
            tier.fails = lambda _call, _key: False
            await loop_until(lambda: log.local_log_start_offset == 21, "local retention after the outage")
            assert await read_offsets(connection, 0, 22) == list(range(22))
            assert tier.logs() == list(range(0, 21, 3)), "one copy of each segment"

    run(scenario)


def test_a_damaged_segment_is_not_copied(tier: MemoryTier) -> None:
    """Else intact replicas would drop their own for it."""
    world = TieredWorld(tier)
    tier.fails = lambda _call, _key: True

    async def scenario() -> None:
        async with world.tiered(3, **ONE_SEGMENT) as (node, connection):
            log = log_of(node)
            await loop_until(lambda: world.failed_copies(node) > 0, "copies that fail")
            world.files.flip_bit(log.inactive_segments[1].file.path, 300, 1)
            tier.fails = lambda _call, _key: False
            partition = node.parts.partitions.find(TOPIC, 0)
            assert partition is not None
            await loop_until(lambda: partition.damage is not None, "the damage is found")
            assert await read_offsets(connection, 0, 4) == list(range(4))
            assert tier.logs() == [0]
            assert log.tiered_end_offset == 3

    run(scenario)


@pytest.mark.parametrize(
    ("suffix", "data"),
    [
        pytest.param(OFFSET_INDEX, b"torn", id="an offset index that is cut off"),
        pytest.param(OFFSET_INDEX, bytes([0, 0, 0, 0, 0, 0, 0, 9]), id="an offset index that leads astray"),
        pytest.param(TIME_INDEX, b"torn", id="a time index that is cut off"),
        pytest.param(TIME_INDEX, bytes([127, *[0] * 11]), id="a time index of another time"),
    ],
)
def test_a_damaged_index_is_made_anew_before_it_is_copied(suffix: str, data: bytes, tier: MemoryTier) -> None:
    """Else the segment could not be read from the tier, where alone it is."""
    world = TieredWorld(tier)
    tier.fails = lambda _call, _key: True

    async def scenario() -> None:
        async with world.tiered(3, **ONE_SEGMENT) as (node, connection):
            log = log_of(node)
            await loop_until(lambda: world.failed_copies(node) > 0, "copies that fail")
            path = log.inactive_segments[1].path(suffix)
            whole = bytes(world.files.look(path) or b"")
            world.files.open(path).truncate(0)
            world.files.open(path).write_at(0, data)
            failed = world.failed_copies(node)
            tier.fails = lambda _call, _key: False
            await loop_until(lambda: log.local_log_start_offset > 3, "all closed segments are copied and have gone")
            assert world.failed_copies(node) > failed
            assert await read_offsets(connection, 0, 9) == list(range(9))
            (parts,) = [
                unpack_parts(bytes(tier.get_range(key, 0, 2**20)), key)
                for key in tier.keys("")
                if "00000000000000000003-" in key and not key.endswith(".log")
            ]
            assert parts[suffix] == whole

    run(scenario)


def test_a_segment_that_goes_before_its_copy_is_begun_leaves_nothing_behind(
    tier: MemoryTier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waited for its quota meanwhile: its file must not be made anew, empty."""
    world = TieredWorld(tier)

    async def scenario() -> None:
        waiting, has_quota = asyncio.Event(), asyncio.Event()

        async def wait(*_args: object) -> None:
            waiting.set()
            await has_quota.wait()

        monkeypatch.setattr(segment_copier, "within_quota", wait)
        async with world.tiered(3, **ONE_SEGMENT) as (node, connection):
            await waiting.wait()
            log = log_of(node)
            first = log.inactive_segments[0]
            wanted = DeleteRecordsPartition(partition_index=i32(0), offset=i64(3))
            topic = DeleteRecordsTopic(name=TopicName(TOPIC), partitions=(wanted,))
            await connection.call(DeleteRecordsRequest(topics=(topic,), timeout=MINUTE))
            await loop_until(lambda: first not in log.inactive_segments, "deletion")
            has_quota.set()
            await loop_until(lambda: tier.logs() == [3, 6], "copies of the others")
            assert f"{0:020d}.log" not in world.files.list_directory(log.directory)
        async with world.running() as (_, connection):
            assert await read_offsets(connection, 3, 10) == list(range(3, 10))

    run(scenario)


def test_retention_goes_on_where_a_copy_fails(tier: MemoryTier) -> None:
    world = TieredWorld(tier)

    async def scenario() -> None:
        async with world.tiered(3, **ONE_SEGMENT) as (node, connection):
            await loop_until(lambda: log_of(node).local_log_start_offset == 9, "local retention")
            tier.fails = lambda call, _key: call == "put"
            for _ in range(PER_SEGMENT):
                await write(world, connection)
            await loop_until(lambda: world.failed_copies(node) > 2, "copies that fail")
            await delete_records(connection, 7)
            await loop_until(lambda: tier.logs() == [6], "deletion")

    run(scenario)


def test_damaged_metadata_do_not_end_the_node(tier: MemoryTier) -> None:
    """They are found by their CRC; nothing of them is believed."""
    world = TieredWorld(tier)

    async def scenario() -> None:
        async with world.tiered(2, **ONE_SEGMENT) as (node, _):
            await loop_until(lambda: log_of(node).local_log_start_offset == 6, "local retention")
            metadata = node.parts.partitions.find(METADATA_TOPIC, 0)
            assert metadata is not None
            path = f"{metadata.log.directory}/{0:020d}.log"
        world.files.flip_bit(path, 140, 0)
        async with world.running() as (node, connection):
            found = node.parts.partitions.find(METADATA_TOPIC, 0)
            assert found is not None
            await loop_until(lambda: found.damage is not None, "the damage is found")
            assert await read_offsets(connection, 6, 7) == [6]
            assert not node.failure.done()

    run(scenario)


def test_a_copy_without_an_end_is_begun_anew_by_the_next_process_and_deleted(tier: MemoryTier) -> None:
    world = TieredWorld(tier)
    tier.fails = lambda call, key: call == "put" and key.endswith(".log")

    async def scenario() -> None:
        async with world.tiered(2, **ONE_SEGMENT) as (node, _):
            await loop_until(lambda: world.failed_copies(node) > 2, "copies that fail")
            assert len(tier.objects) == 1, "the same copy is tried again"
            assert log_of(node).local_log_start_offset == 0
        (left,) = tier.objects
        tier.fails = lambda _call, _key: False
        async with world.running() as (node, connection):
            await loop_until(lambda: log_of(node).local_log_start_offset == 6, "local retention")
            await loop_until(lambda: left not in tier.objects, "the end of what was left")
            assert tier.logs() == [0, 3]
            assert await read_offsets(connection, 0, 7) == list(range(7))

    run(scenario)


def test_retention_by_size_deletes_in_the_tier_and_moves_the_log_start(tier: MemoryTier) -> None:
    world = TieredWorld(tier)

    async def scenario() -> None:
        async with world.tiered(6, **ONE_SEGMENT) as (node, connection):
            await loop_until(lambda: log_of(node).local_log_start_offset == 18, "local retention")
            size = sum(len(content) for key, content in tier.objects.items() if key.endswith(".log")) // 6
            assert await alter(connection, retention_bytes=str(3 * size)) is ErrorCode.NONE
            await loop_until(lambda: tier.logs() == [12, 15] or tier.logs() == [9, 12, 15], "retention")
            await loop_until(lambda: log_of(node).log_start_offset == tier.logs()[0], "the log start")
            assert (await fetch(connection, 0)).error_code == kio_error(ErrorCode.OFFSET_OUT_OF_RANGE)
            start = log_of(node).log_start_offset
            assert await read_offsets(connection, start, 19) == list(range(start, 19))

    run(scenario)


def test_records_that_were_deleted_before_they_were_copied_leave_no_gap(tier: MemoryTier) -> None:
    """The log start lasts before a segment goes for it: else the log would begin with the tier's, and miss the next."""
    world = TieredWorld(tier)

    async def scenario() -> None:
        async with world.losing_power() as (node, connection):
            await world.fill(connection, 2, **ONE_SEGMENT, flush_messages="1")
            log = log_of(node)
            await loop_until(lambda: log.tiered_end_offset == 6, "copies")
            tier.fails = lambda _call, _key: True
            for _ in range(3 * PER_SEGMENT):
                await write(world, connection)
            await delete_records(connection, 14)
            await loop_until(lambda: log.first_segment_base_offset == 12, "deletion")
        tier.fails = lambda _call, _key: False
        async with world.running() as (node, connection):
            assert log_of(node).log_start_offset == 14
            assert await read_offsets(connection, 14, 16) == [14, 15]

    run(scenario)


def test_deleted_records_leave_the_tier(tier: MemoryTier) -> None:
    world = TieredWorld(tier)

    async def scenario() -> None:
        async with world.tiered(4, **ONE_SEGMENT) as (node, connection):
            await loop_until(lambda: log_of(node).local_log_start_offset == 12, "local retention")
            await delete_records(connection, 7)
            await loop_until(lambda: tier.logs() == [6, 9], "deletion")
            assert (await read_offsets(connection, 7, 13))[-6:] == list(range(7, 13))

    run(scenario)


def test_deleting_the_topic_empties_the_tier_after_an_outage_too(tier: MemoryTier) -> None:
    world = TieredWorld(tier)

    async def scenario() -> None:
        async with world.tiered(3) as (_, connection):
            await loop_until(lambda: len(tier.logs()) == 3, "copies")
            # A leader that did not know of the next one's deletion came late with this.
            tier.objects[min(tier.objects).replace("/0/", "/0/late-")] = b""
            tier.fails = lambda call, _key: call == "delete"
            topic = DeleteTopicState(name=TopicName(TOPIC), topic_id=None)
            await connection.call(DeleteTopicsRequest(topics=(topic,), timeout=MINUTE))
            await loop_until(lambda: any(call == "delete" for call, _ in tier.calls), "a deletion that fails")
        assert len(tier.logs()) == 3
        tier.fails = lambda _call, _key: False
        async with world.running():
            await loop_until(lambda: not tier.objects, "an empty tier")

    run(scenario)


def test_aborted_transactions_are_told_with_records_from_the_tier(
    tier: MemoryTier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The marker lies in a later segment than the records; nothing was copied before it was written."""
    world = TieredWorld(tier, transaction_partition_verification_enable="false")
    next_to_copy = remote_log_manager._next_to_copy
    looked_at: list[Segment | None] = []

    def look(partition: Partition) -> Segment | None:
        segment = next_to_copy(partition)
        looked_at.append(segment)
        return segment

    monkeypatch.setattr(remote_log_manager, "_next_to_copy", look)

    async def scenario() -> None:
        async with world.running() as (node, connection):
            await world.fill(connection, 0, **ONE_SEGMENT)
            await leave_open(connection, TOPIC, world.now_ms)
            for _ in range(3 * PER_SEGMENT):
                await write(world, connection)
            looked_at.clear()
            await loop_until(lambda: bool(looked_at), "a look at what can be copied")
            assert set(looked_at) == {None}
            await abort(connection)
            for _ in range(2 * PER_SEGMENT):
                await write(world, connection)
            await loop_until(lambda: log_of(node).local_log_start_offset > 12, "local retention")
            data = await fetch(connection, 0)
            assert not data.error_code
            assert [(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()] == [
                (HANGING_PRODUCER_ID, 1)
            ]
            behind = await fetch(connection, 12)
            assert not behind.aborted_transactions

    run(scenario)


def test_a_move_to_another_directory_takes_along_what_only_the_tier_has(tier: MemoryTier) -> None:
    world = TieredWorld(tier, log_dirs="/data,/other")

    async def scenario() -> None:
        async with world.tiered(4, **ONE_SEGMENT) as (node, connection):
            await loop_until(lambda: log_of(node).local_log_start_offset == 12, "local retention")
            before = log_of(node)
            target = "/other" if before.directory.startswith("/data/") else "/data"
            moved = AlterReplicaLogDirTopic(name=TopicName(TOPIC), partitions=(i32(0),))
            wanted = AlterReplicaLogDir(path=target, topics=(moved,))
            await connection.call(AlterReplicaLogDirsRequest(dirs=(wanted,)))
            await loop_until(lambda: log_of(node).directory.startswith(f"{target}/"), "the move")
            assert log_of(node).log_start_offset == 0
            assert log_of(node).leader_epochs.entries == before.leader_epochs.entries
            for _ in range(2 * PER_SEGMENT):
                await write(world, connection)
            await loop_until(lambda: log_of(node).local_log_start_offset == 18, "local retention goes on")
        async with world.running() as (_, connection):
            assert await read_offsets(connection, 0, 19) == list(range(19))

    run(scenario)


def test_copying_can_be_stopped_and_what_is_up_there_is_read(tier: MemoryTier) -> None:
    """KIP-950: `remote.log.copy.disable`."""
    world = TieredWorld(tier)

    async def scenario() -> None:
        async with world.tiered(3, **ONE_SEGMENT) as (node, connection):
            await loop_until(lambda: log_of(node).local_log_start_offset == 9, "local retention")
            assert await alter(connection, remote_log_copy_disable="true") is ErrorCode.INVALID_CONFIG
            changed = await alter(connection, remote_log_copy_disable="true", local_retention_bytes="-2")
            assert changed is ErrorCode.NONE
            for _ in range(3 * PER_SEGMENT):
                await write(world, connection)
            assert await read_offsets(connection, 0, 19) == list(range(19))
            assert tier.logs() == [0, 3, 6]

    run(scenario)


def test_switching_the_tier_off_asks_for_deletion_and_deletes(tier: MemoryTier) -> None:
    """KIP-950: `remote.log.delete.on.disable`."""
    world = TieredWorld(tier)

    async def scenario() -> None:
        async with world.tiered(3, **ONE_SEGMENT) as (node, connection):
            log = log_of(node)
            await loop_until(lambda: log.local_log_start_offset == 9, "local retention")
            assert await alter(connection, remote_storage_enable="false") is ErrorCode.INVALID_CONFIG
            changed = await alter(connection, remote_storage_enable="false", remote_log_delete_on_disable="true")
            assert changed is ErrorCode.NONE
            await loop_until(lambda: not tier.objects, "an empty tier")
            await loop_until(lambda: log.log_start_offset == 9, "the log starts on the disk")
            assert await offset_for(connection, -2) == 9

    run(scenario)


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ({"cleanup_policy": "compact"}, ErrorCode.INVALID_CONFIG),
        ({"retention_ms": "10", "local_retention_ms": "11"}, ErrorCode.INVALID_CONFIG),
        ({"retention_bytes": "10", "local_retention_bytes": "-1"}, ErrorCode.INVALID_CONFIG),
        ({"retention_ms": "10", "local_retention_ms": "10"}, ErrorCode.NONE),
    ],
)
def test_configs_that_cannot_be_together_are_refused(
    tier: MemoryTier, configs: dict[str, str], expected: ErrorCode
) -> None:
    world = TieredWorld(tier)

    async def scenario() -> None:
        async with world.running() as (_, connection):
            assert await create_topic(connection, TOPIC, 1, remote_storage_enable="true", **configs) is expected

    run(scenario)


def test_a_node_without_its_tier_does_not_start(tier: MemoryTier) -> None:
    """Else its logs would start on its disk, and what the tier has would be deleted."""
    world = TieredWorld(tier)

    async def scenario() -> None:
        async with world.tiered(1):
            pass
        node = world.node(remote_log_storage_system_enable="false")
        with pytest.raises(ConfigError, match="You have to delete all topics"):
            await node.start()

    run(scenario)


def test_topics_have_no_tier_where_the_node_has_none() -> None:
    async def scenario() -> None:
        async with World().running() as (_, connection):
            assert await create_topic(connection, TOPIC, remote_storage_enable="true") is ErrorCode.INVALID_CONFIG

    run(scenario)


def test_a_tier_without_a_url_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"remote.log.storage.url must say where the tier is"):
        load({"remote.log.storage.system.enable": "true"})
