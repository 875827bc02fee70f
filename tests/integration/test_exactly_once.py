"""Consume, transform, produce: every input is copied exactly once, whichever process is killed meanwhile.

The application, the node that coordinates its transactions and leaders of its partitions are killed at random.
`PENSTOCK_TEST_KILLS` is how often (4; more in a soak). `PENSTOCK_TEST_BROKER=apache-kafka` does it to Apache Kafka.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final, TypeVar

import pytest
from exactly_once import (
    GROUP,
    PARTITIONS,
    SOURCE,
    TARGET,
    Hunt,
    JavaCopier,
    ProcessApplication,
    PythonCopier,
    committed_offsets,
    create_topics,
    end_offsets,
    three_nodes,
)
from replicated_cluster import DEADLINE_S, draw_generator, say
from waiting import wait_for

from penstock.chaos.checkers.copies import Output, Place, judge
from penstock.chaos.checkers.records import Stored
from penstock.chaos.workloads.committed_reader import CommittedReader
from penstock.chaos.workloads.numbered_records import read_all
from penstock.chaos.workloads.steady_records import SteadyRecords
from penstock.chaos.workloads.transactional_copier import parse_output
from penstock.local.apache_kafka.jars import KafkaJars

pytestmark = [pytest.mark.integration, pytest.mark.timeout(7200)]

KILLS: Final = int(os.environ.get("PENSTOCK_TEST_KILLS", "4"))
# Faster than the application is killed, slower than it copies.
INTERVAL_S: Final = 0.01

A = TypeVar("A", bound=ProcessApplication)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """By partition, what is stored in the source, and what a read_committed reader finds in the target."""

    source: list[list[Stored]]
    target: list[list[Stored]]

    @property
    def inputs(self) -> list[Place]:
        return [Place(number, one.offset) for number, records in enumerate(self.source) for one in records]


def test_python_application_copies_each_input_once(tmp_path: Path) -> None:
    application, read = _hunt(tmp_path, PythonCopier, partitions=PARTITIONS)
    attempts = application.attempts()
    outputs = [parse_output(number, record) for number, records in enumerate(read.target) for record in records]
    findings = judge(read.inputs, outputs, attempts)
    assert not findings, "\n".join(map(str, findings[:20]))
    outcomes = [attempt.is_committed for attempt in attempts.values()]
    assert outcomes.count(False) > 0, "an abort that did not happen shows nothing"
    for failure in application.failures():
        say("a life of the application ended:", failure)
    say(outcomes.count(True), "committed,", outcomes.count(False), "aborted,", outcomes.count(None), "unknown")


def test_java_application_copies_each_input_once(tmp_path: Path, kafka_jars: KafkaJars) -> None:
    """Apache Kafka's own TransactionalMessageCopier: it copies values, one partition, and aborts a third at random."""
    _, read = _hunt(tmp_path, lambda folder, bootstrap, _: JavaCopier(folder, bootstrap, kafka_jars), partitions=1)
    places = {one.value: Place(number, one.offset) for number, records in enumerate(read.source) for one in records}
    nowhere = Place(-1, -1)
    outputs = [
        Output(Place(number, one.offset), places.get(one.value, nowhere), None)
        for number, records in enumerate(read.target)
        for one in records
    ]
    findings = judge(read.inputs, outputs)
    assert not findings, "\n".join(map(str, findings[:20]))


def _hunt(tmp_path: Path, start: Callable[[Path, str, Random], A], *, partitions: int) -> tuple[A, Read]:
    """The application, ended when it had read all, and what it left behind."""
    generator = draw_generator(__file__)
    with three_nodes(tmp_path / "cluster") as cluster:
        bootstrap = cluster.bootstrap
        create_topics(bootstrap, SOURCE, TARGET, partitions=partitions)
        application = start(tmp_path, bootstrap, generator)
        with CommittedReader(bootstrap, TARGET, partitions=partitions) as reader:
            hunt = Hunt(cluster, application, generator, progress=lambda: reader.count, partitions=partitions)
            try:
                with SteadyRecords(bootstrap, SOURCE, partitions=partitions, interval_s=INTERVAL_S) as writer:
                    application.start()
                    hunt.run(KILLS)
                ends = end_offsets(bootstrap, SOURCE, partitions, is_committed=False)
                hunt.wait(
                    lambda: committed_offsets(bootstrap, GROUP, SOURCE, partitions) == ends, "all inputs are read"
                )
            finally:
                application.stop()
            target = [read_all(bootstrap, TARGET, number, timeout_s=DEADLINE_S) for number in range(partitions)]
            wait_for(lambda: reader.count >= sum(map(len, target)), "the reader has read all")
        source = [read_all(bootstrap, SOURCE, number, timeout_s=DEADLINE_S) for number in range(partitions)]
        assert not writer.errors, writer.errors[0]
        assert not writer.judge(bootstrap, timeout_s=DEADLINE_S)
        # No transaction is open any more, and a reader that read all the time has read what is there now.
        stable = end_offsets(bootstrap, TARGET, partitions, is_committed=True)
        assert stable == end_offsets(bootstrap, TARGET, partitions, is_committed=False)
        assert not reader.errors, reader.errors[0]
        assert reader.read == target
    say("killed:", dict(hunt.killed), "with", sum(map(len, source)), "inputs")
    return application, Read(source=source, target=target)
