"""What is so of every cluster whose links can be broken alone, whatever breaks them. Three nodes, two slots of clients.

A test module inherits the class, and has the fixtures `cluster`, which is healed after each test, and `generator`.
Brokers' sessions last a minute, so that within a test only what is faster than a session moves a leader.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from random import Random
from typing import Final, get_args

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from waiting import wait_for

from penstock.chaos.links.link import CutMode, Link, Stream, links_of
from penstock.chaos.links.linked_cluster import LinkedCluster
from penstock.chaos.workloads.numbered_records import NumberedRecords
from penstock.client.client_log import SILENT_LOGGER
from penstock.client.cluster_metadata import ask_metadata
from penstock.local.errors import ClusterError

PROPERTIES: Final[Mapping[str, str]] = {"broker.session.timeout.ms": "60000", "replica.lag.time.max.ms": "1500"}
DEADLINE_S = 60.0
RECORDS = 50
# For a link that is silent: nothing is waited for but this.
SILENT_S = 0.3


class LinkedClusterTests:
    @pytest.mark.parametrize("mode", get_args(CutMode))
    def test_a_cut_takes_hold_of_its_link_and_of_no_other(
        self, cluster: LinkedCluster, generator: Random, mode: CutMode
    ) -> None:
        cut = Link(cluster.slots[0], "1"), Link(*generator.sample(["1", "2", "3"], 2))
        cluster.cut(cut, mode)
        assert not any(cluster.canary(link, timeout_s=SILENT_S) for link in cut)
        for link in cluster.links:
            if link not in cut:
                wait_for(lambda: cluster.canary(link), f"{link} works", timeout_s=DEADLINE_S)  # noqa: B023 - waited for here
        cluster.heal(cut)
        for link in cut:
            wait_for(lambda: cluster.canary(link), f"{link} works again", timeout_s=DEADLINE_S)  # noqa: B023 - as above

    @pytest.mark.parametrize("stream", ["requests", "responses"])
    def test_one_direction_of_a_link_is_enough_to_silence_it(self, cluster: LinkedCluster, stream: Stream) -> None:
        link = Link("1", "2")
        cluster.cut([link], "silence", stream)
        assert not cluster.canary(link, timeout_s=SILENT_S)
        assert cluster.canary(Link("2", "1"), timeout_s=DEADLINE_S)

    def test_a_link_that_is_not_there_is_named(self, cluster: LinkedCluster) -> None:
        for refused in (cluster.cut, cluster.heal, cluster.reset):
            with pytest.raises(ClusterError, match="no link 1→9"):
                refused([Link("1", "9")])

    def test_a_slow_link_answers_late_and_only_that_one(self, cluster: LinkedCluster) -> None:
        link, other = Link(cluster.slots[0], "1"), Link(cluster.slots[1], "1")
        if "slow-link" in cluster.lacks():
            with pytest.raises(ClusterError, match="no netem"):
                cluster.slow([link], 1_000)
            return
        cluster.slow([link], 1_000, 100)
        assert not cluster.canary(link, timeout_s=SILENT_S)
        assert cluster.canary(link, timeout_s=DEADLINE_S)
        assert cluster.canary(other, timeout_s=DEADLINE_S)

    def test_a_narrow_link_answers_late_and_only_that_one(self, cluster: LinkedCluster) -> None:
        """An answer of ApiVersions has more than half a kilobyte."""
        link, others = Link(cluster.slots[0], "1"), (Link(cluster.slots[1], "1"), Link("2", "1"))
        cluster.limit([link], 1)
        for other in others:
            wait_for(
                lambda: cluster.canary(other, timeout_s=SILENT_S),  # noqa: B023 - waited for here
                f"{other} is as wide as ever",
                timeout_s=DEADLINE_S,
            )
        assert not cluster.canary(link, timeout_s=SILENT_S)
        assert cluster.canary(link, timeout_s=DEADLINE_S)

    def test_connections_of_a_link_are_reset_and_no_others(self, cluster: LinkedCluster) -> None:
        link = Link(cluster.slots[0], "1")
        others = Link(cluster.slots[1], "1"), Link(cluster.slots[0], "2")
        with cluster.dial(link) as reset, cluster.dial(others[0]) as one, cluster.dial(others[1]) as other:
            cluster.reset([link])
            reset.settimeout(DEADLINE_S)
            with suppress(ConnectionError):
                assert reset.recv(1) == b""
            for connection in (one, other):
                connection.settimeout(SILENT_S)
                with pytest.raises(TimeoutError):
                    connection.recv(1)
        assert cluster.canary(link, timeout_s=DEADLINE_S)

    def test_who_leads_is_told_whatever_is_cut(self, cluster: LinkedCluster) -> None:
        cluster.cut(cluster.links, "silence", "requests")
        assert cluster.state(1) == "up"
        assert cluster.leader("no-such-topic", 0) is None
        cluster.heal()
        wait_for(lambda: cluster.controller() in cluster.nodes, "there is a controller", timeout_s=DEADLINE_S)

    @pytest.mark.parametrize("mode", get_args(CutMode))
    def test_nothing_reaches_a_node_whose_links_are_cut_and_it_catches_up(
        self, cluster: LinkedCluster, generator: Random, mode: CutMode
    ) -> None:
        topic = make_topic(cluster, f"cut-off-{mode}")
        # Its session goes on, so only a follower can be cut off within this test.
        wait_for(lambda: cluster.leader(topic, 0) is not None, "there is a leader", timeout_s=DEADLINE_S)
        leader_id, controller_id = cluster.leader(topic, 0), active_controller(cluster)
        follower_id = next(node_id for node_id in cluster.nodes if node_id not in (leader_id, controller_id))
        with cluster.joined(cluster.slots[0]):
            load = NumberedRecords(cluster.bootstrap(0), topic, partitions=1, random=generator)
            load.send_until_acknowledged(RECORDS, timeout_s=DEADLINE_S)
        cut = links_of(str(follower_id), cluster.links)
        cluster.cut(cut, mode)
        assert not any(cluster.canary(link, timeout_s=SILENT_S) for link in cut)
        load.send_until_acknowledged(RECORDS, timeout_s=DEADLINE_S)
        cluster.heal(cut)
        wait_for(lambda: follower_id in in_sync(cluster, topic), "it is in sync again", timeout_s=DEADLINE_S)
        load.finish(timeout_s=DEADLINE_S)
        with cluster.joined(cluster.slots[1]):
            assert load.judge(cluster.bootstrap(1), timeout_s=DEADLINE_S) == []

    def test_a_node_that_is_killed_is_replaced_long_before_its_session_ends(self, cluster: LinkedCluster) -> None:
        topic = make_topic(cluster, "killed")
        wait_for(lambda: cluster.leader(topic, 0) is not None, "there is a leader", timeout_s=DEADLINE_S)
        leader_id = cluster.leader(topic, 0)
        assert leader_id is not None
        cluster.kill(leader_id)
        assert cluster.state(leader_id) == "down"
        wait_for(
            lambda: cluster.leader(topic, 0) not in (leader_id, None), "another node leads", timeout_s=DEADLINE_S / 2
        )
        cluster.start(leader_id)
        wait_for(lambda: leader_id in in_sync(cluster, topic), "it is in sync again", timeout_s=DEADLINE_S)


def wait_healed(cluster: LinkedCluster) -> None:
    """Heals all links, after a test."""
    cluster.heal()
    wait_for(lambda: all(map(cluster.canary, cluster.links)), "all links work again", timeout_s=DEADLINE_S)


def make_topic(cluster: LinkedCluster, name: str) -> str:
    """As a client of slot 1."""
    with cluster.joined(cluster.slots[1]):
        client = AdminClient({"bootstrap.servers": cluster.bootstrap(1)}, logger=SILENT_LOGGER)
        wanted = NewTopic(name, num_partitions=3, replication_factor=3, config={"min.insync.replicas": "2"})
        client.create_topics([wanted])[name].result(DEADLINE_S)
    return name


def active_controller(cluster: LinkedCluster) -> int:
    found = wait_for(cluster.controller, "there is an active controller", timeout_s=DEADLINE_S)
    assert found is not None
    return found


def in_sync(cluster: LinkedCluster, topic: str) -> list[int]:
    """By what slot 1 sees."""
    with cluster.joined(cluster.slots[1]):
        client = AdminClient({"bootstrap.servers": cluster.bootstrap(1)}, logger=SILENT_LOGGER)
        isr: list[int] = ask_metadata(client, topic).topics[topic].partitions[0].isrs
    return isr
