"""Copies to the tier, reads from it, and what is up there. Kafka: `BrokerTopicMetrics`, `RemoteLogManager`."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Final

from ..replicas.replica_manager import ReplicaManager
from ..tiers.metadata_log import MetadataLog
from ..tiers.tier_reader import TierReader
from .rules import tier_metrics as metrics
from .rules.metric import Reading, read
from .rules.readings import Readings
from .topic_reader import TOPICS_MAX

FIELDS: Final = (
    (metrics.COPY_BYTES, "remote_copy_bytes"),
    (metrics.COPIES, "remote_copies"),
    (metrics.FAILED_COPIES, "failed_remote_copies"),
    (metrics.FETCH_BYTES, "remote_fetch_bytes"),
    (metrics.FETCHES, "remote_fetches"),
    (metrics.FAILED_FETCHES, "failed_remote_fetches"),
    (metrics.DELETES, "remote_deletes"),
    (metrics.FAILED_DELETES, "failed_remote_deletes"),
)


class TierMetricsReader:
    """Where tiered storage is on."""

    def __init__(self, partitions: ReplicaManager, metadata: MetadataLog, reader: TierReader) -> None:
        self._partitions = partitions
        self._metadata = metadata
        self._reader = reader

    def __call__(self) -> Readings:
        total = self._partitions.total_counters()
        shown = list(islice(self._partitions.counters.items(), TOPICS_MAX))
        for metric, field in FIELDS:
            of_topics = [((topic,), float(getattr(counters, field))) for topic, counters in shown]
            yield Reading(metric, [((), float(getattr(total, field))), *of_topics])
            yield None
        lags: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        counts: Counter[str] = Counter()
        for partition in self._partitions.hosted:
            log = partition.log
            if partition.state.is_leader and log.config.remote_storage_enable:
                segments = self._metadata.segments_of(partition.topic_id, partition.index)
                lags[partition.topic] += log.closed_size_from(max(log.tiered_end_offset, log.log_start_offset))
                sizes[partition.topic] += sum(segment.size_bytes for segment in segments)
                counts[partition.topic] += len(segments)
        for metric, figures in (
            (metrics.COPY_LAG_BYTES, lags),
            (metrics.LOG_SIZE, sizes),
            (metrics.METADATA_COUNT, counts),
        ):
            yield Reading(
                metric,
                [
                    ((), float(sum(figures.values()))),
                    *(((topic,), float(size)) for topic, size in islice(figures.items(), TOPICS_MAX)),
                ],
            )
        yield read(metrics.PENDING_READS, self._reader.pending_count)
