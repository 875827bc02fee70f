"""Events from a change of the metadata: the same ones in the same order on every node that replays the same entry."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeAlias

from ...protocol.ids import NodeId
from ..configs.effective import is_sensitive
from ..configs.own_keys import BROKER_DRAINED
from .cluster_events import (
    BrokerDrained,
    BrokerFenced,
    BrokerRegistered,
    BrokerUndrained,
    BrokerUnfenced,
    BrokerUnregistered,
    ClusterChange,
    ConfigChange,
    ConfigsChanged,
    ControlledShutdownBegun,
    ControllerRegistered,
    FeatureChanged,
    IsrExpanded,
    IsrShrunk,
    LeaderChanged,
    LogDirectoriesFailed,
    PartitionsAdded,
    QuorumLeaderChanged,
    ReassignmentBegun,
    ReassignmentEnded,
    Summary,
    TopicCreated,
    TopicDeleted,
)
from .delta import MetadataDelta
from .image import (
    BrokerRegistration,
    ConfigResource,
    ConfigResourceType,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
)
from .topics_delta import TopicDelta

LISTED_MAX: Final = 100
"""Events of one kind that one change is told by; more are summed up: 10,000 would drive all others out of memory."""
PARTITIONS_MAX: Final = 10_000
"""Changed partitions that are looked at; the rest is counted only. So many take some 13 ms of the loop."""
CONFIGS_MAX: Final = 50
VALUE_CHARACTERS_MAX: Final = 200
UNSEEN_PARTITIONS: Final = "partitions-changed"


def derive(delta: MetadataDelta, image: MetadataImage, *, leader_id: NodeId | None) -> tuple[ClusterChange, ...]:
    """Return what the change comes to. `leader_id` is who leads the metadata quorum, as far as this node knows.

    `delta` must be of one entry or one transaction: of gathered ones the steps between are unknown.
    """
    events = _Events()
    base = delta.base
    if image.epoch != base.epoch:
        events.add(QuorumLeaderChanged(epoch=image.epoch, leader_id=leader_id))
    for name, level in delta.features.items():
        old_level = base.features.get(name, 0)
        if old_level != (level or 0):
            events.add(FeatureChanged(name=name, old_level=old_level, new_level=level or 0))
    for controller_id in delta.controllers:
        events.add(ControllerRegistered(controller_id=controller_id))
    for broker_id, after in delta.brokers.items():
        for change in _broker_changes(NodeId(broker_id), base.brokers.get(broker_id), after):
            events.add(change)
    for broker_id in sorted(image.configs.drained_brokers - base.configs.drained_brokers):
        events.add(BrokerDrained(broker_id=broker_id))
    for broker_id in sorted(base.configs.drained_brokers - image.configs.drained_brokers):
        events.add(BrokerUndrained(broker_id=broker_id))
    _add_topics(events, delta, image)
    _add_configs(events, delta)
    return events.told()


class _Events:
    """Events in their order, and of kinds with many of them only how many there are."""

    def __init__(self) -> None:
        self._listed: list[ClusterChange] = []

    def add(self, change: ClusterChange) -> None:
        self._listed.append(change)

    def add_all(self, kind: str, changes: Iterable[ClusterChange], count: int, brokers: Mapping[NodeId, int]) -> None:
        """Add all events of a kind, or their summary; `changes` are made only when they are added."""
        if count <= LISTED_MAX:
            self._listed += changes
        else:
            self._listed.append(Summary(of=kind, count=count, brokers=dict(sorted(brokers.items()))))

    def told(self) -> tuple[ClusterChange, ...]:
        return tuple(self._listed)


_Changed: TypeAlias = tuple[str, int, PartitionRegistration, PartitionRegistration]
"""Topic, partition, and the registration before and after: a plain tuple, of which there may be thousands."""


def _broker_changes(
    broker_id: NodeId, before: BrokerRegistration | None, after: BrokerRegistration | None
) -> Iterator[ClusterChange]:
    if after is None:
        if before is not None:
            yield BrokerUnregistered(broker_id=broker_id)
        return
    if before is None or _identity(before) != _identity(after):
        yield BrokerRegistered(broker_id=broker_id, broker_epoch=after.epoch, rack=after.rack)
    if before is None or before.epoch != after.epoch:
        # A new registration is fenced; it may have been let in already by the same change.
        if not after.is_fenced:
            yield BrokerUnfenced(broker_id=broker_id)
        return
    failed = tuple([directory for directory in before.directories if directory not in after.directories])
    if failed:
        yield LogDirectoriesFailed(broker_id=broker_id, directories=failed)
    if after.in_controlled_shutdown and not before.in_controlled_shutdown:
        yield ControlledShutdownBegun(broker_id=broker_id)
    if after.is_fenced and not before.is_fenced:
        yield BrokerFenced(broker_id=broker_id)
    elif before.is_fenced and not after.is_fenced:
        yield BrokerUnfenced(broker_id=broker_id)


def _identity(broker: BrokerRegistration) -> tuple[object, ...]:
    return broker.epoch, broker.endpoints, broker.features, broker.rack


def _add_topics(events: _Events, delta: MetadataDelta, image: MetadataImage) -> None:
    deleted = delta.topics.deleted.values()
    gone = (TopicDeleted(topic=topic.name, topic_id=topic.topic_id) for topic in deleted)
    events.add_all(TopicDeleted.KIND, gone, len(deleted), {})
    created = [topic for topic in delta.topics.changed.values() if topic.is_new]
    made = (_topic_created(image.topics.by_id[topic.topic_id]) for topic in created)
    events.add_all(TopicCreated.KIND, made, len(created), {})
    kept = [topic for topic in delta.topics.changed.values() if not topic.is_new]
    grown = []
    for topic in kept:
        old_count, new_count = _count(topic), len(image.topics.by_id[topic.topic_id].partitions)
        if new_count > old_count:
            grown.append(PartitionsAdded(topic=topic.name, old_count=old_count, new_count=new_count))
    events.add_all(PartitionsAdded.KIND, grown, len(grown), {})
    _add_partitions(events, kept)


def _topic_created(topic: TopicImage) -> TopicCreated:
    return TopicCreated(
        topic=topic.name,
        topic_id=topic.topic_id,
        partition_count=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas) if topic.partitions else 0,
    )


def _count(topic: TopicDelta) -> int:
    return 0 if topic.base is None else len(topic.base.partitions)


def _add_partitions(events: _Events, topics: Sequence[TopicDelta]) -> None:
    leaders: list[_Changed] = []
    isrs: list[_Changed] = []
    moves: list[_Changed] = []
    room, unseen_count = PARTITIONS_MAX, 0
    for topic in topics:
        seen_count = min(room, len(topic.changed))
        room -= seen_count
        unseen_count += len(topic.changed) - seen_count
        _sort_out(topic, seen_count, leaders, isrs, moves)
    changed = map(_leader_changed, leaders)
    events.add_all(LeaderChanged.KIND, changed, len(leaders), Counter([after.leader for *_, after in leaders]))
    _add_isrs(events, isrs)
    begun = [one for one in moves if _is_moving(one[3])]
    adding = Counter(replica for *_, after in begun for replica in after.adding_replicas)
    events.add_all(ReassignmentBegun.KIND, map(_reassignment_begun, begun), len(begun), adding)
    ended = [one for one in moves if not _is_moving(one[3])]
    events.add_all(ReassignmentEnded.KIND, map(_reassignment_ended, ended), len(ended), {})
    if unseen_count:
        events.add(Summary(of=UNSEEN_PARTITIONS, count=unseen_count, brokers={}))


def _sort_out(
    topic: TopicDelta,
    limit: int,
    leaders: list[_Changed],
    isrs: list[_Changed],
    moves: list[_Changed],
) -> None:
    """Note what changed in the first so many partitions: in one pass without calls, there may be thousands."""
    partitions = () if topic.base is None else topic.base.partitions
    name, old_count = topic.name, len(partitions)
    for index, after in islice(topic.changed.items(), limit):
        if index >= old_count:
            continue
        before = partitions[index]
        if after.leader != before.leader:
            leaders.append((name, index, before, after))
        if after.isr is not before.isr and after.isr != before.isr:
            isrs.append((name, index, before, after))
        # What a record does not name is the same object.
        if (
            (after.replicas is not before.replicas and after.replicas != before.replicas)
            or (after.adding_replicas is not before.adding_replicas and after.adding_replicas != before.adding_replicas)
            or (
                after.removing_replicas is not before.removing_replicas
                and after.removing_replicas != before.removing_replicas
            )
        ):
            moves.append((name, index, before, after))


def _is_moving(partition: PartitionRegistration) -> bool:
    return bool(partition.adding_replicas or partition.removing_replicas)


def _leader_changed(changed: _Changed) -> LeaderChanged:
    topic, index, before, after = changed
    return LeaderChanged(
        topic=topic,
        partition=index,
        old_leader=before.leader,
        new_leader=after.leader,
        leader_epoch=after.leader_epoch,
    )


def _add_isrs(events: _Events, changed: Sequence[_Changed]) -> None:
    # Most of many partitions change in one of a few ways.
    ways = Counter([(before.isr, after.isr) for _, _, before, after in changed])
    left, joined = Counter[NodeId](), Counter[NodeId]()
    shrunk_count = expanded_count = 0
    for (old_isr, new_isr), count in ways.items():
        removed, added = _without(old_isr, new_isr), _without(new_isr, old_isr)
        shrunk_count += count if removed else 0
        expanded_count += count if added else 0
        left.update(dict.fromkeys(removed, count))
        joined.update(dict.fromkeys(added, count))
    shrunk = (
        IsrShrunk(topic=topic, partition=index, removed=removed, isr=after.isr)
        for topic, index, before, after in changed
        if (removed := _without(before.isr, after.isr))
    )
    events.add_all(IsrShrunk.KIND, shrunk, shrunk_count, left)
    expanded = (
        IsrExpanded(topic=topic, partition=index, added=added, isr=after.isr)
        for topic, index, before, after in changed
        if (added := _without(after.isr, before.isr))
    )
    events.add_all(IsrExpanded.KIND, expanded, expanded_count, joined)


def _without(replicas: tuple[NodeId, ...], others: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    return tuple([replica for replica in replicas if replica not in others])


def _reassignment_begun(changed: _Changed) -> ReassignmentBegun:
    topic, index, _, after = changed
    return ReassignmentBegun(
        topic=topic, partition=index, adding=after.adding_replicas, removing=after.removing_replicas
    )


def _reassignment_ended(changed: _Changed) -> ReassignmentEnded:
    topic, index, _, after = changed
    return ReassignmentEnded(topic=topic, partition=index, replicas=after.replicas)


def _add_configs(events: _Events, delta: MetadataDelta) -> None:
    # A topic that came or went with its configs is an event already.
    topics = {topic.name for topic in delta.topics.deleted.values()}
    topics.update(topic.name for topic in delta.topics.changed.values() if topic.is_new)
    changed = []
    for resource, after in delta.configs.items():
        if resource.type == ConfigResourceType.TOPIC and resource.name in topics:
            continue
        before = delta.base.configs.of(resource)
        names = [name for name in {**before, **after} if before.get(name) != after.get(name) and name != BROKER_DRAINED]
        if names:
            changed.append((resource, sorted(names), after))
    told = (
        ConfigsChanged(
            resource_type=resource.type,
            resource_name=resource.name,
            count=len(names),
            changes=tuple([_config(resource, name, after.get(name)) for name in names[:CONFIGS_MAX]]),
        )
        for resource, names, after in changed
    )
    events.add_all(ConfigsChanged.KIND, told, len(changed), {})


def _config(resource: ConfigResource, name: str, value: str | None) -> ConfigChange:
    if resource.type == ConfigResourceType.BROKER and is_sensitive(name):
        return ConfigChange(name=name, value=None, is_hidden=value is not None)
    if value is not None and len(value) > VALUE_CHARACTERS_MAX:
        value = f"{value[:VALUE_CHARACTERS_MAX]}…"
    return ConfigChange(name=name, value=value)
