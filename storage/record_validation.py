"""The rules that need every record of a batch: keys for compacted topics, timestamps within limits, recompression."""

from typing import Final

from ..protocol.batches import NO_TIMESTAMP, BatchHeader
from ..protocol.errors import CorruptData, ErrorCode, KafkaError
from ..protocol.records import Record, read_records, write_batch
from .config import LogConfig

# Kafka's codec ids; "uncompressed" is the config's name for none.
CODECS: Final = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def check_records(batch: memoryview, header: BatchHeader, config: LogConfig, partition: str, now_ms: int) -> None:
    """KafkaError INVALID_RECORD or INVALID_TIMESTAMP that names every record which breaks a rule of `config`."""
    errors: list[tuple[int, str]] = []
    has_timestamp_error = False
    earliest = now_ms - config.message_timestamp_before_max_ms
    latest = now_ms + config.message_timestamp_after_max_ms
    for index, record in enumerate(open_records(batch, header, partition)):
        if config.is_compacted and record.key is None:
            errors.append((index, f"Compacted topic cannot accept message without key in topic partition {partition}"))
        elif (
            config.message_timestamp_type == "CreateTime"
            and record.timestamp_ms != NO_TIMESTAMP
            and not earliest <= record.timestamp_ms <= latest
        ):
            has_timestamp_error = True
            errors.append(
                (
                    index,
                    f"Timestamp {record.timestamp_ms} of message with offset {record.offset} is out of range. The "
                    f"timestamp should be within [{earliest}, {latest}]",
                )
            )
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
            f"One or more records have been rejected due to {len(errors)} record errors in total, and only showing the "
            f"first three errors at most: [{shown}]",
            record_errors=tuple(errors),
        )


def recompress(batch: memoryview, header: BatchHeader, config: LogConfig, partition: str) -> memoryview:
    """The same records as one batch in the topic's compression: producer, timestamps and headers stay.

    KafkaError MESSAGE_TOO_LARGE when that makes it larger than the topic allows.
    """
    rewritten = write_batch(
        open_records(batch, header, partition),
        compression=CODECS[config.compression_type],
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
    return memoryview(rewritten)


def open_records(batch: memoryview, header: BatchHeader, partition: str) -> list[Record]:
    """All records. KafkaError INVALID_RECORD when they are not what the header says."""
    try:
        return list(read_records(batch, header))
    except CorruptData as error:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"The records of a batch for {partition} cannot be read: {error}"
        ) from None
