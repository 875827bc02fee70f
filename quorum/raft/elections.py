"""When a voter campaigns, and when it helps others to: pre-vote, stickiness, leader loss.

Kafka: `QuorumState`, `EpochElection`.

A voter requests pre-votes when no leader contacted it for a random time, and becomes a candidate when a majority would
vote for it (Raft thesis §9.6). It is sticky: it grants neither pre-votes nor votes while a leader contacts it (§4.2.3),
but for an election that the leader itself requested. When the links show that the leader's process is gone, the voter
stops being sticky until a leader contacts it again, and requests pre-votes after a few milliseconds. If the network
refuses connections for a live leader, the request fails: the other voters still receive its heartbeats and are sticky.
All of this affects liveness only.
"""

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from random import Random

from ...protocol.ids import NodeId
from .progress import NEVER_MS


class RaftTiming(Struct, frozen=True, kw_only=True):
    """An election takes place between `election_min_ms` and `election_max_ms` after the last heartbeat."""

    heartbeat_ms: int = 100
    election_min_ms: int = 500
    election_max_ms: int = 1_000
    # A voter that starts knows of no leader that it could disturb; those who do know refuse its pre-vote.
    first_election_min_ms: int = 30
    first_election_max_ms: int = 200
    loss_jitter_min_ms: int = 20
    loss_jitter_max_ms: int = 80
    # For those who just helped another candidate, or stood against one, after a loss.
    loss_retry_min_ms: int = 120
    loss_retry_max_ms: int = 300


class Elections:
    """The clock and the votes of one voter."""

    def __init__(
        self, *, voter_id: NodeId, voter_count: int, timing: RaftTiming, random: "Random", now_ms: int
    ) -> None:
        self._voter_id = voter_id
        self._voter_count = voter_count
        self._timing = timing
        self._random = random
        self._last_heard_ms = NEVER_MS
        self._is_leader_gone = False
        self._leader_gone_ms = NEVER_MS
        self._pre_votes: set[NodeId] = set()
        self._votes: set[NodeId] = set()
        # A single voter waits for no other.
        delay_ms = random.randint(timing.first_election_min_ms, timing.first_election_max_ms) if voter_count > 1 else 0
        self.campaign_at_ms = now_ms + delay_ms
        self.has_lost_leader = False
        """No leader made contact for so long that the voter names none."""

    def is_sticky(self, now_ms: int) -> bool:
        return not self._is_leader_gone and now_ms - self._last_heard_ms < self._timing.election_min_ms

    def on_leader_heard(self, now_ms: int) -> None:
        self._last_heard_ms = now_ms
        self._is_leader_gone = self.has_lost_leader = False
        self._pre_votes.clear()
        self._votes.clear()
        self._wait_long(now_ms)

    def on_leader_gone(self, now_ms: int) -> None:
        """Hear that the leader's process does not exist any more."""
        self._is_leader_gone = self.has_lost_leader = True
        self._leader_gone_ms = now_ms
        self._wait(now_ms, self._timing.loss_jitter_min_ms, self._timing.loss_jitter_max_ms)

    def on_silence(self) -> None:
        """Name no leader any more, without a pre-vote to ask for."""
        self.has_lost_leader = True

    def on_stall(self, now_ms: int) -> None:
        """Give the messages that waited while this process could not run a chance to be heard first."""
        self.campaign_at_ms = max(self.campaign_at_ms, now_ms + self._timing.heartbeat_ms)

    def begin_pre_vote(self, now_ms: int) -> bool:
        """Return whether this voter's own answer is enough."""
        self.has_lost_leader = True
        self._votes.clear()
        self._pre_votes = {self._voter_id}
        if self._is_in_haste(now_ms):
            self._wait(now_ms, self._timing.loss_jitter_min_ms, self._timing.loss_jitter_max_ms)
        else:
            self._wait_long(now_ms)
        return self._has_majority(self._pre_votes)

    def on_pre_vote(self, peer_id: NodeId) -> bool:
        """Return whether it is time to campaign."""
        if not self._pre_votes:
            return False
        self._pre_votes.add(peer_id)
        return self._has_majority(self._pre_votes)

    def on_campaign(self, now_ms: int) -> None:
        self._pre_votes.clear()
        self._votes = {self._voter_id}
        self.on_support(now_ms)

    def on_vote(self, peer_id: NodeId) -> bool:
        """Return whether the vote counts: each voter's does once, and only in a campaign that is not given up."""
        if not self._votes or peer_id in self._votes:
            return False
        self._votes.add(peer_id)
        return True

    def on_support(self, now_ms: int) -> None:
        """Let a candidate, this voter itself perhaps, have the time it needs."""
        if self._is_in_haste(now_ms):
            self._wait(now_ms, self._timing.loss_retry_min_ms, self._timing.loss_retry_max_ms)
        else:
            self._wait_long(now_ms)

    def on_step_down(self, now_ms: int) -> None:
        self.has_lost_leader = True
        self._wait_long(now_ms)

    def _is_in_haste(self, now_ms: int) -> bool:
        """Whether the others can be expected to miss the leader as well, or will shortly."""
        return self._is_leader_gone and now_ms - self._leader_gone_ms < self._timing.election_max_ms

    def _wait_long(self, now_ms: int) -> None:
        self._wait(now_ms, self._timing.election_min_ms, self._timing.election_max_ms)

    def _wait(self, now_ms: int, shortest_ms: int, longest_ms: int) -> None:
        self.campaign_at_ms = now_ms + self._random.randint(shortest_ms, longest_ms)

    def _has_majority(self, voters: set[NodeId]) -> bool:
        return len(voters) * 2 > self._voter_count
