"""`lake` and `cdc` write each record once, whichever process is killed: driver and JVM, leader, coordinator.

In a soak nodes of the source are cut off, too, and `cdc`, to which batches come from the same source as to `lake`,
takes part. `PENSTOCK_TEST_KILLS` is how often the driver is killed (1; more in a soak), at points spread over the run;
before each time a leader of the source and the coordinator of its transactions are.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from confluent_kafka import Message
from faulty_source import FaultySource
from missing_tools import need_toxiproxy
from pipeline_here import run_here
from pipeline_process import QUICK_SOURCE, committed_batches, pipeline_process
from pipeline_topics import Sent, create_topics, drain, produce, produce_aborted
from soak import soak_only
from table_rows import judge, naive_places, spark_places
from waiting import wait_for

from penstock.chaos.links.link import links_of
from penstock.chaos.links.proxied_cluster import ProxiedCluster
from penstock.local.cluster import LocalCluster
from penstock.pipeline.tables.parquet_table import load_state, read_table
from penstock.pipeline.tables.table_folder import TableFolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.timeout(7200)]

KILLS: Final = int(os.environ.get("PENSTOCK_TEST_KILLS", "1"))
PARTITIONS: Final = 4
BATCH: Final = 250
CUTS: Final = 4
RECORDS_OF_A_WRITE: Final = 500
KEYS: Final = 200


@pytest.fixture(scope="module")
def own_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Its nodes are killed, so it is nothing for others."""
    with LocalCluster(tmp_path_factory.mktemp("killed"), node_count=3) as running:
        yield running


@pytest.mark.parametrize("job", ["lake", pytest.param("cdc", marks=soak_only)])
def test_every_record_is_in_the_table_once(
    job: str, own_cluster: LocalCluster, spark: SparkSession, tmp_path: Path
) -> None:
    topic = f"killed-{job}"
    create_topics(own_cluster.bootstrap, topic, partition_count=PARTITIONS)
    source = FaultySource(own_cluster, topic)
    table = tmp_path / "table"
    options = options_of(job, topic, table) | QUICK_SOURCE
    settings = tuple(f"{key}={value}" for key, value in options.items())
    commits = tmp_path / "checkpoints" / f"{job}-v1" / "main" / "commits"
    written = 0
    for life in range(KILLS):
        before = committed_batches(commits)
        with pipeline_process(job, bootstrap=own_cluster.bootstrap, folder=tmp_path, settings=settings) as process:
            source.write(records(written, job))
            written += 1
            process.wait_batches(before + 1)
            node = source.kill_leader(life % PARTITIONS)
            source.write(records(written, job))
            process.wait_batches(before + 3)
            source.restart(node)
            # The transaction that is open when its coordinator dies is committed by the next one.
            with source.writing(records(written + 1, job)):
                node = source.kill_coordinator()
            written += 2
            process.wait_batches(before + 5 + life % 3)
            process.kill()
            source.restart(node)
    source.write(records(written, job))
    told = {**options, "bootstrap": own_cluster.bootstrap}
    killed_at = committed_batches(commits)

    finish(spark, job, tmp_path / "checkpoints", told)

    committed = drain(own_cluster.bootstrap, topic, count=(written + 1) * RECORDS_OF_A_WRITE)
    assert source.aborted_count == len(committed)
    assert committed_batches(commits) > killed_at > 0
    CHECKS[job](spark, table, committed)
    # A new checkpoint begins at the beginning, and adds nothing.
    version = load_state(TableFolder(spark, str(table))).version
    finish(spark, job, tmp_path / "another-checkpoint", told)
    assert load_state(TableFolder(spark, str(table))).version == version


