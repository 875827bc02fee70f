"""What our compaction leaves is what Apache Kafka's programs read, check, open and go on compacting."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import sys
from base64 import b64encode
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from waiting import wait_for

from penstock import cli
from penstock.local.apache_kafka.cluster import KafkaCluster
from penstock.local.apache_kafka.jars import KafkaJars
from penstock.local.apache_kafka.tools import run_tool
from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

DEADLINE_S = 60.0
TOPIC = "table"
KEYS = 150
CONFIG = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "index.interval.bytes": "1024",
    "min.cleanable.dirty.ratio": "0.01",
}
Value = str | None


@dataclass
class Model:
    """What was produced, by offset: key, value, and whether it was committed."""

    produced: dict[int, tuple[str, Value, bool]] = field(default_factory=dict)

    def latest(self) -> dict[str, tuple[int, Value]]:
        return {key: (offset, value) for offset, (key, value, is_committed) in self.committed().items() if is_committed}

    def committed(self) -> dict[int, tuple[str, Value, bool]]:
        return {offset: entry for offset, entry in sorted(self.produced.items()) if entry[2]}


def fill(bootstrap: str, model: Model, generator: random.Random, *, rounds: int, name: str) -> None:
    """Transactions of each codec, committed and aborted, with tombstones and headers, and records without one."""
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        for transactional in (True, False):
            settings: dict[str, str | int | bool] = {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "linger.ms": 5,
                "batch.size": 60_000,
                "enable.idempotence": True,
            }
            producer = Producer(settings | ({"transactional.id": f"{name}-{codec}"} if transactional else {}))
            if transactional:
                producer.init_transactions(DEADLINE_S)
            for number in range(rounds):
                is_committed = not transactional or number % 3 != 1
                if transactional:
                    producer.begin_transaction()
                for _ in range(250):
                    send(producer, model, generator, is_committed=is_committed)
                assert producer.flush(DEADLINE_S) == 0
                if transactional:
                    (producer.commit_transaction if is_committed else producer.abort_transaction)(DEADLINE_S)


def use_up_producer_ids(bootstrap: str) -> None:
    """Both clusters give ids from 0 on, and the log remembers those of ours, which are other producers."""
    for _ in range(12):
        producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        producer.produce("other", b"", partition=0)
        assert producer.flush(DEADLINE_S) == 0


def send(producer: Producer, model: Model, generator: random.Random, *, is_committed: bool) -> None:
    key = f"key-{generator.randrange(KEYS)}"
    value = None if generator.random() < 0.1 else b64encode(generator.randbytes(300)).decode()

    def delivered(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        model.produced[message.offset() or 0] = key, value, is_committed

    producer.produce(TOPIC, value, key=key, partition=0, headers=[("h", b"1"), ("n", None)], on_delivery=delivered)
    producer.poll(0)


def wait_compacted(data: Path, past: int) -> None:
    """Until the log is compacted up to its last segment, and beyond `past`."""

    def is_compacted() -> bool:
        checkpoint = data / "cleaner-offset-checkpoint"
        found = re.search(rf"^{TOPIC} 0 (\d+)$", checkpoint.read_text() if checkpoint.exists() else "", re.MULTILINE)
        bases = sorted(int(log.stem) for log in (data / f"{TOPIC}-0").glob("*.log"))
        return found is not None and int(found[1]) == bases[-1] > past

    wait_for(is_compacted, lambda: f"{data} is compacted past {past}", interval_s=0.1)


def read(bootstrap: str, isolation: str) -> list[tuple[int, str, Value]]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "isolation.level": isolation,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
    records: list[tuple[int, str, Value]] = []
    while True:
        message = consumer.poll(DEADLINE_S)
        assert message is not None
        error = message.error()
        if error is None:
            key, value = message.key(), message.value()
            assert isinstance(key, bytes)
            records.append((message.offset() or 0, key.decode(), value.decode() if isinstance(value, bytes) else None))
        elif error.code() == KafkaError._PARTITION_EOF:
            consumer.close()
            return records


def read_with_kafkas_consumer(
    jars: KafkaJars, bootstrap: str, isolation: str, count: int
) -> list[tuple[int, str, Value]]:
    """At most so many."""
    shown = [part for name in ("offset", "key") for part in ("--formatter-property", f"print.{name}=true")]
    result = run_tool(
        jars,
        "console-consumer",
        "--bootstrap-server",
        bootstrap,
        "--topic",
        TOPIC,
        "--partition",
        0,
        "--offset",
        "earliest",
        "--max-messages",
        count,
        "--isolation-level",
        isolation,
        "--timeout-ms",
        30_000,
        *shown,
    )
    found = re.findall(r"^Offset:(\d+)\t(\S+)\t(\S+)$", result.output, re.MULTILINE)
    assert len(found) == count, result.output[-2000:]
    return [(int(offset), key, None if value == "null" else value) for offset, key, value in found]


def check_records(records: list[tuple[int, str, Value]], model: Model) -> None:
    """Each is what was committed at its offset, and the latest of each key is there. A tombstone may be gone."""
    committed = model.committed()
    offsets = [offset for offset, _, _ in records]
    assert offsets == sorted(set(offsets))
    for offset, key, value in records:
        assert committed[offset][:2] == (key, value)
    found = {key: (offset, value) for offset, key, value in records}
    for key, (offset, value) in model.latest().items():
        assert found.get(key, (offset, None)) == (offset, value), key


def penstock_log(*arguments: str | Path) -> str:
    result = CliRunner().invoke(cli.main, ["log", *map(str, arguments)], prog_name="penstock")
    assert result.exit_code == 0, result.output
    return result.stdout


def our_dump(folder: Path) -> list[tuple[object, ...]]:
    """As `kafkas_dump` has it."""
    found: list[tuple[object, ...]] = []
    for line in penstock_log("dump", folder, "--records", "--decoder", "none", "--json").splitlines():
        row = json.loads(line)
        match row["kind"]:
            case "batch":
                flags = row["is_transactional"], row["is_control"], row.get("delete_horizon_ms")
                found.append((*(row[name] for name in _BATCH_FIELDS), *flags))
            case "record":
                headers = [header["key"] for header in row["headers"]]
                found.append((row["offset"], row["timestamp"], headers, row["key"], row["value"]))
            case "marker":
                found.append((row["offset"], row["timestamp"], row["type"], row["coordinator_epoch"]))
    return found


_BATCH_FIELDS = (
    "base_offset",
    "last_offset",
    "record_count",
    "base_sequence",
    "last_sequence",
    "producer_id",
    "producer_epoch",
    "leader_epoch",
    "position",
    "max_timestamp",
    "size_bytes",
    "compression",
    "crc",
)
_BATCH = re.compile(
    r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) baseSequence: (-?\d+) lastSequence: (-?\d+) producerId: (-?\d+) "
    r"producerEpoch: (-?\d+) partitionLeaderEpoch: (\d+) isTransactional: (true|false) isControl: (true|false) "
    r"deleteHorizonMs: (\S+) position: (\d+) CreateTime: (-?\d+) size: (\d+) magic: 2 compresscodec: (\w+) crc: (\d+) "
    r"isvalid: true"
)
_MARKER = re.compile(r"\| offset: (\d+) CreateTime: (-?\d+) .*endTxnMarker: (\w+) coordinatorEpoch: (\d+)")
_RECORD = re.compile(
    r"\| offset: (\d+) CreateTime: (-?\d+) keySize: \d+ valueSize: -?\d+ (?:sequence: -?\d+ )?headerKeys: \[([^]]*)\] "
    r"key: (\S+)(?: payload: (\S+))?"
)


def kafkas_dump(jars: KafkaJars, folder: Path) -> list[tuple[object, ...]]:
    """Batches and records, line by line."""
    logs = ",".join(str(log) for log in sorted(folder.glob("*.log")))
    result = run_tool(jars, "dump-log", "--print-data-log", "--files", logs)
    assert result.exit_code == 0, result.output[-2000:]
    found: list[tuple[object, ...]] = []
    for line in result.lines:
        if (batch := _BATCH.fullmatch(line)) is not None:
            *numbers, is_transactional, is_control, horizon, position, timestamp, size, codec, crc = batch.groups()
            until = re.search(r"\d+", horizon)
            found.append(
                (
                    *map(int, (*numbers, position, timestamp, size)),
                    codec,
                    int(crc),
                    is_transactional == "true",
                    is_control == "true",
                    None if until is None else int(until[0]),
                )
            )
        elif (marker := _MARKER.fullmatch(line)) is not None:
            found.append((int(marker[1]), int(marker[2]), marker[3], int(marker[4])))
        elif (record := _RECORD.fullmatch(line)) is not None:
            found.append((int(record[1]), int(record[2]), record[3].split(","), record[4], record[5]))
        else:
            # The gaps that compaction leaves are said at the end of each file.
            assert re.match(
                r"Dumping |Log starting offset|Non-consecutive offsets in| +-?\d+ is followed by \d+$", line
            )
    return found


def test_kafka_agrees_on_what_compaction_leaves_opens_it_and_goes_on(tmp_path: Path, kafka_jars: KafkaJars) -> None:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
    sys.stdout.write(f"replay: PENSTOCK_TEST_SEED={seed} pytest tests/integration/test_compacted_folders.py\n")
    generator = random.Random(seed)
    model = Model()
    with LocalCluster(tmp_path / "ours", properties={"log.cleaner.backoff.ms": "50"}) as cluster:
        data = cluster.nodes[1].data
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1, 1, config=CONFIG)])[TOPIC].result(DEADLINE_S)
        fill(cluster.bootstrap, model, generator, rounds=6, name="first")
        wait_compacted(data, past=0)
        # As the log lies there while the node runs.
        stored = [
            offset for row in our_dump(data / f"{TOPIC}-0") if len(row) == 5 and isinstance(offset := row[0], int)
        ]
        decided = [offset for offset in stored if model.produced[offset][2]]
        committed = read_with_kafkas_consumer(kafka_jars, cluster.bootstrap, "read_committed", len(decided))
        uncommitted = read_with_kafkas_consumer(kafka_jars, cluster.bootstrap, "read_uncommitted", len(stored))
        assert [offset for offset, _, _ in committed] == decided
        assert [offset for offset, _, _ in uncommitted] == stored
        check_records(committed, model)
        assert len(committed) < len(model.committed()) // 2, "compaction has taken most of it"
        assert [one for one in uncommitted if model.produced[one[0]][2]] == committed
    folder = data / f"{TOPIC}-0"
    ours = our_dump(folder)
    assert kafkas_dump(kafka_jars, folder) == ours
    assert [row[0] for row in ours if len(row) == 5] == stored
    indexes = ",".join(str(path) for kind in ("index", "timeindex") for path in sorted(folder.glob(f"*.{kind}")))
    checked = run_tool(kafka_jars, "dump-log", "--verify-index-only", "--files", indexes)
    assert checked.exit_code == 0, checked.output
    assert not re.search(r"mismatch|not found|Non-consecutive|corrupt|Exception|out of order", checked.output, re.I)
    penstock_log("verify", data)

    kafka = KafkaCluster(
        kafka_jars, tmp_path / "kafka", properties={"log.cleaner.backoff.ms": "200", "log.cleaner.threads": "1"}
    )
    try:
        kafka.start()
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        for future in admin.create_topics([NewTopic(TOPIC, 1, 1, config=CONFIG), NewTopic("other", 1, 1)]).values():
            future.result(DEADLINE_S)
        theirs = kafka.nodes[1].data / f"{TOPIC}-0"
        wait_for((theirs / "partition.metadata").exists, "Kafka has made the folder")
        kafka.stop()
        # Its metadata say which topic id the folder has.
        shutil.copy(theirs / "partition.metadata", folder / "partition.metadata")
        shutil.rmtree(theirs)
        shutil.copytree(folder, theirs)
        kafka.start()
        assert read(kafka.bootstrap, "read_committed") == committed
        use_up_producer_ids(kafka.bootstrap)
        end_offset = max(model.produced) + 1
        fill(kafka.bootstrap, model, generator, rounds=4, name="second")
        wait_compacted(kafka.nodes[1].data, past=end_offset)
        left = read(kafka.bootstrap, "read_committed")
        check_records(left, model)
        kafka.stop()
    finally:
        kafka.kill()
    old = [offset for offset, _, _ in left if offset < end_offset]
    assert len(old) < len(committed), "Kafka has compacted what we had left"
    told = json.loads(penstock_log("verify", theirs, "--json"))
    assert told["findings"] == []
    assert told["totals"]["records"] >= len(left)
