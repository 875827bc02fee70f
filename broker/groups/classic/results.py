"""What a classic group answers to JoinGroup and SyncGroup, as values: the APIs make responses of them."""

from __future__ import annotations

from typing import Final, NamedTuple

from ....protocol.errors import ErrorCode

UNKNOWN_MEMBER_ID: Final = ""
NO_GENERATION: Final = -1
NO_ASSIGNMENT: Final = b""


class JoinedMember(NamedTuple):
    """A member as the leader gets to know it."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinResult(NamedTuple):
    error_code: ErrorCode
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str
    """Member id; empty if the member must not assign."""
    skip_assignment: bool
    """The leader keeps the assignment of the generation (KIP-814)."""
    member_id: str
    members: tuple[JoinedMember, ...]
    """Only in the leader's."""


class SyncResult(NamedTuple):
    error_code: ErrorCode
    protocol_type: str | None
    protocol_name: str | None
    assignment: bytes


def join_failure(error: ErrorCode, member_id: str = UNKNOWN_MEMBER_ID) -> JoinResult:
    return JoinResult(error, NO_GENERATION, None, None, "", False, member_id, ())


def sync_failure(error: ErrorCode) -> SyncResult:
    return SyncResult(error, None, None, NO_ASSIGNMENT)