@soak_only
@pytest.mark.parametrize("job", ["lake", "cdc"])
def test_every_record_is_in_the_table_once_when_nodes_are_cut_off(
    job: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Links of a leader of the topic fall silent until others lead: those to other nodes alone, or to clients too."""
    need_toxiproxy()
    topic, table = "cut-off", tmp_path / "table"
    settings = tuple(f"{key}={value}" for key, value in options_of(job, topic, table).items())
    commits = tmp_path / "checkpoints" / f"{job}-v1" / "main" / "commits"
    with ProxiedCluster(tmp_path / "proxied", client_slots=1) as source:
        bootstrap = source.bootstrap(0)
        create_topics(bootstrap, topic, partition_count=PARTITIONS)
        with pipeline_process(job, bootstrap=bootstrap, folder=tmp_path, settings=settings) as process:
            for number in range(CUTS):
                produce(bootstrap, topic, records(2 * number, job))
                produce_aborted(bootstrap, topic, records(number, job), transactional_id="aborting")
                produce(bootstrap, topic, records(2 * number + 1, job))
                before = committed_batches(commits)
                process.wait_batches(before + 1)
                node = source.leader(topic, number % PARTITIONS)
                assert node is not None
                nodes = {str(one) for one in source.nodes}
                links = [link for link in links_of(str(node), source.links) if number % 2 or link.source in nodes]
                source.cut(links)
                wait_for(lambda: others_lead(source, topic, node), "others lead")  # noqa: B023 - waited for here
                # Whether the job gets on before is up to the node that its client asks.
                source.heal(links)
                process.wait_batches(before + 3)
            process.terminate()
            process.wait()
        finish(spark, job, tmp_path / "checkpoints", {**options_of(job, topic, table), "bootstrap": bootstrap})
        committed = drain(bootstrap, topic, count=2 * CUTS * RECORDS_OF_A_WRITE)
    CHECKS[job](spark, table, committed)


def options_of(job: str, topic: str, table: Path) -> dict[str, str]:
    return {
        "topics": topic,
        "max_offsets_per_trigger": str(BATCH),
        "table.location": str(table),
        "value.format": "json",
        "value.schema": "number BIGINT",
        **({"table.compact_after_files": "6"} if job == "lake" else {"table.buckets": "4"}),
    }


def others_lead(cluster: ProxiedCluster, topic: str, node: int) -> bool:
    leaders = [cluster.leader(topic, partition) for partition in range(PARTITIONS)]
    return node not in leaders and None not in leaders


def records(write: int, job: str) -> list[Sent]:
    """A key's records are all over the run; for `cdc` one in six is a tombstone."""
    numbers = range(write * RECORDS_OF_A_WRITE, (write + 1) * RECORDS_OF_A_WRITE)
    return [
        Sent(
            key=f"key-{number * 7919 % KEYS}",
            value=None if job == "cdc" and number % 6 == 0 else f'{{"number":{number}}}',
            timestamp_ms=1_767_225_600_000 + number * 60_000,
        )
        for number in numbers
    ]


def finish(spark: SparkSession, job: str, checkpoint: Path, options: dict[str, str]) -> None:
    """The next life, in this process, which reads what is there and ends."""
    told = {**options, "checkpoint": str(checkpoint), "available_now": "true", "max_offsets_per_trigger": "1000"}
    run_here(spark, job, told)


def check_lake(spark: SparkSession, table: Path, committed: list[Message]) -> None:
    expected = {place_of(message) for message in committed}
    assert len(expected) == len(committed)
    assert judge(naive_places(table), expected).is_exact
    assert judge(spark_places(read_table(spark, str(table))), expected).is_exact
    found = spark.read.parquet(str(table))
    assert judge(spark_places(found), expected).is_exact
    values = Counter((bytes(row.key), row.value.number) for row in found.collect())
    assert values == Counter((message.key(), number_of(message)) for message in committed)
    assert not judge(naive_places(table), {*expected, ("missing", 0, 0)}).is_exact


def check_cdc(spark: SparkSession, table: Path, committed: list[Message]) -> None:
    rows = {message.key(): number_of(message) for message in committed}
    expected = {key: number for key, number in rows.items() if number is not None}
    assert 0 < len(expected) < len(rows)
    for frame in (read_table(spark, str(table)), spark.read.parquet(str(table))):
        found = [(bytes(row.key), row.value.number) for row in frame.collect()]
        assert len(found) == len(expected)
        assert dict(found) == expected


CHECKS: Final = {"lake": check_lake, "cdc": check_cdc}


def place_of(message: Message) -> tuple[str, int, int]:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    return topic, partition, offset


def number_of(message: Message) -> int | None:
    value = message.value()
    return None if value is None else int(bytes(value)[len('{"number":') : -1])
