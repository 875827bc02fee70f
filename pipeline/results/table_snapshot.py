"""A compacted topic as a table: the latest value of each key, loaded once and kept up with by what is new."""

from __future__ import annotations

from typing import Final

from confluent_kafka import IsolationLevel
from confluent_kafka.admin import OffsetSpec
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from ..config import JobConfig
from ..connector.admin_clients import describe_topics, list_offsets
from ..connector.client_properties import SOURCE, client_config
from ..connector.deadline import Deadline
from ..connector.source_topics import TIMEOUT_S
from ..job import JobError
from ..source import read_offsets
from .offset_log import Offsets, range_of_batch

_COLUMNS: Final = ("key", "value", "headers", "topic", "partition", "offset", "timestamp")


class TableSnapshot:
    """Of one driver: it is read anew when the job starts. Within a partition the greater offset is the later record; a
    key that is in two, as the topic was given more partitions, has the value of the later timestamp."""

    def __init__(self, config: JobConfig, topic: str) -> None:
        self._config = config
        self._topic = topic
        self._rows: DataFrame | None = None
        self._ends: Offsets = {}

    def refreshed(self, spark: SparkSession) -> DataFrame:
        """One row for each key, tombstones too, up to the last offset that is committed now. It is kept on the
        executors. Raises JobError when there is no such topic, RequestError."""
        ends = self._committed_ends()
        found = range_of_batch(self._ends, ends)
        if self._rows is not None and found is None:
            return self._rows
        starts_and_ends = found or ("{}", "{}")
        new = read_offsets(spark, self._config, *starts_and_ends).select(*_COLUMNS)
        before = self._rows
        # Without the cut the plan would grow with each batch.
        rows = _latest(new if before is None else before.unionByName(new)).localCheckpoint(
            eager=True, storageLevel=StorageLevel.MEMORY_AND_DISK
        )
        if before is not None:
            before.unpersist()
        self._rows, self._ends = rows, ends
        return rows

    def _committed_ends(self) -> Offsets:
        """In one request to each leader, and none to Spark: most batches find nothing new."""
        properties, deadline = client_config(self._config, SOURCE), Deadline(TIMEOUT_S)
        found = describe_topics(properties, [self._topic], deadline).get(self._topic)
        if found is None:
            raise JobError(f"topic {self._topic}, the table, is not in the cluster that is read")
        asked = {(self._topic, partition.id): OffsetSpec.latest() for partition in found.partitions}
        level = getattr(IsolationLevel, self._config.isolation_level.upper())
        offsets = list_offsets(properties, asked, deadline, isolation_level=level)
        return {self._topic: {str(partition): offset for (_, partition), offset in offsets.items()}}


def _latest(records: DataFrame) -> DataFrame:
    row = F.struct(*_COLUMNS)
    by_partition = records.groupBy("key", "partition").agg(F.max_by(row, "offset").alias("row"))
    order = F.struct("row.timestamp", "partition")
    return by_partition.groupBy("key").agg(F.max_by("row", order).alias("row")).select("row.*")
