"""When a voter campaigns, and when it helps others to: pre-vote, stickiness, leader loss.

A voter requests pre-votes when no leader contacted it for a random time, and becomes a candidate when a majority would
vote for it (Raft thesis §9.6). It is sticky: it grants neither pre-votes nor votes while a leader contacts it (§4.2.3),
but for an election that the leader itself requested. When the links show that the leader's process is gone, the voter
stops being sticky until a leader contacts it again, and requests pre-votes after a few milliseconds. If the network
refuses connections for a live leader, the request fails: the other voters still receive its heartbeats and are sticky.
All of this affects liveness only.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftTiming:
    """In seconds. An election takes place between `election_min_s` and `election_max_s` after the last heartbeat."""

    heartbeat_s: float = 0.1
    election_min_s: float = 0.5
    election_max_s: float = 1.0
    # A voter that starts knows of no leader that it could disturb; those who do know refuse its pre-vote.
    first_election_min_s: float = 0.03
    first_election_max_s: float = 0.2
    loss_jitter_min_s: float = 0.02
    loss_jitter_max_s: float = 0.08
    # For those who just helped another candidate, or stood against one, after a loss.
    loss_retry_min_s: float = 0.12
    loss_retry_max_s: float = 0.3


class Elections:
    """The clock and the votes of one voter."""

    def __init__(self, *, voter_id: int, voter_count: int, timing: RaftTiming, random: "Random", now_s: float) -> None:
        self._voter_id = voter_id
        self._voter_count = voter_count
        self._timing = timing
        self._random = random
        self._last_heard_s = float("-inf")
        self._is_leader_gone = False
        self._leader_gone_s = float("-inf")
        self._pre_votes: set[int] = set()
        self._votes: set[int] = set()
        # A single voter waits for no other.
        delay_s = random.uniform(timing.first_election_min_s, timing.first_election_max_s) if voter_count > 1 else 0.0
        self.campaign_at_s = now_s + delay_s
        self.has_lost_leader = False
        """No leader made contact for so long that the voter names none."""

    def is_sticky(self, now_s: float) -> bool:
        return not self._is_leader_gone and now_s - self._last_heard_s < self._timing.election_min_s

    def on_leader_heard(self, now_s: float) -> None:
        self._last_heard_s = now_s
        self._is_leader_gone = self.has_lost_leader = False
        self._pre_votes.clear()
        self._votes.clear()
        self._wait_long(now_s)

    def on_leader_gone(self, now_s: float) -> None:
        """Hear that the leader's process does not exist any more."""
        self._is_leader_gone = self.has_lost_leader = True
        self._leader_gone_s = now_s
        self._wait(now_s, self._timing.loss_jitter_min_s, self._timing.loss_jitter_max_s)

    def on_silence(self) -> None:
        """Name no leader any more, without a pre-vote to ask for."""
        self.has_lost_leader = True

    def on_stall(self, now_s: float) -> None:
        """Give the messages that waited while this process could not run a chance to be heard first."""
        self.campaign_at_s = max(self.campaign_at_s, now_s + self._timing.heartbeat_s)

    def begin_pre_vote(self, now_s: float) -> bool:
        """Return whether this voter's own answer is enough."""
        self.has_lost_leader = True
        self._votes.clear()
        self._pre_votes = {self._voter_id}
        if self._is_in_haste(now_s):
            self._wait(now_s, self._timing.loss_jitter_min_s, self._timing.loss_jitter_max_s)
        else:
            self._wait_long(now_s)
        return self._has_majority(self._pre_votes)

    def on_pre_vote(self, peer_id: int) -> bool:
        """Return whether it is time to campaign."""
        if not self._pre_votes:
            return False
        self._pre_votes.add(peer_id)
        return self._has_majority(self._pre_votes)

    def on_campaign(self, now_s: float) -> None:
        self._pre_votes.clear()
        self._votes = {self._voter_id}
        self.on_support(now_s)

    def on_vote(self, peer_id: int) -> bool:
        """Return whether the vote counts: each voter's does once, and only in a campaign that is not given up."""
        if not self._votes or peer_id in self._votes:
            return False
        self._votes.add(peer_id)
        return True

    def on_support(self, now_s: float) -> None:
        """Let a candidate, this voter itself perhaps, have the time it needs."""
        if self._is_in_haste(now_s):
            self._wait(now_s, self._timing.loss_retry_min_s, self._timing.loss_retry_max_s)
        else:
            self._wait_long(now_s)

    def on_step_down(self, now_s: float) -> None:
        self.has_lost_leader = True
        self._wait_long(now_s)

    def _is_in_haste(self, now_s: float) -> bool:
        """Whether the others can be expected to miss the leader as well, or will shortly."""
        return self._is_leader_gone and now_s - self._leader_gone_s < self._timing.election_max_s

    def _wait_long(self, now_s: float) -> None:
        self._wait(now_s, self._timing.election_min_s, self._timing.election_max_s)

    def _wait(self, now_s: float, shortest_s: float, longest_s: float) -> None:
        self.campaign_at_s = now_s + self._random.uniform(shortest_s, longest_s)

    def _has_majority(self, voters: set[int]) -> bool:
        return len(voters) * 2 > self._voter_count
