"""What a partition remembers of each producer id: epoch, the last six batches, the open transaction (KIP-98).

It refuses stale epochs and sequence gaps and recognises a batch that was appended already, so that a retry is answered
with the offset of the original. Rules are those of Apache Kafka's `ProducerStateManager` and `ProducerAppendInfo`.

An append is `check` (refuses or finds the duplicate, changes nothing), the write, then `apply` (remembers). A follower
and recovery only `apply`: what is in the log was checked by its leader. What a coordinator writes has no sequences:
`check_epoch` and `check_marker` judge it.
"""

from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Final, NamedTuple

from ....protocol.batches import CONTROL_FLAG, NO_PRODUCER_EPOCH, NO_TIMESTAMP, TRANSACTIONAL_FLAG, BatchHeader
from ....protocol.errors import ErrorCode, KafkaError
from .aborted_transaction import AbortedTransaction
from .producer_entry import UNKNOWN_MS, BatchMetadata, ProducerEntry
from .transaction_verification import UNVERIFIED, TransactionVerification

_MAX_EPOCH: Final = 2**15 - 1
FIRST_VERSION_WITH_EPOCH_BUMPS: Final = 2
"""Of `transaction.version`: a transaction ends with a higher epoch than its batches have (KIP-890)."""


class EndTransactionMarker(NamedTuple):
    is_abort: bool
    coordinator_epoch: int
    timestamp: int


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    is_abort: bool


