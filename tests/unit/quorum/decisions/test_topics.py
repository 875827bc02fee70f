"""Creating and deleting topics: what is refused, with which sentence, and what is written."""

from dataclasses import replace
from uuid import UUID

import pytest
from kio.schema.create_topics.v7.request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.create_topics.v7.response import CreatableTopicResult
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i16, i32
from metadata_cluster import Cluster, directory_id

from penstock.protocol.errors import ErrorCode
from penstock.protocol.messages import NO_THROTTLE
from penstock.quorum.decisions.answers import wire_code
from penstock.quorum.decisions.topics import create_topics, delete_topics, new_topic_id
from penstock.quorum.metadata.image import ConfigResource, ConfigResourceType


def topic(
    name: str,
    *,
    partitions: int = -1,
    replication_factor: int = -1,
    assignments: dict[int, tuple[int, ...]] | None = None,
    configs: dict[str, str | None] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=TopicName(name),
        num_partitions=i32(partitions),
        replication_factor=i16(replication_factor),
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=i32(index), broker_ids=tuple(map(BrokerId, replicas)))
            for index, replicas in (assignments or {}).items()
        ),
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()),
    )


def create(cluster: Cluster, *topics: CreatableTopic, validate_only: bool = False) -> tuple[CreatableTopicResult, ...]:
    return cluster.submit(create_topics, CreateTopicsRequest(topics=topics, validate_only=validate_only)).topics


def created(cluster: Cluster, *names: str) -> None:
    for result in create(cluster, *(topic(name) for name in names)):
        assert result.error_code == wire_code(ErrorCode.NONE), result.error_message


def refused(cluster: Cluster, creatable: CreatableTopic) -> tuple[ErrorCode, str | None]:
    (result,) = create(cluster, creatable)
    assert cluster.records == ()
    return ErrorCode(int(result.error_code)), result.error_message


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.add_brokers(1)
    return cluster


def test_a_topic_is_created_with_the_defaults(cluster: Cluster) -> None:
    (result,) = create(cluster, topic("flights"))
    assert (result.error_code, result.error_message) == (wire_code(ErrorCode.NONE), None)
    assert (result.num_partitions, result.replication_factor) == (1, 1)
    created_topic = cluster.image.topics.by_name["flights"]
    assert result.topic_id == created_topic.topic_id
    (partition,) = created_topic.partitions
    assert (partition.replicas, partition.isr, partition.leader) == ((1,), (1,), 1)
    assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)
    assert partition.directories == (directory_id(1),)


def test_the_answer_has_every_config_by_name_and_the_topic_s_own_among_them(cluster: Cluster) -> None:
    (result,) = create(cluster, topic("flights", configs={"retention.ms": "-1", "cleanup.policy": "compact"}))
    assert result.configs is not None
    names = [config.name for config in result.configs]
    assert names == sorted(names)
    sources = {config.name: (config.value, config.config_source) for config in result.configs}
    assert sources["retention.ms"] == ("-1", 1)
    assert sources["min.insync.replicas"] == ("1", 3)
    assert sources["segment.bytes"] == ("1073741824", 5)
    resource = ConfigResource(ConfigResourceType.TOPIC, "flights")
    assert cluster.image.configs.of(resource) == {"retention.ms": "-1", "cleanup.policy": "compact"}


