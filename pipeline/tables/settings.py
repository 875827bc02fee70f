"""What a job is told about the table that it writes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

import msgspec
from pyspark.sql import SparkSession

from ..job import JobError
from .batch import Table
from .commit_note import LostPositionsError
from .compaction import CompactionRule
from .delta_table import DeltaTable
from .iceberg_table import IcebergTable
from .manifest import ManifestError
from .parquet_table import ParquetTable, load_state
from .table_folder import TableFolder
from .topic_ids import begun_anew
from .upserted_parquet import UpsertedParquetTable

Format = Literal["parquet", "delta", "iceberg"]
MEGABYTE = 1 << 20


class TableSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`location` is a folder or URI of any file system of Hadoop's; for Iceberg `catalog.namespace.table`.

    `compact_after_files` small files of a folder become files of `compact_target_mb` (0: never); `buckets` is how many
    files an upserted table has, for good. All three are of Parquet tables; Delta and Iceberg have tools of their own.
    """

    location: str
    format: Format = "parquet"
    compact_after_files: int = 32
    compact_target_mb: int = 128
    buckets: int = 16


def bound_table(settings: TableSettings | None) -> dict[str, str]:
    """As `JobConfig.bound_settings`: another table would lack what was read before, one that has it needs no checkpoint
    to go on."""
    return {"table": "" if settings is None else settings.location.rstrip("/")}


def artefacts_of(settings: TableSettings) -> tuple[str, ...]:
    """What the format needs beside Spark, by its names in `connector/artefacts.py`."""
    return () if settings.format == "parquet" else (settings.format,)


def open_appended(spark: SparkSession, settings: TableSettings, partition_by: dict[str, str]) -> Table:
    """The table that batches are appended to; by each column that it is partitioned by, the column's type."""
    columns = tuple(partition_by)
    match settings.format:
        case "parquet":
            rule = CompactionRule(
                after_files=settings.compact_after_files, target_bytes=settings.compact_target_mb * MEGABYTE
            )
            return ParquetTable(spark, settings.location, partition_by=partition_by, compaction=rule)
        case "delta":
            return DeltaTable(spark, settings.location, partition_by=columns)
        case "iceberg":
            return IcebergTable(spark, settings.location, partition_by=columns)


def open_upserted(spark: SparkSession, settings: TableSettings) -> Table:
    """The table that batches of changes are applied to."""
    match settings.format:
        case "parquet":
            return UpsertedParquetTable(spark, settings.location, bucket_count=settings.buckets)
        case "delta":
            return DeltaTable(spark, settings.location, is_upserted=True)
        case "iceberg":
            return IcebergTable(spark, settings.location, is_upserted=True)


def check_topic_ids(
    spark: SparkSession,
    settings: TableSettings,
    found: Mapping[str, str],
    accepted: Collection[str] = (),
    *,
    option: str = "",
) -> frozenset[str]:
    """As `topic_ids.begun_anew`, by what the table says now; it is only read. Raises JobError."""
    try:
        return begun_anew(_noted(spark, settings), found, accepted, table=settings.location, option=option)
    except (ManifestError, LostPositionsError) as error:
        raise JobError(str(error)) from error


def _noted(spark: SparkSession, settings: TableSettings) -> Mapping[str, str]:
    match settings.format:
        case "parquet":
            return load_state(TableFolder(spark, settings.location)).topic_ids
        case "delta":
            return DeltaTable(spark, settings.location).topic_ids
        case "iceberg":
            return IcebergTable(spark, settings.location).topic_ids
