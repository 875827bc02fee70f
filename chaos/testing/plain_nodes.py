"""A cluster of real nodes for tests without faults of links: what `ProxiedCluster` does, but for its proxies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...local.cluster import LocalCluster
from ...local.local_node import LocalNode, NodeStart
from ...local.preloaded_nodes import PreloadedNodes, PreloadedStart
from ..faults.node_faults import NodeFaults


class PlainNodes:
    """Nodes 1 to N in `folder`, whose disks, clocks and requests obey orders. Nothing is started yet."""

    def __init__(
        self,
        folder: Path,
        *,
        node_count: int,
        properties: Mapping[str, str],
        preloaded: PreloadedNodes,
        seed: int = 0,
    ) -> None:
        """`preloaded` starts the nodes. Raises ClusterError, PortInUseError."""
        self.cluster = LocalCluster(folder, node_count=node_count, properties=properties)
        self._faults = {node.id: NodeFaults(node, seed=seed) for node in self.cluster.nodes.values()}
        for node in self.cluster.nodes.values():
            node.start_by = start_with_orders(preloaded, self._faults[node.id])

    @property
    def nodes(self) -> Mapping[int, LocalNode]:
        return self.cluster.nodes

    @property
    def proxy_pid(self) -> int | None:
        """There is no proxy."""
        return None

    def bootstrap(self, slot: str | int = 0) -> str:  # noqa: ARG002 - all clients have the same links
        return self.cluster.bootstrap

    def node_faults(self, node_id: int) -> NodeFaults:
        return self._faults[node_id]

    def state(self, node_id: int) -> str:
        """`up`, `paused` or `down`."""
        node = self.nodes[node_id]
        return "down" if not node.is_running else "paused" if node.is_paused else "up"

    def start_all(self) -> None:
        self.cluster.start()

    def end_all(self) -> None:
        """SIGKILL: nothing of a test's cluster is needed any more."""
        self.cluster.kill()

    def kill(self, node_id: int) -> None:
        self.cluster.kill_node(node_id)

    def stop(self, node_id: int) -> None:
        self.cluster.stop_node(node_id)

    def begin_start(self, node_id: int) -> None:
        """Returns at once."""
        self.cluster.begin_start(node_id)

    def pause(self, node_id: int) -> None:
        self.cluster.pause_node(node_id)

    def resume(self, node_id: int) -> None:
        self.cluster.resume_node(node_id)


def start_with_orders(preloaded: PreloadedNodes, faults: NodeFaults) -> NodeStart:
    """What starts a node that obeys these orders, and ends with this program."""
    return PreloadedStart(
        preloaded=preloaded,
        arguments_of=lambda node: (str(faults.orders_path), str(node.properties)),
        ends_with_this=True,
    )
