"""One member of a classic group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...coordination.effects import Waiter
from .results import NO_ASSIGNMENT, JoinResult, SyncResult


class MemberProtocol(NamedTuple):
    """A protocol that a member supports, with its metadata for the group's leader; the format is the clients' own."""

    name: str
    metadata: bytes


class ClassicMember:
    """What it has joined with, what it was assigned, and its requests that wait for a response."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "id",
        "instance_id",
        "is_new",
        "join_waiter",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync_waiter",
    )

    def __init__(
        self,
        *,
        id: str,  # noqa: A002 - that is its name
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Sequence[MemberProtocol],
        assignment: bytes = NO_ASSIGNMENT,
    ) -> None:
        """`instance_id` is that of a static member (KIP-345)."""
        self.id = id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = tuple(protocols)
        self.assignment = assignment
        # It has not been told its id yet, so it cannot send heartbeats.
        self.is_new = False
        self.join_waiter: Waiter[JoinResult] | None = None
        self.sync_waiter: Waiter[SyncResult] | None = None

    @property
    def is_awaiting_join(self) -> bool:
        return self.join_waiter is not None

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """A member whose request waits cannot send heartbeats, and need not."""
        return not self.is_new and (self.join_waiter is not None or self.sync_waiter is not None)

    def metadata_of(self, protocol_name: str) -> bytes:
        return next(protocol.metadata for protocol in self.protocols if protocol.name == protocol_name)

    def vote(self, candidates: frozenset[str]) -> str:
        """The candidate that it likes best."""
        return next(protocol.name for protocol in self.protocols if protocol.name in candidates)

    def take_sync(self) -> Waiter[SyncResult] | None:
        """The SyncGroup that waits, to be answered; None without one."""
        waiter, self.sync_waiter = self.sync_waiter, None
        return waiter
