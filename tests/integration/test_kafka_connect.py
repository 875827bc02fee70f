"""Kafka Connect of Apache Kafka, unchanged, on three nodes of Penstock: standalone with files, and two distributed
workers with an exactly-once source, which are killed one after the other.

`PENSTOCK_TEST_KILLS` is how often a worker is killed (3; more in a soak). `PENSTOCK_TEST_BROKER=apache-kafka` does it
to Apache Kafka.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from connect_worker import DISTRIBUTED, STANDALONE, START_TIMEOUT_S, ConnectWorker, RefusedError, write_properties
from exactly_once import create_topics, three_nodes
from replicated_cluster import DEADLINE_S, draw_generator, say
from waiting import wait_for

from penstock.chaos.checkers.records import Stored
from penstock.chaos.workloads.committed_reader import CommittedReader
from penstock.chaos.workloads.numbered_records import read_all
from penstock.client.client_log import SILENT_LOGGER
from penstock.local.apache_kafka.jars import KafkaJars

pytestmark = [pytest.mark.integration, pytest.mark.timeout(7200)]

KILLS: Final = int(os.environ.get("PENSTOCK_TEST_KILLS", "3"))
# Committed by all tasks together, at least, between two kills.
RECORDS_BETWEEN_KILLS: Final = 200
LINES: Final = 1_000
# A killed worker is missed after this time.
SESSION_MS: Final = 3_000
SHORT_SESSIONS: Final[Mapping[str, str]] = {"group.min.session.timeout.ms": "1000"}
TOPIC: Final = "numbers"
TASKS: Final = 2
CONNECTOR: Final = "source"
INTERNAL_TOPICS: Final = ("connect-configs", "connect-offsets", "connect-status")
SOURCE: Final[Mapping[str, str]] = {
    "connector.class": "org.apache.kafka.connect.tools.VerifiableSourceConnector",
    "tasks.max": str(TASKS),
    "topic": TOPIC,
    # Records a second of each task.
    "throughput": "200",
    "complete.record.data": "true",
    # The key is the number of the task, so the records of a task lie in one partition, in their order.
    "key.converter": "org.apache.kafka.connect.converters.IntegerConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    # Of several records, so that kills find open transactions.
    "transaction.boundary": "interval",
    "transaction.boundary.interval.ms": "100",
}


@pytest.fixture(scope="module")
def cluster_bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with three_nodes(tmp_path_factory.mktemp("cluster"), SHORT_SESSIONS) as cluster:
        yield cluster.bootstrap


def test_standalone_worker_copies_a_file_through_a_topic(
    kafka_jars: KafkaJars, cluster_bootstrap: str, tmp_path: Path
) -> None:
    """Each line once and in order, also those that were written while the worker was stopped."""
    create_topics(cluster_bootstrap, "lines", partitions=1)
    source, sink = tmp_path / "source.txt", tmp_path / "sink.txt"
    lines = [f"line {number}" for number in range(LINES)]
    first, later = lines[: LINES // 2], lines[LINES // 2 :]
    source.write_text("".join(f"{line}\n" for line in first))
    connectors = [
        write_properties(
            tmp_path / "file-source.properties",
            {
                "name": "file-source",
                "connector.class": "FileStreamSource",
                "tasks.max": "1",
                "file": str(source),
                "topic": "lines",
            },
        ),
        write_properties(
            tmp_path / "file-sink.properties",
            {
                "name": "file-sink",
                "connector.class": "FileStreamSink",
                "tasks.max": "1",
                "file": str(sink),
                "topics": "lines",
            },
        ),
    ]
    properties = {
        "bootstrap.servers": cluster_bootstrap,
        "offset.storage.file.filename": str(tmp_path / "offsets"),
        "offset.flush.interval.ms": "1000",
    }
    worker = ConnectWorker(kafka_jars, tmp_path, "standalone", STANDALONE, properties, connectors)

    def wait_written(expected: Sequence[str]) -> None:
        def is_written() -> bool:
            worker.check_running()
            return sink.exists() and len(sink.read_text().splitlines()) >= len(expected)

        wait_for(is_written, lambda: f"{len(expected)} lines are in the sink:\n{worker.log_tail()}")
        assert sink.read_text().splitlines() == expected

    with worker:
        worker.wait_ready()
        wait_written(first)
        worker.stop()
        with source.open("a") as file:
            file.writelines(f"{line}\n" for line in later)
        worker.start()
        wait_written(lines)
        worker.stop()
    stored = [record.value.decode() for record in read_all(cluster_bootstrap, "lines", 0, timeout_s=DEADLINE_S)]
    assert stored == lines


def test_exactly_once_source_survives_killed_workers(
    kafka_jars: KafkaJars, cluster_bootstrap: str, tmp_path: Path
) -> None:
    """Each sequence number of a task once, in order, to readers of committed records; the last one is its offset."""
    generator = draw_generator(__file__)
    create_topics(cluster_bootstrap, TOPIC)
    properties = {
        "bootstrap.servers": cluster_bootstrap,
        "group.id": "connect",
        "exactly.once.source.support": "enabled",
        "config.storage.topic": "connect-configs",
        "offset.storage.topic": "connect-offsets",
        "offset.storage.partitions": "5",
        "status.storage.topic": "connect-status",
        "session.timeout.ms": str(SESSION_MS),
        "heartbeat.interval.ms": str(SESSION_MS // 3),
        # Else a killed worker's tasks wait for it, five minutes.
        "scheduled.rebalance.max.delay.ms": "0",
    }
    with (
        ConnectWorker(kafka_jars, tmp_path, "worker-1", DISTRIBUTED, properties) as first,
        ConnectWorker(kafka_jars, tmp_path, "worker-2", DISTRIBUTED, properties) as second,
        CommittedReader(cluster_bootstrap, TOPIC, partitions=3) as reader,
    ):
        workers = [first, second]
        for worker in workers:
            worker.wait_ready()
        created = first.wait_answered("POST", "/connectors", {"name": CONNECTOR, "config": SOURCE})
        assert created["name"] == CONNECTOR
        first.wait_running(CONNECTOR, tasks=TASKS)
        # Asked of the other one: the status is the cluster's, in a topic.
        second.wait_running(CONNECTOR, tasks=TASKS)
        _check_compacted(cluster_bootstrap)

        def wait_progress(asked: ConnectWorker = first) -> None:
            goal = reader.count + generator.randrange(1, RECORDS_BETWEEN_KILLS)

            def is_reached() -> bool:
                asked.restart_failed(CONNECTOR)
                return reader.count >= goal

            wait_for(
                is_reached,
                lambda: f"records are committed:\n{workers[0].log_tail()}\n{workers[1].log_tail()}",
                timeout_s=START_TIMEOUT_S,
                interval_s=0.1,
            )

        for _ in range(KILLS):
            wait_progress()
            killed = _worker_with_a_task(workers)
            killed.kill()
            other = next(worker for worker in workers if worker is not killed)
            # It comes back at once, or when the other has done without it.
            if generator.random() < 0.5:
                wait_progress(other)
            killed.start()
            killed.wait_ready()
            other.wait_running(CONNECTOR, tasks=TASKS)
        wait_progress()

        asked = generator.choice(workers)
        asked.wait_answered("PUT", f"/connectors/{CONNECTOR}/pause")
        asked.wait_running(CONNECTOR, tasks=TASKS, state="PAUSED")
        asked.wait_answered("PUT", f"/connectors/{CONNECTOR}/resume")
        asked.wait_running(CONNECTOR, tasks=TASKS)
        wait_progress()
        asked.wait_answered("PUT", f"/connectors/{CONNECTOR}/stop")
        asked.wait_running(CONNECTOR, tasks=0, state="STOPPED")
        told = asked.wait_answered("GET", f"/connectors/{CONNECTOR}/offsets")
        offsets = {one["partition"]["id"]: one["offset"]["seqno"] for one in told["offsets"]}
        expected = {task: list(range(offsets[task] + 1)) for task in range(TASKS)}
        wait_for(lambda: reader.count >= sum(map(len, expected.values())), "all is read that was committed")

        asked.wait_answered("DELETE", f"/connectors/{CONNECTOR}/offsets")
        assert asked.wait_answered("GET", f"/connectors/{CONNECTOR}/offsets") == {"offsets": []}
        asked.wait_answered("DELETE", f"/connectors/{CONNECTOR}")
        wait_for(lambda: asked.wait_answered("GET", "/connectors") == [], "the connector is deleted")
        with pytest.raises(RefusedError, match="404"):
            asked.ask("GET", f"/connectors/{CONNECTOR}")
        for worker in workers:
            worker.stop()
        assert not reader.errors
    found = numbers_by_task(reader.read)
    assert found == expected
    assert min(map(len, expected.values())) > 0
    say(f"{sum(map(len, expected.values()))} records, {KILLS} kills of workers")


def test_a_sequence_number_that_is_repeated_lost_or_misplaced_is_found() -> None:
    """What the test above compares."""

    def stored(*numbers: int) -> list[Stored]:
        return [
            Stored(offset, json.dumps({"task": 0, "seqno": number}).encode()) for offset, number in enumerate(numbers)
        ]

    assert numbers_by_task([stored(0, 1, 2)]) == {0: [0, 1, 2]}
    for fault in ((0, 1, 1, 2), (0, 2), (1, 0, 2)):
        assert numbers_by_task([stored(*fault)]) != {0: [0, 1, 2]}


def numbers_by_task(read: Sequence[Sequence[Stored]]) -> dict[int, list[int]]:
    """In the order in which each partition has them."""
    found: dict[int, list[int]] = defaultdict(list)
    for record in (record for partition in read for record in partition):
        value = json.loads(record.value)
        found[value["task"]].append(value["seqno"])
    return dict(found)


def _worker_with_a_task(workers: Sequence[ConnectWorker]) -> ConnectWorker:
    """The one that has the first task: its transaction is open."""
    told: list[Mapping[str, Any]] = []
    for worker in workers:
        told = worker.status(CONNECTOR)
        if told:
            break
    return next(worker for worker in workers if worker.address.endswith(told[1]["worker_id"]))


def _check_compacted(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT_LOGGER)
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in INTERNAL_TOPICS]
    for resource, future in admin.describe_configs(resources).items():
        assert future.result(DEADLINE_S)["cleanup.policy"].value == "compact", resource
