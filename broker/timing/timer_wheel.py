"""Many deadlines, few timers: entries in buckets one tick wide, and a heap of the buckets' times."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Generic, TypeVar

Entry = TypeVar("Entry")


class TimerWheel(Generic[Entry]):
    """Entries that expire at their deadline, rounded up to a tick: never early, late by less than one tick.

    Adding and removing touch one bucket; the heap grows by one for each new tick, not for each entry, so that ten
    thousand operations with the same timeout cost a handful of heap steps. Times are integers of milliseconds on any
    clock that does not go back.
    """

    __slots__ = ("_buckets", "_tick_ms", "_ticks")

    def __init__(self, tick_ms: int) -> None:
        self._tick_ms = tick_ms
        # Dicts for their order: entries of one tick expire in the order in which they were added.
        self._buckets: dict[int, dict[Entry, None]] = {}
        self._ticks: list[int] = []

    def __len__(self) -> int:
        return sum(map(len, self._buckets.values()))

    @property
    def next_deadline_ms(self) -> int | None:
        """When `advance` has something to do next. Buckets at the head that removals have emptied are dropped."""
        while self._ticks and not self._buckets[self._ticks[0]]:
            del self._buckets[heappop(self._ticks)]
        return self._ticks[0] * self._tick_ms if self._ticks else None

    def add(self, entry: Entry, deadline_ms: int) -> int:
        """Returns the tick, which `remove` wants back."""
        tick = -(-deadline_ms // self._tick_ms)
        bucket = self._buckets.get(tick)
        if bucket is None:
            bucket = self._buckets[tick] = {}
            heappush(self._ticks, tick)
        bucket[entry] = None
        return tick

    def remove(self, entry: Entry, tick: int) -> None:
        """Forgets the entry; one that has expired is no error."""
        bucket = self._buckets.get(tick)
        if bucket is not None:
            bucket.pop(entry, None)

    def advance(self, now_ms: int) -> Iterable[Entry]:
        """Takes out what has expired by `now_ms`, earliest first."""
        expired: list[Entry] = []
        while self._ticks and self._ticks[0] * self._tick_ms <= now_ms:
            expired += self._buckets.pop(heappop(self._ticks))
        return expired

    def take_all(self) -> Iterable[Entry]:
        """Takes out everything, earliest first."""
        ticks, buckets = sorted(self._ticks), self._buckets
        self._ticks, self._buckets = [], {}
        return [entry for tick in ticks for entry in buckets[tick]]
