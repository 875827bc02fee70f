"""`windows`: counts and aggregates by event time, to a topic and a table.

A window is open until the watermark (the greatest event time so far, less `watermark_delay_ms`) has passed its end. In
mode `update` each batch writes the windows that it has changed, so that the last record of a key is the window's value
so far; in mode `append` each window is written once, when it is closed. A record whose window is closed is late: it
changes nothing, and goes to `late_topic` if there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from ..config import JobConfig
from ..job import Job, checkpoint_folder, instance_name
from ..records.dead_letters import used, write_dead_letters, write_set_aside
from ..records.decoding import REASON, decode
from ..records.value_format import ValueFormat
from ..results.aggregates import Aggregate, parse_aggregates
from ..results.event_times import EVENT_TIME, FieldError, field, with_event_time
from ..results.logged_batch import records_of_batch
from ..results.table_result import appended, upserted
from ..results.topic_result import joined_key, write_results
from ..source import read_topics, started
from ..tables.batch import kept
from ..tables.settings import TableSettings, artefacts_of, bound_table

_WINDOW: Final = ("window_start", "window_end")


class WindowsConfig(JobConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Exactly one of `window_ms` and `session_gap_ms` is set."""

    value: ValueFormat = ValueFormat()
    """How values are encoded; raw can only be counted, by the record's own timestamp."""
    event_time: str = ""
    """The field with the time of the event; the record's timestamp if empty."""
    max_event_time_ahead_ms: int = 0
    """A record whose event time is further ahead of its timestamp is a bad record; 0: none is."""
    window_ms: int = 0
    slide_ms: int = 0
    """Between the starts of two windows; the window's length if 0."""
    session_gap_ms: int = 0
    """Windows of sessions: each ends when a group has no record for so long. Only in mode append."""
    watermark_delay_ms: int = 600_000
    group_by: tuple[str, ...] = ()
    """Fields of the value, or record.key, record.topic, record.partition."""
    aggregates: tuple[str, ...] = ("count",)
    output_mode: str = "update"
    output_topic: str = ""
    table: TableSettings | None = None
    """In mode update it is upserted by the key, in mode append the closed windows are added."""
    late_topic: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.window_ms) == bool(self.session_gap_ms):
            raise ValueError("either `window_ms` or `session_gap_ms` is set")
        if self.slide_ms and not 0 < self.slide_ms <= self.window_ms:
            raise ValueError(f"`slide_ms` is at most `window_ms`, {self.window_ms}, not {self.slide_ms}")
        if min(self.window_ms, self.session_gap_ms, self.watermark_delay_ms, self.max_event_time_ahead_ms) < 0:
            raise ValueError("a length of time is not negative")
        if self.output_mode not in ("update", "append"):
            raise ValueError(f"`output_mode` is update or append, not {self.output_mode!r}")
        if self.session_gap_ms and self.output_mode == "update":
            raise ValueError("sessions grow together, so only `output_mode` append writes them")
        if not self.output_topic and self.table is None:
            raise ValueError("the results need an `output_topic` or a `table`")

    def bound_settings(self) -> dict[str, str]:
        # Spark compares types only: with another field of the same type, or another length, values of the state would
        # be added to what they are not of.
        times = {name: str(getattr(self, name)) for name in ("window_ms", "slide_ms", "session_gap_ms")}
        fields = {"event_time": self.event_time, "group_by": ",".join(self.group_by)}
        return {**bound_table(self.table), **times, **fields, "aggregates": ",".join(self.aggregates)}


def build(spark: SparkSession, config: WindowsConfig) -> StreamingQuery:
    """Raises JobError."""
    name = instance_name(JOB, config)
    events = _events(read_topics(spark, config), config)
    groups = {path.replace(".", "_"): path for path in config.group_by}
    aggregates = parse_aggregates(config.aggregates, (*_WINDOW, *groups))
    results = _aggregated(used(events, config, name), config, groups, aggregates)
    writer = results.writeStream.outputMode(config.output_mode).foreachBatch(_write_batch(config, tuple(groups)))
    return started(JOB, config, writer)


def _events(records: DataFrame, config: WindowsConfig) -> DataFrame:
    topic = config.topics[0] if len(config.topics) == 1 else ""
    decoded = decode(records, config.value, topic)
    return with_event_time(decoded, config.event_time, max_ahead_ms=config.max_event_time_ahead_ms)


