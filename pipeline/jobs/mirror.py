"""`mirror`: topics of one or several clusters, copied into another exactly once, as they are.

Key, value, headers, timestamp, partition and order are kept. Offsets are not, so that consumer groups that move over
get theirs translated.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

import msgspec

from ..config import JobConfig
from ..connector.client_properties import SINK, SOURCE, client_config
from ..connector.deadline import Deadline
from ..job import Job, JobError
from ..mirroring.batch_copy import BatchCopy, CopySettings
from ..mirroring.group_mover import move_group
from ..mirroring.rules.source_partition import INTERNAL_TOPICS
from ..mirroring.rules.write_plan import TRANSACTION_BYTES
from ..mirroring.topic_routes import TopicChoice
from ..source import read_topics, started

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# Runs of what the sink has deleted are looked for so often.
_TIDY_INTERVAL_S: Final = 3600.0


class MirrorConfig(JobConfig, frozen=True, kw_only=True):
    bootstrap: str = ""
    """Of the one source; or `sources`."""
    sources: dict[str, str] = msgspec.field(default_factory=dict)
    """Brokers of each source by the name that this copy has for the cluster."""
    source_name: str = "source"
    """For the cluster of `bootstrap`."""
    topic_format: str = ""
    """Of the names in the sink, with {cluster} and {topic}; {topic} of one source, {cluster}.{topic} of several."""
    replication_factor: int = -1
    """Of topics that are made in the sink; -1: what its brokers say."""
    groups: tuple[str, ...] = ()
    """Consumer groups whose committed offsets are translated and committed in the sink again and again."""
    groups_interval_ms: int = 60_000
    transaction_bytes: int = TRANSACTION_BYTES
    """Of the records of one partition in one transaction, about."""
    write_timeout_ms: int = 300_000
    """How long a transaction is tried again while the sink does not answer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse_bad_record_options()
        if bool(self.bootstrap) == bool(self.sources):
            raise ValueError("either `bootstrap` or `sources` is given")
        if self.sources and not self.sink_bootstrap:
            raise ValueError("with `sources`, `sink_bootstrap` says where they are copied to")

    def bound_settings(self) -> dict[str, str]:
        # Spark tells the sources of a checkpoint by their order: in another one each would go on at another's offsets.
        return {"sources": ",".join(self.sources)}

    @property
    def clusters(self) -> dict[str, str]:
        """Brokers of each source by its name."""
        return self.sources or {self.source_name: self.bootstrap}


def copy_settings(config: MirrorConfig) -> CopySettings:
    """Raises ConfigError for properties that a client cannot have."""
    clusters = config.clusters
    return CopySettings(
        job="mirror",
        name=config.name or "mirror",
        sources={name: client_config(config, SOURCE, bootstrap=brokers) for name, brokers in clusters.items()},
        sink=client_config(config, SINK),
        choice=TopicChoice(
            topics=config.topics,
            topic_pattern=config.topic_pattern,
            topic_format=config.topic_format or ("{topic}" if len(clusters) == 1 else "{cluster}.{topic}"),
            replication_factor=config.replication_factor,
        ),
        transaction_bytes=config.transaction_bytes,
        write_timeout_s=config.write_timeout_ms / 1000,
    )


class MirrorBatches:
    """What is done with each batch. The first thing that needs a cluster is the first batch."""

    def __init__(self, config: MirrorConfig) -> None:
        self._config = config
        self._copy = BatchCopy(copy_settings(config))
        self._groups_due = Deadline(0)
        self._tidy_due = Deadline(0)

    def __call__(self, records: DataFrame, batch_id: int) -> None:
        """Raises MirrorError."""
        copy, settings = self._copy, self._copy.settings
        copy.prepare(is_first_batch=batch_id == 0)
        copy.write(records)
        if self._config.groups and self._groups_due.is_over:
            copy.map.follow(is_first_batch=False)
            for group in self._config.groups:
                move_group(group, settings.sources, settings.sink, copy.map.found)
            self._groups_due = Deadline(self._config.groups_interval_ms / 1000)
        if self._tidy_due.is_over:
            copy.remove_lost_runs()
            self._tidy_due = Deadline(_TIDY_INTERVAL_S)


def build(spark: SparkSession, config: MirrorConfig) -> StreamingQuery:
    from pyspark.sql import functions

    if not config.sink_bootstrap and not config.topic_format:
        raise JobError("The mirror has no sink: `--set sink_bootstrap=…`, or `topic_format` for copies in one cluster.")
    streams = []
    for name, brokers in config.clusters.items():
        records = read_topics(spark, config, bootstrap=brokers)
        if config.topic_pattern:
            records = records.where(~functions.col("topic").rlike(INTERNAL_TOPICS))
        streams.append(records.withColumn("cluster", functions.lit(name)))
    records = reduce(lambda one, other: one.union(other), streams)
    return started(JOB, config, records.writeStream.foreachBatch(MirrorBatches(config)))


JOB: Final = Job(
    name="mirror",
    help="Copy topics of one or several clusters into another exactly once, with their consumer groups.",
    config_type=MirrorConfig,
    state_version=1,
    build=build,
    # The offset map has the ids of its topics.
    follows_topics=False,
)
