"""`lake`: topics into a table, each record exactly once, with all that the topic has of it.

Columns: `topic`, `partition`, `offset`, `timestamp`, `timestamp_type`, `key`, `headers`, `value`, decoded or as it is,
and `event_date`, by which the table is partitioned.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.streaming.query import StreamingQuery

from ..config import JobConfig
from ..job import Job
from ..records.decoding import ENCODED, REASON, decode
from ..records.value_format import ValueFormat
from ..source import read_topics, started
from ..tables.settings import TableSettings, artefacts_of, bound_table, check_topic_ids, open_appended
from ..tables.source_ids import SourceIds
from ..tables.table_sink import TableSink
from .refused import refuse

ACCEPT: Final = "accept_topic_ids"
EVENT_DATE: Final = "event_date"
# Kafka's names of what `message.timestamp.type` made of a record's timestamp.
TIMESTAMP_TYPES: Final = {0: "CreateTime", 1: "LogAppendTime"}


class LakeConfig(JobConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`event_time` is Spark SQL over a decoded record, `value.departed_at` for instance, and gives a timestamp or a
    date; where it gives null the record's own timestamp counts. `keep_encoded` keeps the value as it came, too.
    """

    table: TableSettings
    value: ValueFormat = ValueFormat()
    event_time: str = "timestamp"
    keep_encoded: bool = False
    accept_topic_ids: tuple[str, ...] = ()
    """Ids of topics that were made anew, whose records are added to those that the table has of the topic before."""

    def bound_settings(self) -> dict[str, str]:
        return bound_table(self.table)


def build(spark: SparkSession, config: LakeConfig) -> StreamingQuery:
    """Starts the query."""
    topic = config.topics[0] if len(config.topics) == 1 else ""
    rows = lake_rows(decode(read_topics(spark, config), config.value, topic), config)
    sink = TableSink(
        lambda session: open_appended(session, config.table, {EVENT_DATE: "date"}),
        is_good=fn.col(REASON).isNull(),
        reject=lambda rejected: refuse(rejected, config, JOB.name),
        not_stored=(REASON,) if config.keep_encoded else (REASON, ENCODED),
        has_each_batch=True,
        source=SourceIds(config, table=config.table.location, accepted=config.accept_topic_ids, option=ACCEPT),
    )
    return started(JOB, config, rows.writeStream.foreachBatch(sink))


def lake_rows(decoded: DataFrame, config: LakeConfig) -> DataFrame:
    """The columns of the table, and those that say of a record why it cannot be in it."""
    kinds = fn.create_map(*(fn.lit(part) for pair in TIMESTAMP_TYPES.items() for part in pair))
    event_date = fn.coalesce(fn.to_date(fn.expr(config.event_time)), fn.to_date("timestamp"))
    # A batch is kept in memory: what was decoded, and is not stored, is not kept as it came.
    encoded = fn.col(ENCODED) if config.keep_encoded else fn.when(fn.col(REASON).isNotNull(), fn.col(ENCODED))
    return decoded.select(
        "topic",
        "partition",
        "offset",
        "timestamp",
        kinds[fn.col("timestampType")].alias("timestamp_type"),
        "key",
        "headers",
        "value",
        encoded.alias(ENCODED),
        REASON,
        event_date.alias(EVENT_DATE),
    )


JOB: Final = Job(
    name="lake",
    help="Topics into a table of Parquet, Delta or Iceberg, each record exactly once.",
    config_type=LakeConfig,
    state_version=1,
    build=build,
    check_table=lambda spark, config, found: check_topic_ids(
        spark, config.table, found, config.accept_topic_ids, option=ACCEPT
    ),
    uses_of=lambda config: artefacts_of(config.table),
)
