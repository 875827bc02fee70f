"""Three real processes that replicate: leaders are killed under load, come back, cut their logs and catch up.

`PENSTOCK_TEST_KILLS` is how many kills each test makes (3; more in a soak).
"""

from __future__ import annotations

import os
import random
import shutil
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from numbered_load import DEADLINE_S, NumberedLoad, read_all
from waiting import wait_for

from penstock.client.cluster_metadata import ask_metadata
from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

TOPIC = "replicated"
PARTITIONS = 3
NODES = (1, 2, 3)
KILLS = int(os.environ.get("PENSTOCK_TEST_KILLS", "3"))
RECORDS_BETWEEN_KILLS = 2_000


class World:
    """A cluster with a topic of three replicas, of which two must be in sync, and its load."""

    def __init__(self, cluster: LocalCluster, generator: random.Random, **configs: str) -> None:
        self.cluster = cluster
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        config = {"min.insync.replicas": "2", **{name.replace("_", "."): value for name, value in configs.items()}}
        self.admin.create_topics([NewTopic(TOPIC, PARTITIONS, len(NODES), config=config)])[TOPIC].result(DEADLINE_S)
        self.load = NumberedLoad(cluster.bootstrap, TOPIC, PARTITIONS, generator)

    def leader(self, partition: int = 0) -> int:
        return int(ask_metadata(self.admin, TOPIC).topics[TOPIC].partitions[partition].leader)

    def in_sync(self) -> list[int]:
        """How many replicas of each partition are."""
        partitions = ask_metadata(self.admin, TOPIC).topics[TOPIC].partitions
        return [len(partition.isrs) for partition in partitions.values()]

    def wait_in_sync(self) -> None:
        wait_for(lambda: self.in_sync() == [len(NODES)] * PARTITIONS, "all replicas in sync")

    def check_records(self) -> None:
        """What was acknowledged is there, once, in order, without holes."""
        for partition in range(PARTITIONS):
            stored = read_all(self.cluster.bootstrap, TOPIC, partition)
            assert stored == [(number, number) for number in range(self.load.sent[partition])]
            assert set(self.load.acknowledged[partition]) <= set(stored)


def stored_bytes(cluster: LocalCluster, node_id: int, partition: int) -> bytes:
    """All batches of a replica, wherever its segments begin."""
    folder = cluster.nodes[node_id].data / f"{TOPIC}-{partition}"
    return b"".join(segment.read_bytes() for segment in sorted(folder.glob("*.log")))


def check_replicas_equal(cluster: LocalCluster) -> None:
    """After a stop."""
    for partition in range(PARTITIONS):
        first, *others = (stored_bytes(cluster, node_id, partition) for node_id in NODES)
        assert first
        assert all(other == first for other in others)


def draw_generator(test: str) -> random.Random:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
    sys.stdout.write(f"replay: PENSTOCK_TEST_SEED={seed} PENSTOCK_TEST_KILLS={KILLS} pytest {__file__}::{test}\n")
    return random.Random(seed)


@pytest.mark.parametrize("flush_messages", [None, "1"], ids=["page cache", "flush.messages=1"])
def test_sigkill_of_leaders_loses_nothing_and_replicas_end_equal(tmp_path: Path, flush_messages: str | None) -> None:
    generator = draw_generator("test_sigkill_of_leaders_loses_nothing_and_replicas_end_equal")
    configs = {"segment_bytes": "1048576"} | ({"flush_messages": flush_messages} if flush_messages else {})
    with LocalCluster(tmp_path / "cluster", node_count=len(NODES)) as cluster:
        world = World(cluster, generator, **configs)
        load = world.load
        for _ in range(KILLS):
            load.send_until(load.acknowledged_count + generator.randrange(1, RECORDS_BETWEEN_KILLS))
            leader = world.leader(generator.randrange(PARTITIONS))
            cluster.kill_node(leader)
            load.send_until(load.acknowledged_count + generator.randrange(1, RECORDS_BETWEEN_KILLS))
            cluster.start_node(leader)
            world.wait_in_sync()
        load.finish()
        world.check_records()
    check_replicas_equal(cluster)


def test_bit_rot_of_a_leader_is_found_by_its_follower_and_mended_under_load(tmp_path: Path) -> None:
    """The follower begins with nothing, so it fetches what was not read since it was written."""
    generator = draw_generator("test_bit_rot_of_a_leader_is_found_by_its_follower_and_mended_under_load")
    with LocalCluster(tmp_path / "cluster", node_count=len(NODES)) as cluster:
        world = World(cluster, generator)
        load = world.load
        load.send_until(RECORDS_BETWEEN_KILLS)
        rotten = world.leader()
        refilled = next(node_id for node_id in NODES if node_id != rotten)
        cluster.stop_node(refilled)
        shutil.rmtree(cluster.nodes[refilled].data / f"{TOPIC}-0")
        segment = cluster.nodes[rotten].data / f"{TOPIC}-0" / f"{0:020d}.log"
        with segment.open("r+b") as file:
            position = segment.stat().st_size // 2
            file.seek(position)
            (byte,) = file.read(1)
            file.seek(position)
            file.write(bytes([byte ^ 1]))
        cluster.start_node(refilled)
        load.send_until(load.acknowledged_count + RECORDS_BETWEEN_KILLS)
        wait_for(lambda: world.leader() != rotten, "leader that is whole")
        world.wait_in_sync()
        load.send_until(load.acknowledged_count + RECORDS_BETWEEN_KILLS)
        load.finish()
        world.check_records()
    check_replicas_equal(cluster)
