"""What each replica's log holds, batch by batch, with a fingerprint of all that lies before.

Two logs that have a batch of one offset and one leader epoch must be equal up to there: so one number for each batch
tells whether they are. A log whose beginning was deleted goes on from what is known of its first batch: what was
deleted may never have been committed, if the log ended at or below the place where the leader's begins now.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
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


Known = Mapping[tuple[int, int], Batch]
"""By base offset and leader epoch."""


class ReplicaLog:
    """One log, followed as it grows and is cut. What was deleted at its beginning is kept until it begins anew."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self._bases: list[int] = []

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
        data_of: Callable[[int], bytearray | None],
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


def _is_still_there(
    batch: Batch, data_of: Callable[[int], bytearray | None], first_segment: int, end_offset: int
) -> bool:
    if batch.end_offset > end_offset:
        return False
    if batch.segment < first_segment:
        # Deleted with its segment, unless the log begins anew below its end.
        return batch.end_offset <= first_segment
    data = data_of(batch.segment)
    if data is None or batch.position + _HEAD.size > len(data):
        return False
    base, _, epoch, _, crc, _, _ = _HEAD.unpack_from(data, batch.position)
    return (base, epoch, crc) == (batch.base_offset, batch.leader_epoch, batch.crc)
