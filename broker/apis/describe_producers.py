"""DescribeProducers, version 0: the active producers of partitions and their open transactions (KIP-664).

A client must be allowed to read the topic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kio.schema.describe_producers.v0.request import DescribeProducersRequest
from kio.schema.describe_producers.v0.response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from kio.schema.types import ProducerId
from kio.static.primitive import i32, i64

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError, error_info
from ...protocol.messages import NO_THROTTLE, kio_error
from ...quorum.decisions.topic_names import invalid_topic_name
from ...storage.log.rules.producer_entry import ProducerEntry
from ..network.handlers import Handlers
from ..network.request import RequestContext
from ..replicas.replica_manager import ReplicaManager

NO_TRANSACTION = -1


def register(handlers: Handlers, partitions: ReplicaManager, steady_clock_ms: Callable[[], int]) -> None:
    def handle(request: DescribeProducersRequest, context: RequestContext) -> DescribeProducersResponse:
        return describe_producers(partitions, request, context, steady_clock_ms())

    handlers.add_message(ApiKey.DESCRIBE_PRODUCERS, handle, answer_error=error_response)


def describe_producers(
    partitions: ReplicaManager, request: DescribeProducersRequest, context: RequestContext, now_ms: int
) -> DescribeProducersResponse:
    topics = []
    for topic in request.topics:
        refusal = _topic_refusal(partitions, topic.name, context)
        answers = []
        for index in topic.partition_indexes:
            try:
                if refusal is not None:
                    raise refusal
                partition = partitions.get_online(topic.name, index)
                producers = partition.log.producers.active(now_ms)
            except KafkaError as error:
                answers.append(_partition(index, error))
            else:
                answers.append(_partition(index, None, producers))
        topics.append(TopicResponse(name=topic.name, partitions=tuple(answers)))
    return DescribeProducersResponse(throttle_time=NO_THROTTLE, topics=tuple(topics))


def error_response(request: DescribeProducersRequest, error: KafkaError) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            TopicResponse(
                name=topic.name, partitions=tuple(_partition(index, error) for index in topic.partition_indexes)
            )
            for topic in request.topics
        ),
    )


def _topic_refusal(partitions: ReplicaManager, topic: str, context: RequestContext) -> KafkaError | None:
    invalid = invalid_topic_name(topic)
    if invalid is not None:
        return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, invalid)
    if not context.may(ApiKey.DESCRIBE_PRODUCERS, AclOperation.READ, ResourceType.TOPIC, topic):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return KafkaError(code, error_info(code).sentence)
    if topic not in partitions.image.topics.by_name:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return KafkaError(code, error_info(code).sentence)
    return None


def _partition(index: i32, error: KafkaError | None, producers: Sequence[ProducerEntry] = ()) -> PartitionResponse:
    return PartitionResponse(
        partition_index=index,
        error_code=kio_error(ErrorCode.NONE if error is None else error.code),
        error_message=None if error is None else error.message,
        active_producers=tuple(
            ProducerState(
                producer_id=ProducerId(producer.producer_id),
                producer_epoch=i32(producer.epoch),
                last_sequence=i32(producer.last_sequence),
                last_timestamp=i64(producer.last_timestamp),
                coordinator_epoch=i32(producer.coordinator_epoch),
                current_txn_start_offset=i64(
                    NO_TRANSACTION if producer.transaction_first_offset is None else producer.transaction_first_offset
                ),
            )
            for producer in producers
        ),
    )
