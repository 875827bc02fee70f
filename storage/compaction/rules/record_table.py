"""Keys and offsets of a batch's records, in columns: what compaction asks of each, and no object for each.

A record's layout is in `protocol/records.py`. Here its bytes stay where they are: what is kept is copied as it is.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from ....protocol.batches import BatchHeader
from ....protocol.errors import CorruptData
from ....protocol.primitives import uvarint

_MORE: Final = 0x80
_NULL: Final = 1
_VARINT_BYTES_MAX: Final = 10


class RecordTable(NamedTuple):
    """A row for each record of one batch."""

    header: BatchHeader
    data: bytes
    """The records, uncompressed."""
    ends: list[int]
    """Where each record ends in `data`: there the next one begins."""
    offsets: list[int]
    keys: list[bytes | None]
    tombstones: list[int]
    """The numbers of the records without a value."""


def read_record_table(data: bytes, header: BatchHeader) -> RecordTable:
    """The records in `data`, uncompressed, of the batch with `header`. CorruptData when they are not what it says."""
    ends: list[int] = []
    deltas: list[int] = []
    keys: list[bytes | None] = []
    tombstones: list[int] = []
    position = 0
    try:
        # Varints are read in place: most are of one byte or two, and a call for each would take most of a compaction's
        # time.
        for number in range(header.record_count):
            length = data[position]
            position += 1
            if length >= _MORE:
                more = data[position]
                position += 1
                if more < _MORE:
                    length = length & 0x7F | more << 7
                else:
                    length, position = _read_uvarint(data, position - 2)
            end = position + (length >> 1)
            # Behind the attributes, the timestamp delta, which does not matter.
            position += 1
            while data[position] >= _MORE:
                position += 1
            delta = data[position + 1]
            position += 2
            if delta >= _MORE:
                more = data[position]
                position += 1
                if more < _MORE:
                    delta = delta & 0x7F | more << 7
                else:
                    delta, position = _read_uvarint(data, position - 2)
            size = data[position]
            position += 1
            if size >= _MORE:
                size, position = _read_uvarint(data, position - 1)
            if size & 1:
                key = None
            else:
                key_end = position + (size >> 1)
                key = data[position:key_end]
                position = key_end
            if data[position] == _NULL:
                tombstones.append(number)
            if position >= end or (key is None and size != _NULL):
                raise _corrupt(header)
            ends.append(end)
            deltas.append(delta)
            keys.append(key)
            position = end
    except IndexError:
        raise _corrupt(header) from None
    if position != len(data) or header.record_count < 0:
        raise _corrupt(header)
    return RecordTable(header, data, ends, _offsets(deltas, header), keys, tombstones)


def without(table: RecordTable, numbers: Sequence[int]) -> bytes:
    """The records but those with these numbers, which rise, one behind the other."""
    data, ends = table.data, table.ends
    parts = []
    position = 0
    for number in numbers:
        start = ends[number - 1] if number else 0
        if start > position:
            parts.append(data[position:start])
        position = ends[number]
    parts.append(data[position:])
    return b"".join(parts)


def only(data: bytes, numbers: Sequence[int]) -> bytes:
    """Of records that were read as a table before, those with these numbers, which rise, one behind the other."""
    parts = []
    following = position = 0
    for number in numbers:
        # As in `read_record_table`: no call for each of those that are passed over.
        while following < number:
            length = data[position]
            more = data[position + 1]
            if length < _MORE:
                position += 1 + (length >> 1)
            elif more < _MORE:
                position += 2 + ((length & 0x7F | more << 7) >> 1)
            else:
                position, _ = _read_length(data, position)
            following += 1
        end, _ = _read_length(data, position)
        parts.append(data[position:end])
        following, position = number + 1, end
    return b"".join(parts)


def largest_timestamp_delta(records: bytes) -> int:
    """Of one or more records, which were read as a table before."""
    largest = None
    position = 0
    while position < len(records):
        end, position = _read_length(records, position)
        raw, position = _read_uvarint(records, position + 1)
        delta = (raw >> 1) ^ -(raw & 1)
        if largest is None or delta > largest:
            largest = delta
        position = end
    assert largest is not None, "there are records"
    return largest


def rebased(records: bytes, shift_ms: int) -> bytes:
    """The same records, seen from a base timestamp that is `shift_ms` later."""
    parts = []
    position = 0
    while position < len(records):
        end, position = _read_length(records, position)
        raw, rest = _read_uvarint(records, position + 1)
        delta = ((raw >> 1) ^ -(raw & 1)) - shift_ms
        body = (records[position : position + 1], uvarint(_zigzag(delta)), records[rest:end])
        parts.append(uvarint(_zigzag(sum(map(len, body)))))
        parts += body
        position = end
    return b"".join(parts)


def _read_length(data: bytes, position: int) -> tuple[int, int]:
    """Where the record ends whose length is at `position`, and where it begins."""
    length, position = _read_uvarint(data, position)
    return position + (length >> 1), position


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def _offsets(deltas: list[int], header: BatchHeader) -> list[int]:
    """Of offset deltas in zigzag: non-negative ones are doubled."""
    base_offset, count = header.base_offset, len(deltas)
    if deltas == list(range(0, 2 * count, 2)) and count <= header.last_offset_delta + 1:
        return list(range(base_offset, base_offset + count))
    # Compaction has been here before.
    before = -1
    for delta in deltas:
        if delta & 1 or delta <= before or delta >> 1 > header.last_offset_delta:
            raise _corrupt(header)
        before = delta
    return [base_offset + (delta >> 1) for delta in deltas]


def _read_uvarint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    for at in range(position, position + _VARINT_BYTES_MAX):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < _MORE:
            return value, at + 1
        shift += 7
    raise IndexError


def _corrupt(header: BatchHeader) -> CorruptData:
    return CorruptData(f"the records of the batch at offset {header.base_offset} are not what its header says")
