"""Registration, heartbeats and what they mean for leaders, ISR and eligible leader replicas."""

from dataclasses import replace
from uuid import UUID

import pytest
from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
from kio.schema.broker_heartbeat.v2.response import BrokerHeartbeatResponse
from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest, Feature, Listener
from kio.schema.create_topics.v7.request import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from kio.schema.types import BrokerId, TopicName
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.static.primitive import i16, i32, i64, u16
from metadata_cluster import CLUSTER_ID, Cluster, directory_id

from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.quorum.decisions.brokers import register_broker, unregister_broker
from penstock.quorum.decisions.heartbeats import GoneBroker, fence_expired, fence_gone, heartbeat
from penstock.quorum.decisions.topics import create_topics
from penstock.quorum.metadata.features import FEATURES
from penstock.quorum.metadata.image import BrokerRegistration, PartitionRegistration
from penstock.quorum.metadata.records import (
    DIRECTORY_LOST,
    DIRECTORY_UNASSIGNED,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)

LEVELS = {name: (0, feature.initial_level) for name, feature in FEATURES.items()}


def registration(
    broker_id: int = 1,
    *,
    incarnation: int = 1,
    directories: tuple[UUID, ...] | None = None,
    previous_broker_epoch: int = -1,
    cluster_id: str = CLUSTER_ID,
    features: dict[str, tuple[int, int]] | None = None,
) -> BrokerRegistrationRequest:
    levels = LEVELS if features is None else features
    return BrokerRegistrationRequest(
        broker_id=BrokerId(broker_id),
        cluster_id=cluster_id,
        incarnation_id=UUID(int=incarnation),
        listeners=(Listener(name="PLAINTEXT", host="localhost", port=u16(9092), security_protocol=i16(0)),),
        features=tuple(
            Feature(name=name, min_supported_version=i16(low), max_supported_version=i16(high))
            for name, (low, high) in levels.items()
        ),
        rack="r1",
        log_dirs=(directory_id(broker_id),) if directories is None else directories,
        previous_broker_epoch=i64(previous_broker_epoch),
    )


def register(cluster: Cluster, request: BrokerRegistrationRequest) -> int:
    """Return the broker epoch."""
    return cluster.submit(register_broker, request).broker_epoch


def refusal(cluster: Cluster, request: BrokerRegistrationRequest) -> tuple[ErrorCode, str | None]:
    with pytest.raises(KafkaError) as caught:
        cluster.decide(register_broker, request)
    return caught.value.code, caught.value.message


def beat(
    cluster: Cluster,
    broker_id: int = 1,
    *,
    offset: int | None = None,
    wants_fence: bool = False,
    wants_shutdown: bool = False,
    offline: tuple[UUID, ...] = (),
) -> BrokerHeartbeatResponse:
    request = BrokerHeartbeatRequest(
        broker_id=BrokerId(broker_id),
        broker_epoch=i64(cluster.image.brokers[broker_id].epoch),
        current_metadata_offset=i64(cluster.image.offset if offset is None else offset),
        want_fence=wants_fence,
        want_shut_down=wants_shutdown,
        offline_log_dirs=offline,
    )
    return cluster.submit(heartbeat, request)


def start(
    cluster: Cluster, broker_id: int = 1, *, incarnation: int = 1, previous_broker_epoch: int = -1
) -> BrokerRegistration:
    register(cluster, registration(broker_id, incarnation=incarnation, previous_broker_epoch=previous_broker_epoch))
    assert not beat(cluster, broker_id).is_fenced
    return cluster.image.brokers[broker_id]


def stop(cluster: Cluster, broker_id: int = 1) -> int:
    """Stop as a node does, and return the epoch that its clean stop leaves behind."""
    while not beat(cluster, broker_id, wants_shutdown=True).should_shut_down:
        pass
    return cluster.image.brokers[broker_id].epoch


def add_topic(cluster: Cluster, *replicas: int) -> None:
    """Create the topic 't' with one partition."""
    assignment = CreatableReplicaAssignment(partition_index=i32(0), broker_ids=tuple(map(BrokerId, replicas)))
    topic = CreatableTopic(
        name=TopicName("t"),
        num_partitions=i32(-1),
        replication_factor=i16(-1),
        assignments=(assignment,),
        configs=(),
    )
    (result,) = cluster.submit(create_topics, CreateTopicsRequest(topics=(topic,))).topics
    assert result.error_message is None


