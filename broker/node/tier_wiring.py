"""The parts of tiered storage, made and joined where `remote.log.storage.system.enable` is true."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

from kio.schema.create_topics.v7.request import CreateTopicsRequest
from kio.static.primitive import i32Timedelta
from msgspec import Struct

from ...quorum.decisions.topics import CREATE_TOPICS
from ...storage.tiers.object_tier import open_tier as open_object_tier
from ...storage.tiers.rules.tier_store import OpenTier
from ..cluster.controller_channel import ControllerChannel
from ..cluster.metadata_cache import MetadataCache
from ..cluster.peer_channel import PeerChannel
from ..configuration.node_config import NodeConfig
from ..configuration.topic_configs import ConfigResolver
from ..coordinators.internal_topic import CREATION_TIMEOUT, InternalTopic
from ..replicas.replica_manager import ReplicaManager
from ..replication.rules.replication_quota import ReplicationQuota
from ..tiers.metadata_log import MetadataLog
from ..tiers.remote_log_manager import RemoteLogManager
from ..tiers.rules.metadata_records import METADATA_TOPIC
from ..tiers.segment_copier import SegmentCopier
from ..tiers.tier_loader import TierLoader
from ..tiers.tier_reader import TierReader
from ..tiers.timestamp_search import TimestampSearch
from ..timing.runtime import Runtime


class TierParts(Struct, frozen=True, kw_only=True):
    metadata: MetadataLog
    manager: RemoteLogManager
    reader: TierReader
    search: TimestampSearch
    executors: tuple[ThreadPoolExecutor, ...]

    async def close(self) -> None:
        """Nothing reads or copies any more. What waits for the store ends with that, and the process not before."""
        await self.reader.close()
        for executor in self.executors:
            executor.shutdown(wait=False, cancel_futures=True)


def wire_tier(
    config: NodeConfig,
    configs: ConfigResolver,
    metadata: MetadataCache,
    partitions: ReplicaManager,
    controller: ControllerChannel,
    peers: PeerChannel,
    *,
    open_tier: OpenTier | None,
    runtime: Runtime,
) -> TierParts:
    """`open_tier` in place of what the URL says. ConfigError when that is no tier."""
    tier = config.tier
    store = (open_tier or open_object_tier)(tier.storage_url)
    topic = InternalTopic(
        METADATA_TOPIC,
        lambda: metadata.image,
        controller,
        settled=partitions.settled,
        partition_count=tier.metadata_partition_count,
        replication_factor=tier.metadata_replication_factor,
        is_replication_factor_capped=tier.is_replication_factor_capped,
        configs=lambda replication_factor: {
            "cleanup.policy": "delete",
            "retention.ms": str(tier.metadata_retention_ms),
            "retention.bytes": "-1",
            # Local segments go on its word: with it, a loss of power must not take what only the tier has.
            "flush.messages": "1",
            "remote.storage.enable": "false",
            "unclean.leader.election.enable": "false",
            "min.insync.replicas": str(max(min(2, replication_factor - 1), 1)),
        },
    )
    copying = ThreadPoolExecutor(tier.copier_thread_pool_size, "tier-copies")
    reading = ThreadPoolExecutor(tier.reader_threads, "tier-reads")
    copy_quota = ReplicationQuota(
        window_count=tier.copy_quota_window_num, window_ms=1000 * tier.copy_quota_window_size_seconds
    )
    fetch_quota = ReplicationQuota(
        window_count=tier.fetch_quota_window_num, window_ms=1000 * tier.fetch_quota_window_size_seconds
    )

    def limit_rates(config: NodeConfig) -> None:
        copy_quota.limit(config.tier.copy_max_bytes_per_second)
        fetch_quota.limit(config.tier.fetch_max_bytes_per_second)

    limit_rates(configs.node_config)
    configs.on_change(lambda _old, new: limit_rates(new))
    log = MetadataLog(partitions, peers, topic.ensure, loop=runtime.loop, wall_clock_ms=runtime.wall_clock_ms)
    copier = SegmentCopier(
        store,
        log,
        copying,
        node_id=config.node_id,
        quota=copy_quota,
        loop=runtime.loop,
        wall_clock_ms=runtime.wall_clock_ms,
        monotonic_ms=runtime.monotonic_ms,
        random=runtime.random,
    )
    loader = TierLoader(
        store,
        reading,
        pending_max=tier.reader_max_pending_tasks,
        index_bytes_max=lambda: configs.node_config.tier.index_file_cache_total_size_bytes,
        quota=fetch_quota,
        on_loaded=partitions.complete_fetches,
        loop=runtime.loop,
        monotonic_ms=runtime.monotonic_ms,
    )
    reader = TierReader(loader, log, max_wait_ms=lambda: configs.node_config.tier.fetch_max_wait_ms)
    search = TimestampSearch(
        store,
        log,
        reading,
        searches_max=max(1, tier.reader_threads // 2),
        timeout_ms=lambda: configs.node_config.tier.list_offsets_timeout_ms,
        quota=fetch_quota,
        loop=runtime.loop,
        monotonic_ms=runtime.monotonic_ms,
    )
    manager = RemoteLogManager(
        partitions,
        log,
        copier,
        interval_ms=tier.task_interval_ms,
        copies_max=tier.copier_thread_pool_size,
        expirations_max=tier.expiration_thread_pool_size,
        confirm_metadata=_confirmation(controller),
        loop=runtime.loop,
        steady_clock_ms=runtime.steady_clock_ms,
    )
    return TierParts(metadata=log, manager=manager, reader=reader, search=search, executors=(copying, reading))


def _confirmation(controller: ControllerChannel) -> Callable[[], Awaitable[None]]:
    async def confirm() -> None:
        """A request that changes nothing is answered by a controller that a majority knows, and once this node's image
        has reached its own."""
        timeout = i32Timedelta.parse(CREATION_TIMEOUT)
        await controller.submit(CREATE_TOPICS, CreateTopicsRequest(topics=(), timeout=timeout, validate_only=True))

    return confirm
