"""The one batch that a partition of a Produce request must have. Kafka: `ProduceRequest.validateRecords`.

Rules, in the order in which they are judged, and the error code of each:

| rule | code |
|---|---|
| not null and not empty | INVALID_RECORD |
| a length and a magic that a batch of some format can have | CORRUPT_MESSAGE |
| one whole batch, of format v2, large enough for its header | INVALID_RECORD, CORRUPT_MESSAGE |
| after it nothing that could be another batch (a few bytes are ignored) | INVALID_RECORD, CORRUPT_MESSAGE |
| zstd from version 7 of the API on (KIP-110) | UNSUPPORTED_COMPRESSION_TYPE |
"""

from struct import Struct
from typing import Final

from ....protocol.batches import (
    COMPRESSION_MASK,
    CURRENT_MAGIC,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC_OFFSET,
    Buffer,
    read_header,
)
from ....protocol.compression import Compression
from ....protocol.errors import CorruptData, ErrorCode, KafkaError
from ....protocol.produce import FIRST_ZSTD_VERSION
from .record_batch import ProducedBatch

BATCH_LENGTH: Final = Struct(">i")
BATCH_LENGTH_OFFSET: Final = 8
BATCH_LENGTH_MIN: Final = 14
"""The length of a v0 message without key and value. Below it Kafka refuses a batch before it reads any other field."""


def read_produced_batch(records: Buffer | None, version: int) -> ProducedBatch:
    """Returns the batch in the `records` of a Produce request of `version`; an incomplete batch after it is dropped, as
    Kafka does.

    Raises KafkaError by the table above. `batch_validation` judges the content.
    """
    if records is None:
        raise KafkaError(ErrorCode.INVALID_RECORD)
    data = records if type(records) is memoryview else memoryview(records)
    try:
        header = read_header(data, 0)
    except CorruptData:
        _batch_end(data)
        raise AssertionError("a v2 batch that is whole has a header") from None
    if LENGTH_OVERHEAD + header.batch_length != len(data):
        data = data[: _batch_end(data)]
    if version < FIRST_ZSTD_VERSION and header.attributes & COMPRESSION_MASK == Compression.ZSTD:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    # What `ProducedBatch` does, without its detour through Python.
    return tuple.__new__(ProducedBatch, (data, header))


def _batch_end(data: memoryview) -> int:
    """Returns the size of the only batch in `data`; raises KafkaError if there is not exactly one."""
    size = len(data)
    if size <= MAGIC_OFFSET:
        raise KafkaError(ErrorCode.INVALID_RECORD)
    (batch_length,) = BATCH_LENGTH.unpack_from(data, BATCH_LENGTH_OFFSET)
    end: int = LENGTH_OVERHEAD + batch_length
    _check_frame(batch_length, data[MAGIC_OFFSET])
    if end > size or data[MAGIC_OFFSET] != CURRENT_MAGIC:
        raise KafkaError(ErrorCode.INVALID_RECORD)
    if end < HEADER_SIZE:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE)
    rest = size - end
    if rest > MAGIC_OFFSET:
        (next_length,) = BATCH_LENGTH.unpack_from(data, end + BATCH_LENGTH_OFFSET)
        _check_frame(next_length, CURRENT_MAGIC)
        if LENGTH_OVERHEAD + next_length <= rest:
            raise KafkaError(ErrorCode.INVALID_RECORD)
    return end


def _check_frame(batch_length: int, magic: int) -> None:
    """Raises KafkaError if length or magic byte fit no batch format."""
    if batch_length < BATCH_LENGTH_MIN:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record size {batch_length} is less than the minimum record overhead ({BATCH_LENGTH_MIN})",
        )
    if magic > CURRENT_MAGIC:
        # The magic byte is signed.
        signed = magic - 256 if magic > 127 else magic
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {signed}")
