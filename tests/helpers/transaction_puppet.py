"""The transactions of one coordinator without a node: a log in memory that commits when the test says so, timers turned
by hand, orders of markers that are kept. Effects are applied as `CoordinatorContext` applies them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from puppet_timers import PuppetTimers

from penstock.broker.configuration.transaction_config import TransactionConfig
from penstock.broker.coordination.effects import CancelTimer, Effect, ScheduleTimer
from penstock.broker.coordination.ports import StateRecord
from penstock.broker.transactions.effects import (
    AwaitCommit,
    AwaitedRecords,
    CancelMarkers,
    RequestProducerId,
    WriteMarkers,
)
from penstock.broker.transactions.markers import MarkerOrder
from penstock.broker.transactions.transaction import Transaction, TransactionPartition
from penstock.broker.transactions.transaction_shard import Producer, ProducerIdNeededError, TransactionShard
from penstock.protocol.errors import ErrorCode, KafkaError

ID = "mover"
TIMEOUT_MS = 60_000
ABORT_INTERVAL_MS = 10_000
EXPIRATION_INTERVAL_MS = 3_600_000
EXPIRATION_MS = 7 * 24 * 3_600_000
CONFIG = TransactionConfig(
    transaction_max_timeout_ms=900_000,
    transactional_id_expiration_ms=EXPIRATION_MS,
    abort_interval_ms=ABORT_INTERVAL_MS,
    expiration_interval_ms=EXPIRATION_INTERVAL_MS,
    transaction_partition_verification_enable=True,
    add_partitions_to_txn_retry_backoff_ms=20,
    add_partitions_to_txn_retry_backoff_max_ms=100,
    transaction_state_log_num_partitions=50,
    transaction_state_log_replication_factor=3,
    is_replication_factor_capped=True,
    transaction_state_log_min_isr=2,
    transaction_state_log_segment_bytes=100 * 1024 * 1024,
    transaction_state_log_load_buffer_size=5 * 1024 * 1024,
)
P0, P1 = TransactionPartition("flights", 0), TransactionPartition("flights", 1)


class PuppetTransactionLog:
    """Commits at once unless `is_committing` is False. `refuses` is the error of the next append."""

    def __init__(self) -> None:
        self.records: list[StateRecord] = []
        self.leader_epoch = 5
        self.refuses: ErrorCode | None = None
        self.is_committing = True
        self._waiting: list[Callable[[], None]] = []

    def append(self, records: Sequence[StateRecord]) -> int:
        if self.refuses is not None:
            error, self.refuses = self.refuses, None
            raise KafkaError(error)
        self.records += records
        return len(self.records) - len(records)

    def when_committed(self, proceed: Callable[[], None]) -> None:
        if self.is_committing:
            proceed()
        else:
            self._waiting.append(proceed)

    def commit(self) -> None:
        self.is_committing = True
        waiting, self._waiting = self._waiting, []
        for proceed in waiting:
            proceed()


class TransactionPuppet:
    def __init__(
        self, log: PuppetTransactionLog | None = None, *, feature_level: int = 2, now_ms: int = 1_000_000
    ) -> None:
        """With a log, what is in it is loaded."""
        self.log = PuppetTransactionLog() if log is None else log
        self.feature_level = feature_level
        self.timers = PuppetTimers(now_ms, self.timer)
        self.orders: list[MarkerOrder] = []
        self.cancelled: list[MarkerOrder] = []
        self.next_producer_id = 1000
        self.are_ids_given = True
        # All effects, in the order in which they were applied.
        self.applied: list[Effect] = []
        self._pending: deque[Effect] = deque()
        self._is_applying = False
        self._is_unloaded = False
        self.shard = TransactionShard(
            self.log, config=CONFIG, feature_level=lambda: self.feature_level, now_ms=lambda: self.timers.now_ms
        )
        for offset, record in enumerate(self.log.records):
            self.shard.replay(offset, record.key, record.value)
        with self.event() as shard:
            shard.on_loaded()

    def unload(self) -> None:
        self._is_unloaded = True
        with self.event() as shard:
            shard.on_unloaded()

    def restarted(self) -> TransactionPuppet:
        """Another coordinator of the same log."""
        self.unload()
        other = TransactionPuppet(self.log, feature_level=self.feature_level, now_ms=self.timers.now_ms)
        other.next_producer_id = self.next_producer_id
        return other

    @contextmanager
    def event(self) -> Iterator[TransactionShard]:
        """Its effects are applied at its end, after an error too."""
        try:
            yield self.shard
        finally:
            self._pending.extend(self.shard.effects.take())
            if not self._is_applying:
                self._is_applying = True
                try:
                    while self._pending:
                        self._apply(self._pending.popleft())
                finally:
                    self._is_applying = False

    def _apply(self, effect: Effect) -> None:
        self.applied.append(effect)
        match effect:
            case ScheduleTimer(key, delay_ms):
                self.timers.schedule(key, delay_ms)
            case CancelTimer(key):
                self.timers.cancel(key)
            case AwaitCommit(records):
                self.log.when_committed(lambda: self.commit(records))
            case WriteMarkers(order):
                self.orders.append(order)
            case CancelMarkers(order):
                self.cancelled.append(order)
            case RequestProducerId(transactional_id):
                if self.are_ids_given:
                    self.give_id(transactional_id)
            case _:
                raise AssertionError(f"unexpected effect {effect!r}")

    def timer(self, key: Hashable) -> None:
        with self.event() as shard:
            shard.on_timer(key)

    def commit(self, records: AwaitedRecords) -> None:
        if not self._is_unloaded:
            with self.event() as shard:
                shard.on_committed(records)

    def give_id(self, transactional_id: str) -> None:
        """The controller has answered."""
        with self.event() as shard:
            shard.on_producer_id(transactional_id, self._new_id())

    def mark(self, order: MarkerOrder, partitions: Iterable[TransactionPartition]) -> None:
        """Reports markers of any order, of one that was replaced or cancelled too."""
        with self.event() as shard:
            shard.on_markers_written(order, partitions)

    def mark_all(self) -> None:
        """All markers that are asked for are written."""
        orders, self.orders = self.orders, []
        for order in orders:
            if order not in self.cancelled:
                self.mark(order, order.transaction.partitions)

    def fence(self, order: MarkerOrder) -> None:
        """A partition has a marker of a later coordinator."""
        with self.event() as shard:
            shard.on_markers_fenced(order)

    def _new_id(self) -> int:
        self.next_producer_id += 1
        return self.next_producer_id - 1

    def init(self, expected: Producer | None = None, *, timeout_ms: int = TIMEOUT_MS) -> Producer:
        try:
            return self.init_with_id(None, expected, timeout_ms=timeout_ms)
        except ProducerIdNeededError:
            return self.init_with_id(self._new_id(), expected, timeout_ms=timeout_ms)

    def init_with_id(
        self, new_producer_id: int | None, expected: Producer | None = None, *, timeout_ms: int = TIMEOUT_MS
    ) -> Producer:
        with self.event() as shard:
            return shard.init_producer_id(ID, timeout_ms, expected, new_producer_id)

    def add(
        self, producer: Producer, partitions: Iterable[TransactionPartition] = (P0,), client_version: int = 2
    ) -> None:
        with self.event() as shard:
            shard.add_partitions(ID, producer, partitions, client_version)

    def end(self, producer: Producer, *, is_commit: bool = True, client_version: int = 2) -> Producer:
        try:
            return self._end(producer, is_commit, client_version, None)
        except ProducerIdNeededError:
            return self._end(producer, is_commit, client_version, self._new_id())

    def _end(self, producer: Producer, is_commit: bool, client_version: int, new_producer_id: int | None) -> Producer:
        with self.event() as shard:
            return shard.end(
                ID, producer, is_commit=is_commit, client_version=client_version, new_producer_id=new_producer_id
            )

    @property
    def transaction(self) -> Transaction:
        return self.shard.describe(ID)[0]

    @property
    def state(self) -> str:
        return self.transaction.state.value
