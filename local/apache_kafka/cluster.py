"""Apache Kafka itself on this machine: nodes that are broker and controller in one, formatted, started and stopped."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ..errors import NodeFailedError
from ..local_node import HOST, LocalNode
from ..ports import check_free, find_free
from ..readiness import wait_ready
from .jars import SERVER_OPTIONS, KafkaJars
from .tools import MAIN_CLASSES

CLUSTER_ID: Final = "YW5jaG9yLWthZmthLTAwMQ"
# A JVM starts in 3 s on a quiet machine with two cores, and in half a minute on one that is not.
START_TIMEOUT_S: Final = 120.0
STOP_TIMEOUT_S: Final = 60.0
FORMAT_TIMEOUT_S: Final = 90.0


class KafkaCluster:
    """Nodes 1 to N of one new cluster in a folder, `node-1/` the data of node 1 with its log and properties beside it.

    Everything is Apache Kafka's default but for what a cluster of fewer than three nodes cannot have: the replication
    factors of internal topics. Every method waits until it is done. The nodes end when this program does.
    """

    def __init__(
        self,
        jars: KafkaJars,
        folder: Path,
        *,
        node_count: int = 1,
        first_node_id: int = 1,
        first_port: int = 0,
        properties: Mapping[str, str] | None = None,
        properties_of: Callable[[LocalNode], Mapping[str, str]] | None = None,
        rewire: Callable[[LocalNode, Mapping[str, str]], Mapping[str, str]] = lambda _node, told: told,
        heap_mib: int = 1024,
        options: Sequence[str] = SERVER_OPTIONS,
        log_level: str = "WARN",
    ) -> None:
        """Nothing is started yet. Brokers listen on `first_port` and the ports after it; 0 takes free ports.

        `properties` are broker properties for all nodes, `properties_of` one of them what else it is started with; they
        win over what is said here. `rewire` is given all that a node is told, and returns what it is told instead.
        """
        self._jars = jars
        self.folder = folder.resolve()
        generator = random.Random()
        ports = [first_port + index if first_port else find_free(generator) for index in range(node_count)]
        self._controller_ports = [find_free(generator) for _ in ports]
        self._properties = dict(properties or {})
        self._properties_of = properties_of or (lambda _node: {})
        self._rewire = rewire
        command = jars.command("kafka.Kafka", heap_mib=heap_mib, options=options, log_level=log_level)
        self.nodes = {
            node_id: LocalNode(
                id=node_id,
                port=port,
                data=self.folder / f"node-{node_id}",
                environment={},
                command=tuple(command),
                ends_with_parent=True,
            )
            for node_id, port in enumerate(ports, start=first_node_id)
        }

    @property
    def bootstrap(self) -> str:
        """What clients call `bootstrap.servers`."""
        return ",".join(node.address for node in self.nodes.values())

    @property
    def controller_addresses(self) -> tuple[str, ...]:
        """Where the controllers listen, by node."""
        return tuple(f"{HOST}:{port}" for port in self._controller_ports)

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Formats what is new, starts all nodes and waits until they serve clients and know each other.

        Raises NodeFailedError or PortInUseError, with nothing left running.
        """
        try:
            self.prepare()
            for node in self.nodes.values():
                node.start()
            wait_ready(tuple(self.nodes.values()), timeout_s=timeout_s)
        except BaseException:
            self.kill()
            raise

    def prepare(self) -> None:
        """Writes the properties and formats what is new; after it the nodes only have to be started.

        Raises NodeFailedError or PortInUseError.
        """
        for node, controller_port in zip(self.nodes.values(), self._controller_ports, strict=True):
            check_free(node.port)
            check_free(controller_port)
            node.write_properties(self._rewire(node, self._settings(node, controller_port)))
            format_node(self._jars, node)

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Stops all nodes gracefully; a node that takes longer is killed.

        A majority of voters is needed to leave in order, so the last nodes of several may have to be killed.
        """
        for node in self.nodes.values():
            try:
                node.stop(timeout_s=timeout_s)
            except NodeFailedError:
                # Killed, which is all that is asked for here: how Apache Kafka stops is not measured.
                continue

    def kill(self) -> None:
        """SIGKILL to all nodes."""
        for node in self.nodes.values():
            node.kill()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _settings(self, node: LocalNode, controller_port: int) -> dict[str, str]:
        replicas = min(3, len(self.nodes))
        voters = zip(self.nodes, self.controller_addresses, strict=True)
        return {
            "process.roles": "broker,controller",
            "controller.quorum.voters": ",".join(f"{node_id}@{address}" for node_id, address in voters),
            "listeners": f"PLAINTEXT://{HOST}:{node.port},CONTROLLER://{HOST}:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{node.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "offsets.topic.replication.factor": str(replicas),
            "transaction.state.log.replication.factor": str(replicas),
            "transaction.state.log.min.isr": str(min(2, replicas)),
            "share.coordinator.state.topic.replication.factor": str(replicas),
            "share.coordinator.state.topic.min.isr": str(min(2, replicas)),
            **self._properties,
            **self._properties_of(node),
        }


def format_node(jars: KafkaJars, node: LocalNode, *options: str) -> None:
    """Gives a node whose properties are written its empty folders. Raises NodeFailedError."""
    arguments = ("format", "-t", CLUSTER_ID, "-c", str(node.properties), "--ignore-formatted", *options)
    try:
        result = subprocess.run(
            jars.command(MAIN_CLASSES["storage"], *arguments),
            capture_output=True,
            text=True,
            timeout=FORMAT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NodeFailedError(f"node {node.id} of Apache Kafka was not formatted: {error}") from error
    if result.returncode != 0:
        raise NodeFailedError(f"node {node.id} of Apache Kafka was not formatted:\n{result.stdout[-2000:]}")
