"""A batch behind one that was refused in passing is refused in passing too, until that one has come again.

An idempotent producer has several batches in flight. The first may find a replica that does not lead yet, or that has
too few others in sync, and the next one, a moment later, a leader that takes it: then its sequence is not the next.
OUT_OF_ORDER_SEQUENCE_NUMBER would end the producer's epoch, though the first comes again and all is well. Worse,
librdkafka begins a new epoch with all that has no answer yet, on all partitions: what a leader before this one has
stored, and could not answer for any more, is stored a second time. And of a producer that the partition does not know
yet the next batch would be taken as the first one, and the first one never.

Apache Kafka answers so, and has the same holes.
"""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from ...protocol.batches import Buffer, read_header
from ...protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

_MEMORY_MS: Final = 5_000
"""Far more than clients wait before they send again. A batch that has not come by then was given up."""
_PRODUCERS_MAX: Final = 1_000
_SEQUENCES: Final = 2**31


class _Refused(NamedTuple):
    epoch: int
    sequence: int
    """Of the first record of the first batch."""
    code: ErrorCode
    at_ms: int


class RefusedBatches:
    """Those of one partition, by producer. Falsy while there is none: that is looked at with each batch."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, _Refused] = {}

    def __bool__(self) -> bool:
        return bool(self._by_producer)

    def note(self, batch: Buffer, error: KafkaError, now_ms: int) -> KafkaError:
        """Returns the error, which is about to be raised and says nothing of the batch."""
        header = read_header(batch, 0)
        if header.has_producer_id:
            before = self._by_producer.pop(header.producer_id, None)
            sequence = header.base_sequence
            if (
                before is not None
                and before.epoch == header.producer_epoch
                and not _is_behind(before.sequence, sequence)
            ):
                sequence = before.sequence
            if len(self._by_producer) >= _PRODUCERS_MAX:
                del self._by_producer[next(iter(self._by_producer))]
            self._by_producer[header.producer_id] = _Refused(header.producer_epoch, sequence, error.code, now_ms)
        return error

    def check(self, batch: Buffer, now_ms: int) -> None:
        """KafkaError, the code of the one before, when a batch before this one is still to come again."""
        header = read_header(batch, 0)
        refused = self._by_producer.get(header.producer_id)
        if refused is None:
            return
        if (
            header.producer_epoch == refused.epoch
            and _is_behind(header.base_sequence, refused.sequence)
            and now_ms - refused.at_ms <= _MEMORY_MS
        ):
            logger.debug(
                "batch refused behind another: producer_id=%d producer_epoch=%d base_sequence=%d refused=%d code=%s",
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                refused.sequence,
                refused.code.name,
            )
            raise KafkaError(refused.code, "A batch of the producer before this one was refused, and is to come again.")
        del self._by_producer[header.producer_id]


def _is_behind(sequence: int, other: int) -> bool:
    """Whether a sequence is above another one; they begin anew behind the highest."""
    return 0 < (sequence - other) % _SEQUENCES < _SEQUENCES // 2
