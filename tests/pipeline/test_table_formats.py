"""Every format of table is appended to and upserted exactly once; a replay brings no deleted row back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from pyspark.sql import functions as fn
from soak import IS_SOAK, soak_only
from table_rows import TOPIC, TOPIC_ID, judge, numbered, place, spark_places, write_new

from penstock.pipeline.tables.batch import Table
from penstock.pipeline.tables.commit_note import LostPositionsError
from penstock.pipeline.tables.parquet_table import ConcurrentWriteError, read_table
from penstock.pipeline.tables.settings import Format, TableSettings, open_appended, open_upserted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

NAMES = count()
EVERY: Final[tuple[Format, ...]] = ("parquet", "delta", "iceberg")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one table is, and how each party comes by it."""

    spark: SparkSession
    settings: TableSettings

    def appended(self) -> Table:
        return open_appended(self.spark, self.settings, {"event_date": "date"})

    def upserted(self) -> Table:
        return open_upserted(self.spark, self.settings)

    def read(self) -> DataFrame:
        match self.settings.format:
            case "parquet":
                return read_table(self.spark, self.settings.location)
            case "delta":
                return self.spark.read.format("delta").load(self.settings.location)
            case "iceberg":
                return self.spark.table(self.settings.location)

    def rows(self) -> dict[str, int]:
        found = [(bytes(row.key).decode(), row.value.n) for row in self.read().collect()]
        assert len(dict(found)) == len(found), "a key has two rows"
        return dict(found)


@pytest.fixture(params=EVERY)
def any_table(table_of: Callable[[Format], Place], request: pytest.FixtureRequest) -> Place:
    return table_of(request.param)


@pytest.fixture(params=EVERY if IS_SOAK else EVERY[:1])
def table(table_of: Callable[[Format], Place], request: pytest.FixtureRequest) -> Place:
    """Delta and Iceberg in a soak only: their commits take seconds."""
    return table_of(request.param)


@pytest.fixture
def table_of(spark: SparkSession, tmp_path: Path) -> Callable[[Format], Place]:
    def made(kind: Format) -> Place:
        location = f"lake.tests.table_{next(NAMES)}" if kind == "iceberg" else str(tmp_path / "table")
        return Place(spark=spark, settings=TableSettings(location=location, format=kind, buckets=4))

    return made


def changes(table: Place, start: int, end: int) -> DataFrame:
    """As `numbered`, where every fifth record deletes the row of its key."""
    return numbered(table.spark, start, end).drop("event_date").withColumn("deleted", fn.expr("value.n % 5 = 0"))


def truth(end: int) -> dict[str, int]:
    rows: dict[str, int] = {}
    for number in range(end):
        key = f"k{number % 7}"
        if number % 5 == 0:
            rows.pop(key, None)
        else:
            rows[key] = number
    assert 0 < len(rows) < 7, "an end at which no row is deleted, or all are, shows nothing"
    return rows


def test_rows_are_appended_once(any_table: Place) -> None:
    writer = any_table.appended()
    assert write_new(writer, numbered(any_table.spark, 0, 30)) == 30
    assert write_new(writer, numbered(any_table.spark, 20, 45)) == 15
    again = any_table.appended()
    assert again.topic_ids == {TOPIC: TOPIC_ID}
    assert write_new(again, numbered(any_table.spark, 0, 60), "another-query/0") == 15
    assert judge(spark_places(any_table.read()), {place(number) for number in range(60)}).is_exact


def test_a_second_writer_appends_nothing(table: Place) -> None:
    write_new(table.appended(), numbered(table.spark, 0, 9))
    stale = table.appended()
    write_new(table.appended(), numbered(table.spark, 9, 18))
    with pytest.raises((ConcurrentWriteError, Exception)) as refused:
        write_new(stale, numbered(table.spark, 9, 20))
    assert "another writer" in str(refused.value) or "conflicting files" in str(refused.value)
    assert judge(spark_places(table.read()), {place(number) for number in range(18)}).is_exact
    assert write_new(table.appended(), numbered(table.spark, 9, 20)) == 2


def test_columns_that_rows_gain_are_added(table: Place) -> None:
    write_new(table.appended(), numbered(table.spark, 0, 9))
    more = numbered(table.spark, 9, 12).selectExpr("* except (value)", "struct(value.n, 'x' as more) as value")
    write_new(table.appended(), more)
    found = table.read().orderBy("value.n").collect()
    assert [(row.value.n, row.value.more) for row in found][8:10] == [(8, None), (9, "x")]


def test_a_table_has_the_last_row_of_each_key_and_none_that_is_deleted(table: Place) -> None:
    writer = table.upserted()
    for start, end in ((0, 16), (16, 33), (33, 51)):
        assert write_new(writer, changes(table, start, end)) == end - start
        assert table.rows() == truth(end)


def test_a_replay_brings_no_deleted_row_back(table: Place) -> None:
    """Not after any batch of it: what deleted the row is below the position, and so is the row."""
    write_new(table.upserted(), changes(table, 0, 33))
    for start in (0, 11, 22):
        # It writes nothing at all.
        assert write_new(table.upserted(), changes(table, start, start + 11), "another-query/0") == 0
    assert table.rows() == truth(33)
    # Old and new in one batch.
    assert write_new(table.upserted(), changes(table, 20, 51), "another-query/1") == 18
    assert table.rows() == truth(51)


def test_a_second_writer_upserts_nothing(table: Place) -> None:
    write_new(table.upserted(), changes(table, 0, 16))
    stale = table.upserted()
    write_new(table.upserted(), changes(table, 16, 33))
    with pytest.raises(ConcurrentWriteError, match="another writer"):
        write_new(stale, changes(table, 16, 20))
    assert table.rows() == truth(33)


def test_of_two_partitions_the_later_timestamp_counts(table: Place) -> None:
    """A topic that was given more partitions has the old records of a key in one and the new in another."""
    one = changes(table, 7, 8).withColumn("partition", fn.lit(2)).withColumn("offset", fn.lit(500))
    other = changes(table, 14, 15).withColumn("partition", fn.lit(1)).withColumn("deleted", fn.lit(False))
    assert write_new(table.upserted(), one.unionByName(other)) == 2
    assert table.rows() == {"k0": 14}


@soak_only
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_table_of_another_program_is_refused(table_of: Callable[[Format], Place], kind: Format) -> None:
    table = table_of(kind)
    rows = numbered(table.spark, 0, 3)
    if table.settings.format == "delta":
        rows.write.format("delta").save(table.settings.location)
    else:
        rows.writeTo(table.settings.location).create()
    with pytest.raises(LostPositionsError, match="which source offsets"):
        table.appended()


@soak_only
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_commits_of_other_programs_between_change_nothing(table_of: Callable[[Format], Place], kind: Format) -> None:
    """A program that compacts a table, or deletes from it, leaves its positions."""
    table = table_of(kind)
    write_new(table.appended(), numbered(table.spark, 0, 30))
    name = f"delta.`{table.settings.location}`" if table.settings.format == "delta" else table.settings.location
    table.spark.sql(f"DELETE FROM {name} WHERE value.n < 3")
    assert write_new(table.appended(), numbered(table.spark, 0, 33)) == 3
    assert judge(spark_places(table.read()), {place(number) for number in range(3, 33)}).is_exact
