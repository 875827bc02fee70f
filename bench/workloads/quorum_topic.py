"""A topic of many partitions on three nodes: created, and what the others wait for meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...client import clock
from ..pauses import slowest_answer
from ..quorum_state import cluster_pids, wait_settled
from ..target import Target
from ..topics import TIMEOUT_S, admin, create, wait_serving
from ..usage import measured

_TOPIC: Final = "many"
_MILLISECONDS: Final = 1000


def quorum_topic(target: Target, *, partitions: int) -> Mapping[str, float | None]:
    """Create one topic with one replica in a fresh cluster."""
    assert target.fresh_cluster is not None, "only asked of targets that can be started"
    with target.fresh_cluster({}) as cluster:
        cluster.start()
        client = admin(cluster.bootstrap)
        client.list_topics(timeout=TIMEOUT_S)  # the connection is not what is measured
        epoch = wait_settled(cluster).epoch
        with measured(cluster_pids(cluster)) as usage, slowest_answer(cluster.nodes.values()) as slowest:
            start_s = clock.monotonic_s()
            create(client, _TOPIC, partitions)
            created_s = clock.monotonic_s() - start_s
            created_slowest_s = slowest.seconds
            wait_serving(cluster.bootstrap, _TOPIC, partitions)
            serving_s = clock.monotonic_s() - start_s
        elections = wait_settled(cluster).epoch - epoch
    return {
        "create_s": created_s,
        "create_slowest_ms": created_slowest_s * _MILLISECONDS,
        "serving_s": serving_s,
        "serving_slowest_ms": slowest.seconds * _MILLISECONDS,
        "elections": float(elections),
        "others_cores": usage.others_cores,
    }
