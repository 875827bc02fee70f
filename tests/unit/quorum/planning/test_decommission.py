"""Taking all replicas off a broker."""

from collections import Counter

import pytest
from drained_brokers import drain
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.types import BrokerId
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from metadata_cluster import Cluster
from replicated_topics import fence, make_topic

from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import NodeId
from penstock.quorum.decisions.broker_removal import unregister_broker
from penstock.quorum.decisions.heartbeats import fence_expired
from penstock.quorum.decisions.reassignments import alter_reassignments
from penstock.quorum.metadata.records import PartitionChangeRecord
from penstock.quorum.planning.decommission import decommission_state, moves_to_cancel, next_moves
from penstock.quorum.planning.moves import cancel_request, move_request

LEAVING = NodeId(1)


def begin(cluster: Cluster, moving_max: int = 50) -> int:
    """Begin the next moves and return how many there are."""
    moves = next_moves(cluster.image, LEAVING, moving_max=moving_max)
    assert all(LEAVING not in move.after for move in moves)
    cluster.submit(alter_reassignments, move_request(moves))
    return len(moves)


def finish(cluster: Cluster) -> None:
    """Let every new replica be in sync, which ends the moves."""
    for topic in cluster.image.topics.by_id.values():
        for index, one in enumerate(topic.partitions):
            if one.adding_replicas or one.removing_replicas:
                remaining = tuple(replica for replica in one.replicas if replica not in one.removing_replicas)
                ended = PartitionChangeRecord(
                    topic_id=topic.topic_id,
                    partition_id=index,
                    replicas=remaining,
                    directories=tuple(one.directory_of(replica) for replica in remaining),
                    isr=remaining,
                    leader=remaining[0],
                    adding_replicas=(),
                    removing_replicas=(),
                )
                cluster.replay([ended])


@pytest.fixture
def cluster() -> Cluster:
    """Return brokers 1 to 4, of which 1 is drained, and a topic 't' of eight partitions on 1, 2 and 3."""
    cluster = Cluster()
    cluster.add_brokers(1, 2, 3, 4)
    make_topic(cluster, "t", *[((i % 3) + 1, (i + 1) % 3 + 1) for i in range(8)])
    drain(cluster, LEAVING)
    return cluster


def test_moves_begin_in_steps_until_the_broker_may_be_unregistered(cluster: Cluster) -> None:
    held = decommission_state(cluster.image, LEAVING).replica_count
    steps = []
    while not decommission_state(cluster.image, LEAVING).may_unregister:
        steps.append(begin(cluster, moving_max=2))
        assert decommission_state(cluster.image, LEAVING).moving_count == 2 or steps[-1] < 2
        # As many move already as may.
        assert begin(cluster, moving_max=2) == 0
        finish(cluster)
    assert sum(steps) == held
    assert max(steps) == 2
    spread = Counter(replica for one in cluster.image.topics.by_name["t"].partitions for replica in one.replicas)
    assert max(spread.values()) - min(spread.values()) <= 1
    cluster.submit(unregister_broker, UnregisterBrokerRequest(broker_id=BrokerId(LEAVING)))
    assert LEAVING not in cluster.image.brokers


def test_only_replicas_of_the_broker_move(cluster: Cluster) -> None:
    for move in next_moves(cluster.image, LEAVING):
        assert move.removing == (LEAVING,)
        assert len(move.adding) == 1
        assert move.after.index(move.adding[0]) == move.before.index(LEAVING)


def test_cancelled_moves_leave_the_replicas_where_they_are(cluster: Cluster) -> None:
    before = [set(one.replicas) for one in cluster.image.topics.by_name["t"].partitions]
    begun = begin(cluster)
    places = moves_to_cancel(cluster.image, LEAVING)
    assert len(places) == begun
    cluster.submit(alter_reassignments, cancel_request(places))
    assert [set(one.replicas) for one in cluster.image.topics.by_name["t"].partitions] == before
    assert moves_to_cancel(cluster.image, LEAVING) == ()


