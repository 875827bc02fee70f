"""What is before a value in the wire format of schema registries.

    0      1               5
    | 0x00 | schema id (4) | message indexes, Protobuf only | value …

Message indexes lead from the schema's file to the message, from outside in: their number, then each, all zigzag
variable-length integers. A single zero byte stands for the list [0].
"""

from dataclasses import dataclass
from typing import Final

from .errors import BadRecordError

_MAGIC: Final = 0
_HEADER_SIZE: Final = 5
_MAX_DEPTH: Final = 32
"""Of nested messages: more is not a list of indexes but other bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Framed:
    """`body_start` is the position of the first byte of the value proper."""

    schema_id: int
    body_start: int


def parse_frame(data: bytes) -> Framed:
    """Raises BadRecordError."""
    if len(data) < _HEADER_SIZE:
        raise BadRecordError(f"the value has {len(data)} bytes, and the wire format starts with {_HEADER_SIZE}")
    if data[0] != _MAGIC:
        raise BadRecordError(f"the value starts with byte 0x{data[0]:02x}, and the wire format with 0x00")
    return Framed(schema_id=int.from_bytes(data[1:_HEADER_SIZE], "big"), body_start=_HEADER_SIZE)


def parse_message_indexes(data: bytes, position: int) -> tuple[tuple[int, ...], int]:
    """The indexes, and the position after them. Raises BadRecordError."""
    count, position = _zigzag(data, position)
    if count == 0:
        return (0,), position
    if not 0 < count <= _MAX_DEPTH:
        raise BadRecordError(f"the value has {count} message indexes, and 1 to {_MAX_DEPTH} can be")
    indexes = []
    for _ in range(count):
        index, position = _zigzag(data, position)
        indexes.append(index)
    return tuple(indexes), position


def _zigzag(data: bytes, position: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 35, 7):
        if position >= len(data):
            raise BadRecordError("the value ends within its message indexes")
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position
    raise BadRecordError("a message index of the value has more than 5 bytes")
