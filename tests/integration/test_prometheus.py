"""A real Prometheus scrapes three nodes: dashboards have data; alerts fire when something breaks, and clear."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from missing_tools import unavailable
from prometheus_server import BOARDS, Prometheus, board_queries, prometheus_server
from waiting import wait_for

from penstock.chaos.faults.small_disk import SmallDisk, SmallDiskUnavailableError
from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

SHIPPED = Path(__file__).resolve().parents[2] / "deploy/prometheus"
DEADLINE_S = 60.0
DISK_BYTES = 400 * 1024 * 1024
FULL_BYTES = 256 * 1024 * 1024
# Whether a disk will be full is decided by what other tests write to this machine's, as long as they do; leaders come
# back to their preferred replicas when it is time.
UNRELATED_ALERTS = frozenset({"PenstockDiskWillBeFull", "PenstockLeadersUnbalanced"})
PROPERTIES = {
    "metrics.per.partition": "true",
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "200",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallDisk | None]:
    """For node 3, where the tests may mount one."""
    with ExitStack() as stack:
        try:
            found = stack.enter_context(SmallDisk(tmp_path_factory.mktemp("disk"), size_bytes=DISK_BYTES, kind="tmpfs"))
        except SmallDiskUnavailableError:
            found = None
        yield found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, disk: SmallDisk | None) -> Iterator[LocalCluster]:
    folder = tmp_path_factory.mktemp("cluster")
    made = LocalCluster(folder, node_count=3, properties=PROPERTIES)
    if disk is not None:
        (disk.path / "data").mkdir()
        made.nodes[3].data.symlink_to(disk.path / "data")
    with made:
        # Partitions that can be under-replicated, whichever test comes first.
        _use(made, "metered")
        yield made


@pytest.fixture(scope="module")
def prometheus(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    rules = (SHIPPED / "alerts.yml").read_text()
    (folder / "alerts.yml").write_text(re.sub(r"for: \d+m", "for: 0s", rules))
    targets = [(node.admin or "").removeprefix("http://") for node in cluster.nodes.values()]
    with prometheus_server(folder, (SHIPPED / "prometheus.yml").read_text(), targets, job="penstock") as server:
        yield server


def _use(cluster: LocalCluster, name: str) -> None:
    """Records, a group, transactions, and an error, all under one name."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(name, 6, 3)])[name].result(DEADLINE_S)
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "transactional.id": name, "linger.ms": 0, "acks": "all"}
    )
    producer.init_transactions(DEADLINE_S)
    for begun in range(3):
        producer.begin_transaction()
        for number in range(50):
            producer.produce(name, f"{begun}-{number}".encode())
        producer.commit_transaction(DEADLINE_S)
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": name, "auto.offset.reset": "earliest"})
    consumer.subscribe([name])
    found: list[Any] = []

    def has_all() -> bool:
        found.extend(message for message in consumer.consume(200, 0.5) if message.error() is None)
        return len(found) >= 150

    wait_for(has_all, "the records of the group")
    consumer.commit(asynchronous=False)
    consumer.close()
    assert admin.create_topics([NewTopic(name, 1, 3)])[name].exception(DEADLINE_S) is not None


def test_every_query_of_every_dashboard_has_data(cluster: LocalCluster, prometheus: Prometheus) -> None:
    # A node that another test has killed remembers no request of before.
    _use(cluster, "metered-again")
    # That of jobs is asked where there is one: tests/pipeline.
    queries = board_queries(*(board for board in BOARDS.glob("*.json") if board.stem != "pipeline"))
    assert len(queries) > 80
    prometheus.wait_all_have_data(queries)


def test_a_killed_node_fires_what_it_should_and_clears_when_it_is_back(
    cluster: LocalCluster, prometheus: Prometheus
) -> None:
    wait_for(lambda: not prometheus.firing() - UNRELATED_ALERTS, lambda: f"quiet: {prometheus.firing()}")
    cluster.kill_node(2)
    expected = {"PenstockNodeDown", "PenstockVoterNotHeard", "PenstockUnderReplicated", "PenstockBrokerFenced"}
    wait_for(lambda: prometheus.firing() >= expected, lambda: f"{expected} fire: {prometheus.firing()}")
    assert not prometheus.firing() & {"PenstockNoActiveController", "PenstockOfflinePartitions", "PenstockUnderMinIsr"}
    cluster.start_node(2)
    wait_for(lambda: not prometheus.firing() & expected, lambda: f"{expected} are clear: {prometheus.firing()}")


def test_a_lost_majority_fires_and_clears(cluster: LocalCluster, prometheus: Prometheus) -> None:
    cluster.kill_node(1)
    cluster.kill_node(2)
    wait_for(
        lambda: "PenstockNoActiveController" in prometheus.firing(), lambda: f"no controller: {prometheus.firing()}"
    )
    cluster.nodes[1].start()
    cluster.start_node(2)
    cluster.wait_ready()
    wait_for(
        lambda: not prometheus.firing() & {"PenstockNoActiveController", "PenstockNodeDown"},
        lambda: f"all clear: {prometheus.firing()}",
    )


def test_a_disk_that_fills_fires_and_clears(
    cluster: LocalCluster, prometheus: Prometheus, disk: SmallDisk | None
) -> None:
    if disk is None:
        unavailable("no small disk can be mounted; run the tests as root on Linux")
    ballast = disk.path / "ballast"
    with ballast.open("wb") as file:
        file.write(bytes(DISK_BYTES - FULL_BYTES))
    wait_for(lambda: "PenstockDiskAlmostFull" in prometheus.firing(), lambda: f"full: {prometheus.firing()}")
    ballast.unlink()
    wait_for(lambda: "PenstockDiskAlmostFull" not in prometheus.firing(), lambda: f"clear: {prometheus.firing()}")
