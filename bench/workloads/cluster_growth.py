"""Three nodes under full load grow to five, a third of the partitions moves over, and the two newcomers leave again.

What that costs the writer is told by the phase: before, while nodes join and partitions move, with five nodes, while
partitions move back and nodes leave, and afterwards. Every record has to be acknowledged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from ...client import clock
from ...local.cluster import LocalCluster
from ...local.errors import ClusterError
from ...local.resizing import assignment_of, decommission, move, moved_over
from ..busy_writer import Acknowledgement, BusyWriter
from ..quantiles import latencies
from ..target import Target
from ..topics import TIMEOUT_S, admin

_TOPIC: Final = "written"
_PARTITIONS: Final = 12
_REPLICAS: Final = 3
_NEWCOMERS: Final = 2
_WARM_UP_S: Final = 3.0
PHASES: Final = ("before", "growing", "grown", "shrinking", "shrunk")


def cluster_growth(target: Target, *, seconds: float) -> Mapping[str, float | None]:
    """`seconds` is how long each phase is in which nothing changes."""
    assert target.fresh_cluster is not None, "only asked of targets that can be started"
    with target.fresh_cluster({}) as cluster:
        assert isinstance(cluster, LocalCluster), "only asked of targets that can grow"
        cluster.start()
        topic = NewTopic(
            _TOPIC, num_partitions=_PARTITIONS, replication_factor=_REPLICAS, config={"min.insync.replicas": "2"}
        )
        client = admin(cluster.bootstrap)  # kept by name: it must outlive its answers
        client.create_topics([topic])[_TOPIC].result(TIMEOUT_S)
        ends_s: list[float] = []
        with BusyWriter(cluster.bootstrap, _TOPIC) as writer:
            writer.wait_for(_WARM_UP_S)
            ends_s.append(clock.monotonic_s())
            for phase in _phases(cluster, writer, seconds):
                phase()
                ends_s.append(clock.monotonic_s())
        writer.wait_for(0)
        _check(client, len(writer.acknowledged))
        return {
            name: value
            for phase, (start_s, end_s) in zip(PHASES, pairwise(ends_s), strict=True)
            for name, value in _measured(phase, writer.acknowledged, start_s, end_s).items()
        }


def _phases(cluster: LocalCluster, writer: BusyWriter, seconds: float) -> Sequence[Callable[[], None]]:
    newcomers: list[int] = []

    def look_on() -> None:
        writer.wait_for(seconds)

    def grow() -> None:
        newcomers.extend(cluster.add_node().id for _ in range(_NEWCOMERS))
        move(cluster, _TOPIC, moved_over(assignment_of(cluster, _TOPIC), newcomers))

    def shrink() -> None:
        decommission(cluster, _TOPIC, newcomers)

    return look_on, grow, look_on, shrink, look_on


def _measured(
    phase: str, acknowledged: Sequence[Acknowledgement], start_s: float, end_s: float
) -> dict[str, float | None]:
    inside = [one for one in acknowledged if start_s <= one.at_s < end_s]
    whole_seconds = int(end_s - start_s)
    by_second = Counter(int(one.at_s - start_s) for one in inside)
    return {
        f"{phase}_s": end_s - start_s,
        f"{phase}_records_per_s": len(inside) / (end_s - start_s),
        f"{phase}_least_records_per_s": float(min((by_second[second] for second in range(whole_seconds)), default=0)),
        **latencies(f"{phase}_acknowledged", [one.waited_ns for one in inside]),
    }


def _check(client: AdminClient, acknowledged_count: int) -> None:
    """An idempotent producer stores each record once. Raises ClusterError."""
    wanted = {TopicPartition(_TOPIC, index): OffsetSpec.latest() for index in range(_PARTITIONS)}
    answers = client.list_offsets(wanted, request_timeout=60)
    stored_count = sum(answer.result(TIMEOUT_S).offset for answer in answers.values())
    if stored_count != acknowledged_count:
        raise ClusterError(f"{acknowledged_count} records were acknowledged and {stored_count} are stored")
