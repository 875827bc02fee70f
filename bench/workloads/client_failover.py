"""What unmodified client libraries see of the loss of a node that leads a partition and coordinates their group.

Three nodes, a topic with three replicas. Three programs of one library run all the time: one writes to all partitions,
so that it is connected to all nodes; one writes to a partition of the node that will be lost alone, and is connected to
no other; one reads and commits in a group whose coordinator is that node. The node is killed, comes back and leads
again, over and over.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import count, pairwise
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ...client import clock
from ...client.cluster_metadata import ask_metadata
from ...local.errors import ClusterError
from ...local.readiness import wait_ready
from ..clients.observed_client import ObservedClient
from ..clients.programs import PROGRAMS
from ..target import Cluster, Target
from ..topics import TIMEOUT_S, admin

_TOPIC: Final = "watched"
_REPLICAS: Final = 3
_PARTITION: Final = 0
"""The node that leads it at first is the one that is lost."""
_EVENTS: Final = 50
"""Of each program, before and after each loss."""
_RECOVERY_S: Final = 60.0
# franz-go asks no more often than every 5 s, and a node that moves leaders back makes it ask; a second broker that is
# killed within a session of 9 s waits for the end of its own; and librdkafka doubles its wait between connections to a
# coordinator, however many there were, until the last one is 10 s old (`reconnect.backoff.max.ms`).
_QUIET_S: Final = 15.0
_POLL_S: Final = 0.1
_MILLISECONDS: Final = 1000


class _Watched(NamedTuple):
    name: str
    client: ObservedClient
    event: str


def client_failover(target: Target, *, library: str, kills: int) -> Mapping[str, float | None]:
    """Start a cluster and kill the node so often. Returns the longest silence of each program, median and worst."""
    assert target.fresh_cluster is not None, "only asked of targets that can be started"
    command = PROGRAMS[library]()
    with target.fresh_cluster({}) as cluster, tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        cluster.start()
        client = admin(cluster.bootstrap)
        topic = NewTopic(
            _TOPIC, num_partitions=_REPLICAS, replication_factor=_REPLICAS, config={"min.insync.replicas": "2"}
        )
        client.create_topics([topic])[_TOPIC].result(TIMEOUT_S)
        lost_id = _wait_balanced(client)
        group = _group_coordinated_by(client, lost_id)

        def run(name: str, event: str, *arguments: str) -> _Watched:
            errors = Path(folder) / f"{name}.stderr"
            program = ObservedClient([*command, cluster.bootstrap, _TOPIC, *arguments], errors)
            return _Watched(name, stack.enter_context(program), event)

        everywhere = ",".join(map(str, range(_REPLICAS)))
        watched = (
            run("write", f"ack {_PARTITION}", "write", everywhere),
            run("write_alone", f"ack {_PARTITION}", "write", str(_PARTITION)),
            run("commit", "commit", "commit", group),
        )
        gaps_s: dict[str, list[float]] = {one.name: [] for one in watched}
        for _ in range(kills):
            for name, gap_s in _lose(cluster, lost_id, watched).items():
                gaps_s[name].append(gap_s)
            wait_ready(tuple(cluster.nodes.values()), timeout_s=TIMEOUT_S)
            _wait_balanced(client)
        return {
            f"client_{name}_gap_{which}_ms": of(values) * _MILLISECONDS
            for name, values in gaps_s.items()
            for which, of in (("median", statistics.median), ("worst", max))
        }


def _lose(cluster: Cluster, lost_id: int, watched: tuple[_Watched, ...]) -> dict[str, float]:
    """The longest silence of each program that lasted beyond the kill, in seconds; then the node is back."""
    begin_s = clock.monotonic_s()
    for one in watched:
        one.client.wait_for(one.event, _EVENTS, after_s=begin_s, timeout_s=_RECOVERY_S)
    clock.pause(max(0.0, begin_s + _QUIET_S - clock.monotonic_s()))
    killed_s = clock.monotonic_s()
    cluster.nodes[lost_id].kill()
    for one in watched:
        one.client.wait_for(one.event, _EVENTS, after_s=killed_s + 1, timeout_s=_RECOVERY_S)
    gaps_s = {one.name: _silence_s(one.client.times_s(one.event), killed_s) for one in watched}
    cluster.nodes[lost_id].start()
    return gaps_s


def _silence_s(times_s: Sequence[float], killed_s: float) -> float:
    return max(end - begin for begin, end in pairwise(times_s) if end > killed_s)


def _wait_balanced(client: AdminClient) -> int:
    """Until all replicas are in sync and the preferred ones lead, of internal topics too. Returns the leader of the
    partition that matters."""
    deadline_s = clock.monotonic_s() + TIMEOUT_S
    while True:
        topics = ask_metadata(client).topics
        partitions = [(name, state) for name, topic in topics.items() for state in topic.partitions.values()]
        moved = [TopicPartition(name, state.id) for name, state in partitions if state.leader != state.replicas[0]]
        is_in_sync = all(len(state.isrs) == len(state.replicas) for _, state in partitions)
        if is_in_sync and not moved and _TOPIC in topics:
            return int(topics[_TOPIC].partitions[_PARTITION].leader)
        if is_in_sync and moved:
            client.elect_leaders(ElectionType.PREFERRED, moved).result(TIMEOUT_S)
        if clock.monotonic_s() > deadline_s:
            raise ClusterError(f"not all preferred replicas lead after {TIMEOUT_S:g} s")
        clock.pause(_POLL_S)


def _group_coordinated_by(client: AdminClient, node_id: int) -> str:
    """The name of a group whose coordinator is that node."""
    for number in count():
        name = f"watched-{number}"
        found = client.describe_consumer_groups([name])[name]
        if found.result(TIMEOUT_S).coordinator.id == node_id:
            return name
    raise AssertionError("there are names without end")
