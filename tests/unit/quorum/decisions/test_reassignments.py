"""Moving partitions to other replicas (KIP-455, KIP-860)."""

import pytest
from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32
from metadata_cluster import Cluster, directory_id
from replicated_topics import fence, make_topic
from typed_ids import node_ids

from penstock.protocol.errors import ErrorCode
from penstock.protocol.ids import NodeId
from penstock.quorum.decisions.reassignments import alter_reassignments
from penstock.quorum.metadata.image import ConfigResourceType
from penstock.quorum.metadata.records import ConfigRecord, PartitionChangeRecord

Outcome = tuple[ErrorCode, str | None]
DONE: Outcome = (ErrorCode.NONE, None)


@pytest.fixture
def cluster() -> Cluster:
    """Return a cluster of brokers 1 to 5 with a topic 't' on 1, 2 and 3, led by 1."""
    cluster = Cluster()
    cluster.add_brokers(1, 2, 3, 4, 5)
    make_topic(cluster, "t", (1, 2, 3))
    return cluster


def move(
    cluster: Cluster, *targets: tuple[int, ...] | None, topic: str = "t", may_resize: bool = True
) -> list[Outcome]:
    """Ask for each target, None to cancel, of partition 0."""
    partitions = tuple(
        ReassignablePartition(partition_index=i32(0), replicas=None if target is None else tuple(map(BrokerId, target)))
        for target in targets
    )
    request = AlterPartitionReassignmentsRequest(
        topics=(ReassignableTopic(name=TopicName(topic), partitions=partitions),),
        allow_replication_factor_change=may_resize,
    )
    response = cluster.submit(alter_reassignments, request)
    assert response.allow_replication_factor_change == may_resize
    [answered] = response.responses
    return [(ErrorCode(int(one.error_code)), one.error_message) for one in answered.partitions]


def catch_up(cluster: Cluster, *isr: int) -> None:
    """Let the leader's ISR be this, without the controller's doing."""
    topic_id = cluster.image.topics.by_name["t"].topic_id
    cluster.replay([PartitionChangeRecord(topic_id=topic_id, partition_id=0, isr=node_ids(*isr))])


def test_new_replicas_come_before_the_old_ones_go(cluster: Cluster) -> None:
    assert move(cluster, (4, 5, 1)) == [DONE]
    partition = cluster.partition("t")
    assert partition.replicas == (4, 5, 1, 2, 3)
    assert (partition.adding_replicas, partition.removing_replicas) == ((4, 5), (2, 3))
    assert (partition.leader, partition.isr) == (1, (1, 2, 3))
    assert partition.directories == tuple(map(directory_id, partition.replicas))


def test_a_move_within_the_isr_is_done_at_once_and_fences_who_is_left_out(cluster: Cluster) -> None:
    epoch = cluster.partition("t").leader_epoch
    assert move(cluster, (1, 2)) == [DONE]
    partition = cluster.partition("t")
    assert (partition.replicas, partition.isr, partition.removing_replicas) == ((1, 2), (1, 2), ())
    assert (partition.leader, partition.leader_epoch) == (1, epoch + 1)


def test_another_order_of_the_same_replicas_changes_no_leader(cluster: Cluster) -> None:
    epoch = cluster.partition("t").leader_epoch
    assert move(cluster, (3, 2, 1)) == [DONE]
    partition = cluster.partition("t")
    assert (partition.replicas, partition.leader, partition.leader_epoch) == ((3, 2, 1), 1, epoch)


def test_what_is_so_already_needs_no_record(cluster: Cluster) -> None:
    assert move(cluster, (1, 2, 3)) == [DONE]
    assert cluster.records == ()


def test_a_cancelled_move_leaves_the_replicas_as_they_were(cluster: Cluster) -> None:
    before = cluster.partition("t")
    move(cluster, (4, 5, 1))
    catch_up(cluster, 1, 2, 3, 4)
    assert move(cluster, None) == [DONE]
    partition = cluster.partition("t")
    assert set(partition.replicas) == set(before.replicas)
    assert partition.isr == (1, 2, 3)
    assert (partition.adding_replicas, partition.removing_replicas) == ((), ())
    assert partition.leader_epoch == before.leader_epoch + 1


def test_a_move_that_is_changed_on_its_way_is_cancelled_to_where_it_began(cluster: Cluster) -> None:
    move(cluster, (4, 5, 1))
    assert move(cluster, (1, 2, 4)) == [DONE]
    assert cluster.partition("t").replicas == (1, 2, 4, 3, 5)
    move(cluster, None)
    assert set(cluster.partition("t").replicas) == {1, 2, 3}


