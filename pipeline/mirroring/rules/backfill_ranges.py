"""Which offsets a backfill copies, and in which pieces."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from ..errors import MirrorError
from .offset_map import Range

Place = tuple[str, int]
"""Topic and partition of the source."""
Bound = str | int | dict[Place, int]
"""`earliest`, `latest`, a time in ms since 1970, or offsets by partition."""


def bound(offsets: str, time: str) -> Bound:
    """`offsets` as Spark's `startingOffsets` has them, or `time` in ISO 8601, UTC where it has no zone.

    Raises MirrorError when it is neither, or both.
    """
    if time:
        if offsets not in ("earliest", "latest"):
            raise MirrorError(f"a bound is either a time ({time}) or offsets ({offsets}), not both")
        try:
            found = datetime.fromisoformat(time)
        except ValueError as error:
            raise MirrorError(f"{time!r} is no time in ISO 8601, such as 2026-11-28T06:00:00Z") from error
        return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)
    if offsets in ("earliest", "latest"):
        return offsets
    try:
        named = msgspec.json.decode(offsets.encode(), type=dict[str, dict[str, int]])
        return {(topic, int(one)): offset for topic, partitions in named.items() for one, offset in partitions.items()}
    except (msgspec.DecodeError, ValueError) as error:
        raise MirrorError(
            f'{offsets!r} is neither earliest nor latest nor offsets such as {{"orders": {{"0": 100}}}}: {error}'
        ) from error


def resolve(
    places: Mapping[Place, str],
    starts: Mapping[Place, int | None],
    ends: Mapping[Place, int | None],
    logs: Mapping[Place, tuple[int, int]],
) -> dict[Place, Range]:
    """`places` have topic ids. Starts and ends are offsets, -2 and -1 for the ends of the log; None where a time has
    no record. `logs` are the log starts and the ends of what is stable.

    Raises MirrorError where the log begins after a start that was asked for by its offset, and for an offset of a
    partition that is not there.
    """
    for topic, partition in sorted({*starts, *ends} - places.keys()):
        raise MirrorError(f"an offset of {topic}-{partition} was given, and no such partition is among what is copied")
    found = {}
    for place, source_topic_id in places.items():
        log_start, log_end = logs[place]
        start, end = (_offset(one, log_start, log_end) for one in (starts.get(place, -2), ends.get(place, -1)))
        if start < log_start:
            raise MirrorError(
                f"{place[0]}-{place[1]} begins at offset {log_start}, and a start of {start} was asked for: what"
                " is below has been deleted"
            )
        end = min(end, log_end)
        found[place] = Range(start_offset=min(start, end), end_offset=end, source_topic_id=source_topic_id)
    return found


def next_piece(ranges: Mapping[Place, Range], done: Mapping[Place, int], limit: int) -> dict[Place, tuple[int, int]]:
    """Offsets from and to, which is not inside, about `limit` in all: each partition has its share of what is left."""
    left = {place: one.end_offset - done[place] for place, one in ranges.items() if one.end_offset > done[place]}
    total = sum(left.values())
    return {
        place: (done[place], done[place] + min(count, max(1, limit * count // total))) for place, count in left.items()
    }


def _offset(offset: int | None, log_start: int, log_end: int) -> int:
    if offset == -2:
        return log_start
    return log_end if offset is None or offset == -1 else offset
