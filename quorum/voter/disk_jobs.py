"""Calls on a voter's journal that wait for their turn between two of its writes."""

import asyncio
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..raft.consensus import ConsensusFailed
from .proposals import set_exception


class DiskJob(NamedTuple):
    """A call, and who waits for it."""

    call: Callable[[], object]
    done: "asyncio.Future[None]"


class DiskJobs:
    """Queue of journal jobs; the consumer resolves each future."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[DiskJob] = []

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    def add(self, call: Callable[[], object]) -> "asyncio.Future[None]":
        self._waiting.append(DiskJob(call, self._loop.create_future()))
        return self._waiting[-1].done

    def take(self) -> list[DiskJob]:
        taken, self._waiting = self._waiting, []
        return taken

    def fail_waiting(self, failure: ConsensusFailed) -> None:
        fail(self.take(), failure)


def finish(jobs: Iterable[DiskJob]) -> None:
    for job in jobs:
        if not job.done.done():
            job.done.set_result(None)


def fail(jobs: Iterable[DiskJob], failure: ConsensusFailed) -> None:
    for job in jobs:
        set_exception(job.done, failure)
