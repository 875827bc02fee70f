"""Numbered records against the numbers that have to be there: each once, in order, without a gap.

A producer counts its records of a partition up by one. What a reader sees of them says what became of them: a number
above the next one leaves a gap; one within a gap came late (`reordered`); any other one below is there again
(`duplicate`); what is in a gap at the end is `lost`. The state is small however many records there are.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, Literal, NamedTuple

import msgspec

# Gaps that are remembered of one sequence. Where there are more, the oldest are given up as lost.
GAPS_MAX: Final = 1_000

Kind = Literal["duplicate", "reordered"]


class Gap(NamedTuple):
    """Numbers from `first` to `last` that are missing, as the record at `offset` showed."""

    first: int
    last: int
    offset: int


class Misplaced(NamedTuple):
    """A record that is there again, or behind a later one."""

    kind: Kind
    number: int
    offset: int


class NumberSequence(msgspec.Struct):
    """What is known of one sequence after some of its records. `next_number` is None before the first record, where any
    number may be that; mutable, owned by the one who feeds it."""

    next_number: int | None = 0
    records: int = 0
    # Records without a number, of which nothing can be said.
    unnumbered: int = 0
    # Ascending and apart.
    gaps: list[Gap] = []
    # Numbers in gaps that were given up.
    given_up: int = 0

    @property
    def lost(self) -> int:
        """How many numbers are missing now."""
        return self.given_up + sum(gap.last - gap.first + 1 for gap in self.gaps)

    def take(self, number: int, offset: int) -> Misplaced | None:
        """The next record of the partition; its number is negative where it has none. Returns what is wrong with it, if
        it is; a gap is in `gaps`."""
        if number < 0:
            self.unnumbered += 1
            return None
        self.records += 1
        if self.next_number is None:
            self.next_number = number
        if number < self.next_number:
            return self._take_earlier(number, offset)
        if number > self.next_number:
            self.gaps.append(Gap(self.next_number, number - 1, offset))
            if len(self.gaps) > GAPS_MAX:
                oldest = self.gaps.pop(0)
                self.given_up += oldest.last - oldest.first + 1
        self.next_number = number + 1
        return None

    def _take_earlier(self, number: int, offset: int) -> Misplaced:
        at = bisect_right(self.gaps, number, key=lambda gap: gap.first) - 1
        if at < 0 or self.gaps[at].last < number:
            return Misplaced("duplicate", number, offset)
        gap = self.gaps.pop(at)
        rest = (Gap(gap.first, number - 1, gap.offset), Gap(number + 1, gap.last, gap.offset))
        self.gaps[at:at] = [one for one in rest if one.first <= one.last]
        return Misplaced("reordered", number, offset)
