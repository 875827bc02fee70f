"""Electing leaders because an operator asks for it (KIP-460)."""

import pytest
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32
from metadata_cluster import Cluster
from replicated_topics import fence, make_topic
from typed_ids import node_ids

from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import NodeId
from penstock.quorum.decisions.elections import ElectionType, elect_leaders
from penstock.quorum.metadata.records import PartitionChangeRecord

PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN


@pytest.fixture
def cluster() -> Cluster:
    """Return a cluster of brokers 1 and 2 with a topic 't' whose partitions 0 and 1 both have, 1 before 2."""
    cluster = Cluster()
    cluster.add_brokers(1, 2)
    make_topic(cluster, "t", (1, 2), (1, 2))
    return cluster


def elect(cluster: Cluster, kind: int, *asked: tuple[str, int]) -> list[tuple[str, int, ErrorCode]]:
    """The results; of all partitions when none is named."""
    named = tuple(TopicPartitions(topic=TopicName(topic), partitions=(i32(index),)) for topic, index in asked)
    request = ElectLeadersRequest(election_type=i8(kind), topic_partitions=named or None)
    response = cluster.submit(elect_leaders, request)
    return [
        (topic.topic, partition.partition_id, ErrorCode(int(partition.error_code)))
        for topic in response.replica_election_results
        for partition in topic.partition_result
    ]


def change(cluster: Cluster, index: int, *, leader: int, isr: tuple[int, ...]) -> None:
    topic_id = cluster.image.topics.by_name["t"].topic_id
    cluster.replay(
        [PartitionChangeRecord(topic_id=topic_id, partition_id=index, leader=NodeId(leader), isr=node_ids(*isr))]
    )


def test_the_preferred_replica_leads_again_once_it_is_asked_for(cluster: Cluster) -> None:
    change(cluster, 0, leader=2, isr=(1, 2))
    epoch = cluster.partition("t").leader_epoch
    assert elect(cluster, PREFERRED, ("t", 0)) == [("t", 0, ErrorCode.NONE)]
    assert (cluster.partition("t").leader, cluster.partition("t").leader_epoch) == (1, epoch + 1)


def test_who_leads_already_is_not_elected(cluster: Cluster) -> None:
    assert elect(cluster, PREFERRED, ("t", 0)) == [("t", 0, ErrorCode.ELECTION_NOT_NEEDED)]
    assert elect(cluster, UNCLEAN, ("t", 0)) == [("t", 0, ErrorCode.ELECTION_NOT_NEEDED)]
    assert cluster.records == ()


def test_of_all_partitions_only_those_that_need_it_are_told_of(cluster: Cluster) -> None:
    change(cluster, 1, leader=2, isr=(1, 2))
    assert elect(cluster, PREFERRED) == [("t", 1, ErrorCode.NONE)]
    assert cluster.partition("t", 1).leader == 1


def test_a_preferred_replica_that_is_behind_or_gone_is_not_available(cluster: Cluster) -> None:
    change(cluster, 0, leader=2, isr=(2,))
    change(cluster, 1, leader=2, isr=(1, 2))
    fence(cluster, 1)
    refused = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert elect(cluster, PREFERRED, ("t", 0), ("t", 1)) == [("t", 0, refused), ("t", 1, refused)]
    assert cluster.partition("t", 1).leader == 2


def test_an_unclean_election_takes_any_live_replica(cluster: Cluster) -> None:
    change(cluster, 0, leader=-1, isr=(1,))
    fence(cluster, 1)
    assert elect(cluster, PREFERRED, ("t", 0)) == [("t", 0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)]
    assert elect(cluster, UNCLEAN, ("t", 0)) == [("t", 0, ErrorCode.NONE)]
    assert (cluster.partition("t").leader, cluster.partition("t").isr) == (2, (2,))


def test_without_a_live_replica_no_leader_is_elected(cluster: Cluster) -> None:
    change(cluster, 0, leader=-1, isr=(1,))
    fence(cluster, 1)
    fence(cluster, 2)
    assert elect(cluster, UNCLEAN, ("t", 0)) == [("t", 0, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)]


def test_a_partition_named_twice_is_elected_once(cluster: Cluster) -> None:
    change(cluster, 0, leader=2, isr=(1, 2))
    assert elect(cluster, PREFERRED, ("t", 0), ("t", 0)) == [("t", 0, ErrorCode.NONE)]
    assert len(cluster.records) == 1


def test_what_is_not_there_is_told(cluster: Cluster) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert elect(cluster, PREFERRED, ("x", 0), ("t", 7)) == [("x", 0, unknown), ("t", 7, unknown)]
    with pytest.raises(KafkaError, match="Unknown election type 2"):
        elect(cluster, 2, ("t", 0))
