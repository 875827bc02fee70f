"""How fast what reads and writes logs in the background may be, such as `log.cleaner.io.max.bytes.per.second`."""

from collections.abc import Callable
from typing import Protocol


class Throttle(Protocol):
    def take(self, size_bytes: int) -> None:
        """So many bytes were read or written; returns when more may be."""


class Unthrottled:
    """As fast as the disk is."""

    def take(self, size_bytes: int) -> None: ...


class RateThrottle:
    """At most `bytes_per_s` on average from the first byte on; pauses are not saved up for later."""

    def __init__(self, bytes_per_s: float, *, now_s: Callable[[], float], sleep_s: Callable[[float], None]) -> None:
        self._bytes_per_s = bytes_per_s
        self._now_s = now_s
        self._sleep_s = sleep_s
        self._due_s = now_s()

    def take(self, size_bytes: int) -> None:
        now_s = self._now_s()
        self._due_s = max(self._due_s, now_s) + size_bytes / self._bytes_per_s
        # Not for every chunk of it: a sleep takes longer than it is told.
        if self._due_s - now_s > _PAUSE_S_MIN:
            self._sleep_s(self._due_s - now_s)


_PAUSE_S_MIN = 0.02
