"""A log that moves to another log directory (KIP-113): meanwhile, afterwards, and when the move ends early."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from errno import EIO, ENOSPC
from random import Random

import pytest
from moving_disk import FIRST, KEY, SECOND, MovingDisk, moving_disk, values

from penstock.storage.compaction.compactor import ExecutorCompactor
from penstock.storage.directories.log_cleaner import LogCleaner, LogCleanerConfig
from penstock.storage.directories.rules.checkpoints import CLEANER_OFFSETS, RECOVERY_POINTS
from penstock.storage.log.log import Log


def test_a_log_moves_with_all_it_has() -> None:
    with moving_disk() as it:
        it.append(40)
        before = values(it.log)
        old = it.log
        it.begin(SECOND)
        it.wait()
        assert it.replaced == [(old, it.log)]
        assert it.log.directory == "/b/moved-0"
        assert values(it.log) == before
        assert it.folders(SECOND) == ["moved-0"]
        assert [name for name in it.folders(FIRST) if not name.endswith("-delete")] == []
        assert it.assigned == it.disk.manager.directories[1].id
        it.append(3)
        assert len(values(it.log)) == 43


def test_what_is_appended_cut_and_deleted_meanwhile_is_so_in_the_copy() -> None:
    with moving_disk() as it:
        it.append(40)
        it.rate = 2000
        it.begin(SECOND)
        it.wait(1)
        (future,) = it.disk.manager.futures
        assert 0 < future.log_end_offset < 40
        it.disk.manager.truncate({it.log: future.log_end_offset - 3})
        it.epoch = 1
        it.append(9)
        it.log.increment_log_start_offset(4)
        it.wait(1)
        it.append(5)
        before = values(it.log)
        epochs = it.log.leader_epochs.entries
        it.wait()
        assert it.log.directory == "/b/moved-0"
        assert values(it.log) == before
        assert (it.log.log_start_offset, it.log.leader_epochs.entries) == (4, epochs)


def test_copying_keeps_to_the_rate_which_may_change() -> None:
    with moving_disk() as it:
        it.append(100)
        size = it.log.size_bytes
        it.rate = size / 20
        it.begin(SECOND)
        it.wait(10)
        assert size * 0.3 < it.mover.moved_bytes < size * 0.8
        it.rate = 0
        it.wait(1)
        stopped = it.mover.moved_bytes
        it.wait(100)
        assert it.mover.moved_bytes == stopped
        it.rate = float("inf")
        it.wait(3)
        assert it.log.directory == "/b/moved-0"


@pytest.mark.parametrize("thread_count", [1, 2, 3])
def test_so_many_logs_are_copied_at_a_time_as_there_are_threads(thread_count: int) -> None:
    with moving_disk(thread_count) as it:
        logs = [it.another(partition) for partition in range(4)]
        for log in logs:
            it.append(160, log)
            it.begin(SECOND, log)
        it.rate = 20_000
        it.wait(0.9)
        assert sum(0 < future.log_end_offset < 160 for future in it.disk.manager.futures) == thread_count
        it.rate = float("inf")
        it.wait()
        assert sorted(log.directory for log in it.disk.manager.logs) == [f"/b/moved-{n}" for n in range(4)]


def test_moves_that_take_over_at_once_write_the_checkpoints_of_their_directory_one_after_the_other() -> None:
    # Each that began superseded the one before, in turn and without end.
    with moving_disk() as it:
        for one in (it.another(0), it.another(1)):
            it.append(5, one)
            it.begin(SECOND, one)
        it.wait()
        assert it.mover.completed_count == 2
        assert it.disk.manager.directories[1].checkpointed[RECOVERY_POINTS] == {("moved", 0): 5, ("moved", 1): 5}


def test_a_log_is_not_compacted_while_it_moves() -> None:
    with moving_disk() as it:
        it.disk.config = replace(it.disk.config, cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.1)
        it.log.config = it.disk.config
        it.append(40)
        cleaner = LogCleaner(
            it.disk.manager,
            it.disk.files,
            it.loop,
            ExecutorCompactor(it.disk.files, it.loop),
            config=LogCleanerConfig,
            steady_clock_ms=lambda: it.disk.now_ms,
            stable_offset_of=lambda log: log.log_end_offset,
        )
        it.is_controller_up = False
        it.begin(SECOND)
        assert not it.loop.run(cleaner.clean_dirtiest())
        it.is_controller_up = True
        it.wait()
        assert it.loop.run(cleaner.clean_dirtiest())
        before = values(it.log)
        assert len(before) < 40
        first, second = it.disk.manager.directories
        cleaned = second.checkpointed[CLEANER_OFFSETS][KEY]
        it.begin(FIRST)
        it.wait()
        assert values(it.log) == before
        assert first.checkpointed[CLEANER_OFFSETS][KEY] == cleaned
        assert not it.loop.run(cleaner.clean_dirtiest())


def test_the_log_stays_where_it_is_until_the_controller_has_noted_the_move() -> None:
    with moving_disk() as it:
        it.append(10)
        it.is_controller_up = False
        it.begin(SECOND)
        it.wait()
        assert it.log.directory == "/a/moved-0"
        assert it.mover.announced_directory(KEY) == it.disk.manager.directories[1].id
        it.append(10)
        it.wait(1)
        assert it.mover.lag_max == 0
        it.is_controller_up = True
        it.wait(1)
        assert it.log.directory == "/b/moved-0"
        assert len(values(it.log)) == 20


def test_what_only_the_copy_has_synced_counts_once_its_name_is_synced() -> None:
    """Until then a loss of power may bring the log back that it replaced, without that."""
    with moving_disk() as it:
        it.append(40)
        it.log.flush()
        it.append(5)
        it.begin(SECOND)
        it.wait()
        assert it.log.directory == "/b/moved-0"
        assert (it.log.recovery_point, it.log.unflushed_records) == (40, 5)
        it.log.flush()
        assert it.log.recovery_point == 45


def test_a_move_that_is_cancelled_leaves_nothing_and_the_controller_is_told() -> None:
    with moving_disk() as it:
        it.append(10)
        it.is_controller_up = False
        it.begin(SECOND)
        it.wait(1)
        it.assigned = it.disk.manager.directories[1].id
        it.is_controller_up = True
        it.begin(FIRST)
        it.wait(0)
        assert it.assigned == it.disk.manager.directories[0].id
        assert it.folders(FIRST) == ["moved-0"]
        assert [name.endswith("-delete") for name in it.folders(SECOND)] == [True]
        assert len(it.disk.manager.futures) == 0
        it.begin(SECOND)
        it.wait()
        assert it.log.directory == "/b/moved-0"


def test_a_deleted_partition_takes_its_copy_along() -> None:
    with moving_disk() as it:
        it.append(40)
        it.rate = 100
        it.begin(SECOND)
        it.wait(1)
        it.disk.manager.delete(*KEY)
        it.wait(0)
        assert [name.endswith("-delete") for name in it.folders(FIRST) + it.folders(SECOND)] == [True, True]
        it.append(2)
        assert len(values(it.log)) == 2


def test_a_full_directory_keeps_the_move_waiting() -> None:
    with moving_disk() as it:
        it.append(40)
        it.disk.files.fail("write", under=SECOND, error=ENOSPC, skip=4, count=3)
        it.begin(SECOND)
        it.wait(2)
        assert it.mover.failed_count == 1
        assert it.disk.failures == []
        it.append(1)
        it.wait()
        assert it.mover.failed_count == 0
        assert it.log.directory == "/b/moved-0"
        assert len(values(it.log)) == 41


def test_a_directory_that_fails_ends_the_moves_into_it() -> None:
    for skip in range(40):
        with moving_disk() as it:
            it.append(40)
            it.begin(SECOND)
            it.disk.files.fail(under=SECOND, error=EIO, skip=skip, count=None)
            it.wait()
            if not it.disk.failures:
                continue
            assert it.disk.failures == [SECOND]
            if it.found is None:
                # It was there already.
                assert it.replaced
                continue
            assert it.log.directory == "/a/moved-0"
            assert it.assigned in (None, it.disk.manager.directories[0].id)
            assert len(it.disk.manager.futures) == 0
            it.append(1)
            assert len(values(it.log)) == 41


def test_a_source_that_cannot_be_read_is_checked_and_tried_again() -> None:
    with moving_disk() as it:
        it.append(40)
        it.log.flush()
        it.disk.files.fail("read", under=f"{FIRST}/moved-0", error=EIO, count=1)
        it.begin(SECOND)
        it.wait(2)
        assert [log.directory for log, _, _ in it.checked] == ["/a/moved-0"]
        assert it.disk.failures == []
        it.wait()
        assert it.log.directory == "/b/moved-0"
        assert len(values(it.log)) == 40


def test_a_copy_is_taken_up_again_at_the_next_start() -> None:
    with moving_disk() as it:
        it.append(100)
        it.rate = it.log.size_bytes / 10
        it.begin(SECOND)
        it.wait(5)
        copied = it.mover.moved_bytes
        assert copied
        it.stop()
        it.start()
        assert it.log.directory == "/a/moved-0"
        it.wait()
        assert it.log.directory == "/b/moved-0"
        assert it.mover.moved_bytes < it.log.size_bytes - copied / 2
        assert len(values(it.log)) == 100


@pytest.mark.parametrize("seed", range(10))
def test_a_torn_copy_is_not_taken_for_the_log_that_was_in_its_directory_before(seed: int) -> None:
    """The recovery point of that one may still be in the directory's checkpoint."""
    with moving_disk() as it:
        it.append(90)
        it.log.flush()
        it.log.increment_log_start_offset(30)
        while it.log.delete_old_segments(90, it.disk.now_ms):
            pass
        it.stop()
        it.start()
        it.begin(SECOND)
        it.wait()
        it.append(30)
        it.log.flush()
        written = values(it.log)
        it.rate = it.log.size_bytes / 10
        it.begin(FIRST)
        it.wait(9)
        assert it.disk.manager.directories[0].checkpointed[RECOVERY_POINTS][KEY] == 90
        it.kill(Random(seed))
        it.start()
        it.wait()
        assert values(it.log) == written


