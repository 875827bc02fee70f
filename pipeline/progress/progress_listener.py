"""The listener that Spark's JVM calls, through Py4J's callback server: events become values, and no error goes back.

Spark calls `onQueryStarted` within `start()`, and the others in order from a thread of its listener bus. An error in
one of them would be a stack trace in the log of the JVM, so what goes wrong is told as a warning here.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from .progress_values import QueryProgress, progress_of


class ProgressEvents(Protocol):
    """What the listener tells. Ids are UUIDs as text; a run is one life of a query."""

    def started(self, query_id: str, run_id: str, name: str | None) -> None: ...

    def progressed(self, progress: QueryProgress) -> None: ...

    def idled(self, query_id: str, time_ms: int) -> None: ...

    def terminated(self, query_id: str, run_id: str, *, has_failed: bool) -> None: ...


class ProgressListener(StreamingQueryListener):
    """`warn` is given a sentence for an event that could not be taken in."""

    def __init__(self, events: ProgressEvents, warn: Callable[[str], None]) -> None:
        self._events = events
        self._warn = warn

    # Names of Spark's.
    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        self._take(lambda: self._events.started(str(event.id), str(event.runId), event.name))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        self._take(lambda: self._events.progressed(progress_of(event.progress.json)))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        time = datetime.fromisoformat(event.timestamp).astimezone(UTC)
        self._take(lambda: self._events.idled(str(event.id), round(time.timestamp() * 1000)))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        has_failed = event.exception is not None
        self._take(lambda: self._events.terminated(str(event.id), str(event.runId), has_failed=has_failed))

    def _take(self, event: Callable[[], None]) -> None:
        try:
            event()
        except Exception as error:
            self._warn(f"an event of Spark's was left out of the progress ({type(error).__name__}: {error})")
