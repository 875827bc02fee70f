"""Fetch requests and responses by hand: no record is copied, and batches in an answer stay file slices until written.

Versions: 4 (KIP-98), 5 log start offset (KIP-107), 7 sessions (KIP-227), 9 leader epoch (KIP-320), 11 rack (KIP-392),
12 flexible, divergence (KIP-482, KIP-595), 13 topic ids (KIP-516), 15 replica state (KIP-903), 16 endpoints (KIP-951),
17 directory ids (KIP-853), 18 high watermark (KIP-1166).
"""

from collections.abc import Sequence
from struct import Struct
from typing import Generic, NamedTuple, Never, Protocol, TypeAlias, TypeVar
from uuid import UUID

import msgspec

from .errors import CorruptData
from .ids import NO_BROKER_EPOCH, NO_LEADER_EPOCH, NO_NODE, BrokerEpoch, LeaderEpoch, NodeId, TopicId
from .primitives import (
    GARBAGE_ERRORS,
    Buffer,
    length_bytes,
    read_count,
    read_string,
    read_tags,
    read_topic,
    string_bytes,
    take,
    uuid_bytes,
    uuid_from,
    uvarint,
)
from .produce import NodeEndpoint, node_endpoints_field

MAX_OFFSET = 2**63 - 1
NO_SESSION = 0
"""The session id of a fetch outside a session (KIP-227)."""
READ_COMMITTED = 1
"""The `isolation_level` of Fetch and ListOffsets that ends at the last stable offset (KIP-98)."""

FIRST_ZSTD_VERSION = 10
"""Of Fetch (KIP-110)."""
FIRST_TOPIC_ID_VERSION = 13
"""Of Fetch (KIP-516)."""
FIRST_LEADER_HINT_VERSION = 16
"""The first whose response may name the current leader (KIP-951)."""

_FIRST_WITH_SESSIONS = 7
_FIRST_WITH_RACK = 11
_FIRST_FLEXIBLE = 12
_FIRST_WITH_REPLICA_STATE = 15

_INT = Struct(">i")
_LONG = Struct(">q")
_START = Struct(">ii")
_REPLICA_STATE = Struct(">iq")
_LIMITS = Struct(">iiib")
_SESSION = Struct(">ii")
# Index, [leader epoch], fetch offset, [last fetched epoch], [log start offset], max bytes.
_PARTITION_12 = Struct(">iiqiqi")
# The same with a byte for tags behind it: 0 when there are none.
_UNTAGGED_12 = Struct(">iiqiqix")
_PARTITION_9 = Struct(">iiqqi")
_PARTITION_5 = Struct(">iqqi")
_PARTITION_4 = Struct(">iqi")
# Index, error code, high watermark, last stable offset, log start offset.
_ANSWER_5 = Struct(">ihqqq")
_ANSWER_4 = Struct(">ihqq")
# The same, then no aborted transactions, preferred read replica.
_PLAIN_ANSWER_12 = Struct(">ihqqqBi")
# The same, then no records and no tags.
_EMPTY_ANSWER_12 = Struct(">ihqqqBiBB")
_NO_RECORDS = ((), None)
_NOTHING_MORE = (None, None, None)
_ABORTED = Struct(">qq")
_EPOCH_AND_OFFSET = Struct(">iq")
_OFFSET_AND_EPOCH = Struct(">qi")


class FetchPartition(msgspec.Struct, frozen=True):
    """What a client wants of one partition; -1 where its version has no such field or it does not know."""

    partition_index: int
    current_leader_epoch: LeaderEpoch
    fetch_offset: int
    last_fetched_epoch: LeaderEpoch
    log_start_offset: int
    partition_max_bytes: int
    replica_directory_id: UUID | None = None
    high_watermark: int = MAX_OFFSET


class FetchTopic(NamedTuple):
    """One topic of a request, by name or, from version 13, by id: the other is None."""

    name: str | None
    topic_id: TopicId | None
    partitions: tuple[FetchPartition, ...]


class ForgottenTopic(NamedTuple):
    """Partitions to be taken out of the fetch session."""

    name: str | None
    topic_id: TopicId | None
    partitions: tuple[int, ...]


