"""A nemesis on three real nodes under load: each fault takes hold, is proved, ends, and loses nothing acknowledged."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from missing_tools import need_toxiproxy

from penstock.chaos.faults.node_faults import NodeFaults
from penstock.chaos.links.proxied_cluster import ProxiedCluster
from penstock.chaos.nemeses.fault import (
    AnyFault,
    Bandwidth,
    ClockBump,
    ConnectionResets,
    DiskFull,
    Kill,
    MovedLeader,
    Partition,
    Pause,
    PowerLoss,
    PreferredElection,
    QuorumTransfer,
    SlowLink,
    Topics,
    Truncation,
)
from penstock.chaos.nemeses.kafka_target import KafkaTarget
from penstock.chaos.nemeses.linked_target import LinkedTarget
from penstock.chaos.nemeses.local_target import LocalTarget
from penstock.chaos.nemeses.nemesis import Nemesis
from penstock.chaos.nemeses.schedule import Schedule, Step
from penstock.chaos.nemeses.target import Target
from penstock.chaos.workloads.numbered_records import NumberedRecords
from penstock.client import clock
from penstock.local.apache_kafka.cluster import KafkaCluster
from penstock.local.apache_kafka.jars import SHORT_RUN_OPTIONS, KafkaJars
from penstock.local.cluster import LocalCluster
from penstock.local.errors import ClusterError

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

TOPIC = "numbers"
DEADLINE_S = 60.0
# What the broker has by default takes longer than this test is to last.
PROPERTIES = {
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "300",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}


def one_after_the_other(*steps: tuple[float, AnyFault], quiet_s: float) -> Schedule:
    """With how long each lasts."""
    placed, at_s = [], 0.2
    for duration_s, fault in steps:
        placed.append(Step(at_s, duration_s, fault))
        at_s += duration_s + quiet_s
    return Schedule(length_s=at_s, steps=tuple(placed), seed=1)


def carry_out(schedule: Schedule, target: Target, bootstrap: str, folder: Path) -> Nemesis:
    """With an idempotent producer at work; what it was told is judged at the end."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, 3, 3)])[TOPIC].result(DEADLINE_S)
    load = NumberedRecords(bootstrap, TOPIC, partitions=3, random=Random(1))
    load.send_until_acknowledged(100, timeout_s=DEADLINE_S)
    with Nemesis(schedule, target, path=folder / "nemesis.jsonl", start_ns=clock.monotonic_ns()) as nemesis:
        while not nemesis.is_over:
            # A few at a time: what a node lacks after its fault is to be there again soon.
            load.send_until_acknowledged(5, timeout_s=DEADLINE_S)
            with suppress(TimeoutError):
                nemesis.wait(timeout_s=0.02)
        nemesis.wait(timeout_s=DEADLINE_S)
    print(*nemesis.operations, sep="\n")  # noqa: T201 - pytest shows it when a test fails
    load.send_until_acknowledged(100, timeout_s=DEADLINE_S)
    load.finish(timeout_s=DEADLINE_S)
    assert load.judge(bootstrap, timeout_s=DEADLINE_S) == []
    return nemesis


def told_of(schedule: Schedule) -> list[tuple[str, str]]:
    """Kind and phase of each event that there is to be."""
    return [(step.fault.kind, phase) for step in schedule.steps for phase in ("begin", "end")]


