"""Durations in buckets of a logarithmic scale, and their quantiles over the last minutes.

`add` is on the path of requests: one addition to a list of integers. Everything else happens when metrics are read.
Kafka's histograms (Yammer's, biased to the last five minutes) are samples; these count all and know each duration up to
the width of its bucket, an eighth of its value at most.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

UNIT_BITS: Final = 10
"""The finest step is 1,024 ns."""
STEPS: Final = 8
"""Buckets for each doubling."""
OCTAVES: Final = 28
"""Of 1,024 ns: the last bucket begins above two minutes and takes whatever is longer."""
BUCKET_COUNT: Final = STEPS * OCTAVES
WINDOW_MS: Final = 300_000
"""Of quantiles, as in Kafka."""
ROTATION_MS: Final = 30_000
"""How much later than that a duration may leave the quantiles."""
FAST_UNITS: Final = 4096
"""Durations below this many units, 4 ms, have their bucket in a table."""
NS_PER_S: Final = 1e9


def bucket_of(units: int) -> int:
    """The bucket of a duration in units of 1,024 ns."""
    if units < STEPS:
        return max(units, 0)
    shift = units.bit_length() - STEPS.bit_length()
    return min(shift * STEPS + (units >> shift), BUCKET_COUNT - 1)


def upper_bound_s(bucket: int) -> float:
    """The end (exclusive) of a bucket, in seconds; 0 of the first: what takes no step takes no time."""
    if bucket == 0:
        return 0.0
    after = bucket + 1
    units = after if after < 2 * STEPS else (STEPS + after % STEPS) << (after // STEPS - 1)
    return (units << UNIT_BITS) / NS_PER_S


FAST_BUCKETS: Final = tuple(bucket_of(units) for units in range(FAST_UNITS))
_BOUNDS_S: Final = tuple(map(upper_bound_s, range(BUCKET_COUNT)))


class DurationHistogram:
    """Counts since start, and what they were some time ago: the quantiles are of the difference."""

    __slots__ = ("_past", "buckets", "sum_ns")

    def __init__(self) -> None:
        self.buckets = [0] * BUCKET_COUNT
        self.sum_ns = 0
        # Times and the counts that were there then, oldest first.
        self._past: deque[tuple[int, tuple[int, ...]]] = deque()

    def add(self, duration_ns: int, weight: int = 1) -> None:
        """`weight` is how many this one stands for, where not all are measured."""
        units = duration_ns >> UNIT_BITS
        self.buckets[FAST_BUCKETS[units] if 0 <= units < FAST_UNITS else bucket_of(units)] += weight
        self.sum_ns += weight * duration_ns

    @property
    def count(self) -> int:
        return sum(self.buckets)

    @property
    def sum_s(self) -> float:
        return self.sum_ns / NS_PER_S

    def rotate(self, now_ms: int) -> None:
        """Notes the counts of now as the past, and forgets a past that is older than the window. Called in every
        `ROTATION_MS`, or later: then the window is longer."""
        past = self._past
        if past and now_ms - past[-1][0] < ROTATION_MS:
            return
        counts = tuple(self.buckets)
        # Most histograms rest most of the time, and then keep one copy.
        past.append((now_ms, past[-1][1] if past and past[-1][1] == counts else counts))
        while len(past) > 1 and past[1][0] <= now_ms - WINDOW_MS:
            past.popleft()

    def recent(self, now_ms: int) -> Sequence[int]:
        """The counts of the window."""
        base = None
        for noted_ms, counts in self._past:
            if base is not None and noted_ms > now_ms - WINDOW_MS:
                break
            if noted_ms <= now_ms - WINDOW_MS:
                base = counts
        if base is None:
            return tuple(self.buckets)
        return [count - before for count, before in zip(self.buckets, base, strict=True)]


def quantiles_s(counts: Sequence[int], quantiles: Iterable[float]) -> list[float]:
    """For each of the ascending `quantiles` the end of the bucket that it is in, in seconds; 0 without durations."""
    total = sum(counts)
    wanted = list(quantiles)
    found: list[float] = []
    if total:
        seen = 0
        for bucket, count in enumerate(counts):
            seen += count
            while len(found) < len(wanted) and seen >= wanted[len(found)] * total and seen:
                found.append(_BOUNDS_S[bucket])
    return found + [0.0] * (len(wanted) - len(found))


def longest_s(counts: Sequence[int]) -> float:
    """The end of the last bucket that has any; 0 without durations."""
    return next((_BOUNDS_S[bucket] for bucket in range(len(counts) - 1, -1, -1) if counts[bucket]), 0.0)
