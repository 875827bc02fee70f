"""The controller's part in the rules of replication: `tests/unit/broker/partitions` has that of the replicas."""

import pytest
from broker_lives import register, registration
from kio.schema.alter_partition.v3.request import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i64
from metadata_cluster import Cluster
from replicated_topics import fence, make_topic

from penstock.protocol.errors import ErrorCode
from penstock.protocol.ids import NodeId
from penstock.quorum.decisions.configs import Operation, incremental_alter_configs
from penstock.quorum.decisions.heartbeats import fence_expired
from penstock.quorum.decisions.isr_changes import alter_partition
from penstock.quorum.decisions.reassignments import alter_reassignments
from penstock.quorum.metadata.image import ConfigResourceType
from penstock.quorum.metadata.records import FeatureLevelRecord

TOPIC = "t"


@pytest.fixture
def cluster() -> Cluster:
    """Return a cluster of brokers 1 to 4 with a topic 't' on 1, 2 and 3, led by 1, of which two must be in sync."""
    cluster = Cluster()
    cluster.add_brokers(1, 2, 3, 4)
    make_topic(cluster, TOPIC, (1, 2, 3))
    set_min_isr(cluster, "2")
    return cluster


def set_min_isr(cluster: Cluster, value: str) -> None:
    config = AlterableConfig(name="min.insync.replicas", config_operation=i8(Operation.SET), value=value)
    resource = AlterConfigsResource(resource_type=i8(ConfigResourceType.TOPIC), resource_name=TOPIC, configs=(config,))
    cluster.submit(
        incremental_alter_configs, IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    )


def propose(cluster: Cluster, *isr: int, broker_epochs: dict[int, int] | None = None, late: int = 0) -> ErrorCode:
    """Leader 1 proposes an ISR, on the partition as it was `late` partition epochs ago."""
    partition = cluster.partition(TOPIC)
    epochs = {broker_id: broker.epoch for broker_id, broker in cluster.image.brokers.items()} | (broker_epochs or {})
    asked = PartitionData(
        partition_index=i32(0),
        leader_epoch=i32(partition.leader_epoch),
        new_isr_with_epochs=tuple(
            BrokerState(broker_id=BrokerId(member), broker_epoch=i64(epochs[member])) for member in isr
        ),
        partition_epoch=i32(partition.partition_epoch - late),
    )
    request = AlterPartitionRequest(
        broker_id=BrokerId(1),
        broker_epoch=i64(cluster.image.brokers[1].epoch),
        topics=(TopicData(topic_id=cluster.image.topics.by_name[TOPIC].topic_id, partitions=(asked,)),),
    )
    return ErrorCode(int(cluster.submit(alter_partition, request).topics[0].partitions[0].error_code))


def reassign(cluster: Cluster, *replicas: int) -> None:
    partition = ReassignablePartition(partition_index=i32(0), replicas=tuple(map(BrokerId, replicas)))
    request = AlterPartitionReassignmentsRequest(
        topics=(ReassignableTopic(name=TopicName(TOPIC), partitions=(partition,)),)
    )
    cluster.submit(alter_reassignments, request)


def register_again(cluster: Cluster, broker_id: int, *, is_clean: bool) -> None:
    previous = cluster.image.brokers[broker_id].epoch if is_clean else -1
    register(cluster, registration(broker_id, incarnation=77, previous_broker_epoch=previous))


def epochs(cluster: Cluster) -> tuple[int, int]:
    """Leader epoch, partition epoch."""
    partition = cluster.partition(TOPIC)
    return partition.leader_epoch, partition.partition_epoch


# Rule 2: a change of the ISR that was made on another state changes nothing.


def test_rule_2_a_proposal_that_was_made_before_another_change_is_refused(cluster: Cluster) -> None:
    assert propose(cluster, 1, 2) is ErrorCode.NONE
    assert propose(cluster, 1, 3, late=1) is ErrorCode.INVALID_UPDATE_VERSION
    assert cluster.partition(TOPIC).isr == (1, 2)


