"""Finds the topics of the sources, and makes or extends those of the sink."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource, ConfigSource, NewPartitions, NewTopic

from ..connector.admin_clients import REQUEST_TIMEOUT_S, admin_client, describe_topics, error_of, repeatedly
from ..connector.deadline import Deadline
from .errors import MirrorError
from .rules.topic_steps import (
    AddPartitions,
    CreateTopic,
    SinkTopic,
    SourceTopic,
    copied_configs,
    is_copied,
    target_name,
    topic_steps,
)
from .rules.write_plan import TopicRoute
from .sink_map import create_topic

_LOG: Final = logging.getLogger(__name__)

_TIMEOUT_S: Final = 120.0
_TIMESTAMP_TYPE: Final = "message.timestamp.type"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChoice:
    topics: tuple[str, ...]
    topic_pattern: str
    topic_format: str
    replication_factor: int
    partition_count: int | None = None
    """As in `topic_steps`."""


@dataclass(slots=True, kw_only=True)
class TopicRoutes:
    """Looks at all topics before each batch, as partitions and topics come and go."""

    sources: Mapping[str, Mapping[str, str]] = field(repr=False)
    sink: Mapping[str, str] = field(repr=False)
    choice: TopicChoice
    _warned: set[str] = field(default_factory=set)
    _clusters: dict[str, str] = field(default_factory=dict)

    def find(self, copied_before: set[str]) -> dict[tuple[str, str], TopicRoute]:
        """By cluster and topic. `copied_before` are targets with positions. Raises MirrorError, RequestError."""
        deadline = Deadline(_TIMEOUT_S)
        topics = [topic for cluster in self.sources for topic in self._source_topics(cluster, deadline)]
        self._refuse_circles(topics, deadline)
        targets = sorted({topic.target for topic in topics})
        sinks = self._sink_topics(targets, deadline)
        steps = topic_steps(topics, sinks, copied_before, self.choice.partition_count)
        for create in steps.create:
            self._create(create, deadline)
        for extend in steps.extend:
            self._extend(extend, deadline)
        if steps.create or steps.extend:
            sinks = self._sink_topics(targets, deadline)
        self._warn_of_timestamps(set(targets) - self._warned, deadline)
        return {
            (topic.cluster, topic.name): TopicRoute(
                source_topic_id=topic.topic_id,
                source_partition_count=topic.partition_count,
                target_topic=topic.target,
                target_topic_id=sinks[topic.target].topic_id,
                target_partition_count=sinks[topic.target].partition_count,
            )
            for topic in topics
        }

    def _source_topics(self, cluster: str, deadline: Deadline) -> list[SourceTopic]:
        properties = self.sources[cluster]
        names: Sequence[str] = self.choice.topics
        if self.choice.topic_pattern:
            listed = repeatedly(
                lambda: admin_client(properties).list_topics(timeout=REQUEST_TIMEOUT_S),
                f"topics of {cluster} cannot be listed",
                deadline,
            )
            names = [name for name in listed.topics if is_copied(name, self.choice.topics, self.choice.topic_pattern)]
        described = describe_topics(properties, names, deadline)
        return [
            SourceTopic(
                cluster=cluster,
                name=name,
                topic_id=str(found.topic_id),
                partition_count=len(found.partitions),
                target=target_name(self.choice.topic_format, cluster, name),
            )
            for name, found in sorted(described.items())
        ]

    def _sink_topics(self, names: Sequence[str], deadline: Deadline) -> dict[str, SinkTopic]:
        return {
            name: SinkTopic(name=name, topic_id=str(found.topic_id), partition_count=len(found.partitions))
            for name, found in describe_topics(self.sink, names, deadline).items()
        }

    def _refuse_circles(self, topics: Sequence[SourceTopic], deadline: Deadline) -> None:
        """A topic that is copied into itself would never end."""
        for topic in topics:
            if topic.target == topic.name and self._cluster_id("", deadline) == self._cluster_id(
                topic.cluster, deadline
            ):
                raise MirrorError(
                    f"topic {topic.name} would be copied into itself: source {topic.cluster} and sink are the same"
                    " cluster. Set sink_bootstrap to another cluster, or topic_format to another name"
                )

    def _cluster_id(self, cluster: str, deadline: Deadline) -> str:
        """Of a source, or of the sink."""
        if cluster not in self._clusters:
            properties = self.sources[cluster] if cluster else self.sink
            listed = repeatedly(
                lambda: admin_client(properties).list_topics(timeout=REQUEST_TIMEOUT_S),
                f"the cluster id of {cluster or 'the sink'} cannot be found",
                deadline,
            )
            self._clusters[cluster] = str(listed.cluster_id)
        return self._clusters[cluster]

    def _create(self, step: CreateTopic, deadline: Deadline) -> None:
        resource = ConfigResource(ConfigResource.Type.TOPIC, step.like.name)
        source = self.sources[step.like.cluster]

        def ask() -> dict[str, str]:
            (future,) = admin_client(source).describe_configs([resource], request_timeout=REQUEST_TIMEOUT_S).values()
            return {
                name: str(entry.value)
                for name, entry in future.result().items()
                if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value and entry.value is not None
            }

        configs = copied_configs(repeatedly(ask, f"configs of {step.like.name} cannot be read", deadline))
        wanted = NewTopic(step.name, step.partition_count, self.choice.replication_factor, config=configs)
        create_topic(self.sink, wanted, deadline)

    def _extend(self, step: AddPartitions, deadline: Deadline) -> None:
        def ask() -> None:
            wanted = [NewPartitions(step.name, step.partition_count)]
            (future,) = admin_client(self.sink).create_partitions(wanted, request_timeout=REQUEST_TIMEOUT_S).values()
            try:
                future.result()
            except KafkaException as failure:
                error = error_of(failure)
                # An attempt before, whose answer was lost.
                if error is None or error.code() != KafkaError.INVALID_PARTITIONS:
                    raise

        repeatedly(ask, f"partitions cannot be added to {step.name} of the sink", deadline)
        while self._sink_topics([step.name], deadline)[step.name].partition_count < step.partition_count:
            if deadline.is_over:
                raise MirrorError(f"topic {step.name} of the sink did not get {step.partition_count} partitions")
            deadline.pause()

    def _warn_of_timestamps(self, names: set[str], deadline: Deadline) -> None:
        if not names:
            return
        resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in sorted(names)]

        def ask() -> list[str]:
            futures = admin_client(self.sink).describe_configs(resources, request_timeout=REQUEST_TIMEOUT_S)
            return [
                resource.name
                for resource, future in futures.items()
                if future.result()[_TIMESTAMP_TYPE].value == "LogAppendTime"
            ]

        for name in repeatedly(ask, "configs of the sink cannot be read", deadline):
            _LOG.warning(
                "topic %s of the sink has %s=LogAppendTime: its records get the time at which they are copied",
                name,
                _TIMESTAMP_TYPE,
            )
        self._warned |= names
