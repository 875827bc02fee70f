"""The indexes of a segment in the tier, in memory: offsets and timestamps to positions, aborted transactions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Final

from ...protocol.errors import CorruptData
from ..log.offset_index import ENTRY as OFFSET_ENTRY
from ..log.rules.aborted_transaction import AbortedTransaction
from ..log.rules.file_names import OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX
from ..log.time_index import ENTRY as TIME_ENTRY
from ..log.transaction_index import decode_transactions

_OBJECT_BYTES: Final = 36
"""Of an entry in the lists, beside its bytes."""


class TieredIndexes:
    __slots__ = ("_base_offset", "_offsets", "_positions", "_time_offsets", "_timestamps", "aborted", "memory_bytes")

    def __init__(self, parts: Mapping[str, bytes], base_offset: int, key: str) -> None:
        """CorruptData when a part is not an index."""
        offsets, times = parts.get(OFFSET_INDEX, b""), parts.get(TIME_INDEX, b"")
        if len(offsets) % OFFSET_ENTRY.size or len(times) % TIME_ENTRY.size:
            raise CorruptData(f"{key} has an index that is cut off")
        self._base_offset = base_offset
        entries = list(OFFSET_ENTRY.iter_unpack(offsets))
        self._offsets = [entry[0] for entry in entries]
        self._positions = [entry[1] for entry in entries]
        stamps = list(TIME_ENTRY.iter_unpack(times))
        self._timestamps = [entry[0] for entry in stamps]
        self._time_offsets = [entry[1] for entry in stamps]
        self.aborted: Sequence[AbortedTransaction] = decode_transactions(parts.get(TRANSACTION_INDEX, b""), key)
        self.memory_bytes = _OBJECT_BYTES * 2 * (len(entries) + len(stamps) + 4 * len(self.aborted) + 16)

    def position_of(self, offset: int) -> int:
        """A position at or before the batch with `offset`, where a batch begins."""
        slot = bisect_right(self._offsets, offset - self._base_offset) - 1
        return 0 if slot < 0 else self._positions[slot]

    def last_position_before(self, position: int) -> int:
        """The last one below `position` where a batch is known to begin."""
        slot = bisect_left(self._positions, position) - 1
        return 0 if slot < 0 else self._positions[slot]

    def offset_before(self, timestamp_ms: int) -> int:
        """An offset before which every record has a smaller timestamp."""
        slot = bisect_left(self._timestamps, timestamp_ms) - 1
        return self._base_offset + (0 if slot < 0 else self._time_offsets[slot])
