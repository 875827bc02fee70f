"""Who does compactions: the executor of this process, or worker processes (`worker_process.py`)."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Protocol

from ..disk.files import Files
from ..disk.rules.throttle import Unthrottled
from ..disk.shielded_call import run_unbroken
from .compaction import compact
from .rules.job import CleanedSegment, Compacted, CompactionJob


class Compactor(Protocol):
    def compact(self, job: CompactionJob, *, bytes_per_s: float) -> AsyncGenerator[CleanedSegment | Compacted, None]:
        """What `compaction.compact` gives and raises. Closed, or cancelled, nothing is written any more."""

    async def close(self) -> None:
        """Nothing is compacted any more."""


class ExecutorCompactor:
    """In a thread of this process, which holds the event loop up: for disks that only this process has, as in tests and
    simulation. It is not throttled.
    """

    def __init__(self, files: Files, loop: asyncio.AbstractEventLoop) -> None:
        self._files = files
        self._loop = loop

    async def compact(
        self,
        job: CompactionJob,
        *,
        bytes_per_s: float,  # noqa: ARG002 - the other form's
    ) -> AsyncGenerator[CleanedSegment | Compacted, None]:
        results = compact(self._files, job, Unthrottled())
        while (result := await run_unbroken(self._loop, next, results, None)) is not None:
            yield result

    async def close(self) -> None:
        """There is nothing to end."""
