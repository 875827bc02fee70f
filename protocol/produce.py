"""Produce requests and responses by hand: they are most of what a broker reads. No record is copied or opened.

Versions: 3 (KIP-98), 5 log start offset (KIP-107), 8 record errors (KIP-467), 9 flexible (KIP-482), 10 current leader
and endpoints (KIP-951), 13 topic ids (KIP-516).

A varint of one byte is read without a call. Requests and answers of one partition have a short cut of their own in
`single_produce.py`.
"""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple, TypeAlias

from .errors import CorruptData
from .ids import TopicId
from .primitives import (
    GARBAGE_ERRORS,
    Buffer,
    length_bytes,
    read_compact_string,
    read_short_string,
    read_tags,
    read_uvarint,
    string_bytes,
    topic_id_from,
    uuid_bytes,
    uvarint,
)
from .single_produce import FIRST_PLAIN, FIRST_TOPIC_ID_VERSION, encode_single_produce

ENTRIES_MAX = 100_000
"""Topics and partitions of one request. An honest entry has a batch of 62 bytes or more; one of three bytes, of which
100 MiB have 35 million, would keep the reader, and with it all other clients, for half a minute."""

FIRST_ZSTD_VERSION = 7
"""Of Produce (KIP-110)."""
FIRST_LEADER_HINT_VERSION = 10
"""The first whose response may name the current leader (KIP-951)."""

_FIRST_FLEXIBLE = 9
_ACKS_AND_TIMEOUT = Struct(">hi")
# Acks, timeout, topic count.
_LEGACY_START = Struct(">hii")
_INDEX_AND_SIZE = Struct(">ii")
_INT = Struct(">i")
_START = Struct(">ii")
# Index, error code, base offset, log append time, log start offset; then no record errors, no message, no tags.
_PLAIN_FLEXIBLE = Struct(">ihqqqBBB")
_PLAIN_8 = Struct(">ihqqqih")
_PLAIN_5 = Struct(">ihqqq")
_PLAIN_3 = Struct(">ihqq")
_LEADER = Struct(">ii")
# The last three fields of a PartitionProduceResponse that says no more than its numbers.
_NO_NEWS = ((), None, None)


class ProduceTopic(NamedTuple):
    """One topic of a request, by name or, from version 13, by id: the other is None.

    `partitions` has (index, records); the records are a part of the buffer that was decoded, None where they were null.
    """

    name: str | None
    topic_id: TopicId | None
    partitions: tuple[tuple[int, Buffer | None], ...]


class ProduceRequest(NamedTuple):
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: tuple[ProduceTopic, ...]


class PartitionProduceResponse(NamedTuple):
    """The answer for one partition. `record_errors` has (index in the batch, message); `current_leader` (id, epoch)."""

    partition_index: int
    error_code: int = 0
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[tuple[int, str | None]] = ()
    error_message: str | None = None
    current_leader: tuple[int, int] | None = None


