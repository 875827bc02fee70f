"""`cdc`: a compacted topic of changes into a table that has the last row of each key.

A null value (tombstone) deletes the row of its key, and so does Debezium's `op` "d". Columns: `key`, the row in
`value`, and `topic`, `partition`, `offset`, `timestamp` of the record that brought it.
"""

from __future__ import annotations

from typing import Final, Literal

from pyspark.sql import Column, DataFrame, SparkSession, types
from pyspark.sql import functions as fn
from pyspark.sql.streaming.query import StreamingQuery

from ..config import JobConfig
from ..job import Job, JobError
from ..records.decoding import ENCODED, REASON, decode
from ..records.value_format import ValueFormat
from ..source import read_topics, started
from ..tables.changes import DELETED, KEY
from ..tables.settings import TableSettings, artefacts_of, bound_table, check_topic_ids, open_upserted
from ..tables.source_ids import SourceIds
from ..tables.table_sink import TableSink
from .refused import refuse

Envelope = Literal["none", "debezium"]
DELETE: Final = "d"
# Created, read by a snapshot, updated. "t" (truncate) and "m" (message) are no changes of one row.
WRITES: Final = ("c", "r", "u")


class CdcConfig(JobConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """With the envelope `debezium` the value's schema is that of the whole message: `op STRING, after STRUCT<…>`, or
    those two in a `payload`, as converters with schemas write it.
    """

    table: TableSettings
    value: ValueFormat = ValueFormat()
    envelope: Envelope = "none"

    def bound_settings(self) -> dict[str, str]:
        return bound_table(self.table)


class CdcConfigError(JobError):
    """Settings that cannot make a table of rows by key."""


def build(spark: SparkSession, config: CdcConfig) -> StreamingQuery:
    """Starts the query. Raises CdcConfigError."""
    if len(config.topics) != 1 or config.topic_pattern:
        raise CdcConfigError("cdc follows one topic: a key of one topic is not that of another; run it once for each")
    decoded = decode(read_topics(spark, config), config.value, config.topics[0])
    sink = TableSink(
        lambda session: open_upserted(session, config.table),
        is_good=fn.col(REASON).isNull(),
        reject=lambda rejected: refuse(rejected, config, JOB.name),
        not_stored=(REASON, ENCODED, "headers"),
        has_each_batch=True,
        source=SourceIds(config, table=config.table.location),
    )
    return started(JOB, config, cdc_changes(decoded, config.envelope).writeStream.foreachBatch(sink))


def cdc_changes(decoded: DataFrame, envelope: Envelope) -> DataFrame:
    """Changes of rows (see `tables.changes`) and, for a record that is none, the reason. Raises CdcConfigError."""
    if envelope == "none":
        row, deleted, problem = fn.col("value"), fn.col(ENCODED).isNull(), fn.lit(None).cast("string")
    else:
        row, deleted, problem = _debezium(decoded.schema["value"].dataType)
    no_key = fn.when(fn.col("key").isNull(), fn.lit("the record has no key, by which a row is known"))
    return decoded.select(
        fn.col("key").alias(KEY),
        fn.when(~deleted, row).alias("value"),
        fn.coalesce(deleted, fn.lit(False)).alias(DELETED),
        "topic",
        "partition",
        "offset",
        "timestamp",
        "headers",
        ENCODED,
        fn.coalesce(REASON, no_key, problem).alias(REASON),
    )


def _debezium(kind: types.DataType) -> tuple[Column, Column, Column]:
    """The row, whether it is deleted, and what is wrong with the message."""
    path = "value"
    if isinstance(kind, types.StructType) and "payload" in kind.fieldNames():
        path, kind = "value.payload", kind["payload"].dataType
    if not isinstance(kind, types.StructType) or not {"op", "after"} <= set(kind.fieldNames()):
        raise CdcConfigError(
            "the envelope debezium needs a schema with op and after, in the value or its payload, and the value is"
            f" {kind.simpleString()}"
        )
    is_tombstone = fn.col(ENCODED).isNull()
    operation, row = fn.col(f"{path}.op"), fn.col(f"{path}.after")
    problem = (
        fn.when(is_tombstone, None)
        .when(operation.isNull(), fn.lit("the message has no op"))
        .when(~operation.isin(*WRITES, DELETE), fn.concat(fn.lit("the op is no change of one row: "), operation))
        .when(operation.isin(*WRITES) & row.isNull(), fn.lit("the message has no row after the change"))
    )
    return row, is_tombstone | (operation == DELETE), problem


JOB: Final = Job(
    name="cdc",
    help="A compacted topic of changes into a table with the last row of each key; deletes are honoured.",
    config_type=CdcConfig,
    state_version=1,
    build=build,
    # Rows whose keys the new topic does not have would never be deleted: no option goes on with such a table.
    check_table=lambda spark, config, found: check_topic_ids(spark, config.table, found),
    uses_of=lambda config: artefacts_of(config.table),
)