def test_the_state_tells_what_is_left(cluster: Cluster) -> None:
    sizes = {("t", index): 10 for index in range(8)}
    found = decommission_state(cluster.image, LEAVING, sizes)
    assert (found.replica_count, found.bytes_left, found.moving_count) == (5, 50, 0)
    assert decommission_state(cluster.image, LEAVING).bytes_left is None
    assert decommission_state(cluster.image, LEAVING, {("t", 0): 10}).bytes_left is None
    begin(cluster, moving_max=1)
    found = decommission_state(cluster.image, LEAVING, sizes)
    assert (found.moving, found.blockers) == ((("t", 0),), ("the broker has 5 replica(s), 1 of them moving",))


def test_a_broker_that_is_not_drained_may_not_be_unregistered() -> None:
    cluster = Cluster()
    cluster.add_brokers(1, 2)
    assert decommission_state(cluster.image, LEAVING).blockers == ("the broker is not drained",)


def test_too_few_other_brokers_are_named(cluster: Cluster) -> None:
    make_topic(cluster, "wide", (1, 2, 3, 4))
    with pytest.raises(KafkaError) as caught:
        next_moves(cluster.image, LEAVING)
    assert caught.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert caught.value.message == "Partition wide-0 has 4 replicas, but 3 broker(s) can take some: 2, 3, 4."


def test_a_partition_that_moves_for_another_reason_waits(cluster: Cluster) -> None:
    topic = cluster.image.topics.by_name["t"]
    moving = PartitionChangeRecord(
        topic_id=topic.topic_id,
        partition_id=0,
        replicas=(NodeId(1), NodeId(2), NodeId(4)),
        directories=(topic.partitions[0].directories[0],) * 3,
        adding_replicas=(NodeId(4),),
    )
    cluster.replay([moving])
    assert ("t", 0) not in [move.place for move in next_moves(cluster.image, LEAVING)]
    assert next_moves(cluster.image, LEAVING)


def test_a_replica_stays_on_a_broker_that_takes_no_new_ones(cluster: Cluster) -> None:
    fence(cluster, 2)
    for move in next_moves(cluster.image, LEAVING):
        assert 2 not in move.adding
        assert (2 in move.after) == (2 in move.before)


def test_a_partition_whose_last_records_are_on_a_stopped_broker_needs_it(cluster: Cluster) -> None:
    make_topic(cluster, "single", (1,))
    cluster.submit(fence_expired, LEAVING)
    found = decommission_state(cluster.image, LEAVING)
    assert found.stuck == (("single", 0),)
    assert "1 partition(s) without a leader need this broker: start it" in found.blockers


@settings(max_examples=60, deadline=None)
@given(
    racks=st.lists(st.integers(1, 3), min_size=2, max_size=4),
    replication_factor=st.integers(1, 3),
    partition_count=st.integers(1, 20),
    data=st.data(),
)
def test_a_decommission_ends_and_gives_up_no_rack(
    racks: list[int], replication_factor: int, partition_count: int, data: st.DataObject
) -> None:
    cluster, broker_ids = Cluster(), iter(range(1, 100))
    for number, size in enumerate(racks):
        for broker_id in [next(broker_ids) for _ in range(size)]:
            cluster.add_brokers(broker_id, rack=f"r{number}")
    brokers = sorted(cluster.image.brokers)
    replication_factor = min(replication_factor, len(brokers) - 1)
    assignments = [tuple(data.draw(st.permutations(brokers)))[:replication_factor] for _ in range(partition_count)]
    make_topic(cluster, "t", *assignments)
    drain(cluster, LEAVING)

    def racks_of(replicas: tuple[int, ...]) -> int:
        return len({cluster.image.brokers[one].rack for one in replicas})

    left = len({broker.rack for broker in cluster.image.brokers.values() if broker.id != LEAVING})
    for _ in range(partition_count + 1):
        for move in next_moves(cluster.image, LEAVING, moving_max=3):
            assert racks_of(move.after) >= min(racks_of(move.before), left)
        if not begin(cluster, moving_max=3):
            break
        finish(cluster)
    assert decommission_state(cluster.image, LEAVING).may_unregister
