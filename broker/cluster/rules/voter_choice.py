"""Which voter a node asks next, when the one that it asked is silent or does not lead. Pure; times are of the loop."""

from __future__ import annotations

from collections.abc import Iterable

from ....protocol.ids import NodeId


class SilentVoters:
    """The voters that lately let a request of this node, or an attempt to connect, run into its timeout.

    One for all that a node asks voters, so that what one request has found out spares the others the same wait.
    """

    def __init__(self, pause_ms: int) -> None:
        """`pause_ms` is how long the other voters come before a silent one."""
        self._pause_ms = pause_ms
        self._until_ms: dict[int, int] = {}

    def note(self, voter_id: NodeId, now_ms: int) -> None:
        self._until_ms[voter_id] = now_ms + self._pause_ms

    def forget(self, voter_id: NodeId) -> None:
        """The voter answered."""
        self._until_ms.pop(voter_id, None)

    def is_silent(self, voter_id: NodeId, now_ms: int) -> bool:
        return now_ms < self._until_ms.get(voter_id, now_ms)


class VoterChoice:
    """One round asks each voter once: the leader first, then the one that was of use last, then in turn.

    The leader is the one that some voter named last. That voter may be frozen or cut off and the name be old, so a
    voter that failed is not asked again before the others, whether it is named or not. But one that is named anew, and
    may have been elected since it refused, is asked once more in the same round. A silent voter, which costs a timeout,
    is left out of the rounds for a while, unless all of them are silent.
    """

    def __init__(self, voter_ids: Iterable[NodeId], silent: SilentVoters) -> None:
        self._ids = sorted(voter_ids)
        self._silent = silent
        self._failed: set[NodeId] = set()
        self._leader_id: NodeId | None = None
        # In this round, after they had failed.
        self._named_anew: set[NodeId] = set()
        self._useful: NodeId | None = None
        self._last: NodeId | None = None

    def choose(self, leader_id: NodeId | None, now_ms: int) -> NodeId:
        """The voter to ask now."""
        if self.is_round_over(now_ms):
            self._begin_round()
        if leader_id != self._leader_id:
            self._leader_id = leader_id
            if leader_id in self._failed - self._named_anew:
                self._failed.discard(leader_id)
                self._named_anew.add(leader_id)
        candidates = [one for one in self._awake(now_ms) if one not in self._failed]
        last = self._last
        in_turn = next((one for one in candidates if last is not None and one > last), candidates[0])
        chosen = next((one for one in (leader_id, self._useful) if one in candidates), None)
        self._last = in_turn if chosen is None else chosen
        return self._last

    def on_useful(self, voter_id: NodeId) -> None:
        """The voter did what it was asked: a new round begins with the next request."""
        self._silent.forget(voter_id)
        self._useful = voter_id
        self._begin_round()

    def on_refused(self, voter_id: NodeId) -> None:
        """The voter answered that it is of no use, or closed or refused the connection."""
        self._silent.forget(voter_id)
        self._failed.add(voter_id)

    def on_silent(self, voter_id: NodeId, now_ms: int) -> None:
        """A timeout passed without an answer."""
        self._silent.note(voter_id, now_ms)
        self._failed.add(voter_id)

    def is_round_over(self, now_ms: int) -> bool:
        """Whether all were asked: a pause is due before they are asked again."""
        return self._failed.issuperset(self._awake(now_ms))

    def _begin_round(self) -> None:
        self._failed.clear()
        self._named_anew.clear()

    def _awake(self, now_ms: int) -> list[NodeId]:
        return [one for one in self._ids if not self._silent.is_silent(one, now_ms)] or self._ids
