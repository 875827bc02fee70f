"""Which part of a log may be compacted, whether that is due, and what who compacts has to know of the log.

    clean │ dirty, may be compacted │ not yet
          dirty_offset              end_offset

Not yet: the active segment, what is not committed or belongs to a transaction that goes on, and what is younger than
`min.compaction.lag.ms`; a segment that has any of that as a whole. Kafka: `LogCleanerManager.cleanableOffsets`.
"""

from msgspec import Struct

from ..log.log import Log
from ..log.rules.closed_segment import ClosedSegment
from ..log.rules.config import MAX_INT64
from ..log.segment import Segment
from .rules.batch_filter import last_batch_of
from .rules.job import CompactionJob


class Cleanable(Struct, frozen=True):
    dirty_offset: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    """Of the segments that begin in [dirty_offset, end_offset), or hold dirty_offset."""
    stable_offset: int
    """Below it nothing is cut."""
    overdue_ms: int
    """How long ago `max.compaction.lag.ms` of the oldest dirty record was over; 0 when it is not."""

    @property
    def dirty_ratio(self) -> float:
        """What `min.cleanable.dirty.ratio` is compared with; 0 when there is nothing to do."""
        return self.dirty_bytes / (self.clean_bytes + self.dirty_bytes) if self.dirty_bytes else 0.0

    def is_due(self, min_dirty_ratio: float) -> bool:
        return self.dirty_bytes > 0 and (self.overdue_ms > 0 or self.dirty_ratio > min_dirty_ratio)


def find_cleanable(log: Log, *, cleaned_end: int | None, stable_offset: int, now_ms: int) -> Cleanable:
    """`cleaned_end` is what the checkpoint of earlier compactions says, `stable_offset` the last stable offset.

    `now_ms` is milliseconds since 1970. OSError, CorruptData where files must be read: for a lag only.
    """
    config = log.config
    segments = log.inactive_segments
    dirty_offset = log.log_start_offset
    if cleaned_end is not None and log.log_start_offset <= cleaned_end <= log.log_end_offset:
        dirty_offset = cleaned_end
    clean_bytes = dirty_bytes = 0
    end_offset = dirty_offset
    first_dirty: Segment | None = None
    for number, segment in enumerate(segments):
        next_base = segments[number + 1].base_offset if number + 1 < len(segments) else log.active_segment_base_offset
        if next_base <= dirty_offset:
            clean_bytes += segment.size_bytes
            continue
        if next_base > stable_offset:
            break
        if config.min_compaction_lag_ms > 0 and segment.largest_timestamp > now_ms - config.min_compaction_lag_ms:
            break
        if first_dirty is None and segment.size_bytes:
            first_dirty = segment
        dirty_bytes += segment.size_bytes
        end_offset = next_base
    overdue_ms = 0
    if first_dirty is not None and config.max_compaction_lag_ms < MAX_INT64:
        overdue_ms = max(0, now_ms - config.max_compaction_lag_ms - first_dirty.first_timestamp)
    return Cleanable(dirty_offset, end_offset, clean_bytes, dirty_bytes, stable_offset, overdue_ms)


def plan_compaction(log: Log, cleanable: Cleanable, *, now_ms: int, map_bytes: int) -> CompactionJob:
    """OSError, CorruptData when the index of aborted transactions cannot be read."""
    end_offset = cleanable.end_offset
    return CompactionJob(
        directory=log.directory,
        segments=tuple(
            ClosedSegment(segment.base_offset, segment.size_bytes)
            for segment in log.inactive_segments
            if segment.base_offset < end_offset
        ),
        dirty_offset=cleanable.dirty_offset,
        end_offset=end_offset,
        aborted=tuple(log.aborted_transactions(end_offset, end_offset)),
        last_batches={
            producer_id: last_batch_of(entry, cleanable.stable_offset)
            for producer_id, entry in log.producers.entries.items()
        },
        config=log.config,
        now_ms=now_ms,
        map_bytes=map_bytes,
    )
