"""One partition on this node: its log on disk, and the rules (`partition.py`) that decide what of the log counts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Final, Protocol, TypeVar
from uuid import UUID

from ...protocol.batches import Buffer
from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...quorum.decisions.topic_names import INTERNAL_TOPICS
from ...storage.disk.rules.disk_errors import ReadError, leaves_directory_usable
from ...storage.log.file_slice import FetchData
from ...storage.log.log import Log
from ...storage.log.rules.append_info import AppendInfo
from ...storage.log.rules.transaction_verification import TransactionVerification
from .rules.damage import FoundDamage
from .rules.leader_state import Brokers
from .rules.partition_state import PartitionState
from .rules.refused_batches import RefusedBatches

logger = logging.getLogger(__name__)

T = TypeVar("T")

ALL = -1
"""The acks of a producer that waits for all replicas that are in sync."""
CHECK_BYTES: Final = 1024 * 1024
"""Read again at once after a read that failed: a fraction of a millisecond, where the disk lets it be."""


class Flusher(Protocol):
    """What a partition needs of `storage/directories/flusher.py`."""

    def request(self, log: Log, end_offset: int, on_flushed: Callable[[OSError | None], None]) -> None:
        """Syncs the log up to `end_offset` and calls back, in a later turn of the loop."""


class Watcher(Protocol):
    """Who hears of what happens here: the session of a follower. `place` is what it knows the partition by."""

    def mark_changed(self, place: Any, /) -> None:
        """There is something to tell, with whatever is told next."""

    def mark_ready(self, place: Any, /) -> None:
        """There is something that the follower may wait for."""


class Partition:
    """The log and the leadership of one replica.

    `error` is what a request for it is answered with: NONE while it is served, KAFKA_STORAGE_ERROR once its log
    directory has failed, UNKNOWN_TOPIC_OR_PARTITION or NOT_LEADER_OR_FOLLOWER after it has left this node. From there
    it never comes back: a partition that returns is another object. Requests that wait for the partition are parked
    under this object.
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
        "damage",
        "error",
        "index",
        "is_flush_due",
        "is_internal",
        "log",
        "on_synced",
        "state",
        "topic",
        "topic_id",
        "watchers",
    )

    def __init__(
        self,
        *,
        node_id: int,
        brokers: Brokers,
        lag_ms_max: int,
        topic: str,
        topic_id: UUID,
        index: int,
        log: Log,
        high_watermark: int,
        refused: RefusedBatches,
        flusher: Flusher,
        monotonic_ms: Callable[[], int],
        steady_clock_ms: Callable[[], int],
        on_progress: Callable[[Partition], None],
        on_disk_error: Callable[[Partition, OSError], None],
        on_damage: Callable[[Partition], None],
    ) -> None:
        """`high_watermark` is what was known before a restart; it is clipped to the log. `refused` are batches
        that came before the partition.

        `monotonic_ms` is the clock of decisions, `steady_clock_ms` that by which producer ids expire. `on_progress` is
        called when a sync let records count. `on_disk_error` takes the log directory offline where the error says so
        much of it, which ends in a call of `take_offline`. `on_damage` is called when another replica is to lead: the
        log is not what was written, or `give_up_leadership`.
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
        # Opening a log leaves nothing in it unsynced.
        self.state.on_log_end(log.log_end_offset)
        self.error = ErrorCode.NONE
        # As produced, since this object was made.
        self.appended_bytes = 0
        self.is_internal = topic in INTERNAL_TOPICS
        # A sync was refused before it could begin, and is to be asked for again.
        self.is_flush_due = False
        # What a check found; what can be read is served on.
        self.damage: FoundDamage | None = None
        # The leader epoch in which this node cannot do what the leader must, though the log is whole.
        self._given_up_epoch: int | None = None
        self._refused = refused
        # By what they know the partition by.
        self.watchers: dict[Hashable, Watcher] = {}
        # Called once, with whether the disk refused; the follower that waits sets it.
        self.on_synced: Callable[[bool], None] | None = None
        # A sync that was asked for before the last cut says nothing of what is there now.
        self._cut_count = 0
        self._flusher = flusher
        self._monotonic_ms = monotonic_ms
        self._steady_clock_ms = steady_clock_ms
        self._on_progress = on_progress
        self._on_disk_error = on_disk_error
        self._on_damage = on_damage

    def append(
        self, records: Buffer, now_ms: int, acks: int = 1, verification: TransactionVerification | None = None
    ) -> AppendInfo:
        """Validates and appends one batch as the leader; raises KafkaError, and then nothing was appended.

        This replica has the batch when this returns, unless `flush.messages` asks for a sync first. `now_ms` is for the
        records' timestamps. `verification` is what `begin_verification` gave for the first batch of a transaction.
        """
        partition = self.state
        if not partition.is_leader:
            raise self.in_passing(records, KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        log = self.log
        if acks == ALL and partition.is_under_min_isr:
            raise self.in_passing(records, self._too_few_in_sync())
        if self._refused:
            self._refused.check(records, log.producers.entries, self._monotonic_ms())
        try:
            info = log.append_as_leader(
                records,
                leader_epoch=partition.leader_epoch,
                now_ms=now_ms,
                appended_ms=self._steady_clock_ms(),
                verification=verification,
            )
        except OSError as error:
            raise self.in_passing(records, self._refusal(error)) from error
        except CorruptData as error:
            # What is corrupt is not the producer's batch, but what lies in the log before it.
            raise self.in_passing(records, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))) from error
        except KafkaError as error:
            if error.code is ErrorCode.KAFKA_STORAGE_ERROR:
                self.in_passing(records, error)
            raise
        if not info.is_duplicate:
            self.appended_bytes += len(records)
            end_offset = info.last_offset + 1
            if log.unflushed_records < log.config.flush_messages:
                partition.on_log_end(end_offset, self._monotonic_ms() if partition.is_replicated else 0)
            else:
                self._request_flush(end_offset)
        return info

    def append_of_coordinator(
        self,
        batch: bytes,
        now_ms: int,
        *,
        verification: TransactionVerification | None = None,
        transaction_version: int = 0,
    ) -> AppendInfo:
        """Appends a batch of this node's own, as for a producer with acks=all.

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
        self.appended_bytes += len(batch)
        if log.unflushed_records < log.config.flush_messages:
            partition.on_log_end(info.last_offset + 1, self._monotonic_ms() if partition.is_replicated else 0)
        else:
            self._request_flush(info.last_offset + 1)
        log.producers.forget_completed(partition.high_watermark)
        return info

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, *, has_epoch_bumps: bool, now_ms: int
    ) -> TransactionVerification | None:
        """What a transaction's batch needs before it may be appended here; None while the transaction goes on here.

        Raises KafkaError.
        """
        if not self.state.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self.log.producers.begin_verification(
            producer_id, epoch, sequence, has_epoch_bumps=has_epoch_bumps, now_ms=now_ms
        )

    def holds_verification(self, producer_id: int, verification: TransactionVerification) -> bool:
        """Whether neither a batch nor an end of its transaction came here since it was begun."""
        return self.log.producers.holds_verification(producer_id, verification)

    def append_as_follower(self, records: memoryview, now_ms: int) -> bool:
        """Appends what the leader has, as it is; raises KafkaError, and then nothing was appended.

        This replica has it when this returns, unless `flush.messages` asks for a sync first: see `is_synced`. True when
        more may be read here now: the leader has said before that it is committed.
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
            # An error may come after some of the batches.
            if log.log_end_offset > before:
                self.appended_bytes += len(records)
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
        """Whether all of the log counts. If not, `on_synced` is called when it does, or when a sync was refused."""
        return self.state.log_end_offset >= self.log.log_end_offset

    def on_leader_offsets(self, *, high_watermark: int, log_start_offset: int) -> bool:
        """What the leader says of itself; True when more may be read here now.

        What the leader has deleted goes here too, as far as it is known to be committed.
        """
        has_moved = self.state.on_leader_offsets(high_watermark, log_start_offset)
        self.log.increment_log_start_offset(self.state.deleted_end_offset)
        return has_moved

    def on_cut(self) -> None:
        """The log was cut, or began anew."""
        self._cut_count += 1
        log = self.log
        is_synced = log.unflushed_records < log.config.flush_messages
        log_end_offset = log.log_end_offset if is_synced else max(log.recovery_point, log.log_start_offset)
        self.state.on_truncated(log_start_offset=log.log_start_offset, log_end_offset=log_end_offset)
        if is_synced:
            # The sync that somebody may wait for was of what is gone.
            self._tell_synced(is_refused=False)
        else:
            self._request_flush(log.log_end_offset)
        if log.damage is not None and self.damage is None:
            self._note_damage(FoundDamage(log.damage.offset, 0), log.damage.reason)

    def read(self, start_offset: int, max_bytes: int, end_offset: int, min_one_batch: bool) -> FetchData:
        """`Log.read`, with errors as `with_storage_errors` has them."""
        try:
            return self.log.read(start_offset, max_bytes=max_bytes, end_offset=end_offset, min_one_batch=min_one_batch)
        except (OSError, CorruptData) as error:
            self.check(start_offset, min(max_bytes, CHECK_BYTES))
            raise self._refusal(error) from error

    def aborted_transactions(self, data: FetchData, start_offset: int, end_offset: int) -> list[tuple[int, int]]:
        """Producer id and first offset of those that have records in `data`, as `Log.aborted_transactions_in`. Raises
        KafkaError: without them a consumer would take aborted records for committed ones."""
        return self.with_storage_errors(
            lambda: [
                (one.producer_id, one.first_offset)
                for one in self.log.aborted_transactions_in(data, start_offset, end_offset)
            ]
        )

    def check(self, offset: int, size: int) -> None:
        """Something was wrong with what was read from `offset` on: it is read again, `size` bytes, and each batch
        compared with its CRC. Nothing is checked twice: see `recheck`."""
        if self.damage is not None:
            return
        try:
            self.log.check(offset, size)
        except (CorruptData, ReadError) as error:
            self._note_damage(FoundDamage(offset, size), error)
        except OSError:
            # Of no file in particular, as when descriptors are short; who asked was told.
            pass

    def _note_damage(self, found: FoundDamage, reason: object) -> None:
        self.damage = found
        logger.error("log damaged: topic=%s partition=%d reason=%s", self.topic, self.index, reason)
        self._on_damage(self)

    def recheck(self) -> bool:
        """Whether there is still damage where some was found: a disk may have been in trouble for a moment."""
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
        logger.info("log whole again: topic=%s partition=%d offset=%d", self.topic, self.index, found.offset)
        return False

    def give_up_leadership(self) -> None:
        """Another in-sync replica is to lead, as for a damaged log, but the log is whole and stays.

        The controller is asked again and again, until the leader epoch rises or `keep_leadership`.
        """
        self._given_up_epoch = self.state.leader_epoch
        self._on_damage(self)

    def keep_leadership(self) -> None:
        """What `give_up_leadership` was called for is over."""
        self._given_up_epoch = None

    @property
    def is_leadership_given_up(self) -> bool:
        return self.state.is_leader and self._given_up_epoch == self.state.leader_epoch

    def with_storage_errors(self, use: Callable[[], T]) -> T:
        """Does something with the log; raises KafkaError, KAFKA_STORAGE_ERROR and CORRUPT_MESSAGE among them."""
        try:
            return use()
        except (OSError, CorruptData) as error:
            raise self._refusal(error) from error

    def in_passing(self, batch: Buffer, error: KafkaError) -> KafkaError:
        """Returns the error, which is about to be raised, and says nothing of the batch: see `refused_batches.py`."""
        return self._refused.note(batch, error, self._monotonic_ms())

    def _too_few_in_sync(self) -> KafkaError:
        return KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"Fewer replicas of partition {self.log.name} are in sync than its min.insync.replicas of "
            f"{self.log.config.min_insync_replicas}.",
        )

    def _refusal(self, error: OSError | CorruptData) -> KafkaError:
        if isinstance(error, CorruptData):
            return KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error))
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
        """Whether an append of this leadership that ended at `end_offset` does not count yet."""
        partition = self.state
        return end_offset > (partition.high_watermark if acks == ALL else partition.log_end_offset)

    def flush_again(self) -> None:
        """What was appended waits for a sync that was refused for want of room."""
        # The folder of a partition that has left this node goes, and that it is gone says nothing about the disk.
        if self.is_flush_due and self.error is ErrorCode.NONE:
            self.is_flush_due = False
            self._request_flush(self.log.log_end_offset)

    def _request_flush(self, end_offset: int) -> None:
        self._flusher.request(self.log, end_offset, partial(self._on_flushed, end_offset, self._cut_count))

    def append_result(self, end_offset: int, leader_epoch: int, acks: int) -> ErrorCode | None:
        """What became of an append that ended at `end_offset` in `leader_epoch`; None while that is open."""
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
        """From now on requests are answered with `error`."""
        assert error is not ErrorCode.NONE, "a partition does not come back"
        self.error = error
        self.state.leave()
