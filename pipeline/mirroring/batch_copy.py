"""The driver's part of a copy: what a batch needs to know, and the batch."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from confluent_kafka.admin import OffsetSpec
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from ..connector.admin_clients import list_offsets
from ..connector.deadline import Deadline
from .batch_task import REPORT_SCHEMA, Report, reports_of, write_batches
from .errors import MirrorError
from .record_columns import COLUMNS
from .rules.source_partition import offset_map_topic, without_dots
from .rules.write_plan import Partitioning, TopicRoute, WritePlan
from .sink_map import SinkMap
from .topic_routes import TopicChoice, TopicRoutes

_LOG: Final = logging.getLogger(__name__)

# What a task has at hand of a transaction comes in pieces of this size.
_ARROW: Final = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "5000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(8 * 2**20),
}
_TIMEOUT_S: Final = 60.0
_SENTENCE: Final = re.compile(r"\.errors\.(?:Mirror|Request)Error: (.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySettings:
    job: str
    name: str
    sources: Mapping[str, Mapping[str, str]] = field(repr=False)
    """Client properties (librdkafka) by the name of the cluster."""
    sink: Mapping[str, str] = field(repr=False)
    choice: TopicChoice
    partitioning: Partitioning = "keep"
    transaction_bytes: int
    write_timeout_s: float

    @property
    def map_topic(self) -> str:
        return offset_map_topic(self.job, self.name)

    @property
    def transactional_prefix(self) -> str:
        return f"penstock-{self.job}.{without_dots(self.name)}"


class BatchCopy:
    """Lives as long as the query. Nothing is opened before the first batch."""

    def __init__(self, settings: CopySettings) -> None:
        self.settings = settings
        self.map = SinkMap(settings.sink, settings.map_topic, settings.choice.replication_factor)
        self.routes: dict[tuple[str, str], TopicRoute] = {}
        self._topics = TopicRoutes(sources=settings.sources, sink=settings.sink, choice=settings.choice)

    def prepare(self, *, is_first_batch: bool) -> None:
        """Follows the offset map and the topics. Raises MirrorError, RequestError."""
        self.map.follow(is_first_batch=is_first_batch)
        copied_before = {position.target_topic for position in self.map.found.positions.values()}
        self.routes = self._topics.find(copied_before)

    def write(self, records: DataFrame) -> list[Report]:
        """Records with the columns of `COLUMNS`, those of a source partition in one task and in order.

        Raises what ended a task.
        """
        settings = self.settings
        plan = WritePlan(
            transactional_prefix=settings.transactional_prefix,
            map_topic=settings.map_topic,
            map_offsets=tuple(self.map.offsets),
            positions=self.map.found.positions,
            routes=self.routes,
            sources=settings.sources,
            sink=settings.sink,
            partitioning=settings.partitioning,
            transaction_bytes=settings.transaction_bytes,
            write_timeout_s=settings.write_timeout_s,
        )
        for name, value in _ARROW.items():
            records.sparkSession.conf.set(name, value)
        task: Any = partial(write_batches, plan=plan)
        try:
            reports = reports_of(records.select(*COLUMNS).mapInArrow(task, REPORT_SCHEMA).toArrow())
        except PySparkException as failure:
            raise_sentence(failure)
            raise
        _LOG.info(
            "batch of %s: %d records written in %d transactions, %d were there already",
            settings.name,
            sum(one.written for one in reports),
            sum(one.transactions for one in reports),
            sum(one.skipped for one in reports),
        )
        return reports

    def remove_lost_runs(self) -> int:
        """Of records that the sink has deleted; returns how many."""
        positions = self.map.found.positions.values()
        targets = {(one.target_topic, one.target_partition) for one in positions if one.target_partition is not None}
        places = {target: OffsetSpec.earliest() for target in sorted(targets)}
        return self.map.remove_lost_runs(list_offsets(self.settings.sink, places, Deadline(_TIMEOUT_S)))


def raise_sentence(failure: Exception) -> None:
    """Raises MirrorError with the sentence of a task's MirrorError or RequestError, if such a one ended it, without the
    stacks of Java and Python."""
    found = _SENTENCE.search(str(failure))
    if found is not None:
        raise MirrorError(found[1]) from failure
