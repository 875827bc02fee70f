"""An application that copies in transactions, killed at random together with the nodes that it needs.

`PENSTOCK_TEST_BROKER=apache-kafka` runs the same tests on nodes of Apache Kafka: that is how the tests are tried.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from missing_tools import unavailable
from replicated_cluster import DEADLINE_S
from waiting import wait_for

from penstock.bench.target import Cluster
from penstock.broker.coordination.key_partitions import partition_of_key
from penstock.chaos.checkers.copies import Attempt
from penstock.chaos.workloads.transactional_copier import FAILED, read_attempts
from penstock.client import clock
from penstock.client.client_log import SILENT_LOGGER
from penstock.client.cluster_metadata import ask_metadata
from penstock.local.apache_kafka.cluster import KafkaCluster
from penstock.local.apache_kafka.jars import JarsUnavailableError, KafkaJars, install
from penstock.local.apache_kafka.tools import MAIN_CLASSES
from penstock.local.cluster import LocalCluster
from penstock.local.readiness import wait_ready

NODES: Final = 3
PARTITIONS: Final = 3
SOURCE: Final = "in"
TARGET: Final = "out"
GROUP: Final = "copier"
TRANSACTIONAL_ID: Final = "copier"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
OFFSETS_TOPIC: Final = "__consumer_offsets"
# What the tests need of a cluster: the fewer internal partitions, the sooner three JVMs have them.
PROPERTIES: Final[Mapping[str, str]] = {
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    "group.initial.rebalance.delay.ms": "0",
}
OUTPUTS_BETWEEN_KILLS: Final = 150
START_TIMEOUT_S: Final = 120.0
TRANSACTION_TIMEOUT_MS: Final = 5_000
# A Java application starts, joins its group and restores its state, on a machine that others use too.
WAIT_S: Final = 300.0
# librdkafka's send_offsets_to_transaction waits for ever, whatever its timeout, for a group coordinator that has gone
# from the metadata (its issues 5456 and 5511). The test kills such an application.
HANG_S: Final = 20.0


@contextmanager
def three_nodes(folder: Path, properties: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """Running. `properties` are told to brokers beside `PROPERTIES`."""
    with _cluster(folder, {**PROPERTIES, **(properties or {})}) as cluster:
        yield cluster


def _cluster(folder: Path, properties: Mapping[str, str]) -> LocalCluster | KafkaCluster:
    if os.environ.get("PENSTOCK_TEST_BROKER") != "apache-kafka":
        return LocalCluster(folder, node_count=NODES, properties=properties)
    try:
        jars = install()
    except JarsUnavailableError as missing:
        unavailable(str(missing))
    return KafkaCluster(jars, folder, node_count=NODES, properties=properties, heap_mib=400)


class Application(Protocol):
    """What is killed. It begins where the one before it had come to, in transactions."""

    @property
    def group(self) -> str: ...

    @property
    def transactional_id(self) -> str: ...

    @property
    def hang_s(self) -> float | None:
        """An application that gets no further for so long hangs; None: it never does."""

    def start(self) -> None: ...

    @property
    def is_running(self) -> bool: ...

    def kill(self) -> None:
        """SIGKILL."""

    def stop(self) -> None:
        """SIGTERM, and wait."""


class ProcessApplication:
    """One process at a time; each life has a command of its own."""

    group = GROUP
    hang_s: float | None = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lives = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def transactional_id(self) -> str:
        return TRANSACTIONAL_ID

    def command(self) -> Sequence[str]:
        """Of the life that begins now."""
        raise NotImplementedError

    def start(self) -> None:
        self.lives += 1
        with (self.folder / f"application-{self.lives}.log").open("wb") as log:
            self._process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def log_tail(self) -> str:
        """What this life has said at last."""
        return (self.folder / f"application-{self.lives}.log").read_text()[-3000:]

    def kill(self) -> None:
        assert self._process is not None, "it was started"
        self._process.kill()
        self._process.wait(DEADLINE_S)

    def stop(self) -> None:
        if self._process is not None and self.is_running:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(DEADLINE_S)
            except subprocess.TimeoutExpired:
                self.kill()
                raise


class PythonCopier(ProcessApplication):
    """`penstock.chaos.workloads.transactional_copier`."""

    hang_s = HANG_S

    def __init__(self, folder: Path, bootstrap: str, generator: random.Random) -> None:
        super().__init__(folder)
        self._bootstrap = bootstrap
        self._generator = generator

    def command(self) -> Sequence[str]:
        options = {
            "bootstrap": self._bootstrap,
            "source": SOURCE,
            "target": TARGET,
            "target-partitions": PARTITIONS,
            "transactional-id": TRANSACTIONAL_ID,
            "group": GROUP,
            "history": self._history(self.lives),
            "life": self.lives,
            "seed": self._generator.randrange(2**31),
        }
        named = [f"--{name}={value}" for name, value in options.items()]
        return [sys.executable, "-P", "-m", "penstock.chaos.workloads.transactional_copier", *named]

    def attempts(self) -> dict[str, Attempt]:
        """Of all lives."""
        return read_attempts(line for life in self._lives() for line in self._lines(life))

    def failures(self) -> list[str]:
        """What ended lives before their time."""
        return [line for life in self._lives() for line in self._lines(life) if line.startswith(FAILED)]

    def _lives(self) -> range:
        return range(1, self.lives + 1)

    def _lines(self, life: int) -> list[str]:
        history = self._history(life)
        return history.read_text().splitlines(keepends=True) if history.exists() else []

    def _history(self, life: int) -> Path:
        return self.folder / f"history-{life}.txt"


class JavaCopier(ProcessApplication):
    """Apache Kafka's TransactionalMessageCopier. It ends when it has copied what was there when it began."""

    def __init__(self, folder: Path, bootstrap: str, jars: KafkaJars) -> None:
        super().__init__(folder)
        self._bootstrap = bootstrap
        self._jars = jars

    def command(self) -> Sequence[str]:
        return self._jars.command(
            MAIN_CLASSES["transactional-copier"],
            *("--broker-list", self._bootstrap, "--input-topic", SOURCE, "--input-partition", "0"),
            *("--output-topic", TARGET, "--consumer-group", GROUP, "--transactional-id", TRANSACTIONAL_ID),
            *("--transaction-size", "50", "--enable-random-aborts", "--use-group-metadata"),
            # It asks for its offsets before it ends what the one before left open: they are unstable until that times
            # out (KIP-447).
            *("--transaction-timeout", str(TRANSACTION_TIMEOUT_MS)),
        )


