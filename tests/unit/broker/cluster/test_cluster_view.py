"""What the clients of one listener see of brokers, leaders and replicas."""

from uuid import UUID

from typed_ids import node_ids

from penstock.broker.cluster.rules.cluster_view import BrokerAddress, ClusterView
from penstock.protocol.errors import ErrorCode
from penstock.protocol.ids import NO_NODE, BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch
from penstock.quorum.metadata.image import BrokerRegistration, MetadataImage, PartitionRegistration
from penstock.quorum.metadata.records import DIRECTORY_LOST, DIRECTORY_UNASSIGNED, Endpoint

INCARNATION = UUID(int=7)


def broker(broker_id: int, *listeners: str, is_fenced: bool = False) -> BrokerRegistration:
    endpoints = tuple(Endpoint(name=name, host=f"host{broker_id}", port=9092) for name in listeners)
    return BrokerRegistration(
        id=NodeId(broker_id),
        epoch=BrokerEpoch(1),
        incarnation_id=INCARNATION,
        endpoints=endpoints,
        rack="r",
        is_fenced=is_fenced,
    )


def partition(*replicas: int, leader: int, lost: int | None = None) -> PartitionRegistration:
    directories = tuple(DIRECTORY_LOST if replica == lost else DIRECTORY_UNASSIGNED for replica in replicas)
    return PartitionRegistration(
        replicas=node_ids(*replicas),
        directories=directories,
        isr=node_ids(*replicas),
        leader=NodeId(leader),
        leader_epoch=LeaderEpoch(3),
        partition_epoch=PartitionEpoch(5),
    )


def view(*brokers: BrokerRegistration, listener: str = "PLAINTEXT", own_id: int = NO_NODE) -> ClusterView:
    return ClusterView(MetadataImage(brokers={one.id: one for one in brokers}), listener, NodeId(own_id))


def test_each_listener_sees_its_own_addresses() -> None:
    cluster = view(broker(1, "PLAINTEXT", "OTHER"), broker(2, "OTHER"))
    assert cluster.brokers == (BrokerAddress(1, "host1", 9092, "r", False),)


def test_fenced_brokers_are_seen_only_by_those_who_ask() -> None:
    cluster = view(broker(1, "PLAINTEXT", is_fenced=True), broker(2, "PLAINTEXT"))
    assert [one.id for one in cluster.brokers] == [2]
    assert [one.id for one in cluster.all_brokers] == [1, 2]


def test_a_broker_that_answers_is_seen_in_place_of_none() -> None:
    own, other = broker(1, "PLAINTEXT", is_fenced=True), broker(2, "PLAINTEXT")
    assert [one.id for one in view(own, other, own_id=1).brokers_or_own] == [2]
    assert [one.id for one in view(own, own_id=1).brokers_or_own] == [1]
    assert view(own).brokers_or_own == view(own, own_id=1, listener="OTHER").brokers_or_own == ()


def test_controller_is_a_live_broker() -> None:
    assert view(broker(1, "PLAINTEXT", is_fenced=True), broker(2, "PLAINTEXT")).controller_id == 2
    assert view(broker(1, "PLAINTEXT", is_fenced=True)).controller_id == -1


def test_partition_with_live_leader_has_no_error() -> None:
    seen = view(broker(1, "PLAINTEXT"), broker(2, "PLAINTEXT")).partition(partition(1, 2, leader=2))
    assert seen == (ErrorCode.NONE, 2, (1, 2), (1, 2), ())


def test_leader_that_is_gone_is_not_available() -> None:
    seen = view(broker(1, "PLAINTEXT")).partition(partition(1, 2, leader=2))
    assert seen == (ErrorCode.LEADER_NOT_AVAILABLE, -1, (1, 2), (1, 2), (2,))


def test_leader_without_the_listener_has_none() -> None:
    seen = view(broker(1, "PLAINTEXT"), broker(2, "OTHER")).partition(partition(1, 2, leader=2))
    assert seen == (ErrorCode.LISTENER_NOT_FOUND, -1, (1, 2), (1, 2), (2,))


def test_replica_in_a_lost_directory_is_offline() -> None:
    seen = view(broker(1, "PLAINTEXT"), broker(2, "PLAINTEXT")).partition(partition(1, 2, leader=1, lost=2))
    assert seen.error_code == ErrorCode.NONE
    assert seen.offline_replicas == (2,)


def test_version_0_names_only_live_replicas_and_says_that_some_are_missing() -> None:
    seen = view(broker(1, "PLAINTEXT")).partition(partition(1, 2, leader=1), is_version_0=True)
    assert seen == (ErrorCode.REPLICA_NOT_AVAILABLE, 1, (1,), (1,), (2,))
