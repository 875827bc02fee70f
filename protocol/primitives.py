"""Kafka's primitive types on the wire, one reader and one writer for each.

A reader takes (buffer, position) and gives (value, position after it). It raises CorruptData, `struct.error`,
IndexError or ValueError when the bytes are wrong, and the decoder of a whole message turns all into CorruptData. No
reader trusts an announced length: strings and bytes are checked against what is there, arrays against what could be.
"""

import struct
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from struct import Struct
from typing import Final, TypeAlias
from uuid import UUID

from kio.schema.errors import ErrorCode as KioErrorCode

from .errors import CorruptData
from .ids import TopicId

Buffer: TypeAlias = bytes | memoryview
Reader: TypeAlias = Callable[[Buffer, int], tuple[object, int]]
Writer: TypeAlias = Callable[[bytearray, object], None]

# What readers of garbage raise; the guard of every decoder catches these and nothing else.
GARBAGE_ERRORS: Final = (struct.error, IndexError, ValueError, OverflowError)

MAX_UVARINT_BYTES: Final = 5
STRING_SIZE_MAX: Final = 2**15 - 1
"""Of what clients send, in bytes: more than older versions can say, and Kafka's own readers refuse more in any."""
# Of one struct. Kafka's messages have up to six; each costs its reader some 150 ns, and all other clients wait for it.
TAGS_MAX: Final = 1000
_MAX_INT32 = 2**31 - 1
_SHORT = Struct(">h")
_INT = Struct(">i")
_EPOCH = datetime.fromtimestamp(0, UTC)
_MILLISECOND = timedelta(milliseconds=1)
_NO_UUID = bytes(16)
_ONE_BYTE = tuple(bytes((value,)) for value in range(128))

# Types of one size: the letter for `struct`.
FIXED: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "uint32": "I",
    "float64": "d",
    "error_code": "h",
    "timedelta_i32": "i",
    "timedelta_i64": "q",
    "datetime_i64": "q",
    "uuid": "16s",
}


def read_tags(buffer: Buffer, position: int) -> tuple[dict[int, Buffer], int]:
    """Tagged fields as bytes by tag (KIP-482), and the position after them."""
    count, position = read_uvarint(buffer, position)
    if count > TAGS_MAX:
        raise CorruptData(f"{count} tagged fields were announced, more than {TAGS_MAX}")
    tags: dict[int, Buffer] = {}
    for _ in range(count):
        tag, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        tags[tag] = take(buffer, position, size)
        position += size
    return tags, position


def skip_tags(buffer: Buffer, position: int) -> int:
    """The position after tagged fields, of which there mostly are none."""
    return position + 1 if buffer[position] == 0 else read_tags(buffer, position)[1]


def read_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """An unsigned varint that fits into 31 bits: all that lengths, counts and tags may be."""
    value = buffer[position]
    position += 1
    if value < 0x80:
        return value, position
    value &= 0x7F
    shift = 7
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift >= 7 * MAX_UVARINT_BYTES:
            raise CorruptData(f"the varint before byte {position} is longer than {MAX_UVARINT_BYTES} bytes")
    if value > _MAX_INT32:
        raise CorruptData(f"the varint before byte {position} is {value}, more than 31 bits")
    return value, position


def uvarint(value: int) -> bytes:
    if value < 0x80:
        return _ONE_BYTE[value]
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


@lru_cache(maxsize=16384)
def uuid_from(raw: bytes) -> UUID | None:
    """The id in 16 bytes; zero is no id. Remembered, because the same topics come with every produce and fetch."""
    if len(raw) != len(_NO_UUID):
        raise CorruptData(f"an id of 16 bytes was expected, {len(raw)} are left")
    return None if raw == _NO_UUID else UUID(bytes=raw)


@lru_cache(maxsize=16384)
def topic_id_from(raw: bytes) -> TopicId | None:
    """The topic id in 16 bytes; zero is no id. Remembered like all ids, which also makes equal ones one object."""
    value = uuid_from(raw)
    return None if value is None else TopicId(value)


def uuid_bytes(value: UUID | None) -> bytes:
    return _NO_UUID if value is None else value.bytes


def read_length(buffer: Buffer, position: int, *, is_flexible: bool, is_short: bool) -> tuple[int, int]:
    """The length of a string, of bytes or of an array; -1 is null."""
    if is_flexible:
        length, position = read_uvarint(buffer, position)
        return length - 1, position
    if is_short:
        return _SHORT.unpack_from(buffer, position)[0], position + 2
    return _INT.unpack_from(buffer, position)[0], position + 4


