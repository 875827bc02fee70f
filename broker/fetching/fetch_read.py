"""The read of a fetch request: its partitions, from the session to the answers. Kafka: `ReplicaManager.readFromLog`."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.fetch import PartitionFetchResponse
from ...protocol.ids import NO_LEADER_EPOCH, BrokerEpoch, NodeId
from ..replicas.replica_manager import ReplicaManager
from ..replicas.rules.effects import Effect
from ..replication.rules.replication_quota import ReplicationQuota
from .rules.closest_replica import Reader, closest_replica
from .rules.fetch_session import FetchablePartition
from .rules.fetch_sessions import FetchContext
from .rules.follower_session import FollowerSession

if TYPE_CHECKING:
    from ...storage.log.file_slice import FileSlice
    from ..replicas.partition import Partition

PartitionAnswer: TypeAlias = "PartitionFetchResponse[FileSlice]"
FetchAnswers: TypeAlias = list[tuple[FetchablePartition, PartitionAnswer]]

NOT_IN_METADATA: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
"""Errors that do not complete a delayed fetch if it has readable partitions, as in Kafka: they last until the client
changes its request, and would otherwise make it fetch without a pause."""


NO_REPLICA: Final = -1


class FetchEnd(Enum):
    """The upper bound of a fetch. Kafka: `FetchIsolation`."""

    LOG_END = 0
    HIGH_WATERMARK = 1
    LAST_STABLE_OFFSET = 2


class FetchLimits(NamedTuple):
    """Parameters of a fetch request for all its partitions. Kafka: `FetchParams`."""

    end: FetchEnd
    min_bytes: int
    max_bytes: int
    is_leader_only: bool = True
    """True if only the leader may answer it (KIP-392)."""
    reader: Reader | None = None
    """The consumer, if it can be redirected to a preferred read replica."""


class FollowerFetch(NamedTuple):
    """The follower's identity as one process, and the time of its fetch by the clock of decisions."""

    replica_id: NodeId
    broker_epoch: BrokerEpoch
    now_ms: int


class TierData(Protocol):
    """What a read of the tier found."""

    @property
    def slices(self) -> Sequence[FileSlice]: ...

    @property
    def size(self) -> int: ...

    @property
    def aborted(self) -> Sequence[tuple[int, int]]: ...


class Tier(Protocol):
    """The part of `tiers/tier_reader.py` that fetches use."""

    @property
    def max_wait_ms(self) -> int: ...

    def read(
        self, partition: Partition, offset: int, max_bytes: int, *, min_one_batch: bool, with_aborted: bool
    ) -> TierData | None:
        """None while it is on its way: the partition's fetches are completed when it is there. Raises KafkaError."""

    def is_loading(self, partition: Partition, offset: int) -> bool: ...


class LeaderThrottle(NamedTuple):
    """Throttles the records of throttled partitions for a follower outside the ISR (KIP-73)."""

    quota: ReplicationQuota
    replica_id: NodeId
    now_ms: Callable[[], int]

    def is_throttled(self, partition: Partition) -> bool:
        return (
            self.quota.is_throttled(partition.topic, partition.index)
            and not partition.state.is_in_sync(self.replica_id)
            and self.quota.is_exceeded(self.now_ms())
        )

    def on_sent(self, answers: FetchAnswers) -> None:
        for wanted, answer in answers:
            if answer.slices and wanted.topic is not None and self.quota.is_throttled(wanted.topic, wanted.index):
                self.quota.record(sum(part.size for part in answer.slices), self.now_ms())


