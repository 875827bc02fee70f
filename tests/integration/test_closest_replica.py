"""librdkafka with `client.rack` on three nodes in three racks: it reads from the follower of its rack."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_views import create_topic
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from penstock.client.clock import wait_until
from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

DEADLINE_S = 30.0
TOPIC = "near"


class RackConsumer:
    """Reads partition 0 in rack-2, and tells from which broker."""

    def __init__(self, bootstrap: str) -> None:
        self.values: list[int] = []
        self._statistics: dict[str, Any] = {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "none",
                "client.rack": "rack-2",
                "enable.auto.commit": False,
                "statistics.interval.ms": 100,
                "fetch.wait.max.ms": 100,
                "reconnect.backoff.max.ms": 200,
                "stats_cb": self._on_statistics,
            }
        )
        self._consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])

    def _on_statistics(self, text: str) -> None:
        self._statistics = json.loads(text)

    @property
    def broker(self) -> int:
        """The one that it fetches from."""
        partitions = self._statistics.get("topics", {}).get(TOPIC, {}).get("partitions", {})
        return int(partitions.get("0", {}).get("broker", -1))

    def poll_until(self, condition: Callable[[], bool]) -> None:
        def holds() -> bool:
            message = self._consumer.poll(0.05)
            if message is not None and message.error() is None:
                value = message.value()
                assert isinstance(value, bytes)
                self.values.append(int(value))
            return condition()

        assert wait_until(holds, timeout_s=DEADLINE_S, interval_s=0), f"read {len(self.values)} from {self.broker}"

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    """Node N is in rack-N, and node 1 leads the only partition."""
    cluster = LocalCluster(
        tmp_path / "cluster",
        node_count=3,
        properties={"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"},
    )
    for node in cluster.nodes.values():
        node.environment = {**node.environment, "PENSTOCK_BROKER_RACK": f"rack-{node.id}"}
    with cluster:
        assert create_topic(cluster.nodes[1].address, TOPIC, {0: (1, 2, 3)}).error_message is None
        yield cluster


def test_consumer_reads_from_the_follower_of_its_rack_and_goes_on_when_that_dies(cluster: LocalCluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "linger.ms": 1})
    sent = 0

    def send(count: int) -> None:
        nonlocal sent
        for _ in range(count):
            producer.produce(TOPIC, str(sent).encode(), partition=0)
            sent += 1
        assert producer.flush(DEADLINE_S) == 0

    send(500)
    consumer = RackConsumer(cluster.bootstrap)
    consumer.poll_until(lambda: len(consumer.values) == sent and consumer.broker == 2)
    send(500)
    consumer.poll_until(lambda: len(consumer.values) == sent)
    assert consumer.broker == 2
    cluster.kill_node(2)
    send(500)
    consumer.poll_until(lambda: len(consumer.values) == sent and consumer.broker == 1)
    cluster.start_node(2)
    send(500)
    consumer.poll_until(lambda: len(consumer.values) == sent)
    consumer.close()
    assert consumer.values == list(range(sent))