def read_count(buffer: Buffer, position: int, *, is_flexible: bool) -> tuple[int, int]:
    """The number of items of an array, which is not null here. Every item takes a byte or more, so a number beyond the
    bytes left is a lie."""
    if is_flexible:
        count, position = read_uvarint(buffer, position)
        count -= 1
    else:
        (count,) = _INT.unpack_from(buffer, position)
        position += 4
    if count < 0 or count > len(buffer) - position:
        raise CorruptData(f"an array of {count} items was announced {len(buffer) - position} bytes before the end")
    return count, position


def length_bytes(length: int, *, is_flexible: bool, is_short: bool) -> bytes:
    """The length as it is written; -1 is null."""
    if is_flexible:
        return uvarint(length + 1)
    return _SHORT.pack(length) if is_short else _INT.pack(length)


def take(buffer: Buffer, position: int, size: int) -> Buffer:
    """buffer[position:position + size], all of it or CorruptData."""
    if size < 0 or position + size > len(buffer):
        raise CorruptData(f"{size} bytes were announced at byte {position}, {len(buffer) - position} are left")
    return buffer[position : position + size]


def read_string(buffer: Buffer, position: int, *, is_flexible: bool) -> tuple[str | None, int]:
    return read_compact_string(buffer, position) if is_flexible else read_short_string(buffer, position)


def read_compact_string(buffer: Buffer, position: int) -> tuple[str | None, int]:
    """A string of the flexible versions, as clients send it."""
    length = buffer[position] - 1
    position += 1
    if length >= 0x7F:
        length, position = read_uvarint(buffer, position - 1)
        length -= 1
        if length > STRING_SIZE_MAX:
            raise _too_long(length)
    if length < 0:
        return None, position
    return str(take(buffer, position, length), "utf-8"), position + length


def _too_long(length: int) -> CorruptData:
    return CorruptData(f"a string of {length} bytes was announced, none has more than {STRING_SIZE_MAX}")


def read_short_string(buffer: Buffer, position: int) -> tuple[str | None, int]:
    """A string of the versions before those."""
    (length,) = _SHORT.unpack_from(buffer, position)
    position += 2
    if length == -1:
        return None, position
    return str(take(buffer, position, length), "utf-8"), position + length


def read_topic(
    buffer: Buffer, position: int, *, has_ids: bool, is_flexible: bool
) -> tuple[str | None, TopicId | None, int]:
    """The topic of an item of a request: its name, or its id in versions that have ids (KIP-516); the other is None."""
    if has_ids:
        return None, topic_id_from(bytes(buffer[position : position + 16])), position + 16
    name, position = read_string(buffer, position, is_flexible=is_flexible)
    if name is None:
        raise CorruptData("a topic has null for its name")
    return name, None, position


def string_bytes(value: str | None, *, is_flexible: bool) -> bytes:
    if value is None:
        return length_bytes(-1, is_flexible=is_flexible, is_short=True)
    encoded = value.encode()
    return length_bytes(len(encoded), is_flexible=is_flexible, is_short=True) + encoded


def from_wire(kafka_type: str) -> Callable[[object], object] | None:
    """What turns the number of a fixed-size type into kio's value; None where the number is the value."""
    return _FROM_WIRE.get(kafka_type)


def to_wire(kafka_type: str, *, is_nullable: bool) -> Callable[[object], object] | None:
    if kafka_type == "datetime_i64" and not is_nullable:
        return _datetime_to_wire
    return _TO_WIRE.get(kafka_type)


def sized_reader(kafka_type: str, *, is_flexible: bool, is_nullable: bool, is_of_client: bool = False) -> Reader:
    """A reader of `string`, `bytes` or `records`. Bytes are copied out: a value outlives the receive buffer.

    Strings of clients are bounded by `STRING_SIZE_MAX`.
    """
    is_text = kafka_type == "string"
    is_bounded = is_text and is_of_client

    def read(buffer: Buffer, position: int) -> tuple[object, int]:
        length, position = read_length(buffer, position, is_flexible=is_flexible, is_short=is_text)
        if length == -1 and is_nullable:
            return None, position
        if is_bounded and length > STRING_SIZE_MAX:
            raise _too_long(length)
        raw = take(buffer, position, length)
        return (str(raw, "utf-8") if is_text else bytes(raw)), position + length

    return read


