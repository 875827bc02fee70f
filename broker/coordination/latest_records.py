"""Which records of a coordinator's log its state machine has to replay: not those that a later record makes needless.

Commits of the same few offsets are most of `__consumer_offsets`, and states of the same few transactional ids most of
`__transaction_state`, until compaction comes to them. What compaction would remove need not be decoded either. Kafka
replays them all (`CoordinatorLoaderImpl`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import merge
from operator import itemgetter
from typing import NamedTuple

from ...protocol.batches import NO_PRODUCER_ID


class LoadedRecord(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None
    producer_id: int
    """Of the transaction, or NO_PRODUCER_ID."""


class TransactionEnd(NamedTuple):
    offset: int
    producer_id: int
    is_commit: bool


class LatestRecords:
    """Records of a log, added in their order."""

    def __init__(self, is_superseded: Callable[[bytes], bool]) -> None:
        """`is_superseded`: whether the latest value of a key is all that counts of those written outside transactions.

        A tombstone may mean more than that, so each one is kept.
        """
        self._is_superseded = is_superseded
        # Offset, key and value.
        self._latest: dict[bytes, tuple[int, bytes, bytes | None]] = {}
        self._others: list[LoadedRecord | TransactionEnd] = []

    def __len__(self) -> int:
        """How many are to be replayed so far."""
        return len(self._latest) + len(self._others)

    def add_values(self, records: list[tuple[int, bytes, bytes | None]]) -> None:
        """Records that are not transactional: offset, key and value."""
        latest = self._latest
        for record in records:
            offset, key, value = record
            if value is not None and (key in latest or self._is_superseded(key)):
                latest[key] = record
            else:
                self._others.append(LoadedRecord(offset, key, value, NO_PRODUCER_ID))

    def add(self, record: LoadedRecord | TransactionEnd) -> None:
        self._others.append(record)

    def take(self) -> Iterator[LoadedRecord | TransactionEnd]:
        """What is to be replayed, in its order; nothing of it is known here any more."""
        latest, others = self._latest, self._others
        self._latest, self._others = {}, []
        values = (LoadedRecord(offset, key, value, NO_PRODUCER_ID) for offset, key, value in sorted(latest.values()))
        return merge(values, others, key=itemgetter(0))
