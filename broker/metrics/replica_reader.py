"""Partitions, logs and replication. Kafka: `ReplicaManager`, `LogManager`, `AbstractFetcherManager`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Final

from ...protocol.errors import ErrorCode
from ...storage.directories.log_directories import LogDirectories
from ...storage.directories.log_mover import LogMover
from ...storage.disk.files import Files
from ..fetching.rules.fetch_sessions import FetchSessions
from ..replicas.partition import Partition
from ..replicas.replica_manager import ReplicaManager
from ..replication.alter_partition_manager import AlterPartitionManager
from ..replication.replica_fetcher_manager import ReplicaFetcherManager
from ..timing.purgatory import Purgatory
from ..timing.rules.duration_histogram import DurationHistogram
from . import leadership_values
from .rules import replica_metrics as metrics
from .rules.metric import Metric, Reading, Value, read, summary_of
from .rules.process_metrics import HIDDEN_PARTITIONS
from .rules.readings import WALKED_PER_TURN, Readings

PARTITIONS_MAX: Final = 20_000
"""Partitions with series of their own, where they are switched on."""
PROCESS_IO: Final = "/proc/self/io"
DISK_BYTES: Final = {b"read_bytes": metrics.DISK_READ, b"write_bytes": metrics.DISK_WRITTEN}
CLIENT_ID: Final = "Replica"
"""Kafka's label of the fetchers of a broker's followers."""


@dataclass(slots=True)
class PartitionCounts:
    """Of the hosted partitions."""

    hosted: int = 0
    leaders: int = 0
    under_replicated: int = 0
    under_min_isr: int = 0
    at_min_isr: int = 0
    reassigning: int = 0
    damaged: int = 0
    late_transactions: int = 0
    producer_ids: int = 0

    def count(self, partition: Partition, partitions: ReplicaManager, late_before_ms: int) -> None:
        """`late_before_ms`: what has not written to its open transaction since then is late."""
        self.hosted += 1
        self.damaged += partition.damage is not None
        producers = partition.log.producers
        self.producer_ids += len(producers.entries)
        leadership = partition.state.leadership
        if leadership is None:
            return
        self.leaders += 1
        self.under_replicated += leadership.is_under_replicated
        self.under_min_isr += leadership.is_under_min_isr
        self.at_min_isr += leadership.is_at_min_isr
        written_ms = producers.oldest_open_timestamp()
        self.late_transactions += written_ms is not None and written_ms < late_before_ms
        registration = partitions.image.topics.partition(partition.topic, partition.index)
        self.reassigning += registration is not None and bool(
            registration.adding_replicas or registration.removing_replicas
        )


METRICS: Final[dict[str, Metric]] = {
    "hosted": metrics.PARTITIONS,
    "leaders": metrics.LEADERS,
    "under_replicated": metrics.UNDER_REPLICATED,
    "under_min_isr": metrics.UNDER_MIN_ISR,
    "at_min_isr": metrics.AT_MIN_ISR,
    "reassigning": metrics.REASSIGNING,
    "damaged": metrics.DAMAGED,
    "late_transactions": metrics.LATE_TRANSACTIONS,
    "producer_ids": metrics.PRODUCER_IDS,
}
"""By the fields of `PartitionCounts`."""


class ReplicaReader:
    def __init__(
        self,
        partitions: ReplicaManager,
        alter_partitions: AlterPartitionManager,
        fetchers: ReplicaFetcherManager,
        *,
        queued_assignments: Callable[[], int],
        is_per_partition: Callable[[], bool],
        late_before_ms: Callable[[], int],
        partitions_max: int = PARTITIONS_MAX,
    ) -> None:
        self._partitions = partitions
        self._queued_assignments = queued_assignments
        self._alter_partitions = alter_partitions
        self._fetchers = fetchers
        self._late_before_ms = late_before_ms
        self._is_per_partition = is_per_partition
        self._partitions_max = partitions_max

    def __call__(self) -> Readings:
        hosted = list(self._partitions.hosted)
        counts = PartitionCounts()
        late_before_ms = self._late_before_ms()
        for number, partition in enumerate(hosted):
            if number % WALKED_PER_TURN == 0:
                yield None
            # It may have left since the walk began.
            if partition.error is ErrorCode.NONE:
                counts.count(partition, self._partitions, late_before_ms)
        for field in fields(counts):
            yield read(METRICS[field.name], getattr(counts, field.name))
        yield read(metrics.OFFLINE_REPLICAS, self._partitions.offline_count)
        yield read(metrics.QUEUED_ASSIGNMENTS, self._queued_assignments())
        yield read(metrics.REPAIRS, self._partitions.repair_count)
        yield read(metrics.ISR_SHRINKS, self._alter_partitions.shrink_count)
        yield read(metrics.ISR_EXPANDS, self._alter_partitions.expand_count)
        yield read(metrics.FAILED_ISR_UPDATES, self._alter_partitions.failed_count)
        yield from self._read_fetchers()
        if self._is_per_partition():
            yield from _read_partitions(hosted[: self._partitions_max])
            yield read(HIDDEN_PARTITIONS, max(0, len(hosted) - self._partitions_max))

    def _read_fetchers(self) -> Readings:
        lags: Counter[str] = Counter()
        followed: Counter[str] = Counter()
        stalled = walked = 0
        for (leader_id, _), fetcher in list(self._fetchers.fetchers.items()):
            leader = str(leader_id)
            stalled += fetcher.stalled_count
            for partition in list(fetcher.followed):
                walked += 1
                if walked % WALKED_PER_TURN == 0:
                    yield None
                followed[leader] += 1
                lags[leader] = max(lags[leader], partition.state.follower_lag)
        yield Reading(metrics.MAX_LAG, [((CLIENT_ID,), max(lags.values(), default=0))])
        yield Reading(metrics.FAILED_PARTITIONS, [((CLIENT_ID,), stalled)])
        yield Reading(metrics.LEADER_LAG, [((leader,), lag) for leader, lag in lags.items()])
        yield Reading(metrics.FETCHED_PARTITIONS, [((leader,), count) for leader, count in followed.items()])


def _read_partitions(partitions: Sequence[Partition]) -> Readings:
    """Metric by metric, as they are written; a partition may leave meanwhile."""
    for metric, value_of in OF_PARTITION:
        for some in _slices(partitions):
            samples: list[tuple[tuple[str, ...], Value]] = []
            for one in some:
                samples.append(((one.topic, str(one.index)), value_of(one)))
            yield Reading(metric, samples)
    for some in _slices(partitions):
        yield Reading(
            metrics.FETCHER_LAG,
            [
                ((f"ReplicaFetcherThread-0-{one.state.leader_id}", one.topic, str(one.index)), one.state.follower_lag)
                for one in some
                if one.state.is_following
            ],
        )


def _slices(partitions: Sequence[Partition]) -> Iterator[list[Partition]]:
    for start in range(0, len(partitions), WALKED_PER_TURN):
        yield [one for one in partitions[start : start + WALKED_PER_TURN] if one.error is ErrorCode.NONE]


def retention_percent(size_bytes: int, retention_bytes: int) -> int:
    return 100 * size_bytes // retention_bytes if retention_bytes > 0 else 0


OF_PARTITION: Final[Sequence[tuple[Metric, Callable[[Partition], float]]]] = (
    (metrics.LOG_SIZE, lambda one: one.log.size_bytes),
    (metrics.LOG_END, lambda one: one.log.log_end_offset),
    (metrics.LOG_START, lambda one: one.log.log_start_offset),
    (metrics.LOG_SEGMENTS, lambda one: one.log.segment_count),
    (metrics.RETENTION_PERCENT, lambda one: retention_percent(one.log.size_bytes, one.log.config.retention_bytes)),
    (metrics.STABLE_LAG, lambda one: one.state.high_watermark - one.log.last_stable_offset(one.state.high_watermark)),
    (metrics.HIGH_WATERMARK, lambda one: one.state.high_watermark),
    (metrics.PARTITION_UNDER_REPLICATED, leadership_values.is_under_replicated),
    (metrics.PARTITION_UNDER_MIN_ISR, lambda one: one.state.is_under_min_isr),
    (metrics.PARTITION_AT_MIN_ISR, leadership_values.is_at_min_isr),
    (metrics.PARTITION_IN_SYNC, leadership_values.in_sync),
    (metrics.PARTITION_REPLICAS, leadership_values.assigned),
)


class DirectoryReader:
    def __init__(self, directories: LogDirectories, flush_times: DurationHistogram, now_ms: Callable[[], int]) -> None:
        self._directories = directories
        self._flush_times = flush_times
        self._now_ms = now_ms

    def __call__(self) -> Readings:
        offline = [((one.path,), float(not one.is_online)) for one in self._directories]
        yield read(metrics.OFFLINE_DIRECTORIES, sum(value for _, value in offline))
        yield Reading(metrics.DIRECTORY_OFFLINE, offline)
        cordoned = [((one.path,), float(one.is_cordoned)) for one in self._directories]
        yield read(metrics.CORDONED_DIRECTORIES, sum(value for _, value in cordoned))
        yield Reading(metrics.DIRECTORY_CORDONED, cordoned)
        yield read(metrics.FLUSH_TIME, summary_of([self._flush_times], self._now_ms()))


class MoveReader:
    """Moves of logs between log directories. Kafka: `ReplicaAlterLogDirsManager`."""

    def __init__(self, mover: LogMover) -> None:
        self._mover = mover

    def __call__(self) -> Readings:
        yield read(metrics.MOVE_LAG, self._mover.lag_max)
        yield read(metrics.FAILED_MOVES, self._mover.failed_count)
        yield read(metrics.MOVING, self._mover.moving_count)
        yield read(metrics.MOVED, self._mover.completed_count)
        yield read(metrics.MOVED_BYTES, self._mover.moved_bytes)


class DiskReader:
    """Waits for the disks."""

    def __init__(self, directories: LogDirectories, files: Files) -> None:
        self._directories = directories
        self._files = files

    def __call__(self) -> Readings:
        free: list[tuple[tuple[str, ...], Value]] = []
        for directory in self._directories.online:
            try:
                free.append(((directory.path,), self._files.free_bytes(directory.path)))
            except OSError:
                # The next write finds out what is wrong with it.
                continue
        yield Reading(metrics.DISK_FREE, free)
        for name, count in self._disk_bytes():
            metric = DISK_BYTES.get(name)
            if metric is not None:
                yield read(metric, int(count))

    def _disk_bytes(self) -> Iterator[tuple[bytes, bytes]]:
        """What Linux counts for this process. Kafka: `LinuxIoMetricsCollector`."""
        try:
            text = self._files.read(PROCESS_IO)
        except OSError:
            # Another system, or a container that hides it.
            return
        for line in text.splitlines():
            name, _, count = line.partition(b":")
            yield name, count


class StateReader:
    """Whether the broker runs, in Kafka's numbers."""

    def __init__(self, state: Callable[[], int]) -> None:
        self._state = state

    def __call__(self) -> Readings:
        yield read(metrics.BROKER_STATE, self._state())


class WaitingReader:
    """Fetch sessions and purgatories."""

    def __init__(self, sessions: FetchSessions, produces: Purgatory, *others: Purgatory) -> None:
        self._sessions = sessions
        self._produces = produces
        self._purgatories = (produces, *others)

    def __call__(self) -> Readings:
        sessions = self._sessions.statistics()
        yield read(metrics.SESSIONS, sessions.session_count)
        yield read(metrics.SESSION_PARTITIONS, sessions.partition_count)
        yield read(metrics.SESSION_EVICTIONS, sessions.eviction_count)
        parked = [((one.name,), float(one.statistics().parked_count)) for one in self._purgatories]
        yield Reading(metrics.PURGATORY_SIZE, parked)
        yield Reading(metrics.DELAYED_OPERATIONS, parked)
        yield read(metrics.EXPIRED_PRODUCES, self._produces.statistics().expired_count)
        yield Reading(
            metrics.EXPIRED_OPERATIONS, [((one.name,), one.statistics().expired_count) for one in self._purgatories]
        )
