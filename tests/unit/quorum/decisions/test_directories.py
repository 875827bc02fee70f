"""AssignReplicasToDirs: in which log directory replicas are, and what that means for who leads (KIP-858)."""

from uuid import UUID

import pytest
from kio.schema.assign_replicas_to_dirs.v0.request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from kio.schema.errors import ErrorCode as WireErrorCode
from kio.schema.types import BrokerId
from kio.static.primitive import i32, i64
from metadata_cluster import Cluster
from replicated_topics import fence
from typed_ids import node_ids

from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch, TopicId
from penstock.protocol.structs import replace
from penstock.quorum.decisions.directories import assign_replicas_to_dirs
from penstock.quorum.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION
from penstock.quorum.metadata.image import BrokerRegistration, ConfigResourceType
from penstock.quorum.metadata.records import (
    DIRECTORY_LOST,
    DIRECTORY_UNASSIGNED,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)

FIRST, SECOND, GONE = UUID(int=501), UUID(int=502), UUID(int=503)
TOPIC_ID = TopicId(UUID(int=77))


@pytest.fixture
def cluster() -> Cluster:
    """Broker 1 has two directories, broker 2 one; they share a topic of two partitions, which 1 leads."""
    cluster = Cluster()
    for broker_id, directories in ((1, (FIRST, SECOND)), (2, (UUID(int=600),))):
        record = RegisterBrokerRecord(
            broker_id=NodeId(broker_id),
            incarnation_id=UUID(int=broker_id),
            broker_epoch=BrokerEpoch(broker_id * 10),
            is_fenced=False,
            log_dirs=directories,
        )
        cluster.replay([record])
    cluster.replay([TopicRecord(name="t", topic_id=TOPIC_ID), partition(0), partition(1)])
    return cluster


def partition(
    index: int, directory: UUID = DIRECTORY_UNASSIGNED, replicas: tuple[int, ...] = (1, 2)
) -> PartitionRecord:
    return PartitionRecord(
        topic_id=TOPIC_ID,
        partition_id=index,
        replicas=node_ids(*replicas),
        isr=node_ids(*replicas),
        leader=NodeId(1),
        leader_epoch=LeaderEpoch(0),
        partition_epoch=PartitionEpoch(0),
        directories=tuple(directory if replica == 1 else UUID(int=600) for replica in replicas),
    )


def request(*indexes: int, directory: UUID, topic_id: UUID = TOPIC_ID, epoch: int = 10) -> AssignReplicasToDirsRequest:
    partitions = tuple(PartitionData(partition_index=i32(index)) for index in indexes)
    return AssignReplicasToDirsRequest(
        broker_id=BrokerId(1),
        broker_epoch=i64(epoch),
        directories=(DirectoryData(id_=directory, topics=(TopicData(topic_id=topic_id, partitions=partitions),)),),
    )


def assign(cluster: Cluster, wanted: AssignReplicasToDirsRequest) -> list[WireErrorCode]:
    response = cluster.submit(assign_replicas_to_dirs, wanted)
    return [one.error_code for one in response.directories[0].topics[0].partitions]


def broker(cluster: Cluster) -> BrokerRegistration:
    return cluster.image.brokers[1]


def test_a_replica_is_where_its_broker_says(cluster: Cluster) -> None:
    assert assign(cluster, request(0, 1, directory=SECOND)) == [WireErrorCode.none] * 2
    for index in (0, 1):
        found = cluster.partition("t", index)
        assert (found.directory_of(NodeId(1)), found.directory_of(NodeId(2))) == (SECOND, UUID(int=600))
        assert (found.leader, found.isr, found.leader_epoch) == (1, (1, 2), 0)


def test_what_is_known_already_is_no_record(cluster: Cluster) -> None:
    assign(cluster, request(0, directory=FIRST))
    assert not cluster.decide(assign_replicas_to_dirs, request(0, directory=FIRST)).records


def test_unknown_replicas_are_told_of_one_by_one(cluster: Cluster) -> None:
    cluster.replay([partition(2, replicas=(2,))])
    assert assign(cluster, request(0, 2, 9, -1, directory=FIRST)) == [
        WireErrorCode.none,
        WireErrorCode.not_leader_or_follower,
        WireErrorCode.unknown_topic_or_partition,
        WireErrorCode.unknown_topic_or_partition,
    ]
    assert assign(cluster, request(0, directory=FIRST, topic_id=UUID(int=9))) == [WireErrorCode.unknown_topic_id]


def test_only_the_registered_process_may_say_it(cluster: Cluster) -> None:
    with pytest.raises(KafkaError) as caught:
        cluster.decide(assign_replicas_to_dirs, request(0, directory=FIRST, epoch=9))
    assert caught.value.code == ErrorCode.STALE_BROKER_EPOCH


