"""`lake`: what a row has of its record, where bad records go, and what a run does that finds a table there already."""

from __future__ import annotations

import datetime
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Message
from pipeline_here import run_here
from pipeline_topics import Sent, create_topics, drain, produce, recreate_topic
from table_rows import judge, naive_places, spark_places

from penstock.pipeline.job import JobError
from penstock.pipeline.tables.parquet_table import load_state, read_table
from penstock.pipeline.tables.table_folder import TableFolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

MIDNIGHT_MS = 1_767_225_600_000
"""2026-01-01 UTC."""
DAY_MS = 86_400_000
JSON = {"value.format": "json", "value.schema": "number BIGINT, at TIMESTAMP", "event_time": "value.at"}


class Lake:
    """The job on a topic of its own."""

    def __init__(self, spark: SparkSession, bootstrap: str, topic: str, folder: Path) -> None:
        self._spark = spark
        self.topic = topic
        self.folder = folder / "table"
        self._options = {
            "bootstrap": bootstrap,
            "topics": topic,
            "checkpoint": str(folder / "checkpoint"),
            "available_now": "true",
            "table.location": str(self.folder),
        }
        create_topics(bootstrap, topic, partition_count=2)

    def run(self, **options: str) -> None:
        told = {**self._options, **{key.replace("__", "."): value for key, value in options.items()}}
        run_here(self._spark, "lake", told)

    @property
    def version(self) -> int:
        return load_state(TableFolder(self._spark, str(self.folder))).version


@pytest.fixture
def lake(spark: SparkSession, bootstrap: str, tmp_path: Path, request: pytest.FixtureRequest) -> Lake:
    return Lake(spark, bootstrap, str(request.node.name).replace("_", "-"), tmp_path)


def headers_of(message: Message) -> dict[str, Any]:
    found: Any = message.headers()
    return dict(found)


def json_at(number: int, day: int) -> str:
    return f'{{"number":{number},"at":"2026-02-{day:02d}T12:00:00Z"}}'


def test_a_row_has_all_that_the_topic_has_of_its_record(lake: Lake, spark: SparkSession, bootstrap: str) -> None:
    headers = [("trace", b"\x00\xff"), ("empty", None), ("trace", b"again")]
    sent = [
        Sent(key=b"\xffkey", value=json_at(1, 3), partition=1, timestamp_ms=MIDNIGHT_MS + 123, headers=headers),
        Sent(key=None, value=json_at(2, 4), partition=1, timestamp_ms=MIDNIGHT_MS),
        # Neither a value nor an event time: the record's own timestamp says the day.
        Sent(key="gone", value=None, partition=1, timestamp_ms=MIDNIGHT_MS - 1),
    ]
    produce(bootstrap, lake.topic, sent)
    lake.run(**{key.replace(".", "__"): value for key, value in JSON.items()}, keep_encoded="true")
    first, second, third = read_table(spark, str(lake.folder)).orderBy("offset").collect()
    assert (first.topic, first.partition, first.offset) == (lake.topic, 1, 0)
    assert first.timestamp == datetime.datetime(2026, 1, 1, microsecond=123_000)  # noqa: DTZ001
    assert first.timestamp_type == "CreateTime"
    assert bytes(first.key) == b"\xffkey"
    assert [(one.key, one.value and bytes(one.value)) for one in first.headers] == headers
    assert first.value.number == 1
    assert bytes(first.encoded).decode() == json_at(1, 3)
    assert [str(row.event_date) for row in (first, second, third)] == ["2026-02-03", "2026-02-04", "2025-12-31"]
    assert (second.key, second.headers) == (None, None)
    assert (third.value, third.encoded) == (None, None)


def test_values_are_kept_as_they_are_without_a_format(lake: Lake, spark: SparkSession, bootstrap: str) -> None:
    produce(bootstrap, lake.topic, [Sent(value=b"\x00\xff"), Sent(value=b"")])
    lake.run()
    found = read_table(spark, str(lake.folder))
    assert sorted(bytes(row.value) for row in found.collect()) == [b"", b"\x00\xff"]
    assert found.columns == [
        *("topic", "partition", "offset", "timestamp", "timestamp_type", "key", "headers", "value", "event_date")
    ]


