"""Keys and values of batches as coordinators write them: a quick reader beside the one for all batches.

Loading a coordinator reads each record of its log, and what that costs is what the cluster waits for after the loss of
a node. `read_records` is what reads everything else, and what says what is wrong with a batch.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from .batches import COMPRESSION_MASK, CONTROL_FLAG, CURRENT_MAGIC, HEADER_SIZE, LENGTH_OVERHEAD, TRANSACTIONAL_FLAG

# Base offset, batch length, magic, attributes, last offset delta, record count, the first bytes of the first record.
_START: Final = Struct(">qi4xb4xhi30xi6s")
_UNUSUAL: Final = COMPRESSION_MASK | CONTROL_FLAG | TRANSACTIONAL_FLAG
_MORE: Final = 0x80
_NULL: Final = 1
_UNCHANGED: Final = b"\0\0\0"
"""No attributes, and the timestamp and offset of the batch."""


class PlainRecords(NamedTuple):
    records: list[tuple[int, bytes, bytes | None]]
    """Offset, key and value of each."""
    batch_count: int
    next_offset: int
    end: int
    """Position behind their batches; where they were looked for, if there is no such batch."""


def read_plain_records(data: bytes, position: int, offset: int, batch_max: int) -> PlainRecords:
    """Those of at most `batch_max` batches from `position` on; CRCs and timestamps are not looked at.

    They end before one that `read_header` and `read_records` have to look at: one that begins below `offset`, is cut
    off or corrupt, compressed, transactional, a control batch, with headers, records from 8 KiB on, or null keys.
    """
    records: list[tuple[int, bytes, bytes | None]] = []
    unpack = _START.unpack_from
    append = records.append
    size = len(data)
    last_start = size - _START.size
    batch_count = 0
    while batch_count < batch_max and position <= last_start:
        base_offset, length, magic, attributes, last_delta, count, start = unpack(data, position)
        end = position + LENGTH_OVERHEAD + length
        if magic != CURRENT_MAGIC or attributes & _UNUSUAL or end > size or base_offset < offset:
            break
        # Nearly all batches have one record with a key of less than 64 bytes. These are read here, by a look at the
        # places at which they have what they have: that takes half the time.
        varint_end = 2 if start[0] >= _MORE else 1
        if count == 1 and start[varint_end : varint_end + 3] == _UNCHANGED and start[varint_end + 3] < _MORE:
            record_size = start[0] + ((start[1] - 1) << 7) if varint_end == 2 else start[0]
            key_size = start[varint_end + 3]
            key_start = position + HEADER_SIZE + varint_end + 4
            key_end = key_start + (key_size >> 1)
            value_start = key_end + 2
            if value_start < end:
                value_size = data[key_end]
                if value_size >= _MORE:
                    value_size += (data[key_end + 1] - 1) << 7
                else:
                    value_start -= 1
                if (
                    value_start + (value_size >> 1) + 1 == end
                    and record_size == (end - position - HEADER_SIZE - varint_end) << 1
                    and not (key_size | value_size) & 1
                    and not data[end - 1]
                ):
                    append((base_offset, data[key_start:key_end], data[value_start : end - 1]))
                    batch_count += 1
                    position, offset = end, base_offset + last_delta + 1
                    continue
        before = len(records)
        try:
            is_plain = _read_records(data, position + HEADER_SIZE, end, count, base_offset, records)
        except IndexError:
            is_plain = False
        if not is_plain:
            del records[before:]
            break
        batch_count += 1
        position, offset = end, base_offset + last_delta + 1
    return PlainRecords(records, batch_count, offset, position)


def _read_records(
    data: bytes, position: int, end: int, count: int, base_offset: int, records: list[tuple[int, bytes, bytes | None]]
) -> bool:
    """Add those of a batch to `records`; whether they are plain. IndexError.

    Varints are zigzag, so lengths are even before they are halved, and have one or two bytes here.
    """
    append = records.append
    for _ in range(count):
        length = data[position]
        position += 1
        if length >= _MORE:
            length += (data[position] - 1) << 7
            position += 1
        record_end = position + (length >> 1)
        # No attribute has a meaning. The timestamp is passed over.
        position += 1
        while data[position] >= _MORE:
            position += 1
        delta = data[position + 1]
        position += 2
        if delta >= _MORE:
            delta += (data[position] - 1) << 7
            position += 1
        size = data[position]
        position += 1
        if size >= _MORE:
            size += (data[position] - 1) << 7
            position += 1
        key_end = position + (size >> 1)
        key = data[position:key_end]
        value_size = data[key_end]
        position = key_end + 1
        if value_size >= _MORE:
            value_size += (data[position] - 1) << 7
            position += 1
        value: bytes | None = None
        if value_size != _NULL:
            value_end = position + (value_size >> 1)
            value = data[position:value_end]
            position = value_end
            if value_size & 1:
                return False
        if (
            (length | delta | size) & 1
            # A third byte of one of them makes it far too large.
            or position + 1 != record_end
            or record_end > end
            or data[position]
        ):
            return False
        position = record_end
        append((base_offset + (delta >> 1), key, value))
    return position == end
