"""Offsets by timestamp, for ListOffsets (KIP-79, KIP-734)."""

from collections.abc import Iterable
from typing import NamedTuple

from ...protocol.batches import NO_TIMESTAMP, BatchHeader, Buffer
from ...protocol.ids import LeaderEpoch
from ...protocol.records import read_records
from .segment import Segment
from .segment_scan import scan

# A search that follows an index entry finds its batch within about an index interval.
_SEARCH_BYTES = 64 * 1024


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: LeaderEpoch


def find_by_timestamp(segments: Iterable[Segment], timestamp: int, start_offset: int) -> TimestampOffset | None:
    """The first record from `start_offset` on whose timestamp is at least `timestamp`."""
    for segment in segments:
        if segment.largest_timestamp < timestamp:
            continue
        from_offset = max(segment.time_index.lookup(timestamp), start_offset)
        position = segment.offset_index.lookup(from_offset)
        for batch in scan(segment.file, position, segment.size_bytes, chunk_bytes=_SEARCH_BYTES):
            if batch.header.records_timestamp >= timestamp and batch.header.last_offset >= start_offset:
                found = first_in_batch(batch.header, batch.data, timestamp, start_offset)
                if found is not None:
                    return found
    return None


def find_max_timestamp(segments: Iterable[Segment]) -> TimestampOffset | None:
    """The first record with the largest timestamp; None when no record has one."""
    segment = max(segments, key=lambda candidate: candidate.max_timestamp)
    largest = segment.max_timestamp
    if largest == NO_TIMESTAMP:
        return None
    position = segment.offset_index.lookup(segment.max_timestamp_offset)
    for batch in scan(segment.file, position, segment.size_bytes, chunk_bytes=_SEARCH_BYTES):
        if batch.header.records_timestamp == largest:
            return first_in_batch(batch.header, batch.data, largest, 0)
    return None


def first_in_batch(header: BatchHeader, data: Buffer, timestamp: int, start_offset: int) -> TimestampOffset | None:
    """The first record from `start_offset` on whose timestamp is at least `timestamp`, of one batch. CorruptData."""
    if header.is_log_append_time:
        # All its records have one timestamp.
        offset = max(header.base_offset, start_offset)
        return TimestampOffset(header.max_timestamp, offset, LeaderEpoch(header.partition_leader_epoch))
    for record in read_records(data, header):
        if record.timestamp_ms >= timestamp and record.offset >= start_offset:
            return TimestampOffset(record.timestamp_ms, record.offset, LeaderEpoch(header.partition_leader_epoch))
    return None
