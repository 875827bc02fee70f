"""Heartbeats, fencing and shutdown, and what they mean for leaders, ISR and eligible leader replicas."""

from dataclasses import replace

import pytest
from broker_lives import add_topic, beat, register, registration, start, stop, summary
from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
from kio.schema.types import BrokerId
from kio.static.primitive import i64
from metadata_cluster import Cluster, directory_id
from typed_ids import node_ids

from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import BrokerEpoch, NodeId
from penstock.quorum.decisions.heartbeats import GoneBroker, fence_expired, fence_gone, heartbeat
from penstock.quorum.metadata.records import ConfigRecord, FeatureLevelRecord, PartitionChangeRecord


def test_a_broker_is_let_in_only_when_it_has_replayed_its_registration(cluster: Cluster) -> None:
    epoch = register(cluster, registration())
    early = beat(cluster, offset=epoch - 1)
    assert (early.is_fenced, early.is_caught_up) == (True, False)
    assert beat(cluster, offset=epoch, wants_fence=True).is_fenced
    ready = beat(cluster, offset=epoch)
    assert (ready.is_fenced, ready.is_caught_up, ready.should_shut_down) == (False, True, False)
    assert cluster.image.brokers[1].is_active
    beat(cluster)
    assert cluster.records == ()


def test_heartbeats_of_an_old_process_are_refused(cluster: Cluster) -> None:
    start(cluster)
    request = BrokerHeartbeatRequest(
        broker_id=BrokerId(1),
        broker_epoch=i64(0),
        current_metadata_offset=i64(0),
        want_fence=False,
        want_shut_down=False,
    )
    with pytest.raises(KafkaError, match="but got broker epoch 0") as caught:
        cluster.decide(heartbeat, request)
    assert caught.value.code == ErrorCode.STALE_BROKER_EPOCH
    with pytest.raises(KafkaError, match="No broker registration found for broker id 9") as caught:
        cluster.decide(heartbeat, replace(request, broker_id=BrokerId(9)))
    assert caught.value.code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_controlled_shutdown_hands_leaderships_over_first(cluster: Cluster) -> None:
    start(cluster, 1)
    start(cluster, 2)
    add_topic(cluster, 1, 2)
    asked = beat(cluster, 1, wants_shutdown=True)
    assert (asked.is_fenced, asked.should_shut_down) == (False, False)
    assert cluster.image.brokers[1].in_controlled_shutdown
    assert summary(cluster.partition("t")) == (2, (2,), (), ())
    granted = beat(cluster, 1, wants_shutdown=True)
    assert (granted.is_fenced, granted.should_shut_down) == (True, True)
    assert cluster.image.brokers[1].is_fenced


def test_a_broker_that_leads_nothing_may_stop_at_once(cluster: Cluster) -> None:
    start(cluster)
    assert beat(cluster, wants_shutdown=True).should_shut_down
    assert cluster.image.brokers[1].is_fenced
    # It has said that it goes, so that no broker takes it for one that was lost.
    assert cluster.image.brokers[1].in_controlled_shutdown
    start(cluster, incarnation=2)
    assert cluster.image.brokers[1].is_active


def test_a_fence_on_request(cluster: Cluster) -> None:
    start(cluster, 1)
    start(cluster, 2)
    add_topic(cluster, 2, 1)
    assert beat(cluster, 2, wants_fence=True).is_fenced
    assert summary(cluster.partition("t")) == (1, (1,), (), ())


