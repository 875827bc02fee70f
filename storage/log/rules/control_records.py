"""The records that a coordinator has written to end a transaction in a partition (KIP-98).

key: version 2 bytes, type 2 bytes (0 abort, 1 commit)      value: version 2 bytes, coordinator epoch 4 bytes
"""

import struct
from struct import Struct
from typing import Final

from ....protocol.batches import BatchHeader, Buffer
from ....protocol.errors import CorruptData
from ....protocol.records import Record, read_records, write_batch
from .producer_state import EndTransactionMarker

ABORT: Final = 0
COMMIT: Final = 1
KEY: Final = Struct(">hh")
VALUE: Final = Struct(">hi")


def write_end_transaction_marker(
    producer_id: int, producer_epoch: int, *, is_commit: bool, coordinator_epoch: int, now_ms: int
) -> bytes:
    """The control batch that ends the producer's transaction, to be given its offset."""
    key = KEY.pack(0, COMMIT if is_commit else ABORT)
    return write_batch(
        [Record(0, now_ms, key, VALUE.pack(0, coordinator_epoch))],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )


def read_end_transaction_marker(batch: Buffer, header: BatchHeader) -> EndTransactionMarker | None:
    """The marker in a control batch of a producer; None when compaction emptied it. CorruptData when malformed."""
    if header.record_count == 0:
        return None
    record = next(iter(read_records(batch, header)))
    try:
        _, kind = KEY.unpack_from(record.key or b"")
        version, coordinator_epoch = VALUE.unpack_from(record.value or b"")
    except struct.error:
        raise CorruptData(
            f"the control record at offset {record.offset} is too short for a transaction marker"
        ) from None
    if kind not in (ABORT, COMMIT) or version < 0:
        raise CorruptData(f"the control record at offset {record.offset} has type {kind} and version {version}")
    return EndTransactionMarker(kind == ABORT, coordinator_epoch, record.timestamp_ms)
