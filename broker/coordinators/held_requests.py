"""Requests to a coordinator that is loading.

After a fail-over most coordinators are loaded within some hundredths of a second, and a client that gets
COORDINATOR_LOAD_IN_PROGRESS, as at once in Apache Kafka, comes again after a tenth of a second or several.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

HOLD_S: Final = 0.25
"""After the leadership came; who comes later, or still waits then, gets COORDINATOR_LOAD_IN_PROGRESS."""
TURN_REQUESTS: Final = 100
"""Begun in one turn of the event loop: some milliseconds."""


class HeldRequests:
    """Of one partition, and one leadership of it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        self._timer = loop.call_later(HOLD_S, self.release)
        self.is_open = True
        """Whether requests may wait."""

    def wait(self, begin: Callable[[], None]) -> None:
        """Calls `begin`, which raises nothing, when they are released."""
        self._waiting.append(begin)

    def release(self) -> None:
        """Loading is over, or takes too long: all begin, in the order in which they came."""
        self._timer.cancel()
        self.is_open = False
        if self._waiting:
            self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        for _ in range(min(TURN_REQUESTS, len(self._waiting))):
            self._waiting.popleft()()
        if self._waiting:
            self._loop.call_soon(self._take_turn)
