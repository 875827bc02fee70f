"""The blocking client of the HTTP administration: one method for each operation.

Written by `make docs` from the table of operations.
"""

from __future__ import annotations

from ...protocol.rest.clusters import Cluster, ClusterList
from ...protocol.rest.health import Health
from ...protocol.rest.partition_map import PartitionMap
from .blocking_transport import BlockingTransport


class Admin(BlockingTransport):
    """Every method raises AdminProblem when the node refuses, AdminUnreachable when no node answers."""

    def list_clusters(self) -> ClusterList:
        """The cluster of this node."""
        return self.ask("GET", "/v3/clusters", {}, {}, None, ClusterList)

    def get_cluster(self) -> Cluster:
        """One cluster."""
        return self.ask("GET", "/v3/clusters/{cluster_id}", {"cluster_id": self.cluster_id()}, {}, None, Cluster)

    def get_health(self) -> Health:
        """Whether the node works: 503 when it should be restarted or repaired."""
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

    def get_ready(self) -> Health:
        """Whether the node serves clients: 503, with reasons, while it does not."""
        return self.ask(
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

    def get_open_api(self) -> bytes:
        """The OpenAPI 3.1 document of everything that is served here."""
        return self.ask("GET", "/openapi.json", {}, {}, None, bytes)
