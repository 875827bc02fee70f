"""The answer that a request of any API gets when it is refused as a whole, made from the request alone.

Most APIs have such an answer in the product (`answer_error` of their handlers). Those that are read by hand answer
each partition by itself: here all partitions of a request get the same error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kio.schema.list_offsets.v11.response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kio.static.primitive import i64

from ...broker.apis import metadata_response
from ...broker.network.handlers import MessageHandler, ReplyingHandler
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.fetch import decode_fetch, encode_fetch_error
from ...protocol.messages import NO_THROTTLE, decode_request, encode_response, kio_error
from ...protocol.metadata import MetadataRequest
from ...protocol.offset_commit import decode_offset_commit, encode_offset_commit_response
from ...protocol.produce import PartitionProduceResponse, decode_produce, encode_produce_response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...broker.network.handlers import Handlers
    from ...broker.network.request import AnswerPart, Request


def error_answer(handlers: Handlers, request: Request, code: ErrorCode) -> bytes | Sequence[AnswerPart] | None:
    """The whole frame; None where the protocol has no place for an error: the connection is to be closed instead.

    Raises CorruptData when the request cannot be read.
    """
    key, version, correlation_id = request.api_key, request.api_version, request.correlation_id
    if key == ApiKey.PRODUCE:
        return _produce_error(version, correlation_id, request, code)
    if key == ApiKey.FETCH:
        wanted = decode_fetch(version, request.body, request.body_offset)
        return encode_fetch_error(version, correlation_id, wanted, code)
    if key == ApiKey.OFFSET_COMMIT:
        committed = decode_offset_commit(version, request.body, request.body_offset)
        errors = [[int(code)] * len(topic.partitions) for topic in committed.topics]
        return encode_offset_commit_response(version, correlation_id, committed.topics, errors)
    if key == ApiKey.METADATA:
        asked = decode_request(key, version, request.body, request.body_offset, MetadataRequest)
        assert isinstance(asked, MetadataRequest)
        return encode_response(key, version, correlation_id, metadata_response.error_response(asked, code))
    if key == ApiKey.LIST_OFFSETS:
        return encode_response(key, version, correlation_id, _list_offsets_error(request, code))
    handler = handlers.find(key)
    if not isinstance(handler, MessageHandler | ReplyingHandler):
        return None
    message = decode_request(key, version, request.body, request.body_offset)
    return encode_response(key, version, correlation_id, handler.answer_error(message, KafkaError(code)))


def _produce_error(version: int, correlation_id: int, request: Request, code: ErrorCode) -> bytes | None:
    produced = decode_produce(version, request.body, request.body_offset)
    if produced.acks == 0:
        return None
    topics = [
        (topic.name, topic.topic_id, [PartitionProduceResponse(index, int(code)) for index, _ in topic.partitions])
        for topic in produced.topics
    ]
    return encode_produce_response(version, correlation_id, topics)


def _list_offsets_error(request: Request, code: ErrorCode) -> ListOffsetsResponse:
    message: Any = decode_request(request.api_key, request.api_version, request.body, request.body_offset)
    return ListOffsetsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    ListOffsetsPartitionResponse(
                        partition_index=wanted.partition_index,
                        error_code=kio_error(code),
                        timestamp=i64(-1),
                        offset=i64(-1),
                    )
                    for wanted in topic.partitions
                ),
            )
            for topic in message.topics
        ),
    )
