"""Three brokers that replicate: catching up, fail-over, cutting logs, deleting records (`replicating_nodes.py`)."""

from __future__ import annotations

import pytest
from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kio.schema.delete_records.v2.response import DeleteRecordsResponse
from kio.schema.produce.v13.response import ProduceResponse
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64
from memory_node import MINUTE, end_offset
from produce_requests import produce_request
from produced_batches import produced
from replicating_nodes import TOPIC, World, create, leads, produce_some, run
from waiting import loop_until

from penstock.broker.replication.leader_producers import ProducersQuestion, ask_leader_producers
from penstock.client.connection import Connection
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import LeaderEpoch
from penstock.protocol.records import Record, write_batch
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig


def test_what_is_acknowledged_by_all_is_on_all() -> None:
    async def scenario(world: World) -> None:
        async with world.asking(2) as leader:
            await create(leader, 2, 1, 3)
            await produce_some(leader, 20)
            assert await end_offset(leader, TOPIC) == 20
        await world.wait_equal(1, 2, 3)

    run(scenario)


def test_a_follower_that_was_away_catches_up_and_joins_again() -> None:
    async def scenario(world: World) -> None:
        async with world.asking(2) as leader:
            await create(leader, 2, 3)
            await produce_some(leader, 5)
            await world.stop(3)
            await world.wait_in_sync(2)
            await produce_some(leader, 5)
            await world.start(3)
            await world.wait_in_sync(2, 3)
            await produce_some(leader, 5)
        await world.wait_equal(2, 3)

    run(scenario)


def test_another_leads_when_the_leader_stops_and_the_old_one_follows() -> None:
    async def scenario(world: World) -> None:
        async with world.asking(2) as leader:
            await create(leader, 2, 3)
            await produce_some(leader, 5)
        await world.stop(2)
        async with world.asking(3) as leader:
            await loop_until(lambda: leads(world, 3), "new leader")
            await produce_some(leader, 5)
            await world.start(2)
            await world.wait_in_sync(2, 3)
            assert await end_offset(leader, TOPIC) == 10
        await world.wait_equal(2, 3)
        partition = world.hosted(2)
        assert partition is not None
        assert [start for _, start in partition.log.leader_epochs.entries] == [0, 5]

    run(scenario)


def test_what_only_the_old_leader_had_is_cut_off_kip_101() -> None:
    async def scenario(world: World) -> None:
        async with world.asking(2) as leader:
            await create(leader, 2, 3)
            await produce_some(leader, 5)
        await world.stop(2)
        append_behind_its_back(world.disks[2], count=3)
        async with world.asking(3) as leader:
            await loop_until(lambda: leads(world, 3), "new leader")
            await produce_some(leader, 2)
            await world.start(2)
            await world.wait_in_sync(2, 3)
            await produce_some(leader, 2)
        await world.wait_equal(2, 3)

    run(scenario)


def test_a_follower_behind_the_leaders_log_start_begins_there() -> None:
    async def scenario(world: World) -> None:
        async with world.asking(2) as leader:
            await create(leader, 2, 3)
            await produce_some(leader, 5)
            await world.stop(3)
            await produce_some(leader, 5)
            await delete_before(leader, 8)
            await world.start(3)
            await world.wait_in_sync(2, 3)
            await produce_some(leader, 1)
        await loop_until(lambda: _ends(world, 3) == (8, 11), "log that begins at 8")

    run(scenario)


