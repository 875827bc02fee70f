"""Replicas whose log is not what was written: others lead, and the damaged one is made whole from them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from kio.schema.fetch.v18.response import PartitionData
from memory_node import end_offset, fetch_from
from replicating_nodes import TOPIC, World, create, leads, produce_some, run
from waiting import loop_until

from penstock.broker.node import assignments_manager, server
from penstock.broker.replicas.partition import Partition
from penstock.broker.replicas.rules.follower_progress import SUSPICIOUS_COUNT
from penstock.protocol.batches import HEADER_SIZE, is_crc_valid, iterate_headers
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.quorum.metadata.image import PartitionRegistration
from penstock.storage.directories.rules.checkpoints import RECOVERY_POINTS
from penstock.storage.scrubbing.rules.scrub_job import DamagedPart

FOLDER = f"/data/{TOPIC}-0"
SEGMENT = f"{FOLDER}/{0:020d}.log"
BATCHES = 10


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignments_manager, "LOST_AGAIN_S", 0.05)


def rot(world: World, node_id: int, batch: int) -> None:
    """One bit of a record of the batch changes on the disk of a node."""
    files = world.disks[node_id]
    size = len(files.read(SEGMENT)) // BATCHES
    files.flip_bit(SEGMENT, size * batch + HEADER_SIZE + 3, 4)


def registration(world: World) -> PartitionRegistration:
    found = next(iter(world.nodes.values())).metadata.image.topics.partition(TOPIC, 0)
    assert found is not None
    return found


def hosted(world: World, node_id: int) -> Partition:
    found = world.hosted(node_id)
    assert found is not None
    return found


async def stop_damaged(world: World, node_id: int) -> None:
    """Stop a node that has ten synced batches; it is started again after an unclean stop, with the fourth damaged."""
    hosted(world, node_id).log.flush()
    await world.stop(node_id)
    assert world.disks[node_id].exists(f"/data/{RECOVERY_POINTS}")
    world.disks[node_id].remove("/data/.kafka_cleanshutdown")
    rot(world, node_id, 3)


async def lead_unreadable(world: World) -> None:
    """Node 2 leads, and cannot be read when node 3 has to fetch everything anew."""
    async with world.asking(2) as leader:
        await create(leader, 2, 1, 3)
        await produce_some(leader, BATCHES)
    await world.wait_equal(1, 2, 3)
    await world.stop(3)
    await world.wait_in_sync(1, 2)
    world.disks[3].remove_tree(FOLDER)
    world.disks[2].fail("read", under=SEGMENT, count=None)
    await world.start(3)


def test_leader_with_bit_rot_is_found_by_a_follower_hands_over_and_is_repaired() -> None:
    async def scenario(world: World) -> None:
        async with world.asking(2) as leader:
            await create(leader, 2, 1, 3)
            await produce_some(leader, BATCHES)
        await world.wait_equal(1, 2, 3)
        await world.stop(3)
        await world.wait_in_sync(1, 2)
        whole = world.stored(1)
        rot(world, 2, 3)
        world.disks[3].remove_tree(FOLDER)
        await world.start(3)
        await loop_until(lambda: leads(world, 1), "leader that is whole")
        await world.wait_in_sync(1, 2, 3)
        await world.wait_equal(1, 2, 3)
        assert world.stored(2) == whole

    run(scenario)


def test_bit_rot_that_no_replica_can_replace_changes_nothing() -> None:
    async def scenario(world: World) -> None:
        async with world.asking(2) as leader:
            await create(leader, 2, 3)
            await produce_some(leader, BATCHES)
            await world.stop(3)
            await world.wait_in_sync(2)
            rot(world, 2, 3)
            rotten = world.stored(2)
            world.disks[3].remove_tree(FOLDER)
            await world.start(3)
            await loop_until(lambda: hosted(world, 2).damage is not None, "damage found")
            # It leads on: what it can read is served, and what is produced taken in.
            await produce_some(leader, 1)
            assert await end_offset(leader, TOPIC) == BATCHES + 1
        assert world.stored(2).startswith(rotten)
        assert (registration(world).leader, registration(world).isr) == (2, (2,))
        # What precedes the damage.
        await loop_until(lambda: hosted(world, 3).log.log_end_offset == 3, "intact records")

    run(scenario)


def test_read_error_of_a_leader_hands_over_and_is_repaired() -> None:
    async def scenario(world: World) -> None:
        await lead_unreadable(world)
        await loop_until(lambda: leads(world, 1), "leader that can read")
        await world.wait_in_sync(1, 3)
        world.disks[2].heal()
        await world.wait_in_sync(1, 2, 3)
        await world.wait_equal(1, 2, 3)

    run(scenario)


def test_a_replica_that_cannot_be_read_while_it_is_repaired_is_fetched_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    # Here alone: elsewhere a disk is to be mended before its replica is given up.
    monkeypatch.setattr(server, "ROOM_CHECK_S", 0.05)

    async def scenario(world: World) -> None:
        await lead_unreadable(world)
        # Nothing changes in the metadata any more that the repair could wait for.
        await world.wait_in_sync(1, 2, 3)
        assert any(name.endswith("-stray") for name in world.disks[2].list_directory("/data"))
        world.disks[2].heal()
        await world.wait_equal(1, 2, 3)

    run(scenario)


def test_damage_found_at_start_is_repaired_from_the_leader() -> None:
    async def scenario(world: World) -> None:
        async with world.asking(2) as leader:
            await create(leader, 2, 3)
            await produce_some(leader, BATCHES)
            await world.wait_equal(2, 3)
            await stop_damaged(world, 3)
            await world.wait_in_sync(2)
            await world.start(3)
            await world.wait_in_sync(2, 3)
            await produce_some(leader, 1)
        await world.wait_equal(2, 3)

    run(scenario)


def test_log_that_cannot_be_opened_is_set_aside_and_fetched_anew() -> None:
    async def scenario(world: World) -> None:
        async with world.asking(2) as leader:
            await create(leader, 2, 3)
            await produce_some(leader, BATCHES)
            await world.wait_equal(2, 3)
            await world.stop(3)
            await world.wait_in_sync(2)
            world.disks[3].write(f"{FOLDER}/partition.metadata", b"no topic's")
            await world.start(3)
            await world.wait_in_sync(2, 3)
        await world.wait_equal(2, 3)
        assert any(name.endswith("-stray") for name in world.disks[3].list_directory("/data"))

    run(scenario)


def test_damaged_replica_that_may_be_the_last_with_the_records_stays_as_it_is() -> None:
    """Until the other one that was in sync is back."""

    async def scenario(world: World) -> None:
        async with world.asking(2) as leader:
            await create(leader, 2, 3)
            await produce_some(leader, BATCHES)
            await world.wait_equal(2, 3)
            # Both are in sync, and 2 is the first to come back.
            hosted(world, 2).log.flush()
        await world.stop(3)
        await stop_damaged(world, 2)
        rotten = world.stored(2)
        await world.start(2)
        await loop_until(lambda: registration(world).leader in (-1, 2), "no other leader")
        assert world.hosted(2) is None
        assert world.stored(2) == rotten

    run(scenario)


async def make_segments(world: World, *replicas: int) -> None:
    """Ten batches, each in a segment of its own, the last of them active; the first replica leads."""
    async with world.asking(replicas[0]) as leader:
        await create(leader, *replicas)
        for node_id in replicas:
            await loop_until(partial(is_hosted, world, node_id), "replica")
            log = hosted(world, node_id).log
            log.config = replace(log.config, segment_bytes=100)
        await produce_some(leader, BATCHES)
    await world.wait_equal(*replicas)
    assert hosted(world, replicas[0]).log.segment_count == BATCHES


def is_hosted(world: World, node_id: int) -> bool:
    return world.hosted(node_id) is not None


def flip(world: World, node_id: int, offset: int, position: int) -> None:
    world.disks[node_id].flip_bit(f"{FOLDER}/{offset:020d}.log", position, 1)


# In a record, and in the leader epoch, which no CRC covers.
@pytest.mark.parametrize("position", [HEADER_SIZE + 3, 15])
@pytest.mark.parametrize("damaged", [2, 3], ids=["leader", "follower"])
def test_damage_that_only_scrubbing_reads_is_repaired(damaged: int, position: int) -> None:
    async def scenario(world: World) -> None:
        await make_segments(world, 2, 3)
        whole = contents(world, 2)
        flip(world, damaged, 3, position)
        assert contents(world, damaged) != whole
        scrubber = world.nodes[damaged].parts.scrubber
        await scrubber.scrub_all()
        assert scrubber.figures.findings == {DamagedPart.BATCHES: 1}
        await loop_until(lambda: contents(world, damaged) == whole, "repaired log")
        await world.wait_in_sync(2, 3)
        await world.wait_equal(2, 3)
        assert hosted(world, damaged).damage is None

    run(scenario)


def test_damage_that_only_consumers_refuse_is_found_and_repaired() -> None:
    async def scenario(world: World) -> None:
        await make_segments(world, 2, 3)
        whole = contents(world, 2)
        flip(world, 2, 3, HEADER_SIZE + 3)
        async with world.asking(2) as leader:
            for _ in range(SUSPICIOUS_COUNT - 1):
                assert not is_intact(await fetch_from(leader, TOPIC, 3))
            answer = await fetch_from(leader, TOPIC, 3)
            assert (ErrorCode(int(answer.error_code)), answer.records) == (ErrorCode.KAFKA_STORAGE_ERROR, b"")
        await loop_until(lambda: leads(world, 3), "leader that is whole")
        async with world.asking(3) as leader:
            for _ in range(2 * SUSPICIOUS_COUNT):
                assert is_intact(await fetch_from(leader, TOPIC, 3))
        await loop_until(lambda: contents(world, 2) == whole, "repaired log")
        await world.wait_in_sync(2, 3)
        assert hosted(world, 2).damage is hosted(world, 3).damage is None

    run(scenario)


def is_intact(answer: PartitionData) -> bool:
    found = memoryview(answer.records or b"")
    assert found
    return all(is_crc_valid(found, position, header) for position, header in iterate_headers(found))


def contents(world: World, node_id: int) -> bytes:
    """Of all segments, leader epochs included."""
    files = world.disks[node_id]
    return b"".join(
        bytes(files.look(f"{FOLDER}/{name}") or b"") for name in files.look_into(FOLDER) if name.endswith(".log")
    )


def test_a_log_that_damage_made_uncleanable_is_repaired_and_compacted() -> None:
    async def scenario(world: World) -> None:
        await make_segments(world, 2, 3)
        partition = hosted(world, 3)
        partition.log.config = replace(partition.log.config, cleanup_policy=frozenset({"compact"}))
        flip(world, 3, 3, HEADER_SIZE + 3)
        cleaner = world.nodes[3].parts.cleaner
        await cleaner.clean_dirtiest()
        assert list(cleaner.uncleanable) == [f"{TOPIC}-0"]
        await loop_until(lambda: world.hosted(3) not in (None, partition), "reopened log")
        await world.wait_in_sync(2, 3)
        assert not cleaner.uncleanable
        await world.wait_equal(2, 3)

    run(scenario)


def test_what_is_damaged_is_not_read_while_nothing_can_replace_it() -> None:
    async def scenario(world: World) -> None:
        await make_segments(world, 2)
        flip(world, 2, 3, HEADER_SIZE + 3)
        await world.nodes[2].parts.scrubber.scrub_all()
        partition = hosted(world, 2)
        assert partition.damage is not None
        assert partition.damage.offset == 3
        for offset in (0, 1, 2, 4, 5, 9):
            data = partition.read(offset, 1000, BATCHES, True)
            assert b"".join(piece.read(0, piece.size) for piece in data.slices)
        with pytest.raises(KafkaError) as caught:
            partition.read(3, 1000, BATCHES, True)
        # As in Apache Kafka; KAFKA_STORAGE_ERROR would make clients look for another leader for ever.
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
        async with world.asking(2) as leader:
            await produce_some(leader, 1)

    run(scenario)