def test_validate_only_answers_and_writes_nothing(cluster: Cluster) -> None:
    (result,) = create(cluster, topic("flights", partitions=3), validate_only=True)
    assert (result.error_code, result.num_partitions) == (wire_code(ErrorCode.NONE), 3)
    assert cluster.records == ()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
        ("a b", "'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("ä", "'ä' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("a\n", "'a\n' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    ],
)
def test_bad_names_are_refused(cluster: Cluster, name: str, reason: str) -> None:
    assert refused(cluster, topic(name)) == (
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        f"Topic name is invalid: {reason}",
    )


def test_the_longest_name_is_taken(cluster: Cluster) -> None:
    created(cluster, "x" * 249, "A.b-C_9")


def test_an_existing_name_is_refused(cluster: Cluster) -> None:
    created(cluster, "flights")
    assert refused(cluster, topic("flights")) == (
        ErrorCode.TOPIC_ALREADY_EXISTS,
        "Topic 'flights' already exists.",
    )


@pytest.mark.parametrize(("existing", "new"), [("a.b", "a_b"), ("a_b", "a.b"), ("a.b_c", "a_b.c")])
def test_names_that_differ_in_dots_and_underscores_collide(cluster: Cluster, existing: str, new: str) -> None:
    created(cluster, existing)
    assert refused(cluster, topic(new)) == (
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        f"Topic '{new}' collides with existing topic: {existing}",
    )
    cluster.submit(delete_topics, deletion(existing))
    created(cluster, new)


@pytest.mark.parametrize(
    ("creatable", "code", "message"),
    [
        (
            topic("t", replication_factor=0),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            topic("t", replication_factor=-2),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            topic("t", replication_factor=2),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be reached because "
            "only 1 broker(s) are registered or some brokers have all their log directories cordoned.",
        ),
        (
            topic("t", partitions=0),
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            topic("t", replication_factor=1, assignments={0: (1,)}),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        ),
        (
            topic("t", partitions=1, assignments={0: (1,)}),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            topic("t", assignments={0: ()}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            topic("t", assignments={0: (7,)}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 7, but no such broker is registered.",
        ),
        (
            topic("t", assignments={0: (1, 1)}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            topic("t", assignments={0: (1,), 2: (1,)}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            topic("t", configs={"retention.ms": None, "a": None}),
            ErrorCode.INVALID_CONFIG,
            "Null value not supported for topic configs: retention.ms,a",
        ),
        (topic("t", configs={"no.such": "1"}), ErrorCode.INVALID_CONFIG, "Unknown topic config name: no.such"),
        (
            topic("t", configs={"retention.ms": "x"}),
            ErrorCode.INVALID_CONFIG,
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
    ],
)
def test_what_cannot_be_is_refused(cluster: Cluster, creatable: CreatableTopic, code: ErrorCode, message: str) -> None:
    assert refused(cluster, creatable) == (code, message)


def test_manual_assignments_place_as_they_say(cluster: Cluster) -> None:
    cluster.add_brokers(2, 3)
    (result,) = create(cluster, topic("t", assignments={1: (3, 1), 0: (1, 2)}))
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 2, 2)
    assert [partition.replicas for partition in cluster.image.topics.by_name["t"].partitions] == [(1, 2), (3, 1)]
    assert cluster.partition("t", 1).leader == 3


def test_manual_assignments_must_agree_in_their_number_of_replicas(cluster: Cluster) -> None:
    cluster.add_brokers(2)
    assert refused(cluster, topic("t", assignments={0: (1, 2), 1: (1,)})) == (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes a partition with 1 replica(s), but this is not consistent with "
        "previous partitions, which have 2 replica(s).",
    )


def test_the_same_partition_twice_in_an_assignment(cluster: Cluster) -> None:
    twice = topic("t", assignments={0: (1,)})
    twice = CreatableTopic(
        name=twice.name,
        num_partitions=twice.num_partitions,
        replication_factor=twice.replication_factor,
        assignments=twice.assignments * 2,
        configs=(),
    )
    assert refused(cluster, twice) == (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "Found multiple manual partition assignments for partition 0",
    )


def test_fenced_brokers_cannot_lead_a_new_partition(cluster: Cluster) -> None:
    cluster.add_brokers(2, is_fenced=True)
    assert refused(cluster, topic("t", assignments={0: (2,)})) == (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "All brokers specified in the manual partition assignment for partition 0 are fenced or in controlled "
        "shutdown.",
    )
    (result,) = create(cluster, topic("t", assignments={0: (2, 1)}))
    assert result.error_code == wire_code(ErrorCode.NONE)
    assert (cluster.partition("t").isr, cluster.partition("t").leader) == ((1,), 1)


@pytest.mark.parametrize(("broker_count", "expected"), [(1, 1), (2, 2), (3, 3), (5, 3)])
def test_default_of_three_replicas_is_what_smaller_clusters_have_brokers(
    cluster: Cluster, broker_count: int, expected: int
) -> None:
    cluster.add_brokers(*range(2, broker_count + 1))
    cluster.config = replace(cluster.config, default_replication_factor=3, is_replication_factor_capped=True)
    create(cluster, topic("t"))
    assert len(cluster.partition("t").replicas) == expected


def test_default_that_was_set_is_what_it_says(cluster: Cluster) -> None:
    cluster.config = replace(cluster.config, default_replication_factor=2)
    assert refused(cluster, topic("t"))[0] == ErrorCode.INVALID_REPLICATION_FACTOR


def test_without_a_live_broker_nothing_is_created() -> None:
    cluster = Cluster()
    cluster.add_brokers(1, is_fenced=True)
    assert refused(cluster, topic("t")) == (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Unable to replicate the partition 1 time(s): All brokers are currently fenced, "
        "or have all their log directories cordoned.",
    )


def test_duplicates_and_the_metadata_topic_are_refused_and_the_others_created(cluster: Cluster) -> None:
    results = create(cluster, topic("a"), topic("b"), topic("__cluster_metadata"), topic("b"))
    assert [(str(result.name), ErrorCode(int(result.error_code)), result.error_message) for result in results] == [
        ("a", ErrorCode.NONE, None),
        ("b", ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
        (
            "__cluster_metadata",
            ErrorCode.INVALID_REQUEST,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
    ]
    assert set(cluster.image.topics.by_name) == {"a"}


def test_too_many_partitions_in_one_request(cluster: Cluster) -> None:
    results = create(cluster, topic("a", partitions=9_999), topic("b", partitions=2))
    assert {(ErrorCode(int(result.error_code)), result.error_message) for result in results} == {
        (ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    }
    assert cluster.records == ()
    created(cluster, "a")
    (result,) = create(cluster, topic("b", partitions=10_000))
    assert result.error_code == wire_code(ErrorCode.NONE)


def test_topic_ids_never_begin_with_a_minus(cluster: Cluster) -> None:
    ids = {new_topic_id(cluster.random) for _ in range(2_000)}
    assert len(ids) == 2_000
    assert not any(topic_id.bytes[0] >> 2 == 62 for topic_id in ids)


def deletion(*topics: str | UUID | tuple[str, UUID] | None) -> DeleteTopicsRequest:
    states = []
    for item in topics:
        name, topic_id = item if isinstance(item, tuple) else (item, None)
        if isinstance(name, UUID):
            name, topic_id = None, name
        states.append(DeleteTopicState(name=None if name is None else TopicName(name), topic_id=topic_id))
    return DeleteTopicsRequest(topics=tuple(states), timeout=NO_THROTTLE)


def delete(
    cluster: Cluster, *topics: str | UUID | tuple[str, UUID] | None
) -> set[tuple[str | None, UUID | None, ErrorCode, str | None]]:
    response = cluster.submit(delete_topics, deletion(*topics))
    return {
        (result.name, result.topic_id, ErrorCode(int(result.error_code)), result.error_message)
        for result in response.responses
    }


def test_topics_are_deleted_by_name_and_by_id_with_their_configs(cluster: Cluster) -> None:
    create(cluster, topic("a", configs={"retention.ms": "1"}), topic("b"), topic("c"))
    a, b = (cluster.image.topics.by_name[name].topic_id for name in ("a", "b"))
    assert delete(cluster, "a", b) == {("a", a, ErrorCode.NONE, None), ("b", b, ErrorCode.NONE, None)}
    assert set(cluster.image.topics.by_name) == {"c"}
    assert not cluster.image.configs.by_resource.keys() & {ConfigResource(ConfigResourceType.TOPIC, "a")}


def test_deletions_that_cannot_be(cluster: Cluster) -> None:
    created(cluster, "a", "b", "c")
    a, _, c = (cluster.image.topics.by_name[name].topic_id for name in "abc")
    unknown = UUID(int=99)
    invalid = ErrorCode.INVALID_REQUEST
    assert delete(cluster, "no", unknown, None, ("a", a), "b", "b", c, c) == {
        ("no", None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."),
        (None, unknown, ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID."),
        (None, None, invalid, "Neither topic name nor id were specified."),
        ("a", a, invalid, "You may not specify both topic name and topic id."),
        ("b", None, invalid, "Duplicate topic name."),
        (None, c, invalid, "Duplicate topic id."),
    }
    assert delete(cluster, "a", a) == {
        ("a", a, invalid, "The provided topic name maps to an ID that was already supplied.")
    }
    assert cluster.image.topics.by_name.keys() == {"a", "b", "c"}
