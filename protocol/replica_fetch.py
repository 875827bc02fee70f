"""Fetch as a follower sends it and reads the answer: version 17, by hand, records left where they arrived.

A follower names itself and its broker epoch (KIP-903), its topics by id (KIP-516), the epoch it believes in and the one
of its last batch, by which the leader finds where their logs part (KIP-320, KIP-595).
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple

from .apis import ApiKey
from .errors import CorruptData
from .ids import BrokerEpoch, LeaderEpoch
from .primitives import GARBAGE_ERRORS, read_tags, read_uvarint, skip_tags, uvarint

FETCH_VERSION: Final = 17

_SIZE = Struct(">i")
_HEADER = Struct(">hhih")
# Longest wait, least and most bytes, isolation level, session id and epoch.
_LIMITS = Struct(">iiibii")
# Index, leader epoch, fetch offset, last fetched epoch, log start offset, max bytes, no tags.
_PARTITION = Struct(">iiqiqiB")
# One tagged field, number 1, of 13 bytes: replica id, broker epoch, no tags.
_REPLICA_STATE = Struct(">BBBiqB")
_ANSWER_START = Struct(">ihi")
# Index, error code, high watermark, last stable offset, log start offset.
_ANSWER = Struct(">ihqqq")
_ABORTED_BYTES = 17
_EPOCH_AND_OFFSET = Struct(">iq")
_ID_BYTES = 16


class FollowedPartition(NamedTuple):
    """Where a follower's log of a partition ends and begins."""

    leader_epoch: LeaderEpoch
    fetch_offset: int
    last_fetched_epoch: LeaderEpoch
    log_start_offset: int


class FetchedPartition(NamedTuple):
    """What the leader answers for one partition. `records` lie in the buffer that was decoded, possibly cut off within
    the last batch; `diverging_epoch` is (epoch, end offset) where the logs part, if they do."""

    partition_index: int
    error_code: int
    high_watermark: int
    log_start_offset: int
    records: memoryview
    diverging_epoch: tuple[LeaderEpoch, int] | None


class ReplicaFetchResponse(NamedTuple):
    error_code: int
    session_id: int
    topics: list[tuple[bytes, list[FetchedPartition]]]
    """By the 16 bytes of the topic's id."""


class ReplicaFetchLimits(NamedTuple):
    """What all fetches of a follower have in common."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    partition_max_bytes: int


def encode_replica_fetch(
    correlation_id: int,
    client_id: bytes,
    limits: ReplicaFetchLimits,
    *,
    replica_id: int,
    broker_epoch: BrokerEpoch,
    session_id: int,
    session_epoch: int,
    partitions: Iterable[tuple[bytes, int, FollowedPartition]],
    forgotten: Iterable[tuple[bytes, int]],
) -> bytes:
    """The request frame. `partitions` and `forgotten` have topic id and index first."""
    out = bytearray(_SIZE.size)
    out += _HEADER.pack(ApiKey.FETCH, FETCH_VERSION, correlation_id, len(client_id))
    out += client_id
    out += b"\0"
    out += _LIMITS.pack(limits.max_wait_ms, limits.min_bytes, limits.max_bytes, 0, session_id, session_epoch)
    wanted: dict[bytes, list[bytes]] = {}
    for topic_id, index, followed in partitions:
        leader_epoch, fetch_offset, last_epoch, log_start_offset = followed
        wanted.setdefault(topic_id, []).append(
            _PARTITION.pack(
                index, leader_epoch, fetch_offset, last_epoch, log_start_offset, limits.partition_max_bytes, 0
            )
        )
    _write_topics(out, wanted)
    dropped: dict[bytes, list[bytes]] = {}
    for topic_id, index in forgotten:
        dropped.setdefault(topic_id, []).append(_SIZE.pack(index))
    _write_topics(out, dropped)
    # No rack: a follower reads only from the leader.
    out += b"\x01"
    out += _REPLICA_STATE.pack(1, 1, _REPLICA_STATE.size - 3, replica_id, broker_epoch, 0)
    _SIZE.pack_into(out, 0, len(out) - _SIZE.size)
    return bytes(out)


def decode_replica_fetch_response(buffer: memoryview) -> tuple[int, ReplicaFetchResponse]:
    """(correlation id, the response) of a frame without its size, or CorruptData."""
    try:
        return _decode(buffer)
    except GARBAGE_ERRORS as error:
        raise CorruptData(f"the answer to a follower's fetch could not be read: {error}") from None


def _write_topics(out: bytearray, topics: dict[bytes, list[bytes]]) -> None:
    out += uvarint(len(topics) + 1)
    for topic_id, parts in topics.items():
        out += topic_id
        out += uvarint(len(parts) + 1)
        out += b"".join(parts)
        out += b"\0"


def _decode(buffer: memoryview) -> tuple[int, ReplicaFetchResponse]:
    (correlation_id,) = _SIZE.unpack_from(buffer, 0)
    position = skip_tags(buffer, _SIZE.size)
    _throttle_time_ms, error_code, session_id = _ANSWER_START.unpack_from(buffer, position)
    position += _ANSWER_START.size
    topic_count, position = read_uvarint(buffer, position)
    topics: list[tuple[bytes, list[FetchedPartition]]] = []
    for _ in range(topic_count - 1):
        topic_id = bytes(buffer[position : position + _ID_BYTES])
        partition_count, position = read_uvarint(buffer, position + _ID_BYTES)
        partitions: list[FetchedPartition] = []
        for _ in range(partition_count - 1):
            partition, position = _read_partition(buffer, position)
            partitions.append(partition)
        position = skip_tags(buffer, position)
        topics.append((topic_id, partitions))
    position = skip_tags(buffer, position)
    if position != len(buffer):
        raise CorruptData(f"the answer to a follower's fetch is followed by {len(buffer) - position} bytes")
    return correlation_id, ReplicaFetchResponse(error_code, session_id, topics)


def _read_partition(buffer: memoryview, position: int) -> tuple[FetchedPartition, int]:
    index, error_code, high_watermark, _last_stable_offset, log_start_offset = _ANSWER.unpack_from(buffer, position)
    aborted_count, position = read_uvarint(buffer, position + _ANSWER.size)
    # Preferred read replicas are for consumers.
    position += max(aborted_count - 1, 0) * _ABORTED_BYTES + _SIZE.size
    size, position = read_uvarint(buffer, position)
    size = max(size - 1, 0)
    records = buffer[position : position + size]
    if len(records) != size:
        raise CorruptData(f"partition {index} of a fetch answer announces {size} bytes, {len(records)} are there")
    position += size
    diverging_epoch: tuple[LeaderEpoch, int] | None = None
    if buffer[position] == 0:
        position += 1
    else:
        tags, position = read_tags(buffer, position)
        if 0 in tags:
            epoch, end_offset = _EPOCH_AND_OFFSET.unpack_from(tags[0], 0)
            diverging_epoch = epoch, end_offset
    return FetchedPartition(index, error_code, high_watermark, log_start_offset, records, diverging_epoch), position
