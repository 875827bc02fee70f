"""A cluster behind proxies when something fails: what is told first, and what proxies do for a node that is down."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_for

from penstock.chaos.faults.node_faults import fired_path
from penstock.chaos.faults.orders import full_disk
from penstock.chaos.links.proxied_cluster import ProxiedCluster
from penstock.chaos.links.toxiproxy import Toxiproxy
from penstock.client.cached_programs import TOXIPROXY
from penstock.local.cluster import LocalCluster
from penstock.local.errors import ClusterError, NodeFailedError
from penstock.local.local_node import LocalNode

ENDS_AT_1 = {
    "client-0-to-1-broker",
    *(f"{node}-to-1-{listener}" for node in (2, 3) for listener in ("broker", "controller")),
}


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The proxies that refuse, of servers that are not there."""
    names: set[str] = set()

    def set_enabled(_self: Toxiproxy, name: str, *, is_enabled: bool) -> None:
        (names.discard if is_enabled else names.add)(name)

    monkeypatch.setattr(Toxiproxy, "set_enabled", set_enabled)
    return names


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ProxiedCluster]:
    """Nothing of it runs."""
    made = ProxiedCluster(tmp_path / "cluster")
    yield made
    made.__exit__(None, None, None)


def _fail(*_: Any, **__: Any) -> None:
    raise NodeFailedError("node 1 did not do it")


def test_proxies_refuse_for_a_node_that_had_to_be_killed_to_stop(
    cluster: ProxiedCluster, closed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalCluster, "stop_node", _fail)
    with pytest.raises(NodeFailedError, match="did not do it"):
        cluster.stop(1)
    assert closed == ENDS_AT_1


def test_a_node_that_has_ended_by_itself_can_be_killed(cluster: ProxiedCluster, closed: set[str]) -> None:
    cluster.cluster.folder.mkdir()
    cluster.kill(1)
    assert closed == ENDS_AT_1
    assert cluster.state(1) == "down"


def test_proxies_refuse_for_a_node_that_ended_by_itself_until_it_is_started(
    cluster: ProxiedCluster, closed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.cluster.folder.mkdir()
    monkeypatch.setattr("penstock.local.cluster.check_free", lambda _port: None)
    node = cluster.nodes[1]
    node.command = (sys.executable, "-c", "import time; time.sleep(600)")
    cluster.begin_start(1)
    assert not closed
    assert node.process is not None
    os.kill(node.process.pid, signal.SIGKILL)
    wait_for(lambda: not node.is_running, "it has ended")
    assert [end.node_id for end in cluster.ends] == [1]
    assert closed == ENDS_AT_1
    cluster.begin_start(1)
    assert not closed
    cluster.kill(1)
    assert [end.node_id for end in cluster.ends] == [1], "the second was told to end"


def test_proxies_stay_open_for_a_node_that_was_started_before_they_were_closed(
    cluster: ProxiedCluster, closed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalNode, "is_running", True)
    cluster._refuse_for(1)
    assert not closed


def test_a_node_that_joins_where_another_has_left_is_reached_and_obeys(
    tmp_path: Path, closed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalNode, "start", lambda _: None)
    monkeypatch.setattr("penstock.local.cluster.wait_ready", lambda *_, **__: None)
    cluster = ProxiedCluster(tmp_path / "cluster", spare_nodes=1, obeys_orders=True)
    for _ in range(2):
        assert cluster.join() == 4
        assert not closed
        faults = cluster.node_faults(4)
        assert str(faults.orders_path) in cluster.nodes[4].command
        faults.order(*full_disk())
        assert not faults.fired()
        fired_path(faults.orders_path).write_text("1 0 somewhere\n")
        assert faults.fired()
        cluster.stop(4)
        assert closed
        cluster.cluster.forget_node(4)
    cluster.__exit__(None, None, None)


def test_a_proxy_that_ends_at_once_is_told_before_nodes_that_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / TOXIPROXY
    program.write_text("#!/bin/sh\necho it knows no such option\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(LocalCluster, "start", _fail)
    sentence = f"{TOXIPROXY} ended before it listened on port .*: it knows no such option"
    with pytest.raises(ClusterError, match=sentence), ProxiedCluster(tmp_path / "cluster"):
        pass


def test_a_proxy_that_is_no_program_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / TOXIPROXY
    program.write_bytes(b"\x7fELF nothing")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterError, match=f"{TOXIPROXY} could not be started: "), ProxiedCluster(tmp_path / "cluster"):
        pass
