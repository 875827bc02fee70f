"""A segment in the tier: two objects, the log as it is on disk, and everything else in one.

    <topic>/<topic id>/<partition>/<base offset>-<segment id>.log
    <topic>/<topic id>/<partition>/<base offset>-<segment id>.indexes

The second is written first, so that a segment with its log is whole:

    offset  size  field
    0       4     "PTI1"
    4       4     CRC-32C of what follows
    8       1     number of parts
            …     for each: length of its name 1, name, length of its content 4, content

Its parts are files of the segment under the suffixes of `file_names.py`, and `leader-epoch-checkpoint` up to its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from struct import error as struct_error
from typing import Final
from uuid import UUID

from ....protocol.checksum import crc32c
from ....protocol.errors import CorruptData
from ....protocol.ids import TopicId

_MAGIC: Final = b"PTI1"
_HEADER: Final = Struct(">4sI")
_LENGTH: Final = Struct(">I")


def partition_prefix(topic: str, topic_id: TopicId, index: int) -> str:
    return f"{topic}/{topic_id}/{index}/"


def log_key(topic: str, topic_id: TopicId, index: int, base_offset: int, segment_id: UUID) -> str:
    return f"{partition_prefix(topic, topic_id, index)}{base_offset:020d}-{segment_id}.log"


def indexes_key(topic: str, topic_id: TopicId, index: int, base_offset: int, segment_id: UUID) -> str:
    return f"{partition_prefix(topic, topic_id, index)}{base_offset:020d}-{segment_id}.indexes"


def pack_parts(parts: Mapping[str, bytes]) -> bytes:
    body = bytearray((len(parts),))
    for name, content in parts.items():
        encoded = name.encode()
        body += bytes((len(encoded),)) + encoded + _LENGTH.pack(len(content)) + content
    return _HEADER.pack(_MAGIC, crc32c(body)) + body


def unpack_parts(data: bytes, key: str) -> Mapping[str, bytes]:
    """CorruptData when it is not what `pack_parts` made."""
    try:
        magic, crc = _HEADER.unpack_from(data)
        if magic != _MAGIC or crc32c(memoryview(data)[_HEADER.size :]) != crc:
            raise CorruptData(f"{key} is not intact")
        position = _HEADER.size + 1
        parts = {}
        for _ in range(data[_HEADER.size]):
            end = position + 1 + data[position]
            name = data[position + 1 : end].decode()
            (length,) = _LENGTH.unpack_from(data, end)
            position = end + _LENGTH.size + length
            parts[name] = data[end + _LENGTH.size : position]
    except (struct_error, IndexError, UnicodeDecodeError):
        raise CorruptData(f"{key} is cut off") from None
    return parts
