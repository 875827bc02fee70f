"""A cluster of real nodes for tests with faults of links: `ProxiedCluster`, started and ended as `PlainNodes` is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ...local.local_node import LocalNode, environment_without_properties
from ..faults.preloaded_nodes import PreloadedNodes
from ..links.proxied_cluster import ProxiedCluster
from .plain_nodes import launcher


class ProxiedNodes(ProxiedCluster):
    """Nodes 1 to N in `folder`, whose disks, clocks and requests obey orders. Nothing is started yet."""

    def __init__(
        self, folder: Path, *, node_count: int, client_slots: int, properties: Mapping[str, str], seed: int = 0
    ) -> None:
        """Raises ClusterError, PortInUseError."""
        self._preloaded = PreloadedNodes(environment_without_properties(os.environ))
        super().__init__(
            folder,
            node_count=node_count,
            client_slots=client_slots,
            properties=properties,
            obeys_orders=True,
            seed=seed,
        )

    @property
    def other_pids(self) -> tuple[int, ...]:
        """Of processes that are no nodes."""
        return (self._preloaded.pid, *([] if self.proxy_pid is None else [self.proxy_pid]))

    def start_all(self) -> None:
        self.__enter__()

    def end_all(self) -> None:
        """SIGKILL: nothing of a test's cluster is needed any more."""
        self.cluster.kill()
        self.__exit__(None, None, None)

    def close(self) -> None:
        """Nothing can be started any more."""
        self._preloaded.end()

    def begin_start(self, node_id: int) -> None:
        """Returns at once."""
        with self._turn:
            self._links.on_node_up(node_id)
            self.cluster.begin_start(node_id)

    def _rewire(self, node: LocalNode, told: Mapping[str, str]) -> Mapping[str, str]:
        rewired = super()._rewire(node, told)
        node.launch = launcher(self._preloaded, self.node_faults(node.id))
        return rewired
