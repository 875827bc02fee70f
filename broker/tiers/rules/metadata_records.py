"""The records of `__remote_log_metadata`, in Apache Kafka's format. Kafka: `RemoteLogMetadataSerde`.

    uvarint  version of the frame, 1
    uvarint  api key: 0 a segment, 1 an update of its state, 2 the deletion of a partition, 3 a snapshot
    uvarint  version, 0
    …        the fields of that message, flexible

Keys are null. Records of other kinds than 0 and 1 are passed over: Kafka 4.3 writes none.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import Final
from uuid import UUID

from ....protocol.errors import CorruptData
from ....protocol.ids import LeaderEpoch, NodeId, TopicId
from ....protocol.murmur2 import murmur2
from ....protocol.primitives import GARBAGE_ERRORS, read_tags, read_uvarint, uvarint
from .remote_segment import RemoteSegment, SegmentState, SegmentUpdate, TierPartition

METADATA_TOPIC: Final = "__remote_log_metadata"

_SEGMENT: Final = 0
_UPDATE: Final = 1
_VERSION: Final = b"\x00"
_FRAME_VERSION: Final = 1
_NO_TAGS: Final = b"\x00"
_NULL: Final = b"\x00"
# Tag 0 of a segment: one byte, whether its transaction index is empty.
_IS_TRANSACTION_INDEX_EMPTY: Final = b"\x01\x00\x01\x01"
_TRANSACTION_INDEX_TAG: Final = 0
_PARTITION: Final = Struct(">16si")
# Start offset, end offset, broker, largest timestamp, event timestamp.
_FACTS: Final = Struct(">qqiqq")
_EPOCH: Final = Struct(">iq")
_SIZE: Final = Struct(">i")
_EVENT: Final = Struct(">iq")
_STATE: Final = Struct(">b")
_UUID_BYTES: Final = 16


def metadata_partition(topic_id: TopicId, index: int, partition_count: int) -> int:
    """Which partition of the topic has what concerns this one. Kafka: `RemoteLogMetadataTopicPartitioner`."""
    most, least = topic_id.int >> 64, topic_id.int & (2**64 - 1)
    value = 1
    for part in (_folded(least), _folded(most), index):
        value = (31 * value + part) & 0xFFFFFFFF
    return (murmur2(value.to_bytes(4, "big")) & 0x7FFFFFFF) % partition_count


def _folded(number: int) -> int:
    """Java's `Long.hashCode`."""
    return (number ^ (number >> 32)) & 0xFFFFFFFF


def encode_event(event: RemoteSegment | SegmentUpdate) -> bytes:
    name = event.partition.topic.encode()
    identity = b"".join(
        (
            uvarint(len(name) + 1),
            name,
            _PARTITION.pack(event.partition.topic_id.bytes, event.partition.partition_index),
            _NO_TAGS,
            event.id.bytes,
            _NO_TAGS,
        )
    )
    if isinstance(event, SegmentUpdate):
        parts = (
            uvarint(_FRAME_VERSION),
            uvarint(_UPDATE),
            _VERSION,
            identity,
            _EVENT.pack(event.broker_id, event.event_ms),
            _NULL,
            _STATE.pack(event.state),
            _NO_TAGS,
        )
        return b"".join(parts)
    return b"".join(
        (
            uvarint(_FRAME_VERSION),
            uvarint(_SEGMENT),
            _VERSION,
            identity,
            _FACTS.pack(event.start_offset, event.end_offset, event.broker_id, event.max_timestamp_ms, event.event_ms),
            uvarint(len(event.leader_epochs) + 1),
            *(_EPOCH.pack(epoch, start) + _NO_TAGS for epoch, start in event.leader_epochs),
            _SIZE.pack(event.size_bytes),
            _NULL,
            _STATE.pack(event.state),
            _NO_TAGS if event.has_aborted_transactions else _IS_TRANSACTION_INDEX_EMPTY,
        )
    )


def decode_event(data: bytes) -> RemoteSegment | SegmentUpdate | None:
    """None for a kind that says nothing here. CorruptData."""
    try:
        frame, position = read_uvarint(data, 0)
        if frame != _FRAME_VERSION:
            raise CorruptData(f"a record of remote log metadata has frame version {frame}")
        key, position = read_uvarint(data, position)
        version, position = read_uvarint(data, position)
        if key not in (_SEGMENT, _UPDATE):
            return None
        if version != 0:
            raise CorruptData(f"a record of remote log metadata has version {version}")
        partition, segment_id, position = _read_identity(data, position)
        if key == _UPDATE:
            broker_id, event_ms = _EVENT.unpack_from(data, position)
            position = _skip_bytes(data, position + _EVENT.size)
            (state,) = _STATE.unpack_from(data, position)
            return SegmentUpdate(
                partition=partition,
                id=segment_id,
                broker_id=NodeId(broker_id),
                event_ms=event_ms,
                state=SegmentState(state),
            )
        start, end, broker_id, max_timestamp_ms, event_ms = _FACTS.unpack_from(data, position)
        epochs, position = _read_epochs(data, position + _FACTS.size)
        (size_bytes,) = _SIZE.unpack_from(data, position)
        position = _skip_bytes(data, position + _SIZE.size)
        (state,) = _STATE.unpack_from(data, position)
        tags, _ = read_tags(data, position + _STATE.size)
    except (struct_error, *GARBAGE_ERRORS) as error:
        raise CorruptData(f"this is no record of remote log metadata: {data[:40].hex()}: {error}") from None
    return RemoteSegment(
        partition=partition,
        id=segment_id,
        start_offset=start,
        end_offset=end,
        max_timestamp_ms=max_timestamp_ms,
        broker_id=NodeId(broker_id),
        event_ms=event_ms,
        size_bytes=size_bytes,
        leader_epochs=epochs,
        state=SegmentState(state),
        has_aborted_transactions=bytes(tags.get(_TRANSACTION_INDEX_TAG, b"\x00")) != b"\x01",
    )


def _read_identity(data: bytes, position: int) -> tuple[TierPartition, UUID, int]:
    length, position = read_uvarint(data, position)
    name = data[position : position + length - 1].decode()
    topic_id, index = _PARTITION.unpack_from(data, position + length - 1)
    _, position = read_tags(data, position + length - 1 + _PARTITION.size)
    segment_id = UUID(bytes=data[position : position + _UUID_BYTES])
    _, position = read_tags(data, position + _UUID_BYTES)
    return TierPartition(name, TopicId(UUID(bytes=topic_id)), index), segment_id, position


def _read_epochs(data: bytes, position: int) -> tuple[tuple[tuple[LeaderEpoch, int], ...], int]:
    count, position = read_uvarint(data, position)
    found = []
    for _ in range(count - 1):
        epoch, start = _EPOCH.unpack_from(data, position)
        found.append((LeaderEpoch(epoch), start))
        _, position = read_tags(data, position + _EPOCH.size)
    return tuple(sorted(found)), position


def _skip_bytes(data: bytes, position: int) -> int:
    """Custom metadata, which nothing here uses."""
    length, position = read_uvarint(data, position)
    return position + max(length - 1, 0)
