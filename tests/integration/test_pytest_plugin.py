"""The plugin in a pytest of its own, as another project runs it: two workers, a failure, and what that shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

TESTS: Final = """
import os
import pytest
from confluent_kafka import Producer

pytestmark = pytest.mark.penstock(nodes=1)


def produce(cluster, topic):
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    producer.produce(topic, b"record")
    assert producer.flush(60) == 0


@pytest.mark.parametrize("number", range(4))
def test_passes(penstock_cluster, number):
    produce(penstock_cluster, penstock_cluster.topic())
    print("PORTS", os.environ["PYTEST_XDIST_WORKER"], penstock_cluster.bootstrap)


def test_fails(penstock_cluster):
    topic = penstock_cluster.topic()
    penstock_cluster.faults.next("Produce", error="NOT_LEADER_OR_FOLLOWER", topic=topic)
    produce(penstock_cluster, topic)
    assert topic == "another"
"""


def test_each_worker_has_a_cluster_and_a_failure_shows_faults_leaders_and_requests(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(TESTS)
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-n", "2", "-rA", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "4 passed" in ran.stdout, ran.stdout + ran.stderr
    assert "1 failed" in ran.stdout
    bootstraps = dict(re.findall(r"PORTS (gw\d) (\S+)", ran.stdout))
    assert set(bootstraps) == {"gw0", "gw1"}
    assert len(set(bootstraps.values())) == 2
    story = ran.stdout.partition("penstock: what happened")[2]
    for line in (
        r"test +begins: the next 1 Produce → NOT_LEADER_OR_FOLLOWER before-handling in test_fails-\d",
        r"cluster topic-created topic=test_fails-\d",
        r"node 1 +Produce acks=-1 \S+ by rdkafka: NOT_LEADER_OR_FOLLOWER",
        r"node 1 +Produce acks=-1 \S+ by rdkafka: ok",
    ):
        assert re.search(line, story), f"{line} is not in\n{story}"
