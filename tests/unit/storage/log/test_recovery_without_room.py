"""A log is recovered on a disk that has no room for what recovery would write, and is read; with room it goes on."""

from __future__ import annotations

from errno import EMFILE, ENOSPC

import pytest
from produced_batches import produced

from penstock.protocol.records import Record, write_batch
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.disk.memory_nodes import Operation
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig

CONFIG = LogConfig(segment_bytes=40_000, index_interval_bytes=100)
BATCHES = 400


def opened(files: MemoryFiles, *, is_clean: bool = False) -> Log:
    return Log.open(
        files,
        "/data/orders-0",
        topic="orders",
        partition=0,
        topic_id=None,
        config=CONFIG,
        is_clean=is_clean,
        now_ms=0,
    )


def append(log: Log, number: int) -> None:
    batch = write_batch(
        [Record(offset=0, timestamp_ms=number, key=None, value=bytes(100))],
        producer_id=1,
        producer_epoch=0,
        base_sequence=number,
    )
    assert not log.append_as_leader(produced(batch), leader_epoch=0, now_ms=number).is_duplicate


def test_log_is_read_on_a_full_disk_and_goes_on_with_room() -> None:
    files = MemoryFiles()
    files.make_directories("/data")
    log = opened(files)
    for number in range(BATCHES):
        append(log, number)
    assert log.segment_count > 1
    files.kill()
    for operation in ("write", "create"):
        files.fail(operation, error=ENOSPC, count=None)
    log = opened(files)
    with pytest.raises(OSError, match="ENOSPC"):
        log.flush()
    log.sync_records()
    assert log.log_end_offset == BATCHES
    for offset in range(0, BATCHES, 7):
        assert log.read(offset, max_bytes=1, end_offset=BATCHES, min_one_batch=True).size > 0
        found = log.offset_for_timestamp(offset, BATCHES)
        assert found is not None
        assert found.offset == offset
    with pytest.raises(OSError, match="ENOSPC"):
        append(log, BATCHES)
    files.heal()
    append(log, BATCHES)
    log.flush()
    log.close()
    files.kill()
    log = opened(files)
    assert log.log_end_offset == BATCHES + 1
    append(log, BATCHES + 1)


@pytest.mark.parametrize("operation", ["create", "open"])
def test_segment_that_could_not_be_begun_leaves_nothing_that_hides_what_the_log_takes_in(operation: Operation) -> None:
    files = MemoryFiles()
    files.make_directories("/data")
    log = opened(files)
    append(log, 0)
    log.config = LogConfig(segment_bytes=log.size_bytes + 10)
    files.fail(operation, error=EMFILE, count=1)
    with pytest.raises(OSError, match="EMFILE"):
        append(log, 1)
    log.config = CONFIG
    append(log, 1)
    log.flush()
    log.close()
    log = opened(files, is_clean=True)
    assert (log.log_end_offset, log.damage) == (2, None)
