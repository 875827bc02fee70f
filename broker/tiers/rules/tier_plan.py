"""What a partition's leader copies to the tier and deletes there, and how far the tier has a log.

Rules: the log start moves before anything is deleted, and an unfinished copy is deleted only when a finished one has
its records, whatever becomes of it meanwhile. So no deletion leaves a gap in what can be read. No local segment goes
that is not up there: `tiered_end` is what is readable without a gap, in this log's own leader epochs.
Kafka: `RemoteLogManager.RLMCopyTask`, `RLMExpirationTask`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from ....protocol.ids import LeaderEpoch
from .remote_segment import RemoteSegment, SegmentState
from .remote_segments import RemoteSegments


class Epochs(Protocol):
    """The part of `storage/log/leader_epochs.py` that says whose records a log has."""

    def epoch_of(self, offset: int) -> LeaderEpoch | None: ...

    def end_offset_for(self, epoch: LeaderEpoch, log_end_offset: int) -> tuple[LeaderEpoch, int] | None: ...


class TieredRun(NamedTuple):
    """A copy, and up to which offset (exclusive) it has the log's own records."""

    segment: RemoteSegment
    end_offset: int


class Retention(NamedTuple):
    """`retention.ms` and `retention.bytes`, of local and tiered records together; -1 is no limit."""

    ms: int
    size_bytes: int


class Expiry(NamedTuple):
    log_start_offset: int
    """Where the log is to start."""
    segments: tuple[RemoteSegment, ...]
    """To delete once it does."""


def find_readable(segments: RemoteSegments, epochs: Epochs, offset: int, log_end_offset: int) -> TieredRun | None:
    """The copy to read `offset` from. What lies behind the end of the run may be of another lineage."""
    epoch = epochs.epoch_of(offset)
    segment = None if epoch is None else segments.find(epoch, offset)
    if epoch is None or segment is None:
        return None
    return TieredRun(segment, _own_end(segment, epochs, epoch, log_end_offset))


def _own_end(segment: RemoteSegment, epochs: Epochs, epoch: LeaderEpoch, end_offset: int) -> int:
    """Where records of the log end in the copy that has those of `epoch`: at `end_offset` at the latest."""
    while True:
        found = epochs.end_offset_for(epoch, end_offset)
        end = min(segment.last_offset_of(epoch) + 1, end_offset if found is None else found[1], end_offset)
        following = epochs.epoch_of(end)
        if end >= end_offset or following is None or (following, end) not in segment.leader_epochs:
            return end
        # Both begin the next epoch here.
        epoch = following


def tiered_runs(segments: RemoteSegments, epochs: Epochs, start_offset: int, end_offset: int) -> Iterator[TieredRun]:
    """Copies that follow each other without a gap, from the one with `start_offset` on; each once or more."""
    offset = start_offset
    while offset < end_offset:
        epoch = epochs.epoch_of(offset)
        segment = None if epoch is None else segments.find(epoch, offset)
        if epoch is None or segment is None:
            return
        offset = _own_end(segment, epochs, epoch, end_offset)
        yield TieredRun(segment, offset)


def tiered_end(segments: RemoteSegments, epochs: Epochs, start_offset: int, end_offset: int) -> int:
    """Everything from `start_offset` up to here can be read from the tier."""
    end = start_offset
    for run in tiered_runs(segments, epochs, start_offset, end_offset):
        end = run.end_offset
    return end


def recovered_epochs(
    segments: RemoteSegments, log_start_offset: int, first_epoch: LeaderEpoch, first_start: int
) -> tuple[tuple[LeaderEpoch, int], ...]:
    """The epochs before the first one that a log still knows, by its copies: its own word of them was lost.

    A leader of an epoch has one log, which begins at one offset: the least that any copy has. What a later epoch
    begins before was cut off, in the lineage that led here.
    """
    starts: dict[LeaderEpoch, int] = {}
    for segment in segments:
        if segment.state is SegmentState.COPY_SEGMENT_FINISHED:
            for epoch, start in segment.leader_epochs:
                if epoch <= first_epoch and start < first_start and segment.last_offset_of(epoch) >= log_start_offset:
                    starts[epoch] = min(start, starts.get(epoch, start))
    return tuple((epoch, max(start, log_start_offset)) for epoch, start in sorted(starts.items()))


def known_log_start(segments: RemoteSegments, log_start_offset: int, local_log_start_offset: int) -> int:
    """The log start offset, no earlier than the tier's first record: a checkpoint may be older, or lost.

    Copies of every lineage count, so that nothing is given up that could be read: from the first epoch of a copy on, as
    its first records may have been deleted before it was made.
    """
    starts = [
        max(segment.start_offset, segment.leader_epochs[0][1])
        for segment in segments
        if segment.state is SegmentState.COPY_SEGMENT_FINISHED and segment.end_offset >= log_start_offset
    ]
    return max(log_start_offset, min([*starts, local_log_start_offset]))


def expire(
    segments: RemoteSegments,
    epochs: Epochs,
    retention: Retention,
    *,
    log_start_offset: int,
    tiered_end_offset: int,
    untiered_bytes: int,
    now_ms: int,
) -> Expiry:
    """`untiered_bytes` are those of segments that only this disk has; `now_ms` is by the clock of records."""
    runs: dict[RemoteSegment, int] = {}
    for run in tiered_runs(segments, epochs, log_start_offset, tiered_end_offset):
        runs[run.segment] = run.end_offset
    surplus = untiered_bytes + sum(segment.size_bytes for segment in runs) - retention.size_bytes
    start = log_start_offset
    for segment, end_offset in runs.items():
        is_old = retention.ms >= 0 and segment.max_timestamp_ms < now_ms - retention.ms
        is_beyond_size = retention.size_bytes >= 0 and surplus >= segment.size_bytes
        if not is_old and not is_beyond_size:
            break
        surplus -= segment.size_bytes
        start = end_offset
    return Expiry(start, tuple(_deletable(segments, epochs, start)))


def _deletable(segments: RemoteSegments, epochs: Epochs, log_start_offset: int) -> Iterator[RemoteSegment]:
    for segment in segments:
        match segment.state:
            case SegmentState.DELETE_SEGMENT_STARTED:
                # An earlier deletion did not end.
                yield segment
            case SegmentState.COPY_SEGMENT_FINISHED:
                if segment.end_offset < log_start_offset or segments.is_superseded(segment):
                    yield segment
            case SegmentState.COPY_SEGMENT_STARTED:
                start = max(segment.start_offset, log_start_offset)
                if tiered_end(segments, epochs, start, segment.end_offset + 1) > segment.end_offset:
                    yield segment
            case SegmentState.DELETE_SEGMENT_FINISHED:
                pass
