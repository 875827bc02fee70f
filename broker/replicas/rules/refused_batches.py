"""Retriable refusal of a producer's later batches until a batch refused before them has been sent again.

An idempotent producer has several batches in flight. The first may reach a node that does not know its new topic yet,
a replica that does not lead yet, or a leader whose ISR is too small; the next one, a moment later, reaches a leader
that can append: then its sequence is not the next. OUT_OF_ORDER_SEQUENCE_NUMBER would end the producer's epoch, though
the first batch is retried. Worse, librdkafka starts a new epoch with all unacknowledged batches of all partitions:
batches that an earlier leader stored, but could not acknowledge, are stored a second time. And if the partition does
not know the producer yet, the next batch would be accepted as its first, and the first one never.

Apache Kafka returns OUT_OF_ORDER_SEQUENCE_NUMBER and has these gaps.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from ....protocol.batches import BatchHeader
from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.ids import TopicId
from ....quorum.decisions.topic_names import invalid_topic_name
from ....storage.log.rules.producer_entry import ProducerEntry

logger = logging.getLogger(__name__)

_MEMORY_MS: Final = 5_000
"""Far more than the retry backoff of clients. A batch not retried by then was given up."""
_PRODUCERS_MAX: Final = 1_000
# For all partitions that are not hosted: any client can write to any name.
_ABSENT_PRODUCERS_MAX: Final = 10_000
_SEQUENCES: Final = 2**31


class _Refused(NamedTuple):
    epoch: int
    first_sequence: int
    """Base sequence of the first refused batch."""
    last_sequence: int
    """Base sequence of the last refused batch."""
    code: ErrorCode
    at_ms: int


class RefusedBatches:
    """Refused batches of one partition, by producer. Falsy while empty: each append tests that."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        # In the order of the last refusal.
        self._by_producer: dict[int, _Refused] = {}

    def __len__(self) -> int:
        return len(self._by_producer)

    def is_past(self, now_ms: int) -> bool:
        """True if all refused batches are older than `_MEMORY_MS`."""
        return all(now_ms - refused.at_ms > _MEMORY_MS for refused in reversed(self._by_producer.values()))

    def note(self, header: BatchHeader, error: KafkaError, now_ms: int) -> KafkaError:
        """Notes a batch refused for a transient reason; returns `error`, for the caller to raise."""
        if header.has_producer_id:
            before = self._by_producer.pop(header.producer_id, None)
            first = last = header.base_sequence
            if before is not None and before.epoch == header.producer_epoch:
                first = before.first_sequence if _is_behind(first, before.first_sequence) else first
                last = before.last_sequence if _is_behind(before.last_sequence, last) else last
            if len(self._by_producer) >= _PRODUCERS_MAX:
                del self._by_producer[next(iter(self._by_producer))]
            self._by_producer[header.producer_id] = _Refused(header.producer_epoch, first, last, error.code, now_ms)
        return error

    def adopt(self, other: RefusedBatches) -> None:
        """Adds the batches refused before the partition was hosted."""
        self._by_producer |= other._by_producer

    def check(self, header: BatchHeader, entries: Mapping[int, ProducerEntry], now_ms: int) -> None:
        """Raises KafkaError, with the earlier batch's code, while a refused batch before this one is not yet retried.

        `entries` is the log's producer state by producer id.
        """
        refused = self._by_producer.get(header.producer_id)
        if refused is None or header.producer_epoch < refused.epoch:
            return
        entry = entries.get(header.producer_id)
        if header.producer_epoch > refused.epoch or now_ms - refused.at_ms > _MEMORY_MS or _is_over(refused, entry):
            del self._by_producer[header.producer_id]
            return
        awaited = refused.first_sequence
        if entry is not None and entry.batches and entry.epoch == refused.epoch:
            awaited = entry.next_sequence
        if _is_behind(header.base_sequence, awaited):
            logger.debug(
                "Refused batch behind another: producer_id=%d producer_epoch=%d base_sequence=%d awaited=%d code=%s",
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                awaited,
                refused.code.name,
            )
            raise KafkaError(
                refused.code, "An earlier batch of this producer was refused and must be sent again first."
            )


AbsentPartition: TypeAlias = tuple[str | UUID, int]
"""Topic name or topic id, as the client sent it, and partition index."""


class RefusedByAbsence:
    """Refused batches of partitions not hosted yet, until they are: a client's metadata may be ahead of this node's."""

    __slots__ = ("_by_partition", "_count")

    def __init__(self) -> None:
        # In the order of the last refusal.
        self._by_partition: dict[AbsentPartition, RefusedBatches] = {}
        # Producers, over all partitions.
        self._count = 0

    def note(self, partition: AbsentPartition, header: BatchHeader, error: KafkaError, now_ms: int) -> None:
        """Notes a refused batch, for `_MEMORY_MS` only, unless the topic name is invalid: clients may send any."""
        self._forget_past(now_ms)
        topic, _ = partition
        if isinstance(topic, str) and invalid_topic_name(topic) is not None:
            return
        refused = self._pop(partition) or RefusedBatches()
        refused.note(header, error, now_ms)
        if refused:
            self._by_partition[partition] = refused
            self._count += len(refused)
        while self._count > _ABSENT_PRODUCERS_MAX:
            self._pop(next(iter(self._by_partition)))

    def take(self, topic: str, topic_id: TopicId, index: int) -> RefusedBatches:
        """Removes and returns the refused batches of a partition that is hosted now."""
        taken = RefusedBatches()
        if self._by_partition:
            for partition in ((topic, index), (topic_id, index)):
                refused = self._pop(partition)
                if refused is not None:
                    taken.adopt(refused)
        return taken

    def _pop(self, partition: AbsentPartition) -> RefusedBatches | None:
        refused = self._by_partition.pop(partition, None)
        if refused is not None:
            self._count -= len(refused)
        return refused

    def _forget_past(self, now_ms: int) -> None:
        while self._by_partition:
            partition, refused = next(iter(self._by_partition.items()))
            if not refused.is_past(now_ms):
                return
            self._pop(partition)


def _is_over(refused: _Refused, entry: ProducerEntry | None) -> bool:
    """True if the log has all refused batches, perhaps retried at a leader in between, or a later producer epoch."""
    if entry is None or not entry.batches or entry.epoch < refused.epoch:
        return False
    return entry.epoch > refused.epoch or not _is_behind(refused.last_sequence, entry.last_sequence)


def _is_behind(sequence: int, other: int) -> bool:
    """True if `sequence` is above `other`; sequences wrap around to 0."""
    return 0 < (sequence - other) % _SEQUENCES < _SEQUENCES // 2
