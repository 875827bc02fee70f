"""`join`: a stream with another stream within bounds of time, or with a compacted topic as a table.

Two streams: each record meets those of the other stream with the same key whose event time is from `before_ms` before
to `after_ms` after its own. Both sides wait in the state until the watermarks of both have passed the bounds; a left
record without a partner comes out then, if `kind` is left.

A table: each record meets the latest value of its key, as it is committed when the record's batch begins; a tombstone
is no value. Nothing waits, and no later change of the table changes what was written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from ..config import JobConfig
from ..job import Job, checkpoint_folder, instance_name
from ..records.dead_letters import counted, used, write_dead_letters
from ..records.decoding import REASON, decode
from ..records.value_format import ValueFormat
from ..results.event_times import EVENT_TIME, field, with_event_time
from ..results.logged_batch import records_of_batch
from ..results.table_result import appended
from ..results.table_snapshot import TableSnapshot
from ..results.topic_result import joined_key, write_results
from ..source import read_topics, started
from ..tables.batch import kept
from ..tables.settings import TableSettings, artefacts_of, bound_table

_RESULT: Final = ("event_time", "left", "right")


class JoinConfig(JobConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`topics` has the one topic of the left side; either `right_topic` or `table_topic` is set."""

    value: ValueFormat = ValueFormat()
    event_time: str = ""
    """The field with the time of the event; the record's timestamp if empty."""
    key: tuple[str, ...] = ("record.key",)
    """Fields that are equal on both sides, in their order."""
    watermark_delay_ms: int = 600_000
    right_topic: str = ""
    table_topic: str = ""
    right_value: ValueFormat = ValueFormat()
    """How values of the other stream, or of the table, are encoded."""
    right_event_time: str = ""
    right_key: tuple[str, ...] = ("record.key",)
    right_watermark_delay_ms: int = 600_000
    before_ms: int = 0
    after_ms: int = 0
    kind: str = "inner"
    """inner, or left: records of the left side without a partner come out with none."""
    output_topic: str = ""
    table: TableSettings | None = None
    """Pairs are added to it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.topics) != 1:
            raise ValueError("`topics` has the one topic of the left side")
        if bool(self.right_topic) == bool(self.table_topic):
            raise ValueError("either `right_topic` or `table_topic` is set")
        if self.topics[0] in (self.right_topic, self.table_topic):
            raise ValueError("both sides are one topic")
        if self.table_topic and (self.right_event_time or self.before_ms or self.after_ms):
            raise ValueError(
                "a table has no event times: `right_event_time`, `before_ms` and `after_ms` are of streams"
            )
        if min(self.before_ms, self.after_ms, self.watermark_delay_ms, self.right_watermark_delay_ms) < 0:
            raise ValueError("a length of time is not negative")
        if self.kind not in ("inner", "left"):
            raise ValueError(f"`kind` is inner or left, not {self.kind!r}")
        if not self.key or len(self.key) != len(self.right_key):
            raise ValueError("`key` and `right_key` have as many fields, at least one")
        if not self.output_topic and self.table is None:
            raise ValueError("the results need an `output_topic` or a `table`")

    def offset_topics(self) -> tuple[str, ...]:
        # A table is read from its start by every run.
        return (*self.topics, self.right_topic) if self.right_topic else self.topics

    def bound_settings(self) -> dict[str, str]:
        keys = {"key": ",".join(self.key), "right_key": ",".join(self.right_key)}
        return {**bound_table(self.table), "right_topic": self.right_topic, **keys}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """One of the two that are joined; its columns are called `<name>_…`, so that no two are the same."""

    name: str
    topic: str
    value: ValueFormat
    event_time: str
    key: tuple[str, ...]

    def decoded(self, records: DataFrame) -> DataFrame:
        return with_event_time(decode(records, self.value, self.topic), self.event_time)

    def columns(self, records: DataFrame) -> DataFrame:
        keys = [field(records, path)[0].alias(f"{self.name}_key_{index}") for index, path in enumerate(self.key)]
        return records.select(*keys, F.col(EVENT_TIME).alias(f"{self.name}_time"), F.col("value").alias(self.name))


def build(spark: SparkSession, config: JoinConfig) -> StreamingQuery:
    """Raises JobError."""
    left = _Side(
        name="left",
        topic=config.topics[0],
        value=config.value,
        event_time=config.event_time,
        key=config.key,
    )
    right = _Side(
        name="right",
        topic=config.right_topic or config.table_topic,
        value=config.right_value,
        event_time=config.right_event_time,
        key=config.right_key,
    )
    if config.table_topic:
        return _joined_with_table(spark, config, left, right)
    return _joined_streams(spark, config, left, right)


def _joined_streams(spark: SparkSession, config: JoinConfig, left: _Side, right: _Side) -> StreamingQuery:
    name = instance_name(JOB, config)
    sides = []
    for side, delay_ms in ((left, config.watermark_delay_ms), (right, config.right_watermark_delay_ms)):
        events = side.decoded(read_topics(spark, config, topics=(side.topic,)))
        columns = side.columns(used(events, config, name, side=side.name))
        sides.append(columns.withWatermark(f"{side.name}_time", f"{delay_ms} milliseconds"))
    before, after = (F.expr(f"INTERVAL {ms} MILLISECOND") for ms in (config.before_ms, config.after_ms))
    joined = sides[0].join(
        sides[1],
        _same_key(config)
        & (F.col("right_time") >= F.col("left_time") - before)
        & (F.col("right_time") <= F.col("left_time") + after),
        "left_outer" if config.kind == "left" else "inner",
    )
    return started(
        JOB, config, joined.writeStream.outputMode("append").foreachBatch(_write_joined(config, left, right))
    )


def _write_joined(config: JoinConfig, left: _Side, right: _Side) -> Callable[[DataFrame, int], None]:
    name = instance_name(JOB, config)
    folder = f"{checkpoint_folder(JOB, config)}/main"
    write_pairs = _pair_writer(config)

    def write(joined: DataFrame, batch_id: int) -> None:
        if config.dead_letter_topic:
            for side in (left, right):
                found = records_of_batch(joined.sparkSession, config, folder, batch_id, (side.topic,))
                if found is not None:
                    write_dead_letters(side.decoded(found.records), config, name)
        write_pairs(joined, batch_id)

    return write


def _joined_with_table(spark: SparkSession, config: JoinConfig, left: _Side, right: _Side) -> StreamingQuery:
    """Records come to the batch as they are, with the bad ones where these are to be written."""
    name = instance_name(JOB, config)
    events = left.decoded(read_topics(spark, config))
    left.columns(events)
    is_kept = bool(config.dead_letter_topic)
    records = counted(events, side=left.name) if is_kept else used(events, config, name, side=left.name)
    snapshot = TableSnapshot(config, right.topic)
    write_pairs = _pair_writer(config)
    kind = "left_outer" if config.kind == "left" else "inner"

    def write(batch: DataFrame, batch_id: int) -> None:
        with kept(batch) as events:
            write_dead_letters(events, config, name)
            table = right.decoded(snapshot.refreshed(batch.sparkSession))
            rows = right.columns(_table_rows(table, config, name))
            records = left.columns(events.where(F.col(REASON).isNull()))
            write_pairs(records.join(rows, _same_key(config), kind), batch_id)

    return started(JOB, config, records.writeStream.foreachBatch(write))


def _table_rows(table: DataFrame, config: JoinConfig, name: str) -> DataFrame:
    """Without tombstones. A bad record is not written to the dead-letter topic: it would be in every batch."""
    rows = table.where(F.col("value").isNotNull() | F.col(REASON).isNotNull())
    if config.dead_letter_topic:
        return rows.where(F.col(REASON).isNull())
    return used(rows, config, name, side="table")


def _same_key(config: JoinConfig) -> Column:
    condition = F.lit(True)
    for index in range(len(config.key)):
        condition = condition & (F.col(f"left_key_{index}") == F.col(f"right_key_{index}"))
    return condition


def _pair_writer(config: JoinConfig) -> Callable[[DataFrame, int], None]:
    """Writes the pairs of a batch."""
    key = joined_key([F.col(f"left_key_{index}") for index in range(len(config.key))])
    write_table = None if config.table is None else appended(config.table, _RESULT[0])

    def write(joined: DataFrame, batch_id: int) -> None:
        pairs = joined.withColumnRenamed("left_time", "event_time")
        if write_table is None:
            write_results(pairs, key, _RESULT, config, config.output_topic)
            return
        with kept(pairs) as rows:
            if config.output_topic:
                write_results(rows, key, _RESULT, config, config.output_topic)
            write_table(rows.select(*_RESULT), batch_id)

    return write


JOB: Final = Job(
    name="join",
    help="Two streams within bounds of time, or a stream with a compacted topic as a table, to a topic and a table.",
    config_type=JoinConfig,
    state_version=1,
    build=build,
    uses_of=lambda config: () if config.table is None else artefacts_of(config.table),
)
