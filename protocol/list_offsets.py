"""ListOffsets requests and responses by hand: librdkafka asks for the start of each partition in a request of its own.

Versions: 2 isolation level (KIP-98) and throttle time, 4 leader epochs (KIP-320), 6 flexible (KIP-482), 10 timeout
(KIP-1075).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final, NamedTuple

from .errors import CorruptData
from .ids import NO_LEADER_EPOCH
from .primitives import GARBAGE_ERRORS, Buffer, length_bytes, read_count, read_string, skip_tags, string_bytes

_FIRST_WITH_ISOLATION: Final = 2
_FIRST_WITH_EPOCHS: Final = 4
_FIRST_FLEXIBLE: Final = 6
_FIRST_WITH_TIMEOUT: Final = 10
_INT = Struct(">i")
_START = Struct(">ib")
_ASKED = Struct(">iq")
_ASKED_WITH_EPOCH = Struct(">iiq")
_RESPONSE_START = Struct(">ii")
_TOLD = Struct(">ihqq")
_TOLD_WITH_EPOCH = Struct(">ihqqi")
_FLEXIBLE_TOLD = Struct(">ihqqiB")


class AskedPartition(NamedTuple):
    partition_index: int
    current_leader_epoch: int
    """What the client takes for it; -1 when it does not know."""
    timestamp: int
    """Milliseconds since 1970, or a position below zero."""


class AskedTopic(NamedTuple):
    name: str
    partitions: Sequence[AskedPartition]


class ListOffsetsRequest(NamedTuple):
    replica_id: int
    """-1: a client, -2: a debugger."""
    isolation_level: int
    topics: Sequence[AskedTopic]
    timeout_ms: int = 0
    """How long to wait for a tier; 0 leaves it to the broker."""


class ToldPartition(NamedTuple):
    partition_index: int
    error_code: int
    timestamp: int
    offset: int
    leader_epoch: int


class ToldTopic(NamedTuple):
    name: str
    partitions: Sequence[ToldPartition]


def decode_list_offsets(version: int, buffer: Buffer, offset: int) -> ListOffsetsRequest:
    """The request from `offset` to the end of `buffer`. Raises CorruptData."""
    try:
        request, position = _decode(version, buffer, offset)
    except GARBAGE_ERRORS as error:
        raise CorruptData(f"ListOffsets request v{version} could not be read: {error}") from None
    if position != len(buffer):
        raise CorruptData(f"ListOffsets request v{version} is followed by {len(buffer) - position} bytes too many")
    return request


def encode_list_offsets_response(version: int, correlation_id: int, topics: Sequence[ToldTopic]) -> bytes:
    """The whole frame with its size; no throttle time."""
    is_flexible = version >= _FIRST_FLEXIBLE
    out = bytearray(_RESPONSE_START.pack(0, correlation_id))
    if is_flexible:
        out += b"\0"
    if version >= _FIRST_WITH_ISOLATION:
        out += _INT.pack(0)
    out += length_bytes(len(topics), is_flexible=is_flexible, is_short=False)
    for topic in topics:
        out += string_bytes(topic.name, is_flexible=is_flexible)
        out += length_bytes(len(topic.partitions), is_flexible=is_flexible, is_short=False)
        out += b"".join(_told(version, topic.partitions))
        if is_flexible:
            out += b"\0"
    if is_flexible:
        out += b"\0"
    _INT.pack_into(out, 0, len(out) - _INT.size)
    return bytes(out)


def _told(version: int, partitions: Iterable[ToldPartition]) -> Iterable[bytes]:
    if version >= _FIRST_FLEXIBLE:
        return [_FLEXIBLE_TOLD.pack(*partition, 0) for partition in partitions]
    if version >= _FIRST_WITH_EPOCHS:
        return [_TOLD_WITH_EPOCH.pack(*partition) for partition in partitions]
    return [_TOLD.pack(*partition[:-1]) for partition in partitions]


def _decode(version: int, buffer: Buffer, position: int) -> tuple[ListOffsetsRequest, int]:
    is_flexible = version >= _FIRST_FLEXIBLE
    isolation_level = 0
    if version >= _FIRST_WITH_ISOLATION:
        replica_id, isolation_level = _START.unpack_from(buffer, position)
        position += _START.size
    else:
        (replica_id,) = _INT.unpack_from(buffer, position)
        position += _INT.size
    topic_count, position = read_count(buffer, position, is_flexible=is_flexible)
    topics = []
    for _ in range(topic_count):
        topic, position = _decode_topic(version, buffer, position)
        topics.append(topic)
    timeout_ms = 0
    if version >= _FIRST_WITH_TIMEOUT:
        (timeout_ms,) = _INT.unpack_from(buffer, position)
        position += _INT.size
    if is_flexible:
        position = skip_tags(buffer, position)
    return ListOffsetsRequest(replica_id, isolation_level, topics, timeout_ms), position


def _decode_topic(version: int, buffer: Buffer, position: int) -> tuple[AskedTopic, int]:
    is_flexible = version >= _FIRST_FLEXIBLE
    has_epochs = version >= _FIRST_WITH_EPOCHS
    name, position = read_string(buffer, position, is_flexible=is_flexible)
    if name is None:
        raise CorruptData("a ListOffsets request has null for a topic's name")
    count, position = read_count(buffer, position, is_flexible=is_flexible)
    partitions = []
    for _ in range(count):
        if has_epochs:
            partitions.append(AskedPartition._make(_ASKED_WITH_EPOCH.unpack_from(buffer, position)))
            position += _ASKED_WITH_EPOCH.size
        else:
            index, timestamp = _ASKED.unpack_from(buffer, position)
            partitions.append(AskedPartition(index, NO_LEADER_EPOCH, timestamp))
            position += _ASKED.size
        if is_flexible:
            position = skip_tags(buffer, position)
    if is_flexible:
        position = skip_tags(buffer, position)
    return AskedTopic(name, partitions), position
