"""Drained brokers (decision 19): what they lead, what they take, and what comes back."""

from random import Random

import pytest
from broker_lives import beat, register, registration
from drained_brokers import drain, drain_request
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.alter_configs.v2.request import AlterableConfig as LegacyConfig
from kio.schema.alter_configs.v2.request import AlterConfigsRequest
from kio.schema.alter_configs.v2.request import AlterConfigsResource as LegacyResource
from kio.schema.alter_partition.v3.request import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.types import BrokerId, TopicName
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.static.primitive import i8, i32, i64
from metadata_cluster import Cluster
from replicated_topics import make_topic

from penstock.protocol.errors import ErrorCode
from penstock.protocol.ids import ControllerEpoch, NodeId
from penstock.quorum.decisions.broker_removal import unregister_broker
from penstock.quorum.decisions.configs import alter_configs, incremental_alter_configs
from penstock.quorum.decisions.decision_cost import weight
from penstock.quorum.decisions.elections import elect_leaders
from penstock.quorum.decisions.heartbeats import fence_expired
from penstock.quorum.decisions.isr_changes import alter_partition
from penstock.quorum.decisions.partition_changes import acceptable_leader
from penstock.quorum.decisions.periodic_elections import balance_leaders
from penstock.quorum.decisions.placement import place
from penstock.quorum.metadata.image import MetadataImage
from penstock.quorum.metadata.records import FeatureLevelRecord, PartitionChangeRecord
from penstock.quorum.metadata.snapshot_records import image_chunks, image_from_chunks

BROKERS = (1, 2, 3, 4)


@pytest.fixture
def cluster() -> Cluster:
    """Return a cluster of brokers 1 to 4 with a topic 't' of three partitions, which prefer 1, 2 and 3."""
    cluster = Cluster()
    cluster.add_brokers(*BROKERS)
    make_topic(cluster, "t", (1, 2, 3), (2, 3, 4), (3, 1, 2))
    return cluster


def leaders(cluster: Cluster, topic: str = "t") -> list[int]:
    return [partition.leader for partition in cluster.image.topics.by_name[topic].partitions]


def change_isr(cluster: Cluster, index: int, *isr: int) -> ErrorCode:
    """Let the leader of 't' propose an ISR."""
    partition = cluster.partition("t", index)
    asked = PartitionData(
        partition_index=i32(index),
        leader_epoch=i32(partition.leader_epoch),
        new_isr_with_epochs=tuple(BrokerState(broker_id=BrokerId(one), broker_epoch=i64(-1)) for one in isr),
        partition_epoch=i32(partition.partition_epoch),
    )
    request = AlterPartitionRequest(
        broker_id=BrokerId(partition.leader),
        broker_epoch=i64(cluster.image.brokers[partition.leader].epoch),
        topics=(TopicData(topic_id=cluster.image.topics.by_name["t"].topic_id, partitions=(asked,)),),
    )
    return ErrorCode(int(cluster.submit(alter_partition, request).topics[0].partitions[0].error_code))


def lone_drained_leaders(image: MetadataImage) -> list[tuple[str, int]]:
    """Return the partitions that a drained broker leads although another could."""
    return [
        (topic.name, index)
        for topic in image.topics.by_id.values()
        for index, partition in enumerate(topic.partitions)
        if partition.leader in image.configs.drained_brokers
        and any(
            replica not in image.configs.drained_brokers and acceptable_leader(image, partition)(replica)
            for replica in partition.isr
        )
    ]


def test_leaderships_of_a_drained_broker_move_in_the_same_decision(cluster: Cluster) -> None:
    drain(cluster, 1)
    assert cluster.image.configs.drained_brokers == {1}
    assert leaders(cluster) == [2, 2, 3]
    assert cluster.partition("t").isr == (1, 2, 3)


def test_brokers_drained_in_one_request_hand_nothing_to_each_other(cluster: Cluster) -> None:
    epoch = cluster.partition("t").leader_epoch
    drain(cluster, 1, 2)
    assert leaders(cluster) == [3, 3, 3]
    assert cluster.partition("t").leader_epoch == epoch + 1


def test_the_only_in_sync_replica_leads_on_until_another_has_joined(cluster: Cluster) -> None:
    change_isr(cluster, 0, 1)
    drain(cluster, 1)
    assert leaders(cluster) == [1, 2, 3]
    assert change_isr(cluster, 0, 1, 3) is ErrorCode.NEW_LEADER_ELECTED
    assert leaders(cluster) == [3, 2, 3]


