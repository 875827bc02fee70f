"""Changes that are asked for twice, as the answer to the first attempt was lost: by the controller's own decisions."""

from __future__ import annotations

from datetime import timedelta

import pytest
from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_partitions.v3.response import CreatePartitionsResponse
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.delete_topics.v6.response import DeleteTopicsResponse
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32, i32Timedelta
from metadata_cluster import Cluster

from penstock.broker.cluster.rules.repeated_change import answer_of, repetition_of
from penstock.protocol.errors import ErrorCode
from penstock.quorum.decisions.partitions import create_partitions
from penstock.quorum.decisions.topics import create_topics, delete_topics

TIMEOUT = i32Timedelta.parse(timedelta(seconds=1))


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster()
    found.add_brokers(1, 2, 3)
    return found


def creation(name: str = "t", partitions: int = 2, *, validate_only: bool = False) -> CreateTopicsRequest:
    topic = CreatableTopic(
        name=TopicName(name), num_partitions=i32(partitions), replication_factor=i16(3), assignments=(), configs=()
    )
    return CreateTopicsRequest(topics=(topic,), validate_only=validate_only)


def deletion(name: str = "t") -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=(DeleteTopicState(name=TopicName(name), topic_id=None),), timeout=TIMEOUT)


def growth(count: int) -> CreatePartitionsRequest:
    topic = CreatePartitionsTopic(name=TopicName("t"), count=i32(count), assignments=None)
    return CreatePartitionsRequest(topics=(topic,), timeout=TIMEOUT, validate_only=False)


def test_a_topic_that_the_first_attempt_created_is_created(cluster: Cluster) -> None:
    before = cluster.image
    (first,) = cluster.submit(create_topics, creation()).topics
    answer = answer_of(creation(), cluster.submit(create_topics, creation()), before, cluster.image)
    assert isinstance(answer, CreateTopicsResponse)
    (created,) = answer.topics
    assert int(created.error_code) == ErrorCode.NONE
    assert (created.topic_id, created.num_partitions, created.replication_factor) == (first.topic_id, 2, 3)


def test_a_topic_that_was_there_before_or_is_another_than_asked_for_exists_already(cluster: Cluster) -> None:
    before = cluster.image
    cluster.submit(create_topics, creation())
    for request, first in [(creation(), cluster.image), (creation(partitions=5), before)]:
        answer = answer_of(request, cluster.submit(create_topics, request), first, cluster.image)
        assert isinstance(answer, CreateTopicsResponse)
        assert int(answer.topics[0].error_code) == ErrorCode.TOPIC_ALREADY_EXISTS


def test_what_was_only_to_be_validated_was_not_created_by_the_first_attempt(cluster: Cluster) -> None:
    before = cluster.image
    cluster.submit(create_topics, creation())
    request = creation(validate_only=True)
    answer = answer_of(request, cluster.submit(create_topics, request), before, cluster.image)
    assert isinstance(answer, CreateTopicsResponse)
    assert int(answer.topics[0].error_code) == ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize("is_created_anew", [False, True])
def test_a_deletion_is_not_done_twice_though_the_name_is_taken_again(cluster: Cluster, is_created_anew: bool) -> None:
    (old,) = cluster.submit(create_topics, creation()).topics
    before = cluster.image
    cluster.submit(delete_topics, deletion())
    if is_created_anew:
        cluster.submit(create_topics, creation())
    repetition = repetition_of(deletion(), before)
    assert isinstance(repetition, DeleteTopicsRequest)
    answer = answer_of(deletion(), cluster.submit(delete_topics, repetition), before, cluster.image)
    assert isinstance(answer, DeleteTopicsResponse)
    (deleted,) = answer.responses
    assert (int(deleted.error_code), deleted.name, deleted.topic_id) == (ErrorCode.NONE, "t", old.topic_id)
    assert ("t" in cluster.image.topics.by_name) is is_created_anew


def test_a_deletion_that_was_not_done_is_done_by_the_second_attempt(cluster: Cluster) -> None:
    cluster.submit(create_topics, creation())
    before = cluster.image
    repetition = repetition_of(deletion(), before)
    assert isinstance(repetition, DeleteTopicsRequest)
    answer = answer_of(deletion(), cluster.submit(delete_topics, repetition), before, cluster.image)
    assert isinstance(answer, DeleteTopicsResponse)
    assert (int(answer.responses[0].error_code), answer.responses[0].name) == (ErrorCode.NONE, "t")
    assert "t" not in cluster.image.topics.by_name


def test_an_unknown_topic_is_still_unknown(cluster: Cluster) -> None:
    repetition = repetition_of(deletion(), cluster.image)
    assert isinstance(repetition, DeleteTopicsRequest)
    answer = answer_of(deletion(), cluster.submit(delete_topics, repetition), cluster.image, cluster.image)
    assert isinstance(answer, DeleteTopicsResponse)
    assert int(answer.responses[0].error_code) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(("count_before", "code"), [(2, ErrorCode.NONE), (4, ErrorCode.INVALID_PARTITIONS)])
def test_partitions_that_the_first_attempt_added_are_added(
    cluster: Cluster, count_before: int, code: ErrorCode
) -> None:
    cluster.submit(create_topics, creation(partitions=count_before))
    before = cluster.image
    cluster.submit(create_partitions, growth(4))
    answer = answer_of(growth(4), cluster.submit(create_partitions, growth(4)), before, cluster.image)
    assert isinstance(answer, CreatePartitionsResponse)
    assert int(answer.results[0].error_code) == code