def test_below_the_smallest_isr_members_that_leave_stay_eligible(cluster: Cluster) -> None:
    cluster.replay([ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2")])
    for broker_id in (1, 2, 3):
        start(cluster, broker_id)
    add_topic(cluster, 1, 2, 3)
    beat(cluster, 1, wants_fence=True)
    assert summary(cluster.partition("t")) == (2, (2, 3), (), ())
    beat(cluster, 2, wants_fence=True)
    assert summary(cluster.partition("t")) == (3, (3,), (2,), ())
    beat(cluster, 3, wants_fence=True)
    assert summary(cluster.partition("t")) == (-1, (), (2, 3), (3,))
    assert not beat(cluster, 1).is_fenced
    assert cluster.partition("t").leader == -1
    beat(cluster, 2)
    assert summary(cluster.partition("t")) == (2, (2,), (3,), ())


def test_without_elr_the_last_member_of_the_isr_stays_in_it(cluster: Cluster) -> None:
    cluster.replay([FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=0)])
    start(cluster)
    add_topic(cluster, 1)
    stop(cluster)
    assert summary(cluster.partition("t")) == (-1, (1,), (), ())
    start(cluster, incarnation=2)
    assert summary(cluster.partition("t")) == (1, (1,), (), ())


def test_unclean_election_only_where_it_is_allowed(cluster: Cluster) -> None:
    start(cluster, 1)
    start(cluster, 2)
    add_topic(cluster, 1, 2)
    topic_id = cluster.image.topics.by_name["t"].topic_id
    cluster.replay([PartitionChangeRecord(topic_id=topic_id, partition_id=0, isr=node_ids(1))])
    beat(cluster, 1, wants_fence=True)
    assert cluster.partition("t").leader == -1
    beat(cluster, 2, wants_fence=True)
    cluster.replay(
        [ConfigRecord(resource_type=2, resource_name="t", name="unclean.leader.election.enable", value="true")]
    )
    beat(cluster, 2)
    assert summary(cluster.partition("t")) == (2, (2,), (), ())
    assert cluster.partition("t").leader_recovery_state == 1


def test_a_failed_directory_takes_its_replicas_out(cluster: Cluster) -> None:
    start(cluster, 1)
    start(cluster, 2)
    add_topic(cluster, 1, 2)
    beat(cluster, 1, offline=(directory_id(1),))
    assert cluster.image.brokers[1].directories == ()
    assert summary(cluster.partition("t")) == (2, (2,), (), ())
    beat(cluster, 1, offline=(directory_id(1),))
    assert cluster.records == ()
    beat(cluster, 2, wants_fence=True)
    assert cluster.partition("t").leader == -1


def test_a_heartbeat_that_lets_a_broker_in_elects_no_replica_in_a_directory_that_it_says_has_failed(
    cluster: Cluster,
) -> None:
    start(cluster, 1)
    add_topic(cluster, 1)
    beat(cluster, 1, wants_fence=True)
    assert cluster.partition("t").leader == -1
    assert not beat(cluster, 1, offline=(directory_id(1),)).is_fenced
    assert (cluster.partition("t").leader, cluster.partition("t").elr) == (-1, (1,))


def test_who_leaves_and_tells_of_a_failed_directory_is_succeeded_once(cluster: Cluster) -> None:
    start(cluster, 1)
    start(cluster, 2)
    add_topic(cluster, 1, 2)
    epoch = cluster.partition("t").leader_epoch
    beat(cluster, 1, wants_fence=True, offline=(directory_id(1),))
    assert (cluster.partition("t").leader, cluster.partition("t").leader_epoch) == (2, epoch + 1)


def test_a_broker_whose_session_is_over_is_fenced_once_and_leads_nothing(cluster: Cluster) -> None:
    start(cluster, 1)
    start(cluster, 2)
    add_topic(cluster, 1, 2)
    cluster.live_brokers = {1, 2}
    assert cluster.submit(fence_expired, NodeId(1)) is False
    assert cluster.records == ()
    cluster.live_brokers = {2}
    assert cluster.submit(fence_expired, NodeId(1)) is True
    assert cluster.image.brokers[1].is_fenced
    assert cluster.partition("t").leader == 2
    assert cluster.submit(fence_expired, NodeId(1)) is False
    assert cluster.submit(fence_expired, NodeId(9)) is False
    assert cluster.records == ()
    # Else the same sessions would end again and again.
    assert [cluster.decide(fence_expired, one).left_broker for one in node_ids(1, 2, 9)] == [1, None, 9]
    assert not beat(cluster, 1).is_fenced


def test_a_process_that_is_gone_is_fenced_and_no_other(cluster: Cluster) -> None:
    broker = start(cluster)
    start(cluster, 2)
    add_topic(cluster, 1, 2)
    assert cluster.submit(fence_gone, GoneBroker(NodeId(1), BrokerEpoch(broker.epoch - 1))) is False
    assert cluster.submit(fence_gone, GoneBroker(NodeId(9), broker.epoch)) is False
    assert cluster.records == ()
    result = cluster.decide(fence_gone, GoneBroker(NodeId(1), broker.epoch))
    assert (result.response, result.left_broker) == (True, 1)
    cluster.replay(result.records)
    assert cluster.image.brokers[1].is_fenced
    assert cluster.partition("t").leader == 2
    assert cluster.submit(fence_gone, GoneBroker(NodeId(1), broker.epoch)) is False


def test_a_broker_on_its_way_out_is_not_fenced_as_gone(cluster: Cluster) -> None:
    broker = start(cluster)
    add_topic(cluster, 1)
    beat(cluster, wants_shutdown=True)
    assert cluster.image.brokers[1].in_controlled_shutdown
    assert cluster.submit(fence_gone, GoneBroker(NodeId(1), broker.epoch)) is False


def test_a_broker_that_may_go_ends_its_session(cluster: Cluster) -> None:
    broker = start(cluster)
    request = BrokerHeartbeatRequest(
        broker_id=BrokerId(1),
        broker_epoch=i64(broker.epoch),
        current_metadata_offset=i64(cluster.image.offset),
        want_fence=False,
        want_shut_down=True,
    )
    result = cluster.decide(heartbeat, request)
    assert (result.response.should_shut_down, result.left_broker) == (True, 1)
