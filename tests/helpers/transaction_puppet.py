"""The transactions of one coordinator without a node: a log in memory that commits when the test says so, timers turned
by hand, markers that are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from group_puppet import PuppetTimers

from penstock.broker.configuration.transaction_config import TransactionConfig
from penstock.broker.coordination.ports import StateRecord
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
        self.timers = PuppetTimers(now_ms)
        self.orders: list[MarkerOrder] = []
        self.next_producer_id = 1000
        self.shard = TransactionShard(
            self.log,
            self.timers,
            self,
            config=CONFIG,
            feature_level=lambda: self.feature_level,
            new_producer_id=lambda on_id: on_id(self._new_id()),
            now_ms=lambda: self.timers.now_ms,
        )
        for offset, record in enumerate(self.log.records):
            self.shard.replay(offset, record.key, record.value)
        self.shard.on_loaded()

    def restarted(self) -> TransactionPuppet:
        """Another coordinator of the same log."""
        self.shard.on_unloaded()
        other = TransactionPuppet(self.log, feature_level=self.feature_level, now_ms=self.timers.now_ms)
        other.next_producer_id = self.next_producer_id
        return other

    def write(self, order: MarkerOrder) -> None:
        """As `markers.MarkerWriter`."""
        self.orders.append(order)

    def mark_all(self) -> None:
        """All markers that are asked for are written."""
        orders, self.orders = self.orders, []
        for order in orders:
            if not order.is_cancelled:
                order.on_written(order.transaction.partitions)

    def _new_id(self) -> int:
        self.next_producer_id += 1
        return self.next_producer_id - 1

    def init(self, expected: Producer | None = None, *, timeout_ms: int = TIMEOUT_MS) -> Producer:
        try:
            return self.shard.init_producer_id(ID, timeout_ms, expected)
        except ProducerIdNeededError:
            return self.shard.init_producer_id(ID, timeout_ms, expected, self._new_id())

    def add(
        self, producer: Producer, partitions: Iterable[TransactionPartition] = (P0,), client_version: int = 2
    ) -> None:
        self.shard.add_partitions(ID, producer, partitions, client_version)

    def end(self, producer: Producer, *, is_commit: bool = True, client_version: int = 2) -> Producer:
        try:
            return self.shard.end(ID, producer, is_commit=is_commit, client_version=client_version)
        except ProducerIdNeededError:
            return self.shard.end(
                ID, producer, is_commit=is_commit, client_version=client_version, new_producer_id=self._new_id()
            )

    @property
    def transaction(self) -> Transaction:
        return self.shard.describe(ID)[0]

    @property
    def state(self) -> str:
        return self.transaction.state.value
