"""The server.properties that Apache Kafka 4.3 comes with starts a node; only its ports and its folder are changed."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from penstock.local.ports import find_free

pytestmark = pytest.mark.integration

STOCK = Path(__file__).parents[1] / "unit" / "broker" / "configuration" / "server.properties"
STOCK_PORTS = (9092, 9093)
DEADLINE_S = 60.0
TOPIC = "from-stock"


@pytest.fixture
def properties(tmp_path: Path) -> tuple[Path, str]:
    """The file, and the address at which its node serves clients."""
    text = STOCK.read_text()
    generator = random.Random()
    ports = {stock: find_free(generator) for stock in STOCK_PORTS}
    for stock, free in ports.items():
        text = re.sub(rf":{stock}\b", f":{free}", text)
    text = re.sub(r"^log\.dirs=.*$", f"log.dirs={tmp_path}/data", text, flags=re.MULTILINE)
    file = tmp_path / "server.properties"
    file.write_text(text)
    return file, f"localhost:{ports[9092]}"


@contextmanager
def node(properties: Path) -> Iterator[subprocess.Popen[bytes]]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PENSTOCK_")}
    command = [sys.executable, "-P", "-m", "penstock", "start", str(properties)]
    with subprocess.Popen(command, env=environment, cwd=properties.parent) as process:
        try:
            yield process
        finally:
            process.kill()


def send(bootstrap: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "message.timeout.ms": 60_000})
    for value in values:
        producer.produce(TOPIC, value)
    assert producer.flush(DEADLINE_S) == 0


def read(bootstrap: str) -> list[bytes | str | None]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "none", "enable.partition.eof": True, "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
    values: list[bytes | str | None] = []
    while True:
        message = consumer.poll(DEADLINE_S)
        assert message is not None, f"nothing came within {DEADLINE_S} s"
        error = message.error()
        if error is None:
            values.append(message.value())
        else:
            assert error.code() == KafkaError._PARTITION_EOF, error
            consumer.close()
            return values


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_a_stock_file_starts_a_node_and_starts_it_again(properties: tuple[Path, str], stop: signal.Signals) -> None:
    file, bootstrap = properties
    with node(file) as process:
        send(bootstrap, [b"first", b"second"])
        cluster_id = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=DEADLINE_S).cluster_id
        process.send_signal(stop)
        assert process.wait(DEADLINE_S) == (0 if stop is signal.SIGTERM else -signal.SIGKILL)
    with node(file):
        # The one replica comes back leading, with what was acknowledged.
        send(bootstrap, [b"third"])
        assert read(bootstrap) == [b"first", b"second", b"third"]
        assert AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=DEADLINE_S).cluster_id == cluster_id
