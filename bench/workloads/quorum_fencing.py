"""A node is killed: how long until another one tells clients that it leads nothing any more.

The node asked is neither the killed one nor the active controller. The killed ones are in turn a broker that is not the
active controller, and the active controller itself.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Mapping
from typing import Final

from ...client import clock
from ...client.connection import Connection, connect
from ...client.leaders import topic_leaders
from ...local.errors import ClusterError
from ...local.local_node import HOST, LocalNode
from ...local.readiness import wait_ready
from ..quorum_state import wait_settled
from ..target import Cluster, Target
from ..topics import admin, create, wait_serving

_TOPIC: Final = "led"
_PARTITIONS: Final = 30
_DEADLINE_S: Final = 60.0
_POLL_S: Final = 0.002
# Of three brokers one is fenced at once within a session; a second one that dies waits for the end of its own.
_SESSION_S: Final = 9.0
_MILLISECONDS: Final = 1000


def quorum_fencing(target: Target, *, kills: int) -> Mapping[str, float | None]:
    """Start a cluster and kill that many nodes of either kind."""
    assert target.fresh_cluster is not None, "only asked of targets that can be started"
    brokers_s, controllers_s = [], []
    with target.fresh_cluster({}) as cluster:
        cluster.start()
        client = admin(cluster.bootstrap)
        create(client, _TOPIC, _PARTITIONS)
        wait_serving(cluster.bootstrap, _TOPIC, _PARTITIONS)
        for _ in range(kills):
            brokers_s.append(_kill(cluster, is_controller=False))
            controllers_s.append(_kill(cluster, is_controller=True))
    return {
        "broker_fenced_median_ms": statistics.median(brokers_s) * _MILLISECONDS,
        "broker_fenced_worst_ms": max(brokers_s) * _MILLISECONDS,
        "controller_fenced_median_ms": statistics.median(controllers_s) * _MILLISECONDS,
        "controller_fenced_worst_ms": max(controllers_s) * _MILLISECONDS,
    }


def _kill(cluster: Cluster, *, is_controller: bool) -> float:
    """Seconds until it leads nothing; then it is back and leads again."""
    leader_id = wait_settled(cluster).leader_id
    first, second = (node for node in cluster.nodes.values() if node.id != leader_id)
    victim = cluster.nodes[leader_id] if is_controller else first
    seconds = asyncio.run(_until_leaderless(second, victim))
    victim.start()
    wait_ready(tuple(cluster.nodes.values()), timeout_s=_DEADLINE_S)
    clock.pause(_SESSION_S)
    return seconds


async def _until_leaderless(asked: LocalNode, victim: LocalNode) -> float:
    deadline_s = clock.monotonic_s() + _DEADLINE_S
    async with await connect(HOST, asked.port) as connection:
        while victim.id not in await _leaders(connection):
            if clock.monotonic_s() > deadline_s:
                raise ClusterError(f"node {victim.id} leads nothing after {_DEADLINE_S:g} s")
            await asyncio.sleep(_POLL_S)
        start_s = clock.monotonic_s()
        victim.kill()
        while victim.id in await _leaders(connection):
            if clock.monotonic_s() > deadline_s:
                raise ClusterError(f"node {victim.id} still leads {_DEADLINE_S:g} s after it was killed")
            await asyncio.sleep(_POLL_S)
        return clock.monotonic_s() - start_s


async def _leaders(connection: Connection) -> set[int]:
    told = await topic_leaders(connection, _TOPIC)
    return {partition.leader_id for partition in told.partitions.values()}
