"""A batch out of order behind one that was refused in passing is refused in passing too.

An idempotent producer has several batches in flight. The first may find a replica that does not lead yet, or that has
too few others in sync, and the next one, a moment later, a leader that takes it: then its sequence is not the next.
OUT_OF_ORDER_SEQUENCE_NUMBER would end the producer's epoch, though the first comes again and all is well. Worse,
librdkafka begins a new epoch with all that has no answer yet, on all partitions: what a leader before this one has
stored, and could not answer for any more, is stored a second time.

Apache Kafka answers so, and has the same hole.
"""

from __future__ import annotations

import logging
from typing import Final

from ...protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

_MEMORY_MS: Final = 5_000
"""Far more than clients wait before they send again. A gap that is none by then is told."""


class RecentRefusal:
    """The last refusal of one partition that says nothing of the batch."""

    __slots__ = ("_at_ms", "_code")

    def __init__(self) -> None:
        self._code: ErrorCode | None = None
        self._at_ms = 0

    def note(self, error: KafkaError, now_ms: int) -> KafkaError:
        """Returns the error, which is about to be raised."""
        self._code = error.code
        self._at_ms = now_ms
        return error

    def judge(self, error: KafkaError, now_ms: int) -> KafkaError:
        """What a batch is refused with of which the log says `error`."""
        if (
            error.code is not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            or self._code is None
            or now_ms - self._at_ms > _MEMORY_MS
        ):
            return error
        logger.debug("batch refused behind another: code=%s reason=%s", self._code.name, error.message)
        return KafkaError(self._code, f"{error.message} One before it was refused a moment ago, and may come again.")
