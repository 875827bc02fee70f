"""A whole node on a disk in memory that is full, or cannot be read, written or synced; and a clock that jumps."""

from __future__ import annotations

import asyncio
from errno import EIO, ENOSPC
from typing import Any

import pytest
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.fetch.v18.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.fetch.v18.response import FetchResponse
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32, i64
from memory_node import MINUTE, World, create_topic, describe, end_offset, produce, run
from other_tasks import end_other_tasks
from waiting import ask_until, loop_until

from penstock.broker.node import server
from penstock.client.connection import Connection, connect
from penstock.protocol.errors import ErrorCode

OK, STORAGE_ERROR = ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR
HOUR_MS = 3_600_000


async def fetch(connection: Connection, topic: str, *partitions: int) -> dict[int, tuple[ErrorCode, int]]:
    """Error and number of bytes by partition."""
    topic_id: Any = (await describe(connection, topic)).topics[0].topic_id
    wanted = tuple(
        FetchPartition(partition=i32(index), fetch_offset=i64(0), partition_max_bytes=i32(1 << 20))
        for index in partitions
    )
    response = await connection.call(
        FetchRequest(
            max_wait=MINUTE,
            min_bytes=i32(0),
            isolation_level=i8(0),
            topics=(FetchTopic(topic_id=topic_id, partitions=wanted),),
            forgotten_topics_data=(),
            session_epoch=i32(-1),
        )
    )
    assert isinstance(response, FetchResponse)
    return {
        int(one.partition_index): (ErrorCode(int(one.error_code)), len(one.records or b""))
        for one in response.responses[0].partitions
    }


async def produce_until_stored(connection: Connection, topic: str) -> None:
    await ask_until(lambda: produce(connection, topic, b"x"), lambda error: error == OK, "room for the record")


@pytest.fixture(autouse=True)
def _look_for_room_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "ROOM_CHECK_S", 0.02)


@pytest.mark.parametrize("flush_messages", ["1", "1000"])
def test_full_disk_refuses_appends_and_nothing_else_until_there_is_room(flush_messages: str) -> None:
    async def scenario() -> None:
        world = World(log_flush_interval_messages=flush_messages, log_dir_reserve_bytes="0")
        async with world.running() as (node, connection):
            assert await create_topic(connection, "t") == OK
            assert await produce(connection, "t", b"first") == OK
            world.files.fail("write", error=ENOSPC, count=None)
            world.files.fail("create", error=ENOSPC, count=None)
            for _ in range(3):
                assert await produce(connection, "t", b"refused") == STORAGE_ERROR
            assert await end_offset(connection, "t") == 1
            assert (await fetch(connection, "t", 0))[0][0] == OK
            world.files.heal()
            assert await produce(connection, "t", b"second") == OK
            assert await end_offset(connection, "t") == 2
            assert not node.failure.done()
        async with world.running() as (_, connection):
            assert await end_offset(connection, "t") == 2

    run(scenario)


@pytest.mark.thorough
def test_topic_deleted_to_make_room_costs_nothing_else() -> None:
    """What of it was not synced for want of room is not looked for in its folder, which goes."""

    async def scenario() -> None:
        world = World(log_flush_interval_messages="1", log_segment_delete_delay_ms="0")
        async with world.running() as (node, connection):
            assert await create_topic(connection, "t") == OK
            world.files.fail("create", under="/data/t-0", error=ENOSPC, count=None)
            async with await connect("127.0.0.1", node.bound_ports["PLAINTEXT"]) as other:
                refused = asyncio.create_task(produce(other, "t", b"refused"))
                partition = node.parts.partitions.get_online("t", 0)
                await loop_until(lambda: partition.is_flush_due, "the sync of what was appended")
                names = (DeleteTopicState(name=TopicName("t"), topic_id=None),)
                await connection.call(DeleteTopicsRequest(topics=names, timeout=MINUTE))
                assert await refused == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            await loop_until(
                lambda: not any(name.startswith("t-0") for name in world.files.list_directory("/data")),
                "the deletion of the folder",
            )
            for _ in range(3):
                # As often as a look for room.
                node.parts.partitions.retry_offline_partitions()
                await describe(connection)
            assert await create_topic(connection, "u") == OK
            assert await produce(connection, "u", b"first") == OK
            assert not node.failure.done()

    run(scenario)


