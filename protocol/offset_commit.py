"""OffsetCommit requests and responses by hand: consumers that commit often send nothing else.

Versions: 2 to 4 with a retention time, which is not looked at, 6 leader epochs (KIP-320), 7 static members (KIP-345), 8
flexible (KIP-482), 10 topic ids (KIP-848).
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from .errors import CorruptData
from .ids import NO_LEADER_EPOCH, TopicId
from .primitives import (
    GARBAGE_ERRORS,
    Buffer,
    length_bytes,
    read_compact_string,
    read_count,
    read_short_string,
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
# Partitions without metadata: its length is that of null or of an empty string; no tags.
_PLAIN = Struct(">iqh")
_PLAIN_WITH_EPOCH = Struct(">iqih")
_PLAIN_FLEXIBLE = Struct(">iqiBB")
_NO_METADATA = {-1: None, 0: ""}
_NO_COMPACT_METADATA = {0: None, 1: ""}
_START = Struct(">ii")
_OUTCOME = Struct(">ih")
_FLEXIBLE_OUTCOME = Struct(">ihB")

CommittedPartition: TypeAlias = tuple[int, int, int, str | None]
"""Its index; offset; leader epoch of the record before it, -1 when the client does not say; metadata. A plain tuple:
one of a class takes five times as long, and a commit has one for each partition."""


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
        outcomes = zip(topic.partitions, codes, strict=True)
        if is_flexible:
            out += b"".join([_FLEXIBLE_OUTCOME.pack(partition[0], code, 0) for partition, code in outcomes]) + b"\0"
        else:
            out += b"".join([_OUTCOME.pack(partition[0], code) for partition, code in outcomes])
    if is_flexible:
        out += b"\0"
    _INT.pack_into(out, 0, len(out) - _INT.size)
    return bytes(out)


def _decode(version: int, buffer: Buffer, position: int) -> tuple[OffsetCommitRequest, int]:
    is_flexible = version >= _FIRST_FLEXIBLE
    read_text = read_compact_string if is_flexible else read_short_string
    group_id, position = read_text(buffer, position)
    (generation,) = _INT.unpack_from(buffer, position)
    member_id, position = read_text(buffer, position + _INT.size)
    if group_id is None or member_id is None:
        raise CorruptData("an OffsetCommit request has null for its group or member")
    instance_id = None
    if version >= _FIRST_WITH_INSTANCES:
        instance_id, position = read_text(buffer, position)
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
    has_ids = version >= FIRST_TOPIC_ID_VERSION
    name, topic_id, position = read_topic(buffer, position, has_ids=has_ids, is_flexible=is_flexible)
    count, position = read_count(buffer, position, is_flexible=is_flexible)
    plain = _decode_plain(version, buffer, position, count)
    partitions, position = _decode_partitions(version, buffer, position, count) if plain is None else plain
    if is_flexible:
        position = skip_tags(buffer, position)
    return CommittedTopic(name, topic_id, partitions), position


def _decode_plain(
    version: int, buffer: Buffer, position: int, count: int
) -> tuple[tuple[CommittedPartition, ...], int] | None:
    """Partitions of which none has metadata or tags, as most clients send them; None for others."""
    if version >= _FIRST_FLEXIBLE:
        layout = _PLAIN_FLEXIBLE
    else:
        layout = _PLAIN_WITH_EPOCH if version >= _FIRST_WITH_EPOCHS else _PLAIN
    end = position + count * layout.size
    if end > len(buffer):
        return None
    # As long as all before it were plain, a partition begins where it is looked for.
    found = layout.iter_unpack(buffer[position:end])
    try:
        if layout is _PLAIN_FLEXIBLE:
            partitions = [
                (index, offset, leader_epoch, _NO_COMPACT_METADATA[length | tags << 8])
                for index, offset, leader_epoch, length, tags in found
            ]
        elif layout is _PLAIN_WITH_EPOCH:
            partitions = [
                (index, offset, leader_epoch, _NO_METADATA[length]) for index, offset, leader_epoch, length in found
            ]
        else:
            partitions = [(index, offset, NO_LEADER_EPOCH, _NO_METADATA[length]) for index, offset, length in found]
    except KeyError:
        return None
    return tuple(partitions), end


def _decode_partitions(
    version: int, buffer: Buffer, position: int, count: int
) -> tuple[tuple[CommittedPartition, ...], int]:
    is_flexible = version >= _FIRST_FLEXIBLE
    has_epochs = version >= _FIRST_WITH_EPOCHS
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
        partitions.append((index, offset, leader_epoch, metadata))
    return tuple(partitions), position