@pytest.mark.thorough
@pytest.mark.parametrize("stale", [2, 3, 4], ids=["below the start", "up to the start", "over the start"])
@pytest.mark.parametrize("is_retention", [False, True], ids=["DeleteRecords", "retention"])
def test_records_that_were_never_committed_go_though_the_leaders_log_starts_behind_them(
    stale: int, is_retention: bool
) -> None:
    """The leader has nothing left to compare them with: it does not vouch for them. After a crash of all replicas,
    which may undo the deletion, they would stand at the offsets of acknowledged ones."""

    async def scenario(world: World) -> None:
        async with world.asking(2) as leader:
            await create(leader, 2, 3)
            await produce_some(leader, 5)
        await world.stop(2)
        append_behind_its_back(world.disks[2], count=stale)
        async with world.asking(3) as leader:
            await loop_until(lambda: leads(world, 3), "new leader")
            await produce_some(leader, 3)
            led = world.hosted(3)
            assert led is not None
            if is_retention:
                await loop_until(lambda: led.state.high_watermark == 8, "committed records")
                led.log.increment_log_start_offset(8)
                world.nodes[3].parts.partitions.on_retention(TOPIC, 0)
            else:
                assert await delete_before(leader, 8) == 8
            await produce_some(leader, 1)
            await world.start(2)
            await world.wait_in_sync(2, 3)
            await produce_some(leader, 1)
        await loop_until(lambda: _ends(world, 2) == (8, 10), "log that begins at 8")
        assert b"lost" not in world.stored(2)

    run(scenario)


def test_an_in_sync_follower_keeps_its_producers_when_everything_is_deleted_and_another_leads() -> None:
    """Its last batch is of an epoch of which the leader has no batch any more, but whose end it remembers."""

    async def scenario(world: World) -> None:
        async with world.asking(2) as leader:
            await create(leader, 2, 3)
            await produce_some(leader, 5)
            batch = write_batch([Record(0, 0, None, b"once")], producer_id=7, producer_epoch=0, base_sequence=0)
            led = world.hosted(2)
            assert led is not None
            request = produce_request(led.topic_id, 0, batch, timeout_ms=60_000)
            assert isinstance(await leader.call(request), ProduceResponse)
            assert await delete_before(leader, 6) == 6
        await world.wait_equal(2, 3)
        await world.stop(2)
        await loop_until(lambda: leads(world, 3), "new leader")
        await world.start(2)
        await world.wait_in_sync(2, 3)
        await loop_until(lambda: _ends(world, 2) == (6, 6), "log that begins at 6")
        followed = world.hosted(2)
        assert followed is not None
        assert set(followed.log.producers.entries) == {7}

    run(scenario)


def test_a_follower_that_begins_at_the_leaders_log_start_recognises_retries_of_what_is_deleted() -> None:
    """Its producer still waits for an answer when the follower, which never had the record, leads."""

    async def scenario(world: World) -> None:
        batch = write_batch([Record(0, 0, None, b"once")], producer_id=7, producer_epoch=0, base_sequence=0)
        async with world.asking(2) as leader:
            await create(leader, 2, 3)
            await produce_some(leader, 5)
            await world.stop(3)
            led = world.hosted(2)
            assert led is not None
            request = produce_request(led.topic_id, 0, batch, timeout_ms=60_000)
            assert isinstance(await leader.call(request), ProduceResponse)
            await produce_some(leader, 2)
            assert await delete_before(leader, 7) == 7
            await world.start(3)
            await world.wait_in_sync(2, 3)
        await world.stop(2)
        await loop_until(lambda: leads(world, 3), "new leader")
        async with world.asking(3) as leader:
            answer = await leader.call(request)
            assert isinstance(answer, ProduceResponse)
            assert answer.responses[0].partition_responses[0].base_offset == 5
            assert await end_offset(leader, TOPIC) == 8

    run(scenario)


def test_only_nodes_of_the_cluster_are_told_of_producers() -> None:
    async def scenario(world: World) -> None:
        async with world.asking(2) as stranger:
            await create(stranger, 2, 3)
            with pytest.raises(KafkaError, match="CLUSTER_AUTHORIZATION_FAILED"):
                await ask_leader_producers(stranger, ProducersQuestion(TOPIC, 0, LeaderEpoch(0), 5), timeout_ms=10_000)

    run(scenario)


