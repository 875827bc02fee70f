"""What is asked of a cluster of several nodes through one of them: topics, the cluster, its features, its quorum.

The checks with `controller` in their name use the node's listener for controllers (`--bootstrap-controller`, KIP-919).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final

from penstock.client.clock import wait_until

from ..suite import Node
from .tools import Tools, require
from .topic_checks import DELETION_TIMEOUT_S

ABSENT_BROKER: Final = 4711
HEARD_TIMEOUT_S: Final = 30.0
"""Apache Kafka answers a change before every broker has heard of it."""
# Changed and put back by several checks, of which several may run at a time.
_CHANGING_FEATURES = Lock()
# By node: how the tool lowers which feature from which level, and what it says then.
_CHANGES: Final = {
    1: ("downgrade", "transaction.version", 2, "was downgraded to 1."),
    2: ("disable", "eligible.leader.replicas.version", 1, "was disabled."),
    3: ("downgrade", "group.version", 1, "was downgraded to 0."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTools:
    """The tools, told of one node of the cluster."""

    tools: Tools
    node: Node
    nodes: Sequence[Node]

    def server(self, tool: str, *arguments: str | int, check: bool = True) -> str:
        return self.tools.run(tool, "--bootstrap-server", self.node.bootstrap, *arguments, check=check)

    def controller(self, tool: str, *arguments: str | int, check: bool = True) -> str:
        return self.tools.run(tool, "--bootstrap-controller", self.node.controller, *arguments, check=check)

    def cluster(self, job: str, *arguments: str | int, through_controller: bool = False, check: bool = True) -> str:
        """`kafka-cluster` takes its job first."""
        listener = ("--bootstrap-controller", self.node.controller)
        if not through_controller:
            listener = ("--bootstrap-server", self.node.bootstrap)
        return self.tools.run("cluster", job, *listener, *arguments, check=check)


Ask = Callable[..., str]


def topics(there: NodeTools) -> None:
    topic = there.tools.name

    def listed() -> bool:
        return topic in there.server("topics", "--list").splitlines()

    def described(partitions: int) -> bool:
        found = there.server("topics", "--describe", "--topic", topic, check=False)
        return f"PartitionCount: {partitions}" in found and len(re.findall(r"Leader: \d+", found)) == partitions

    placed = ("--partitions", 6, "--replication-factor", 1)
    there.server("topics", "--create", "--topic", topic, *placed, "--config", "retention.ms=3600000")
    require(_soon(lambda: described(6)), "not six partitions that are led")
    found = there.server("topics", "--describe", "--topic", topic)
    require("retention.ms=3600000" in found, "the config is not described", found)
    leaders = set(re.findall(r"Leader: (\d+)", found))
    require(leaders == {str(node.id) for node in there.nodes}, "not spread over all nodes", found)
    there.server("topics", "--alter", "--topic", topic, "--partitions", 8)
    require(_soon(lambda: described(8)), "not eight partitions that are led")
    again = there.server("topics", "--create", "--topic", topic, check=False)
    require("already exists" in again, "made a second time", again)
    there.server("topics", "--delete", "--topic", topic)
    is_gone = wait_until(lambda: not listed(), timeout_s=DELETION_TIMEOUT_S, interval_s=0.5)
    require(is_gone, "still listed after its deletion")


def cluster(there: NodeTools) -> None:
    _cluster_id(there, through_controller=False)
    output = there.cluster("list-endpoints", "--include-fenced-brokers")
    _require_endpoints(output, {(node.id, node.bootstrap) for node in there.nodes}, "broker")
    require(output.count("unfenced") == len(there.nodes), "not all are unfenced", output)


def cluster_controller(there: NodeTools) -> None:
    _cluster_id(there, through_controller=True)
    output = there.cluster("list-endpoints", through_controller=True)
    _require_endpoints(output, {(node.id, node.controller) for node in there.nodes}, "controller")


def unregister(there: NodeTools) -> None:
    for through_controller in (False, True):
        output = there.cluster("unregister", "--id", ABSENT_BROKER, through_controller=through_controller, check=False)
        require(f"Broker ID {ABSENT_BROKER} is not currently registered" in output, "not refused", output)


def features(there: NodeTools) -> None:
    _change_features(there, there.server)


def features_controller(there: NodeTools) -> None:
    _change_features(there, there.controller)


def quorum(there: NodeTools) -> None:
    _describe_quorum(there, there.server)


def quorum_controller(there: NodeTools) -> None:
    _describe_quorum(there, there.controller)


def configs_controller(there: NodeTools) -> None:
    entity = ("--entity-type", "brokers", "--entity-name", there.node.id)

    def described() -> bool:
        return "log.cleaner.threads=2" in there.controller("configs", *entity, "--describe")

    there.controller("configs", *entity, "--alter", "--add-config", "log.cleaner.threads=2")
    require(_soon(described), "not described as altered")
    there.controller("configs", *entity, "--alter", "--delete-config", "log.cleaner.threads")
    require(_soon(lambda: not described()), "still described after its deletion")


def _change_features(there: NodeTools, ask: Ask) -> None:
    job, feature, level, said = _CHANGES[there.node.id]

    def has_level(wanted: int) -> bool:
        output = ask("features", "describe")
        return bool(re.search(rf"Feature: {re.escape(feature)}\s.*FinalizedVersionLevel: {wanted}\s", output))

    wanted = feature if job == "disable" else f"{feature}={level - 1}"
    with _CHANGING_FEATURES:
        output = ask("features", job, "--feature", wanted)
        require(f"{feature} {said}" in output, f"{feature} did not go down", output)
        require(_soon(lambda: has_level(level - 1)), f"{feature} {level - 1} is not heard of")
        output = ask("features", "upgrade", "--feature", f"{feature}={level}")
        require(f"{feature} was upgraded to {level}." in output, f"{feature} did not go up", output)
        require(_soon(lambda: has_level(level)), f"{feature} {level} is not heard of")
    output = ask("features", "downgrade", "--feature", "metadata.version=29", check=False)
    require("it might delete metadata information" in output, "metadata would be lost", output)


def _describe_quorum(there: NodeTools, ask: Ask) -> None:
    status = ask("metadata-quorum", "describe", "--status")
    ids = {node.id for node in there.nodes}
    leader = re.search(r"LeaderId:\s+(\d+)", status)
    require(leader is not None and int(leader[1]) in ids, "no leader", status)
    voters = {int(found) for found in re.findall(r'"id": (\d+)', status.partition("CurrentObservers")[0])}
    require(voters == ids, "not all are voters", status)
    replication = ask("metadata-quorum", "describe", "--replication")
    rows = re.findall(r"^(\d+)\s.*\b(Leader|Follower|Observer)\s*$", replication, re.MULTILINE)
    require({int(node_id) for node_id, _ in rows} == ids, "not all replicate", replication)
    require([role for _, role in rows].count("Leader") == 1, "not one leader", replication)


def _cluster_id(there: NodeTools, *, through_controller: bool) -> None:
    output = there.cluster("cluster-id", through_controller=through_controller)
    require(re.search(r"Cluster ID: [\w-]{22}", output), "no cluster id", output)


def _require_endpoints(output: str, expected: set[tuple[int, str]], kind: str) -> None:
    rows = re.findall(rf"^(\d+)\s+(\S+)\s+(\d+)\s.*{kind}\s*$", output, re.MULTILINE)
    found = {(int(node_id), f"{host.replace('localhost', '127.0.0.1')}:{port}") for node_id, host, port in rows}
    require(found == expected, f"the {kind}s are not {sorted(expected)}", output)


def _soon(condition: Callable[[], bool]) -> bool:
    return wait_until(condition, timeout_s=HEARD_TIMEOUT_S, interval_s=0.2)


CHECKS: Final[Mapping[str, Callable[[NodeTools], None]]] = {
    "topics": topics,
    "cluster": cluster,
    "cluster-controller": cluster_controller,
    "unregister": unregister,
    "features": features,
    "features-controller": features_controller,
    "quorum": quorum,
    "quorum-controller": quorum_controller,
    "configs-controller": configs_controller,
}
