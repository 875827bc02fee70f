"""The changes since an image, and the image they make.

A delta is filled by replaying committed records, or by comparing two images (after a snapshot arrived, and for a
publisher that joins late). It reports what changed by key; the new values are in the new image as well.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar, assert_never
from uuid import UUID

from . import records
from .image import (
    BrokerRegistration,
    ConfigResource,
    ConfigResourceType,
    ConfigsImage,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
    TopicsImage,
)
from .records import MetadataRecord


class ReplayError(Exception):
    """A committed record does not fit the state before it:

    The log and this software disagree, and the node must stop.
    """


class TopicDelta:
    """What changed in one topic that exists after the change.

    `changed` holds the new registration of every partition that was added or changed.
    """

    __slots__ = ("base", "changed", "name", "topic_id")

    def __init__(self, base: TopicImage | None, name: str, topic_id: UUID) -> None:
        self.base = base
        self.name = name
        self.topic_id = topic_id
        self.changed: dict[int, PartitionRegistration] = {}

    @property
    def is_new(self) -> bool:
        return self.base is None

    def partition(self, index: int) -> PartitionRegistration | None:
        found = self.changed.get(index)
        if found is None and self.base is not None and index < len(self.base.partitions):
            return self.base.partitions[index]
        return found

    def base_partition(self, index: int) -> PartitionRegistration | None:
        """Return the registration before the change, None for a new partition."""
        if self.base is not None and index < len(self.base.partitions):
            return self.base.partitions[index]
        return None

    def apply(self) -> TopicImage:
        partitions = list(self.base.partitions) if self.base is not None else []
        for index in sorted(self.changed):
            if index < len(partitions):
                partitions[index] = self.changed[index]
            elif index == len(partitions):
                partitions.append(self.changed[index])
            else:
                raise ReplayError(f"partition {self.name}-{index} comes after {len(partitions)} partitions, with a gap")
        return TopicImage(name=self.name, topic_id=self.topic_id, partitions=tuple(partitions))


class TopicsDelta:
    """What changed among the topics: `changed` by id (new ones included), and the `deleted` as they were."""

    __slots__ = ("_base", "_created_names", "changed", "deleted")

    def __init__(self, base: TopicsImage) -> None:
        self._base = base
        self.changed: dict[UUID, TopicDelta] = {}
        self.deleted: dict[UUID, TopicImage] = {}
        self._created_names: dict[str, UUID] = {}

    def _topic(self, topic_id: UUID) -> TopicDelta:
        found = self.changed.get(topic_id)
        if found is None:
            base = None if topic_id in self.deleted else self._base.by_id.get(topic_id)
            if base is None:
                raise ReplayError(f"a record names the topic id {topic_id}, which does not exist")
            found = self.changed[topic_id] = TopicDelta(base, base.name, topic_id)
        return found

    def create(self, record: records.TopicRecord) -> None:
        existing = self._base.by_name.get(record.name)
        exists = existing is not None and existing.topic_id not in self.deleted
        if exists or record.name in self._created_names:
            raise ReplayError(f"a record creates the topic '{record.name}', which exists already")
        self.note_created(record.name, record.topic_id)
        self.changed[record.topic_id] = TopicDelta(None, record.name, record.topic_id)

    def note_created(self, name: str, topic_id: UUID) -> None:
        self._created_names[name] = topic_id

    def remove(self, record: records.RemoveTopicRecord) -> str:
        """Return the name of the removed topic."""
        topic = self._topic(record.topic_id)
        del self.changed[record.topic_id]
        if topic.base is not None:
            self.deleted[record.topic_id] = topic.base
        else:
            del self._created_names[topic.name]
        return topic.name

    def put_partition(self, record: records.PartitionRecord) -> None:
        self._topic(record.topic_id).changed[record.partition_id] = PartitionRegistration(
            replicas=record.replicas,
            directories=record.directories,
            # One tuple for both saves memory in the usual case.
            isr=record.replicas if record.isr == record.replicas else record.isr,
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            removing_replicas=record.removing_replicas,
            adding_replicas=record.adding_replicas,
            elr=record.elr,
            last_known_elr=record.last_known_elr,
            leader_recovery_state=record.leader_recovery_state,
        )

    def change_partition(self, record: records.PartitionChangeRecord) -> None:
        topic = self._topic(record.topic_id)
        before = topic.partition(record.partition_id)
        if before is None:
            raise ReplayError(
                f"a record changes the partition {topic.name}-{record.partition_id}, which does not exist"
            )
        topic.changed[record.partition_id] = changed_partition(before, record)

    def apply(self) -> TopicsImage:
        if not self.changed and not self.deleted:
            return self._base
        changed = {topic_id: delta.apply() for topic_id, delta in self.changed.items()}
        collisions: dict[str, frozenset[str]] = {}
        for name in (topic.name for topic in self.deleted.values()):
            _add_collision(collisions, self._base, name, is_added=False)
        for name in self._created_names:
            _add_collision(collisions, self._base, name, is_added=True)
        return TopicsImage(
            by_name=self._base.by_name.evolve(
                put={topic.name: topic for topic in changed.values()},
                remove=[topic.name for topic in self.deleted.values()],
            ),
            by_id=self._base.by_id.evolve(put=changed, remove=self.deleted),
            colliding=self._base.colliding.evolve(
                put={key: names for key, names in collisions.items() if names},
                remove=[key for key, names in collisions.items() if not names],
            ),
        )


class MetadataDelta:
    """Changes since `base`, filled by `replay`; `apply` makes the new image and leaves `base` as it was.

    For publishers: `topics`, `configs` (every changed resource with its new values, empty when it has none any more),
    `brokers` (None for one that is gone), `features` (None for one that is gone), `has_producer_ids_changed`.
    """

    def __init__(self, base: MetadataImage) -> None:
        self.base = base
        self.topics = TopicsDelta(base.topics)
        self.configs: dict[ConfigResource, dict[str, str]] = {}
        self.brokers: dict[int, BrokerRegistration | None] = {}
        self.features: dict[str, int | None] = {}
        self.cluster_id = base.cluster_id
        self.next_producer_id = base.next_producer_id

    @classmethod
    def between(cls, base: MetadataImage, image: MetadataImage) -> "MetadataDelta":
        """Compare two images; what is in `base` only counts as deleted. Costs the size of both."""
        delta = cls(base)
        delta.cluster_id = image.cluster_id
        delta.next_producer_id = image.next_producer_id
        _compare_topics(delta.topics, base.topics, image.topics)
        for resource in base.configs.by_resource.keys() | image.configs.by_resource.keys():
            if base.configs.of(resource) != image.configs.of(resource):
                delta.configs[resource] = dict(image.configs.of(resource))
        for broker_id in base.brokers.keys() | image.brokers.keys():
            if base.brokers.get(broker_id) != image.brokers.get(broker_id):
                delta.brokers[broker_id] = image.brokers.get(broker_id)
        for name in base.features.keys() | image.features.keys():
            if base.features.get(name) != image.features.get(name):
                delta.features[name] = image.features.get(name)
        return delta

    @property
    def has_producer_ids_changed(self) -> bool:
        return self.next_producer_id != self.base.next_producer_id

    @property
    def is_empty(self) -> bool:
        return (
            not (self.topics.changed or self.topics.deleted or self.configs or self.brokers or self.features)
            and not self.has_producer_ids_changed
            and self.cluster_id == self.base.cluster_id
        )

    def replay(self, record: MetadataRecord) -> None:
        """Take in one committed record. Raises ReplayError when it does not fit."""
        match record:
            case records.PartitionChangeRecord():
                self.topics.change_partition(record)
            case records.PartitionRecord():
                self.topics.put_partition(record)
            case records.TopicRecord():
                self.topics.create(record)
            case records.RemoveTopicRecord():
                name = self.topics.remove(record)
                resource = ConfigResource(ConfigResourceType.TOPIC, name)
                if resource in self.configs or resource in self.base.configs.by_resource:
                    self.configs[resource] = {}
            case records.ConfigRecord():
                self._replay_config(record)
            case records.RegisterBrokerRecord():
                self.brokers[record.broker_id] = BrokerRegistration(
                    id=record.broker_id,
                    epoch=record.broker_epoch,
                    incarnation_id=record.incarnation_id,
                    endpoints=record.endpoints,
                    features=record.features,
                    rack=record.rack,
                    is_fenced=record.is_fenced,
                    in_controlled_shutdown=record.in_controlled_shutdown,
                    directories=record.log_dirs,
                )
            case records.UnregisterBrokerRecord():
                self._broker(record.broker_id, record.broker_epoch)
                self.brokers[record.broker_id] = None
            case records.BrokerRegistrationChangeRecord():
                self._replay_broker_change(record)
            case records.FeatureLevelRecord():
                self.features[record.name] = record.feature_level or None
            case records.ProducerIdsRecord():
                self.next_producer_id = record.next_producer_id
            case records.ClusterRecord():
                if self.cluster_id not in (None, record.cluster_id):
                    raise ReplayError(f"the cluster id changes from {self.cluster_id} to {record.cluster_id}")
                self.cluster_id = record.cluster_id
            case records.BeginTransactionRecord() | records.EndTransactionRecord() | records.AbortTransactionRecord():
                raise ReplayError(f"{type(record).__name__} belongs to the log, not to the state")
            case _:
                assert_never(record)

    def _replay_config(self, record: records.ConfigRecord) -> None:
        resource = ConfigResource(record.resource_type, record.resource_name)
        values = self.configs.get(resource)
        if values is None:
            values = self.configs[resource] = dict(self.base.configs.of(resource))
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value

    def _broker(self, broker_id: int, epoch: int) -> BrokerRegistration:
        broker = self.brokers[broker_id] if broker_id in self.brokers else self.base.brokers.get(broker_id)
        if broker is None or broker.epoch != epoch:
            raise ReplayError(f"a record names broker {broker_id} with epoch {epoch}; registered is {broker}")
        return broker

    def _replay_broker_change(self, record: records.BrokerRegistrationChangeRecord) -> None:
        before = self._broker(record.broker_id, record.broker_epoch)
        self.brokers[record.broker_id] = replace(
            before,
            is_fenced=before.is_fenced if record.is_fenced is None else record.is_fenced,
            in_controlled_shutdown=(
                before.in_controlled_shutdown
                if record.in_controlled_shutdown is None
                else record.in_controlled_shutdown
            ),
            directories=before.directories if record.log_dirs is None else record.log_dirs,
        )

    def apply(self, *, offset: int, epoch: int, timestamp_ms: int) -> MetadataImage:
        """Return the image after the changes, at the place of the entry that completed them."""
        base = self.base
        return MetadataImage(
            offset=offset,
            epoch=epoch,
            timestamp_ms=timestamp_ms,
            cluster_id=self.cluster_id,
            topics=self.topics.apply(),
            configs=_apply_configs(base.configs, self.configs),
            brokers=_apply_optional(base.brokers, self.brokers),
            features=_apply_optional(base.features, self.features),
            next_producer_id=self.next_producer_id,
        )


def changed_partition(before: PartitionRegistration, record: records.PartitionChangeRecord) -> PartitionRegistration:
    """Return the partition after a change record; raises the epochs as the record's type says."""
    has_election = record.leader != records.NO_LEADER_CHANGE
    has_recovery_state = record.leader_recovery_state != records.NO_RECOVERY_STATE_CHANGE
    return PartitionRegistration(
        replicas=before.replicas if record.replicas is None else record.replicas,
        directories=before.directories if record.directories is None else record.directories,
        isr=before.isr if record.isr is None else record.isr,
        leader=record.leader if has_election else before.leader,
        leader_epoch=before.leader_epoch + 1 if has_election else before.leader_epoch,
        partition_epoch=before.partition_epoch + 1,
        removing_replicas=before.removing_replicas if record.removing_replicas is None else record.removing_replicas,
        adding_replicas=before.adding_replicas if record.adding_replicas is None else record.adding_replicas,
        elr=before.elr if record.elr is None else record.elr,
        last_known_elr=before.last_known_elr if record.last_known_elr is None else record.last_known_elr,
        leader_recovery_state=record.leader_recovery_state if has_recovery_state else before.leader_recovery_state,
    )


