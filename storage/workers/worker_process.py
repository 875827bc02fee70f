"""Work on logs in processes beside the node, started when there is some, stopped when there was none for a minute."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Final

from ..compaction.rules.job import CleanedSegment, Compacted, CompactionJob
from ..scrubbing.rules.scrub_job import Finding, Scrubbed, ScrubJob
from .rules.work_order import ANSWERS, ENCODER, WorkAnswer, WorkOrder, to_exception

IDLE_S: Final = 60.0
_ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024


class WorkerEnded(Exception):  # noqa: N818 - the project's word for it
    """The worker ended in the middle of its work: it was killed, for want of memory perhaps, or could not start."""


class WorkerProcesses:
    """As many as orders are given at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._idle: list[tuple[asyncio.subprocess.Process, asyncio.TimerHandle]] = []
        self._ending: set[asyncio.Task[None]] = set()

    async def carry_out(self, order: WorkOrder) -> AsyncGenerator[WorkAnswer, None]:
        """The answers, the last of which ends the order. Raises what the work does, and WorkerEnded. Closed, or
        cancelled, the process is killed."""
        process = await self._take()
        is_at_rest = False
        try:
            await _send(process, order)
            while not is_at_rest:
                answer = await _receive(process)
                is_at_rest = answer.cleaned is None and answer.finding is None
                if answer.failure is not None:
                    raise to_exception(answer.failure)
                yield answer
        finally:
            if is_at_rest:
                self._idle.append((process, self._loop.call_later(IDLE_S, self._end_idle, process)))
            else:
                await _kill(process)

    async def close(self) -> None:
        """Ends those that have nothing to do."""
        while self._idle:
            process, timer = self._idle.pop()
            timer.cancel()
            await _kill(process)
        while self._ending:
            await asyncio.wait(self._ending)

    async def _take(self) -> asyncio.subprocess.Process:
        while self._idle:
            process, timer = self._idle.pop()
            timer.cancel()
            if process.returncode is None:
                return process
        try:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                f"{__package__}.worker",
                str(os.getpid()),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=_ANSWER_BYTES_MAX,
            )
        except OSError as error:
            raise WorkerEnded(f"no worker could be started: {error}") from error

    def _end_idle(self, process: asyncio.subprocess.Process) -> None:
        self._idle = [(one, timer) for one, timer in self._idle if one is not process]
        ending = self._loop.create_task(_kill(process))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)


class ProcessCompactor:
    """A `Compactor`."""

    def __init__(self, workers: WorkerProcesses) -> None:
        self._workers = workers

    async def compact(
        self, job: CompactionJob, *, bytes_per_s: float
    ) -> AsyncGenerator[CleanedSegment | Compacted, None]:
        """Raises what `compaction.compact` does, and WorkerEnded."""
        async with aclosing(self._workers.carry_out(WorkOrder(compaction=job, bytes_per_s=bytes_per_s))) as answers:
            async for answer in answers:
                result = answer.cleaned or answer.compacted
                assert result is not None, "what a compaction answers"
                yield result

    async def close(self) -> None:
        await self._workers.close()


class ProcessScrubber:
    """A `Scrubber`."""

    def __init__(self, workers: WorkerProcesses) -> None:
        self._workers = workers

    async def scrub(self, job: ScrubJob, *, bytes_per_s: float) -> AsyncGenerator[Finding | Scrubbed, None]:
        """Raises what `scrub.scrub` does, and WorkerEnded."""
        async with aclosing(self._workers.carry_out(WorkOrder(scrub=job, bytes_per_s=bytes_per_s))) as answers:
            async for answer in answers:
                result = answer.finding or answer.scrubbed
                assert result is not None, "what a scrub answers"
                yield result

    async def close(self) -> None:
        await self._workers.close()


async def _send(process: asyncio.subprocess.Process, order: WorkOrder) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(ENCODER.encode(order) + b"\n")
        await process.stdin.drain()
    except ConnectionError as error:
        # It was killed, or failed, before it had read all.
        raise await _ended(process) from error


async def _receive(process: asyncio.subprocess.Process) -> WorkAnswer:
    assert process.stdout is not None
    line = await process.stdout.readline()
    if line.endswith(b"\n"):
        return ANSWERS.decode(line)
    raise await _ended(process)


async def _ended(process: asyncio.subprocess.Process) -> WorkerEnded:
    return WorkerEnded(f"the worker ended with status {await process.wait()}")


async def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        # Not `process.kill`: it would take the exit status from under the hands of who waits for it.
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    await process.wait()
