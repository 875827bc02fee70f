"""Three real nodes in network namespaces: what the kernel does to a link takes hold of no other link, and heals."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from linked_cluster_tests import DEADLINE_S, PROPERTIES, LinkedClusterTests, wait_healed
from missing_tools import need_namespaces
from replicated_cluster import draw_generator
from waiting import wait_for

from penstock.chaos.links.link import Link
from penstock.chaos.links.namespaced_cluster import NamespacedCluster
from penstock.local.errors import ClusterError

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespacedCluster]:
    need_namespaces()
    folder = tmp_path_factory.mktemp("cluster")
    with NamespacedCluster(folder, client_slots=2, spare_nodes=1, properties=PROPERTIES) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: NamespacedCluster) -> Iterator[NamespacedCluster]:
    yield shared
    wait_healed(shared)


@pytest.fixture
def generator() -> Random:
    return draw_generator(__file__)


class TestLinks(LinkedClusterTests):
    """Of namespaces."""


def test_packets_that_are_lost_now_and_then_are_sent_again(cluster: NamespacedCluster) -> None:
    link, other = Link("client-0", "1"), Link("client-1", "1")
    cluster.lose([link], 30)
    wait_for(lambda: not cluster.canary(link, timeout_s=0.02), "a packet is late", timeout_s=DEADLINE_S)
    wait_for(lambda: cluster.canary(link, timeout_s=5.0), "it comes through", timeout_s=DEADLINE_S)
    assert cluster.canary(other, timeout_s=DEADLINE_S)
    lost = cluster.lost_packets([link, other])
    assert lost[link] > 0
    assert lost[other] == 0
    with pytest.raises(ClusterError, match="not 100"):
        cluster.lose([link], 100)


def test_a_cut_goes_on_while_packets_are_lost_too(cluster: NamespacedCluster) -> None:
    link = Link("client-0", "1")
    cluster.cut([link], "silence")
    cluster.lose([link], 1)
    assert not cluster.canary(link, timeout_s=0.3)


def test_a_node_that_joins_has_links_that_break(cluster: NamespacedCluster) -> None:
    node_id = cluster.join()
    link = Link("client-0", str(node_id))
    assert cluster.canary(link, timeout_s=DEADLINE_S)
    cluster.cut([link], "refusal")
    assert not cluster.canary(link)
    cluster.stop(node_id)
    cluster.cluster.forget_node(node_id)
    cluster.heal([link])
    with pytest.raises(ClusterError, match=f"no link {node_id}→9"):
        cluster.cut([Link(str(node_id), "9")])
