"""Metrics and logs: what the nodes of the cluster measure and log goes into topics; where it ends up is exchangeable.

    python metrics_and_logs.py collect NODE.properties...    logs and metrics of these nodes, until Ctrl-C or SIGTERM
    python metrics_and_logs.py sink FILE.jsonl               everything collected, as lines of JSON
    python metrics_and_logs.py sink FILE.db                  the same, as rows of SQLite; --once: to the end, not on

`cluster-logs` has a record for each line of a node's log, `cluster-metrics` one for each metric and second; the key is
the node. A sink reads both in one consumer group: stop one, start another, and that goes on where the first was.
`--bootstrap` or the variable KAFKA_BOOTSTRAP_SERVERS says where the cluster is.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import threading
import urllib.request
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

LOGS = "cluster-logs"
METRICS = "cluster-metrics"
INTERVAL_S = 1.0
BATCH_SIZE = 500
POLL_S = 0.2
TIMEOUT_S = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """As its file of properties has it: its log lies beside that."""

    name: str
    log: Path
    metrics_url: str


def read_node(properties: Path) -> Node:
    values = dict(line.split("=", 1) for line in properties.read_text().splitlines() if "=" in line)
    url = f"{values['admin.listeners']}/metrics"
    return Node(name=values["node.id"], log=properties.with_suffix(".log"), metrics_url=url)


class Collector:
    """Each line of a log once: the record has the position behind its line, and the next collector begins there."""

    def __init__(self, bootstrap: str, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        self._positions = {node.name: 0 for node in nodes} | _positions(bootstrap)

    def collect(self) -> None:
        """What is new of each node. Raises KafkaException when a record was not taken."""
        for node in self._nodes:
            for line, position in _new_lines(node.log, self._positions[node.name]):
                self._positions[node.name] = position
                self._send(LOGS, node, {"line": line, "position": position})
            for name, value in _scrape(node.metrics_url):
                self._send(METRICS, node, {"metric": name, "value": value})
        self._producer.flush()

    def _send(self, topic: str, node: Node, value: object) -> None:
        self._producer.produce(topic, json.dumps(value), node.name, on_delivery=_delivered)
        self._producer.poll(0)


def _delivered(error: KafkaError | None, _message: Message) -> None:
    if error is not None:
        raise KafkaException(error)


def _positions(bootstrap: str) -> dict[str, int]:
    """How far the log of each node is in the topic."""
    positions: dict[str, int] = {}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.partition.eof": True})
    partitions = consumer.list_topics(LOGS, TIMEOUT_S).topics[LOGS].partitions
    consumer.assign([TopicPartition(LOGS, number, OFFSET_BEGINNING) for number in partitions])
    at_end: set[int | None] = set()
    while len(at_end) < len(partitions):
        message = consumer.poll(POLL_S)
        if message is None:
            continue
        error = message.error()
        if error is None:
            positions[_text(message.key())] = json.loads(message.value() or b"")["position"]
        elif error.code() == KafkaError._PARTITION_EOF:
            at_end.add(message.partition())
        else:
            raise KafkaException(error)
    consumer.close()
    return positions


def _new_lines(log: Path, position: int) -> Iterator[tuple[str, int]]:
    """Each whole line behind the position, and where it ends."""
    with log.open("rb") as file:
        file.seek(position)
        for line in file:
            if line.endswith(b"\n"):
                position += len(line)
                yield line.decode(errors="replace").rstrip("\n"), position


def _scrape(url: str) -> Iterator[tuple[str, float]]:
    """Prometheus' text format: a line is the metric with its labels, and the value. Nothing of a node that is down."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            text = answer.read().decode()
    except OSError:
        return
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            yield name, float(value)


class Sink(Protocol):
    """Where records end up."""

    def write(self, messages: Sequence[Message]) -> None:
        """On the disk when it returns."""


class FileSink:
    """Lines of JSON. Killed between writing and committing, it leaves lines that the next sink has too."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a")

    def write(self, messages: Sequence[Message]) -> None:
        for message in messages:
            place = {"topic": message.topic(), "partition": message.partition(), "offset": message.offset()}
            value = json.loads(message.value() or b"")
            self._file.write(json.dumps({**place, "node": _text(message.key()), **value}) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())


class SqliteSink:
    """A table. A record that comes again is ignored."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path)
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS records"
            "(topic, partition, offset, node, value, PRIMARY KEY (topic, partition, offset))"
        )

    def write(self, messages: Sequence[Message]) -> None:
        rows = [(one.topic(), one.partition(), one.offset(), _text(one.key()), _text(one.value())) for one in messages]
        with self._database:
            self._database.executemany("INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?, ?)", rows)


def run_sink(bootstrap: str, sink: Sink, stopped: threading.Event, *, once: bool) -> None:
    """Until it is stopped; `once`: to the end. Offsets are committed behind what is written. Raises KafkaException."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "cluster-sink",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe([LOGS, METRICS])
    at_end: set[tuple[str | None, int | None]] = set()
    try:
        while not stopped.is_set() and not (once and _is_at_end(consumer, at_end)):
            records = []
            for message in consumer.consume(BATCH_SIZE, POLL_S):
                error = message.error()
                if error is None:
                    records.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    at_end.add((message.topic(), message.partition()))
                else:
                    raise KafkaException(error)
            if records:
                sink.write(records)
                consumer.commit(asynchronous=False)
    finally:
        consumer.close()


def _is_at_end(consumer: Consumer, at_end: Set[tuple[str | None, int | None]]) -> bool:
    """Whether it has partitions, and has reached the end of each."""
    assigned = {(one.topic, one.partition) for one in consumer.assignment()}
    return bool(assigned) and assigned <= at_end


def _text(data: str | bytes | None) -> str:
    return data.decode() if isinstance(data, bytes) else data or ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", default=os.environ.get("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9092"))
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("collect").add_argument("nodes", nargs="+", type=Path)
    sink = commands.add_parser("sink")
    sink.add_argument("file", type=Path)
    sink.add_argument("--once", action="store_true")
    options = parser.parse_args()
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    if options.command == "sink":
        path: Path = options.file
        destination = SqliteSink(path) if path.suffix == ".db" else FileSink(path)
        run_sink(options.bootstrap, destination, stopped, once=options.once)
        return
    collector = Collector(options.bootstrap, [read_node(path) for path in options.nodes])
    while not stopped.is_set():
        collector.collect()
        stopped.wait(INTERVAL_S)


if __name__ == "__main__":
    main()
