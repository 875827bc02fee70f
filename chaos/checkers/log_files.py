"""A plain reader of a replica's files: record batches of format 2, byte by byte, by none of the code that wrote them.

    base offset 8, length 4, leader epoch 4, magic 1, CRC-32C 4, attributes 2, last offset delta 4, first and max
    timestamp 8 each, producer id 8, producer epoch 2, base sequence 4, record count 4, records

The checksum covers all from the attributes on. In a record, lengths and deltas are zigzag varints:

    length, attributes 1, timestamp delta, offset delta, key length, key, value length, value, header count, headers
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from struct import Struct
from typing import Final, NamedTuple

import crc32c

_HEAD: Final = Struct(">qiibIhiqqqhii")
_BEFORE_LENGTH: Final = 12
_CHECKED_FROM: Final = 21
_COMPRESSION: Final = 0x07
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_MARKER_KEY: Final = Struct(">hh")
_MARKER_VALUE: Final = Struct(">hi")


class PlainRecord(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None


class PlainBatch(NamedTuple):
    base_offset: int
    end_offset: int
    """Exclusive."""
    leader_epoch: int
    crc: int
    is_transactional: bool
    is_control: bool
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: tuple[PlainRecord, ...] | None
    """None when they are compressed; none where compaction has left the header alone."""


class Marker(NamedTuple):
    """The end of a producer's transaction in a partition."""

    is_commit: bool
    coordinator_epoch: int


class PlainLog(NamedTuple):
    """All batches up to the first bytes that are no intact batch; `stopped` says what those are."""

    batches: tuple[PlainBatch, ...]
    stopped: str | None

    @property
    def start_offset(self) -> int | None:
        return self.batches[0].base_offset if self.batches else None

    @property
    def end_offset(self) -> int:
        return self.batches[-1].end_offset if self.batches else 0


def read_log(segments: Mapping[int, bytes], *, is_compacted: bool = False) -> PlainLog:
    """`segments` are the files, by their base offsets. Offsets may be missing where the log is compacted."""
    batches: list[PlainBatch] = []
    for base, data in sorted(segments.items()):
        if batches and batches[-1].end_offset != base and data and not is_compacted:
            return PlainLog(tuple(batches), f"segment {base} follows offset {batches[-1].end_offset}")
        position = 0
        while position < len(data):
            batch = read_batch(data, position)
            if batch is None:
                return PlainLog(tuple(batches), f"segment {base} has no batch at byte {position}")
            expected = batches[-1].end_offset if batches else batch.base_offset
            if batch.base_offset < expected or (batch.base_offset > expected and not is_compacted):
                return PlainLog(tuple(batches), f"offset {batch.base_offset} follows {expected}")
            batches.append(batch)
            position += _BEFORE_LENGTH + _HEAD.unpack_from(data, position)[1]
    return PlainLog(tuple(batches), None)


def swapped(segments: Mapping[int, bytes], swaps: Mapping[int, bytes]) -> dict[int, bytes]:
    """The segments as a start makes them of what a stop within a swap has left: `swaps` (`….log.swap`) take the places
    of those that they were made from."""
    result = dict(segments)
    for base, data in swaps.items():
        end = read_log({base: data}, is_compacted=True).end_offset
        result = {one: kept for one, kept in result.items() if not base <= one < end} | {base: data}
    return result


def read_batch(data: bytes, position: int) -> PlainBatch | None:
    """None when there is no whole batch with a right checksum."""
    if len(data) - position < _HEAD.size:
        return None
    base, length, leader_epoch, magic, crc, attributes, delta, _, _, producer_id, producer_epoch, sequence, count = (
        _HEAD.unpack_from(data, position)
    )
    end = position + _BEFORE_LENGTH + length
    if magic != 2 or end > len(data) or length < _HEAD.size - _BEFORE_LENGTH:
        return None
    if crc32c.crc32c(data[position + _CHECKED_FROM : end]) != crc:
        return None
    records = None
    if not attributes & _COMPRESSION or not count:
        records = tuple(_records(data[position + _HEAD.size : end], base, count))
    return PlainBatch(
        base, base + delta + 1, leader_epoch, crc, bool(attributes & _TRANSACTIONAL), bool(attributes & _CONTROL),
        producer_id, producer_epoch, sequence, records,
    )  # fmt: skip


def marker_of(batch: PlainBatch) -> Marker | None:
    """None when it is no control batch."""
    if not batch.is_control or not batch.records:
        return None
    record = batch.records[0]
    _, kind = _MARKER_KEY.unpack_from(record.key or b"")
    _, coordinator_epoch = _MARKER_VALUE.unpack_from(record.value or b"")
    return Marker(kind == 1, coordinator_epoch)


def _records(data: bytes, base_offset: int, count: int) -> Iterator[PlainRecord]:
    position = 0
    for _ in range(count):
        size, position = _varint(data, position)
        end = position + size
        _, at = _varint(data, position + 1)
        delta, at = _varint(data, at)
        key, at = _bytes(data, at)
        value, at = _bytes(data, at)
        yield PlainRecord(base_offset + delta, key, value)
        position = end


def _bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    size, position = _varint(data, position)
    return (None, position) if size < 0 else (data[position : position + size], position + size)


def _varint(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position