def test_a_replica_in_a_directory_that_is_offline_hands_its_leadership_over(cluster: Cluster) -> None:
    cluster.replay(
        [BrokerRegistrationChangeRecord(broker_id=NodeId(1), broker_epoch=BrokerEpoch(10), log_dirs=(FIRST,))]
    )
    assign(cluster, request(0, directory=SECOND))
    found = cluster.partition("t", 0)
    assert (found.directory_of(NodeId(1)), found.leader, found.isr) == (SECOND, 2, (2,))
    assert cluster.partition("t", 1).leader == 1


def test_a_replica_whose_log_is_lost_hands_its_leadership_over(cluster: Cluster) -> None:
    cluster.replay([partition(2, FIRST)])
    assign(cluster, request(2, directory=DIRECTORY_LOST))
    found = cluster.partition("t", 2)
    assert (found.directory_of(NodeId(1)), found.leader, found.isr) == (DIRECTORY_LOST, 2, (2,))


def test_a_leader_whose_log_is_lost_stays_until_another_can_stand_in_for_it(cluster: Cluster) -> None:
    cluster.replay([FeatureLevelRecord(name=ELIGIBLE_LEADER_REPLICAS_VERSION, feature_level=1)])
    cluster.replay([replace(partition(2, FIRST), isr=node_ids(1), elr=node_ids(2))])
    fence(cluster, 2)
    assert assign(cluster, request(2, directory=DIRECTORY_LOST)) == [WireErrorCode.none]
    found = cluster.partition("t", 2)
    assert (found.directory_of(NodeId(1)), found.leader, found.isr, found.elr) == (FIRST, 1, (1,), (2,))
    fence(cluster, 2, is_fenced=False)
    assign(cluster, request(2, directory=DIRECTORY_LOST))
    found = cluster.partition("t", 2)
    assert (found.directory_of(NodeId(1)), found.leader, found.isr) == (DIRECTORY_LOST, 2, (2,))


def test_a_replica_whose_log_is_lost_is_not_eligible(cluster: Cluster) -> None:
    """Its broker may throw away what is left of it."""
    cluster.replay([FeatureLevelRecord(name=ELIGIBLE_LEADER_REPLICAS_VERSION, feature_level=1)])
    cluster.replay([replace(partition(2, FIRST), leader=NodeId(2), isr=node_ids(2), elr=node_ids(1))])
    assign(cluster, request(2, directory=DIRECTORY_LOST))
    found = cluster.partition("t", 2)
    assert (found.directory_of(NodeId(1)), found.leader, found.isr, found.elr) == (DIRECTORY_LOST, 2, (2,), ())


def test_a_follower_whose_log_is_lost_leaves_the_isr(cluster: Cluster) -> None:
    cluster.replay([replace(partition(2, FIRST), leader=NodeId(2))])
    assign(cluster, request(2, directory=DIRECTORY_LOST))
    found = cluster.partition("t", 2)
    assert (found.directory_of(NodeId(1)), found.leader, found.isr) == (DIRECTORY_LOST, 2, (2,))


def test_a_follower_whose_log_is_lost_cannot_fetch_as_if_it_had_it(cluster: Cluster) -> None:
    """What it sent before may be long on its way, and come when it is known again where the replica is."""
    cluster.replay([replace(partition(2, FIRST), leader=NodeId(2), isr=node_ids(2))])
    before = cluster.partition("t", 2).leader_epoch
    assign(cluster, request(2, directory=DIRECTORY_LOST))
    assign(cluster, request(2, directory=DIRECTORY_LOST))
    assert (cluster.partition("t", 2).leader, cluster.partition("t", 2).leader_epoch) == (2, before + 1)
    assign(cluster, request(2, directory=FIRST))
    assert cluster.partition("t", 2).leader_epoch == before + 1


def test_a_leader_whose_log_is_lost_makes_way_for_any_replica_where_elections_may_be_unclean(cluster: Cluster) -> None:
    unclean = ConfigRecord(
        resource_type=ConfigResourceType.TOPIC, resource_name="t", name="unclean.leader.election.enable", value="true"
    )
    cluster.replay([replace(partition(2, FIRST), isr=node_ids(1)), unclean])
    assign(cluster, request(2, directory=DIRECTORY_LOST))
    assert cluster.partition("t", 2).leader == 2


def test_a_replica_that_begins_anew_elsewhere_is_in_no_isr_and_not_eligible(cluster: Cluster) -> None:
    cluster.replay([partition(2, GONE)])
    assign(cluster, request(2, directory=FIRST))
    found = cluster.partition("t", 2)
    assert (found.directory_of(NodeId(1)), found.leader, found.isr, found.elr) == (FIRST, 2, (2,), ())


def test_an_only_replica_that_begins_anew_is_not_led_as_if_it_had_its_records(cluster: Cluster) -> None:
    cluster.replay([partition(2, GONE, replicas=(1,))])
    assign(cluster, request(2, directory=FIRST))
    found = cluster.partition("t", 2)
    assert (found.directory_of(NodeId(1)), found.leader, found.isr, found.elr, found.last_known_elr) == (
        FIRST,
        -1,
        (),
        (),
        (),
    )
    assert broker(cluster).is_active
