"""A node is killed and started again at once, with its disk, without what it had not synced, and without anything.

`PENSTOCK_TEST_REPETITIONS` is how often each (2; 50 in a soak). The start follows the kill within some milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from replicated_cluster import (
    DEADLINE_S,
    RECORDS_BETWEEN_FAULTS,
    TOPIC,
    ReplicatedCluster,
    draw_generator,
    repetitions,
    say,
)

from penstock.chaos.checkers.records import Anomaly
from penstock.chaos.faults.node_faults import NodeFaults
from penstock.client import clock
from penstock.local.cluster import LocalCluster
from penstock.local.readiness import wait_ready

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600)]

REPETITIONS = repetitions(sample=2, soak=50)


def run(world: ReplicatedCluster, damage: Callable[[int], object], generator: Random) -> None:
    """Restarts beside a writer; everything is judged at the end. `damage` does to the disk of a node what it has to."""
    cluster = world.cluster
    away_ms_max = 0.0
    with world.writer() as writer:
        for _ in range(REPETITIONS):
            writer.wait_acknowledged(generator.randrange(1, RECORDS_BETWEEN_FAULTS), timeout_s=DEADLINE_S)
            node_id = world.leaders()[generator.randrange(world.partitions)]
            start_s = clock.monotonic_s()
            cluster.kill_node(node_id)
            damage(node_id)
            cluster.nodes[node_id].start()
            away_ms_max = max(away_ms_max, (clock.monotonic_s() - start_s) * 1000)
            wait_ready((cluster.nodes[node_id],), timeout_s=DEADLINE_S)
            world.wait_in_sync()
        writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
    world.check(writer)
    world.check_leaderships(kills=REPETITIONS)
    say(
        f"{REPETITIONS} restarts, at most {away_ms_max:.0f} ms after SIGKILL,",
        f"{len(writer.acknowledged_s)} records acknowledged",
    )


def test_a_node_killed_and_started_at_once_loses_nothing_acknowledged(tmp_path: Path) -> None:
    generator = draw_generator(f"{__file__} -k killed_and_started")
    with LocalCluster(tmp_path / "cluster", node_count=3) as cluster:
        world = ReplicatedCluster(cluster)
        run(world, lambda _: None, generator)
    world.check_replicas_equal()


@pytest.mark.parametrize("configs", [{}, {"flush.messages": "1"}], ids=["page cache", "flush.messages=1"])
def test_a_node_that_loses_what_it_had_not_synced_costs_nothing_acknowledged(
    tmp_path: Path, configs: dict[str, str]
) -> None:
    generator = draw_generator(f"{__file__} -k had_not_synced")
    cluster = LocalCluster(tmp_path / "cluster", node_count=3)
    faults = {node.id: NodeFaults(node) for node in cluster.nodes.values()}
    dropped: list[int] = []

    def lose_power(node_id: int) -> None:
        lost = faults[node_id].drop_unsynced()
        dropped.append(sum(size for file, size in lost.items() if file.parent.name.startswith(f"{TOPIC}-")))

    with cluster:
        world = ReplicatedCluster(cluster, configs=configs)
        run(world, lose_power, generator)
    world.check_replicas_equal()
    say("bytes of logs dropped:", *dropped)
    # A fault that hit nothing shows nothing.
    assert configs or any(dropped)


def test_with_flush_messages_a_loss_of_power_of_all_replicas_costs_nothing_acknowledged(tmp_path: Path) -> None:
    generator = draw_generator(f"{__file__} -k power_of_all")
    cluster = LocalCluster(tmp_path / "cluster", node_count=3)
    faults = {node.id: NodeFaults(node) for node in cluster.nodes.values()}
    dropped = 0
    with cluster:
        world = ReplicatedCluster(cluster, configs={"flush.messages": "1"})
        with world.writer() as writer:
            for _ in range(REPETITIONS):
                writer.wait_acknowledged(generator.randrange(1, RECORDS_BETWEEN_FAULTS), timeout_s=DEADLINE_S)
                cluster.kill()
                dropped += sum(len(one.drop_unsynced()) for one in faults.values())
                cluster.start()
                world.wait_in_sync()
            writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
        world.check(writer)
        world.check_leaderships(kills=REPETITIONS * len(faults))
    world.check_replicas_equal()
    say(f"{REPETITIONS} losses of power, {len(writer.acknowledged_s)} records acknowledged, {dropped} files cut")
    assert dropped


def test_a_node_that_comes_back_empty_refills_before_it_leads_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    generator = draw_generator(f"{__file__} -k comes_back_empty")
    with LocalCluster(tmp_path / "cluster", node_count=3) as cluster:
        world = ReplicatedCluster(cluster)
        run(world, cluster.empty_node, generator)
    world.check_replicas_equal()


def test_what_a_lost_tail_costs_a_topic_with_one_replica_is_found(tmp_path: Path) -> None:
    """The fault is real and the judge can fail: with one replica no other node has what was not synced."""
    cluster = LocalCluster(tmp_path / "cluster")
    faults = NodeFaults(cluster.nodes[1])
    with cluster:
        world = ReplicatedCluster(cluster, partitions=1, replicas=1, configs={"min.insync.replicas": "1"})
        with world.writer() as writer:
            writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
        cluster.kill_node(1)
        faults.drop_unsynced()
        cluster.start_node(1)
        found = {one.anomaly for one in writer.judge(cluster.bootstrap, timeout_s=DEADLINE_S)}
    assert found == {Anomaly.LOST}
