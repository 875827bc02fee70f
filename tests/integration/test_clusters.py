"""Clusters of three node processes, each of them a controller and a broker."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from waiting import wait_for

from penstock.local.cluster import LocalCluster
from penstock.local.local_node import LocalNode
from penstock.local.ports import find_free

DEADLINE_S = 30.0
TIMES = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "200"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path, node_count=3, properties=TIMES) as started:
        yield started


def create(cluster: LocalCluster, topic: str, partition_count: int) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, partition_count, 1)])[topic].result(DEADLINE_S)
    return admin


def leaders(address: str, topic: str) -> list[int]:
    """Leaders by partition, as the node at this address tells them."""
    described = AdminClient({"bootstrap.servers": address}).list_topics(topic, timeout=DEADLINE_S)
    partitions = described.topics[topic].partitions
    return [partitions[index].leader for index in sorted(partitions)]


def produce(bootstrap: str, topic: str, partition_count: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for number in range(count):
        producer.produce(topic, str(number).encode(), partition=number % partition_count)
    assert producer.flush(DEADLINE_S) == 0


def read(bootstrap: str, topic: str, partition_count: int, count: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partition_count)])
    found: list[int] = []

    def has_all() -> bool:
        found.extend(int(message.value() or b"") for message in consumer.consume(count, 0.5) if message.error() is None)
        return len(found) >= count

    wait_for(has_all, lambda: f"{count} records of {topic}; {len(found)} came")
    consumer.close()
    return sorted(found)


def test_partitions_are_spread_and_served_by_all_nodes(cluster: LocalCluster) -> None:
    create(cluster, "flights", 6)
    for node in cluster.nodes.values():
        wait_for(lambda node=node: sorted(leaders(node.address, "flights")) == [1, 1, 2, 2, 3, 3])  # type: ignore[misc]
    produce(cluster.bootstrap, "flights", 6, 600)
    assert read(cluster.bootstrap, "flights", 6, 600) == list(range(600))


@pytest.mark.parametrize("node_id", [1, 2])
def test_a_killed_node_comes_back_and_nothing_acknowledged_is_lost(cluster: LocalCluster, node_id: int) -> None:
    create(cluster, "flights", 3)
    produce(cluster.bootstrap, "flights", 3, 300)
    cluster.kill_node(node_id)
    cluster.start_node(node_id)
    cluster.wait_ready()
    for node in cluster.nodes.values():
        wait_for(lambda node=node: sorted(leaders(node.address, "flights")) == [1, 2, 3])  # type: ignore[misc]
    create(cluster, "weather", 3)
    assert read(cluster.bootstrap, "flights", 3, 300) == list(range(300))


@pytest.mark.parametrize("node_id", [1, 2, 3])
def test_a_node_that_is_silent_for_a_session_leads_nothing_until_it_speaks_again(
    cluster: LocalCluster, node_id: int
) -> None:
    """One of them is the active controller."""
    create(cluster, "flights", 3)
    others = sorted(cluster.nodes.keys() - {node_id})
    asked = cluster.nodes[others[0]].address
    cluster.pause_node(node_id)
    wait_for(lambda: sorted(leaders(asked, "flights")) == [-1, *others])
    cluster.resume_node(node_id)
    wait_for(lambda: sorted(leaders(asked, "flights")) == [1, 2, 3])


def test_metadata_changes_while_any_one_node_is_away(cluster: LocalCluster) -> None:
    for node_id in cluster.nodes:
        cluster.kill_node(node_id)
        remaining = ",".join(node.address for node in cluster.nodes.values() if node.id != node_id)
        admin = AdminClient({"bootstrap.servers": remaining})
        admin.create_topics([NewTopic(f"without-{node_id}", 1, 1)])[f"without-{node_id}"].result(DEADLINE_S)
        cluster.start_node(node_id)
    for node in cluster.nodes.values():
        for node_id in cluster.nodes:
            wait_for(lambda node=node, node_id=node_id: leaders(node.address, f"without-{node_id}") != [-1])  # type: ignore[misc]


def test_brokers_serve_while_there_is_no_quorum_and_it_comes_back(cluster: LocalCluster) -> None:
    create(cluster, "flights", 3)
    address = cluster.nodes[2].address
    place = leaders(address, "flights").index(2)
    cluster.kill_node(1)
    cluster.kill_node(3)
    producer = Producer({"bootstrap.servers": address, "acks": "all"})
    producer.produce("flights", b"7", partition=place)
    assert producer.flush(DEADLINE_S) == 0
    cluster.start_node(1)
    cluster.start_node(3)
    cluster.wait_ready()
    create(cluster, "weather", 3)


def test_all_nodes_killed_at_once_come_back_with_everything(cluster: LocalCluster) -> None:
    create(cluster, "flights", 3)
    produce(cluster.bootstrap, "flights", 3, 300)
    cluster.kill()
    cluster.start()
    assert read(cluster.bootstrap, "flights", 3, 300) == list(range(300))


def test_a_cluster_that_stops_and_starts_has_everything(cluster: LocalCluster) -> None:
    create(cluster, "flights", 3)
    produce(cluster.bootstrap, "flights", 3, 300)
    cluster.stop()
    cluster.start()
    assert read(cluster.bootstrap, "flights", 3, 300) == list(range(300))


def test_more_replicas_than_brokers_are_refused(cluster: LocalCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    with pytest.raises(KafkaException, match="INVALID_REPLICATION_FACTOR"):
        admin.create_topics([NewTopic("flights", 1, 4)])["flights"].result(DEADLINE_S)


def test_the_quorum_is_told_with_voters_and_observers(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, node_count=4, properties=TIMES) as started:
        last = started.nodes[4].address

        def told() -> dict[str, Any]:
            command = [sys.executable, "-P", "-m", "penstock", "quorum", "status", "--json", "--bootstrap", last]
            state: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            return state

        wait_for(lambda: [one["id"] for one in told()["observers"]] == [4])
        state = told()
        assert [voter["id"] for voter in state["voters"]] == [1, 2, 3]
        assert state["leader_id"] in (1, 2, 3)
        assert 0 < state["high_watermark"] <= max(voter["log_end_offset"] for voter in state["voters"])
        wait_for(lambda: all(one["lag"] == 0 for one in told()["voters"] + told()["observers"]))


def test_a_node_that_waits_for_its_cluster_can_be_told_to_stop(tmp_path: Path) -> None:
    waiting = LocalNode(id=9, port=find_free(random.Random()), data=tmp_path / "node-9", environment=os.environ)
    waiting.write_properties(
        {
            "process.roles": "broker",
            "controller.quorum.voters": f"1@127.0.0.1:{find_free(random.Random())}",
            "cluster.secret": "the secret of another cluster",
        }
    )
    waiting.start()
    wait_for(lambda: "waiting for the quorum" in waiting.log.read_text())
    waiting.stop(timeout_s=DEADLINE_S)
    assert waiting.exit_status == 0
