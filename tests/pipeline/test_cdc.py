"""`cdc`: what a change does to the row of its key, by tombstones and by Debezium's messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pipeline_here import run_here
from pipeline_topics import Sent, create_topics, drain, produce
from soak import soak_only

from penstock.pipeline.job import JobError
from penstock.pipeline.tables.parquet_table import read_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

ROW = "id BIGINT, city STRING"


def told_for(bootstrap: str, topic: str, folder: Path) -> dict[str, str]:
    return {
        "bootstrap": bootstrap,
        "topics": topic,
        "checkpoint": str(folder / "checkpoint"),
        "available_now": "true",
        "max_offsets_per_trigger": "7",
        "table.location": str(folder / "table"),
        "table.buckets": "2",
        "value.format": "json",
    }


def cdc(spark: SparkSession, told: dict[str, str]) -> dict[str, str]:
    """Runs the job, and returns the city of each key."""
    run_here(spark, "cdc", told)
    rows = read_table(spark, told["table.location"]).collect()
    found = {bytes(row.key).decode(): row.value.city for row in rows}
    assert len(found) == len(rows)
    return found


def debezium(op: str, after: dict[str, Any] | None, *, wrapped: bool) -> str:
    message = {"op": op, "before": None, "after": after, "ts_ms": 1}
    return json.dumps({"schema": {}, "payload": message} if wrapped else message)


def test_a_tombstone_deletes_the_row_and_a_later_record_brings_it_anew(
    spark: SparkSession, bootstrap: str, tmp_path: Path
) -> None:
    topic = "cdc-tombstones"
    create_topics(bootstrap, topic, configs={"cleanup.policy": "compact"})
    cities = [("a", "Oslo"), ("b", "Bonn"), ("c", "Cork"), ("a", None), ("b", "Bern"), ("a", "Turin"), ("c", None)]
    produce(
        bootstrap, topic, [Sent(key=key, value=city and json.dumps({"id": 1, "city": city})) for key, city in cities]
    )
    told = told_for(bootstrap, topic, tmp_path) | {"value.schema": ROW}
    assert cdc(spark, told) == {"a": "Turin", "b": "Bern"}
    # From the beginning, in batches of other cuts.
    again = told | {"name": "again", "max_offsets_per_trigger": "2"}
    assert cdc(spark, again) == {"a": "Turin", "b": "Bern"}


@pytest.mark.parametrize("wrapped", [False, pytest.param(True, marks=soak_only)])
def test_messages_of_debezium_are_changes_of_rows(
    spark: SparkSession, bootstrap: str, tmp_path: Path, *, wrapped: bool
) -> None:
    topic = f"cdc-debezium-{wrapped}".lower()
    create_topics(bootstrap, topic, f"{topic}-dead")
    changes: list[tuple[str | None, str | None]] = [
        ("a", debezium("r", {"id": 1, "city": "Oslo"}, wrapped=wrapped)),
        ("b", debezium("c", {"id": 2, "city": "Bonn"}, wrapped=wrapped)),
        ("c", debezium("c", {"id": 3, "city": "Cork"}, wrapped=wrapped)),
        ("b", debezium("u", {"id": 2, "city": "Bern"}, wrapped=wrapped)),
        ("a", debezium("d", None, wrapped=wrapped)),
        ("a", None),
        ("c", debezium("t", None, wrapped=wrapped)),
        (None, debezium("c", {"id": 4, "city": "Lodz"}, wrapped=wrapped)),
        ("c", debezium("u", None, wrapped=wrapped)),
    ]
    produce(bootstrap, topic, [Sent(key=key, value=value) for key, value in changes])
    envelope = "op: STRING, after: STRUCT<id: BIGINT, city: STRING>"
    told = told_for(bootstrap, topic, tmp_path) | {
        "envelope": "debezium",
        "value.schema": f"payload: STRUCT<{envelope}>" if wrapped else envelope,
        "dead_letter_topic": f"{topic}-dead",
    }
    assert cdc(spark, told) == {"b": "Bern", "c": "Cork"}
    # A batch of bad records alone.
    produce(bootstrap, topic, [Sent(key=None, value=debezium("c", {"id": 5, "city": "Riga"}, wrapped=wrapped))])
    assert cdc(spark, told) == {"b": "Bern", "c": "Cork"}
    letters = drain(bootstrap, f"{topic}-dead", count=4)
    headers: list[Any] = [one.headers() for one in letters]
    assert sorted(dict(one)["penstock.reason"].decode() for one in headers) == [
        "the message has no row after the change",
        "the op is no change of one row: t",
        "the record has no key, by which a row is known",
        "the record has no key, by which a row is known",
    ]


def test_settings_that_make_no_table_of_rows_are_refused(spark: SparkSession, bootstrap: str, tmp_path: Path) -> None:
    told = told_for(bootstrap, "cdc-refused", tmp_path) | {"value.schema": ROW}
    with pytest.raises(JobError, match="cdc follows one topic"):
        cdc(spark, told | {"topics": "a,b"})
    with pytest.raises(JobError, match="needs a schema with op and after"):
        cdc(spark, told | {"envelope": "debezium", "name": "another"})
