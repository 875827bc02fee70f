"""The leader's view of the ISR: the committed ISR and one pending change. Kafka: `CommittedPartitionState`.

    state      entered by                                    left by
    committed  `commit`, `take_back`                         `propose`
    pending    `propose`, `propose_instead`                  `commit` of a higher partition epoch, `take_back`

A response that leaves the result of the change unknown keeps it pending (Kafka: `PendingPartitionChange`): a possible
member counts as a member. A refusal keeps it pending too, because an earlier copy of the request may still be in
flight: only a higher partition epoch fences that copy, and the proposal made instead raises it. The *maximal* ISR is
the committed ISR plus pending additions (KIP-497, Kafka: `PartitionState`, `maximalIsr`) plus the ELR, from which the
controller would elect if the ISR were empty (KIP-966): committed records must be on each of these replicas.
"""

from collections.abc import Collection

from msgspec import Struct

from ....protocol.ids import BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch


class IsrProposal(Struct, frozen=True, kw_only=True):
    """A change of the ISR, based on the state at `partition_epoch`.

    `members` are pairs of replica id and broker epoch of its fetches, NO_BROKER_EPOCH for members that have not
    fetched yet.
    """

    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    members: tuple[tuple[NodeId, BrokerEpoch], ...]
    size_change: int = 0
    """How many more members than the committed ISR has."""


class InSyncReplicas:
    __slots__ = ("committed", "elr", "maximal", "pending")

    def __init__(self) -> None:
        self.committed: tuple[NodeId, ...] = ()
        self.elr: tuple[NodeId, ...] = ()
        self.pending: IsrProposal | None = None
        self.maximal: frozenset[NodeId] = frozenset()

    def commit(self, isr: tuple[NodeId, ...], elr: tuple[NodeId, ...]) -> None:
        """Applies the ISR and ELR of the metadata, at a higher partition epoch than before."""
        self.committed = isr
        self.elr = elr
        self.pending = None
        self._find_maximal(())

    def propose(self, proposal: IsrProposal) -> None:
        """Sets the pending change: additions count as members at once, removals only after the commit."""
        assert self.pending is None, "at most one pending ISR change"
        self.pending = proposal
        self._find_maximal([replica for replica, _ in proposal.members])

    def propose_instead(self, proposal: IsrProposal) -> None:
        """Replaces the pending change; additions of the old one count as members until the metadata change."""
        assert self.pending is not None, "a pending ISR change exists"
        self.pending = proposal

    def take_back(self) -> None:
        """Drops the pending change: it was not made, and will not be."""
        self.pending = None
        self._find_maximal(())

    def _find_maximal(self, proposed: Collection[NodeId]) -> None:
        self.maximal = frozenset((*self.committed, *self.elr, *proposed))
