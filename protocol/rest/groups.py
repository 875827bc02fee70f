"""Consumer groups, their members, and how far they are."""

from typing import Literal

from msgspec import Struct

from .resources import CollectionMetadata, Relationship, ResourceMetadata


class ConsumerGroup(Struct, kw_only=True):
    """Confluent's `ConsumerGroupData`."""

    kind: Literal["KafkaConsumerGroup"] = "KafkaConsumerGroup"
    metadata: ResourceMetadata
    cluster_id: str
    consumer_group_id: str
    is_simple: bool
    partition_assignor: str
    state: str
    type: str
    is_mixed_consumer_group: bool
    coordinator: Relationship
    consumers: Relationship
    lag_summary: Relationship


class ConsumerGroupList(Struct, kw_only=True):
    """Confluent's `ConsumerGroupDataList`."""

    kind: Literal["KafkaConsumerGroupList"] = "KafkaConsumerGroupList"
    metadata: CollectionMetadata
    data: list[ConsumerGroup]


class Consumer(Struct, kw_only=True):
    """Confluent's `ConsumerData`, and the member's host."""

    kind: Literal["KafkaConsumer"] = "KafkaConsumer"
    metadata: ResourceMetadata
    cluster_id: str
    consumer_group_id: str
    consumer_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assignments: Relationship


class ConsumerList(Struct, kw_only=True):
    """Confluent's `ConsumerDataList`."""

    kind: Literal["KafkaConsumerList"] = "KafkaConsumerList"
    metadata: CollectionMetadata
    data: list[Consumer]


class ConsumerAssignment(Struct, kw_only=True):
    """Confluent's `ConsumerAssignmentData`."""

    kind: Literal["KafkaConsumerAssignment"] = "KafkaConsumerAssignment"
    metadata: ResourceMetadata
    cluster_id: str
    consumer_group_id: str
    consumer_id: str
    topic_name: str
    partition_id: int
    partition: Relationship
    lag: Relationship


class ConsumerAssignmentList(Struct, kw_only=True):
    """Confluent's `ConsumerAssignmentDataList`."""

    kind: Literal["KafkaConsumerAssignmentList"] = "KafkaConsumerAssignmentList"
    metadata: CollectionMetadata
    data: list[ConsumerAssignment]


class ConsumerLag(Struct, kw_only=True):
    """Confluent's `ConsumerLagData`: of a partition in which the group has committed an offset.

    `consumer_id` and `client_id` are empty where no member has the partition. What the partition's leader does not tell
    is None, and `reason` says why.
    """

    kind: Literal["KafkaConsumerLag"] = "KafkaConsumerLag"
    metadata: ResourceMetadata
    cluster_id: str
    consumer_group_id: str
    topic_name: str
    partition_id: int
    current_offset: int
    log_end_offset: int | None
    lag: int | None
    consumer_id: str
    instance_id: str | None
    client_id: str
    reason: str | None = None


class ConsumerLagList(Struct, kw_only=True):
    """Confluent's `ConsumerLagDataList`."""

    kind: Literal["KafkaConsumerLagList"] = "KafkaConsumerLagList"
    metadata: CollectionMetadata
    data: list[ConsumerLag]


class ConsumerGroupLagSummary(Struct, kw_only=True):
    """Confluent's `ConsumerGroupLagSummaryData`; `unknown_partitions` of the group's partitions are in no figure.

    Where no member has the partition with the largest lag, `max_lag_consumer` leads to all members.
    """

    kind: Literal["KafkaConsumerGroupLagSummary"] = "KafkaConsumerGroupLagSummary"
    metadata: ResourceMetadata
    cluster_id: str
    consumer_group_id: str
    max_lag_consumer_id: str
    max_lag_instance_id: str | None
    max_lag_client_id: str
    max_lag_topic_name: str
    max_lag_partition_id: int
    max_lag: int
    total_lag: int
    unknown_partitions: int
    max_lag_consumer: Relationship
    max_lag_partition: Relationship
