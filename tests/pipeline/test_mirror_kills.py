"""A mirror copies each record once, whatever is killed or cut off meanwhile.

Killed are driver and JVM together at spread points, leaders of the source's and the sink's partitions, and the
coordinator of the writers' transactions; a node of the sink is cut off from the other nodes and from clients, and comes
back. `PENSTOCK_TEST_KILLS` is how often (2 here; more in a soak).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Final

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from copied_records import differences, records_of
from missing_tools import need_toxiproxy
from pipeline_process import QUICK_SOURCE, PipelineProcess, pipeline_process
from pipeline_topics import Sent, create_topics, drain, produce, produce_aborted
from replicated_cluster import draw_generator, say
from waiting import wait_for

from penstock.broker.coordination.key_partitions import partition_of_key
from penstock.chaos.links.link import links_of
from penstock.chaos.links.proxied_cluster import ProxiedCluster
from penstock.client.cluster_metadata import ask_metadata
from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(7200)]

KILLS: Final = int(os.environ.get("PENSTOCK_TEST_KILLS", "2"))
TOPIC: Final = "orders"
PARTITIONS: Final = 3
RECORDS: Final = 1_000 + 1_000 * KILLS
BATCH: Final = 250
T0_MS: Final = 1_700_000_000_000
DEADLINE_S: Final = 120.0
PROPERTIES: Final = {"offsets.topic.num.partitions": "5", "transaction.state.log.num.partitions": "5"}


@pytest.fixture
def generator() -> Random:
    return draw_generator(__file__)


@pytest.fixture
def source(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "source", node_count=3, properties=PROPERTIES) as running:
        yield running


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "sink", node_count=3, properties=PROPERTIES) as running:
        yield running


def test_each_record_is_copied_once_through_kills(
    source: LocalCluster, sink: LocalCluster, tmp_path: Path, generator: Random
) -> None:
    fill(source.bootstrap, generator)

    def kill_driver(life: Life) -> None:
        life.restart()

    def kill_nodes(*places: tuple[LocalCluster, str, int]) -> Callable[[Life], None]:
        def kill(life: Life) -> None:
            nodes = [(cluster, leader(cluster, topic, partition)) for cluster, topic, partition in places]
            for cluster, node in nodes:
                cluster.kill_node(node)
            life.wait_progress(2)
            for cluster, node in nodes:
                cluster.start_node(node)

        return kill

    coordinator = partition_of_key(f"penstock-mirror.mirror.source.{TOPIC}.0", 5)
    faults = {
        "driver": kill_driver,
        "coordinator, and a leader of the source": kill_nodes(
            (sink, "__transaction_state", coordinator), (source, TOPIC, 1)
        ),
        "leader of the sink": kill_nodes((sink, TOPIC, 0)),
        "leader of the offset map": kill_nodes((sink, "penstock-mirror-offsets.mirror", 3)),
    }
    with Life(tmp_path / "driver", source.bootstrap, sink.bootstrap) as life:
        for number in range(KILLS):
            names = [*faults]
            name = names[number] if number < len(names) else generator.choice(names)
            say("fault:", name)
            life.wait_progress(generator.randrange(1, 3))
            faults[name](life)
        life.wait_end()
    assert_copied(source.bootstrap, sink.bootstrap)


@pytest.mark.skipif(KILLS < 4, reason="with PENSTOCK_TEST_KILLS of 4 and more")
def test_each_record_is_copied_once_through_a_partition_of_the_network(
    source: LocalCluster, tmp_path: Path, generator: Random
) -> None:
    need_toxiproxy()
    fill(source.bootstrap, generator)
    with ProxiedCluster(tmp_path / "proxied", client_slots=1, properties=PROPERTIES) as sink:
        with Life(tmp_path / "driver", source.bootstrap, sink.bootstrap(0)) as life:
            for number in range(KILLS):
                life.wait_progress(1)
                node = generator.choice([*sink.nodes])
                # From the other nodes alone at first: clients still reach it, and it takes itself for a leader.
                links = [
                    link
                    for link in links_of(str(node), sink.links)
                    if number % 2 or link.source in map(str, sink.nodes)
                ]
                say("cut:", *links)
                sink.cut(links)
                if number % 3 == 2:
                    life.restart()
                wait_for(lambda: node not in led(sink), "others lead", timeout_s=DEADLINE_S)  # noqa: B023 - waited for here
                # Whether the copy gets on before is up to the node that its client asks.
                sink.heal(links)
                life.wait_progress(1)
            life.wait_end()
        assert_copied(source.bootstrap, sink.bootstrap(0))


class Life:
    """The mirror, started again after each kill."""

    def __init__(self, folder: Path, source: str, sink: str) -> None:
        self._folder = folder
        self._source = source
        self._sink = sink

    def __enter__(self) -> Life:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._context.__exit__(None, None, None)

    def restart(self) -> None:
        """SIGKILL of driver and JVM, as soon as the sink has something that the checkpoint may not have."""
        ends = self._ends()
        wait_for(lambda: self._ends() != ends, "records are written", timeout_s=DEADLINE_S)
        self.process.kill()
        self._start()

    def wait_progress(self, batches: int) -> None:
        self.process.wait_batches(self.batches + batches)
        self.batches += batches

    def wait_end(self) -> None:
        self.process.wait()

    batches = 0

    def _start(self) -> None:
        settings = (
            f"topics={TOPIC}",
            f"sink_bootstrap={self._sink}",
            f"max_offsets_per_trigger={BATCH}",
            "transaction_bytes=20000",
            *(f"{name}={value}" for name, value in QUICK_SOURCE.items()),
        )
        self._context = pipeline_process(
            "mirror", bootstrap=self._source, folder=self._folder, settings=settings, options=("--available-now",)
        )
        self.process: PipelineProcess = self._context.__enter__()

    def _ends(self) -> list[int]:
        admin = AdminClient({"bootstrap.servers": self._sink})
        wanted = {TopicPartition(TOPIC, number): OffsetSpec.latest() for number in range(PARTITIONS)}
        return [one.result(DEADLINE_S).offset for one in admin.list_offsets(wanted).values()]


def fill(bootstrap: str, generator: Random) -> None:
    """With aborted transactions between, and everything that a copy can get wrong."""
    create_topics(bootstrap, TOPIC, partition_count=PARTITIONS, configs={"min.insync.replicas": "2"})
    parts = 4
    for part in range(parts):
        numbers = range(part * RECORDS // parts, (part + 1) * RECORDS // parts)
        produce(bootstrap, TOPIC, map(sent, numbers))
        aborted = [sent(number) for number in range(generator.randrange(1, 50))]
        produce_aborted(bootstrap, TOPIC, aborted, transactional_id=f"aborting-{part}")


def sent(number: int) -> Sent:
    return Sent(
        key=None if number % 5 == 0 else b"k%d" % (number % 50),
        value=None if number % 11 == 0 else b"%d " % number + b"x" * (number % 300),
        partition=number % PARTITIONS,
        timestamp_ms=T0_MS + number,
        headers=((), (("number", b"%d" % number), ("none", None)))[number % 2],
    )


def assert_copied(source: str, sink: str) -> None:
    wanted = records_of(drain(source, TOPIC, count=RECORDS))
    assert differences(wanted, records_of(drain(sink, TOPIC))) == []


def led(sink: ProxiedCluster) -> list[int | None]:
    """Leaders of the topic's partitions, as the quorum has them."""
    return [sink.leader(TOPIC, number) for number in range(PARTITIONS)]


def leader(cluster: LocalCluster, topic: str, partition: int) -> int:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    return wait_for(lambda: ask_metadata(admin, topic).topics[topic].partitions[partition].leader, "it is led")
