"""All replicas of a topic are killed at once and started in every order, with pauses: nothing stays without a leader.

So are nodes that are killed faster than they recover. `PENSTOCK_TEST_REPETITIONS` is how often each of the six orders
(all six once; 5 times in a soak), and how often ten kills.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import permutations
from pathlib import Path
from random import Random

import pytest
from replicated_cluster import DEADLINE_S, ReplicatedCluster, draw_generator, repetitions, say
from waiting import wait_for

from penstock.chaos.faults.node_faults import NodeFaults
from penstock.client import clock
from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600)]

NODES = (1, 2, 3)
REPETITIONS = repetitions(sample=1, soak=5)
# The one that is left out longest is waited for, or is not: both sides of the end of its session.
SESSION = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "200"}
PAUSE_S_MAX = 3.0


@pytest.fixture
def world(tmp_path: Path) -> Iterator[ReplicatedCluster]:
    with LocalCluster(tmp_path / "cluster", node_count=len(NODES), properties=SESSION) as cluster:
        yield ReplicatedCluster(cluster)


def test_replicas_killed_at_once_lead_again_in_whatever_order_they_start(world: ReplicatedCluster) -> None:
    generator = draw_generator(__file__)
    cluster = world.cluster
    orders = list(permutations(NODES)) * REPETITIONS
    with world.writer() as writer:
        for order in orders:
            writer.wait_acknowledged(generator.randrange(1, 100), timeout_s=DEADLINE_S)
            cluster.kill()
            for place, node_id in enumerate(order):
                if place:
                    # How far the others have come by then is the machine's and the generator's: it is the fault.
                    clock.pause(generator.choice([0.0, 0.3, PAUSE_S_MAX]))
                cluster.nodes[node_id].start()
            wait_for(partial(_all_led, world), f"every partition is led after the start in order {order}")
            world.wait_in_sync()
        writer.wait_acknowledged(100, timeout_s=DEADLINE_S)
    world.check(writer)
    world.check_leaderships(kills=len(orders) * len(NODES))
    say(len(orders), "starts of all nodes,", len(writer.acknowledged_s), "records acknowledged")


@pytest.mark.parametrize("loses_power", [False, True], ids=["SIGKILL", "loss of power, flush.messages=1"])
def test_nodes_killed_faster_than_they_recover_lose_nothing_acknowledged(tmp_path: Path, loses_power: bool) -> None:
    generator = draw_generator(f"{__file__} -k faster")
    cluster = LocalCluster(tmp_path / "cluster", node_count=len(NODES), properties=SESSION)
    faults = {node.id: NodeFaults(node) for node in cluster.nodes.values()} if loses_power else {}
    with cluster:
        world = ReplicatedCluster(cluster, configs={"flush.messages": "1"} if loses_power else None)
        kill_and_judge(world, generator, faults)


def kill_and_judge(world: ReplicatedCluster, generator: Random, faults: Mapping[int, NodeFaults]) -> None:
    """Those with faults lose what they had not synced."""
    cluster = world.cluster
    kills = 10 * REPETITIONS
    with world.writer() as writer:
        for _ in range(kills):
            node = cluster.nodes[generator.choice(NODES)]
            node.kill()
            if node.id in faults:
                faults[node.id].drop_unsynced()
            clock.pause(generator.choice([0.0, generator.uniform(0, 1), generator.uniform(0, PAUSE_S_MAX)]))
            node.start()
            clock.pause(generator.choice([0.0, generator.uniform(0, 1), generator.uniform(0, PAUSE_S_MAX)]))
        world.wait_in_sync()
        writer.wait_acknowledged(100, timeout_s=DEADLINE_S)
    world.check(writer)
    # One that is killed while it starts has taken no other's place.
    world.check_leaderships(kills=1)
    say(kills, "kills,", len(writer.acknowledged_s), "records acknowledged")


def _all_led(world: ReplicatedCluster) -> bool:
    return all(leader >= 0 for leader in world.leaders().values())
