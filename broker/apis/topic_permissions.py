"""Which part of CreateTopics, DeleteTopics and CreatePartitions a client may ask for. Kafka: `ControllerApis`.

What it may not is answered here, the rest is submitted. Items that are named twice are left to the controller, which
refuses them to every client.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from kio.schema.create_partitions.v3.request import CreatePartitionsRequest
from kio.schema.create_partitions.v3.response import CreatePartitionsResponse, CreatePartitionsTopicResult
from kio.schema.create_topics.v7.request import CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreatableTopicResult, CreateTopicsResponse
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.delete_topics.v6.response import DeletableTopicResult, DeleteTopicsResponse
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, error_info
from ...protocol.messages import NO_THROTTLE, kio_error
from ...quorum.decisions.topic_names import CLUSTER_METADATA_TOPIC
from ...quorum.metadata.image import MetadataImage
from ..network.request import RequestContext

_DENIED: Final = kio_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
_NOT_TOLD: Final = -1


async def create_topics(
    request: CreateTopicsRequest,
    context: RequestContext,
    submit: Callable[[CreateTopicsRequest], Awaitable[CreateTopicsResponse]],
) -> CreateTopicsResponse:
    """Creates the topics that the client may create; it is told the configs of those it may describe."""
    if context.authorizer is None:
        return await submit(request)
    named = Counter(topic.name for topic in request.topics)
    names = [name for name, count in named.items() if count == 1 and name != CLUSTER_METADATA_TOPIC]
    denied: set[str] = set()
    if not context.may_in_cluster(ApiKey.CREATE_TOPICS, AclOperation.CREATE, is_logged=False):
        denied = {name for name in names if not _may(context, ApiKey.CREATE_TOPICS, AclOperation.CREATE, name)}
    permitted = tuple(topic for topic in request.topics if topic.name not in denied)
    answer = CreateTopicsResponse(throttle_time=NO_THROTTLE, topics=())
    if permitted:
        answer = await submit(replace(request, topics=permitted))
    refused = [
        CreatableTopicResult(
            name=topic.name,
            topic_id=None,
            error_code=_DENIED,
            error_message="Authorization failed.",
            configs=(),
        )
        for topic in request.topics
        if topic.name in denied
    ]
    return replace(answer, topics=(*(_described(context, topic) for topic in answer.topics), *refused))


async def delete_topics(
    request: DeleteTopicsRequest,
    context: RequestContext,
    submit: Callable[[DeleteTopicsRequest], Awaitable[DeleteTopicsResponse]],
    *,
    image: Callable[[], MetadataImage],
) -> DeleteTopicsResponse:
    """Deletes the topics that the client may delete; of one that it may not describe it is told nothing."""
    if context.authorizer is None or context.may_in_cluster(ApiKey.DELETE_TOPICS, AclOperation.DELETE, is_logged=False):
        return await submit(request)
    named = Counter((topic.name, topic.topic_id) for topic in request.topics)
    refused: list[DeletableTopicResult] = []
    permitted: list[DeleteTopicState] = []
    for topic in request.topics:
        refusal = _undeletable(context, topic, image()) if named[topic.name, topic.topic_id] == 1 else None
        if refusal is None:
            permitted.append(topic)
        else:
            refused.append(refusal)
    answer = DeleteTopicsResponse(throttle_time=NO_THROTTLE, responses=())
    if permitted:
        answer = await submit(replace(request, topics=tuple(permitted)))
    # By name, so that the places do not tell the absent ones from the hidden.
    responses = sorted((*answer.responses, *refused), key=lambda result: result.name or "")
    return replace(answer, responses=tuple(responses))


async def create_partitions(
    request: CreatePartitionsRequest,
    context: RequestContext,
    submit: Callable[[CreatePartitionsRequest], Awaitable[CreatePartitionsResponse]],
) -> CreatePartitionsResponse:
    """Adds partitions to the topics that the client may alter."""
    if context.authorizer is None:
        return await submit(request)
    named = Counter(topic.name for topic in request.topics)
    denied = {
        name
        for name, count in named.items()
        if count == 1 and not _may(context, ApiKey.CREATE_PARTITIONS, AclOperation.ALTER, name)
    }
    permitted = tuple(topic for topic in request.topics if topic.name not in denied)
    answer = CreatePartitionsResponse(throttle_time=NO_THROTTLE, results=())
    if permitted:
        answer = await submit(replace(request, topics=permitted))
    refused = [
        CreatePartitionsTopicResult(name=topic.name, error_code=_DENIED, error_message=None)
        for topic in request.topics
        if topic.name in denied
    ]
    return replace(answer, results=(*answer.results, *refused))


def _described(context: RequestContext, topic: CreatableTopicResult) -> CreatableTopicResult:
    is_created = topic.error_code == kio_error(ErrorCode.NONE)
    if not is_created or _may(
        context, ApiKey.CREATE_TOPICS, AclOperation.DESCRIBE_CONFIGS, topic.name, is_logged=False
    ):
        return topic
    return replace(
        topic,
        topic_config_error_code=i16(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        num_partitions=i32(_NOT_TOLD),
        replication_factor=i16(_NOT_TOLD),
        configs=(),
    )


def _undeletable(context: RequestContext, topic: DeleteTopicState, image: MetadataImage) -> DeletableTopicResult | None:
    if (topic.name is None) == (topic.topic_id is None):
        return None
    if topic.topic_id is not None:
        found = image.topics.by_id.get(topic.topic_id)
        if found is None or _may(context, ApiKey.DELETE_TOPICS, AclOperation.DELETE, found.name):
            return None
        is_described = _may(context, ApiKey.DELETE_TOPICS, AclOperation.DESCRIBE, found.name)
        name = TopicName(found.name) if is_described else None
    else:
        name = topic.name
        assert name is not None
        if _may(context, ApiKey.DELETE_TOPICS, AclOperation.DESCRIBE, name) and (
            name not in image.topics.by_name or _may(context, ApiKey.DELETE_TOPICS, AclOperation.DELETE, name)
        ):
            return None
    return DeletableTopicResult(
        name=name,
        topic_id=topic.topic_id,
        error_code=_DENIED,
        error_message=error_info(ErrorCode.TOPIC_AUTHORIZATION_FAILED).sentence,
    )


def _may(
    context: RequestContext, api_key: ApiKey, operation: AclOperation, name: str, *, is_logged: bool = True
) -> bool:
    return context.may(api_key, operation, ResourceType.TOPIC, name, is_logged=is_logged)
