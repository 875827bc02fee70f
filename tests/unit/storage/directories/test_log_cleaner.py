"""Which log is compacted when, and what happens to one that changes under the hands of who compacts it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from errno import ENOSPC
from random import Random

import pytest
from node_disk import NOW_MS, NodeDisk, node_disk
from produced_batches import produced

from penstock.protocol import structs
from penstock.protocol.batches import iterate_headers
from penstock.protocol.records import Record, read_records, write_batch
from penstock.storage.compaction.compaction import compact
from penstock.storage.compaction.rules.job import CleanedSegment, Compacted, CompactionJob
from penstock.storage.directories.log_cleaner import LogCleaner, LogCleanerConfig
from penstock.storage.directories.rules.checkpoints import CLEANER_OFFSETS
from penstock.storage.disk.rules.throttle import Unthrottled
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig
from penstock.storage.log.rules.control_records import write_end_transaction_marker
from penstock.storage.log.rules.transaction_verification import UNVERIFIED
from penstock.storage.workers.worker_process import WorkerEnded

COMPACTED = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=400, min_cleanable_dirty_ratio=0.5)


class Compactor:
    """Compacts at once, in the loop; `meanwhile` comes before its answers."""

    def __init__(self, disk: NodeDisk) -> None:
        self.disk = disk
        self.jobs: list[CompactionJob] = []
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        self.is_closed = False

    async def compact(
        self, job: CompactionJob, *, bytes_per_s: float
    ) -> AsyncGenerator[CleanedSegment | Compacted, None]:
        assert bytes_per_s > 0
        self.jobs.append(job)
        results = list(compact(self.disk.files, job, Unthrottled()))
        if self.meanwhile is not None:
            await self.meanwhile()
        for result in results:
            yield result

    async def close(self) -> None:
        self.is_closed = True


class Fixture:
    def __init__(self, disk: NodeDisk) -> None:
        self.disk = disk
        self.compactor = Compactor(disk)
        self.config = LogCleanerConfig(log_cleaner_backoff_ms=1000)
        self.stable_offsets: dict[Log, int] = {}
        disk.config = COMPACTED
        disk.start()
        self.corrupt: list[Log] = []
        self.cleaner = LogCleaner(
            disk.manager,
            disk.files,
            disk.loop,
            self.compactor,
            config=lambda: self.config,
            steady_clock_ms=lambda: disk.now_ms,
            stable_offset_of=lambda log: self.stable_offsets.get(log, log.log_end_offset),
            on_corrupt=self.corrupt.append,
        )

    def clean(self) -> bool:
        return self.disk.loop.run(self.cleaner.clean_dirtiest())

    def checkpointed(self, topic: str) -> int | None:
        return self.disk.manager.directories[0].checkpointed[CLEANER_OFFSETS].get((topic, 0))


@contextmanager
def fixture() -> Iterator[Fixture]:
    with node_disk() as disk:
        yield Fixture(disk)


def write(log: Log, key: str, count: int = 20, now_ms: int = NOW_MS) -> None:
    for i in range(count):
        batch = write_batch([Record(0, now_ms, key.encode(), b"%d" % i)])
        log.append_as_leader(produced(batch), leader_epoch=0, now_ms=now_ms)


def offsets(log: Log) -> list[int]:
    return [record.offset for record in records_of(log)]


def records_of(log: Log) -> list[Record]:
    found: list[Record] = []
    position = log.log_start_offset
    while position < log.log_end_offset:
        data = log.read(position, max_bytes=1 << 20, end_offset=log.log_end_offset, min_one_batch=True)
        chunk = b"".join(piece.read(0, piece.size) for piece in data.slices)
        for at, header in iterate_headers(chunk):
            found += read_records(chunk[at:], header)
            position = header.next_offset
    return found


def test_the_dirtiest_log_is_first() -> None:
    with fixture() as it:
        half, whole = it.disk.log("half"), it.disk.log("whole")
        write(half, "a", 40)
        assert it.clean()
        write(half, "a", 60)
        write(whole, "b", 40)
        assert it.clean()
        assert it.clean()
        assert [job.directory for job in it.compactor.jobs] == ["/data/half-0", "/data/whole-0", "/data/half-0"]
        assert not it.clean()


def test_nothing_is_done_below_the_dirty_ratio_but_for_what_is_overdue() -> None:
    with fixture() as it:
        log = it.disk.log("table")
        write(log, "a", 40)
        assert it.clean()
        log.config = replace(COMPACTED, min_cleanable_dirty_ratio=0.99)
        write(log, "a", 10)
        assert not it.clean()
        log.config = replace(log.config, max_compaction_lag_ms=5000)
        assert not it.clean()
        it.disk.skew_ms += 5001
        assert it.clean()


def test_what_is_young_or_not_stable_is_left_alone() -> None:
    with fixture() as it:
        log = it.disk.log("table")
        log.config = replace(COMPACTED, min_compaction_lag_ms=10_000)
        write(log, "a", 20)
        assert not it.clean()
        write(log, "a", 20, NOW_MS + 9000)
        it.disk.skew_ms += 10_000
        assert it.clean()
        cleaned = it.checkpointed("table")
        assert cleaned is not None
        assert 10 < cleaned <= 20
        it.disk.skew_ms += 60_000
        it.stable_offsets[log] = cleaned + 3
        assert not it.clean()


def test_a_segment_whose_file_is_gone_is_damage_of_its_log_and_not_of_the_directory() -> None:
    with fixture() as it:
        log = it.disk.log("table")
        write(log, "a")
        it.disk.files.remove(log.inactive_segments[1].path(".log"))
        it.clean()
        assert list(it.cleaner.uncleanable) == ["table-0"]
        assert it.corrupt == [log]
        assert it.disk.manager.directories[0].error is None


def test_only_compacted_topics_are_compacted() -> None:
    with fixture() as it:
        log = it.disk.log("events")
        log.config = replace(COMPACTED, cleanup_policy=frozenset({"delete"}))
        write(log, "a", 40)
        assert not it.clean()


def test_readers_have_the_old_files_until_they_are_done() -> None:
    with fixture() as it:
        log = it.disk.log("table")
        write(log, "a", 20)
        data = log.read(0, max_bytes=1 << 20, end_offset=log.log_end_offset, min_one_batch=True)
        before = data.slices[0].read(0, data.slices[0].size)
        assert it.clean()
        assert data.slices[0].read(0, data.slices[0].size) == before
        assert any(name.endswith(".deleted") for name in it.disk.names(log.directory))
        it.disk.skew_ms += log.config.file_delete_delay_ms
        assert log.take_removable_files(it.disk.now_ms)


def test_a_log_that_is_cut_meanwhile_keeps_what_it_has() -> None:
    with fixture() as it:
        log = it.disk.log("table")
        write(log, "a", 20)

        async def cut() -> None:
            it.disk.manager.truncate({log: 6})
            write(log, "b", 14)

        it.compactor.meanwhile = cut
        assert it.clean()
        assert offsets(log) == list(range(20))
        assert it.checkpointed("table") is None
        assert not [name for name in it.disk.names(log.directory) if "cleaned" in name or "swap" in name]
        it.compactor.meanwhile = None
        assert it.clean()
        assert offsets(log)[0] == 5


@pytest.mark.parametrize("sync_count", range(3))
def test_a_log_that_is_cut_while_its_segments_are_swapped_is_as_it_was_cut(sync_count: int) -> None:
    with fixture() as it:
        log = it.disk.log("table")
        write(log, "a", 30)
        sync_directory = it.disk.files.sync_directory
        counted = 0

        def cut_then_sync(path: str) -> None:
            nonlocal counted
            if path == log.directory:
                counted += 1
                if counted == sync_count + 1:
                    it.disk.manager.truncate({log: 25})
            sync_directory(path)

        it.disk.files.sync_directory = cut_then_sync  # type: ignore[method-assign]
        assert it.clean()
        it.disk.files.sync_directory = sync_directory  # type: ignore[method-assign]
        assert log.log_end_offset == 25
        assert offsets(log)[-1] == 24
        before = offsets(log)
        it.disk.stop()
        it.disk.start()
        assert offsets(it.disk.log("table")) == before


def test_segments_that_retention_deletes_meanwhile_stay_deleted() -> None:
    with fixture() as it:
        log = it.disk.log("table")
        log.config = replace(COMPACTED, cleanup_policy=frozenset({"compact", "delete"}), retention_bytes=800)
        write(log, "a", 40)

        async def delete() -> None:
            while log.delete_old_segments(log.log_end_offset, it.disk.now_ms):
                pass

        it.compactor.meanwhile = delete
        assert it.clean()
        assert log.log_start_offset > 0
        assert offsets(log) == list(range(log.log_start_offset, 40))
        assert not [name for name in it.disk.names(log.directory) if "cleaned" in name or "swap" in name]


def test_a_partition_that_is_deleted_meanwhile_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    with fixture() as it, caplog.at_level(logging.ERROR):
        write(it.disk.log("table"), "a", 40)

        async def delete() -> None:
            it.disk.manager.delete("table", 0)

        it.compactor.meanwhile = delete
        assert it.clean()
        assert not caplog.records
        assert it.disk.failures == []


@pytest.mark.parametrize(
    ("position", "reason"), [(60, "does not have its CRC"), (70, "cannot be in [1, "), (14, "is followed by 0")]
)
def test_a_damaged_log_is_named_and_harms_no_other(
    caplog: pytest.LogCaptureFixture, position: int, reason: str
) -> None:
    with fixture() as it, caplog.at_level(logging.ERROR):
        damaged, good = it.disk.log("damaged"), it.disk.log("good")
        write(damaged, "a", 40)
        write(good, "b", 30)
        it.disk.files.flip_bit("/data/damaged-0/00000000000000000000.log", position, 3)
        assert it.clean()
        assert it.clean()
        assert not it.clean()
        assert list(it.cleaner.uncleanable) == ["damaged-0"]
        assert "Uncleanable log: partition=damaged-0" in caplog.text
        assert reason in it.cleaner.uncleanable["damaged-0"]
        assert it.corrupt == [damaged]
        assert len(offsets(good)) < 30
        assert not [name for name in it.disk.names(damaged.directory) if "cleaned" in name]
        it.disk.files.flip_bit("/data/damaged-0/00000000000000000000.log", position, 3)
        it.cleaner.retry(damaged)
        assert it.clean()
        assert not it.cleaner.uncleanable


def test_a_worker_that_is_killed_is_followed_by_another_but_not_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    kills = 2

    async def kill() -> None:
        nonlocal kills
        kills -= 1
        if kills >= 0:
            raise WorkerEnded("the compaction worker ended with status -9")

    with fixture() as it:
        it.compactor.meanwhile = kill
        log = it.disk.log("topic")
        write(log, "a")
        assert [it.clean() for _ in range(3)] == [True, True, True]
        assert not it.cleaner.uncleanable
        assert len(it.compactor.jobs) == 3
        assert offsets(log)[0] == log.active_segment_base_offset - 1, "the third one has compacted it"
        write(log, "a")
        kills = 10
        with caplog.at_level(logging.ERROR):
            assert [it.clean() for _ in range(4)] == [True, True, True, False]
        assert it.cleaner.uncleanable == {"topic-0": "the compaction worker ended with status -9"}
        assert "Uncleanable log: partition=topic-0" in caplog.text


@pytest.mark.parametrize("cleaned_before", [False, True], ids=["in one pass", "in a later pass"])
def test_what_a_producer_writes_behind_a_transaction_that_it_aborted_counts(*, cleaned_before: bool) -> None:
    with fixture() as it:
        log = it.disk.log("topic")
        sequence = 0

        def transaction(*, is_commit: bool) -> None:
            nonlocal sequence
            records = [Record(number, NOW_MS, b"key", b"%d" % sequence) for number in range(4)]
            batch = write_batch(records, producer_id=5, producer_epoch=0, base_sequence=sequence, is_transactional=True)
            sequence += len(records)
            log.append_as_leader(produced(batch), leader_epoch=0, now_ms=NOW_MS, verification=UNVERIFIED)
            log.append_of_coordinator(
                write_end_transaction_marker(5, 0, is_commit=is_commit, coordinator_epoch=0, now_ms=NOW_MS),
                leader_epoch=0,
                now_ms=NOW_MS,
            )

        transaction(is_commit=False)
        if cleaned_before:
            write(log, "other")
            assert it.clean()
        for _ in range(10):
            transaction(is_commit=True)
        write(log, "other")
        assert it.clean()
        end = log.active_segment_base_offset
        values = [record.value for record in records_of(log) if record.key == b"key" and record.offset < end]
        assert values == [b"40"], "the last of the ten, and nothing before"


def test_a_full_disk_is_tried_again_and_gets_its_room_back() -> None:
    with fixture() as it:
        log = it.disk.log("table")
        write(log, "a", 20)
        write(log, "b", 20)
        it.disk.files.fail("write", under=log.directory, error=ENOSPC)
        assert it.clean()
        assert it.cleaner.uncleanable == {}
        assert it.disk.failures == []
        assert offsets(log) == list(range(40))
        assert not [name for name in it.disk.names(log.directory) if "cleaned" in name]
        assert it.clean()
        assert len(offsets(log)) < 40


def test_it_runs_until_it_is_cancelled_and_then_nothing_compacts_any_more() -> None:
    with fixture() as it:
        log = it.disk.log("table")

        async def scenario() -> None:
            running = asyncio.ensure_future(it.cleaner.run())
            await asyncio.sleep(0.5)
            write(log, "a", 40)
            await asyncio.sleep(1)
            assert it.checkpointed("table") is not None
            running.cancel()
            await asyncio.wait([running])

        it.disk.loop.run(scenario())
        assert it.compactor.is_closed


def test_it_can_be_switched_off() -> None:
    with fixture() as it:
        write(it.disk.log("table"), "a", 40)
        it.config = structs.replace(it.config, log_cleaner_enable=False)

        async def scenario() -> None:
            running = asyncio.ensure_future(it.cleaner.run())
            await asyncio.sleep(5)
            running.cancel()
            await asyncio.wait([running])

        it.disk.loop.run(scenario())
        assert it.compactor.jobs == []


def test_timestamps_of_records_that_are_gone_are_not_found() -> None:
    with fixture() as it:
        log = it.disk.log("table")
        for i in range(40):
            batch = write_batch(
                # The first are the newest.
                [Record(0, NOW_MS - i, b"k", b"v")],
                producer_id=i % 4,
                producer_epoch=0,
                base_sequence=i // 4,
            )
            log.append_as_leader(produced(batch), leader_epoch=0, now_ms=NOW_MS)
        assert it.clean()
        first = offsets(log)[0]
        assert first > 0
        for _ in range(2):
            found = log.max_timestamp_offset()
            assert found is not None
            assert (found.offset, found.timestamp) == (first, NOW_MS - first)
            assert log.offset_for_timestamp(NOW_MS - 39, 40) == found
            assert log.offset_for_timestamp(NOW_MS, 40) is None
            it.disk.stop()
            it.disk.start()
            log = it.disk.log("table")


@pytest.mark.thorough
@pytest.mark.parametrize("is_power_lost", [False, True], ids=["killed", "without power"])
def test_an_end_at_any_step_of_a_compaction_loses_nothing(*, is_power_lost: bool) -> None:
    latest = {f"k{i}": 28 + i for i in range(4)}
    step = 0
    is_whole = False
    while not is_whole:
        with fixture() as it:
            log = it.disk.log("table")
            log.config = replace(COMPACTED, segment_bytes=200)
            for i in range(32):
                write(log, f"k{i % 4}", 1)
            # Seven of these become one, and seven another.
            log.config = replace(COMPACTED, segment_bytes=1000)
            log.flush()
            it.disk.files.end_process(skip=step)
            with suppress(OSError):
                it.clean()
            is_whole = it.disk.failures == [] and it.checkpointed("table") is not None
            it.disk.files.heal()
            if is_power_lost:
                it.disk.files.crash(Random(step))
            else:
                it.disk.files.kill()
            it.disk.start()
            log = it.disk.log("table")
            assert log.damage is None, step
            assert log.log_end_offset == 32, step
            found = offsets(log)
            assert found == sorted(set(found)), step
            assert set(latest.values()) <= set(found), step
            names = it.disk.names(log.directory)
            assert not [name for name in names if name.endswith(("cleaned", "swap", "deleted"))], step
            step += 1
    assert step > 100
