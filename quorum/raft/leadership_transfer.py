"""Leadership transfer: a leader makes another voter lead (Raft thesis §3.10).

| state        | leaves by                                                                             | to           |
|--------------|---------------------------------------------------------------------------------------|--------------|
| catching up  | the target has the whole log, and all of it is committed: it is asked to take over    | asked        |
| any but done | this voter leads no more                                                              | transferred  |
| asked        | a heartbeat's time has passed: it is asked again                                      | asked        |
| transferred  | it is known who leads                                                                 | done         |
| any but done | the time is over; or, while this voter leads, no voter that could take over is linked | done         |

Until it is transferred, the leader appends nothing: the log must end somewhere. When it does not succeed, the
leader goes on as before. A target that was asked may still campaign then; that costs an election and harms nothing.
"""

from collections.abc import Collection, Mapping
from typing import Final

from ...protocol.ids import NodeId
from .consensus import TransferFailed
from .progress import NEVER_MS, Progress

# Until a leader gives up, or, after that, until it is heard who leads.
TIMEOUT_MS: Final = 1_000


class LeadershipTransfer:
    """One attempt. Without a target the peer that has the most of the log is taken."""

    def __init__(self, target_id: NodeId | None, *, now_ms: int, ask_again_ms: int) -> None:
        self._target_id = target_id
        self._deadline_ms = now_ms + TIMEOUT_MS
        self._ask_again_ms = ask_again_ms
        self._asked_ms = NEVER_MS
        self._asked_id: NodeId | None = None
        self._is_given_up = False
        self._failure = ""
        self._leader_id: NodeId | None = None

    @property
    def is_done(self) -> bool:
        return self._leader_id is not None or bool(self._failure)

    @property
    def leader_id(self) -> NodeId:
        """Who leads now, once it is done. Raises TransferFailed."""
        if self._leader_id is None:
            raise TransferFailed(self._failure)
        return self._leader_id

    def proceed(
        self,
        progress: Mapping[NodeId, Progress],
        linked: Collection[NodeId],
        *,
        log_end: int,
        commit_end: int,
        now_ms: int,
    ) -> NodeId | None:
        """Return the peer that is to be asked now. Called in the steps of a leader."""
        if self._is_given_up:
            self._failure = "No voter took over: this node leads again."
            return None
        if self._target_id is not None and self._target_id not in progress:
            self._failure = f"Node {self._target_id} is not one of the other voters."
            return None
        target_id = self._choose(progress, linked)
        if target_id is None:
            self._failure = (
                "No other voter can be reached."
                if self._target_id is None
                else f"Node {self._target_id} cannot be reached, or is a voter that has just got a new disk."
            )
            return None
        is_ready = progress[target_id].match_end == log_end == commit_end
        if now_ms >= self._deadline_ms:
            self._failure = (
                f"Node {target_id} has everything and did not take over within {TIMEOUT_MS // 1000} s."
                if is_ready
                else f"Node {target_id} did not catch up within {TIMEOUT_MS // 1000} s: it has the log to offset "
                f"{progress[target_id].match_end}, which ends at {log_end} and is committed to {commit_end}."
            )
            return None
        if not is_ready or (target_id == self._asked_id and now_ms < self._asked_ms + self._ask_again_ms):
            return None
        self._asked_id, self._asked_ms = target_id, now_ms
        return target_id

    def note_leader(self, leader_id: NodeId | None, now_ms: int) -> None:
        """Hear who leads, once this voter does not."""
        if not self._is_given_up:
            self._is_given_up = True
            self._deadline_ms = now_ms + TIMEOUT_MS
        if leader_id is not None:
            self._leader_id = leader_id
        elif now_ms >= self._deadline_ms:
            self._failure = f"This node no longer leads, and no new leader appeared within {TIMEOUT_MS // 1000} s."

    def _choose(self, progress: Mapping[NodeId, Progress], linked: Collection[NodeId]) -> NodeId | None:
        able = [peer_id for peer_id in progress if peer_id in linked and progress[peer_id].is_member]
        if self._target_id is not None:
            return self._target_id if self._target_id in able else None
        if self._asked_id in able:
            return self._asked_id
        return max(able, key=lambda peer_id: (progress[peer_id].match_end, progress[peer_id].last_ack_ms), default=None)
