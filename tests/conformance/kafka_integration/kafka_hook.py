"""The hook (see hook.py) that starts Apache Kafka: how the baseline is taken, and how the runner itself is tried.

Nodes are broker and controller in one, up to three of them, as many as the test asks for.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from penstock.bench.anchor.broker import format_node
from penstock.bench.anchor.jars import SHORT_RUN_OPTIONS, install
from penstock.chaos.local_node import HOST, LocalNode
from penstock.chaos.ports import find_free

from .hook import LISTENER, Answer, FreshClusters, Request, serve

CONTROLLER = "CONTROLLER"
HEAP_MIB = 512


class KafkaClusters(FreshClusters):
    """Apache Kafka's."""

    max_nodes = 3

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._jars = install()
        self._controller_ports: dict[int, int] = {}

    def new_node(self, node_id: int, port: int, data: Path) -> LocalNode:
        self._controller_ports[node_id] = find_free(self._generator)
        command = self._jars.command("kafka.Kafka", heap_mib=HEAP_MIB, options=SHORT_RUN_OPTIONS, log_level="ERROR")
        return LocalNode(id=node_id, port=port, data=data, environment={}, command=tuple(command))

    def settings(self, node: LocalNode, nodes: Sequence[LocalNode], request: Request) -> dict[str, str]:
        settings = super().settings(node, nodes, request)
        voters = ",".join(f"{other.id}@{HOST}:{self._controller_ports[other.id]}" for other in nodes)
        return {
            "process.roles": "broker,controller",
            "controller.listener.names": CONTROLLER,
            "controller.quorum.voters": voters,
            "controlled.shutdown.enable": "false",
            **settings,
            "listeners": f"{settings['listeners']},{CONTROLLER}://{HOST}:{self._controller_ports[node.id]}",
            "advertised.listeners": f"{LISTENER}://{node.address}",
        }

    def start_all(self, nodes: tuple[LocalNode, ...], request: Request) -> None:
        levels = [f"--feature={feature}={level}" for feature, level in request["features"].items()]
        for node in nodes:
            format_node(self._jars, node, *levels)
        super().start_all(nodes, request)

    def down(self) -> Answer:
        """Nobody looks at how Apache Kafka stops, and its nodes wait for each other."""
        self.kill()
        return {}


if __name__ == "__main__":
    serve(KafkaClusters(Path(sys.argv[1])))