def test_a_drained_broker_leads_again_where_all_others_are_gone(cluster: Cluster) -> None:
    drain(cluster, 1)
    for broker_id in (2, 3):
        cluster.submit(fence_expired, NodeId(broker_id))
    assert leaders(cluster) == [1, 4, 1]


def test_where_the_isr_is_empty_an_eligible_broker_leads_before_a_drained_one(cluster: Cluster) -> None:
    cluster.replay([FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)])
    topic_id = cluster.image.topics.by_name["t"].topic_id
    cluster.replay(
        [
            PartitionChangeRecord(
                topic_id=topic_id, partition_id=0, isr=(), elr=(NodeId(1), NodeId(2)), leader=NodeId(-1)
            )
        ]
    )
    request = ElectLeadersRequest(
        election_type=i8(1),
        topic_partitions=(TopicPartitions(topic=TopicName("t"), partitions=(i32(0),)),),
    )
    drain(cluster, 1)
    cluster.submit(elect_leaders, request)
    assert (cluster.partition("t").leader, cluster.partition("t").isr) == (2, (2,))


def test_a_drained_broker_is_no_preferred_leader(cluster: Cluster) -> None:
    drain(cluster, 1)
    request = ElectLeadersRequest(
        election_type=i8(0),
        topic_partitions=(TopicPartitions(topic=TopicName("t"), partitions=(i32(0),)),),
    )
    [result] = cluster.submit(elect_leaders, request).replica_election_results
    assert int(result.partition_result[0].error_code) == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    cluster.submit(balance_leaders, None)
    assert cluster.records == ()


def test_leaderships_come_back_at_once_when_the_drain_ends(cluster: Cluster) -> None:
    drain(cluster, 1, 2)
    drain(cluster, 1, 2, is_drained=False)
    assert leaders(cluster) == [1, 2, 3]
    assert not cluster.image.configs.drained_brokers


def test_a_broker_that_is_not_in_sync_yet_gets_its_leaderships_by_the_check_of_imbalance(cluster: Cluster) -> None:
    drain(cluster, 1)
    change_isr(cluster, 0, 2, 3)
    drain(cluster, 1, is_drained=False)
    assert leaders(cluster) == [2, 2, 3]
    change_isr(cluster, 0, 1, 2, 3)
    cluster.submit(balance_leaders, None)
    assert leaders(cluster) == [1, 2, 3]


def test_a_broker_whose_drain_ends_takes_over_from_one_that_is_drained(cluster: Cluster) -> None:
    change_isr(cluster, 0, 1, 2)
    drain(cluster, 1, 2)
    assert cluster.partition("t").leader == 1
    drain(cluster, 2, is_drained=False)
    assert cluster.partition("t").leader == 2


def test_a_drain_outlives_the_process_of_its_broker_and_snapshots(cluster: Cluster) -> None:
    drain(cluster, 1)
    register(cluster, registration(1, incarnation=77, previous_broker_epoch=cluster.image.brokers[1].epoch))
    assert cluster.image.configs.drained_brokers == {1}
    loaded = image_from_chunks(list(image_chunks(cluster.image)), offset=cluster.image.offset, epoch=ControllerEpoch(1))
    assert loaded.configs.drained_brokers == {1}


def test_a_drain_ends_with_the_registration(cluster: Cluster) -> None:
    drain(cluster, 1)
    cluster.submit(unregister_broker, UnregisterBrokerRequest(broker_id=BrokerId(1)))
    assert not cluster.image.configs.drained_brokers


def test_a_request_that_replaces_all_configs_ends_a_drain_that_it_does_not_name(cluster: Cluster) -> None:
    drain(cluster, 1)
    resource = LegacyResource(
        resource_type=i8(4), resource_name="1", configs=(LegacyConfig(name="log.cleaner.threads", value="1"),)
    )
    request = AlterConfigsRequest(resources=(resource,), validate_only=False)
    assert weight(cluster.image, request) == cluster.image.topics.partition_count
    cluster.submit(alter_configs, request)
    assert leaders(cluster) == [1, 2, 3]


def test_a_drain_counts_as_a_decision_about_all_partitions(cluster: Cluster) -> None:
    assert weight(cluster.image, drain_request(1)) == cluster.image.topics.partition_count