class FetchRequest(NamedTuple):
    """`replica_id` is -1 for a consumer; `isolation_level` 0 read_uncommitted, 1 read_committed."""

    replica_id: NodeId
    replica_epoch: BrokerEpoch
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: tuple[FetchTopic, ...]
    forgotten_topics: tuple[ForgottenTopic, ...]
    rack_id: str
    cluster_id: str | None = None


class HasSize(Protocol):
    """A part of an answer that is read when it is written: only its size in bytes must be known."""

    @property
    def size(self) -> int: ...


T = TypeVar("T", bound=HasSize)


class PartitionFetchResponse(NamedTuple, Generic[T]):
    """The answer for one partition: `slices` hold its batches.

    `aborted_transactions` has (producer id, first offset), None for read_uncommitted; `diverging_epoch` (epoch, end
    offset); `current_leader` (id, epoch); `snapshot_id` (end offset, epoch).
    """

    partition_index: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    slices: Sequence[T] = ()
    aborted_transactions: Sequence[tuple[int, int]] | None = None
    preferred_read_replica: int = -1
    diverging_epoch: tuple[LeaderEpoch, int] | None = None
    current_leader: tuple[NodeId, LeaderEpoch] | None = None
    snapshot_id: tuple[int, int] | None = None


TopicFetchResponse: TypeAlias = tuple[str | None, TopicId | None, Sequence[PartitionFetchResponse[T]]]


def decode_fetch(version: int, buffer: Buffer, offset: int) -> FetchRequest:
    """The request from `offset` to the end of `buffer`, or CorruptData."""
    try:
        request, position = _decode(version, buffer, offset)
    except GARBAGE_ERRORS as error:
        raise CorruptData(f"Fetch request v{version} could not be read: {error}") from None
    if position != len(buffer):
        raise CorruptData(f"Fetch request v{version} is followed by {len(buffer) - position} bytes too many")
    return request