class ProducerState:
    """All producer ids of one partition."""

    __slots__ = (
        "_completed",
        "_ongoing",
        "_partition",
        "_verifications",
        "end_offset",
        "entries",
        "expiration_ms",
    )

    def __init__(self, partition: str, expiration_ms: int) -> None:
        """`partition` is for messages. A producer id is forgotten when idle for `expiration_ms`."""
        self._partition = partition
        self.expiration_ms = expiration_ms
        self.entries: dict[int, ProducerEntry] = {}
        # First offset → producer id of the transactions that have no marker yet.
        self._ongoing: dict[int, int] = {}
        # First offset → offset of the marker, of those whose marker may not be below the high watermark yet.
        self._completed: dict[int, int] = {}
        # By producer id: those whose first batch waits for a coordinator.
        self._verifications: dict[int, TransactionVerification] = {}
        # Everything below this offset is taken in.
        self.end_offset = 0

    def check(
        self, header: BatchHeader, offset: int, verification: TransactionVerification | None = None
    ) -> BatchMetadata | None:
        """Judge a batch that a client wants appended at `offset`: None to go on, or the batch it duplicates.

        `verification` is what `begin_verification` gave before its coordinator said that the transaction has this
        partition. KafkaError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE.
        """
        entry = self.entries.get(header.producer_id)
        if header.attributes & TRANSACTIONAL_FLAG:
            if entry is not None and header.producer_epoch == entry.epoch:
                duplicate = entry.find(header.base_sequence, header.last_sequence)
                if duplicate is not None:
                    return duplicate
            self._check_transaction(entry, header, offset, verification)
            self._check_first_sequence(entry, header, offset)
        if entry is None:
            # Nothing is known, possibly because it expired or was deleted: any sequence may come first.
            return None
        if header.producer_epoch == entry.epoch:
            if header.base_sequence != entry.next_sequence:
                duplicate = entry.find(header.base_sequence, header.last_sequence)
                if duplicate is not None:
                    return duplicate
                raise self._out_of_order(header, offset, f"{entry.last_sequence} (current end sequence number)")
        elif header.producer_epoch < entry.epoch:
            raise self._stale_epoch(header, offset, entry)
        elif header.base_sequence != 0 and entry.epoch != NO_PRODUCER_EPOCH:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Invalid sequence number for new epoch of producer {header.producer_id} at offset {offset} in "
                f"partition {self._partition}: {header.producer_epoch} (request epoch), {header.base_sequence} "
                f"(seq. number), {entry.epoch} (current producer epoch)",
            )
        if entry.transaction_first_offset is not None and not header.attributes & TRANSACTIONAL_FLAG:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"Expected transactional write from producer {header.producer_id} at offset {offset} in partition "
                f"{self._partition}",
            )
        return None

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, *, has_epoch_bumps: bool, now_ms: int
    ) -> TransactionVerification | None:
        """What the append of a transaction's batch must bring; None while the transaction goes on here already.

        KafkaError INVALID_PRODUCER_EPOCH: then there is nothing to be asked.
        """
        entry = self.entries.get(producer_id)
        if entry is not None:
            if epoch < entry.epoch:
                raise _older_epoch(producer_id, epoch, entry)
            if entry.has_open_transaction(epoch):
                return None
        verification = self._verifications.get(producer_id)
        if verification is None:
            verification = self._verifications[producer_id] = TransactionVerification(
                epoch, sequence, has_epoch_bumps=has_epoch_bumps, begun_ms=now_ms
            )
        else:
            verification.note(epoch, sequence)
        return verification

    def holds_verification(self, producer_id: int, verification: TransactionVerification) -> bool:
        """Whether the verification guard is valid (KIP-890): no batch and no end of the transaction since it began."""
        return self._verifications.get(producer_id) is verification

    def check_epoch(self, header: BatchHeader, offset: int, verification: TransactionVerification | None) -> None:
        """Judge a coordinator's batch of a transaction. KafkaError: INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE."""
        entry = self.entries.get(header.producer_id)
        self._check_transaction(entry, header, offset, verification)

    def check_marker(self, header: BatchHeader, offset: int, coordinator_epoch: int, transaction_version: int) -> None:
        """Judge the end of a transaction. KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED.

        With version 2 its epoch is higher than that of every batch, or the marker comes again: the transaction is
        over, or it was one of the last epoch there is (KIP-1228).
        """
        entry = self.entries.get(header.producer_id)
        if entry is None:
            return
        epoch = header.producer_epoch
        if epoch < entry.epoch:
            raise _older_epoch(header.producer_id, epoch, entry)
        if (
            epoch == entry.epoch
            and transaction_version >= FIRST_VERSION_WITH_EPOCH_BUMPS
            and entry.transaction_first_offset is not None
            and epoch != _MAX_EPOCH
        ):
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {header.producer_id} at offset {offset} in {self._partition} is {epoch}, which is "
                f"<= the last seen epoch {entry.epoch} (TV{transaction_version})",
            )
        if coordinator_epoch < entry.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Invalid coordinator epoch for producerId {header.producer_id} at offset {offset} in partition "
                f"{self._partition}: {coordinator_epoch} (zombie), {entry.coordinator_epoch} (current)",
            )

    def _check_transaction(
        self,
        entry: ProducerEntry | None,
        header: BatchHeader,
        offset: int,
        verification: TransactionVerification | None,
    ) -> None:
        if entry is not None:
            if header.producer_epoch < entry.epoch:
                raise self._stale_epoch(header, offset, entry)
            if entry.has_open_transaction(header.producer_epoch):
                return
        if verification is not UNVERIFIED and (
            verification is None or self._verifications.get(header.producer_id) is not verification
        ):
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")

    def _check_first_sequence(self, entry: ProducerEntry | None, header: BatchHeader, offset: int) -> None:
        begun = self._verifications.get(header.producer_id)
        if begun is None:
            return
        if begun.has_epoch_bumps and header.base_sequence != 0 and (entry is None or not entry.batches):
            raise self._out_of_order(header, offset, "0 (expected: the first of its transaction here)")
        if header.base_sequence > begun.lowest_sequence:
            raise self._out_of_order(header, offset, f"{begun.lowest_sequence} (earliest seen sequence)")

    def _out_of_order(self, header: BatchHeader, offset: int, expected: str) -> KafkaError:
        return KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Out of order sequence number for producer {header.producer_id} at offset {offset} in partition "
            f"{self._partition}: {header.base_sequence} (incoming seq. number), {expected}",
        )

    def _stale_epoch(self, header: BatchHeader, offset: int, entry: ProducerEntry) -> KafkaError:
        return KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"Epoch of producer {header.producer_id} at offset {offset} in {self._partition} is "
            f"{header.producer_epoch}, which is smaller than the last seen epoch {entry.epoch}",
        )

    def apply(
        self,
        header: BatchHeader,
        base_offset: int,
        timestamp: int,
        appended_ms: int,
        marker: EndTransactionMarker | None = None,
    ) -> CompletedTransaction | None:
        """Take in a batch with a producer id that is in the log at `base_offset`, `timestamp` being its largest.

        `appended_ms` is when this replica appended it, by the wall clock: the producer id expires by that.
        `marker` is the record of a control batch. A transaction that it ends is returned; it must be given to
        `complete` once the transaction index has it.
        """
        producer_id = header.producer_id
        entry = self.entries.get(producer_id)
        if marker is None and header.attributes & CONTROL_FLAG:
            # All records of the batch were compacted away, and with them the transaction.
            return None
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id)
        if marker is not None:
            entry.appended_ms = appended_ms
            return self._end_transaction(entry, header.producer_epoch, base_offset, marker)
        entry.add_batch(header, base_offset, timestamp, appended_ms)
        if header.attributes & TRANSACTIONAL_FLAG:
            self._verifications.pop(producer_id, None)
            # One whose records were compacted away is of a transaction that has ended; its marker may be gone.
            if entry.transaction_first_offset is None and header.record_count:
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
        self.forget_completed(high_watermark)
        return min((*self._ongoing, *self._completed, high_watermark))

    def oldest_open_timestamp(self) -> int | None:
        """When the producer of the earliest open transaction last wrote, in milliseconds by its records.

        None without an open transaction. Kafka: `ProducerStateManager.oldestTxnLastTimestamp`.
        """
        if not self._ongoing:
            return None
        entry = self.entries.get(self._ongoing[min(self._ongoing)])
        return None if entry is None or entry.last_timestamp == NO_TIMESTAMP else entry.last_timestamp

    def forget_completed(self, high_watermark: int) -> None:
        """Transactions with a marker below it hold nothing back. To be called now and then: followers are not asked for
        the last stable offset."""
        completed = self._completed
        if completed:
            # They are in the order of their markers.
            for first_offset in list(takewhile(lambda first: completed[first] < high_watermark, completed)):
                del completed[first_offset]

    @property
    def completed(self) -> Mapping[int, int]:
        """First offset to offset of the marker, of the transactions whose marker may not be below the high watermark,
        in the order of the markers. Not to be changed."""
        return self._completed

    def active(self, now_ms: int) -> list[ProducerEntry]:
        """Those that are remembered, those idle too long being forgotten first. Not to be changed."""
        self.expire(now_ms)
        return list(self.entries.values())

    def expire(self, now_ms: int) -> None:
        """Forget the producer ids that have been idle for too long and have no open transaction.

        A time ahead of `now_ms` is of a clock that was wrong: it counts as `now_ms`.
        """
        for entry in self.entries.values():
            if entry.appended_ms > now_ms:
                entry.appended_ms = now_ms
        expired = [producer_id for producer_id, entry in self.entries.items() if self.is_expired(entry, now_ms)]
        for producer_id in expired:
            del self.entries[producer_id]
        abandoned = [
            producer_id
            for producer_id, verification in self._verifications.items()
            if now_ms - verification.begun_ms >= self.expiration_ms
        ]
        for producer_id in abandoned:
            del self._verifications[producer_id]

    def is_expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        """By the time of the append. The timestamps of records are the application's: a backfill has old ones, and must
        be as idempotent as any other write."""
        return entry.transaction_first_offset is None and now_ms - entry.appended_ms >= self.expiration_ms

    def load(
        self, entries: Iterable[ProducerEntry], completed: Mapping[int, int], end_offset: int, now_ms: int
    ) -> None:
        """Begin anew with what a snapshot at `end_offset` has; `completed` as `completed`.

        An append whose time is not known, or lies ahead of the clock, counts as one of now: rather too late than too
        early.
        """
        self.clear(end_offset)
        self._completed.update(completed)
        for entry in entries:
            entry.appended_ms = now_ms if entry.appended_ms == UNKNOWN_MS else min(entry.appended_ms, now_ms)
            if not self.is_expired(entry, now_ms):
                self.entries[entry.producer_id] = entry
                if entry.transaction_first_offset is not None:
                    self._ongoing[entry.transaction_first_offset] = entry.producer_id

    def below(
        self,
        offset: int,
        producer_ids: Iterable[int] | None = None,
        *,
        aborted: Iterable[AbortedTransaction] = (),
    ) -> list[ProducerEntry]:
        """What the records at and above `offset` do not tell: for a log that begins there, and takes those in.

        An epoch that began behind `offset` is included without a batch: those records end with it. Where all batches
        that are remembered lie behind `offset`, and the epoch has older ones, neither epoch nor sequence as of
        `offset` are known: should those records be cut off, any may come next. The producer has more batches there
        than it may have in flight, so the first was acknowledged, and stays.

        `aborted` are the transactions with an abort marker there: that of one that began below `offset` tells its end
        only, and readers of what a tier has below must leave its records out. With `producer_ids` the result has only
        what those lack.
        """
        begun = begun_below(offset, aborted)
        if producer_ids is None:
            producer_ids = [*self.entries, *(begun.keys() - self.entries.keys())]
        known = []
        for producer_id in producer_ids:
            # One that has expired since has an epoch again with its marker.
            entry = self.entries.get(producer_id) or ProducerEntry(producer_id)
            first = begun.get(producer_id, entry.transaction_first_offset)
            batches = [batch for batch in entry.batches if batch.last_offset < offset]
            if producer_id in begun:
                # The marker may have brought the epoch: should that be cut off, it comes again.
                is_known = bool(batches)
            else:
                # Of a coordinator's batches the sequence is -1.
                is_known = bool(batches) or not entry.batches or entry.batches[0].first_sequence <= 0
            known.append(
                ProducerEntry(
                    entry.producer_id,
                    epoch=entry.epoch if is_known else NO_PRODUCER_EPOCH,
                    coordinator_epoch=entry.coordinator_epoch,
                    last_timestamp=entry.last_timestamp,
                    appended_ms=entry.appended_ms,
                    transaction_first_offset=first if first is not None and first < offset else None,
                    batches=batches,
                )
            )
        return known

    def clear(self, end_offset: int) -> None:
        self.entries.clear()
        self._ongoing.clear()
        self._completed.clear()
        self._verifications.clear()
        self.end_offset = end_offset

    def _end_transaction(
        self, entry: ProducerEntry, epoch: int, marker_offset: int, marker: EndTransactionMarker
    ) -> CompletedTransaction | None:
        first_offset = entry.transaction_first_offset
        entry.begin_epoch(epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = marker.timestamp
        entry.transaction_first_offset = None
        self._verifications.pop(entry.producer_id, None)
        if first_offset is None:
            return None
        return CompletedTransaction(entry.producer_id, first_offset, marker_offset, marker.is_abort)


def begun_below(offset: int, aborted: Iterable[AbortedTransaction]) -> dict[int, int]:
    """The first offsets below `offset` of those transactions, by producer id; a producer has one at a time."""
    return {one.producer_id: one.first_offset for one in aborted if one.first_offset < offset <= one.last_offset}


def _older_epoch(producer_id: int, epoch: int, entry: ProducerEntry) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"Epoch of producer {producer_id} is {epoch}, which is smaller than the last seen epoch {entry.epoch}",
    )
