"""The path of records through a node: partitions, what waits for them, and the handlers of Produce and Fetch, joined.

The same function joins them for the product and for tests that put puppets at its ports.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Final

from msgspec import Struct

from ...protocol.ids import NodeId
from ...quorum.metadata.image import MetadataImage
from ...storage.log.rules.config import LogConfig
from ..apis.fetch import FetchHandler
from ..apis.produce import ProduceHandler
from ..coordinators.transaction_verifier import Peers, TransactionVerifier, VerificationConfig
from ..fetching.fetch_read import Tier
from ..fetching.rules.fetch_sessions import FetchSessions
from ..network.rules.request_memory import RequestMemory
from ..network.rules.request_statistics import RequestStatistics
from ..replicas.partition import Flusher, Partition
from ..replicas.ports import AlterPartitions, Logs, ReplicaFetchers
from ..replicas.replica_manager import ReplicaManager
from ..replication.rules.replication_quota import ReplicationQuota
from ..timing.purgatory import Purgatory
from ..timing.runtime import Runtime

SESSION_ID_BITS: Final = 31
"""Fetch session ids are positive numbers of 32 bits; 0 means none."""


class DataPathConfig(Struct, frozen=True, kw_only=True):
    """Kafka's properties of these names."""

    node_id: NodeId
    replica_lag_time_max_ms: int
    max_incremental_fetch_session_cache_slots: int
    fetch_max_bytes: int
    is_closest_replica_read: bool
    """`replica.selector.class` is RackAwareReplicaSelector."""


class DataPath(Struct, frozen=True, kw_only=True):
    produces: Purgatory
    fetches: Purgatory
    deletes: Purgatory
    partitions: ReplicaManager
    verifier: TransactionVerifier
    sessions: FetchSessions
    produce: ProduceHandler
    fetch: FetchHandler


def wire_data_path(
    config: DataPathConfig,
    logs: Logs,
    flusher: Flusher,
    alter_partitions: AlterPartitions,
    coordinators: Peers,
    *,
    make_fetchers: Callable[[ReplicaManager], ReplicaFetchers],
    log_config: Callable[[MetadataImage, str], LogConfig],
    high_watermarks: Mapping[tuple[str, int], int],
    on_disk_error: Callable[[str, OSError], None],
    on_internal_change: Callable[[Partition], None],
    on_damage: Callable[[Partition], None],
    suspected: Container[NodeId],
    verification: Callable[[], VerificationConfig],
    leader_quota: ReplicationQuota,
    memory: RequestMemory,
    requests: RequestStatistics,
    runtime: Runtime,
    tier: Callable[[], Tier | None] = lambda: None,
) -> DataPath:
    """`coordinators` verify transactions (KIP-890). `verification` is the configuration of that, `memory` is charged
    for requests that wait for it; `leader_quota` throttles what followers fetch; `requests` counts errors;
    `tier` reads below local logs."""
    produces, fetches, deletes = (Purgatory(runtime.loop, name) for name in ("Produce", "Fetch", "DeleteRecords"))
    partitions = ReplicaManager(
        node_id=config.node_id,
        logs=logs,
        flusher=flusher,
        log_config=log_config,
        high_watermarks=high_watermarks,
        produces=produces,
        fetches=fetches,
        deletes=deletes,
        make_fetchers=make_fetchers,
        alter_partitions=alter_partitions,
        lag_ms_max=config.replica_lag_time_max_ms,
        on_disk_error=on_disk_error,
        on_internal_change=on_internal_change,
        on_damage=on_damage,
        suspected=suspected,
        runtime=runtime,
    )
    verifier = TransactionVerifier(coordinators, lambda: partitions.image, verification, runtime=runtime)
    sessions = FetchSessions(
        config.max_incremental_fetch_session_cache_slots,
        lambda: runtime.random.randrange(1, 1 << SESSION_ID_BITS),
    )
    return DataPath(
        produces=produces,
        fetches=fetches,
        deletes=deletes,
        partitions=partitions,
        verifier=verifier,
        sessions=sessions,
        produce=ProduceHandler(partitions, verifier, memory, requests, runtime.wall_clock_ms),
        fetch=FetchHandler(
            partitions,
            sessions,
            max_bytes=config.fetch_max_bytes,
            is_closest_replica_read=config.is_closest_replica_read,
            leader_quota=leader_quota,
            requests=requests,
            monotonic_ms=runtime.monotonic_ms,
            call_soon=runtime.loop.call_soon,
            tier=tier,
        ),
    )
