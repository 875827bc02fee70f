"""A batch behind one that was refused in passing is refused in passing too, until that one has come again.

An idempotent producer has several batches in flight. The first may find a node that does not know of its new topic
yet, a replica that does not lead yet, or one that has too few others in sync, and the next one, a moment later, a
leader that takes it: then its sequence is not the next. OUT_OF_ORDER_SEQUENCE_NUMBER would end the producer's epoch,
though the first comes again and all is well. Worse, librdkafka begins a new epoch with all that has no answer yet, on
all partitions: what a leader before this one has stored, and could not answer for any more, is stored a second time.
And of a producer that the partition does not know yet the next batch would be taken as the first one, and the first one
never.

Apache Kafka answers so, and has the same holes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from ....protocol.batches import Buffer, read_header
from ....protocol.errors import ErrorCode, KafkaError
from ....quorum.decisions.topic_names import invalid_topic_name
from ....storage.log.rules.producer_entry import ProducerEntry

logger = logging.getLogger(__name__)

_MEMORY_MS: Final = 5_000
"""Far more than clients wait before they send again. A batch that has not come by then was given up."""
_PRODUCERS_MAX: Final = 1_000
# Of all partitions that are not here, which anyone may write to.
_ABSENT_PRODUCERS_MAX: Final = 10_000
_SEQUENCES: Final = 2**31


class _Refused(NamedTuple):
    epoch: int
    first_sequence: int
    """Of the first record of the first batch."""
    last_sequence: int
    """Of the first record of the last batch."""
    code: ErrorCode
    at_ms: int


class RefusedBatches:
    """Those of one partition, by producer. Falsy while there is none: that is looked at with each batch."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        # The one that was noted last is the last.
        self._by_producer: dict[int, _Refused] = {}

    def __len__(self) -> int:
        return len(self._by_producer)

    def is_past(self, now_ms: int) -> bool:
        """Whether all of them were given up."""
        return all(now_ms - refused.at_ms > _MEMORY_MS for refused in reversed(self._by_producer.values()))

    def note(self, batch: Buffer, error: KafkaError, now_ms: int) -> KafkaError:
        """Returns the error, which is about to be raised and says nothing of the batch."""
        header = read_header(batch, 0)
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
        """What was refused before the partition was here."""
        self._by_producer |= other._by_producer

    def check(self, batch: Buffer, entries: Mapping[int, ProducerEntry], now_ms: int) -> None:
        """KafkaError, the code of the one before, when a batch before this one is still to come again.

        `entries`, by producer id, tell what the log holds of producers.
        """
        header = read_header(batch, 0)
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
                "batch refused behind another: producer_id=%d producer_epoch=%d base_sequence=%d awaited=%d code=%s",
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                awaited,
                refused.code.name,
            )
            raise KafkaError(refused.code, "A batch of the producer before this one was refused, and is to come again.")


AbsentPartition: TypeAlias = tuple[str | UUID, int]
"""By the name or the id of its topic, as the client knows it."""


class RefusedByAbsence:
    """The same of partitions that are not here, for when they come: a client may be ahead of this node's metadata."""

    __slots__ = ("_by_partition", "_count")

    def __init__(self) -> None:
        # The one that was noted last is the last.
        self._by_partition: dict[AbsentPartition, RefusedBatches] = {}
        # Of producers in all of them.
        self._count = 0

    def note(self, partition: AbsentPartition, batch: Buffer, error: KafkaError, now_ms: int) -> None:
        """Strangers may send anything: what cannot become a topic is not kept, and the rest not for long."""
        self._forget_past(now_ms)
        topic, _ = partition
        if isinstance(topic, str) and invalid_topic_name(topic) is not None:
            return
        refused = self._pop(partition) or RefusedBatches()
        refused.note(batch, error, now_ms)
        if refused:
            self._by_partition[partition] = refused
            self._count += len(refused)
        while self._count > _ABSENT_PRODUCERS_MAX:
            self._pop(next(iter(self._by_partition)))

    def take(self, topic: str, topic_id: UUID, index: int) -> RefusedBatches:
        """The partition is here now."""
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
    """Whether the log holds all that was refused, which may have come again to a leader between, or a later epoch."""
    if entry is None or not entry.batches or entry.epoch < refused.epoch:
        return False
    return entry.epoch > refused.epoch or not _is_behind(refused.last_sequence, entry.last_sequence)


def _is_behind(sequence: int, other: int) -> bool:
    """Whether a sequence is above another one; they begin anew behind the highest."""
    return 0 < (sequence - other) % _SEQUENCES < _SEQUENCES // 2
