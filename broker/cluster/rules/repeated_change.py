"""A change of metadata that is asked for again because the answer to it was lost. Pure.

The controller that is asked again has all that the one before it committed, so whatever the first attempt did shows.
What it did is not done a second time, and is answered as done:

CreateTopics      TOPIC_ALREADY_EXISTS of a topic that was not there before, with the partitions and replicas asked for
CreatePartitions  INVALID_PARTITIONS of a topic that had fewer before and has as many as asked for now
DeleteTopics      asked again by the id of before, so that a new topic of that name stays; its absence is the success

Another client that asked for the same at the same time cannot be told from the first attempt. All other changes set
what they name to a value, and have the same outcome twice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar, cast

from kio.schema.create_partitions.v3.request import CreatePartitionsRequest
from kio.schema.create_partitions.v3.response import CreatePartitionsResponse, CreatePartitionsTopicResult
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreatableTopicResult, CreateTopicsResponse
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.delete_topics.v6.response import DeletableTopicResult, DeleteTopicsResponse
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32

from ....protocol.errors import ErrorCode
from ....protocol.messages import Request, Response, kio_error
from ....quorum.metadata.image import MetadataImage, TopicImage

ResponseT = TypeVar("ResponseT")


def repetition_of(message: Request, before: MetadataImage) -> Request:
    """What is asked again; `before` is the image when it was asked first."""
    if not isinstance(message, DeleteTopicsRequest):
        return message

    def by_id(topic: DeleteTopicState) -> DeleteTopicState:
        found = None if topic.name is None or topic.topic_id else before.topics.by_name.get(topic.name)
        return topic if found is None else DeleteTopicState(name=None, topic_id=found.topic_id)

    return cast(Request, replace(message, topics=tuple(map(by_id, message.topics))))


def answer_of(message: Request, response: Response, before: MetadataImage, now: MetadataImage) -> Response:
    """The answer to all attempts together, from that to the last one; `now` is the image with its effect."""
    changed: object = response
    match message, response:
        case CreateTopicsRequest(), CreateTopicsResponse() if not message.validate_only:
            wanted = {topic.name: topic for topic in message.topics}
            changed = replace(
                response, topics=tuple(_created(one, wanted.get(one.name), before, now) for one in response.topics)
            )
        case CreatePartitionsRequest(), CreatePartitionsResponse() if not message.validate_only:
            counts = {topic.name: int(topic.count) for topic in message.topics}
            changed = replace(
                response, results=tuple(_grown(one, counts.get(one.name), before, now) for one in response.results)
            )
        case DeleteTopicsRequest(), DeleteTopicsResponse():
            changed = replace(response, responses=tuple(_deleted(one, before) for one in response.responses))
        case _:
            pass
    return cast(Response, changed)


def _created(
    result: CreatableTopicResult, wanted: CreatableTopic | None, before: MetadataImage, now: MetadataImage
) -> CreatableTopicResult:
    found = now.topics.by_name.get(result.name)
    if (
        int(result.error_code) != ErrorCode.TOPIC_ALREADY_EXISTS
        or wanted is None
        or found is None
        or result.name in before.topics.by_name
        or not _is_as_wanted(found, wanted)
    ):
        return result
    return CreatableTopicResult(
        name=result.name,
        topic_id=found.topic_id,
        error_code=kio_error(ErrorCode.NONE),
        error_message=None,
        num_partitions=i32(len(found.partitions)),
        replication_factor=i16(len(found.partitions[0].replicas)),
        configs=(),
    )


def _is_as_wanted(found: TopicImage, wanted: CreatableTopic) -> bool:
    if wanted.assignments:
        replicas = {int(one.partition_index): tuple(map(int, one.broker_ids)) for one in wanted.assignments}
        return replicas == {index: tuple(one.replicas) for index, one in enumerate(found.partitions)}
    # -1 is the controller's default.
    return int(wanted.num_partitions) in (-1, len(found.partitions)) and int(wanted.replication_factor) in (
        -1,
        len(found.partitions[0].replicas),
    )


def _grown(
    result: CreatePartitionsTopicResult, wanted_count: int | None, before: MetadataImage, now: MetadataImage
) -> CreatePartitionsTopicResult:
    old, new = before.topics.by_name.get(result.name), now.topics.by_name.get(result.name)
    if (
        int(result.error_code) != ErrorCode.INVALID_PARTITIONS
        or wanted_count is None
        or old is None
        or new is None
        or old.topic_id != new.topic_id
        or not len(old.partitions) < wanted_count == len(new.partitions)
    ):
        return result
    return replace(result, error_code=kio_error(ErrorCode.NONE), error_message=None)


def _deleted(result: DeletableTopicResult, before: MetadataImage) -> DeletableTopicResult:
    found = None if result.topic_id is None else before.topics.by_id.get(result.topic_id)
    if found is None:
        return result
    named = replace(result, name=TopicName(found.name))
    if int(result.error_code) != ErrorCode.UNKNOWN_TOPIC_ID:
        return named
    return replace(named, error_code=kio_error(ErrorCode.NONE), error_message=None)
