"""Changes of partitions, carried out in the order in which they came: some at once, the others in later turns of the
loop, so that thousands of new partitions keep no request waiting."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

logger = logging.getLogger(__name__)

CHANGES_PER_TURN: Final = 4
"""Partitions that are made, led or removed in one turn of the loop. To make one takes some tenths of a millisecond,
most of it for its files."""
SETTLED_SOON_S: Final = 0.1
"""How long the answer to whoever made a change may wait for this node to have carried it out."""
_END: Final = object()


class ChangeQueue:
    def __init__(self, loop: asyncio.AbstractEventLoop, on_failure: Callable[[str], None]) -> None:
        """`on_failure` hears the sentence with which the node must stop."""
        self._loop = loop
        self._on_failure = on_failure
        # When there is anything in it between two turns, `_go_on` is scheduled.
        self._changes: deque[Iterator[None]] = deque()
        self._is_settled = asyncio.Event()
        self._is_settled.set()

    async def settled(self) -> None:
        """Wait until all that was added is carried out."""
        await self._is_settled.wait()

    async def settled_soon(self) -> None:
        """The same, but not for long: thousands of partitions take seconds, and serve one after the other."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLED_SOON_S):
                await self._is_settled.wait()

    def add(self, changes: list[Iterator[None]]) -> None:
        """Each yields after every partition that it has carried out. The first ones are when this returns."""
        is_going_on = bool(self._changes)
        self._changes += changes
        if not is_going_on:
            self._carry_out_some()

    def _carry_out_some(self) -> None:
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
            self._carry_out_some()
        except Exception:
            logger.exception("metadata not followed")
            self._changes.clear()
            self._is_settled.set()
            self._on_failure("A change of partitions could not be carried out, see the log.")