def summary(partition: PartitionRegistration) -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    return partition.leader, partition.isr, partition.elr, partition.last_known_elr


def test_a_broker_registers_fenced_and_its_epoch_is_its_record_s_offset(cluster: Cluster) -> None:
    offset = cluster.image.offset
    epoch = register(cluster, registration())
    broker = cluster.image.brokers[1]
    assert epoch == broker.epoch == offset + 1
    assert broker.is_fenced
    endpoint = broker.endpoint("PLAINTEXT")
    assert endpoint is not None
    assert (endpoint.host, endpoint.port) == ("localhost", 9092)
    assert (broker.rack, broker.directories) == ("r1", (directory_id(1),))


def test_a_foreign_cluster_s_broker_is_refused(cluster: Cluster) -> None:
    assert refusal(cluster, registration(cluster_id="other")) == (
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        f"Expected cluster ID {CLUSTER_ID}, but got cluster ID other",
    )


@pytest.mark.parametrize(
    ("directories", "message"),
    [
        ((), "No directories specified in request"),
        ((DIRECTORY_UNASSIGNED,), "Reserved directory ID in request"),
        ((UUID(int=99),), "Reserved directory ID in request"),
        ((UUID(int=2**100),) * 2, "Duplicate directory ID in request"),
        (
            (directory_id(2),),
            "Broker 2 is already registered with directory AAAAAAAAAAAAAAAAAAGGog",
        ),
    ],
)
def test_bad_directories_are_refused(cluster: Cluster, directories: tuple[UUID, ...], message: str) -> None:
    register(cluster, registration(2))
    assert refusal(cluster, registration(directories=directories)) == (ErrorCode.INVALID_REGISTRATION, message)


@pytest.mark.parametrize("number", [-1, 4])
def test_a_listener_of_an_unknown_security_protocol_is_refused(cluster: Cluster, number: int) -> None:
    listener = Listener(name="ODD", host="localhost", port=u16(9092), security_protocol=i16(number))
    assert refusal(cluster, replace(registration(), listeners=(listener,))) == (
        ErrorCode.INVALID_REGISTRATION,
        f"Listener ODD has the unknown security protocol {number}",
    )


def test_a_broker_must_support_the_finalized_features(cluster: Cluster) -> None:
    levels = dict(LEVELS)
    levels["metadata.version"] = (7, 29)
    assert refusal(cluster, registration(features=levels)) == (
        ErrorCode.UNSUPPORTED_VERSION,
        "Unable to register because the broker does not support finalized version 30 of metadata.version. The broker "
        "wants a version between 7 and 29, inclusive.",
    )
    del levels["metadata.version"]
    code, _ = refusal(cluster, registration(features=levels))
    assert code == ErrorCode.UNSUPPORTED_VERSION


def test_the_same_incarnation_keeps_its_epoch_and_state(cluster: Cluster) -> None:
    broker = start(cluster)
    assert register(cluster, registration()) == broker.epoch
    assert cluster.image.brokers[1] == broker


def test_another_live_process_under_one_id_is_refused(cluster: Cluster) -> None:
    start(cluster)
    cluster.live_brokers = {1}
    other_disks = registration(incarnation=2, directories=(UUID(int=2**100),))
    assert refusal(cluster, other_disks) == (
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        "Another broker is registered with that broker id. If the broker was recently restarted this should "
        "self-resolve once the heartbeat manager expires the broker's session.",
    )
    cluster.live_brokers = set()
    register(cluster, other_disks)


def test_the_same_disks_prove_the_old_process_gone(cluster: Cluster) -> None:
    old = start(cluster)
    cluster.live_brokers = {1}
    register(cluster, registration(incarnation=2))
    new = cluster.image.brokers[1]
    assert new.epoch > old.epoch
    assert new.is_fenced


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


