"""Registration and its end, and what they mean for leaders, ISR and eligible leader replicas."""

from dataclasses import replace
from uuid import UUID

import pytest
from broker_lives import LEVELS, add_topic, beat, refusal, register, registration, start, stop, summary
from kio.schema.broker_registration.v4.request import Listener
from kio.schema.types import BrokerId
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.static.primitive import i16, u16
from metadata_cluster import CLUSTER_ID, Cluster, directory_id

from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import NodeId
from penstock.quorum.decisions.broker_removal import unregister_broker
from penstock.quorum.metadata.records import (
    DIRECTORY_LOST,
    DIRECTORY_UNASSIGNED,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)


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


@pytest.mark.parametrize(("incarnation", "process"), [(2, 0), (3, 1)], ids=["earlier", "of the same number"])
def test_a_process_that_started_no_later_takes_no_place_from_a_living_one(
    cluster: Cluster, incarnation: int, process: int
) -> None:
    """It died before the other one could start, and its request was held up on its way."""
    start(cluster)
    new = start(cluster, incarnation=3)
    cluster.live_brokers = {1}
    code, _ = refusal(cluster, registration(incarnation=incarnation, process=process))
    assert code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert cluster.image.brokers[1] == new


def test_disks_as_they_were_earlier_take_the_place_after_the_session(cluster: Cluster) -> None:
    """An operator put an older copy of the log directories back, with the number of starts that it had then."""
    old = start(cluster, incarnation=3)
    register(cluster, registration(incarnation=2))
    assert cluster.image.brokers[1].epoch > old.epoch


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


def test_an_unclean_stop_costs_eligibility(cluster: Cluster) -> None:
    cluster.replay([ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2")])
    for broker_id in (1, 2):
        start(cluster, broker_id)
    add_topic(cluster, 1, 2)
    beat(cluster, 1, wants_fence=True)
    assert summary(cluster.partition("t")) == (2, (2,), (1,), ())
    register(cluster, registration(1, incarnation=2))
    assert summary(cluster.partition("t")) == (2, (2,), (), ())


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
    """It is unknown whether it kept what it acknowledged; as the last leader it leads again all the same (KIP-966)."""
    epoch = start(cluster, 1).epoch
    add_topic(cluster, 1)
    cluster.submit(unregister_broker, UnregisterBrokerRequest(broker_id=BrokerId(1)))
    assert (cluster.partition("t").leader, cluster.partition("t").elr) == (-1, (1,))
    register(cluster, registration(1, incarnation=2, previous_broker_epoch=epoch))
    assert (cluster.partition("t").elr, cluster.partition("t").last_known_elr) == ((), (1,))


def test_a_broker_that_comes_back_with_other_disks_after_it_was_unregistered_does_not_lead(cluster: Cluster) -> None:
    register(cluster, registration(directories=(directory_id(1), UUID(int=2**100))))
    beat(cluster)
    add_topic(cluster, 1)
    cluster.submit(unregister_broker, UnregisterBrokerRequest(broker_id=BrokerId(1)))
    register(cluster, registration(incarnation=2, directories=(UUID(int=2**101), UUID(int=2**102))))
    beat(cluster)
    found = cluster.partition("t")
    assert (found.leader, found.directories) == (-1, (DIRECTORY_LOST,))


def test_the_last_member_in_sync_is_remembered_where_the_leader_was_gone_before(cluster: Cluster) -> None:
    """All replicas may be killed, and come back in any order, and one of them leads again (KIP-966)."""
    start(cluster, 1)
    start(cluster, 2)
    add_topic(cluster, 1, 2)
    # A member that may not lead now, as one whose log directory is offline.
    epoch = cluster.image.brokers[2].epoch
    cluster.replay([BrokerRegistrationChangeRecord(broker_id=NodeId(2), broker_epoch=epoch, is_fenced=True)])
    register(cluster, registration(1, incarnation=2))
    assert summary(cluster.partition("t")) == (-1, (2,), (), ())
    register(cluster, registration(2, incarnation=2))
    assert summary(cluster.partition("t")) == (-1, (), (), (2,))
    start(cluster, 2, incarnation=3)
    assert summary(cluster.partition("t")) == (2, (2,), (), ())
