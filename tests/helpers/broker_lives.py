"""Brokers that register, are heard and stop, for tests of the controller's decisions."""

from uuid import UUID

import pytest
from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
from kio.schema.broker_heartbeat.v2.response import BrokerHeartbeatResponse
from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest, Feature, Listener
from kio.schema.create_topics.v7.request import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i16, i32, i64, u16
from metadata_cluster import CLUSTER_ID, Cluster, directory_id

from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.quorum.decisions.brokers import register_broker
from penstock.quorum.decisions.heartbeats import heartbeat
from penstock.quorum.decisions.topics import create_topics
from penstock.quorum.metadata.features import FEATURES
from penstock.quorum.metadata.image import BrokerRegistration, PartitionRegistration
from penstock.quorum.metadata.incarnations import incarnation_id_of

LEVELS = {name: (0, feature.initial_level) for name, feature in FEATURES.items()}


def registration(
    broker_id: int = 1,
    *,
    incarnation: int = 1,
    process: int = 0,
    directories: tuple[UUID, ...] | None = None,
    previous_broker_epoch: int = -1,
    cluster_id: str = CLUSTER_ID,
    features: dict[str, tuple[int, int]] | None = None,
) -> BrokerRegistrationRequest:
    """`incarnation` is the number of the start on the log directories, `process` tells two of one number apart."""
    levels = LEVELS if features is None else features
    return BrokerRegistrationRequest(
        broker_id=BrokerId(broker_id),
        cluster_id=cluster_id,
        incarnation_id=incarnation_id_of(incarnation, process),
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
