"""Clusters, of which a node knows one."""

from typing import Literal

from msgspec import Struct

from .resources import CollectionMetadata, Relationship, ResourceMetadata


class Cluster(Struct, kw_only=True):
    """Confluent's `ClusterData`."""

    kind: Literal["KafkaCluster"] = "KafkaCluster"
    metadata: ResourceMetadata
    cluster_id: str
    controller: Relationship | None
    acls: Relationship
    brokers: Relationship
    broker_configs: Relationship
    consumer_groups: Relationship
    topics: Relationship
    partition_reassignments: Relationship


class ClusterList(Struct, kw_only=True):
    """Confluent's `ClusterDataList`."""

    kind: Literal["KafkaClusterList"] = "KafkaClusterList"
    metadata: CollectionMetadata
    data: list[Cluster]
