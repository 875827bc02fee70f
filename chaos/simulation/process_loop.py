"""The loop as one simulated process sees it: the process can be paused and killed, and its disk takes time."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, TypeVarTuple, cast

from .executor_job import ExecutorJob

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class ProcessLoop:
    """What a node needs of a loop; `as_loop` for those who want one by type. All its callbacks stop with it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, job_duration_s: Callable[[], float]) -> None:
        """Share the clock of `loop`; a job of the executor is done all at once, `job_duration_s()` after it began."""
        self._loop = loop
        self._job_duration_s = job_duration_s
        self._is_dead = False
        self._is_paused = False
        self._held: list[_Call] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._jobs: list[ExecutorJob] = []

    @property
    def as_loop(self) -> asyncio.AbstractEventLoop:
        """What it lacks of a loop is what a simulated node must not use."""
        return cast(asyncio.AbstractEventLoop, self)

    @property
    def is_busy(self) -> bool:
        """A job of the executor has begun and has not ended."""
        return bool(self._jobs)

    def time(self) -> float:
        return self._loop.time()

    def create_future(self) -> "asyncio.Future[Any]":
        return self._loop.create_future()

    def create_task(self, coroutine: Coroutine[Any, Any, T], **_: Any) -> "asyncio.Task[T]":
        task = self._loop.create_task(coroutine)
        self._tasks = [task, *(other for other in self._tasks if not other.done())]
        return task

    def call_soon(self, callback: Callable[..., object], *args: Any, **_: Any) -> "asyncio.Handle":
        return self._call(self._loop.time(), callback, args)

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any, **_: Any) -> "asyncio.Handle":
        return self.call_soon(callback, *args)

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any, **_: Any) -> "asyncio.TimerHandle":
        return self._call(self._loop.time() + delay, callback, args)

    def call_at(self, when: float, callback: Callable[..., object], *args: Any, **_: Any) -> "asyncio.TimerHandle":
        return self._call(when, callback, args)

    def _call(self, when: float, callback: Callable[..., object], args: tuple[Any, ...]) -> "_Call":
        call = _Call(when, callback, args, self._loop)
        if when <= self._loop.time():
            self._loop.call_soon(self._run, call)
        else:
            self._loop.call_at(when, self._run, call)
        return call

    def _run(self, call: "_Call") -> None:
        if self._is_dead or call.cancelled():
            return
        if self._is_paused:
            self._held.append(call)
            return
        call.run()

    def run_in_executor(self, _: Any, func: Callable[[*Ts], T], *args: *Ts) -> "asyncio.Future[T]":
        future: asyncio.Future[T] = self._loop.create_future()
        job = ExecutorJob(func, args, future)
        self._jobs.append(job)
        # The kernel goes on while a process is paused; only the process does not hear of it.
        self._loop.call_later(self._job_duration_s(), self._end_job, job)
        return future

    def _end_job(self, job: ExecutorJob) -> None:
        if self._is_dead:
            return
        self._jobs.remove(job)
        job.run()
        self.call_soon(job.tell)

    # What happens to the process.

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        held, self._held = self._held, []
        for call in held:
            self._loop.call_soon(self._run, call)

    def kill(self) -> "list[Callable[[], object]]":
        """Stop for good. Return the jobs that were being done, to be done to some extent."""
        self._is_dead = True
        for task in self._tasks:
            task.cancel()
        jobs: list[Callable[[], object]] = [job.run for job in self._jobs]
        self._jobs.clear()
        return jobs

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self._loop.call_exception_handler(context)


class _Call(asyncio.TimerHandle):
    def __init__(
        self, when: float, callback: Callable[..., object], args: tuple[Any, ...], loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(when, callback, args, loop)

    def run(self) -> None:
        self._run()
