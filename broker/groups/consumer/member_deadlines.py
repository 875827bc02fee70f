"""By when members of consumer groups must have sent something, and must have done what they were told.

timeout     is over when the member has not                 set by
session     sent a heartbeat                                every heartbeat
rebalance   given up partitions                             being told to
join        joined again (classic protocol)                 being told that there is a rebalance
sync        asked for its part (classic protocol)           joining

A member that is removed has no timeouts any more (`forget`), so a later member of the same id receives none of them.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from ...coordination.effects import Effects
from .member import ConsumerMember

RETRY_MS: Final = 500
"""A member that could not be removed, because nothing could be written, is removed so much later."""


class MemberTimeout(NamedTuple):
    """A timer of one member."""

    group_id: str
    member_id: str
    kind: Literal["session", "rebalance", "join", "sync"]


class _Revocation(NamedTuple):
    """What a member was told to give up in this epoch."""

    member_epoch: int
    within_ms: int


class MemberDeadlines:
    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._revocations: dict[tuple[str, str], _Revocation] = {}
        self._joins: set[tuple[str, str]] = set()

    def expect_heartbeat(self, group: str, member: str, within_ms: int) -> None:
        self._effects.schedule_timer(MemberTimeout(group, member, "session"), within_ms)

    def expect_revocation(self, group: str, member: str, within_ms: int, member_epoch: int) -> None:
        """Of partitions that the member was told to give up in this epoch: in another one it is not due any more."""
        self._revocations[group, member] = _Revocation(member_epoch, within_ms)
        self._effects.schedule_timer(MemberTimeout(group, member, "rebalance"), within_ms)

    def forget_revocation(self, group: str, member: str) -> None:
        self._revocations.pop((group, member), None)
        self._effects.cancel_timer(MemberTimeout(group, member, "rebalance"))

    def expect_join(self, group: str, member: str, within_ms: int) -> None:
        """From the first time that it is told."""
        if (group, member) not in self._joins:
            self._joins.add((group, member))
            self._effects.schedule_timer(MemberTimeout(group, member, "join"), within_ms)

    def forget_join(self, group: str, member: str) -> None:
        self._joins.discard((group, member))
        self._effects.cancel_timer(MemberTimeout(group, member, "join"))

    def expect_sync(self, group: str, member: str, within_ms: int) -> None:
        self._effects.schedule_timer(MemberTimeout(group, member, "sync"), within_ms)

    def forget_sync(self, group: str, member: str) -> None:
        self._effects.cancel_timer(MemberTimeout(group, member, "sync"))

    def forget(self, group: str, member: str) -> None:
        """It is no member any more."""
        self._effects.cancel_timer(MemberTimeout(group, member, "session"))
        self.forget_revocation(group, member)
        self.forget_join(group, member)
        self.forget_sync(group, member)

    def reason_to_remove(self, timeout: MemberTimeout, member: ConsumerMember) -> str | None:
        """Why the member is to be removed now that the timeout is over; None if it need not be."""
        key = (timeout.group_id, timeout.member_id)
        if timeout.kind == "session":
            return "the member session expired"
        if timeout.kind == "rebalance":
            revocation = self._revocations.get(key)
            if revocation is None or revocation.member_epoch != member.current.epoch:
                return None
            return f"it did not give up partitions within {revocation.within_ms} ms"
        if timeout.kind == "join":
            is_due = key in self._joins
            return "the classic member failed to join within the rebalance timeout" if is_due else None
        return "the member failed to sync within timeout"

    def retry(self, timeout: MemberTimeout) -> None:
        """The member could not be removed."""
        self._effects.schedule_timer(timeout, RETRY_MS)