def test_a_copy_whose_log_is_lost_is_not_taken_for_it() -> None:
    with moving_disk() as it:
        it.append(100)
        it.log.flush()
        it.rate = it.log.size_bytes / 10
        it.begin(SECOND)
        it.wait(5)
        it.kill()
        it.disk.files.remove_tree(FIRST)
        it.start()
        assert it.found is None
        with pytest.raises(OSError, match=r"its copy .* may be incomplete"):
            _ = it.log
        # Once another replica leads.
        assert it.disk.manager.begin_repair(*KEY, None)
        assert it.log.log_end_offset == 0
        assert [name.endswith("-stray") for name in it.folders(SECOND) if name != "moved-0"] == [True]


def test_a_copy_is_left_alone_while_the_directory_of_its_log_is_offline() -> None:
    with moving_disk() as it:
        it.append(20)
        it.log.flush()
        it.is_controller_up = False
        it.begin(SECOND)
        it.wait(1)
        it.kill()
        it.disk.files.fail(under=FIRST, count=None)
        it.start()
        with pytest.raises(OSError, match="offline"):
            _ = it.log
        it.kill()
        it.is_controller_up = True
        it.start()
        it.wait()
        assert it.log.directory == "/b/moved-0"
        assert len(values(it.log)) == 20


def test_a_disk_that_comes_back_after_its_replicas_were_made_anew_has_stray_ones() -> None:
    with moving_disk() as it:
        it.append(5)
        it.stop()
        files = it.disk.files
        files.make_directory(f"{SECOND}/moved-0")
        for name in files.list_directory(f"{FIRST}/moved-0"):
            files.write(f"{SECOND}/moved-0/{name}", files.read(f"{FIRST}/moved-0/{name}"))
        it.assigned = it.disk.manager.directories[1].id
        it.start()
        assert it.log.directory == "/b/moved-0"
        assert [name.endswith("-stray") for name in it.folders(FIRST)] == [True]
        assert len(values(it.log)) == 5