def test_faults_of_operators_disks_clocks_and_processes_take_hold_and_end(tmp_path: Path) -> None:
    schedule = one_after_the_other(
        (0.2, MovedLeader()),
        (0.1, PreferredElection()),
        (0.3, Topics(interval_ms=100)),
        (0.1, QuorumTransfer()),
        (0.3, DiskFull()),
        (0.3, ClockBump(selector="2", offset_ms=-60_000)),
        (0.5, Pause(selector="controllers")),
        (0.3, PowerLoss()),
        (0.3, Kill(selector="leaders")),
        quiet_s=0.2,
    )
    cluster = LocalCluster(tmp_path / "cluster", node_count=3, properties=PROPERTIES)
    faults = {node_id: NodeFaults(node) for node_id, node in cluster.nodes.items()}
    with cluster:
        nemesis = carry_out(schedule, LocalTarget(cluster, [TOPIC], faults), cluster.bootstrap, tmp_path)
    problems = [(event.f, event.value, event.error) for event in nemesis.operations if event.error is not None]
    assert problems == []
    assert [(event.f, phase) for event in nemesis.operations for phase in event.value] == told_of(schedule)
    ends = {event.f: event.value["end"] for event in nemesis.operations if "end" in event.value}
    assert ends["disk-full"]["fired"]
    assert ends["clock-bump"]["clock_steps"]["2"] >= 1
    begins = {event.f: event.value["begin"] for event in nemesis.operations if "begin" in event.value}
    (damage,) = begins["power-loss"]["damage"].values()
    assert sum(damage["dropped"].values())
    # It waited for what was lost to be there again.
    assert begins["kill"].get("in_sync", True)


def test_faults_of_links_take_hold_and_end_though_nodes_die_meanwhile(tmp_path: Path) -> None:
    need_toxiproxy()
    schedule = one_after_the_other(
        (0.5, Partition(selector="leaders", mode="silence")),
        (0.5, Partition(selector="majorities-ring", mode="reset")),
        (0.5, Partition(selector="client-from-leader", mode="refusal")),
        (0.5, SlowLink(selector="one", latency_ms=100, jitter_ms=10)),
        (0.3, Bandwidth(selector="link")),
        (0.5, ConnectionResets(selector="bridge")),
        (0.3, Kill(selector="controllers")),
        quiet_s=0.2,
    )
    with ProxiedCluster(tmp_path / "cluster", client_slots=2, properties=PROPERTIES) as cluster:
        target = LinkedTarget(cluster, [TOPIC])
        assert "disk-full" not in target.kinds
        nemesis = carry_out(schedule, target, cluster.bootstrap(1), tmp_path)
    assert [(event.f, event.value, event.error) for event in nemesis.operations if event.error is not None] == []
    events = sorted((event for event in nemesis.operations if event.f != "canary"), key=lambda event: event.time)
    assert [(event.f, phase) for event in events for phase in event.value] == told_of(schedule)
    canaries = [event.value for event in nemesis.operations if event.f == "canary"]
    silent_during = {canary["during"] for canary in canaries if not canary["works"]}
    # On a slow or narrow link of a busy machine a request may take longer than a canary is waited for.
    assert silent_during - {"slow-link", "bandwidth"} == {"partition"}
    assert not any(canary["works"] for canary in canaries if canary["during"] == "partition")


# A JVM that starts beside two others takes half a minute on a busy machine.
@pytest.mark.timeout(400)
def test_faults_of_processes_take_hold_of_apache_kafka_too(tmp_path: Path, kafka_jars: KafkaJars) -> None:
    schedule = one_after_the_other(
        (1.0, Kill(selector="leaders")), (1.0, Pause(selector="controllers")), (0.5, Truncation()), quiet_s=0.5
    )
    cluster = KafkaCluster(
        kafka_jars, tmp_path / "cluster", node_count=3, properties=PROPERTIES, heap_mib=256, options=SHORT_RUN_OPTIONS
    )
    try:
        cluster.start()
        nemesis = carry_out(schedule, KafkaTarget(cluster, [TOPIC]), cluster.bootstrap, tmp_path)
    finally:
        # In good order its last nodes take a minute, as they are no majority any more.
        cluster.kill()
    assert [(event.f, event.value, event.error) for event in nemesis.operations if event.error is not None] == []
    assert [(event.f, phase) for event in nemesis.operations for phase in event.value] == told_of(schedule)


def test_a_fault_that_a_cluster_cannot_have_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path / "cluster", node_count=3)
    schedule = one_after_the_other((1, Partition()), (1, PowerLoss()), (1, Kill()), quiet_s=1)
    with pytest.raises(ClusterError, match="this cluster cannot have partition, power-loss: it can have"):
        Nemesis(schedule, LocalTarget(cluster, [TOPIC]), path=tmp_path / "nemesis.jsonl", start_ns=0)
