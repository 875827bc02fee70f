"""Brokers whose process is gone are fenced at once, and those that only seem to be are let in again."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from cut_proxy import CutProxy

from penstock.chaos.cluster import LocalCluster
from penstock.chaos.local_node import HOST, LocalNode, environment_without_properties
from penstock.chaos.ports import find_free
from penstock.client import clock

DEADLINE_S = 30.0
# Longer than any wait here: a broker that is fenced was fenced for another reason than the end of its session.
TIMES = {"broker.session.timeout.ms": "120000", "broker.heartbeat.interval.ms": "200"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path, node_count=3, properties=TIMES) as started:
        yield started


def until(condition: Callable[[], bool]) -> None:
    assert clock.wait_until(condition, timeout_s=DEADLINE_S, interval_s=0.05), f"not so within {DEADLINE_S:g} s"


def create(cluster: LocalCluster, topic: str, partition_count: int) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, partition_count, 1)])[topic].result(DEADLINE_S)


def leaders(address: str, topic: str) -> list[int]:
    """Leaders by partition, as the node at this address tells them."""
    partitions = AdminClient({"bootstrap.servers": address}).list_topics(topic, timeout=DEADLINE_S).topics[topic]
    return sorted(one.leader for one in partitions.partitions.values())


@pytest.mark.parametrize("node_id", [1, 2, 3])
def test_a_killed_node_leads_nothing_long_before_its_session_is_over(cluster: LocalCluster, node_id: int) -> None:
    """One of them is the active controller."""
    create(cluster, "flights", 3)
    others = sorted(cluster.nodes.keys() - {node_id})
    cluster.kill_node(node_id)
    for other in others:
        until(lambda other=other: leaders(cluster.nodes[other].address, "flights") == [-1, *others])  # type: ignore[misc]
    cluster.start_node(node_id)
    until(lambda: leaders(cluster.nodes[node_id].address, "flights") == [1, 2, 3])


def voter_addresses(cluster: LocalCluster) -> dict[str, str]:
    """The properties of the first node."""
    lines = cluster.nodes[1].properties.read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_a_broker_that_only_seems_to_be_gone_is_let_in_again_and_told_of(cluster: LocalCluster, tmp_path: Path) -> None:
    """Its address refuses and its connections to the controllers break, as behind a proxy that is restarted."""
    properties = voter_addresses(cluster)
    ports = [int(voter.rpartition(":")[2]) for voter in properties["controller.quorum.voters"].split(",")]
    generator = random.Random()
    node = LocalNode(
        id=4, port=find_free(generator), data=tmp_path / "node-4", environment=environment_without_properties({})
    )
    with CutProxy(ports[0]) as one, CutProxy(ports[1]) as two, CutProxy(ports[2]) as three:
        proxies = (one, two, three)
        node.write_properties(
            {
                **TIMES,
                "process.roles": "broker",
                "cluster.secret": properties["cluster.secret"],
                "controller.quorum.voters": ",".join(
                    f"{voter_id}@{HOST}:{proxy.port}" for voter_id, proxy in enumerate(proxies, start=1)
                ),
                "advertised.listeners": f"PLAINTEXT://{HOST}:{find_free(generator)}",
            }
        )
        node.start()
        try:
            logs = [started.log for started in cluster.nodes.values()]

            def count(sentence: str) -> int:
                return sum(log.read_text().count(sentence) for log in logs)

            until(lambda: len(AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics().brokers) == 4)
            for proxy in proxies:
                proxy.cut()
            until(lambda: count("broker fenced: broker=4 reason=its process is gone") == 1)
            for proxy in proxies:
                proxy.heal()
            until(lambda: count("broker was fenced while it was alive: broker=4") == 1)
            until(lambda: len(AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics().brokers) == 4)
        finally:
            node.stop(timeout_s=DEADLINE_S)
