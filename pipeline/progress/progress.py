"""The progress of one job: what the runner attaches to its session, and closes when the queries have ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Condition
from typing import TYPE_CHECKING, Final, Self, TypeVar

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from rich.console import Console

from ..config import JobConfig
from ..connector.client_properties import SOURCE, client_config
from ..job import Job, JobError, instance_name
from .group_progress import GroupProgress
from .pipeline_metrics import PipelineCollector
from .progress_line import ProgressLine
from .progress_listener import ProgressListener
from .progress_table import ProgressTable
from .progress_values import QueryProgress

if TYPE_CHECKING:
    from types import TracebackType
    from wsgiref.simple_server import WSGIServer

    from pyspark.sql import SparkSession

C = TypeVar("C", bound=JobConfig)

# How long `close` waits for Spark to tell the end of queries that were stopped.
_LAST_EVENTS_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressConfig:
    """`metrics_port` None tells Prometheus nothing, 0 takes a free port. `group_properties` are librdkafka's, those of
    a client of the source cluster; they may have secrets."""

    pipeline: str
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    group: str = ""
    group_properties: Mapping[str, str] = field(default_factory=dict, repr=False)


def progress_config(job: Job[C], config: C) -> ProgressConfig:
    """Raises ConfigError for properties of clients that librdkafka cannot have, where a group is asked for."""
    return ProgressConfig(
        pipeline=instance_name(job, config),
        metrics_port=config.metrics_port or None,
        metrics_host=config.metrics_host,
        group=config.progress_group,
        group_properties=client_config(config, SOURCE) if config.progress_group else {},
    )


class Progress:
    """Attach it before the first query starts. A context manager closes it."""

    def __init__(self, config: ProgressConfig, *, console: Console | None = None) -> None:
        self.table = ProgressTable()
        self._config = config
        self._line = ProgressLine(console or Console(stderr=True))
        self._group: GroupProgress | None = None
        if config.group:
            self._group = GroupProgress(config.group, config.group_properties, self._line.warn)
        self._registry = CollectorRegistry()
        self._registry.register(
            PipelineCollector(config.pipeline, self.table, None if self._group is None else self._group.counts)
        )
        self._server: WSGIServer | None = None
        self._session: SparkSession | None = None
        self._listener = ProgressListener(self, self._line.warn)
        self._changed = Condition()

    @property
    def metrics_port(self) -> int | None:
        """The port that Prometheus can scrape now."""
        return None if self._server is None else self._server.server_port

    def say(self, line: str) -> None:
        """A line of the runner's, above the one that changes."""
        self._line.say(line)

    def exposition(self) -> str:
        """What a scrape gets."""
        return generate_latest(self._registry).decode()

    def attach(self, session: SparkSession) -> None:
        """Begins to listen to all queries of the session. Raises JobError where the port is taken."""
        config = self._config
        if config.metrics_port is not None:
            try:
                self._server, _ = start_http_server(config.metrics_port, config.metrics_host, registry=self._registry)
            except OSError as error:
                address = f"{config.metrics_host}:{config.metrics_port}"
                raise JobError(f"No metrics can be served at {address}: {error.strerror or error}") from error
        self._session = session
        session.streams.addListener(self._listener)

    def close(self) -> None:
        """Waits for the last events of queries that have ended, and for what is on its way to the group; ends the
        server. Once is enough, and twice does no harm."""
        if self._session is not None:
            is_active = bool(self._session.streams.active)
            if not is_active:
                with self._changed:
                    self._changed.wait_for(lambda: not self.table.running(), timeout=_LAST_EVENTS_S)
            self._session.streams.removeListener(self._listener)
            self._session = None
        if self._group is not None:
            self._group.close()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        self._line.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Events, from a thread of Py4J's.

    def started(self, query_id: str, run_id: str, name: str | None) -> None:
        self.table.started(query_id, run_id, name)

    def progressed(self, progress: QueryProgress) -> None:
        status = self.table.progressed(progress)
        if status is None:
            return
        self._line.progressed(status)
        if self._group is not None and progress.is_committed and progress.partitions:
            self._group.reached(progress)

    def idled(self, query_id: str, time_ms: int) -> None:
        self.table.idled(query_id, time_ms)

    def terminated(self, query_id: str, run_id: str, *, has_failed: bool) -> None:
        status = self.table.terminated(query_id, run_id, has_failed=has_failed)
        if status is not None:
            self._line.ended(status)
        with self._changed:
            self._changed.notify_all()
