"""The records inside a batch of format v2 (KIP-98), for those who must look: consumers of our own, tools, validation.

length            varint   of what follows
attributes        int8     no bit has a meaning
timestamp delta   varlong  from the batch's base timestamp
offset delta      varint   from the batch's base offset
key, value        varint length, bytes; length -1 is null
headers           varint count, then key and value of each, a key being UTF-8
"""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

from .batches import (
    CONTROL_FLAG,
    CURRENT_MAGIC,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    Buffer,
)
from .checksum import crc32c
from .compression import Compression, compress, decompress
from .errors import CorruptData
from .ids import NO_LEADER_EPOCH
from .primitives import uvarint

# What a batch may become uncompressed. A batch comes in a request of at most socket.request.max.bytes, 100 MiB.
MAX_UNCOMPRESSED_SIZE: Final = 512 * 1024 * 1024

_MAX_VARLONG_BYTES = 10
_INT32_END = 2**31
_INT64_END = 2**63
_PREFIX = Struct(">qiib")
_CRC = Struct(">I")
_CHECKED_PART = Struct(">hiqqqhii")
_CONTROL_KEY = Struct(">hh")


class Record(NamedTuple):
    """One record. Header keys that are not UTF-8 are kept by Python's `surrogateescape`."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class EncodedRecords(NamedTuple):
    """The records of one batch, as they lie in it when they have the batch's time."""

    data: bytes
    record_count: int


def read_records(batch: Buffer, header: BatchHeader, max_size: int = MAX_UNCOMPRESSED_SIZE) -> Iterator[Record]:
    """The records of the batch at the start of `batch`, which has `header`; the CRC is not looked at.

    CorruptData, perhaps after some records, when they are not exactly what the header announces, or when they take more
    than `max_size` bytes uncompressed.
    """
    if header.size_bytes > len(batch):
        raise CorruptData(f"a record batch of {header.size_bytes} bytes has only {len(batch)}")
    stored = memoryview(batch)[HEADER_SIZE : header.size_bytes]
    data = bytes(decompress(header.compression, stored, max_size))
    position = 0
    for number in range(header.record_count):
        try:
            record, position = _read_record(data, position, header)
        except IndexError:
            raise CorruptData(f"record {number} of {header.record_count} is cut off") from None
        yield record
    if header.record_count < 0 or position != len(data):
        raise CorruptData(f"{header.record_count} records are followed by {len(data) - position} bytes too many")


def write_batch(
    records: Sequence[Record],
    *,
    compression: int = Compression.NONE,
    compression_level: int | None = None,
    base_offset: int | None = None,
    leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytes:
    """One batch of one or more records with rising offsets; `base_offset` is the first unless said otherwise."""
    first_offset = records[0].offset if base_offset is None else base_offset
    base_timestamp = records[0].timestamp_ms
    data = bytearray()
    for record in records:
        _write_record(data, record, first_offset, base_timestamp)
    return _with_header(
        compress(compression, data, compression_level),
        compression | (TRANSACTIONAL_FLAG if is_transactional else 0) | (CONTROL_FLAG if is_control else 0),
        first_offset=first_offset,
        last_offset_delta=records[-1].offset - first_offset,
        leader_epoch=leader_epoch,
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp_ms for record in records),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )


def batch_of(
    records: EncodedRecords,
    timestamp_ms: int,
    *,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    is_transactional: bool = False,
) -> bytes:
    """What `write_batch` makes of records of one time, uncompressed."""
    return _with_header(
        records.data,
        TRANSACTIONAL_FLAG if is_transactional else 0,
        first_offset=0,
        last_offset_delta=records.record_count - 1,
        leader_epoch=NO_LEADER_EPOCH,
        base_timestamp=timestamp_ms,
        max_timestamp=timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=NO_SEQUENCE,
        record_count=records.record_count,
    )


def _with_header(
    stored: Buffer,
    attributes: int,
    *,
    first_offset: int,
    last_offset_delta: int,
    leader_epoch: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    record_count: int,
) -> bytes:
    checked = (
        _CHECKED_PART.pack(
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            record_count,
        )
        + stored
    )
    length = HEADER_SIZE - LENGTH_OVERHEAD + len(stored)
    return _PREFIX.pack(first_offset, length, leader_epoch, CURRENT_MAGIC) + _CRC.pack(crc32c(checked)) + checked


