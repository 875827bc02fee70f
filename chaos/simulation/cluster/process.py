"""A simulated process: what runs in it stops when it is paused or killed, and it has a clock of its own.

A context variable says which process a callback belongs to: tasks and callbacks inherit it from their creator. What
belongs to no process is the simulation itself, and the kernels of its machines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar, TypeVarTuple

from ..executor_job import ExecutorJob

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_CURRENT: ContextVar[Process | None] = ContextVar("process", default=None)
# Tasks that are done are forgotten when so many have been made.
_TASKS_BEFORE_TIDYING = 256


# What no process does.
KERNEL = Context()


def current_process() -> Process | None:
    return _CURRENT.get()


def process_of(context: Context) -> Process | None:
    return context.get(_CURRENT)


class Process:
    """One after the other on a machine, which is named by its `host`."""

    def __init__(self, name: str, host: str) -> None:
        self.name = name
        self.host = host
        self.is_dead = False
        self.is_paused = False
        self.last_turn = 0
        """The turn of the loop in which it did something."""
        self.clock_offset_ms = 0
        """How far its wall clock is from true time."""
        self.held: list[asyncio.Handle] = []
        """What became due while it was paused, in order."""
        self.jobs: list[ExecutorJob] = []
        """What the disk does for it."""
        self.job_delay_max_s = 0.0
        """By how much that takes longer at most."""
        # A task without a reference would be collected at an instant that depends on the rest of the memory.
        self._tasks: list[asyncio.Task[Any]] = []
        self._task_count_max = _TASKS_BEFORE_TIDYING
        self._context = copy_context()
        self._context.run(_CURRENT.set, self)

    def __repr__(self) -> str:
        return self.name

    def run(self, function: Callable[[*Ts], T], *args: *Ts) -> T:
        """Call a function as this process; tasks that it makes belong to the process."""
        return self._context.copy().run(function, *args)

    def keep(self, task: asyncio.Task[Any]) -> None:
        self._tasks.append(task)
        if len(self._tasks) > self._task_count_max:
            self._tasks = [one for one in self._tasks if not one.done()]
            self._task_count_max = 2 * len(self._tasks) + _TASKS_BEFORE_TIDYING

    def end_delays(self) -> None:
        """Its disk is as fast as ever."""
        self.job_delay_max_s = 0.0

    def lost_exceptions(self) -> list[tuple[str, BaseException]]:
        """What ended a task and was taken by no other: with the name of the task's coroutine."""
        return [
            (getattr(task.get_coro(), "__qualname__", task.get_name()), error)
            for task in self._tasks
            if task.done() and not task.cancelled() and task._log_traceback and (error := task.exception()) is not None
        ]
