"""One member of a classic group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .results import NO_ASSIGNMENT


class MemberProtocol(NamedTuple):
    """A protocol that a member supports, with its metadata for the group's leader; the format is the clients' own."""

    name: str
    metadata: bytes


@dataclass(slots=True, kw_only=True, eq=False)
class ClassicMember:
    """What it has joined with, and what it was assigned."""

    id: str
    instance_id: str | None
    """Of a static member (KIP-345)."""
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[MemberProtocol, ...]
    assignment: bytes = NO_ASSIGNMENT
    is_new: bool = False
    """It has not been told its id yet, so it cannot send heartbeats."""

    def metadata_of(self, protocol_name: str) -> bytes:
        return next(protocol.metadata for protocol in self.protocols if protocol.name == protocol_name)

    def vote(self, candidates: frozenset[str]) -> str:
        """The candidate that it likes best."""
        return next(protocol.name for protocol in self.protocols if protocol.name in candidates)
