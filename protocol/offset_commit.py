"""OffsetCommit requests and responses by hand: consumers that commit often send nothing else.

Versions: 2 to 4 with a retention time, which is not looked at, 6 leader epochs (KIP-320), 7 static members (KIP-345), 8
flexible (KIP-482), 10 topic ids (KIP-848).
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from .errors import CorruptData
from .ids import NO_LEADER_EPOCH, TopicId
from .primitives import (
    GARBAGE_ERRORS,
    Buffer,
    length_bytes,
    read_compact_string,
    read_count,
    read_short_string,
    read_string,
    read_topic,
    skip_tags,
    string_bytes,
    uuid_bytes,
)

FIRST_TOPIC_ID_VERSION: Final = 10
"""Of OffsetCommit (KIP-848)."""

_LAST_WITH_RETENTION = 4
_FIRST_WITH_EPOCHS = 6
_FIRST_WITH_INSTANCES = 7
_FIRST_FLEXIBLE = 8
_FIRST_WITH_THROTTLE = 3
_INT = Struct(">i")
_RETENTION_BYTES = 8
_PLACE = Struct(">iq")
_PLACE_WITH_EPOCH = Struct(">iqi")
_START = Struct(">ii")
_OUTCOME = Struct(">ih")
_FLEXIBLE_OUTCOME = Struct(">ihB")


class CommittedPartition(NamedTuple):
    partition_index: int
    offset: int
    leader_epoch: int
    metadata: str | None


class CommittedTopic(NamedTuple):
    """By name or, from version 10, by id: the other is None."""

    name: str | None
    topic_id: TopicId | None
    partitions: tuple[CommittedPartition, ...]


class OffsetCommitRequest(NamedTuple):
    group_id: str
    generation: int
    """Or the member's epoch; -1 from outside the group."""
    member_id: str
    instance_id: str | None
    topics: tuple[CommittedTopic, ...]


def decode_offset_commit(version: int, buffer: Buffer, offset: int) -> OffsetCommitRequest:
    """The request from `offset` to the end of `buffer`. Raises CorruptData."""
    try:
        request, position = _decode(version, buffer, offset)
    except GARBAGE_ERRORS as error:
        raise CorruptData(f"OffsetCommit request v{version} could not be read: {error}") from None
    if position != len(buffer):
        raise CorruptData(f"OffsetCommit request v{version} is followed by {len(buffer) - position} bytes too many")
    return request


def encode_offset_commit_response(
    version: int, correlation_id: int, topics: Sequence[CommittedTopic], errors: Sequence[Sequence[int]]
) -> bytes:
    """The whole frame with its size; `errors` has a code for each partition of each topic."""
    is_flexible = version >= _FIRST_FLEXIBLE
    outcome = _FLEXIBLE_OUTCOME if is_flexible else _OUTCOME
    out = bytearray(_START.pack(0, correlation_id))
    if is_flexible:
        out += b"\0"
    if version >= _FIRST_WITH_THROTTLE:
        out += _INT.pack(0)
    out += length_bytes(len(topics), is_flexible=is_flexible, is_short=False)
    for topic, codes in zip(topics, errors, strict=True):
        if version >= FIRST_TOPIC_ID_VERSION:
            out += uuid_bytes(topic.topic_id)
        else:
            out += string_bytes(topic.name, is_flexible=is_flexible)
        out += length_bytes(len(codes), is_flexible=is_flexible, is_short=False)
        for partition, code in zip(topic.partitions, codes, strict=True):
            out += (
                outcome.pack(partition.partition_index, code, 0)
                if is_flexible
                else outcome.pack(partition.partition_index, code)
            )
        if is_flexible:
            out += b"\0"
    if is_flexible:
        out += b"\0"
    _INT.pack_into(out, 0, len(out) - _INT.size)
    return bytes(out)


def _decode(version: int, buffer: Buffer, position: int) -> tuple[OffsetCommitRequest, int]:
    is_flexible = version >= _FIRST_FLEXIBLE
    group_id, position = _text(buffer, position, "group", is_flexible=is_flexible)
    (generation,) = _INT.unpack_from(buffer, position)
    member_id, position = _text(buffer, position + _INT.size, "member", is_flexible=is_flexible)
    instance_id = None
    if version >= _FIRST_WITH_INSTANCES:
        instance_id, position = read_string(buffer, position, is_flexible=is_flexible)
    elif version <= _LAST_WITH_RETENTION:
        position += _RETENTION_BYTES
    topic_count, position = read_count(buffer, position, is_flexible=is_flexible)
    topics = []
    for _ in range(topic_count):
        topic, position = _decode_topic(version, buffer, position)
        topics.append(topic)
    if is_flexible:
        position = skip_tags(buffer, position)
    return OffsetCommitRequest(group_id, generation, member_id, instance_id, tuple(topics)), position


def _decode_topic(version: int, buffer: Buffer, position: int) -> tuple[CommittedTopic, int]:
    is_flexible = version >= _FIRST_FLEXIBLE
    has_epochs = version >= _FIRST_WITH_EPOCHS
    has_ids = version >= FIRST_TOPIC_ID_VERSION
    name, topic_id, position = read_topic(buffer, position, has_ids=has_ids, is_flexible=is_flexible)
    count, position = read_count(buffer, position, is_flexible=is_flexible)
    read_text = read_compact_string if is_flexible else read_short_string
    partitions = []
    for _ in range(count):
        leader_epoch = NO_LEADER_EPOCH
        if has_epochs:
            index, offset, leader_epoch = _PLACE_WITH_EPOCH.unpack_from(buffer, position)
            position += _PLACE_WITH_EPOCH.size
        else:
            index, offset = _PLACE.unpack_from(buffer, position)
            position += _PLACE.size
        metadata, position = read_text(buffer, position)
        if is_flexible:
            position = position + 1 if buffer[position] == 0 else skip_tags(buffer, position)
        partitions.append(CommittedPartition(index, offset, leader_epoch, metadata))
    if is_flexible:
        position = skip_tags(buffer, position)
    return CommittedTopic(name, topic_id, tuple(partitions)), position


def _text(buffer: Buffer, position: int, what: str, *, is_flexible: bool) -> tuple[str, int]:
    text, position = read_string(buffer, position, is_flexible=is_flexible)
    if text is None:
        raise CorruptData(f"an OffsetCommit request has null for its {what}")
    return text, position