def control_type(record: Record) -> int:
    """What the record of a control batch says: 0 abort, 1 commit, 2 and more are the quorum's (KIP-98, KIP-595)."""
    if record.key is None or len(record.key) < _CONTROL_KEY.size:
        raise CorruptData(f"the control record at offset {record.offset} has no type in its key")
    _, kind = _CONTROL_KEY.unpack_from(record.key)
    return int(kind)


def _read_record(data: bytes, position: int, header: BatchHeader) -> tuple[Record, int]:
    length, position = _read_varlong(data, position)
    end = position + length
    if length < 0 or end > len(data):
        raise CorruptData(f"a record of {length} bytes was announced, {len(data) - position} are left")
    timestamp_delta, position = _read_varlong(data, position + 1)
    offset_delta, position = _read_varlong(data, position)
    key, position = _read_bytes(data, position)
    value, position = _read_bytes(data, position)
    header_count, position = _read_varlong(data, position)
    headers: tuple[tuple[str, bytes | None], ...] = ()
    if header_count:
        headers, position = _read_headers(data, position, header_count)
    if position != end:
        raise CorruptData(f"a record of {length} bytes has {length - end + position}")
    timestamp_ms = header.max_timestamp if header.is_log_append_time else header.base_timestamp + timestamp_delta
    if not (-_INT32_END <= offset_delta < _INT32_END and -_INT64_END <= timestamp_ms < _INT64_END):
        raise CorruptData(f"a record has the offset delta {offset_delta} and the timestamp {timestamp_ms}")
    return Record(header.base_offset + offset_delta, timestamp_ms, key, value, headers), position


def _read_headers(data: bytes, position: int, count: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    if count < 0 or count > len(data) - position:
        raise CorruptData(f"{count} headers were announced, {len(data) - position} bytes are left")
    headers = []
    for _ in range(count):
        key, position = _read_bytes(data, position)
        if key is None:
            raise CorruptData("a record has a header whose key is null")
        value, position = _read_bytes(data, position)
        headers.append((key.decode(errors="surrogateescape"), value))
    return tuple(headers), position


def _read_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = _read_varlong(data, position)
    if length == -1:
        return None, position
    end = position + length
    if length < 0 or end > len(data):
        raise CorruptData(f"{length} bytes of a record were announced, {len(data) - position} are left")
    return data[position:end], end


def _read_varlong(data: bytes, position: int) -> tuple[int, int]:
    """A signed varint of up to 64 bits, zigzag: 0, -1, 1, -2 … are 0, 1, 2, 3 …"""
    raw = data[position]
    position += 1
    if raw >= 0x80:
        raw &= 0x7F
        shift = 7
        while True:
            byte = data[position]
            position += 1
            raw |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift >= 7 * _MAX_VARLONG_BYTES:
                raise CorruptData(f"the varint before byte {position} of the records has no end")
    return (raw >> 1) ^ -(raw & 1), position


def _write_record(out: bytearray, record: Record, base_offset: int, base_timestamp: int) -> None:
    offset, timestamp_ms, key, value, headers = record
    parts = [
        b"\0",
        varlong(timestamp_ms - base_timestamp),
        varlong(offset - base_offset),
        _NULL if key is None else varlong(len(key)),
        key or b"",
        _NULL if value is None else varlong(len(value)),
        value or b"",
        varlong(len(headers)),
    ]
    for header in headers:
        parts += _header_parts(*header)
    body = b"".join(parts)
    out += varlong(len(body))
    out += body


def _header_parts(key: str, value: bytes | None) -> tuple[bytes, ...]:
    encoded = key.encode(errors="surrogateescape")
    if value is None:
        return varlong(len(encoded)), encoded, _NULL
    return varlong(len(encoded)), encoded, varlong(len(value)), value


def varlong(value: int) -> bytes:
    """A length or a difference in a record. Most are small: records that were written together lie close."""
    return _SMALL[value] if 0 <= value < len(_SMALL) else _encode_varlong(value)


def _encode_varlong(value: int) -> bytes:
    return uvarint(value << 1 if value >= 0 else (-value << 1) - 1)


_NULL: Final = _encode_varlong(-1)
_SMALL: Final = tuple(_encode_varlong(value) for value in range(1024))
