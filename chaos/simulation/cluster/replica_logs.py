"""What each replica's log holds, batch by batch, with a fingerprint of all that lies before.

Two logs that have a batch of one offset and one leader epoch must be equal up to there: so one number for each batch
tells whether they are. A log whose beginning was deleted goes on from what is known of its first batch: what was
deleted may never have been committed, if the log ended at or below the place where the leader's begins now.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from typing import NamedTuple

# Base offset, length, leader epoch, magic, CRC, attributes, last offset delta: the head of a record batch (version 2).
_HEAD = Struct(">qiibIhi")
_SIZE_BEFORE_LENGTH = 12


class Batch(NamedTuple):
    base_offset: int
    end_offset: int
    leader_epoch: int
    crc: int
    segment: int
    """The base offset of its segment."""
    position: int
    size: int
    fingerprint: int
    """Of this batch and all before it."""

    def is_at_its_place(self, segment: bytes | bytearray) -> bool:
        if self.position + _HEAD.size > len(segment):
            return False
        base, _, epoch, _, crc, _, _ = _HEAD.unpack_from(segment, self.position)
        return bool((base, epoch, crc) == (self.base_offset, self.leader_epoch, self.crc))


Known = Mapping[tuple[int, int], Batch]
"""By base offset and leader epoch."""


class ReplicaLog:
    """One log, followed as it grows and is cut. What was deleted at its beginning is kept until it begins anew."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self._bases: list[int] = []

    def moved_to(self, first_segment: int) -> ReplicaLog:
        """A copy of this log that nothing is known of but where it begins: what was before is remembered as deleted."""
        copy = type(self)()
        copy.batches = [batch for batch in self.batches if batch.end_offset <= first_segment]
        copy._bases = [batch.base_offset for batch in copy.batches]
        return copy

    def last_below(self, offset: int) -> Batch | None:
        """The last batch that ends at or before `offset`."""
        place = bisect_right(self._bases, offset) - 1
        while place >= 0 and self.batches[place].end_offset > offset:
            place -= 1
        return self.batches[place] if place >= 0 else None

    def between(self, start_offset: int, end_offset: int) -> list[Batch]:
        """The batches that begin at or behind the first and end at or before the second."""
        place = bisect_right(self._bases, start_offset - 1)
        return [batch for batch in self.batches[place:] if batch.end_offset <= end_offset]

    def follow(
        self,
        data_of: Callable[[int], bytes | bytearray | None],
        *,
        first_segment: int,
        start_offset: int,
        end_offset: int,
        known: Known,
    ) -> list[Batch]:
        """Take in what is there now, from `start_offset` up to `end_offset`; returns the batches that are new here.

        `data_of` gives the bytes of the segment with a base offset, `first_segment` is the least of these.
        """
        while self.batches and not _is_still_there(self.batches[-1], data_of, first_segment, end_offset):
            self.batches.pop()
            self._bases.pop()
        if self.batches and self.batches[-1].end_offset < first_segment:
            # Only a log that begins anew jumps: what it had is not below what it will have.
            self.batches.clear()
            self._bases.clear()
        last = self.batches[-1] if self.batches else None
        if last is None:
            segment, position = first_segment, 0
        else:
            segment, position = last.segment, last.position + last.size
        new = []
        while True:
            data = data_of(segment)
            if data is None or position + _HEAD.size > len(data):
                if last is None or last.end_offset == segment or data_of(last.end_offset) is None:
                    break
                segment, position = last.end_offset, 0
                continue
            base, length, epoch, _, crc, _, delta = _HEAD.unpack_from(data, position)
            if base + delta + 1 > end_offset:
                break
            is_first = base > 0 if last is None else last.end_offset <= start_offset
            if is_first and (base, epoch) in known and known[base, epoch].crc == crc:
                fingerprint = known[base, epoch].fingerprint
            else:
                fingerprint = hash((0 if last is None else last.fingerprint, base, epoch, crc))
            size = _SIZE_BEFORE_LENGTH + length
            last = Batch(base, base + delta + 1, epoch, crc, segment, position, size, fingerprint)
            new.append(last)
            position += size
        self.batches += new
        self._bases += [batch.base_offset for batch in new]
        return new


class CompactedReplicaLog(ReplicaLog):
    """One whose batches may be written anew or go, wherever they are not the log's last.

    The fingerprint of a batch is that of the first replica that had it, which was appended to as its leader: so
    replicas that were compacted differently, or have fetched what was compacted already, can be compared. Whether what
    is gone may be gone is not told by it (`chaos/checkers/compacted_files.py`).
    """

    def follow_compacted(
        self,
        data_of: Callable[[int], bytes | bytearray | None],
        *,
        segments: Sequence[int],
        end_offset: int,
        known: Known,
    ) -> list[Batch]:
        """Like `follow`, of a log that keeps its beginning; `segments` are the base offsets of its
        segments, ascending."""
        place: tuple[int, int] | None = None
        while self.batches:
            place = _place_behind(self.batches[-1], data_of, segments, end_offset)
            if place is not None:
                break
            self.batches.pop()
            self._bases.pop()
        number, position = place or (0, 0)
        last = self.batches[-1] if self.batches else None
        new = []
        while number < len(segments):
            data = data_of(segments[number])
            if data is None or position + _HEAD.size > len(data):
                number, position = number + 1, 0
                continue
            base, length, epoch, _, crc, _, delta = _HEAD.unpack_from(data, position)
            if base + delta + 1 > end_offset:
                break
            first = known.get((base, epoch))
            fingerprint = hash((0 if last is None else last.fingerprint, base, epoch, crc))
            size = _SIZE_BEFORE_LENGTH + length
            last = Batch(
                base, base + delta + 1, epoch, crc, segments[number], position, size,
                fingerprint if first is None else first.fingerprint,
            )  # fmt: skip
            new.append(last)
            position += size
        self.batches += new
        self._bases += [batch.base_offset for batch in new]
        return new


def _place_behind(
    batch: Batch, data_of: Callable[[int], bytes | bytearray | None], segments: Sequence[int], end_offset: int
) -> tuple[int, int] | None:
    """The number of a segment and the position in it behind a batch, which may be compacted; None: it was cut off."""
    if batch.end_offset > end_offset:
        return None
    number = bisect_right(segments, batch.base_offset) - 1
    data = data_of(segments[number]) if number >= 0 else None
    if data is None:
        return None
    position = batch.position if batch.segment == segments[number] else 0
    if position + _HEAD.size <= len(data):
        base, _, epoch, _, _, _, _ = _HEAD.unpack_from(data, position)
        if (base, epoch) != (batch.base_offset, batch.leader_epoch):
            position = 0
    while position + _HEAD.size <= len(data):
        base, length, epoch, _, _, _, delta = _HEAD.unpack_from(data, position)
        end = base + delta + 1
        if (base, end, epoch) == (batch.base_offset, batch.end_offset, batch.leader_epoch):
            return number, position + _SIZE_BEFORE_LENGTH + length
        if base >= batch.end_offset:
            break
        if end > batch.base_offset:
            return None
        position += _SIZE_BEFORE_LENGTH + length
    return number, position


def _is_still_there(
    batch: Batch, data_of: Callable[[int], bytes | bytearray | None], first_segment: int, end_offset: int
) -> bool:
    if batch.end_offset > end_offset:
        return False
    if batch.segment < first_segment:
        # Deleted with its segment, unless the log begins anew below its end.
        return batch.end_offset <= first_segment
    data = data_of(batch.segment)
    return data is not None and batch.is_at_its_place(data)