def test_checkpoints_of_the_new_directory_know_the_log_at_once() -> None:
    with moving_disk() as it:
        it.append(40)
        it.begin(SECOND)
        it.wait()
        assert it.disk.manager.directories[1].checkpointed[RECOVERY_POINTS][KEY] == 40


def end_somewhere(it: MovingDisk, step: int, random: Random | None, *, flushes: bool) -> bool:
    """The process is gone after `step` calls of a move. Whether that was before the move ended."""
    it.append(25)
    it.log.flush()
    promised = values(it.log)
    it.begin(SECOND)
    it.disk.files.end_process(skip=step)
    log: Log | None = None
    with suppress(OSError):
        for _ in range(12):
            it.wait(0.3)
            log = it.found
            if log is None or it.disk.failures:
                break
            it.append(1, log)
            if flushes:
                log.flush()
                promised = values(log)
    has_ended = bool(it.disk.failures)
    it.kill(random)
    it.start()
    found = it.found
    assert found is not None, it.folders(FIRST) + it.folders(SECOND)
    assert found.damage is None
    assert values(found)[: len(promised)] == promised
    it.wait()
    assert len(it.disk.manager.futures) == 0
    assert values(it.log)[: len(promised)] == promised
    assert sum(name == "moved-0" for path in (FIRST, SECOND) for name in it.folders(path)) == 1
    it.append(2)
    it.stop()
    it.start()
    assert values(it.log)[: len(promised)] == promised
    return has_ended


@pytest.mark.thorough
@pytest.mark.parametrize("is_power_lost", [False, True])
def test_the_process_may_end_at_every_step(is_power_lost: bool) -> None:
    for step in range(400):
        with moving_disk() as it:
            ended = end_somewhere(it, step, Random(step) if is_power_lost else None, flushes=is_power_lost)
            if step > 60 and not ended:
                break


def test_a_log_that_compaction_has_left_empty_at_its_end_is_copied_up_to_there() -> None:
    """As Apache Kafka's cleaner may leave it: the last batches of a log are gone, its end is where it was."""
    with moving_disk() as it:
        it.disk.config = it.log.config = replace(it.disk.config, cleanup_policy=frozenset({"compact"}))
        it.append(20)
        it.log.end_in_gap(30, it.disk.now_ms)
        it.append(1)
        it.log.end_in_gap(40, it.disk.now_ms)
        before = values(it.log)
        it.begin(SECOND)
        it.wait()
        assert (it.log.directory, it.log.log_end_offset) == ("/b/moved-0", 40)
        assert values(it.log) == before