def test_a_single_replica_survives_a_kill_and_leads_with_a_higher_epoch(cluster: Cluster) -> None:
    """DESIGN of the last known leader, KIP-966."""
    start(cluster)
    add_topic(cluster, 1)
    register(cluster, registration(incarnation=2))
    assert summary(cluster.partition("t")) == (-1, (), (), (1,))
    assert cluster.partition("t").leader_epoch == 1
    beat(cluster)
    assert summary(cluster.partition("t")) == (1, (1,), (), ())
    assert cluster.partition("t").leader_epoch == 2
    assert cluster.partition("t").leader_recovery_state == 0


def test_a_single_replica_on_other_disks_stays_away(cluster: Cluster) -> None:
    start(cluster)
    add_topic(cluster, 1)
    register(cluster, registration(incarnation=2, directories=(UUID(int=2**100),)))
    beat(cluster)
    assert summary(cluster.partition("t")) == (-1, (), (), (1,))
    register(cluster, registration(incarnation=3))
    beat(cluster)
    assert cluster.partition("t").leader == 1


def test_a_replica_in_no_known_directory_is_lost_with_the_disks(cluster: Cluster) -> None:
    first = (directory_id(1), UUID(int=2**100))
    register(cluster, registration(directories=first))
    beat(cluster)
    add_topic(cluster, 1)
    assert cluster.partition("t").directories == (DIRECTORY_UNASSIGNED,)
    register(cluster, registration(incarnation=2, directories=(UUID(int=2**101),)))
    beat(cluster)
    assert cluster.partition("t").leader == -1
    assert cluster.partition("t").directories == (DIRECTORY_LOST,)


def test_a_clean_stop_keeps_the_replica_eligible(cluster: Cluster) -> None:
    start(cluster)
    add_topic(cluster, 1)
    epoch = stop(cluster)
    assert summary(cluster.partition("t")) == (-1, (), (1,), (1,))
    register(cluster, registration(incarnation=2, previous_broker_epoch=epoch))
    assert summary(cluster.partition("t")) == (-1, (), (1,), (1,))
    beat(cluster)
    assert summary(cluster.partition("t")) == (1, (1,), (), ())
    assert cluster.partition("t").leader_epoch == 2


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


