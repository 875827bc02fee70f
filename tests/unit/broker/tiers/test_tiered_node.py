"""A whole node with a tier in memory that fails when it is to: what is read and kept (KIP-405)."""

from __future__ import annotations

import threading

import pytest
from kio.schema.alter_replica_log_dirs.v2.request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32
from memory_node import run
from memory_tier import MemoryTier
from open_transactions import HANGING_PRODUCER_ID, leave_open
from tiered_node import (
    ONE_SEGMENT,
    PER_SEGMENT,
    TOPIC,
    TieredWorld,
    abort,
    fetch,
    log_of,
    offset_for,
    read_offsets,
    search,
    write,
)
from waiting import loop_until

from penstock.broker.replicas.partition import Partition
from penstock.broker.tiers import remote_log_manager
from penstock.broker.tiers.rules.metadata_records import METADATA_TOPIC
from penstock.protocol.errors import ErrorCode
from penstock.protocol.messages import kio_error
from penstock.storage.log.segment import Segment


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


@pytest.mark.thorough
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
