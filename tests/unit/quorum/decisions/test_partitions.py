"""Adding partitions to topics."""

import pytest
from kio.schema.create_partitions.v3.request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i16, i32
from metadata_cluster import Cluster

from penstock.protocol.errors import ErrorCode
from penstock.protocol.messages import NO_THROTTLE
from penstock.quorum.decisions.partitions import create_partitions
from penstock.quorum.decisions.topics import create_topics


def addition(
    count: int, assignments: tuple[tuple[int, ...], ...] | None = None, name: str = "t"
) -> CreatePartitionsTopic:
    return CreatePartitionsTopic(
        name=TopicName(name),
        count=i32(count),
        assignments=None
        if assignments is None
        else tuple(CreatePartitionsAssignment(broker_ids=tuple(map(BrokerId, replicas))) for replicas in assignments),
    )


def add(
    cluster: Cluster, *topics: CreatePartitionsTopic, validate_only: bool = False
) -> list[tuple[ErrorCode, str | None]]:
    request = CreatePartitionsRequest(topics=topics, timeout=NO_THROTTLE, validate_only=validate_only)
    response = cluster.submit(create_partitions, request)
    return [(ErrorCode(int(result.error_code)), result.error_message) for result in response.results]


@pytest.fixture
def cluster() -> Cluster:
    """Return a cluster of two brokers with a topic 't' of three partitions with one replica."""
    cluster = Cluster()
    cluster.add_brokers(1, 2)
    topic = CreatableTopic(
        name=TopicName("t"), num_partitions=i32(3), replication_factor=i16(1), assignments=(), configs=()
    )
    cluster.submit(create_topics, CreateTopicsRequest(topics=(topic,)))
    return cluster


def test_partitions_are_added_behind_those_that_are_there(cluster: Cluster) -> None:
    before = cluster.image.topics.by_name["t"].partitions
    assert add(cluster, addition(5)) == [(ErrorCode.NONE, None)]
    after = cluster.image.topics.by_name["t"].partitions
    assert (len(after), after[:3]) == (5, before)
    assert all(len(partition.replicas) == 1 for partition in after)


def test_assignments_say_where(cluster: Cluster) -> None:
    assert add(cluster, addition(5, ((2,), (1,)))) == [(ErrorCode.NONE, None)]
    assert [partition.leader for partition in cluster.image.topics.by_name["t"].partitions[3:]] == [2, 1]


def test_validate_only_writes_nothing(cluster: Cluster) -> None:
    assert add(cluster, addition(5), validate_only=True) == [(ErrorCode.NONE, None)]
    assert cluster.records == ()


@pytest.mark.parametrize(
    ("topic", "code", "message"),
    [
        (addition(4, name="no"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        (addition(3), ErrorCode.INVALID_PARTITIONS, "Topic already has 3 partition(s)."),
        (
            addition(2),
            ErrorCode.INVALID_PARTITIONS,
            "The topic t currently has 3 partition(s); 2 would not be an increase.",
        ),
        (
            addition(5, ((1,),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            addition(4, ((1, 2),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes a partition with 2 replica(s), but this is not consistent with "
            "previous partitions, which have 1 replica(s).",
        ),
        (
            addition(4, ((9,),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        (
            addition(10_004),
            ErrorCode.POLICY_VIOLATION,
            "Excessively large number of partitions per request.",
        ),
    ],
)
def test_what_cannot_be_is_refused(
    cluster: Cluster, topic: CreatePartitionsTopic, code: ErrorCode, message: str | None
) -> None:
    assert add(cluster, topic) == [(code, message)]
    assert cluster.records == ()


def test_the_same_topic_twice(cluster: Cluster) -> None:
    assert add(cluster, addition(4), addition(5)) == [(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")]
