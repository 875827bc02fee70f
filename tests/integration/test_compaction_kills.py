"""SIGKILL of a node and of its compaction worker while logs are compacted under load: the latest value of each key is
there, offsets and order are as they were acknowledged, no worker outlives its node, and compaction goes on."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from waiting import wait_for

from penstock.local.cluster import LocalCluster
from penstock.local.processes import ProcessId, identify, send_signal, wait_gone

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found through /proc"),
]

DEADLINE_S = 60.0
TOPIC = "compacted"
PARTITIONS = 2
KEYS = 500
KILLS = int(os.environ.get("PENSTOCK_TEST_KILLS", "5"))
RECORDS_BETWEEN_KILLS = 4_000
VALUE_BYTES = 600
"""A segment of 1 MiB, the smallest, is 1,700 records."""

Stored = dict[int, tuple[int, int]]
"""Offset → (key, number of the record)."""


class KeyedLoad:
    """An idempotent producer of numbered records, that remembers where each was acknowledged."""

    def __init__(self, bootstrap: str, generator: random.Random) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "queue.buffering.max.messages": 2_000,
                "delivery.timeout.ms": 300_000,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
            }
        )
        self._generator = generator
        self._filler = generator.randbytes(VALUE_BYTES)
        self._sent = 0
        self.acknowledged: dict[int, Stored] = defaultdict(dict)

    @property
    def acknowledged_count(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def send_until(self, acknowledged_count: int) -> None:
        while self.acknowledged_count < acknowledged_count:
            key = self._generator.randrange(KEYS)
            try:
                self._producer.produce(
                    TOPIC,
                    b"%d %s" % (self._sent, self._filler),
                    key=str(key).encode(),
                    partition=self._generator.randrange(PARTITIONS),
                    on_delivery=self._delivered,
                )
                self._sent += 1
                self._producer.poll(0)
            except BufferError:
                self._producer.poll(0.1)

    def finish(self) -> None:
        assert self._producer.flush(DEADLINE_S) == 0
        assert self.acknowledged_count == self._sent

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        self.acknowledged[message.partition() or 0][message.offset() or 0] = _content(message)


def read_all(bootstrap: str, partition: int) -> list[tuple[int, tuple[int, int]]]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "none", "enable.partition.eof": True, "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(TOPIC, partition, OFFSET_BEGINNING)])
    records = []
    while True:
        message = consumer.poll(DEADLINE_S)
        assert message is not None
        error = message.error()
        if error is None:
            records.append((message.offset() or 0, _content(message)))
        elif error.code() == KafkaError._PARTITION_EOF:
            consumer.close()
            return records


def _content(message: Message) -> tuple[int, int]:
    key, value = message.key(), message.value()
    assert isinstance(key, bytes)
    assert isinstance(value, bytes)
    return int(key), int(value.split(b" ", 1)[0])


def workers() -> set[ProcessId]:
    """The compaction workers of nodes that this process has started, whether the node lives or not."""
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (process := identify(int(folder.name))) is not None:
            try:
                command = (folder / "cmdline").read_bytes().split(b"\0")
                environment = (folder / "environ").read_bytes().split(b"\0")
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            if b"penstock.storage.workers.worker" in command and _MARK.encode() in environment:
                found.add(process)
    return found


_MARK = f"TEST_OF_COMPACTION_KILLS={os.getpid()}"


def test_sigkill_of_node_and_worker_while_they_compact(tmp_path: Path) -> None:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
    sys.stdout.write(
        f"replay: PENSTOCK_TEST_SEED={seed} PENSTOCK_TEST_KILLS={KILLS} "
        "pytest tests/integration/test_compaction_kills.py\n"
    )
    generator = random.Random(seed)
    name, _, value = _MARK.partition("=")
    config = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"}
    cluster = LocalCluster(
        tmp_path / "cluster",
        # Slow enough to be in the middle of it when the kill comes.
        properties={"log.cleaner.backoff.ms": "20", "log.cleaner.io.max.bytes.per.second": "8000000"},
        environment={**os.environ, name: value},
    )
    with cluster:
        node = cluster.nodes[1]
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1, config=config)])[TOPIC].result(DEADLINE_S)
        load = KeyedLoad(cluster.bootstrap, generator)

        def compactions() -> int:
            return node.log.read_text(errors="replace").count(f"Compacted log: partition={TOPIC}-")

        def go_on() -> None:
            """More than a segment for each partition, which is compacted."""
            before = compactions()
            load.send_until(load.acknowledged_count + 5_000)
            wait_for(lambda: compactions() > before, "compaction goes on")

        def is_writing() -> bool:
            return any(node.data.glob(f"{TOPIC}-*/*.log.cleaned")) or any(node.data.glob(f"{TOPIC}-*/*.log.swap"))

        for number in range(KILLS):
            go_on()
            load.send_until(load.acknowledged_count + generator.randrange(1, RECORDS_BETWEEN_KILLS))
            if generator.random() < 0.7:
                load.send_until(load.acknowledged_count + RECORDS_BETWEEN_KILLS)
                wait_for(is_writing, "a segment is written anew", interval_s=0.001)
            present = workers()
            if number % 3 == 1:
                for worker in present:
                    send_signal(worker, signal.SIGKILL)
                for worker in present:
                    assert wait_gone(worker, timeout_s=DEADLINE_S)
            else:
                cluster.kill_node(1)
                wait_for(lambda: not workers(), lambda: f"workers outlive their node: {workers()}")
                cluster.start_node(1)
        go_on()
        load.finish()
        for partition in range(PARTITIONS):
            stored = read_all(cluster.bootstrap, partition)
            acknowledged = load.acknowledged[partition]
            offsets = [offset for offset, _ in stored]
            assert offsets == sorted(set(offsets))
            assert sorted(acknowledged) == list(range(len(acknowledged))), "an offset was given twice, or left out"
            assert all(acknowledged[offset] == content for offset, content in stored)
            latest = {key: offset for offset, (key, _) in sorted(acknowledged.items())}
            assert latest.items() <= {key: offset for offset, (key, _) in stored}.items()
            assert len(stored) < len(acknowledged), "nothing was compacted away"
    wait_for(lambda: not workers(), "a stop leaves no worker")
    uncleanable = [line for line in node.log.read_text(errors="replace").splitlines() if "Uncleanable" in line]
    assert not uncleanable
