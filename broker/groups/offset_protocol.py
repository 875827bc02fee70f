"""OffsetCommit, OffsetFetch, OffsetDelete and the expiration of offsets, for the groups of one coordinator.

Kafka: `OffsetMetadataManager`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

from ...protocol.errors import ErrorCode, KafkaError
from ...quorum.metadata.image import TopicImage
from ..coordination.effects import Effects
from ..coordination.ports import StateRecord, TransactionalStateLog, TransactionProducer
from .classic.group import ClassicGroup, ClassicState
from .classic.records import offset_commit_key, tombstone_of
from .consumer.consumer_groups import ConsumerGroups
from .consumer.group import ConsumerGroup
from .consumer.group_table import GroupTable
from .consumer.offset_access import check_commit, check_commit_in_transaction, check_fetch
from .group_counters import GroupCounters
from .offset_records import OffsetRecords
from .offset_store import CommittedOffset, OffsetStore

logger = logging.getLogger(__name__)

T = TypeVar("T")

UNKNOWN_OFFSET: Final = -1
TOMBSTONES_PER_BATCH: Final = 1_000
TOMBSTONE_KEYS_BYTES_MAX: Final = 512 * 1024
"""Of one batch: half of what `max.message.bytes` allows by default. Nothing but the protocol bounds a group's id."""


