"""Committed offsets: where each group has come to in each partition, and what transactions are about to commit.

An offset that a transaction commits is pending until the transaction ends: then it takes its place if it is newer, by
its place in the log, than what is there (KIP-98).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple
from uuid import UUID

from ...protocol.batches import NO_TIMESTAMP
from .classic.records import OffsetCommitValue


class CommittedOffset(NamedTuple):
    """What the record says, field by field, and where it is."""

    offset: int
    leader_epoch: int
    """Of the record before it; -1 when the client did not say."""
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    topic_id: UUID | None
    record_offset: int
    """Where in `__consumer_offsets` it was committed."""

    @classmethod
    def from_record(cls, value: OffsetCommitValue, record_offset: int) -> CommittedOffset:
        # Field by field takes three times as long, and there is one for every offset of every commit.
        return cls._make((*value, record_offset))

    def is_of(self, topic_id: UUID | None) -> bool:
        """Whether it was committed for that topic, as far as one can tell: ids are known since Kafka 4.1."""
        return topic_id is None or self.topic_id is None or topic_id == self.topic_id

    def is_expired(self, base_timestamp_ms: int, now_ms: int, retention_ms: int) -> bool:
        if self.expire_timestamp_ms != NO_TIMESTAMP:
            return now_ms >= self.expire_timestamp_ms
        return now_ms - base_timestamp_ms >= retention_ms


class _Offsets:
    """By group, topic and partition."""

    def __init__(self) -> None:
        self.by_group: dict[str, dict[str, dict[int, CommittedOffset]]] = {}

    def find(self, group: str, topic: str, partition: int) -> CommittedOffset | None:
        return self.by_group.get(group, {}).get(topic, {}).get(partition)

    def put(self, group: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        self.by_group.setdefault(group, {}).setdefault(topic, {})[partition] = committed

    def put_topic(self, group: str, topic: str, committed: Mapping[int, CommittedOffset]) -> None:
        self.by_group.setdefault(group, {}).setdefault(topic, {}).update(committed)

    def remove(self, group: str, topic: str, partition: int) -> None:
        topics = self.by_group.get(group, {})
        partitions = topics.get(topic)
        if partitions is not None and partitions.pop(partition, None) is not None and not partitions:
            del topics[topic]
            if not topics:
                del self.by_group[group]

    def items(self) -> Iterator[tuple[str, str, int, CommittedOffset]]:
        for group, topics in self.by_group.items():
            for topic, partitions in topics.items():
                for partition, committed in partitions.items():
                    yield group, topic, partition, committed


class OffsetStore:
    def __init__(self) -> None:
        self._committed = _Offsets()
        # By producer id.
        self._pending: dict[int, _Offsets] = {}
        self._open_transactions: dict[str, set[int]] = {}

    def topics_of(self, group: str) -> dict[str, dict[int, CommittedOffset]]:
        """Not to be changed."""
        return self._committed.by_group.get(group, {})

    def find(self, group: str, topic: str, partition: int) -> CommittedOffset | None:
        return self._committed.find(group, topic, partition)

    def is_pending(self, group: str, topic: str, partition: int) -> bool:
        """Whether a transaction that is open has committed an offset there."""
        return any(
            self._pending[producer_id].find(group, topic, partition) is not None
            for producer_id in self._open_transactions.get(group, ())
        )

    def has_open_transactions(self, group: str) -> bool:
        return group in self._open_transactions

    def partitions_of(self, group: str) -> set[tuple[str, int]]:
        """All that the group has an offset of, pending ones too."""
        of_group = {
            (topic, partition) for topic, partitions in self.topics_of(group).items() for partition in partitions
        }
        for producer_id in self._open_transactions.get(group, ()):
            for topic, partitions in self._pending[producer_id].by_group.get(group, {}).items():
                of_group.update((topic, partition) for partition in partitions)
        return of_group

    def partitions_of_topic(self, topic: str, topic_id: UUID) -> list[tuple[str, int]]:
        """Group and partition of every offset of the topic, pending ones too."""
        found = {
            (group, partition)
            for store in (self._committed, *self._pending.values())
            for group, topics in store.by_group.items()
            for partition, committed in topics.get(topic, {}).items()
            if committed.is_of(topic_id)
        }
        return sorted(found)

    def put(self, group: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        self._committed.put(group, topic, partition, committed)

    def put_topic(self, group: str, topic: str, committed: Mapping[int, CommittedOffset]) -> None:
        """By partition."""
        self._committed.put_topic(group, topic, committed)

    def put_pending(self, producer_id: int, group: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        self.put_pending_topic(producer_id, group, topic, {partition: committed})

    def put_pending_topic(
        self, producer_id: int, group: str, topic: str, committed: Mapping[int, CommittedOffset]
    ) -> None:
        """By partition."""
        self._pending.setdefault(producer_id, _Offsets()).put_topic(group, topic, committed)
        self._open_transactions.setdefault(group, set()).add(producer_id)

    def remove(self, group: str, topic: str, partition: int) -> None:
        """Pending ones too."""
        self._committed.remove(group, topic, partition)
        for producer_id in self._open_transactions.get(group, ()):
            self._pending[producer_id].remove(group, topic, partition)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """No error if the producer has nothing pending here."""
        pending = self._pending.pop(producer_id, None)
        if pending is None:
            return
        for group in [group for group, open_ids in self._open_transactions.items() if producer_id in open_ids]:
            self._open_transactions[group].discard(producer_id)
            if not self._open_transactions[group]:
                del self._open_transactions[group]
        if is_commit:
            for group, topic, partition, committed in pending.items():
                known = self._committed.find(group, topic, partition)
                if known is None or committed.record_offset > known.record_offset:
                    self._committed.put(group, topic, partition, committed)
