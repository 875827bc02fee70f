"""A change of metadata that is asked for again because the answer to it was lost. Pure.

Creating a topic, deleting one and adding partitions have another outcome the second time. Each such request has a name
of its own, which stands in the records that do it (`quorum/metadata/records.py`), so the broker that asked finds in the
log what its first attempt did. Before it asks again it replays all that the controller has; of topics that are changed
already nothing is asked a second time, and they are answered as changed. All other requests set what they name to a
value, and have the same outcome twice.

Apache Kafka's brokers ask again for all of it: a topic that the first attempt created exists already, one that it
deleted is unknown, and one of its name that another client has created meanwhile is deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias, cast
from uuid import UUID

from kio.schema.create_partitions.v3.request import CreatePartitionsRequest
from kio.schema.create_partitions.v3.response import CreatePartitionsResponse, CreatePartitionsTopicResult
from kio.schema.create_topics.v7.request import CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreatableTopicResult, CreateTopicsResponse
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest
from kio.schema.delete_topics.v6.response import DeletableTopicResult, DeleteTopicsResponse
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32

from ....protocol.errors import ErrorCode
from ....protocol.ids import TopicId
from ....protocol.messages import NO_THROTTLE, Request, Response, kio_error
from ....quorum.metadata.delta import ChangedTopics
from ....quorum.metadata.image import MetadataImage

_Once: TypeAlias = CreateTopicsRequest | CreatePartitionsRequest | DeleteTopicsRequest

BARRIER: Final = CreateTopicsRequest(topics=())
"""Changes nothing; its answer names the offset of all that was committed before it was asked."""


def is_once(message: object) -> bool:
    """Whether the request has another outcome the second time."""
    match message:
        case CreateTopicsRequest() | CreatePartitionsRequest():
            return not message.validate_only
        case DeleteTopicsRequest():
            return True
    return False


def remaining(message: Request, changed: ChangedTopics) -> Request | None:
    """What is left to ask for when these topics are changed; None when that is nothing."""
    topics = cast(_Once, message).topics
    left = tuple([topic for topic in topics if _id_of(topic, changed) is None])
    if len(left) == len(topics):
        return message
    return cast(Request, replace(cast(_Once, message), topics=cast(Any, left))) if left else None


def whole_answer(message: Request, rest: Response | None, changed: ChangedTopics, image: MetadataImage) -> Response:
    """The answer to all attempts together: topics that are changed are answered so, of the others it is `rest`.

    `rest` is the answer to what was left to ask for, and has the throttle time. A changed topic may have been changed
    again since, or be gone.
    """
    results: tuple[object, ...]
    throttle_time = NO_THROTTLE if rest is None else cast(Any, rest).throttle_time
    match message:
        case CreateTopicsRequest():
            assert isinstance(rest, CreateTopicsResponse | None)
            created = [_created(changed[topic_id], topic_id, image) for topic_id in _found(message, changed)]
            results = _joined(created, () if rest is None else rest.topics, changed)
            answer: object = CreateTopicsResponse(throttle_time=throttle_time, topics=cast(Any, results))
        case CreatePartitionsRequest():
            assert isinstance(rest, CreatePartitionsResponse | None)
            grown = [_grown(changed[topic_id]) for topic_id in _found(message, changed)]
            results = _joined(grown, () if rest is None else rest.results, changed)
            answer = CreatePartitionsResponse(throttle_time=throttle_time, results=cast(Any, results))
        case DeleteTopicsRequest():
            assert isinstance(rest, DeleteTopicsResponse | None)
            deleted = [_deleted(changed[topic_id], topic_id) for topic_id in _found(message, changed)]
            results = _joined(deleted, () if rest is None else rest.responses, changed)
            answer = DeleteTopicsResponse(throttle_time=throttle_time, responses=cast(Any, results))
        case _:
            raise AssertionError(f"{type(message).__name__} has the same outcome twice")
    return cast(Response, answer)


def _id_of(topic: object, changed: ChangedTopics) -> TopicId | None:
    """Of a topic in a request or a response, by its id where it is named by that; None of one that is not changed."""
    topic_id: UUID | None = getattr(topic, "topic_id", None)
    name: str | None = getattr(topic, "name", None)
    return next(
        (found for found in changed if found == topic_id or (name is not None and changed[found] == name)), None
    )


def _found(message: _Once, changed: ChangedTopics) -> Sequence[TopicId]:
    """The topics of the request that are changed."""
    return [topic_id for topic in message.topics if (topic_id := _id_of(topic, changed)) is not None]


def _joined(done: Sequence[object], rest: Sequence[object], changed: ChangedTopics) -> tuple[object, ...]:
    return (*done, *(one for one in rest if _id_of(one, changed) is None))


def _created(name: str, topic_id: TopicId, image: MetadataImage) -> CreatableTopicResult:
    found = image.topics.by_id.get(topic_id)
    return CreatableTopicResult(
        name=TopicName(name),
        topic_id=topic_id,
        error_code=kio_error(ErrorCode.NONE),
        error_message=None,
        num_partitions=i32(-1 if found is None else len(found.partitions)),
        replication_factor=i16(-1 if found is None else len(found.partitions[0].replicas)),
        configs=(),
    )


def _grown(name: str) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=TopicName(name), error_code=kio_error(ErrorCode.NONE), error_message=None)


def _deleted(name: str, topic_id: TopicId) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=TopicName(name), topic_id=topic_id, error_code=kio_error(ErrorCode.NONE), error_message=None
    )
