"""Starts a fresh cluster for each test of another program, which asks for it line by line.

A line of standard input is one JSON object, and each is answered by one on standard output:

    {"up": {"brokers": 3, "disks": 1, "protocol": "PLAINTEXT", "properties": {…}, "broker_properties": {"0": {…}},
            "features": {"transaction.version": 2}}}
                   → {"bootstrap": "127.0.0.1:20000", "brokers_own": "127.0.0.1:20001", "log_dirs": ["…"]}, once all
                     brokers serve clients; `brokers_own` is a listener of theirs, or the same
    {"nodes": {"brokers": [{"properties": {…}, "disks": 1}], "listeners": {"CLIENT": "PLAINTEXT"},
               "principals": {"CLIENT": "User:client"}, "scram": ["SCRAM-SHA-256=[…]"]}}
                   → {"ports": [{"CLIENT": 20000}], "client": {…}, "metrics": ["http://…"], "log_dirs": ["…"]}: brokers
                     with these listeners; `client` is what an administrator is told
    {"stop": 0}    → {}
    {"start": 0}   → {}
    {"down": true} → {}

What cannot be done is answered by {"error": "a sentence"}.

Brokers are numbered from 0. One that is alone is its own controller; several have one beside them, because tests stop
brokers and expect the others to go on. The end of the input ends all of them. What a test asks for beyond `MAX_BROKERS`
is not started; replication factors of its properties are cut to the number of brokers.

Run as a module, with the one argument of a folder for the nodes, it starts Penstock.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import random
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from kio.schema.update_features.v2.request import FeatureUpdateKey, UpdateFeaturesRequest
from kio.schema.update_features.v2.response import UpdateFeaturesResponse
from kio.static.primitive import i8, i16

from penstock.client.connection import connect
from penstock.local.errors import ClusterError
from penstock.local.local_node import HOST, START_COMMAND, LocalNode, environment_without_properties
from penstock.local.ports import find_free
from penstock.local.readiness import wait_ready

from .configured_node import ConfiguredNode
from .group_principals import VARIABLE as PRINCIPALS_VARIABLE

LISTENER: Final = "EXTERNAL"
# Of the brokers alone, where it matters who a client is.
INTERNAL: Final = "BROKER"
CONTROLLER: Final = "CONTROLLER"
WITHOUT_USERS: Final = "PLAINTEXT"
# The users of Apache Kafka's own test clusters with SASL, and what these clusters are started with.
USERS: Final = ("plain-admin", "plain-user1")
SASL: Final = {
    "sasl.enabled.mechanisms": "PLAIN",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "false",
    # Brokers prove nothing to each other on a listener of their own.
    "super.users": "User:plain-admin;User:ANONYMOUS",
    f"listener.name.{LISTENER.lower()}.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        + " ".join(f'user_{user}="{user}-secret"' for user in USERS)
        + ";"
    ),
}
# A class of one test that says who clients are, by their listener. `group_principals` does the same.
PRINCIPAL_BUILDER: Final = "principal.builder.class"
GROUP_PRINCIPALS: Final = (sys.executable, "-P", "-m", "conformance.kafka_integration.group_principals")
CLUSTER_ID: Final = "c0nf0rmanceC1usterIdAA"
# What tests that set properties of the controller call it.
CONTROLLER_ID: Final = 3000
# Transactions of version 1 are what some tests are about.
LOWERED_FEATURE: Final = "transaction.version"
NEWEST_LEVEL: Final = 2
_SAFE_DOWNGRADE: Final = 2
DEFAULT_REPLICATION_FACTOR: Final = "default.replication.factor"
INTERNAL_REPLICATION_FACTORS: Final = (
    "offsets.topic.replication.factor",
    "share.coordinator.state.topic.replication.factor",
    "transaction.state.log.replication.factor",
)
# Asked for, and not Apache Kafka's: ignored there, an error here.
UNKNOWN_KEYS: Final = frozenset({"file.delete.delay.ms", "log.unclean.leader.election.enable"})
# No test asks for more.
MAX_BROKERS: Final = 4
# Those of Apache Kafka's own test clusters, where they matter to how long a test takes.
DEFAULTS: Final = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "5"}
# The factor that the tests take for the default. Brokers are not told: what they say wins over their controller.
CONTROLLER_DEFAULTS: Final = {DEFAULT_REPLICATION_FACTOR: "1"}
START_TIMEOUT_S: Final = 120.0
STOP_TIMEOUT_S: Final = 60.0
# What a node says that could not listen.
PORT_TAKEN: Final = os.strerror(errno.EADDRINUSE)
MAX_STARTS: Final = 3

Request = Mapping[str, Any]
Answer = Mapping[str, object]


class FreshClusters:
    """The cluster of the test that runs now, in a folder that is emptied for each. Subclasses start other brokers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._generator = random.Random()
        self._brokers: dict[int, LocalNode] = {}
        self._controller: LocalNode | None = None
        # Where clients must say who they are, by broker.
        self._client_ports: dict[int, int] = {}
        self._has_groups = False

    def up(self, request: Request) -> Answer:
        """Raises ClusterError when a node does not come up, with nothing left running."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._has_groups = PRINCIPAL_BUILDER in request["properties"]
        for node_id in range(min(int(request["brokers"]), MAX_BROKERS)):
            self._brokers[node_id] = self._new_node(node_id)
        brokers = tuple(self._brokers.values())
        if request["protocol"] != WITHOUT_USERS or self._has_groups:
            self._client_ports = {broker.id: find_free(self._generator) for broker in brokers}
        if len(brokers) > 1:
            self._controller = self._new_node(CONTROLLER_ID)
        try:
            for broker in brokers:
                broker.write_properties(self.settings(broker, request))
            if self._controller is not None:
                self._controller.write_properties(self.controller_settings(self._controller, request))
            self.start_all(request)
        except ClusterError:
            self.kill()
            raise
        return {
            "bootstrap": ",".join(f"{HOST}:{self._client_ports.get(broker.id, broker.port)}" for broker in brokers),
            "brokers_own": ",".join(broker.address for broker in brokers),
            "log_dirs": [self.log_directories(broker, request) for broker in brokers],
        }

    def nodes(self, request: Request) -> Answer:
        """Raises ClusterError when one does not come up, with nothing left running."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._has_groups = True
        told: list[Mapping[str, Any]] = request["brokers"]
        self._brokers.update({node_id: self._new_node(node_id) for node_id in range(len(told))})
        if len(told) > 1:
            self._controller = self._new_node(CONTROLLER_ID)
        configured = [
            ConfiguredNode(request, one, node, self._generator)
            for one, node in zip(told, self._brokers.values(), strict=True)
        ]
        try:
            for one in configured:
                one.node.environment = {**one.node.environment, PRINCIPALS_VARIABLE: one.principals()}
                one.node.write_properties({**one.settings(), **self.quorum_settings(one.node)})
            if self._controller is not None:
                listener = f"{CONTROLLER}://{self._controller.address}"
                own = configured[0].controller_settings(listener)
                self._controller.write_properties({**own, **self.quorum_settings(self._controller)})
            for node in reversed(self._nodes()):
                node.start()
            wait_ready(tuple(self._brokers.values()), timeout_s=START_TIMEOUT_S)
        except ClusterError:
            self.kill()
            raise
        return {
            "ports": [one.ports for one in configured],
            "client": configured[0].client(),
            "metrics": [one.metrics() for one in configured],
            "log_dirs": [one.log_directories() for one in configured],
        }

    def stop(self, node_id: int) -> Answer:
        self._broker(node_id).stop(timeout_s=STOP_TIMEOUT_S)
        return {}

    def start(self, node_id: int) -> Answer:
        node = self._broker(node_id)
        node.start()
        wait_ready((node,), timeout_s=START_TIMEOUT_S)
        return {}

    def down(self) -> Answer:
        """Stops gracefully: a node that cannot is a defect, of which the test hears."""
        # The controller last: the others ask it whether they may go.
        for node in self._nodes():
            node.stop(timeout_s=STOP_TIMEOUT_S)
        self._forget()
        return {}

    def kill(self) -> None:
        for node in self._nodes():
            node.kill()
        self._forget()

    def new_node(self, node_id: int, port: int, data: Path) -> LocalNode:
        """A node that is not started yet."""
        command = GROUP_PRINCIPALS if self._has_groups else START_COMMAND
        environment = environment_without_properties(os.environ)
        return LocalNode(id=node_id, port=port, data=data, environment=environment, command=command)

    def settings(self, node: LocalNode, request: Request) -> dict[str, str]:
        """What a broker is started with: the defaults, what the test asks for all brokers, and for this one."""
        given: dict[str, str] = {
            **request["properties"],
            # A broker that is alone is the controller as well.
            **({} if self._controller else request["broker_properties"].get(str(CONTROLLER_ID), {})),
            **request["broker_properties"].get(str(node.id), {}),
        }
        wanted: dict[str, str] = {**dict.fromkeys(INTERNAL_REPLICATION_FACTORS, "3"), **_asked(given)}
        factors: dict[str, str] = {
            key: str(min(int(wanted[key]), max(1, len(self._brokers))))
            for key in (*INTERNAL_REPLICATION_FACTORS, DEFAULT_REPLICATION_FACTOR)
            if key in wanted
        }
        return {
            "listeners": self.listeners(node),
            "listener.security.protocol.map": self.protocols(request),
            "inter.broker.listener.name": INTERNAL if self._client_ports else LISTENER,
            **self.sasl_settings(request),
            "log.dirs": self.log_directories(node, request),
            **DEFAULTS,
            **self.without_classes(_asked(given)),
            **factors,
            **self.quorum_settings(node),
        }

    def controller_settings(self, node: LocalNode, request: Request) -> dict[str, str]:
        """What a controller that is no broker is started with."""
        return {
            "listeners": f"{CONTROLLER}://{HOST}:{node.port}",
            "listener.security.protocol.map": self.protocols(request),
            **self.sasl_settings(request),
            **CONTROLLER_DEFAULTS,
            **self.without_classes(
                _asked({**request["properties"], **request["broker_properties"].get(str(CONTROLLER_ID), {})})
            ),
            **self.quorum_settings(node),
        }

    def without_classes(self, asked: Mapping[str, str]) -> Mapping[str, str]:
        """The properties but for those that name a class of the tests, for which there is something else here."""
        return {key: value for key, value in asked.items() if key != PRINCIPAL_BUILDER}

    def sasl_settings(self, request: Request) -> Mapping[str, str]:
        return SASL if request["protocol"] != WITHOUT_USERS else {}

    def listeners(self, node: LocalNode) -> str:
        """Of a broker. The first is what tells when it is ready."""
        if not self._client_ports:
            return f"{LISTENER}://{node.address}"
        return f"{INTERNAL}://{node.address},{LISTENER}://{HOST}:{self._client_ports[node.id]}"

    def protocols(self, request: Request) -> str:
        protocols = f"{LISTENER}:{request['protocol']},{CONTROLLER}:{WITHOUT_USERS}"
        return f"{protocols},{INTERNAL}:{WITHOUT_USERS}" if self._client_ports else protocols

    def quorum_settings(self, node: LocalNode) -> dict[str, str]:
        """What makes one cluster of several nodes; nothing for one that is alone."""
        if self._controller is None:
            return {}
        return {
            "process.roles": "controller" if node is self._controller else "broker",
            "controller.listener.names": CONTROLLER,
            "controller.quorum.voters": f"{self._controller.id}@{self._controller.address}",
            "cluster.id": CLUSTER_ID,
            "cluster.secret": CLUSTER_ID,
        }

    def log_directories(self, node: LocalNode, request: Request) -> str:
        """The value of log.dirs: as many folders as the test asks for disks."""
        return ",".join([str(node.data), *(f"{node.data}-disk-{disk}" for disk in range(2, int(request["disks"]) + 1))])

    def start_all(self, request: Request) -> None:
        """Returns once they serve clients. Feature levels are Penstock's own but for `LOWERED_FEATURE`."""
        for node in reversed(self._nodes()):
            node.start()
        wait_ready(tuple(self._brokers.values()), timeout_s=START_TIMEOUT_S)
        level = request["features"].get(LOWERED_FEATURE, NEWEST_LEVEL)
        if level < NEWEST_LEVEL:
            asyncio.run(_lower_feature(self._brokers[0], level))

    def _nodes(self) -> tuple[LocalNode, ...]:
        """The controller last."""
        return (*self._brokers.values(), *(() if self._controller is None else (self._controller,)))

    def _forget(self) -> None:
        self._brokers.clear()
        self._client_ports.clear()
        self._controller = None

    def _new_node(self, node_id: int) -> LocalNode:
        return self.new_node(node_id, find_free(self._generator), self._folder / f"node-{node_id}")

    def _broker(self, node_id: int) -> LocalNode:
        if node_id not in self._brokers:
            raise ClusterError(f"broker {node_id} was not started: a cluster has at most {MAX_BROKERS} here")
        return self._brokers[node_id]


