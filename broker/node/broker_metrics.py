"""What a broker's parts have to tell, added to the node's metrics."""

from __future__ import annotations

from typing import Final

from ...storage.directories.log_directories import LogDirectories
from ...storage.disk.files import Files
from ..cluster.metadata_cache import MetadataCache
from ..configuration.penstock_keys import METRICS_KAFKA_EXPORTER, METRICS_PER_PARTITION
from ..configuration.topic_configs import ConfigResolver
from ..metrics.cleaner_reader import CleanerReader
from ..metrics.coordinator_reader import GroupReader, TransactionReader
from ..metrics.lag_reader import GroupLagReader, PartitionOffsetReader
from ..metrics.metrics import Metrics
from ..metrics.quorum_reader import MetadataReader
from ..metrics.replica_reader import (
    DirectoryReader,
    DiskReader,
    MoveReader,
    ReplicaReader,
    StateReader,
    WaitingReader,
)
from ..metrics.scrub_reader import ScrubReader
from ..metrics.telemetry_reader import TelemetryReader
from ..metrics.topic_reader import TopicReader
from ..timing.runtime import Runtime
from .wiring import BrokerParts

LATE_TRANSACTION_MS: Final = 5 * 60_000
"""What a coordinator may need to end a transaction that timed out. Kafka: LATE_TRANSACTION_BUFFER_MS."""


def add_broker_metrics(
    metrics: Metrics,
    parts: BrokerParts,
    metadata: MetadataCache,
    directories: LogDirectories,
    files: Files,
    runtime: Runtime,
    *,
    transaction_max_timeout_ms: int,
) -> None:
    """`transaction_max_timeout_ms`: how long a producer may leave a transaction open."""
    data_path = parts.data_path
    lags = GroupLagReader(
        parts.groups,
        parts.partitions,
        parts.admin_channel,
        is_enabled=lambda: is_on(parts.configs, METRICS_KAFKA_EXPORTER),
        now_ms=metrics.watch.now_ms,
    )
    metrics.add_preparation(lags.prepare)
    for reader in (
        TopicReader(parts.partitions),
        ReplicaReader(
            parts.partitions,
            parts.alter_partitions,
            parts.fetchers,
            queued_assignments=lambda: parts.directories.queued_count,
            is_per_partition=lambda: is_on(parts.configs, METRICS_PER_PARTITION),
            late_before_ms=lambda: runtime.wall_clock_ms() - transaction_max_timeout_ms - LATE_TRANSACTION_MS,
        ),
        CleanerReader(parts.cleaner, directories, runtime.loop.time),
        MoveReader(parts.mover),
        ScrubReader(parts.scrubber),
        DirectoryReader(directories, parts.flush_times, metrics.watch.now_ms),
        WaitingReader(data_path.sessions, data_path.produces, data_path.fetches, data_path.deletes),
        StateReader(lambda: parts.lifecycle.state),
        GroupReader(parts.groups, metrics.watch.now_ms),
        TransactionReader(parts.transactions, data_path.verifier, metrics.watch.now_ms),
        lags,
        PartitionOffsetReader(
            parts.partitions, metadata, is_enabled=lambda: is_on(parts.configs, METRICS_KAFKA_EXPORTER)
        ),
        MetadataReader(metadata, runtime.wall_clock_ms),
        TelemetryReader(parts.telemetry),
    ):
        metrics.add_reader(reader)
    if parts.tier is not None:
        from ..metrics.tier_reader import TierMetricsReader

        metrics.add_reader(TierMetricsReader(parts.partitions, parts.tier.metadata, parts.tier.reader))
    metrics.add_disk_reader(DiskReader(directories, files))
    metrics.add_source(parts.telemetry)


def is_on(configs: ConfigResolver, key: str) -> bool:
    return configs.in_effect.get(key, "").strip().lower() == "true"
