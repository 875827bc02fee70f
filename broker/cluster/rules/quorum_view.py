"""The quorum as one of its voters sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ....protocol.ids import NodeId
from ....protocol.no_quorum import no_quorum
from ....quorum.metadata.voters import Voter
from ....quorum.raft.consensus import QuorumStatus, VoterStatus


class QuorumView:
    def __init__(
        self,
        *,
        node_id: NodeId,
        status: Callable[[], QuorumStatus],
        observers: Callable[[], tuple[VoterStatus, ...]],
        voters: Mapping[NodeId, Voter],
        listener_name: str,
        wall_clock_ms: Callable[[], int],
    ) -> None:
        """`status` and `observers` are those of the voter; of `listener_name` are the voters' addresses."""
        self.node_id = node_id
        self.status = status
        self.observers = observers
        self.voters = voters
        self.listener_name = listener_name
        self.wall_clock_ms = wall_clock_ms

    def no_quorum(self) -> str | None:
        """The sentence, when this voter reaches no majority."""
        return no_quorum(tuple(self.voters), self.status().unreached_ids)
