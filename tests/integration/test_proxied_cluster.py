"""Three real nodes whose links go through proxies: each fault takes hold of its link, of no other, and heals."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from cluster_views import brokers
from linked_cluster_tests import (
    DEADLINE_S,
    PROPERTIES,
    RECORDS,
    LinkedClusterTests,
    active_controller,
    in_sync,
    make_topic,
    wait_healed,
)
from missing_tools import need_toxiproxy
from replicated_cluster import draw_generator
from waiting import wait_for

from penstock.chaos.links.link import Link, links_of
from penstock.chaos.links.proxied_cluster import ProxiedCluster
from penstock.chaos.workloads.numbered_records import NumberedRecords
from penstock.client import clock
from penstock.client.admin import Admin
from penstock.local.errors import ClusterError
from penstock.local.local_node import HOST
from penstock.local.processes import send_signal

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

ESTABLISHED = "01"
REFUSED_S = 2.0
FENCED = "Fencing broker because its process is gone"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxiedCluster]:
    need_toxiproxy()
    with ProxiedCluster(tmp_path_factory.mktemp("cluster"), client_slots=2, properties=PROPERTIES) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: ProxiedCluster) -> Iterator[ProxiedCluster]:
    yield shared
    wait_healed(shared)


@pytest.fixture
def generator() -> Random:
    return draw_generator(__file__)


class TestLinks(LinkedClusterTests):
    """Of proxies."""


def test_packets_are_not_lost(cluster: ProxiedCluster) -> None:
    assert "packet-loss" in cluster.lacks()
    with pytest.raises(ClusterError, match="no packets"):
        cluster.lose([Link(cluster.slots[0], "1")], 10)


def test_a_connection_that_ends_within_an_answer_is_no_answer(cluster: ProxiedCluster) -> None:
    link = Link(cluster.slots[0], "1")
    cluster.end_after([link], 100)
    assert not cluster.canary(link, timeout_s=DEADLINE_S)


def test_every_connection_of_clients_and_nodes_goes_through_the_proxy(
    cluster: ProxiedCluster, generator: Random
) -> None:
    topic = make_topic(cluster, "through")
    load = NumberedRecords(cluster.bootstrap(0), topic, partitions=3, random=generator)
    load.send_until_acknowledged(RECORDS, timeout_s=DEADLINE_S)
    for node_id, node in cluster.nodes.items():
        ports = {node.port} | {
            route.upstream_port
            for link in cluster.links
            for route in cluster.routes_of(link)
            if link.target == str(node_id)
        }
        # What a node asks itself is no link: it is its own controller, perhaps.
        owners = [cluster.proxy_pid, node.process.pid if node.process else None]
        # One that ends while it is looked at has no owner any more; one that goes round the proxy stays.
        wait_for(lambda: dialed_by(ports, owners) == {True}, f"links to {node_id} are used", timeout_s=DEADLINE_S)  # noqa: B023 - waited for here
    load.finish(timeout_s=DEADLINE_S)


def test_a_refusal_by_proxies_is_no_death_of_a_broker(cluster: ProxiedCluster) -> None:
    """Its heartbeats' connection is closed, and every address that the controller could use for others refuses."""
    fenced_before = times_fenced(cluster)
    controller_id = active_controller(cluster)
    alive_id = next(node_id for node_id in cluster.nodes if node_id != controller_id)
    cut = links_of(str(alive_id), cluster.links)
    cluster.cut(cut, "refusal")
    assert not any(map(cluster.canary, cut))
    # How long it is refused is the fault: twenty times what the controller needs for a process that is gone.
    clock.pause(REFUSED_S)
    assert alive_id in brokers(cluster.nodes[controller_id].address)
    assert times_fenced(cluster) == fenced_before


def test_a_refusal_between_two_controllers_moves_no_leadership(cluster: ProxiedCluster) -> None:
    """The third still hears the leader of the quorum, so that no election is won.

    One may be won because this machine stands still for half a second, but not each time.
    """
    assert any(is_quorum_led_on_while_refused(cluster) for _ in range(3))


def is_quorum_led_on_while_refused(cluster: ProxiedCluster) -> bool:
    leader_id, epochs = active_controller(cluster), quorum_epochs(cluster)
    one = next(node_id for node_id in cluster.nodes if node_id != leader_id)
    link = Link(str(one), str(leader_id))
    cluster.cut([link], "refusal")
    clock.pause(REFUSED_S)
    assert not cluster.canary(link)
    cluster.heal([link])
    wait_for(lambda: cluster.canary(link), "it works again", timeout_s=DEADLINE_S)
    return (active_controller(cluster), quorum_epochs(cluster)) == (leader_id, epochs)


def test_a_node_that_is_killed_by_others_is_refused_for_and_replaced(cluster: ProxiedCluster) -> None:
    """As one that crashes: nothing tells the cluster that it ends."""
    topic = make_topic(cluster, "crashed")
    wait_for(lambda: cluster.leader(topic, 0) is not None, "there is a leader", timeout_s=DEADLINE_S)
    leader_id = cluster.leader(topic, 0)
    assert leader_id is not None
    process = cluster.nodes[leader_id].process
    assert process is not None
    ends_before = len(cluster.ends)
    assert send_signal(process, signal.SIGKILL)
    addresses = [(HOST, route.port) for link in cluster.links for route in cluster.routes_of(link)
                 if link.target == str(leader_id)]  # fmt: skip
    wait_for(lambda: all(map(is_refused, addresses)), "all ports refuse", timeout_s=DEADLINE_S)
    (end,) = cluster.ends[ends_before:]
    assert (end.node_id, end.exit_status) == (leader_id, -signal.SIGKILL)
    wait_for(lambda: cluster.leader(topic, 0) not in (leader_id, None), "another node leads", timeout_s=DEADLINE_S / 2)
    cluster.start(leader_id)
    wait_for(lambda: leader_id in in_sync(cluster, topic), "it is in sync again", timeout_s=DEADLINE_S)
    assert len(cluster.ends) == ends_before + 1


def is_refused(address: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(address, timeout=REFUSED_S):
            return False
    except ConnectionRefusedError:
        return True


def times_fenced(cluster: ProxiedCluster) -> int:
    """Before the end of a session."""
    return sum(node.log.read_text().count(FENCED) for node in cluster.nodes.values())


def quorum_epochs(cluster: ProxiedCluster) -> set[int]:
    found = set()
    for node_id in cluster.nodes:
        with Admin(cluster.admin(node_id)) as admin:
            found.add(admin.get_quorum().epoch)
    return found


def dialed_by(ports: set[int], owners: list[int | None]) -> set[bool]:
    """Of each connection to these ports, whether one of these processes dialed it."""
    dialed = [*established(ports)]
    known = set().union(*map(sockets_of, owners))
    return {inode in known for inode in dialed}


def established(ports: set[int]) -> Iterator[str]:
    """The inodes of the sockets that dialed these ports on this machine and are connected."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == ESTABLISHED and int(fields[2].rpartition(":")[2], 16) in ports:
            yield fields[9]


def sockets_of(pid: int | None) -> set[str]:
    """The inodes of a process's sockets."""
    found = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(descriptor.readlink())
        except FileNotFoundError:
            # It has been closed since it was listed.
            continue
        if target.startswith("socket:["):
            found.add(target.removeprefix("socket:[").rstrip("]"))
    return found
