"""Compaction and scrubbing in a process beside the node: what comes back, and how it ends."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest
from produced_batches import produced
from waiting import loop_until, wait_for

from penstock.local.processes import identify
from penstock.protocol.errors import CorruptData
from penstock.protocol.records import Record, write_batch
from penstock.storage.compaction.cleanable import find_cleanable, plan_compaction
from penstock.storage.compaction.rules.job import CleanedSegment, Compacted, CompactionJob
from penstock.storage.disk.files import DiskFiles
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig
from penstock.storage.scrubbing.rules.scrub_job import DamagedPart, Finding, Scrubbed, ScrubJob
from penstock.storage.workers.worker_process import ProcessCompactor, ProcessScrubber, WorkerEnded, WorkerProcesses

NOW_MS = 1_700_000_000_000
FAST = 1e12


def job_in(folder: Path) -> CompactionJob:
    config = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=1000)
    files = DiskFiles()
    log = Log.open(
        files, str(folder), topic="t", partition=0, topic_id=None, config=config, is_clean=True, now_ms=NOW_MS
    )
    for i in range(60):
        batch = write_batch(
            [Record(0, NOW_MS, b"k%d" % (i % 3), b"%d" % i)], producer_id=5, producer_epoch=0, base_sequence=i
        )
        log.append_as_leader(produced(batch), leader_epoch=0, now_ms=NOW_MS)
    log.flush()
    log.close()
    cleanable = find_cleanable(log, cleaned_end=None, stable_offset=60, now_ms=NOW_MS)
    return plan_compaction(log, cleanable, now_ms=NOW_MS, map_bytes=1 << 20)


async def all_of(results: AsyncGenerator[CleanedSegment | Compacted, None]) -> list[CleanedSegment | Compacted]:
    async with aclosing(results):
        return [result async for result in results]


def children() -> list[int]:
    task = Path(f"/proc/self/task/{os.getpid()}/children")
    return [int(pid) for pid in task.read_text().split()]


def has_started(pid: int) -> bool:
    """The worker ignores SIGINT then; its order was sent long before."""
    status = Path(f"/proc/{pid}/status").read_text()
    ignored = int(status.partition("SigIgn:")[2].split()[0], 16)
    return bool(ignored >> (signal.SIGINT - 1) & 1)


def kill(pid: int) -> None:
    """It has ended when this returns, and the loop has not had a turn since."""
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: identify(pid) is None, interval_s=0.001)


def test_a_job_goes_there_and_its_result_comes_back(tmp_path: Path) -> None:
    job = job_in(tmp_path / "t-0")

    async def scenario() -> None:
        compactor = ProcessCompactor(WorkerProcesses(asyncio.get_running_loop()))
        *cleaned, compacted = await all_of(compactor.compact(job, bytes_per_s=FAST))
        # One process does one after the other.
        assert await all_of(compactor.compact(job, bytes_per_s=FAST)) == [*cleaned, compacted]
        assert isinstance(compacted, Compacted)
        assert compacted.end_offset == job.end_offset
        assert compacted.figures.kept_records < compacted.figures.read_records
        assert cleaned
        for segment in cleaned:
            assert isinstance(segment, CleanedSegment)
            path = f"{tmp_path}/t-0/{segment.base_offset:020d}.log.cleaned"
            assert DiskFiles().size(path) == segment.size_bytes
        (worker,) = children()
        await compactor.close()
        assert worker not in children()

    asyncio.run(scenario())


def test_what_went_wrong_there_is_raised_here(tmp_path: Path) -> None:
    job = job_in(tmp_path / "t-0")
    log = tmp_path / "t-0" / f"{0:020d}.log"
    data = bytearray(log.read_bytes())

    async def scenario() -> None:
        compactor = ProcessCompactor(WorkerProcesses(asyncio.get_running_loop()))
        data[100] ^= 1
        log.write_bytes(data)
        with pytest.raises(CorruptData, match="at 71"):
            await all_of(compactor.compact(job, bytes_per_s=FAST))
        log.unlink()
        with pytest.raises(FileNotFoundError):
            await all_of(compactor.compact(job, bytes_per_s=FAST))
        await compactor.close()

    asyncio.run(scenario())


@pytest.mark.thorough
@pytest.mark.parametrize("has_begun", [False, True])
def test_a_worker_that_is_killed_is_told_of_and_another_does_the_next_job(tmp_path: Path, *, has_begun: bool) -> None:
    job = job_in(tmp_path / "t-0")

    async def scenario() -> None:
        compactor = ProcessCompactor(WorkerProcesses(asyncio.get_running_loop()))
        # So slow that it is still at it.
        running = asyncio.ensure_future(all_of(compactor.compact(job, bytes_per_s=100)))
        await loop_until(children, interval_s=0)
        (worker,) = children()
        if has_begun:
            await loop_until(lambda: has_started(worker))
        kill(worker)
        with pytest.raises(WorkerEnded, match="status -9"):
            await running
        assert await all_of(compactor.compact(job, bytes_per_s=FAST))
        await compactor.close()

    asyncio.run(scenario())


def test_cancelled_it_writes_nothing_any_more(tmp_path: Path) -> None:
    job = job_in(tmp_path / "t-0")

    async def scenario() -> None:
        compactor = ProcessCompactor(WorkerProcesses(asyncio.get_running_loop()))
        running = asyncio.ensure_future(all_of(compactor.compact(job, bytes_per_s=100)))
        await loop_until(children)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not children()
        await compactor.close()

    asyncio.run(scenario())


def test_who_does_not_want_the_rest_ends_it(tmp_path: Path) -> None:
    job = job_in(tmp_path / "t-0")

    async def scenario() -> None:
        compactor = ProcessCompactor(WorkerProcesses(asyncio.get_running_loop()))
        async with aclosing(compactor.compact(job, bytes_per_s=FAST)) as results:
            assert isinstance(await anext(results), CleanedSegment)
        assert not children()
        await compactor.close()

    asyncio.run(scenario())


def test_a_scrub_goes_there_and_what_it_finds_comes_back(tmp_path: Path) -> None:
    job = job_in(tmp_path / "t-0")
    scrub_job = ScrubJob(
        directory=job.directory,
        segments=job.segments,
        end_offset=job.end_offset,
        log_start_offset=0,
        leader_epochs=((0, 0),),
        index_interval_bytes=4096,
        has_active=False,
        may_have_gaps=True,
    )
    log = tmp_path / "t-0" / f"{0:020d}.log"
    data = bytearray(log.read_bytes())

    async def results(scrubber: ProcessScrubber) -> list[Finding | Scrubbed]:
        async with aclosing(scrubber.scrub(scrub_job, bytes_per_s=FAST)) as found:
            return [result async for result in found]

    async def scenario() -> None:
        workers = WorkerProcesses(asyncio.get_running_loop())
        scrubber = ProcessScrubber(workers)
        (scrubbed,) = await results(scrubber)
        read_bytes = sum(one.size_bytes for one in job.segments)
        assert scrubbed == Scrubbed(segment_count=len(job.segments), read_bytes=read_bytes)
        data[100] ^= 1
        log.write_bytes(data)
        finding, _ = await results(scrubber)
        assert isinstance(finding, Finding)
        assert (finding.part, finding.base_offset, finding.offset) == (DamagedPart.BATCHES, 0, 1)
        # The same process compacts.
        (worker,) = children()
        with pytest.raises(CorruptData):
            await all_of(ProcessCompactor(workers).compact(job, bytes_per_s=FAST))
        assert children() == [worker]
        await scrubber.close()
        assert not children()

    asyncio.run(scenario())
