"""Changes of metadata, each committed by a quorum of three before it is answered; beside the disk's own sync time.

The client asks the node that is the active controller. One change at a time gives the latency; one each on many
connections, the rate. All three voters and the client share one machine, and the voters one disk.
"""

from __future__ import annotations

import selectors
import statistics
from collections.abc import Mapping
from time import perf_counter_ns
from typing import Final

from ...client import clock
from ...local.local_node import HOST, LocalNode
from ..disk_sync import sync_times_ns
from ..metadata_changes import ImpatientSocket, MetadataChanges
from ..quantiles import latencies
from ..quorum_state import cluster_pids, wait_settled
from ..target import Target
from ..topics import admin, create, wait_serving
from ..usage import measured
from ..wire import Socket

_TOPIC: Final = "changed"
_TIMEOUT_S: Final = 60.0
_WARM_UP: Final = 300
_CONNECTIONS: Final = 64
_NS_PER_MS: Final = 1e6


def quorum_commits(target: Target, *, changes: int) -> Mapping[str, float | None]:
    """Start a cluster, make that many changes one by one, then as many at once as there are connections."""
    assert target.fresh_cluster is not None, "only asked of targets that can be started"
    with target.fresh_cluster({}) as cluster:
        cluster.start()
        client = admin(cluster.bootstrap)
        create(client, _TOPIC, 1)
        wait_serving(cluster.bootstrap, _TOPIC, 1)
        leader = cluster.nodes[wait_settled(cluster).leader_id]
        requests = MetadataChanges(_TOPIC)
        with ImpatientSocket(leader, _TIMEOUT_S) as connection:
            _one_by_one(connection, requests, _WARM_UP)
            # On both sides of what is measured: a disk is not the same from one minute to the next.
            sync_ns = sync_times_ns(leader.data)
            with measured(cluster_pids(cluster)) as usage:
                times_ns = _one_by_one(connection, requests, changes)
            sync_ns += sync_times_ns(leader.data)
        start_s = clock.monotonic_s()
        _at_once(leader, requests, changes)
        seconds = clock.monotonic_s() - start_s
    sync_p50_ns = statistics.median_low(sync_ns)
    return {
        **latencies("commit", times_ns),
        "disk_sync_p50_ms": sync_p50_ns / _NS_PER_MS,
        "commit_p50_in_syncs": statistics.median_low(times_ns) / sync_p50_ns,
        "commits_per_s": changes / seconds,
        "others_cores": usage.others_cores,
    }


def _one_by_one(connection: ImpatientSocket, requests: MetadataChanges, count: int) -> list[int]:
    """Nanoseconds from request to answer."""
    times_ns = []
    for _ in range(count):
        request = requests.next()
        start_ns = perf_counter_ns()
        answer = connection.ask(request)
        times_ns.append(perf_counter_ns() - start_ns)
        requests.check(answer)
    return times_ns


def _at_once(leader: LocalNode, requests: MetadataChanges, count: int) -> None:
    sockets = [Socket((HOST, leader.port)) for _ in range(_CONNECTIONS)]
    try:
        with selectors.DefaultSelector() as selector:
            for one in sockets:
                selector.register(one, selectors.EVENT_READ, one)
                one.send(requests.next())
            answered, sent = 0, len(sockets)
            while answered < max(count, len(sockets)):
                for key, _ in selector.select(_TIMEOUT_S):
                    requests.check(key.data.receive_answer())
                    answered += 1
                    if sent < count:
                        key.data.send(requests.next())
                        sent += 1
    finally:
        for one in sockets:
            one.close()
