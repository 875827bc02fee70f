"""The demo's last act: the node that leads a partition is killed while records flow."""

import asyncio
from typing import Final

from msgspec import Struct

from ...client import clock
from ...client.connection import connect
from ...client.leaders import NO_LEADER, topic_leaders
from ...client.topics import Topics
from ...local.cluster import LocalCluster
from ...local.errors import ClusterError
from ...local.local_node import HOST, LocalNode
from ..checkers.records import Finding
from ..workloads.steady_records import SteadyRecords

TOPIC: Final = "steady"
_PARTITION: Final = 0
_BEFORE: Final = 100
"""Records that are acknowledged before the fault, so that the client is at its ease."""
_AFTER: Final = 100
_DEADLINE_S: Final = 60.0
_POLL_S: Final = 0.002


class LeaderLoss(Struct, frozen=True, kw_only=True):
    """`gap_s` is the longest time without an acknowledgement that the producer saw, `usual_s` that before the fault;
    `leaderless_s` is how long the other nodes named no living leader."""

    lost_id: int
    successor_id: int
    acknowledged_count: int
    usual_s: float
    leaderless_s: float
    gap_s: float
    findings: tuple[Finding, ...]


def lose_leader(cluster: LocalCluster, topics: Topics) -> LeaderLoss:
    """Kill the leader of a new topic's partition, judge what was written, and start the node again.

    Raises ClusterError when the records do not flow again.
    """
    for error in topics.create([TOPIC], partition_count=1, configs={"min.insync.replicas": "2"}).values():
        if error is not None:
            raise ClusterError(f"topic {TOPIC} was not created: {error.str()}")
    lost_id = _leader_id(topics)
    with SteadyRecords(cluster.bootstrap, TOPIC) as records:
        records.wait_acknowledged(_BEFORE, timeout_s=_DEADLINE_S)
        killed_s = records.acknowledged_s[-1]
        usual_s = records.longest_gap_s(records.acknowledged_s[_BEFORE // 2])
        cluster.kill_node(lost_id)
        witness = next(node for node in cluster.nodes.values() if node.id != lost_id)
        successor_id = asyncio.run(_next_leader(witness, lost_id))
        leaderless_s = clock.monotonic_s() - killed_s
        records.wait_acknowledged(_AFTER, timeout_s=_DEADLINE_S)
        gap_s = records.longest_gap_s(killed_s)
    findings = records.judge(cluster.bootstrap, timeout_s=_DEADLINE_S)
    if records.errors:
        raise ClusterError(f"records were given up: {records.errors[0]}")
    cluster.start_node(lost_id)
    return LeaderLoss(
        lost_id=lost_id,
        successor_id=successor_id,
        acknowledged_count=len(records.acknowledged_s),
        usual_s=usual_s,
        leaderless_s=leaderless_s,
        gap_s=gap_s,
        findings=tuple(findings),
    )


def _leader_id(topics: Topics) -> int:
    (topic,) = topics.describe([TOPIC])
    leader = topic.partitions[_PARTITION].leader
    if leader is None:
        raise ClusterError(f"{TOPIC}-{_PARTITION} has no leader")
    return leader


async def _next_leader(asked: LocalNode, lost_id: int) -> int:
    """Ask a node that lives until it names a leader that does. Raises ClusterError."""
    deadline_s = clock.monotonic_s() + _DEADLINE_S
    async with await connect(HOST, asked.port) as connection:
        while clock.monotonic_s() < deadline_s:
            told = await topic_leaders(connection, TOPIC)
            leader_id = told.partitions[_PARTITION].leader_id
            if leader_id not in (NO_LEADER, lost_id):
                return leader_id
            await asyncio.sleep(_POLL_S)
    raise ClusterError(f"{TOPIC}-{_PARTITION} has no new leader after {_DEADLINE_S:g} s")
