"""Without a proxy server a test's cluster has all faults but those of links, and says how to get it."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.chaos.testing import nodes
from penstock.chaos.testing.chaos_cluster import ChaosCluster
from penstock.chaos.testing.plain_nodes import PlainNodes
from penstock.local.errors import ClusterError


def test_a_link_fault_without_toxiproxy_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "find_program", lambda _name: None)
    cluster = ChaosCluster(folder=tmp_path)
    try:
        assert isinstance(cluster._nodes, PlainNodes)
        for fault in (
            lambda: cluster.partition([1], [2, 3]),
            lambda: cluster.isolate(1),
            lambda: cluster.cut_link(1, 2),
            lambda: cluster.slow_link(latency_ms=1),
            lambda: cluster.reset_connections(),
        ):
            with pytest.raises(ClusterError, match=r"links cannot be broken here: .*install-toxiproxy"):
                fault()
    finally:
        cluster.close()