@pytest.mark.parametrize("value", ["true", " TRUE", "until-restart", "Until-Restart "])
def test_a_broker_is_drained_for_good_or_until_its_restart(cluster: Cluster, value: str) -> None:
    drain(cluster, 1, value=value)
    assert cluster.image.configs.drained_brokers == {1}
    assert 1 not in leaders(cluster)
    is_until_restart = value.strip().lower() == "until-restart"
    assert cluster.image.configs.is_drained_until_restart(NodeId(1)) is is_until_restart
    drain(cluster, 1, is_drained=False)
    assert leaders(cluster) == [1, 2, 3]


@pytest.mark.parametrize(("name", "value"), [("1", "perhaps"), ("77", "true")])
def test_what_cannot_be_a_drain_is_refused(cluster: Cluster, name: str, value: str) -> None:
    config = AlterableConfig(name="broker.drained", config_operation=i8(0), value=value)
    resource = AlterConfigsResource(resource_type=i8(4), resource_name=name, configs=(config,))
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    [result] = cluster.submit(incremental_alter_configs, request).responses
    assert int(result.error_code) != 0
    assert not cluster.records


def test_all_brokers_at_once_cannot_be_drained(cluster: Cluster) -> None:
    config = AlterableConfig(name="broker.drained", config_operation=i8(0), value="true")
    resource = AlterConfigsResource(resource_type=i8(4), resource_name="", configs=(config,))
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    [result] = cluster.submit(incremental_alter_configs, request).responses
    assert int(result.error_code) == ErrorCode.INVALID_REQUEST
    assert "broker id must be specified" in (result.error_message or "")


def test_new_partitions_leave_a_drained_broker_out_where_the_others_are_enough(cluster: Cluster) -> None:
    drain(cluster, 1)
    for replicas in place(cluster.image, partition_count=30, replication_factor=3, random=Random(1)):
        assert 1 not in replicas
    for replicas in place(cluster.image, partition_count=30, replication_factor=4, random=Random(1)):
        assert set(replicas) == set(BROKERS)
        assert replicas[0] != 1


def test_a_new_partition_is_led_by_another_although_it_prefers_a_drained_broker(cluster: Cluster) -> None:
    drain(cluster, 1)
    make_topic(cluster, "new", (1, 2))
    make_topic(cluster, "single", (1,))
    assert (leaders(cluster, "new"), leaders(cluster, "single")) == ([2], [1])


def test_a_cluster_of_drained_brokers_still_serves(cluster: Cluster) -> None:
    drain(cluster, *BROKERS)
    assert leaders(cluster) == [1, 2, 3]
    placed = place(cluster.image, partition_count=8, replication_factor=2, random=Random(1))
    assert {replica for replicas in placed for replica in replicas} == set(BROKERS)


@pytest.mark.thorough
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_order_of_events_leaves_a_drained_leader_beside_one_that_could_lead(data: st.DataObject) -> None:
    cluster = Cluster()
    cluster.add_brokers(*BROKERS)
    make_topic(cluster, "t", (1, 2, 3), (2, 3, 4), (3, 1, 2), (4, 2, 1))
    make_topic(cluster, "single", (1,), (2,), (3,), (4,))
    for _ in range(data.draw(st.integers(1, 12))):
        broker_id = data.draw(st.sampled_from(BROKERS))
        match data.draw(st.sampled_from(("drain", "undrain", "fence", "restart", "beat", "stop", "isr", "balance"))):
            case "drain":
                drain(cluster, broker_id)
            case "undrain":
                drain(cluster, broker_id, is_drained=False)
            case "fence":
                cluster.submit(fence_expired, NodeId(broker_id))
            case "restart":
                previous = cluster.image.brokers[broker_id].epoch
                incarnation = 1_000 + cluster.image.offset
                register(cluster, registration(broker_id, incarnation=incarnation, previous_broker_epoch=previous))
            case "beat":
                beat(cluster, broker_id)
            case "stop":
                beat(cluster, broker_id, wants_shutdown=True)
            case "isr":
                index = data.draw(st.integers(0, 3))
                partition = cluster.partition("t", index)
                if partition.leader >= 0:
                    others = [
                        one
                        for one in partition.replicas
                        if one != partition.leader and cluster.image.brokers[one].is_active
                    ]
                    joined = data.draw(st.sets(st.sampled_from(others))) if others else set()
                    change_isr(cluster, index, partition.leader, *sorted(joined))
            case _:
                cluster.submit(balance_leaders, None)
        assert lone_drained_leaders(cluster.image) == []
        for partition in cluster.image.topics.by_name["t"].partitions:
            # Availability first: a replica that is in sync and may lead does.
            assert partition.leader >= 0 or not any(map(acceptable_leader(cluster.image, partition), partition.isr))
