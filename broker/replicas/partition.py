"""One hosted partition: its log on disk and its leadership rules (`rules/partition_state.py`). Kafka: `Partition`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...protocol.ids import LeaderEpoch, NodeId, TopicId
from ...quorum.decisions.topic_names import INTERNAL_TOPICS
from ...storage.disk.rules.disk_errors import ReadError, leaves_directory_usable
from ...storage.log.file_slice import FetchData
from ...storage.log.log import Log
from ...storage.log.rules.append_info import AppendInfo
from ...storage.log.rules.record_batch import ProducedBatch
from ...storage.log.rules.transaction_verification import TransactionVerification
from ...storage.log.segment_scan import BadBatch
from .rules.damage import FoundDamage
from .rules.leader_state import Brokers
from .rules.partition_state import PartitionState
from .rules.refused_batches import RefusedBatches
from .rules.repeated_reads import RepeatedReads
from .rules.topic_counters import TopicCounters

logger = logging.getLogger(__name__)

T = TypeVar("T")

ALL = -1
"""The acks of a producer that waits for all in-sync replicas (acks=all)."""
TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
CHECK_BYTES: Final = 1024 * 1024
"""Upper bound of the CRC check right after a failed read: it takes a fraction of a millisecond on a healthy disk."""


class Flusher(Protocol):
    """The part of `storage/directories/flusher.py` that a partition uses."""

    def request(self, log: Log, end_offset: int, on_flushed: Callable[[OSError | None], None]) -> None:
        """Syncs the log up to `end_offset` and calls back, in a later turn of the loop."""


class Watcher(Protocol):
    """A listener for changes of a partition: a follower's fetch session. `place` is its key for the partition."""

    def mark_changed(self, place: Any, /) -> None:
        """An offset changed; the next response to the follower carries it."""

    def mark_ready(self, place: Any, /) -> None:
        """Something changed that can complete the follower's parked fetch."""


