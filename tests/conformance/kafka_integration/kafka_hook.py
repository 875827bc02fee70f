"""The hook (see hook.py) that starts Apache Kafka: how the baseline is taken, and how the runner itself is tried."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from penstock.local.apache_kafka.cluster import format_node
from penstock.local.apache_kafka.jars import SHORT_RUN_OPTIONS, install
from penstock.local.local_node import HOST, LocalNode
from penstock.local.ports import find_free

from .hook import CONTROLLER, PRINCIPAL_BUILDER, Answer, FreshClusters, Request, serve
from .java_tests import POM

HEAP_MIB: Final = 512


class KafkaClusters(FreshClusters):
    """Apache Kafka's."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._jars = install()

    def up(self, request: Request) -> Answer:
        # A class that is named by a test is with the tests.
        named = PRINCIPAL_BUILDER in request["properties"]
        self._jars = install(POM, name="kafka-integration-tests") if named else install()
        return super().up(request)

    def new_node(self, node_id: int, port: int, data: Path) -> LocalNode:
        command = self._jars.command("kafka.Kafka", heap_mib=HEAP_MIB, options=SHORT_RUN_OPTIONS, log_level="ERROR")
        return LocalNode(id=node_id, port=port, data=data, environment={}, command=tuple(command))

    def settings(self, node: LocalNode, request: Request) -> dict[str, str]:
        return {"controlled.shutdown.enable": "false", **super().settings(node, request)}

    def without_classes(self, asked: Mapping[str, str]) -> Mapping[str, str]:
        return asked

    def quorum_settings(self, node: LocalNode) -> dict[str, str]:
        if self._controller is not None:
            settings = super().quorum_settings(node)
            return {key: value for key, value in settings.items() if not key.startswith("cluster.")}
        # A broker that is alone has to be told that it is the controller.
        port = find_free(self._generator)
        return {
            "process.roles": "broker,controller",
            "controller.listener.names": CONTROLLER,
            "controller.quorum.voters": f"{node.id}@{HOST}:{port}",
            "listeners": f"{self.listeners(node)},{CONTROLLER}://{HOST}:{port}",
            "advertised.listeners": self.listeners(node),
        }

    def start_all(self, request: Request) -> None:
        levels = [f"--feature={feature}={level}" for feature, level in request["features"].items()]
        for node in self._nodes():
            format_node(self._jars, node, *levels)
        super().start_all(request)

    def down(self) -> Answer:
        """No test looks at how Apache Kafka stops, and its nodes wait for each other."""
        self.kill()
        return {}


if __name__ == "__main__":
    serve(KafkaClusters(Path(sys.argv[1])))
