"""Clusters, of which a node knows one."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from .resources import CollectionMetadata, Relationship, ResourceMetadata


class Cluster(Struct, kw_only=True):
    """Confluent's `ClusterData`; without a live broker there is no `controller`."""

    kind: Literal["KafkaCluster"] = "KafkaCluster"
    metadata: ResourceMetadata
    cluster_id: str
    controller: Relationship | UnsetType = UNSET
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
