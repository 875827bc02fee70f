"""What decisions about topics take of a client's quota of changes (KIP-599), and what they refuse."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.schema.create_partitions.v3.request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i16, i32, i32Timedelta
from metadata_cluster import Cluster

from penstock.protocol.errors import ErrorCode
from penstock.quorum.decisions.context import ControllerResult
from penstock.quorum.decisions.mutation_quota import NO_MUTATIONS, MutationAllowance, Mutations, throttled
from penstock.quorum.decisions.partitions import create_partitions
from penstock.quorum.decisions.topics import create_topics, delete_topics
from penstock.quorum.metadata.records import PartitionRecord, RemoveTopicRecord, TopicRecord

NONE, EXCEEDED = int(ErrorCode.NONE), int(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
MINUTE = i32Timedelta.parse(timedelta(minutes=1))


def creation(*topics: tuple[str, int], validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=tuple(
            CreatableTopic(
                name=TopicName(name), num_partitions=i32(count), replication_factor=i16(1), assignments=(), configs=()
            )
            for name, count in topics
        ),
        validate_only=validate_only,
    )


def deletion(*topics: str | UUID) -> DeleteTopicsRequest:
    states = tuple(
        DeleteTopicState(name=None, topic_id=topic)
        if isinstance(topic, UUID)
        else DeleteTopicState(name=TopicName(topic), topic_id=None)
        for topic in topics
    )
    return DeleteTopicsRequest(topics=states, timeout=MINUTE)


def growth(*topics: tuple[str, int], places: tuple[int, ...] | None = None) -> CreatePartitionsRequest:
    assignments = None
    if places is not None:
        assignments = tuple(CreatePartitionsAssignment(broker_ids=(BrokerId(place),)) for place in places)
    return CreatePartitionsRequest(
        topics=tuple(
            CreatePartitionsTopic(name=TopicName(name), count=i32(count), assignments=assignments)
            for name, count in topics
        ),
        timeout=MINUTE,
        validate_only=False,
    )


@pytest.fixture
def cluster() -> Cluster:
    """With a topic of eight partitions."""
    found = Cluster()
    found.add_brokers(1)
    found.submit(create_topics, creation(("existing", 8)))
    return found


def decide(
    cluster: Cluster, decision: Any, request: Any, tokens: float, *, is_strict: bool = True
) -> ControllerResult[Any]:
    result: ControllerResult[Any] = cluster.decide(decision, request, allowance=MutationAllowance(tokens, is_strict))
    return result


def errors(results: Any) -> dict[str, int]:
    return {one.name: int(one.error_code) for one in results}


def test_topics_are_created_until_there_is_a_debt(cluster: Cluster) -> None:
    result = decide(cluster, create_topics, creation(("a", 6), ("b", 6), ("c", 6)), 11)
    assert errors(result.response.topics) == {"a": NONE, "b": NONE, "c": EXCEEDED}
    assert result.response.topics[2].error_message == "The throttling quota has been exceeded."
    assert result.mutations == Mutations(12, is_exceeded=True)
    assert [record.name for record in result.records if isinstance(record, TopicRecord)] == ["a", "b"]


def test_one_request_may_make_a_debt(cluster: Cluster) -> None:
    assert decide(cluster, create_topics, creation(("a", 20)), 0).mutations == Mutations(20, is_exceeded=False)
    refused = decide(cluster, create_topics, creation(("a", 1)), -0.1)
    assert (errors(refused.response.topics), refused.mutations) == ({"a": EXCEEDED}, Mutations(0, is_exceeded=True))
    assert refused.records == ()


def test_topics_that_cannot_be_created_cost_nothing(cluster: Cluster) -> None:
    topics = creation(("existing", 5), ("twice", 5), ("twice", 5), ("no name!", 4), ("none", 0), ("a", 3))
    result = decide(cluster, create_topics, topics, 11)
    assert errors(result.response.topics) == {
        "existing": ErrorCode.TOPIC_ALREADY_EXISTS,
        "twice": ErrorCode.INVALID_REQUEST,
        "no name!": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "none": ErrorCode.INVALID_PARTITIONS,
        "a": NONE,
    }
    assert result.mutations == Mutations(3)


def test_what_is_only_validated_counts(cluster: Cluster) -> None:
    result = decide(cluster, create_topics, creation(("a", 3), validate_only=True), 11)
    assert (result.records, result.mutations) == ((), Mutations(3))


def test_a_topic_that_does_not_say_has_the_default_number_of_partitions(cluster: Cluster) -> None:
    assert decide(cluster, create_topics, creation(("a", -1)), 11).mutations == Mutations(1)


def test_a_client_of_an_old_version_is_granted_all_and_waits(cluster: Cluster) -> None:
    result = decide(cluster, create_topics, creation(("a", 6), ("b", 6), ("c", 6)), 11, is_strict=False)
    assert errors(result.response.topics) == {"a": NONE, "b": NONE, "c": NONE}
    assert result.mutations == Mutations(18, is_exceeded=True)
    assert decide(cluster, create_topics, creation(("a", 11)), 11, is_strict=False).mutations == Mutations(11)
    deleted = decide(cluster, delete_topics, deletion("existing"), -1, is_strict=False)
    assert (deleted.mutations, len(deleted.records)) == (Mutations(8, is_exceeded=True), 1)


def test_topics_are_deleted_by_name_and_by_id_until_there_is_a_debt(cluster: Cluster) -> None:
    cluster.submit(create_topics, creation(("a", 4), ("b", 4)))
    by_name = cluster.image.topics.by_name
    request = deletion("unknown", "b", by_name["existing"].topic_id, by_name["a"].topic_id)
    result = decide(cluster, delete_topics, request, 10)
    assert errors(result.response.responses) == {
        "unknown": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "existing": NONE,
        "a": NONE,
        "b": EXCEEDED,
    }
    assert result.mutations == Mutations(12, is_exceeded=True)
    removed = [record.topic_id for record in result.records if isinstance(record, RemoveTopicRecord)]
    assert removed == [by_name["existing"].topic_id, by_name["a"].topic_id]
    refused = result.response.responses[-1]
    assert (refused.name, refused.topic_id) == ("b", by_name["b"].topic_id)


def test_added_partitions_count(cluster: Cluster) -> None:
    result = decide(cluster, create_partitions, growth(("existing", 12), ("unknown", 3)), 4)
    assert errors(result.response.results) == {"existing": NONE, "unknown": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert result.mutations == Mutations(4)
    assert decide(cluster, create_partitions, growth(("existing", 8)), 4).mutations == NO_MUTATIONS
    refused = decide(cluster, create_partitions, growth(("existing", 12)), -1)
    assert errors(refused.response.results) == {"existing": EXCEEDED}
    assert not [record for record in refused.records if isinstance(record, PartitionRecord)]


def test_places_of_partitions_are_checked_after_they_have_counted(cluster: Cluster) -> None:
    """As in Apache Kafka, but for their number."""
    unknown = decide(cluster, create_partitions, growth(("existing", 9), places=(7,)), 4)
    assert (errors(unknown.response.results), unknown.mutations) == (
        {"existing": ErrorCode.INVALID_REPLICA_ASSIGNMENT},
        Mutations(1),
    )
    too_few = decide(cluster, create_partitions, growth(("existing", 10), places=(1,)), 4)
    assert too_few.mutations == NO_MUTATIONS


def test_a_client_without_a_quota_takes_nothing(cluster: Cluster) -> None:
    result = cluster.decide(create_topics, creation(("a", 1000)))
    assert (errors(result.response.topics), result.mutations) == ({"a": NONE}, NO_MUTATIONS)


def test_the_answer_has_the_throttle_time(cluster: Cluster) -> None:
    response = cluster.submit(create_topics, creation(("a", 1)))
    assert throttled(response, 0) is response
    assert throttled(response, 1500).throttle_time == timedelta(milliseconds=1500)