class Partition:
    """The log and the leadership of one replica.

    `error` is the error code for requests: NONE while the partition is online, KAFKA_STORAGE_ERROR once its log
    directory has failed, UNKNOWN_TOPIC_OR_PARTITION or NOT_LEADER_OR_FOLLOWER after it has left this node. An offline
    object never goes online again: a partition that returns is another object. Delayed operations on the partition
    are parked under this object.
    """

    __slots__ = (
        "_cut_count",
        "_flusher",
        "_given_up_epoch",
        "_monotonic_ms",
        "_on_damage",
        "_on_disk_error",
        "_on_progress",
        "_refused",
        "_steady_clock_ms",
        "appended_bytes",
        "counters",
        "damage",
        "error",
        "index",
        "is_flush_due",
        "is_internal",
        "log",
        "on_synced",
        "repeated_reads",
        "state",
        "topic",
        "topic_id",
        "watchers",
    )

    def __init__(
        self,
        *,
        node_id: NodeId,
        brokers: Brokers,
        lag_ms_max: int,
        topic: str,
        topic_id: TopicId,
        index: int,
        log: Log,
        high_watermark: int,
        refused: RefusedBatches,
        counters: TopicCounters,
        flusher: Flusher,
        monotonic_ms: Callable[[], int],
        steady_clock_ms: Callable[[], int],
        on_progress: Callable[[Partition], None],
        on_disk_error: Callable[[Partition, OSError], None],
        on_damage: Callable[[Partition], None],
    ) -> None:
        """`high_watermark` is the one checkpointed before a restart; it is clipped to the log. `refused` are batches
        that were refused before the partition was created here. `counters` are those of the topic on this node.

        `monotonic_ms` is the clock of decisions; producer ids expire by `steady_clock_ms`. `on_progress` is called when
        a sync advanced the log end offset. `on_disk_error` takes the log directory offline if the error means that
        the directory has failed, and then calls `take_offline`. `on_damage` is called when another replica must lead:
        the log is damaged, or after `give_up_leadership`.
        """
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.log = log
        self.state = PartitionState(
            node_id=node_id,
            brokers=brokers,
            high_watermark=min(max(high_watermark, log.log_start_offset), log.log_end_offset),
            lag_ms_max=lag_ms_max,
            min_insync_replicas=log.config.min_insync_replicas,
        )
        # Opening a log syncs all of it.
        self.state.on_log_end(log.log_end_offset)
        self.error = ErrorCode.NONE
        # Size of the appended batches since this object was created.
        self.appended_bytes = 0
        self.counters = counters
        self.is_internal = topic in INTERNAL_TOPICS
        # A sync failed before it began and must be requested again.
        self.is_flush_due = False
        # Damage found by a check; batches that can still be read are served.
        self.damage: FoundDamage | None = None
        # The leader epoch in which this node gave up the leadership, though its log is undamaged.
        self._given_up_epoch: LeaderEpoch | None = None
        self.repeated_reads = RepeatedReads(log.log_end_offset)
        self._refused = refused
        # By the key that each has for the partition.
        self.watchers: dict[Hashable, Watcher] = {}
        # One-shot callback; its argument is True if the sync failed. The replica fetcher that waits sets it.
        self.on_synced: Callable[[bool], None] | None = None
        # A sync requested before the last truncation proves nothing about the present log.
        self._cut_count = 0
        self._flusher = flusher
        self._monotonic_ms = monotonic_ms
        self._steady_clock_ms = steady_clock_ms
        self._on_progress = on_progress
        self._on_disk_error = on_disk_error
        self._on_damage = on_damage

    def append(
        self, batch: ProducedBatch, now_ms: int, acks: int = 1, verification: TransactionVerification | None = None
    ) -> AppendInfo:
        """Validates and appends one batch as the leader; raises KafkaError, and then nothing was appended.

        The batch is below this replica's log end offset when this returns, unless `flush.messages` requires a sync
        first. `now_ms` is for the records' timestamps. `verification` comes from `begin_verification`, for the first
        batch of a transaction. Kafka: `Partition.appendRecordsToLeader`.
        """
        partition = self.state
        self.counters.produces += 1
        if not partition.is_leader:
            raise self.in_passing(batch, KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        log = self.log
        if acks == ALL and partition.is_under_min_isr:
            raise self.in_passing(batch, self._too_few_in_sync())
        if self._refused:
            self._refused.check(batch.header, log.producers.entries, self._monotonic_ms())
        try:
            info = log.append_as_leader(
                batch,
                leader_epoch=partition.leader_epoch,
                now_ms=now_ms,
                # Of what has no producer id nothing expires.
                appended_ms=None if batch.header.producer_id < 0 else self._steady_clock_ms(),
                verification=verification,
            )
        except OSError as error:
            self.counters.failed_produces += 1
            raise self.in_passing(batch, self._refusal(error)) from error
        except CorruptData as error:
            # The log before the batch is corrupt, not the producer's batch.
            self.counters.failed_produces += 1
            raise self.in_passing(batch, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))) from error
        except KafkaError as error:
            if error.code is ErrorCode.KAFKA_STORAGE_ERROR:
                self.counters.failed_produces += 1
                self.in_passing(batch, error)
            elif error.code in TOO_LARGE:
                self.counters.bytes_rejected += len(batch.data)
            raise
        if not info.is_duplicate:
            end_offset = info.last_offset + 1
            self._on_appended_as_leader(len(batch.data), end_offset - info.first_offset, end_offset)
        return info

    def append_of_coordinator(
        self,
        batch: bytes,
        now_ms: int,
        *,
        verification: TransactionVerification | None = None,
        transaction_version: int = 0,
    ) -> AppendInfo:
        """Appends a coordinator's batch with acks=all.

        Raises KafkaError, and then nothing was appended; see `Log.append_of_coordinator`.
        """
        partition = self.state
        if self.error is not ErrorCode.NONE or not partition.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if partition.is_under_min_isr:
            raise self._too_few_in_sync()
        log = self.log
        try:
            info = log.append_of_coordinator(
                batch,
                leader_epoch=partition.leader_epoch,
                now_ms=now_ms,
                appended_ms=self._steady_clock_ms(),
                verification=verification,
                transaction_version=transaction_version,
            )
        except OSError as error:
            raise self._refusal(error) from error
        except CorruptData as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        end_offset = info.last_offset + 1
        self._on_appended_as_leader(len(batch), end_offset - info.first_offset, end_offset)
        log.producers.forget_completed(partition.high_watermark)
        return info

    def _on_appended_as_leader(self, size_bytes: int, record_count: int, end_offset: int) -> None:
        log, partition, counters = self.log, self.state, self.counters
        self.appended_bytes += size_bytes
        counters.bytes_in += size_bytes
        counters.messages_in += record_count
        if log.unflushed_records < log.config.flush_messages:
            partition.on_log_end(end_offset, self._monotonic_ms() if partition.is_replicated else 0)
        else:
            self._request_flush(end_offset)

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, *, has_epoch_bumps: bool, now_ms: int
    ) -> TransactionVerification | None:
        """Returns the verification that a transaction's first batch needs before its append (KIP-890).

        None if the transaction is already ongoing in this partition. Raises KafkaError.
        Kafka: `Partition.maybeStartTransactionVerification`.
        """
        if not self.state.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self.log.producers.begin_verification(
            producer_id, epoch, sequence, has_epoch_bumps=has_epoch_bumps, now_ms=now_ms
        )

    def holds_verification(self, producer_id: int, verification: TransactionVerification) -> bool:
        """True while no batch and no end of the transaction came since the verification began (KIP-890)."""
        return self.log.producers.holds_verification(producer_id, verification)

    def append_as_follower(self, records: memoryview, now_ms: int) -> bool:
        """Appends the leader's batches unchanged; raises KafkaError.

        They are below this replica's log end offset when this returns, unless `flush.messages` requires a sync first:
        see `is_synced`. Returns True if the high watermark advanced: the leader's can be ahead of a follower's log.
        Kafka: `Partition.appendRecordsToFollowerOrFutureReplica`.
        """
        log = self.log
        before = log.log_end_offset
        high_watermark = self.state.high_watermark
        try:
            log.append_as_follower(
                records,
                now_ms=now_ms,
                appended_ms=self._steady_clock_ms(),
                leader_epoch=self.state.leader_epoch,
            )
        except OSError as error:
            raise self._refusal(error) from error
        finally:
            # An error may follow after some of the batches were appended.
            if log.log_end_offset > before:
                self.appended_bytes += len(records)
                self.counters.replication_bytes_in += len(records)
                self._count_log_end()
        return self.state.high_watermark > high_watermark

    def _count_log_end(self) -> None:
        log = self.log
        if log.unflushed_records < log.config.flush_messages:
            self.state.on_log_end(log.log_end_offset)
        else:
            self._request_flush(log.log_end_offset)
        log.producers.forget_completed(self.state.high_watermark)

    @property
    def is_synced(self) -> bool:
        """True if no append waits for its sync. If False, `on_synced` is called after the sync, failed or not."""
        return self.state.log_end_offset >= self.log.log_end_offset

    def on_leader_offsets(self, *, high_watermark: int, log_start_offset: int) -> bool:
        """Applies the leader's high watermark and log start offset; returns True if the high watermark advanced.

        The log start offset follows the leader's, at most up to the high watermark.
        """
        has_moved = self.state.on_leader_offsets(high_watermark, log_start_offset)
        self.log.increment_log_start_offset(self.state.deleted_end_offset)
        return has_moved

    def on_cut(self) -> None:
        """The log was truncated, or restarted at another offset."""
        self._cut_count += 1
        log = self.log
        is_synced = log.unflushed_records < log.config.flush_messages
        log_end_offset = log.log_end_offset if is_synced else max(log.recovery_point, log.log_start_offset)
        self.state.on_truncated(log_start_offset=log.log_start_offset, log_end_offset=log_end_offset)
        if is_synced:
            # A sync that `on_synced` waits for was of truncated records.
            self._tell_synced(is_refused=False)
        else:
            self._request_flush(log.log_end_offset)
        if log.damage is not None and self.damage is None:
            self._note_damage(FoundDamage(log.damage.offset, 0), log.damage.reason)

    def replace_log(self, log: Log) -> None:
        """`log` has the same records in another log directory, and is synced as far.

        Kafka: `Partition.maybeReplaceCurrentWithFutureReplica`.
        """
        self.log = log
        # A sync of the other one under way proves nothing about this.
        self._cut_count += 1
        if log.unflushed_records < log.config.flush_messages:
            self.state.on_log_end(log.log_end_offset, self._monotonic_ms())
            self._on_progress(self)
            self._tell_synced(is_refused=False)
        else:
            self._request_flush(log.log_end_offset)

    def read(self, start_offset: int, max_bytes: int, end_offset: int, min_one_batch: bool) -> FetchData:
        """`Log.read`, with errors as `with_storage_errors` raises them. Kafka: `Partition.fetchRecords`."""
        try:
            if self.damage is not None:
                end_offset, max_bytes = self._limit_to_undamaged(self.damage, start_offset, end_offset, max_bytes)
            return self.log.read(start_offset, max_bytes=max_bytes, end_offset=end_offset, min_one_batch=min_one_batch)
        except (OSError, CorruptData) as error:
            self.check(start_offset, min(max_bytes, CHECK_BYTES))
            raise self._refusal(error) from error

    def aborted_transactions(self, data: FetchData, start_offset: int, end_offset: int) -> list[tuple[int, int]]:
        """Returns producer id and first offset of the aborted transactions with records in `data`, as
        `Log.aborted_transactions_in`. Raises KafkaError: without them a consumer would read aborted records as
        committed."""
        return self.with_storage_errors(
            lambda: [
                (one.producer_id, one.first_offset)
                for one in self.log.aborted_transactions_in(data, start_offset, end_offset)
            ]
        )

    def check(self, offset: int, size: int) -> None:
        """A read from `offset` failed: reads `size` bytes again and verifies the CRC of each batch. Once damage is
        found, only `recheck` checks again."""
        if self.damage is not None:
            return
        try:
            self.log.check(offset, size)
        except (CorruptData, ReadError, FileNotFoundError) as error:
            if isinstance(error, BadBatch) and error.offset is not None:
                offset = max(error.offset, self.log.log_start_offset)
            self._note_damage(FoundDamage(offset, size), error)
        except OSError:
            # Not about this file, e.g. too many open files; the failed read has reported it.
            pass

    def _limit_to_undamaged(
        self, damage: FoundDamage, start_offset: int, end_offset: int, max_bytes: int
    ) -> tuple[int, int]:
        """`end_offset` and `max_bytes` of a read that gives no damaged batch away. CorruptData, OSError."""
        if start_offset < damage.offset:
            return min(end_offset, damage.offset), max_bytes
        max_bytes = min(max_bytes, CHECK_BYTES)
        self.log.check(start_offset, max_bytes)
        return end_offset, max_bytes

    def _note_damage(self, found: FoundDamage, reason: object) -> None:
        self.damage = found
        logger.error("Found corrupt batches in log: topic=%s partition=%d reason=%s", self.topic, self.index, reason)
        self._on_damage(self)

    def recheck(self) -> bool:
        """Checks the found damage again; returns True if it is still there (a disk error may be transient)."""
        found, self.damage = self.damage, None
        if found is None:
            return False
        try:
            if self.log.damage is not None:
                self.log.truncate_to(self.log.damage.offset)
                self.on_cut()
            self.log.check(*found)
        except (CorruptData, OSError):
            self.damage = found
            return True
        logger.info(
            "Corrupt batches are readable again: topic=%s partition=%d offset=%d", self.topic, self.index, found.offset
        )
        return False

    def give_up_leadership(self) -> None:
        """Requests another leader from the ISR, as for a damaged log; the log is undamaged and stays.

        The request is repeated until the leader epoch rises or `keep_leadership` is called.
        """
        self._given_up_epoch = self.state.leader_epoch
        self._on_damage(self)

    def keep_leadership(self) -> None:
        """Revokes `give_up_leadership`: its reason is gone."""
        self._given_up_epoch = None

    @property
    def is_leadership_given_up(self) -> bool:
        return self.state.is_leader and self._given_up_epoch == self.state.leader_epoch

    def with_storage_errors(self, use: Callable[[], T]) -> T:
        """Calls `use`; raises KafkaError: KAFKA_STORAGE_ERROR for OSError, CORRUPT_MESSAGE for CorruptData that no
        other replica can replace."""
        try:
            return use()
        except (OSError, CorruptData) as error:
            raise self._refusal(error) from error

    def in_passing(self, batch: ProducedBatch, error: KafkaError) -> KafkaError:
        """Notes a batch that is refused for a transient reason, not for its content (`refused_batches.py`).

        Returns `error`, for the caller to raise.
        """
        return self._refused.note(batch.header, error, self._monotonic_ms())

    def _too_few_in_sync(self) -> KafkaError:
        return KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"Fewer replicas of partition {self.log.name} are in sync than its min.insync.replicas of "
            f"{self.log.config.min_insync_replicas}.",
        )

    def _refusal(self, error: OSError | CorruptData) -> KafkaError:
        if isinstance(error, CorruptData):
            # Where another replica is about to lead, clients are to look for it without an error to their users.
            is_replaceable = bool(self.state.in_sync_followers())
            code = ErrorCode.KAFKA_STORAGE_ERROR if is_replaceable else ErrorCode.CORRUPT_MESSAGE
            return KafkaError(code, str(error))
        self._on_disk_error(self, error)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))

    def _on_flushed(self, end_offset: int, cut_count: int, error: OSError | None) -> None:
        if error is not None:
            self.is_flush_due = leaves_directory_usable(error)
            self._on_disk_error(self, error)
            self._tell_synced(is_refused=True)
        elif self.error is ErrorCode.NONE and cut_count == self._cut_count:
            self.state.on_log_end(end_offset, self._monotonic_ms())
            self.log.increment_log_start_offset(self.state.deleted_end_offset)
            self._on_progress(self)
            if self.is_synced:
                self._tell_synced(is_refused=False)

    def _tell_synced(self, *, is_refused: bool) -> None:
        on_synced, self.on_synced = self.on_synced, None
        if on_synced is not None:
            on_synced(is_refused)

    def is_pending(self, end_offset: int, acks: int) -> bool:
        """True while an append of this leader epoch that ended at `end_offset` is not acknowledged yet."""
        partition = self.state
        return end_offset > (partition.high_watermark if acks == ALL else partition.log_end_offset)

    def flush_again(self) -> None:
        """Requests the sync again that a full disk refused."""
        # A partition that has left this node loses its folder: a sync that fails there says nothing about the disk.
        if self.is_flush_due and self.error is ErrorCode.NONE:
            self.is_flush_due = False
            self._request_flush(self.log.log_end_offset)

    def _request_flush(self, end_offset: int) -> None:
        self._flusher.request(self.log, end_offset, partial(self._on_flushed, end_offset, self._cut_count))

    def append_result(self, end_offset: int, leader_epoch: LeaderEpoch, acks: int) -> ErrorCode | None:
        """Returns the result of an append that ended at `end_offset` in `leader_epoch`; None while it is pending.

        Kafka: `Partition.checkEnoughReplicasReachOffset`.
        """
        if self.error is not ErrorCode.NONE:
            return self.error
        partition = self.state
        if not partition.is_leader or partition.leader_epoch != leader_epoch:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if acks != ALL:
            return ErrorCode.NONE if partition.log_end_offset >= end_offset else None
        if partition.high_watermark < end_offset:
            return None
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND if partition.is_under_min_isr else ErrorCode.NONE

    def take_offline(self, error: ErrorCode) -> None:
        """The partition is offline: requests fail with `error` from now on."""
        assert error is not ErrorCode.NONE, "an offline partition object does not go online again"
        self.error = error
        self.state.leave()
