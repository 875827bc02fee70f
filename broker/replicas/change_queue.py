"""Queue of partition changes from the metadata, applied in order, a few in each turn of the event loop.

Requests are served between the turns, so thousands of new partitions do not block them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

logger = logging.getLogger(__name__)

CHANGES_PER_TURN: Final = 4
"""Partitions that are created, led or removed in one turn of the event loop. Creating one takes some tenths of a
millisecond, most of it for its files."""
SETTLED_SOON_S: Final = 0.1
"""How long the response to a metadata change may wait until this node has applied it."""
_END: Final = object()


class ChangeQueue:
    def __init__(self, loop: asyncio.AbstractEventLoop, on_failure: Callable[[str], None]) -> None:
        """`on_failure` receives the error message with which the node must stop."""
        self._loop = loop
        self._on_failure = on_failure
        # Invariant: while it is not empty between two turns, `_go_on` is scheduled.
        self._changes: deque[Iterator[None]] = deque()
        self._is_settled = asyncio.Event()
        self._is_settled.set()

    async def settled(self) -> None:
        """Wait until all added changes are applied."""
        await self._is_settled.wait()

    async def settled_soon(self) -> None:
        """The same, at most SETTLED_SOON_S: thousands of partitions take seconds, and are served one after another."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLED_SOON_S):
                await self._is_settled.wait()

    def add(self, changes: list[Iterator[None]]) -> None:
        """Each iterator yields after every partition that it has applied. CHANGES_PER_TURN are applied before this
        returns, unless earlier changes wait."""
        is_going_on = bool(self._changes)
        self._changes += changes
        if not is_going_on:
            self._apply_some()

    def _apply_some(self) -> None:
        changes = self._changes
        for _ in range(CHANGES_PER_TURN):
            while changes and next(changes[0], _END) is _END:
                changes.popleft()
        if changes:
            self._is_settled.clear()
            self._loop.call_soon(self._go_on)
        else:
            self._is_settled.set()

    def _go_on(self) -> None:
        try:
            self._apply_some()
        except Exception:
            logger.exception("Error applying metadata delta to partitions, the node stops")
            self._changes.clear()
            self._is_settled.set()
            self._on_failure("A metadata delta could not be applied to the partitions, see the log.")
