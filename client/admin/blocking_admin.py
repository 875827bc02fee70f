"""The blocking client of the HTTP administration: one method for each operation.

Written by `make docs` from the table of operations.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType

from ...protocol.rest.acls import AclList, CreateAcl, CreateAcls, DeletedAcls
from ...protocol.rest.brokers import Broker, BrokerList
from ...protocol.rest.clusters import Cluster, ClusterList
from ...protocol.rest.configs import (
    AlterConfigs,
    BrokerConfig,
    BrokerConfigList,
    ClusterConfig,
    ClusterConfigList,
    DefaultTopicConfigList,
    TopicConfig,
    TopicConfigList,
    UpdateConfig,
)
from ...protocol.rest.described_configs import ConfigChanges, ConfigList
from ...protocol.rest.elections import ElectionRequest, ElectionResult
from ...protocol.rest.features import FeatureList, FeatureUpdates
from ...protocol.rest.groups import (
    Consumer,
    ConsumerAssignment,
    ConsumerAssignmentList,
    ConsumerGroup,
    ConsumerGroupLagSummary,
    ConsumerGroupList,
    ConsumerLag,
    ConsumerLagList,
    ConsumerList,
)
from ...protocol.rest.health import Health
from ...protocol.rest.maintenance import Decommission, DecommissionRequest, Maintenance
from ...protocol.rest.moves import CancelRequest, CancelResult, ReassignmentList, ReassignmentPlan, ReassignmentRequest
from ...protocol.rest.nodes import NodeList
from ...protocol.rest.partition_map import PartitionMap
from ...protocol.rest.partitions import (
    Partition,
    PartitionList,
    PartitionOffsets,
    PartitionReassignmentList,
    Reassignment,
    Replica,
    ReplicaList,
    ReplicaStatusList,
)
from ...protocol.rest.quorum import Quorum, SnapshotList, SnapshotRequest, Transferred, TransferRequest
from ...protocol.rest.records import ProduceBatch, ProducedBatch, RecordList, TopicRecordList
from ...protocol.rest.topic_overview import TopicOverviewList
from ...protocol.rest.topics import CreateTopic, Topic, TopicList, UpdatePartitionCount
from ...protocol.rest.transactions import AbortRequest, HangingList, OpenTransaction, TransactionList
from .blocking_transport import BlockingTransport


class Admin(BlockingTransport):
    """Every method raises AdminProblem when the node refuses, AdminUnreachable when no node answers."""

    def list_clusters(self) -> ClusterList:
        """The cluster of this node."""
        return self.ask("GET", "/v3/clusters", {}, {}, None, ClusterList)

    def get_cluster(self) -> Cluster:
        """One cluster."""
        return self.ask("GET", "/v3/clusters/{cluster_id}", {"cluster_id": self.cluster_id()}, {}, None, Cluster)

    def list_cluster_configs(self, *, page_size: int | None = None, page_token: str | None = None) -> ClusterConfigList:
        """The dynamic configs of all brokers together."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/broker-configs",
            {"cluster_id": self.cluster_id()},
            {"page_size": page_size, "page_token": page_token},
            None,
            ClusterConfigList,
        )

    def alter_cluster_configs(self, body: AlterConfigs) -> None:
        """Change some configs of all brokers together."""
        return self.ask(
            "POST",
            "/v3/clusters/{cluster_id}/broker-configs:alter",
            {"cluster_id": self.cluster_id()},
            {},
            body,
            NoneType,
        )

    def get_cluster_config(self, name: str) -> ClusterConfig:
        """One dynamic config of all brokers together."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/broker-configs/{name}",
            {"cluster_id": self.cluster_id(), "name": name},
            {},
            None,
            ClusterConfig,
        )

    def update_cluster_config(self, name: str, body: UpdateConfig) -> None:
        """Set a config of all brokers together."""
        return self.ask(
            "PUT",
            "/v3/clusters/{cluster_id}/broker-configs/{name}",
            {"cluster_id": self.cluster_id(), "name": name},
            {},
            body,
            NoneType,
        )

    def delete_cluster_config(self, name: str) -> None:
        """Reset a config of all brokers together."""
        return self.ask(
            "DELETE",
            "/v3/clusters/{cluster_id}/broker-configs/{name}",
            {"cluster_id": self.cluster_id(), "name": name},
            {},
            None,
            NoneType,
        )

    def list_brokers(self, *, page_size: int | None = None, page_token: str | None = None) -> BrokerList:
        """The registered brokers, fenced ones too."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/brokers",
            {"cluster_id": self.cluster_id()},
            {"page_size": page_size, "page_token": page_token},
            None,
            BrokerList,
        )

    def get_broker(self, broker_id: int) -> Broker:
        """One broker."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/brokers/{broker_id}",
            {"cluster_id": self.cluster_id(), "broker_id": broker_id},
            {},
            None,
            Broker,
        )

    def delete_broker(self, broker_id: int) -> None:
        """Unregister a broker."""
        return self.ask(
            "DELETE",
            "/v3/clusters/{cluster_id}/brokers/{broker_id}",
            {"cluster_id": self.cluster_id(), "broker_id": broker_id},
            {},
            None,
            NoneType,
        )

    def list_replicas_of_broker(
        self, broker_id: int, *, page_size: int | None = None, page_token: str | None = None
    ) -> ReplicaList:
        """The replicas that a broker has."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/brokers/{broker_id}/partition-replicas",
            {"cluster_id": self.cluster_id(), "broker_id": broker_id},
            {"page_size": page_size, "page_token": page_token},
            None,
            ReplicaList,
        )

    def list_broker_configs_of_all(
        self, *, page_size: int | None = None, page_token: str | None = None
    ) -> BrokerConfigList:
        """The configs of all brokers."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/brokers/-/configs",
            {"cluster_id": self.cluster_id()},
            {"page_size": page_size, "page_token": page_token},
            None,
            BrokerConfigList,
        )

    def list_broker_configs(
        self, broker_id: int, *, page_size: int | None = None, page_token: str | None = None
    ) -> BrokerConfigList:
        """The configs of a broker."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/brokers/{broker_id}/configs",
            {"cluster_id": self.cluster_id(), "broker_id": broker_id},
            {"page_size": page_size, "page_token": page_token},
            None,
            BrokerConfigList,
        )

    def alter_broker_configs(self, broker_id: int, body: AlterConfigs) -> None:
        """Change some configs of a broker."""
        return self.ask(
            "POST",
            "/v3/clusters/{cluster_id}/brokers/{broker_id}/configs:alter",
            {"cluster_id": self.cluster_id(), "broker_id": broker_id},
            {},
            body,
            NoneType,
        )

    def get_broker_config(self, broker_id: int, name: str) -> BrokerConfig:
        """One config of a broker."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/brokers/{broker_id}/configs/{name}",
            {"cluster_id": self.cluster_id(), "broker_id": broker_id, "name": name},
            {},
            None,
            BrokerConfig,
        )

    def update_broker_config(self, broker_id: int, name: str, body: UpdateConfig) -> None:
        """Set a config of a broker."""
        return self.ask(
            "PUT",
            "/v3/clusters/{cluster_id}/brokers/{broker_id}/configs/{name}",
            {"cluster_id": self.cluster_id(), "broker_id": broker_id, "name": name},
            {},
            body,
            NoneType,
        )

    def delete_broker_config(self, broker_id: int, name: str) -> None:
        """Reset a config of a broker to its default."""
        return self.ask(
            "DELETE",
            "/v3/clusters/{cluster_id}/brokers/{broker_id}/configs/{name}",
            {"cluster_id": self.cluster_id(), "broker_id": broker_id, "name": name},
            {},
            None,
            NoneType,
        )

    def list_topics(self, *, page_size: int | None = None, page_token: str | None = None) -> TopicList:
        """The topics, internal ones too."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/topics",
            {"cluster_id": self.cluster_id()},
            {"page_size": page_size, "page_token": page_token},
            None,
            TopicList,
        )

    def create_topic(self, body: CreateTopic) -> Topic:
        """Create a topic."""
        return self.ask(
            "POST",
            "/v3/clusters/{cluster_id}/topics",
            {"cluster_id": self.cluster_id()},
            {},
            body,
            Topic,
            {
                200: Topic,
            },
        )

    def get_topic(self, topic_name: str, *, include_authorized_operations: bool | None = None) -> Topic:
        """One topic."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/topics/{topic_name}",
            {"cluster_id": self.cluster_id(), "topic_name": topic_name},
            {"include_authorized_operations": include_authorized_operations},
            None,
            Topic,
        )

    def update_partition_count(self, topic_name: str, body: UpdatePartitionCount) -> Topic:
        """Add partitions to a topic."""
        return self.ask(
            "PATCH",
            "/v3/clusters/{cluster_id}/topics/{topic_name}",
            {"cluster_id": self.cluster_id(), "topic_name": topic_name},
            {},
            body,
            Topic,
        )

    def delete_topic(self, topic_name: str) -> None:
        """Delete a topic and its records."""
        return self.ask(
            "DELETE",
            "/v3/clusters/{cluster_id}/topics/{topic_name}",
            {"cluster_id": self.cluster_id(), "topic_name": topic_name},
            {},
            None,
            NoneType,
        )

    def list_topic_configs_of_all(
        self, *, page_size: int | None = None, page_token: str | None = None
    ) -> TopicConfigList:
        """The configs of all topics."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/topics/-/configs",
            {"cluster_id": self.cluster_id()},
            {"page_size": page_size, "page_token": page_token},
            None,
            TopicConfigList,
        )

    def list_topic_configs(
        self, topic_name: str, *, page_size: int | None = None, page_token: str | None = None
    ) -> TopicConfigList:
        """The configs of a topic."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/topics/{topic_name}/configs",
            {"cluster_id": self.cluster_id(), "topic_name": topic_name},
            {"page_size": page_size, "page_token": page_token},
            None,
            TopicConfigList,
        )

    def alter_topic_configs(self, topic_name: str, body: AlterConfigs) -> None:
        """Change some configs of a topic."""
        return self.ask(
            "POST",
            "/v3/clusters/{cluster_id}/topics/{topic_name}/configs:alter",
            {"cluster_id": self.cluster_id(), "topic_name": topic_name},
            {},
            body,
            NoneType,
        )

    def get_topic_config(self, topic_name: str, name: str) -> TopicConfig:
        """One config of a topic."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/topics/{topic_name}/configs/{name}",
            {"cluster_id": self.cluster_id(), "topic_name": topic_name, "name": name},
            {},
            None,
            TopicConfig,
        )

    def update_topic_config(self, topic_name: str, name: str, body: UpdateConfig) -> None:
        """Set a config of a topic."""
        return self.ask(
            "PUT",
            "/v3/clusters/{cluster_id}/topics/{topic_name}/configs/{name}",
            {"cluster_id": self.cluster_id(), "topic_name": topic_name, "name": name},
            {},
            body,
            NoneType,
        )

    def delete_topic_config(self, topic_name: str, name: str) -> None:
        """Reset a config of a topic to its default."""
        return self.ask(
            "DELETE",
            "/v3/clusters/{cluster_id}/topics/{topic_name}/configs/{name}",
            {"cluster_id": self.cluster_id(), "topic_name": topic_name, "name": name},
            {},
            None,
            NoneType,
        )

    def list_default_topic_configs(
        self, topic_name: str, *, page_size: int | None = None, page_token: str | None = None
    ) -> DefaultTopicConfigList:
        """What the configs of a topic are without its own."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/topics/{topic_name}/default-configs",
            {"cluster_id": self.cluster_id(), "topic_name": topic_name},
            {"page_size": page_size, "page_token": page_token},
            None,
            DefaultTopicConfigList,
        )

    def list_partition_reassignments(
        self, *, page_size: int | None = None, page_token: str | None = None
    ) -> PartitionReassignmentList:
        """The ongoing reassignments of all topics."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/topics/-/partitions/-/reassignment",
            {"cluster_id": self.cluster_id()},
            {"page_size": page_size, "page_token": page_token},
            None,
            PartitionReassignmentList,
        )

    def list_partition_reassignments_of_topic(
        self, topic_name: str, *, page_size: int | None = None, page_token: str | None = None
    ) -> PartitionReassignmentList:
        """The ongoing reassignments of a topic."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/topics/{topic_name}/partitions/-/reassignment",
            {"cluster_id": self.cluster_id(), "topic_name": topic_name},
            {"page_size": page_size, "page_token": page_token},
            None,
            PartitionReassignmentList,
        )

    def get_reassignment(self, topic_name: str, partition_id: int) -> Reassignment:
        """The ongoing reassignment of a partition."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/topics/{topic_name}/partitions/{partition_id}/reassignment",
            {"cluster_id": self.cluster_id(), "topic_name": topic_name, "partition_id": partition_id},
            {},
            None,
            Reassignment,
        )

    def list_replica_statuses_of_all(
        self, *, page_size: int | None = None, page_token: str | None = None
    ) -> ReplicaStatusList:
        """How far the replicas of all partitions are."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/topics/-/partitions/-/replica-status",
            {"cluster_id": self.cluster_id()},
            {"page_size": page_size, "page_token": page_token},
            None,
            ReplicaStatusList,
        )

    def list_replica_statuses_of_topic(
        self, topic_name: str, *, page_size: int | None = None, page_token: str | None = None
    ) -> ReplicaStatusList:
        """How far the replicas of a topic's partitions are."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/topics/{topic_name}/partitions/-/replica-status",
            {"cluster_id": self.cluster_id(), "topic_name": topic_name},
            {"page_size": page_size, "page_token": page_token},
            None,
            ReplicaStatusList,
        )

    def list_replica_statuses(
        self, topic_name: str, partition_id: int, *, page_size: int | None = None, page_token: str | None = None
    ) -> ReplicaStatusList:
        """How far the replicas of a partition are."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/topics/{topic_name}/partitions/{partition_id}/replica-status",
            {"cluster_id": self.cluster_id(), "topic_name": topic_name, "partition_id": partition_id},
            {"page_size": page_size, "page_token": page_token},
            None,
            ReplicaStatusList,
        )

    def list_replicas(
        self, topic_name: str, partition_id: int, *, page_size: int | None = None, page_token: str | None = None
    ) -> ReplicaList:
        """The replicas of a partition."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/topics/{topic_name}/partitions/{partition_id}/replicas",
            {"cluster_id": self.cluster_id(), "topic_name": topic_name, "partition_id": partition_id},
            {"page_size": page_size, "page_token": page_token},
            None,
            ReplicaList,
        )

    def get_replica(self, topic_name: str, partition_id: int, broker_id: int) -> Replica:
        """One replica."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/topics/{topic_name}/partitions/{partition_id}/replicas/{broker_id}",
            {
                "cluster_id": self.cluster_id(),
                "topic_name": topic_name,
                "partition_id": partition_id,
                "broker_id": broker_id,
            },
            {},
            None,
            Replica,
        )

    def list_partitions(
        self, topic_name: str, *, page_size: int | None = None, page_token: str | None = None
    ) -> PartitionList:
        """The partitions of a topic."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/topics/{topic_name}/partitions",
            {"cluster_id": self.cluster_id(), "topic_name": topic_name},
            {"page_size": page_size, "page_token": page_token},
            None,
            PartitionList,
        )

    def get_partition(self, topic_name: str, partition_id: int) -> Partition:
        """One partition."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/topics/{topic_name}/partitions/{partition_id}",
            {"cluster_id": self.cluster_id(), "topic_name": topic_name, "partition_id": partition_id},
            {},
            None,
            Partition,
        )

    def get_partition_offsets(
        self, topic_name: str, partition_id: int, *, offset_type: str | None = None
    ) -> PartitionOffsets:
        """The earliest and the latest offset of a partition."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/topics/{topic_name}/partitions/{partition_id}/offset",
            {"cluster_id": self.cluster_id(), "topic_name": topic_name, "partition_id": partition_id},
            {"offset_type": offset_type},
            None,
            PartitionOffsets,
        )

    def produce_records_batch(self, topic_name: str, body: ProduceBatch) -> ProducedBatch:
        """Write several records that are in one body."""
        return self.ask(
            "POST",
            "/v3/clusters/{cluster_id}/topics/{topic_name}/records:batch",
            {"cluster_id": self.cluster_id(), "topic_name": topic_name},
            {},
            body,
            ProducedBatch,
        )

    def read_topic_records(
        self,
        topic_name: str,
        *,
        from_: str | None = None,
        timestamp: int | None = None,
        limit: int | None = None,
        max_bytes: int | None = None,
        isolation: str | None = None,
    ) -> TopicRecordList:
        """The last, or the first, records of a topic."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/topics/{topic_name}/records",
            {"cluster_id": self.cluster_id(), "topic_name": topic_name},
            {"from": from_, "timestamp": timestamp, "limit": limit, "max_bytes": max_bytes, "isolation": isolation},
            None,
            TopicRecordList,
        )

    def read_records(
        self,
        topic_name: str,
        partition_id: int,
        *,
        offset: int | None = None,
        timestamp: int | None = None,
        limit: int | None = None,
        max_bytes: int | None = None,
        isolation: str | None = None,
    ) -> RecordList:
        """Records of a partition from an offset or a time on."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/topics/{topic_name}/partitions/{partition_id}/records",
            {"cluster_id": self.cluster_id(), "topic_name": topic_name, "partition_id": partition_id},
            {"offset": offset, "timestamp": timestamp, "limit": limit, "max_bytes": max_bytes, "isolation": isolation},
            None,
            RecordList,
        )

    def list_consumer_groups(self, *, page_size: int | None = None, page_token: str | None = None) -> ConsumerGroupList:
        """The groups of all coordinators."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/consumer-groups",
            {"cluster_id": self.cluster_id()},
            {"page_size": page_size, "page_token": page_token},
            None,
            ConsumerGroupList,
        )

    def get_consumer_group(self, consumer_group_id: str) -> ConsumerGroup:
        """One group."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/consumer-groups/{consumer_group_id}",
            {"cluster_id": self.cluster_id(), "consumer_group_id": consumer_group_id},
            {},
            None,
            ConsumerGroup,
        )

    def list_consumers(
        self, consumer_group_id: str, *, page_size: int | None = None, page_token: str | None = None
    ) -> ConsumerList:
        """The members of a group."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/consumer-groups/{consumer_group_id}/consumers",
            {"cluster_id": self.cluster_id(), "consumer_group_id": consumer_group_id},
            {"page_size": page_size, "page_token": page_token},
            None,
            ConsumerList,
        )

    def get_consumer(self, consumer_group_id: str, consumer_id: str) -> Consumer:
        """One member of a group."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/consumer-groups/{consumer_group_id}/consumers/{consumer_id}",
            {"cluster_id": self.cluster_id(), "consumer_group_id": consumer_group_id, "consumer_id": consumer_id},
            {},
            None,
            Consumer,
        )

    def list_consumer_assignments(
        self, consumer_group_id: str, consumer_id: str, *, page_size: int | None = None, page_token: str | None = None
    ) -> ConsumerAssignmentList:
        """The partitions that are assigned to a member."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/consumer-groups/{consumer_group_id}/consumers/{consumer_id}/assignments",
            {"cluster_id": self.cluster_id(), "consumer_group_id": consumer_group_id, "consumer_id": consumer_id},
            {"page_size": page_size, "page_token": page_token},
            None,
            ConsumerAssignmentList,
        )

    def get_consumer_assignment(
        self, consumer_group_id: str, consumer_id: str, topic_name: str, partition_id: int
    ) -> ConsumerAssignment:
        """One partition that is assigned to a member."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/consumer-groups/{consumer_group_id}/consumers/{consumer_id}/assignments/{topic_name}/partitions/{partition_id}",
            {
                "cluster_id": self.cluster_id(),
                "consumer_group_id": consumer_group_id,
                "consumer_id": consumer_id,
                "topic_name": topic_name,
                "partition_id": partition_id,
            },
            {},
            None,
            ConsumerAssignment,
        )

    def list_consumer_lags(
        self, consumer_group_id: str, *, page_size: int | None = None, page_token: str | None = None
    ) -> ConsumerLagList:
        """The lag of a group in each partition in which it has committed an offset."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/consumer-groups/{consumer_group_id}/lags",
            {"cluster_id": self.cluster_id(), "consumer_group_id": consumer_group_id},
            {"page_size": page_size, "page_token": page_token},
            None,
            ConsumerLagList,
        )

    def get_consumer_lag(self, consumer_group_id: str, topic_name: str, partition_id: int) -> ConsumerLag:
        """The lag of a group in one partition."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/consumer-groups/{consumer_group_id}/lags/{topic_name}/partitions/{partition_id}",
            {
                "cluster_id": self.cluster_id(),
                "consumer_group_id": consumer_group_id,
                "topic_name": topic_name,
                "partition_id": partition_id,
            },
            {},
            None,
            ConsumerLag,
        )

    def get_consumer_group_lag_summary(self, consumer_group_id: str) -> ConsumerGroupLagSummary:
        """The largest and the total lag of a group."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/consumer-groups/{consumer_group_id}/lag-summary",
            {"cluster_id": self.cluster_id(), "consumer_group_id": consumer_group_id},
            {},
            None,
            ConsumerGroupLagSummary,
        )

    def search_acls(
        self,
        *,
        page_size: int | None = None,
        page_token: str | None = None,
        resource_type: str | str | None = None,
        resource_name: str | None = None,
        pattern_type: str | str | None = None,
        principal: str | None = None,
        host: str | None = None,
        operation: str | str | None = None,
        permission: str | str | None = None,
    ) -> AclList:
        """The ACLs that a filter finds."""
        return self.ask(
            "GET",
            "/v3/clusters/{cluster_id}/acls",
            {"cluster_id": self.cluster_id()},
            {
                "page_size": page_size,
                "page_token": page_token,
                "resource_type": resource_type,
                "resource_name": resource_name,
                "pattern_type": pattern_type,
                "principal": principal,
                "host": host,
                "operation": operation,
                "permission": permission,
            },
            None,
            AclList,
        )

    def create_acl(self, body: CreateAcl) -> None:
        """Create an ACL."""
        return self.ask("POST", "/v3/clusters/{cluster_id}/acls", {"cluster_id": self.cluster_id()}, {}, body, NoneType)

    def delete_acls(
        self,
        *,
        resource_type: str | str | None,
        pattern_type: str | str | None,
        operation: str | str | None,
        permission: str | str | None,
        resource_name: str | None = None,
        principal: str | None = None,
        host: str | None = None,
    ) -> DeletedAcls:
        """Delete the ACLs that a filter finds."""
        return self.ask(
            "DELETE",
            "/v3/clusters/{cluster_id}/acls",
            {"cluster_id": self.cluster_id()},
            {
                "resource_type": resource_type,
                "pattern_type": pattern_type,
                "operation": operation,
                "permission": permission,
                "resource_name": resource_name,
                "principal": principal,
                "host": host,
            },
            None,
            DeletedAcls,
        )

    def create_acls(self, body: CreateAcls) -> None:
        """Create several ACLs."""
        return self.ask(
            "POST", "/v3/clusters/{cluster_id}/acls:batch", {"cluster_id": self.cluster_id()}, {}, body, NoneType
        )

    def get_health(self) -> Health:
        """Whether the process works: 503 when a restart would mend it."""
        return self.ask(
            "GET",
            "/health",
            {},
            {},
            None,
            Health,
            {
                503: Health,
            },
        )

    def get_ready(self, *, caught_up: bool | None = None) -> Health:
        """Whether clients may be sent to the node: 503, with reasons, while they may not."""
        return self.ask(
            "GET",
            "/ready",
            {},
            {"caught_up": caught_up},
            None,
            Health,
            {
                503: Health,
            },
        )

    def get_metrics(self) -> bytes:
        """The metrics of this node in Prometheus' text format, or OpenMetrics where that is asked for."""
        return self.ask("GET", "/metrics", {}, {}, None, bytes)

    def get_partition_map(self) -> PartitionMap:
        """Who leads every partition, and how many replicas are in sync."""
        return self.ask("GET", "/v1/partition-map", {}, {}, None, PartitionMap)

    def get_page(self) -> bytes:
        """The web page of this node."""
        return self.ask("GET", "/", {}, {}, None, bytes)

    def get_page_file(self, page_file: str) -> bytes:
        """A file of the web page."""
        return self.ask("GET", "/page/{page_file}", {"page_file": page_file}, {}, None, bytes)

    def get_quorum(self) -> Quorum:
        """Leader, voters and observers of the metadata quorum, with how far each has come."""
        return self.ask("GET", "/v1/quorum", {}, {}, None, Quorum)

    def list_quorum_snapshots(self) -> SnapshotList:
        """The snapshots of the metadata on the disks of the voters."""
        return self.ask("GET", "/v1/quorum/snapshots", {}, {}, None, SnapshotList)

    def take_quorum_snapshots(self, body: SnapshotRequest | None = None) -> SnapshotList:
        """Let voters write a snapshot of the metadata now."""
        return self.ask("POST", "/v1/quorum/snapshots", {}, {}, body, SnapshotList)

    def transfer_quorum(self, body: TransferRequest | None = None) -> Transferred:
        """Let another voter lead the metadata quorum."""
        return self.ask("POST", "/v1/quorum/transfer", {}, {}, body, Transferred)

    def elect_leaders(self, body: ElectionRequest | None = None) -> ElectionResult:
        """Elect the preferred leaders, or any live replica where no in-sync one is left."""
        return self.ask("POST", "/v1/elections", {}, {}, body, ElectionResult)

    def list_reassignments(self) -> ReassignmentList:
        """The partitions whose replicas move, with the bytes that are left."""
        return self.ask("GET", "/v1/reassignments", {}, {}, None, ReassignmentList)

    def reassign(self, body: ReassignmentRequest) -> ReassignmentPlan:
        """Move replicas by a plan, or by one that is made for topics and brokers."""
        return self.ask("POST", "/v1/reassignments", {}, {}, body, ReassignmentPlan)

    def cancel_reassignments(self, body: CancelRequest | None = None) -> CancelResult:
        """Cancel moves that are under way."""
        return self.ask("DELETE", "/v1/reassignments", {}, {}, body, CancelResult)

    def get_maintenance(self, broker_id: int) -> Maintenance:
        """Whether a broker is drained, what it still leads, and whether it may be stopped."""
        return self.ask("GET", "/v1/brokers/{broker_id}/maintenance", {"broker_id": broker_id}, {}, None, Maintenance)

    def drain_broker(self, broker_id: int, *, until_restart: bool | None = None) -> Maintenance:
        """Drain a broker: it leads only what no other in-sync replica can lead, also after restarts."""
        return self.ask(
            "PUT",
            "/v1/brokers/{broker_id}/maintenance",
            {"broker_id": broker_id},
            {"until_restart": until_restart},
            None,
            Maintenance,
        )

    def undrain_broker(self, broker_id: int) -> Maintenance:
        """End the drain: the broker leads again what prefers it."""
        return self.ask(
            "DELETE", "/v1/brokers/{broker_id}/maintenance", {"broker_id": broker_id}, {}, None, Maintenance
        )

    def get_decommission(self, broker_id: int) -> Decommission:
        """How far a broker is from having no replicas."""
        return self.ask("GET", "/v1/brokers/{broker_id}/decommission", {"broker_id": broker_id}, {}, None, Decommission)

    def decommission_broker(self, broker_id: int, body: DecommissionRequest | None = None) -> Decommission:
        """Drain a broker and begin the next moves of its replicas to others; ask again until none is left."""
        return self.ask(
            "POST", "/v1/brokers/{broker_id}/decommission", {"broker_id": broker_id}, {}, body, Decommission
        )

    def cancel_decommission(self, broker_id: int) -> Decommission:
        """Cancel the moves off a broker and end its drain."""
        return self.ask(
            "DELETE", "/v1/brokers/{broker_id}/decommission", {"broker_id": broker_id}, {}, None, Decommission
        )

    def list_nodes(self, *, sizes: bool | None = None) -> NodeList:
        """The nodes of the cluster: roles, racks, addresses, state, partitions and log directories."""
        return self.ask("GET", "/v1/nodes", {}, {"sizes": sizes}, None, NodeList)

    def list_topic_overviews(
        self,
        *,
        topic: str | None = None,
        include_internal: bool | None = None,
        offsets: bool | None = None,
        page_size: int | None = None,
        page_token: str | None = None,
    ) -> TopicOverviewList:
        """Topics, or the partitions of one, with leaders, replicas, offsets and sizes."""
        return self.ask(
            "GET",
            "/v1/topics",
            {},
            {
                "topic": topic,
                "include_internal": include_internal,
                "offsets": offsets,
                "page_size": page_size,
                "page_token": page_token,
            },
            None,
            TopicOverviewList,
        )

    def describe_configs(
        self, resource_type: str, resource_name: str, *, keys: str | None = None, documentation: bool | None = None
    ) -> ConfigList:
        """The configuration of a broker, a topic, a group or another resource, with what its keys mean."""
        return self.ask(
            "GET",
            "/v1/configs/{resource_type}/{resource_name}",
            {"resource_type": resource_type, "resource_name": resource_name},
            {"keys": keys, "documentation": documentation},
            None,
            ConfigList,
        )

    def describe_broker_defaults(self, *, keys: str | None = None, documentation: bool | None = None) -> ConfigList:
        """The dynamic configs that all brokers have unless they have their own."""
        return self.ask(
            "GET", "/v1/configs/broker-defaults", {}, {"keys": keys, "documentation": documentation}, None, ConfigList
        )

    def alter_configs(self, resource_type: str, resource_name: str, body: ConfigChanges) -> None:
        """Set and unset configs of a broker, a topic, a group or another resource."""
        return self.ask(
            "PATCH",
            "/v1/configs/{resource_type}/{resource_name}",
            {"resource_type": resource_type, "resource_name": resource_name},
            {},
            body,
            NoneType,
        )

    def alter_broker_defaults(self, body: ConfigChanges) -> None:
        """Set and unset the dynamic configs that all brokers have unless they have their own."""
        return self.ask("PATCH", "/v1/configs/broker-defaults", {}, {}, body, NoneType)

    def list_features(self) -> FeatureList:
        """Finalized levels of features, and the levels that the nodes support."""
        return self.ask("GET", "/v1/features", {}, {}, None, FeatureList)

    def update_features(self, body: FeatureUpdates) -> FeatureList:
        """Raise or lower finalized levels of features, all or none."""
        return self.ask("PATCH", "/v1/features", {}, {}, body, FeatureList)

    def list_transactions(
        self,
        *,
        state: str | None = None,
        producer_id: int | None = None,
        running_longer_ms: int | None = None,
        pattern: str | None = None,
        page_size: int | None = None,
        page_token: str | None = None,
    ) -> TransactionList:
        """The transactions of all coordinators."""
        return self.ask(
            "GET",
            "/v1/transactions",
            {},
            {
                "state": state,
                "producer_id": producer_id,
                "running_longer_ms": running_longer_ms,
                "pattern": pattern,
                "page_size": page_size,
                "page_token": page_token,
            },
            None,
            TransactionList,
        )

    def list_hanging_transactions(
        self,
        *,
        topic: str | None = None,
        partition: int | None = None,
        broker_id: int | None = None,
        running_longer_ms: int | None = None,
    ) -> HangingList:
        """Transactions that are open in a partition and that no coordinator will end."""
        return self.ask(
            "GET",
            "/v1/transactions/hanging",
            {},
            {"topic": topic, "partition": partition, "broker_id": broker_id, "running_longer_ms": running_longer_ms},
            None,
            HangingList,
        )

    def abort_transaction(self, body: AbortRequest) -> OpenTransaction:
        """Abort a transaction in one partition, without its coordinator."""
        return self.ask("POST", "/v1/transactions/abort", {}, {}, body, OpenTransaction)

    def follow_events(self, *, since: str | None = None, follow: bool | None = None) -> Iterator[bytes]:
        """What happens in the cluster, as it happens (server-sent events); line by line."""
        return self.stream("GET", "/v1/events", {}, {"since": since, "follow": follow}, None)

    def get_open_api(self) -> bytes:
        """The OpenAPI 3.1 document of everything that is served here."""
        return self.ask("GET", "/openapi.json", {}, {}, None, bytes)
