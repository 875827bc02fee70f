"""What each replica's log holds, batch by batch, with a fingerprint of all that lies before.

Two logs that have a batch of one offset and one leader epoch must be equal up to there: so one number for each batch
tells whether they are.
"""

from __future__ import annotations

from bisect import bisect_right
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
    position: int
    fingerprint: int
    """Of this batch and all before it."""


class ReplicaLog:
    """One log, followed as it grows and is cut."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self._bases: list[int] = []

    @property
    def end_offset(self) -> int:
        return self.batches[-1].end_offset if self.batches else 0

    def last_below(self, offset: int) -> Batch | None:
        """The last batch that ends at or before `offset`."""
        place = bisect_right(self._bases, offset) - 1
        while place >= 0 and self.batches[place].end_offset > offset:
            place -= 1
        return self.batches[place] if place >= 0 else None

    def follow(self, data: bytearray, end_offset: int) -> list[Batch]:
        """Take in what the file holds now, up to `end_offset`; returns the batches that are new here."""
        while self.batches and not self._is_still_there(self.batches[-1], data, end_offset):
            self.batches.pop()
            self._bases.pop()
        last = self.batches[-1] if self.batches else None
        position = 0 if last is None else last.position + _size(data, last.position)
        new = []
        while position + _HEAD.size <= len(data):
            base, length, epoch, _, crc, _, delta = _HEAD.unpack_from(data, position)
            if base + delta + 1 > end_offset:
                break
            before = 0 if last is None else last.fingerprint
            last = Batch(base, base + delta + 1, epoch, crc, position, hash((before, base, epoch, crc)))
            new.append(last)
            position += _SIZE_BEFORE_LENGTH + length
        self.batches += new
        self._bases += [batch.base_offset for batch in new]
        return new

    def _is_still_there(self, batch: Batch, data: bytearray, end_offset: int) -> bool:
        if batch.end_offset > end_offset or batch.position + _HEAD.size > len(data):
            return False
        base, _, epoch, _, crc, _, _ = _HEAD.unpack_from(data, batch.position)
        return (base, epoch, crc) == (batch.base_offset, batch.leader_epoch, batch.crc)


def _size(data: bytearray, position: int) -> int:
    return int(_HEAD.unpack_from(data, position)[1]) + _SIZE_BEFORE_LENGTH
