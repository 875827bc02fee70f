"""The race of EndTxn (KAFKA-17754): transactions are torn under version 1 of the protocol, whole under 2 (KIP-890).

On Penstock and on Apache Kafka. The history is judged as any queue's: what was read of a transaction that its producer
aborted is G1a.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient, NewTopic

from penstock import cli
from penstock.chaos.checkers.queue.checker import check_queue
from penstock.chaos.histories.client_history import ClientHistory, merged
from penstock.chaos.histories.operation import Header, History
from penstock.chaos.workloads.end_txn_race import Race
from penstock.client import clock
from penstock.client.client_log import SILENT_LOGGER
from penstock.local.apache_kafka.cluster import KafkaCluster
from penstock.local.apache_kafka.jars import KafkaJars
from penstock.local.apache_kafka.tools import run_tool
from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

ROUNDS: Final = 2
TIMEOUT_S: Final = 60.0


def run_race(bootstrap: str, folder: Path, *, version: int) -> tuple[int, History]:
    """How many requests that came too late were accepted, and what both clients saw."""
    folder.mkdir()
    topic = f"race-{version}"
    admin = AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT_LOGGER)
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(TIMEOUT_S)
    files = folder / "writer.jsonl", folder / "reader.jsonl"
    start_ns = clock.monotonic_ns()
    with (
        ClientHistory(files[0], process=0, stride=2, start_ns=start_ns) as writer,
        ClientHistory(files[1], process=1, stride=2, start_ns=start_ns) as reader,
    ):
        race = Race(bootstrap, topic, version=version, writer=writer, reader=reader)
        asyncio.run(race.run(ROUNDS))
    return race.accepted_count, History(Header("queue-transactions", transactions=True), merged(files))


def check_torn(accepted: int, history: History) -> None:
    """In each round the reader sees the half of an aborted transaction that a late request has committed."""
    assert accepted == ROUNDS
    torn = [finding for finding in check_queue(history).findings if finding.type == "G1a" and not finding.allowed]
    assert len(torn) == ROUNDS, torn
    assert not read_of_other_half(history), "the other half was aborted"


def check_whole(accepted: int, history: History) -> None:
    assert accepted == 0
    assert not [finding for finding in check_queue(history).findings if not finding.allowed]


def read_of_other_half(history: History) -> set[int]:
    """Values that were read of the second key, to which aborted transactions send only."""
    return {
        value
        for pair in history.pairs()
        if pair.invocation.f == "poll" and pair.outcome == "ok"
        for _, polled in pair.value
        for key, records in polled.items()
        if key.endswith("-1")
        for _, value in records
    }


def test_a_late_end_of_a_transaction_is_refused_under_version_2_and_tears_the_next_one_under_1(tmp_path: Path) -> None:
    with LocalCluster(tmp_path / "cluster") as node:
        check_whole(*run_race(node.bootstrap, tmp_path / "2", version=2))
        arguments = ["features", "downgrade", "transaction.version=1", "--bootstrap", node.bootstrap]
        lowered = CliRunner().invoke(cli.main, arguments)
        assert lowered.exit_code == 0, lowered.output
        check_torn(*run_race(node.bootstrap, tmp_path / "1", version=1))


def test_apache_kafka_refuses_a_late_end_under_version_2_and_tears_the_next_one_under_1(
    kafka_jars: KafkaJars, tmp_path: Path
) -> None:
    with KafkaCluster(kafka_jars, tmp_path / "kafka") as kafka:
        check_whole(*run_race(kafka.bootstrap, tmp_path / "2", version=2))
        arguments = ("--bootstrap-server", kafka.bootstrap, "downgrade", "--feature", "transaction.version=1")
        lowered = run_tool(kafka_jars, "features", *arguments)
        assert lowered.exit_code == 0, lowered.output
        check_torn(*run_race(kafka.bootstrap, tmp_path / "1", version=1))
