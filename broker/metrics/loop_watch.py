"""Watches the event loop from inside: how late it is, how long its turns are, how much of the time it works.

A sample each half second: an idle node wakes up for nothing more. Without `start` nothing is sampled.
"""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from collections.abc import Callable
from time import perf_counter_ns, thread_time_ns
from typing import Any, Final

from ..timing.rules.duration_histogram import DurationHistogram

PERIOD_S: Final = 0.5
WINDOW_S: Final = 60.0
"""Of ratios and rates."""
_NS_PER_S: Final = 1_000_000_000


class LoopWatch:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.lags = DurationHistogram()
        self.turns = DurationHistogram()
        self.garbage_pauses = DurationHistogram()
        self._listeners: list[Callable[[float, int], None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._due_ns = 0
        self._last_ns = 0
        self._garbage_since_ns = 0
        # Times and the loop's CPU time until then.
        self._loads: deque[tuple[int, int]] = deque(maxlen=round(WINDOW_S / PERIOD_S))
        # Times and what `rate_per_s` was given then.
        self._ends: deque[tuple[int, int]] = deque(maxlen=round(WINDOW_S / PERIOD_S))

    def now_ms(self) -> int:
        """By the loop's clock."""
        return int(self._loop.time() * 1000)

    def on_sample(self, listener: Callable[[float, int], None]) -> None:
        """Calls it with the seconds since the last sample, and the time, whenever there is one."""
        self._listeners.append(listener)

    def start(self) -> None:
        self._last_ns = perf_counter_ns()
        gc.callbacks.append(self._on_garbage)
        self._schedule()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            gc.callbacks.remove(self._on_garbage)

    def idle_ratio(self) -> float:
        """Part of the last minute in which the loop waited; 1 before the second sample."""
        if len(self._loads) < 2:
            return 1.0
        (since_ns, busy_since_ns), (until_ns, busy_until_ns) = self._loads[0], self._loads[-1]
        return max(0.0, 1 - (busy_until_ns - busy_since_ns) / max(1, until_ns - since_ns))

    def rate_per_s(self, end: int) -> float:
        """How much `end`, which only grows, grows each second, from one call to the next within the last minute."""
        now_ns = perf_counter_ns()
        self._ends.append((now_ns, end))
        while len(self._ends) > 2 and self._ends[1][0] <= now_ns - WINDOW_S * _NS_PER_S:
            self._ends.popleft()
        since_ns, first = self._ends[0]
        return max(0, end - first) * _NS_PER_S / max(1, now_ns - since_ns)

    def _schedule(self) -> None:
        self._due_ns = perf_counter_ns() + int(PERIOD_S * _NS_PER_S)
        self._timer = self._loop.call_later(PERIOD_S, self._sample)

    def _sample(self) -> None:
        now_ns = perf_counter_ns()
        # The clock of a loop may have steps of a millisecond: a timer may be early, too.
        self.lags.add(max(0, now_ns - self._due_ns))
        self._loads.append((now_ns, thread_time_ns()))
        elapsed_s, self._last_ns = (now_ns - self._last_ns) / _NS_PER_S, now_ns
        now_ms = self.now_ms()
        for histogram in (self.lags, self.turns, self.garbage_pauses):
            histogram.rotate(now_ms)
        for listener in self._listeners:
            listener(elapsed_s, now_ms)
        # What is called soon is called in the next turn, which the same work of this turn comes before.
        self._loop.call_soon(self._on_turn, perf_counter_ns())
        self._schedule()

    def _on_turn(self, since_ns: int) -> None:
        self.turns.add(perf_counter_ns() - since_ns)

    def _on_garbage(self, phase: str, _info: dict[str, Any]) -> None:
        if phase == "start":
            self._garbage_since_ns = perf_counter_ns()
        elif self._garbage_since_ns:
            self.garbage_pauses.add(perf_counter_ns() - self._garbage_since_ns)
