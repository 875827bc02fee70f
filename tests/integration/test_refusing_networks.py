"""The network refuses for a node that lives, and stops doing so: nothing is lost, and leaders do not change to and fro.

A REJECT rule refuses everything for a node (as root only), a proxy refuses for a broker behind it. Either lasts longer
than the broker's session. `PENSTOCK_TEST_REPETITIONS` is how often each (1; 10 in a soak).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from cluster_views import brokers
from cut_proxy import CutProxy
from fourth_broker import FourthBroker
from missing_tools import need_namespaces
from replicated_cluster import (
    DEADLINE_S,
    RECORDS_BETWEEN_FAULTS,
    TOPIC,
    ReplicatedCluster,
    draw_generator,
    repetitions,
    say,
)
from waiting import wait_for

from penstock.bench.quorum_state import wait_settled
from penstock.chaos.faults.node_networks import NodeNetworks
from penstock.client import clock
from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600)]

REPETITIONS = repetitions(sample=1, soak=10)
SESSION_S = 2.0
TIMES = {"broker.session.timeout.ms": f"{SESSION_S * 1000:.0f}", "broker.heartbeat.interval.ms": "200"}
REFUSED_S = 1.5 * SESSION_S
NODES = (1, 2, 3)
# A client would wait a minute for an answer that a reset has taken away on one side only.
CLIENT_TIMEOUT_MS = 1_000


def leader_changes(world: ReplicatedCluster) -> dict[str, int]:
    """How often each partition got another leader."""
    changes: Counter[str] = Counter()
    for before, after in pairwise(world.history()):
        for name, partition in after.partitions.items():
            changes[name] += name in before.partitions and before.partitions[name].leader != partition.leader
    return dict(changes)


@pytest.fixture
def networks() -> Iterator[NodeNetworks]:
    need_namespaces()
    with NodeNetworks(NODES) as networks, networks.joined():
        yield networks


@pytest.mark.parametrize("is_controller", [False, True], ids=["a leader", "a leader that is the active controller"])
def test_a_living_node_for_which_everything_is_refused_is_replaced_once_and_comes_back(
    tmp_path: Path, networks: NodeNetworks, is_controller: bool
) -> None:
    generator = draw_generator(__file__)
    cluster = LocalCluster(tmp_path / "cluster", node_count=len(NODES), properties=TIMES, hosts=networks.hosts)
    for node in cluster.nodes.values():
        node.command = (*networks.command(node.id), *node.command)
    back_s = []
    with cluster:
        world = ReplicatedCluster(cluster)
        with world.writer(socket_timeout_ms=CLIENT_TIMEOUT_MS) as writer:
            for _ in range(REPETITIONS):
                world.balance()
                writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
                controller_id = wait_settled(cluster).leader_id
                refused_id = controller_id if is_controller else generator.choice([*{*NODES} - {controller_id}])
                witness = next(node.address for node in cluster.nodes.values() if node.id != refused_id)
                networks.refuse(refused_id)
                refused_s = clock.monotonic_s()
                wait_for(lambda: refused_id not in brokers(witness), "it is fenced")  # noqa: B023 - waited for here
                writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
                # How long the network refuses is the fault.
                clock.pause(max(0.0, refused_s + REFUSED_S - clock.monotonic_s()))
                assert cluster.nodes[refused_id].is_running
                networks.heal(refused_id)
                healed_s = clock.monotonic_s()
                wait_for(lambda: refused_id in brokers(witness), "it is let in again")  # noqa: B023 - waited for here
                back_s.append(f"{clock.monotonic_s() - healed_s:.2f}")
                world.wait_in_sync()
            writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
        world.check(writer)
        changes = leader_changes(world)
    world.check_replicas_equal()
    say("let in again after (s):", *back_s, "leader changes:", changes)
    # Away and, when leaders are balanced, back.
    assert max(changes.values()) <= 2 * REPETITIONS


def test_a_broker_behind_a_proxy_that_refuses_is_replaced_once_and_comes_back(tmp_path: Path) -> None:
    with (
        LocalCluster(tmp_path / "cluster", node_count=len(NODES), properties=TIMES) as cluster,
        FourthBroker(cluster, tmp_path, TIMES) as fourth,
        CutProxy(fourth.node.port) as proxy,
    ):
        fourth.advertise(proxy.port)
        fourth.start()
        address = cluster.nodes[1].address
        wait_for(lambda: 4 in brokers(address), "the fourth broker is there")
        world = ReplicatedCluster(cluster, partitions=2, assignment=[[4, 1, 2], [3, 4, 1]])
        back_s = []
        with world.writer(socket_timeout_ms=CLIENT_TIMEOUT_MS) as writer:
            for _ in range(REPETITIONS):
                wait_for(lambda: 4 in leads(world), "the fourth broker leads again")
                writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
                fourth.cut()
                proxy.refuse()
                refused_s = clock.monotonic_s()
                wait_for(lambda: 4 not in brokers(address), "it is fenced")
                writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
                clock.pause(max(0.0, refused_s + REFUSED_S - clock.monotonic_s()))
                proxy.heal()
                fourth.heal()
                healed_s = clock.monotonic_s()
                wait_for(lambda: 4 in brokers(address), "it is let in again")
                back_s.append(f"{clock.monotonic_s() - healed_s:.2f}")
                world.wait_in_sync()
        world.check(writer)
        changes = leader_changes(world)
    say("let in again after (s):", *back_s, "leader changes:", changes)
    assert max(changes.values()) <= 2 * REPETITIONS


def test_a_proxy_that_refuses_for_a_broker_that_controllers_hear_changes_no_leader(tmp_path: Path) -> None:
    """Followers and clients do not reach it, its heartbeats arrive: writes wait, and go on afterwards."""
    with (
        LocalCluster(tmp_path / "cluster", node_count=len(NODES), properties=TIMES) as cluster,
        FourthBroker(cluster, tmp_path, TIMES) as fourth,
        CutProxy(fourth.node.port) as proxy,
    ):
        fourth.advertise(proxy.port)
        fourth.start()
        wait_for(lambda: 4 in brokers(cluster.nodes[1].address), "the fourth broker is there")
        world = ReplicatedCluster(cluster, partitions=1, assignment=[[4, 1, 2]])
        with world.writer(socket_timeout_ms=CLIENT_TIMEOUT_MS) as writer:
            for _ in range(REPETITIONS):
                writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
                proxy.refuse()
                clock.pause(REFUSED_S)
                proxy.heal()
                writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
                world.wait_in_sync()
        world.check(writer)
        changes = leader_changes(world)
        assert changes[f"{TOPIC}-0"] == 0
        # A client that looked for a coordinator may have made the topic of groups meanwhile.
        assert set(changes.values()) == {0}


def leads(world: ReplicatedCluster) -> set[int]:
    """Who leads a partition, after an election of the preferred ones."""
    world.elect_preferred()
    return set(world.leaders().values())
