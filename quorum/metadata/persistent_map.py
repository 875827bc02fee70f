"""An immutable mapping of which a changed copy costs a fraction of its size.

Entries are spread over a fixed number of small dictionaries by hash. A changed copy shares every dictionary that holds
no changed key, so one change among 10,000 entries copies a table of 256 references and one dictionary of about 40
entries. Iteration order is that of the hashes, which is the same in every process only when `PYTHONHASHSEED` is fixed.
"""

from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

# Two copies are made for a change: the table and one bucket. They are of equal size at 256² = 65,536 entries, and at
# ten times as many a change still costs only some microseconds.
_BUCKETS = 256
_MASK = _BUCKETS - 1


class PersistentMap(Mapping[K, V], Generic[K, V]):
    """A mapping that never changes; `evolve` makes a changed one."""

    __slots__ = ("_buckets", "_size")

    def __init__(self, entries: Mapping[K, V] | None = None) -> None:
        self._buckets: tuple[dict[K, V], ...] = ({},) * _BUCKETS
        self._size = 0
        if entries:
            filled = self.evolve(put=entries)
            self._buckets = filled._buckets
            self._size = filled._size

    def evolve(self, *, put: Mapping[K, V] | None = None, remove: Collection[K] = ()) -> "PersistentMap[K, V]":
        """Return a copy without the keys of `remove` and then with the entries of `put`;

        Keys that are not there may be removed.
        """
        if not put and not remove:
            return self
        buckets = list(self._buckets)
        copied: set[int] = set()
        for key in remove:
            index = hash(key) & _MASK
            if index not in copied:
                copied.add(index)
                buckets[index] = buckets[index].copy()
            buckets[index].pop(key, None)
        for key, value in (put or {}).items():
            index = hash(key) & _MASK
            if index not in copied:
                copied.add(index)
                buckets[index] = buckets[index].copy()
            buckets[index][key] = value
        result: PersistentMap[K, V] = PersistentMap.__new__(PersistentMap)
        result._buckets = tuple(buckets)
        result._size = self._size + sum(len(buckets[index]) - len(self._buckets[index]) for index in copied)
        return result

    def __getitem__(self, key: K) -> V:
        return self._buckets[hash(key) & _MASK][key]

    def __contains__(self, key: object) -> bool:
        return key in self._buckets[hash(key) & _MASK]

    def __iter__(self) -> Iterator[K]:
        for bucket in self._buckets:
            yield from bucket

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"PersistentMap({dict(self)!r})"
