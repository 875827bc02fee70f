"""The changes among the topics since an image, and the topics they make."""

from uuid import UUID

from ...protocol.ids import LeaderEpoch, PartitionEpoch, TopicId
from . import records
from .image import PartitionRegistration, TopicImage, TopicsImage


class ReplayError(Exception):
    """A committed record does not fit the state before it:

    The log and this software disagree, and the node must stop.
    """


class TopicDelta:
    """What changed in one topic that exists after the change.

    `changed` holds the new registration of every partition that was added or changed.
    """

    __slots__ = ("base", "changed", "name", "topic_id")

    def __init__(self, base: TopicImage | None, name: str, topic_id: TopicId) -> None:
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

    def _topic(self, topic_id: TopicId) -> TopicDelta:
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
        self._created_names[record.name] = record.topic_id
        self.changed[record.topic_id] = TopicDelta(None, record.name, record.topic_id)

    def compare(self, image: TopicsImage) -> None:
        """Take in whatever makes this image of the base; what only the base has counts as deleted."""
        for topic in self._base.by_id.values():
            topic_id = topic.topic_id
            if topic_id not in image.by_id:
                self.deleted[topic_id] = topic
        for topic in image.by_id.values():
            topic_id = topic.topic_id
            before = self._base.by_id.get(topic_id)
            if before is topic or before == topic:
                continue
            changes = self.changed[topic_id] = TopicDelta(before, topic.name, topic_id)
            if before is None:
                self._created_names[topic.name] = topic_id
            for index, partition in enumerate(topic.partitions):
                if changes.base_partition(index) != partition:
                    changes.changed[index] = partition

    def remove(self, record: records.RemoveTopicRecord) -> str:
        """Return the name of the removed topic."""
        topic = self._topic(record.topic_id)
        del self.changed[record.topic_id]
        if topic.base is not None:
            self.deleted[record.topic_id] = topic.base
        else:
            del self._created_names[topic.name]
        return topic.name

    def put_partition(self, record: records.PartitionRecord) -> str:
        """Return the name of its topic."""
        topic = self._topic(record.topic_id)
        topic.changed[record.partition_id] = PartitionRegistration(
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
        return topic.name

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
            partition_count=self._base.partition_count
            + sum(len(topic.partitions) for topic in changed.values())
            - sum(len(delta.base.partitions) for delta in self.changed.values() if delta.base is not None)
            - sum(len(topic.partitions) for topic in self.deleted.values()),
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
        leader_epoch=LeaderEpoch(before.leader_epoch + 1) if has_election else before.leader_epoch,
        partition_epoch=PartitionEpoch(before.partition_epoch + 1),
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
