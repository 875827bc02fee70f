"""The active controller is killed, or stopped where it stands: how long until the next one has committed a change.

The clients ask both other nodes. The time is from the signal to the first answer that says "committed".
"""

from __future__ import annotations

import statistics
import threading
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from ...client import clock
from ...local.errors import ClusterError
from ...local.local_node import LocalNode
from ...local.readiness import wait_ready
from ..metadata_changes import ImpatientSocket, MetadataChanges
from ..quorum_state import wait_settled
from ..target import Cluster, Target
from ..topics import admin, create, wait_serving
from ..wire import RequestRefusedError

_TOPIC: Final = "changed"
_DEADLINE_S: Final = 60.0
# A node that has no controller to ask lets a request wait or refuses it; asked again it may have one.
_ATTEMPT_S: Final = 10.0
_RETRY_S: Final = 0.002
_MILLISECONDS: Final = 1000


def quorum_failover(target: Target, *, kills: int, pauses: int) -> Mapping[str, float | None]:
    """Start a cluster and lose its active controller that often."""
    assert target.fresh_cluster is not None, "only asked of targets that can be started"
    with target.fresh_cluster({}) as cluster:
        cluster.start()
        client = admin(cluster.bootstrap)
        create(client, _TOPIC, 1)
        wait_serving(cluster.bootstrap, _TOPIC, 1)
        killed_s = [lose_controller(cluster, _TOPIC, is_killed=True) for _ in range(kills)]
        paused_s = [lose_controller(cluster, _TOPIC, is_killed=False) for _ in range(pauses)]
    return {
        **_summary("kill_failover", killed_s),
        **_summary("pause_failover", paused_s),
    }


def lose_controller(cluster: Cluster, topic: str, *, is_killed: bool) -> float:
    """Seconds until the next one has committed; then the lost one is back and all have caught up."""
    lost = cluster.nodes[wait_settled(cluster).leader_id]
    others = [node for node in cluster.nodes.values() if node is not lost]
    start_s = clock.monotonic_s()
    if is_killed:
        lost.kill()
    else:
        lost.pause()
    try:
        seconds = _first_commit_s(others, topic) - start_s
    finally:
        if is_killed:
            lost.start()
        else:
            lost.resume()
    wait_ready(tuple(cluster.nodes.values()), timeout_s=_DEADLINE_S)
    return seconds


def _first_commit_s(nodes: Collection[LocalNode], topic: str) -> float:
    """When the first node answered that it was done; ClusterError past the deadline."""
    found: list[float] = []
    is_over = threading.Event()

    def ask(node: LocalNode) -> None:
        changes = MetadataChanges(topic)
        while not is_over.is_set():
            try:
                with ImpatientSocket(node, _ATTEMPT_S) as connection:
                    changes.check(connection.ask(changes.next()))
                found.append(clock.monotonic_s())
                is_over.set()
            except (OSError, RequestRefusedError):
                is_over.wait(_RETRY_S)

    with ThreadPoolExecutor(len(nodes)) as threads:
        try:
            for node in nodes:
                threads.submit(ask, node)
            is_over.wait(_DEADLINE_S)
        finally:
            is_over.set()
    if not found:
        raise ClusterError(f"no change of metadata was committed within {_DEADLINE_S:g} s")
    return min(found)


def _summary(name: str, seconds: list[float]) -> dict[str, float | None]:
    if not seconds:
        return {}
    return {
        f"{name}_median_ms": statistics.median(seconds) * _MILLISECONDS,
        f"{name}_worst_ms": max(seconds) * _MILLISECONDS,
    }
