"""Plans that put partitions evenly on brokers."""

from collections import Counter
from random import Random

import pytest
from drained_brokers import drain
from hypothesis import given, settings
from hypothesis import strategies as st
from metadata_cluster import Cluster
from replicated_topics import fence, make_topic

from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import NodeId
from penstock.quorum.decisions.placement import place
from penstock.quorum.decisions.reassignments import alter_reassignments
from penstock.quorum.metadata.image import MetadataImage
from penstock.quorum.planning.moves import (
    THROTTLE_BYTES_PER_S_MIN,
    Move,
    batches,
    cancel_request,
    move_request,
    moved_bytes,
    suggest_throttle,
)
from penstock.quorum.planning.reassignment import plan_reassignment


def cluster_of(racks: list[int]) -> Cluster:
    """Return brokers 1, 2, …, so many in each rack."""
    cluster, broker_id = Cluster(), 0
    for number, size in enumerate(racks):
        for _ in range(size):
            broker_id += 1
            cluster.add_brokers(broker_id, rack=f"r{number}")
    return cluster


def after(image: MetadataImage, moves: tuple[Move, ...]) -> dict[tuple[str, int], tuple[NodeId, ...]]:
    found = {
        (topic.name, index): one.replicas
        for topic in image.topics.by_id.values()
        for index, one in enumerate(topic.partitions)
    }
    return found | {move.place: move.after for move in moves}


def counts(placed: dict[tuple[str, int], tuple[NodeId, ...]], brokers: list[int]) -> list[int]:
    held = Counter(replica for replicas in placed.values() for replica in replicas)
    return [held[NodeId(broker_id)] for broker_id in brokers]


def test_a_new_broker_gets_its_share_and_no_more_is_copied() -> None:
    cluster = cluster_of([3])
    make_topic(cluster, "t", *[((i % 3) + 1, (i + 1) % 3 + 1) for i in range(12)])
    cluster.add_brokers(4, rack="r0")
    moves = plan_reassignment(cluster.image)
    assert counts(after(cluster.image, moves), [1, 2, 3, 4]) == [6, 6, 6, 6]
    assert sum(len(move.adding) for move in moves) == 6
    leaders = Counter(replicas[0] for replicas in after(cluster.image, moves).values())
    assert sorted(leaders.values()) == [3, 3, 3, 3]


def test_what_is_even_stays() -> None:
    cluster = cluster_of([3])
    make_topic(cluster, "t", (1, 2), (2, 3), (3, 1))
    assert plan_reassignment(cluster.image) == ()


def test_only_the_topics_and_brokers_that_are_named_take_part() -> None:
    cluster = cluster_of([4])
    make_topic(cluster, "t", (1, 2), (1, 2))
    make_topic(cluster, "u", (1, 2), (1, 2))
    moves = plan_reassignment(cluster.image, topics=["t"], brokers=[NodeId(3), NodeId(4)])
    assert {move.topic for move in moves} == {"t"}
    assert all(set(move.after) == {3, 4} for move in moves)
    assert Counter(move.after[0] for move in moves) == {3: 1, 4: 1}


def test_fenced_and_drained_brokers_get_nothing_unless_they_are_named() -> None:
    cluster = cluster_of([5])
    make_topic(cluster, "t", *[(1, 2)] * 6)
    drain(cluster, 4)
    fence(cluster, 5)
    moves = plan_reassignment(cluster.image)
    assert counts(after(cluster.image, moves), [1, 2, 3, 4, 5]) == [4, 4, 4, 0, 0]


def test_replicas_come_to_lie_in_as_many_racks_as_there_are() -> None:
    cluster = cluster_of([2, 2])
    make_topic(cluster, "t", (1, 2), (3, 4))
    moves = plan_reassignment(cluster.image)
    for replicas in after(cluster.image, moves).values():
        assert {cluster.image.brokers[replica].rack for replica in replicas} == {"r0", "r1"}


