"""Which topics a copy makes or extends in the sink, and which it refuses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ..errors import MirrorError
from .source_partition import INTERNAL_TOPICS

# As MirrorMaker's DefaultConfigPropertyFilter: what belongs to a cluster and not to its data. Timestamps are copied,
# so that the sink must not put its own in their place.
CONFIGS_NOT_COPIED: Final = re.compile(
    r"follower\.replication\.throttled\.replicas|leader\.replication\.throttled\.replicas|message\.timestamp\..*"
    r"|unclean\.leader\.election\.enable|min\.insync\.replicas|remote\.storage\.enable|local\.retention\..*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTopic:
    cluster: str
    name: str
    topic_id: str
    partition_count: int
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkTopic:
    name: str
    topic_id: str
    partition_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic:
    name: str
    partition_count: int
    like: SourceTopic
    """Whose configs it gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitions:
    name: str
    partition_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSteps:
    create: list[CreateTopic] = field(default_factory=list)
    extend: list[AddPartitions] = field(default_factory=list)


def target_name(topic_format: str, cluster: str, topic: str) -> str:
    """Raises MirrorError for a format without the topic's name."""
    if "{topic}" not in topic_format:
        raise MirrorError(f"topic_format {topic_format!r} has no {{topic}}: all topics would be copied into one")
    return topic_format.replace("{cluster}", cluster).replace("{topic}", topic)


def is_copied(topic: str, topics: Iterable[str], topic_pattern: str) -> bool:
    """Internal topics of Kafka and of Penstock never are, unless they are named."""
    if topic in topics:
        return True
    if not topic_pattern or re.match(INTERNAL_TOPICS, topic):
        return False
    return re.fullmatch(topic_pattern, topic) is not None


def topic_steps(
    sources: Iterable[SourceTopic],
    sinks: Mapping[str, SinkTopic],
    copied_before: set[str],
    partition_count: int | None = None,
) -> TopicSteps:
    """`copied_before` are targets that have positions already. Raises MirrorError.

    `partition_count` is what a target is made with whose records do not keep their partition; 0: as many as the source.
    """
    largest: dict[str, SourceTopic] = {}
    for source in sources:
        before = largest.get(source.target)
        if before is None or source.partition_count > before.partition_count:
            largest[source.target] = source
    steps = TopicSteps()
    for target, source in sorted(largest.items()):
        sink = sinks.get(target)
        count = source.partition_count
        if sink is None:
            if target in copied_before:
                raise MirrorError(
                    f"topic {target} of the sink was deleted, and records were copied to it before. To copy them again"
                    " from the start, give the copy a new name (--set name=…) and a new checkpoint"
                )
            steps.create.append(CreateTopic(name=target, partition_count=partition_count or count, like=source))
        elif partition_count is not None:
            continue
        elif sink.partition_count < count and target in copied_before:
            # The source has got more, as MirrorMaker follows.
            steps.extend.append(AddPartitions(name=target, partition_count=count))
        elif sink.partition_count < count:
            raise MirrorError(
                f"topic {target} of the sink has {sink.partition_count} partitions, and {source.name} of"
                f" {source.cluster} has {count}: records keep their partition, so that the sink needs as many."
                f" Add partitions (penstock topic alter, kafka-topics.sh --alter) or choose another topic_format"
            )
    return steps


def copied_configs(configs: Mapping[str, str]) -> dict[str, str]:
    """Of those that the source topic has set itself."""
    return {name: value for name, value in configs.items() if not CONFIGS_NOT_COPIED.fullmatch(name)}
