"""Each workload on three nodes that are well, two with a node killed: its history is whole, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from replicated_cluster import is_soak
from workload_runs import check_form, check_queue, run_workload

from penstock.chaos.workloads.catalogue import WORKLOADS
from penstock.local.cluster import LocalCluster

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("workloads"), node_count=3) as cluster:
        yield cluster


# A soak runs them all; those that are left out here share their programs with others that are not.
SAMPLE: Final = ("queue-transactions-subscribe", "idempotent")
QUEUES: Final = tuple(name for name, one in WORKLOADS.items() if "queue" in one.checkers)


@pytest.mark.parametrize("name", QUEUES if is_soak() else SAMPLE)
def test_a_queue_shows_everything_acknowledged_and_nothing_else(
    name: str, cluster: LocalCluster, tmp_path: Path
) -> None:
    history = run_workload(cluster, WORKLOADS[name], tmp_path, done=6)
    check_form(history)
    check_queue(history)


@pytest.mark.parametrize("name", ["queue", "queue-transactions"])
def test_a_queue_goes_on_when_a_node_is_killed(name: str, cluster: LocalCluster, tmp_path: Path) -> None:
    def kill() -> None:
        cluster.kill_node(1)
        cluster.start_node(1)

    history = run_workload(cluster, WORKLOADS[name], tmp_path, done=10, fault=kill)
    check_form(history)
    check_queue(history)
