"""A compacted topic as a table: the latest value of each key, loaded once and kept up with by what is new."""

from __future__ import annotations

from typing import Final

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from ..config import JobConfig
from ..connector.client_properties import SOURCE, client_config
from ..source import read_offsets
from .offset_log import Offsets, range_of_batch

_COLUMNS: Final = ("key", "value", "headers", "topic", "partition", "offset", "timestamp")
_TIMEOUT_S: Final = 30.0


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
        executors."""
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
        admin = AdminClient(dict(client_config(self._config, SOURCE)))
        partitions = admin.list_topics(self._topic, timeout=_TIMEOUT_S).topics[self._topic].partitions
        asked = {TopicPartition(self._topic, number): OffsetSpec.latest() for number in partitions}
        level = getattr(IsolationLevel, self._config.isolation_level.upper())
        futures = admin.list_offsets(asked, isolation_level=level, request_timeout=_TIMEOUT_S)
        return {self._topic: {str(one.partition): future.result(_TIMEOUT_S).offset for one, future in futures.items()}}


def _latest(records: DataFrame) -> DataFrame:
    row = F.struct(*_COLUMNS)
    by_partition = records.groupBy("key", "partition").agg(F.max_by(row, "offset").alias("row"))
    order = F.struct("row.timestamp", "partition")
    return by_partition.groupBy("key").agg(F.max_by("row", order).alias("row")).select("row.*")
