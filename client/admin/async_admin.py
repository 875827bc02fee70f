"""The asynchronous client of the HTTP administration: one method for each operation.

Written by `make docs` from the table of operations.
"""

from __future__ import annotations

from ...protocol.rest.clusters import Cluster, ClusterList
from ...protocol.rest.health import Health
from ...protocol.rest.partition_map import PartitionMap
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
        """Whether the node works: 503 when it should be restarted or repaired."""
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

    async def get_ready(self) -> Health:
        """Whether the node serves clients: 503, with reasons, while it does not."""
        return await self.ask(
            "GET",
            "/ready",
            {},
            {},
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

    async def get_open_api(self) -> bytes:
        """The OpenAPI 3.1 document of everything that is served here."""
        return await self.ask("GET", "/openapi.json", {}, {}, None, bytes)
