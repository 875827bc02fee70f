"""Who is in sync, as the leader of a partition knows it: what the controller has committed, and what it was asked for.

    state      entered by                                    left by
    committed  `commit`, `take_back`                         `propose`
    pending    `propose`, `propose_instead`                  `commit` of a higher partition epoch, `take_back`

An answer that leaves open whether the change was made leaves it pending: who may be a member is counted as one. One
that says that it was not made leaves it open too, for an earlier copy of the request may still be on its way: only a
higher partition epoch, at which that is refused, ends it, and is what a proposal instead of it is to bring. The
*maximal* ISR are the members and all that may have become members (KIP-497), and with them the replicas that the
controller would elect if no member were left (KIP-966): what is committed has to be on each of them.
"""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrProposal:
    """A change of the ISR, made on the state of `partition_epoch`.

    `members` are pairs of a replica's id and the broker epoch that it fetched with, UNKNOWN_BROKER_EPOCH for members
    that have not fetched yet.
    """

    leader_epoch: int
    partition_epoch: int
    members: tuple[tuple[int, int], ...]


UNKNOWN_BROKER_EPOCH = -1


class InSyncReplicas:
    __slots__ = ("committed", "elr", "maximal", "pending")

    def __init__(self) -> None:
        self.committed: tuple[int, ...] = ()
        self.elr: tuple[int, ...] = ()
        self.pending: IsrProposal | None = None
        self.maximal: frozenset[int] = frozenset()

    def commit(self, isr: tuple[int, ...], elr: tuple[int, ...]) -> None:
        """This is what the metadata say, at a higher partition epoch than before."""
        self.committed = isr
        self.elr = elr
        self.pending = None
        self._find_maximal(())

    def propose(self, proposal: IsrProposal) -> None:
        """A shrink takes nobody out before it is committed; who is to join counts from now on."""
        assert self.pending is None, "one change at a time"
        self.pending = proposal
        self._find_maximal([replica for replica, _ in proposal.members])

    def propose_instead(self, proposal: IsrProposal) -> None:
        """Who was proposed before counts until the metadata tell."""
        assert self.pending is not None, "there is one to be replaced"
        self.pending = proposal

    def take_back(self) -> None:
        """The change was not made, and will not be."""
        self.pending = None
        self._find_maximal(())

    def _find_maximal(self, proposed: Collection[int]) -> None:
        self.maximal = frozenset((*self.committed, *self.elr, *proposed))
