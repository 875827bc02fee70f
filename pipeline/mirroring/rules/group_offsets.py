"""Committed offsets of consumer groups, translated from a source to the target: at least once, as MirrorMaker's are.

A consumer that goes on at the translated offset misses no record that it had not read at the source. It may read some
again: those since the run below its offset, and, when the copy was behind it, those that it had read before they were
copied.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from .offset_map import OffsetMap
from .source_partition import SourcePartition

TargetPartition = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """Of one group."""

    offsets: dict[TargetPartition, int]
    not_copied: tuple[SourcePartition, ...]
    """No record of them is in the target yet, or their records are spread over its partitions."""


def translated(offset_map: OffsetMap, partition: SourcePartition, committed: int) -> int | None:
    """The target offset to go on from; 0 for what is older than everything copied. None: nothing is copied."""
    position = offset_map.positions.get(partition)
    if position is None or position.target_next_offset is None:
        return None
    if committed >= position.next_offset:
        # Never past what is copied: what the group has read beyond will come, and it reads that again.
        return position.target_next_offset
    runs = offset_map.sorted_runs(partition)
    index = bisect_right(runs, committed, key=lambda run: run.first_offset)
    if index == 0:
        return 0
    run = runs[index - 1]
    return min(run.first_target_offset + min(committed - run.first_offset, run.count), position.target_next_offset)


def translate_group(
    offset_map: OffsetMap, committed: Mapping[SourcePartition, int], log_starts: Mapping[TargetPartition, int]
) -> Translation:
    """Where partitions of several sources are copied into one, the lowest offset counts.

    Offsets below the log start are raised to it: a consumer would go by its `auto.offset.reset` there, which may be
    the end.
    """
    offsets: dict[TargetPartition, int] = {}
    missing = []
    for partition, offset in sorted(committed.items()):
        found = translated(offset_map, partition, offset)
        position = offset_map.positions.get(partition)
        if found is None or position is None or position.target_partition is None:
            missing.append(partition)
            continue
        target = (position.target_topic, position.target_partition)
        lowest = max(found, log_starts.get(target, 0))
        offsets[target] = min(offsets.get(target, lowest), lowest)
    return Translation(offsets=offsets, not_copied=tuple(missing))


def advances(translation: Translation, existing: Mapping[TargetPartition, int]) -> dict[TargetPartition, int]:
    """What is to be committed at the target: where the group has an offset there, only what is ahead of it."""
    return {target: offset for target, offset in translation.offsets.items() if offset > existing.get(target, -1)}
