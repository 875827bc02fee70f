"""Taking all replicas off a broker, step by step, until it can be unregistered.

Nothing is remembered between two steps: the metadata say what is left, so any node can take the next step, and an
operator who stops asking for steps has stopped. The steps: drain the broker, begin `next_moves` again and again until
`decommission_state` says that the broker may be unregistered. `moves_to_cancel` are those to take back.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import Struct

from ...protocol.ids import NodeId
from ..decisions.assignment_moves import assignment_of
from ..metadata.image import MetadataImage, PartitionRegistration, TopicImage
from ..metadata.records import NO_LEADER
from .maintenance import LISTED_MAX, registered
from .moves import MOVING_MAX, Move, Place
from .placements import Placements
from .reassignment import check_room, moves_between, replica_counts, usable_brokers


class DecommissionState(Struct, frozen=True, kw_only=True):
    """How far a broker is from having no replicas. Lists have LISTED_MAX entries at most."""

    broker_id: NodeId
    is_drained: bool
    replica_count: int
    """Replicas that it still has, those that are moving among them."""
    moving_count: int
    moving: tuple[Place, ...]
    """Partitions that are on their way to other brokers."""
    bytes_left: int | None
    """Of its replicas, None when the size of one of them is not known."""
    stuck_count: int
    stuck: tuple[Place, ...]
    """Partitions without a leader that the broker has to be started for: other replicas cannot be filled."""

    @property
    def blockers(self) -> tuple[str, ...]:
        """Why the broker may not be unregistered, as sentences; none when it may."""
        sentences = []
        if not self.is_drained:
            sentences.append("the broker is not drained")
        if self.replica_count:
            sentences.append(f"the broker has {self.replica_count} replica(s), {self.moving_count} of them moving")
        if self.stuck_count:
            sentences.append(f"{self.stuck_count} partition(s) without a leader need this broker: start it")
        return tuple(sentences)

    @property
    def may_unregister(self) -> bool:
        return not self.blockers


def decommission_state(
    image: MetadataImage, broker_id: NodeId, sizes: Mapping[Place, int] | None = None
) -> DecommissionState:
    """`sizes` are bytes by partition, as DescribeLogDirs of the broker has them.

    Raises KafkaError(BROKER_ID_NOT_REGISTERED).
    """
    registered(image, broker_id)
    replica_count = moving_count = stuck_count = 0
    bytes_left: int | None = 0 if sizes is not None else None
    moving: list[Place] = []
    stuck: list[Place] = []
    for topic, index, partition in _replicas_of(image, broker_id):
        place = (topic.name, index)
        replica_count += 1
        if broker_id in partition.removing_replicas:
            moving_count += 1
            moving.append(place)
        if partition.leader == NO_LEADER and broker_id in (*partition.isr, *partition.elr, *partition.last_known_elr):
            stuck_count += 1
            stuck.append(place)
        if bytes_left is not None:
            size = None if sizes is None else sizes.get(place)
            bytes_left = None if size is None else bytes_left + size
    return DecommissionState(
        broker_id=broker_id,
        is_drained=broker_id in image.configs.drained_brokers,
        replica_count=replica_count,
        moving_count=moving_count,
        moving=tuple(moving[:LISTED_MAX]),
        bytes_left=bytes_left,
        stuck_count=stuck_count,
        stuck=tuple(stuck[:LISTED_MAX]),
    )


def next_moves(image: MetadataImage, broker_id: NodeId, *, moving_max: int = MOVING_MAX) -> tuple[Move, ...]:
    """Return the moves to begin now, so that at most `moving_max` partitions leave the broker at once.

    A replica goes to the rack that has the fewest of its partition and there to the broker with the fewest replicas. A
    partition that is moving for another reason waits until that has ended.

    Raises KafkaError(BROKER_ID_NOT_REGISTERED, INVALID_REPLICATION_FACTOR) when too few brokers can take replicas.
    """
    registered(image, broker_id)
    targets = usable_brokers(image, without=(broker_id,))
    waiting: list[tuple[TopicImage, int, PartitionRegistration]] = []
    room = moving_max
    for topic, index, partition in _replicas_of(image, broker_id):
        if broker_id in partition.removing_replicas:
            room -= 1
            continue
        check_room(topic.name, index, partition.replicas, targets | (set(partition.replicas) - {broker_id}))
        if not assignment_of(partition).is_moving:
            waiting.append((topic, index, partition))
    chosen = waiting[: max(room, 0)]
    before = [partition.replicas for _, _, partition in chosen]
    # A replica that stays may be on a broker that takes no new ones.
    staying = {replica for replicas in before for replica in replicas} - {broker_id} - targets
    load = replica_counts(image) - Counter(replica for replicas in before for replica in replicas)
    after: list[tuple[NodeId, ...]] = []
    for replicas in before:
        racks = {one: _rack(image, one) for one in sorted(targets | (staying & set(replicas)))}
        placements = Placements([replicas], racks, load)
        placements.replace_others(0)
        after.append(tuple(placements.replicas[0]))
        load.update(after[-1])
    return moves_between(chosen, before, after)


def moves_to_cancel(image: MetadataImage, broker_id: NodeId) -> tuple[Place, ...]:
    """Return the partitions that are leaving the broker. Cancelled, they stay on it."""
    return tuple(
        (topic.name, index)
        for topic, index, partition in _replicas_of(image, broker_id)
        if broker_id in partition.removing_replicas
    )


def _rack(image: MetadataImage, broker_id: NodeId) -> str:
    # A replica may be on a broker that is not registered any more.
    broker = image.brokers.get(broker_id)
    return "" if broker is None or broker.rack is None else broker.rack


def _replicas_of(image: MetadataImage, broker_id: NodeId) -> Iterator[tuple[TopicImage, int, PartitionRegistration]]:
    for topic in sorted(image.topics.by_id.values(), key=lambda one: one.name):
        for index, partition in enumerate(topic.partitions):
            if broker_id in partition.replicas:
                yield topic, index, partition