def serve(clusters: FreshClusters) -> None:
    """Answers lines until there are no more."""
    # A signal that kills the tests with all their processes leaves this one to end the brokers.
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


def with_free_ports(start: Callable[[Request], Answer], request: Request) -> Answer:
    """Starts anew, on other ports, when a program took one between its choice and its use. Raises ClusterError."""
    for _ in range(MAX_STARTS - 1):
        try:
            return start(request)
        except ClusterError as error:
            if PORT_TAKEN not in str(error):
                raise
    return start(request)


async def _lower_feature(broker: LocalNode, level: int) -> None:
    """Raises ClusterError."""
    change = FeatureUpdateKey(feature=LOWERED_FEATURE, max_version_level=i16(level), upgrade_type=i8(_SAFE_DOWNGRADE))
    async with await connect(broker.host, broker.port) as connection:
        answer = await connection.call(UpdateFeaturesRequest(feature_updates=(change,)))
    assert isinstance(answer, UpdateFeaturesResponse)
    if answer.error_code:
        raise ClusterError(f"{LOWERED_FEATURE} {level} was refused: {answer.error_message}")


def _asked(given: Mapping[str, str]) -> dict[str, str]:
    """The properties without what is none: one class of tests takes the documentation of a key for its name."""
    return {key: value for key, value in given.items() if " " not in key and key not in UNKNOWN_KEYS}


def _answer(clusters: FreshClusters, request: Request) -> Answer:
    match request:
        case {"up": asked}:
            return with_free_ports(clusters.up, asked)
        case {"nodes": asked}:
            return with_free_ports(clusters.nodes, asked)
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
