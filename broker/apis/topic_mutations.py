"""Which part of CreateTopics, DeleteTopics and CreatePartitions a client's quota allows (KIP-599).

What counts are partitions: those that a topic has when it is created or deleted, and those that are added. The quota
is of this broker, which takes from it before it asks the controller, and gives back what the controller has refused;
Apache Kafka's is of the active controller. From these versions on the topics for which nothing is left are refused with
THROTTLING_QUOTA_EXCEEDED; clients of earlier ones are only made to wait:

    CreateTopics 6, DeleteTopics 5, CreatePartitions 3
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, TypeAlias, TypeVar

from kio.schema.create_partitions.v3.request import CreatePartitionsRequest
from kio.schema.create_partitions.v3.response import CreatePartitionsResponse, CreatePartitionsTopicResult
from kio.schema.create_topics.v7.request import CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreatableTopicResult, CreateTopicsResponse
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest
from kio.schema.delete_topics.v6.response import DeletableTopicResult, DeleteTopicsResponse
from kio.static.primitive import i32Timedelta

from ...protocol.errors import ErrorCode, error_info
from ...protocol.messages import NO_THROTTLE, kio_error
from ...quorum.metadata.image import MetadataImage
from ...quorum.permissions.requester import PermissionsChangedError
from ..network.request import RequestContext
from ..network.rules.client_quota import MutationQuota

FIRST_STRICT_CREATE_TOPICS: Final = 6
FIRST_STRICT_DELETE_TOPICS: Final = 5
FIRST_STRICT_CREATE_PARTITIONS: Final = 3
_EXCEEDED: Final = kio_error(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
_SENTENCE: Final = error_info(ErrorCode.THROTTLING_QUOTA_EXCEEDED).sentence
_BY_DEFAULT: Final = -1

TopicT = TypeVar("TopicT")
RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")
Submit: TypeAlias = Callable[[RequestT], Awaitable[ResponseT]]


async def create_topics(
    request: CreateTopicsRequest,
    context: RequestContext,
    submit: Submit[CreateTopicsRequest, CreateTopicsResponse],
    *,
    image: MetadataImage,
    default_partition_count: int,
) -> CreateTopicsResponse:
    """`default_partition_count` is `num.partitions`."""
    quota = _quota_of(context)
    if quota is None:
        return await submit(request)
    named = Counter(topic.name for topic in request.topics)

    def count(topic: Any) -> int:
        if named[topic.name] > 1 or topic.name in image.topics.by_name:
            return 0
        if topic.assignments:
            return len(topic.assignments)
        return default_partition_count if topic.num_partitions == _BY_DEFAULT else max(int(topic.num_partitions), 0)

    admission = _Admission(quota, is_strict=context.api_version >= FIRST_STRICT_CREATE_TOPICS)
    admitted = admission.admit(request.topics, count, lambda topic: topic.name)
    response = CreateTopicsResponse(throttle_time=NO_THROTTLE, topics=())
    if admitted or not request.topics:
        response = await admission.submit(submit, replace(request, topics=admitted))
    admission.settle([(one.name, int(one.error_code)) for one in response.topics])
    refused = [
        CreatableTopicResult(name=topic.name, topic_id=None, error_code=_EXCEEDED, error_message=_SENTENCE, configs=())
        for topic in admission.refused
    ]
    return replace(
        response, throttle_time=admission.throttle_time(response.throttle_time), topics=(*response.topics, *refused)
    )


async def delete_topics(
    request: DeleteTopicsRequest,
    context: RequestContext,
    submit: Submit[DeleteTopicsRequest, DeleteTopicsResponse],
    *,
    image: MetadataImage,
) -> DeleteTopicsResponse:
    quota = _quota_of(context)
    if quota is None:
        return await submit(request)
    topics = image.topics

    def found(topic: Any) -> Any:
        return topics.by_id.get(topic.topic_id) if topic.name is None else topics.by_name.get(topic.name)

    named = Counter(_key(topic) for topic in request.topics)

    def count(topic: Any) -> int:
        existing = found(topic)
        return 0 if existing is None or named[_key(topic)] > 1 else len(existing.partitions)

    admission = _Admission(quota, is_strict=context.api_version >= FIRST_STRICT_DELETE_TOPICS)
    admitted = admission.admit(request.topics, count, _key)
    response = DeleteTopicsResponse(throttle_time=NO_THROTTLE, responses=())
    if admitted or not request.topics:
        response = await admission.submit(submit, replace(request, topics=admitted))
    # A topic that is deleted is answered by its name and its id.
    outcomes = [(name, int(one.error_code)) for one in response.responses for name in (one.name, one.topic_id)]
    admission.settle(outcomes)
    refused = [
        DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=_EXCEEDED, error_message=_SENTENCE)
        for topic in admission.refused
    ]
    return replace(
        response,
        throttle_time=admission.throttle_time(response.throttle_time),
        responses=(*response.responses, *refused),
    )


async def create_partitions(
    request: CreatePartitionsRequest,
    context: RequestContext,
    submit: Submit[CreatePartitionsRequest, CreatePartitionsResponse],
    *,
    image: MetadataImage,
) -> CreatePartitionsResponse:
    quota = _quota_of(context)
    if quota is None:
        return await submit(request)
    named = Counter(topic.name for topic in request.topics)

    def count(topic: Any) -> int:
        existing = image.topics.by_name.get(topic.name)
        if existing is None or named[topic.name] > 1:
            return 0
        return max(int(topic.count) - len(existing.partitions), 0)

    admission = _Admission(quota, is_strict=context.api_version >= FIRST_STRICT_CREATE_PARTITIONS)
    admitted = admission.admit(request.topics, count, lambda topic: topic.name)
    response = CreatePartitionsResponse(throttle_time=NO_THROTTLE, results=())
    if admitted or not request.topics:
        response = await admission.submit(submit, replace(request, topics=admitted))
    admission.settle([(one.name, int(one.error_code)) for one in response.results])
    refused = [
        CreatePartitionsTopicResult(name=topic.name, error_code=_EXCEEDED, error_message=_SENTENCE)
        for topic in admission.refused
    ]
    return replace(
        response, throttle_time=admission.throttle_time(response.throttle_time), results=(*response.results, *refused)
    )


class _Admission:
    """What one request has taken from the quota of its client."""

    def __init__(self, quota: MutationQuota, *, is_strict: bool) -> None:
        self._quota = quota
        self._is_strict = is_strict
        self._taken: dict[object, int] = {}
        self._is_throttled = False
        self.refused: list[Any] = []

    def admit(
        self, topics: Sequence[TopicT], count: Callable[[TopicT], int], key: Callable[[TopicT], object]
    ) -> tuple[TopicT, ...]:
        """In their order. A topic that changes nothing takes nothing, and is left to the controller."""
        admitted = []
        for topic in topics:
            size = count(topic)
            throttle_time_ms = self._quota.take(size, is_strict=self._is_strict) if size else 0
            self._is_throttled |= throttle_time_ms > 0
            if throttle_time_ms and self._is_strict:
                self.refused.append(topic)
                continue
            admitted.append(topic)
            if size:
                self._taken[key(topic)] = size
        return tuple(admitted)

    async def submit(self, submit: Submit[RequestT, ResponseT], request: RequestT) -> ResponseT:
        """Gives all back if the controller was not allowed to do anything: the request begins anew."""
        try:
            return await submit(request)
        except PermissionsChangedError:
            for size in self._taken.values():
                self._quota.give_back(size)
            raise

    def settle(self, outcomes: Sequence[tuple[object, int]]) -> None:
        """Gives back what was taken for topics that the controller has not changed."""
        for name, error_code in outcomes:
            size = self._taken.pop(name, 0)
            if size and error_code:
                self._quota.give_back(size)

    def throttle_time(self, other: timedelta) -> i32Timedelta:
        """Of the response: it also has `other`."""
        own_ms = self._quota.throttle_time_ms() if self._is_throttled else 0
        return i32Timedelta.parse(max(other, timedelta(milliseconds=own_ms)))


def _quota_of(context: RequestContext) -> MutationQuota | None:
    return None if context.quota is None else context.quota.mutations


def _key(topic: Any) -> object:
    return topic.topic_id if topic.name is None else topic.name
