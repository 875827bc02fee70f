"""Reads by offset and by time."""

from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from produced_batches import produced

from penstock.protocol.batches import BatchHeader, iterate_headers
from penstock.protocol.errors import CorruptData, ErrorCode, KafkaError
from penstock.protocol.records import Record, write_batch
from penstock.storage.disk.files import DiskFiles
from penstock.storage.log.file_slice import FetchData
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig

NOW = 1_700_000_000_000
FILES = DiskFiles()
DENSE = LogConfig(segment_bytes=3000, index_interval_bytes=200)


def open_log(path: Path, config: LogConfig, *, is_clean: bool = True) -> Log:
    return Log.open(
        FILES,
        f"{path}/events-0",
        topic="events",
        partition=0,
        topic_id=None,
        config=config,
        is_clean=is_clean,
        now_ms=NOW,
    )


def append(log: Log, *timestamps: int, padding: int = 0) -> int:
    records = [Record(number, timestamp, None, bytes(padding)) for number, timestamp in enumerate(timestamps)]
    return log.append_as_leader(produced(write_batch(records)), leader_epoch=3, now_ms=NOW).first_offset


def filled(path: Path, config: LogConfig = DENSE, *, batches: int = 150) -> Log:
    """Batches of one to three records and of different sizes, over several segments and index entries."""
    log = open_log(path, config)
    random = Random(batches)
    for _ in range(batches):
        append(log, *[NOW] * random.randrange(1, 4), padding=random.randrange(120))
    return log


def content(data: FetchData) -> bytes:
    return b"".join(piece.read(0, piece.size) for piece in data.slices)


def headers(data: FetchData) -> list[BatchHeader]:
    return [header for _, header in iterate_headers(content(data))]


def read(log: Log, offset: int, *, max_bytes: int = 1, end_offset: int | None = None) -> FetchData:
    end = log.log_end_offset if end_offset is None else end_offset
    return log.read(offset, max_bytes=max_bytes, end_offset=end, min_one_batch=True)


@pytest.mark.parametrize("reopened", [False, True], ids=["appended", "reopened"])
def test_every_offset_is_read_as_the_whole_batch_that_holds_it(tmp_path: Path, reopened: bool) -> None:
    log = filled(tmp_path)
    if reopened:
        log.close()
        log = open_log(tmp_path, DENSE)
    assert log.segment_count > 3
    for offset in range(log.log_end_offset):
        (header,) = headers(read(log, offset))
        assert header.base_offset <= offset <= header.last_offset


def test_read_is_cut_at_max_bytes_but_for_the_first_batch(tmp_path: Path) -> None:
    log = filled(tmp_path)
    first = headers(read(log, 0))[0].size_bytes
    assert read(log, 0, max_bytes=first + 10).size == first + 10, "the protocol allows a part of a batch at the end"
    assert read(log, 0, max_bytes=first - 10).size == first
    assert log.read(0, max_bytes=first - 10, end_offset=5, min_one_batch=False).size == 0, "or nothing"


def test_no_batch_that_reaches_the_end_offset_is_read(tmp_path: Path) -> None:
    log = filled(tmp_path)
    starts = [0]
    while starts[-1] < log.log_end_offset:
        starts.append(headers(read(log, starts[-1]))[0].next_offset)
    for end in range(1, log.log_end_offset + 1):
        found: list[int] = []
        offset = 0
        while data := headers(read(log, offset, max_bytes=10**6, end_offset=end)):
            found += [header.base_offset for header in data]
            offset = data[-1].next_offset
        assert found == [start for start, following in pairwise(starts) if following <= end]


def test_nothing_is_read_at_and_after_the_end_offset(tmp_path: Path) -> None:
    log = filled(tmp_path)
    assert read(log, log.log_end_offset).slices == ()
    assert read(log, 50, end_offset=50).slices == ()
    assert read(log, 60, end_offset=50).slices == ()


