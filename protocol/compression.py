"""The five compression types of record batches. Only who must open a batch comes here: brokers store what was sent.

Levels are those of Kafka's `compression.*.level` (KIP-390), whose defaults are those used without one.

Snappy is written in the framing of the Java library (xerial), as all Kafka clients do; it is read with and without.
"""

from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from typing import Final, TypeAlias

import cramjam

from .errors import CorruptData, TooLarge

Buffer: TypeAlias = bytes | bytearray | memoryview


class Compression(IntEnum):
    """Bits 0 to 2 of a batch's attributes. The names in lower case are those of the setting `compression.type`."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_XERIAL_MAGIC: Final = b"\x82SNAPPY\0"
# The magic, then version 1 and lowest compatible version 1.
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\0\0\0\1\0\0\0\1"
# What the Java library puts into one block; readers take any size.
_XERIAL_BLOCK_SIZE: Final = 32 * 1024
_INT = Struct(">i")
_FIRST_GUESS_FACTOR: Final = 8
_LEAST_GUESS: Final = 64 * 1024
_NO_ROOM: Final = "failed to write whole buffer"

# Kafka's "the default of the library" for gzip.
GZIP_DEFAULT_LEVEL: Final = -1
_GZIP_LIBRARY_LEVEL: Final = 6
LZ4_DEFAULT_LEVEL: Final = 9
ZSTD_DEFAULT_LEVEL: Final = 3
# Of the library: its fast compressor, and the first of those that compress better.
_LZ4_FAST: Final = 1
_LZ4_HIGH_MIN: Final = 3


def compress(compression: int, data: Buffer, level: int | None = None) -> bytes:
    """`data` as the records part of a batch with that compression, at a level in Kafka's range for it.

    lz4 as in Kafka: 9 is the fast compressor, every other level one that compresses better; those beyond 12 are 12.
    """
    match compression:
        case Compression.NONE:
            return bytes(data)
        case Compression.GZIP:
            if level is None or level == GZIP_DEFAULT_LEVEL:
                level = _GZIP_LIBRARY_LEVEL
            return bytes(cramjam.gzip.compress(data, level=level))
        case Compression.SNAPPY:
            return _compress_xerial(memoryview(data))
        case Compression.LZ4:
            is_fast = level is None or level == LZ4_DEFAULT_LEVEL
            # Kafka's Java reader refuses frames whose blocks lean on each other, which is cramjam's default.
            frame = cramjam.lz4.Compressor(
                level=_LZ4_FAST if is_fast else max(level or 0, _LZ4_HIGH_MIN), block_linked=False
            )
            frame.compress(bytes(data))
            return bytes(frame.finish())
        case Compression.ZSTD:
            return bytes(cramjam.zstd.compress(data, level=ZSTD_DEFAULT_LEVEL if level is None else level))
        case _:
            raise ValueError(f"there is no compression {compression}")


def decompress(compression: int, data: Buffer, max_size: int) -> Buffer:
    """The records of a batch, uncompressed.

    CorruptData when they are damaged, TooLarge when they take more than `max_size` bytes, which bounds what a small
    batch can become.
    """
    match compression:
        case Compression.NONE:
            return data
        case Compression.GZIP:
            return _decompress_bounded(cramjam.gzip.decompress_into, data, max_size)
        case Compression.SNAPPY:
            return _decompress_snappy(memoryview(data), max_size)
        case Compression.LZ4:
            return _decompress_bounded(cramjam.lz4.decompress_into, data, max_size)
        case Compression.ZSTD:
            return _decompress_bounded(cramjam.zstd.decompress_into, data, max_size)
        case _:
            raise CorruptData(f"there is no compression {compression}")


def _decompress_bounded(decompress_into: Callable[[Buffer, bytearray], int], data: Buffer, max_size: int) -> memoryview:
    size = min(max(len(data) * _FIRST_GUESS_FACTOR, _LEAST_GUESS), max_size)
    while True:
        out = bytearray(size)
        try:
            used = decompress_into(data, out)
        except cramjam.DecompressionError as error:
            if _NO_ROOM not in str(error):
                raise CorruptData(f"compressed records of {len(data)} bytes could not be read: {error}") from None
            if size == max_size:
                raise TooLarge(f"records of {len(data)} bytes take more than {max_size} uncompressed") from None
            size = min(size * 4, max_size)
            continue
        return memoryview(out)[:used]


def _compress_xerial(data: memoryview) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_SIZE]))
        parts.append(_INT.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(data: memoryview, max_size: int) -> bytes:
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _decompress_snappy_block(data, max_size)
    parts = []
    left = max_size
    position = len(_XERIAL_HEADER)
    while position < len(data):
        if len(data) - position < _INT.size:
            raise CorruptData("a snappy block's size is cut off")
        (size,) = _INT.unpack_from(data, position)
        position += _INT.size
        if size < 0 or size > len(data) - position:
            raise CorruptData(f"a snappy block of {size} bytes was announced, {len(data) - position} are left")
        block = _decompress_snappy_block(data[position : position + size], left)
        parts.append(block)
        left -= len(block)
        position += size
    return b"".join(parts)


def _decompress_snappy_block(data: memoryview, max_size: int) -> bytes:
    try:
        size = cramjam.snappy.decompress_raw_len(data)
        if size > max_size:
            raise TooLarge(f"a snappy block takes {size} bytes uncompressed, {max_size} are allowed")
        return bytes(cramjam.snappy.decompress_raw(data))
    except cramjam.DecompressionError as error:
        raise CorruptData(f"a snappy block of {len(data)} bytes could not be read: {error}") from None