def sized_writer(kafka_type: str, *, is_flexible: bool, is_nullable: bool) -> Writer:
    """A writer of `string`, `bytes` or `records`. None where the version has no null is written as empty."""
    is_text = kafka_type == "string"

    def write(out: bytearray, value: object) -> None:
        if value is None and is_nullable:
            out += length_bytes(-1, is_flexible=is_flexible, is_short=is_text)
            return
        encoded: bytes | bytearray | memoryview = b""
        if isinstance(value, str):
            encoded = value.encode()
        elif value is not None:
            assert isinstance(value, bytes | bytearray | memoryview)
            encoded = value
        out += length_bytes(len(encoded), is_flexible=is_flexible, is_short=is_text)
        out += encoded

    return write


def array_reader(item: Reader, *, is_flexible: bool, is_nullable: bool) -> Reader:
    """A reader of arrays. Every item takes a byte or more, so a length beyond the bytes left is a lie."""

    def read(buffer: Buffer, position: int) -> tuple[object, int]:
        length, position = read_length(buffer, position, is_flexible=is_flexible, is_short=False)
        if length == -1 and is_nullable:
            return None, position
        if length < 0 or length > len(buffer) - position:
            raise CorruptData(f"an array of {length} items was announced {len(buffer) - position} bytes before the end")
        items: list[object] = []
        for _ in range(length):
            value, position = item(buffer, position)
            items.append(value)
        return tuple(items), position

    return read


def array_writer(item: Writer, *, is_flexible: bool, is_nullable: bool) -> Writer:
    def write(out: bytearray, value: object) -> None:
        if value is None and is_nullable:
            out += length_bytes(-1, is_flexible=is_flexible, is_short=False)
            return
        items = () if value is None else value
        assert isinstance(items, Sequence)
        out += length_bytes(len(items), is_flexible=is_flexible, is_short=False)
        for one in items:
            item(out, one)

    return write


def fixed_reader(kafka_type: str) -> Reader:
    layout = Struct(">" + FIXED[kafka_type])
    convert = from_wire(kafka_type)

    def read(buffer: Buffer, position: int) -> tuple[object, int]:
        (value,) = layout.unpack_from(buffer, position)
        return (value if convert is None else convert(value)), position + layout.size

    return read


def fixed_writer(kafka_type: str, *, is_nullable: bool) -> Writer:
    layout = Struct(">" + FIXED[kafka_type])
    convert = to_wire(kafka_type, is_nullable=is_nullable)

    def write(out: bytearray, value: object) -> None:
        out += layout.pack(value if convert is None else convert(value))

    return write


def _error_code_from_wire(value: object) -> object:
    # A number that this version of Kafka does not know reads as UNKNOWN_SERVER_ERROR, as in Kafka's own clients.
    return _KIO_ERROR_CODES.get(value, KioErrorCode.unknown_server_error)


def _timedelta_from_wire(value: object) -> object:
    assert isinstance(value, int)
    return timedelta(milliseconds=value)


def _datetime_from_wire(value: object) -> object:
    assert isinstance(value, int)
    return None if value == -1 else _EPOCH + timedelta(milliseconds=value)


def _uuid_from_wire(value: object) -> object:
    assert isinstance(value, bytes)
    return uuid_from(value)


def _milliseconds(value: object) -> object:
    assert isinstance(value, timedelta)
    return value // _MILLISECOND


def _datetime_to_wire(value: object) -> object:
    assert value is None or isinstance(value, datetime)
    return -1 if value is None else (value - _EPOCH) // _MILLISECOND


def _uuid_to_wire(value: object) -> object:
    assert value is None or isinstance(value, UUID)
    return uuid_bytes(value)


_KIO_ERROR_CODES: dict[object, KioErrorCode] = {int(code): code for code in KioErrorCode}
_FROM_WIRE: dict[str, Callable[[object], object]] = {
    "error_code": _error_code_from_wire,
    "timedelta_i32": _timedelta_from_wire,
    "timedelta_i64": _timedelta_from_wire,
    "datetime_i64": _datetime_from_wire,
    "uuid": _uuid_from_wire,
}
_TO_WIRE: dict[str, Callable[[object], object]] = {
    "timedelta_i32": _milliseconds,
    "timedelta_i64": _milliseconds,
    "datetime_i64": _datetime_to_wire,
    "uuid": _uuid_to_wire,
}
