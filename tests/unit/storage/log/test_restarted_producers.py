"""What a log knows of its producers is the same after a clean stop and start, and after a cut."""

from __future__ import annotations

from itertools import count
from random import Random
from uuid import UUID

import pytest
from produced_batches import produced

from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import TopicId
from penstock.protocol.records import Record, write_batch
from penstock.storage.directories.log_closing import start_offset_to_checkpoint
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig
from penstock.storage.log.rules.control_records import write_end_transaction_marker
from penstock.storage.log.rules.producer_entry import RETAINED_BATCHES
from penstock.storage.log.rules.transaction_verification import UNVERIFIED

NOW = 1_700_000_000_000
DAY = 86_400_000
TOPIC_ID = TopicId(UUID(int=7))


class Restarting:
    """A log on one disk; `now_ms` is the wall clock."""

    def __init__(self, config: LogConfig = LogConfig()) -> None:  # noqa: B008 - it is immutable
        self.now_ms = NOW
        self._config = config
        self.files = MemoryFiles(now_ms=lambda: self.now_ms)
        self.files.make_directories("/d")
        # As checkpointed.
        self.log_start_offset = self.recovery_point = 0
        self.open(is_clean=True)

    def restart(self, *, is_clean: bool = True) -> None:
        if is_clean:
            self.log.flush()
            self.log.close()
        else:
            self.log.close_files()
        self.recovery_point = self.log.recovery_point
        self.open(is_clean=is_clean)

    def lose_power(self) -> None:
        self.log.close_files()
        self.files.crash(Random(7))
        self.recovery_point = self.log.recovery_point
        self.open(is_clean=False)

    def append(
        self, sequence: int, *, timestamp: int = NOW, producer_id: int = 7, is_transactional: bool = False
    ) -> bool:
        """Whether the batch is recognised as a duplicate."""
        batch = write_batch(
            [Record(0, timestamp, b"k", b"v")], producer_id=producer_id, producer_epoch=0, base_sequence=sequence,
            is_transactional=is_transactional,
        )  # fmt: skip
        return self.log.append_as_leader(
            produced(batch), leader_epoch=0, now_ms=self.now_ms, verification=UNVERIFIED
        ).is_duplicate

    def end(self, producer_id: int, *, is_commit: bool = False) -> None:
        marker = write_end_transaction_marker(producer_id, 0, is_commit=is_commit, coordinator_epoch=0, now_ms=NOW)
        self.log.append_of_coordinator(marker, leader_epoch=0, now_ms=self.now_ms)

    def delete_records(self, offset: int, *, is_rolled: bool) -> None:
        self.log.increment_log_start_offset(offset)
        if is_rolled:
            assert self.log.delete_old_segments(offset, self.now_ms + 8 * DAY) == 1, "by retention.ms"
        self.log_start_offset = start_offset_to_checkpoint(self.log) or self.log_start_offset

    def open(self, *, is_clean: bool) -> None:
        self.log = Log.open(
            self.files, "/d/t-0", topic="t", partition=0, topic_id=TOPIC_ID, config=self._config, is_clean=is_clean,
            now_ms=self.now_ms, log_start_offset=self.log_start_offset, recovery_point=self.recovery_point,
        )  # fmt: skip


@pytest.fixture
def restarting() -> Restarting:
    return Restarting()


def test_a_producer_is_known_after_a_restart_though_all_its_records_are_deleted(restarting: Restarting) -> None:
    restarting.append(0)
    restarting.log.increment_log_start_offset(1)
    restarting.restart()
    assert restarting.append(0)


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "unclean"])
@pytest.mark.parametrize("age_ms", [0, 2 * DAY], ids=["of now", "of the day before yesterday"])
def test_retry_of_any_of_the_last_five_batches_is_recognised_after_a_restart(
    restarting: Restarting, is_clean: bool, age_ms: int
) -> None:
    """Five requests may be in flight when their leader stops; refused as out of order they were stored twice."""
    for sequence in range(7):
        restarting.append(sequence, timestamp=NOW - age_ms)
    restarting.restart(is_clean=is_clean)
    restarting.log.producers.expire(NOW)
    for sequence in range(2, 7):
        assert restarting.append(sequence, timestamp=NOW - age_ms)
    assert restarting.log.log_end_offset == 7


