"""Transactions in a partition of three replicas: followers know of them what the leader knows, and may lead next."""

from __future__ import annotations

from typing import Any

from kio.schema.types import ProducerId, TopicName
from kio.schema.write_txn_markers.v2.request import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kio.static.primitive import i8, i16, i32
from produced_batches import produced
from replicating_nodes import TOPIC, World, create, run
from waiting import loop_until

from penstock.broker.replicas.partition import ALL
from penstock.protocol.errors import ErrorCode
from penstock.protocol.records import Record, write_batch
from penstock.storage.log.rules.transaction_verification import UNVERIFIED

NOW = 1_700_000_000_000
PRODUCER = 7


def append(world: World, node_id: int, sequence: int, *, epoch: int = 0) -> None:
    batch = write_batch(
        [Record(0, NOW, b"k", b"v")],
        producer_id=PRODUCER,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=True,
    )
    partition = world.hosted(node_id)
    assert partition is not None
    partition.append(produced(batch), NOW, ALL, UNVERIFIED)
    world.nodes[node_id].parts.partitions.complete_fetches(partition)


async def end(world: World, sender_id: int, leader_id: int, *, epoch: int, is_commit: bool, version: int) -> ErrorCode:
    """As the coordinator on one node asks the leader."""
    marker = WritableTxnMarker(
        producer_id=ProducerId(PRODUCER),
        producer_epoch=i16(epoch),
        transaction_result=is_commit,
        topics=(WritableTxnMarkerTopic(name=TopicName(TOPIC), partition_indexes=(i32(0),)),),
        coordinator_epoch=i32(0),
        transaction_version=i8(version),
    )
    channel = world.nodes[sender_id].parts.peer_channels[0]
    response: Any = await channel.request(leader_id, WriteTxnMarkersRequest(markers=(marker,)))
    return ErrorCode(int(response.markers[0].topics[0].partitions[0].error_code))


def seen(world: World, node_id: int) -> tuple[int, list[tuple[int, ...]], list[tuple[int, int, int | None]]]:
    """Last stable offset, aborted transactions, and of each producer id, epoch and open transaction."""
    partition = world.hosted(node_id)
    assert partition is not None
    log = partition.log
    return (
        log.last_stable_offset(partition.state.high_watermark),
        [tuple(one) for one in log.aborted_transactions(0, log.log_end_offset)],
        [(one.producer_id, one.epoch, one.transaction_first_offset) for one in log.producers.active(NOW)],
    )


def test_followers_know_of_transactions_what_the_leader_knows() -> None:
    async def scenario(world: World) -> None:
        async with world.asking(1) as connection:
            await create(connection, 2, 3, 1)
        await world.wait_in_sync(1, 2, 3)
        append(world, 2, 0)
        assert await end(world, 1, 2, epoch=0, is_commit=False, version=1) is ErrorCode.NONE
        append(world, 2, 1)
        assert await end(world, 3, 2, epoch=1, is_commit=True, version=2) is ErrorCode.NONE
        append(world, 2, 0, epoch=1)
        await world.wait_equal(1, 2, 3)
        assert seen(world, 1) == seen(world, 2) == seen(world, 3)
        assert seen(world, 2) == (4, [(PRODUCER, 0, 1, 2)], [(PRODUCER, 1, 4)])

    run(scenario)


def test_next_leader_ends_what_was_begun_under_the_one_before_it() -> None:
    async def scenario(world: World) -> None:
        async with world.asking(1) as connection:
            await create(connection, 2, 3, 1)
        await world.wait_in_sync(1, 2, 3)
        append(world, 2, 0)
        await world.wait_equal(1, 2, 3)
        assert await end(world, 1, 3, epoch=0, is_commit=True, version=1) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        await world.stop(2)
        following = world.hosted(3)
        assert following is not None
        await loop_until(lambda: following.state.is_leader, "another leader")
        assert await end(world, 1, 3, epoch=0, is_commit=False, version=1) is ErrorCode.NONE
        await world.start(2)
        await world.wait_in_sync(1, 2, 3)
        await world.wait_equal(1, 2, 3)
        assert seen(world, 1) == seen(world, 2) == seen(world, 3) == (2, [(PRODUCER, 0, 1, 2)], [(PRODUCER, 0, None)])

    run(scenario)
