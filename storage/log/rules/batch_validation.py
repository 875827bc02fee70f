"""What a client may append: the checks of Apache Kafka's LogValidator and UnifiedLog on one batch of a produce request.

A batch is judged by its header and CRC; its records are opened only where a rule needs them (`record_validation`).
Rules, in the order in which they are judged, and the error code of each:

| rule | code |
|---|---|
| one whole batch, of format v2; after it nothing that could be another (a few bytes are ignored) | INVALID_RECORD |
| lengths and magic that can be | CORRUPT_MESSAGE |
| base offset 0 | INVALID_RECORD |
| at most `max.message.bytes` | MESSAGE_TOO_LARGE |
| the CRC-32C of the header | CORRUPT_MESSAGE |
| offsets and record count agree, no control batch, a sequence with a producer id | INVALID_RECORD |
| a known compression | UNSUPPORTED_COMPRESSION_TYPE |
| not claiming LogAppendTime; on CreateTime topics within the two limits for timestamps | INVALID_TIMESTAMP |
| a key in every record of a compacted topic | INVALID_RECORD |
"""

from struct import Struct
from typing import Final

from ....protocol.batches import (
    COMPRESSION_MASK,
    CONTROL_FLAG,
    CURRENT_MAGIC,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_FLAG,
    MAGIC_OFFSET,
    BatchHeader,
    is_crc_valid,
    read_header,
)
from ....protocol.errors import CorruptData, ErrorCode, KafkaError
from .config import MAX_INT64, LogConfig
from .record_validation import check_records

_LAST_COMPRESSION: Final = 4
_LENGTH: Final = Struct(">i")
_LENGTH_OFFSET: Final = 8
# The smallest length of a batch of any format: that of a v0 message without key and value.
_MIN_LENGTH: Final = 14


def check_produced_batch(records: memoryview, config: LogConfig, partition: str, now_ms: int) -> BatchHeader:
    """The header of the one batch in `records`, when a client may append it. KafkaError by the table above."""
    try:
        header = read_header(records, 0)
    except CorruptData as error:
        _explain_framing(records)
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"Record is corrupt in topic partition {partition}: {error}"
        ) from None
    size = LENGTH_OVERHEAD + header.batch_length
    if len(records) != size:
        _explain_framing(records)
    if header.base_offset != 0:
        raise _invalid(
            f"The baseOffset of the record batch in the append to {partition} should be 0, but it is "
            f"{header.base_offset}"
        )
    if size > config.max_message_bytes:
        raise message_too_large(size, config, partition)
    if not is_crc_valid(records, 0, header):
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record is corrupt (stored crc = {header.crc}) in topic partition {partition}.",
        )
    count = header.record_count
    if (
        count <= 0
        or count != header.last_offset_delta + 1
        or header.attributes & (CONTROL_FLAG | LOG_APPEND_TIME_FLAG)
        or header.attributes & COMPRESSION_MASK > _LAST_COMPRESSION
        or (header.base_sequence < 0 <= header.producer_id)
    ):
        _explain_header(header, partition)
    if config.message_timestamp_type == "CreateTime":
        if header.max_timestamp - now_ms > config.message_timestamp_after_max_ms:
            check_records(records, header, config, partition, now_ms)
            raise _too_late(header, config, now_ms)
        if config.message_timestamp_before_max_ms != MAX_INT64:
            check_records(records, header, config, partition, now_ms)
            return header
    if config.is_compacted:
        check_records(records, header, config, partition, now_ms)
    return header


def message_too_large(size_bytes: int, config: LogConfig, partition: str) -> KafkaError:
    """For a batch of more than `max.message.bytes`."""
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The record batch size in the append to {partition} is {size_bytes} bytes which exceeds the maximum "
        f"configured value of {config.max_message_bytes}.",
    )


def _explain_framing(records: memoryview) -> None:
    """Raise what is wrong with `records` as a sequence of batches; return when a batch is there and no other."""
    size = _next_batch_size(records, 0)
    if size is None:
        raise _invalid("Produce requests must have at least one record batch per partition")
    if records[MAGIC_OFFSET] != CURRENT_MAGIC:
        raise _invalid("Produce requests are only allowed to contain record batches with magic version 2")
    if size >= HEADER_SIZE and _next_batch_size(records, size) is not None:
        raise _invalid("Produce requests are only allowed to contain exactly one record batch per partition")


def _next_batch_size(records: memoryview, position: int) -> int | None:
    """The size of the batch at `position`; None when there are not enough bytes for one."""
    remaining = len(records) - position
    if remaining < LENGTH_OVERHEAD:
        return None
    (length,) = _LENGTH.unpack_from(records, position + _LENGTH_OFFSET)
    if length < _MIN_LENGTH:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record size {length} is less than the minimum record overhead ({_MIN_LENGTH})",
        )
    if remaining <= MAGIC_OFFSET:
        return None
    magic = records[position + MAGIC_OFFSET]
    if magic > CURRENT_MAGIC:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}")
    size = LENGTH_OVERHEAD + length
    return size if size <= remaining else None


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
