"""Each workload on three nodes, with a node killed or without: its history is whole, nothing acknowledged is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from missing_tools import unavailable
from replicated_cluster import is_soak
from workload_runs import (
    check_copies,
    check_counters,
    check_form,
    check_group,
    check_lists,
    check_metadata,
    check_queue,
    check_registers,
    run_workload,
)

from penstock.chaos.checkers.catalogue import checkers_of
from penstock.chaos.checkers.judge import judge
from penstock.chaos.checkers.verdict_text import told
from penstock.chaos.histories.operation import History
from penstock.chaos.workloads.catalogue import WORKLOADS
from penstock.local.apache_kafka.jars import KafkaJars
from penstock.local.cluster import LocalCluster

# Each run waits twice, and names what it waits for.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

CHECKS: Final[Mapping[str, Callable[[History], None]]] = {
    "queue": check_queue,
    "list-append": check_lists,
    "exactly-once": check_copies,
    "group-auto-commit": check_group,
    "register": check_registers,
    "counter": check_counters,
    "metadata": check_metadata,
}
# A soak runs all of them both ways; what is left out of these shares its programs with others that are not.
QUIET: Final = ("idempotent", "exactly-once", "group-auto-commit", "register", "counter", "metadata")
ALL: Final = tuple(name for name in WORKLOADS if name != "queue-java")
KILLED: Final = ("queue-transactions", "list-append")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("workloads"), node_count=3) as cluster:
        yield cluster


def check(history: History) -> None:
    """By plain counts, and by the checkers that judge any run."""
    check_form(history)
    for name in WORKLOADS[history.header.workload].checkers:
        if name in CHECKS:
            CHECKS[name](history)
    verdict = judge(history, checkers_of(history.header))
    assert verdict.valid == "valid", told(verdict)


@pytest.mark.parametrize("name", ALL if is_soak() else QUIET)
def test_a_workload_shows_everything_acknowledged_and_nothing_else(
    name: str, cluster: LocalCluster, tmp_path: Path
) -> None:
    check(run_workload(cluster, WORKLOADS[name], tmp_path, done=6))


def test_a_queue_of_apache_kafkas_own_client_is_one_too(
    cluster: LocalCluster, kafka_jars: KafkaJars, tmp_path: Path
) -> None:
    if shutil.which("javac") is None:
        unavailable("the client in Java is compiled with javac (Debian: apt-get install default-jdk-headless)")
    assert kafka_jars.version, "its client is among them"
    check(run_workload(cluster, WORKLOADS["queue-java"], tmp_path, done=6))


@pytest.mark.parametrize("name", ALL if is_soak() else KILLED)
def test_a_workload_goes_on_when_a_node_is_killed(name: str, cluster: LocalCluster, tmp_path: Path) -> None:
    def kill() -> None:
        cluster.kill_node(1)
        cluster.start_node(1)

    check(run_workload(cluster, WORKLOADS[name], tmp_path, done=6, fault=kill))
