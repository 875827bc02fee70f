"""What a client may append: the checks of Kafka's `LogValidator` and `UnifiedLog` on one batch of a produce request.

That it is one whole batch is known by then (`batch_admission`). It is judged by its header and CRC; its records are
opened only where a rule needs them (`record_validation`). Rules, in the order in which they are judged, and the error
code of each:

| rule | code |
|---|---|
| base offset 0 | INVALID_RECORD |
| at most `max.message.bytes` | MESSAGE_TOO_LARGE |
| the CRC-32C of the header | CORRUPT_MESSAGE |
| offsets and record count agree, no control batch, a sequence with a producer id | INVALID_RECORD |
| a known compression | UNSUPPORTED_COMPRESSION_TYPE |
| not claiming LogAppendTime; on CreateTime topics within the two limits for timestamps | INVALID_TIMESTAMP |
| a key in every record of a compacted topic | INVALID_RECORD |
"""

from typing import Final

from ....protocol.batches import (
    ATTRIBUTES_OFFSET,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    LOG_APPEND_TIME_FLAG,
    BatchHeader,
    read_header,
)
from ....protocol.checksum import crc32c
from ....protocol.errors import ErrorCode, KafkaError
from .config import MAX_INT64, LogConfig
from .record_batch import ProducedBatch, ValidatedBatch
from .record_validation import check_records

_LAST_COMPRESSION: Final = 4


def validate_batch(batch: ProducedBatch, config: LogConfig, partition: str, now_ms: int) -> ValidatedBatch:
    """Returns `batch` when a client may append it; raises KafkaError by the table above. Kafka: `LogValidator`."""
    header = batch.header
    if header.base_offset != 0:
        raise _invalid(
            f"The baseOffset of the record batch in the append to {partition} should be 0, but it is "
            f"{header.base_offset}"
        )
    data = batch.data
    if len(data) > config.max_message_bytes:
        raise message_too_large(len(data), config, partition)
    # As `is_crc_valid`, whose search for the end of the batch is needless here and costs 4 % of an append.
    if crc32c(data[ATTRIBUTES_OFFSET:]) != header.crc:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record is corrupt (stored crc = {header.crc}) in topic partition {partition}.",
        )
    count = header.record_count
    attributes = header.attributes
    if (
        count <= 0
        or count != header.last_offset_delta + 1
        or attributes & (CONTROL_FLAG | LOG_APPEND_TIME_FLAG)
        or attributes & COMPRESSION_MASK > _LAST_COMPRESSION
        or (header.base_sequence < 0 <= header.producer_id)
    ):
        _explain_header(header, partition)
    if config.message_timestamp_type == "CreateTime":
        if header.max_timestamp - now_ms > config.message_timestamp_after_max_ms:
            check_records(batch, config, partition, now_ms)
            raise _too_late(header, config, now_ms)
        if config.message_timestamp_before_max_ms != MAX_INT64:
            check_records(batch, config, partition, now_ms)
            return ValidatedBatch(batch)
    if config.is_compacted:
        check_records(batch, config, partition, now_ms)
    return ValidatedBatch(batch)


def validate_coordinator_batch(batch: bytes, config: LogConfig, partition: str) -> ValidatedBatch:
    """Returns a batch that a coordinator of this node has written: its content is right.

    Raises KafkaError MESSAGE_TOO_LARGE, but not for the marker of a transaction: it has to be appended.
    """
    header = read_header(batch, 0)
    if not header.is_control and header.size_bytes > config.max_message_bytes:
        raise message_too_large(header.size_bytes, config, partition)
    return ValidatedBatch(ProducedBatch(memoryview(batch), header))


def message_too_large(size_bytes: int, config: LogConfig, partition: str) -> KafkaError:
    """For a batch of more than `max.message.bytes`."""
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The record batch size in the append to {partition} is {size_bytes} bytes which exceeds the maximum "
        f"configured value of {config.max_message_bytes}.",
    )


def _explain_header(header: BatchHeader, partition: str) -> None:
    """Raise what is wrong with the numbers of `header`; return when it is only odd."""
    if header.last_offset_delta < 0:
        raise _invalid(
            f"Batch has an invalid offset range: [{header.base_offset}, {header.last_offset}] in topic partition "
            f"{partition}"
        )
    if header.record_count <= 0:
        raise _invalid(f"Invalid reported count for record batch: {header.record_count} in topic partition {partition}")
    if header.record_count != header.last_offset_delta + 1:
        raise _invalid(
            f"Inconsistent batch offset range [{header.base_offset}, {header.last_offset}] and count of records "
            f"{header.record_count} in topic partition {partition}"
        )
    if header.is_control:
        raise _invalid(f"Clients are not allowed to write control records in topic partition {partition}")
    if header.has_producer_id and header.base_sequence < 0:
        raise _invalid(
            f"Invalid sequence number {header.base_sequence} in record batch with producerId {header.producer_id} in "
            f"topic partition {partition}"
        )
    if header.compression > _LAST_COMPRESSION:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Unknown compression type id {header.compression} in a batch for topic partition {partition}",
        )
    if header.is_log_append_time:
        raise KafkaError(
            ErrorCode.INVALID_TIMESTAMP,
            f"Invalid timestamp type in a batch for {partition}. Producer should not set timestamp type to "
            "LogAppendTime.",
        )


def _too_late(header: BatchHeader, config: LogConfig, now_ms: int) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_TIMESTAMP,
        f"The batch's max timestamp {header.max_timestamp} is out of range: it should be at most "
        f"{now_ms + config.message_timestamp_after_max_ms}",
    )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)
