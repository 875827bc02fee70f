"""`backfill`: a bounded part of topics, by offsets or by times, copied once more into other topics, exactly once.

Records get the partition of their key's hash, keep theirs, or are spread evenly. It ends by itself.

What is copied is resolved to offsets when it first runs, and is kept in the offset map with how far each partition is.
The query's one batch is the whole of it: the batch is done again after a crash and finds there what is left to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from ..config import JobConfig
from ..connector.client_properties import SINK, SOURCE, client_config, spark_options
from ..job import Job, JobError
from ..mirroring.backfill_copy import BackfillCopy, BackfillRequest
from ..mirroring.batch_copy import BatchCopy, CopySettings
from ..mirroring.rules.write_plan import TRANSACTION_BYTES
from ..mirroring.topic_routes import TopicChoice
from ..source import read_topics, started

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# Of one batch: no limit.
_ALL: Final = 2**62
_CLUSTER: Final = "source"


class BackfillConfig(JobConfig, frozen=True, kw_only=True):
    topic_format: str = "{topic}"
    """Of the names of the topics written, with {topic}."""
    ending_offsets: str = "latest"
    """Where it ends, not inside: latest (as of the first run) or JSON as `starting_offsets` has it."""
    starting_time: str = ""
    """ISO 8601, in place of `starting_offsets`: from the first record that is not older."""
    ending_time: str = ""
    """Up to the first record that is not older."""
    partitioning: Literal["keep", "murmur2", "round-robin"] = "murmur2"
    """Same partition; by the key, as Java's producer does, without one at random; by the offset."""
    partitions: int = 0
    """Of a topic that is made; 0: as many as the source has."""
    replication_factor: int = -1
    transaction_bytes: int = TRANSACTION_BYTES
    write_timeout_ms: int = 300_000

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse_bad_record_options()
        if self.partitions and self.partitioning == "keep":
            raise ValueError(
                "`partitions` is of a topic whose records get other partitions, not of `partitioning` keep"
            )


def copy_settings(config: BackfillConfig) -> CopySettings:
    """Raises ConfigError for properties that a client cannot have."""
    return CopySettings(
        job="backfill",
        name=config.name or "backfill",
        sources={_CLUSTER: client_config(config, SOURCE)},
        sink=client_config(config, SINK),
        choice=TopicChoice(
            topics=config.topics,
            topic_pattern=config.topic_pattern,
            topic_format=config.topic_format,
            replication_factor=config.replication_factor,
            partition_count=None if config.partitioning == "keep" else config.partitions,
        ),
        partitioning=config.partitioning,
        transaction_bytes=config.transaction_bytes,
        write_timeout_s=config.write_timeout_ms / 1000,
    )


def build(spark: SparkSession, config: BackfillConfig) -> StreamingQuery:
    from pyspark.sql import functions

    if not config.sink_bootstrap and config.topic_format == "{topic}":
        raise JobError(
            "The topics would be copied into themselves: `--set topic_format={topic}.again`, or another sink."
        )
    request = BackfillRequest(
        start=config.starting_offsets,
        end=config.ending_offsets,
        start_time=config.starting_time,
        end_time=config.ending_time,
        topic_format=config.topic_format,
        partitioning=config.partitioning,
    )
    options = {
        **spark_options(config, SOURCE),
        "kafka.isolation.level": config.isolation_level,
        "failOnDataLoss": str(config.fail_on_data_loss).lower(),
        "includeHeaders": "true",
    }

    def read(session: SparkSession, assigned: str, starts: str, ends: str) -> DataFrame:
        bounds = {"assign": assigned, "startingOffsets": starts, "endingOffsets": ends}
        found = session.read.format("kafka").options(**options, **bounds).load()
        return found.withColumn("cluster", functions.lit(_CLUSTER))

    copy = BackfillCopy(BatchCopy(copy_settings(config)), _CLUSTER, request, config.max_offsets_per_trigger, read)
    # The offsets of the query are not those of the copy: it has one batch whenever there is anything in the topics.
    trigger = msgspec.structs.replace(
        config, available_now=True, max_offsets_per_trigger=_ALL, starting_offsets="earliest", fail_on_data_loss=False
    )
    return started(JOB, trigger, read_topics(spark, trigger).writeStream.foreachBatch(copy))


JOB: Final = Job(
    name="backfill",
    help="Copy a bounded part of topics into others once more, repartitioned, exactly once.",
    config_type=BackfillConfig,
    state_version=1,
    build=build,
    # The offset map has the ids of its topics.
    follows_topics=False,
)