# Rule 3: refusal is INELIGIBLE_REPLICA.


@pytest.mark.parametrize("reason", ["fenced", "another process"])
def test_rule_3_who_may_not_join_is_ineligible(cluster: Cluster, reason: str) -> None:
    assert propose(cluster, 1, 2) is ErrorCode.NONE
    if reason == "fenced":
        fence(cluster, 3)
    broker_epochs = {} if reason == "fenced" else {3: cluster.image.brokers[3].epoch - 1}
    assert propose(cluster, 1, 2, 3, broker_epochs=broker_epochs) is ErrorCode.INELIGIBLE_REPLICA
    assert cluster.partition(TOPIC).isr == (1, 2)


# Rule 4: the leader epoch rises on every leader change, also to none, on re-registration, and when a reassignment
# removes a replica; not on ISR changes. The partition epoch rises on every change.


def test_rule_4_a_change_of_the_isr_raises_the_partition_epoch_only(cluster: Cluster) -> None:
    leader_epoch, partition_epoch = epochs(cluster)
    propose(cluster, 1, 2)
    propose(cluster, 1, 2, 3)
    assert epochs(cluster) == (leader_epoch, partition_epoch + 2)


def test_rule_4_another_leader_and_none_each_raise_the_leader_epoch(cluster: Cluster) -> None:
    leader_epoch, partition_epoch = epochs(cluster)
    for count, (broker_id, leader) in enumerate([(1, 2), (2, 3), (3, -1)], start=1):
        cluster.submit(fence_expired, NodeId(broker_id))
        assert cluster.partition(TOPIC).leader == leader
        assert epochs(cluster) == (leader_epoch + count, partition_epoch + count)


@pytest.mark.parametrize("is_clean", [True, False])
def test_rule_4_a_registration_ends_the_leadership_of_the_process_before(cluster: Cluster, is_clean: bool) -> None:
    leader_epoch, _ = epochs(cluster)
    register_again(cluster, 1, is_clean=is_clean)
    assert cluster.partition(TOPIC).leader == 2
    assert epochs(cluster)[0] == leader_epoch + 1


def test_rule_4_a_replica_that_is_left_out_is_fenced_by_the_leader_epoch(cluster: Cluster) -> None:
    leader_epoch, _ = epochs(cluster)
    reassign(cluster, 1, 2, 3, 4)
    assert (cluster.partition(TOPIC).leader, epochs(cluster)[0]) == (1, leader_epoch)
    assert propose(cluster, 1, 2, 3, 4) is ErrorCode.NONE
    assert epochs(cluster)[0] == leader_epoch
    reassign(cluster, 1, 2, 4)
    found = cluster.partition(TOPIC)
    assert (found.leader, found.replicas, found.leader_epoch) == (1, (1, 2, 4), leader_epoch + 1)


# Rule 6: changing min.insync.replicas clears the ELR; there is one only with eligible.leader.replicas.version=1.


def test_rule_6_who_leaves_an_isr_that_gets_too_small_stays_eligible(cluster: Cluster) -> None:
    propose(cluster, 1)
    assert cluster.partition(TOPIC).elr == (2, 3)


def test_rule_6_without_the_feature_no_replica_is_eligible(cluster: Cluster) -> None:
    cluster.replay([FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=0)])
    propose(cluster, 1)
    assert cluster.partition(TOPIC).elr == ()


def test_rule_6_another_min_insync_replicas_clears_the_eligible(cluster: Cluster) -> None:
    propose(cluster, 1)
    set_min_isr(cluster, "1")
    assert cluster.partition(TOPIC).elr == ()


def test_rule_6_who_may_have_lost_what_it_acknowledged_is_not_eligible(cluster: Cluster) -> None:
    propose(cluster, 1)
    register_again(cluster, 2, is_clean=False)
    assert cluster.partition(TOPIC).elr == (3,)
