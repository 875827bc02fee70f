"""Topics as the terminal sees and changes them, through Kafka's admin protocol."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final

import click
from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from msgspec import Struct

from . import clock
from .bootstrap import Bootstrap
from .client_log import SILENT_LOGGER
from .positions import AtTime, Edge

# For the broker to choose: num.partitions and default.replication.factor.
BROKER_DEFAULT: Final = -1

_LEADER_IS_CHANGING: Final = frozenset(
    {KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.FENCED_LEADER_EPOCH}
)
_RETRY_S: Final = 0.05


class PartitionState(Struct, frozen=True, kw_only=True):
    partition: int
    # None while the partition has no leader.
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class TopicState(Struct, frozen=True, kw_only=True):
    name: str
    # Kafka's text form; None where only an overview was asked for.
    topic_id: str | None = None
    partitions: tuple[PartitionState, ...]

    @property
    def is_internal(self) -> bool:
        return self.name.startswith("__")

    @property
    def replication_factor(self) -> int:
        return max((len(partition.replicas) for partition in self.partitions), default=0)


class TopicConfig(Struct, frozen=True, kw_only=True):
    name: str
    value: str | None
    # Kafka's ConfigSource, DYNAMIC_TOPIC_CONFIG for what was set on the topic itself.
    source: str

    @property
    def is_set_on_topic(self) -> bool:
        return self.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.name


class Topics:
    """All methods raise KafkaException with the broker's own words, for `Bootstrap.sentences`, unless they say more."""

    def __init__(self, bootstrap: Bootstrap) -> None:
        """Raises ClickException at once when no broker listens there."""
        bootstrap.check_reachable()
        self._bootstrap = bootstrap
        self._timeout_s = bootstrap.timeout_s
        self._admin = AdminClient(bootstrap.client_config(), logger=SILENT_LOGGER)

    def list(self) -> tuple[TopicState, ...]:
        """All topics by name."""
        topics = self._admin.list_topics(timeout=self._timeout_s).topics
        return tuple(
            TopicState(
                name=name,
                partitions=tuple(
                    PartitionState(
                        partition=partition.id,
                        leader=None if partition.leader < 0 else partition.leader,
                        replicas=tuple(partition.replicas),
                        isr=tuple(partition.isrs),
                    )
                    for _, partition in sorted(topic.partitions.items())
                ),
            )
            for name, topic in sorted(topics.items())
        )

    def describe(self, names: Iterable[str]) -> tuple[TopicState, ...]:
        """These topics, in this order. Raises ClickException for one that does not exist; none is ever created."""
        futures = self._admin.describe_topics(TopicCollection(list(names)), request_timeout=self._timeout_s)
        return tuple(self._described(name, future) for name, future in futures.items())

    def create(
        self,
        names: Iterable[str],
        *,
        partition_count: int = BROKER_DEFAULT,
        replication_factor: int = BROKER_DEFAULT,
        configs: Mapping[str, str],
    ) -> "Outcomes":
        topics = [
            NewTopic(name, partition_count, replication_factor, config=dict(configs)) for name in dict.fromkeys(names)
        ]
        return _outcomes(self._admin.create_topics(topics, **self._deadlines()))

    def delete(self, names: Iterable[str]) -> "Outcomes":
        return _outcomes(self._admin.delete_topics(list(dict.fromkeys(names)), **self._deadlines()))

    def add_partitions(self, name: str, partition_count: int) -> None:
        """`partition_count` is how many there are to be in all."""
        for future in self._admin.create_partitions(
            [NewPartitions(name, partition_count)], **self._deadlines()
        ).values():
            future.result()

    def alter_configs(self, name: str, *, values: Mapping[str, str], deleted: Iterable[str]) -> None:
        """All in one step: if one is refused, none is changed."""
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in values.items()
        ] + [ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE) for key in deleted]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        for future in self._admin.incremental_alter_configs([resource], request_timeout=self._timeout_s).values():
            future.result()

    def configs(self, name: str) -> tuple[TopicConfig, ...]:
        """Every config of a topic with its value in force."""
        resource = ConfigResource(ResourceType.TOPIC, name)
        (future,) = self._admin.describe_configs([resource], request_timeout=self._timeout_s).values()
        return tuple(
            TopicConfig(name=key, value=entry.value, source=ConfigSource(entry.source).name)
            for key, entry in sorted(future.result().items())
        )

    def offsets(self, name: str, partitions: Sequence[int], at: Edge | AtTime) -> dict[int, int | None]:
        """The offset there, by partition; None where no record has such a timestamp.

        A partition that was just created, or whose leader just changed, is asked again until the timeout.
        """
        if not partitions:
            return {}
        places = {TopicPartition(name, partition): _offset_spec(at) for partition in partitions}
        deadline_s = clock.monotonic_s() + self._timeout_s
        while True:
            futures = self._admin.list_offsets(places, request_timeout=self._timeout_s)
            try:
                found = {place.partition: future.result().offset for place, future in futures.items()}
            except KafkaException as error:
                if error.args[0].code() not in _LEADER_IS_CHANGING or clock.monotonic_s() >= deadline_s:
                    raise
                clock.pause(_RETRY_S)
            else:
                return {partition: None if found[partition] < 0 else found[partition] for partition in partitions}

    def _deadlines(self) -> dict[str, float]:
        # How long the broker may take to carry it out, and how long we wait for its answer.
        return {"operation_timeout": self._timeout_s, "request_timeout": self._timeout_s}

    def _described(self, name: str, future: "Future[Any]") -> TopicState:
        try:
            topic = future.result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise click.ClickException(f"Topic {name!r} does not exist on {self._bootstrap}.") from error
            raise
        return TopicState(
            name=topic.name,
            # librdkafka writes the other base64 alphabet than Kafka does.
            topic_id=str(topic.topic_id).translate(str.maketrans("+/", "-_")),
            partitions=tuple(
                PartitionState(
                    partition=partition.id,
                    leader=None if partition.leader is None or partition.leader.id < 0 else partition.leader.id,
                    replicas=tuple(replica.id for replica in partition.replicas),
                    isr=tuple(replica.id for replica in partition.isr),
                )
                for partition in topic.partitions
            ),
        )


# By topic, what went wrong; None: nothing.
Outcomes = dict[str, KafkaError | None]


def _outcomes(futures: Mapping[str, "Future[Any]"]) -> Outcomes:
    outcomes: Outcomes = {}
    for name, future in futures.items():
        try:
            future.result()
        except KafkaException as error:
            outcomes[name] = error.args[0]
        else:
            outcomes[name] = None
    return outcomes


def _offset_spec(at: Edge | AtTime) -> OffsetSpec:
    # Looked up as a callable with a type: the library's own signatures have none.
    makers: dict[Edge, Callable[[], OffsetSpec]] = {Edge.EARLIEST: OffsetSpec.earliest, Edge.LATEST: OffsetSpec.latest}
    if isinstance(at, AtTime):
        for_timestamp: Callable[[int], OffsetSpec] = OffsetSpec.for_timestamp
        return for_timestamp(at.timestamp_ms)
    return makers[at]()
