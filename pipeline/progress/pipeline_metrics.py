"""The metrics of a job: their definitions, and what Prometheus is told of them.

`pipeline` is the name of the job's instance: the label `job` is Prometheus' own. What a scrape gets is made of the
newest values at that time, so a partition that is gone has no series any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from .progress_table import ProgressTable, QueryStatus
from .progress_values import QueryProgress

# Series of partitions are told of at most so many partitions of a query, three for each; of a topic always.
PARTITIONS_MAX: Final = 5_000
TOPICS_MAX: Final = 1_000

_PREFIX: Final = "penstock_pipeline_"
_QUERY: Final = ("pipeline", "query")
_PARTITION: Final = (*_QUERY, "topic", "partition")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PipelineMetric:
    """A definition; a counter's name ends with `_total`."""

    name: str
    kind: Literal["counter", "gauge"]
    labels: tuple[str, ...] = _QUERY
    help: str

    def family(self) -> Metric:
        made = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        family: Metric = made(self.name, self.help, labels=self.labels)
        return family


def _counter(name: str, help_text: str, *labels: str) -> PipelineMetric:
    return PipelineMetric(name=f"{_PREFIX}{name}_total", kind="counter", labels=(*_QUERY, *labels), help=help_text)


def _gauge(name: str, help_text: str, *labels: str) -> PipelineMetric:
    return PipelineMetric(name=f"{_PREFIX}{name}", kind="gauge", labels=(*_QUERY, *labels), help=help_text)


RUNNING: Final = _gauge("running", "1 while the query runs, 0 once it has ended.")
STARTS: Final = _counter("starts", "Starts of the query in this process: restarts are one fewer.")
FAILURES: Final = _counter("failures", "Runs of the query that ended with an error.")
LAST_SEEN: Final = _gauge(
    "last_progress_timestamp_seconds", "When Spark last posted an event of the query, an idle one too."
)
BATCHES: Final = _counter("batches", "Batches that were committed.")
BATCH_ID: Final = _gauge("batch_id", "Number of the newest batch in the checkpoint.")
INPUT_ROWS: Final = _counter("input_rows", "Rows read from all sources.")
INPUT_RATE: Final = _gauge("input_rows_per_second", "Rows that arrived per second before the newest batch.")
PROCESSED_RATE: Final = _gauge("processed_rows_per_second", "Rows per second that the newest batch handled.")
BATCH_SECONDS: Final = _gauge("batch_duration_seconds", "How long each phase of the newest batch took.", "phase")
PHASE_SECONDS: Final = _counter("phase_seconds", "How long each phase of all batches took.", "phase")
OFFSET: Final = _gauge("offset", "Next offset to be read: what is below is in a committed batch.", "topic", "partition")
LATEST_OFFSET: Final = _gauge(
    "latest_offset", "End of the partition when the newest batch began.", "topic", "partition"
)
LAG: Final = _gauge("lag_offsets", "Offsets between the two.", "topic", "partition")
TOPIC_LAG: Final = _gauge("topic_lag_offsets", "The lag of all partitions of a topic.", "topic")
WATERMARK: Final = _gauge("watermark_timestamp_seconds", "The watermark of event time; absent without one.")
STATE_ROWS: Final = _gauge("state_rows", "Rows in the state of an operator.", "operator")
STATE_BYTES: Final = _gauge("state_memory_bytes", "Memory that the state of an operator takes.", "operator")
LATE_ROWS: Final = _counter("late_rows", "Rows that stateful operators dropped, as they came behind the watermark.")
GROUP_COMMITS: Final = PipelineMetric(
    name=f"{_PREFIX}group_commits_total",
    kind="counter",
    labels=("pipeline", "group"),
    help="Commits of the offsets reached to the progress group.",
)
GROUP_FAILURES: Final = PipelineMetric(
    name=f"{_PREFIX}group_commit_failures_total",
    kind="counter",
    labels=("pipeline", "group"),
    help="Commits to the progress group that failed; the job goes on, and the next commit has these offsets too.",
)
METRICS: Final = (
    RUNNING, STARTS, FAILURES, LAST_SEEN, BATCHES, BATCH_ID, INPUT_ROWS, INPUT_RATE, PROCESSED_RATE, BATCH_SECONDS,
    PHASE_SECONDS, OFFSET, LATEST_OFFSET, LAG, TOPIC_LAG, WATERMARK, STATE_ROWS, STATE_BYTES, LATE_ROWS, GROUP_COMMITS,
    GROUP_FAILURES,
)  # fmt: skip

Sample = tuple[PipelineMetric, tuple[str, ...], float]


@dataclass(slots=True)
class GroupCounts:
    """Of commits to the progress group."""

    group: str
    commits: int = 0
    failures: int = 0


class PipelineCollector(Collector):
    """What a registry of Prometheus' client asks for at each scrape."""

    def __init__(self, pipeline: str, table: ProgressTable, group: GroupCounts | None = None) -> None:
        self._pipeline = pipeline
        self._table = table
        self._group = group

    def collect(self) -> Iterable[Metric]:
        families: dict[str, Any] = {}
        for metric, labels, value in self._samples():
            if metric.name not in families:
                families[metric.name] = metric.family()
            family = families[metric.name]
            family.add_metric((self._pipeline, *labels), value)
        return families.values()

    def _samples(self) -> Iterator[Sample]:
        for status in self._table.statuses():
            yield from samples_of(status)
        if self._group is not None:
            yield GROUP_COMMITS, (self._group.group,), self._group.commits
            yield GROUP_FAILURES, (self._group.group,), self._group.failures


def samples_of(status: QueryStatus) -> Iterator[Sample]:
    """Of one query; labels without the pipeline's."""
    name = (status.name,)
    yield RUNNING, name, status.is_running
    yield STARTS, name, status.starts
    yield FAILURES, name, status.failures
    yield BATCHES, name, status.batches
    yield INPUT_ROWS, name, status.input_rows
    yield LATE_ROWS, name, status.late_rows
    if status.seen_ms is not None:
        yield LAST_SEEN, name, status.seen_ms / 1000
    for phase, seconds in status.phases_s.items():
        yield PHASE_SECONDS, (*name, phase), seconds
    if status.newest is not None:
        yield from _samples_of_progress(name, status.newest)


def _samples_of_progress(name: tuple[str], newest: QueryProgress) -> Iterator[Sample]:
    yield BATCH_ID, name, newest.batch_id
    yield INPUT_RATE, name, newest.input_rows_per_second
    yield PROCESSED_RATE, name, newest.processed_rows_per_second
    for phase, seconds in newest.phases_s.items():
        yield BATCH_SECONDS, (*name, phase), seconds
    if newest.watermark_ms is not None:
        yield WATERMARK, name, newest.watermark_ms / 1000
    for state in newest.states:
        yield STATE_ROWS, (*name, state.operator), state.rows
        yield STATE_BYTES, (*name, state.operator), state.memory_bytes
    lags: dict[str, int] = {}
    for number, one in enumerate(newest.partitions):
        lag = one.lag
        if lag is not None and (one.topic in lags or len(lags) < TOPICS_MAX):
            lags[one.topic] = lags.get(one.topic, 0) + lag
        if number >= PARTITIONS_MAX:
            continue
        place = (*name, one.topic, str(one.partition))
        yield OFFSET, place, one.offset
        if one.latest_offset is not None and lag is not None:
            yield LATEST_OFFSET, place, one.latest_offset
            yield LAG, place, lag
    for topic, total in lags.items():
        yield TOPIC_LAG, (*name, topic), total
