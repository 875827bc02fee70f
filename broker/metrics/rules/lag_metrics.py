"""Offsets and lags, as kafka_exporter names them, with `metrics.kafka.exporter=true`."""

from __future__ import annotations

from typing import Final

from .metric import own

OF_PARTITION: Final = ("topic", "partition")
OF_OFFSET: Final = ("consumergroup", "topic", "partition")
OF_SUM: Final = ("consumergroup", "topic")

BROKERS: Final = own("gauge", "kafka_brokers", "Brokers that are registered and not fenced, told by each broker.")
TOPIC_PARTITIONS: Final = own(
    "gauge", "kafka_topic_partitions", "Partitions of a topic, told by the leader of its first one.", "topic"
)
END_OFFSET: Final = own(
    "gauge",
    "kafka_topic_partition_current_offset",
    "The high watermark, told by the leader, as all of a partition.",
    *OF_PARTITION,
)
START_OFFSET: Final = own(
    "gauge", "kafka_topic_partition_oldest_offset", "The first offset that can be read.", *OF_PARTITION
)
IN_SYNC: Final = own("gauge", "kafka_topic_partition_in_sync_replica", "Size of the ISR.", *OF_PARTITION)
REPLICAS: Final = own("gauge", "kafka_topic_partition_replicas", "Assigned replicas.", *OF_PARTITION)
LEADER: Final = own("gauge", "kafka_topic_partition_leader", "The leader's id.", *OF_PARTITION)
IS_PREFERRED: Final = own(
    "gauge", "kafka_topic_partition_leader_is_preferred", "1 where the first replica leads.", *OF_PARTITION
)
UNDER_REPLICATED: Final = own(
    "gauge",
    "kafka_topic_partition_under_replicated_partition",
    "1 where the ISR lacks a replica.",
    *OF_PARTITION,
)

MEMBERS: Final = own(
    "gauge", "kafka_consumergroup_members", "Members of a group, told by its coordinator.", "consumergroup"
)
COMMITTED: Final = own(
    "gauge", "kafka_consumergroup_current_offset", "The committed offset, told by the coordinator.", *OF_OFFSET
)
COMMITTED_SUM: Final = own(
    "gauge", "kafka_consumergroup_current_offset_sum", "The same, of all partitions together.", *OF_SUM
)
LAG: Final = own(
    "gauge",
    "kafka_consumergroup_lag",
    "Records from the committed offset to the high watermark; none where the partition's leader does not answer.",
    *OF_OFFSET,
)
LAG_SUM: Final = own(
    "gauge", "kafka_consumergroup_lag_sum", "The same, of all partitions whose leader answers.", *OF_SUM
)
HIDDEN_OFFSETS: Final = own(
    "gauge",
    "penstock_metrics_hidden_group_offsets",
    "Committed offsets without series of their own, because there are too many.",
)
HIDDEN_LEADERS: Final = own(
    "gauge",
    "penstock_metrics_hidden_led_partitions",
    "Led partitions without such series, because there are too many.",
)
