"""Changes whose first answer was lost: what they did, by the controller's own decisions, and what is asked again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast
from uuid import UUID

import pytest
from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_partitions.v3.response import CreatePartitionsResponse
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.delete_topics.v6.response import DeleteTopicsResponse
from kio.schema.incremental_alter_configs.v1.request import IncrementalAlterConfigsRequest
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32, i32Timedelta
from metadata_cluster import Cluster

from penstock.broker.cluster.metadata_cache import MetadataCache
from penstock.broker.cluster.rules.repeated_change import is_once, remaining, whole_answer
from penstock.protocol.errors import ErrorCode
from penstock.protocol.ids import TopicId
from penstock.quorum.decisions.mutation_quota import throttled
from penstock.quorum.decisions.partitions import create_partitions
from penstock.quorum.decisions.topics import create_topics, delete_topics
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import EMPTY_IMAGE

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


def deletion(topic_id: UUID | None = None) -> DeleteTopicsRequest:
    name = TopicName("t") if topic_id is None else None
    return DeleteTopicsRequest(topics=(DeleteTopicState(name=name, topic_id=topic_id),), timeout=TIMEOUT)


def growth(count: int) -> CreatePartitionsRequest:
    topic = CreatePartitionsTopic(name=TopicName("t"), count=i32(count), assignments=None)
    return CreatePartitionsRequest(topics=(topic,), timeout=TIMEOUT, validate_only=False)


def changed_by(cluster: Cluster, name: str) -> dict[TopicId, str]:
    """As the log tells, of the last change."""
    assert cluster.delta.by_change is not None
    return cluster.delta.by_change.get(name, {})


def test_a_topic_that_the_first_attempt_created_is_created_and_not_asked_for_again(cluster: Cluster) -> None:
    (first,) = cluster.submit(create_topics, creation(), change="a").topics
    changed = changed_by(cluster, "a")
    assert remaining(creation(), changed) is None
    answer = whole_answer(creation(), None, changed, cluster.image)
    assert isinstance(answer, CreateTopicsResponse)
    (created,) = answer.topics
    assert int(created.error_code) == ErrorCode.NONE
    assert (created.topic_id, created.num_partitions, created.replication_factor) == (first.topic_id, 2, 3)


def test_what_another_client_did_is_not_taken_for_the_own_work(cluster: Cluster) -> None:
    """Two clients that create a topic, delete it or give it partitions: one of each is refused."""
    cluster.submit(create_topics, creation(), change="other")
    assert remaining(creation(), changed_by(cluster, "a")) == creation()
    answer = whole_answer(creation(), cluster.submit(create_topics, creation()), {}, cluster.image)
    assert isinstance(answer, CreateTopicsResponse)
    assert int(answer.topics[0].error_code) == ErrorCode.TOPIC_ALREADY_EXISTS
    cluster.submit(create_partitions, growth(4), change="other")
    grown = whole_answer(growth(4), cluster.submit(create_partitions, growth(4)), {}, cluster.image)
    assert isinstance(grown, CreatePartitionsResponse)
    assert int(grown.results[0].error_code) == ErrorCode.INVALID_PARTITIONS
    cluster.submit(delete_topics, deletion(), change="other")
    assert remaining(deletion(), changed_by(cluster, "a")) == deletion()
    deleted = whole_answer(deletion(), cluster.submit(delete_topics, deletion()), {}, cluster.image)
    assert isinstance(deleted, DeleteTopicsResponse)
    assert int(deleted.responses[0].error_code) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_throttle_time_is_that_of_the_last_attempt(cluster: Cluster) -> None:
    for request, decide in ((creation(), create_topics), (growth(4), create_partitions), (deletion(), delete_topics)):
        last = throttled(cluster.submit(cast(Any, decide), request), 700)
        answer: Any = whole_answer(request, cast(Any, last), {}, cluster.image)
        assert answer.throttle_time == timedelta(milliseconds=700)


def test_a_topic_that_was_created_and_is_gone_since_is_created(cluster: Cluster) -> None:
    (first,) = cluster.submit(create_topics, creation(), change="a").topics
    changed = changed_by(cluster, "a")
    cluster.submit(delete_topics, deletion(), change="other")
    assert remaining(creation(), changed) is None
    answer = whole_answer(creation(), None, changed, cluster.image)
    assert isinstance(answer, CreateTopicsResponse)
    (created,) = answer.topics
    assert (int(created.error_code), created.topic_id, created.num_partitions) == (ErrorCode.NONE, first.topic_id, -1)


@pytest.mark.parametrize("is_by_id", [False, True])
def test_a_deletion_is_not_done_twice_though_the_name_is_taken_again(cluster: Cluster, is_by_id: bool) -> None:
    (old,) = cluster.submit(create_topics, creation()).topics
    request = deletion(topic_id=old.topic_id) if is_by_id else deletion()
    cluster.submit(delete_topics, request, change="a")
    changed = changed_by(cluster, "a")
    cluster.submit(create_topics, creation(), change="other")
    assert remaining(request, changed) is None
    answer = whole_answer(request, None, changed, cluster.image)
    assert isinstance(answer, DeleteTopicsResponse)
    (deleted,) = answer.responses
    assert (int(deleted.error_code), deleted.name, deleted.topic_id) == (ErrorCode.NONE, "t", old.topic_id)


def test_partitions_that_the_first_attempt_added_are_added(cluster: Cluster) -> None:
    cluster.submit(create_topics, creation())
    cluster.submit(create_partitions, growth(4), change="a")
    changed = changed_by(cluster, "a")
    assert remaining(growth(4), changed) is None
    answer = whole_answer(growth(4), None, changed, cluster.image)
    assert isinstance(answer, CreatePartitionsResponse)
    assert [(one.name, int(one.error_code)) for one in answer.results] == [("t", ErrorCode.NONE)]


def test_what_the_first_attempt_refused_is_asked_for_again(cluster: Cluster) -> None:
    cluster.submit(create_topics, creation("there"), change="other")
    both = CreateTopicsRequest(topics=(*creation("there").topics, *creation("new").topics))
    cluster.submit(create_topics, both, change="a")
    changed = changed_by(cluster, "a")
    left = remaining(both, changed)
    assert left == creation("there")
    answer = whole_answer(both, cluster.submit(create_topics, creation("there")), changed, cluster.image)
    assert isinstance(answer, CreateTopicsResponse)
    codes = {one.name: int(one.error_code) for one in answer.topics}
    assert codes == {"new": ErrorCode.NONE, "there": ErrorCode.TOPIC_ALREADY_EXISTS}


def test_requests_that_only_set_values_or_only_validate_have_the_same_outcome_twice() -> None:
    assert is_once(creation())
    assert is_once(deletion())
    assert is_once(growth(3))
    assert not is_once(creation(validate_only=True))
    assert not is_once(IncrementalAlterConfigsRequest(resources=(), validate_only=False))


def test_a_snapshot_does_not_tell_what_was_done(cluster: Cluster) -> None:
    metadata = MetadataCache()
    with metadata.watch("a") as change:
        cluster.submit(create_topics, creation("seen"), change="a")
        metadata.publish(cluster.delta, cluster.image)
        assert list(change.topics.values()) == ["seen"]
        assert change.is_certain
        metadata.publish(MetadataDelta.between(EMPTY_IMAGE, cluster.image), cluster.image)
        assert not change.is_certain
