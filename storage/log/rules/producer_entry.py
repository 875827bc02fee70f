"""What a partition remembers of one producer id: its epoch, its last six batches, its open transaction (KIP-98).

Kafka: `ProducerAppendInfo`, `ProducerStateEntry`, `BatchMetadata`.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from ....protocol.batches import MAX_SEQUENCE, NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, BatchHeader, next_sequence

IN_FLIGHT_BATCHES: Final = 5
"""A producer has at most five requests in flight, so a duplicate is one of its last five batches."""
RETAINED_BATCHES: Final = IN_FLIGHT_BATCHES + 1
"""The one before those in flight was acknowledged: when those are cut off, it tells which sequence comes next."""


class BatchMetadata(NamedTuple):
    """One batch as its producer will be answered when it sends it again. Kafka: `BatchMetadata`."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


UNKNOWN_MS: Final = -1
"""When a batch was appended, as a snapshot of Apache Kafka leaves it out."""


class ProducerEntry:
    """The state of one producer id, as a snapshot keeps it."""

    __slots__ = (
        "appended_ms",
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "next_sequence",
        "producer_id",
        "transaction_first_offset",
    )

    def __init__(
        self,
        producer_id: int,
        *,
        epoch: int = NO_PRODUCER_EPOCH,
        coordinator_epoch: int = -1,
        last_timestamp: int = NO_TIMESTAMP,
        appended_ms: int = UNKNOWN_MS,
        transaction_first_offset: int | None = None,
        batches: Iterable[BatchMetadata] = (),
    ) -> None:
        """`batches` are the last ones, oldest first."""
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        # The largest timestamp of the last batch, as its records or the broker have it.
        self.last_timestamp = last_timestamp
        # When this replica appended the last batch, by the wall clock: a producer is idle since then, however old the
        # timestamps of its records are.
        self.appended_ms = appended_ms
        self.transaction_first_offset = transaction_first_offset
        # Oldest first.
        self.batches: list[BatchMetadata] = []
        self.next_sequence = 0
        for batch in batches:
            self._add(batch)

    @property
    def last_batch(self) -> BatchMetadata | None:
        return self.batches[-1] if self.batches else None

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def has_open_transaction(self, epoch: int) -> bool:
        return self.transaction_first_offset is not None and self.epoch == epoch

    def find(self, first_sequence: int, last_sequence: int) -> BatchMetadata | None:
        for batch in self.batches[-IN_FLIGHT_BATCHES:]:
            if batch.first_sequence == first_sequence and batch.last_sequence == last_sequence:
                return batch
        return None

    def add_batch(self, header: BatchHeader, base_offset: int, timestamp: int, appended_ms: int) -> None:
        """The batch was appended at `base_offset`."""
        if self.epoch != header.producer_epoch:
            self.begin_epoch(header.producer_epoch)
        self.last_timestamp = timestamp
        self.appended_ms = appended_ms
        last_offset = base_offset + header.last_offset_delta
        # What `BatchMetadata` does, without its detour through Python.
        self._add(
            tuple.__new__(
                BatchMetadata, (header.base_sequence, header.last_sequence, base_offset, last_offset, timestamp)
            )
        )

    def begin_epoch(self, epoch: int) -> None:
        if self.epoch != epoch:
            self.epoch = epoch
            self.batches.clear()
            self.next_sequence = 0

    def _add(self, batch: BatchMetadata) -> None:
        batches = self.batches
        if len(batches) == RETAINED_BATCHES:
            del batches[0]
        batches.append(batch)
        last = batch.last_sequence
        self.next_sequence = 0 if last == MAX_SEQUENCE else last + 1


def first_sequence_of(last_sequence: int, offset_delta: int) -> int:
    """The sequence of the first of `offset_delta` + 1 records whose last one has `last_sequence`."""
    if last_sequence >= offset_delta:
        return last_sequence - offset_delta
    return next_sequence(last_sequence + 1, MAX_SEQUENCE - offset_delta)
