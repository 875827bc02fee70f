"""What the node's configuration says of groups."""

from dataclasses import dataclass

from .consumer.consumer_config import ConsumerGroupConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """Each field is Apache Kafka's property of that name, dots for underscores, unless it says otherwise."""

    group_min_session_timeout_ms: int
    group_max_session_timeout_ms: int
    group_initial_rebalance_delay_ms: int
    group_max_size: int
    # The properties that begin with `group.consumer.`.
    consumer: ConsumerGroupConfig
    offset_metadata_max_bytes: int
    offsets_commit_timeout_ms: int
    offsets_load_buffer_size: int
    # From offsets.retention.minutes.
    offsets_retention_ms: int
    offsets_retention_check_interval_ms: int
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    # Whether that was not set, and so is as many as there are brokers when these are fewer.
    is_replication_factor_capped: bool
    offsets_topic_segment_bytes: int
    offsets_topic_compression_codec: int