def allow_unclean_elections(cluster: Cluster) -> None:
    cluster.replay(
        [
            ConfigRecord(
                resource_type=ConfigResourceType.TOPIC,
                resource_name="t",
                name="unclean.leader.election.enable",
                value="true",
            )
        ]
    )


def test_a_revert_that_would_lose_records_needs_leave_for_unclean_elections(cluster: Cluster) -> None:
    move(cluster, (4, 5))
    catch_up(cluster, 4)
    [(code, message)] = move(cluster, None)
    assert code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert message == (
        "Unable to revert partition assignment for t:0 because it would require an unclean leader election."
    )
    allow_unclean_elections(cluster)
    assert move(cluster, None) == [DONE]
    partition = cluster.partition("t")
    assert (partition.replicas, partition.isr, partition.leader) == ((1, 2, 3), (1,), 1)


@pytest.mark.parametrize("is_alive", [False, True])
@pytest.mark.parametrize(("elr", "last_known"), [((4,), ()), ((), (4,)), ((4,), (1,))])
def test_a_revert_that_would_take_the_last_eligible_leader_away_is_refused(
    cluster: Cluster, elr: tuple[int, ...], last_known: tuple[int, ...], is_alive: bool
) -> None:
    move(cluster, (4, 1, 2))
    topic_id = cluster.image.topics.by_name["t"].topic_id
    is_without_leader = PartitionChangeRecord(
        topic_id=topic_id,
        partition_id=0,
        isr=(),
        leader=NodeId(-1),
        elr=node_ids(*elr),
        last_known_elr=node_ids(*last_known),
    )
    cluster.replay([is_without_leader])
    fence(cluster, 4, is_fenced=not is_alive)
    before = cluster.partition("t")
    assert [code for code, _ in move(cluster, None)] == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]
    assert cluster.partition("t") == before


def test_a_revert_leaves_those_that_are_eligible_and_were_there_before(cluster: Cluster) -> None:
    move(cluster, (4, 1, 2))
    topic_id = cluster.image.topics.by_name["t"].topic_id
    cluster.replay(
        [PartitionChangeRecord(topic_id=topic_id, partition_id=0, isr=(), leader=NodeId(-1), elr=node_ids(4, 1))]
    )
    fence(cluster, 1)
    assert move(cluster, None) == [DONE]
    partition = cluster.partition("t")
    assert (partition.replicas, partition.isr, partition.elr, partition.leader) == ((1, 2, 3), (), (1,), -1)


def test_an_unclean_revert_does_not_elect_the_last_leader_that_it_takes_away(cluster: Cluster) -> None:
    move(cluster, (4, 1, 2))
    topic_id = cluster.image.topics.by_name["t"].topic_id
    cluster.replay(
        [
            PartitionChangeRecord(
                topic_id=topic_id, partition_id=0, isr=(), leader=NodeId(-1), last_known_elr=node_ids(4)
            )
        ]
    )
    allow_unclean_elections(cluster)
    assert move(cluster, None) == [DONE]
    partition = cluster.partition("t")
    assert (partition.replicas, partition.isr, partition.leader, partition.last_known_elr) == ((1, 2, 3), (1,), 1, ())


def test_a_partition_named_twice_moves_on_from_its_first_mention(cluster: Cluster) -> None:
    assert move(cluster, (4, 5, 1), None) == [DONE, DONE]
    assert set(cluster.partition("t").replicas) == {1, 2, 3}


def test_what_cannot_be_is_told(cluster: Cluster) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert move(cluster, (1,), topic="x") == [(unknown, "Unable to find a topic named x.")]
    assert move(cluster, None)[0][0] is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    refused = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert [code for code, _ in move(cluster, (), (1, 1), (1, 9))] == [refused] * 3
    assert cluster.records == ()


def test_a_move_may_be_bound_to_keep_the_number_of_replicas(cluster: Cluster) -> None:
    [(code, message)] = move(cluster, (1, 2), may_resize=False)
    assert (code, message) == (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "The replication factor is changed from 3 to 2",
    )
    assert move(cluster, (4, 2, 3), may_resize=False) == [DONE]
    assert move(cluster, (4, 5, 3), may_resize=False) == [DONE]


def test_a_broker_that_is_shut_out_may_be_given_a_replica(cluster: Cluster) -> None:
    fence(cluster, 4)
    assert move(cluster, (1, 4)) == [DONE]
    assert cluster.partition("t").adding_replicas == (4,)
