"""A log whose older segments are in a tier: its start, what restarts keep, and what may be deleted (KIP-405)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import count
from random import Random
from uuid import UUID

import pytest
from produced_batches import produced

from penstock.broker.tiers.rules.remote_segment import RemoteSegment, SegmentState, SegmentUpdate, TierPartition
from penstock.broker.tiers.rules.remote_segments import RemoteSegments
from penstock.broker.tiers.rules.tier_plan import Expiry, Retention, expire
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import LeaderEpoch, NodeId, TopicId
from penstock.protocol.records import Record, write_batch
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.disk.rules.disk_errors import ClosedError
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig
from penstock.storage.log.rules.file_names import LOG
from penstock.storage.log.rules.tiered_history import TieredHistory

CONFIG = LogConfig(segment_bytes=200, retention_bytes=-1, local_retention_bytes=1, remote_storage_enable=True)
FOLDER = "/data/t-0"


def opened(
    files: MemoryFiles, *, start: int = 0, recovery_point: int = 0, is_clean: bool = True, config: LogConfig = CONFIG
) -> Log:
    return Log.open(
        files,
        FOLDER,
        topic="t",
        partition=0,
        topic_id=None,
        config=config,
        log_start_offset=start,
        recovery_point=recovery_point,
        is_clean=is_clean,
        now_ms=0,
    )


def append(log: Log, count: int, leader_epoch: int = 0) -> None:
    """Two fill a segment."""
    for _ in range(count):
        data = write_batch([Record(offset=0, timestamp_ms=5, key=None, value=bytes(30))])
        log.append_as_leader(produced(data), leader_epoch=leader_epoch, now_ms=5)


def copy_of(*, start_offset: int, end_offset: int) -> RemoteSegments:
    """A tier that has these records of epoch 0, the last one included."""
    segments = RemoteSegments()
    copy = RemoteSegment(
        partition=TierPartition("t", TopicId(UUID(int=9)), 0),
        id=UUID(int=1),
        start_offset=start_offset,
        end_offset=end_offset,
        max_timestamp_ms=5,
        broker_id=NodeId(1),
        event_ms=0,
        size_bytes=100,
        leader_epochs=((LeaderEpoch(0), start_offset),),
        state=SegmentState.COPY_SEGMENT_STARTED,
        has_aborted_transactions=False,
    )
    segments.apply(copy)
    segments.apply(
        SegmentUpdate(
            partition=copy.partition,
            id=copy.id,
            broker_id=copy.broker_id,
            event_ms=0,
            state=SegmentState.COPY_SEGMENT_FINISHED,
        )
    )
    return segments


def expiry(log: Log, segments: RemoteSegments) -> Expiry:
    """What a leader with this log deletes in the tier, without any retention."""
    return expire(
        segments,
        log.leader_epochs,
        Retention(-1, -1),
        log_start_offset=log.log_start_offset,
        tiered_end_offset=log.log_end_offset,
        untiered_bytes=0,
        now_ms=5,
    )


@pytest.fixture
def files() -> MemoryFiles:
    made = MemoryFiles()
    made.make_directories("/data")
    return made


def test_nothing_is_deleted_that_the_tier_does_not_have(files: MemoryFiles) -> None:
    log = opened(files)
    append(log, 7)
    log.flush()
    assert log.delete_old_segments(log.log_end_offset, 5) == 0
    log.note_tiered(3)
    assert log.delete_old_segments(log.log_end_offset, 5) == 1
    assert (log.log_start_offset, log.local_log_start_offset) == (0, 2)
    with pytest.raises(KafkaError) as moved:
        log.read(1, max_bytes=100, end_offset=7, min_one_batch=True)
    assert moved.value.code is ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE


def test_no_segment_goes_while_its_batches_alone_say_a_leader_epoch(files: MemoryFiles) -> None:
    log = opened(files)
    append(log, 3, leader_epoch=0)
    log.flush()
    append(log, 4, leader_epoch=3)
    log.note_tiered(6)
    while log.delete_old_segments(log.log_end_offset, 5):
        pass
    log.close_files()
    again = opened(files, is_clean=False)
    assert again.leader_epochs.entries == ((0, 0), (3, 3))
    again.flush()
    again.note_tiered(6)
    assert again.delete_old_segments(again.log_end_offset, 5) > 0


def test_what_lies_below_the_log_start_goes_whether_it_was_copied_or_not(files: MemoryFiles) -> None:
    log = opened(files)
    append(log, 7)
    log.increment_log_start_offset(4)
    assert log.delete_old_segments(log.log_end_offset, 5) == 2
    assert log.local_log_start_offset == 4


def test_without_copies_retention_is_that_of_the_topic(files: MemoryFiles) -> None:
    log = opened(files, config=replace(CONFIG, remote_log_copy_disable=True, retention_bytes=1))
    append(log, 7)
    log.delete_old_segments(log.log_end_offset, 5)
    assert log.log_start_offset == log.local_log_start_offset == 6


@pytest.mark.parametrize("is_clean", [True, False])
def test_start_and_epochs_before_the_first_segment_survive_a_restart(files: MemoryFiles, is_clean: bool) -> None:
    log = opened(files)
    append(log, 3, leader_epoch=0)
    append(log, 4, leader_epoch=3)
    log.flush()
    log.note_tiered(6)
    while log.delete_old_segments(log.log_end_offset, 5):
        pass
    epochs = log.leader_epochs.entries
    if is_clean:
        log.close()
    else:
        log.close_files()
    again = opened(files, start=log.log_start_offset, is_clean=is_clean)
    assert (again.log_start_offset, again.local_log_start_offset) == (0, 6)
    assert again.leader_epochs.entries == epochs == ((0, 0), (3, 3))
    assert again.leader_epochs.epoch_of(2) == 0


def test_a_log_begun_behind_its_start_knows_the_epochs_before_after_a_crash(files: MemoryFiles) -> None:
    log = opened(files)
    append(log, 2)
    history = TieredHistory(10, ((LeaderEpoch(1), 10), (LeaderEpoch(4), 25)))
    log.truncate_fully_and_start_at(40, tiered=history)
    assert (log.log_start_offset, log.local_log_start_offset, log.log_end_offset) == (10, 40, 40)
    log.close_files()
    again = opened(files, start=10, is_clean=False)
    assert (again.log_start_offset, again.local_log_start_offset, again.log_end_offset) == (10, 40, 40)
    assert again.leader_epochs.entries == ((1, 10), (4, 25))


@pytest.mark.parametrize("seed", [None, *range(8)])
def test_a_log_that_begins_behind_its_start_never_lacks_the_epochs_before(seed: int | None) -> None:
    """After an end of the process at each step; with a seed, of the power."""
    history = TieredHistory(10, ((LeaderEpoch(1), 10), (LeaderEpoch(4), 25)))
    outcomes = set()
    for step in count():
        files = MemoryFiles()
        files.make_directories("/data")
        log = opened(files)
        append(log, 5)
        log.flush()
        files.end_process(skip=step)
        with suppress(OSError):
            log.truncate_fully_and_start_at(40, tiered=history)
        is_done = log.damage is None
        files.heal()
        if seed is None:
            files.kill()
        else:
            files.crash(Random(seed))
        again = opened(files, is_clean=False)
        outcomes.add((again.first_segment_base_offset, again.log_end_offset))
        if again.first_segment_base_offset == 40:
            assert again.leader_epochs.entries == history.leader_epochs, f"after {step} steps"
        elif again.log_end_offset:
            assert again.leader_epochs.entries == ((0, 0),), f"after {step} steps"
        if is_done:
            break
    assert (40, 40) in outcomes
    assert (0, 0) in outcomes


def test_switched_off_the_log_starts_on_its_disk(files: MemoryFiles) -> None:
    log = opened(files)
    append(log, 7)
    log.flush()
    log.note_tiered(6)
    log.delete_old_segments(log.log_end_offset, 5)
    log.close()
    again = opened(files, config=replace(CONFIG, remote_storage_enable=False))
    assert again.log_start_offset == again.local_log_start_offset == log.local_log_start_offset > 0


def test_epochs_of_a_range_begin_with_it(files: MemoryFiles) -> None:
    log = opened(files)
    append(log, 3, leader_epoch=0)
    append(log, 4, leader_epoch=3)
    assert log.leader_epochs.entries_in(2, 5) == ((0, 2), (3, 3))
    assert log.leader_epochs.entries_in(3, 5) == ((3, 3),)
    assert log.leader_epochs.entries_in(0, 3) == ((0, 0),)


def test_a_cut_below_the_first_segment_gives_up_nothing_that_the_tier_has(files: MemoryFiles) -> None:
    log = opened(files)
    append(log, 3, leader_epoch=0)
    append(log, 4, leader_epoch=3)
    log.flush()
    log.note_tiered(6)
    while log.delete_old_segments(log.log_end_offset, 5):
        pass
    log.truncate_to(5)
    assert (log.log_start_offset, log.local_log_start_offset, log.log_end_offset) == (0, 5, 5)
    assert log.leader_epochs.entries == ((0, 0), (3, 3))
    # Were it to start above, this log's next leader would delete the copy as records that are deleted.
    assert expiry(log, copy_of(start_offset=0, end_offset=1)).segments == ()


def test_a_cut_below_the_first_segment_begins_anew_without_a_tier(files: MemoryFiles) -> None:
    log = opened(files, config=replace(CONFIG, remote_storage_enable=False, retention_bytes=1))
    append(log, 7)
    while log.delete_old_segments(log.log_end_offset, 5):
        pass
    log.truncate_to(3)
    assert (log.log_start_offset, log.local_log_start_offset, log.log_end_offset) == (3, 3, 3)
    assert log.leader_epochs.entries == ()


def test_what_comes_after_a_cut_is_kept_until_it_is_copied_too(files: MemoryFiles) -> None:
    log = opened(files)
    append(log, 7, leader_epoch=0)
    log.note_tiered(6)
    log.truncate_to(2)
    assert log.tiered_end_offset == 2
    append(log, 5, leader_epoch=1)
    log.flush()
    while log.delete_old_segments(log.log_end_offset, 5):
        pass
    assert log.local_log_start_offset == 2


def test_a_deleted_segment_is_not_begun_again(files: MemoryFiles) -> None:
    log = opened(files)
    append(log, 7)
    first = log.inactive_segments[0]
    log.increment_log_start_offset(2)
    assert log.delete_old_segments(log.log_end_offset, 5) == 1
    for use in (lambda: first.file, lambda: log.segment_end_offset(first), lambda: log.tier_parts(first)):
        with pytest.raises(ClosedError, match=r"00000000000000000000\.log is deleted"):
            use()
    assert not files.exists(first.path(LOG))


@pytest.mark.parametrize("is_clean", [True, False])
def test_an_empty_file_where_a_segment_was_deleted_hides_nothing_that_the_tier_has(
    files: MemoryFiles, is_clean: bool
) -> None:
    log = opened(files)
    append(log, 7)
    log.flush()
    log.note_tiered(4)
    while log.delete_old_segments(log.log_end_offset, 5):
        pass
    recovery_point = log.recovery_point
    log.close()
    for base_offset in (0, 2):
        files.open(f"{FOLDER}/{base_offset:020d}.log", create=True)
    again = opened(files, is_clean=is_clean, recovery_point=recovery_point)
    assert (again.log_start_offset, again.local_log_start_offset, again.log_end_offset) == (0, 4, 7)
    with pytest.raises(KafkaError) as moved:
        again.read(1, max_bytes=100, end_offset=7, min_one_batch=True)
    assert moved.value.code is ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE


def test_a_segment_that_lost_its_unsynced_batches_is_not_taken_for_deleted(files: MemoryFiles) -> None:
    log = opened(files)
    append(log, 7)
    log.close()
    files.open(f"{FOLDER}/{0:020d}.log").truncate(0)
    again = opened(files, is_clean=False)
    assert (again.log_start_offset, again.local_log_start_offset, again.log_end_offset) == (0, 0, 0)
