"""What lies on disk is Apache Kafka's format: its dump tool reads our folders, our node reads its."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from penstock.local.apache_kafka.jars import KafkaJars
from penstock.local.apache_kafka.tools import run_tool
from penstock.local.cluster import LocalCluster

pytestmark = pytest.mark.integration

DEADLINE_S = 60.0
TOPIC = "dumped"


def fill(bootstrap: str, codec: str, count: int) -> None:
    generator = random.Random(codec)
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True})
    for i in range(count):
        # Bytes that no codec makes smaller, so that every codec fills segments.
        producer.produce(TOPIC, generator.randbytes(150), key=str(i).encode(), partition=0)
        if i % 50 == 49:
            producer.flush(DEADLINE_S)
    assert producer.flush(DEADLINE_S) == 0


def test_kafkas_dump_tool_reads_our_segments_and_indexes(tmp_path: Path, kafka_jars: KafkaJars) -> None:
    with LocalCluster(tmp_path / "cluster") as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        config = {"segment.bytes": "1048576", "index.interval.bytes": "1024"}
        admin.create_topics([NewTopic(TOPIC, 1, 1, config=config)])[TOPIC].result(DEADLINE_S)
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            fill(cluster.bootstrap, codec, 4_000)
        folder = next(cluster.nodes[1].data.rglob(f"{TOPIC}-0"))
    logs = sorted(folder.glob("*.log"))
    assert len(logs) > 1, "the topic should have rolled"
    offsets: list[int] = []
    for log in logs:
        result = run_tool(kafka_jars, "dump-log", "--deep-iteration", "--files", str(log))
        assert result.exit_code == 0, result.output
        assert "isvalid: false" not in result.output
        offsets += map(int, re.findall(r"^\| offset: (\d+)", result.output, re.MULTILINE))
    assert offsets == list(range(20_000))
    # Without the sanity flag the tool compares every index entry with the log; with it, the structure of the file.
    indexes = [str(file) for pattern in ("*.index", "*.timeindex") for file in sorted(folder.glob(pattern))]
    for flags in ((), ("--index-sanity-check",)):
        result = run_tool(kafka_jars, "dump-log", *flags, "--files", ",".join(indexes))
        assert result.exit_code == 0, result.output
        assert not re.search(r"mismatch|not found|Non-consecutive|corrupt|Exception", result.output), result.output
    snapshots = [str(file) for file in sorted(folder.glob("*.snapshot"))]
    assert snapshots, "a clean stop leaves a producer snapshot"
    result = run_tool(kafka_jars, "dump-log", "--files", snapshots[-1])
    assert "producerId:" in result.output, result.output


def test_kafkas_dump_tool_reads_our_markers_and_transaction_indexes(tmp_path: Path, kafka_jars: KafkaJars) -> None:
    with LocalCluster(tmp_path / "cluster") as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(DEADLINE_S)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "dumped"})
        producer.init_transactions(DEADLINE_S)
        for is_commit in (True, False, True, False):
            producer.begin_transaction()
            producer.produce(TOPIC, b"value", partition=0)
            assert producer.flush(DEADLINE_S) == 0
            if is_commit:
                producer.commit_transaction(DEADLINE_S)
            else:
                producer.abort_transaction(DEADLINE_S)
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "dumped"})
        producer.begin_transaction()
        producer.send_offsets_to_transaction(
            [TopicPartition(TOPIC, 0, 8)], consumer.consumer_group_metadata(), DEADLINE_S
        )
        producer.commit_transaction(DEADLINE_S)
        consumer.close()
        data = cluster.nodes[1].data
        folder = next(data.rglob(f"{TOPIC}-0"))
        (offsets,) = [log for log in data.rglob("__consumer_offsets-*/*.log") if log.stat().st_size]
    dumped = run_tool(kafka_jars, "dump-log", "--deep-iteration", "--files", str(next(folder.glob("*.log"))))
    assert dumped.exit_code == 0, dumped.output
    assert re.findall(r"endTxnMarker: (\w+)", dumped.output) == ["COMMIT", "ABORT", "COMMIT", "ABORT"]
    (index,) = folder.glob("*.txnindex")
    dumped = run_tool(kafka_jars, "dump-log", "--files", str(index))
    assert dumped.exit_code == 0, dumped.output
    aborted = re.findall(r"firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)", dumped.output)
    assert aborted == [("2", "3", "4"), ("6", "7", "8")]
    dumped = run_tool(
        kafka_jars, "dump-log", "--offsets-decoder", "--deep-iteration", "--print-data-log", "--files", str(offsets)
    )
    assert dumped.exit_code == 0, dumped.output
    assert '"offset":8' in dumped.output
    assert "isTransactional: true" in dumped.output
    assert re.findall(r"endTxnMarker: (\w+)", dumped.output) == ["COMMIT"]
