"""SIGKILL under load and restart, again and again: what was acknowledged is there, once, in order, without holes."""

from __future__ import annotations

import os
import random
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from penstock.chaos.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

TOPIC = "killed"
PARTITIONS = 3
DEADLINE_S = 60.0
KILLS = int(os.environ.get("PENSTOCK_TEST_KILLS", "6"))
RECORDS_BETWEEN_KILLS = 4_000
# More than a client needs to have batches in flight at every kill, few enough that queues drain within the deadline.
QUEUE_LIMIT = 2_000


class NumberedLoad:
    """An idempotent producer of the values 0, 1, 2, … of each partition, that remembers what was acknowledged where."""

    def __init__(self, bootstrap: str, generator: random.Random) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "queue.buffering.max.messages": QUEUE_LIMIT,
                "delivery.timeout.ms": 300_000,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
            }
        )
        self._generator = generator
        self.sent: dict[int, int] = defaultdict(int)
        self.acknowledged: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.errors: list[KafkaError] = []

    @property
    def acknowledged_count(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def send_until(self, acknowledged_count: int) -> None:
        """Keep sending until so many records are acknowledged in all."""
        while self.acknowledged_count < acknowledged_count:
            partition = self._generator.randrange(PARTITIONS)
            value = self.sent[partition]
            try:
                self._producer.produce(TOPIC, str(value).encode(), partition=partition, on_delivery=self._delivered)
                self.sent[partition] += 1
                self._producer.poll(0)
            except BufferError:
                self._producer.poll(0.1)
            assert not self.errors, self.errors[0]

    def finish(self) -> None:
        assert self._producer.flush(DEADLINE_S) == 0
        assert not self.errors, self.errors[0]

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(error)
        else:
            value = message.value()
            assert isinstance(value, bytes)
            self.acknowledged[message.partition() or 0].append((message.offset() or 0, int(value)))


def read_all(bootstrap: str, partition: int) -> list[tuple[int, int]]:
    """(offset, value) of every record."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "none", "enable.partition.eof": True, "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(TOPIC, partition, OFFSET_BEGINNING)])
    records: list[tuple[int, int]] = []
    while True:
        message = consumer.poll(DEADLINE_S)
        assert message is not None
        error = message.error()
        if error is None:
            value = message.value()
            assert isinstance(value, bytes)
            records.append((message.offset() or 0, int(value)))
        elif error.code() == KafkaError._PARTITION_EOF:
            consumer.close()
            return records


@pytest.mark.parametrize("flush_messages", [None, 1], ids=["page cache", "flush.messages=1"])
def test_sigkill_under_load_loses_nothing_and_repeats_nothing(tmp_path: Path, flush_messages: int | None) -> None:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
    sys.stdout.write(
        f"replay: PENSTOCK_TEST_SEED={seed} PENSTOCK_TEST_KILLS={KILLS} pytest tests/integration/test_kill.py\n"
    )
    generator = random.Random(seed)
    # Small segments, so that kills meet rolls and recovery meets several segments.
    config = {"segment.bytes": "1048576"} | ({"flush.messages": str(flush_messages)} if flush_messages else {})
    with LocalCluster(tmp_path / "cluster") as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1, config=config)])[TOPIC].result(DEADLINE_S)
        load = NumberedLoad(cluster.bootstrap, generator)
        for _ in range(KILLS):
            load.send_until(load.acknowledged_count + generator.randrange(1, RECORDS_BETWEEN_KILLS))
            cluster.kill_node(1)
            cluster.start_node(1)
        load.send_until(load.acknowledged_count + RECORDS_BETWEEN_KILLS)
        load.finish()
        for partition in range(PARTITIONS):
            stored = read_all(cluster.bootstrap, partition)
            # Contiguous offsets, every value sent exactly once, in order: nothing else was ever in the log.
            assert stored == [(number, number) for number in range(load.sent[partition])]
            assert set(load.acknowledged[partition]) <= set(stored)
