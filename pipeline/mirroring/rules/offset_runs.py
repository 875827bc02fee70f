"""Runs of records whose offsets go on one by one in the source and in the target.

A run begins at most once in `STEP` source offsets, as MirrorMaker's `offset.lag.max` has it: that bounds the offset map
by the length of the source, however small the transactions are. Offsets between runs are translated to the end of the
run below them, so that a consumer that moves reads at most about `STEP` records again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

STEP: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """`count` records from `first_offset` on in the source are at `first_target_offset` and on in the target."""

    first_offset: int
    first_target_offset: int
    count: int

    @property
    def end_target_offset(self) -> int:
        return self.first_target_offset + self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Indices of records whose source offsets go on one by one; both are inside."""

    first: int
    last: int


def sections(offsets: Sequence[int], next_offset: int | None) -> list[Section]:
    """Of the records of a transaction, in ascending order of their offsets, those that begin runs.

    `next_offset` is the position before: a step that records below it are in has its run.
    """
    found = []
    index = 0
    done = None if next_offset is None else (next_offset - 1) // STEP
    while index < len(offsets):
        step = offsets[index] // STEP
        following = bisect_left(offsets, (step + 1) * STEP, index)
        if step != done:
            # The differences never fall, so that the equal ones are together at the front.
            gap = bisect_right(range(index, following), offsets[index] - index, key=lambda at: offsets[at] - at)
            found.append(Section(first=index, last=index + gap - 1))
        index = following
    return found


def marks(found: Sequence[Section]) -> list[int]:
    """Indices of the records whose target offsets `runs` needs, in ascending order."""
    return sorted({index for section in found for index in (section.first, section.last)})


def runs(offsets: Sequence[int], found: Sequence[Section], targets: Mapping[int, int]) -> list[Run]:
    """Runs of these sections, by the target offsets at their marks, neighbours joined.

    Another producer's records may lie between those of a section: then only its first record is certain.
    """
    joined: list[Run] = []
    for section in found:
        length = section.last - section.first
        first, last = targets[section.first], targets[section.last]
        count = length + 1 if last - first == length else 1
        run = Run(first_offset=offsets[section.first], first_target_offset=first, count=count)
        before = joined[-1] if joined else None
        if (
            before is not None
            and before.first_offset + before.count == run.first_offset
            and before.end_target_offset == run.first_target_offset
        ):
            joined[-1] = Run(
                first_offset=before.first_offset,
                first_target_offset=before.first_target_offset,
                count=before.count + run.count,
            )
        else:
            joined.append(run)
    return joined
