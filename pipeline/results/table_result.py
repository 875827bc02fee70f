"""Results as rows of a table, each batch of them once: the number of a batch is its position, as offsets are of a
topic's records.

A batch that is run again has the same number, so the table that has it takes nothing. Another checkpoint is another
query, whose batches the table does not know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from ..tables.batch import Table, writer_of
from ..tables.changes import DELETED, KEY
from ..tables.settings import TableSettings, open_appended, open_upserted
from ..tables.table_sink import TableSink

_EVENT_DATE: Final = "event_date"


def appended(settings: TableSettings, time: str) -> Callable[[DataFrame, int], None]:
    """Adds the rows of each batch, with the query as their `topic` and the batch as their `offset`; the table is
    partitioned by the date of the column `time`."""
    sink = _sink(lambda spark: open_appended(spark, settings, {_EVENT_DATE: "date"}))

    def write(rows: DataFrame, batch_id: int) -> None:
        sink(_positioned(rows.withColumn(_EVENT_DATE, F.to_date(time)), batch_id), batch_id)

    return write


def upserted(settings: TableSettings, key: Column) -> Callable[[DataFrame, int], None]:
    """Puts each row in the place of the one with the same key, which is a column of the table."""
    sink = _sink(lambda spark: open_upserted(spark, settings))

    def write(rows: DataFrame, batch_id: int) -> None:
        changes = rows.withColumn(KEY, key.cast("binary")).withColumn(DELETED, F.lit(False))
        sink(_positioned(changes, batch_id).withColumn("timestamp", F.current_timestamp()), batch_id)

    return write


def _sink(open_table: Callable[[SparkSession], Table]) -> TableSink:
    return TableSink(open_table, is_good=F.lit(True), reject=_none_is_rejected)


def _positioned(rows: DataFrame, batch_id: int) -> DataFrame:
    query_id, _, _ = writer_of(rows, batch_id).rpartition("/")
    return rows.withColumns({"topic": F.lit(query_id), "partition": F.lit(0), "offset": F.lit(batch_id).cast("bigint")})


def _none_is_rejected(rejected: DataFrame) -> None:
    raise AssertionError(f"results are all good, and not {rejected.columns}")