class Hunt:
    """Kills the application, its transaction coordinator and leaders of its partitions, as the generator says."""

    def __init__(
        self,
        cluster: Cluster,
        application: Application,
        generator: random.Random,
        *,
        progress: Callable[[], int],
        topics: Sequence[str] = (SOURCE, TARGET),
        partitions: int = PARTITIONS,
        step: int = OUTPUTS_BETWEEN_KILLS,
    ) -> None:
        """`progress` rises while the application gets on; between kills it rises by up to `step`."""
        self.killed: Counter[str] = Counter()
        self.goal = 0
        """The progress that is waited for."""
        self._cluster = cluster
        self._application = application
        self._generator = generator
        self._progress = progress
        self._places = [(topic, number) for topic in topics for number in range(partitions)]
        self._step = step
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap}, logger=SILENT_LOGGER)

    def run(self, kills: int) -> None:
        self._wait_progress()
        for number in range(kills):
            # Each at least once, if there are so many.
            kinds = ("application", "coordinator", "leader", "both")
            kind = kinds[number] if number < len(kinds) else self._generator.choice(kinds)
            self.killed[kind] += 1
            if kind == "application":
                self._application.kill()
                self._application.start()
                self._wait_progress()
                continue
            node = self._cluster.nodes[self._leader() if kind == "leader" else self._coordinator()]
            node.kill()
            if kind == "both":
                self._application.kill()
                self._application.start()
            # It comes back at once, or when two nodes have done without it.
            if self._generator.random() < 0.7:
                self._wait_progress()
            node.start()
            wait_ready((node,), timeout_s=START_TIMEOUT_S)
            self._wait_progress()
            wait_for(self._are_in_sync, "all replicas in sync")

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Look after the application until the condition holds: start it when it ends, and kill it when it hangs."""
        last, last_s, hang_s = self._progress(), clock.monotonic_s(), self._application.hang_s

        def holds() -> bool:
            nonlocal last, last_s
            now = self._progress()
            if now > last:
                last, last_s = now, clock.monotonic_s()
            elif hang_s is not None and clock.monotonic_s() > last_s + hang_s:
                self.killed["application that hung"] += 1
                self._application.kill()
                last_s = clock.monotonic_s()
            if not self._application.is_running:
                # It was killed, came to its end, or to an error that it cannot live with.
                self._application.start()
            return condition()

        assert clock.wait_until(holds, timeout_s=WAIT_S, interval_s=0.02), f"not within {WAIT_S:g} s: {what}"

    def _wait_progress(self) -> None:
        self.goal = self._progress() + self._generator.randrange(1, self._step)
        self.wait(lambda: self._progress() >= self.goal, "the application gets on")

    def _leader(self) -> int:
        """Of a partition that the application reads, writes or commits to."""
        topic, partition = self._generator.choice([*self._places, (OFFSETS_TOPIC, None)])
        return self._leader_of(topic, self._application.group if partition is None else partition)

    def _coordinator(self) -> int:
        return self._leader_of(TRANSACTIONS_TOPIC, self._application.transactional_id)

    def _leader_of(self, topic: str, place: int | str) -> int:
        """Of a partition, or of the one that keeps this key."""
        found: list[int] = []

        def is_led() -> bool:
            partitions = ask_metadata(self._admin, topic).topics[topic].partitions
            number = place if isinstance(place, int) else partition_of_key(place, len(partitions))
            found[:] = [partitions[number].leader]
            return found[0] >= 0

        wait_for(is_led, f"{topic} is led")
        return found[0]

    def _are_in_sync(self) -> bool:
        topics = ask_metadata(self._admin).topics.values()
        return all(len(one.isrs) == len(one.replicas) for topic in topics for one in topic.partitions.values())


def create_topics(bootstrap: str, *names: str, partitions: int = PARTITIONS) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT_LOGGER)
    topics = [
        NewTopic(name, partitions, NODES, config={"min.insync.replicas": "2", "retention.ms": "-1"}) for name in names
    ]
    for future in admin.create_topics(topics).values():
        future.result(DEADLINE_S)


def end_offsets(bootstrap: str, topic: str, partitions: int, *, is_committed: bool) -> list[int]:
    """By partition: the last stable offsets, or the high watermarks."""
    admin = AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT_LOGGER)
    level = IsolationLevel.READ_COMMITTED if is_committed else IsolationLevel.READ_UNCOMMITTED
    wanted = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)}
    answers = admin.list_offsets(wanted, isolation_level=level, request_timeout=DEADLINE_S)
    return [int(answers[TopicPartition(topic, number)].result(DEADLINE_S).offset) for number in range(partitions)]


def committed_offsets(bootstrap: str, group: str, topic: str, partitions: int) -> list[int]:
    """What the group has committed, by partition; -1001 for nothing."""
    admin = AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT_LOGGER)
    wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, number) for number in range(partitions)])
    try:
        (answer,) = admin.list_consumer_group_offsets([wanted], require_stable=True).values()
        return [int(one.offset) for one in answer.result(DEADLINE_S).topic_partitions]
    except KafkaException:
        # The coordinator has just been lost.
        return []