def test_partition_made_on_a_full_disk_is_served_once_there_is_room() -> None:
    async def scenario() -> None:
        world = World()
        async with world.running() as (_, connection):
            world.files.fail("make_directory", error=ENOSPC, count=None)
            assert await create_topic(connection, "t") == OK
            assert await produce(connection, "t", b"refused") == STORAGE_ERROR
            world.files.heal()
            await produce_until_stored(connection, "t")
            assert await end_offset(connection, "t") == 1

    run(scenario)


def test_log_that_a_full_disk_kept_from_being_made_whole_is_opened_once_there_is_room() -> None:
    """At the start: the folder is there, what opening it would write has no room."""

    async def scenario() -> None:
        world = World()
        async with world.running() as (_, connection):
            assert await create_topic(connection, "t") == OK
            assert await produce(connection, "t", b"first") == OK
        world.files.remove("/data/t-0/00000000000000000000.index")
        world.files.fail("create", under="/data/t-0", error=ENOSPC, count=None)
        async with world.running() as (_, connection):
            assert await produce(connection, "t", b"refused") == STORAGE_ERROR
            world.files.heal()
            await produce_until_stored(connection, "t")
            assert await end_offset(connection, "t") == 2

    run(scenario)


def test_sync_refused_for_want_of_room_is_made_up_for() -> None:
    """The sync has to write the new leader epoch first: the record waits in the log, and is acknowledged with room."""

    async def scenario() -> None:
        world = World(log_flush_interval_messages="1")
        async with world.running() as (node, connection):
            assert await create_topic(connection, "t") == OK
            world.files.fail("write", under="/data/t-0/leader-epoch", error=ENOSPC, count=None)
            waiting = asyncio.create_task(produce(connection, "t", b"waits"))
            async with await connect("127.0.0.1", node.bound_ports["PLAINTEXT"]) as other:
                refused = world.files.operation_counts["sync"]

                async def has_no_end_offset() -> bool:
                    assert await end_offset(other, "t") == 0
                    return world.files.operation_counts["sync"] > refused

                await ask_until(has_no_end_offset, bool, "another try of the sync")
                world.files.heal()
                assert await waiting == OK
                assert await end_offset(other, "t") == 1

    run(scenario)


def test_partition_that_cannot_be_read_says_so_and_the_others_arrive() -> None:
    async def scenario() -> None:
        world = World()
        async with world.running() as (node, connection):
            assert await create_topic(connection, "t", 2) == OK
            for index in range(2):
                assert await produce(connection, "t", b"x", index) == OK
            world.files.fail("read", under="/data/t-0", error=EIO, count=None)
            # An answer that has begun can only be cut off.
            with pytest.raises(ConnectionError):
                await fetch(connection, "t", 0, 1)
            async with await connect("127.0.0.1", node.bound_ports["PLAINTEXT"]) as again:
                found = await fetch(again, "t", 0, 1)
                assert found[0] == (STORAGE_ERROR, 0)
                assert found[1][0] == OK
                assert found[1][1] > 0
                assert await produce(again, "t", b"y") == OK
                world.files.heal()
                found = await fetch(again, "t", 0, 1)
                assert found[0][0] == OK
                assert found[0][1] > found[1][1]
            assert not node.failure.done()

    run(scenario)