def test_a_bad_record_goes_to_the_dead_letter_topic_and_the_rest_to_the_table(
    lake: Lake, spark: SparkSession, bootstrap: str
) -> None:
    letters = f"{lake.topic}-dead"
    create_topics(bootstrap, letters)
    produce(bootstrap, lake.topic, [Sent(value=json_at(number, 1), partition=0) for number in range(5)])
    produce(bootstrap, lake.topic, [Sent(key="k", value="{oops", partition=0, headers=[("h", b"1")])])
    told = {key.replace(".", "__"): value for key, value in JSON.items()}
    lake.run(**told, dead_letter_topic=letters)
    assert judge(naive_places(lake.folder), {(lake.topic, 0, offset) for offset in range(5)}).is_exact
    (letter,) = drain(bootstrap, letters, count=1)
    headers = headers_of(letter)
    assert (letter.key(), letter.value(), headers["h"]) == (b"k", b"{oops", b"1")
    assert b"JSON" in headers["penstock.reason"]
    position = (
        headers["penstock.source.topic"],
        headers["penstock.source.partition"],
        headers["penstock.source.offset"],
    )
    assert position == (lake.topic.encode(), b"0", b"5")
    # The table is beyond the bad record, too: a new checkpoint does not bring it again.
    lake.run(**told, dead_letter_topic=letters, name="another")
    drain(bootstrap, letters, count=1)
    assert lake.version == 1


def test_a_bad_record_ends_the_job_when_nothing_else_is_said(lake: Lake, spark: SparkSession, bootstrap: str) -> None:
    produce(bootstrap, lake.topic, [Sent(value=json_at(1, 1), partition=0), Sent(value="{oops", partition=0)])
    told = {key.replace(".", "__"): value for key, value in JSON.items()}
    with pytest.raises(JobError, match="-0 at offset 1"):
        lake.run(**told)
    assert not list(lake.folder.glob("event_date=*"))
    lake.run(**told, on_bad_record="skip")
    assert judge(naive_places(lake.folder), {(lake.topic, 0, 0)}).is_exact


def test_a_table_whose_checkpoint_is_lost_goes_on_where_it_is(lake: Lake, spark: SparkSession, bootstrap: str) -> None:
    produce(bootstrap, lake.topic, [Sent(value=str(number), timestamp_ms=MIDNIGHT_MS) for number in range(500)])
    lake.run(max_offsets_per_trigger="200")
    assert lake.version == 3
    produce(bootstrap, lake.topic, [Sent(value=str(number), timestamp_ms=MIDNIGHT_MS) for number in range(500, 600)])
    lake.run(name="another", max_offsets_per_trigger="200")
    values = [int(bytes(row.value)) for row in read_table(spark, str(lake.folder)).collect()]
    assert sorted(values) == [*range(600)]
    expected = {(message.topic(), message.partition(), message.offset()) for message in drain(bootstrap, lake.topic)}
    assert judge(spark_places(spark.read.parquet(str(lake.folder))), expected).is_exact  # type: ignore[arg-type]
    # The other way round, the table is lost: on from the checkpoint it would lack all this.
    shutil.rmtree(lake.folder)
    produce(bootstrap, lake.topic, [Sent(value="600")])
    with pytest.raises(JobError, match="the table has nothing: was it deleted"):
        lake.run(name="another")
    lake.run(name="anew")
    assert read_table(spark, str(lake.folder)).count() == 601
    # When the topic was made anew it does not go on: what is below the table's positions are other records.
    before, after = recreate_topic(bootstrap, lake.topic, partition_count=2)
    produce(bootstrap, lake.topic, [Sent(value=str(number), timestamp_ms=MIDNIGHT_MS) for number in range(601, 650)])
    version = lake.version
    with pytest.raises(JobError, match=f"has the id {after}, and the table .* with the id {before}"):
        lake.run(name="third")
    with pytest.raises(JobError, match=f"the topic {lake.topic} of the id {before} .*, and its id is {after}"):
        lake.run(accept_topic_ids=after)
    assert lake.version == version
    lake.run(name="third", accept_topic_ids=after)
    values = [int(bytes(row.value)) for row in read_table(spark, str(lake.folder)).collect()]
    assert sorted(values) == [*range(650)]
    lake.run(name="third")