class Committer(NamedTuple):
    """The sender of a commit; `generation` -1 and no member id for a client outside the group."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int


class FetchedOffset(NamedTuple):
    error: ErrorCode
    offset: int = UNKNOWN_OFFSET
    leader_epoch: int = -1
    metadata: str = ""


class OffsetProtocol:
    def __init__(
        self,
        groups: GroupTable,
        offsets: OffsetStore,
        consumer: ConsumerGroups,
        log: TransactionalStateLog,
        effects: Effects,
        now_ms: Callable[[], int],
        *,
        retention_ms: int,
        counters: GroupCounters,
    ) -> None:
        """`now_ms` is the steady wall clock's, `retention_ms` is `offsets.retention.minutes`."""
        self._groups = groups
        self._offsets = offsets
        self._effects = effects
        self._consumer = consumer
        self._log = log
        self._now_ms = now_ms
        self._retention_ms = retention_ms
        self._counters = counters

    def commit(self, committer: Committer, records: OffsetRecords, *, knows_group_errors: bool) -> None:
        """Appends the records as one batch; raises KafkaError, and then nothing was.

        `knows_group_errors` is for clients of OffsetCommit 9 and later, who are told that there is no group.
        """
        group = self._groups.find(committer.group_id)
        consumer_group = self._groups.find_consumer(committer.group_id)
        if consumer_group is not None:
            check_commit(
                consumer_group,
                committer.member_id,
                committer.generation,
                records.known(),
                knows_member_epochs=knows_group_errors,
            )
        elif group is None:
            if committer.generation >= 0:
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND if knows_group_errors else ErrorCode.ILLEGAL_GENERATION)
        else:
            member = group.check_commit(committer.member_id, committer.instance_id, committer.generation)
            if member is not None and group.state is not ClassicState.COMPLETING_REBALANCE:
                group.expect_heartbeat(member)
        if records.accepted:
            first_offset = self._log.append_encoded(records.encoded)
            self._counters.offset_commits += records.encoded.record_count
            self._know(committer.group_id)
            for topic, committed in records.committed(first_offset):
                self._offsets.put_topic(committer.group_id, topic, committed)

    def commit_in_transaction(
        self, committer: Committer, records: OffsetRecords, producer: TransactionProducer
    ) -> None:
        """The same for what is to count when the producer's transaction commits (KIP-447)."""
        group = self._groups.find(committer.group_id)
        consumer_group = self._groups.find_consumer(committer.group_id)
        if consumer_group is not None:
            check_commit_in_transaction(
                consumer_group,
                committer.member_id,
                committer.instance_id,
                committer.generation,
                records.known(),
            )
        elif group is not None:
            group.check_commit(committer.member_id, committer.instance_id, committer.generation, is_transactional=True)
        elif committer.generation >= 0:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        if records.accepted:
            first_offset = self._log.append_in_transaction(records.encoded, producer)
            self._know(committer.group_id)
            for topic, committed in records.committed(first_offset):
                self._offsets.put_pending_topic(producer.producer_id, committer.group_id, topic, committed)

    def put_pending(
        self, producer_id: int, group_id: str, topic: str, partition: int, committed: CommittedOffset
    ) -> None:
        """Replays a transactional offset record; creates an empty (simple) group if needed."""
        self._know(group_id)
        self._offsets.put_pending(producer_id, group_id, topic, partition, committed)

    def put(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        """Replays an offset record; creates an empty (simple) group if needed."""
        self._know(group_id)
        self._offsets.put(group_id, topic, partition, committed)

    def _know(self, group_id: str) -> None:
        if not self._groups.is_known(group_id):
            self._groups.put(ClassicGroup(group_id, self._effects, now_ms=self._now_ms()))

    def committed_of(self, group_id: str) -> Mapping[str, Mapping[int, CommittedOffset]]:
        """Committed offsets of a group by topic and partition; they change as it commits."""
        return self._offsets.topics_of(group_id)

    def count_of(self, group_id: str) -> int:
        """Committed offsets of a group."""
        return sum(map(len, self._offsets.topics_of(group_id).values()))

    def check_fetcher(self, group_id: str, member_id: str | None, member_epoch: int) -> None:
        """Raises KafkaError: who fetches is no member of the group of the consumer protocol, or of another epoch."""
        group = self._groups.find_consumer(group_id)
        if group is not None:
            check_fetch(group, member_id, member_epoch)

    def fetch(
        self, group_id: str, topic: str, topic_id: UUID | None, partition: int, *, require_stable: bool
    ) -> FetchedOffset:
        """With `require_stable` a transaction that is open makes it UNSTABLE_OFFSET_COMMIT (KIP-447)."""
        if require_stable and self._offsets.is_pending(group_id, topic, partition):
            return FetchedOffset(ErrorCode.UNSTABLE_OFFSET_COMMIT)
        committed = self._offsets.find(group_id, topic, partition)
        if committed is None or not committed.is_of(topic_id):
            return FetchedOffset(ErrorCode.NONE)
        return FetchedOffset(ErrorCode.NONE, committed.offset, committed.leader_epoch, committed.metadata)

    def fetch_all(
        self, group_id: str, topics: Mapping[str, TopicImage], *, require_stable: bool
    ) -> Mapping[str, Mapping[int, FetchedOffset]]:
        """By topic and partition. `topics` are those that there are: what was committed for another of the same name is
        left out."""
        fetched: dict[str, Mapping[int, FetchedOffset]] = {}
        for name, partitions in self._offsets.topics_of(group_id).items():
            topic = topics.get(name)
            of_topic = {
                partition: self.fetch(group_id, name, committed.topic_id, partition, require_stable=require_stable)
                for partition, committed in partitions.items()
                if topic is None or committed.is_of(topic.topic_id)
            }
            if of_topic:
                fetched[name] = of_topic
        return fetched

    def delete(self, group_id: str, partitions: Sequence[tuple[str, int]]) -> list[ErrorCode]:
        """An error for each partition (KIP-496). Raises KafkaError, and then nothing was deleted."""
        group: ClassicGroup | ConsumerGroup | None = self._groups.find_consumer(group_id)
        if group is None:
            group = classic = self._groups.get(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
            if classic.state is not ClassicState.EMPTY and not classic.is_of_consumers:
                raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        errors = [
            ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.is_subscribed(topic) else ErrorCode.NONE
            for topic, _ in partitions
        ]
        known = self._offsets.partitions_of(group_id)
        deleted = [one for one, error in zip(partitions, errors, strict=True) if not error and one in known]
        self._forget([(group_id, topic, partition) for topic, partition in deleted])
        self._counters.offset_deletions += len(deleted)
        return errors

    def delete_groups(self, group_ids: Sequence[str]) -> list[ErrorCode]:
        """An error for each (KIP-229). Raises KafkaError, perhaps after some of them."""
        errors: list[ErrorCode] = []
        deleted: list[str] = []
        for group_id in group_ids:
            group = self._groups.find(group_id)
            consumer_group = self._groups.find_consumer(group_id)
            if consumer_group is not None:
                errors.append(self._delete_if_empty(consumer_group))
            elif group is None:
                errors.append(ErrorCode.GROUP_ID_NOT_FOUND)
            elif group.state is not ClassicState.EMPTY:
                errors.append(ErrorCode.NON_EMPTY_GROUP)
            else:
                errors.append(ErrorCode.NONE)
                deleted.append(group_id)
        self._forget(
            [(group_id, *one) for group_id in deleted for one in sorted(self._offsets.partitions_of(group_id))], deleted
        )
        return errors

    def _delete_if_empty(self, group: ConsumerGroup) -> ErrorCode:
        """Raises KafkaError."""
        if not group.is_empty:
            return ErrorCode.NON_EMPTY_GROUP
        self._forget([(group.id, *one) for one in sorted(self._offsets.partitions_of(group.id))])
        self._consumer.delete(group)
        return ErrorCode.NONE

    def delete_topic(self, topic: str, topic_id: UUID) -> None:
        """Deletes the offsets of a deleted topic. Raises KafkaError, perhaps after some of them."""
        self._forget([(group, topic, index) for group, index in self._offsets.partitions_of_topic(topic, topic_id)])

    def expire(self, now_ms: int) -> None:
        """Forgets what is older than `offsets.retention.minutes`, and groups that have nothing left (KIP-211).

        Raises KafkaError, perhaps after some of them.
        """
        expired: list[tuple[str, str, int]] = []
        gone: list[str] = []
        for group in self._groups:
            of_group = self._expired_of(group, now_ms)
            expired += of_group
            left_count = len(self._offsets.partitions_of(group.id)) - len(of_group)
            if (
                group.state is ClassicState.EMPTY
                and not left_count
                and not self._offsets.has_open_transactions(group.id)
            ):
                gone.append(group.id)
        gone_consumer_groups: list[ConsumerGroup] = []
        for consumer_group in self._groups.consumer_groups:
            of_group = self._expired_among(consumer_group, None, now_ms)
            expired += of_group
            left_count = len(self._offsets.partitions_of(consumer_group.id)) - len(of_group)
            if (
                consumer_group.is_empty
                and not left_count
                and not self._offsets.has_open_transactions(consumer_group.id)
            ):
                gone_consumer_groups.append(consumer_group)
        self._forget(expired, gone)
        self._counters.offset_expirations += len(expired)
        for consumer_group in gone_consumer_groups:
            self._consumer.delete(consumer_group)
        gone_count = len(gone) + len(gone_consumer_groups)
        if expired or gone_count:
            logger.info(
                "Expired offsets while cleaning up group metadata: offsets=%d groups=%d", len(expired), gone_count
            )

    def _expired_of(self, group: ClassicGroup, now_ms: int) -> list[tuple[str, str, int]]:
        is_stable = group.state is ClassicState.STABLE and group.is_of_consumers
        if not (group.state is ClassicState.EMPTY or (is_stable and group.subscribed_topics is not None)):
            return []
        # Of a group that has had members, the time since the last of them left counts.
        since_ms = group.state_timestamp_ms if group.state is ClassicState.EMPTY and group.protocol_type else None
        return self._expired_among(group, since_ms, now_ms)

    def _expired_among(
        self, group: ClassicGroup | ConsumerGroup, since_ms: int | None, now_ms: int
    ) -> list[tuple[str, str, int]]:
        """Expired offsets of topics that the group does not read, by `since_ms` or, with None, by the commit's time."""
        return [
            (group.id, topic, partition)
            for topic, partitions in self._offsets.topics_of(group.id).items()
            if not group.is_subscribed(topic)
            for partition, committed in partitions.items()
            if committed.is_expired(
                committed.commit_timestamp_ms if since_ms is None else since_ms, now_ms, self._retention_ms
            )
            and not self._offsets.is_pending(group.id, topic, partition)
        ]

    def _forget(self, offsets: Sequence[tuple[str, str, int]], groups: Sequence[str] = ()) -> None:
        """In batches of a bounded size; groups behind their offsets. KafkaError, perhaps after some of them."""
        for records, some in _batches((StateRecord(offset_commit_key(*one), None), one) for one in offsets):
            self._log.append(records)
            for one in some:
                self._offsets.remove(*one)
        for records, some_groups in _batches((tombstone_of(group_id), group_id) for group_id in groups):
            self._log.append(records)
            for group_id in some_groups:
                self._groups.forget(group_id)


def _batches(tombstones: Iterable[tuple[StateRecord, T]]) -> Iterator[tuple[list[StateRecord], list[T]]]:
    """Tombstones, each with what it deletes, in their order."""
    records: list[StateRecord] = []
    deleted: list[T] = []
    size_bytes = 0
    for record, one in tombstones:
        size_bytes += len(record.key)
        if records and (len(records) == TOMBSTONES_PER_BATCH or size_bytes > TOMBSTONE_KEYS_BYTES_MAX):
            yield records, deleted
            records, deleted, size_bytes = [], [], len(record.key)
        records.append(record)
        deleted.append(one)
    if records:
        yield records, deleted