class FetchRead:
    """Reads the partitions of one request, at first and again while it waits.

    Answers are file slices: only indexes and, at times, batch headers are read from files here.
    """

    __slots__ = (
        "_appended_bytes",
        "_denied",
        "_hidden_from",
        "_limits",
        "_partitions",
        "_session",
        "_throttle",
        "_tier",
        "answers",
        "context",
        "effects",
        "waits_for_tier",
    )

    def __init__(
        self,
        partitions: ReplicaManager,
        context: FetchContext,
        limits: FetchLimits,
        throttle: LeaderThrottle | None = None,
        tier: Tier | None = None,
        denied: Container[FetchablePartition] | None = None,
    ) -> None:
        """`denied` are partitions that the client may not read. `tier` has the records below local logs, where
        tiered storage is on. `throttle` is set for a follower's fetch if any partition is throttled."""
        self._denied = denied
        self._throttle = throttle
        self._tier = tier
        self.waits_for_tier = False
        """Whether records that the last read was to answer are on their way from the tier."""
        self._partitions = partitions
        self.context = context
        # A follower's session knows which of its partitions are ready to read.
        self._session = context.session if isinstance(context.session, FollowerSession) else None
        self._limits = limits
        self._appended_bytes = 0
        # Sum of the partitions' upper bounds at the last read; None if no log had more records above its bound.
        self._hidden_from: int | None = None
        self.answers: FetchAnswers = []
        """Those of the last read: of all partitions but those with no news for the fetch session."""
        self.effects: list[tuple[Partition, Sequence[Effect]]] = []
        """Effects of a follower's fetch offsets, to apply once the request is answered or parked."""

    @property
    def keys(self) -> Sequence[Partition]:
        """The purgatory keys; none for a follower's session, which watches its partitions itself."""
        return () if self._session is not None else self._replicas()

    def read(self, follower: FollowerFetch | None = None) -> bool:
        """Reads every partition anew; returns True if the response should be sent at once.

        With `follower`, the follower's fetch offsets are applied first: once for each request.
        """
        limit_bytes = self._limits.max_bytes
        is_incremental = self.context.session is not None
        may_be_idle = is_incremental and follower is None and self._limits.reader is None
        total_bytes = appended_bytes = 0
        # The first batch of the response may exceed every limit, or a client could never get past it (KIP-74).
        min_one_batch = True
        has_news = False
        session = self._session
        has_readable = session is not None
        answers: FetchAnswers = []
        self.waits_for_tier = False
        denied = self._denied
        for partition in self.context.partitions if session is None else session.wanted():
            if denied is not None and partition in denied:
                answers.append((partition, failed(partition.index, ErrorCode.TOPIC_AUTHORIZATION_FAILED, ())))
                continue
            hosted = partition.hosted
            if hosted is None or hosted.error is not ErrorCode.NONE:
                error = self._find(partition)
                if error is not ErrorCode.NONE:
                    is_erroneous = error in NOT_IN_METADATA
                    answers.append((partition, failed(partition.index, error, () if is_erroneous else None)))
                    has_news = has_news or not is_erroneous
                    continue
                hosted = partition.hosted
                assert hosted is not None, "found"
                if session is not None:
                    session.watch(partition, hosted)
            has_readable = True
            if may_be_idle and is_idle(hosted, partition):
                continue
            answer, size = self._read_partition(
                hosted, partition, min(limit_bytes, partition.max_bytes), min_one_batch, follower
            )
            if size:
                # Of the tier's records there are no more to wait for.
                has_news = has_news or partition.fetch_offset < hosted.log.local_log_start_offset
                min_one_batch = False
                limit_bytes = max(0, limit_bytes - size)
                total_bytes += size
            elif (
                answer.error_code
                or answer.diverging_epoch is not None
                or answer.preferred_read_replica != NO_REPLICA
                or self._is_new_log_start(hosted, partition)
            ):
                has_news = True
            elif is_incremental and partition.is_known(answer.high_watermark, answer.log_start_offset):
                has_all = partition.fetch_offset == hosted.log.log_end_offset
                if session is not None and has_all and hosted.state.is_in_sync(session.replica_id):
                    session.mark_idle(partition)
                continue
            answers.append((partition, answer))
        self.answers = answers
        if self._limits.min_bytes > 1 and session is None:
            appended_bytes = sum(hosted.appended_bytes for hosted in self._replicas())
            end_offset = self._sum_of_ends()
            is_hidden = end_offset < sum(hosted.log.log_end_offset for hosted in self._replicas())
            self._hidden_from = end_offset if is_hidden else None
        self._appended_bytes = appended_bytes - total_bytes
        return has_news or not has_readable or total_bytes >= self._limits.min_bytes

    def on_sent(self) -> None:
        """The answers go out: a follower's throttled bytes count from now on."""
        if self._throttle is not None:
            self._throttle.on_sent(self.answers)

    def fail(self, error: ErrorCode) -> None:
        """Answers every partition with `error`."""
        self.answers = [(partition, failed(partition.index, error)) for partition in self.context.partitions]

    def may_be_ready(self, partition: FetchablePartition) -> bool:
        """True if a change of this partition of a follower's session is a reason to read again."""
        hosted = partition.hosted
        return hosted is not None and (self._limits.min_bytes > 1 or self._has_happened(hosted, partition))

    def has_changed(self) -> bool:
        """True if `read` could find enough now; must be cheap: every append to a partition calls it."""
        is_counting = self._limits.min_bytes > 1
        appended_bytes = 0
        for partition in self.context.partitions:
            hosted = partition.hosted
            if hosted is None:
                continue
            if self._has_happened(hosted, partition):
                return True
            if is_counting:
                appended_bytes += hosted.appended_bytes
        # The bytes appended since are an upper bound of the new readable bytes, unless the high watermark or the last
        # stable offset advanced over older records.
        return is_counting and (
            appended_bytes - self._appended_bytes >= self._limits.min_bytes
            or (self._hidden_from is not None and self._hidden_from != self._sum_of_ends())
        )

    def _find(self, partition: FetchablePartition) -> ErrorCode:
        """Looks the partition up; returns NONE or the error. A topic id is resolved to a name once, so that a topic
        recreated under the same name is not mistaken for the topic of the session."""
        partition.hosted = None
        if partition.topic is None:
            if partition.topic_id is not None:
                hosted = self._partitions.find_by_id(partition.topic_id.bytes, partition.index)
                if hosted is not None:
                    partition.topic = hosted.topic
                    partition.hosted = hosted
                    return ErrorCode.NONE
                partition.topic = self._partitions.topic_name(partition.topic_id)
            if partition.topic is None:
                return ErrorCode.UNKNOWN_TOPIC_ID
        hosted = self._partitions.find(partition.topic, partition.index)
        if hosted is None:
            return self._partitions.absence(partition.topic, partition.index)
        if partition.topic_id is not None and partition.topic_id != hosted.topic_id:
            return ErrorCode.INCONSISTENT_TOPIC_ID
        partition.hosted = hosted
        return ErrorCode.NONE

    def _read_partition(
        self,
        partition: Partition,
        wanted: FetchablePartition,
        max_bytes: int,
        min_one_batch: bool,
        follower: FollowerFetch | None,
    ) -> tuple[PartitionAnswer, int]:
        state = partition.state
        partition.counters.fetches += 1
        if follower is None:
            error = self._check(partition, wanted)
        else:
            error = state.check_follower(follower.replica_id, wanted.current_leader_epoch, follower.broker_epoch)
        if error is not ErrorCode.NONE:
            return failed(wanted.index, error), 0
        log = partition.log
        offset = wanted.fetch_offset
        high_watermark = state.high_watermark
        log_start_offset = log.log_start_offset
        last_stable_offset = log.last_stable_offset(high_watermark)
        if wanted.last_fetched_epoch >= 0:
            known = log.leader_epochs.end_offset_for(wanted.last_fetched_epoch, log.log_end_offset)
            if known is None or offset < log_start_offset:
                return failed(wanted.index, ErrorCode.OFFSET_OUT_OF_RANGE), 0
            if follower is not None and not log.leader_epochs.vouches_for(wanted.last_fetched_epoch):
                # Below this log's start the follower may have records that were never committed. It truncates to that
                # start, gets OFFSET_OUT_OF_RANGE there, and then restarts its log.
                if offset == log_start_offset:
                    return failed(wanted.index, ErrorCode.OFFSET_OUT_OF_RANGE), 0
                known = (wanted.last_fetched_epoch, log_start_offset)
            if known[0] < wanted.last_fetched_epoch or known[1] < offset:
                return (
                    PartitionFetchResponse(
                        wanted.index,
                        0,
                        high_watermark,
                        last_stable_offset,
                        log_start_offset,
                        diverging_epoch=known,
                    ),
                    0,
                )
        if not log_start_offset <= offset <= log.log_end_offset:
            return failed(wanted.index, ErrorCode.OFFSET_OUT_OF_RANGE), 0
        if follower is not None:
            effects = state.on_follower_fetch(
                follower.replica_id,
                fetch_offset=offset,
                log_start_offset=wanted.log_start_offset,
                leader_end_offset=log.log_end_offset,
                broker_epoch=follower.broker_epoch,
                now_ms=follower.now_ms,
            )
            if effects:
                self.effects.append((partition, effects))
                high_watermark = state.high_watermark
                last_stable_offset = log.last_stable_offset(high_watermark)
        elif self._limits.reader is not None:
            closest = closest_replica(state, self._partitions.image.brokers, offset, self._limits.reader)
            if closest is not None:
                return (
                    PartitionFetchResponse(
                        wanted.index,
                        0,
                        high_watermark,
                        last_stable_offset,
                        log_start_offset,
                        preferred_read_replica=closest,
                    ),
                    0,
                )
        if offset < log.local_log_start_offset:
            return self._read_tier(
                partition,
                wanted,
                max_bytes,
                min_one_batch,
                PartitionFetchResponse(wanted.index, 0, high_watermark, last_stable_offset, log_start_offset),
                is_of_follower=follower is not None,
            )
        end_offset = self._end_offset(partition)
        aborted: Sequence[tuple[int, int]] | None = () if self._limits.end is FetchEnd.LAST_STABLE_OFFSET else None
        slices: Sequence[FileSlice] = ()
        size = 0
        is_held_back = self._throttle is not None and self._throttle.is_throttled(partition)
        if offset < end_offset and (max_bytes > 0 or min_one_batch) and not is_held_back:
            try:
                data = partition.read(offset, max_bytes, end_offset, min_one_batch)
                if data.size and self._may_be_damaged(partition, offset, follower):
                    partition.check(offset, data.size)
                    if partition.damage is not None:
                        data = partition.read(offset, max_bytes, end_offset, min_one_batch)
                slices, size = data
                if aborted is not None and size:
                    aborted = partition.aborted_transactions(data, offset, end_offset)
            except KafkaError as failure:
                partition.counters.failed_fetches += 1
                return failed(wanted.index, failure.code), 0
        return (
            PartitionFetchResponse(
                wanted.index, 0, high_watermark, last_stable_offset, log_start_offset, slices, aborted
            ),
            size,
        )

    @staticmethod
    def _may_be_damaged(partition: Partition, offset: int, follower: FollowerFetch | None) -> bool:
        """Whether those who were sent records from `offset` on have asked for them suspiciously often."""
        if follower is None:
            return partition.repeated_reads.on_sent(offset, partition.log.active_segment_base_offset)
        return partition.state.on_follower_sent(follower.replica_id, offset)

    def _read_tier(
        self,
        partition: Partition,
        wanted: FetchablePartition,
        max_bytes: int,
        min_one_batch: bool,
        empty: PartitionAnswer,
        *,
        is_of_follower: bool,
    ) -> tuple[PartitionAnswer, int]:
        """Only the tier has the records; a follower begins behind them."""
        if is_of_follower or self._limits.end is FetchEnd.LOG_END or self._tier is None:
            return failed(wanted.index, ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE), 0
        with_aborted = self._limits.end is FetchEnd.LAST_STABLE_OFFSET
        if with_aborted:
            empty = empty._replace(aborted_transactions=())
        try:
            found = self._tier.read(
                partition, wanted.fetch_offset, max_bytes, min_one_batch=min_one_batch, with_aborted=with_aborted
            )
        except KafkaError as failure:
            return failed(wanted.index, failure.code), 0
        if found is None:
            self.waits_for_tier = True
            return empty, 0
        if with_aborted:
            empty = empty._replace(aborted_transactions=found.aborted)
        return empty._replace(slices=found.slices), found.size

    def _sum_of_ends(self) -> int:
        return sum(map(self._end_offset, self._replicas()))

    def _has_happened(self, partition: Partition, wanted: FetchablePartition) -> bool:
        """True if this partition alone is a reason to read again."""
        if partition.error is not ErrorCode.NONE or self._check(partition, wanted) is not ErrorCode.NONE:
            return True
        log = partition.log
        offset = wanted.fetch_offset
        if not log.log_start_offset <= offset <= log.log_end_offset:
            # The log was truncated, or records were deleted at its start.
            return True
        if self._is_new_log_start(partition, wanted):
            return True
        if offset < log.local_log_start_offset:
            return self._tier is None or not self._tier.is_loading(partition, offset)
        return self._limits.min_bytes <= 1 and offset < self._end_offset(partition)

    def _check(self, partition: Partition, wanted: FetchablePartition) -> ErrorCode:
        state = partition.state
        if self._limits.is_leader_only:
            return state.check_leader(wanted.current_leader_epoch)
        return state.compare_epoch(wanted.current_leader_epoch)

    def _is_new_log_start(self, partition: Partition, wanted: FetchablePartition) -> bool:
        """True if a follower does not know the log start offset yet; a delayed DeleteRecords may wait for it."""
        return (
            self._limits.end is FetchEnd.LOG_END and -1 < wanted.sent_log_start_offset < partition.log.log_start_offset
        )

    def _end_offset(self, partition: Partition) -> int:
        """Returns the offset (exclusive) up to which this fetch may read the partition."""
        end = self._limits.end
        if end is FetchEnd.HIGH_WATERMARK:
            return partition.state.high_watermark
        if end is FetchEnd.LAST_STABLE_OFFSET:
            return partition.log.last_stable_offset(partition.state.high_watermark)
        return partition.log.log_end_offset

    def _replicas(self) -> list[Partition]:
        return [partition.hosted for partition in self.context.partitions if partition.hosted is not None]


def is_idle(hosted: Partition, partition: FetchablePartition) -> bool:
    """True if the client has all records and all offsets: a short cut for most partitions of most session fetches."""
    state = hosted.state
    log = hosted.log
    return (
        partition.fetch_offset == log.log_end_offset == state.high_watermark == partition.sent_high_watermark
        and partition.sent_log_start_offset == log.log_start_offset
        and state.is_leader
        and partition.current_leader_epoch in (NO_LEADER_EPOCH, state.leader_epoch)
        and partition.last_fetched_epoch in (NO_LEADER_EPOCH, state.leader_epoch)
    )


def failed(index: int, error: ErrorCode, aborted: Sequence[tuple[int, int]] | None = None) -> PartitionAnswer:
    return PartitionFetchResponse(index, error, aborted_transactions=aborted)
