"""What the controller elects of itself."""

from metadata_cluster import Cluster
from replicated_topics import fence, make_topic
from typed_ids import node_ids

from penstock.protocol.ids import NodeId
from penstock.quorum.decisions import periodic_elections
from penstock.quorum.decisions.periodic_elections import balance_leaders, elect_where_unclean
from penstock.quorum.metadata.image import ConfigResourceType
from penstock.quorum.metadata.records import ConfigRecord, PartitionChangeRecord


def change(cluster: Cluster, topic: str, index: int, *, leader: int, isr: tuple[int, ...]) -> None:
    topic_id = cluster.image.topics.by_name[topic].topic_id
    cluster.replay(
        [PartitionChangeRecord(topic_id=topic_id, partition_id=index, leader=NodeId(leader), isr=node_ids(*isr))]
    )


def leaders(cluster: Cluster, topic: str) -> list[int]:
    return [partition.leader for partition in cluster.image.topics.by_name[topic].partitions]


def test_preferred_replicas_lead_again_where_they_may(cluster: Cluster) -> None:
    cluster.add_brokers(1, 2)
    make_topic(cluster, "t", (1, 2), (1, 2), (2, 1))
    change(cluster, "t", 0, leader=2, isr=(1, 2))
    change(cluster, "t", 1, leader=2, isr=(2,))
    assert not cluster.submit(balance_leaders, None)
    assert leaders(cluster, "t") == [1, 2, 2]
    assert not cluster.submit(balance_leaders, None)
    assert cluster.records == ()


def test_many_elections_are_several_decisions(cluster: Cluster) -> None:
    cluster.add_brokers(1, 2)
    count = periodic_elections.MAX_ELECTIONS + 1
    make_topic(cluster, "t", *[(1, 2)] * count)
    for index in range(count):
        change(cluster, "t", index, leader=2, isr=(1, 2))
    assert cluster.submit(balance_leaders, None)
    assert leaders(cluster, "t").count(1) == periodic_elections.MAX_ELECTIONS
    assert not cluster.submit(balance_leaders, None)
    assert leaders(cluster, "t").count(1) == count


def test_only_topics_that_may_lose_records_get_an_unclean_leader(cluster: Cluster) -> None:
    cluster.add_brokers(1, 2)
    for name in ("kept", "lost"):
        make_topic(cluster, name, (1, 2))
        change(cluster, name, 0, leader=-1, isr=(1,))
    fence(cluster, 1)
    unclean = ConfigRecord(
        resource_type=ConfigResourceType.TOPIC,
        resource_name="lost",
        name="unclean.leader.election.enable",
        value="true",
    )
    cluster.replay([unclean])
    assert not cluster.submit(elect_where_unclean, None)
    assert (leaders(cluster, "kept"), leaders(cluster, "lost")) == ([-1], [2])
    assert cluster.partition("lost").isr == (2,)