def test_an_unclean_stop_costs_eligibility(cluster: Cluster) -> None:
    cluster.replay([ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2")])
    for broker_id in (1, 2):
        start(cluster, broker_id)
    add_topic(cluster, 1, 2)
    beat(cluster, 1, wants_fence=True)
    assert summary(cluster.partition("t")) == (2, (2,), (1,), ())
    register(cluster, registration(1, incarnation=2))
    assert summary(cluster.partition("t")) == (2, (2,), (), ())


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
    cluster.replay([PartitionChangeRecord(topic_id=topic_id, partition_id=0, isr=(1,))])
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


def test_a_heartbeat_that_lets_a_broker_in_elects_nobody_in_a_directory_that_it_says_has_failed(
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


def test_epochs_rise_as_they_must(cluster: Cluster) -> None:
    """The leader epoch on every leader change, also to none; the partition epoch on every change."""
    start(cluster)
    add_topic(cluster, 1)
    epochs = []
    for incarnation in (2, 3, 4):
        register(cluster, registration(incarnation=incarnation))
        beat(cluster)
        partition = cluster.partition("t")
        epochs.append((partition.leader_epoch, partition.partition_epoch))
    assert epochs == [(2, 2), (4, 4), (6, 6)]


def test_the_record_of_a_new_process_comes_after_the_end_of_the_old(cluster: Cluster) -> None:
    start(cluster)
    add_topic(cluster, 1)
    register(cluster, registration(incarnation=2))
    assert [type(record) for record in cluster.records] == [PartitionChangeRecord, RegisterBrokerRecord]


def test_a_broker_whose_session_is_over_is_fenced_once_and_leads_nothing(cluster: Cluster) -> None:
    start(cluster, 1)
    start(cluster, 2)
    add_topic(cluster, 1, 2)
    cluster.live_brokers = {1, 2}
    assert cluster.submit(fence_expired, 1) is False
    assert cluster.records == ()
    cluster.live_brokers = {2}
    assert cluster.submit(fence_expired, 1) is True
    assert cluster.image.brokers[1].is_fenced
    assert cluster.partition("t").leader == 2
    assert cluster.submit(fence_expired, 1) is False
    assert cluster.submit(fence_expired, 9) is False
    assert cluster.records == ()
    # Else the same sessions would end again and again.
    assert [cluster.decide(fence_expired, one).left_broker for one in (1, 2, 9)] == [1, None, 9]
    assert not beat(cluster, 1).is_fenced


def test_a_process_that_is_gone_is_fenced_and_no_other(cluster: Cluster) -> None:
    broker = start(cluster)
    start(cluster, 2)
    add_topic(cluster, 1, 2)
    assert cluster.submit(fence_gone, GoneBroker(1, broker.epoch - 1)) is False
    assert cluster.submit(fence_gone, GoneBroker(9, broker.epoch)) is False
    assert cluster.records == ()
    result = cluster.decide(fence_gone, GoneBroker(1, broker.epoch))
    assert (result.response, result.left_broker) == (True, 1)
    cluster.replay(result.records)
    assert cluster.image.brokers[1].is_fenced
    assert cluster.partition("t").leader == 2
    assert cluster.submit(fence_gone, GoneBroker(1, broker.epoch)) is False


def test_a_broker_on_its_way_out_is_not_fenced_as_gone(cluster: Cluster) -> None:
    broker = start(cluster)
    add_topic(cluster, 1)
    beat(cluster, wants_shutdown=True)
    assert cluster.image.brokers[1].in_controlled_shutdown
    assert cluster.submit(fence_gone, GoneBroker(1, broker.epoch)) is False


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


def test_a_process_that_is_not_let_in_yet_keeps_another_out(cluster: Cluster) -> None:
    register(cluster, registration())
    cluster.live_brokers = {1}
    code, _ = refusal(cluster, registration(incarnation=2, directories=(UUID(int=2**100),)))
    assert code == ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_an_unregistered_broker_is_gone_and_leads_nothing(cluster: Cluster) -> None:
    start(cluster, 1)
    start(cluster, 2)
    add_topic(cluster, 1, 2)
    assert summary(cluster.partition("t")) == (1, (1, 2), (), ())
    cluster.submit(unregister_broker, UnregisterBrokerRequest(broker_id=BrokerId(1)))
    assert set(cluster.image.brokers) == {2}
    found = cluster.partition("t")
    assert (found.leader, found.isr, found.replicas) == (2, (2,), (1, 2))


def test_only_what_is_registered_can_be_unregistered(cluster: Cluster) -> None:
    with pytest.raises(KafkaError, match="Broker ID 7 is not currently registered") as caught:
        cluster.decide(unregister_broker, UnregisterBrokerRequest(broker_id=BrokerId(7)))
    assert caught.value.code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_broker_that_comes_back_after_it_was_unregistered_stopped_as_if_it_had_been_killed(cluster: Cluster) -> None:
    """Nobody knows whether it kept what it acknowledged; as the last leader it leads again all the same (KIP-966)."""
    epoch = start(cluster, 1).epoch
    add_topic(cluster, 1)
    cluster.submit(unregister_broker, UnregisterBrokerRequest(broker_id=BrokerId(1)))
    assert (cluster.partition("t").leader, cluster.partition("t").elr) == (-1, (1,))
    register(cluster, registration(1, incarnation=2, previous_broker_epoch=epoch))
    assert (cluster.partition("t").elr, cluster.partition("t").last_known_elr) == ((), (1,))


def test_the_last_member_in_sync_is_remembered_where_the_leader_was_gone_before(cluster: Cluster) -> None:
    """All replicas may be killed, and come back in any order, and somebody leads again (KIP-966)."""
    start(cluster, 1)
    start(cluster, 2)
    add_topic(cluster, 1, 2)
    # A member that may not lead now, as one whose log directory is offline.
    epoch = cluster.image.brokers[2].epoch
    cluster.replay([BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=epoch, is_fenced=True)])
    register(cluster, registration(1, incarnation=2))
    assert summary(cluster.partition("t")) == (-1, (2,), (), ())
    register(cluster, registration(2, incarnation=2))
    assert summary(cluster.partition("t")) == (-1, (), (), (2,))
    start(cluster, 2, incarnation=3)
    assert summary(cluster.partition("t")) == (2, (2,), (), ())
