"""A Delta table, appended to or upserted, exactly once. A shell over Delta's SQL and writer.

The positions are in each commit's `userMetadata`. Each is also a Delta transaction (`txn` action) of one name and the
next number, so that of two writers at the same version one fails, as Delta decides when it resolves conflicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from . import commit_note
from .batch import Batch, kept, new_token
from .changes import DELETED, KEY, latest
from .commit_note import NAME, CommitNote
from .parquet_table import ConcurrentWriteError
from .positions import Positions
from .table_folder import TableFolder

LOG_FOLDER: Final = "_delta_log"
# Rows of the history that are asked for; mostly the first is ours.
HISTORY_LIMITS: Final = (1, 100, 10_000)
SETTINGS: Final = "spark.databricks.delta"


class DeltaTable:
    """One writer's view of a table by its location."""

    def __init__(
        self, spark: SparkSession, location: str, *, partition_by: tuple[str, ...] = (), is_upserted: bool = False
    ) -> None:
        """Raises LostPositionsError."""
        self._location = location
        self._partition_by = partition_by
        self._is_upserted = is_upserted
        self._folder = TableFolder(spark, location)
        self._note = self._latest_note(spark)

    @property
    def positions(self) -> Positions:
        return self._note.positions if self._note else {}

    @property
    def topic_ids(self) -> Mapping[str, str]:
        return self._note.topic_ids if self._note else {}

    def write(self, batch: Batch) -> None:
        """Adds the rows of a batch, or applies its changes (see `changes`), and moves the positions."""
        if self._is_upserted:
            self._upsert(batch)
            return
        with self._committing(batch) as options:
            self._write(batch.frame, options)

    def _upsert(self, batch: Batch) -> None:
        spark = batch.frame.sparkSession
        with kept(latest(batch.frame)) as changes:
            if self._note is None:
                with self._committing(batch) as options:
                    self._write(changes.where(~fn.col(DELETED)).drop(DELETED), options)
                return
            with self._committing(batch) as options, _settings(spark, options):
                spark.sql(merge_statement(f"delta.`{self._location}`", "{changes}", changes.columns), changes=changes)

    def _write(self, frame: DataFrame, options: Mapping[str, str]) -> None:
        writer = frame.write.format("delta").mode("append").partitionBy(*self._partition_by)
        writer.option("mergeSchema", "true").options(**options).save(self._location)

    @contextmanager
    def _committing(self, batch: Batch) -> Iterator[dict[str, str]]:
        """What a write of a batch is to be told; afterwards, the check that it was this one that was committed."""
        note = CommitNote(
            sequence=self._note.sequence + 1 if self._note else 1,
            token=new_token(batch.frame.sparkSession),
            writer=batch.writer,
            positions=batch.positions,
            topic_ids=dict(batch.topic_ids),
        )
        yield {
            "txnAppId": NAME,
            "txnVersion": str(note.sequence),
            "userMetadata": commit_note.encoded(note),
        }
        self._note = self._latest_note(batch.frame.sparkSession)
        # Delta leaves out, without a word, a transaction whose number it has.
        if self._note != note:
            raise ConcurrentWriteError(
                f"another writer has made commit {note.sequence} of the table {self._location}: one query at a time"
                " may write to a table; this one ends, and goes on correctly when it is started again"
            )

    def _latest_note(self, spark: SparkSession) -> CommitNote | None:
        if not self._folder.names(LOG_FOLDER):
            return None
        for limit in HISTORY_LIMITS:
            rows = (
                spark.sql(f"DESCRIBE HISTORY delta.`{self._location}` LIMIT {limit}").select("userMetadata").collect()
            )
            try:
                return commit_note.latest((one.userMetadata for one in rows), table=self._location)
            except commit_note.LostPositionsError:
                if len(rows) < limit or limit == HISTORY_LIMITS[-1]:
                    raise
        return None


def merge_statement(table: str, source: str, columns: list[str]) -> str:
    """SQL that applies the last change of each key. A row is never changed by one of the same partition before its own.

    The positions see to that already; the condition holds for a table whose positions were set back by hand, too.
    """
    row = [name for name in columns if name != DELETED]
    is_new = "not (t.topic = s.topic and t.partition = s.partition and s.offset <= t.offset)"
    sets = ", ".join(f"t.`{name}` = s.`{name}`" for name in row)
    names = ", ".join(f"`{name}`" for name in row)
    values = ", ".join(f"s.`{name}`" for name in row)
    return (
        f"MERGE INTO {table} t USING {source} s ON t.`{KEY}` = s.`{KEY}`"
        f" WHEN MATCHED AND s.`{DELETED}` AND {is_new} THEN DELETE"
        f" WHEN MATCHED AND {is_new} THEN UPDATE SET {sets}"
        f" WHEN NOT MATCHED AND NOT s.`{DELETED}` THEN INSERT ({names}) VALUES ({values})"
    )


@contextmanager
def _settings(spark: SparkSession, options: Mapping[str, str]) -> Iterator[None]:
    """What MERGE takes from the session only. Taken back, so that the next write of the session has its own."""
    names = {
        "txnAppId": f"{SETTINGS}.write.txnAppId",
        "txnVersion": f"{SETTINGS}.write.txnVersion",
        "userMetadata": f"{SETTINGS}.commitInfo.userMetadata",
    }
    try:
        for option, value in options.items():
            spark.conf.set(names[option], value)
        yield
    finally:
        for name in names.values():
            spark.conf.unset(name)
