"""Windows of logs in the tier, in memory, and which of them make room for others.

    wanted  a reader waits for it, or has read a part of it: stays until it was read to its end, or `patience_ms` passed
    ahead   loaded before its reader asks: goes when there is no room for one that is wanted
    free    read to its end, or left: goes first, those first that were used longest ago

What is being loaded has its room from the beginning, so that no load pushes out what another reader waits for: a load
without room waits until windows were read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from typing import Final, TypeAlias
from uuid import UUID

from ....protocol.batches import Buffer

WindowKey: TypeAlias = tuple[UUID, int]


class Window:
    """Bytes of a segment's log from `start` on, where a batch begins; the last batch may be cut off."""

    __slots__ = ("data", "end", "key", "start", "used_ms")

    def __init__(self, segment_id: UUID, start: int, data: Buffer, now_ms: int) -> None:
        self.key: WindowKey = segment_id, start
        self.start = start
        self.data = memoryview(data)
        self.end = start + len(self.data)
        self.used_ms = now_ms


class _Group:
    """Windows in the order of their last use."""

    __slots__ = ("size_bytes", "windows")

    def __init__(self) -> None:
        self.windows: OrderedDict[WindowKey, Window] = OrderedDict()
        self.size_bytes = 0

    def add(self, window: Window) -> None:
        self.windows[window.key] = window
        self.size_bytes += len(window.data)

    def remove(self, key: WindowKey) -> Window | None:
        window = self.windows.pop(key, None)
        if window is not None:
            self.size_bytes -= len(window.data)
        return window

    @property
    def oldest(self) -> Window | None:
        return next(iter(self.windows.values()), None)


class TierWindows:
    __slots__ = ("_ahead", "_free", "_limit_bytes", "_patience_ms", "_reserved_bytes", "_starts", "_wanted")

    def __init__(self, *, limit_bytes: int, patience_ms: int) -> None:
        """A window that is larger than `limit_bytes` is taken in alone."""
        self._limit_bytes: Final = limit_bytes
        self._patience_ms: Final = patience_ms
        self._wanted, self._ahead, self._free = _Group(), _Group(), _Group()
        self._reserved_bytes = 0
        # Of the windows of each segment, ascending.
        self._starts: dict[UUID, list[int]] = {}

    @property
    def size_bytes(self) -> int:
        """With what is being loaded."""
        return self._reserved_bytes + sum(group.size_bytes for group in (self._wanted, self._ahead, self._free))

    def reserve(self, size: int, now_ms: int, *, is_ahead: bool) -> bool:
        """Room for a load; False when it has to wait. One ahead of its reader pushes out no other of that kind."""
        for group in (self._wanted, self._ahead):
            while (oldest := group.oldest) is not None and oldest.used_ms + self._patience_ms <= now_ms:
                group.remove(oldest.key)
                self._free.add(oldest)
        held_bytes = self._reserved_bytes + self._wanted.size_bytes + (self._ahead.size_bytes if is_ahead else 0)
        if held_bytes + size > self._limit_bytes and (held_bytes or is_ahead):
            return False
        self._reserved_bytes += size
        for group in (self._free, self._ahead):
            while self.size_bytes > self._limit_bytes and (oldest := group.oldest) is not None:
                self._forget(oldest.key)
        return True

    def release(self, size: int) -> None:
        """The load of `reserve` is over; `add` follows if it brought something."""
        self._reserved_bytes -= size

    def add(self, window: Window, *, is_ahead: bool) -> None:
        segment_id, start = window.key
        self._forget(window.key)
        (self._ahead if is_ahead else self._wanted).add(window)
        insort(self._starts.setdefault(segment_id, []), start)

    def find(self, segment_id: UUID, position: int) -> Window | None:
        """The window that has the byte at `position`."""
        starts = self._starts.get(segment_id, [])
        slot = bisect_right(starts, position) - 1
        if slot < 0:
            return None
        key = segment_id, starts[slot]
        found = next(window for group in self._groups if (window := group.windows.get(key)) is not None)
        return found if position < found.end else None

    def use(self, window: Window, end: int, now_ms: int) -> bool:
        """It was read up to `end`; whether that leaves room for others."""
        window.used_ms = now_ms
        was_wanted = window.key in self._wanted.windows
        is_read = end >= window.end
        for group in self._groups:
            group.remove(window.key)
        (self._free if is_read else self._wanted).add(window)
        return is_read and was_wanted

    @property
    def _groups(self) -> tuple[_Group, _Group, _Group]:
        return self._wanted, self._ahead, self._free

    def _forget(self, key: WindowKey) -> None:
        removed = [group.remove(key) for group in self._groups]
        if not any(removed):
            return
        segment_id, start = key
        starts = self._starts[segment_id]
        del starts[bisect_left(starts, start)]
        if not starts:
            del self._starts[segment_id]
