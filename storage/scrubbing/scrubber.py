"""Who scrubs: the executor of this process, or a worker process (`worker_process.py`)."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Protocol

from ..disk.files import Files
from ..disk.rules.throttle import Unthrottled
from ..disk.shielded_call import run_unbroken
from .rules.scrub_job import Finding, Scrubbed, ScrubJob
from .scrub import scrub


class Scrubber(Protocol):
    def scrub(self, job: ScrubJob, *, bytes_per_s: float) -> AsyncGenerator[Finding | Scrubbed, None]:
        """What `scrub.scrub` gives and raises."""

    async def close(self) -> None:
        """Nothing is scrubbed any more."""


class ExecutorScrubber:
    """In a thread of this process, which holds the event loop up: for disks that only this process has, as in tests and
    simulation. It is not throttled.
    """

    def __init__(self, files: Files, loop: asyncio.AbstractEventLoop) -> None:
        self._files = files
        self._loop = loop

    async def scrub(
        self,
        job: ScrubJob,
        *,
        bytes_per_s: float,  # noqa: ARG002 - the other form's
    ) -> AsyncGenerator[Finding | Scrubbed, None]:
        results = scrub(self._files, job, Unthrottled())
        while (result := await run_unbroken(self._loop, next, results, None)) is not None:
            yield result

    async def close(self) -> None:
        """There is nothing to end."""
