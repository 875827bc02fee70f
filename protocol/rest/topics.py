"""Topics."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from .resources import CollectionMetadata, Count, Id, Relationship, ReplicationFactor, ResourceMetadata

CONFIGS_MAX = 1_000


class Topic(Struct, kw_only=True):
    """Confluent's `TopicData`, and the topic's id, which one that is only validated does not have."""

    kind: Literal["KafkaTopic"] = "KafkaTopic"
    metadata: ResourceMetadata
    cluster_id: str
    topic_name: str
    topic_id: str | None
    is_internal: bool
    replication_factor: int
    partitions_count: int
    partitions: Relationship
    configs: Relationship
    partition_reassignments: Relationship
    authorized_operations: list[str] | UnsetType = UNSET


class TopicList(Struct, kw_only=True):
    """Confluent's `TopicDataList`."""

    kind: Literal["KafkaTopicList"] = "KafkaTopicList"
    metadata: CollectionMetadata
    data: list[Topic]


class TopicQuery(Struct, kw_only=True):
    include_authorized_operations: bool = False


class TopicConfigEntry(Struct, kw_only=True):
    name: str
    value: str | None = None


class PartitionAssignment(Struct, kw_only=True):
    """The brokers of one partition."""

    partition_id: Id
    broker_ids: list[Id]


class CreateTopic(Struct, kw_only=True):
    """Confluent's `CreateTopicRequestData`. `replicas_assignments` has the brokers of each partition, in which case
    neither count is given; without a count the cluster's default is taken. It is an object by partition, as in the
    document of today, or a list, as in that of Confluent's client for Go."""

    topic_name: str
    partitions_count: Count | None = None
    replication_factor: ReplicationFactor | None = None
    replicas_assignments: dict[Id, list[Id]] | list[PartitionAssignment] | None = None
    configs: Annotated[list[TopicConfigEntry], Meta(max_length=CONFIGS_MAX)] = []
    validate_only: bool = False


class UpdatePartitionCount(Struct, kw_only=True):
    """Confluent's `UpdatePartitionCountRequestData`."""

    partitions_count: Count
