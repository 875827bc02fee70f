"""A Parquet table that is upserted: rows lie in buckets by the hash of their key; a batch rewrites those it touches.

Each bucket is one file, so a batch that touches all of them rewrites the table: it is meant for tables of up to some
gigabytes. Larger ones are for Delta or Iceberg, which merge by file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from .batch import Batch, kept
from .changes import DELETED, KEY, latest
from .parquet_table import ParquetTable
from .positions import Positions

BUCKET: Final = "bucket"


class UpsertedParquetTable:
    """One writer's view; the number of buckets is decided when the table is made."""

    def __init__(self, spark: SparkSession, location: str, *, bucket_count: int) -> None:
        self._bucket_count = bucket_count
        self._table = ParquetTable(
            spark, location, partition_by={BUCKET: "integer"}, properties={"bucket_count": str(bucket_count)}
        )

    @property
    def positions(self) -> Positions:
        return self._table.positions

    @property
    def topic_ids(self) -> Mapping[str, str]:
        return self._table.topic_ids

    def write(self, batch: Batch) -> None:
        """Applies the changes of a batch (see `changes`) and moves the positions, in one commit."""
        bucket = fn.pmod(fn.xxhash64(KEY), fn.lit(self._bucket_count)).cast("int")
        with kept(latest(batch.frame).withColumn(BUCKET, bucket)) as changes:
            touched = sorted(one[BUCKET] for one in changes.select(BUCKET).distinct().collect())
            folders = {f"{BUCKET}={number}" for number in touched}
            replaced = tuple(one.path for one in self._table.state.files.values() if one.folder in folders)
            rows = changes.where(~fn.col(DELETED)).drop(DELETED)
            self._table.replace(batch, removed=replaced, frame=self._with_old(rows, changes, replaced, len(touched)))

    def _with_old(self, rows: DataFrame, changes: DataFrame, paths: tuple[str, ...], bucket_count: int) -> DataFrame:
        if paths:
            old = self._table.read(paths).join(changes.select(KEY), KEY, "left_anti")
            rows = old.unionByName(rows, allowMissingColumns=True)
        # Every bucket in one task, and so in one file; a batch of nothing but rejected rows touches none.
        return rows.repartition(max(bucket_count, 1), BUCKET)
