"""Appending what a leader has, and the transactions in it."""

from pathlib import Path
from struct import pack

import pytest
from crc32c import crc32c
from produced_batches import produced

from penstock.protocol.batches import iterate_headers
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import LeaderEpoch
from penstock.protocol.records import Record, write_batch
from penstock.storage.disk.files import DiskFiles
from penstock.storage.log.log import Log
from penstock.storage.log.rules.aborted_transaction import AbortedTransaction
from penstock.storage.log.rules.config import LogConfig

NOW = 1_700_000_000_000


def open_log(path: Path, config: LogConfig | None = None, *, is_clean: bool = True) -> Log:
    return Log.open(
        DiskFiles(),
        f"{path}/events-0",
        topic="events",
        partition=0,
        topic_id=None,
        config=config or LogConfig(),
        is_clean=is_clean,
        now_ms=NOW,
    )


def batch(offset: int, count: int = 1, *, epoch: int = 0) -> bytes:
    return write_batch([Record(offset + number, NOW, b"k", b"v") for number in range(count)], leader_epoch=epoch)


def transactional(offset: int, producer_id: int, *, sequence: int = 0) -> bytes:
    return write_batch(
        [Record(offset, NOW, b"k", b"v")],
        leader_epoch=0,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=True,
    )


def marker(offset: int, producer_id: int, *, commit: bool) -> bytes:
    return write_batch(
        [Record(offset, NOW, pack(">hh", 0, int(commit)), pack(">hi", 0, 5))],
        leader_epoch=0,
        producer_id=producer_id,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )


def with_last_offset_delta(batch: bytes, delta: int) -> bytes:
    """The batch with another last offset delta, and the CRC of that."""
    checked = batch[21:23] + pack(">i", delta) + batch[27:]
    return batch[:17] + pack(">I", crc32c(checked)) + checked


def stored(log: Log) -> bytes:
    data = log.read(log.log_start_offset, max_bytes=10**6, end_offset=log.log_end_offset, min_one_batch=True)
    return b"".join(piece.read(0, piece.size) for piece in data.slices)


