"""A part of a simulated application that can be killed and paused: a process with a host of its own.

What it has in Python's memory is the scenario's, too: a list that both know is a way to see what it did.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

from ....local.errors import ClusterError
from ..cluster.loop import SimulatedLoop
from ..cluster.process import Process
from .breakable_machines import Healing
from .simulated_fault import SimulatedFault
from .turns import Turns

T = TypeVar("T")


class ApplicationProcess(Generic[T]):
    """It runs from the beginning on. Raises ClusterError."""

    def __init__(
        self, process: Process, main: Callable[[], Coroutine[Any, Any, T]], *, loop: SimulatedLoop, turns: Turns,
        hold: Callable[[Callable[[], Awaitable[Healing]]], SimulatedFault],
    ) -> None:  # fmt: skip
        self.name = process.name
        self._process = process
        self._loop = loop
        self._turns = turns
        self._hold = hold
        self._is_killed: asyncio.Future[None] = loop.create_future()
        self._task: asyncio.Task[T] = process.run(lambda: loop.create_task(main()))

    @property
    def is_running(self) -> bool:
        return not self._process.is_dead and not self._task.done()

    async def kill(self) -> None:
        """SIGKILL: nothing of it runs any more, and its machine closes its connections."""
        if not self.is_running:
            raise ClusterError(f"{self.name} has ended already")

        def end() -> None:
            self._process.is_dead = True
            self._loop.network.end_process(self._process, is_told=True)
            self._turns.note(f"fault {self.name} killed")

        await self._turns.call(end)
        self._is_killed.set_result(None)

    def pause(self) -> SimulatedFault:
        """SIGSTOP: its clients say nothing, and it does not know. Healed, it goes on."""

        async def begin() -> Healing:
            if not self.is_running:
                raise ClusterError(f"{self.name} has ended already")

            def pause() -> None:
                self._process.is_paused = True

            await self._turns.call(pause)
            return f"{self.name} paused", lambda: self._turns.call(lambda: self._loop.resume(self._process))

        return self._hold(begin)

    async def wait(self) -> T:
        """Returns and raises what its coroutine does. Raises ClusterError when it is killed."""
        ends: list[asyncio.Future[Any]] = [self._task, self._is_killed]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if self._is_killed.done():
            raise ClusterError(f"{self.name} was killed")
        return self._task.result()
