"""Moves of partitions to other replicas, and the requests that begin and cancel them (KIP-455)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32
from msgspec import Struct

from ...protocol.ids import NodeId

Place: TypeAlias = tuple[str, int]
"""A partition: topic and index."""

MOVING_MAX: Final = 50
"""Partitions that move at once: each new replica is one more that its leader feeds, and a cancel is soon done."""
THROTTLE_BYTES_PER_S_MIN: Final = 1024 * 1024
"""Below it one fetch of a follower is more than a throttle allows in its windows, and a move crawls."""


class Move(Struct, frozen=True, kw_only=True):
    """A partition's replicas as they are and as they are to be, each with the preferred leader first."""

    topic: str
    partition: int
    leader: NodeId
    before: tuple[NodeId, ...]
    after: tuple[NodeId, ...]

    @property
    def place(self) -> Place:
        return self.topic, self.partition

    @property
    def adding(self) -> tuple[NodeId, ...]:
        """The brokers that get a copy; none when only the order changes."""
        return tuple([replica for replica in self.after if replica not in self.before])

    @property
    def removing(self) -> tuple[NodeId, ...]:
        return tuple([replica for replica in self.before if replica not in self.after])


class Throttle(NamedTuple):
    """A rate for `leader.replication.throttled.rate` and `follower.replication.throttled.rate`.

    `busiest_broker_id` sends or receives the most; it needs `seconds` at that rate.
    """

    bytes_per_s: int
    busiest_broker_id: NodeId
    seconds: int


def batches(moves: Sequence[Move], moving_max: int = MOVING_MAX) -> Iterator[Sequence[Move]]:
    """Yield the moves in their order, so many at a time: each batch is to have ended before the next begins."""
    for start in range(0, len(moves), moving_max):
        yield moves[start : start + moving_max]


def move_request(moves: Iterable[Move]) -> AlterPartitionReassignmentsRequest:
    """Return the request that begins the moves."""
    return _request({move.place: tuple(map(BrokerId, move.after)) for move in moves})


def cancel_request(places: Iterable[Place]) -> AlterPartitionReassignmentsRequest:
    """Return the request that takes moves back that are under way."""
    return _request(dict.fromkeys(places))


def moved_bytes(moves: Iterable[Move], sizes: Mapping[Place, int]) -> int:
    """Return how much has to be copied, where the size of a partition is known."""
    return sum(sizes.get(move.place, 0) * len(move.adding) for move in moves)


def suggest_throttle(
    moves: Iterable[Move], sizes: Mapping[Place, int], *, seconds: int, written_bytes_per_s: int = 0
) -> Throttle | None:
    """Return the rate at which the moves are done in so many seconds, None when nothing has to be copied.

    A new replica has to copy what is written meanwhile, too, or it never catches up: `written_bytes_per_s` is what
    producers write to one broker.
    """
    load: dict[NodeId, int] = {}
    for move in moves:
        size = sizes.get(move.place, 0)
        for replica in move.adding:
            load[replica] = load.get(replica, 0) + size
            load[move.leader] = load.get(move.leader, 0) + size
    if not load:
        return None
    broker_id, most = max(load.items(), key=lambda item: (item[1], -item[0]))
    copied_bytes_per_s = max(-(-most // max(seconds, 1)), THROTTLE_BYTES_PER_S_MIN)
    return Throttle(copied_bytes_per_s + written_bytes_per_s, broker_id, -(-most // copied_bytes_per_s))


def _request(replicas_of: Mapping[Place, tuple[BrokerId, ...] | None]) -> AlterPartitionReassignmentsRequest:
    topics: dict[str, list[ReassignablePartition]] = {}
    for (topic, index), replicas in replicas_of.items():
        topics.setdefault(topic, []).append(ReassignablePartition(partition_index=i32(index), replicas=replicas))
    return AlterPartitionReassignmentsRequest(
        topics=tuple(
            ReassignableTopic(name=TopicName(topic), partitions=tuple(partitions))
            for topic, partitions in topics.items()
        )
    )
