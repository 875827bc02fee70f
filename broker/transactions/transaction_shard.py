"""The transactions of one partition of `__transaction_state`: replayed from its records, and asked by requests.

Kafka: `TransactionStateManager`.

Pure: an event (a request, a timer, a commit, a report of markers, a producer id) appends records, changes the state and
collects effects (`effects.py`), which the shell applies after it. A change is made when it is appended, and is followed
up (by markers, by the next change of the same transactional id) when it is committed; until then requests that would
change it are told CONCURRENT_TRANSACTIONS, as while markers are being written.

Two rules end transactions. Up to version 1 the epoch stays, and is only raised when not the producer
itself ends it; EndTxn in the current epoch may be a retry or the end of the next transaction, which is undecidable
(KAFKA-17754). From version 2 on every end raises it, so that EndTxn one epoch behind is a retry and nothing else
(KIP-890).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol

from ...protocol.batches import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ..configuration.transaction_config import TransactionConfig
from ..coordination.effects import Effects
from ..coordination.ports import StateLog, StateRecord
from ..coordination.record_format import version_of
from .effects import (
    AwaitCommit,
    AwaitedRecords,
    CancelMarkers,
    ChangeRecord,
    CompletionRetry,
    ExpirationCheck,
    LoadedRecords,
    RequestProducerId,
    TimeoutCheck,
    WriteMarkers,
)
from .markers import MarkerOrder
from .transaction import BUMPS_EPOCH_SINCE, LAST_CLIENT_EPOCH, Transaction, TransactionPartition
from .transaction_records import TRANSACTION_LOG_KEY, TRANSACTION_LOG_KEYS, key_of, record_of, transaction_of
from .transaction_state import TransactionState

logger = logging.getLogger(__name__)

COMPLETION_RETRY_MS: Final = 100
"""Until a completion is appended again that the log did not take: replicas are missing, or the disk is full."""
TOMBSTONES_MAX: Final = 500
"""In one batch: some tens of kilobytes, far below what a batch may have."""


class ProducerIdNeededError(Exception):
    """The operation is to be asked again with a new producer id, before which nothing was done."""


class Producer(NamedTuple):
    """Producer id and epoch in responses."""

    id: int
    epoch: int


class TransactionLog(StateLog, Protocol):
    """The partition that they are kept in."""

    @property
    def leader_epoch(self) -> int:
        """Of this coordinator: what fences an older one in the partitions of transactions."""


class _Entry:
    """A transactional id. `uncommitted` is its newest record, until that is committed. `order` stands while markers are
    written, and for good when it `is_fenced`."""

    __slots__ = ("is_fenced", "order", "transaction", "uncommitted", "unmarked")

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction
        self.uncommitted: ChangeRecord | None = None
        self.unmarked: set[TransactionPartition] = set()
        self.order: MarkerOrder | None = None
        self.is_fenced = False

    @property
    def is_uncommitted(self) -> bool:
        return self.uncommitted is not None

    @property
    def is_changing(self) -> bool:
        return self.is_uncommitted or self.transaction.state.is_prepared


class TransactionShard:
    def __init__(
        self,
        log: TransactionLog,
        *,
        config: TransactionConfig,
        feature_level: Callable[[], int],
        now_ms: Callable[[], int],
    ) -> None:
        """`feature_level` is the cluster's transaction.version. `now_ms` is wall time that follows no jump of the
        clock: expiry cannot be undone."""
        self.effects = Effects()
        self._log = log
        self._config = config
        self._feature_level = feature_level
        self._now_ms = now_ms
        self._entries: dict[str, _Entry] = {}
        # Those that are Ongoing: few of many.
        self._open: dict[str, _Entry] = {}
        self._is_watching_timeouts = False
        self._is_watching_expiration = False

    # Its state, from the log.

    def is_superseded(self, key: bytes) -> bool:
        """Each record has the whole state of its transactional id."""
        return version_of(key) in TRANSACTION_LOG_KEYS

    def replay(self, offset: int, key: bytes | None, value: bytes | None, _producer_id: int = NO_PRODUCER_ID) -> None:
        """One record, in their order. Kinds that are not known are left out. Raises CorruptData."""
        if key is None:
            raise CorruptData(f"the record at offset {offset} has no key")
        if version_of(key) not in TRANSACTION_LOG_KEYS:
            return
        transactional_id = TRANSACTION_LOG_KEY.read(key).transactional_id
        if value is None:
            self._entries.pop(transactional_id, None)
        else:
            self._entries[transactional_id] = _Entry(transaction_of(transactional_id, value))

    def replay_end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """There are no transactions in the log of transactions."""

    def on_loaded(self) -> None:
        """All is replayed. What was decided is carried out, once it is sure to stay decided."""
        self._open = {
            transactional_id: entry
            for transactional_id, entry in self._entries.items()
            if entry.transaction.state is TransactionState.ONGOING
        }
        self.effects.add(AwaitCommit(LoadedRecords()))

    def _resume(self) -> None:
        for entry in list(self._entries.values()):
            if not entry.is_uncommitted:
                self._maybe_write_markers(entry)
        if self._open:
            self._watch_timeouts()
        self._watch_expiration()

    def on_unloaded(self) -> None:
        """Another node coordinates them now."""
        for entry in self._entries.values():
            if entry.order is not None and not entry.is_fenced:
                self.effects.add(CancelMarkers(entry.order))

    # What clients ask. All raise KafkaError.

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: Producer | None,
        new_producer_id: int | None = None,
    ) -> Producer:
        """`expected` is whom the producer says it is (KIP-360). Raises ProducerIdNeededError without `new_producer_id`
        when one is needed."""
        if not 0 < timeout_ms <= self._config.transaction_max_timeout_ms:
            raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        now_ms = self._now_ms()
        entry = self._entries.get(transactional_id)
        if entry is None:
            made = Transaction(
                id=transactional_id,
                producer_id=_given(new_producer_id),
                timeout_ms=timeout_ms,
                updated_ms=now_ms,
            )
            entry = _Entry(made.with_next_epoch(None if expected is None else expected.epoch, timeout_ms, now_ms))
            self._append(entry, entry.transaction)
            self._entries[transactional_id] = entry
            self._watch_expiration()
            return _producer(entry.transaction)
        if entry.is_changing:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        before = entry.transaction
        if expected is not None and not before.is_known_producer(expected.id, expected.epoch):
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        if before.state is TransactionState.ONGOING:
            # The epoch that this raises it to is never given to a client: that has to ask again.
            self._abort(entry, new_producer_id)
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if before.is_epoch_exhausted and (expected is None or expected.epoch == before.producer_epoch):
            after = before.with_new_producer_id(
                _given(new_producer_id), timeout_ms, now_ms, keeps_last_epoch=expected is not None
            )
        else:
            after = before.with_next_epoch(None if expected is None else expected.epoch, timeout_ms, now_ms)
        self._append(entry, after)
        return _producer(after)

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Iterable[TransactionPartition],
        client_version: int,
    ) -> None:
        entry = self._find(transactional_id)
        before = entry.transaction
        if entry.is_changing:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        _check_producer(before, producer)
        added = frozenset(partitions)
        if before.state is TransactionState.ONGOING and added <= before.partitions:
            return
        self._append(entry, before.with_partitions(added, client_version, self._now_ms()))
        self._watch_timeouts()

    def verify_partitions(
        self, transactional_id: str, producer: Producer, partitions: Iterable[TransactionPartition]
    ) -> Mapping[TransactionPartition, ErrorCode]:
        """Whether the partitions are in the transaction (KIP-890)."""
        transaction = self._find(transactional_id).transaction
        _check_producer(transaction, producer)
        if transaction.state.is_prepared:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        return {
            one: ErrorCode.NONE if one in transaction.partitions else ErrorCode.TRANSACTION_ABORTABLE
            for one in partitions
        }

    def end(
        self,
        transactional_id: str,
        producer: Producer,
        *,
        is_commit: bool,
        client_version: int,
        new_producer_id: int | None = None,
    ) -> Producer:
        """What the client is to go on as. Raises ProducerIdNeededError without `new_producer_id` when one is needed."""
        entry = self._find(transactional_id)
        if client_version >= BUMPS_EPOCH_SINCE:
            return self._end_raising_epoch(entry, producer, is_commit, client_version, new_producer_id)
        return self._end_keeping_epoch(entry, producer, is_commit, client_version)

    def _end_keeping_epoch(self, entry: _Entry, producer: Producer, is_commit: bool, client_version: int) -> Producer:
        before = entry.transaction
        _check_producer(before, producer)
        if entry.is_changing:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if before.state is TransactionState.ONGOING:
            self._append(
                entry, before.prepared(is_commit=is_commit, client_version=client_version, now_ms=self._now_ms())
            )
        elif before.state is not _complete(is_commit):
            raise KafkaError(ErrorCode.INVALID_TXN_STATE)
        return _producer(entry.transaction)

    def _end_raising_epoch(
        self,
        entry: _Entry,
        producer: Producer,
        is_commit: bool,
        client_version: int,
        new_producer_id: int | None,
    ) -> Producer:
        before = entry.transaction
        if entry.is_changing:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        # The answer with the new producer id or epoch was lost. Where the end did not raise the epoch, a request one
        # epoch behind is of the producer that was fenced.
        is_retry_of_last_epoch = (
            before.bumps_epoch
            and before.previous_producer_id == producer.id
            and producer.epoch == LAST_CLIENT_EPOCH
            and before.producer_epoch == 0
        )
        is_retry = is_retry_of_last_epoch or (before.bumps_epoch and before.producer_epoch == producer.epoch + 1)
        if before.producer_id != producer.id and not is_retry_of_last_epoch:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        is_complete = before.state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
        if before.producer_epoch != producer.epoch and not (is_complete and is_retry):
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        if is_complete and is_retry:
            if before.state is not _complete(is_commit):
                raise KafkaError(ErrorCode.INVALID_TXN_STATE)
            return _producer(before)
        if before.state is not TransactionState.ONGOING and is_commit:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE)
        # An abort of nothing raises the epoch too: the client cannot know whether its records got anywhere.
        after = before.prepared(
            is_commit=is_commit,
            client_version=client_version,
            next_producer_id=_given(new_producer_id) if before.is_epoch_exhausted else NO_PRODUCER_ID,
            now_ms=self._now_ms(),
        )
        self._append(entry, after)
        # The client goes on with the id and epoch that the completed transaction has.
        return _producer(after.completed(after.updated_ms))

    # What administrators ask.

    def describe(self, transactional_id: str) -> tuple[Transaction, frozenset[TransactionPartition]]:
        """It and those of its partitions that have no marker yet. Raises KafkaError."""
        entry = self._entries.get(transactional_id)
        if entry is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"Transactional id {transactional_id} is not known.")
        if entry.order is not None:
            return entry.transaction, frozenset(entry.unmarked)
        return entry.transaction, entry.transaction.partitions

    def __iter__(self) -> Iterator[Transaction]:
        return (entry.transaction for entry in list(self._entries.values()))

    # What is committed, and its markers.

    def on_committed(self, records: AwaitedRecords) -> None:
        """A decision is carried out; a record behind which there is another one of its id changes nothing."""
        if isinstance(records, LoadedRecords):
            self._resume()
            return
        entry = self._entries.get(records.transactional_id)
        if entry is not None and entry.uncommitted == records:
            entry.uncommitted = None
            self._maybe_write_markers(entry)

    def _maybe_write_markers(self, entry: _Entry) -> None:
        if entry.transaction.state.is_prepared and entry.order is None:
            self._write_markers(entry)

    def _write_markers(self, entry: _Entry) -> None:
        transaction = entry.transaction
        entry.unmarked = set(transaction.partitions)
        if not entry.unmarked:
            self._complete(entry)
            return
        entry.order = MarkerOrder(transaction, self._log.leader_epoch)
        self.effects.add(WriteMarkers(entry.order))

    def on_markers_written(self, order: MarkerOrder, partitions: Iterable[TransactionPartition]) -> None:
        """Partitions that need no more marker of the order."""
        entry = self._find_marked(order)
        if entry is None:
            return
        entry.unmarked.difference_update(partitions)
        if not entry.unmarked:
            entry.order = None
            self._complete(entry)

    def on_markers_fenced(self, order: MarkerOrder) -> None:
        """A partition knows a later coordinator epoch: this coordinator writes no more markers of the transaction."""
        entry = self._find_marked(order)
        if entry is None:
            return
        # As Apache Kafka: it stays as it is until another coordinator tries, which may be the one that fenced this.
        logger.warning(
            "Coordinator fenced, cancel sending markers: transactional_id=%s producer_id=%d producer_epoch=%d",
            order.transaction.id,
            order.transaction.producer_id,
            order.transaction.producer_epoch,
        )
        entry.is_fenced = True

    def _find_marked(self, order: MarkerOrder) -> _Entry | None:
        """None when it is not this order that the transactional id waits for."""
        entry = self._entries.get(order.transaction.id)
        return entry if entry is not None and entry.order is order and not entry.is_fenced else None

    def _complete(self, entry: _Entry) -> None:
        if entry.is_uncommitted or entry.order is not None or not entry.transaction.state.is_prepared:
            return
        try:
            self._append(entry, entry.transaction.completed(self._now_ms()))
        except KafkaError as error:
            logger.warning(
                "Failed to append transaction completion, retrying: transactional_id=%s error=%s",
                entry.transaction.id,
                error,
            )
            self.effects.schedule_timer(CompletionRetry(entry.transaction.id), COMPLETION_RETRY_MS)

    # What time brings.

    def on_timer(self, key: Hashable) -> None:
        match key:
            case TimeoutCheck():
                self._abort_timed_out()
            case ExpirationCheck():
                self._expire()
            case CompletionRetry(transactional_id):
                entry = self._entries.get(transactional_id)
                if entry is not None:
                    self._complete(entry)
            case _:
                raise AssertionError(f"no timer has the key {key!r}")

    def _watch_timeouts(self) -> None:
        """While a transaction is open; it costs nothing otherwise."""
        if not self._is_watching_timeouts:
            self._is_watching_timeouts = True
            self.effects.schedule_timer(TimeoutCheck(), self._config.abort_interval_ms)

    def _abort_timed_out(self) -> None:
        self._is_watching_timeouts = False
        now_ms = self._now_ms()
        try:
            for entry in list(self._open.values()):
                if not entry.is_changing and entry.transaction.has_timed_out(now_ms):
                    try:
                        self._abort_late(entry.transaction.id, None)
                    except KafkaError as error:
                        logger.warning(
                            "Rollback of ongoing transaction failed, retrying: transactional_id=%s error=%s",
                            entry.transaction.id,
                            error,
                        )
        finally:
            if self._open:
                self._watch_timeouts()

    def on_producer_id(self, transactional_id: str, producer_id: int) -> None:
        """The transaction that needed it may be over meanwhile."""
        self._abort_late(transactional_id, producer_id)

    def _abort_late(self, transactional_id: str, new_producer_id: int | None) -> None:
        entry = self._entries.get(transactional_id)
        if entry is None or entry.is_changing or not entry.transaction.has_timed_out(self._now_ms()):
            return
        try:
            self._abort(entry, new_producer_id)
        except ProducerIdNeededError:
            self.effects.add(RequestProducerId(transactional_id))
            return
        logger.info(
            "Rolling back ongoing transaction due to timeout: transactional_id=%s producer_id=%d timeout_ms=%d",
            transactional_id,
            entry.transaction.producer_id,
            entry.transaction.timeout_ms,
        )

    def _abort(self, entry: _Entry, new_producer_id: int | None) -> None:
        """Ends what another has begun; the producer is fenced. Raises KafkaError, ProducerIdNeededError."""
        before = entry.transaction
        level = self._feature_level()
        next_producer_id = NO_PRODUCER_ID
        if level < BUMPS_EPOCH_SINCE:
            level = 0
            before = before.fenced()
        elif before.is_epoch_exhausted:
            next_producer_id = _given(new_producer_id)
        self._append(
            entry,
            before.prepared(
                is_commit=False, client_version=level, next_producer_id=next_producer_id, now_ms=self._now_ms()
            ),
        )

    def _watch_expiration(self) -> None:
        if not self._is_watching_expiration and self._entries:
            self._is_watching_expiration = True
            self.effects.schedule_timer(ExpirationCheck(), self._config.expiration_interval_ms)

    def _expire(self) -> None:
        self._is_watching_expiration = False
        limit_ms = self._now_ms() - self._config.transactional_id_expiration_ms
        expired = [
            entry.transaction.id
            for entry in self._entries.values()
            if not entry.is_changing and entry.transaction.state.is_over and entry.transaction.updated_ms <= limit_ms
        ]
        try:
            for start in range(0, len(expired), TOMBSTONES_MAX):
                some = expired[start : start + TOMBSTONES_MAX]
                self._log.append([StateRecord(key_of(transactional_id), None) for transactional_id in some])
                for transactional_id in some:
                    del self._entries[transactional_id]
        finally:
            self._watch_expiration()

    # The log.

    def _find(self, transactional_id: str) -> _Entry:
        entry = self._entries.get(transactional_id)
        if entry is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return entry

    def _append(self, entry: _Entry, after: Transaction) -> None:
        """What follows from it follows when it is committed. Raises KafkaError, and then nothing has changed."""
        offset = self._log.append([record_of(after, self._feature_level())])
        entry.transaction = after
        if after.state is TransactionState.ONGOING:
            self._open[after.id] = entry
        else:
            self._open.pop(after.id, None)
        entry.uncommitted = ChangeRecord(after.id, offset)
        self.effects.add(AwaitCommit(entry.uncommitted))


def _check_producer(transaction: Transaction, producer: Producer) -> None:
    if transaction.producer_id != producer.id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer_epoch != producer.epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)


def _complete(is_commit: bool) -> TransactionState:
    return TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT


def _producer(transaction: Transaction) -> Producer:
    return Producer(transaction.producer_id, transaction.producer_epoch)


def _given(new_producer_id: int | None) -> int:
    if new_producer_id is None:
        raise ProducerIdNeededError
    return new_producer_id


NO_PRODUCER: Final = Producer(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
"""What is told with errors."""