def test_retry_is_recognised_after_a_loss_of_power_though_its_segment_is_deleted(restarting: Restarting) -> None:
    for sequence in range(3):
        restarting.append(sequence)
    restarting.log.flush()
    restarting.delete_records(3, is_rolled=True)
    restarting.append(0, producer_id=8)
    restarting.lose_power()
    assert restarting.append(2)
    assert not restarting.append(3)


@pytest.mark.parametrize("recovery_point", [5, 6])
def test_what_a_segment_tells_of_producers_is_not_deleted_before_a_snapshot_does(recovery_point: int) -> None:
    """That at the base of the next one may be torn, by a loss of power that came before it was synced."""
    restarting = Restarting(LogConfig(segment_bytes=100, retention_bytes=0))
    for producer_id in range(1, 7):
        restarting.append(0, producer_id=producer_id)
    snapshots = [name for name in restarting.files.list_directory("/d/t-0") if name.endswith(".snapshot")]
    assert len(snapshots) == 5
    restarting.log.flush()
    restarting.log.close_files()
    restarting.files.open(f"/d/t-0/{5:020d}.snapshot").truncate(20)
    restarting.recovery_point = recovery_point
    restarting.open(is_clean=False)
    restarting.log.delete_old_segments(5, NOW)
    restarting.log.close_files()
    restarting.open(is_clean=False)
    assert [restarting.append(0, producer_id=producer_id) for producer_id in range(1, 7)] == [True] * 6


@pytest.mark.parametrize("first_kept", [0, 2, 9])
def test_snapshots_that_are_missing_are_made_for_retention(first_kept: int) -> None:
    """As after a loss of power, on a disk that had no room for those of the recovery."""
    restarting = Restarting(LogConfig(segment_bytes=100, retention_bytes=0))
    for producer_id in range(1, 7):
        restarting.append(0, producer_id=producer_id)
    restarting.restart()
    for offset in range(1, 6):
        if offset < first_kept:
            restarting.files.remove(f"/d/t-0/{offset:020d}.snapshot")
    restarting.restart()
    deleted: list[int] = []
    while not deleted or deleted[-1]:
        deleted.append(restarting.log.delete_old_segments(5, NOW))
    assert sum(deleted) == 5
    restarting.restart(is_clean=False)
    assert [restarting.append(0, producer_id=producer_id) for producer_id in range(1, 7)] == [True] * 6


def test_of_segments_that_a_loss_of_power_brings_back_the_snapshots_are_there() -> None:
    """Those of an earlier process, which had not synced them, too."""
    for seed in range(100):
        restarting = Restarting(LogConfig(segment_bytes=100, retention_bytes=0))
        restarting.append(0, producer_id=1)
        restarting.log.flush()
        restarting.append(0, producer_id=2)
        restarting.files.kill()
        restarting.recovery_point = 1
        restarting.open(is_clean=False)
        restarting.append(0, producer_id=3)
        restarting.log.flush()
        restarting.log.delete_old_segments(2, NOW)
        restarting.log.close_files()
        restarting.files.crash(Random(seed))
        restarting.open(is_clean=False)
        known = [restarting.append(0, producer_id=producer_id) for producer_id in (1, 2, 3)]
        assert known == [True] * 3, f"seed {seed}"


def test_a_snapshot_that_cannot_be_read_is_made_anew_for_retention() -> None:
    restarting = Restarting(LogConfig(segment_bytes=100, retention_bytes=0))
    for producer_id in range(1, 7):
        restarting.append(0, producer_id=producer_id)
    restarting.restart()
    restarting.files.fail("read", under=f"/d/t-0/{5:020d}.snapshot", count=None)
    assert [restarting.log.delete_old_segments(5, NOW) for _ in range(2)] == [4, 1]


def test_a_cut_that_failed_says_nothing_of_a_log_that_was_begun_anew_since() -> None:
    """Its producers counted as idle since then, and were forgotten at the next look."""
    log = Restarting()
    for sequence in range(4):
        log.append(sequence)
    log.files.fail("read", under="/d/t-0/", skip=2, count=1)
    with pytest.raises(OSError, match="EIO"):
        log.log.truncate_to(3)
    log.log.truncate_fully_and_start_at(10, (), NOW)
    log.now_ms += 2 * DAY
    for sequence in range(4):
        log.append(sequence)
    log.log.truncate_to(13)
    log.log.producers.expire(log.now_ms + 1_000)
    assert log.append(2)


def test_a_cut_that_fails_and_is_done_again_forgets_no_producer() -> None:
    for skip in count():
        log = Restarting()
        for sequence in range(4):
            log.append(sequence)
        log.append(0, producer_id=8)
        log.files.fail("read", under="/d/t-0/", skip=skip, count=1)
        try:
            log.log.truncate_to(4)
        except OSError:
            assert log.log.damage is not None
            log.log.truncate_to(log.log.damage.offset)
        else:
            assert skip > 1, "some reads have failed"
            break
        assert set(log.log.producers.entries) == {7}, f"read {skip} failed"
        assert log.append(3)


def test_retention_deletes_what_an_intact_snapshot_tells_of_and_no_more() -> None:
    restarting = Restarting(LogConfig(segment_bytes=100, retention_bytes=0))
    for producer_id in range(1, 7):
        restarting.append(0, producer_id=producer_id)
    restarting.restart()
    restarting.files.open(f"/d/t-0/{5:020d}.snapshot").truncate(20)
    assert restarting.log.delete_old_segments(5, NOW) == 4
    assert restarting.log.log_start_offset == 4
    restarting.append(0, producer_id=7)
    assert [restarting.log.delete_old_segments(7, NOW) for _ in range(3)] == [1, 2, 0]
    restarting.restart(is_clean=False)
    assert [restarting.append(0, producer_id=producer_id) for producer_id in range(1, 8)] == [True] * 7


def test_retry_is_recognised_after_a_loss_of_power_below_the_log_start(restarting: Restarting) -> None:
    """The log ends where it was synced, below records that were deleted. Begun anew there it knew no producer."""
    restarting.append(0)
    restarting.log.flush()
    restarting.append(0, producer_id=8)
    restarting.delete_records(2, is_rolled=False)
    restarting.lose_power()
    assert restarting.log.log_end_offset == 1
    assert restarting.append(0)


@pytest.mark.parametrize("end", ["clean", "unclean", "power lost"])
def test_a_log_begun_where_the_leaders_begins_knows_of_producers_what_the_leader_knows(end: str) -> None:
    leader, follower = Restarting(), Restarting()
    for sequence in range(7):
        leader.append(sequence)
    for sequence in range(2):
        leader.append(sequence, producer_id=8, is_transactional=True)
    leader.end(8, is_commit=True)
    for producer_id in (9, 10):
        leader.append(0, producer_id=producer_id, is_transactional=True)
    leader.append(7)
    start, end_offset = 11, leader.log.log_end_offset
    follower.log.truncate_fully_and_start_at(start, leader.log.producers.below(start), NOW)
    follower.log_start_offset = start
    if end == "power lost":
        follower.lose_power()
    else:
        follower.restart(is_clean=end == "clean")
    data = leader.log.read(start, max_bytes=1_000_000, end_offset=end_offset, min_one_batch=True)
    stored = b"".join(piece.read(0, piece.size) for piece in data.slices)
    follower.log.append_as_follower(memoryview(stored), now_ms=NOW)
    assert follower.log.log_end_offset == end_offset
    for producer_id, known in leader.log.producers.entries.items():
        entry = follower.log.producers.entries[producer_id]
        assert (entry.epoch, entry.batches, entry.coordinator_epoch) == (
            known.epoch, known.batches, known.coordinator_epoch
        )  # fmt: skip
        assert entry.transaction_first_offset == known.transaction_first_offset
    assert follower.log.last_stable_offset(end_offset) == max(leader.log.last_stable_offset(end_offset), start)
    for sequence in range(3, 8):
        assert follower.append(sequence)


@pytest.mark.parametrize("has_expired", [True, False])
def test_a_log_begun_within_a_transaction_tells_where_it_began_when_it_was_aborted(has_expired: bool) -> None:
    """Its first records may be read from a tier: readers must be told to leave them out."""
    leader, follower = Restarting(), Restarting()
    leader.append(0)
    for sequence in range(3):
        leader.append(sequence, producer_id=8, is_transactional=True)
    leader.end(8, is_commit=False)
    start, end_offset = 2, leader.log.log_end_offset
    if has_expired:
        del leader.log.producers.entries[8]
    producers = leader.log.producers.below(start, aborted=leader.log.aborted_since(start))
    follower.log.truncate_fully_and_start_at(start, producers, NOW)
    data = leader.log.read(start, max_bytes=1_000_000, end_offset=end_offset, min_one_batch=True)
    stored = b"".join(piece.read(0, piece.size) for piece in data.slices)
    follower.log.append_as_follower(memoryview(stored), now_ms=NOW)
    known = leader.log.aborted_transactions(0, end_offset)
    assert [(one.producer_id, one.first_offset) for one in known] == [(8, 1)]
    assert follower.log.aborted_transactions(0, end_offset) == known


@pytest.mark.parametrize("is_amid_a_batch", [True, False])
@pytest.mark.parametrize("in_flight", [1, 3, 5])
def test_a_log_begun_below_the_batches_in_flight_takes_them_in_when_it_leads(
    in_flight: int, is_amid_a_batch: bool
) -> None:
    """None of them is committed: their producer sends all of them again."""
    leader, follower = Restarting(), Restarting()
    for sequence in range(45):
        leader.append(sequence)
    leader.append(0, producer_id=8)
    for sequence in range(45, 45 + in_flight):
        leader.append(sequence)
    follower.log.truncate_fully_and_start_at(46, leader.log.producers.below(46), NOW)
    if is_amid_a_batch:
        # Whose batch it was that began below does not matter: it comes as a whole then.
        follower.log.truncate_fully_and_start_at(45, follower.log.producers.below(45), NOW)
        follower.append(0, producer_id=8)
    assert follower.append(44), "it is there already"
    with pytest.raises(KafkaError) as caught:
        follower.append(46)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    follower.restart()
    assert [follower.append(sequence) for sequence in range(45, 45 + in_flight)] == [False] * in_flight


@pytest.mark.parametrize("end", ["none", "clean", "unclean", "power lost"])
def test_a_log_begun_below_more_batches_than_are_remembered_takes_any_of_them_when_they_are_cut_off(end: str) -> None:
    """A producer that has more requests in flight than five, or does not wait for all replicas."""
    leader, follower = Restarting(), Restarting()
    for sequence in range(45 + RETAINED_BATCHES + 1):
        leader.append(sequence)
    leader.append(0, producer_id=8)
    follower.log.truncate_fully_and_start_at(45, leader.log.producers.below(45), NOW)
    data = leader.log.read(45, max_bytes=1_000_000, end_offset=leader.log.log_end_offset, min_one_batch=True)
    stored = b"".join(piece.read(0, piece.size) for piece in data.slices)
    follower.log.append_as_follower(memoryview(stored), now_ms=NOW)
    follower.log.truncate_to(45)
    if end == "power lost":
        follower.lose_power()
    elif end != "none":
        follower.restart(is_clean=end == "clean")
    assert not follower.append(45)
    assert not follower.append(46)
    assert follower.append(45)
    with pytest.raises(KafkaError) as caught:
        follower.append(48)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    with pytest.raises(KafkaError) as caught:
        follower.append(1, producer_id=8)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "its epoch began behind the start"


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "unclean"])
@pytest.mark.parametrize("is_rolled", [True, False], ids=["in a new segment", "in the same segment"])
def test_retry_is_recognised_after_a_restart_though_its_records_are_deleted(
    restarting: Restarting, is_clean: bool, is_rolled: bool
) -> None:
    """As where a consumer deletes what it has read (DeleteRecords), or retention what has old timestamps."""
    for sequence in range(3):
        restarting.append(sequence)
    restarting.delete_records(3, is_rolled=is_rolled)
    restarting.restart(is_clean=is_clean)
    assert restarting.append(2)
    assert not restarting.append(3)


