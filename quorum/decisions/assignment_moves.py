"""Which replicas a partition has while some of them come and others go (KIP-455).

Kafka: `PartitionReassignmentReplicas`.

A reassignment has three stages: the replicas that come are added to those that are there; the leader waits until all
that shall stay are in sync; then those that go are left out. Where nothing has to be waited for, all three are one.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from msgspec import Struct

from ...protocol.ids import NodeId
from ..metadata.image import PartitionRegistration


class Assignment(Struct, frozen=True, kw_only=True):
    """All replicas in the order in which they are preferred, and which of them come and go."""

    replicas: tuple[NodeId, ...]
    adding: tuple[NodeId, ...] = ()
    removing: tuple[NodeId, ...] = ()

    @property
    def is_moving(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def remaining(self) -> tuple[NodeId, ...]:
        """The replicas that there will be at the end."""
        return _without(self.replicas, self.removing)


class Reverted(NamedTuple):
    """A partition as it was before its reassignment began.

    `is_unclean` says that no replica is left that is known to be in sync: the ISR is the first replica, whatever that
    loses.
    """

    assignment: Assignment
    isr: tuple[NodeId, ...]
    is_unclean: bool


def assignment_of(partition: PartitionRegistration) -> Assignment:
    return Assignment(
        replicas=partition.replicas, adding=partition.adding_replicas, removing=partition.removing_replicas
    )


def move(current: Assignment, target: Sequence[NodeId]) -> Assignment:
    """Return the first stage of the move to these replicas, from wherever an earlier move has got.

    A replica added by the earlier move still counts as adding: a revert leads back to where the first one began.
    """
    removing = tuple(sorted(set(current.replicas) - set(target)))
    replicas = (*target, *removing)
    original = _without(current.replicas, current.adding)
    return Assignment(replicas=replicas, adding=tuple(sorted(set(replicas) - set(original))), removing=removing)


def settle(assignment: Assignment, isr: Sequence[NodeId]) -> tuple[Assignment, tuple[NodeId, ...]]:
    """Return assignment and ISR at the end of the reassignment, when that ISR lets it end; else both as they are.

    It may end when all replicas that remain are in sync, and there is one.
    """
    remaining = assignment.remaining
    if not assignment.is_moving or not remaining or not set(remaining) <= set(isr):
        return assignment, tuple(isr)
    return Assignment(replicas=remaining), _without(isr, assignment.removing)


def revert(partition: PartitionRegistration) -> Reverted:
    """Return the partition without the replicas that came, and with those that should have gone.

    While the ISR is empty, those that may lead without loss are in its place: without the last of them the partition
    would never have a leader again, or one that lacks what is committed.
    """
    replicas = _without(partition.replicas, partition.adding_replicas)
    isr = _without(partition.isr, partition.adding_replicas)
    eligible = partition.isr or partition.elr or partition.last_known_elr
    is_unclean = bool(eligible) and not _without(eligible, partition.adding_replicas)
    return Reverted(Assignment(replicas=replicas), replicas[:1] if is_unclean else isr, is_unclean)


def _without(replicas: Sequence[NodeId], left_out: Collection[NodeId]) -> tuple[NodeId, ...]:
    return tuple([replica for replica in replicas if replica not in left_out])
