"""Topics as a stream, and the query that a job makes of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeVar

from .config import JobConfig
from .connector.client_properties import SINK, SOURCE, spark_options
from .job import Job, JobError, checkpoint_folder, instance_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

C = TypeVar("C", bound=JobConfig)


def read_topics(
    spark: SparkSession, config: JobConfig, *, bootstrap: str = "", topics: tuple[str, ...] = ()
) -> DataFrame:
    """Records as the connector has them: `topic`, `partition`, `offset`, `timestamp` (of Spark's type, exact to the
    millisecond), `timestampType`, `key` and `value` (binary, may be null), `headers` (array of key and value, or null).

    `bootstrap` and `topics` in place of the config's. Raises JobError when it names no topics.
    """
    options = {
        **spark_options(config, SOURCE, bootstrap=bootstrap),
        # Spark's default is read_uncommitted: aborted records would be among the results.
        "kafka.isolation.level": config.isolation_level,
        "startingOffsets": config.starting_offsets,
        "maxOffsetsPerTrigger": str(config.max_offsets_per_trigger),
        "failOnDataLoss": str(config.fail_on_data_loss).lower(),
        "includeHeaders": "true",
        **({"subscribe": ",".join(topics)} if topics else _subscription(config)),
    }
    return spark.readStream.format("kafka").options(**options).load()


def read_offsets(spark: SparkSession, config: JobConfig, starts: str, ends: str) -> DataFrame:
    """Records between offsets, as a batch; the offsets are JSON as Spark's options have it, of the same partitions."""
    partitions = {topic: [int(one) for one in offsets] for topic, offsets in json.loads(ends).items()}
    options = {
        **spark_options(config, SOURCE),
        "kafka.isolation.level": config.isolation_level,
        "assign": json.dumps(partitions),
        "startingOffsets": starts,
        "endingOffsets": ends,
        "failOnDataLoss": str(config.fail_on_data_loss).lower(),
        "includeHeaders": "true",
    }
    return spark.read.format("kafka").options(**options).load()


def sink_options(config: JobConfig) -> dict[str, str]:
    """Options of Spark's `kafka` format to write to the cluster that is written. Its producer is idempotent and knows
    no transactions: at least once."""
    return spark_options(config, SINK)


def started(job: Job[C], config: C, writer: DataStreamWriter, *, part: str = "") -> StreamingQuery:
    """Starts what a job writes, under its name, with its checkpoint and its trigger. `part` names one of several
    queries of a job, which has its checkpoint beside that of the main one."""
    folder = checkpoint_folder(job, config)
    name = instance_name(job, config)
    named = writer.queryName(f"{name}-{part}" if part else name).option(
        "checkpointLocation", f"{folder}/{part or 'main'}"
    )
    if config.available_now:
        return named.trigger(availableNow=True).start()
    return named.trigger(processingTime=f"{config.trigger_interval_ms} milliseconds").start()


def _subscription(config: JobConfig) -> dict[str, str]:
    if config.topic_pattern:
        return {"subscribePattern": config.topic_pattern}
    if config.topics:
        return {"subscribe": ",".join(config.topics)}
    raise JobError("The job was given no topics to read: `--set topics=…`, or `topics` in its file.")
