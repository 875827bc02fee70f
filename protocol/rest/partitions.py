"""Partitions, their replicas and reassignments."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from .resources import CollectionMetadata, Relationship, ResourceMetadata


class Partition(Struct, kw_only=True):
    """Confluent's `PartitionData`; a partition that has no leader has no `leader`."""

    kind: Literal["KafkaPartition"] = "KafkaPartition"
    metadata: ResourceMetadata
    cluster_id: str
    topic_name: str
    partition_id: int
    leader: Relationship | UnsetType = UNSET
    replicas: Relationship
    reassignment: Relationship


class PartitionList(Struct, kw_only=True):
    """Confluent's `PartitionDataList`."""

    kind: Literal["KafkaPartitionList"] = "KafkaPartitionList"
    metadata: CollectionMetadata
    data: list[Partition]


class PartitionOffsets(Struct, kw_only=True):
    """Confluent's `PartitionWithOffsetsData`. An offset that was not asked for is None."""

    kind: Literal["KafkaPartitionWithOffsets"] = "KafkaPartitionWithOffsets"
    metadata: ResourceMetadata
    cluster_id: str
    topic_name: str
    partition_id: int
    earliest_offset: int | None
    latest_offset: int | None


class OffsetQuery(Struct, kw_only=True):
    """Confluent's own knows both together; one alone costs the leader half."""

    offset_type: Literal["earliest_and_latest", "earliest", "latest"] = "earliest_and_latest"


class Replica(Struct, kw_only=True):
    """Confluent's `ReplicaData`."""

    kind: Literal["KafkaReplica"] = "KafkaReplica"
    metadata: ResourceMetadata
    cluster_id: str
    topic_name: str
    partition_id: int
    broker_id: int
    is_leader: bool
    is_in_sync: bool
    broker: Relationship


class ReplicaList(Struct, kw_only=True):
    """Confluent's `ReplicaDataList`."""

    kind: Literal["KafkaReplicaList"] = "KafkaReplicaList"
    metadata: CollectionMetadata
    data: list[Replica]


class ReplicaStatus(Struct, kw_only=True):
    """Confluent Server's `ReplicaStatusData` as far as there is what it tells; `lag` is that behind the leader's end.

    What the replica's broker does not tell is None, and `reason` says why.
    """

    kind: Literal["KafkaReplicaStatus"] = "KafkaReplicaStatus"
    metadata: ResourceMetadata
    cluster_id: str
    topic_name: str
    partition_id: int
    broker_id: int
    is_leader: bool
    is_observer: Literal[False] = False
    is_isr_eligible: Literal[True] = True
    is_in_isr: bool
    is_caught_up: bool | None
    log_start_offset: int | None
    log_end_offset: int | None
    lag: int | None
    reason: str | None = None


class ReplicaStatusList(Struct, kw_only=True):
    """Confluent Server's `ReplicaStatusDataList`."""

    kind: Literal["KafkaReplicaStatusList"] = "KafkaReplicaStatusList"
    metadata: CollectionMetadata
    data: list[ReplicaStatus]


class Reassignment(Struct, kw_only=True):
    """Confluent's `ReassignmentData`."""

    kind: Literal["KafkaReassignment"] = "KafkaReassignment"
    metadata: ResourceMetadata
    cluster_id: str
    topic_name: str
    partition_id: int
    adding_replicas: list[int]
    removing_replicas: list[int]
    replicas: Relationship


class PartitionReassignmentList(Struct, kw_only=True):
    """Confluent's `ReassignmentDataList`."""

    kind: Literal["KafkaReassignmentList"] = "KafkaReassignmentList"
    metadata: CollectionMetadata
    data: list[Reassignment]
