"""What was read from the tier, in memory: indexes of segments, windows of their logs; the least recently used go."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TierCache(Generic[K, V]):
    __slots__ = ("_entries", "_limit_bytes", "_size_of", "size_bytes")

    def __init__(self, limit_bytes: Callable[[], int], size_of: Callable[[V], int]) -> None:
        """`limit_bytes` is asked at each entry; the newest stays, however large it is."""
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._limit_bytes = limit_bytes
        self._size_of = size_of
        self.size_bytes = 0

    def get(self, key: K) -> V | None:
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def add(self, key: K, value: V) -> None:
        self._forget(key)
        self._entries[key] = value
        self.size_bytes += self._size_of(value)
        while self.size_bytes > self._limit_bytes() and len(self._entries) > 1:
            self._forget(next(iter(self._entries)))

    def _forget(self, key: K) -> None:
        value = self._entries.pop(key, None)
        if value is not None:
            self.size_bytes -= self._size_of(value)
