"""What an append stores, answers and refuses."""

import struct
from dataclasses import replace
from pathlib import Path

import pytest
from crc32c import crc32c
from produced_batches import produced

from penstock.protocol.batches import iterate_headers, read_header
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.records import Record, read_records, write_batch
from penstock.storage.disk.files import DiskFiles
from penstock.storage.log.log import Log
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


def batch(count: int = 1, *, timestamp: int = NOW, key: bytes | None = b"k", compression: int = 0) -> bytes:
    return write_batch([Record(number, timestamp, key, b"v" * 10) for number in range(count)], compression=compression)


def stored(log: Log) -> bytes:
    found = b""
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, max_bytes=1_000_000, end_offset=log.log_end_offset, min_one_batch=True)
        chunk = b"".join(piece.read(0, piece.size) for piece in data.slices)
        *_, (_, last) = iterate_headers(chunk)
        offset = last.next_offset
        found += chunk
    return found


def refusal(log: Log, records: bytes) -> KafkaError:
    end = log.log_end_offset
    with pytest.raises(KafkaError) as caught:
        log.append_as_leader(produced(records), leader_epoch=0, now_ms=NOW)
    assert log.log_end_offset == end
    return caught.value


def test_offsets_go_on_where_the_log_ends(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    first = log.append_as_leader(produced(batch(3)), leader_epoch=5, now_ms=NOW)
    second = log.append_as_leader(produced(memoryview(batch(2))), leader_epoch=5, now_ms=NOW)
    assert (first.first_offset, first.last_offset) == (0, 2)
    assert (second.first_offset, second.last_offset, second.log_append_time_ms) == (3, 4, -1)
    assert [header.partition_leader_epoch for _, header in iterate_headers(stored(log))] == [5, 5]
    assert log.leader_epochs.entries == ((5, 0),)


@pytest.mark.parametrize("compression", range(5))
def test_bytes_are_stored_as_received_but_for_offset_and_epoch(tmp_path: Path, compression: int) -> None:
    log = open_log(tmp_path)
    sent = batch(20, compression=compression)
    log.append_as_leader(produced(sent), leader_epoch=0, now_ms=NOW)
    assert stored(log)[16:] == sent[16:]


def test_log_append_time_rewrites_the_header_only(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(message_timestamp_type="LogAppendTime"))
    sent = batch(2, timestamp=5)
    info = log.append_as_leader(produced(sent), leader_epoch=0, now_ms=NOW)
    found = stored(log)
    header = read_header(found, 0)
    assert info.log_append_time_ms == header.max_timestamp == NOW
    assert header.is_log_append_time
    assert found[61:] == sent[61:]
    assert [record.timestamp_ms for record in read_records(found, header)] == [NOW, NOW]
    log.close()
    assert open_log(tmp_path, is_clean=False).log_end_offset == 2, "the CRC is right"


@pytest.mark.parametrize(("name", "codec"), [("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4), ("uncompressed", 0)])
def test_compression_type_of_the_topic_is_what_is_stored(tmp_path: Path, name: str, codec: int) -> None:
    log = open_log(tmp_path, LogConfig(compression_type=name))
    sent = batch(20, compression=2 if codec != 2 else 1)
    log.append_as_leader(produced(sent), leader_epoch=0, now_ms=NOW)
    found = stored(log)
    header = read_header(found, 0)
    assert header.compression == codec
    assert [record.value for record in read_records(found, header)] == [b"v" * 10] * 20


def test_config_may_change_between_appends(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_leader(produced(batch()), leader_epoch=0, now_ms=NOW)
    log.config = replace(log.config, max_message_bytes=10)
    assert refusal(log, batch()).code == ErrorCode.MESSAGE_TOO_LARGE


def patched(records: bytes, position: int, data: bytes) -> bytes:
    return records[:position] + data + records[position + len(data) :]


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (batch()[:-1], ErrorCode.INVALID_RECORD),
        (batch() + batch(), ErrorCode.INVALID_RECORD),
        (patched(batch(), 16, b"\1"), ErrorCode.INVALID_RECORD),
        (patched(batch(), 16, b"\3"), ErrorCode.CORRUPT_MESSAGE),
        (patched(batch(), 8, b"\0\0\0\5"), ErrorCode.CORRUPT_MESSAGE),
        (patched(batch(), 8, b"\0\0\0\x20"), ErrorCode.CORRUPT_MESSAGE),
        (patched(batch(), 70, b"?"), ErrorCode.CORRUPT_MESSAGE),
        (write_batch([Record(1, NOW, None, None)]), ErrorCode.INVALID_RECORD),
        (write_batch([Record(0, NOW, b"\0\0\0\0", b"\0\0\0\0\0\0")], is_control=True), ErrorCode.INVALID_RECORD),
        (write_batch([Record(0, NOW, None, None), Record(2, NOW, None, None)]), ErrorCode.INVALID_RECORD),
        (
            write_batch([Record(0, NOW, None, None)], producer_id=4, producer_epoch=0, base_sequence=-1),
            ErrorCode.INVALID_RECORD,
        ),
        (
            write_batch(
                [Record(0, NOW, None, None)], producer_id=4, producer_epoch=0, base_sequence=0, is_transactional=True
            ),
            ErrorCode.INVALID_TXN_STATE,
        ),
    ],
    ids=[
        "nothing",
        "cut off",
        "two batches",
        "magic 1",
        "magic 3",
        "no batch that short",
        "too short for v2",
        "wrong CRC",
        "base offset not 0",
        "control batch",
        "count and offsets differ",
        "producer id without sequence",
        "transaction that was not verified",
    ],
)
def test_what_a_client_may_not_append(tmp_path: Path, records: bytes, code: ErrorCode) -> None:
    assert refusal(open_log(tmp_path), records).code == code


def test_bytes_after_the_batch_that_are_no_batch_are_ignored(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_leader(produced(batch() + b"junk"), leader_epoch=0, now_ms=NOW)
    assert len(stored(log)) == len(batch())


def test_keyless_records_are_named_on_a_compacted_topic(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(cleanup_policy=frozenset({"compact", "delete"})))
    records = [Record(0, NOW, b"k", None), Record(1, NOW, None, None), Record(2, NOW, None, None)]
    error = refusal(log, write_batch(records))
    assert error.code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in error.record_errors] == [1, 2]
    log.append_as_leader(produced(batch()), leader_epoch=0, now_ms=NOW)


def test_no_more_than_a_thousand_bad_records_are_named(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(cleanup_policy=frozenset({"compact"})))
    error = refusal(log, batch(1500, key=None))
    assert "1500 record errors in total" in str(error)
    assert [index for index, _ in error.record_errors] == list(range(1000))


@pytest.mark.thorough
def test_a_batch_that_is_too_much_to_open_is_refused_where_it_must_be_opened(tmp_path: Path) -> None:
    compacted = open_log(tmp_path / "compacted", LogConfig(cleanup_policy=frozenset({"compact"})))
    large = write_batch([Record(0, NOW, b"k", bytes(101 << 20))], compression=4)
    assert len(large) < 100_000
    many = bytearray(batch(1))
    struct.pack_into(">i", many, 23, 1_000_000)
    struct.pack_into(">i", many, 57, 1_000_001)
    struct.pack_into(">I", many, 17, crc32c(memoryview(many)[21:]))
    for records in (large, bytes(many)):
        assert refusal(compacted, records).code == ErrorCode.INVALID_RECORD
    open_log(tmp_path).append_as_leader(produced(large), leader_epoch=0, now_ms=NOW)


def test_timestamps_too_far_ahead_are_named(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    error = refusal(log, write_batch([Record(0, NOW, None, None), Record(1, NOW + 3_600_001, None, None)]))
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [1]
    log.append_as_leader(produced(batch(timestamp=NOW + 3_600_000)), leader_epoch=0, now_ms=NOW)


def test_timestamps_too_far_back_are_refused_when_limited(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(message_timestamp_before_max_ms=1000))
    assert refusal(log, batch(timestamp=NOW - 1001)).code == ErrorCode.INVALID_TIMESTAMP
    log.append_as_leader(produced(batch(timestamp=NOW - 1000)), leader_epoch=0, now_ms=NOW)
    log.append_as_leader(produced(batch(timestamp=-1)), leader_epoch=0, now_ms=NOW)


def test_timestamp_limits_do_not_apply_to_log_append_time(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=1000))
    log.append_as_leader(produced(batch(timestamp=1)), leader_epoch=0, now_ms=NOW)


def test_producer_may_not_claim_log_append_time(tmp_path: Path) -> None:
    source = open_log(tmp_path / "source", LogConfig(message_timestamp_type="LogAppendTime"))
    source.append_as_leader(produced(batch()), leader_epoch=0, now_ms=NOW)
    assert refusal(open_log(tmp_path), stored(source)).code == ErrorCode.INVALID_TIMESTAMP
    assert refusal(source, stored(source)).code == ErrorCode.INVALID_TIMESTAMP


def test_batch_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=100))
    assert refusal(log, batch(10)).code == ErrorCode.RECORD_LIST_TOO_LARGE


def test_refused_batch_leaves_no_trace(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    refusal(log, patched(batch(), 70, b"?"))
    assert log.size_bytes == 0
    assert log.leader_epochs.entries == ()
