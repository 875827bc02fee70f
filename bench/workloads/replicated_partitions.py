"""What many partitions with three replicas cost three nodes: making them, keeping them idle, losing one node of three.

A topic counts as made, and as moved to its new leaders, when every partition has taken a record that all replicas
acknowledge.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from ...client import clock
from ..all_partitions import AllPartitions
from ..quorum_state import cluster_pids, wait_settled
from ..target import Cluster, Target
from ..topics import TIMEOUT_S, admin, create
from ..usage import measured, resident_mib

_TOPIC: Final = "many"
_REPLICAS: Final = 3
SETTLE_S: Final = 10.0
"""Whatever nodes do once after a topic was made is over by then."""
IDLE_S: Final = 15.0
_PERCENT: Final = 100


def replicated_partitions(
    target: Target, *, count: int, settle_s: float = SETTLE_S, idle_s: float = IDLE_S
) -> Mapping[str, float | None]:
    """Fill a fresh cluster, leave it alone, and kill a node that leads a third and is not the active controller."""
    assert target.fresh_cluster is not None, "only asked of targets that can be started"
    with target.fresh_cluster({}) as cluster:
        cluster.start()
        return asyncio.run(_measure(cluster, count, settle_s, idle_s))


async def _measure(cluster: Cluster, count: int, settle_s: float, idle_s: float) -> Mapping[str, float | None]:
    client = admin(cluster.bootstrap)
    client.list_topics(timeout=TIMEOUT_S)  # the connection is not what is measured
    pids = cluster_pids(cluster)
    async with AllPartitions(cluster.nodes.values(), _TOPIC, count) as partitions:
        with measured(pids) as making:
            start_s = clock.monotonic_s()
            create(client, _TOPIC, count, replicas=_REPLICAS)
            created_s = clock.monotonic_s() - start_s
            await partitions.write()
        clock.pause(settle_s)
        with measured(pids) as idle:
            clock.pause(idle_s)
        assert idle.broker_cpu_s is not None, "they run here"
        cluster_mib = resident_mib(pids)
        state = await asyncio.get_running_loop().run_in_executor(None, wait_settled, cluster)
        lost = next(node for node in cluster.nodes.values() if node.id != state.leader_id)
        await partitions.leave_out(lost.id)
        start_s = clock.monotonic_s()
        lost.kill()
        await partitions.write()
        failover_s = clock.monotonic_s() - start_s
    return {
        "create_s": created_s,
        "serving_s": making.seconds,
        "create_cpu_s": making.broker_cpu_s,
        "cluster_mib": cluster_mib,
        "idle_cpu_percent": _PERCENT * idle.broker_cpu_s / idle.seconds,
        "partitions_failover_s": failover_s,
        "others_cores": making.others_cores,
    }
