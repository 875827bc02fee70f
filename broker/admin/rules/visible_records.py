"""The records in fetched batches that a consumer sees: no markers, and without what was aborted (KIP-98)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from ....protocol.batches import HEADER_SIZE, Buffer, read_header
from ....protocol.records import Record, control_type, read_records

UNCOMPRESSED_BYTES_MAX: Final = 64 * 1024 * 1024
"""Of one batch, which is decompressed in memory to show some of it."""
_ABORT: Final = 0


class VisibleRecords(NamedTuple):
    """`next_offset` is where reading goes on."""

    records: tuple[Record, ...]
    next_offset: int
    size_bytes: int


def visible_records(
    batches: Buffer, aborted: Sequence[tuple[int, int]], offset: int, *, limit: int, bytes_max: int
) -> VisibleRecords:
    """At most `limit` records from `offset` on, and after the first as many as fit into `bytes_max`.

    `aborted` has (producer id, first offset) of the aborted transactions, as Fetch answers them. Batches are whole, but
    the last may be cut off. Raises CorruptData.
    """
    waiting = deque(sorted(aborted, key=lambda one: one[1]))
    aborting: set[int] = set()
    found: list[Record] = []
    next_offset = offset
    size_bytes = 0
    view = memoryview(batches)
    position = 0
    while position + HEADER_SIZE <= len(view):
        header = read_header(view, position)
        if header.size_bytes > len(view) - position:
            break
        while waiting and waiting[0][1] <= header.last_offset:
            aborting.add(waiting.popleft()[0])
        batch = view[position : position + header.size_bytes]
        position += header.size_bytes
        if header.is_control:
            for marker in read_records(batch, header, UNCOMPRESSED_BYTES_MAX):
                if control_type(marker) == _ABORT:
                    aborting.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborting):
            for record in read_records(batch, header, UNCOMPRESSED_BYTES_MAX):
                if record.offset < offset:
                    continue
                record_bytes = _size(record)
                if len(found) == limit or (found and size_bytes + record_bytes > bytes_max):
                    return VisibleRecords(tuple(found), next_offset, size_bytes)
                found.append(record)
                size_bytes += record_bytes
                next_offset = record.offset + 1
        next_offset = max(next_offset, header.next_offset)
    return VisibleRecords(tuple(found), next_offset, size_bytes)


def _size(record: Record) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers
