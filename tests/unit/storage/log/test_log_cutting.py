"""Truncation, the log start offset and retention."""

from dataclasses import replace
from errno import ENOSPC
from pathlib import Path

import pytest
from produced_batches import produced

from penstock.protocol.batches import iterate_headers
from penstock.protocol.errors import CorruptData, ErrorCode, KafkaError
from penstock.protocol.ids import LeaderEpoch
from penstock.protocol.records import Record, write_batch
from penstock.storage.disk.files import DiskFiles
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig

NOW = 1_700_000_000_000
DENSE = LogConfig(segment_bytes=1000, index_interval_bytes=100)


def open_log(
    path: Path,
    config: LogConfig = DENSE,
    *,
    is_clean: bool = True,
    recovery_point: int = 0,
    disk: MemoryFiles | None = None,
) -> Log:
    return Log.open(
        disk or DiskFiles(),
        f"{path}/events-0",
        topic="events",
        partition=0,
        topic_id=None,
        config=config,
        is_clean=is_clean,
        recovery_point=recovery_point,
        now_ms=NOW,
    )


def append(log: Log, count: int = 1, *, epoch: int = 0, timestamp: int = NOW, sequence: int = -1) -> None:
    records = [Record(number, timestamp, None, b"v" * 20) for number in range(count)]
    batch = write_batch(
        records, producer_id=7 if sequence >= 0 else -1, producer_epoch=min(sequence, 0), base_sequence=sequence
    )
    log.append_as_leader(produced(batch), leader_epoch=epoch, now_ms=NOW)


def filled(path: Path, config: LogConfig = DENSE, batches: int = 60, *, disk: MemoryFiles | None = None) -> Log:
    """Batches of two records, over several segments; a new leader epoch after each twenty."""
    log = open_log(path, config, disk=disk)
    for number in range(batches):
        append(log, 2, epoch=number // 20, timestamp=NOW + number, sequence=number * 2)
    return log


def offsets(log: Log) -> list[int]:
    found: list[int] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, max_bytes=10**6, end_offset=log.log_end_offset, min_one_batch=True)
        for piece in data.slices:
            found += [header.base_offset for _, header in iterate_headers(piece.read(0, piece.size))]
        offset = found[-1] + 2
    return found


@pytest.mark.parametrize("index_interval_bytes", [100, 4096])
@pytest.mark.parametrize("target", [36, 37, 60])
def test_a_cut_that_fails_in_the_middle_is_finished_later(target: int, index_interval_bytes: int) -> None:
    """A read that fails behind the cut of the file must not leave a log that goes on where it does not end."""
    config = replace(DENSE, index_interval_bytes=index_interval_bytes)
    failed_count = 0
    for skip in range(100):
        disk = MemoryFiles()
        log = filled(Path("/data"), config, disk=disk)
        log.flush()
        disk.fail("read", under="/data/events-0", skip=skip, count=None)
        try:
            log.truncate_to(target)
        except (OSError, CorruptData):
            failed_count += 1
        else:
            break
        assert log.log_end_offset in (target, target - target % 2)
        assert log.recovery_point <= target
        with pytest.raises(KafkaError):
            append(log, 2, epoch=2)
        if skip % 2 and target % 2 == 0:
            # The process ends, and the next one finds nothing wrong.
            recovery_point = log.recovery_point
            log.close()
            disk.kill()
            disk.heal()
            log = open_log(Path("/data"), config, is_clean=False, recovery_point=recovery_point, disk=disk)
            assert log.damage is None
        else:
            disk.heal()
        log.truncate_to(target)
        assert log.log_end_offset == target - target % 2
        append(log, 2, epoch=2)
        assert offsets(log) == list(range(0, log.log_end_offset, 2))
    assert failed_count > 2


@pytest.mark.thorough
@pytest.mark.parametrize("ends_within", [False, True], ids=["goes on", "is opened anew"])
@pytest.mark.parametrize("target", [0, 36, 500])
def test_starting_anew_that_fails_in_the_middle_is_finished_later(target: int, ends_within: bool) -> None:
    """A disk that has no room for the new file must not leave a log that goes on behind what is gone."""
    failed_count = 0
    for skip in range(100):
        disk = MemoryFiles()
        log = filled(Path("/data"), disk=disk)
        log.flush()
        disk.fail(under="/data/events-0", error=ENOSPC, skip=skip, count=None)
        try:
            log.truncate_fully_and_start_at(target)
        except OSError:
            failed_count += 1
        else:
            break
        assert log.log_start_offset == log.log_end_offset == 0, "where its leader is asked for the producers, too"
        assert log.first_segment_base_offset >= 0
        with pytest.raises(KafkaError, match="it could not be begun anew"):
            append(log, 2, epoch=2)
        if ends_within:
            log.close()
            disk.kill()
        disk.heal()
        if ends_within:
            log = open_log(Path("/data"), is_clean=False, disk=disk)
            assert log.damage is None
            log.truncate_fully_and_start_at(target)
        else:
            # As by a check whether the disk is in order again.
            log.truncate_to(log.log_end_offset)
        start_offset = log.log_start_offset
        append(log, 2, epoch=2)
        assert offsets(log) == [start_offset]
        assert log.leader_epochs.entries == ((2, start_offset),)
    assert failed_count > 10