def encode_fetch_response(
    version: int,
    correlation_id: int,
    topics: Sequence[TopicFetchResponse[T]],
    *,
    error_code: int = 0,
    session_id: int = 0,
    throttle_time_ms: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> list[bytes | T]:
    """The frame in parts: bytes, and between them the slices given, in order. Its size counts the slices' too."""
    is_flexible = version >= _FIRST_FLEXIBLE
    parts: list[bytes | T] = []
    frame_size = 0
    out = bytearray(_START.pack(0, correlation_id))
    if is_flexible:
        out += b"\0"
    out += _INT.pack(throttle_time_ms)
    if version >= _FIRST_WITH_SESSIONS:
        out += error_code.to_bytes(2, "big", signed=True)
        out += _INT.pack(session_id)
    out += length_bytes(len(topics), is_flexible=is_flexible, is_short=False)
    for name, topic_id, partitions in topics:
        if version >= FIRST_TOPIC_ID_VERSION:
            out += uuid_bytes(topic_id)
        else:
            out += string_bytes(name or "", is_flexible=is_flexible)
        out += length_bytes(len(partitions), is_flexible=is_flexible, is_short=False)
        for partition in partitions:
            if is_flexible and partition[5:7] == _NO_RECORDS and partition[-3:] == _NOTHING_MORE:
                out += _EMPTY_ANSWER_12.pack(*partition[:5], 0, partition.preferred_read_replica, 1, 0)
                continue
            size = 0
            for part in partition.slices:
                size += part.size
            _write_partition_start(out, version, partition, size)
            if size > 0:
                parts.append(bytes(out))
                parts.extend(partition.slices)
                frame_size += len(out) + size
                out = bytearray()
            if is_flexible:
                out += _partition_tags(partition)
        if is_flexible:
            out += b"\0"
    if is_flexible:
        if node_endpoints and version >= FIRST_LEADER_HINT_VERSION:
            out += b"\x01" + node_endpoints_field(node_endpoints)
        else:
            out += b"\0"
    if out:
        parts.append(bytes(out))
        frame_size += len(out)
    first = parts[0]
    assert isinstance(first, bytes)
    parts[0] = _INT.pack(frame_size - _INT.size) + first[_INT.size :]
    return parts


def encode_fetch_error(version: int, correlation_id: int, request: FetchRequest, error_code: int) -> list[bytes]:
    """The answer to a request that is refused as a whole; below version 13 each of its partitions has the error too.

    Kafka: `FetchRequest.getErrorResponse`.
    """
    topics: list[TopicFetchResponse[Never]] = []
    if version < FIRST_TOPIC_ID_VERSION:
        topics = [
            (topic.name, None, [PartitionFetchResponse(one.partition_index, error_code) for one in topic.partitions])
            for topic in request.topics
            if topic.partitions
        ]
    return encode_fetch_response(version, correlation_id, topics, error_code=error_code, session_id=request.session_id)


def _decode(version: int, buffer: Buffer, position: int) -> tuple[FetchRequest, int]:
    is_flexible = version >= _FIRST_FLEXIBLE
    replica_id, replica_epoch = NO_NODE, NO_BROKER_EPOCH
    if version < _FIRST_WITH_REPLICA_STATE:
        (replica_id,) = _INT.unpack_from(buffer, position)
        position += _INT.size
    max_wait_ms, min_bytes, max_bytes, isolation_level = _LIMITS.unpack_from(buffer, position)
    position += _LIMITS.size
    # Without a session every fetch is a full one (KIP-227).
    session_id, session_epoch = 0, -1
    if version >= _FIRST_WITH_SESSIONS:
        session_id, session_epoch = _SESSION.unpack_from(buffer, position)
        position += _SESSION.size
    topics, position = _read_topics(version, buffer, position)
    forgotten: tuple[ForgottenTopic, ...] = ()
    if is_flexible and buffer[position] == 1:
        position += 1
    elif version >= _FIRST_WITH_SESSIONS:
        forgotten, position = _read_forgotten(version, buffer, position)
    rack_id = ""
    if is_flexible and buffer[position] == 1:
        position += 1
    elif version >= _FIRST_WITH_RACK:
        rack, position = read_string(buffer, position, is_flexible=is_flexible)
        if rack is None:
            raise CorruptData(f"Fetch request v{version} has null for a rack")
        rack_id = rack
    cluster_id = None
    if is_flexible:
        if buffer[position] == 0:
            position += 1
        else:
            tags, position = read_tags(buffer, position)
            if 0 in tags:
                cluster_id, _ = read_string(tags[0], 0, is_flexible=True)
            if 1 in tags and version >= _FIRST_WITH_REPLICA_STATE:
                replica_id, replica_epoch = _REPLICA_STATE.unpack_from(tags[1], 0)
    request = FetchRequest(
        replica_id,
        replica_epoch,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten,
        rack_id,
        cluster_id,
    )
    return request, position


def _read_topics(version: int, buffer: Buffer, position: int) -> tuple[tuple[FetchTopic, ...], int]:
    is_flexible = version >= _FIRST_FLEXIBLE
    has_ids = version >= FIRST_TOPIC_ID_VERSION
    topic_count, position = read_count(buffer, position, is_flexible=is_flexible)
    topics = []
    for _ in range(topic_count):
        name, topic_id, position = read_topic(buffer, position, has_ids=has_ids, is_flexible=is_flexible)
        count, position = read_count(buffer, position, is_flexible=is_flexible)
        partitions = []
        if is_flexible and _are_untagged(buffer, position, count):
            end = position + count * _UNTAGGED_12.size
            partitions = [FetchPartition(*fields) for fields in _UNTAGGED_12.iter_unpack(buffer[position:end])]
            position, count = end, 0
        for _ in range(count):
            if is_flexible:
                fields = _PARTITION_12.unpack_from(buffer, position)
                position += _PARTITION_12.size
                if buffer[position] == 0:
                    position += 1
                    partitions.append(FetchPartition(*fields))
                else:
                    tags, position = read_tags(buffer, position)
                    directory_id = uuid_from(bytes(take(tags[0], 0, 16))) if 0 in tags else None
                    high_watermark = _LONG.unpack_from(tags[1], 0)[0] if 1 in tags else MAX_OFFSET
                    partitions.append(FetchPartition(*[*fields, directory_id, high_watermark]))
            elif version >= 9:
                index, leader_epoch, fetch_offset, log_start, max_bytes = _PARTITION_9.unpack_from(buffer, position)
                position += _PARTITION_9.size
                partitions.append(
                    FetchPartition(index, leader_epoch, fetch_offset, NO_LEADER_EPOCH, log_start, max_bytes)
                )
            elif version >= 5:
                index, fetch_offset, log_start, max_bytes = _PARTITION_5.unpack_from(buffer, position)
                position += _PARTITION_5.size
                partitions.append(
                    FetchPartition(index, NO_LEADER_EPOCH, fetch_offset, NO_LEADER_EPOCH, log_start, max_bytes)
                )
            else:
                index, fetch_offset, max_bytes = _PARTITION_4.unpack_from(buffer, position)
                position += _PARTITION_4.size
                partitions.append(FetchPartition(index, NO_LEADER_EPOCH, fetch_offset, NO_LEADER_EPOCH, -1, max_bytes))
        if is_flexible:
            position = position + 1 if buffer[position] == 0 else read_tags(buffer, position)[1]
        topics.append(FetchTopic(name, topic_id, tuple(partitions)))
    return tuple(topics), position


def _are_untagged(buffer: Buffer, position: int, count: int) -> bool:
    """Whether the items, of which that many begin there, are all there and have no tags."""
    size = _UNTAGGED_12.size
    return bytes(buffer[position + size - 1 : position + count * size : size]).count(0) == count


def _read_forgotten(version: int, buffer: Buffer, position: int) -> tuple[tuple[ForgottenTopic, ...], int]:
    is_flexible = version >= _FIRST_FLEXIBLE
    has_ids = version >= FIRST_TOPIC_ID_VERSION
    topic_count, position = read_count(buffer, position, is_flexible=is_flexible)
    forgotten = []
    for _ in range(topic_count):
        name, topic_id, position = read_topic(buffer, position, has_ids=has_ids, is_flexible=is_flexible)
        count, position = read_count(buffer, position, is_flexible=is_flexible)
        indexes = Struct(f">{count}i").unpack_from(take(buffer, position, count * 4), 0)
        position += count * 4
        if is_flexible:
            position = position + 1 if buffer[position] == 0 else read_tags(buffer, position)[1]
        forgotten.append(ForgottenTopic(name, topic_id, indexes))
    return tuple(forgotten), position


def _write_partition_start(
    out: bytearray, version: int, partition: PartitionFetchResponse[T], records_size: int
) -> None:
    """All that stands before the records, with their size."""
    is_flexible = version >= _FIRST_FLEXIBLE
    aborted = partition.aborted_transactions
    if is_flexible and aborted is None:
        out += _PLAIN_ANSWER_12.pack(*partition[:5], 0, partition.preferred_read_replica) + uvarint(records_size + 1)
        return
    if version >= 5:
        # The first five fields, in this order.
        out += _ANSWER_5.pack(*partition[:5])
    else:
        out += _ANSWER_4.pack(*partition[:4])
    if aborted is None:
        out += length_bytes(-1, is_flexible=is_flexible, is_short=False)
    else:
        out += length_bytes(len(aborted), is_flexible=is_flexible, is_short=False)
        for transaction in aborted:
            out += _ABORTED.pack(*transaction)
            if is_flexible:
                out += b"\0"
    if version >= _FIRST_WITH_RACK:
        out += _INT.pack(partition.preferred_read_replica)
    out += length_bytes(records_size, is_flexible=is_flexible, is_short=False)


def _partition_tags(partition: PartitionFetchResponse[T]) -> bytes:
    if partition[-3:] == _NOTHING_MORE:
        return b"\0"
    diverging_epoch, current_leader, snapshot_id = partition[-3:]
    fields = []
    if diverging_epoch is not None:
        fields.append(b"\x00\x0d" + _EPOCH_AND_OFFSET.pack(*diverging_epoch) + b"\0")
    if current_leader is not None:
        fields.append(b"\x01\x09" + _START.pack(*current_leader) + b"\0")
    if snapshot_id is not None:
        fields.append(b"\x02\x0d" + _OFFSET_AND_EPOCH.pack(*snapshot_id) + b"\0")
    return uvarint(len(fields)) + b"".join(fields)