class NodeEndpoint(NamedTuple):
    """Where a leader that an answer names can be reached (KIP-951)."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


TopicProduceResponse: TypeAlias = tuple[str | None, TopicId | None, Sequence[PartitionProduceResponse]]


def decode_produce(version: int, buffer: Buffer, offset: int) -> ProduceRequest:
    """The request from `offset` to the end of `buffer`, or CorruptData. What records it has is not looked at."""
    try:
        if version >= _FIRST_FLEXIBLE:
            request, position = _decode_flexible(version, buffer, offset)
        else:
            request, position = _decode_legacy(buffer, offset)
    except GARBAGE_ERRORS as error:
        raise CorruptData(f"Produce request v{version} could not be read: {error}") from None
    if position != len(buffer):
        raise CorruptData(f"Produce request v{version} is followed by {len(buffer) - position} bytes too many")
    return request


def encode_produce_response(
    version: int,
    correlation_id: int,
    topics: Sequence[TopicProduceResponse],
    throttle_time_ms: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> bytes:
    """The whole frame with its size."""
    if len(topics) == 1 and version >= FIRST_PLAIN and not node_endpoints:
        name, topic_id, partitions = topics[0]
        if len(partitions) == 1 and partitions[0][5:] == _NO_NEWS:
            topic = _topic_bytes(version, name, topic_id)
            return encode_single_produce(version, correlation_id, topic, *partitions[0][:5], throttle_time_ms)
    is_flexible = version >= _FIRST_FLEXIBLE
    out = bytearray(_START.pack(0, correlation_id))
    if is_flexible:
        out += b"\0"
    out += length_bytes(len(topics), is_flexible=is_flexible, is_short=False)
    for name, topic_id, partitions in topics:
        out += _topic_bytes(version, name, topic_id)
        out += length_bytes(len(partitions), is_flexible=is_flexible, is_short=False)
        for partition in partitions:
            _write_partition(out, version, partition)
        if is_flexible:
            out += b"\0"
    out += _INT.pack(throttle_time_ms)
    if is_flexible:
        out += _node_endpoint_tags(version, node_endpoints)
    _INT.pack_into(out, 0, len(out) - _INT.size)
    return bytes(out)


def node_endpoints_field(node_endpoints: Sequence[NodeEndpoint]) -> bytes:
    """The tagged field 0 of Produce and Fetch responses, with its tag and size."""
    encoded = bytearray(uvarint(len(node_endpoints) + 1))
    for endpoint in node_endpoints:
        encoded += _INT.pack(endpoint.node_id)
        encoded += string_bytes(endpoint.host, is_flexible=True)
        encoded += _INT.pack(endpoint.port)
        encoded += string_bytes(endpoint.rack, is_flexible=True)
        encoded += b"\0"
    return b"\0" + uvarint(len(encoded)) + bytes(encoded)


def _decode_flexible(version: int, buffer: Buffer, position: int) -> tuple[ProduceRequest, int]:
    has_ids = version >= FIRST_TOPIC_ID_VERSION
    buffer_size = len(buffer)
    name: str | None = None
    topic_id: TopicId | None = None
    if buffer[position] == 0:
        transactional_id = None
        position += 1
    else:
        transactional_id, position = read_compact_string(buffer, position)
    acks, timeout_ms = _ACKS_AND_TIMEOUT.unpack_from(buffer, position)
    position += 6
    topic_count = buffer[position]
    position += 1
    if topic_count >= 0x80:
        topic_count, position = read_uvarint(buffer, position - 1)
    if topic_count == 0:
        raise CorruptData(f"Produce request v{version} has null for its topics")
    entries_left = _entries_left(ENTRIES_MAX, topic_count)
    topics = []
    for _ in range(topic_count - 1):
        if has_ids:
            topic_id = topic_id_from(bytes(buffer[position : position + 16]))
            position += 16
        else:
            name, position = read_compact_string(buffer, position)
            if name is None:
                raise CorruptData(f"Produce request v{version} has null for a topic's name")
        partition_count = buffer[position]
        position += 1
        if partition_count >= 0x80:
            partition_count, position = read_uvarint(buffer, position - 1)
        if partition_count == 0:
            raise CorruptData(f"Produce request v{version} has null for a topic's partitions")
        entries_left = _entries_left(entries_left, partition_count)
        partitions: list[tuple[int, Buffer | None]] = []
        for _ in range(partition_count - 1):
            (index,) = _INT.unpack_from(buffer, position)
            size, position = read_uvarint(buffer, position + 4)
            if size == 0:
                partitions.append((index, None))
            else:
                end = position + size - 1
                if end > buffer_size:
                    raise CorruptData(f"records of {size - 1} bytes announced, {buffer_size - position} are left")
                partitions.append((index, buffer[position:end]))
                position = end
            position = position + 1 if buffer[position] == 0 else read_tags(buffer, position)[1]
        position = position + 1 if buffer[position] == 0 else read_tags(buffer, position)[1]
        topics.append(ProduceTopic(name, topic_id, tuple(partitions)))
    position = position + 1 if buffer[position] == 0 else read_tags(buffer, position)[1]
    return ProduceRequest(transactional_id, acks, timeout_ms, tuple(topics)), position


def _entries_left(entries_left: int, count: int) -> int:
    if count > entries_left:
        raise CorruptData(f"a Produce request has more than {ENTRIES_MAX} topics and partitions")
    return entries_left - count


def _decode_legacy(buffer: Buffer, position: int) -> tuple[ProduceRequest, int]:
    buffer_size = len(buffer)
    transactional_id, position = read_short_string(buffer, position)
    acks, timeout_ms, topic_count = _LEGACY_START.unpack_from(buffer, position)
    position += 10
    if topic_count < 0:
        raise CorruptData("a Produce request has null for its topics")
    entries_left = _entries_left(ENTRIES_MAX, topic_count)
    topics = []
    for _ in range(topic_count):
        name, position = read_short_string(buffer, position)
        if name is None:
            raise CorruptData("a Produce request has null for a topic's name")
        (partition_count,) = _INT.unpack_from(buffer, position)
        position += 4
        if partition_count < 0:
            raise CorruptData("a Produce request has null for a topic's partitions")
        entries_left = _entries_left(entries_left, partition_count)
        partitions: list[tuple[int, Buffer | None]] = []
        for _ in range(partition_count):
            index, size = _INDEX_AND_SIZE.unpack_from(buffer, position)
            position += 8
            if size == -1:
                partitions.append((index, None))
            else:
                end = position + size
                if not position <= end <= buffer_size:
                    raise CorruptData(f"records of {size} bytes announced, {buffer_size - position} are left")
                partitions.append((index, buffer[position:end]))
                position = end
        topics.append(ProduceTopic(name, None, tuple(partitions)))
    return ProduceRequest(transactional_id, acks, timeout_ms, tuple(topics)), position


def _topic_bytes(version: int, name: str | None, topic_id: TopicId | None) -> bytes:
    """How an answer tells which topic it is about."""
    if version >= FIRST_TOPIC_ID_VERSION:
        return uuid_bytes(topic_id)
    return string_bytes(name or "", is_flexible=version >= _FIRST_FLEXIBLE)


def _write_partition(out: bytearray, version: int, partition: PartitionProduceResponse) -> None:
    index, error_code, base_offset, log_append_time_ms, log_start_offset, record_errors, message, leader = partition
    is_plain = not record_errors and message is None
    if version >= _FIRST_FLEXIBLE:
        if is_plain and leader is None:
            out += _PLAIN_FLEXIBLE.pack(index, error_code, base_offset, log_append_time_ms, log_start_offset, 1, 0, 0)
            return
    elif version == 8:
        if is_plain:
            out += _PLAIN_8.pack(index, error_code, base_offset, log_append_time_ms, log_start_offset, 0, -1)
            return
    elif version >= 5:
        out += _PLAIN_5.pack(index, error_code, base_offset, log_append_time_ms, log_start_offset)
        return
    else:
        out += _PLAIN_3.pack(index, error_code, base_offset, log_append_time_ms)
        return
    is_flexible = version >= _FIRST_FLEXIBLE
    out += _PLAIN_5.pack(index, error_code, base_offset, log_append_time_ms, log_start_offset)
    out += length_bytes(len(record_errors), is_flexible=is_flexible, is_short=False)
    for batch_index, record_message in record_errors:
        out += _INT.pack(batch_index)
        out += string_bytes(record_message, is_flexible=is_flexible)
        if is_flexible:
            out += b"\0"
    out += string_bytes(message, is_flexible=is_flexible)
    if is_flexible:
        if leader is None or version < FIRST_LEADER_HINT_VERSION:
            out += b"\0"
        else:
            # One tagged field: tag 0, nine bytes, of which the last says that the struct has no tags of its own.
            out += b"\x01\0\x09" + _LEADER.pack(*leader) + b"\0"


def _node_endpoint_tags(version: int, node_endpoints: Sequence[NodeEndpoint]) -> bytes:
    if not node_endpoints or version < FIRST_LEADER_HINT_VERSION:
        return b"\0"
    return b"\x01" + node_endpoints_field(node_endpoints)
