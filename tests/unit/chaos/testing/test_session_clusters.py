"""Clusters that several tests share, and what is left when one of them cannot be had."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from penstock.chaos.faults.preloaded_nodes import preload
from penstock.chaos.testing import chaos_cluster
from penstock.chaos.testing.chaos_cluster import ChaosCluster
from penstock.chaos.testing.session_clusters import SessionClusters
from penstock.local.errors import ClusterError
from penstock.local.preloaded_nodes import PreloadedNodes


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_cluster_that_cannot_be_made_leaves_no_process_and_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made: list[PreloadedNodes] = []

    def noted() -> PreloadedNodes:
        made.append(preload())
        return made[0]

    monkeypatch.setattr(chaos_cluster, "preload", noted)
    with pytest.raises(ClusterError, match="at least one node"):
        ChaosCluster(nodes=0)
    assert not is_there(made[0].pid)
    assert list(tmp_path.iterdir()) == []


def test_what_starts_nodes_ends_though_a_cluster_cannot_be_closed(tmp_path: Path) -> None:
    class Stuck:
        def close(self) -> None:
            raise ClusterError("node 1 cannot be killed")

    clusters = SessionClusters(tmp_path)
    clusters._clusters = {"a": Stuck(), "b": Stuck()}  # type: ignore[dict-item]
    with pytest.raises(ClusterError, match="cannot be killed"):
        clusters.close()
    assert not is_there(clusters._preloaded.pid)
