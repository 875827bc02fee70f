"""Copying closed segments to the tier, and what interrupts it: damage, failures, deletions, other leaders (KIP-405)."""

from __future__ import annotations

import asyncio

import pytest
from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64
from memory_node import MINUTE, run
from memory_tier import MemoryTier
from tiered_node import ONE_SEGMENT, TOPIC, TieredWorld, log_of, read_offsets
from waiting import loop_until

from penstock.broker.tiers import segment_copier
from penstock.broker.tiers.rules.remote_segment import SegmentState, SegmentUpdate
from penstock.protocol.ids import NodeId
from penstock.storage.log.rules.file_names import OFFSET_INDEX, TIME_INDEX
from penstock.storage.tiers.rules.segment_objects import unpack_parts


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
