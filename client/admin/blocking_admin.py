"""The blocking client of the HTTP administration: one method for each operation.

Written by `make docs` from the table of operations.
"""

from __future__ import annotations

from ...protocol.rest.clusters import Cluster, ClusterList
from ...protocol.rest.health import Health
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

    def get_open_api(self) -> bytes:
        """The OpenAPI 3.1 document of everything that is served here."""
        return self.ask("GET", "/openapi.json", {}, {}, None, bytes)
