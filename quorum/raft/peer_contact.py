"""Which other voters a voter reaches, for what it says when there is no leader. No decision of Raft depends on it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...protocol.ids import NodeId

# A peer that is frozen keeps its connections. Without a leader voters exchange pre-votes in each election timeout, so
# one that was silent for two of the longest does not answer.
SILENCE_MS_MAX: Final = 2_000


class PeerContact:
    """Links and messages of the other voters; times are of the loop, in milliseconds."""

    def __init__(self, peer_ids: Iterable[NodeId], now_ms: int) -> None:
        self._peer_ids = tuple(peer_ids)
        self._linked: set[NodeId] = set()
        self._heard_ms: dict[NodeId, int] = {}
        self._leaderless_since_ms: int | None = now_ms

    def on_link(self, peer_id: NodeId, *, is_up: bool) -> None:
        if is_up:
            self._linked.add(peer_id)
        else:
            self._linked.discard(peer_id)

    def on_message(self, peer_id: NodeId, now_ms: int) -> None:
        self._heard_ms[peer_id] = now_ms

    def on_leadership(self, leader_id: NodeId | None, now_ms: int) -> None:
        if leader_id is not None:
            self._leaderless_since_ms = None
        elif self._leaderless_since_ms is None:
            self._leaderless_since_ms = now_ms

    def heard_ms(self, peer_id: NodeId) -> int | None:
        """When the peer's last message came; None from one that is not reached."""
        return self._heard_ms.get(peer_id) if peer_id in self._linked else None

    def unreached_ids(self, now_ms: int) -> frozenset[NodeId]:
        """Voters without a link and, when there is no leader for long, those that are silent on theirs."""
        return frozenset(
            peer_id for peer_id in self._peer_ids if peer_id not in self._linked or self._is_silent(peer_id, now_ms)
        )

    def _is_silent(self, peer_id: NodeId, now_ms: int) -> bool:
        since_ms = self._leaderless_since_ms
        if since_ms is None or now_ms - since_ms < SILENCE_MS_MAX:
            return False
        return now_ms - self._heard_ms.get(peer_id, since_ms) >= SILENCE_MS_MAX
