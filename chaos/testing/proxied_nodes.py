"""A cluster of real nodes for tests with faults of links: `ProxiedCluster`, started and ended as `PlainNodes` is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...local.local_node import LocalNode
from ...local.preloaded_nodes import PreloadedNodes
from ..links.proxied_cluster import ProxiedCluster
from .plain_nodes import start_with_orders


class ProxiedNodes(ProxiedCluster):
    """Nodes 1 to N in `folder`, whose disks, clocks and requests obey orders. Nothing is started yet."""

    def __init__(
        self,
        folder: Path,
        *,
        node_count: int,
        client_slots: int,
        properties: Mapping[str, str],
        preloaded: PreloadedNodes,
        seed: int = 0,
    ) -> None:
        """`preloaded` starts the nodes. Raises ClusterError, PortInUseError."""
        self._preloaded = preloaded
        super().__init__(
            folder,
            node_count=node_count,
            client_slots=client_slots,
            properties=properties,
            obeys_orders=True,
            seed=seed,
        )

    def start_all(self) -> None:
        self.__enter__()

    def end_all(self) -> None:
        """SIGKILL: nothing of a test's cluster is needed any more."""
        self.cluster.kill()
        self.__exit__(None, None, None)

    def _rewire(self, node: LocalNode, told: Mapping[str, str]) -> Mapping[str, str]:
        rewired = super()._rewire(node, told)
        node.start_by = start_with_orders(self._preloaded, self.node_faults(node.id))
        return rewired
