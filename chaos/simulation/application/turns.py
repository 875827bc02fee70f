"""What happens to a simulated cluster between two turns of its loop, when no process is in the middle of anything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from ..cluster.loop import SimulatedLoop

T = TypeVar("T")


class Turns:
    """`after_each` is called behind every turn, before what is due. `note` writes a line of the run's trace."""

    def __init__(self, loop: SimulatedLoop, note: Callable[[str], None]) -> None:
        self.note = note
        self.after_each: list[Callable[[], None]] = []
        self._loop = loop
        self._due: list[Callable[[], None]] = []
        loop.after_turn = self._after_turn

    def between(self, happen: Callable[[], None]) -> None:
        self._due.append(happen)

    async def call(self, function: Callable[[], T]) -> T:
        """Returns what the function returned, and raises what it raised."""
        done: asyncio.Future[T] = self._loop.create_future()

        def happen() -> None:
            try:
                result = function()
            except Exception as error:
                _settle(done, done.set_exception, error)
            else:
                _settle(done, done.set_result, result)

        self.between(happen)
        return await done

    def _after_turn(self, _: int) -> None:
        for look in tuple(self.after_each):
            look()
        due, self._due = self._due, []
        for happen in due:
            happen()


def _settle(done: asyncio.Future[Any], settle: Callable[[Any], None], outcome: Any) -> None:
    """The task that waited for it may have been cancelled meanwhile."""
    if not done.cancelled():
        settle(outcome)
