"""Metadata of many partitions: what it weighs, how long a start takes with it, a snapshot of it, a new controller.

The partitions have no logs here (`metadata_images.py`), so this is what the metadata costs by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ...client import clock
from ...local.errors import ClusterError
from ...local.local_node import LocalNode
from ...quorum.metadata.metadata_log import METADATA_FOLDER
from ..metadata_changes import ImpatientSocket, MetadataChanges
from ..pauses import slowest_answer
from ..quorum_state import wait_settled
from ..target import Cluster, Target, node_pids
from ..topics import admin, create, wait_serving
from ..usage import resident_mib
from .quorum_failover import lose_controller
from .startup import SETTLE_S

_TOPIC: Final = "changed"
_TIMEOUT_S: Final = 120.0
_SNAPSHOT_BYTES: Final = 32 * 1024
_MILLISECONDS: Final = 1000


def quorum_image(target: Target, *, partitions: int, kills: int) -> Mapping[str, float | None]:
    """Start a cluster, put the partitions into its metadata, start it again and look."""
    assert target.fresh_cluster is not None, "only asked of targets that can be started"
    assert target.add_partitions is not None, "only asked of targets whose metadata can be written"
    with target.fresh_cluster({"metadata.log.max.record.bytes.between.snapshots": str(_SNAPSHOT_BYTES)}) as cluster:
        cluster.start()
        client = admin(cluster.bootstrap)
        create(client, _TOPIC, 1)
        wait_serving(cluster.bootstrap, _TOPIC, 1)
        wait_settled(cluster)
        clock.pause(SETTLE_S)
        empty_mib = _largest_mib(cluster)
        cluster.stop()
        target.add_partitions(cluster, partitions)
        start_s = clock.monotonic_s()
        cluster.start()
        restart_s = clock.monotonic_s() - start_s
        wait_settled(cluster)
        clock.pause(SETTLE_S)
        loaded_mib = _largest_mib(cluster)
        slowest_s = _snapshot(cluster)
        killed_s = [lose_controller(cluster, _TOPIC, is_killed=True) for _ in range(kills)]
    return {
        "image_mib": loaded_mib - empty_mib,
        "image_restart_s": restart_s,
        "snapshot_slowest_ms": slowest_s * _MILLISECONDS,
        "image_failover_worst_ms": max(killed_s) * _MILLISECONDS,
    }


def _largest_mib(cluster: Cluster) -> float:
    return max(resident_mib(node_pids(node)) for node in cluster.nodes.values())


def _snapshot(cluster: Cluster) -> float:
    """Change metadata until it is time for a snapshot, and all nodes have one; seconds of the slowest answer."""
    nodes = tuple(cluster.nodes.values())
    before = {node.id: _snapshots(node) for node in nodes}
    leader = cluster.nodes[wait_settled(cluster).leader_id]
    changes = MetadataChanges(_TOPIC)
    start_s = clock.monotonic_s()
    with slowest_answer(nodes) as slowest, ImpatientSocket(leader, _TIMEOUT_S) as connection:
        while any(not _snapshots(node) - before[node.id] for node in nodes):
            if clock.monotonic_s() - start_s > _TIMEOUT_S:
                raise ClusterError(f"no snapshot of the metadata was made within {_TIMEOUT_S:g} s")
            changes.check(connection.ask(changes.next()))
    return slowest.seconds


def _snapshots(node: LocalNode) -> set[Path]:
    return set((node.data / METADATA_FOLDER).glob("*.checkpoint"))
