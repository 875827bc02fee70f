"""Reads the records of one batch again: what the state of a query does not show, because it never got there.

Within `foreachBatch` a job with state sees only its results. Records that could not be decoded, or came after their
window was closed, are found by a second read of the same offsets, which the checkpoint has. The batch is committed
after it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from ..config import JobConfig
from ..source import read_offsets
from .offset_log import (
    Offsets,
    offsets_of,
    parse_initial_offsets,
    parse_logged_batch,
    range_of_batch,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRecords:
    """`watermark_ms` is the one against which the batch's records are late (Spark: that of the batch before)."""

    records: DataFrame
    watermark_ms: int


def records_of_batch(
    spark: SparkSession, config: JobConfig, folder: str, batch_id: int, topics: tuple[str, ...]
) -> BatchRecords | None:
    """None when the batch has no records of the topics. `folder` is the query's checkpoint. Raises OffsetLogError."""
    logged = parse_logged_batch(_text(spark, f"{folder}/offsets/{batch_id}"))
    watermark_ms = 0
    if batch_id:
        before_batch = parse_logged_batch(_text(spark, f"{folder}/offsets/{batch_id - 1}"))
        before, watermark_ms = offsets_of(before_batch.sources, topics), before_batch.watermark_ms
    else:
        before = offsets_of(_initial_offsets(spark, folder), topics)
    found = range_of_batch(before, offsets_of(logged.sources, topics))
    if found is None:
        return None
    return BatchRecords(records=read_offsets(spark, config, *found), watermark_ms=watermark_ms)


def _initial_offsets(spark: SparkSession, folder: str) -> list[Offsets]:
    rows = spark.read.text(f"{folder}/sources/*/0", wholetext=True).collect()
    return [parse_initial_offsets(row[0]) for row in rows]


def _text(spark: SparkSession, path: str) -> str:
    """Through Spark, for a checkpoint may be in any file system that it knows."""
    (row,) = spark.read.text(path, wholetext=True).collect()
    text: str = row[0]
    return text
