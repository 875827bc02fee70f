"""CreateTopics 2 to 7, DeleteTopics 1 to 6, CreatePartitions 0 to 3: forwarded to the controller.

CreateTopics: 4: defaults by -1 (KIP-464), 5: configs in the response (KIP-525), 7: topic ids (KIP-516). DeleteTopics:
6: by topic id (KIP-516). The controller has the rules (`quorum/decisions/`). The response is sent when the change is
committed and applied on this node, so the next request finds the topic; the partitions of a large one are served a
little later. A request with a timeout of 0 or less gets REQUEST_TIMED_OUT without any change; longer timeouts are not
enforced.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

from kio.schema.create_partitions.v3.request import CreatePartitionsRequest
from kio.schema.create_partitions.v3.response import CreatePartitionsResponse, CreatePartitionsTopicResult
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreatableTopicResult, CreateTopicsResponse
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest
from kio.schema.delete_topics.v6.response import DeletableTopicResult, DeleteTopicsResponse
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE, kio_error
from ...quorum.decisions.partitions import CREATE_PARTITIONS
from ...quorum.decisions.topics import CREATE_TOPICS, DELETE_TOPICS
from ..cluster.controller_channel import ControllerChannel
from ..cluster.metadata_cache import MetadataCache
from ..network.handlers import Handlers
from ..network.peer_log import PeerLog
from ..network.request import RequestContext
from ..security.client_changes import ask_controller, requester_of
from . import topic_permissions
from .metadata import CreateTopics

logger = logging.getLogger(__name__)

NO_TIME = timedelta(0)


def register(
    handlers: Handlers,
    metadata: MetadataCache,
    controller: ControllerChannel,
    *,
    settled: Callable[[], Awaitable[None]],
    is_deletion_enabled: bool,
) -> None:
    """`settled` waits a short time until this node has applied the metadata to its partitions; `is_deletion_enabled`
    is `delete.topic.enable`."""

    delete_guard = partial(topic_permissions.delete_topics, image=lambda: metadata.image)

    async def create(request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
        check_time(request.timeout)
        response = await ask_controller(controller, CREATE_TOPICS, request, context, topic_permissions.create_topics)
        await settled()
        return response

    async def delete(request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse:
        if not is_deletion_enabled:
            raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED)
        check_time(request.timeout)
        response = await ask_controller(controller, DELETE_TOPICS, request, context, delete_guard)
        await settled()
        return response

    async def add_partitions(request: CreatePartitionsRequest, context: RequestContext) -> CreatePartitionsResponse:
        check_time(request.timeout)
        guard = topic_permissions.create_partitions
        response = await ask_controller(controller, CREATE_PARTITIONS, request, context, guard)
        await settled()
        return response

    handlers.add_message(ApiKey.CREATE_TOPICS, create, answer_error=create_topics_error, has_version=True)
    handlers.add_message(ApiKey.DELETE_TOPICS, delete, answer_error=delete_topics_error, has_version=True)
    handlers.add_message(
        ApiKey.CREATE_PARTITIONS, add_partitions, answer_error=create_partitions_error, has_version=True
    )


def check_time(timeout: timedelta) -> None:
    """Raises KafkaError REQUEST_TIMED_OUT if the timeout is 0 or less."""
    if timeout <= NO_TIME:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)


def automatic_creation(
    controller: ControllerChannel,
    *,
    partition_count: int,
    replication_factor: int,
    settled: Callable[[], Awaitable[None]],
    peer_log: PeerLog,
) -> CreateTopics:
    """Returns the auto-creation of topics for Metadata. -1 partitions or replicas mean the controller's default.

    Kafka: `AutoTopicCreationManager`.
    """

    async def create(names: tuple[str, ...], context: RequestContext) -> None:
        peer_host = context.peer_host
        topics = tuple(
            CreatableTopic(
                name=TopicName(name),
                num_partitions=i32(partition_count),
                replication_factor=i16(replication_factor),
                assignments=(),
                configs=(),
            )
            for name in names
        )
        requester = None if context.node_id is not None else requester_of(context)
        try:
            response = await controller.submit(CREATE_TOPICS, CreateTopicsRequest(topics=topics), requester=requester)
        except KafkaError as error:
            peer_log.write(
                logging.WARNING,
                peer_host,
                "Auto topic creation failed: peer=%s topics=%s reason=%s",
                peer_host,
                ",".join(names),
                error,
            )
            return
        await settled()
        for result in response.topics:
            code = ErrorCode(int(result.error_code))
            if code == ErrorCode.NONE:
                logger.info("Auto topic creation completed: topic=%s partitions=%d", result.name, result.num_partitions)
            elif code != ErrorCode.TOPIC_ALREADY_EXISTS:
                peer_log.write(
                    logging.WARNING,
                    peer_host,
                    "Auto topic creation failed: peer=%s topic=%s error=%s reason=%s",
                    peer_host,
                    result.name,
                    code.name,
                    result.error_message,
                )

    return create


def create_topics_error(request: CreateTopicsRequest, error: KafkaError) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            CreatableTopicResult(
                name=topic.name,
                topic_id=None,
                error_code=kio_error(error.code),
                error_message=error.message,
                configs=(),
            )
            for topic in request.topics
        ),
    )


def delete_topics_error(request: DeleteTopicsRequest, error: KafkaError) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        throttle_time=NO_THROTTLE,
        responses=tuple(
            DeletableTopicResult(
                name=topic.name,
                topic_id=topic.topic_id,
                error_code=kio_error(error.code),
                error_message=error.message,
            )
            for topic in request.topics
        ),
    )


def create_partitions_error(request: CreatePartitionsRequest, error: KafkaError) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(
            CreatePartitionsTopicResult(name=topic.name, error_code=kio_error(error.code), error_message=error.message)
            for topic in request.topics
        ),
    )