def _aggregated(
    events: DataFrame, config: WindowsConfig, groups: dict[str, str], aggregates: tuple[Aggregate, ...]
) -> DataFrame:
    watermarked = events.withWatermark(EVENT_TIME, f"{config.watermark_delay_ms} milliseconds")
    keys = [field(events, path)[0].alias(name) for name, path in groups.items()]
    grouped = watermarked.groupBy(_window(config).alias("window"), *keys)
    counted = grouped.agg(*(_aggregate(events, one) for one in aggregates))
    start, end = (F.col(f"window.{edge}").alias(name) for edge, name in zip(("start", "end"), _WINDOW, strict=True))
    return counted.select(start, end, *groups, *(one.name for one in aggregates))


def _window(config: WindowsConfig) -> Column:
    if config.session_gap_ms:
        return F.session_window(EVENT_TIME, f"{config.session_gap_ms} milliseconds")
    slide = f"{config.slide_ms or config.window_ms} milliseconds"
    return F.window(EVENT_TIME, f"{config.window_ms} milliseconds", slide)


def _aggregate(events: DataFrame, one: Aggregate) -> Column:
    """Sums that grow out of their type are null: an exception would end the query at every restart."""
    if not one.field:
        return F.count(F.lit(1)).alias(one.name)
    column, kind = field(events, one.field)
    if one.function in ("sum", "avg") and not isinstance(kind, T.NumericType):
        raise FieldError(f"{one.function}({one.field}) needs a number, and {one.field} is {kind.simpleString()}")
    functions: dict[str, Callable[[Column], Column]] = {
        "count": F.count,
        "sum": F.try_sum,
        "avg": F.try_avg,
        "min": F.min,
        "max": F.max,
    }
    return functions[one.function](column).alias(one.name)


def _write_batch(config: WindowsConfig, groups: tuple[str, ...]) -> Callable[[DataFrame, int], None]:
    name = instance_name(JOB, config)
    folder = f"{checkpoint_folder(JOB, config)}/main"
    key = _key(groups)
    write_table = _table(config, key)

    def write(results: DataFrame, batch_id: int) -> None:
        if config.dead_letter_topic or config.late_topic:
            _write_set_aside(results.sparkSession, config, name, folder, batch_id)
        if write_table is None:
            write_results(results, key, tuple(results.columns), config, config.output_topic)
            return
        with kept(results) as rows:
            if config.output_topic:
                write_results(rows, key, tuple(rows.columns), config, config.output_topic)
            write_table(rows, batch_id)

    return write


def _table(config: WindowsConfig, key: Column) -> Callable[[DataFrame, int], None] | None:
    if config.table is None:
        return None
    return upserted(config.table, key) if config.output_mode == "update" else appended(config.table, _WINDOW[0])


def _key(groups: tuple[str, ...]) -> Column:
    """The window's start in ISO 8601, then the groups."""
    start = F.date_format(_WINDOW[0], "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
    return joined_key([start, *(F.col(group) for group in groups)])


def _write_set_aside(spark: SparkSession, config: WindowsConfig, name: str, folder: str, batch_id: int) -> None:
    found = records_of_batch(spark, config, folder, batch_id, config.topics)
    if found is None:
        return
    with kept(_events(found.records, config)) as events:
        write_dead_letters(events, config, name)
        if config.late_topic and found.watermark_ms:
            write_set_aside(_late(events, config, found.watermark_ms), config, name, config.late_topic)


def _late(events: DataFrame, config: WindowsConfig, watermark_ms: int) -> DataFrame:
    """Records that are missing from a window, because it was closed: Spark's own rule, by the end of the window."""
    closed_us = watermark_ms * 1_000
    late = events.where(F.col(REASON).isNull() & (_first_end_us(config) <= closed_us))
    return late.withColumn(REASON, F.lit(f"late: the window was closed by the watermark {watermark_ms} ms"))


def _first_end_us(config: WindowsConfig) -> Column:
    """The end of the earliest window of a record, in microseconds: of sliding windows the one that closes first."""
    time_us = F.unix_micros(EVENT_TIME)
    if config.session_gap_ms:
        return time_us + config.session_gap_ms * 1_000
    window_us, slide_us = config.window_ms * 1_000, (config.slide_ms or config.window_ms) * 1_000
    before_us = time_us - window_us
    return before_us - F.pmod(before_us, F.lit(slide_us)) + slide_us + window_us


JOB: Final = Job(
    name="windows",
    help="Counts and aggregates by event time, with a watermark and late records, to a topic and a table.",
    config_type=WindowsConfig,
    state_version=1,
    build=build,
    uses_of=lambda config: () if config.table is None else artefacts_of(config.table),
)
