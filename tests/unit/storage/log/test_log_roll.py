"""When a log begins a new segment, and what it leaves behind."""

from dataclasses import replace
from pathlib import Path
from random import Random

from produced_batches import produced

from penstock.protocol.records import Record, write_batch
from penstock.storage.disk.files import DiskFiles
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig

NOW = 1_700_000_000_000


def open_log(path: Path, config: LogConfig, random: Random | None = None) -> Log:
    return Log.open(
        DiskFiles(),
        f"{path}/events-0",
        topic="events",
        partition=0,
        topic_id=None,
        config=config,
        is_clean=True,
        now_ms=NOW,
        random=random,
    )


def append(log: Log, *, timestamp: int = NOW, now_ms: int = NOW, size: int = 0, producer_id: int = -1) -> None:
    batch = write_batch(
        [Record(0, timestamp, None, bytes(size))],
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=0 if producer_id >= 0 else -1,
    )
    log.append_as_leader(produced(batch), leader_epoch=0, now_ms=now_ms)


def names(path: Path) -> set[str]:
    return {entry.name for entry in (path / "events-0").iterdir()}


def test_segment_does_not_grow_past_its_size(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=200))
    append(log, size=30)
    append(log, size=30)
    assert log.segment_count == 1
    append(log, size=30)
    assert log.segment_count == 2
    assert all(path.stat().st_size <= 200 for path in (tmp_path / "events-0").glob("*.log"))


def test_time_between_first_and_new_timestamp_rolls(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_ms=1000))
    append(log, timestamp=NOW - 50_000)
    append(log, timestamp=NOW - 49_000, now_ms=NOW + 10**6)
    assert log.segment_count == 1
    append(log, timestamp=NOW - 48_999)
    assert log.segment_count == 2


def test_time_since_creation_rolls_when_records_have_no_timestamp(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_ms=1000))
    append(log, timestamp=-1)
    append(log, timestamp=-1, now_ms=NOW + 1000)
    assert log.segment_count == 1
    append(log, timestamp=-1, now_ms=NOW + 1001)
    assert log.segment_count == 2


def test_first_timestamp_is_read_again_after_reopening(tmp_path: Path) -> None:
    config = LogConfig(segment_ms=1000)
    log = open_log(tmp_path, config)
    append(log, timestamp=NOW - 900)
    log.close()
    log = open_log(tmp_path, config)
    append(log, timestamp=NOW + 100)
    assert log.segment_count == 1
    append(log, timestamp=NOW + 101)
    assert log.segment_count == 2


def test_jitter_makes_a_segment_roll_earlier(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_ms=1000, segment_jitter_ms=1000), Random(3))
    append(log, timestamp=NOW)
    for later in range(1001):
        append(log, timestamp=NOW + later)
        if log.segment_count > 1:
            break
    assert 1 < later < 1000


def test_full_index_rolls(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(index_interval_bytes=0, segment_index_bytes=80))
    for number in range(30):
        append(log, timestamp=NOW + number, size=50)
    assert log.segment_count > 3
    log.close()
    assert max(path.stat().st_size for path in (tmp_path / "events-0").glob("*index")) <= 80


def test_offset_too_far_from_the_base_rolls(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig())
    for offset in (0, 2**31 - 1, 2**31, 2**33):
        log.append_as_follower(write_batch([Record(offset, NOW, None, None)], leader_epoch=0), now_ms=NOW)
    assert {name for name in names(tmp_path) if name.endswith(".log")} == {
        f"{base:020d}.log" for base in (0, 2**31, 2**33)
    }


def test_complete_segment_has_indexes_that_end_in_its_largest_timestamp(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=200))
    append(log, size=30, timestamp=NOW + 5)
    append(log, size=30)
    append(log, size=30)
    time_index = (tmp_path / "events-0" / "00000000000000000000.timeindex").read_bytes()
    assert time_index == (NOW + 5).to_bytes(8, "big") + bytes(4)
    assert (tmp_path / "events-0" / "00000000000000000000.index").exists()


def test_producer_state_is_snapshotted_where_a_segment_begins(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=200))
    append(log, size=30, producer_id=5)
    append(log, size=30)
    append(log, size=30)
    assert "00000000000000000002.snapshot" in names(tmp_path)


def test_new_size_holds_from_the_next_append_on(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig())
    append(log)
    log.config = replace(log.config, segment_bytes=100)
    append(log)
    assert log.segment_count == 2


def test_file_of_a_new_log_is_there_at_once(tmp_path: Path) -> None:
    open_log(tmp_path, LogConfig())
    assert "00000000000000000000.log" in names(tmp_path)