def files(path: Path, suffix: str) -> list[int]:
    return sorted(int(entry.name.partition(".")[0]) for entry in (path / "events-0").glob(f"*{suffix}"))


@pytest.mark.parametrize("offset", [0, 2, 30, 58, 118])
@pytest.mark.parametrize("reopened", [False, True], ids=["appended", "reopened"])
def test_truncation_leaves_what_is_below(tmp_path: Path, offset: int, reopened: bool) -> None:
    log = filled(tmp_path)
    if reopened:
        log.close()
        log = open_log(tmp_path)
    assert log.truncate_to(offset)
    assert log.log_end_offset == offset
    assert offsets(log) == list(range(0, offset, 2))
    append(log, 2, epoch=9, sequence=offset)
    assert offsets(log) == list(range(0, offset + 2, 2))
    for number in range(100):
        append(log, 2, epoch=9, sequence=offset + 2 + number * 2)
    assert offsets(log) == list(range(0, offset + 202, 2))
    log.close()
    assert offsets(open_log(tmp_path)) == list(range(0, offset + 202, 2))


def test_truncation_within_a_batch_drops_the_whole_batch(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.truncate_to(31)
    assert log.log_end_offset == 30
    assert offsets(log)[-1] == 28


def test_truncation_at_the_end_changes_nothing(tmp_path: Path) -> None:
    log = filled(tmp_path)
    assert not log.truncate_to(120)
    assert not log.truncate_to(500)
    assert log.log_end_offset == 120


def test_truncation_cuts_epochs_and_producers(tmp_path: Path) -> None:
    log = filled(tmp_path)
    assert log.leader_epochs.entries == ((0, 0), (1, 40), (2, 80))
    log.truncate_to(50)
    assert log.leader_epochs.latest_epoch == 1
    (producer,) = log.producers.active(NOW)
    assert producer.last_sequence == 49
    append(log, 2, epoch=3, sequence=50)
    log.truncate_to(0)
    assert log.producers.active(NOW) == []
    assert log.leader_epochs.latest_epoch == -1


def test_truncation_at_the_end_drops_an_epoch_that_wrote_nothing(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.assign_leader_epoch(LeaderEpoch(5))
    assert log.leader_epochs.latest_epoch == 5
    log.truncate_to(120)
    assert log.leader_epochs.latest_epoch == 2


def test_truncation_removes_snapshots_above(tmp_path: Path) -> None:
    log = filled(tmp_path)
    assert len(files(tmp_path, ".snapshot")) > 3
    log.truncate_to(30)
    assert max(files(tmp_path, ".snapshot")) <= 30


def test_largest_timestamp_is_that_of_what_is_left(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.truncate_to(31)
    found = log.max_timestamp_offset()
    assert found is not None
    assert (found.timestamp, found.offset) == (NOW + 14, 28)


def test_truncation_lowers_the_recovery_point(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.flush()
    log.truncate_to(30)
    assert log.recovery_point == 30


def test_truncation_below_the_log_starts_anew(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.increment_log_start_offset(100)
    log.delete_old_segments(120, NOW)
    log.truncate_to(5)
    assert (log.log_start_offset, log.log_end_offset) == (5, 5)
    append(log, 2)
    assert offsets(log) == [5]


def test_starting_anew_drops_everything(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.truncate_fully_and_start_at(1000)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (1000, 1000, 0)
    assert log.leader_epochs.entries == ()
    assert log.producers.active(NOW) == []
    assert files(tmp_path, ".log") == [1000]
    append(log, 2, sequence=40)
    log.close()
    assert offsets(open_log(tmp_path)) == [1000]


def test_starting_anew_where_the_active_segment_begins(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, 2)
    log.truncate_fully_and_start_at(0)
    assert (log.log_end_offset, log.size_bytes) == (0, 0)
    append(log, 2)
    for path in log.take_removable_files(NOW):
        Path(path).unlink()
    assert offsets(log) == [0]


def test_log_start_offset_only_rises_and_not_above_the_end(tmp_path: Path) -> None:
    log = filled(tmp_path)
    assert log.increment_log_start_offset(50)
    assert not log.increment_log_start_offset(40)
    assert log.log_start_offset == 50
    assert log.leader_epochs.entries == ((1, 50), (2, 80))
    with pytest.raises(KafkaError) as caught:
        log.increment_log_start_offset(121)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_compacted_log_loses_only_what_is_below_its_start(tmp_path: Path) -> None:
    log = filled(tmp_path)
    bases = files(tmp_path, ".log")
    log.config = replace(DENSE, cleanup_policy=frozenset({"compact"}), retention_ms=0, retention_bytes=0)
    assert log.delete_old_segments(120, NOW + 10**9) == 0
    log.increment_log_start_offset(bases[2])
    assert log.delete_old_segments(120, NOW + 10**9) == 2


def test_files_of_deleted_segments_go_after_the_delay(tmp_path: Path) -> None:
    log = filled(tmp_path)
    bases = files(tmp_path, ".log")
    log.increment_log_start_offset(bases[2] + 1)
    assert log.delete_old_segments(120, NOW) == 2
    assert files(tmp_path, ".log") == bases[2:]
    assert files(tmp_path, ".log.deleted") == bases[:2]
    assert not set(bases[:2]) & set(files(tmp_path, ".snapshot"))
    assert log.take_removable_files(NOW + 59_999) == []
    removable = log.take_removable_files(NOW + 60_000)
    assert {Path(path).name for path in removable} == {path.name for path in (tmp_path / "events-0").glob("*.deleted")}
    assert log.take_removable_files(NOW + 60_000) == []
    assert log.log_start_offset == bases[2] + 1


def test_nothing_at_or_above_the_high_watermark_is_deleted(tmp_path: Path) -> None:
    log = filled(tmp_path, replace(DENSE, retention_ms=0))
    bases = files(tmp_path, ".log")
    assert log.delete_old_segments(bases[2] - 1, NOW + 10**9) == 1
    assert log.delete_old_segments(bases[2], NOW + 10**9) == 1
    assert log.log_start_offset == bases[2]


def test_retention_by_time_goes_by_the_largest_timestamp_of_a_segment(tmp_path: Path) -> None:
    log = filled(tmp_path, replace(DENSE, retention_ms=1000))
    bases = files(tmp_path, ".log")
    # The last batch of the first segment has the timestamp of its number.
    last = NOW + bases[1] // 2 - 1
    assert log.delete_old_segments(120, last + 1000) == 0
    assert log.delete_old_segments(120, last + 1001) == 1
    log.close()
    log = open_log(tmp_path, replace(DENSE, retention_ms=1000))
    assert log.delete_old_segments(120, NOW + 10**9) == len(bases) - 1
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (120, 120, 0)
    append(log, 2, epoch=9, sequence=120)
    assert offsets(log) == [120]


def test_segment_without_timestamps_goes_by_its_files_time(tmp_path: Path) -> None:
    log = open_log(tmp_path, replace(DENSE, retention_ms=1000))
    append(log, timestamp=-1)
    modified = (tmp_path / "events-0" / f"{0:020d}.log").stat().st_mtime_ns // 1_000_000
    assert log.delete_old_segments(1, modified + 1000) == 0
    assert log.delete_old_segments(1, modified + 1001) == 1


def test_retention_by_size_keeps_at_least_that_much(tmp_path: Path) -> None:
    log = filled(tmp_path)
    sizes = [(tmp_path / "events-0" / f"{base:020d}.log").stat().st_size for base in files(tmp_path, ".log")]
    log.config = replace(DENSE, retention_ms=-1, retention_bytes=sum(sizes[2:]) + 1)
    assert log.delete_old_segments(120, NOW) == 1
    log.config = replace(DENSE, retention_ms=-1, retention_bytes=sum(sizes[2:]))
    assert log.delete_old_segments(120, NOW) == 1
    assert log.size_bytes == sum(sizes[2:])


def test_no_limit_deletes_nothing(tmp_path: Path) -> None:
    log = filled(tmp_path, replace(DENSE, retention_ms=-1, retention_bytes=-1))
    assert log.delete_old_segments(120, NOW + 10**15) == 0


def test_empty_log_is_not_rolled_by_retention(tmp_path: Path) -> None:
    log = open_log(tmp_path, replace(DENSE, retention_ms=0))
    assert log.delete_old_segments(0, NOW + 10**9) == 0
    assert log.segment_count == 1


@pytest.mark.parametrize(("byte", "bit"), [(0, 1), (6, 3), (7, 6), (7, 3)])
def test_a_batch_whose_offset_is_damaged_is_cut_off_at_its_own(byte: int, bit: int) -> None:
    """Scrubbing finds it there, and an intact replica has it. The index leads to it, and cannot be rebuilt."""
    disk = MemoryFiles()
    path = Path("/data")
    disk.make_directories(str(path))
    log = open_log(path, disk=disk)
    for _ in range(60):
        append(log)
    log.flush()
    log.close()
    log = open_log(path, disk=disk, recovery_point=60)
    segment = log.inactive_segments[2]
    offset = segment.base_offset + 4
    place = segment.locate(offset)
    assert place is not None
    disk.flip_bit(segment.file.path, place.position + byte, bit)
    assert log.truncate_to(offset)
    assert log.damage is None
    assert log.log_end_offset == offset
    append(log)
    assert offsets(log)[-1] == offset