def test_offsets_outside_of_the_log_are_out_of_range(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.increment_log_start_offset(7)
    for offset in (-1, 6, log.log_end_offset + 1):
        with pytest.raises(KafkaError) as caught:
            read(log, offset)
        assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert read(log, 7).size


def test_slice_is_readable_after_its_segment_was_deleted(tmp_path: Path) -> None:
    log = filled(tmp_path)
    data = read(log, 0, max_bytes=2000)
    before = content(data)
    log.increment_log_start_offset(log.log_end_offset)
    assert log.delete_old_segments(log.log_end_offset, NOW) > 0
    for path in log.take_removable_files(NOW + 60_000):
        FILES.remove(path)
    assert not (tmp_path / "events-0" / "00000000000000000000.log").exists()
    assert content(data) == before


def test_slice_is_read_in_parts(tmp_path: Path) -> None:
    log = filled(tmp_path)
    (piece,) = read(log, 0, max_bytes=1000).slices
    whole = piece.read(0, 1000)
    assert piece.read(10, 20) == whole[10:30]
    assert piece.read(990, 100) == whole[990:], "no byte after the slice"
    part = piece.read_nowait(10, 20)
    assert part is None or whole[10:30].startswith(bytes(part))


def test_first_record_at_or_after_a_timestamp(tmp_path: Path) -> None:
    log = open_log(tmp_path, DENSE)
    random = Random(4)
    timestamps: list[int] = []
    time = NOW - 10**6
    for _ in range(200):
        # Rising on the whole, but not from record to record.
        time += random.randrange(0, 20)
        batch = [time + random.randrange(-30, 30) for _ in range(random.randrange(1, 4))]
        append(log, *batch, padding=random.randrange(100))
        timestamps += batch
    log.close()
    log = open_log(tmp_path, DENSE)
    for wanted in range(min(timestamps) - 1, max(timestamps) + 2, 7):
        expected = next((offset for offset, time in enumerate(timestamps) if time >= wanted), None)
        found = log.offset_for_timestamp(wanted, log.log_end_offset)
        assert (None if found is None else (found.offset, found.timestamp, found.leader_epoch)) == (
            None if expected is None else (expected, timestamps[expected], 3)
        )


def test_timestamp_lookup_looks_between_log_start_and_end_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path, DENSE)
    for number in range(100):
        append(log, NOW + number, padding=50)
    log.increment_log_start_offset(40)
    found = log.offset_for_timestamp(NOW, 100)
    assert found is not None
    assert found.offset == 40
    assert log.offset_for_timestamp(NOW + 60, 60) is None
    assert log.offset_for_timestamp(NOW + 59, 60) is not None


def test_largest_timestamp_is_that_of_its_first_record(tmp_path: Path) -> None:
    log = open_log(tmp_path, DENSE)
    assert log.max_timestamp_offset() is None
    for number in range(100):
        append(
            log, NOW - number, NOW + (500 if number == 30 else 0), NOW + (500 if number in (30, 31) else 0), padding=40
        )
    found = log.max_timestamp_offset()
    assert found is not None
    assert (found.timestamp, found.offset) == (NOW + 500, 91)
    log.close()
    assert open_log(tmp_path, DENSE).max_timestamp_offset() == found


def test_records_without_timestamps_are_found_by_none(tmp_path: Path) -> None:
    log = open_log(tmp_path, DENSE)
    append(log, -1, -1)
    assert log.max_timestamp_offset() is None
    assert log.offset_for_timestamp(0, 2) is None


def test_all_records_have_the_time_of_a_log_append_time_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(message_timestamp_type="LogAppendTime"))
    append(log, 1, 2, 3)
    for found in (log.max_timestamp_offset(), log.offset_for_timestamp(NOW - 5, 3)):
        assert found is not None
        assert (found.timestamp, found.offset) == (NOW, 0)


def test_check_finds_the_one_bit_that_is_not_as_it_was_written(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close()
    segments = sorted((tmp_path / "events-0").glob("*.log"))
    path, base_offset, end_offset = segments[1], int(segments[1].stem), int(segments[2].stem)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    log = open_log(tmp_path, DENSE)
    log.check(0, 1_000_000)
    log.check(base_offset, 1)
    log.check(end_offset, 1_000_000)
    for size in (len(data), 1_000_000):
        with pytest.raises(CorruptData, match=f"{path.name} at"):
            log.check(base_offset, size)
