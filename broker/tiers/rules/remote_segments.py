"""The copies of one partition's segments that the tier has or may have. Kafka: `RemoteLogMetadataCache`.

A copy counts for reads from COPY_SEGMENT_FINISHED on until its deletion begins. Which one has an offset is asked by
leader epoch: records of one epoch are the same in every copy (KIP-101), though leaders cut segments in other places.
A copy that another one covers is no longer read, and is to be deleted.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from uuid import UUID

from ....protocol.ids import LeaderEpoch
from .remote_segment import RemoteSegment, SegmentState, SegmentUpdate, may_follow


class RemoteSegments:
    __slots__ = ("_by_epoch", "_by_id", "_superseded")

    def __init__(self) -> None:
        self._by_id: dict[UUID, RemoteSegment] = {}
        # Readable ones, by start offset within the epoch; none of them covers another.
        self._by_epoch: dict[LeaderEpoch, list[tuple[int, UUID]]] = {}
        # Finished ones that are covered by others in every epoch of theirs.
        self._superseded: set[UUID] = set()

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[RemoteSegment]:
        """All that are not known to be gone from the tier, whatever their state."""
        return iter(self._by_id.values())

    def get(self, segment_id: UUID) -> RemoteSegment | None:
        return self._by_id.get(segment_id)

    def is_superseded(self, segment: RemoteSegment) -> bool:
        return segment.id in self._superseded

    def apply(self, event: RemoteSegment | SegmentUpdate) -> bool:
        """False for an event that cannot follow, and changes nothing."""
        known = self._by_id.get(event.id)
        if not may_follow(None if known is None else known.state, event.state):
            return False
        if isinstance(event, RemoteSegment):
            self._by_id[event.id] = event
            return True
        assert known is not None, "only a segment follows nothing"
        changed = RemoteSegment(
            partition=known.partition,
            id=known.id,
            start_offset=known.start_offset,
            end_offset=known.end_offset,
            max_timestamp_ms=known.max_timestamp_ms,
            broker_id=event.broker_id,
            event_ms=event.event_ms,
            size_bytes=known.size_bytes,
            leader_epochs=known.leader_epochs,
            state=event.state,
            has_aborted_transactions=known.has_aborted_transactions,
        )
        self._by_id[known.id] = changed
        if event.state is SegmentState.COPY_SEGMENT_FINISHED:
            if known.state is not SegmentState.COPY_SEGMENT_FINISHED:
                self._make_readable(changed)
        elif event.state is SegmentState.DELETE_SEGMENT_STARTED:
            self._hide(changed)
        elif event.state is SegmentState.DELETE_SEGMENT_FINISHED:
            del self._by_id[known.id]
        return True

    def find(self, epoch: LeaderEpoch, offset: int) -> RemoteSegment | None:
        """The readable copy that has the record at `offset`, which was written in `epoch`."""
        entries = self._by_epoch.get(epoch, [])
        slot = bisect_right(entries, offset, key=_start_of) - 1
        if slot < 0:
            return None
        segment = self._by_id[entries[slot][1]]
        return segment if offset <= segment.last_offset_of(epoch) else None

    def of_epoch(self, epoch: LeaderEpoch) -> list[RemoteSegment]:
        """The readable copies with records of `epoch`, by their offsets."""
        return [self._by_id[segment_id] for _, segment_id in self._by_epoch.get(epoch, [])]

    def _make_readable(self, segment: RemoteSegment) -> None:
        touched = {segment.id}
        for epoch, start in segment.leader_epochs:
            last = segment.last_offset_of(epoch)
            entries = self._by_epoch.setdefault(epoch, [])
            # No entry covers another, so the ends rise with the starts: only neighbours can cover this, or be covered.
            begin = bisect_left(entries, start, key=_start_of)
            behind = bisect_right(entries, start, key=_start_of)
            if behind and self._last_of(entries[behind - 1], epoch) >= last:
                continue
            end = begin
            while end < len(entries) and self._last_of(entries[end], epoch) <= last:
                # Another leader copied a part of it.
                touched.add(entries[end][1])
                end += 1
            entries[begin:end] = [(start, segment.id)]
        self._superseded |= {one for one in touched if not self._is_read(self._by_id[one])}

    def _last_of(self, entry: tuple[int, UUID], epoch: LeaderEpoch) -> int:
        return self._by_id[entry[1]].last_offset_of(epoch)

    def _is_read(self, segment: RemoteSegment) -> bool:
        return any(self._slot_of(segment, epoch, start) is not None for epoch, start in segment.leader_epochs)

    def _hide(self, segment: RemoteSegment) -> None:
        self._superseded.discard(segment.id)
        for epoch, start in segment.leader_epochs:
            slot = self._slot_of(segment, epoch, start)
            if slot is not None:
                entries = self._by_epoch[epoch]
                del entries[slot]
                if not entries:
                    del self._by_epoch[epoch]

    def _slot_of(self, segment: RemoteSegment, epoch: LeaderEpoch, start: int) -> int | None:
        """Where it is among the readable ones of `epoch`, of which it has records from `start` on."""
        entries = self._by_epoch.get(epoch, [])
        slot = bisect_left(entries, start, key=_start_of)
        return slot if slot < len(entries) and entries[slot] == (start, segment.id) else None


def _start_of(entry: tuple[int, UUID]) -> int:
    return entry[0]