def collision_key(name: str) -> str | None:
    """Return what metric names make of a topic's name, None when they leave it as it is."""
    return name.replace(".", "_") if "." in name or "_" in name else None


def _add_collision(collisions: dict[str, frozenset[str]], base: TopicsImage, name: str, *, is_added: bool) -> None:
    key = collision_key(name)
    if key is None:
        return
    names = collisions.get(key, base.colliding.get(key, frozenset()))
    collisions[key] = names | {name} if is_added else names - {name}


def _compare_topics(delta: TopicsDelta, base: TopicsImage, image: TopicsImage) -> None:
    for topic_id, topic in base.by_id.items():
        if topic_id not in image.by_id:
            delta.deleted[topic_id] = topic
    for topic_id, topic in image.by_id.items():
        before = base.by_id.get(topic_id)
        if before is topic or before == topic:
            continue
        changes = delta.changed[topic_id] = TopicDelta(before, topic.name, topic_id)
        if before is None:
            delta.note_created(topic.name, topic_id)
        for index, partition in enumerate(topic.partitions):
            if changes.base_partition(index) != partition:
                changes.changed[index] = partition


def _apply_configs(base: ConfigsImage, changes: Mapping[ConfigResource, dict[str, str]]) -> ConfigsImage:
    if not changes:
        return base
    return ConfigsImage(
        by_resource=base.by_resource.evolve(
            put={resource: values for resource, values in changes.items() if values},
            remove=[resource for resource, values in changes.items() if not values],
        )
    )


K = TypeVar("K")
V = TypeVar("V")


def _apply_optional(base: Mapping[K, V], changes: Mapping[K, V | None]) -> Mapping[K, V]:
    if not changes:
        return base
    result = dict(base)
    for key, value in changes.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = value
    return result
