"""Rows as a topic would bring them to a table, and a table's folder as readers see that know nothing of manifests."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.dataset
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from penstock.pipeline.tables.batch import Batch, Table, kept, unseen

TOPIC = "numbers"
TOPIC_ID = "d3JpdHRlbiBhcyBvbmUgIQ"
PARTITIONS = 3
Place = tuple[str, int, int]


def place(number: int) -> Place:
    return TOPIC, number % PARTITIONS, number // PARTITIONS


def numbered(spark: SparkSession, start: int, end: int) -> DataFrame:
    """Records `start` to `end` (not inside) of a topic of three partitions; a day of event time has 40 of them."""
    number = fn.col("id")
    return spark.range(start, end, numPartitions=1).select(
        fn.lit(TOPIC).alias("topic"),
        (number % PARTITIONS).cast("int").alias("partition"),
        fn.expr(f"id div {PARTITIONS}").alias("offset"),
        fn.timestamp_seconds(fn.lit(1_767_225_600) + number).alias("timestamp"),
        fn.concat(fn.lit("k"), number % 7).cast("binary").alias("key"),
        fn.struct(number.alias("n")).alias("value"),
        fn.date_add(fn.lit("2026-01-01").cast("date"), fn.expr("int(id div 40)")).alias("event_date"),
    )


def write_new(table: Table, frame: DataFrame, writer: str = "query/0") -> int:
    """What a query does with a batch. Returns how many rows were new."""
    with kept(frame) as rows:
        batch: Batch = replace(unseen(rows, table.positions, writer=writer), topic_ids={TOPIC: TOPIC_ID})
        if batch.source_count:
            table.write(batch)
        return batch.source_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How what a reader found differs from what it should have found."""

    twice: frozenset[Place]
    missing: frozenset[Place]
    foreign: frozenset[Place]

    @property
    def is_exact(self) -> bool:
        return not (self.twice or self.missing or self.foreign)


def judge(found: Counter[Place], expected: set[Place]) -> Verdict:
    assert expected, "nothing to compare with shows nothing"
    return Verdict(
        twice=frozenset(one for one, count in found.items() if count > 1),
        missing=frozenset(expected - found.keys()),
        foreign=frozenset(found.keys() - expected),
    )


def naive_places(folder: Path) -> Counter[Place]:
    """By pyarrow, as pandas reads it: all Parquet files that are there, but for hidden ones."""
    if not folder.exists():
        return Counter()
    found = pyarrow.dataset.dataset(folder, format="parquet", partitioning="hive")
    if not found.files:
        return Counter()
    table = found.to_table(columns=["topic", "partition", "offset"])
    columns = (table.column(name).to_pylist() for name in ("topic", "partition", "offset"))
    return Counter(zip(*columns, strict=True))


def spark_places(frame: DataFrame) -> Counter[Place]:
    return Counter(
        (row.topic, row.partition, row.offset) for row in frame.select("topic", "partition", "offset").collect()
    )
