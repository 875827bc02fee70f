"""A real Prometheus scrapes three nodes: dashboards have data; alerts fire when something breaks, and clear."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from missing_tools import unavailable
from waiting import wait_for

from penstock.chaos.faults.small_disk import SmallDisk, SmallDiskUnavailableError
from penstock.local.cluster import LocalCluster
from penstock.local.ports import find_free

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
BOARDS = ROOT / "deploy/grafana/dashboards"
DEADLINE_S = 60.0
DISK_BYTES = 400 * 1024 * 1024
FULL_BYTES = 256 * 1024 * 1024
PROPERTIES = {
    "metrics.per.partition": "true",
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "200",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}


class Prometheus:
    """A server of its own, which scrapes every second."""

    def __init__(self, url: str) -> None:
        self._url = url

    def query(self, expression: str) -> list[dict[str, Any]]:
        asked = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"{self._url}/api/v1/query?{asked}", timeout=30) as answer:
            result: list[dict[str, Any]] = json.load(answer)["data"]["result"]
            return result

    def firing(self) -> set[str]:
        return {one["metric"]["alertname"] for one in self.query('ALERTS{alertstate="firing"}')}


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
    program = shutil.which("prometheus")
    if program is None:
        unavailable("prometheus is not installed (Debian: apt-get install prometheus)")
    folder = tmp_path_factory.mktemp("prometheus")
    rules = (ROOT / "deploy/prometheus/alerts.yml").read_text()
    (folder / "alerts.yml").write_text(re.sub(r"for: \d+m", "for: 0s", rules))
    targets = [(node.admin or "").removeprefix("http://") for node in cluster.nodes.values()]
    shipped = (ROOT / "deploy/prometheus/prometheus.yml").read_text()
    configured = re.sub(r"- targets:\n(?: +- node-.*\n)+", f"- targets: {json.dumps(targets)}\n", shipped)
    configured = configured.replace("interval: 15s", "interval: 1s")
    (folder / "prometheus.yml").write_text(configured)
    port = find_free(Random())
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        server = Prometheus(f"http://127.0.0.1:{port}")
        wait_for(lambda: _is_up(server), lambda: f"three nodes are scraped: {(folder / 'log').read_text()[-2000:]}")
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def _is_up(server: Prometheus) -> bool:
    try:
        return len(server.query('up{job="penstock"} == 1')) == 3
    except OSError:
        return False


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


def _without_variables(query: str) -> str:
    return re.sub(r"\$(cluster|instance|topic)\b", ".*", query).replace("$__rate_interval", "30s")


def test_every_query_of_every_dashboard_has_data(cluster: LocalCluster, prometheus: Prometheus) -> None:
    # A node that another test has killed remembers no request of before.
    _use(cluster, "metered-again")
    queries = {
        _without_variables(target["expr"]): f"{board.stem}: {panel['title']}"
        for board in BOARDS.glob("*.json")
        for panel in json.loads(board.read_text())["panels"]
        for target in panel.get("targets", ())
    }
    assert len(queries) > 80
    left = dict(queries)

    def is_answered() -> bool:
        for query in tuple(left):
            if prometheus.query(query):
                del left[query]
        return not left

    wait_for(is_answered, lambda: f"queries without data: {left}", interval_s=1.0)


def test_a_killed_node_fires_what_it_should_and_clears_when_it_is_back(
    cluster: LocalCluster, prometheus: Prometheus
) -> None:
    wait_for(lambda: not prometheus.firing() - {"PenstockLeadersUnbalanced"}, lambda: f"quiet: {prometheus.firing()}")
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
