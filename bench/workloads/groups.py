"""A large group and many small ones on three nodes: how long until a group is stable again after its members change,
and until all of them go on after the loss of a coordinator.

A group is stable when all members are of one generation and own every partition between them. A member that is killed
says nothing: its time begins when its session has ended. The small groups, of one member each, only send heartbeats.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Final

from ...client import clock
from ...local.readiness import wait_ready
from ..group_members import HEARTBEAT_S, SESSION_S, Group, Protocol, wait_stable
from ..quorum_state import cluster_pids
from ..target import Cluster, Target
from ..topics import TIMEOUT_S, admin, create, wait_serving
from ..usage import measured, resident_mib

MEMBERS: Final = 200
SMALL_GROUPS: Final = 500
PARTITIONS: Final = 1_000
_REPLICAS: Final = 3
_SMALL_PARTITIONS: Final = 3
_LARGE_TOPIC: Final = "many"
_SMALL_TOPIC: Final = "few"
_INTERVAL_MS: Final = str(round(HEARTBEAT_S * 1000))
_SESSION_MS: Final = str(round(SESSION_S * 1000))
_PROPERTIES: Final[Mapping[str, str]] = {
    "offsets.topic.replication.factor": "3",
    "group.consumer.min.heartbeat.interval.ms": _INTERVAL_MS,
    "group.consumer.heartbeat.interval.ms": _INTERVAL_MS,
    "group.consumer.min.session.timeout.ms": _SESSION_MS,
    "group.consumer.session.timeout.ms": _SESSION_MS,
}
_IDLE_S: Final = 10.0
_MILLISECONDS: Final = 1000
_PERCENT: Final = 100


def groups(
    target: Target,
    protocol: Protocol,
    *,
    changes: int,
    members: int = MEMBERS,
    small_groups: int = SMALL_GROUPS,
    partitions: int = PARTITIONS,
) -> Mapping[str, float | None]:
    """So many members join, one after the other, so many are killed, and the coordinator's node once."""
    assert target.fresh_cluster is not None, "only asked of targets that can be started"
    with target.fresh_cluster(_PROPERTIES) as cluster:
        cluster.start()
        client = admin(cluster.bootstrap)
        for topic, count in ((_LARGE_TOPIC, partitions), (_SMALL_TOPIC, _SMALL_PARTITIONS)):
            create(client, topic, count, replicas=_REPLICAS)
            wait_serving(cluster.bootstrap, topic, count)
        return asyncio.run(_measure(cluster, protocol, changes, members, small_groups, partitions))


async def _measure(
    cluster: Cluster, protocol: Protocol, changes: int, members: int, small_groups: int, partitions: int
) -> Mapping[str, float | None]:
    large = Group("large", protocol, cluster.nodes, _LARGE_TOPIC, partitions)
    small = [
        Group(f"small-{number}", protocol, cluster.nodes, _SMALL_TOPIC, _SMALL_PARTITIONS)
        for number in range(small_groups)
    ]
    async with AsyncExitStack() as stack:
        for group in (large, *small):
            stack.push_async_callback(group.stop)
        # What the first group waits for, the making of its topic, the others need not.
        await large.coordinator_id()
        pids = cluster_pids(cluster)
        start_s = clock.monotonic_s()
        large.add(members)
        await wait_stable([large])
        formed_s = clock.monotonic_s() - start_s
        for group in small:
            group.add(1)
        await wait_stable(small)
        joins_s = [await _join(large) for _ in range(changes)]
        kills_s = [await _kill(large) for _ in range(changes)]
        with measured(pids) as idle:
            await asyncio.sleep(_IDLE_S)
        assert idle.broker_cpu_s is not None, "they run here"
        cluster_mib = resident_mib(pids)
        failover_s = await _lose_coordinator(cluster, large, small)
    return {
        "group_formed_s": formed_s,
        "group_join_median_ms": statistics.median(joins_s) * _MILLISECONDS,
        "group_kill_median_ms": statistics.median(kills_s) * _MILLISECONDS,
        "groups_failover_s": failover_s,
        "heartbeats_cpu_percent": _PERCENT * idle.broker_cpu_s / idle.seconds,
        "cluster_mib": cluster_mib,
        "others_cores": idle.others_cores,
    }


async def _join(group: Group) -> float:
    generation = group.generation
    start_s = clock.monotonic_s()
    group.add(1)
    await wait_stable([group], generation=generation + 1)
    return clock.monotonic_s() - start_s


async def _kill(group: Group) -> float:
    member = group.members[0]
    generation = group.generation
    await group.kill(member)
    await wait_stable([group], generation=generation + 1)
    return clock.monotonic_s() - member.heard_s - SESSION_S


async def _lose_coordinator(cluster: Cluster, large: Group, small: list[Group]) -> float:
    """Until every member is stable again with its next coordinator."""
    loop = asyncio.get_running_loop()
    node = cluster.nodes[await large.coordinator_id()]
    start_s = clock.monotonic_s()
    await loop.run_in_executor(None, node.kill)
    await wait_stable([large, *small], since_s=start_s)
    lost_s = clock.monotonic_s() - start_s
    await loop.run_in_executor(None, node.start)
    await loop.run_in_executor(None, lambda: wait_ready(tuple(cluster.nodes.values()), timeout_s=TIMEOUT_S))
    return lost_s
