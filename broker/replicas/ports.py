"""What the replica manager uses of the rest of its node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol
from uuid import UUID

from ...protocol.ids import TopicId
from ...storage.directories.offline_logs import OfflineLogs
from ...storage.log.log import Log
from ...storage.log.rules.config import LogConfig
from ...storage.log.rules.producer_entry import ProducerEntry
from ...storage.log.rules.tiered_history import TieredHistory
from .partition import Partition
from .rules.in_sync_replicas import IsrProposal


class Logs(Protocol):
    """The part of `storage/directories/log_manager.py` that partitions use. Kafka: `LogManager`."""

    @property
    def offline(self) -> OfflineLogs:
        """Partitions without an open log, and why."""

    def get_or_create(
        self,
        topic: str,
        partition: int,
        topic_id: TopicId,
        config: LogConfig,
        *,
        directory_id: UUID | None = None,
        is_new: bool = False,
    ) -> Log:
        """Raises OSError when the log directory (existing or chosen) fails or is full; KafkaError when the log there
        belongs to another topic id; CorruptData when its files are not a log."""

    def not_counted_on(self) -> Iterable[tuple[str, int]]:
        """Partitions whose logs are there and cannot be opened, for good or for seconds."""

    def begin_repair(self, topic: str, partition: int, damage_offset: int | None) -> bool:
        """Discards a log's records from `damage_offset` on (None: from the damage found at opening), or a whole log
        that cannot be opened. Such a log is `offline` until it is opened again, the other no more. Returns False if
        there is nothing to repair. Raises OSError."""

    def delete(self, topic: str, partition: int) -> None: ...

    def update_config(self, topic: str, config: LogConfig) -> None: ...

    def truncate(self, offsets: Mapping[Log, int]) -> None:
        """Truncates logs of one log directory. Raises OSError."""

    def restart(
        self,
        log: Log,
        offset: int,
        producers: Iterable[ProducerEntry],
        now_ms: int,
        tiered: TieredHistory | None = None,
    ) -> None:
        """Truncates a log fully and restarts it at `offset` with this producer state. Raises OSError.

        Kafka: `LogManager.truncateFullyAndStartAt`.
        """


class ReplicaFetchers(Protocol):
    """The part of `replication/replica_fetcher_manager.py` that followers use. Kafka: `ReplicaFetcherManager`."""

    def follow(self, partition: Partition) -> None:
        """Starts fetching from the partition's leader at the log end offset."""

    def unfollow(self, partition: Partition) -> None:
        """Stops fetching; nothing is appended to the partition's log from now on."""

    def on_log_start(self, partition: Partition) -> None:
        """The partition's log start offset changed: a follower's next fetch reports it to the leader."""

    async def stop(self) -> None:
        """Nothing is fetched any more."""


class AlterPartitions(Protocol):
    """The part of `replication/alter_partition_manager.py` that leaders use. Kafka: `AlterPartitionManager`."""

    def submit(self, partition: Partition, proposal: IsrProposal) -> None:
        """Sends AlterPartition to the controller and passes its answer to the partition."""
