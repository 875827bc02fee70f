"""What is known of all queries of a job: the newest progress of each, and what has added up since the process began.

A query goes by its name, which a restart keeps. The listener writes here, from one thread of Spark's callbacks; the
exposition for Prometheus reads from another, and gets frozen values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from .progress_values import QueryProgress

# A job has a query or a few. What makes new names without an end would make series without an end.
QUERIES_MAX: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryStatus:
    """Of one query. Counts are those since the process began, of all its runs."""

    name: str
    query_id: str
    run_id: str
    is_running: bool = True
    # Of the newest run, once it has ended.
    has_failed: bool = False
    newest: QueryProgress | None = None
    # When Spark posted the last event of it, an idle one too.
    seen_ms: int | None = None
    starts: int = 1
    failures: int = 0
    batches: int = 0
    input_rows: int = 0
    late_rows: int = 0
    phases_s: Mapping[str, float] = field(default_factory=dict)


class ProgressTable:
    """The only owner of statuses."""

    def __init__(self) -> None:
        self._by_name: dict[str, QueryStatus] = {}
        self._names: dict[str, str] = {}

    def statuses(self) -> Sequence[QueryStatus]:
        return tuple(self._by_name.values())

    def running(self) -> bool:
        return any(one.is_running for one in self.statuses())

    def started(self, query_id: str, run_id: str, name: str | None) -> None:
        name = name or query_id
        self._names[query_id] = name
        before = self._by_name.get(name)
        if before is not None:
            self._by_name[name] = replace(
                before, query_id=query_id, run_id=run_id, is_running=True, has_failed=False, starts=before.starts + 1
            )
        elif len(self._by_name) < QUERIES_MAX:
            self._by_name[name] = QueryStatus(name=name, query_id=query_id, run_id=run_id)

    def progressed(self, progress: QueryProgress) -> QueryStatus | None:
        """The status with it; None for a query beyond the bound."""
        if progress.name not in self._by_name:
            self.started(progress.query_id, progress.run_id, progress.name)
        before = self._by_name.get(progress.name)
        if before is None:
            return None
        phases = dict(before.phases_s)
        for phase, seconds in progress.phases_s.items():
            phases[phase] = phases.get(phase, 0.0) + seconds
        status = replace(
            before,
            newest=_with_places_of(progress, before.newest),
            seen_ms=progress.ended_ms,
            batches=before.batches + progress.is_committed,
            input_rows=before.input_rows + progress.input_rows,
            late_rows=before.late_rows + sum(one.late_rows for one in progress.states),
            phases_s=phases,
        )
        self._by_name[progress.name] = status
        return status

    def idled(self, query_id: str, time_ms: int) -> None:
        """Nothing new was there at the time."""
        status = self._of(query_id)
        if status is not None:
            newest = status.newest
            if newest is not None:
                newest = replace(newest, input_rows_per_second=0.0, processed_rows_per_second=0.0)
            self._by_name[status.name] = replace(status, seen_ms=time_ms, newest=newest)

    def terminated(self, query_id: str, run_id: str, *, has_failed: bool) -> QueryStatus | None:
        """The status with it; None for a run that another one has followed already."""
        before = self._of(query_id)
        if before is None or before.run_id != run_id:
            return None
        status = replace(before, is_running=False, has_failed=has_failed, failures=before.failures + has_failed)
        self._by_name[before.name] = status
        return status

    def _of(self, query_id: str) -> QueryStatus | None:
        return self._by_name.get(self._names.get(query_id, ""))


def _with_places_of(progress: QueryProgress, before: QueryProgress | None) -> QueryProgress:
    """A progress without places in topics says nothing of them, and one without ends of partitions nothing of these."""
    if before is None or not progress.partitions:
        return progress if before is None else replace(progress, partitions=before.partitions)
    ends = {(one.topic, one.partition): one.latest_offset for one in before.partitions}
    partitions = []
    for one in progress.partitions:
        end = ends.get((one.topic, one.partition)) if one.latest_offset is None else None
        partitions.append(one if end is None else replace(one, latest_offset=max(end, one.offset)))
    return replace(progress, partitions=tuple(partitions))
