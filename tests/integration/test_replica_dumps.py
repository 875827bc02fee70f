"""Replicas of a partition that had several leaders are the same, byte by byte and as Apache Kafka's tool reads them."""

from __future__ import annotations

import os
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from numbered_load import DEADLINE_S, NumberedLoad

from penstock.client.clock import wait_until
from penstock.client.cluster_metadata import ask_metadata
from penstock.local.apache_kafka.jars import KafkaJars
from penstock.local.apache_kafka.tools import run_tool
from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

TOPIC = "dumped"
NODES = (1, 2, 3)
RECORDS_BETWEEN_CHANGES = 3_000
EPOCHS_FILE = "leader-epoch-checkpoint"
# Where a batch lies in its segment: a replica may begin its segments at other batches.
POSITION = re.compile(r" position: \d+")


class World:
    """A partition of three replicas, of which two must be in sync."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        config = {"min.insync.replicas": "2", "segment.bytes": "1048576"}
        self.admin.create_topics([NewTopic(TOPIC, 1, len(NODES), config=config)])[TOPIC].result(DEADLINE_S)
        self.wait_in_sync()

    def leader(self) -> int:
        return int(ask_metadata(self.admin, TOPIC).topics[TOPIC].partitions[0].leader)

    def wait_in_sync(self) -> None:
        def in_sync() -> bool:
            partition = ask_metadata(self.admin, TOPIC).topics[TOPIC].partitions.get(0)
            return partition is not None and len(partition.isrs) == len(NODES)

        assert wait_until(in_sync, timeout_s=DEADLINE_S, interval_s=0.05), "not all replicas are in sync"

    def kill_leader(self) -> None:
        leader = self.leader()
        self.cluster.kill_node(leader)
        assert wait_until(lambda: self.leader() not in (leader, -1), timeout_s=DEADLINE_S, interval_s=0.05)
        self.cluster.start_node(leader)

    def restart_leader(self) -> None:
        self.cluster.restart_node(self.leader())

    def elect_preferred_leader(self) -> None:
        self.admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(TOPIC, 0)]).result(DEADLINE_S)


def folder(cluster: LocalCluster, node_id: int) -> Path:
    return cluster.nodes[node_id].data / f"{TOPIC}-0"


def dumped(jars: KafkaJars, files: list[Path]) -> list[str]:
    """The lines about batches and records, with what the tool says of their checksums."""
    result = run_tool(
        jars, "dump-log", "--deep-iteration", "--print-data-log", "--files", ",".join(str(file) for file in files)
    )
    assert result.exit_code == 0, result.output
    return [POSITION.sub("", line) for line in result.lines if line.startswith(("baseOffset:", "| offset:"))]


def values(lines: list[str]) -> Iterator[tuple[int, int]]:
    """(offset, value) of every record."""
    for line in lines:
        if match := re.match(r"\| offset: (\d+) .*payload: (\d+)$", line):
            yield int(match[1]), int(match[2])


def test_dumps_of_all_replicas_are_equal_after_several_leaders(tmp_path: Path, kafka_jars: KafkaJars) -> None:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
    sys.stdout.write(f"replay: PENSTOCK_TEST_SEED={seed} pytest {__file__}\n")
    generator = random.Random(seed)
    with LocalCluster(tmp_path / "cluster", node_count=len(NODES)) as cluster:
        world = World(cluster)
        load = NumberedLoad(cluster.bootstrap, TOPIC, 1, generator)
        for change in (world.kill_leader, world.elect_preferred_leader, world.restart_leader, world.kill_leader):
            load.send_until(load.acknowledged_count + generator.randrange(1, RECORDS_BETWEEN_CHANGES))
            change()
            load.send_until(load.acknowledged_count + generator.randrange(1, RECORDS_BETWEEN_CHANGES))
            world.wait_in_sync()
        load.finish()
        world.wait_in_sync()
    segments = {node_id: sorted(folder(cluster, node_id).glob("*.log")) for node_id in NODES}
    first, *others = (b"".join(segment.read_bytes() for segment in segments[node_id]) for node_id in NODES)
    assert all(other == first for other in others)
    first_epochs, *other_epochs = ((folder(cluster, node_id) / EPOCHS_FILE).read_text() for node_id in NODES)
    assert all(epochs == first_epochs for epochs in other_epochs)
    first_dump, *other_dumps = (dumped(kafka_jars, segments[node_id]) for node_id in NODES)
    assert all(dump == first_dump for dump in other_dumps)
    assert not any("isvalid: false" in line for line in first_dump)
    epochs = {match[1] for line in first_dump if (match := re.search(r"partitionLeaderEpoch: (\d+)", line))}
    assert len(epochs) >= 4, first_epochs
    assert list(values(first_dump)) == [(number, number) for number in range(load.sent[0])]
    assert set(load.acknowledged[0]) <= set(values(first_dump))
