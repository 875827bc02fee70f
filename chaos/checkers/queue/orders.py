"""The order of each key's values by their offsets, with gaps left out: transactions' markers take offsets, too.

What is provably in a log makes its order: sends that were acknowledged or of which a poll returned something, and
whatever polls returned. Source: jepsen.tests.kafka, version-orders.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from .columns import NONE, QueueColumns

# Of values that a reader left out, this many are named.
_NAMED: Final = 8


@dataclass(slots=True)
class KeyOrder:
    """The log of one key: `offsets` ascending, and at the same index the value that lies there."""

    offsets: array[int]
    values: array[int]
    # Where different values were seen at one offset.
    conflicts: dict[int, list[int]]


class Orders:
    """Orders by key, and the place of every value in its own: `index_of`, NONE where no offset of it is known."""

    def __init__(self, columns: QueueColumns) -> None:
        self._columns = columns
        self.index_of = array("q", [NONE]) * len(columns.key_of)
        self.keys: list[KeyOrder] = []
        for key in range(len(columns.keys)):
            self.keys.append(self._order(key))

    def index_at(self, value: int, offset: int) -> int:
        """The place of a value that was read at `offset`; NONE where that is not known."""
        if offset == NONE or self._columns.offset_of[value] == offset:
            return self.index_of[value]
        return bisect_left(self.keys[self._columns.key_of[value]].offsets, offset)

    def between(self, key: int, before: int, after: int) -> Sequence[int]:
        """Some of the offsets between two places."""
        return self.keys[key].offsets[before + 1 : min(after, before + 1 + _NAMED)].tolist()

    def neighbours(self) -> Iterator[tuple[int, int]]:
        """Values that follow each other in a log, as pairs."""
        for order in self.keys:
            previous = NONE
            for value in order.values:
                if previous != NONE:
                    yield previous, value
                previous = value

    def _order(self, key: int) -> KeyOrder:
        offset_of, more = self._columns.offset_of, self._columns.more_offsets
        placed = [value for value in self._columns.numbers[key].values() if offset_of[value] != NONE]
        placed.sort(key=offset_of.__getitem__)
        if not more:
            pairs: Iterator[tuple[int, int]] = ((offset_of[value], value) for value in placed)
        else:
            several = [(offset, value) for value in placed for offset in more.get(value, (offset_of[value],))]
            pairs = iter(sorted(several))
        order = KeyOrder(array("q"), array("q"), {})
        offsets, values, index_of = order.offsets, order.values, self.index_of
        last = NONE
        for offset, value in pairs:
            if offset == last:
                order.conflicts.setdefault(offset, [values[-1]]).append(value)
            else:
                offsets.append(offset)
                values.append(value)
                last = offset
            if index_of[value] == NONE or offset == offset_of[value]:
                index_of[value] = len(values) - 1
        return order