def test_records_deleted_on_the_leader_are_deleted_on_followers() -> None:
    async def scenario(world: World) -> None:
        async with world.asking(2) as leader:
            await create(leader, 2, 1, 3)
            await produce_some(leader, 5)
            assert await delete_before(leader, 3) == 3
        assert {_ends(world, node_id) for node_id in (1, 2, 3)} == {(3, 5)}

    run(scenario)


def _ends(world: World, node_id: int) -> tuple[int, int]:
    partition = world.hosted(node_id)
    return (-1, -1) if partition is None else (partition.log.log_start_offset, partition.log.log_end_offset)


async def delete_before(connection: Connection, offset: int) -> int:
    """Returns the low watermark."""
    partition = DeleteRecordsPartition(partition_index=i32(0), offset=i64(offset))
    topic = DeleteRecordsTopic(name=TopicName(TOPIC), partitions=(partition,))
    response = await connection.call(DeleteRecordsRequest(topics=(topic,), timeout=MINUTE))
    assert isinstance(response, DeleteRecordsResponse)
    assert ErrorCode(int(response.topics[0].partitions[0].error_code)) is ErrorCode.NONE
    return response.topics[0].partitions[0].low_watermark


def append_behind_its_back(files: MemoryFiles, count: int) -> None:
    """What a leader took in and no follower has, as it is found when its process is gone."""
    log = Log.open(
        files,
        f"/data/{TOPIC}-0",
        topic=TOPIC,
        partition=0,
        topic_id=None,
        config=LogConfig(),
        is_clean=True,
        now_ms=0,
        is_identified=True,
    )
    for number in range(count):
        batch = write_batch([Record(0, 0, None, b"lost %d" % number)])
        log.append_as_leader(produced(batch), leader_epoch=log.leader_epochs.latest_epoch, now_ms=0)
    log.close()


async def five_records(world: World, leader: Connection) -> None:
    """On node 2, which leads, and on node 3."""
    await create(leader, 2, 3)
    await produce_some(leader, 5)
    await world.wait_equal(2, 3)


def test_rule_7_followers_hear_of_the_leaders_retention_at_once() -> None:
    async def scenario(world: World) -> None:
        async with world.asking(2) as leader:
            await five_records(world, leader)
        led = world.hosted(2)
        assert led is not None
        led.log.increment_log_start_offset(3)
        world.nodes[2].parts.partitions.on_retention(TOPIC, 0)
        await loop_until(lambda: _ends(world, 3) == (3, 5), "log that begins at 3")

    run(scenario)


def test_retention_on_a_follower_holds_up_nothing() -> None:
    async def scenario(world: World) -> None:
        async with world.asking(2) as leader:
            await five_records(world, leader)
            follower = world.hosted(3)
            assert follower is not None
            # Where its clock and its segments let it: a leader's may differ.
            follower.log.increment_log_start_offset(2)
            await produce_some(leader, 2)
            await loop_until(lambda: _ends(world, 3) == (2, 7), "log of the follower")

    run(scenario)


def test_follower_hears_what_is_deleted_though_retention_has_moved_its_own_start() -> None:
    async def scenario(world: World) -> None:
        async with world.asking(2) as leader:
            await five_records(world, leader)
            follower = world.hosted(3)
            assert follower is not None
            follower.log.increment_log_start_offset(2)
            assert await delete_before(leader, 4) == 4
        assert {_ends(world, node_id) for node_id in (2, 3)} == {(4, 5)}

    run(scenario)


def test_rule_7_the_leader_hears_of_retention_on_a_follower_at_once() -> None:
    """Else it would send consumers of what that one has deleted there, again and again (KIP-392)."""

    async def scenario(world: World) -> None:
        async with world.asking(2) as leader:
            await five_records(world, leader)
        led, followed = world.hosted(2), world.hosted(3)
        assert led is not None
        assert followed is not None
        followed.log.increment_log_start_offset(2)
        world.nodes[3].parts.partitions.on_retention(TOPIC, 0)
        (follower,) = led.state.in_sync_followers()
        await loop_until(lambda: follower.log_start_offset == 2, "follower's log start")

    run(scenario)
