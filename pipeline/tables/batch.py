"""A batch of source rows on its way into a table: what it holds, and what of it the table has already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from . import positions as rules
from .positions import OffsetRange, Positions

# Columns by which a row is known.
SOURCE_COLUMNS = ("topic", "partition", "offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows that the table does not have, and the positions that it has with them. Both are committed as one."""

    frame: DataFrame
    row_count: int
    # Rows that are not for the table. It is beyond them, too, once the batch is committed.
    rejected: DataFrame
    rejected_count: int
    positions: Positions
    # Of the topics that it has positions of, as far as they are known.
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    # Which query and batch of it, for people who look into the table's log.
    writer: str

    @property
    def source_count(self) -> int:
        return self.row_count + self.rejected_count


class Table(Protocol):
    """One writer's view of a table, whatever its format and however it takes rows in."""

    @property
    def positions(self) -> Positions: ...

    @property
    def topic_ids(self) -> Mapping[str, str]: ...

    def write(self, batch: Batch) -> None:
        """One commit: the rows of the batch, its positions and the ids of their topics."""


@contextmanager
def kept(frame: DataFrame) -> Iterator[DataFrame]:
    """A frame that is used more than once, read and decoded once. It is in memory, and on disk what does not fit."""
    frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield frame
    finally:
        frame.unpersist()


def unseen(frame: DataFrame, positions: Positions, is_good: Column | None = None, *, writer: str) -> Batch:
    """What the table at these positions does not have of a frame with the columns of `SOURCE_COLUMNS`.

    Rows for which `is_good` is not true are rejected; none is when it is None.
    """
    is_good = fn.lit(True) if is_good is None else fn.coalesce(is_good, fn.lit(False))
    ranges = ranges_of(frame, is_good)
    overlap = rules.overlapping(positions, ranges)
    after = rules.advanced(positions, ranges)
    if overlap:
        frame = _without(frame, overlap)
        ranges = ranges_of(frame, is_good)
    return Batch(
        frame=frame.where(is_good),
        row_count=sum(one.row_count for one in ranges),
        rejected=frame.where(~is_good),
        rejected_count=sum(one.rejected_count for one in ranges),
        positions=after,
        writer=writer,
    )


def ranges_of(frame: DataFrame, is_good: Column) -> tuple[OffsetRange, ...]:
    """One for each partition of which the frame has rows."""
    counts = fn.count_if(is_good), fn.count_if(~is_good)
    rows = frame.groupBy("topic", "partition").agg(fn.min("offset"), fn.max("offset"), *counts).collect()
    return tuple(
        OffsetRange(
            topic=topic,
            partition=partition,
            first_offset=first,
            last_offset=last,
            row_count=good_count,
            rejected_count=bad_count,
        )
        for topic, partition, first, last, good_count, bad_count in rows
    )


def _without(frame: DataFrame, overlap: Positions) -> DataFrame:
    """Rows at or beyond the positions. It is needed for the first batch of a run, seldom for another."""
    by_topic = fn.from_json(fn.lit(rules.encoded(overlap)), "map<string,map<string,bigint>>")
    next_offset = by_topic[fn.col("topic")][fn.col("partition").cast("string")]
    return frame.where(fn.col("offset") >= fn.coalesce(next_offset, fn.lit(0)))


def writer_of(frame: DataFrame, batch_id: int) -> str:
    """The query and the batch that a frame of `foreachBatch` belongs to."""
    query_id = frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId") or "batch"
    return f"{query_id}/{batch_id}"


def new_token(spark: SparkSession) -> str:
    """A name that no other commit has; the driver's JVM makes it."""
    jvm: Any = spark._jvm
    return str(jvm.java.util.UUID.randomUUID().toString())
