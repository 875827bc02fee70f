"""The life of a job: its checkpoint is claimed, its queries are started, watched and stopped."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Final, TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from ..config import JobConfig
from ..connector.deadline import Deadline
from ..connector.errors import RequestError
from ..connector.source_topics import TIMEOUT_S, source_topic_ids
from ..job import Job, JobError, checkpoint_folder, instance_name
from .checkpoint_owner import CheckpointOwner, claim

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

C = TypeVar("C", bound=JobConfig)

_POLL_S: Final = 0.2
_OF_PYTHON: Final = "raised by the Python Proxy"
# A line of a traceback that names the class of an exception, and what it says.
_RAISED: Final = re.compile(r"^(?:[a-z_][\w.]*\.)?\w*(?:Error|Exception): (.+)$", re.MULTILINE)
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class StopRequest:
    """Set by the first SIGTERM or SIGINT."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        self._event.set()

    def wait(self, timeout_s: float) -> bool:
        return self._event.wait(timeout_s)

    def __bool__(self) -> bool:
        return self._event.is_set()


def run(
    spark: SparkSession,
    job: Job[C],
    config: C,
    *,
    stop: StopRequest,
    stop_timeout_s: float,
    say: Callable[[str], None] = lambda _line: None,
) -> int:
    """Runs a job until its queries end, or until `stop` is set: then the batch in progress is finished first, for at
    most `stop_timeout_s`. Returns the exit status.

    Raises JobError for a checkpoint of another, for a topic that was made anew, and when a query fails: what it has
    committed stays, and the next run goes on there.
    """
    folder = checkpoint_folder(job, config)
    try:
        topic_ids = _topic_ids(spark, job, config, stop)
        if topic_ids is None:
            return 0
        anew = job.check_table(spark, config, topic_ids) if job.check_table else frozenset()
        claim(spark, folder, _owner(job, config, topic_ids), begun_anew=anew)
        query = job.build(spark, config)
    except (PySparkException, Py4JError, RequestError) as error:
        raise JobError(f"{instance_name(job, config)} cannot start: {_first_lines(str(error))}") from error
    say(f"{query.name} runs; its checkpoint is {folder}")
    queries = [query, *(other for other in spark.streams.active if other.id != query.id)]
    try:
        while any(one.isActive for one in queries) and not stop.wait(_POLL_S):
            _raise_failures(queries)
        if stop:
            say("stopping after this batch")
            for one in queries:
                finish_batch(one, timeout_s=stop_timeout_s)
        _raise_failures(queries)
    except (Py4JError, OSError) as error:
        raise JobError(f"Spark's Java process does not answer any more: {_first_lines(str(error))}") from error
    finally:
        for one in queries:
            # Without its process there is nothing to stop.
            with suppress(Py4JError, OSError):
                one.stop()
    if stop or job.conclude is None:
        return 0
    return job.conclude(spark, config)


def finish_batch(query: StreamingQuery, *, timeout_s: float) -> None:
    """Stops a query when the batch in progress, if any, has been committed, or after `timeout_s`: to interrupt it would
    have it done again at the next start."""
    waited_s = 0.0
    batch = _last_batch(query)
    while query.isActive and query.status["isTriggerActive"] and _last_batch(query) == batch and waited_s < timeout_s:
        query.awaitTermination(_POLL_S)  # type: ignore[arg-type]  # It takes fractions of a second.
        waited_s += _POLL_S
    query.stop()


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """SIGTERM and SIGINT set the request while this lasts. Spark's own handler of SIGINT would cancel jobs."""
    request = StopRequest()

    def handle(_number: int, _frame: FrameType | None) -> None:
        request.set()

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _owner(job: Job[C], config: C, topic_ids: Mapping[str, str]) -> CheckpointOwner:
    return CheckpointOwner(
        job=job.name,
        name=instance_name(job, config),
        state_version=job.state_version,
        source=config.topic_pattern or ",".join(sorted(config.topics)),
        settings=config.bound_settings(),
        topic_ids=dict(topic_ids),
    )


def _topic_ids(spark: SparkSession, job: Job[C], config: C, stop: StopRequest) -> dict[str, str] | None:
    """None when it is stopped while it waits for the cluster. Raises RequestError."""
    if not job.follows_topics or not config.bootstrap:
        return {}
    try:
        return source_topic_ids(spark, config, Deadline(TIMEOUT_S, lambda: bool(stop)))
    except RequestError:
        if stop:
            return None
        raise


def _last_batch(query: StreamingQuery) -> object:
    """The number of the last batch that was committed with data, None before the first."""
    progress = query.lastProgress
    return None if progress is None else progress["batchId"]


def _raise_failures(queries: list[StreamingQuery]) -> None:
    for query in queries:
        failure = query.exception()
        if failure is not None:
            raise JobError(f"{query.name} failed: {_first_lines(str(failure))}") from failure


def _first_lines(message: str) -> str:
    """Spark puts the plan and the Java stack behind the sentence that matters, and Python's traceback, of what a batch
    does here, before it."""
    if _OF_PYTHON in message:
        raised = _RAISED.findall(message.partition("=== Streaming Query ===")[0])
        message = raised[-1] if raised else message
    lines = [line for line in message.splitlines() if line.strip()]
    return " ".join(lines[:3])[:2000]
