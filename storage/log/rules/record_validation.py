"""The rules that need every record of a batch: keys for compacted topics, timestamps within limits, recompression."""

from collections.abc import Iterator
from typing import Final

from ....protocol.batches import NO_TIMESTAMP, read_header
from ....protocol.errors import CorruptData, ErrorCode, KafkaError
from ....protocol.records import Record, read_records, write_batch
from .config import LogConfig
from .record_batch import ProducedBatch, ValidatedBatch

# Kafka's codec ids; "uncompressed" is the config's name for none.
CODECS: Final = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}

# What a node opens of one batch. A MiB of zstd can be gigabytes of records, and all other clients wait for who reads
# them. The bytes are those that would still fit into a request uncompressed; a million records take some seconds.
OPENED_BYTES_MAX: Final = 100 * 1024 * 1024
OPENED_RECORDS_MAX: Final = 1_000_000
# Each is a sentence in the answer.
RECORD_ERRORS_MAX: Final = 1000


def check_records(batch: ProducedBatch, config: LogConfig, partition: str, now_ms: int) -> None:
    """KafkaError INVALID_RECORD or INVALID_TIMESTAMP that names the records (1,000 of them) that break a rule."""
    errors: list[tuple[int, str]] = []
    error_count = 0
    has_timestamp_error = False
    earliest = now_ms - config.message_timestamp_before_max_ms
    latest = now_ms + config.message_timestamp_after_max_ms
    for index, record in enumerate(open_records(batch, partition)):
        if config.is_compacted and record.key is None:
            message = f"Compacted topic cannot accept message without key in topic partition {partition}"
        elif (
            config.message_timestamp_type == "CreateTime"
            and record.timestamp_ms != NO_TIMESTAMP
            and not earliest <= record.timestamp_ms <= latest
        ):
            has_timestamp_error = True
            message = (
                f"Timestamp {record.timestamp_ms} of message with offset {record.offset} is out of range. The "
                f"timestamp should be within [{earliest}, {latest}]"
            )
        else:
            continue
        error_count += 1
        if len(errors) < RECORD_ERRORS_MAX:
            errors.append((index, message))
    if has_timestamp_error:
        raise KafkaError(
            ErrorCode.INVALID_TIMESTAMP,
            "One or more records have been rejected due to invalid timestamp",
            record_errors=tuple(errors),
        )
    if errors:
        shown = ", ".join(f"RecordError(batchIndex={index}, message='{message}')" for index, message in errors[:3])
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"One or more records have been rejected due to {error_count} record errors in total, and only showing the "
            f"first three errors at most: [{shown}]",
            record_errors=tuple(errors),
        )


def recompress(batch: ValidatedBatch, config: LogConfig, partition: str) -> ValidatedBatch:
    """The same records as one batch in the topic's compression: producer, timestamps and headers stay.

    KafkaError MESSAGE_TOO_LARGE when that makes it larger than the topic allows.
    """
    header = batch.header
    compression = CODECS[config.compression_type]
    rewritten = write_batch(
        list(open_records(batch, partition)),
        compression=compression,
        compression_level=config.level_of(compression),
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
    )
    if len(rewritten) > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"Message batch size is {len(rewritten)} bytes in append to partition {partition} which exceeds the "
            f"maximum configured size of {config.max_message_bytes}.",
        )
    return ValidatedBatch(ProducedBatch(memoryview(rewritten), read_header(rewritten, 0)))


def open_records(batch: ProducedBatch, partition: str) -> Iterator[Record]:
    """All records, one after the other.

    KafkaError INVALID_RECORD, perhaps behind some of them, when they are not what the header says, or more than a node
    opens.
    """
    record_count = batch.header.record_count
    if record_count > OPENED_RECORDS_MAX:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"A batch of {record_count} records for {partition} is not opened, which its topic needs: "
            f"{OPENED_RECORDS_MAX} are the most.",
        )
    try:
        yield from read_records(batch.data, batch.header, OPENED_BYTES_MAX)
    except CorruptData as error:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"The records of a batch for {partition} cannot be read: {error}"
        ) from None
