"""Brokers whose process is gone are fenced at once, and those that only seem to be are let in again."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_views import brokers, create_topic, leaders
from fourth_broker import FourthBroker
from waiting import wait_for

from penstock.local.cluster import LocalCluster
from penstock.local.local_node import HOST
from penstock.local.ports import find_free

# Longer than any wait here: a broker that is fenced was fenced for another reason than the end of its session.
TIMES = {"broker.session.timeout.ms": "120000", "broker.heartbeat.interval.ms": "200"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path, node_count=3, properties=TIMES) as started:
        yield started


def leading(address: str) -> set[int]:
    return {leader.broker_id for leader in leaders(address, "flights")}


@pytest.mark.parametrize("node_id", [1, 2, 3])
def test_a_killed_node_leads_nothing_long_before_its_session_is_over(cluster: LocalCluster, node_id: int) -> None:
    """One of them is the active controller."""
    create_topic(cluster.nodes[1].address, "flights", {index: (index + 1,) for index in range(3)})
    others = sorted(cluster.nodes.keys() - {node_id})
    cluster.kill_node(node_id)
    for other in others:
        address = cluster.nodes[other].address
        wait_for(lambda address=address: leading(address) == {-1, *others})  # type: ignore[misc]
    cluster.start_node(node_id)
    wait_for(lambda: leading(cluster.nodes[node_id].address) == {1, 2, 3})


def test_a_broker_that_only_seems_to_be_gone_is_let_in_again_and_told_of(cluster: LocalCluster, tmp_path: Path) -> None:
    """Its address refuses and its connections to the controllers break, as behind a proxy that is restarted."""
    unused = f"PLAINTEXT://{HOST}:{find_free(random.Random())}"
    address = cluster.nodes[1].address
    logs = [started.log for started in cluster.nodes.values()]

    def count(sentence: str) -> int:
        return sum(log.read_text().count(sentence) for log in logs)

    with FourthBroker(cluster, tmp_path, {**TIMES, "advertised.listeners": unused}) as fourth:
        fourth.start()
        fourth.wait_ready()
        fourth.cut()
        wait_for(lambda: count("Fencing broker because its process is gone: broker=4") == 1)
        fourth.heal()
        wait_for(lambda: count("Broker was fenced while it was alive: broker=4") == 1)
        wait_for(lambda: 4 in brokers(address))
