"""Threads for the logs of a directory at start and stop."""

import asyncio
from collections.abc import Sequence
from errno import EIO, ENOSPC
from threading import Barrier

import pytest

from penstock.protocol.errors import CorruptData
from penstock.storage.directories.group_sync import SyncGroup, sync_groups
from penstock.storage.directories.log_jobs import LogJobs
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.disk.rules.disk_errors import SyncError
from penstock.storage.log.recovery_point import FolderSync


class Item:
    """Something to sync."""

    def __init__(self, done: list[str], name: str, error: Exception | None = None) -> None:
        self.done = done
        self.name = name
        self.error = error

    def sync(self) -> None:
        self.done.append(self.name)
        if self.error is not None:
            raise self.error


class Meeting:
    """Each waits until all have come: so many syncs are under way at once."""

    def __init__(self, barrier: Barrier) -> None:
        self.barrier = barrier

    def sync(self) -> None:
        self.barrier.wait(10)


@pytest.mark.parametrize("at_once", [1, 3])
def test_so_many_slices_are_worked_on_at_once_as_there_are_recovery_threads(at_once: int) -> None:
    items = list(range(1005))
    seen: list[int] = []
    running, most = 0, 0

    async def work(some: Sequence[int]) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        seen.extend(some)
        running -= 1

    async def run() -> None:
        with LogJobs(asyncio.get_running_loop(), slices_at_once=at_once) as jobs:
            await jobs.for_slices([], work)
            assert seen == []
            await jobs.for_slices(items, work)

    asyncio.run(run())
    assert sorted(seen) == items
    assert most == at_once


def test_syncs_of_a_slice_wait_for_the_disk_together_and_each_error_is_that_of_its_log() -> None:
    barrier = Barrier(8)
    errors = [SyncError(EIO, str(number)) if number % 3 == 0 else None for number in range(20)]
    done: list[str] = []
    groups: list[SyncGroup] = [
        ((Meeting(barrier), Item(done, str(number), errors[number])) if number < 8 else (), None)
        for number in range(20)
    ]
    groups[8:] = [((Item(done, str(number), errors[number]),), None) for number in range(8, 20)]

    async def run() -> None:
        with LogJobs(asyncio.get_running_loop(), slices_at_once=1) as jobs:
            assert await jobs.sync([]) == []
            assert await jobs.sync(groups) == errors

    asyncio.run(run())
    assert sorted(done, key=int) == [str(number) for number in range(20)]


def test_folder_of_many_logs_is_synced_once_and_after_what_is_in_it() -> None:
    files = MemoryFiles()
    files.make_directories("/data/a-0")
    made = files.operation_counts["sync_directory"]
    parent = FolderSync(files, "/data")
    done: list[str] = []

    class Before(Item):
        def sync(self) -> None:
            super().sync()
            assert files.operation_counts["sync_directory"] == made

    groups: list[SyncGroup] = [((Before(done, name), parent), None) for name in "abc"]
    assert sync_groups(groups) == [None, None, None]
    assert done == ["a", "b", "c"]
    assert files.operation_counts["sync_directory"] == made + 1


def test_folder_that_cannot_be_synced_fails_all_logs_that_wait_for_it_and_no_other() -> None:
    files = MemoryFiles()
    files.make_directories("/data/a-0")
    files.fail("sync_directory", under="/data", count=None)
    parent = FolderSync(files, "/data")
    done: list[str] = []
    refusal, no_room = CorruptData("index"), OSError(ENOSPC, "full")
    errors = sync_groups(
        [
            ((Item(done, "a"), parent), None),
            ((Item(done, "b", no_room), Item(done, "not tried"), parent), None),
            ((), refusal),
            ((Item(done, "c"), parent), None),
            ((Item(done, "d"),), None),
        ]
    )
    assert isinstance(errors[0], SyncError)
    assert errors == [errors[0], no_room, refusal, errors[0], None]
    assert done == ["a", "b", "c", "d"]


def test_cancelled_it_ends_when_what_was_begun_has() -> None:
    """A stop in the middle of a start: no thread goes on with files of a directory that is given up."""
    begun: list[int] = []
    ended: list[int] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        go_on = asyncio.Event()
        barrier = Barrier(2)

        def call(first: int) -> None:
            begun.append(first)
            loop.call_soon_threadsafe(go_on.set)
            barrier.wait(10)
            ended.append(first)

        with LogJobs(loop, slices_at_once=1) as jobs:
            task = asyncio.ensure_future(jobs.for_slices(list(range(300)), lambda some: jobs.run(call, some[0])))
            await go_on.wait()
            task.cancel()
            await asyncio.sleep(0)
            assert not task.done()
            await loop.run_in_executor(None, barrier.wait, 10)
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(run())
    assert begun == ended == [0]
