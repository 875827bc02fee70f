"""How the transaction of one transactional id stands, and what it becomes: values, each change a new one.

A producer is known by its id and epoch. What fences an old producer is an epoch that is higher than its own, so epochs
are raised: when a producer begins (InitProducerId), when another client ends its transaction, and with transactions of
version 2 by every end (KIP-890). When a producer id has no more epochs, another id takes its place.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec import Struct

from ...protocol.batches import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.structs import replace
from .transaction_state import PREVIOUS_STATES, TransactionState

EPOCH_MAX: Final = (1 << 15) - 1
LAST_CLIENT_EPOCH: Final = EPOCH_MAX - 1
"""The highest epoch that a client may have: one more is left to fence it with."""
NOT_STARTED: Final = -1
BUMPS_EPOCH_SINCE: Final = 2
"""Transactions of version 2, by clients or by the feature: every end raises the epoch."""


class TransactionPartition(NamedTuple):
    topic: str
    partition: int


class Transaction(Struct, frozen=True, kw_only=True):
    """What is remembered of a transactional id."""

    id: str
    producer_id: int
    previous_producer_id: int = NO_PRODUCER_ID
    """Whose place `producer_id` took: a retry may still name it."""
    next_producer_id: int = NO_PRODUCER_ID
    """Which takes its place once the markers are written; -1 unless its epochs are used up."""
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """Before the last raise, if that was the producer's own wish."""
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TransactionPartition] = frozenset()
    started_ms: int = NOT_STARTED
    updated_ms: int
    client_version: int = 0
    """The version of transactions that the client used which brought it here; 0 stands for 0 and 1."""

    @property
    def bumps_epoch(self) -> bool:
        return self.client_version >= BUMPS_EPOCH_SINCE

    @property
    def is_epoch_exhausted(self) -> bool:
        return is_exhausted(self.producer_epoch)

    def has_timed_out(self, now_ms: int) -> bool:
        return self.state is TransactionState.ONGOING and self.started_ms + self.timeout_ms < now_ms

    # InitProducerId.

    def is_known_producer(self, producer_id: int, epoch: int) -> bool:
        """Whether a producer that says who it was may go on; its epoch is looked at by `with_next_epoch` (KIP-360)."""
        return (
            # Made for this very request: its producer id had expired.
            self.producer_epoch == NO_PRODUCER_EPOCH
            or producer_id == self.producer_id
            # The answer that told it of its new id was lost.
            or (producer_id == self.previous_producer_id and is_exhausted(epoch))
        )

    def with_next_epoch(self, expected_epoch: int | None, timeout_ms: int, now_ms: int) -> Transaction:
        """Raises KafkaError(PRODUCER_FENCED)."""
        epoch, last_epoch = self.producer_epoch + 1, NO_PRODUCER_EPOCH
        if expected_epoch is not None:
            if self.producer_epoch == NO_PRODUCER_EPOCH or expected_epoch == self.producer_epoch:
                last_epoch = self.producer_epoch
            elif expected_epoch == self.last_producer_epoch:
                # A retry: no other producer has begun since, or there was no last epoch.
                epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
            else:
                raise KafkaError(
                    ErrorCode.PRODUCER_FENCED,
                    f"expected epoch {self.producer_epoch} or {self.last_producer_epoch} of {self.id}, "
                    f"found {expected_epoch}",
                )
        assert epoch <= LAST_CLIENT_EPOCH, f"producer {self.producer_id} of {self.id} has no more epochs"
        return self._emptied(self.producer_id, epoch, last_epoch, timeout_ms, now_ms)

    def with_new_producer_id(
        self, producer_id: int, timeout_ms: int, now_ms: int, *, keeps_last_epoch: bool
    ) -> Transaction:
        last_epoch = self.producer_epoch if keeps_last_epoch else NO_PRODUCER_EPOCH
        return self._emptied(producer_id, 0, last_epoch, timeout_ms, now_ms)

    def _emptied(self, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int) -> Transaction:
        return self._become(
            replace(
                self,
                state=TransactionState.EMPTY,
                producer_id=producer_id,
                previous_producer_id=self.producer_id,
                producer_epoch=epoch,
                last_producer_epoch=last_epoch,
                timeout_ms=timeout_ms,
                partitions=frozenset(),
                started_ms=NOT_STARTED,
                updated_ms=now_ms,
            )
        )

    # AddPartitionsToTxn, AddOffsetsToTxn.

    def with_partitions(
        self, partitions: frozenset[TransactionPartition], client_version: int, now_ms: int
    ) -> Transaction:
        return self._become(
            replace(
                self,
                state=TransactionState.ONGOING,
                previous_producer_id=self.producer_id,
                partitions=self.partitions | partitions,
                started_ms=now_ms if self.state.is_over else self.started_ms,
                updated_ms=now_ms,
                client_version=client_version,
            )
        )

    # EndTxn, and whatever else ends it.

    def fenced(self) -> Transaction:
        """Before the abort of transactions up to version 1, which does not raise the epoch itself."""
        return replace(
            self,
            producer_epoch=min(self.producer_epoch + 1, EPOCH_MAX),
            last_producer_epoch=NO_PRODUCER_EPOCH,
        )

    def prepared(
        self, *, is_commit: bool, client_version: int, next_producer_id: int = NO_PRODUCER_ID, now_ms: int
    ) -> Transaction:
        """Decided: markers are written next. `next_producer_id` must be given when the epochs are used up by it."""
        epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
        if client_version >= BUMPS_EPOCH_SINCE:
            epoch, last_epoch = min(epoch + 1, EPOCH_MAX), epoch
        return self._become(
            replace(
                self,
                state=TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT,
                previous_producer_id=self.producer_id,
                next_producer_id=next_producer_id,
                producer_epoch=epoch,
                last_producer_epoch=last_epoch,
                # An abort of nothing began when it ended.
                started_ms=now_ms if self.state.is_over else self.started_ms,
                updated_ms=now_ms,
                client_version=client_version,
            )
        )

    def completed(self, now_ms: int) -> Transaction:
        """All markers are written; the next producer id, if there is one, is the producer's now."""
        is_committed = self.state is TransactionState.PREPARE_COMMIT
        producer_id, epoch = self.producer_id, self.producer_epoch
        if self.bumps_epoch and self.next_producer_id != NO_PRODUCER_ID:
            producer_id, epoch = self.next_producer_id, 0
        return self._become(
            replace(
                self,
                state=TransactionState.COMPLETE_COMMIT if is_committed else TransactionState.COMPLETE_ABORT,
                producer_id=producer_id,
                previous_producer_id=self.producer_id,
                next_producer_id=NO_PRODUCER_ID,
                producer_epoch=epoch,
                partitions=frozenset(),
                updated_ms=now_ms,
            )
        )

    def _become(self, after: Transaction) -> Transaction:
        assert self.state in PREVIOUS_STATES[after.state], f"{self.id} cannot go from {self.state} to {after.state}"
        assert after.producer_id >= 0, f"{self.id} has no producer id"
        assert after.producer_epoch >= 0, f"{self.id} has no producer epoch"
        return after


def is_exhausted(epoch: int) -> bool:
    """Whether no client may have a higher one."""
    return epoch >= LAST_CLIENT_EPOCH