def test_failed_sync_acknowledges_nothing_and_ends_its_directory_whatever_it_says() -> None:
    async def scenario() -> None:
        world = World(log_flush_interval_messages="1")
        node = world.node()
        await node.start()
        async with await connect("127.0.0.1", node.bound_ports["PLAINTEXT"]) as connection:
            assert await create_topic(connection, "t") == OK
            assert await produce(connection, "t", b"kept") == OK
            world.files.fail("sync", under="/data/t-0", error=ENOSPC)
            assert await produce(connection, "t", b"not acknowledged") == STORAGE_ERROR
            assert await produce(connection, "t", b"not acknowledged") == STORAGE_ERROR
        assert (await node.failure).startswith("No log directory is left; /data: ")
        await node.stop()
        assert world.files.operation_counts["sync"] > 0

    run(scenario)


@pytest.mark.parametrize("file", ["00000000000000000000.log", "partition.metadata"])
def test_a_log_of_which_one_read_fails_at_the_start_is_served_without_another_restart(file: str) -> None:
    async def scenario() -> None:
        world = World()
        node = world.node()
        await node.start()
        async with await connect("127.0.0.1", node.bound_ports["PLAINTEXT"]) as connection:
            assert await create_topic(connection, "t") == OK
            assert await produce(connection, "t", b"kept") == OK
        world.files.kill()
        await end_other_tasks()
        node.parts.listeners.close()
        world.files.fail("read", under=f"/data/t-0/{file}")
        async with world.running() as (_, connection):
            await produce_until_stored(connection, "t")
            assert await end_offset(connection, "t") == 2

    run(scenario)


def test_node_stops_with_a_sentence_when_its_metadata_journal_cannot_be_synced() -> None:
    async def scenario() -> None:
        world = World()
        node = world.node()
        await node.start()
        async with await connect("127.0.0.1", node.bound_ports["PLAINTEXT"]) as connection:
            world.files.fail("sync", under="/data/__cluster_metadata-0", error=EIO)
            assert await create_topic(connection, "t") != OK
        sentence = await node.failure
        assert sentence.startswith("The metadata journal in /data/__cluster_metadata-0 cannot be written: ")
        await node.stop()

    run(scenario)


@pytest.mark.parametrize("hours", [1, 87_600, -1, -87_600])
def test_retry_is_recognised_though_the_clock_jumped_around_its_append(hours: int) -> None:
    async def scenario() -> None:
        world = World()
        async with world.running() as (node, connection):
            assert await create_topic(connection, "t") == OK
            world.now_ms += hours * HOUR_MS
            for _ in range(2):
                assert await produce(connection, "t", b"once", producer_id=7) == OK
                await node.parts.housekeeping.expire_producers()
                world.now_ms -= hours * HOUR_MS
            assert await end_offset(connection, "t") == 1

    run(scenario)


@pytest.mark.parametrize("hours", [1, 87_600, -1, -87_600])
def test_clock_that_jumps_for_a_moment_deletes_nothing(hours: int) -> None:
    async def scenario() -> None:
        world = World(
            log_retention_ms=str(HOUR_MS // 2),
            log_retention_check_interval_ms="1",
            log_initial_task_delay_ms="0",
            producer_id_expiration_ms=str(HOUR_MS // 2),
            producer_id_expiration_check_interval_ms="1",
        )
        async with world.running() as (node, connection):
            assert await create_topic(connection, "t") == OK
            assert await produce(connection, "t", b"fresh", timestamp_ms=world.now_ms) == OK
            log = next(iter(node.parts.partitions.hosted)).log
            world.now_ms += hours * HOUR_MS
            await node.parts.housekeeping.apply_retention()
            assert log.log_start_offset == 0
            # Records are stamped as the clock says, offsets go on, and time is found by what was stored.
            assert await produce(connection, "t", b"during", timestamp_ms=world.now_ms) in (
                OK,
                ErrorCode.INVALID_TIMESTAMP,
            )
            world.now_ms -= hours * HOUR_MS
            await node.parts.housekeeping.apply_retention()
            assert await produce(connection, "t", b"after", timestamp_ms=world.now_ms) == OK
            assert log.log_start_offset == 0
            assert log.log_end_offset == await end_offset(connection, "t") == 3

    run(scenario)
