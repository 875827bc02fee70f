"""Long answers, made a piece in each turn of the event loop, so that they hold up no record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from time import perf_counter
from typing import Final, TypeVar

T = TypeVar("T")

TURN_S: Final = 0.002
"""How long one piece takes, about."""
_ITEMS_BETWEEN_LOOKS: Final = 16


class Turns:
    """The turns of one answer."""

    __slots__ = ("_begun_s", "_left")

    def __init__(self) -> None:
        # Not the loop's time, which stands still during a turn of uvloop.
        self._begun_s = perf_counter()
        self._left = _ITEMS_BETWEEN_LOOKS

    async def pause(self) -> None:
        """Called for each item; lets others run when this turn has lasted long enough."""
        self._left -= 1
        if self._left > 0:
            return
        self._left = _ITEMS_BETWEEN_LOOKS
        if perf_counter() - self._begun_s >= TURN_S:
            await asyncio.sleep(0)
            self._begun_s = perf_counter()

    async def over(self, items: Iterable[T]) -> AsyncIterator[T]:
        """The items, with a pause where it is due."""
        for item in items:
            await self.pause()
            yield item