def test_bytes_offsets_and_epochs_are_the_leaders(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fetched = batch(0, 3, epoch=2) + batch(3, epoch=2) + batch(10, 2, epoch=4)
    info = log.append_as_follower(fetched, now_ms=NOW)
    assert (info.first_offset, info.last_offset) == (0, 11)
    assert stored(log) == fetched
    assert log.leader_epochs.entries == ((2, 0), (4, 10))


def test_batch_that_is_cut_off_is_left_out(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_follower(batch(0) + batch(1)[:-1], now_ms=NOW)
    assert log.log_end_offset == 1
    log.append_as_follower(b"", now_ms=NOW)
    assert log.log_end_offset == 1


def test_what_a_leader_took_over_from_another_while_it_answered_is_left_out(tmp_path: Path) -> None:
    """KAFKA-18723: the second half of an answer is read when the first is sent, of a log that was cut meanwhile."""
    led, log = open_log(tmp_path / "1"), open_log(tmp_path / "2")
    led.append_as_follower(batch(0) + batch(1, epoch=1) + batch(2, epoch=1), now_ms=NOW)
    ((piece,), size) = led.read(0, max_bytes=10**6, end_offset=3, min_one_batch=True)
    half = size * 2 // 3
    answer = piece.read(0, half)
    led.truncate_to(1)
    led.append_as_follower(batch(1, epoch=2) + batch(2, epoch=2), now_ms=NOW)
    answer += piece.read(half, size)
    log.append_as_follower(answer, now_ms=NOW, leader_epoch=1)
    assert (log.log_end_offset, log.leader_epochs.entries) == (2, ((0, 0), (1, 1)))
    # The next leader finds where that leaves its own log.
    assert led.leader_epochs.end_offset_for(LeaderEpoch(1), led.log_end_offset) == (0, 1)


def test_first_batch_may_begin_above_the_end(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_follower(batch(7), now_ms=NOW)
    assert log.log_end_offset == 8
    assert stored(log) == batch(7)


@pytest.mark.parametrize(
    "fetched",
    [
        batch(4),
        batch(5) + batch(5),
        batch(5)[:-1] + b"?",
        b"\0" * 61,
        batch(5) + batch(6, epoch=-1),
        batch(5) + with_last_offset_delta(batch(6), -2),
    ],
    ids=["below the end", "going back", "wrong CRC", "no batch", "no leader epoch", "ending before its first offset"],
)
def test_what_a_leader_cannot_have_sent_is_refused_as_a_whole(tmp_path: Path, fetched: bytes) -> None:
    log = open_log(tmp_path)
    log.append_as_follower(batch(0, 5), now_ms=NOW)
    size_bytes = log.size_bytes
    with pytest.raises(KafkaError) as caught:
        log.append_as_follower(fetched, now_ms=NOW)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert (log.log_end_offset, log.size_bytes) == (5, size_bytes)


def malformed_marker(offset: int, producer_id: int, key: bytes | None, value: bytes | None) -> bytes:
    return write_batch(
        [Record(offset, NOW, key, value)],
        leader_epoch=0,
        producer_id=producer_id,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"\0", pack(">hi", 0, 5)),
        (pack(">hh", 0, 1), b"\0"),
        (None, None),
        (pack(">hh", 0, 7), pack(">hi", 0, 5)),
        (pack(">hh", 0, 1), pack(">hi", -1, 5)),
    ],
    ids=["short key", "short value", "neither", "unknown type", "negative version"],
)
def test_malformed_transaction_marker_is_refused_before_anything_is_written(
    tmp_path: Path, key: bytes | None, value: bytes | None
) -> None:
    """Its batch has a valid CRC. A run written in part would be there twice after the next fetch."""
    log = open_log(tmp_path)
    log.append_as_follower(transactional(0, 1), now_ms=NOW)
    size_bytes = log.size_bytes
    with pytest.raises(KafkaError) as caught:
        log.append_as_follower(batch(1) + malformed_marker(2, 1, key, value) + batch(3), now_ms=NOW)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert (log.log_end_offset, log.size_bytes) == (1, size_bytes)
    log.append_as_follower(batch(1) + marker(2, 1, commit=True) + batch(3), now_ms=NOW)
    assert [header.base_offset for _, header in iterate_headers(stored(log))] == [0, 1, 2, 3]


def test_control_batch_without_a_producer_is_no_transaction_marker(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_follower(malformed_marker(0, -1, None, None), now_ms=NOW)
    assert log.log_end_offset == 1


def test_batches_of_one_fetch_may_fill_several_segments(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=200))
    log.append_as_follower(b"".join(batch(offset) for offset in range(10)), now_ms=NOW)
    assert log.segment_count == 5


@pytest.mark.parametrize("how", ["appended", "clean", "recovered"])
def test_aborted_transactions_are_indexed(tmp_path: Path, how: str) -> None:
    log = open_log(tmp_path)
    log.append_as_follower(
        transactional(0, 1)
        + transactional(1, 2)
        + batch(2)
        + transactional(3, 1, sequence=1)
        + marker(4, 1, commit=False)
        + marker(5, 2, commit=True)
        + transactional(6, 3),
        now_ms=NOW,
    )
    if how != "appended":
        log.close()
        log = open_log(tmp_path, is_clean=how == "clean")
    assert log.aborted_transactions(0, 10) == [AbortedTransaction(1, 0, 4, 1)]
    assert log.aborted_transactions(5, 10) == []
    if how == "appended":
        assert log.last_stable_offset(3) == 0, "the markers are not below the high watermark"
    assert log.last_stable_offset(7) == 6
    open_since = {entry.producer_id: entry.transaction_first_offset for entry in log.producers.active(NOW)}
    assert open_since == {1: None, 2: None, 3: 6}


def test_last_stable_offset_is_never_below_the_log_start(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_follower(transactional(0, 1) + batch(1, 5), now_ms=NOW)
    log.increment_log_start_offset(3)
    assert log.last_stable_offset(6) == 3


def test_leader_goes_on_with_a_transaction_that_is_open(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_follower(transactional(0, 1), now_ms=NOW)
    again = write_batch(
        [Record(0, NOW, b"k", b"v")], producer_id=1, producer_epoch=0, base_sequence=1, is_transactional=True
    )
    assert log.append_as_leader(produced(again), leader_epoch=1, now_ms=NOW).first_offset == 1


def test_duplicate_is_answered_with_the_original(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(message_timestamp_type="LogAppendTime"))
    batch = write_batch([Record(0, NOW, b"k", b"v")], producer_id=1, producer_epoch=0, base_sequence=0)
    first = log.append_as_leader(produced(batch), leader_epoch=1, now_ms=NOW)
    log.append_as_leader(produced(write_batch([Record(0, NOW, None, None)])), leader_epoch=1, now_ms=NOW)
    again = log.append_as_leader(produced(batch), leader_epoch=1, now_ms=NOW + 5)
    assert again == first._replace(is_duplicate=True)
    assert log.log_end_offset == 2
    log.close()
    again = open_log(tmp_path, log.config).append_as_leader(produced(batch), leader_epoch=1, now_ms=NOW + 5)
    assert again == first._replace(is_duplicate=True)


def test_gaps_of_a_compacted_log_lie_in_segments_so_that_recovery_keeps_what_follows(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=2 * len(batch(0)), cleanup_policy=frozenset({"compact"}))
    log = open_log(tmp_path, config)
    leader_has = [0, 3, 90, 91, 200]
    log.append_as_follower(b"".join(batch(offset) for offset in leader_has[:2]), now_ms=NOW)
    log.append_as_follower(b"".join(batch(offset) for offset in leader_has[2:]), now_ms=NOW)
    assert log.segment_count == 3
    log.close_files()
    log = open_log(tmp_path, config, is_clean=False)
    assert (log.damage, log.log_end_offset) == (None, 201)
    data = b"".join(
        b"".join(piece.read(0, piece.size) for piece in found.slices)
        for found in (
            log.read(offset, max_bytes=10**6, end_offset=201, min_one_batch=True) for offset in (0, 4, 50, 92)
        )
    )
    assert [header.base_offset for _, header in iterate_headers(data)] == [0, 3, 90, 91, 90, 91, 200]
