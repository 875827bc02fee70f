"""What a stop of a broker would cost."""

import pytest
from drained_brokers import drain
from hypothesis import given, settings
from hypothesis import strategies as st
from metadata_cluster import Cluster
from replicated_topics import fence, make_topic
from typed_ids import node_ids

from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import NodeId
from penstock.quorum.configs.own_keys import DRAINED_UNTIL_RESTART
from penstock.quorum.decisions.heartbeats import fence_expired
from penstock.quorum.metadata.image import ConfigResourceType
from penstock.quorum.metadata.records import ConfigRecord, PartitionChangeRecord
from penstock.quorum.planning import maintenance
from penstock.quorum.planning.maintenance import LeadershipReason, MaintenanceState, has_caught_up, maintenance_state


@pytest.fixture
def cluster() -> Cluster:
    """Return a cluster of brokers 1 to 3 with a topic 't' on all of them, led by 1, of which two must be in sync."""
    cluster = Cluster()
    cluster.add_brokers(1, 2, 3)
    make_topic(cluster, "t", (1, 2, 3))
    minimum = ConfigRecord(
        resource_type=ConfigResourceType.TOPIC, resource_name="t", name="min.insync.replicas", value="2"
    )
    cluster.replay([minimum])
    return cluster


def state(cluster: Cluster, broker_id: int = 1) -> MaintenanceState:
    return maintenance_state(cluster.image, NodeId(broker_id))


def set_isr(cluster: Cluster, *isr: int, leader: int = 1) -> None:
    topic_id = cluster.image.topics.by_name["t"].topic_id
    cluster.replay(
        [PartitionChangeRecord(topic_id=topic_id, partition_id=0, isr=node_ids(*isr), leader=NodeId(leader))]
    )


def test_a_broker_may_stop_while_enough_others_are_in_sync(cluster: Cluster) -> None:
    found = state(cluster)
    assert (found.may_stop, found.blockers, found.replica_count) == (True, (), 1)
    assert found.leaderships == (("t", 0, LeadershipReason.NOT_DRAINED),)
    drain(cluster, 1)
    found = state(cluster)
    assert (found.is_drained, found.leadership_count, found.leaderships, found.may_stop) == (True, 0, (), True)


def test_the_last_broker_is_the_one_whose_others_are_drained_or_away(cluster: Cluster) -> None:
    assert not state(cluster).is_last
    drain(cluster, 2)
    assert not state(cluster).is_last
    drain(cluster, 1, value=DRAINED_UNTIL_RESTART)
    assert not state(cluster).is_last
    assert (state(cluster).is_until_restart, state(cluster, 2).is_until_restart) == (True, False)
    fence(cluster, 3)
    assert state(cluster).is_last


def test_a_broker_has_caught_up_when_its_replicas_are_in_sync(cluster: Cluster) -> None:
    assert has_caught_up(cluster.image, NodeId(1))
    set_isr(cluster, 2, 3, leader=2)
    assert not has_caught_up(cluster.image, NodeId(1))
    assert has_caught_up(cluster.image, NodeId(2))


def test_a_stop_that_leaves_too_few_in_sync_is_named(cluster: Cluster) -> None:
    set_isr(cluster, 1, 2)
    found = state(cluster)
    assert found.under_min_isr == (("t", 0, (2,), 2),)
    assert found.blockers == ("1 partition (t-0) would be below min.insync.replicas",)
    assert state(cluster, 3).may_stop


def test_a_stop_that_leaves_no_leader_is_named_and_counts_once(cluster: Cluster) -> None:
    set_isr(cluster, 1)
    drain(cluster, 1)
    found = state(cluster)
    assert found.leaderships == (("t", 0, LeadershipReason.ONLY_IN_SYNC),)
    assert (found.offline_count, found.under_min_isr_count, found.may_stop) == (1, 0, False)
    assert found.blockers == ("1 partition (t-0) would have no leader: no other in-sync replica may lead",)


def test_a_drained_leader_says_that_the_others_cannot_lead_or_are_drained_too(cluster: Cluster) -> None:
    drain(cluster, 1, 2, 3)
    assert state(cluster).leaderships == (("t", 0, LeadershipReason.OTHERS_DRAINED),)
    fence(cluster, 2)
    fence(cluster, 3)
    assert state(cluster).leaderships == (("t", 0, LeadershipReason.OTHERS_CANNOT_LEAD),)


def test_a_single_replica_needs_its_broker_whatever_min_insync_replicas_is(cluster: Cluster) -> None:
    make_topic(cluster, "single", (2,))
    assert state(cluster, 2).offline == (("single", 0, (), 1),)
    assert state(cluster, 1).may_stop


def test_the_default_of_min_insync_replicas_is_the_cluster_s_then_the_node_s(cluster: Cluster) -> None:
    make_topic(cluster, "u", (1, 2))
    assert maintenance_state(cluster.image, NodeId(1), default_min_insync_replicas=1).may_stop
    # The first records of the cluster set it for all brokers.
    value = ConfigRecord(
        resource_type=ConfigResourceType.BROKER, resource_name="", name="min.insync.replicas", value="2"
    )
    cluster.replay([value])
    assert not maintenance_state(cluster.image, NodeId(1), default_min_insync_replicas=1).may_stop


def test_a_broker_that_is_not_registered_has_no_state(cluster: Cluster) -> None:
    with pytest.raises(KafkaError) as caught:
        state(cluster, 77)
    assert caught.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_lists_have_a_bound_and_counts_have_none(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "LISTED_MAX", 2)
    make_topic(cluster, "many", *[(1,)] * 5)
    found = state(cluster)
    assert (found.offline_count, len(found.offline)) == (5, 2)
    assert (found.leadership_count, len(found.leaderships)) == (6, 2)
    assert found.blockers[0].startswith("5 partitions (many-0, many-1, …)")


@pytest.mark.thorough
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_broker_that_may_stop_leaves_no_partition_without_leader_or_below_the_minimum(data: st.DataObject) -> None:
    cluster = Cluster()
    brokers = (1, 2, 3, 4)
    cluster.add_brokers(*brokers)
    make_topic(cluster, "t", (1, 2, 3), (2, 3, 4), (4, 1, 2))
    make_topic(cluster, "single", (1,))
    for broker_id in data.draw(st.lists(st.sampled_from(brokers), max_size=2)):
        cluster.submit(fence_expired, NodeId(broker_id))
    for broker_id in data.draw(st.sets(st.sampled_from(brokers), max_size=2)):
        drain(cluster, broker_id)
    stopped = data.draw(st.sampled_from(brokers))
    leaderless = [
        topic.name for topic in cluster.image.topics.by_id.values() for one in topic.partitions if one.leader < 0
    ]
    found = state(cluster, stopped)
    cluster.submit(fence_expired, NodeId(stopped))
    after = [topic.name for topic in cluster.image.topics.by_id.values() for one in topic.partitions if one.leader < 0]
    assert len(after) - len(leaderless) == found.offline_count
    assert found.may_stop is (not found.offline_count and not found.under_min_isr_count)
