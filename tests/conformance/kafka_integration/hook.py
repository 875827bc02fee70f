"""Starts a fresh cluster for each test of another program, which asks for it line by line.

A line of standard input is one JSON object, and each is answered by one on standard output:

    {"up": {"brokers": 3, "disks": 1, "protocol": "PLAINTEXT", "properties": {…}, "broker_properties": {"0": {…}},
            "features": {"transaction.version": 2}}}
                   → {"bootstrap": "127.0.0.1:20000", "log_dirs": ["…"]}, once all brokers serve clients
    {"stop": 0}    → {}
    {"start": 0}   → {}
    {"down": true} → {}

What cannot be done is answered by {"error": "a sentence"}.

Brokers are numbered from 0. The end of the input ends the brokers. What a test asks for beyond the number of nodes that
one cluster can have is not started, and the replication factors of its properties are cut to that.

Run as a module, with the one argument of a folder for the nodes, it starts Penstock.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from penstock.chaos.errors import ClusterError
from penstock.chaos.local_node import HOST, LocalNode, environment_without_properties
from penstock.chaos.ports import find_free
from penstock.chaos.readiness import wait_ready

LISTENER: Final = "EXTERNAL"
# Tests that set properties of the controllers number them from here.
FIRST_CONTROLLER: Final = 3000
DEFAULT_REPLICATION_FACTOR: Final = "default.replication.factor"
INTERNAL_REPLICATION_FACTORS: Final = (
    "offsets.topic.replication.factor",
    "share.coordinator.state.topic.replication.factor",
    "transaction.state.log.replication.factor",
)
# Asked for, and not Apache Kafka's: ignored there, an error here.
UNKNOWN_KEYS: Final = frozenset({"log.unclean.leader.election.enable"})
# Those of Apache Kafka's own test clusters, where they matter to how long a test takes.
DEFAULTS: Final = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "5"}
START_TIMEOUT_S: Final = 120.0
STOP_TIMEOUT_S: Final = 60.0

Request = Mapping[str, Any]
Answer = Mapping[str, object]


class FreshClusters:
    """The cluster of the test that runs now, in a folder that is emptied for each. Subclasses start other brokers."""

    max_nodes = 1

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._generator = random.Random()
        self._nodes: dict[int, LocalNode] = {}

    def up(self, request: Request) -> Answer:
        """Raises ClusterError when a node does not come up, with nothing left running."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
        for node_id in range(min(int(request["brokers"]), self.max_nodes)):
            data = self._folder / f"node-{node_id}"
            self._nodes[node_id] = self.new_node(node_id, find_free(self._generator), data)
        nodes = tuple(self._nodes.values())
        try:
            for node in nodes:
                node.write_properties(self.settings(node, nodes, request))
            self.start_all(nodes, request)
        except ClusterError:
            self.kill()
            raise
        return {
            "bootstrap": ",".join(node.address for node in nodes),
            "log_dirs": [self.log_directories(node, request) for node in nodes],
        }

    def stop(self, node_id: int) -> Answer:
        self._node(node_id).stop(timeout_s=STOP_TIMEOUT_S)
        return {}

    def start(self, node_id: int) -> Answer:
        node = self._node(node_id)
        node.start()
        wait_ready((node,), timeout_s=START_TIMEOUT_S)
        return {}

    def down(self) -> Answer:
        """Stops gracefully: a node that cannot is a defect, of which the test hears."""
        for node in self._nodes.values():
            node.stop(timeout_s=STOP_TIMEOUT_S)
        self._nodes.clear()
        return {}

    def kill(self) -> None:
        for node in self._nodes.values():
            node.kill()
        self._nodes.clear()

    def new_node(self, node_id: int, port: int, data: Path) -> LocalNode:
        """A node that is not started yet."""
        return LocalNode(id=node_id, port=port, data=data, environment=environment_without_properties(os.environ))

    def settings(self, node: LocalNode, nodes: Sequence[LocalNode], request: Request) -> dict[str, str]:
        """What a node is started with: the defaults, what the test asks for all brokers, and for this one."""
        given: dict[str, str] = {
            **request["properties"],
            # A node is controller and broker in one: what is asked for one of them alone holds for the node.
            **request["broker_properties"].get(str(node.id + FIRST_CONTROLLER), {}),
            **request["broker_properties"].get(str(node.id), {}),
        }
        # One class of tests takes the documentation of a key for its name.
        asked = {key: value for key, value in given.items() if " " not in key and key not in UNKNOWN_KEYS}
        wanted: dict[str, str] = {**dict.fromkeys(INTERNAL_REPLICATION_FACTORS, "3"), **asked}
        factors: dict[str, str] = {
            key: str(min(int(wanted[key]), len(nodes)))
            for key in (*INTERNAL_REPLICATION_FACTORS, DEFAULT_REPLICATION_FACTOR)
            if key in wanted
        }
        return {
            "listeners": f"{LISTENER}://{HOST}:{node.port}",
            "listener.security.protocol.map": f"{LISTENER}:{request['protocol']},CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": LISTENER,
            "log.dirs": self.log_directories(node, request),
            **DEFAULTS,
            **asked,
            **factors,
        }

    def log_directories(self, node: LocalNode, request: Request) -> str:
        """The value of log.dirs: as many folders as the test asks for disks."""
        return ",".join([str(node.data), *(f"{node.data}-disk-{disk}" for disk in range(2, int(request["disks"]) + 1))])

    def start_all(self, nodes: tuple[LocalNode, ...], _request: Request) -> None:
        """Returns once they serve clients. Feature levels are Penstock's own, whichever the test asks for."""
        for node in nodes:
            node.start()
        wait_ready(nodes, timeout_s=START_TIMEOUT_S)

    def _node(self, node_id: int) -> LocalNode:
        if node_id not in self._nodes:
            raise ClusterError(f"broker {node_id} was not started: a cluster has at most {self.max_nodes} here")
        return self._nodes[node_id]


def serve(clusters: FreshClusters) -> None:
    """Answers lines until there are no more."""
    # Whoever kills the tests with all their processes leaves this one to end the brokers.
    os.setsid()
    try:
        for line in sys.stdin:
            try:
                answer = _answer(clusters, json.loads(line))
            except ClusterError as error:
                answer = {"error": str(error)}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
    finally:
        clusters.kill()


def _answer(clusters: FreshClusters, request: Request) -> Answer:
    match request:
        case {"up": asked}:
            return clusters.up(asked)
        case {"stop": node_id}:
            return clusters.stop(node_id)
        case {"start": node_id}:
            return clusters.start(node_id)
        case {"down": True}:
            return clusters.down()
        case _:
            return {"error": f"not a request: {request}"}


if __name__ == "__main__":
    serve(FreshClusters(Path(sys.argv[1])))
