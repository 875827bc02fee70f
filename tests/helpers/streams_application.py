"""`tests/integration/streams/FlightsApplication.java` as an application that can be killed, and what feeds it."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from confluent_kafka import Producer
from exactly_once import ProcessApplication
from flights import Row
from missing_tools import unavailable

from penstock.chaos.workloads.steady_records import SETTINGS
from penstock.client.client_log import SILENT_LOGGER
from penstock.local.apache_kafka.jars import JarsUnavailableError, KafkaJars, install
from penstock.protocol.structs import replace

SOURCES: Final = Path(__file__).parents[1] / "integration" / "streams"
MAIN_CLASS: Final = "FlightsApplication"
APPLICATION_ID: Final = "flights-application"
FLIGHTS: Final = "flights"
COMPILE_TIMEOUT_S: Final = 120.0
FLUSH_TIMEOUT_S: Final = 120.0
HEAP_MIB: Final = 300
# So often the machine of a killed application is lost with its state.
STATE_LOST_RATIO: Final = 0.3
_POLL_S: Final = 0.02


class StreamsApplication(ProcessApplication):
    group = APPLICATION_ID

    def __init__(self, folder: Path, bootstrap: str, jars: KafkaJars, generator: random.Random) -> None:
        super().__init__(folder)
        self._jars = jars
        self._generator = generator
        self._state = folder / "state"
        self._properties = folder / "application.properties"
        properties = {
            "application.id": APPLICATION_ID,
            "bootstrap.servers": bootstrap,
            "processing.guarantee": "exactly_once_v2",
            "state.dir": str(self._state),
            "replication.factor": "3",
            "default.key.serde": "org.apache.kafka.common.serialization.Serdes$StringSerde",
            "default.value.serde": "org.apache.kafka.common.serialization.Serdes$StringSerde",
            # Each flight changes a count, and each change is written.
            "statestore.cache.max.bytes": "0",
            # The application that follows a killed one takes its place at once.
            "group.instance.id": APPLICATION_ID,
            "session.timeout.ms": "10000",
        }
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))

    @property
    def transactional_id(self) -> str:
        """Kafka Streams' own, of its only thread."""
        told = json.loads((self._state / APPLICATION_ID / "kafka-streams-process-metadata").read_text())
        return f"{APPLICATION_ID}-{told['processId']}-1"

    def command(self) -> Sequence[str]:
        return self._jars.command(MAIN_CLASS, str(self._properties), heap_mib=HEAP_MIB)

    def kill(self) -> None:
        super().kill()
        if self._generator.random() < STATE_LOST_RATIO:
            shutil.rmtree(self._state)

    def restored(self) -> int:
        """Records of changelogs that lives of the application made their state of."""
        logs = (self.folder / f"application-{life}.log" for life in range(1, self.lives + 1))
        return sum(
            int(count) for log in logs for count in re.findall(r"^restored \S+ (\d+)$", log.read_text(), re.MULTILINE)
        )


class Feed:
    """Writes the rows in their order, as many flights as may be written by now, from a thread of its own."""

    def __init__(self, bootstrap: str, rows: Sequence[Row], *, allowed: Callable[[], int] | None = None) -> None:
        """All at once without `allowed`."""
        self._rows = rows
        self._allowed = allowed or (lambda: len(rows))
        self._errors: list[str] = []
        # As Java does it, or what the application joins would not come together.
        settings = {"bootstrap.servers": bootstrap, **SETTINGS, "partitioner": "murmur2_random"}
        self._producer = Producer(settings, logger=SILENT_LOGGER)
        self._is_over = threading.Event()
        self._threads = ThreadPoolExecutor(1)

    def __enter__(self) -> Feed:
        self._run_ended = self._threads.submit(self._run)
        return self

    def __exit__(self, *_: object) -> None:
        """The rest is written."""
        self._is_over.set()
        self._threads.shutdown()
        self._run_ended.result()

    def _run(self) -> None:
        flight_count = 0
        for row in self._rows:
            flight_count += row.topic == FLIGHTS
            while flight_count > self._allowed() and not self._is_over.wait(_POLL_S):
                self._producer.poll(0)
            self._producer.produce(
                row.topic, row.value, row.key, timestamp=row.timestamp_ms, on_delivery=self._delivered
            )
            self._producer.poll(0)
        left = self._producer.flush(FLUSH_TIMEOUT_S)
        assert not left, f"{left} rows had no outcome"
        assert not self._errors, self._errors[0]

    def _delivered(self, error: object, _message: object) -> None:
        if error is not None:
            self._errors.append(str(error))


def compile_application(folder: Path) -> KafkaJars:
    """The jars of Kafka Streams, with the compiled application in front."""
    try:
        jars = install(SOURCES / "pom.xml", name="kafka-streams")
    except JarsUnavailableError as missing:
        unavailable(str(missing))
    compiler = shutil.which("javac")
    if compiler is None:
        unavailable("the application is compiled with javac (Debian: apt-get install default-jdk-headless)")
    classes = folder / "classes"
    subprocess.run(
        [compiler, "-nowarn", "-d", str(classes), "-cp", jars.classpath, *map(str, SOURCES.glob("*.java"))],
        timeout=COMPILE_TIMEOUT_S,
        check=True,
    )
    return replace(jars, in_front=(classes,))
