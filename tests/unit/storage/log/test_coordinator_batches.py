"""What a log does with the batches of a coordinator: the records of its state, in a transaction or not, and the end."""

import pytest

from penstock.protocol.batches import HEADER_SIZE, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, read_header
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.records import Record, read_records, write_batch
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig
from penstock.storage.log.rules.control_records import write_end_transaction_marker
from penstock.storage.log.rules.transaction_verification import UNVERIFIED

NOW = 1_700_000_000_000
PRODUCER = 7
VALUES = [b"v" * 100] * 5


def open_log(config: LogConfig) -> Log:
    return Log.open(
        MemoryFiles(),
        "/data/__consumer_offsets-0",
        topic="__consumer_offsets",
        partition=0,
        topic_id=None,
        config=config,
        is_clean=True,
        now_ms=NOW,
    )


def append(log: Log, producer_id: int) -> None:
    is_transactional = producer_id != NO_PRODUCER_ID
    batch = write_batch(
        [Record(number, NOW, b"k", value) for number, value in enumerate(VALUES)],
        producer_id=producer_id,
        producer_epoch=0 if is_transactional else NO_PRODUCER_EPOCH,
        is_transactional=is_transactional,
    )
    verification = UNVERIFIED if is_transactional else None
    info = log.append_of_coordinator(batch, leader_epoch=3, now_ms=NOW + 1, verification=verification)
    assert (info.first_offset, info.last_offset) == (0, 4)


def stored(log: Log) -> bytes:
    data = log.read(0, max_bytes=1_000_000, end_offset=log.log_end_offset, min_one_batch=True)
    return b"".join(bytes(piece.read(0, piece.size)) for piece in data.slices)


@pytest.fixture(params=[NO_PRODUCER_ID, PRODUCER], ids=["alone", "in a transaction"])
def producer_id(request: pytest.FixtureRequest) -> int:
    assert isinstance(request.param, int)
    return request.param


@pytest.mark.parametrize(("name", "codec"), [("producer", 0), ("gzip", 1), ("zstd", 4), ("uncompressed", 0)])
def test_they_are_stored_in_the_compression_of_their_topic(producer_id: int, name: str, codec: int) -> None:
    log = open_log(LogConfig(compression_type=name))
    append(log, producer_id)
    found = stored(log)
    header = read_header(found, 0)
    assert (header.compression, header.producer_id, header.partition_leader_epoch) == (codec, producer_id, 3)
    assert header.is_transactional == (producer_id == PRODUCER)
    assert [record.value for record in read_records(found, header)] == VALUES


def test_they_have_the_time_of_the_append_where_their_topic_wants_it(producer_id: int) -> None:
    log = open_log(LogConfig(message_timestamp_type="LogAppendTime"))
    append(log, producer_id)
    header = read_header(stored(log), 0)
    assert (header.is_log_append_time, header.max_timestamp) == (True, NOW + 1)


@pytest.mark.parametrize(
    ("config", "error"),
    [
        (LogConfig(max_message_bytes=500), ErrorCode.MESSAGE_TOO_LARGE),
        (LogConfig(segment_bytes=500), ErrorCode.RECORD_LIST_TOO_LARGE),
    ],
)
def test_one_that_is_too_large_is_refused(producer_id: int, config: LogConfig, error: ErrorCode) -> None:
    log = open_log(config)
    with pytest.raises(KafkaError) as caught:
        append(log, producer_id)
    assert caught.value.code == error
    assert log.log_end_offset == 0
    assert log.producers.entries == {}


def test_a_transaction_can_end_whatever_the_size_of_a_message_may_be() -> None:
    """Lowered to nothing while the transaction is open: it would hold up all readers."""
    log = open_log(LogConfig())
    append(log, PRODUCER)
    log.config = LogConfig(max_message_bytes=0)
    marker = write_end_transaction_marker(PRODUCER, 0, is_commit=True, coordinator_epoch=0, now_ms=NOW)
    assert len(marker) > HEADER_SIZE
    assert log.append_of_coordinator(marker, leader_epoch=3, now_ms=NOW).first_offset == len(VALUES)
