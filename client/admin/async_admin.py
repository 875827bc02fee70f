"""The asynchronous client of the HTTP administration: one method for each operation.

Written by `make docs` from the table of operations.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import NoneType

from ...protocol.rest.clusters import Cluster, ClusterList
from ...protocol.rest.described_configs import ConfigChanges, ConfigList
from ...protocol.rest.elections import ElectionRequest, ElectionResult
from ...protocol.rest.health import Health
from ...protocol.rest.maintenance import Decommission, DecommissionRequest, Maintenance
from ...protocol.rest.moves import CancelRequest, CancelResult, ReassignmentList, ReassignmentPlan, ReassignmentRequest
from ...protocol.rest.nodes import NodeList
from ...protocol.rest.partition_map import PartitionMap
from ...protocol.rest.quorum import Quorum, SnapshotList, SnapshotRequest, Transferred, TransferRequest
from ...protocol.rest.topic_overview import TopicOverviewList
from ...protocol.rest.transactions import AbortRequest, HangingList, OpenTransaction, TransactionList
from .async_transport import AsyncTransport


class AsyncAdmin(AsyncTransport):
    """Every method raises AdminProblem when the node refuses, AdminUnreachable when no node answers."""

    async def list_clusters(self) -> ClusterList:
        """The cluster of this node."""
        return await self.ask("GET", "/v3/clusters", {}, {}, None, ClusterList)

    async def get_cluster(self) -> Cluster:
        """One cluster."""
        return await self.ask(
            "GET", "/v3/clusters/{cluster_id}", {"cluster_id": await self.cluster_id()}, {}, None, Cluster
        )

    async def get_health(self) -> Health:
        """Whether the process works: 503 when a restart would mend it."""
        return await self.ask(
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

    async def get_ready(self, *, caught_up: bool | None = None) -> Health:
        """Whether clients may be sent to the node: 503, with reasons, while they may not."""
        return await self.ask(
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

    async def get_metrics(self) -> bytes:
        """The metrics of this node in Prometheus' text format, or OpenMetrics where that is asked for."""
        return await self.ask("GET", "/metrics", {}, {}, None, bytes)

    async def get_partition_map(self) -> PartitionMap:
        """Who leads every partition, and how many replicas are in sync."""
        return await self.ask("GET", "/v1/partition-map", {}, {}, None, PartitionMap)

    async def get_page(self) -> bytes:
        """The web page of this node."""
        return await self.ask("GET", "/", {}, {}, None, bytes)

    async def get_page_file(self, page_file: str) -> bytes:
        """A file of the web page."""
        return await self.ask("GET", "/page/{page_file}", {"page_file": page_file}, {}, None, bytes)

    async def get_quorum(self) -> Quorum:
        """Leader, voters and observers of the metadata quorum, with how far each has come."""
        return await self.ask("GET", "/v1/quorum", {}, {}, None, Quorum)

    async def list_quorum_snapshots(self) -> SnapshotList:
        """The snapshots of the metadata on the disks of the voters."""
        return await self.ask("GET", "/v1/quorum/snapshots", {}, {}, None, SnapshotList)

    async def take_quorum_snapshots(self, body: SnapshotRequest | None = None) -> SnapshotList:
        """Let voters write a snapshot of the metadata now."""
        return await self.ask("POST", "/v1/quorum/snapshots", {}, {}, body, SnapshotList)

    async def transfer_quorum(self, body: TransferRequest | None = None) -> Transferred:
        """Let another voter lead the metadata quorum."""
        return await self.ask("POST", "/v1/quorum/transfer", {}, {}, body, Transferred)

    async def elect_leaders(self, body: ElectionRequest | None = None) -> ElectionResult:
        """Elect the preferred leaders, or any live replica where no in-sync one is left."""
        return await self.ask("POST", "/v1/elections", {}, {}, body, ElectionResult)

    async def list_reassignments(self) -> ReassignmentList:
        """The partitions whose replicas move, with the bytes that are left."""
        return await self.ask("GET", "/v1/reassignments", {}, {}, None, ReassignmentList)

    async def reassign(self, body: ReassignmentRequest) -> ReassignmentPlan:
        """Move replicas by a plan, or by one that is made for topics and brokers."""
        return await self.ask("POST", "/v1/reassignments", {}, {}, body, ReassignmentPlan)

    async def cancel_reassignments(self, body: CancelRequest | None = None) -> CancelResult:
        """Cancel moves that are under way."""
        return await self.ask("DELETE", "/v1/reassignments", {}, {}, body, CancelResult)

    async def get_maintenance(self, broker_id: int) -> Maintenance:
        """Whether a broker is drained, what it still leads, and whether it may be stopped."""
        return await self.ask(
            "GET", "/v1/brokers/{broker_id}/maintenance", {"broker_id": broker_id}, {}, None, Maintenance
        )

    async def drain_broker(self, broker_id: int) -> Maintenance:
        """Drain a broker: it leads only what no other in-sync replica can lead, also after restarts."""
        return await self.ask(
            "PUT", "/v1/brokers/{broker_id}/maintenance", {"broker_id": broker_id}, {}, None, Maintenance
        )

    async def undrain_broker(self, broker_id: int) -> Maintenance:
        """End the drain: the broker leads again what prefers it."""
        return await self.ask(
            "DELETE", "/v1/brokers/{broker_id}/maintenance", {"broker_id": broker_id}, {}, None, Maintenance
        )

    async def get_decommission(self, broker_id: int) -> Decommission:
        """How far a broker is from having no replicas."""
        return await self.ask(
            "GET", "/v1/brokers/{broker_id}/decommission", {"broker_id": broker_id}, {}, None, Decommission
        )

    async def decommission_broker(self, broker_id: int, body: DecommissionRequest | None = None) -> Decommission:
        """Drain a broker and begin the next moves of its replicas to others; ask again until none is left."""
        return await self.ask(
            "POST", "/v1/brokers/{broker_id}/decommission", {"broker_id": broker_id}, {}, body, Decommission
        )

    async def cancel_decommission(self, broker_id: int) -> Decommission:
        """Cancel the moves off a broker and end its drain."""
        return await self.ask(
            "DELETE", "/v1/brokers/{broker_id}/decommission", {"broker_id": broker_id}, {}, None, Decommission
        )

    async def list_nodes(self, *, sizes: bool | None = None) -> NodeList:
        """The nodes of the cluster: roles, racks, addresses, state, partitions and log directories."""
        return await self.ask("GET", "/v1/nodes", {}, {"sizes": sizes}, None, NodeList)

    async def list_topic_overviews(
        self,
        *,
        topic: str | None = None,
        include_internal: bool | None = None,
        offsets: bool | None = None,
        page_size: int | None = None,
        page_token: str | None = None,
    ) -> TopicOverviewList:
        """Topics, or the partitions of one, with leaders, replicas, offsets and sizes."""
        return await self.ask(
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

    async def describe_configs(
        self, resource_type: str, resource_name: str, *, keys: str | None = None, documentation: bool | None = None
    ) -> ConfigList:
        """The configuration of a broker, a topic, a group or another resource, with what its keys mean."""
        return await self.ask(
            "GET",
            "/v1/configs/{resource_type}/{resource_name}",
            {"resource_type": resource_type, "resource_name": resource_name},
            {"keys": keys, "documentation": documentation},
            None,
            ConfigList,
        )

    async def describe_broker_defaults(
        self, *, keys: str | None = None, documentation: bool | None = None
    ) -> ConfigList:
        """The dynamic configs that all brokers have unless they have their own."""
        return await self.ask(
            "GET", "/v1/configs/broker-defaults", {}, {"keys": keys, "documentation": documentation}, None, ConfigList
        )

    async def alter_configs(self, resource_type: str, resource_name: str, body: ConfigChanges) -> None:
        """Set and unset configs of a broker, a topic, a group or another resource."""
        return await self.ask(
            "PATCH",
            "/v1/configs/{resource_type}/{resource_name}",
            {"resource_type": resource_type, "resource_name": resource_name},
            {},
            body,
            NoneType,
        )

    async def alter_broker_defaults(self, body: ConfigChanges) -> None:
        """Set and unset the dynamic configs that all brokers have unless they have their own."""
        return await self.ask("PATCH", "/v1/configs/broker-defaults", {}, {}, body, NoneType)

    async def list_transactions(
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
        return await self.ask(
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

    async def list_hanging_transactions(
        self,
        *,
        topic: str | None = None,
        partition: int | None = None,
        broker_id: int | None = None,
        running_longer_ms: int | None = None,
    ) -> HangingList:
        """Transactions that are open in a partition and that no coordinator will end."""
        return await self.ask(
            "GET",
            "/v1/transactions/hanging",
            {},
            {"topic": topic, "partition": partition, "broker_id": broker_id, "running_longer_ms": running_longer_ms},
            None,
            HangingList,
        )

    async def abort_transaction(self, body: AbortRequest) -> OpenTransaction:
        """Abort a transaction in one partition, without its coordinator."""
        return await self.ask("POST", "/v1/transactions/abort", {}, {}, body, OpenTransaction)

    def follow_events(self, *, since: str | None = None, follow: bool | None = None) -> AsyncIterator[bytes]:
        """What happens in the cluster, as it happens (server-sent events); line by line."""
        return self.stream("GET", "/v1/events", {}, {"since": since, "follow": follow}, None)

    async def get_open_api(self) -> bytes:
        """The OpenAPI 3.1 document of everything that is served here."""
        return await self.ask("GET", "/openapi.json", {}, {}, None, bytes)
