"""Records and bytes by topic. Kafka: `BrokerTopicStats`."""

from __future__ import annotations

from itertools import islice
from typing import Final

from ..replicas.replica_manager import ReplicaManager
from .rules import traffic_metrics as metrics
from .rules.metric import Reading, read
from .rules.process_metrics import HIDDEN_TOPICS
from .rules.readings import Readings

TOPICS_MAX: Final = 1000
"""Topics with series of their own, eight each; the others are in the totals."""
FIELDS: Final = (
    (metrics.MESSAGES_IN, "messages_in"),
    (metrics.BYTES_IN, "bytes_in"),
    (metrics.BYTES_OUT, "bytes_out"),
    (metrics.BYTES_REJECTED, "bytes_rejected"),
    (metrics.PRODUCES, "produces"),
    (metrics.FETCHES, "fetches"),
    (metrics.FAILED_PRODUCES, "failed_produces"),
    (metrics.FAILED_FETCHES, "failed_fetches"),
)


class TopicReader:
    def __init__(self, partitions: ReplicaManager, topics_max: int = TOPICS_MAX) -> None:
        self._partitions = partitions
        self._topics_max = topics_max

    def __call__(self) -> Readings:
        total = self._partitions.total_counters()
        by_topic = self._partitions.counters
        # Those that came first keep their series, whatever comes later.
        shown = list(islice(by_topic.items(), self._topics_max))
        hidden = len(by_topic) - len(shown)
        yield None
        for metric, field in FIELDS:
            of_topics = [((topic,), float(getattr(counters, field))) for topic, counters in shown]
            # Without a label, as the exporter has it: all topics, those that are gone too.
            yield Reading(metric, [((), float(getattr(total, field))), *of_topics])
            yield None
        yield read(metrics.REPLICATION_BYTES_IN, total.replication_bytes_in)
        yield read(metrics.REPLICATION_BYTES_OUT, total.replication_bytes_out)
        yield read(HIDDEN_TOPICS, hidden)
