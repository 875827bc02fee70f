"""Produce requests of one partition, and answers that tell no more than where its records are: nearly all there are.

What `produce.py` reads and writes field by field is here one step for each side of the topic, because one request with
one small batch is the measure of the whole broker. Whatever is not of this kind is left to that module.
"""

from struct import Struct
from typing import TypeAlias

from .primitives import GARBAGE_ERRORS, Buffer, read_uvarint

FIRST_PLAIN = 8
"""The first version whose answers have one layout but for the topic and the tags."""
FIRST_TOPIC_ID_VERSION = 13
"""Of Produce (KIP-516)."""
_FIRST_FLEXIBLE = 9

# No transaction, acks, timeout, one topic; its id, one partition, its index.
_START_13 = Struct(">BhiB16sBi")
_START_9 = Struct(">BhiBB")
_INDEX_9 = Struct(">Bi")
_START_3 = Struct(">hhiih")
_INDEX_3 = Struct(">iii")
_ONE = 2
"""A count of one, as a compact array has it."""
_NO_TAGS = b"\0\0\0"
"""Of the partition, the topic and the request."""
_ONE_BYTE_LENGTH = 0x80
"""Lengths from here on take a second byte."""

# What stands before and after the topic in an answer. Size, correlation id, no tags, one topic; one partition, its
# index, error code, base offset, log append time, log start offset, no record errors, no message, no tags, no tags of
# the topic, throttle time, no tags of the answer. Version 8 has no tags.
_ANSWER_START_9 = Struct(">iiBB")
_ANSWER_END_9 = Struct(">BihqqqBBBBiB")
_ANSWER_SIZE_9 = _ANSWER_START_9.size + _ANSWER_END_9.size - 4
_ANSWER_START_8 = Struct(">iii")
_ANSWER_END_8 = Struct(">iihqqqihi")
_ANSWER_SIZE_8 = _ANSWER_START_8.size + _ANSWER_END_8.size - 4

SingleProduce: TypeAlias = tuple[int, int, bytes, str | None, int, Buffer]
"""Acks; timeout in milliseconds; the topic as it stands in the request, with its length if that is a name, and so in
the answer; its name, None where it has an id; the partition's index; its records, a part of the buffer."""


def read_single_produce(version: int, buffer: Buffer, offset: int) -> SingleProduce | None:
    """The request from `offset` to the end of `buffer`, outside a transaction and for one partition that has records.

    None for every other request and for bytes that are none: `decode_produce` tells which.
    """
    try:
        if version >= FIRST_TOPIC_ID_VERSION:
            no_transaction, acks, timeout_ms, topics, topic, partitions, index = _START_13.unpack_from(buffer, offset)
            name = None
            position = offset + _START_13.size
        elif version >= _FIRST_FLEXIBLE:
            no_transaction, acks, timeout_ms, topics, length = _START_9.unpack_from(buffer, offset)
            start = offset + _START_9.size - 1
            position = start + length
            if not 0 < length < _ONE_BYTE_LENGTH:
                return None
            topic = bytes(buffer[start:position])
            name = str(topic[1:], "utf-8")
            partitions, index = _INDEX_9.unpack_from(buffer, position)
            position += _INDEX_9.size
        elif version >= FIRST_PLAIN:
            return _read_legacy(buffer, offset)
        else:
            return None
        if no_transaction or topics != _ONE or partitions != _ONE:
            return None
        size, position = read_uvarint(buffer, position)
    except GARBAGE_ERRORS:
        return None
    end = position + size - 1
    if size == 0 or buffer[end:] != _NO_TAGS:
        return None
    return acks, timeout_ms, topic, name, index, buffer[position:end]


def encode_single_produce(
    version: int,
    correlation_id: int,
    topic: bytes,
    index: int,
    error_code: int,
    base_offset: int,
    log_append_time_ms: int,
    log_start_offset: int,
    throttle_time_ms: int = 0,
) -> bytes:
    """The whole frame with its size, from version 8 on; `topic` is the field as this version writes it."""
    if version >= _FIRST_FLEXIBLE:
        return b"".join(
            (
                _ANSWER_START_9.pack(_ANSWER_SIZE_9 + len(topic), correlation_id, 0, _ONE),
                topic,
                _ANSWER_END_9.pack(
                    _ONE,
                    index,
                    error_code,
                    base_offset,
                    log_append_time_ms,
                    log_start_offset,
                    1,
                    0,
                    0,
                    0,
                    throttle_time_ms,
                    0,
                ),
            )
        )
    return b"".join(
        (
            _ANSWER_START_8.pack(_ANSWER_SIZE_8 + len(topic), correlation_id, 1),
            topic,
            _ANSWER_END_8.pack(
                1, index, error_code, base_offset, log_append_time_ms, log_start_offset, 0, -1, throttle_time_ms
            ),
        )
    )


def _read_legacy(buffer: Buffer, offset: int) -> SingleProduce | None:
    """The same before the flexible versions."""
    no_transaction, acks, timeout_ms, topics, length = _START_3.unpack_from(buffer, offset)
    start = offset + _START_3.size - 2
    position = start + 2 + length
    if no_transaction != -1 or topics != 1 or length < 0:
        return None
    topic = bytes(buffer[start:position])
    partitions, index, size = _INDEX_3.unpack_from(buffer, position)
    position += _INDEX_3.size
    if partitions != 1 or size < 0 or position + size != len(buffer):
        return None
    return acks, timeout_ms, topic, str(topic[2:], "utf-8"), index, buffer[position:]
