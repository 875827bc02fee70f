"""The progress of real queries: what Prometheus scrapes, what a group has committed, what a person reads."""

from __future__ import annotations

import io
import re
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from exposed_metrics import Samples
from pipeline_topics import Sent, create_topics, produce
from prometheus_server import BOARDS, board_queries, prometheus_server
from rich.console import Console
from waiting import wait_for

from penstock.pipeline.progress.progress import Progress, ProgressConfig

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

ROWS = 300
PARTITIONS = 2


class FirstLife:
    """Batches that are carried out, and the number of the one that fails once."""

    def __init__(self, fails_at: int) -> None:
        self.fails_at: int | None = fails_at
        self.done: list[int] = []

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        if batch_id == self.fails_at:
            self.fails_at = None
            raise RuntimeError("the planted end of the first life")
        assert rows.count()
        self.done.append(batch_id)


def topic_with_rows(bootstrap: str, name: str) -> None:
    create_topics(bootstrap, name, partition_count=PARTITIONS)
    produce(bootstrap, name, (Sent(value=str(number), partition=number % PARTITIONS) for number in range(ROWS)))


def records(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    """In batches of 100."""
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "100")
        .load()
    )


def start(spark: SparkSession, bootstrap: str, topic: str, folder: Path, batch: FirstLife) -> StreamingQuery:
    """Three batches."""
    writer = (
        records(spark, bootstrap, topic)
        .writeStream.queryName(topic)
        .foreachBatch(batch)
        .option("checkpointLocation", str(folder))
    )
    return writer.trigger(availableNow=True).start()


def counted(rows: DataFrame, _batch_id: int) -> None:
    rows.count()


def committed(bootstrap: str, group: str) -> dict[int, int]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(30)
    return {one.partition: one.offset for one in found.topic_partitions or ()}


def scraped(progress: Progress) -> Samples:
    with urllib.request.urlopen(f"http://127.0.0.1:{progress.metrics_port}/metrics", timeout=30) as answer:
        return Samples(answer.read().decode())


def test_progress_outlives_a_failure_and_a_restart_of_the_query(
    spark: SparkSession, bootstrap: str, tmp_path: Path
) -> None:
    topic_with_rows(bootstrap, "watched")
    batch = FirstLife(fails_at=2)
    output = io.StringIO()
    config = ProgressConfig(
        pipeline="lake", metrics_port=0, group="watchers", group_properties={"bootstrap.servers": bootstrap}
    )
    with Progress(config, console=Console(file=output, width=300)) as progress:
        progress.attach(spark)
        with pytest.raises(Exception, match="the planted end of the first life"):
            start(spark, bootstrap, "watched", tmp_path / "checkpoint", batch).awaitTermination()
        wait_for(lambda: not progress.table.running(), what="the end of the first run")
        labels = {"pipeline": "lake", "query": "watched"}
        metrics = scraped(progress)
        assert metrics.value("penstock_pipeline_running", **labels) == 0
        assert metrics.value("penstock_pipeline_failures_total", **labels) == 1
        assert metrics.value("penstock_pipeline_batches_total", **labels) == 2
        assert metrics.value("penstock_pipeline_topic_lag_offsets", topic="watched", **labels) == 100
        wait_for(
            lambda: sum(committed(bootstrap, "watchers").values()) == 200,
            what="what is committed, no more",
        )
        start(spark, bootstrap, "watched", tmp_path / "checkpoint", batch).awaitTermination()
        wait_for(lambda: not progress.table.running(), what="the end of the second run")
        metrics = scraped(progress)
    assert batch.done == [0, 1, 2]
    assert metrics.value("penstock_pipeline_starts_total", **labels) == 2
    assert metrics.value("penstock_pipeline_batches_total", **labels) == 3
    assert metrics.value("penstock_pipeline_input_rows_total", **labels) == ROWS
    for partition in range(PARTITIONS):
        place = {**labels, "topic": "watched", "partition": str(partition)}
        assert metrics.value("penstock_pipeline_offset", **place) == ROWS / PARTITIONS
        assert metrics.value("penstock_pipeline_lag_offsets", **place) == 0
    assert committed(bootstrap, "watchers") == dict.fromkeys(range(PARTITIONS), ROWS // PARTITIONS)
    ends = [line for line in output.getvalue().splitlines() if "ended" in line]
    assert ends == [
        "watched: ended with an error, batch 1, 200 rows, 100 behind",
        "watched: ended, batch 2, 300 rows, 0 behind, restarted once",
    ]
    assert progress.metrics_port is None, "nothing listens any more"


def test_every_query_of_the_dashboard_has_data(spark: SparkSession, bootstrap: str, tmp_path: Path) -> None:
    """A real Prometheus scrapes a query that counts by event time, as the page of the pipeline has it configured."""
    topic_with_rows(bootstrap, "charted")
    page = Path(__file__).resolve().parents[2] / "docs/pipeline.md"
    shipped = re.search(r"```yaml\n(scrape_configs:.*?)```", page.read_text(), re.DOTALL)
    assert shipped is not None
    config = ProgressConfig(
        pipeline="windows", metrics_port=0, group="charters", group_properties={"bootstrap.servers": bootstrap}
    )
    rows = records(spark, bootstrap, "charted").withWatermark("timestamp", "1 minute")
    counts = rows.groupBy("timestamp").count().writeStream.queryName("charted").outputMode("update")
    batches = counts.option("checkpointLocation", str(tmp_path / "checkpoint")).foreachBatch(counted)
    with Progress(config, console=Console(file=io.StringIO())) as progress:
        progress.attach(spark)
        query = batches.trigger(processingTime="1 second").start()
        target = f"127.0.0.1:{progress.metrics_port}"
        told = "global:\n  scrape_interval: 15s\n" + shipped[1]
        try:
            with prometheus_server(tmp_path, told, [target], job="penstock-pipeline") as prometheus:
                # Batches go on while it scrapes.
                prometheus.wait_all_have_data(
                    board_queries(BOARDS / "pipeline.json"),
                    before_each=lambda: produce(bootstrap, "charted", [Sent(value="one more")]),
                )
        finally:
            query.stop()


def test_a_group_with_members_refuses_the_offsets_and_the_job_goes_on(
    spark: SparkSession, bootstrap: str, tmp_path: Path
) -> None:
    topic_with_rows(bootstrap, "guarded")
    assigned: list[TopicPartition] = []

    def note(_: Consumer, partitions: Sequence[TopicPartition]) -> None:
        assigned.extend(partitions)

    member = Consumer({"bootstrap.servers": bootstrap, "group.id": "members", "enable.auto.commit": False})
    member.subscribe(["guarded"], on_assign=note)
    output = io.StringIO()
    config = ProgressConfig(pipeline="lake", group="members", group_properties={"bootstrap.servers": bootstrap})
    try:
        wait_for(lambda: member.poll(0.1) is not None or assigned, what="a member of the group")
        with Progress(config, console=Console(file=output, width=300)) as progress:
            progress.attach(spark)
            batch = FirstLife(fails_at=-1)
            start(spark, bootstrap, "guarded", tmp_path / "checkpoint", batch).awaitTermination()
    finally:
        member.close()
    assert batch.done == [0, 1, 2]
    assert "the group members does not take the offsets reached; the job goes on" in output.getvalue()
    assert output.getvalue().count("warning") == 1, "told once, not at each batch"
    failures = [
        line
        for line in progress.exposition().splitlines()
        if line.startswith("penstock_pipeline_group_commit_failures")
    ]
    assert float(failures[0].split()[-1]) >= 1
    assert committed(bootstrap, "members") == {}
