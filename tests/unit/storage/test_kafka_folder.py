"""A folder that Apache Kafka 4.3.1 wrote is opened as it is: segments, indexes, producer snapshots, epochs."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from produced_batches import produced

from penstock.protocol.batches import iterate_headers
from penstock.protocol.records import Record, read_records, write_batch
from penstock.storage.disk.files import DiskFiles
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig

GOLDEN = Path(__file__).parents[2] / "golden" / "kafka-4.3.1-log-folder.zip"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS_PER_CODEC = 60
TRANSACTIONS = (("commit", 5), ("abort", 5), ("commit", 5))
FIRST_TIMESTAMP_MS = 1_700_000_000_000
NOW_MS = FIRST_TIMESTAMP_MS + 3_600_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with zipfile.ZipFile(GOLDEN) as archive:
        archive.extractall(tmp_path)
    return tmp_path / "golden-0"


def open_log(folder: Path, *, is_clean: bool) -> Log:
    return Log.open(
        DiskFiles(),
        str(folder),
        topic="golden",
        partition=0,
        topic_id=None,
        config=LogConfig(),
        is_clean=is_clean,
        now_ms=NOW_MS,
    )


def read_everything(log: Log) -> list[Record]:
    """Every data record, read from segment to segment as a consumer would."""
    records: list[Record] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, max_bytes=1 << 20, end_offset=log.log_end_offset, min_one_batch=True)
        (file_slice,) = data.slices
        batches = file_slice.read(0, file_slice.size)
        for position, header in iterate_headers(batches, 0, len(batches)):
            if not header.is_control:
                records += read_records(memoryview(batches)[position : position + header.size_bytes], header)
            offset = header.next_offset
    return records


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean stop", "recovered"])
def test_every_record_that_kafka_stored_is_read(folder: Path, is_clean: bool) -> None:
    log = open_log(folder, is_clean=is_clean)
    assert log.damage is None
    records = read_everything(log)
    values = [f"{codec} value {i}".encode() for codec in CODECS for i in range(RECORDS_PER_CODEC)]
    values += [f"{outcome} {i}".encode() for outcome, count in TRANSACTIONS for i in range(count)]
    assert [record.value for record in records] == values
    assert [record.timestamp_ms for record in records] == [
        FIRST_TIMESTAMP_MS + number * 100 for number in range(len(values))
    ]
    # One control record behind each transaction.
    assert log.log_end_offset == len(values) + len(TRANSACTIONS)


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean stop", "recovered"])
def test_aborted_transactions_and_producers_are_known(folder: Path, is_clean: bool) -> None:
    log = open_log(folder, is_clean=is_clean)
    (aborted,) = log.aborted_transactions(0, log.log_end_offset)
    assert aborted.first_offset == len(CODECS) * RECORDS_PER_CODEC + 6
    assert log.last_stable_offset(log.log_end_offset) == log.log_end_offset
    assert len(log.producers.active(NOW_MS)) == len(CODECS) + 1


def test_times_are_looked_up_in_kafkas_indexes(folder: Path) -> None:
    log = open_log(folder, is_clean=True)
    found = log.offset_for_timestamp(FIRST_TIMESTAMP_MS + 12_345, log.log_end_offset)
    assert found is not None
    assert (found.offset, found.timestamp) == (124, FIRST_TIMESTAMP_MS + 12_400)


def test_appending_goes_on_where_kafka_stopped(folder: Path) -> None:
    log = open_log(folder, is_clean=True)
    end_offset = log.log_end_offset
    data = log.read(0, max_bytes=1 << 20, end_offset=end_offset, min_one_batch=True)
    first = data.slices[0].read(0, data.slices[0].size)
    _, header = next(iterate_headers(first, 0, len(first)))
    # The first batch again, as a producer that has no id would send it.
    batch = write_batch(list(read_records(memoryview(first)[: header.size_bytes], header)))
    info = log.append_as_leader(produced(batch), leader_epoch=1, now_ms=NOW_MS)
    assert info.first_offset == end_offset
    assert log.leader_epochs.latest_epoch == 1
