"""A cluster that grows and shrinks, and one whose nodes are restarted one by one, under load: no write fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster_views import brokers
from replicated_cluster import DEADLINE_S, RECORDS_BETWEEN_FAULTS, TOPIC, ReplicatedCluster, repetitions, say
from waiting import wait_for

from penstock.local.cluster import LocalCluster
from penstock.local.resizing import assignment_of, decommission, move, moved_over

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]

PARTITIONS = 9
ROLLS = repetitions(sample=1, soak=10)


def test_three_nodes_grow_to_five_and_two_leave_and_no_write_fails(tmp_path: Path) -> None:
    with LocalCluster(tmp_path / "cluster", node_count=3) as cluster:
        world = ReplicatedCluster(cluster, partitions=PARTITIONS)
        with world.writer() as writer:
            writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
            newcomers = [cluster.add_node().id]
            # A node that is down keeps no other one from joining.
            cluster.kill_node(3)
            newcomers.append(cluster.add_node().id)
            cluster.start_node(3)
            world.wait_in_sync()
            moves = moved_over(assignment_of(cluster, TOPIC), newcomers)
            assert len(moves) == PARTITIONS // 3
            move(cluster, TOPIC, moves)
            world.wait_in_sync()
            assert {index: world.replicas_of(index) for index in moves} == moves
            assert {world.leaders()[index] for index in moves} <= set(newcomers) | cluster.nodes.keys()
            writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
            decommission(cluster, TOPIC, newcomers)
            wait_for(lambda: brokers(cluster.nodes[1].address) == {1, 2, 3}, "the two have left")
            world.wait_in_sync()
            writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
        world.check(writer)
        say(len(writer.acknowledged_s), "records acknowledged")
    world.check_replicas_equal()


def test_all_nodes_are_restarted_one_after_the_other_and_no_write_fails(tmp_path: Path) -> None:
    with LocalCluster(tmp_path / "cluster", node_count=3) as cluster:
        world = ReplicatedCluster(cluster)
        with world.writer() as writer:
            for _ in range(ROLLS):
                for node_id in cluster.nodes:
                    writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
                    cluster.restart_node(node_id)
                    world.wait_in_sync()
            writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
        world.check(writer)
        say(ROLLS, "rolling restarts,", len(writer.acknowledged_s), "records acknowledged")
    world.check_replicas_equal()
