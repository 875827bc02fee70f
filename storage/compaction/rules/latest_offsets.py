"""The last offset of each key in the dirty part of a log, in bounded memory. Kafka: `OffsetMap`, `SkimpyOffsetMap`.

Long keys are known by their BLAKE2b hash of 256 bits. Shorter ones are kept as they are, so that none is taken for a
hash.

Of a batch that was taken in, the offsets in the map alone say which records are the latest of their keys: most batches
of a dirty part have few or none, and their records need not be looked at a second time.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from hashlib import blake2b
from operator import le
from typing import Final

from ....protocol.batches import BatchHeader
from .record_table import RecordTable

_HASH_BYTES: Final = 32
# What Python takes for a key and an offset, beside the bytes of the key; the offset is sorted once.
_ENTRY_BYTES: Final = sys.getsizeof(b"") + sys.getsizeof(1 << 40) + 8


class LatestOffsets:
    __slots__ = ("_key_bytes", "_offsets", "_plain", "_sorted", "end_offset", "max_bytes")

    def __init__(self, start_offset: int, *, max_bytes: int) -> None:
        """Of records from `start_offset` on, where the dirty part begins.

        It is full when keys and offsets take more than about `max_bytes`; a batch that began before that is taken in
        as a whole.
        """
        self._offsets: dict[bytes, int] = {}
        self._key_bytes = 0
        # Where batches of which all records were taken in, and none is a tombstone, begin and end, in turn: one whose
        # offsets go on where the last one's end makes that one's range longer.
        self._plain = array("q")
        self._sorted: list[int] | None = None
        self.max_bytes = max_bytes
        self.end_offset = start_offset
        """What lies below is taken in."""

    @property
    def key_count(self) -> int:
        return len(self._offsets)

    @property
    def size_bytes(self) -> int:
        entry_bytes = len(self._offsets) * _ENTRY_BYTES + self._key_bytes
        return sys.getsizeof(self._offsets) + entry_bytes + sys.getsizeof(self._plain)

    @property
    def is_full(self) -> bool:
        return self.size_bytes > self.max_bytes

    def add(self, table: RecordTable, start_offset: int) -> None:
        """Take in the records of a batch, from `start_offset` on. Batches come in offset order."""
        self._sorted = None
        header = table.header
        if header.base_offset >= start_offset and not table.tombstones:
            self._note_plain(header.base_offset, header.next_offset)
        if not table.keys:
            return
        offsets = self._offsets
        count = len(offsets)
        names, longest = _names(table)
        if names and table.offsets[0] >= start_offset:
            offsets.update(zip(names, table.offsets, strict=True))
        else:
            for key, offset in zip(table.keys, table.offsets, strict=True):
                if key is not None and offset >= start_offset:
                    offsets[_name(key)] = offset
        # How long those of the new ones are does not matter for a bound.
        self._key_bytes += (len(offsets) - count) * longest

    def left_of(self, header: BatchHeader) -> Sequence[int] | None:
        """The offsets of its records that are the latest of their keys, in order. None when the map alone cannot say
        that, or a tombstone is among its records: then `superseded` can."""
        base_offset, next_offset = header.base_offset, header.next_offset
        slot = bisect_right(self._plain, base_offset)
        if slot % 2 == 0 or next_offset > self._plain[slot]:
            return None
        if self._sorted is None:
            self._sorted = sorted(self._offsets.values())
        first = bisect_left(self._sorted, base_offset)
        return self._sorted[first : bisect_left(self._sorted, next_offset, first)]

    def superseded(self, table: RecordTable) -> list[int]:
        """The numbers of the records whose key has a later one, or that have no key."""
        last = self._offsets.get
        names, _ = _names(table)
        if names:
            is_latest = map(le, map(last, names, table.offsets), table.offsets)
            return [number for number, is_kept in enumerate(is_latest) if not is_kept]
        return [
            number
            for number, (key, offset) in enumerate(zip(table.keys, table.offsets, strict=True))
            if key is None or last(_name(key), offset) > offset
        ]

    def _note_plain(self, base_offset: int, next_offset: int) -> None:
        plain = self._plain
        if plain and plain[-1] == base_offset:
            plain[-1] = next_offset
        else:
            plain.extend((base_offset, next_offset))


def _names(table: RecordTable) -> tuple[list[bytes], int]:
    """What the key of each record goes by, and how long the longest is; none when one has no key."""
    keys = [key for key in table.keys if key is not None]
    longest = max(map(len, keys), default=0)
    if len(keys) < len(table.keys):
        return [], min(longest, _HASH_BYTES)
    if longest < _HASH_BYTES:
        return keys, longest
    return list(map(_name, keys)), _HASH_BYTES


def _name(key: bytes) -> bytes:
    return key if len(key) < _HASH_BYTES else blake2b(key, digest_size=_HASH_BYTES).digest()
