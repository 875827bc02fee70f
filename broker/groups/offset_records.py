"""The records of a commit, made before its group is asked: of many partitions in a thread, of few at once.

    key    int16 version 1, string group, string topic, int32 partition
    value  int16 version 4, int64 offset, int32 leader epoch, compact string metadata, int64 commit timestamp, tags

What `offset_commit_key` and `offset_commit_value` write is here one `struct` between two parts that all partitions of a
topic have: nothing else is written as often.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from ...protocol.batches import NO_TIMESTAMP
from ...protocol.errors import ErrorCode
from ...protocol.offset_commit import CommittedPartition
from ...protocol.records import EncodedRecords, varlong
from .classic.records import (
    OFFSET_COMMIT_KEY,
    OFFSET_COMMIT_VALUE,
    OffsetCommitValue,
    offset_commit_tags,
    offset_commit_value,
)
from .offset_store import CommittedOffset

Outcomes: TypeAlias = list[ErrorCode]
"""One for each partition."""

_KEY_START: Final = Struct(">hh")
_STRING_START: Final = Struct(">h")
_INT32: Final = Struct(">i")
# Partition, the value's length, version, offset, leader epoch, no metadata, commit timestamp.
_PLAIN: Final = Struct(">iBhqiBq")
_NO_ATTRIBUTES: Final = b"\0\0"
"""Nor a difference from the time of the batch."""
_NO_HEADERS: Final = b"\0"


class TopicOffsets(NamedTuple):
    """What is to be committed of a topic; partitions from `partition_count` on are not known."""

    topic: str
    topic_id: UUID | None
    partition_count: int
    partitions: Sequence[CommittedPartition]


class OffsetRecords(NamedTuple):
    """`outcomes` are those of all partitions, by topic; those without an error are in `accepted`, as in `encoded`."""

    topics: Sequence[TopicOffsets]
    outcomes: Sequence[Outcomes]
    accepted: Sequence[TopicOffsets]
    encoded: EncodedRecords
    commit_timestamp_ms: int

    def known(self) -> Iterator[tuple[UUID | None, int]]:
        """Topic id and index of the partitions that there are."""
        for _, topic_id, partition_count, partitions in self.topics:
            for one in partitions:
                if 0 <= one[0] < partition_count:
                    yield topic_id, one[0]

    def committed(self, first_offset: int) -> Iterator[tuple[str, dict[int, CommittedOffset]]]:
        """What is committed of each topic when the first record has that offset."""
        record_offset = first_offset
        timestamp_ms = self.commit_timestamp_ms
        for topic, topic_id, _, partitions in self.accepted:
            # What `CommittedOffset` does, without its detour through Python.
            yield (
                topic,
                {
                    partition: tuple.__new__(
                        CommittedOffset,
                        (offset, leader_epoch, metadata or "", timestamp_ms, NO_TIMESTAMP, topic_id, number),
                    )
                    for number, (partition, offset, leader_epoch, metadata) in enumerate(partitions, record_offset)
                },
            )
            record_offset += len(partitions)


def codes_by_topic(
    found: Sequence[object], partition_counts: Iterable[int], records: OffsetRecords, failure: ErrorCode
) -> list[Sequence[ErrorCode]]:
    """The code of each partition of a request: `found` has each topic, or the error of all its partitions, `records`
    are of those that are no errors, and `failure`, if any, is of what was to be committed of them."""
    outcomes = iter(records.outcomes)
    codes: list[Sequence[ErrorCode]] = []
    for topic, count in zip(found, partition_counts, strict=True):
        if isinstance(topic, ErrorCode):
            codes.append([topic] * count)
        else:
            of_topic = next(outcomes)
            codes.append([code or failure for code in of_topic] if failure else of_topic)
    return codes


def encode_offsets(
    group_id: str, topics: Sequence[TopicOffsets], *, now_ms: int, metadata_bytes_max: int
) -> OffsetRecords:
    """Their records, in order; UNKNOWN_TOPIC_OR_PARTITION and OFFSET_METADATA_TOO_LARGE are left out.

    `metadata_bytes_max` is `offset.metadata.max.bytes`. May be called in any thread.
    """
    parts: list[bytes] = []
    outcomes: list[Outcomes] = []
    accepted: list[TopicOffsets] = []
    group = group_id.encode()
    group_field = _KEY_START.pack(OFFSET_COMMIT_KEY.version, len(group)) + group
    count = 0
    for topic in topics:
        of_topic, taken = _check(topic, metadata_bytes_max)
        outcomes.append(of_topic)
        if taken.partitions:
            accepted.append(taken)
            _encode_topic(parts, group_field, taken, count, now_ms)
            count += len(taken.partitions)
    return OffsetRecords(topics, outcomes, accepted, EncodedRecords(b"".join(parts), count), now_ms)


def _check(topic: TopicOffsets, metadata_bytes_max: int) -> tuple[Outcomes, TopicOffsets]:
    """What comes of each partition, and the topic with those that are accepted."""
    partition_count = topic.partition_count
    outcomes = [
        ErrorCode.NONE
        if 0 <= index < partition_count and (not metadata or len(metadata) <= metadata_bytes_max)
        else ErrorCode.OFFSET_METADATA_TOO_LARGE
        if 0 <= index < partition_count
        else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for index, _, _, metadata in topic.partitions
    ]
    if not any(outcomes):
        return outcomes, topic
    taken = [one for one, error in zip(topic.partitions, outcomes, strict=True) if not error]
    return outcomes, topic._replace(partitions=taken)


def _encode_topic(parts: list[bytes], group_field: bytes, topic: TopicOffsets, first: int, now_ms: int) -> None:
    """Adds the records, of which the first has that place in the batch."""
    name = topic.topic.encode()
    key_start = group_field + _STRING_START.pack(len(name)) + name
    # Behind its place: the key's length and all of it but the partition.
    start = varlong(len(key_start) + _INT32.size) + key_start
    tags = offset_commit_tags(topic.topic_id)
    (value_length,) = varlong(_PLAIN_VALUE_BYTES + len(tags))
    end = tags + _NO_HEADERS
    rest_bytes = len(start) + _PLAIN.size + len(end)
    version, plain = OFFSET_COMMIT_VALUE.version, _PLAIN.pack
    length, place_bytes = b"", 0
    for number, (partition, offset, leader_epoch, metadata) in enumerate(topic.partitions, first):
        place = _PLACES[number] if number < _PLACES_MAX else _NO_ATTRIBUTES + varlong(number)
        if not metadata:
            if place_bytes != len(place):
                place_bytes = len(place)
                length = varlong(place_bytes + rest_bytes)
            parts += (
                length,
                place,
                start,
                plain(partition, value_length, version, offset, leader_epoch, _EMPTY, now_ms),
                end,
            )
        else:
            value = offset_commit_value(
                OffsetCommitValue(offset, leader_epoch, metadata, now_ms, NO_TIMESTAMP, topic.topic_id)
            )
            record = b"".join((place, start, _INT32.pack(partition), varlong(len(value)), value, _NO_HEADERS))
            parts += (varlong(len(record)), record)


_PLACES_MAX: Final = 1024
_PLACES: Final = tuple(_NO_ATTRIBUTES + varlong(number) for number in range(_PLACES_MAX))
"""Attributes and offset delta of a record, by its place in the batch."""
_EMPTY: Final = 1
"""The length of an empty compact string."""
_PLAIN_VALUE_BYTES: Final = _PLAIN.size - _INT32.size - 1
"""Of a value without metadata and its tags."""
