"""HTTP of three nodes: the lines of docs/http-api.md; any node answers for all, also while one is gone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from confluent_kafka import Consumer, TopicPartition
from missing_tools import unavailable
from waiting import wait_for

from penstock.client.client_log import SILENT_LOGGER
from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

GUIDE = Path(__file__).parents[2] / "docs" / "http-api.md"
GROUPS = [f"group-{number}" for number in range(6)]
"""As many as have coordinators on more than one node."""
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Http:
    """Asks nodes; paths begin behind `/v3/clusters/ID`."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        (found,) = self.ask(1, "/v3/clusters")["data"]
        self.root = f"/v3/clusters/{found['cluster_id']}"

    def ask(self, node_id: int, path: str, body: object = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        address = f"{self.cluster.nodes[node_id].admin}{path}"
        request = Request(address, data=content, headers={"Content-Type": "application/json"})
        with urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def get(self, node_id: int, path: str) -> Any:
        return self.ask(node_id, self.root + path)

    def post(self, node_id: int, path: str, body: object) -> Any:
        return self.ask(node_id, self.root + path, body)

    def is_there(self, node_id: int, path: str) -> bool:
        try:
            self.get(node_id, path)
        except HTTPError as error:
            error.close()
            if error.code != 404:
                raise
            return False
        return True


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "cluster", node_count=3) as cluster:
        yield cluster


def commit(cluster: LocalCluster, group: str, topic: str, offset: int) -> None:
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": group, "enable.auto.commit": False}, logger=SILENT_LOGGER
    )
    try:
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    finally:
        consumer.close()


def produced(http: Http, node_id: int, partition_id: int, value: str) -> Any:
    record = {"partition_id": partition_id, "value": {"type": "STRING", "data": value}}
    return http.post(node_id, "/topics/led-elsewhere/records", record)


def run_guide(cluster: LocalCluster) -> None:
    """The lines of the guide, as one script that ends with the first failure."""
    if shutil.which("curl") is None:
        unavailable("curl is not installed (Debian: apt-get install curl)")
    lines = [line for block in BLOCK.findall(GUIDE.read_text()) for line in block.splitlines()]
    assert len([line for line in lines if "curl" in line]) > 30
    assert lines.pop(0).startswith("NODE=")
    # Another try may mend a 503: the leader of a new partition has to hear of it first. curl waits 1 s, 2 s, 4 s …
    options = "--silent --show-error --fail-with-body --retry 5"
    script = ["set -eu", f'curl() {{ command curl {options} "$@"; }}', *lines]
    done = subprocess.run(
        ["sh", "-c", "\n".join(script)],
        env={**os.environ, "NODE": str(cluster.nodes[2].admin)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr


def test_any_node_answers_for_all_also_while_one_is_gone(cluster: LocalCluster) -> None:
    # Tests run in any order; this one ends with a node that is gone.
    run_guide(cluster)
    http = Http(cluster)
    topic = "led-elsewhere"
    assignments = {"0": [1, 2], "1": [2, 1]}
    http.post(1, "/topics", {"topic_name": topic, "replicas_assignments": assignments})
    assert http.is_there(1, f"/topics/{topic}")
    wait_for(lambda: all(http.is_there(one, f"/topics/{topic}") for one in (2, 3)), "their images have the topic")

    # Node 3 has no replica of it.
    for partition_id in (0, 1):
        assert [produced(http, 3, partition_id, str(number))["offset"] for number in range(2)] == [0, 1]
    values = [one["value"]["data"] for one in http.get(3, f"/topics/{topic}/records")["data"]]
    assert sorted(values) == ["0", "0", "1", "1"]
    statuses = http.get(3, f"/topics/{topic}/partitions/0/replica-status")["data"]
    assert [one["log_end_offset"] for one in statuses] == [2, 2]
    assert {one["broker_id"] for one in http.get(3, "/brokers/-/configs")["data"]} == {1, 2, 3}

    for group in GROUPS:
        commit(cluster, group, topic, 1)
    listed = http.get(3, "/consumer-groups")["data"]
    assert sorted(one["consumer_group_id"] for one in listed) == GROUPS
    assert len({one["coordinator"]["related"] for one in listed}) > 1
    for group in GROUPS:
        assert http.get(3, f"/consumer-groups/{group}/lag-summary")["total_lag"] == 1

    cluster.kill_node(1)
    wait_for(lambda: http.get(3, "/brokers/1")["is_fenced"], "the broker is fenced")
    wait_for(
        lambda: http.get(3, f"/topics/{topic}/partitions/0")["leader"]["related"].endswith("/replicas/2"),
        "the other replica leads",
    )
    assert produced(http, 3, 0, "2")["error_code"] == 200
    gone, led = http.get(3, f"/topics/{topic}/partitions/0/replica-status")["data"]
    assert (gone["broker_id"], gone["log_end_offset"], gone["lag"]) == (1, None, None)
    assert gone["reason"] == "Broker 1 is fenced or not registered."
    assert led["log_end_offset"] == 3
    configs = http.get(2, "/brokers/-/configs")
    assert {one["broker_id"] for one in configs["data"]} == {2, 3}
    assert [one["source"] for one in configs["metadata"]["unavailable"]] == ["broker 1"]

    def lags_are_known() -> bool:
        try:
            return all(http.get(3, f"/consumer-groups/{one}/lag-summary")["total_lag"] == 2 for one in GROUPS)
        except HTTPError as error:
            # The new coordinators load the groups.
            error.close()
            if error.code != 503:
                raise
            return False

    wait_for(lags_are_known, "the coordinators that are left have the groups")
