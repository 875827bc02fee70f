"""What a partition remembers of each producer id: epoch, the last five batches, the open transaction (KIP-98).

It refuses stale epochs and sequence gaps and recognises a batch that was appended already, so that a retry is answered
with the offset of the original. Rules are those of Apache Kafka's ProducerStateManager and ProducerAppendInfo.

An append is `check` (refuses or finds the duplicate, changes nothing), the write, then `apply` (remembers). A follower
and recovery only `apply`: what is in the log was checked by its leader.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from ..protocol.batches import (
    CONTROL_FLAG,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    next_sequence,
)
from ..protocol.errors import ErrorCode, KafkaError

# A producer has at most five requests in flight, so a duplicate is one of its last five batches.
RETAINED_BATCHES: Final = 5
_MAX_SEQUENCE: Final = 2**31 - 1


class ProducedBatch(NamedTuple):
    """One batch as its producer will be answered when it sends it again."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class EndTransactionMarker(NamedTuple):
    is_abort: bool
    coordinator_epoch: int
    timestamp: int


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    is_abort: bool


class ProducerEntry:
    """The state of one producer id, as a snapshot keeps it, but for the four oldest batches."""

    __slots__ = (
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
        transaction_first_offset: int | None = None,
        last_batch: ProducedBatch | None = None,
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.transaction_first_offset = transaction_first_offset
        # Oldest first.
        self.batches: list[ProducedBatch] = []
        self.next_sequence = 0
        if last_batch is not None:
            self._add(last_batch)

    @property
    def last_batch(self) -> ProducedBatch | None:
        return self.batches[-1] if self.batches else None

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def find(self, first_sequence: int, last_sequence: int) -> ProducedBatch | None:
        for batch in self.batches:
            if batch.first_sequence == first_sequence and batch.last_sequence == last_sequence:
                return batch
        return None

    def add_batch(self, header: BatchHeader, base_offset: int, timestamp: int) -> None:
        """The batch was appended at `base_offset`."""
        if self.epoch != header.producer_epoch:
            self.begin_epoch(header.producer_epoch)
        self.last_timestamp = timestamp
        self._add(
            ProducedBatch(
                header.base_sequence,
                header.last_sequence,
                base_offset,
                base_offset + header.last_offset_delta,
                timestamp,
            )
        )

    def begin_epoch(self, epoch: int) -> None:
        if self.epoch != epoch:
            self.epoch = epoch
            self.batches.clear()
            self.next_sequence = 0

    def _add(self, batch: ProducedBatch) -> None:
        batches = self.batches
        if len(batches) == RETAINED_BATCHES:
            del batches[0]
        batches.append(batch)
        last = batch.last_sequence
        self.next_sequence = 0 if last == _MAX_SEQUENCE else last + 1


class ProducerState:
    """All producer ids of one partition."""

    __slots__ = ("_completed", "_expiration_ms", "_ongoing", "_partition", "end_offset", "producers")

    def __init__(self, partition: str, expiration_ms: int) -> None:
        """`partition` is for messages. A producer id is forgotten when idle for `expiration_ms`."""
        self._partition = partition
        self._expiration_ms = expiration_ms
        self.producers: dict[int, ProducerEntry] = {}
        # First offset → producer id of the transactions that have no marker yet.
        self._ongoing: dict[int, int] = {}
        # First offset → offset of the marker, of those whose marker may not be below the high watermark yet.
        self._completed: dict[int, int] = {}
        # Everything below this offset is taken in.
        self.end_offset = 0

    def check(self, header: BatchHeader, offset: int, *, is_transaction_verified: bool = False) -> ProducedBatch | None:
        """Judge a batch that a client wants appended at `offset`: None to go on, or the batch it duplicates.

        `is_transaction_verified`: its coordinator knows that the producer's transaction has this partition (KIP-890).
        KafkaError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE.
        """
        entry = self.producers.get(header.producer_id)
        if entry is None:
            # Nothing is known, possibly because it expired or was deleted: any sequence may come first.
            if header.attributes & TRANSACTIONAL_FLAG and not is_transaction_verified:
                raise _not_in_transaction()
            return None
        if header.producer_epoch == entry.epoch:
            if header.base_sequence != entry.next_sequence:
                duplicate = entry.find(header.base_sequence, header.last_sequence)
                if duplicate is not None:
                    return duplicate
                raise KafkaError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"Out of order sequence number for producer {header.producer_id} at offset {offset} in partition "
                    f"{self._partition}: {header.base_sequence} (incoming seq. number), {entry.last_sequence} "
                    "(current end sequence number)",
                )
        elif header.producer_epoch < entry.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {header.producer_id} at offset {offset} in {self._partition} is "
                f"{header.producer_epoch}, which is smaller than the last seen epoch {entry.epoch}",
            )
        elif header.base_sequence != 0:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Invalid sequence number for new epoch of producer {header.producer_id} at offset {offset} in "
                f"partition {self._partition}: {header.producer_epoch} (request epoch), {header.base_sequence} "
                f"(seq. number), {entry.epoch} (current producer epoch)",
            )
        if header.attributes & TRANSACTIONAL_FLAG:
            if entry.transaction_first_offset is None and not is_transaction_verified:
                raise _not_in_transaction()
        elif entry.transaction_first_offset is not None:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"Expected transactional write from producer {header.producer_id} at offset {offset} in partition "
                f"{self._partition}",
            )
        return None

    def apply(
        self, header: BatchHeader, base_offset: int, timestamp: int, marker: EndTransactionMarker | None = None
    ) -> CompletedTransaction | None:
        """Take in a batch with a producer id that is in the log at `base_offset`, `timestamp` being its largest.

        `marker` is the record of a control batch. A transaction that it ends is returned; it must be given to
        `complete` once the transaction index has it.
        """
        producer_id = header.producer_id
        entry = self.producers.get(producer_id)
        if marker is None and header.attributes & CONTROL_FLAG:
            # All records of the batch were compacted away, and with them the transaction.
            return None
        if entry is None:
            entry = self.producers[producer_id] = ProducerEntry(producer_id)
        if marker is not None:
            return self._end_transaction(entry, header.producer_epoch, base_offset, marker)
        entry.add_batch(header, base_offset, timestamp)
        if header.attributes & TRANSACTIONAL_FLAG and entry.transaction_first_offset is None:
            entry.transaction_first_offset = base_offset
            self._ongoing[base_offset] = producer_id
        return None

    def last_stable_offset_after(self, completed: CompletedTransaction) -> int:
        """The first offset of the earliest transaction that is still open without `completed`, or what follows it."""
        others = [first for first, producer_id in self._ongoing.items() if producer_id != completed.producer_id]
        return min(others, default=completed.last_offset + 1)

    def complete(self, completed: CompletedTransaction) -> None:
        del self._ongoing[completed.first_offset]
        self._completed[completed.first_offset] = completed.last_offset

    def last_stable_offset(self, high_watermark: int) -> int:
        """The first offset that is undecided, or decided by a marker at or above `high_watermark`; at most that."""
        if not self._ongoing and not self._completed:
            return high_watermark
        for first_offset in [first for first, last in self._completed.items() if last < high_watermark]:
            del self._completed[first_offset]
        return min((*self._ongoing, *self._completed, high_watermark))

    def expire(self, now_ms: int) -> None:
        """Forget the producer ids that have been idle for too long and have no open transaction."""
        expired = [producer_id for producer_id, entry in self.producers.items() if self.is_expired(entry, now_ms)]
        for producer_id in expired:
            del self.producers[producer_id]

    def is_expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        return entry.transaction_first_offset is None and now_ms - entry.last_timestamp >= self._expiration_ms

    def load(self, entries: Iterable[ProducerEntry], end_offset: int, now_ms: int) -> None:
        """Begin anew with what a snapshot at `end_offset` says."""
        self.clear(end_offset)
        for entry in entries:
            if not self.is_expired(entry, now_ms):
                self.producers[entry.producer_id] = entry
                if entry.transaction_first_offset is not None:
                    self._ongoing[entry.transaction_first_offset] = entry.producer_id

    def clear(self, end_offset: int) -> None:
        self.producers.clear()
        self._ongoing.clear()
        self._completed.clear()
        self.end_offset = end_offset

    def _end_transaction(
        self, entry: ProducerEntry, epoch: int, marker_offset: int, marker: EndTransactionMarker
    ) -> CompletedTransaction | None:
        first_offset = entry.transaction_first_offset
        entry.begin_epoch(epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = marker.timestamp
        entry.transaction_first_offset = None
        if first_offset is None:
            return None
        return CompletedTransaction(entry.producer_id, first_offset, marker_offset, marker.is_abort)


def _not_in_transaction() -> KafkaError:
    return KafkaError(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")


def first_sequence_of(last_sequence: int, offset_delta: int) -> int:
    """The sequence of the first of `offset_delta` + 1 records whose last one has `last_sequence`."""
    if last_sequence >= offset_delta:
        return last_sequence - offset_delta
    return next_sequence(last_sequence + 1, _MAX_SEQUENCE - offset_delta)
