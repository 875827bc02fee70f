"""An Iceberg table of a catalog, appended to or upserted, exactly once. A shell over Iceberg's SQL and writer.

The positions are a property of each snapshot. They hold along the ancestors of the current one: a table that is
rolled back to a snapshot takes the rows after it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from . import commit_note
from .batch import Batch, kept, new_token
from .changes import DELETED, latest
from .commit_note import NAME, CommitNote
from .delta_table import merge_statement
from .parquet_table import ConcurrentWriteError
from .positions import Positions

# Option of a write, and what MERGE takes from the session.
PROPERTY: Final = f"snapshot-property.{NAME}"
SETTING: Final = f"spark.sql.iceberg.{PROPERTY}"
FORMAT: Final[Mapping[str, str]] = {"format-version": "2"}
# Columns that a schema gains are added by the write that brings them first. MERGE cannot name columns of such a table.
GROWING: Final[Mapping[str, str]] = {"write.spark.accept-any-schema": "true"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The snapshot that the next commit follows, and the newest positions at or before it."""

    snapshot_id: int
    note: CommitNote


class IcebergTable:
    """One writer's view of a table by its name, `catalog.namespace.table`."""

    def __init__(
        self, spark: SparkSession, name: str, *, partition_by: tuple[str, ...] = (), is_upserted: bool = False
    ) -> None:
        """Raises LostPositionsError."""
        self._name = name
        self._partition_by = partition_by
        self._is_upserted = is_upserted
        self._head = self._find_head(spark)

    @property
    def positions(self) -> Positions:
        return self._head.note.positions if self._head else {}

    @property
    def topic_ids(self) -> Mapping[str, str]:
        return self._head.note.topic_ids if self._head else {}

    def write(self, batch: Batch) -> None:
        """Adds the rows of a batch, or applies its changes (see `changes`), and moves the positions."""
        if self._is_upserted:
            self._upsert(batch)
        else:
            self._append(batch)

    def _append(self, batch: Batch) -> None:
        note = self._next_note(batch)
        self._create(batch.frame)
        options = {
            PROPERTY: commit_note.encoded(note),
            "mergeSchema": "true",
            "check-ordering": "false",
            # An append asks nothing of the snapshots before it, an overwrite that replaces no row does.
            "isolation-level": "serializable",
        }
        if self._head:
            options["validate-from-snapshot-id"] = str(self._head.snapshot_id)
        batch.frame.writeTo(self._name).options(**options).overwrite(fn.lit(False))
        self._follow(batch.frame.sparkSession, note)

    def _upsert(self, batch: Batch) -> None:
        spark = batch.frame.sparkSession
        note = self._next_note(batch)
        with kept(latest(batch.frame)) as changes:
            self._create(changes.drop(DELETED))
            if self._find_head(spark) != self._head:
                raise self._overtaken(note)
            spark.conf.set(SETTING, commit_note.encoded(note))
            try:
                spark.sql(merge_statement(self._name, "{changes}", changes.columns), changes=changes)
            finally:
                spark.conf.unset(SETTING)
        self._follow(spark, note)

    def _create(self, frame: DataFrame) -> None:
        """By a statement, which makes no snapshot: the first has rows and positions, as all of ours."""
        told = FORMAT if self._is_upserted else {**FORMAT, **GROWING}
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in told.items())
        partitions = f" PARTITIONED BY ({', '.join(self._partition_by)})" if self._partition_by else ""
        java_frame: Any = frame._jdf
        columns = f"({java_frame.schema().toDDL()})"
        frame.sparkSession.sql(
            f"CREATE TABLE IF NOT EXISTS {self._name} {columns} USING iceberg{partitions} TBLPROPERTIES ({properties})"
        )

    def _next_note(self, batch: Batch) -> CommitNote:
        return CommitNote(
            sequence=self._head.note.sequence + 1 if self._head else 1,
            token=new_token(batch.frame.sparkSession),
            writer=batch.writer,
            positions=batch.positions,
            topic_ids=dict(batch.topic_ids),
        )

    def _follow(self, spark: SparkSession, note: CommitNote) -> None:
        self._head = self._find_head(spark)
        if self._head is None or self._head.note != note:
            raise self._overtaken(note)

    def _overtaken(self, note: CommitNote) -> ConcurrentWriteError:
        return ConcurrentWriteError(
            f"another writer has made commit {note.sequence} of the table {self._name}: one query at a time may write"
            " to a table; this one ends, and goes on correctly when it is started again"
        )

    def _find_head(self, spark: SparkSession) -> Head | None:
        if not spark.catalog.tableExists(self._name):
            return None
        rows = spark.sql(
            f"SELECT s.snapshot_id AS snapshot_id, s.summary['{NAME}'] AS note FROM {self._name}.history h"
            f" JOIN {self._name}.snapshots s ON h.snapshot_id = s.snapshot_id"
            " WHERE h.is_current_ancestor ORDER BY h.made_current_at DESC"
        ).collect()
        note = commit_note.latest((one.note for one in rows), table=self._name)
        return Head(snapshot_id=rows[0].snapshot_id, note=note) if note else None
