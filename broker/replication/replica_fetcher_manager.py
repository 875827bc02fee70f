"""The fetchers by which this node's followers copy from the leaders on other nodes. Kafka: `ReplicaFetcherManager`.

Kafka: `ReplicaFetcherManager`.

One fetcher for each leader and each of `num.replica.fetchers`; it lives while it has something to fetch.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from ...protocol.ids import BrokerEpoch, NodeId
from ..cluster.metadata_cache import MetadataCache
from ..replicas.partition import Partition
from ..timing.runtime import Runtime
from .rules.fetcher_config import FetcherConfig
from .rules.replication_quota import ReplicationQuota

if TYPE_CHECKING:
    from ..cluster.peers import PeerConnector
    from .ports import FollowedLogs
    from .replica_fetcher import ReplicaFetcher

logger = logging.getLogger(__name__)


class ReplicationConfig(Struct, frozen=True, kw_only=True):
    """Kafka's property `num.replica.fetchers`, and those of each fetcher.

    `listener_name` is that of the listeners by which brokers reach each other.
    """

    node_id: NodeId
    listener_name: str
    fetcher_count: int
    fetcher: FetcherConfig


class ReplicaFetcherManager:
    """See `replica_manager.ReplicaFetchers`."""

    def __init__(
        self,
        config: ReplicationConfig,
        metadata: MetadataCache,
        partitions: FollowedLogs,
        *,
        peers: Callable[[], PeerConnector],
        broker_epoch: Callable[[], BrokerEpoch],
        quota: ReplicationQuota,
        on_closed_by_peer: Callable[[NodeId], None],
        runtime: Runtime,
    ) -> None:
        """`peers` is called when this node begins to follow a leader; `quota` is for what is fetched.

        `on_closed_by_peer` is called with a leader whose side closed a connection.
        """
        self._config = config
        self._metadata = metadata
        self._partitions = partitions
        self._peers = peers
        self._broker_epoch = broker_epoch
        self._quota = quota
        self._on_closed_by_peer = on_closed_by_peer
        self._runtime = runtime
        self._fetchers: dict[tuple[int, int], ReplicaFetcher] = {}
        self._tasks: dict[ReplicaFetcher, asyncio.Task[None]] = {}
        self._fetcher_of: dict[Partition, ReplicaFetcher] = {}
        self._is_stopped = False

    @property
    def fetchers(self) -> Mapping[tuple[int, int], ReplicaFetcher]:
        """By leader, and number among those of the leader."""
        return self._fetchers

    async def stop(self) -> None:
        """Nothing is fetched any more."""
        self._is_stopped = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def follow(self, partition: Partition) -> None:
        if self._is_stopped:
            return
        config = self._config
        leader_id = partition.state.leader_id
        number = (partition.topic_id.int + partition.index) % config.fetcher_count
        fetcher = self._fetchers.get((leader_id, number))
        if fetcher is not self._fetcher_of.get(partition):
            self.unfollow(partition)
        if fetcher is None:
            fetcher = self._begin_fetcher(leader_id, number)
        self._fetcher_of[partition] = fetcher
        fetcher.follow(partition)

    def unfollow(self, partition: Partition) -> None:
        fetcher = self._fetcher_of.pop(partition, None)
        if fetcher is None:
            return
        fetcher.unfollow(partition)
        if fetcher.is_idle:
            self._fetchers = {key: other for key, other in self._fetchers.items() if other is not fetcher}
            self._tasks.pop(fetcher).cancel()

    def on_log_start(self, partition: Partition) -> None:
        fetcher = self._fetcher_of.get(partition)
        if fetcher is not None:
            fetcher.on_log_start(partition)

    def _begin_fetcher(self, leader_id: NodeId, number: int) -> ReplicaFetcher:
        # A node that follows no leader starts without loading it.
        from .replica_fetcher import ReplicaFetcher

        fetcher = self._fetchers[leader_id, number] = ReplicaFetcher(
            leader_id,
            node_id=self._config.node_id,
            partitions=self._partitions,
            peers=self._peers(),
            address=lambda: self._address_of(leader_id),
            broker_epoch=self._broker_epoch,
            config=self._config.fetcher,
            quota=self._quota,
            on_closed_by_peer=self._on_closed_by_peer,
            runtime=self._runtime,
        )
        self._tasks[fetcher] = self._runtime.loop.create_task(self._run(fetcher, leader_id))
        return fetcher

    async def _run(self, fetcher: ReplicaFetcher, leader_id: NodeId) -> None:
        try:
            await fetcher.run()
        except Exception:
            logger.exception("Task failed: task=fetcher leader=%d", leader_id)
            self._runtime.fail(f"Following node {leader_id} ended by an unexpected error, see the log.")

    def _address_of(self, broker_id: NodeId) -> tuple[str, int] | None:
        broker = self._metadata.image.brokers.get(broker_id)
        endpoint = None if broker is None else broker.endpoint(self._config.listener_name)
        return None if endpoint is None else (endpoint.host, endpoint.port)
