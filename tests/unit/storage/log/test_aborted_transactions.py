"""Readers of committed records hear of the aborted transactions in what they read, and not of all that follow."""

from __future__ import annotations

import pytest
from produced_batches import produced

from penstock.protocol.batches import HEADER_SIZE, read_header
from penstock.protocol.records import Record, write_batch
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig
from penstock.storage.log.rules.control_records import write_end_transaction_marker
from penstock.storage.log.rules.transaction_verification import UNVERIFIED

NOW = 1_700_000_000_000
TRANSACTIONS = 60
FOLDER = "/data/a-0"


def opened(files: MemoryFiles, config: LogConfig, *, is_clean: bool = True, recovery_point: int = 0) -> Log:
    return Log.open(
        files,
        FOLDER,
        topic="a",
        partition=0,
        topic_id=None,
        config=config,
        is_clean=is_clean,
        recovery_point=recovery_point,
        now_ms=NOW,
    )


def log_of_aborts(config: LogConfig, files: MemoryFiles | None = None) -> Log:
    log = opened(files or MemoryFiles(), config)
    for number in range(TRANSACTIONS):
        records = write_batch(
            [Record(0, NOW, b"k", b"v")],
            producer_id=7,
            producer_epoch=0,
            base_sequence=number,
            is_transactional=True,
        )
        log.append_as_leader(produced(records), leader_epoch=0, now_ms=NOW, verification=UNVERIFIED)
        marker = write_end_transaction_marker(7, 0, is_commit=False, coordinator_epoch=0, now_ms=NOW)
        log.append_of_coordinator(marker, leader_epoch=0, now_ms=NOW)
    return log


def end_of_whole_batches(raw: bytes) -> int:
    """The last batch may be cut off."""
    position = next_offset = 0
    while len(raw) - position >= HEADER_SIZE:
        header = read_header(raw, position)
        position += header.size_bytes
        if position <= len(raw):
            next_offset = header.next_offset
    return next_offset


@pytest.mark.parametrize("segment_bytes", [1_000, 1_000_000])
@pytest.mark.parametrize("max_bytes", [1, 500, 2_000, 1_000_000])
def test_a_read_is_told_of_the_aborts_in_it(segment_bytes: int, max_bytes: int) -> None:
    log = log_of_aborts(LogConfig(segment_bytes=segment_bytes, index_interval_bytes=300))
    end_offset = log.log_end_offset
    for start_offset in range(end_offset):
        data = log.read(start_offset, max_bytes=max_bytes, end_offset=end_offset, min_one_batch=True)
        raw = b"".join(bytes(piece.read(0, piece.size)) for piece in data.slices)
        next_offset = end_of_whole_batches(raw)
        found = log.aborted_transactions_in(data, start_offset, end_offset)
        needed = log.aborted_transactions(start_offset, next_offset)
        assert found[: len(needed)] == needed
        assert len(found) - len(needed) <= 3


def test_what_is_not_decided_bounds_it_too() -> None:
    log = log_of_aborts(LogConfig())
    data = log.read(0, max_bytes=1_000_000, end_offset=10, min_one_batch=True)
    assert [one.first_offset for one in log.aborted_transactions_in(data, 0, 10)] == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("lost", [b"", b"\x00\x01"])
def test_an_index_that_is_none_is_made_anew(lost: bytes, *, is_clean: bool) -> None:
    """Of a segment that recovery would not look at: no consumer could read committed records of it any more."""
    files = MemoryFiles()
    config = LogConfig(segment_bytes=1_000)
    log = log_of_aborts(config, files)
    end_offset = log.log_end_offset
    expected = log.aborted_transactions(0, end_offset)
    log.flush()
    log.close()
    paths = [f"{FOLDER}/{name}" for name in files.list_directory(FOLDER) if name.endswith(".txnindex")]
    path = sorted(paths)[2]
    intact = files.read(path)
    files.write(path, intact[:-3] if not lost else lost + intact[len(lost) :])
    log = opened(files, config, is_clean=is_clean, recovery_point=end_offset)
    assert log.damage is None
    assert (log.log_end_offset, log.aborted_transactions(0, end_offset)) == (end_offset, expected)
    assert files.read(path) == intact
