"""Three real nodes in network namespaces: what the kernel does to a link takes hold of no other link, and heals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import pytest
from missing_tools import unavailable
from waiting import wait_for

from penstock.chaos.faults.node_networks import NetworksUnavailableError
from penstock.chaos.links.link import CutMode, Link, Stream
from penstock.chaos.links.namespaced_cluster import NamespacedCluster
from penstock.local.errors import ClusterError

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

DEADLINE_S = 60.0
SILENT_S = 0.3


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespacedCluster]:
    try:
        with NamespacedCluster(tmp_path_factory.mktemp("cluster"), client_slots=2) as cluster:
            yield cluster
    except NetworksUnavailableError as error:
        unavailable(f"{error}; run the tests as root on Linux, with nftables and iproute2 installed")


@pytest.fixture
def cluster(shared: NamespacedCluster) -> Iterator[NamespacedCluster]:
    yield shared
    shared.heal()
    wait_for(lambda: all(map(shared.canary, shared.links)), "all links work again", timeout_s=DEADLINE_S)


@pytest.mark.parametrize("mode", get_args(CutMode))
def test_a_cut_takes_hold_of_its_link_and_of_no_other(cluster: NamespacedCluster, mode: CutMode) -> None:
    cut = Link("client-0", "1"), Link("2", "3")
    cluster.cut(cut, mode)
    assert not any(cluster.canary(link, timeout_s=SILENT_S) for link in cut)
    with pytest.raises(ClusterError, match="no link 1→9"):
        cluster.heal([Link("1", "9")])
    for link in cluster.links:
        if link not in cut:
            wait_for(lambda: cluster.canary(link), f"{link} works", timeout_s=DEADLINE_S)  # noqa: B023 - waited for here
    cluster.heal(cut)
    for link in cut:
        wait_for(lambda: cluster.canary(link), f"{link} works again", timeout_s=DEADLINE_S)  # noqa: B023 - as above


@pytest.mark.parametrize("stream", ["requests", "responses"])
def test_one_direction_of_a_link_is_enough_to_silence_it(cluster: NamespacedCluster, stream: Stream) -> None:
    link = Link("1", "2")
    cluster.cut([link], "silence", stream)
    assert not cluster.canary(link, timeout_s=SILENT_S)
    assert cluster.canary(Link("2", "1"), timeout_s=DEADLINE_S)


def test_packets_that_are_lost_now_and_then_are_sent_again(cluster: NamespacedCluster) -> None:
    link = Link("client-0", "1")
    cluster.lose([link], 30)
    wait_for(lambda: not cluster.canary(link, timeout_s=0.02), "a packet is lost", timeout_s=DEADLINE_S)
    wait_for(lambda: cluster.canary(link, timeout_s=5.0), "it comes through", timeout_s=DEADLINE_S)
    with pytest.raises(ClusterError, match="not 100"):
        cluster.lose([link], 100)


def test_a_network_is_narrowed_as_a_whole(cluster: NamespacedCluster) -> None:
    """The first answers fit into what may come at once."""
    ends_at_1 = [link for link in cluster.links if link.target == "1"]
    with pytest.raises(ClusterError, match="3→1"):
        cluster.limit([link for link in ends_at_1 if link.source != "3"], 1)
    cluster.limit(ends_at_1, 1)
    wait_for(lambda: not cluster.canary(ends_at_1[0], timeout_s=SILENT_S), "it is slow", timeout_s=DEADLINE_S)


def test_a_kernel_without_netem_is_named(cluster: NamespacedCluster) -> None:
    ends_at_1 = [link for link in cluster.links if link.target == "1"]
    if cluster.has_netem():
        cluster.slow(ends_at_1, 1_000)
        assert not cluster.canary(ends_at_1[0], timeout_s=SILENT_S)
    else:
        with pytest.raises(ClusterError, match="no netem"):
            cluster.slow(ends_at_1, 1_000)


def test_who_leads_is_told_whatever_is_cut(cluster: NamespacedCluster) -> None:
    cluster.cut(cluster.links, "silence", "requests")
    assert cluster.state(1) == "up"
    assert cluster.leader("no-such-topic", 0) is None
    cluster.heal()
    wait_for(lambda: cluster.controller() in cluster.nodes, "there is a controller", timeout_s=DEADLINE_S)
