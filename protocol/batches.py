"""Record batches of format v2, seen through their headers: no record is opened here.

Kafka: `DefaultRecordBatch`, `MemoryRecords`.

    offset  size  field                    covered by the CRC
    0       8     base offset              no: the leader assigns it
    8       4     batch length             no: bytes that follow this field
    12      4     partition leader epoch   no: the leader assigns it
    16      1     magic                    no
    17      4     CRC-32C                  no
    21      2     attributes               yes, and all that follows
    23      4     last offset delta
    27      8     base timestamp
    35      8     max timestamp
    43      8     producer id
    51      2     producer epoch
    53      4     base sequence
    57      4     record count
    61            records, compressed as one block or not at all

Attributes: bits 0-2 compression, 3 timestamp type, 4 transactional, 5 control, 6 base timestamp is the delete horizon
(KIP-98, KIP-534).
"""

import struct
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from .checksum import crc32c
from .errors import CorruptData

Buffer: TypeAlias = bytes | bytearray | memoryview

HEADER_SIZE: Final = 61
# Bytes before the end of the batch length field: what `batch_length` does not count.
LENGTH_OVERHEAD: Final = 12
# The part that a leader writes anew on append: base offset, batch length, leader epoch.
ASSIGNED_SIZE: Final = 16
MAGIC_OFFSET: Final = 16
ATTRIBUTES_OFFSET: Final = 21
CURRENT_MAGIC: Final = 2

NO_OFFSET: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
MAX_SEQUENCE: Final = 2**31 - 1
NO_TIMESTAMP: Final = -1

COMPRESSION_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40

_HEADER = Struct(">qiibIhiqqqhii")
_ASSIGNED = Struct(">qii")
_CRC = Struct(">I")
_CHECKED_PART = Struct(">hiqqqhii")


class UnsupportedMagic(CorruptData):
    """A batch of the message formats v0 or v1, which Kafka 4 refuses, or of one that does not exist."""

    def __init__(self, message: str, magic: int) -> None:
        super().__init__(message)
        self.magic = magic


class BatchHeader(NamedTuple):
    """The header of one record batch, as stored. Checked by `read_header` only: length and magic are sane, no more."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        return LENGTH_OVERHEAD + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd; 5 to 7 mean nothing."""
        return self.attributes & COMPRESSION_MASK

    @property
    def is_log_append_time(self) -> bool:
        """All records then have `max_timestamp`."""
        return self.attributes & LOG_APPEND_TIME_FLAG != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_FLAG != 0

    @property
    def records_timestamp(self) -> int:
        """The largest timestamp of its records; -1 when compaction has left none, whatever the header says."""
        return self.max_timestamp if self.record_count else NO_TIMESTAMP

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the batch's tombstones, or its marker, may go; None while compaction has not come to them (KIP-534)."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_FLAG else None

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; sequences go on at 0 after 2**31 - 1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return next_sequence(self.base_sequence, self.last_offset_delta)


def read_header(buffer: Buffer, position: int) -> BatchHeader:
    """The header at `position`, whether or not the rest of the batch is in `buffer`.

    CorruptData when fewer than 61 bytes are left, the length is impossible or the magic is not 2 (`UnsupportedMagic`).
    """
    try:
        # What `BatchHeader._make` does, without its detour through Python.
        header = tuple.__new__(BatchHeader, _HEADER.unpack_from(buffer, position))
    except struct.error:
        raise CorruptData(
            f"a record batch header of {HEADER_SIZE} bytes does not fit at {position} of {len(buffer)} bytes"
        ) from None
    if header.magic != CURRENT_MAGIC:
        raise UnsupportedMagic(f"the record batch at byte {position} has magic {header.magic}, not 2", header.magic)
    if header.batch_length < HEADER_SIZE - LENGTH_OVERHEAD:
        raise CorruptData(f"the record batch at byte {position} has the impossible length {header.batch_length}")
    return header


def iterate_headers(buffer: Buffer, start: int = 0, end: int | None = None) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each batch in buffer[start:end], which must hold whole batches only, or CorruptData."""
    limit = len(buffer) if end is None else end
    position = start
    while position < limit:
        header = read_header(buffer, position)
        following = position + LENGTH_OVERHEAD + header.batch_length
        if following > limit:
            raise CorruptData(
                f"the record batch at byte {position} is {header.size_bytes} bytes, but {limit - position} are left"
            )
        yield position, header
        position = following


def is_crc_valid(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    """Whether the batch at `position` has the CRC that its header says. False too when it is not all in `buffer`."""
    end = position + LENGTH_OVERHEAD + header.batch_length
    if end > len(buffer):
        return False
    view = buffer if type(buffer) is memoryview else memoryview(buffer)
    return crc32c(view[position + ATTRIBUTES_OFFSET : end]) == header.crc


def next_sequence(sequence: int, increment: int) -> int:
    """`sequence` moved on by `increment`, within 0 to 2**31 - 1."""
    if sequence > MAX_SEQUENCE - increment:
        return increment - (MAX_SEQUENCE - sequence) - 1
    return sequence + increment


def with_offset_and_epoch(base_offset: int, batch_length: int, leader_epoch: int) -> bytes:
    """The first 16 bytes of a batch, outside its CRC: with buffer[16:] after them it is as the leader stores it."""
    return _ASSIGNED.pack(base_offset, batch_length, leader_epoch)


def assemble(header: BatchHeader, records: Buffer) -> bytes:
    """The batch with this header and these records, compressed as it says; its length and CRC are made anew."""
    checked = _CHECKED_PART.pack(
        header.attributes,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
    )
    crc = crc32c(records, crc32c(checked))
    batch_length = HEADER_SIZE - LENGTH_OVERHEAD + len(records)
    assigned = _ASSIGNED.pack(header.base_offset, batch_length, header.partition_leader_epoch)
    return b"".join((assigned, bytes((CURRENT_MAGIC,)), _CRC.pack(crc), checked, records))


def rewrite_header(
    buffer: Buffer,
    position: int,
    header: BatchHeader,
    *,
    base_offset: int,
    leader_epoch: int,
    log_append_time_ms: int,
) -> bytes:
    """The 61 bytes of header of a batch stored with LogAppendTime: offset, epoch, timestamp type and time, a new CRC.

    With buffer[position + 61:] after them they are the batch as stored. The records are not touched: the broker's time
    is read from `max_timestamp`, and the base timestamp stays, as in Apache Kafka.
    """
    checked = _CHECKED_PART.pack(
        header.attributes | LOG_APPEND_TIME_FLAG,
        header.last_offset_delta,
        header.base_timestamp,
        log_append_time_ms,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
    )
    records = memoryview(buffer)[position + HEADER_SIZE : position + header.size_bytes]
    crc = crc32c(records, crc32c(checked))
    assigned = _ASSIGNED.pack(base_offset, header.batch_length, leader_epoch)
    return b"".join((assigned, bytes((CURRENT_MAGIC,)), _CRC.pack(crc), checked))
