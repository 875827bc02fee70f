"""A node that leads a partition is lost while records are written: how long until they are acknowledged again.

Three nodes, a topic with three replicas of which two must have a record. Each time a node goes that leads a partition:
killed, killed while it is the active controller too, or stopped in order. At the end everything is read back: whatever
was acknowledged has to be there.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ...chaos.checkers.records import judge
from ...chaos.workloads.numbered_records import read_all
from ...client import clock
from ...client.cluster_metadata import ask_metadata
from ...local.errors import ClusterError
from ...local.local_node import LocalNode
from ...local.readiness import wait_ready
from ..eager_writer import EagerWriter
from ..quorum_state import wait_settled
from ..target import Cluster, Target
from ..topics import TIMEOUT_S, admin

DEFAULTS: Final[Mapping[str, str]] = {}
QUICK_TIMEOUTS: Final[Mapping[str, str]] = {
    "broker.session.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "250",
    "controller.quorum.election.timeout.ms": "250",
    "controller.quorum.election.backoff.max.ms": "250",
    "controller.quorum.fetch.timeout.ms": "500",
}
"""Properties with which failures are noticed as soon as Apache Kafka can without noticing some that are none."""
_TOPIC: Final = "written"
_REPLICAS: Final = 3
_BEFORE: Final = 50
"""Records that are acknowledged before each fault."""
_AFTER: Final = 50
_POLL_S: Final = 0.1
# Of three brokers one is fenced at once within a session; a second one that dies waits for the end of its own.
_SESSION_S: Final = 9.0
_STOP_TIMEOUT_S: Final = 60.0
_MILLISECONDS: Final = 1000


def leader_failover(
    target: Target, *, faults: int, properties: Mapping[str, str] = DEFAULTS
) -> Mapping[str, float | None]:
    """Start a cluster and lose a leader in each of the three ways that often."""
    assert target.fresh_cluster is not None, "only asked of targets that can be started"
    with target.fresh_cluster(properties) as cluster:
        cluster.start()
        client = admin(cluster.bootstrap)
        topic = NewTopic(
            _TOPIC, num_partitions=_REPLICAS, replication_factor=_REPLICAS, config={"min.insync.replicas": "2"}
        )
        client.create_topics([topic])[_TOPIC].result(TIMEOUT_S)
        writer = EagerWriter(cluster.nodes.values(), _TOPIC, _REPLICAS)
        values: dict[str, float | None] = {}
        for name, is_controller, lose in (
            ("leader_kill", False, LocalNode.kill),
            ("controller_kill", True, LocalNode.kill),
            ("leader_stop", False, _stop),
        ):
            gaps_s = [
                _lose_leader(cluster, client, writer, is_controller=is_controller, lose=lose) for _ in range(faults)
            ]
            values |= {
                f"{name}_gap_median_ms": statistics.median(gaps_s) * _MILLISECONDS,
                f"{name}_gap_worst_ms": max(gaps_s) * _MILLISECONDS,
            }
        _wait_in_sync(client)
        _check(cluster, writer)
        return values


def _lose_leader(
    cluster: Cluster,
    client: AdminClient,
    writer: EagerWriter,
    *,
    is_controller: bool,
    lose: Callable[[LocalNode], None],
) -> float:
    """The longest time between acknowledgements around the loss of one node, in seconds; then it is back."""
    controller_id = wait_settled(cluster).leader_id
    leaders = _wait_balanced(client)
    lost_id = next(node_id for node_id in leaders if (node_id == controller_id) == is_controller)
    lost = cluster.nodes[lost_id]
    gap_s = asyncio.run(_write_through(writer, leaders[lost_id], lambda: lose(lost)))
    lost.start()
    wait_ready(tuple(cluster.nodes.values()), timeout_s=TIMEOUT_S)
    clock.pause(_SESSION_S)
    return gap_s


async def _write_through(writer: EagerWriter, partition: int, fault: Callable[[], None]) -> float:
    start = len(writer.acknowledged_s)
    await writer.write(partition, _BEFORE)
    broken = asyncio.get_running_loop().run_in_executor(None, fault)
    await writer.write(partition, _AFTER)
    await broken
    times = writer.acknowledged_s[start:]
    return max(end - begin for begin, end in pairwise(times))


def _stop(node: LocalNode) -> None:
    node.stop(timeout_s=_STOP_TIMEOUT_S)


def _wait_balanced(client: AdminClient) -> dict[int, int]:
    """Until all replicas are in sync and each node leads a partition: the partition of each."""
    deadline_s = clock.monotonic_s() + TIMEOUT_S
    wanted = [TopicPartition(_TOPIC, index) for index in range(_REPLICAS)]
    while True:
        _wait_in_sync(client)
        client.elect_leaders(ElectionType.PREFERRED, wanted).result(TIMEOUT_S)
        partitions = ask_metadata(client, _TOPIC).topics[_TOPIC].partitions
        leaders = {int(state.leader): int(state.id) for state in partitions.values()}
        if len(leaders) == _REPLICAS and -1 not in leaders:
            return leaders
        if clock.monotonic_s() > deadline_s:
            raise ClusterError(f"not every node leads a partition after {TIMEOUT_S:g} s: {leaders}")
        clock.pause(_POLL_S)


def _wait_in_sync(client: AdminClient) -> None:
    deadline_s = clock.monotonic_s() + TIMEOUT_S
    while True:
        partitions = ask_metadata(client, _TOPIC).topics[_TOPIC].partitions
        if partitions and all(len(state.isrs) == _REPLICAS for state in partitions.values()):
            return
        if clock.monotonic_s() > deadline_s:
            raise ClusterError(f"not all replicas are in sync after {TIMEOUT_S:g} s")
        clock.pause(_POLL_S)


def _check(cluster: Cluster, writer: EagerWriter) -> None:
    """Raises ClusterError when something acknowledged is not there."""
    for partition, sent in enumerate(writer.sent):
        stored = read_all(cluster.bootstrap, _TOPIC, partition, timeout_s=TIMEOUT_S)
        findings = judge(sent, stored, is_idempotent=False)
        if findings:
            raise ClusterError("promises were broken: " + "; ".join(str(finding) for finding in findings[:5]))
