"""Changes of rows by key, as a compacted topic has them: the last of each key is what counts.

A frame of changes has the columns `key`, `deleted`, the row's own, and `topic`, `partition`, `offset`, `timestamp` of
the record that brought it.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

KEY: Final = "key"
DELETED: Final = "deleted"


def latest(changes: DataFrame) -> DataFrame:
    """The last change of each key.

    Within a partition the offset decides. A key is in one partition of a topic, unless the topic was given more
    partitions: between partitions the later timestamp decides, as no offset can.
    """
    columns = changes.columns
    row = fn.struct(*columns)
    by_partition = changes.groupBy(KEY, "topic", "partition").agg(fn.max_by(row, fn.col("offset")).alias("row"))
    order = fn.struct("row.timestamp", "topic", "partition")
    return by_partition.groupBy(KEY).agg(fn.max_by("row", order).alias("row")).select("row.*")
