"""The event loop of all simulated processes: virtual time, a network and disks of memory, no thread and no socket."""

from __future__ import annotations

import asyncio
import heapq
import socket
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from ..executor_job import ExecutorJob
from .process import KERNEL, Process, current_process, process_of

if TYPE_CHECKING:
    from .network import Network

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

# At least that much time passes in each turn, or code that waits for the clock would spin.
TURN_S = 1e-4
_JOB_DURATIONS_S = (0.0002, 0.0005, 0.001, 0.002, 0.004, 0.02, 0.1)
_JOB_WEIGHTS = (20, 20, 20, 20, 15, 4, 1)


class SimulatedLoop(asyncio.AbstractEventLoop):
    """Give it its `network` before anything connects. The same seed and the same calls give the same run."""

    network: Network

    def __init__(self, random: Random) -> None:
        self.turn_count = 0
        self.after_turn: Callable[[int], None] | None = None
        self.exception_count = 0
        self.on_exception: Callable[[dict[str, Any]], None] | None = None
        self._random = random
        self._now_s = 0.0
        self._ready: deque[_Call] = deque()
        self._timers: list[tuple[float, int, _Call]] = []
        self._numbers = count()
        self._is_running = False
        self._is_stopping = False
        self._is_closed = False

    # Time.

    def time(self) -> float:
        return self._now_s

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        call = _Call(self._now_s, callback, args, self, context)
        self._ready.append(call)
        return call

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        call = _Call(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._numbers), call))
        return call

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A cancelled timer is left out when it is due."""

    # Running.

    def turn(self) -> None:
        """Let everything run that is due next."""
        self._now_s += TURN_S
        ready, timers = self._ready, self._timers
        if not ready:
            assert timers, "everything waits for something that cannot happen"
            if timers[0][0] > self._now_s:
                self._now_s = timers[0][0]
        while timers and timers[0][0] <= self._now_s:
            ready.append(heapq.heappop(timers)[2])
        self.turn_count += 1
        for _ in range(len(ready)):
            call = ready.popleft()
            if call.cancelled():
                continue
            process = call.process
            if process is not None and (process.is_dead or process.is_paused):
                if not process.is_dead:
                    process.held.append(call)
                continue
            if process is not None:
                process.last_turn = self.turn_count
            call._run()
        if self.after_turn is not None:
            self.after_turn(self.turn_count)

    def run_until(self, is_done: Callable[[], bool]) -> None:
        events._set_running_loop(self)
        self._is_running = True
        try:
            while not is_done():
                self.turn()
        finally:
            self._is_running = False
            events._set_running_loop(None)

    def run_for(self, duration_s: float) -> None:
        end_s = self._now_s + duration_s
        self.call_at(end_s, _nothing)
        self.run_until(lambda: self._now_s >= end_s)

    def run_until_complete(self, future: Any) -> Any:
        task = asyncio.ensure_future(future, loop=self)
        self.run_until(task.done)
        return task.result()

    def run_forever(self) -> None:
        self._is_stopping = False
        self.run_until(lambda: self._is_stopping)

    def stop(self) -> None:
        self._is_stopping = True

    def is_running(self) -> bool:
        return self._is_running

    def is_closed(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        self._is_closed = True
        self._ready.clear()
        self._timers.clear()

    async def shutdown_asyncgens(self) -> None:
        """None are followed."""

    async def shutdown_default_executor(self, _timeout: float | None = None) -> None:
        """This loop has no executor threads."""

    # Tasks and futures, which are counted: a set of them has the same order in every run.

    def create_future(self) -> asyncio.Future[Any]:
        return _CountedFuture(self, next(self._numbers))

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = _CountedTask(coro, self, next(self._numbers), name, context)
        process = current_process()
        if process is not None:
            process.keep(task)
        return task

    # Processes.

    def run_in_executor(self, _: Any, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """The job is done all at once, at an instant that the seed draws."""
        future: asyncio.Future[T] = self.create_future()
        process = current_process()
        job = ExecutorJob(func, args, future)
        if process is not None:
            process.jobs.append(job)
        delay_s = self._random.choices(_JOB_DURATIONS_S, _JOB_WEIGHTS)[0]
        if process is not None and process.job_delay_max_s:
            delay_s += self._random.uniform(0, process.job_delay_max_s)
        self.call_later(delay_s, self._end_job, process, job, context=KERNEL)
        return future

    def _end_job(self, process: Process | None, job: ExecutorJob) -> None:
        """The disk goes on while a process is paused; only the process does not hear of it."""
        if process is None:
            job.run()
            job.tell()
        elif not process.is_dead:
            process.jobs.remove(job)
            process.run(job.run)
            process.run(self.call_soon, job.tell)

    def resume(self, process: Process) -> None:
        process.is_paused = False
        held, process.held = process.held, []
        for call in held:
            assert isinstance(call, _Call)
            self._ready.append(call)

    # Network.

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any) -> Any:
        assert options.get("ssl") is None, "the simulation has no TLS"
        process = current_process()
        assert process is not None, "only processes connect"
        return await self.network.connect(process, protocol_factory, str(host), int(port))

    async def create_server(self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any) -> Any:
        process = current_process()
        assert process is not None, "only processes listen"
        server = self.network.bind(process, protocol_factory, str(host), int(port))
        if options.get("start_serving", True):
            await server.start_serving()
        return server

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (str(host), int(port or 0)))]

    # What is left of a loop.

    def get_debug(self) -> bool:
        return False

    def set_debug(self, enabled: bool) -> None:
        assert not enabled, "not simulated"

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        process = current_process()
        if process is not None and process.is_dead:
            return
        self.exception_count += 1
        if self.on_exception is not None:
            self.on_exception(context)


def new_loop(random: Random) -> SimulatedLoop:
    """It lacks the methods of a loop that no code here may use."""
    return SimulatedLoop(random)  # type: ignore[abstract]


class _Call(asyncio.TimerHandle):
    __slots__ = ("process",)

    def __init__(
        self, when: float, callback: Callable[..., object], args: tuple[Any, ...], loop: SimulatedLoop,
        context: Context | None,
    ) -> None:  # fmt: skip
        super().__init__(when, callback, args, loop, context)
        self.process = current_process() if context is None else process_of(context)


class _CountedFuture(asyncio.Future[Any]):
    def __init__(self, loop: SimulatedLoop, number: int) -> None:
        self._number = number
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class _CountedTask(asyncio.Task[Any]):
    def __init__(
        self, coroutine: Coroutine[Any, Any, Any], loop: SimulatedLoop, number: int, name: str | None,
        context: Context | None,
    ) -> None:  # fmt: skip
        self._number = number
        # Asyncio would count tasks of all loops to name them.
        super().__init__(coroutine, loop=loop, name=name or f"task-{number}", context=context)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


def _nothing() -> None:
    """Time is to come this far."""
