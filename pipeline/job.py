"""A job: a name, what it may be told, and how its query is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from .config import JobConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

C = TypeVar("C", bound=JobConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Generic[C]):
    name: str
    help: str
    config_type: type[C]
    state_version: int
    """Raised when a checkpoint of before cannot be continued: the runner refuses it."""
    build: Callable[[SparkSession, C], StreamingQuery]
    """Starts the query and returns it. Nothing else happens in it: signals, listeners, files and output are the
    runner's. What goes on beside the main query is found among `spark.streams`."""
    uses: tuple[str, ...] = ()
    """Artefacts beside the connector, by their names in `connector/artefacts.py`."""
    uses_of: Callable[[C], tuple[str, ...]] | None = None
    """Further artefacts that a config asks for: a format of tables or of values."""
    follows_topics: bool = True
    """Whether offsets in its checkpoint are of topics at `bootstrap`, which are then known by their ids, too."""
    check_table: Callable[[SparkSession, C, Mapping[str, str]], frozenset[str]] | None = None
    """Compares the ids of topics now with those that the job's table has noted, before anything is written. Returns
    the topics that the table begins anew. Raises JobError."""
    conclude: Callable[[SparkSession, C], int] | None = None
    """Called when the query has ended by itself: the exit status. Raises JobError."""

    def artefacts(self, config: C) -> tuple[str, ...]:
        return self.uses + (() if self.uses_of is None else self.uses_of(config))


class JobError(Exception):
    """A job cannot go on; the message is a sentence for the one who runs it."""


def instance_name(job: Job[C], config: C) -> str:
    return config.name or job.name


def checkpoint_folder(job: Job[C], config: C) -> str:
    """Named by instance and state version, so that no version finds the checkpoint of another."""
    return f"{config.checkpoint.rstrip('/')}/{instance_name(job, config)}-v{job.state_version}"
