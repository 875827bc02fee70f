"""A timer wheel on an event loop: however many entries wait, the loop has one timer for them.

Kafka: `SystemTimer`, `TimingWheel`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from .timer_wheel import TimerWheel

Entry = TypeVar("Entry")


class LoopTimerWheel(Generic[Entry]):
    """Calls `on_expired` with each entry whose delay has passed, at most one tick late."""

    def __init__(self, loop: asyncio.AbstractEventLoop, tick_ms: int, on_expired: Callable[[Entry], None]) -> None:
        self._loop = loop
        self._wheel: TimerWheel[Entry] = TimerWheel(tick_ms)
        self._on_expired = on_expired
        self._handle: asyncio.TimerHandle | None = None
        self._handle_deadline_ms = 0

    def now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def add(self, entry: Entry, delay_ms: int) -> int:
        """Returns the tick, which `remove` wants back."""
        tick = self._wheel.add(entry, self.now_ms() + delay_ms)
        self._arm()
        return tick

    def remove(self, entry: Entry, tick: int) -> None:
        self._wheel.remove(entry, tick)

    def expire_all(self) -> None:
        """Ends every wait now; what is added meanwhile stays."""
        self._expire(self._wheel.take_all())

    def _arm(self) -> None:
        deadline_ms = self._wheel.next_deadline_ms
        if deadline_ms is None or (self._handle is not None and self._handle_deadline_ms <= deadline_ms):
            return
        if self._handle is not None:
            self._handle.cancel()
        self._handle_deadline_ms = deadline_ms
        self._handle = self._loop.call_at(deadline_ms / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._handle = None
        # A loop may call a timer early by the resolution of its clock.
        self._expire(self._wheel.advance(max(self.now_ms(), self._handle_deadline_ms)))
        self._arm()

    def _expire(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._on_expired(entry)
