"""Where new partitions go: striped over the racks and, in each rack, over its brokers. Kafka: `StripedReplicaPlacer`.

Leaders rotate over the racks, and in each rack over the brokers; the other replicas follow in the order of the racks,
each rack giving one before any gives two (KIP-36). A fenced broker may take a replica but leads nothing, so it is never
first. A drained one takes replicas only where the others are too few, and is first only where all others are fenced.
One whose log directories are all
cordoned takes none (KIP-1066).
After as many partitions as there are brokers that can lead, the order is shuffled: otherwise one broker's partitions
would always have the same followers, and these alone would carry its load when it fails.

From three racks on, two things are not as in Apache Kafka. The order of the racks is drawn anew for each turn of
leaders over them, as that of the brokers is later: else the followers of one rack would all be in the next one by name,
which would lead twice as much when a host of many nodes fails. And leaders rotate by themselves: in one ring with
followers a rack of 64 brokers moves on by two for each partition of two replicas that it leads, so 32 of them lead.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import NodeId
from ..metadata.image import BrokerRegistration, MetadataImage
from ..metadata.records import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED

if TYPE_CHECKING:
    from random import Random

DRAWN_RACKS_MIN = 3
"""With two, there is one order in a circle."""


class _Ring:
    """Ids that are handed out in turn, starting one further for each partition that asks."""

    def __init__(self, ids: Sequence[NodeId], *, start: int, partition: int) -> None:
        """`start` is where `partition` begins."""
        self.ids = list(ids)
        self._start = start
        self._partition = partition
        self._given = 0

    def next(self, partition: int) -> NodeId | None:
        """Return the next id for this partition, None when it had them all."""
        if not self.ids:
            return None
        if partition != self._partition:
            self._partition = partition
            self._given = 0
            self._start += 1
        if self._given == len(self.ids):
            return None
        self._given += 1
        return self.ids[(self._start + self._given - 1) % len(self.ids)]


class _Rack:
    """The brokers of one rack; those that may lead are taken as followers first, too."""

    def __init__(
        self,
        brokers: Iterable[BrokerRegistration],
        leading: Collection[NodeId],
        random: "Random",
        *,
        has_own_leaders: bool,
    ) -> None:
        """With `has_own_leaders` leaders go forward from a place that is drawn, and followers back from it: so what is
        given in one turn around the ring is given once. Else both are of one ring, as in Apache Kafka."""
        ids = sorted(broker.id for broker in brokers)
        first = [broker_id for broker_id in ids if broker_id in leading]
        start = _drawn_place(first, random)
        if has_own_leaders:
            self._leaders = _Ring(first, start=start - 1, partition=-1)
            self._leading = _Ring(first[::-1], start=-start - 1, partition=-1)
        else:
            self._leaders = self._leading = _Ring(first, start=start, partition=0)
        rest = [broker_id for broker_id in ids if broker_id not in leading]
        self._following = _Ring(rest, start=_drawn_place(rest, random), partition=0)

    def next_leader(self, partition: int) -> NodeId | None:
        return self._leaders.next(partition)

    def next_replica(self, partition: int, leader: NodeId) -> NodeId | None:
        replica = self._leading.next(partition)
        if replica == leader:
            replica = self._leading.next(partition)
        return self._following.next(partition) if replica is None else replica

    def shuffle(self, random: "Random") -> None:
        random.shuffle(self._leaders.ids)
        random.shuffle(self._following.ids)
        if self._leaders is not self._leading:
            self._leading.ids = self._leaders.ids[::-1]


def _drawn_place(ids: Sequence[NodeId], random: "Random") -> int:
    return random.randrange(len(ids)) if ids else 0


def place(
    image: MetadataImage, *, partition_count: int, replication_factor: int, random: "Random"
) -> list[tuple[NodeId, ...]]:
    """Return the replicas of each new partition, the preferred leader first.

    Raises KafkaError(INVALID_REPLICATION_FACTOR).
    """
    brokers = _usable(image)
    leading = _leading(image, brokers)
    leader_count = len(leading)
    if replication_factor <= 0:
        raise _refused(f"Invalid replication factor {replication_factor}: the replication factor must be positive.")
    if not leader_count:
        raise _refused("All brokers are currently fenced, or have all their log directories cordoned.")
    if replication_factor > len(brokers):
        raise _refused(
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(brokers)} broker(s) are registered or some brokers have all their log directories cordoned."
        )
    brokers = _enough(image, brokers, leading, replication_factor)
    by_rack = _by_rack(brokers)
    is_drawn = len(by_rack) >= DRAWN_RACKS_MIN
    racks = [_Rack(members, leading, random, has_own_leaders=is_drawn) for members in by_rack]
    first_rack = random.randrange(len(racks))
    placed: list[tuple[NodeId, ...]] = []
    for partition in range(partition_count):
        if partition and partition % leader_count == 0 and leader_count > 1:
            random.shuffle(racks)
            for rack in racks:
                rack.shuffle(random)
        if is_drawn and partition % len(racks) == 0:
            # Not for each partition: in one turn each rack leads once and follows as often as every other.
            random.shuffle(racks)
        start = (first_rack + partition) % len(racks)
        placed.append(_place_one(racks[start:] + racks[:start], partition, replication_factor))
    return placed


def count_usable(image: MetadataImage) -> int:
    """Return how many brokers may take new replicas: as many as a partition can have."""
    return len(_usable(image))


def default_directory(image: MetadataImage, broker_id: NodeId) -> UUID:
    """Return where a new replica will be: known before the broker says so when it has only one directory (KIP-858)."""
    broker = image.brokers.get(broker_id)
    if broker is None or not broker.directories:
        return DIRECTORY_MIGRATING
    return broker.directories[0] if len(broker.directories) == 1 else DIRECTORY_UNASSIGNED


def is_reserved_directory(directory: UUID) -> bool:
    """Whether the id is one of those that mean no directory. Kafka keeps the first hundred for such use."""
    return directory in (DIRECTORY_UNASSIGNED, DIRECTORY_LOST, DIRECTORY_MIGRATING) or directory.int < 100


def _usable(image: MetadataImage) -> list[BrokerRegistration]:
    return [broker for broker in image.brokers.values() if broker.takes_replicas and not broker.in_controlled_shutdown]


def _leading(image: MetadataImage, brokers: Iterable[BrokerRegistration]) -> frozenset[NodeId]:
    """Return the brokers that may be first: of the unfenced ones those that are not drained, or all if all are."""
    unfenced = frozenset(broker.id for broker in brokers if not broker.is_fenced)
    return unfenced - image.configs.drained_brokers or unfenced


def _enough(
    image: MetadataImage,
    brokers: Sequence[BrokerRegistration],
    leading: Collection[NodeId],
    replication_factor: int,
) -> list[BrokerRegistration]:
    """Return the brokers without the drained ones, or with as many of these as the replication factor needs."""
    drained = image.configs.drained_brokers - frozenset(leading)
    chosen = [broker for broker in brokers if broker.id not in drained]
    missing = max(0, replication_factor - len(chosen))
    rest = sorted((broker for broker in brokers if broker.id in drained), key=lambda one: (one.is_fenced, one.id))
    return [*chosen, *rest[:missing]]


def _by_rack(brokers: Iterable[BrokerRegistration]) -> list[list[BrokerRegistration]]:
    racks: dict[str, list[BrokerRegistration]] = {}
    for broker in brokers:
        racks.setdefault(broker.rack or "", []).append(broker)
    return [racks[name] for name in sorted(racks)]


def _place_one(racks: Sequence[_Rack], partition: int, replication_factor: int) -> tuple[NodeId, ...]:
    leading_rack, leader = next((rack, leader) for rack in racks if (leader := rack.next_leader(partition)) is not None)
    replicas = [leader]
    has_skipped = False
    while len(replicas) < replication_factor:
        for rack in racks:
            if len(replicas) == replication_factor:
                break
            if rack is leading_rack and not has_skipped:
                # It gave the leader in this round.
                has_skipped = True
                continue
            replica = rack.next_replica(partition, leader)
            if replica is not None:
                replicas.append(replica)
    return tuple(replicas)


def _refused(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
