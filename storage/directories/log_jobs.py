"""The threads that open the logs of a directory at start, and sync and close them at stop.

Kafka: `num.recovery.threads.per.data.dir`. So many slices of the logs are worked on at once. What a slice has to sync
is spread over more threads: a sync waits for the disk, which does many of them in the time of one.
"""

import asyncio
from asyncio import AbstractEventLoop, TaskGroup
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Final, TypeVar, TypeVarTuple

from ..disk.shielded_call import run_unbroken
from .group_sync import Failure, SyncGroup, sync_groups

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

DEFAULT_RECOVERY_THREADS: Final = 2
_LOGS_PER_SLICE: Final = 50
_SYNCS_AT_ONCE: Final = 8
"""Of a slice. On a busy disk 12,000 of them took 0.8 s by eight threads, 9.5 s by two and 54 s by one."""


class LogJobs:
    """Use it in a `with` statement."""

    def __init__(self, loop: AbstractEventLoop, *, slices_at_once: int) -> None:
        self._loop = loop
        self._slices_at_once = slices_at_once
        # Not those of the loop's own executor: syncs of others are not to wait behind these.
        self._executor = ThreadPoolExecutor(slices_at_once * _SYNCS_AT_ONCE, "logs")

    def __enter__(self) -> "LogJobs":
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._executor.shutdown(wait=False)

    async def for_slices(self, items: Sequence[T], work: Callable[[Sequence[T]], Awaitable[None]]) -> None:
        """Await `work` for each slice of the items, for some at once; cancelled, it ends when what was begun has."""
        slices = iter([items[first : first + _LOGS_PER_SLICE] for first in range(0, len(items), _LOGS_PER_SLICE)])

        async def work_on() -> None:
            for some in slices:
                await work(some)

        async with TaskGroup() as tasks:
            for _ in range(min(self._slices_at_once, -(-len(items) // _LOGS_PER_SLICE))):
                tasks.create_task(work_on())

    async def run(self, call: Callable[[*Ts], T], *args: *Ts) -> T:
        return await run_unbroken(self._loop, call, *args, executor=self._executor)

    async def sync(self, groups: Sequence[SyncGroup]) -> list[Failure | None]:
        """`sync_groups`, by several threads."""
        thread_count = min(_SYNCS_AT_ONCE, len(groups))
        parts = [groups[first::thread_count] for first in range(thread_count)]
        errors: list[Failure | None] = [None] * len(groups)
        for first, some in enumerate(await asyncio.gather(*(self.run(sync_groups, part) for part in parts))):
            errors[first::thread_count] = some
        return errors
