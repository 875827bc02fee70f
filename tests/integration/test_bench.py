"""Every load of `penstock bench`, made small, does what it says on a real broker."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest
from click.testing import Result
from missing_tools import unavailable

from penstock.bench.cells import Values
from penstock.bench.group_members import PROTOCOLS
from penstock.bench.local_targets import penstock as local_penstock
from penstock.bench.target import Cluster, Target
from penstock.bench.topics import admin, new_topic
from penstock.bench.workloads.authorizer import authorizer
from penstock.bench.workloads.client_memory import client_memory
from penstock.bench.workloads.cluster_growth import PHASES, cluster_growth
from penstock.bench.workloads.cluster_partitions import cluster_partitions
from penstock.bench.workloads.cold_reader import cold_reader
from penstock.bench.workloads.coordinator_load import coordinator_load
from penstock.bench.workloads.cores import cores
from penstock.bench.workloads.crowd import crowd
from penstock.bench.workloads.exposition import exposition
from penstock.bench.workloads.groups import groups
from penstock.bench.workloads.http_crowd import http_crowd
from penstock.bench.workloads.leader_failover import leader_failover
from penstock.bench.workloads.listing import listing
from penstock.bench.workloads.offset_commits import offset_commits
from penstock.bench.workloads.partitions import partitions
from penstock.bench.workloads.prepared import prepared
from penstock.bench.workloads.quorum_commits import quorum_commits
from penstock.bench.workloads.quorum_failover import quorum_failover
from penstock.bench.workloads.quorum_fencing import quorum_fencing
from penstock.bench.workloads.quorum_image import quorum_image
from penstock.bench.workloads.quorum_quiet import quorum_quiet
from penstock.bench.workloads.quorum_topic import quorum_topic
from penstock.bench.workloads.replicated_partitions import replicated_partitions
from penstock.bench.workloads.sasl import SCRAM, sasl
from penstock.bench.workloads.scraping import scraping
from penstock.bench.workloads.single import single
from penstock.bench.workloads.startup import startup
from penstock.bench.workloads.stream import BATCHING, stream
from penstock.bench.workloads.system_calls import system_calls
from penstock.bench.workloads.tiny import tiny
from penstock.bench.workloads.tls import tls
from penstock.bench.workloads.topic import topic
from penstock.bench.workloads.transactions import transactions
from penstock.local.local_node import LocalNode

LOADS: dict[str, Callable[[Target], Values]] = {
    "prepared": lambda target: prepared(target, size_bytes=100, partitions=3, records=5_000),
    "single": lambda target: single(target, records=20),
    "tiny, one by one": lambda target: tiny(target, in_flight=1, requests=50),
    "tiny, idempotent": lambda target: tiny(target, in_flight=5, requests=52, is_idempotent=True),
    "tiny, pipelined": lambda target: tiny(target, in_flight=5, requests=52),
    "crowd": lambda target: crowd(target, clients=30, producers=10, readers=0, seconds=1),
    "crowd with readers": lambda target: crowd(target, clients=30, producers=10, readers=5, seconds=1),
    "topic": lambda target: topic(target, partitions=10),
    "commits": lambda target: offset_commits(target, in_flight=5, commits=52),
    "transactions": lambda target: transactions(target, records=2_500, commits=3),
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
    "client memory": lambda target: client_memory(target, clients=5, partitions=3, settle_s=0.1),
    "partitions": lambda target: partitions(target, count=20),
    "partitions, written": lambda target: partitions(target, count=20, is_written=True),
    "coordinators": lambda target: coordinator_load(target, size_mib=1),
    "cold reader": lambda target: cold_reader(target, size_gb=0.02, seconds=1),
    "cold reader, tier": lambda target: cold_reader(target, size_gb=0.02, seconds=1, is_tiered=True),
    "http crowd": lambda target: http_crowd(target, name="huge-bodies", clients=30, producers=10, pairs=1, seconds=1),
    "scraping": lambda target: scraping(target, pairs=1, requests=100),
    "authorizer": lambda target: authorizer(target, requests=10),
    "TLS": lambda target: tls(target, size_bytes=100, records=2_000, warm_up_records=1_000),
    "PLAIN": lambda target: sasl(target, mechanism="PLAIN", connections=32, warm_up_connections=16),
    "SCRAM inside TLS": lambda target: sasl(
        target, mechanism=SCRAM, connections=32, warm_up_connections=16, is_tls=True
    ),
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
    # So few partitions and clients need not take a page of memory.
    found = {
        name: value
        for name, value in found.items()
        if name not in ("kib_per_partition", "kib_per_client") and not name.endswith("others_cores")
    }
    assert all(value is not None and value > 0 for value in found.values()), found
    assert nodes
    assert not any(node.is_running for node in nodes)


def test_system_calls_of_a_request_are_counted() -> None:
    if shutil.which("strace") is None:
        unavailable("system calls are counted by strace (Debian: apt-get install strace)")
    with local_penstock().target(is_node_needed=True, is_cluster_needed=False) as target:
        found = system_calls(target, part=20)
    assert all(value is not None and value > 0 for value in found.values()), found
    # Wait, read, append, answer; where the machine is busy the next request is there already, and a wait is saved.
    assert (found["produce_alone_calls"] or 0) > 3


@pytest.mark.parametrize("load", [exposition, listing])
def test_pauses_of_a_node_in_this_process_are_measured(load: Callable[..., Values]) -> None:
    found = load(Target(name="it", bootstrap=""), partitions=20)
    assert all(value is not None and value > 0 for value in found.values()), found


CLUSTER_LOADS: dict[str, Callable[[Target], Values]] = {
    "commits": lambda target: quorum_commits(target, changes=100),
    "failover": lambda target: quorum_failover(target, kills=1, pauses=1),
    "fencing": lambda target: quorum_fencing(target, kills=1),
    "topic": lambda target: quorum_topic(target, partitions=20),
    "image": lambda target: quorum_image(target, partitions=50, kills=1),
    "replicated partitions": lambda target: replicated_partitions(target, count=6, settle_s=0.1, idle_s=1),
    "partitions": lambda target: cluster_partitions(target, count=12, settle_s=0.1, idle_s=1),
    "leader failover": lambda target: leader_failover(target, faults=1),
    **{
        f"groups, {protocol}": lambda target, protocol=protocol: groups(  # type: ignore[misc]
            target, protocol, changes=1, members=5, small_groups=4, partitions=10
        )
        for protocol in PROTOCOLS
    },
    "cores": lambda target: cores(target, nodes=3, records=40_000, settle_s=0.1),
    "quiet": lambda target: quorum_quiet(target, minutes=0.02, is_busy=True),
}


@pytest.mark.parametrize("load", CLUSTER_LOADS)
def test_load_of_a_fresh_cluster_is_measured_and_its_nodes_ended(load: str) -> None:
    broker = local_penstock()
    nodes: list[LocalNode] = []

    @contextmanager
    def fresh_cluster(properties: Mapping[str, str], node_count: int = 3, /) -> Iterator[Cluster]:
        with broker.fresh_cluster(properties, node_count) as cluster:
            nodes.extend(cluster.nodes.values())
            yield cluster

    found = CLUSTER_LOADS[load](
        Target(name="it", bootstrap="", fresh_cluster=fresh_cluster, add_partitions=broker.add_partitions)
    )
    # So few partitions need not take a page of memory, and nothing may have been elected.
    found = {
        name: value
        for name, value in found.items()
        if name not in ("image_mib", "elections") and not name.endswith("others_cores")
    }
    assert all(value is not None and value > 0 for value in found.values()), found
    assert [node.is_running for node in nodes] == [False, False, False]


def test_growth_of_a_fresh_cluster_is_measured_and_its_nodes_ended() -> None:
    broker = local_penstock()
    nodes: dict[int, LocalNode] = {}

    @contextmanager
    def fresh_cluster(properties: Mapping[str, str], node_count: int = 3, /) -> Iterator[Cluster]:
        with broker.fresh_cluster(properties, node_count) as cluster:
            yield cluster
            nodes.update(cluster.nodes)

    target = Target(name="it", bootstrap="", fresh_cluster=fresh_cluster, can_grow=True)
    found = cluster_growth(target, seconds=1.0)
    for phase in PHASES:
        rate, p99_ms = found[f"{phase}_records_per_s"], found[f"{phase}_acknowledged_p99_ms"]
        assert rate is not None
        assert rate > 0
        assert p99_ms is not None
    assert nodes.keys() == {1, 2, 3}
    assert not any(node.is_running for node in nodes.values())


def test_running_cluster_keeps_three_replicas_of_what_is_measured() -> None:
    with local_penstock().target(is_node_needed=False, is_cluster_needed=True) as target:
        replicated = target.replicated
        assert (target.bootstrap, replicated is None) == ("", False)
        assert replicated is not None
        assert len(replicated.pids) == 3
        with new_topic(replicated, 2) as name:
            partitions = admin(replicated.bootstrap).list_topics(name, timeout=30).topics[name].partitions
            assert [len(partition.replicas) for partition in partitions.values()] == [3, 3]
        found = prepared(replicated, size_bytes=100, partitions=3, records=5_000)
        assert found["produce_broker_cpu_s_per_gb"] is not None


def test_command_measures_any_cluster(bootstrap: str, penstock: Callable[..., Result]) -> None:
    printed = penstock("bench", "--bootstrap", bootstrap, "--quick", "--rounds", 1, "--only", "topic", "--json").stdout
    (observation,) = json.loads(printed)["observations"]
    assert (observation["cell"], observation["error"]) == ("topic/1000", None)
