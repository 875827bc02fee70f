"""What Spark says of one batch of a query, as values: read from the JSON of a StreamingQueryProgress.

Rates are rows per second, durations seconds, times milliseconds since 1970. Spark posts a progress once a batch is in
the commit log of the checkpoint, or with no batch at all when a trigger found nothing. Source: Spark,
org.apache.spark.sql.streaming.StreamingQueryProgress.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

# Written by phases that only a batch has that was carried out and committed: Spark 4.0 and before, Spark 4.1 and later.
_OF_COMMITTED_BATCHES: Final = frozenset({"commitOffsets", "commitBatch"})
PHASES: Final = (
    "addBatch",
    "commitBatch",
    "commitOffsets",
    "getBatch",
    "latestOffset",
    "queryPlanning",
    "triggerExecution",
    "walCommit",
)
OTHER_PHASE: Final = "other"
"""The phases that Spark names; what another version adds counts as one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProgress:
    """`offset` is the next one to be read, `latest_offset` the end of the partition when the trigger began; None
    where the source did not say, as of a batch that is done again after a restart."""

    topic: str
    partition: int
    offset: int
    latest_offset: int | None

    @property
    def lag(self) -> int | None:
        """Records and markers between the two; None where it is not known."""
        return None if self.latest_offset is None else max(0, self.latest_offset - self.offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateProgress:
    """One stateful operator, by its place in the plan."""

    operator: str
    rows: int
    memory_bytes: int
    # Rows that came behind the watermark in this batch.
    late_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryProgress:
    """One progress of one query."""

    query_id: str
    run_id: str
    name: str
    batch_id: int
    is_committed: bool
    input_rows: int
    input_rows_per_second: float
    processed_rows_per_second: float
    # When the trigger began, and how long it took in all.
    began_ms: int
    duration_s: float
    phases_s: Mapping[str, float]
    partitions: tuple[PartitionProgress, ...]
    watermark_ms: int | None
    states: tuple[StateProgress, ...]

    @property
    def ended_ms(self) -> int:
        return self.began_ms + round(self.duration_s * 1000)

    @property
    def lag(self) -> int | None:
        """Of all partitions of which it is known; None where it is of none."""
        known = [one.lag for one in self.partitions if one.lag is not None]
        return sum(known) if known else None


def progress_of(text: str | bytes) -> QueryProgress:
    """Raises ValueError where `text` is no progress of a query, with what was expected and found."""
    try:
        told: Mapping[str, Any] = msgspec.json.decode(text)
        durations: Mapping[str, int] = told.get("durationMs") or {}
        batch_ms = durations.get("triggerExecution", told.get("batchDuration", 0))
        return QueryProgress(
            query_id=told["id"],
            run_id=told["runId"],
            name=told.get("name") or told["id"],
            batch_id=told["batchId"],
            is_committed=not _OF_COMMITTED_BATCHES.isdisjoint(durations),
            input_rows=told.get("numInputRows", 0),
            input_rows_per_second=told.get("inputRowsPerSecond", 0.0),
            processed_rows_per_second=told.get("processedRowsPerSecond", 0.0),
            began_ms=_ms(told["timestamp"]),
            duration_s=batch_ms / 1000,
            phases_s=_phases(durations),
            partitions=tuple(_partitions(told.get("sources") or ())),
            watermark_ms=_watermark(told.get("eventTime") or {}),
            states=tuple(_states(told.get("stateOperators") or ())),
        )
    except (msgspec.DecodeError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"expected the JSON of a StreamingQueryProgress, and found another form ({type(error).__name__}: {error})"
        ) from error


def _phases(durations: Mapping[str, int]) -> Mapping[str, float]:
    phases: dict[str, float] = {}
    for name, duration_ms in durations.items():
        phase = name if name in PHASES else OTHER_PHASE
        phases[phase] = phases.get(phase, 0.0) + duration_ms / 1000
    return phases


def _partitions(sources: Any) -> Iterator[PartitionProgress]:
    """Of all sources of Kafka. What two of them read stands at the lower offset: what only one has read is not done."""
    found: dict[tuple[str, int], PartitionProgress] = {}
    for source in sources:
        latest = _offsets(source.get("latestOffset"))
        for place, offset in _offsets(source.get("endOffset")).items():
            one = PartitionProgress(topic=place[0], partition=place[1], offset=offset, latest_offset=latest.get(place))
            before = found.get(place)
            if before is None or one.offset < before.offset:
                found[place] = one
    yield from (found[place] for place in sorted(found))


def _offsets(told: Any) -> Mapping[tuple[str, int], int]:
    """{topic: {partition: offset}}; nothing of sources that tell their place in another form, as files and rates do."""
    if isinstance(told, str):
        try:
            told = msgspec.json.decode(told)
        except msgspec.DecodeError:
            return {}
    if not isinstance(told, dict):
        return {}
    offsets = {}
    for topic, partitions in told.items():
        if not isinstance(partitions, dict):
            return {}
        for partition, offset in partitions.items():
            if not partition.isdecimal() or not isinstance(offset, int):
                return {}
            offsets[topic, int(partition)] = offset
    return offsets


def _states(operators: Any) -> Iterator[StateProgress]:
    for number, operator in enumerate(operators):
        yield StateProgress(
            operator=f"{number} {operator.get('operatorName', 'unknown')}",
            rows=operator.get("numRowsTotal", 0),
            memory_bytes=operator.get("memoryUsedBytes", 0),
            late_rows=operator.get("numRowsDroppedByWatermark", 0),
        )


def _watermark(event_time: Mapping[str, str]) -> int | None:
    """None before the first one, which Spark tells as 1970."""
    told = event_time.get("watermark")
    return None if told is None else _ms(told) or None


def _ms(text: str) -> int:
    """Of a time in ISO 8601, UTC."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)
