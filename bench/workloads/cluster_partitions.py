"""What many partitions cost a cluster of three nodes that holds a record in each of them: making them, keeping them,
stopping and starting, all nodes or one, in order or by SIGKILL.

Each partition has one replica, so a node holds a third of them, and everything that is awaited is a node's own doing.
A start is over when every partition has taken one more record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Final

from ...client import clock
from ...local.local_node import LocalNode
from ...local.readiness import wait_ready
from ..all_partitions import AllPartitions
from ..node_client import DEADLINE_S
from ..quorum_state import cluster_pids
from ..target import Cluster, Target, node_pids
from ..topics import TIMEOUT_S, admin, create
from ..usage import cpu_s, measured, open_files, resident_mib

PARTITIONS_PER_TOPIC: Final = 10_000
SETTLE_S: Final = 10.0
IDLE_S: Final = 15.0
_PERCENT: Final = 100


def cluster_partitions(
    target: Target, *, count: int, settle_s: float = SETTLE_S, idle_s: float = IDLE_S
) -> Mapping[str, float | None]:
    """Fill a fresh cluster; `count` is of all nodes."""
    assert target.fresh_cluster is not None, "only asked of targets that can be started"
    with target.fresh_cluster({}) as cluster:
        cluster.start()
        topics = {
            f"many-{first // PARTITIONS_PER_TOPIC}": min(PARTITIONS_PER_TOPIC, count - first)
            for first in range(0, count, PARTITIONS_PER_TOPIC)
        }
        client = admin(cluster.bootstrap)
        client.list_topics(timeout=TIMEOUT_S)  # the connection is not what is measured
        with measured(cluster_pids(cluster)) as making:
            for topic, partitions in topics.items():
                create(client, topic, partitions)
            _write(cluster, topics)
        clock.pause(settle_s)
        with measured(cluster_pids(cluster)) as idle:
            clock.pause(idle_s)
        assert idle.broker_cpu_s is not None, "they run here"
        nodes = tuple(cluster.nodes.values())
        values = {
            "serving_s": making.seconds,
            "create_cpu_s": making.broker_cpu_s,
            "idle_cpu_percent": _PERCENT * idle.broker_cpu_s / idle.seconds,
            "largest_mib": max(resident_mib(node_pids(node)) for node in nodes),
            "open_files": max(open_files(node_pids(node)) for node in nodes),
            "others_cores": idle.others_cores,
        }
        start_s = clock.monotonic_s()
        for node in nodes:
            node.begin_stop()
        for node in nodes:
            node.finish_stop(timeout_s=DEADLINE_S)
        values["clean_stop_s"] = clock.monotonic_s() - start_s
        values |= _restart(cluster, topics, nodes, "restart")
        nodes[0].kill()
        values |= _restart(cluster, topics, nodes[:1], "kill_one_restart")
        for node in nodes:
            node.kill()
        return {**values, **_restart(cluster, topics, nodes, "kill_restart")}


def _write(cluster: Cluster, topics: Mapping[str, int]) -> None:
    """A record to every partition."""

    async def write() -> None:
        async with AsyncExitStack() as stack:
            for topic, count in topics.items():
                partitions = AllPartitions(cluster.nodes.values(), topic, count)
                await (await stack.enter_async_context(partitions)).write()

    asyncio.run(write())


def _restart(
    cluster: Cluster, topics: Mapping[str, int], nodes: Iterable[LocalNode], name: str
) -> dict[str, float | None]:
    """Of these nodes, which are down."""
    started = tuple(nodes)
    start_s = clock.monotonic_s()
    for node in started:
        node.start()
    wait_ready(tuple(cluster.nodes.values()), timeout_s=DEADLINE_S)
    ready_s = clock.monotonic_s() - start_s
    used_s = sum(cpu_s(node_pids(node)) for node in started)
    _write(cluster, topics)
    return {
        f"{name}_s": ready_s,
        f"{name}_cpu_s": used_s,
        f"{name}_written_s": clock.monotonic_s() - start_s,
    }
