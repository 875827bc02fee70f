"""Every load of `penstock bench`, made small, does what it says on a real broker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest
from click.testing import Result

from penstock.bench.cells import Values
from penstock.bench.local_targets import penstock as local_penstock
from penstock.bench.target import Cluster, Target
from penstock.bench.workloads.crowd import crowd
from penstock.bench.workloads.leader_failover import leader_failover
from penstock.bench.workloads.partitions import partitions
from penstock.bench.workloads.prepared import prepared
from penstock.bench.workloads.quorum_commits import quorum_commits
from penstock.bench.workloads.quorum_failover import quorum_failover
from penstock.bench.workloads.quorum_fencing import quorum_fencing
from penstock.bench.workloads.quorum_image import quorum_image
from penstock.bench.workloads.quorum_quiet import quorum_quiet
from penstock.bench.workloads.quorum_topic import quorum_topic
from penstock.bench.workloads.single import single
from penstock.bench.workloads.startup import startup
from penstock.bench.workloads.stream import BATCHING, stream
from penstock.bench.workloads.tiny import tiny
from penstock.bench.workloads.topic import topic
from penstock.chaos.local_node import LocalNode

LOADS: dict[str, Callable[[Target], Values]] = {
    "prepared": lambda target: prepared(target, size_bytes=100, partitions=3, records=5_000),
    "single": lambda target: single(target, records=20),
    "tiny, one by one": lambda target: tiny(target, in_flight=1, requests=50),
    "tiny, pipelined": lambda target: tiny(target, in_flight=5, requests=52),
    "crowd": lambda target: crowd(target, clients=30, producers=10, readers=0, seconds=1),
    "crowd with readers": lambda target: crowd(target, clients=30, producers=10, readers=5, seconds=1),
    "topic": lambda target: topic(target, partitions=10),
    **{
        f"stream, {batching}": lambda target, batching=batching: stream(  # type: ignore[misc]
            target, size_bytes=100, batching=batching, partitions=3, records=20_500
        )
        for batching in BATCHING
    },
}


@pytest.mark.parametrize("load", LOADS)
def test_load_is_carried_and_measured(bootstrap: str, load: str) -> None:
    found = LOADS[load](Target(name="it", bootstrap=bootstrap))
    times = [value for name, value in found.items() if name.endswith(("_s", "_ms")) and "cpu" not in name]
    assert times
    assert all(value is not None and value > 0 for value in times), found


FRESH_LOADS: dict[str, Callable[[Target], Values]] = {
    "startup": startup,
    "partitions": lambda target: partitions(target, count=20),
}


@pytest.mark.parametrize("load", FRESH_LOADS)
def test_load_of_a_fresh_node_is_measured_and_the_node_ended(load: str) -> None:
    nodes: list[LocalNode] = []

    @contextmanager
    def fresh_node() -> Iterator[LocalNode]:
        with local_penstock().fresh_node() as node:
            assert not node.is_running
            nodes.append(node)
            yield node

    found = FRESH_LOADS[load](Target(name="it", bootstrap="", fresh_node=fresh_node))
    # So few partitions need not take a page of memory.
    found = {name: value for name, value in found.items() if name != "kib_per_partition"}
    assert all(value is not None and value > 0 for value in found.values()), found
    assert [node.is_running for node in nodes] == [False]


CLUSTER_LOADS: dict[str, Callable[[Target], Values]] = {
    "commits": lambda target: quorum_commits(target, changes=100),
    "failover": lambda target: quorum_failover(target, kills=1, pauses=1),
    "fencing": lambda target: quorum_fencing(target, kills=1),
    "topic": lambda target: quorum_topic(target, partitions=20),
    "image": lambda target: quorum_image(target, partitions=50, kills=1),
    "leader failover": lambda target: leader_failover(target, faults=1),
    "quiet": lambda target: quorum_quiet(target, minutes=0.02, is_busy=True),
}


@pytest.mark.parametrize("load", CLUSTER_LOADS)
def test_load_of_a_fresh_cluster_is_measured_and_its_nodes_ended(load: str) -> None:
    broker = local_penstock()
    nodes: list[LocalNode] = []

    @contextmanager
    def fresh_cluster(properties: Mapping[str, str]) -> Iterator[Cluster]:
        with broker.fresh_cluster(properties) as cluster:
            nodes.extend(cluster.nodes.values())
            yield cluster

    found = CLUSTER_LOADS[load](
        Target(name="it", bootstrap="", fresh_cluster=fresh_cluster, add_partitions=broker.add_partitions)
    )
    # So few partitions need not take a page of memory, and nothing may have been elected.
    found = {name: value for name, value in found.items() if name not in ("image_mib", "elections", "others_cores")}
    assert all(value is not None and value > 0 for value in found.values()), found
    assert [node.is_running for node in nodes] == [False, False, False]


def test_command_measures_any_cluster(bootstrap: str, penstock: Callable[..., Result]) -> None:
    printed = penstock("bench", "--bootstrap", bootstrap, "--quick", "--rounds", 1, "--only", "topic", "--json").stdout
    (observation,) = json.loads(printed)["observations"]
    assert (observation["cell"], observation["error"]) == ("topic/1000", None)
