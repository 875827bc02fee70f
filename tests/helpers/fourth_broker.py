"""A broker that follows a local cluster of three controllers, over connections that a test can cut."""

import random
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from cut_proxy import CutProxy

from penstock.local.cluster import START_TIMEOUT_S, LocalCluster
from penstock.local.local_node import HOST, LocalNode, environment_without_properties
from penstock.local.ports import find_free
from penstock.local.readiness import wait_ready

STOP_TIMEOUT_S = 30.0


class FourthBroker:
    """Node 4. Use in a `with` statement; other processes under its id are started from `another`."""

    def __init__(self, cluster: LocalCluster, folder: Path, properties: Mapping[str, str]) -> None:
        lines = cluster.nodes[1].properties.read_text().splitlines()
        known = dict(line.split("=", 1) for line in lines)
        self._folder = folder
        self._voters = known["controller.quorum.voters"].split(",")
        self._secret = known["cluster.secret"]
        self._properties = dict(properties)
        self._proxies: list[CutProxy] = []
        self._stack = ExitStack()
        self._nodes: list[LocalNode] = []
        self.node = self.another("node-4")

    def another(self, name: str, *, like: LocalNode | None = None) -> LocalNode:
        """Return a process under the same id with log directories of its own, not started yet."""
        port = find_free(random.Random()) if like is None else like.port
        node = LocalNode(id=4, port=port, data=self._folder / name, environment=environment_without_properties({}))
        self._nodes.append(node)
        return node

    def advertise(self, port: int) -> None:
        """What it tells others to connect to, when it is started."""
        self._properties["advertised.listeners"] = f"PLAINTEXT://{HOST}:{port}"

    def start(self, node: LocalNode | None = None, properties: Mapping[str, str] | None = None) -> None:
        """Start a process; without `node` the first."""
        started = self.node if node is None else node
        started.write_properties(
            {
                "process.roles": "broker",
                "cluster.secret": self._secret,
                "controller.quorum.voters": ",".join(
                    f"{voter.partition('@')[0]}@{HOST}:{proxy.port}"
                    for voter, proxy in zip(self._voters, self._proxies, strict=True)
                ),
                **self._properties,
                **(properties or {}),
            }
        )
        started.start()

    def wait_ready(self) -> None:
        """Until the first process has started: others list it sooner."""
        wait_ready((self.node,), timeout_s=START_TIMEOUT_S)

    def cut(self) -> None:
        """Take the quorum away from it."""
        for proxy in self._proxies:
            proxy.cut()

    def heal(self) -> None:
        for proxy in self._proxies:
            proxy.heal()

    def __enter__(self) -> "FourthBroker":
        self._proxies = [self._stack.enter_context(CutProxy(int(voter.rpartition(":")[2]))) for voter in self._voters]
        return self

    def __exit__(self, *_: object) -> None:
        for node in self._nodes:
            if node.is_running:
                node.stop(timeout_s=STOP_TIMEOUT_S)
        self._stack.close()
