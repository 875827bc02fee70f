"""Nodes are restarted (SIGTERM), killed (SIGKILL) and the active controller is paused (SIGSTOP), while metadata change,
snapshots are frequent and a producer writes: every node starts again, all disks have the same image, and nothing
acknowledged is lost. Once on three nodes, once on six of which three are brokers only.

`PENSTOCK_TEST_RESTARTS`, `PENSTOCK_TEST_KILLS` and `PENSTOCK_TEST_PAUSES` are how often, on each of the two clusters.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

import pytest
from metadata_load import MetadataLoad
from replicated_cluster import DEADLINE_S, TOPIC, ReplicatedCluster, draw_generator, is_soak, say
from waiting import wait_for

from penstock.bench.quorum_state import quorum_state
from penstock.client import clock
from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(14_400)]

RESTARTS: Final = int(os.environ.get("PENSTOCK_TEST_RESTARTS", "500" if is_soak() else "6"))
KILLS: Final = int(os.environ.get("PENSTOCK_TEST_KILLS", "200" if is_soak() else "3"))
PAUSES: Final = int(os.environ.get("PENSTOCK_TEST_PAUSES", "100" if is_soak() else "2"))
# A snapshot after some ten changes, and often while a node stops.
PROPERTIES: Final = {"metadata.log.max.record.bytes.between.snapshots": "2500"}
# Longer than the voters' election timeout, so that another one leads; shorter and longer than a broker's session.
PAUSE_S: Final = (0.5, 12.0)


class Faults:
    """One fault after the other, each beside the loads, and each on a cluster that serves again."""

    def __init__(self, world: ReplicatedCluster, generator: Random) -> None:
        self._cluster = world.cluster
        self._random = generator
        self._node_ids = sorted(world.cluster.nodes)

    def restart(self) -> None:
        self._cluster.restart_node(self._random.choice(self._node_ids))

    def kill(self) -> None:
        """One or two processes, started again at once or after a moment."""
        lost = self._random.sample(self._node_ids, self._random.choice((1, 1, 2)))
        for node_id in lost:
            self._cluster.nodes[node_id].kill()
        clock.pause(self._random.choice((0.0, self._random.uniform(0.0, 1.0))))
        for node_id in lost:
            self._cluster.start_node(node_id)

    def pause(self) -> None:
        active_id = active_controller(self._cluster)
        # The phase of heartbeats and fetches at which it stands still.
        clock.pause(self._random.uniform(0.0, 0.5))
        self._cluster.pause_node(active_id)
        clock.pause(self._random.uniform(*PAUSE_S) if self._random.random() < 0.5 else 2.5)
        self._cluster.resume_node(active_id)


def active_controller(cluster: LocalCluster) -> int:
    """The leader of the metadata quorum, as the first node says that knows it."""
    found: list[int] = []

    def is_known() -> bool:
        states = (quorum_state(node) for node in cluster.nodes.values())
        found[:] = [state.leader_id for state in states if state is not None and state.leader_id >= 0][:1]
        return bool(found)

    wait_for(is_known, "a node knows the active controller")
    return found[0]


@pytest.mark.parametrize("nodes", [3, 6], ids=["three nodes", "three nodes and three that are brokers only"])
def test_restarts_kills_and_pauses_lose_nothing_and_every_node_starts_again(tmp_path: Path, nodes: int) -> None:
    generator = draw_generator(__file__)
    faults = Counter({"restart": RESTARTS, "kill": KILLS, "pause": PAUSES})
    order = list(faults.elements())
    generator.shuffle(order)
    with LocalCluster(tmp_path / "cluster", node_count=nodes, properties=PROPERTIES) as cluster:
        # The replicas of the last ones are on brokers only, where there are such.
        assignment = [[(first + place) % nodes + 1 for place in range(3)] for first in range(nodes)]
        world = ReplicatedCluster(cluster, partitions=nodes, assignment=assignment)
        world.create_topic("counted", [1, 2, 3])
        doing = Faults(world, generator)
        with MetadataLoad(cluster.bootstrap, ["counted"], churn="churn") as load, world.writer() as writer:
            for fault in order:
                getattr(doing, fault)()
                writer.wait_acknowledged(generator.randrange(1, 30), timeout_s=DEADLINE_S)
                load.wait_more(generator.randrange(1, 5), timeout_s=DEADLINE_S)
            world.wait_in_sync()
            writer.wait_acknowledged(100, timeout_s=DEADLINE_S)
        cluster.wait_ready()
        world.check(writer)
        size = load.check(cluster, timeout_s=DEADLINE_S)
    for partition, replicas in enumerate(assignment):
        world.check_equal(f"{TOPIC}-{partition}", replicas)
    say(
        f"{nodes} nodes: {dict(faults)}, {len(writer.acknowledged_s)} records and {load.count} changes acknowledged,",
        f"image of {size} bytes",
    )
