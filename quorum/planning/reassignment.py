"""A plan that puts topics, or the whole cluster, evenly on a set of brokers with few replicas moved.

As `kafka-reassign-partitions --generate`, which places everything anew instead.
"""

from collections import Counter
from collections.abc import Collection, Iterable

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import NodeId
from ..decisions.assignment_moves import assignment_of
from ..metadata.image import MetadataImage, PartitionRegistration, TopicImage
from .maintenance import registered
from .moves import Move
from .placements import Placements


def plan_reassignment(
    image: MetadataImage, *, topics: Collection[str] | None = None, brokers: Collection[NodeId] | None = None
) -> tuple[Move, ...]:
    """Return the moves, none when all is even: of these topics or of all, onto these brokers or all that can take some.

    A partition that is moving counts as where it goes. 10,000 partitions take seconds when much moves, which is for the
    executor. Raises KafkaError(UNKNOWN_TOPIC_OR_PARTITION, BROKER_ID_NOT_REGISTERED, INVALID_REPLICATION_FACTOR).
    """
    chosen = _chosen(image, topics)
    targets = sorted(usable_brokers(image) if brokers is None else {registered(image, one).id for one in brokers})
    partitions = [(topic, index, partition) for topic in chosen for index, partition in enumerate(topic.partitions)]
    before = [assignment_of(partition).remaining for _, _, partition in partitions]
    for (topic, index, _), replicas in zip(partitions, before, strict=True):
        check_room(topic.name, index, replicas, targets)
    elsewhere = replica_counts(image) - Counter(replica for replicas in before for replica in replicas)
    placements = Placements(before, {one: image.brokers[one].rack or "" for one in targets}, elsewhere)
    for place in range(len(before)):
        placements.replace_others(place)
    for place in range(len(before)):
        placements.spread_over_racks(place)
    placements.even_out()
    placements.even_out_leaders()
    return moves_between(partitions, before, placements.replicas)


def usable_brokers(image: MetadataImage, *, without: Collection[NodeId] = ()) -> set[NodeId]:
    """Return the brokers that can take replicas: active, and not drained."""
    return {
        broker.id
        for broker in image.brokers.values()
        if broker.is_active and broker.id not in image.configs.drained_brokers and broker.id not in without
    }


def check_room(topic: str, index: int, replicas: Collection[NodeId], targets: Collection[NodeId]) -> None:
    """Raise KafkaError(INVALID_REPLICATION_FACTOR) when there are fewer brokers than a partition has replicas."""
    if len(replicas) > len(targets):
        names = ", ".join(map(str, sorted(targets))) or "none"
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Partition {topic}-{index} has {len(replicas)} replicas, but {len(targets)} broker(s) can take some: "
            f"{names}.",
        )


def replica_counts(image: MetadataImage) -> Counter[NodeId]:
    """Return how many replicas each broker will have once all moves that are under way have ended."""
    return Counter(
        replica
        for topic in image.topics.by_id.values()
        for partition in topic.partitions
        for replica in assignment_of(partition).remaining
    )


def moves_between(
    partitions: Iterable[tuple[TopicImage, int, PartitionRegistration]],
    before: Iterable[tuple[NodeId, ...]],
    after: Iterable[Iterable[NodeId]],
) -> tuple[Move, ...]:
    """Return the moves of the partitions whose assignment changes."""
    return tuple(
        Move(topic=topic.name, partition=index, leader=partition.leader, before=old, after=tuple(new))
        for (topic, index, partition), old, new in zip(partitions, before, after, strict=True)
        if tuple(new) != old
    )


def _chosen(image: MetadataImage, topics: Collection[str] | None) -> list[TopicImage]:
    if topics is None:
        return sorted(image.topics.by_id.values(), key=lambda topic: topic.name)
    found = []
    for name in sorted(set(topics)):
        topic = image.topics.by_name.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        found.append(topic)
    return found
