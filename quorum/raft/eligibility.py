"""Voting eligibility of a replica with an empty log: a replaced disk must not vote until it has caught up.

A new disk under an old node id would undo the votes and acknowledgements of the old one. A voter's journal says whether
it is a member's. An empty one is of no member yet: its voter neither votes nor campaigns nor answers barriers, and its
copies count for no commit.

| state      | leaves by                                                                        | to     |
|------------|----------------------------------------------------------------------------------|--------|
| no member  | its log is empty, and all other voters answered in this run that theirs are too: | member |
|            | a new cluster                                                                    |        |
| no member  | the leader says that an entry proposed after this run began is committed by      | member |
|            | members alone and is on this disk                                                |        |

The first way needs all of them: the one that is missing may be the last that has the metadata, and a majority of
emptied disks would begin anew without it. From then on a majority does.

The second way is safe because such an entry shows that the leader was one after the return, and because everything
committed before lies below it in the leader's log, which this disk now has.
"""

from collections.abc import Iterable

from ...protocol.ids import NodeId
from .messages import CensusReply


class EmptyLogProbe:
    """Whether the other voters' logs are empty too: their answers to one CensusRequest of this run."""

    def __init__(self, disk_incarnation: int, peer_ids: Iterable[NodeId]) -> None:
        self.disk_incarnation = disk_incarnation
        self._unheard = set(peer_ids)
        self._has_data = False

    def on_reply(self, peer_id: NodeId, reply: CensusReply) -> None:
        if reply.disk_incarnation == self.disk_incarnation:
            self._has_data = self._has_data or reply.has_data
            self._unheard.discard(peer_id)

    def on_data(self) -> None:
        """Hear of data in another way: some leader has sent entries."""
        self._has_data = True

    @property
    def is_new_cluster(self) -> bool:
        return not self._has_data and not self._unheard

    @property
    def unheard_ids(self) -> frozenset[NodeId]:
        """Voters whose word is missing for a new cluster; none when there is data somewhere."""
        return frozenset() if self._has_data else frozenset(self._unheard)


class Rejoins:
    """What a leader knows of the voters that came back without their disks."""

    def __init__(self) -> None:
        self._return_ids: dict[NodeId, int] = {}
        # Offset of an entry that was proposed after the return; None until there is one.
        self._proofs: dict[NodeId, int | None] = {}

    def on_ack(self, peer_id: NodeId, disk_incarnation: int) -> None:
        if self._return_ids.get(peer_id) != disk_incarnation:
            self._return_ids[peer_id] = disk_incarnation
            self._proofs[peer_id] = None

    def on_member(self, peer_id: NodeId) -> None:
        self._return_ids.pop(peer_id, None)
        self._proofs.pop(peer_id, None)

    def on_proposed(self, offset: int) -> None:
        """Hear of an entry that was appended just now."""
        for peer_id, proof in self._proofs.items():
            if proof is None:
                self._proofs[peer_id] = offset

    @property
    def wants_entry(self) -> bool:
        """True if an entry waits to be proposed."""
        return None in self._proofs.values()

    def ready(self, peer_id: NodeId, *, match_end: int, commit_end: int) -> bool:
        """Whether this peer's disk may count again."""
        proof = self._proofs.get(peer_id)
        return proof is not None and proof < match_end and proof < commit_end

    def clear(self) -> None:
        self._return_ids.clear()
        self._proofs.clear()
