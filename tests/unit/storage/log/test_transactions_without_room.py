"""Transactions are aborted on a disk that has no room for what the transaction index would write."""

from __future__ import annotations

from errno import ENOSPC

import pytest
from produced_batches import produced

from penstock.protocol.batches import iterate_headers
from penstock.protocol.records import Record, write_batch
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.log.log import Log
from penstock.storage.log.rules.aborted_transaction import AbortedTransaction
from penstock.storage.log.rules.config import LogConfig
from penstock.storage.log.rules.control_records import write_end_transaction_marker
from penstock.storage.log.rules.file_names import TRANSACTION_INDEX
from penstock.storage.log.rules.transaction_verification import UNVERIFIED
from penstock.storage.log.transaction_index import decode_transactions

PATH = "/data/events-0"
NOW = 1_700_000_000_000


def opened(files: MemoryFiles, path: str = PATH, *, is_clean: bool = True) -> Log:
    return Log.open(
        files,
        path,
        topic="events",
        partition=0,
        topic_id=None,
        config=LogConfig(),
        is_clean=is_clean,
        now_ms=NOW,
    )


def produce(log: Log, producer_id: int, sequence: int = 0) -> None:
    batch = write_batch(
        [Record(0, NOW, b"k", b"v")],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=True,
    )
    log.append_as_leader(produced(batch), leader_epoch=0, now_ms=NOW, verification=UNVERIFIED)


def abort(log: Log, producer_id: int) -> None:
    marker = write_end_transaction_marker(producer_id, 0, is_commit=False, coordinator_epoch=0, now_ms=NOW)
    log.append_of_coordinator(marker, leader_epoch=0, now_ms=NOW)


def with_an_abort() -> tuple[MemoryFiles, Log]:
    """A log of one transaction."""
    files = MemoryFiles()
    files.make_directories("/data")
    log = opened(files)
    produce(log, 1)
    abort(log, 1)
    return files, log


def fill(files: MemoryFiles, path: str = PATH) -> None:
    for operation in ("create", "write"):
        files.fail(operation, under=f"{path}/{0:020d}.txnindex", error=ENOSPC, count=None)


def content(log: Log) -> bytes:
    data = log.read(0, max_bytes=10_000, end_offset=log.log_end_offset, min_one_batch=True)
    return b"".join(bytes(piece.read(0, piece.size)) for piece in data.slices)


def test_an_abort_that_is_in_the_log_counts_and_is_remembered() -> None:
    files = MemoryFiles()
    files.make_directories("/data")
    log = opened(files)
    produce(log, 1)
    fill(files)
    abort(log, 1)
    produce(log, 2)
    abort(log, 2)
    aborted = [AbortedTransaction(1, 0, 1, 2), AbortedTransaction(2, 2, 3, 4)]
    assert log.last_stable_offset(4) == 4
    assert log.aborted_transactions(0, 4) == aborted
    files.heal()
    log.flush()
    log.close()
    log = opened(files)
    assert log.last_stable_offset(4) == 4
    assert log.aborted_transactions(0, 4) == aborted


def test_committed_records_are_read_from_a_full_disk() -> None:
    files, log = with_an_abort()
    files.fail("create", under=PATH, error=ENOSPC, count=None)
    data = log.read(0, max_bytes=10_000, end_offset=2, min_one_batch=True)
    assert log.aborted_transactions_in(data, 0, 2) == [AbortedTransaction(1, 0, 1, 2)]


def test_a_follower_takes_in_all_that_it_has_written() -> None:
    files = MemoryFiles()
    files.make_directories("/data")
    leader = opened(files)
    for producer_id in (1, 2):
        produce(leader, producer_id)
        abort(leader, producer_id)
    produce(leader, 3)
    path = "/data/follower-0"
    follower = opened(files, path)
    fill(files, path)
    follower.append_as_follower(content(leader), now_ms=NOW)
    assert follower.log_end_offset == 5
    assert [header.base_offset for _, header in iterate_headers(memoryview(content(follower)))] == [0, 1, 2, 3, 4]
    assert follower.last_stable_offset(5) == 4
    assert follower.aborted_transactions(0, 5) == leader.aborted_transactions(0, 5)


def test_recovery_knows_of_aborts_that_it_cannot_write_down() -> None:
    files, log = with_an_abort()
    files.kill()
    fill(files)
    log = opened(files, is_clean=False)
    assert log.last_stable_offset(2) == 2
    assert log.aborted_transactions(0, 2) == [AbortedTransaction(1, 0, 1, 2)]


def test_a_copy_has_the_aborts_that_recovery_could_not_write_down() -> None:
    files, log = with_an_abort()
    log.config = LogConfig(segment_bytes=log.size_bytes)
    produce(log, 2)
    files.kill()
    fill(files)
    log = opened(files, is_clean=False)
    segment = log.inactive_segments[0]
    with pytest.raises(OSError, match="ENOSPC"):
        log.tier_parts(segment)
    files.heal()
    path = log.tier_parts(segment)[TRANSACTION_INDEX]
    assert decode_transactions(log.read_file(path), path) == [AbortedTransaction(1, 0, 1, 2)]