@pytest.mark.parametrize(
    ("topics", "brokers", "code"),
    [
        (["none"], None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (["t"], [1, 77], ErrorCode.BROKER_ID_NOT_REGISTERED),
        (["t"], [1, 2], ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_a_plan_that_cannot_be_is_refused(topics: list[str], brokers: list[int] | None, code: ErrorCode) -> None:
    cluster = cluster_of([3])
    make_topic(cluster, "t", (1, 2, 3))
    with pytest.raises(KafkaError) as caught:
        plan_reassignment(
            cluster.image, topics=topics, brokers=None if brokers is None else [NodeId(one) for one in brokers]
        )
    assert caught.value.code is code


@settings(max_examples=80, deadline=None)
@given(
    racks=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    new_racks=st.lists(st.integers(0, 2), min_size=1, max_size=4),
    replication_factor=st.integers(1, 4),
    partition_count=st.integers(1, 30),
    seed=st.integers(0, 2**32),
)
def test_every_plan_is_spread_over_racks_even_in_one_rack_and_carried_out_as_planned(
    racks: list[int], new_racks: list[int], replication_factor: int, partition_count: int, seed: int
) -> None:
    cluster = cluster_of(racks)
    replication_factor = min(replication_factor, sum(racks))
    placed = place(
        cluster.image, partition_count=partition_count, replication_factor=replication_factor, random=Random(seed)
    )
    make_topic(cluster, "t", *placed)
    for number, size in enumerate(new_racks):
        for offset in range(size):
            cluster.add_brokers(100 + 10 * number + offset, rack=f"r{number}")
    moves = plan_reassignment(cluster.image)
    planned = after(cluster.image, moves)
    sizes = Counter(broker.rack for broker in cluster.image.brokers.values())
    for replicas in planned.values():
        assert len(set(replicas)) == len(replicas) == replication_factor
        held = Counter(cluster.image.brokers[replica].rack for replica in replicas)
        for rack, size in sizes.items():
            assert held[rack] == size or max(held.values()) - held[rack] <= 1
    if len(sizes) == 1:
        held_counts = counts(planned, list(cluster.image.brokers))
        assert max(held_counts) - min(held_counts) <= 1
    cluster.submit(alter_reassignments, move_request(moves))
    topic = cluster.image.topics.by_name["t"]
    for index, partition in enumerate(topic.partitions):
        remaining = tuple(one for one in partition.replicas if one not in partition.removing_replicas)
        assert remaining == planned["t", index]
    cluster.submit(alter_reassignments, cancel_request(move.place for move in moves if move.adding))
    assert not any(one.adding_replicas or one.removing_replicas for one in cluster.image.topics.by_name["t"].partitions)


def move(partition: int, before: tuple[int, ...], after: tuple[int, ...]) -> Move:
    as_ids = [tuple(map(NodeId, replicas)) for replicas in (before, after)]
    return Move(topic="t", partition=partition, leader=NodeId(before[0]), before=as_ids[0], after=as_ids[1])


def test_a_throttle_lets_the_busiest_broker_be_done_in_time() -> None:
    moves = [move(0, (1, 2), (1, 3)), move(1, (1, 2), (1, 4)), move(2, (2, 1), (1, 2))]
    sizes = {("t", 0): 600_000_000, ("t", 1): 400_000_000, ("t", 2): 5}
    assert moved_bytes(moves, sizes) == 1_000_000_000
    assert suggest_throttle(moves, sizes, seconds=100) == (10_000_000, 1, 100)
    assert suggest_throttle(moves, sizes, seconds=100, written_bytes_per_s=7) == (10_000_007, 1, 100)


def test_a_throttle_has_a_floor_and_an_order_needs_none() -> None:
    found = suggest_throttle([move(0, (1, 2), (1, 3))], {("t", 0): 10}, seconds=3600)
    assert found is not None
    assert (found.bytes_per_s, found.seconds) == (THROTTLE_BYTES_PER_S_MIN, 1)
    assert suggest_throttle([move(0, (1, 2), (2, 1))], {("t", 0): 10}, seconds=3600) is None


def test_batches_have_a_bound_and_lose_nothing() -> None:
    moves = [move(index, (1, 2), (1, 3)) for index in range(7)]
    parts = list(batches(moves, 3))
    assert [len(part) for part in parts] == [3, 3, 1]
    assert [one for part in parts for one in part] == moves