def test_a_damaged_snapshot_where_the_log_begins_is_made_of_what_the_process_knows(restarting: Restarting) -> None:
    """No batch on the disk tells it: the records are deleted, or in a tier."""
    for sequence in range(3):
        restarting.append(sequence)
    restarting.append(0, producer_id=8, is_transactional=True)
    restarting.delete_records(4, is_rolled=True)
    restarting.append(3)
    restarting.log.flush()
    restarting.files.flip_bit(f"/d/t-0/{4:020d}.snapshot", 20, 3)
    restarting.log.repair_snapshot(4)
    restarting.lose_power()
    assert [restarting.append(sequence) for sequence in (2, 3)] == [True, True]
    assert restarting.log.producers.last_stable_offset(5) == 3


def test_a_producer_that_is_idle_expires_after_a_restart_as_without(restarting: Restarting) -> None:
    restarting.append(0, timestamp=NOW + 3_000_000)
    restarting.now_ms += DAY - 1
    restarting.restart()
    assert set(restarting.log.producers.entries) == {7}
    restarting.now_ms += 1
    restarting.restart()
    assert not restarting.log.producers.entries


def test_a_cut_keeps_when_producers_appended_last(restarting: Restarting) -> None:
    restarting.append(0, producer_id=1)
    restarting.now_ms += 1000
    restarting.append(0, producer_id=2)
    restarting.append(1, producer_id=2)
    restarting.log.truncate_to(2)
    entries = restarting.log.producers.entries
    assert {one.producer_id: one.appended_ms for one in entries.values()} == {1: NOW, 2: NOW + 1000}


@pytest.mark.parametrize("is_rolled", [True, False], ids=["in an older segment", "in the last segment"])
@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "unclean"])
def test_after_a_restart_the_last_stable_offset_waits_for_a_marker_that_is_not_committed(
    restarting: Restarting, is_clean: bool, is_rolled: bool
) -> None:
    """KAFKA-14497: a reader of committed records would skip, or be shown, a transaction that may still change."""
    for producer_id in (1, 2):
        for sequence in range(2):
            restarting.append(sequence, producer_id=producer_id, is_transactional=True)
    high_watermark = restarting.log.log_end_offset
    restarting.end(1)
    assert restarting.log.last_stable_offset(high_watermark) == 0
    restarting.restart(is_clean=is_clean)
    assert restarting.log.last_stable_offset(high_watermark) == 0
    if is_rolled:
        restarting.log.flush()
        restarting.log.config = LogConfig(segment_bytes=200)
    restarting.end(2, is_commit=True)
    assert restarting.log.segment_count == 1 + is_rolled
    restarting.restart(is_clean=is_clean)
    assert restarting.log.last_stable_offset(high_watermark) == 0
    assert restarting.log.last_stable_offset(high_watermark + 1) == 2
    assert restarting.log.last_stable_offset(high_watermark + 2) == high_watermark + 2


def test_a_cut_that_takes_the_marker_away_opens_its_transaction_again_after_a_restart(restarting: Restarting) -> None:
    restarting.append(0, producer_id=1, is_transactional=True)
    restarting.append(0, producer_id=2, is_transactional=True)
    restarting.end(1)
    restarting.restart()
    restarting.log.truncate_to(2)
    assert restarting.log.last_stable_offset(2) == 0
    restarting.restart()
    assert restarting.log.last_stable_offset(2) == 0
    restarting.end(2)
    assert restarting.log.last_stable_offset(3) == 0
