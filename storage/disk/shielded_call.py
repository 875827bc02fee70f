"""Calls that change files, run in the executor so that no stop leaves one behind.

Cancelling a task does not end the call that it waits for: the thread goes on, and would write to files that are being
closed, or in a folder whose lock another process has by now.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from threading import Lock
from typing import Generic, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def run_unbroken(
    loop: asyncio.AbstractEventLoop, call: Callable[[*Ts], T], *args: *Ts, executor: Executor | None = None
) -> T:
    """Run the call in the executor, by default that of the loop. A task that is cancelled meanwhile ends when the call
    has ended, not before; a call that has not begun by then never does.
    """
    unbroken = _Call(loop, call, args)
    running = loop.run_in_executor(executor, unbroken.run)
    try:
        return await running
    except asyncio.CancelledError:
        ended = unbroken.give_up()
        while not ended.done():
            try:
                await asyncio.wait((ended,))
            except asyncio.CancelledError:
                # It is cancelled already.
                continue
        raise


class _Call(Generic[T, *Ts]):
    """What a thread of the executor runs, and whether it still has to."""

    def __init__(self, loop: asyncio.AbstractEventLoop, call: Callable[[*Ts], T], args: tuple[*Ts]) -> None:
        self._loop = loop
        self._call = call
        self._args = args
        self._mutex = Lock()
        self._has_begun = False
        self._has_ended = False
        self._end: asyncio.Future[None] | None = None

    def run(self) -> T:
        with self._mutex:
            if self._end is not None:
                raise asyncio.CancelledError
            self._has_begun = True
        try:
            return self._call(*self._args)
        finally:
            self._tell_end()

    def _tell_end(self) -> None:
        with self._mutex:
            self._has_ended = True
            if self._end is not None:
                self._loop.call_soon_threadsafe(self._end.set_result, None)

    def give_up(self) -> "asyncio.Future[None]":
        """Gives its result up; done when it has ended, or will not begin."""
        with self._mutex:
            end = self._end = self._loop.create_future()
            if self._has_ended or not self._has_begun:
                end.set_result(None)
            return end
